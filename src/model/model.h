/* model.h - layers with Keras's names, arguments and defaults, and the graph
   they make. A layer is one entry of layers.def; its options are read from a
   yaml node by the layer itself, so a new layer is two files.

   A model is what was read, and does not change after that. What belongs to one graph of it is in the graph's build
   (build.h). */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/text/yaml.h"
#include "graph/op.h"
#include "model/layers/weight_options.h"
#include "model/training/loss_types.h"
#include "model/training/optimizer.h"
#include "ops/loss/tally.h"

enum initializer_kind {
    INITIAL_ZEROS,
    INITIAL_ONES,
    INITIAL_GLOROT_UNIFORM,
    INITIAL_HE_NORMAL,
    INITIAL_CONSTANT,
    INITIAL_UNIFORM,
    INITIAL_NORMAL,
    INITIAL_TRUNCATED_NORMAL,
    INITIAL_SCALED, /* Keras's VarianceScaling */
    INITIAL_ORTHOGONAL,
    INITIAL_IDENTITY,
};
enum fans { FANS_IN, FANS_OUT, FANS_BOTH };
enum spread { SPREAD_TRUNCATED, SPREAD_NORMAL, SPREAD_UNIFORM };
struct initializer { /* small: every weight of thousands of layers has one */
    enum initializer_kind kind : 8;
    enum fans fans : 8; /* of scaled ones */
    enum spread spread : 8;
    unsigned forget : 8; /* the second quarter is ones: LSTM's unit_forget_bias */
    int32_t columns;     /* of the weight: its last axis. Set with the weight */
    int64_t fan_in, fan_out;
    double
        value; /* constant; uniform: the limit on both sides; normal: the deviation; scaled: the scale; else the gain */
    double center; /* of uniform and normal ones */
};
/* `glorot_uniform`, `{constant: 0.5}`; absent or null: *out stays. */
plim_status initializer_read(struct initializer *out, const char *job, const char *word, const struct yaml *node,
                             plim_error *error);
/* Pure function of (seed, name): the same weights in any order of asking. */
void initializer_fill(void *data, enum type type, int64_t count, const struct initializer *initializer, uint64_t seed,
                      const char *name);

struct layer;
struct layer_type {
    const char *name;  /* "Dense" */
    const char *alias; /* Keras's second name, or NULL: "MaxPool2D" */
    const char *snake; /* "dense": what weights and nodes are named by */
    bool hidden;       /* checks only: not in the summary of a list */
    bool any_type;     /* takes inputs of any type; what others get is made float32 first */
    bool keeps_type;   /* what it makes keeps its type: it is no layer of Keras's, which has a policy, but an op */
    bool by_last_axis; /* treats rows of the last axis alone, whatever comes before it */
    bool reverses;     /* a use may be called with reverse: true */
    bool wide;         /* computes in float32 whatever the policy */
    bool keeps_mask;   /* Keras's supports_masking: the output has its input's mask, unless the layer says another */
    /* Where .keras files keep its weights, in pairs that a NULL ends: what comes before the '/' in a weight's name (or ""),
       and the group inside the layer's: {"", "cell", NULL}, {"query", "query_dense", ...}. NULL: in the layer's own. */
    const char *const *saved_groups;
    int saved_before;     /* how many weights of others those files have before the layer's own, in its own group */
    size_t options_bytes; /* of a struct that begins with struct layer_words */
    /* Reads the layer's options: a scalar (the first argument), a map, or
       NULL. Unknown words: PLIM_BAD_JOB with place and the nearest right word. */
    plim_status (*read)(struct layer *layer, const struct yaml *yaml, plim_error *error);
    /* Adds weights and nodes; x is the previous layer's output. Called once for each use of the layer: model_weight
       gives the same weight each time. */
    struct tensor *(*build)(const struct layer *layer, struct graph *graph, struct tensor *x);
    /* Of layers that take several inputs, in the place of build: x are the outputs of `count` layers. */
    struct tensor *(*merge)(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count);
    /* Of layers that hold another, optional: that one has made a weight, which nothing has read yet. */
    void (*inner_weight)(const struct layer *layer, struct graph *graph, struct tensor *weight, const char *suffix);
};

struct layer {
    const struct layer_type *type;
    char *name; /* "dense_1"; inside a nested model "encoder/dense_1" */
    void *options;
    struct model *model;
    struct layer *outer;      /* the layer that holds this one (TimeDistributed), or NULL */
    struct layer *next_inner; /* of the model's layers inside others */
    const char *saved_part;   /* of a layer inside another: its group in .keras files; NULL: "layer" */
    int line, column;         /* in the job file */
    const char *origin;       /* the override that set it or one of its options, or NULL */
    bool used;
    bool any_type;     /* set by read, as its type's: of layers that hand their input on */
    int number;        /* among all layers of the model, with those inside others: by it a build keeps its figures */
    int first_use;     /* in the model's table */
    int outputs;       /* set by read where there are several; else 0 */
    enum type compute; /* where it says so itself (policy.c): float32, or one of the small floats */
    bool says_compute;
    struct weight_option *weight_option; /* regularisers and constraints, by weight */
};

