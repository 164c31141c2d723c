/* metric_types.h - what metrics.c (means, words) and metric_sums.c (sums over an epoch, and formulas of them) share. */
#ifndef MODEL_METRIC_TYPES_H
#define MODEL_METRIC_TYPES_H

#include "model/layer_options.h"
#include "ops/tally.h"

typedef struct tensor *metric_values(struct graph *graph, const struct metric *metric, struct tensor *x,
                                     struct tensor *label, bool logits);

struct metric_words;
struct metric_type {
    const char *name, *alias;
    metric_values *values; /* of means: one a row; NULL: sums, which op_tally makes, and */
    enum tally_formula formula;
    /* of the sums of an epoch, one number; */
    double (*result)(const struct metric *metric, const double *sums, const struct shape *shape);
    /* its words, read into metric->sums. The map may be NULL. */
    plim_status (*read)(struct metric *metric, const char *job, const struct yaml *map, const char *where,
                        plim_error *error);
    int part; /* what tells types of one function apart */
};

/* Those of sums: summed_metrics_count of them. */
extern const struct metric_type summed_metrics[];
extern const int summed_metrics_count;

#endif
