/* model.h - models: layers with Keras's names, arguments and defaults, and the graph that is built from them. A layer
   type is one entry of layers.def. It reads its own options from a YAML node, so a new layer takes two files.

   A model is read once and does not change afterwards. Everything that belongs to one graph of the model is in the
   graph's build (build.h). */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/text/yaml.h"
#include "graph/op.h"
#include "model/layers/weight_options.h"
#include "model/training/loss_types.h"
#include "model/training/optimizer.h"
#include "ops/loss/sample_sums.h"

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
enum distribution { DISTRIBUTION_TRUNCATED, DISTRIBUTION_NORMAL, DISTRIBUTION_UNIFORM };
struct initializer { /* kept small, because every weight of thousands of layers has one */
    enum initializer_kind kind : 8;
    enum fans fans : 8; /* for INITIAL_SCALED */
    enum distribution distribution : 8;
    unsigned forget : 8; /* the second quarter is set to ones: LSTM's unit_forget_bias */
    int32_t columns;     /* extent of the weight's last axis; set when the weight is created */
    int64_t fan_in, fan_out;
    double
        value; /* constant: value; uniform: limit on both sides; normal: standard deviation; scaled: scale; else gain */
    double center; /* of uniform and normal distributions */
};
/* Reads `glorot_uniform` or `{constant: 0.5}`. If the node is absent or null, *out is unchanged. */
plim_status initializer_read(struct initializer *out, const char *job, const char *word, const struct yaml *node,
                             plim_error *error);
/* A pure function of (seed, name): the weights do not depend on the order of the calls. */
void initializer_fill(void *data, enum type type, int64_t count, const struct initializer *initializer, uint64_t seed,
                      const char *name);

struct layer;
struct model_option;
/* "Dense", "dense" */
#define NAMES(keras, small) .name = (keras), .snake = (small)
/* The struct that a layer's options are read into, and their table. */
#define OPTIONS(type, table) .options_bytes = sizeof(type), .option = (table), .option_count = COUNT(table)
struct layer_type {
    const char *name;  /* "Dense" */
    const char *alias; /* Keras's second name, or NULL: "MaxPool2D" */
    const char *snake; /* "dense": prefix of the names of weights and nodes */
    bool hidden;       /* the layer only checks its input (Input): the summary of a plain list omits it */
    bool any_type;     /* accepts inputs of any type; for other layers inputs are cast to the compute type */
    bool keeps_type;   /* the output is not cast, because this is a Keras op, which has no dtype policy, and no layer */
    bool by_last_axis; /* processes each row of the last axis independently, for any number of axes before it */
    bool reverses;     /* a layer call may have reverse: true */
    bool wide;         /* computes in float32 under every dtype policy */
    bool keeps_mask;   /* Keras's supports_masking: the output has the input's mask, unless the layer sets another */
    /* The groups of the weights in .keras files, as a NULL-terminated list of pairs: the part of the weight's name
       before the '/' (or ""), and the group inside the layer's group: {"", "cell", NULL}, {"query", "query_dense",
       ...}. NULL: all weights are in the layer's own group. */
    const char *const *saved_groups;
    int saved_before;     /* number of other layers' weights that precede the layer's own in its group of those files */
    size_t options_bytes; /* size of the options, a struct that begins with struct layer_keys */
    const struct model_option *option; /* table of the layer's own options (layers/layer_options.h) */
    int option_count;
    bool scalar_first;    /* of a layer with merge: a scalar is its first option, not its input (LSTM: 64) */
    const void *defaults; /* the options before they are read; NULL: zeros */
    const char *example;  /* for errors about missing options; %s stands for the type's name */
    /* Optional: checks the options when they have been read, and derives others from them. */
    plim_status (*check)(struct layer *layer, plim_error *error);
    /* Optional: replaces layer_read, which reads by the table. yaml is a scalar (the first argument), a map, or
       NULL. */
    plim_status (*read)(struct layer *layer, const struct yaml *yaml, plim_error *error);
    /* What tells types that share functions apart: */
    int form;            /* an enum of theirs */
    int axes;            /* number of axes between the batch and the channels */
    const struct op *op; /* the op that build adds */
    /* Adds weights and nodes; x is the input. The function runs once for each layer call (struct use), and model_weight
       returns the same weight each time. */
    struct tensor *(*build)(const struct layer *layer, struct graph *graph, struct tensor *x);
    /* Replaces build in layers with several inputs: x are the outputs of `count` layer calls. */
    struct tensor *(*merge)(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count);
    /* Optional, for layers that hold another one: the inner layer has created a weight, which no node reads yet. */
    void (*inner_weight)(const struct layer *layer, struct graph *graph, struct tensor *weight, const char *suffix);
};