/* What is read: output `part` of a use (of an entry, model_scope.h); FEED(i): what the model is fed. */
struct link {
    int from, part;
};
#define FEED(i) (-1 - (i))

/* One application of a layer to the outputs of others. A layer with several uses shares its weights among them. */
struct use {
    const struct layer *layer;
    const char *name; /* what `inputs:` call its output; the outputs behind the first are NAME/1, NAME/2, ... */
    int input_count;
    const struct link *input; /* uses before this one */
    bool reverse;             /* Keras's layer(x, reverse=True) */
    int output_index;         /* which of the model's outputs its first one is; -1: none */
    bool read;                /* by another use */
    int first_output;         /* its outputs in the table of a build */
};

/* What a model is fed: a column of the batch for each Input layer; one column where there is none. */
struct feed {
    const char *name; /* of the Input layer, or NULL */
};

#define MOST_MODEL_OUTPUTS 16

struct scope; /* model_scope.h: the entries of a list of layers */

struct model {
    struct arena arena;
    const char *name;
    const char *job; /* file name for error places */
    const struct yaml
        *compiled;       /* of a file that Keras wrote: its compile_config in a job's words, or NULL. Not the model's */
    struct layer *layer; /* each once, in the order of reading */
    int layer_count;
    struct layer *inner; /* those inside others, from the last one on */
    struct use *use;     /* in running order */
    int use_count;
    struct link output[MOST_MODEL_OUTPUTS];
    const char *output_name[MOST_MODEL_OUTPUTS]; /* the layer's, or NAME/1 */
    int output_count;
    struct feed *feed;
    int feed_count;
    struct scope *scope; /* for the summary */
    enum type compute;   /* of layers that do not say: Keras's dtype policy */
    bool listed;         /* a plain list: each layer reads the one before it */
    int number_count;    /* of layers, with those inside others */
    int made_count;      /* outputs of uses, with those of layers inside others */
};

extern const struct layer_type *const all_layers[];
extern const int all_layers_count;

/* model: a list of layers, or {name, layers, outputs, trainable}. An entry is `Flatten`, `Dense: {units: 10}`, a nested
   model (`Sequential: [...]`, `Functional: {layers: ...}`) or the name of a layer above, which is used again. A layer reads
   the one before it, or its `inputs:`. */
plim_status model_read(struct model **out, struct budget *budget, const char *job, const struct yaml *list,
                       plim_error *error);
/* The same, with layers numbered on from other models: unnamed[MODEL_NUMBERS], zeroed before the first. */
#define MODEL_NUMBERS (all_layers_count + 2)
plim_status model_read_numbered(struct model **out, int *unnamed, struct budget *budget, const char *job,
                                const struct yaml *list, plim_error *error);
void model_free(struct model *model);

/* The job file's place of a layer: "job.yaml:12:5". */
void layer_place(char out[256], const struct layer *layer);

/* A layer inside another, from `Dense: 10` or `Dense: {...}`: "time_distributed/dense". Its weights count as the outer one's. */
plim_status layer_read_inner(struct layer **out, struct layer *outer, const struct yaml *entry, plim_error *error);
bool is_model_word(const char *word); /* Sequential, Functional, Model */
bool is_layer_name(const char *name);
/* Names it, where it has no name, by its class: "conv2d_1" the second of it among the `count` that are before it. Its
   group in .keras files is `group` and its class, whatever the name. */
plim_status layer_name_inner(struct layer *inner, struct layer *const *before, int count, const char *group,
                             plim_error *error);
/* x as a layer takes it. What is not in the type that the layer computes in becomes it, once (*real), unless the layer takes
   it as it is: whole numbers, never float64. */
struct tensor *layer_takes(struct graph *graph, struct tensor **real, struct tensor *x, const struct layer *reader);
/* y as a layer gives it: floats are of its type, those of layers that look up, or read whole numbers, too. */
struct tensor *layer_gives(struct graph *graph, const struct layer *layer, struct tensor *y);
/* For a layer's build: the layer makes one of the model's outputs, which nobody else reads. */
bool layer_is_last(const struct layer *layer, const struct graph *graph);
/* For a layer's build: this use is called with reverse: true. */
bool layer_is_reversed(const struct graph *graph);
/* When all is read: neither it, nor a layer or model around it, is frozen. */
bool layer_trainable(const struct layer *layer);
/* For a layer's errors: what `inputs:` call its input i. */
void input_name(char out[96], const struct graph *graph, int i);
/* For a layer's build: the mask (bool [N, T]: true where there is something) that came with input i, or NULL; and the mask
   of what it makes: NULL for none. */
