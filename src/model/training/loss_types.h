/* loss_types.h - losses and metrics with Keras's names, arguments and rules for
   shapes. A loss is one entry of the table in losses.c, a metric one in metrics.c. */
#ifndef MODEL_TRAINING_LOSS_TYPES_H
#define MODEL_TRAINING_LOSS_TYPES_H

#include "model/option_table.h"
#include "ops/loss/losses.h"

/* Which activation's logits a loss takes, where the model ends with it. */
enum loss_kind { LOSS_PLAIN, LOSS_SPARSE_CATEGORICAL, LOSS_BINARY };
#define LOSS_SOFTMAX LOSS_SPARSE_CATEGORICAL

struct loss_type;
struct loss {
    const struct loss_type *type; /* NULL: what loss_kind says, with defaults */
    bool from_logits, balances, ignores, sums;
    double smoothing, delta, alpha, gamma, ignored;
};

struct model;
struct graph;
struct tensor;

struct loss_type {
    const char *name, *alias, *second_alias; /* "mean_squared_error", "mse", NULL */
    enum loss_kind kind;
    bool sparse;               /* labels are class numbers */
    enum loss_formula formula; /* of the element, or */
    enum row_formula row;      /* of the row */
    struct model_option option[7];
    /* The values of output x, one a row; `logits`: x comes before its activation. */
    struct tensor *(*values)(struct graph *graph, const struct loss *loss, struct tensor *x, struct tensor *label,
                             bool logits);
};

/* `mse`, or `{Huber: {delta: 2}}`. */
plim_status loss_read(struct loss *out, enum loss_kind *kind, const char *job, const struct yaml *yaml,
                      plim_error *error);
/* Its arguments alone, a map; out->type says whose. */
plim_status loss_read_arguments(struct loss *out, const char *job, const struct yaml *yaml, plim_error *error);
/* By name or alias; NULL: there is none. */
const struct loss_type *loss_named(const char *name);
void loss_standards(struct loss *out);
/* Whether labels fit outputs (of `layer`, or NULL); else the graph has failed and says why. */
bool loss_fits(struct graph *graph, const char *layer, const struct loss_type *type, const struct tensor *x,
               const struct tensor *label);
struct loss_operands {
    struct tensor *output, *label;
    struct tensor *mask, *weight; /* or NULL */
    bool logits;                  /* output comes before its activation */
    const char *layer;            /* that made it, or NULL */
};
/* One number: the mean (or sum) over what counts. loss->type is set. */
struct tensor *loss_add(struct graph *graph, const struct loss *loss, const struct loss_operands *operands);
/* Every name, for those who offer them: losses_count of them. */
const char *loss_name(int i);
extern const int losses_count;

#endif
