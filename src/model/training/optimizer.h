/* optimizer.h - optimizers with Keras's words and defaults, as update nodes.

   An optimizer is one entry of the table in optimizer_types.c: its words, its
   states, its op; rules of several nodes have an `update` of their own. What all of
   them share (clipping, accumulation, averages, schedules) is in updates.c. */
#ifndef MODEL_TRAINING_OPTIMIZER_H
#define MODEL_TRAINING_OPTIMIZER_H

#include "base/text/yaml.h"
#include "ops/update/update.h"

struct optimizer;
struct graph;

/* A number or a truth value with Keras's default and the range that makes sense. */
struct optimizer_word {
    const char *word;
    size_t offset; /* in struct optimizer */
    bool truth;
    double standard, least, most;
};

/* A state like the weight. */
struct optimizer_state {
    const char *name;
    bool (*wanted)(const struct optimizer *optimizer); /* NULL: always */
    bool filled;                                       /* begins as initial_accumulator_value */
};

/* What the updates of one step share. */
struct update_step {
    const struct optimizer *optimizer;
    const char *prefix; /* of the states' names: "optimizer" */
    struct tensor *control;
    struct tensor *product; /* Nadam's */
};

#define MOST_OPTIMIZER_WORDS  8
#define MOST_OPTIMIZER_STATES 3

struct optimizer_type {
    const char *name; /* "adam" */
    double learning_rate;
    struct optimizer_word word[MOST_OPTIMIZER_WORDS];
    const struct op *op; /* of the update: inputs w, g, control, the states */
    struct optimizer_state state[MOST_OPTIMIZER_STATES];
    double weight_decay; /* not 0: Keras's default */
    /* Before the first update, and instead of `op`; may be NULL. */
    void (*begin)(struct update_step *step, struct graph *graph);
    void (*update)(const struct update_step *step, struct graph *graph, struct tensor *w, struct tensor *g);
    /* `states: 8bit`: the same with small states; false: not worth it for this weight. NULL: not offered. */
    bool (*small)(const struct update_step *step, struct graph *graph, struct tensor *w, struct tensor *g);
};

extern const struct optimizer_type *const optimizer_types[];
extern const int optimizer_types_count;

struct optimizer {
    const struct optimizer_type *type;
    double learning_rate;     /* of the first step */
    struct schedule schedule; /* SCHEDULE_CONSTANT: the learning rate stays */
    struct update_attributes rule;
    double accumulator; /* initial_accumulator_value */
    bool centered, amsgrad, relative_step;
    double clipnorm, clipvalue, global_clipnorm; /* 0: none; at most one is set */
    bool use_ema;
    double ema_momentum;
    int64_t ema_overwrite_frequency;
    int64_t accumulation; /* gradient_accumulation_steps; 0: none */
    bool small_states;    /* a byte an element */
    /* Dynamic loss scaling, Keras's LossScaleOptimizer: */
    bool scales_loss;
    double initial_scale;
    int64_t growth_steps;
};

/* `adam`, `{adam: 0.001}`, or `{adam: {learning_rate: 0.001}}`. */
plim_status optimizer_read(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error);
/* `{CosineDecay: {initial_learning_rate: 0.1, decay_steps: 1000}}` */
plim_status schedule_read(struct schedule *out, const char *job, const struct yaml *yaml, plim_error *error);

/* A state of weight w: "optimizer/dense/kernel/momentum". */
struct tensor *optimizer_add_state(const struct update_step *step, struct graph *graph, const struct tensor *w,
                                   const char *name, struct shape shape, double initial);
/* One number for all weights: "optimizer/learning_rate". */
struct tensor *optimizer_number(const char *prefix, struct graph *graph, const char *name, enum type type,
                                double initial);
/* The scale that backward begins with (loss scaling), or NULL. */
struct tensor *updates_scale(struct graph *graph, const struct optimizer *optimizer);

/* A weight that is trained, and its gradient (NULL: none flows to it). */
struct weight;
struct weight_update {
    struct tensor *weight, *gradient;
    const struct weight *of; /* the model's, whose constraint holds; NULL: nobody's */
};
struct update_list {
    const struct optimizer *optimizer;
    const char *prefix;       /* of the states' names: "optimizer" */
    struct tensor *iteration; /* i64 [1]: counts the steps */
    struct tensor *scale;     /* of the loss, or NULL */
    struct weight_update *update;
    int count;
};
/* All that happens to these weights: unscaling, accumulation, clipping, decay, update, average, constraint; then the
   step is counted. Returns the learning rate, a state. */
struct tensor *updates_append(struct graph *graph, const struct update_list *list);

struct model;
struct model_tensors;
/* The same for the trainable weights of a model, whose gradients are given in order. */
void updates_add(struct model_tensors *out, struct graph *graph, struct tensor *const *gradients, struct tensor *scale);

#endif
