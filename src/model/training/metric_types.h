/* metric_types.h - what metrics.c (means, words) and metric_sums.c (sums over an epoch, and formulas of them) share. */
#ifndef MODEL_TRAINING_METRIC_TYPES_H
#define MODEL_TRAINING_METRIC_TYPES_H

#include "model/layers/layer_options.h"
#include "ops/loss/sample_sums.h"

typedef struct tensor *metric_values(struct graph *graph, const struct metric *metric, struct tensor *x,
                                     struct tensor *label, bool logits);

/* Where a metric's keys stand. */
struct metric_source {
    const char *job, *where;
    const struct yaml *map; /* or NULL */
    struct arena *arena;
};

struct metric_type {
    const char *name, *alias;
    metric_values *values; /* of means: one a row; NULL: sums, which op_sample_sums makes, and */
    enum sample_sums_formula formula;
    /* of the sums of an epoch, one number; */
    double (*result)(const struct metric *metric, const double *sums, const struct shape *shape);
    /* where sums->results, a number for each column (or fewer: how many), written to the last row; */
    int64_t (*each)(const struct metric *metric, double *sums, const struct shape *shape);
    /* its keys, read into metric->sums. The map may be NULL. Lists lie in the arena. */
    plim_status (*read)(struct metric *metric, const struct metric_source *from, plim_error *error);
    int part; /* what tells types of one function apart */
};

/* What is chosen by words: metric->type->part, metric->curve, metric->method. */
enum { IOU, MEAN_IOU, BINARY_IOU, ONE_HOT_IOU, ONE_HOT_MEAN_IOU };
enum { CURVE_ROC, CURVE_PR, CURVE_PRGAIN };
enum { SUM_INTERPOLATION, SUM_MINORING, SUM_MAJORING };
enum { AVERAGE_MICRO, AVERAGE_MACRO, AVERAGE_WEIGHTED, AVERAGE_NONE };

/* metric_keys.c: */
plim_status metric_read_counts(struct metric *metric, const struct metric_source *from, plim_error *error);
plim_status metric_read_auc(struct metric *metric, const struct metric_source *from, plim_error *error);
plim_status metric_read_constrained(struct metric *metric, const struct metric_source *from, plim_error *error);
plim_status metric_read_score(struct metric *metric, const struct metric_source *from, plim_error *error);
plim_status metric_read_iou(struct metric *metric, const struct metric_source *from, plim_error *error);
plim_status metric_read_r2(struct metric *metric, const struct metric_source *from, plim_error *error);

/* Those of sums: summed_metrics_count of them. */
extern const struct metric_type summed_metrics[];
extern const int summed_metrics_count;

#endif
