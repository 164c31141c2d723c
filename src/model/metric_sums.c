/* metric_sums.c - metrics that are no mean over batches: counts and sums of an epoch (op_tally), and Keras's formulas
   of them. */
#include <math.h>
#include <string.h>

#include "model/metric_types.h"

#define EPSILON         1e-7
#define MOST_THRESHOLDS 100000
#define MOST_CONFUSED   4096

/* ---- words -------------------------------------------------------------- */

struct metric_words {
    struct metric metric;
    const struct yaml *thresholds, *top_k, *class_id, *average, *threshold, *targets, *ignored, *axis;
    const struct yaml *multi_label, *num_labels, *label_weights;
    const char *curve, *summation, *aggregation;
};
#define AT(field) offsetof(struct metric_words, field)
#define COMMON                                                                                                         \
    {"name", SETTING_WORD, AT(metric.name), 0},                                                                        \
    {                                                                                                                  \
        "dtype", SETTING_ELSEWHERE, 0, 0                                                                               \
    }

static bool is_said(const struct yaml *node)
{
    return node && !(node->kind == YAML_SCALAR && node->is_null);
}

static plim_status read_map(struct metric_words *words, const struct setting *settings, int count,
                            struct metric *metric, const char *job, const struct yaml *map, plim_error *error)
{
    *words = (struct metric_words){.metric = *metric};
    words->metric.sums.formula = metric->type->formula;
    words->metric.sums.only = -1;
    return is_said(map) ? settings_read(words, settings, count, job, map, error) : PLIM_OK;
}

static plim_status read_whole(int64_t *out, const char *word, int64_t least, const char *job, const struct yaml *node,
                              plim_error *error)
{
    const struct setting whole = {word, SETTING_WHOLE, 0, least};
    return is_said(node) ? setting_value(out, &whole, job, node, error) : PLIM_OK;
}

static plim_status read_number(double *out, bool *said, const char *word, const char *job, const struct yaml *node,
                               plim_error *error)
{
    const struct setting number = {word, SETTING_NUMBER, 0, 0};
    if (!is_said(node))
        return PLIM_OK;
    *said = true;
    return setting_value(out, &number, job, node, error);
}

/* One of several words, by its place. */
static plim_status read_choice(int *out, const char *what, const char *word, const char *const *words, int count,
                               const char *where, plim_error *error)
{
    for (int i = 0; word && i < count; i++)
        if (same_word(word, words[i])) {
            *out = i;
            return PLIM_OK;
        }
    return word ? option_unknown(what, word, where, words, count, NULL, 0, error) : PLIM_OK;
}

/* A number, or a list of one: a metric is one number. */
static plim_status read_threshold(struct metric *metric, const char *job, const struct yaml *node, plim_error *error)
{
    char where[256];
    const struct yaml *one = node && node->kind == YAML_LIST && node->count == 1 ? node->first : node;
    if (!is_said(node))
        return PLIM_OK;
    yaml_place(where, job, node);
    if (one->kind != YAML_SCALAR)
        return hint(error,
                    fail_at(error, PLIM_UNSUPPORTED, where, "thresholds: several; a metric is reported as one number"),
                    "one metric for each, with a name of its own");
    return read_number(&metric->sums.threshold, &(bool){false}, "thresholds", job, one, error);
}

/* Precision, Recall, TruePositives ...: one threshold. */
static plim_status read_counts(struct metric *metric, const char *job, const struct yaml *map, const char *where,
                               plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"thresholds", SETTING_NODE, AT(thresholds), 0},
                                              {"top_k", SETTING_NODE, AT(top_k), 0},
                                              {"class_id", SETTING_NODE, AT(class_id), 0}};
    struct metric_words words;
    bool plain = strstr(metric->type->name, "_positives") || strstr(metric->type->name, "_negatives");
    (void)where;
    TRY(read_map(&words, settings, plain ? LENGTH(settings) - 2 : LENGTH(settings), metric, job, map, error));
    struct tally_attributes *sums = &words.metric.sums;
    TRY(read_whole(&sums->top, "top_k", 1, job, words.top_k, error));
    TRY(read_whole(&sums->only, "class_id", 0, job, words.class_id, error));
    sums->size = 1;
    sums->threshold = sums->top ? TALLY_NOTHING : 0.5;
    TRY(read_threshold(&words.metric, job, words.thresholds, error));
    *metric = words.metric;
    return PLIM_OK;
}

static plim_status check_thresholds(struct tally_attributes *sums, int64_t least, const char *where, plim_error *error)
{
    if (sums->size < least || sums->size > MOST_THRESHOLDS)
        return fail_at(error, PLIM_BAD_JOB, where, "num_thresholds: must be from %d to %d, got %lld", (int)least,
                       MOST_THRESHOLDS, (long long)sums->size);
    sums->even = sums->size > 1;
    sums->threshold = 0.5;
    return PLIM_OK;
}