struct layer {
    const struct layer_type *type;
    char *name; /* "dense_1"; inside a nested model "encoder/dense_1" */
    void *options;
    struct model *model;
    struct layer *outer;      /* the layer that holds this one (TimeDistributed), or NULL */
    struct layer *next_inner; /* list of the model's nested layers (model->inner) */
    const char *saved_part;   /* of a nested layer: its group in .keras files; NULL: "layer" */
    int line, column;         /* in the job file */
    const char *origin;       /* the override that set the layer or one of its options, or NULL */
    bool used;
    bool any_type;     /* as layer_type.any_type, set by read for layers that forward their input */
    int number;        /* index among all layers of the model, nested ones included: index into build->figures */
    int first_use;     /* index into model->use */
    int outputs;       /* number of outputs, set by read if there are several; else 0 */
    enum type compute; /* compute type if says_compute (policy.c): float32, float16 or bfloat16 */
    bool says_compute;
    struct weight_option *weight_option; /* regularizers and constraints of its weights */
};

/* A reference to a value: output `part` of layer call `from` (in model_scope.h: of entry `from`). from == FEED(i):
   model input i. */
struct link {
    int from, part;
};
#define FEED(i) (-1 - (i))

/* One layer call: a layer applied to the outputs of other calls. All calls of one layer share its weights. */
struct use {
    const struct layer *layer;
    const char *name; /* the name of its first output in `inputs:`; the other outputs are NAME/1, NAME/2, ... */
    int input_count;
    const struct link *input; /* outputs of earlier calls, or model inputs */
    bool reverse;             /* Keras's layer(x, reverse=True) */
    int output_index;         /* index of the model output that its first output is; -1: none */
    bool read;                /* another call reads its output */
    int first_output;         /* index of its first output in build->made */
};

/* A model input: a column of the batch for each Input layer; one column if the model has no Input layer. */
struct feed {
    const char *name; /* of the Input layer, or NULL */
};

#define MOST_MODEL_OUTPUTS 16

struct scope; /* model_scope.h: the entries of a list of layers */

struct model {
    struct arena arena;
    const char *name;
    const char *job; /* file name, for the places in error messages */
    const struct yaml
        *compiled;       /* compile_config of a Keras file, translated to job-file keys, or NULL; owned by the caller */
    struct layer *layer; /* every layer once, in the order in which they were read */
    int layer_count;
    struct layer *inner; /* list of nested layers (layers inside others), last one first */
    struct use *use;     /* layer calls, in execution order */
    int use_count;
    struct link output[MOST_MODEL_OUTPUTS];
    const char *output_name[MOST_MODEL_OUTPUTS]; /* the name of the layer, or NAME/1 */
    int output_count;
    struct feed *feed;
    int feed_count;
    struct scope *scope; /* for the summary */
    enum type compute;   /* compute type of layers without a dtype of their own: Keras's dtype policy */
    bool listed;         /* the model is a plain list: each layer reads the one before it */
    int number_count;    /* number of layers, including nested ones */
    int made_count;      /* number of outputs of layer calls, including those of nested layers */
};

extern const struct layer_type *const all_layers[];
extern const int all_layers_count;

/* Reads a model: a list of layers, or {name, layers, outputs, trainable}. An entry is `Flatten`, `Dense: {units: 10}`,
   a nested model (`Sequential: [...]`, `Functional: {layers: ...}`), or the name of a layer above, which is called
   again. A layer reads the output of the entry before it, or its `inputs:`. */
plim_status model_read(struct model **out, struct budget *budget, const char *job, const struct yaml *list,
                       plim_error *error);
/* The same, with the numbers of default layer names continuing from other models: unnamed[MODEL_NUMBERS] holds the
   counters and is zeroed before the first model. */
