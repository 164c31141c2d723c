/* weight_options.h - regularisers and constraints, of any weight of any layer:
   `kernel_regularizer: {L2: 0.01}`, `bias_constraint: non_neg`, `activity_regularizer: ...`. */
#ifndef MODEL_LAYERS_WEIGHT_OPTIONS_H
#define MODEL_LAYERS_WEIGHT_OPTIONS_H

#include "base/text/yaml.h"
#include "ops/update/regularize.h"

struct layer;
struct graph;
struct tensor;
struct build;

struct weight_option {
    const char *weight; /* what stands before _regularizer or _constraint: "kernel", "activity" */
    struct penalty_attributes penalty;
    enum constraint_kind constraint;
    double least, most, rate;
    int64_t axis_first, axis_last; /* that the norm is taken over */
    struct weight_option *next;
};

/* All of them in a layer's map, into layer->weight_option. */
plim_status weight_options_read(struct layer *layer, const struct yaml *map, plim_error *error);

/* The layer says activity_regularizer:, which is about what its activation makes. */
bool layer_has_activity_penalty(const struct layer *layer);
/* The loss with all penalties of the model added to it. */
struct tensor *penalties_add(struct graph *graph, const struct build *build, struct tensor *loss);
/* After an update of a weight. */
struct weight;
void constraint_add(struct graph *graph, const struct weight *weight);

#endif
