/* metric_sums.c - metrics that are no mean over batches: Keras's formulas of an epoch's counts and sums
   (op_sample_sums). Their keys are metric_keys.c's. */
#include <math.h>
#include <string.h>

#include "model/training/metric_types.h"

#define EPSILON 1e-7

/* ---- formulas ----------------------------------------------------------- */

static double share_of(double a, double b)
{
    return b != 0 ? a / b : 0;
}

/* At one threshold. */
struct counts {
    double tp, fp, tn, fn;
};

/* From the last threshold to the first: what passes this one has passed all before it. Of labels first..end, each with
   its two lines of sums. */
struct sweep {
    const double *sums;
    const float *weight; /* of labels; NULL: 1 */
    int64_t width, first, end;
    int64_t next; /* threshold, from the last */
    double tp, fp, positives, negatives;
};

static double at_place(const struct sweep *sweep, bool positive, int64_t place)
{
    double sum = 0;
    for (int64_t i = sweep->first; i < sweep->end; i++)
        sum += sweep->sums[(2 * i + positive) * sweep->width + place] * (sweep->weight ? (double)sweep->weight[i] : 1);
    return sum;
}

static struct sweep sweep_of(const double *sums, const struct shape *shape, int64_t first, int64_t end,
                             const float *weight)
{
    int64_t width = shape->dim[1];
    struct sweep sweep = {
        .sums = sums, .weight = weight, .width = width, .first = first, .end = end, .next = width - 2};
    for (int64_t i = 0; i < width; i++) {
        sweep.negatives += at_place(&sweep, false, i);
        sweep.positives += at_place(&sweep, true, i);
    }
    return sweep;
}

static bool next_counts(struct counts *out, struct sweep *sweep)
{
    if (sweep->next < 0)
        return false;
    sweep->tp += at_place(sweep, true, sweep->next + 1);
    sweep->fp += at_place(sweep, false, sweep->next + 1);
    *out = (struct counts){sweep->tp, sweep->fp, sweep->negatives - sweep->fp, sweep->positives - sweep->tp};
    sweep->next--;
    return true;
}

static double counts_value(const struct metric *metric, const struct counts *c)
{
    const double values[] = {
        c->tp, c->tn, c->fp, c->fn, share_of(c->tp, c->tp + c->fp), share_of(c->tp, c->tp + c->fn)};
    return values[metric->type->part];
}

/* Of one threshold; of several the mean. */
static double counts_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    struct sweep sweep = sweep_of(sums, shape, 0, 1, NULL);
    struct counts counts = {0};
    double total = 0;
    while (next_counts(&counts, &sweep))
        total += counts_value(metric, &counts);
    return total / (double)(shape->dim[1] - 1);
}

/* In the order in which the thresholds were given. */
static int64_t counts_each(const struct metric *metric, double *sums, const struct shape *shape)
{
    struct sweep sweep = sweep_of(sums, shape, 0, 1, NULL);
    struct counts counts = {0};
    double *out = sums + (shape->dim[0] - 1) * shape->dim[1];
    while (next_counts(&counts, &sweep))
        for (int64_t i = 0; i < metric->labels; i++)
            if (metric->list[i] == metric->sums.level[sweep.next + 1])
                out[i] = counts_value(metric, &counts);
    return metric->labels;
}

static void point_of(double *x, double *y, int curve, const struct counts *c)
{
    double recall = share_of(c->tp, c->tp + c->fn), factor = share_of(c->tp + c->fn, c->tn + c->fp);
    if (curve == CURVE_PRGAIN) {
        *x = c->tp == 0 ? 0 : fmax(1 - factor * c->fn / c->tp, 0);
        *y = c->tp == 0 ? 1 : 1 - factor * c->fp / c->tp;
        return;
    }
    *x = curve == CURVE_ROC ? share_of(c->fp, c->fp + c->tn) : recall;
    *y = curve == CURVE_ROC ? recall : share_of(c->tp, c->tp + c->fp);
}

/* Between two thresholds; b is the one behind: Davis and Goadrich's area, as Keras has it. */
static double pr_area(const struct counts *a, const struct counts *b)
{
    double pa = a->tp + a->fp, pb = b->tp + b->fp, gain = a->tp - b->tp;
    double slope = share_of(gain, fmax(pa - pb, 0)), intercept = b->tp - slope * pb;
    double ratio = pa > 0 && pb > 0 ? pa / pb : 1;
    return share_of(slope * (gain + intercept * log(ratio)), b->tp + b->fn);
}

static double area_of(const struct metric *metric, struct sweep sweep)
{
    struct counts here, behind = {0};
    double area = 0, x, y, next_x, next_y;
    next_counts(&behind, &sweep);
    point_of(&next_x, &next_y, metric->curve, &behind);
    while (next_counts(&here, &sweep)) {
        point_of(&x, &y, metric->curve, &here);
        double height = metric->method == SUM_MINORING   ? fmin(y, next_y)
                        : metric->method == SUM_MAJORING ? fmax(y, next_y)
                                                         : (y + next_y) / 2;
        if (metric->curve == CURVE_PR && metric->method == SUM_INTERPOLATION)
            area += pr_area(&here, &behind);
        else
            area += (x - next_x) * height;
        behind = here;
        next_x = x;
        next_y = y;
    }
    return area;
}

/* Of all labels together, or the mean of what each has. */
static double auc_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    int64_t labels = shape->dim[0] / 2;
    double total = 0, weights = 0;
    if (!metric->multi_label)
        return area_of(metric, sweep_of(sums, shape, 0, labels, metric->list));
    for (int64_t i = 0; i < labels; i++) {
        double weight = metric->list ? (double)metric->list[i] : 1;
        total += weight * area_of(metric, sweep_of(sums, shape, i, i + 1, NULL));
        weights += weight;
    }
    return share_of(total, weights);
}