#define MODEL_NUMBERS (all_layers_count + 2)
plim_status model_read_numbered(struct model **out, int *unnamed, struct budget *budget, const char *job,
                                const struct yaml *list, plim_error *error);
void model_free(struct model *model);

/* The place of a layer in the job file: "job.yaml:12:5". */
void layer_place(char out[256], const struct layer *layer);

/* Reads a nested layer from `Dense: 10` or `Dense: {...}`; its name is "time_distributed/dense". Its weights count as
   weights of the outer layer. */
plim_status layer_read_inner(struct layer **out, struct layer *outer, const struct yaml *entry, plim_error *error);
bool is_model_word(const char *word); /* Sequential, Functional, Model */
bool is_layer_name(const char *name);
/* Names a nested layer without a name after its class: "conv2d_1" is the second Conv2D, counting the `count` layers in
   `before`. Its group in .keras files is `group` followed by its class, whatever its name is. */
plim_status layer_name_inner(struct layer *inner, struct layer *const *before, int count, const char *group,
                             plim_error *error);
/* x as input of a layer: x is cast to the layer's compute type, once for all readers (*real). A layer with any_type
   gets x uncast, unless x is float64 (only Input gets float64 uncast). */
struct tensor *layer_takes(struct graph *graph, struct tensor **real, struct tensor *x, const struct layer *reader);
/* y as output of a layer: floats are cast to the layer's compute type, also if the layer looks values up or reads
   integers. */
struct tensor *layer_gives(struct graph *graph, const struct layer *layer, struct tensor *y);
/* For a layer's build: whether this call computes a model output that no other call reads. */
bool layer_is_last(const struct layer *layer, const struct graph *graph);
/* For a layer's build: whether this call has reverse: true. */
bool layer_is_reversed(const struct graph *graph);
/* Whether neither the layer nor a layer or model around it is frozen. Valid once the whole model is read. */
bool layer_trainable(const struct layer *layer);
/* For a layer's error messages: the name of its input i, as in `inputs:`. */
void input_name(char out[96], const struct graph *graph, int i);
/* For a layer's build: layer_mask returns the mask of input i (bool [N, T]: true for valid steps), or NULL.
   layer_set_mask sets the mask of the output; NULL: none. */
struct tensor *layer_mask(const struct graph *graph, int i);
void layer_set_mask(struct graph *graph, struct tensor *mask);
/* For a layer's build, which returns only its first output: sets output `part` (1, 2, ...) and its mask. */
void layer_set_output(struct graph *graph, int part, struct tensor *y, struct tensor *mask);
/* For a layer's build: creates the weight "dense_1/kernel", or returns the one that an earlier call created. */
struct tensor *model_weight(const struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                            struct initializer initializer);
/* The same, cast to the layer's compute type; model_weight returns float32. For weights that an op accepts only in the
   type of its other inputs: kernels do need the cast; biases, factors and tables do not. */
struct tensor *model_compute_weight(const struct layer *layer, struct graph *graph, const char *suffix,
                                    struct shape shape, struct initializer initializer);
/* The same for a kernel: the initializer gets Keras's fans of the shape. */
struct tensor *model_kernel(const struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                            struct initializer initializer);
/* A float32 weight of shape [count], which is both fans of its initializer. */
struct tensor *model_bias(const struct layer *layer, struct graph *graph, const char *suffix, int64_t count,
                          struct initializer initializer);
/* The initializer with Keras's fans of a weight: its last two axes, each times the axes before them. */
struct initializer initializer_with_fans(struct initializer initializer, const struct shape *shape);
/* The same for a weight that the optimizer never trains, such as a moving average. */
struct tensor *model_fixed_weight(const struct layer *layer, struct graph *graph, const char *suffix,
                                  struct shape shape, struct initializer initializer);
/* Whether the layer itself, not a nested one, has created such a weight in this graph. */
bool layer_has_weight(const struct layer *layer, const struct graph *graph, const char *suffix);
/* STATE i64 [1]: the number of finished steps. The random numbers of a step are derived from it. Only while fitting. */
struct tensor *model_iteration(struct graph *graph);

/* policy.c: reads a dtype policy by Keras's name: float32, mixed_bfloat16, mixed_float16. `what` is the key of the job
   file that sets it, for error messages. */
