/* build.h - a graph that is made of a model: what building it needs, and what it has made.

   The model is only read; everything that belongs to one graph is here: its weights, what each use has made, figures of
   its layers. So a model may have several graphs at once (training, evaluation, other batches), in any order.

   Invariants:
    1. a build and its tables lie in graph->build_arena: they live as long as the graph, or until build_free. Names of
       weights are the graph's own, and nothing in a graph points at a build;
    2. weights of equal models come in the same order with the same names: graphs are matched by them;
    3. graph->build is the build that is under way; after model_build it stays, for who needs the weights. */
#ifndef MODEL_BUILD_H
#define MODEL_BUILD_H

#include "model/model.h"

struct weight {
    const char *name; /* "dense/kernel": the tensor's */
    const struct layer *layer;
    struct tensor *tensor;
    struct tensor *cast; /* the same in the type that its layer computes in, made when first asked for */
    struct initializer initializer;
    bool trainable;
    bool fixed; /* no optimizer ever touches it: moving averages */
};

/* One output of a use. */
struct use_output {
    struct tensor *output, *real; /* real: the same as float32 */
    struct tensor *mask;          /* bool [N, T], or NULL */
};

struct feed_tensors {
    struct tensor *tensor, *real;
};

/* Of one layer, with those inside it. */
struct layer_figures {
    struct shape output;   /* of its first use, axis 0 is the batch; rank 0: it was not built yet */
    struct shape *further; /* the same of the outputs behind the first, where there are several */
    uint64_t output_bytes; /* of a whole batch, of all outputs */
    int64_t parameters, trainable_parameters;
    int first_weight, weight_count; /* in the build's table */
};

/* Layers inside another while they are built (inner_layers.c). */
struct inner_now {
    const struct use *use; /* all of them */
    const struct use *now;
    struct feed_tensors feed; /* what comes in */
    uint64_t number;          /* a hash: of this use among all that the outer layer's use makes of those inside */
};

struct build {
    const struct model *model;
    struct weight *weight;
    int weight_count, weight_capacity;
    struct use_output *made;         /* by use->first_output */
    struct feed_tensors *feed;       /* by the model's */
    struct layer_figures *figures;   /* by layer->number */
    bool logits[MOST_MODEL_OUTPUTS]; /* of outputs whose activation was left to the loss, by use->output_index */
    bool fitting; /* the graph of a training step: Dropout drops, BatchNormalization takes the batch's figures */
    struct tensor *iteration; /* made when first asked for */
    /* Only while building: */
    const struct training *training; /* the caller's, or NULL */
    const struct use *now;           /* the use that is being built */
    struct inner_now *inner_now;     /* the layer inside it, or NULL */
};

/* Empty tables for a graph of the model. */
plim_status build_make(struct build **out, const struct model *model, struct graph *graph, plim_error *error);
/* All builds of a graph, before the graph: for who needs its nodes alone. */
void build_free(struct graph *graph);
/* Forgets what uses have made. Weights and figures stay. */
void build_clear(struct build *build);

static inline struct use_output *use_made(const struct build *build, const struct use *use, int part)
{
    return &build->made[use->first_output + part];
}
static inline struct layer_figures *figures_of(const struct build *build, const struct layer *layer)
{
    return &build->figures[layer->number];
}
/* The activation of this output of the model was left to the loss. */
bool output_has_logits(const struct build *build, int output);
/* As `inputs:` call it: "encoder/1". */
void link_name(char out[96], const struct model *model, struct link link);

#endif
