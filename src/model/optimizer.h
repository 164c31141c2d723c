/* optimizer.h - optimizers with Keras's words and defaults, as update nodes. */
#ifndef MODEL_OPTIMIZER_H
#define MODEL_OPTIMIZER_H

#include "base/yaml.h"
#include "graph/op.h"

struct optimizer;
struct optimizer_type {
    const char *name; /* "adam" */
    plim_status (*read)(struct optimizer *optimizer, const char *job, const struct yaml *yaml, plim_error *error);
    /* Appends the update of weight w by gradient g. */
    void (*update)(const struct optimizer *optimizer, struct graph *graph, struct tensor *w, struct tensor *g, struct tensor *learning_rate, struct tensor *iteration);
};

struct optimizer {
    const struct optimizer_type *type;
    double learning_rate;
    double momentum, beta_1, beta_2, epsilon;
    bool nesterov;
};

/* `adam`, or `{adam: {learning_rate: 0.001}}`. */
plim_status optimizer_read(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error);

#endif
