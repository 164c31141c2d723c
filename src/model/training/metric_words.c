/* metric_words.c - the words of metrics that are made of sums: thresholds, classes, averages. */
#include <math.h>
#include <string.h>

#include "model/training/metric_types.h"

#define MOST_THRESHOLDS 100000
#define MOST_LISTED     4096 /* thresholds or labels that are named one by one */
#define MOST_CONFUSED   4096
#define EPSILON         1e-7 /* Keras's */

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
                            const struct metric *metric, const struct metric_source *from, plim_error *error)
{
    *words = (struct metric_words){.metric = *metric};
    words->metric.sums.formula = metric->type->formula;
    words->metric.sums.only = -1;
    return is_said(from->map) ? settings_read(words, settings, count, from->job, from->map, error) : PLIM_OK;
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

/* A list of numbers from 0 on, into the arena. */
static plim_status read_list(float **out, int64_t *count, const char *word, double most, const struct yaml *node,
                             const struct metric_source *from, plim_error *error)
{
    char where[256];
    double number = 0;
    yaml_place(where, from->job, node);
    if (node->kind != YAML_LIST || node->count < 1 || node->count > MOST_LISTED)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where, "%s: expected a list of 1 to %d numbers", word, MOST_LISTED),
                    "%s: [0.2, 0.5]", word);
    float *list = arena_array(from->arena, (size_t)node->count, sizeof *list);
    if (!list)
        return arena_refused(from->arena, error);
    *count = 0;
    for (const struct yaml *item = node->first; item; item = item->next) {
        TRY(read_number(&number, &(bool){false}, word, from->job, item, error));
        if (!(number >= 0 && number <= most)) {
            yaml_place(where, from->job, item);
            return fail_at(error, PLIM_BAD_JOB, where, "%s: must be from 0 to %g, got %g", word, most, number);
        }
        list[(*count)++] = (float)number;
    }
    *out = list;
    return PLIM_OK;
}

/* The same in rising order; `ends`: with Keras's below 0 and above 1. */
static plim_status sort_levels(struct tally_attributes *sums, const float *list, int64_t count, bool ends,
                               const struct metric_source *from, plim_error *error)
{
    int64_t all = count + (ends ? 2 : 0);
    float *level = arena_array(from->arena, (size_t)all, sizeof *level);
    if (!level)
        return arena_refused(from->arena, error);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = ends + i;
        for (; at > ends && level[at - 1] > list[i]; at--)
            level[at] = level[at - 1];
        level[at] = list[i];
    }
    if (ends) {
        level[0] = (float)-EPSILON;
        level[all - 1] = (float)(1 + EPSILON);
    }
    sums->size = all;
    sums->level = level;
    return PLIM_OK;
}

/* A number, or a list of them. */
static plim_status read_threshold(struct metric *metric, const struct yaml *node, const struct metric_source *from,
                                  plim_error *error)
{
    float *list = NULL;
    if (!is_said(node) || node->kind != YAML_LIST || node->count == 1) {
        const struct yaml *one = node && node->kind == YAML_LIST ? node->first : node;
        return read_number(&metric->sums.threshold, &(bool){false}, "thresholds", from->job, one, error);
    }
    TRY(read_list(&list, &metric->labels, "thresholds", 1, node, from, error));
    metric->list = list;
    metric->sums.results = true;
    return sort_levels(&metric->sums, list, metric->labels, false, from, error);
}

/* Precision, Recall, TruePositives ...: one threshold, or several. */
plim_status metric_read_counts(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"thresholds", SETTING_NODE, AT(thresholds), 0},
                                              {"top_k", SETTING_NODE, AT(top_k), 0},
                                              {"class_id", SETTING_NODE, AT(class_id), 0}};
    struct metric_words words;
    bool plain = strstr(metric->type->name, "_positives") || strstr(metric->type->name, "_negatives");
    TRY(read_map(&words, settings, plain ? LENGTH(settings) - 2 : LENGTH(settings), metric, from, error));
    struct tally_attributes *sums = &words.metric.sums;
    TRY(read_whole(&sums->top, "top_k", 1, from->job, words.top_k, error));
    TRY(read_whole(&sums->only, "class_id", 0, from->job, words.class_id, error));
    sums->size = 1;
    sums->threshold = sums->top ? TALLY_NOTHING : 0.5;
    TRY(read_threshold(&words.metric, words.thresholds, from, error));
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

/* As Keras: [0, ...thresholds, 1] that are even ones are counted as such. */
static bool are_even(const float *level, int64_t count)
{
    for (int64_t i = 1; i + 1 < count; i++) {
        double even = (double)i / (double)(count - 1);
        if (!(fabs((double)level[i] - even) <= EPSILON + 1e-5 * even))
            return false;
    }
    return count > 2;
}

static plim_status read_curve_thresholds(struct metric *metric, const struct yaml *node,
                                         const struct metric_source *from, plim_error *error)
{
    struct tally_attributes *sums = &metric->sums;
    float *list = NULL;
    int64_t count = 0;
    if (!is_said(node))
        return check_thresholds(sums, 2, from->where, error);
    TRY(read_list(&list, &count, "thresholds", 1, node, from, error));
    TRY(sort_levels(sums, list, count, true, from, error));
    if (!are_even(sums->level, sums->size))
        return PLIM_OK;
    sums->level = NULL;
    return check_thresholds(sums, 2, from->where, error);
}