plim_status policy_read(enum type *out, const char *what, const char *where, const char *word, plim_error *error);
plim_status policy_read_node(enum type *out, bool *said, const char *owner, const char *job, const struct yaml *node,
                             plim_error *error);
/* Sets the policy of layers without a dtype of their own. If every layer says float32, as in files that Keras wrote, it
   sets the policy of all layers. */
void model_set_policy(struct model *model, enum type compute);
enum type layer_compute(const struct layer *layer);
bool model_computes_in(const struct model *model, enum type type);
struct tensor *policy_cast(struct graph *graph, struct tensor *x, enum type type);

struct metric_type;
#define MOST_TARGETS 256
struct metric {
    const struct metric_type *type; /* NULL: a loss */
    struct loss loss;
    int output;       /* index of the model output that it measures */
    const char *name; /* as Keras prints it: "accuracy"; with several outputs "a_accuracy" */
    int64_t k;
    double threshold;
    bool root;     /* report the square root of the mean: RootMeanSquaredError */
    bool weighted; /* uses sample weights: Keras's weighted_metrics */
    /* For metrics that are not means (metric_sums.c): */
    struct sample_sums_attributes sums;
    double value; /* a bound, or beta */
    int curve, method;
    bool from_logits;
    const float *list; /* label weights (each label has its own sums then), or thresholds as written; or NULL */
    int64_t labels;    /* length of `list`, or the required number of labels; 0: any number */
    bool multi_label;  /* the result is the mean of one result per label */
    bool targeted, target[MOST_TARGETS]; /* which classes count */
};
#define MOST_METRICS 64 /* includes the losses of the outputs if there are several outputs */
/* The share of one output in the loss of the model. */
struct output_loss {
    enum loss_kind kind;
    struct loss loss;
    bool none;     /* Keras's loss None */
    double weight; /* Keras's loss_weights */
};
struct training {
    struct output_loss output_loss[MOST_MODEL_OUTPUTS];
    const struct class_weight_attributes *class_weight; /* for training steps only; NULL: none */
    int class_weight_parts;                             /* length of class_weight; each entry covers some classes */
    const char *origin; /* the override (base/text/yaml.h) that set an argument of compile(), or NULL */
    struct metric metric[MOST_METRICS];
    int metric_count;
    uint64_t seed; /* of the job: the random numbers of a step depend on it */
    struct optimizer optimizer;
};
struct output_tensors {
    struct tensor *value;  /* predictions; logits if the loss expects logits */
    struct tensor *label;  /* NULL: neither a loss nor a metric needs labels */
    struct tensor *mask;   /* bool [N, T], or NULL */
    struct tensor *weight; /* a column of sample weights, or NULL; outputs may share it */
};
struct metric_tensor {
    struct tensor *tensor; /* RESULT [1]: mean over the batch; or STATE f64: sums since they were last cleared */
    const char *name;
    const struct metric *metric; /* in struct training; NULL: this is the loss of an output */
};
struct model_tensors {
    struct tensor *loss;                       /* RESULT [1]: mean over the batch, for all outputs together */
    struct metric_tensor metric[MOST_METRICS]; /* in report order: metrics, then losses of outputs */
    int metric_count;
    struct output_tensors output[MOST_MODEL_OUTPUTS];
    struct tensor *learning_rate, *iteration; /* STATE; training graph only */
};
/* A column of the batch. */
struct column_spec {
    const char *name; /* or NULL */
    enum type type;
    struct shape shape; /* of one element */
};
/* What the graph of a model is built for: a step of training or of evaluation, over a batch of these columns. */
struct step_spec {
    const struct column_spec *column;
    int column_count;
    const struct training *training; /* NULL: without labels and loss */
    bool backward;                   /* with gradients and updates */
};
struct label_columns {
    int label[MOST_MODEL_OUTPUTS];  /* label column by output; -1: the output needs none */
    int weight[MOST_MODEL_OUTPUTS]; /* column of sample weights by output; -1: there is none */
};
/* Assigns columns to model inputs and labels; step->training says which outputs need one. Inputs: by name if the Input
   layers' names are column names, else in order. Labels come after the inputs: by the names of the outputs, else in
   order. Sample weights are the column `sample_weight`, for one output `NAME_sample_weight`, or the columns after the
   labels. feed holds model->feed_count entries. */