/* The largest of one share where the other is at least `value`. */
static double constrained_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    struct sweep sweep = sweep_of(sums, shape, 0, 1, NULL);
    struct counts c = {0};
    double best = 0;
    while (next_counts(&c, &sweep)) {
        double sensitivity = share_of(c.tp, c.tp + c.fn), specificity = share_of(c.tn, c.tn + c.fp);
        double precision = share_of(c.tp, c.tp + c.fp);
        const double bound[] = {specificity, sensitivity, sensitivity, precision};
        const double wanted[] = {sensitivity, specificity, precision, sensitivity};
        if ((float)bound[metric->type->part] >= (float)metric->value)
            best = fmax(best, wanted[metric->type->part]);
    }
    return best;
}

static double score(double tp, double fp, double fn, double beta)
{
    double precision = tp / (tp + fp + EPSILON), recall = tp / (tp + fn + EPSILON);
    return (1 + beta * beta) * precision * recall / (beta * beta * precision + recall + EPSILON);
}

static double score_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    int64_t classes = shape->dim[1];
    const double *tp = sums, *fp = sums + classes, *fn = sums + 2 * classes;
    double all[3] = {0}, mean = 0, weighted = 0;
    for (int64_t i = 0; i < classes; i++) {
        double one = score(tp[i], fp[i], fn[i], metric->value);
        all[0] += tp[i];
        all[1] += fp[i];
        all[2] += fn[i];
        mean += one / (double)classes;
        weighted += one * (tp[i] + fn[i]);
    }
    if (metric->method == AVERAGE_MICRO)
        return score(all[0], all[1], all[2], metric->value);
    return metric->method == AVERAGE_WEIGHTED ? weighted / (all[0] + all[2] + EPSILON) : mean;
}

static int64_t score_each(const struct metric *metric, double *sums, const struct shape *shape)
{
    int64_t classes = shape->dim[1];
    for (int64_t i = 0; i < classes; i++)
        sums[3 * classes + i] = score(sums[i], sums[classes + i], sums[2 * classes + i], metric->value);
    return classes;
}

static double iou_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    int64_t classes = shape->dim[0], counted = 0;
    double total = 0;
    for (int64_t c = 0; c < classes; c++) {
        double either = -sums[c * classes + c];
        if (metric->targeted && (c >= MOST_TARGETS || !metric->target[c]))
            continue;
        for (int64_t i = 0; i < classes; i++)
            either += sums[c * classes + i] + sums[i * classes + c];
        counted += either > 1e-9;
        total += sums[c * classes + c] / (either + EPSILON);
    }
    return total / ((double)counted + EPSILON);
}

static double r2_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    int64_t columns = shape->dim[1];
    double plain = 0, weighted = 0, weights = 0, samples = 0, p = (double)metric->k;
    for (int64_t i = 0; i < columns; i++) {
        double sum = sums[i], squares = sums[columns + i], far = sums[2 * columns + i], count = sums[3 * columns + i];
        double total = squares - sum * sum / count, one = 1 - far / total;
        one = isinf(one) ? 0 : one;
        plain += one / (double)columns;
        weighted += total * one;
        weights += total;
        samples += sums[4 * columns + i];
    }
    double r2 = metric->method ? weighted / weights : plain;
    return p > 0 && p < samples - 1 ? 1 - (1 - r2) * (samples - 1) / (samples - p - 1) : r2;
}

/* ---- the table ---------------------------------------------------------- */

#define COUNTS(word, index)                                                                                            \
    {                                                                                                                  \
        .name = word, .formula = SUMS_THRESHOLDS, .result = counts_result, .each = counts_each,                        \
        .read = metric_read_counts, .part = index                                                                      \
    }
#define CONSTRAINED(word, index)                                                                                       \
    {                                                                                                                  \
        .name = word, .formula = SUMS_THRESHOLDS, .result = constrained_result, .read = metric_read_constrained,       \
        .part = index                                                                                                  \
    }
#define CONFUSED(word, index)                                                                                          \
    {                                                                                                                  \
        .name = word, .formula = SUMS_CONFUSION, .result = iou_result, .read = metric_read_iou, .part = index          \
    }

const struct metric_type summed_metrics[] = {
    COUNTS("true_positives", 0),
    COUNTS("true_negatives", 1),
    COUNTS("false_positives", 2),
    COUNTS("false_negatives", 3),
    COUNTS("precision", 4),
    COUNTS("recall", 5),
    {.name = "auc", .formula = SUMS_THRESHOLDS, .result = auc_result, .read = metric_read_auc},
    CONSTRAINED("sensitivity_at_specificity", 0),
    CONSTRAINED("specificity_at_sensitivity", 1),
    CONSTRAINED("precision_at_recall", 2),
    CONSTRAINED("recall_at_precision", 3),
    {.name = "f1_score",
     .formula = SUMS_CLASSES,
     .result = score_result,
     .each = score_each,
     .read = metric_read_score,
     .part = 0},
    {.name = "fbeta_score",
     .formula = SUMS_CLASSES,
     .result = score_result,
     .each = score_each,
     .read = metric_read_score,
     .part = 1},
    CONFUSED("io_u", IOU),
    CONFUSED("mean_io_u", MEAN_IOU),
    CONFUSED("binary_io_u", BINARY_IOU),
    CONFUSED("one_hot_io_u", ONE_HOT_IOU),
    CONFUSED("one_hot_mean_io_u", ONE_HOT_MEAN_IOU),
    {.name = "r2_score", .formula = SUMS_SQUARES, .result = r2_result, .read = metric_read_r2},
};
const int summed_metrics_count = COUNT(summed_metrics);