struct tensor *layer_mask(const struct graph *graph, int i);
void layer_set_mask(struct graph *graph, struct tensor *mask);
/* For a layer's build, which returns the first of several outputs: output `part` of the others, with its mask. */
void layer_set_output(struct graph *graph, int part, struct tensor *y, struct tensor *mask);
/* For a layer's build: a weight "dense_1/kernel". */
struct tensor *model_weight(const struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                            struct initializer initializer);
/* The same in the type that the layer computes in; model_weight is always float32. For what an op takes only in the type
   of its other inputs: kernels, yes; biases, factors and tables, no. */
struct tensor *model_compute_weight(const struct layer *layer, struct graph *graph, const char *suffix,
                                    struct shape shape, struct initializer initializer);
/* The same, never trained by the optimizer: moving averages and the like. */
struct tensor *model_fixed_weight(const struct layer *layer, struct graph *graph, const char *suffix,
                                  struct shape shape, struct initializer initializer);
/* The layer itself, none inside it, has made such a weight in this graph. */
bool layer_has_weight(const struct layer *layer, const struct graph *graph, const char *suffix);
/* STATE i64 [1]: steps done so far; what randomness in a step is made of. Only while fitting. */
struct tensor *model_iteration(struct graph *graph);

/* policy.c: by Keras's name: float32, mixed_bfloat16, mixed_float16. `what` is the word of the job that says it. */
plim_status policy_read(enum type *out, const char *what, const char *where, const char *word, plim_error *error);
plim_status policy_read_node(enum type *out, bool *said, const char *owner, const char *job, const struct yaml *node,
                             plim_error *error);
/* For layers that do not say; where all of them say float32, as in files that Keras wrote, for all. */
void model_set_policy(struct model *model, enum type compute);
enum type layer_compute(const struct layer *layer);
bool model_computes_in(const struct model *model, enum type type);
struct tensor *policy_cast(struct graph *graph, struct tensor *x, enum type type);

struct metric_type;
#define MOST_TARGETS 256
struct metric {
    const struct metric_type *type; /* NULL: a loss */
    struct loss loss;
    int output;       /* of the model: whose */
    const char *name; /* as Keras shows it: "accuracy"; of several outputs "a_accuracy" */
    int64_t k;
    double threshold;
    bool root;     /* of the mean: RootMeanSquaredError */
    bool weighted; /* samples count by their weights: weighted_metrics */
    /* Of those that are no means (metric_sums.c): */
    struct tally_attributes sums;
    double value; /* a bound, or beta */
    int curve, method;
    bool from_logits;
    const float *list; /* weights of labels (sums are apart then), or thresholds as they were given; or NULL */
    int64_t labels;    /* of the list; labels that there have to be, 0: any */
    bool multi_label;  /* the mean of results, one a label */
    bool targeted, target[MOST_TARGETS]; /* classes that count */
};
#define MOST_METRICS 64 /* losses of the outputs, where there are several, among them */
/* What the loss adds to the model's, of one output. */
struct output_loss {
    enum loss_kind kind;
    struct loss loss;
    bool none;     /* Keras's loss None */
    double weight; /* Keras's loss_weights */
};
struct training {
    struct output_loss output_loss[MOST_MODEL_OUTPUTS];
    const struct class_weight_attributes *class_weight; /* of training steps alone; NULL: none */
    int class_weight_parts;                             /* of them, each of some classes */
    const char *origin; /* the override (base/text/yaml.h) that set some of the words of compile(), or NULL */
    struct metric metric[MOST_METRICS];
    int metric_count;
    uint64_t seed; /* of the job: what is drawn in a step hangs on it */
    struct optimizer optimizer;
};
struct output_tensors {
    struct tensor *value;  /* predictions; logits where the loss takes them */
    struct tensor *label;  /* NULL: neither a loss nor a metric asks for one */
    struct tensor *mask;   /* bool [N, T], or NULL */
    struct tensor *weight; /* a column of weights of samples, or NULL; outputs may share it */
};
struct metric_tensor {
    struct tensor *tensor; /* RESULT [1]: a mean over the batch; or STATE f64: sums since they were last set to 0 */
    const char *name;
    const struct metric *metric; /* of the training; NULL: the loss of an output */
};
struct model_tensors {
    struct tensor *loss;                       /* RESULT [1]: mean over the batch, of all outputs */
    struct metric_tensor metric[MOST_METRICS]; /* in the order of reports: metrics, then losses of outputs */
    int metric_count;
    struct output_tensors output[MOST_MODEL_OUTPUTS];
    struct tensor *learning_rate, *iteration; /* STATE, training graph only */
};
/* A column of the batch. */
struct column_spec {
    const char *name; /* or NULL */
    enum type type;
    struct shape shape; /* of one element */
};
struct label_columns {
    int label[MOST_MODEL_OUTPUTS];  /* by output; -1: it needs none */
    int weight[MOST_MODEL_OUTPUTS]; /* of weights of samples; -1: there is none */
};
/* Which column feeds what: by the names of Input layers where they are names of columns, else in order, the labels behind
   them: by the names of outputs, else in order. Weights of samples are `sample_weight`, of one output `NAME_sample_weight`,
   or behind the labels. feed has room for model->feed_count. */