static plim_status read_auc(struct metric *metric, const char *job, const struct yaml *map, const char *where,
                            plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"num_thresholds", SETTING_WHOLE, AT(metric.sums.size), 2},
                                              {"curve", SETTING_WORD, AT(curve), 0},
                                              {"summation_method", SETTING_WORD, AT(summation), 0},
                                              {"from_logits", SETTING_BOOL, AT(metric.from_logits), 0},
                                              {"thresholds", SETTING_NODE, AT(thresholds), 0},
                                              {"multi_label", SETTING_NODE, AT(multi_label), 0},
                                              {"num_labels", SETTING_NODE, AT(num_labels), 0},
                                              {"label_weights", SETTING_NODE, AT(label_weights), 0}};
    static const char *const curves[] = {"ROC", "PR", "PRGAIN"};
    static const char *const methods[] = {"interpolation", "minoring", "majoring"};
    struct metric_words words;
    metric->sums.size = 200;
    metric->sums.lowest = true;
    TRY(read_map(&words, settings, LENGTH(settings), metric, job, map, error));
    TRY(option_default("AUC", job, "thresholds", "null", words.thresholds, error));
    TRY(option_default("AUC", job, "multi_label", "false", words.multi_label, error));
    TRY(option_default("AUC", job, "num_labels", "null", words.num_labels, error));
    TRY(option_default("AUC", job, "label_weights", "null", words.label_weights, error));
    TRY(read_choice(&words.metric.curve, "curve", words.curve, curves, LENGTH(curves), where, error));
    TRY(read_choice(&words.metric.method, "summation_method", words.summation, methods, LENGTH(methods), where, error));
    TRY(check_thresholds(&words.metric.sums, 2, where, error));
    *metric = words.metric;
    return PLIM_OK;
}

/* {SensitivityAtSpecificity: {specificity: 0.9}} */
static plim_status read_constrained(struct metric *metric, const char *job, const struct yaml *map, const char *where,
                                    plim_error *error)
{
    static const char *const bounds[] = {"specificity", "sensitivity", "recall", "precision"};
    const char *bound = bounds[metric->type->part];
    const struct setting settings[] = {COMMON,
                                       {bound, SETTING_NUMBER, AT(metric.value), 0},
                                       {"num_thresholds", SETTING_WHOLE, AT(metric.sums.size), 1},
                                       {"class_id", SETTING_NODE, AT(class_id), 0}};
    struct metric_words words;
    metric->sums.size = 200;
    metric->value = NAN;
    TRY(read_map(&words, settings, LENGTH(settings), metric, job, map, error));
    TRY(read_whole(&words.metric.sums.only, "class_id", 0, job, words.class_id, error));
    if (!(words.metric.value >= 0 && words.metric.value <= 1))
        return hint(
            error, fail_at(error, PLIM_BAD_JOB, where, "%s: '%s' must be said, from 0 to 1", metric->type->name, bound),
            "%s: 0.9", bound);
    TRY(check_thresholds(&words.metric.sums, 1, where, error));
    *metric = words.metric;
    return PLIM_OK;
}

static plim_status read_score(struct metric *metric, const char *job, const struct yaml *map, const char *where,
                              plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"average", SETTING_NODE, AT(average), 0},
                                              {"threshold", SETTING_NODE, AT(threshold), 0},
                                              {"beta", SETTING_NUMBER, AT(metric.value), 0}};
    static const char *const averages[] = {"micro", "macro", "weighted"};
    struct metric_words words;
    metric->value = 1.0;
    TRY(read_map(&words, settings, metric->type->part ? LENGTH(settings) : LENGTH(settings) - 1, metric, job, map,
                 error));
    if (!is_said(words.average) || words.average->kind != YAML_SCALAR)
        return hint(error,
                    fail_at(error, PLIM_UNSUPPORTED, where,
                            "%s: without an average there is a number for each class; one is reported",
                            metric->type->name),
                    "{%s: {average: macro}}", metric->type->part ? "FBetaScore" : "F1Score");
    TRY(read_choice(&words.metric.method, "average", words.average->text, averages, LENGTH(averages), where, error));
    TRY(read_number(&words.metric.sums.threshold, &words.metric.sums.limited, "threshold", job, words.threshold,
                    error));
    if (!(words.metric.value > 0))
        return fail_at(error, PLIM_BAD_JOB, where, "beta: must be above 0, got %g", words.metric.value);
    *metric = words.metric;
    return PLIM_OK;
}

