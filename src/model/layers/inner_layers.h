/* inner_layers.h - layers inside a layer: one, or a model of one input and one output. */
#ifndef MODEL_LAYERS_INNER_LAYERS_H
#define MODEL_LAYERS_INNER_LAYERS_H

#include "model/layers/layer_options.h"

struct inside_input;

struct inner_layers {
    struct use *use; /* in running order; FEED(0): what comes in */
    int use_count;
    struct link output;
    const struct inside_input *input; /* Input layers among them */
    bool by_last_axis;                /* all of them treat rows of the last axis alone */
};

/* word: `Flatten`, {Dense: 10}, {Sequential: [...]}, {Functional: {layers: [...], outputs: name}}. */
plim_status inner_layers_read(struct inner_layers *out, struct layer *outer, const struct yaml *word,
                              plim_error *error);

/* All of them applied to x, for the step'th time in one use of the outer layer: what is drawn differs. Masks are those
   that layers inside make: nobody there sees the outer layer's. */
struct tensor *inner_layers_build(const struct inner_layers *inner, struct graph *graph, struct tensor *x,
                                  int64_t step);

#endif
