/* inner_layers.h - layers inside a layer: one, a Sequential model, or a Functional one of one input and one output. */
#ifndef MODEL_INNER_LAYERS_H
#define MODEL_INNER_LAYERS_H

#include "model/layer_options.h"

/* One application of a layer inside. */
struct inner_use {
    struct layer *layer;
    const char *name;          /* what `inputs:` call it, behind the prefix that its layer's name has */
    const struct yaml *inputs; /* their names; NULL: the use above */
    const int *input;          /* the uses; INNER_FEED: what comes in */
    int input_count;
};
#define INNER_FEED (-1)

struct inner_layers {
    struct layer **layer; /* each once */
    struct inner_use *use;
    int *order; /* of running: numbers of uses */
    int layer_count, use_count;
    int output;        /* the use that makes it */
    bool by_last_axis; /* all of them treat rows of the last axis alone */
};

/* word: `Flatten`, {Dense: 10}, {Sequential: [...]}, {Functional: {layers: [...], outputs: name}}. */
plim_status inner_layers_read(struct inner_layers *out, struct layer *outer, const struct yaml *word,
                              plim_error *error);

/* All of them applied to x, for the step'th time in one use of the outer layer: what is drawn differs. Masks are those
   that layers inside make: nobody there sees the outer layer's. */
struct tensor *inner_layers_build(const struct inner_layers *inner, struct graph *graph, struct tensor *x,
                                  int64_t step);

#endif