/* [0, 2]: which classes count. */
static plim_status read_targets(struct metric *metric, const char *job, const struct yaml *node, const char *where,
                                plim_error *error)
{
    int64_t class = 0;
    if (!is_said(node))
        return PLIM_OK;
    memset(metric->target, 0, sizeof metric->target);
    for (const struct yaml *item = node->kind == YAML_LIST ? node->first : node; item; item = item->next) {
        TRY(read_whole(&class, "target_class_ids", 0, job, item, error));
        if (class >= metric->sums.size || class >= MOST_TARGETS)
            return fail_at(error, PLIM_BAD_JOB, where, "target_class_ids: %lld is no class below %lld",
                           (long long)class,
                           (long long)(metric->sums.size < MOST_TARGETS ? metric->sums.size : MOST_TARGETS));
        metric->target[class] = true;
        if (item == node)
            break;
    }
    metric->targeted = true;
    return PLIM_OK;
}

enum { IOU, MEAN_IOU, BINARY_IOU, ONE_HOT_IOU, ONE_HOT_MEAN_IOU };

static plim_status read_iou(struct metric *metric, const char *job, const struct yaml *map, const char *where,
                            plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"num_classes", SETTING_WHOLE, AT(metric.sums.size), 1},
                                              {"ignore_class", SETTING_NODE, AT(ignored), 0},
                                              {"sparse_y_true", SETTING_BOOL, AT(metric.sums.sparse_labels), 0},
                                              {"sparse_y_pred", SETTING_BOOL, AT(metric.sums.sparse_scores), 0},
                                              {"axis", SETTING_NODE, AT(axis), 0},
                                              {"target_class_ids", SETTING_NODE, AT(targets), 0}};
    static const struct setting binary[] = {COMMON,
                                            {"target_class_ids", SETTING_NODE, AT(targets), 0},
                                            {"threshold", SETTING_NUMBER, AT(metric.sums.threshold), 0}};
    int part = metric->type->part;
    bool two = part == BINARY_IOU, hot = part == ONE_HOT_IOU || part == ONE_HOT_MEAN_IOU;
    struct metric_words words;
    struct tally_attributes *sums = &words.metric.sums;
    metric->sums = (struct tally_attributes){
        .size = two ? 2 : 0, .binary = two, .threshold = 0.5, .sparse_labels = !hot, .sparse_scores = !hot && !two};
    TRY(read_map(&words, two ? binary : settings,
                 two                                            ? LENGTH(binary)
                 : part == MEAN_IOU || part == ONE_HOT_MEAN_IOU ? LENGTH(settings) - 1
                                                                : LENGTH(settings),
                 metric, job, map, error));
    TRY(option_default(metric->type->name, job, "axis", "-1", words.axis, error));
    TRY(read_number(&sums->ignored, &sums->ignores, "ignore_class", job, words.ignored, error));
    if (sums->size < 1 || sums->size > MOST_CONFUSED)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where, "%s: 'num_classes' must be said, from 1 to %d",
                            metric->type->name, MOST_CONFUSED),
                    "num_classes: 3");
    TRY(read_targets(&words.metric, job, words.targets, where, error));
    if ((part == IOU || part == ONE_HOT_IOU) && !words.metric.targeted)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "%s: 'target_class_ids' is missing", metric->type->name),
                    "target_class_ids: [0]");
    *metric = words.metric;
    return PLIM_OK;
}

static plim_status read_r2(struct metric *metric, const char *job, const struct yaml *map, const char *where,
                           plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"class_aggregation", SETTING_WORD, AT(aggregation), 0},
                                              {"num_regressors", SETTING_WHOLE, AT(metric.k), 0}};
    static const char *const ways[] = {"uniform_average", "variance_weighted_average"};
    struct metric_words words;
    metric->k = 0;
    TRY(read_map(&words, settings, LENGTH(settings), metric, job, map, error));
    TRY(read_choice(&words.metric.method, "class_aggregation", words.aggregation, ways, LENGTH(ways), where, error));
    *metric = words.metric;
    return PLIM_OK;
}

/* ---- formulas ----------------------------------------------------------- */

static double share_of(double a, double b)
{
    return b != 0 ? a / b : 0;
}

/* At one threshold. */
struct counts {
    double tp, fp, tn, fn;
};

/* From the last threshold to the first: what passes this one has passed all before it. */
struct sweep {
    const double *negative, *positive; /* by thresholds passed */
    int64_t next;                      /* threshold, from the last */
    double tp, fp, positives, negatives;
};

static struct sweep sweep_of(const double *sums, const struct shape *shape)
{
    int64_t width = shape->dim[1];
    struct sweep sweep = {.negative = sums, .positive = sums + width, .next = width - 2};
    for (int64_t i = 0; i < width; i++) {
        sweep.negatives += sums[i];
        sweep.positives += sums[width + i];
    }
    return sweep;
}