plim_status model_columns(int *feed, struct label_columns *labels, const struct model *model,
                          const struct step_spec *step, plim_error *error);
/* The same for the inputs only. */
plim_status model_inputs(int *feed, const struct model *model, const struct column_spec *columns, int count,
                         plim_error *error);
/* The columns that the model's Input layers declare, to compute the model's shapes without data. */
plim_status model_input_columns(struct column_spec *columns, int *count, int most, const struct model *model,
                                plim_error *error);
/* Builds the graph of a model. Nodes are fused before gradients are added. The graph has no storage yet: it must be
   planned. Its weights and the values of each layer (struct layer_figures) are in graph->build. */
plim_status model_build(struct model_tensors *out, struct graph *graph, const struct model *model,
                        const struct step_spec *step, plim_error *error);

/* Applies the layers to existing tensors of the graph: x[0..count), in the order of the model's Input layers. The
   caller makes the build (build_make) for this graph; a second call with the same build uses the same weights. Before
   each call the caller sets build->training (forgotten afterwards) and build->fitting, and build->iteration if a layer
   needs random numbers. out holds one tensor per model output. */
plim_status model_apply(struct tensor **out, struct graph *graph, struct build *build, struct tensor *const *x,
                        int count, plim_error *error);

/* output_losses.c: adds losses, penalties and metrics of all outputs, for model_build. */
void losses_add(struct model_tensors *out, struct graph *graph);
/* The sample weights: those of the data, or while fitting the class weights; as in Keras, not both. NULL: every weight
   is 1. */
struct tensor *sample_weights(struct graph *graph, const struct output_tensors *of);
const char *output_name(const struct model *model, int output);
/* metrics.c: reads `accuracy` or `[accuracy, {TopKCategoricalAccuracy: {k: 3}}]` for one output. prefix: the names
   become "PREFIX_name" and lie in the arena; or NULL. weighted: as Keras's weighted_metrics. */
struct metric_place {
    int output;
    const char *prefix;
    bool weighted;
};
plim_status metrics_read(struct training *out, const struct metric_place *place, struct arena *arena, const char *job,
                         const struct yaml *yaml, plim_error *error);
void metrics_add(struct model_tensors *out, struct graph *graph);
/* metric_has_sums: whether the tensor is a state. metric_value: the number to report, computed from the state's bytes,
   or from the mean over all samples. */
bool metric_has_sums(const struct metric_tensor *metric);
double metric_value(const struct metric_tensor *metric, const void *sums, double mean);
/* For metrics that consist of several numbers (one per class or threshold), of which metric_value is the mean: computes
   them from the state's bytes into the state's last row and returns their count. 0: the metric is one number. */
int64_t metric_each(const double **out, const struct metric_tensor *metric, void *sums);
/* Whether the name is that of a metric's state. Such a state does not belong to the optimizer, and a checkpoint may
   lack it. */
bool is_metric_state(const char *name);
/* Whether the name is that of a state of a layer with stateful: true (layer_state.c). */
bool is_layer_state(const char *name);

/* compile.c: the arguments of Keras's compile(). Each one applies to the only output or to all outputs, or is a list,
   or a map by output. */
struct compile_key {
    const struct yaml *node; /* NULL: not given */
    const char *job;         /* file name, for the places in error messages */
};
struct compile_keys {
    struct compile_key loss, loss_weights, metrics, weighted_metrics;
    struct compile_key class_weight; /* argument of fit(): {0: 1.5, 3: 0.5} */
};
plim_status compile_read(struct training *out, const struct model *model, struct arena *arena,
                         const struct compile_keys *keys, plim_error *error);

/* keras_paths.c: the paths of weights in .keras files. model_saved_paths: the group of each layer, by its index in
   model->layer. weight_saved_path: the path of one weight. */
plim_status model_saved_paths(const char ***out, const struct model *model, struct arena *arena, plim_error *error);
struct weight;
void weight_saved_path(char *out, size_t capacity, const struct build *build, const char *const *paths,
                       const struct weight *weight);

/* Keras's summary table. */
struct text;
/* The table for one graph of the model; columns: width of the terminal. */
plim_status model_summary(struct text *out, const struct build *build, int columns);
void model_summary_json(struct text *out, const struct build *build);

#endif