/* multi_label, num_labels, label_weights. */
static plim_status read_labels(struct metric *metric, const struct metric_words *words,
                               const struct metric_source *from, plim_error *error)
{
    float *list = NULL;
    int64_t said = 0;
    TRY(read_whole(&said, "num_labels", 1, from->job, words->num_labels, error));
    if (said && !metric->multi_label)
        return hint(error, fail_at(error, PLIM_BAD_JOB, from->where, "num_labels: only with multi_label: true"),
                    "{AUC: {multi_label: true, num_labels: %lld}}", (long long)said);
    metric->labels = said;
    if (is_said(words->label_weights)) {
        TRY(read_list(&list, &metric->labels, "label_weights", HUGE_VAL, words->label_weights, from, error));
        if (said && said != metric->labels)
            return fail_at(error, PLIM_BAD_JOB, from->where, "label_weights: %lld of them, num_labels is %lld",
                           (long long)metric->labels, (long long)said);
    }
    metric->list = list;
    metric->sums.apart = metric->multi_label || list;
    return PLIM_OK;
}

plim_status metric_read_auc(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"num_thresholds", SETTING_WHOLE, AT(metric.sums.size), 2},
                                              {"curve", SETTING_WORD, AT(curve), 0},
                                              {"summation_method", SETTING_WORD, AT(summation), 0},
                                              {"from_logits", SETTING_BOOL, AT(metric.from_logits), 0},
                                              {"thresholds", SETTING_NODE, AT(thresholds), 0},
                                              {"multi_label", SETTING_BOOL, AT(metric.multi_label), 0},
                                              {"num_labels", SETTING_NODE, AT(num_labels), 0},
                                              {"label_weights", SETTING_NODE, AT(label_weights), 0}};
    static const char *const curves[] = {"ROC", "PR", "PRGAIN"};
    static const char *const methods[] = {"interpolation", "minoring", "majoring"};
    struct metric_words words;
    metric->sums.size = 200;
    metric->sums.lowest = true;
    TRY(read_map(&words, settings, LENGTH(settings), metric, from, error));
    TRY(read_choice(&words.metric.curve, "curve", words.curve, curves, LENGTH(curves), from->where, error));
    TRY(read_choice(&words.metric.method, "summation_method", words.summation, methods, LENGTH(methods), from->where,
                    error));
    TRY(read_curve_thresholds(&words.metric, words.thresholds, from, error));
    TRY(read_labels(&words.metric, &words, from, error));
    *metric = words.metric;
    return PLIM_OK;
}

/* {SensitivityAtSpecificity: {specificity: 0.9}} */
plim_status metric_read_constrained(struct metric *metric, const struct metric_source *from, plim_error *error)
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
    TRY(read_map(&words, settings, LENGTH(settings), metric, from, error));
    TRY(read_whole(&words.metric.sums.only, "class_id", 0, from->job, words.class_id, error));
    if (!(words.metric.value >= 0 && words.metric.value <= 1))
        return hint(
            error,
            fail_at(error, PLIM_BAD_JOB, from->where, "%s: '%s' must be said, from 0 to 1", metric->type->name, bound),
            "%s: 0.9", bound);
    TRY(check_thresholds(&words.metric.sums, 1, from->where, error));
    *metric = words.metric;
    return PLIM_OK;
}

plim_status metric_read_score(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"average", SETTING_NODE, AT(average), 0},
                                              {"threshold", SETTING_NODE, AT(threshold), 0},
                                              {"beta", SETTING_NUMBER, AT(metric.value), 0}};
    static const char *const averages[] = {"micro", "macro", "weighted"};
    struct metric_words words;
    metric->value = 1.0;
    TRY(read_map(&words, settings, metric->type->part ? LENGTH(settings) : LENGTH(settings) - 1, metric, from, error));
    words.metric.method = AVERAGE_NONE;
    if (is_said(words.average) && words.average->kind != YAML_SCALAR)
        return hint(error, fail_at(error, PLIM_BAD_JOB, from->where, "average: expected a word"), "average: macro");
    if (is_said(words.average))
        TRY(read_choice(&words.metric.method, "average", words.average->text, averages, LENGTH(averages), from->where,
                        error));
    words.metric.sums.results = words.metric.method == AVERAGE_NONE;
    TRY(read_number(&words.metric.sums.threshold, &words.metric.sums.limited, "threshold", from->job, words.threshold,
                    error));
    if (!(words.metric.value > 0))
        return fail_at(error, PLIM_BAD_JOB, from->where, "beta: must be above 0, got %g", words.metric.value);
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

plim_status metric_read_iou(struct metric *metric, const struct metric_source *from, plim_error *error)
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
                 metric, from, error));
    TRY(option_default(metric->type->name, from->job, "axis", "-1", words.axis, error));
    TRY(read_number(&sums->ignored, &sums->ignores, "ignore_class", from->job, words.ignored, error));
    if (sums->size < 1 || sums->size > MOST_CONFUSED)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, from->where, "%s: 'num_classes' must be said, from 1 to %d",
                            metric->type->name, MOST_CONFUSED),
                    "num_classes: 3");
    TRY(read_targets(&words.metric, from->job, words.targets, from->where, error));
    if ((part == IOU || part == ONE_HOT_IOU) && !words.metric.targeted)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, from->where, "%s: 'target_class_ids' is missing", metric->type->name),
                    "target_class_ids: [0]");
    *metric = words.metric;
    return PLIM_OK;
}

plim_status metric_read_r2(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const struct setting settings[] = {COMMON,
                                              {"class_aggregation", SETTING_WORD, AT(aggregation), 0},
                                              {"num_regressors", SETTING_WHOLE, AT(metric.k), 0}};
    static const char *const ways[] = {"uniform_average", "variance_weighted_average"};
    struct metric_words words;
    metric->k = 0;
    TRY(read_map(&words, settings, LENGTH(settings), metric, from, error));
    TRY(read_choice(&words.metric.method, "class_aggregation", words.aggregation, ways, LENGTH(ways), from->where,
                    error));
    *metric = words.metric;
    return PLIM_OK;
}