static bool next_counts(struct counts *out, struct sweep *sweep)
{
    if (sweep->next < 0)
        return false;
    sweep->tp += sweep->positive[sweep->next + 1];
    sweep->fp += sweep->negative[sweep->next + 1];
    *out = (struct counts){sweep->tp, sweep->fp, sweep->negatives - sweep->fp, sweep->positives - sweep->tp};
    sweep->next--;
    return true;
}

static struct counts single(const double *sums, const struct shape *shape)
{
    struct sweep sweep = sweep_of(sums, shape);
    struct counts counts = {0};
    next_counts(&counts, &sweep);
    return counts;
}

static double counts_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    struct counts c = single(sums, shape);
    const double values[] = {c.tp, c.tn, c.fp, c.fn, share_of(c.tp, c.tp + c.fp), share_of(c.tp, c.tp + c.fn)};
    return values[metric->type->part];
}

enum { CURVE_ROC, CURVE_PR, CURVE_PRGAIN };
enum { SUM_INTERPOLATION, SUM_MINORING, SUM_MAJORING };

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

static double auc_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    struct sweep sweep = sweep_of(sums, shape);
    struct counts here, behind = {0};
    double area = 0, x, y, next_x, next_y;
    next_counts(&behind, &sweep);
    point_of(&next_x, &next_y, metric->curve, &behind);
    for (; next_counts(&here, &sweep); behind = here, next_x = x, next_y = y) {
        point_of(&x, &y, metric->curve, &here);
        double height = metric->method == SUM_MINORING   ? fmin(y, next_y)
                        : metric->method == SUM_MAJORING ? fmax(y, next_y)
                                                         : (y + next_y) / 2;
        if (metric->curve == CURVE_PR && metric->method == SUM_INTERPOLATION)
            area += pr_area(&here, &behind);
        else
            area += (x - next_x) * height;
    }
    return area;
}

/* The largest of one share where the other is at least `value`. */
static double constrained_result(const struct metric *metric, const double *sums, const struct shape *shape)
{
    struct sweep sweep = sweep_of(sums, shape);
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

enum { AVERAGE_MICRO, AVERAGE_MACRO, AVERAGE_WEIGHTED };

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
    return metric->method == AVERAGE_MACRO ? mean : weighted / (all[0] + all[2] + EPSILON);
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
        samples += count;
    }
    double r2 = metric->method ? weighted / weights : plain;
    return p > 0 && p < samples - 1 ? 1 - (1 - r2) * (samples - 1) / (samples - p - 1) : r2;
}

/* ---- the table ---------------------------------------------------------- */

#define COUNTS(word, index)                                                                                            \
    {                                                                                                                  \
        .name = word, .formula = TALLY_THRESHOLDS, .result = counts_result, .read = read_counts, .part = index         \
    }
#define CONSTRAINED(word, index)                                                                                       \
    {                                                                                                                  \
        .name = word, .formula = TALLY_THRESHOLDS, .result = constrained_result, .read = read_constrained,             \
        .part = index                                                                                                  \
    }
#define CONFUSED(word, index)                                                                                          \
    {                                                                                                                  \
        .name = word, .formula = TALLY_CONFUSION, .result = iou_result, .read = read_iou, .part = index                \
    }

const struct metric_type summed_metrics[] = {
    COUNTS("true_positives", 0),
    COUNTS("true_negatives", 1),
    COUNTS("false_positives", 2),
    COUNTS("false_negatives", 3),
    COUNTS("precision", 4),
    COUNTS("recall", 5),
    {.name = "auc", .formula = TALLY_THRESHOLDS, .result = auc_result, .read = read_auc},
    CONSTRAINED("sensitivity_at_specificity", 0),
    CONSTRAINED("specificity_at_sensitivity", 1),
    CONSTRAINED("precision_at_recall", 2),
    CONSTRAINED("recall_at_precision", 3),
    {.name = "f1_score", .formula = TALLY_CLASSES, .result = score_result, .read = read_score, .part = 0},
    {.name = "fbeta_score", .formula = TALLY_CLASSES, .result = score_result, .read = read_score, .part = 1},
    CONFUSED("io_u", IOU),
    CONFUSED("mean_io_u", MEAN_IOU),
    CONFUSED("binary_io_u", BINARY_IOU),
    CONFUSED("one_hot_io_u", ONE_HOT_IOU),
    CONFUSED("one_hot_mean_io_u", ONE_HOT_MEAN_IOU),
    {.name = "r2_score", .formula = TALLY_SQUARES, .result = r2_result, .read = read_r2},
};
const int summed_metrics_count = LENGTH(summed_metrics);