plim_status model_columns(int *feed, struct label_columns *labels, const struct model *model,
                          const struct training *training, const struct column_spec *columns, int count,
                          plim_error *error);
/* The inputs alone. */
plim_status model_inputs(int *feed, const struct model *model, const struct column_spec *columns, int count,
                         plim_error *error);
/* What a model's Input layers say they are fed, for its shapes without data. */
plim_status model_input_columns(struct column_spec *columns, int *count, int most, const struct model *model,
                                plim_error *error);
/* training NULL: no label, no loss. backward: with gradients and updates. Fuses before taking gradients. The graph is not
   yet initialised storage: plan it. Its weights and the layers' figures are in graph->build. */
plim_status model_build(struct model_tensors *out, struct graph *graph, const struct model *model,
                        const struct column_spec *columns, int count, const struct training *training, bool backward,
                        plim_error *error);

/* The layers over tensors that the graph has already, `count` of them in the order of the model's Input layers. The build
   (build_make) is the caller's, made for this graph: called again with it, the layers use the same weights.
   build->iteration is the caller's to set, where randomness needs one. out has room for the model's outputs. */
plim_status model_apply(struct tensor **out, struct graph *graph, struct build *build, struct tensor *const *x,
                        int count, const struct training *training, bool fitting, plim_error *error);

/* output_losses.c: losses, penalties and metrics of all outputs, for model_build. */
void losses_add(struct model_tensors *out, struct graph *graph);
/* What a sample counts by: the data's weights, or those of its class while fitting, as Keras: not both. NULL: 1. */
struct tensor *sample_weights(struct graph *graph, const struct output_tensors *of);
const char *output_name(const struct model *model, int output);
/* metrics.c: `accuracy`, `[accuracy, {TopKCategoricalAccuracy: {k: 3}}]` of one output. prefix: what comes before the name
   and a '_', or NULL; then the names lie in the arena. weighted: as Keras's weighted_metrics. */
struct metric_place {
    int output;
    const char *prefix;
    bool weighted;
};
plim_status metrics_read(struct training *out, const struct metric_place *place, struct arena *arena, const char *job,
                         const struct yaml *yaml, plim_error *error);
void metrics_add(struct model_tensors *out, struct graph *graph);
/* Whether the tensor is a state; and the number to report: of the state's bytes, or of the mean over all samples. */
bool metric_has_sums(const struct metric_tensor *metric);
double metric_value(const struct metric_tensor *metric, const void *sums, double mean);
/* Of metrics that are several numbers (one a class, or a threshold), whose mean metric_value is: how many, and where they are
   made of the state's bytes, in its last row; 0: it is one. */
int64_t metric_each(const double **out, const struct metric_tensor *metric, void *sums);
/* A state of metrics, by its name: it is no optimizer's, and a checkpoint may lack it. */
bool is_metric_state(const char *name);
/* A state of a layer with stateful: true, by its name (layer_state.c). */
bool is_layer_state(const char *name);

/* compile.c: the words of Keras's compile() for a model, each of one output, of all, a list or a map by output. */
struct compile_word {
    const struct yaml *node; /* NULL: not said */
    const char *job;         /* the file's name, for places */
};
struct compile_words {
    struct compile_word loss, loss_weights, metrics, weighted_metrics;
    struct compile_word class_weight; /* fit()'s: {0: 1.5, 3: 0.5} */
};
plim_status compile_read(struct training *out, const struct model *model, struct arena *arena,
                         const struct compile_words *words, plim_error *error);

/* The mean of a loss or metric over the batch: of values [N], or of [N, T] where every step counts, under a mask those that
   are there. RESULT-to-be [1]. */
struct tensor *mean_of_values(struct graph *graph, struct tensor *values, struct tensor *mask);

/* keras_paths.c: where .keras files keep weights: the group of each layer, by its place in the model's table; the path of a
   weight. */
plim_status model_saved_paths(const char ***out, const struct model *model, struct arena *arena, plim_error *error);
struct weight;
void weight_saved_path(char *out, size_t capacity, const struct build *build, const char *const *paths,
                       const struct weight *weight);

/* Keras's table. */
struct text;
/* Of one graph of the model, for a terminal that is so wide. */
plim_status model_summary(struct text *out, const struct build *build, int columns);
void model_summary_json(struct text *out, const struct build *build);

#endif
