/* metric_keys.c - the options of metrics that are made of sums: thresholds, classes, averages. */
#include <math.h>
#include <string.h>

#include "model/training/metric_types.h"

#define MOST_THRESHOLDS 100000
#define MOST_LISTED     4096 /* thresholds or labels that are named one by one */
#define MOST_CONFUSED   4096
#define EPSILON         1e-7 /* Keras's */

struct metric_keys {
    struct metric metric;
    const struct yaml *thresholds, *average, *targets, *label_weights;
    int64_t num_labels;
};
#define TO(field) .offset = offsetof(struct metric_keys, field)
#define NAME      "name", option_text, TO(metric.name)
#define DTYPE     .word = "dtype"
#define CLASS_ID  "class_id", option_whole, TO(metric.sums.only), .nullable = true

static plim_status read_map(struct metric_keys *keys, const struct model_option *options, int count,
                            const struct metric *metric, const struct metric_source *from, plim_error *error)
{
    const struct option_place at = {metric->type->name, from->job, from->map, NULL};
    *keys = (struct metric_keys){.metric = *metric};
    keys->metric.sums.formula = metric->type->formula;
    keys->metric.sums.only = -1;
    return yaml_absent(from->map) ? PLIM_OK : options_read(keys, options, count, &at, error);
}

static plim_status read_number(double *out, const char *word, const char *job, const struct yaml *node,
                               plim_error *error)
{
    const struct setting number = {word, SETTING_NUMBER, 0, 0};
    return yaml_absent(node) ? PLIM_OK : setting_value(out, &number, job, node, error);
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
        TRY(read_number(&number, word, from->job, item, error));
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
static plim_status sort_levels(struct sample_sums_attributes *sums, const float *list, int64_t count, bool ends,
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
    if (yaml_absent(node) || node->kind != YAML_LIST || node->count == 1) {
        const struct yaml *one = node && node->kind == YAML_LIST ? node->first : node;
        return read_number(&metric->sums.threshold, "thresholds", from->job, one, error);
    }
    TRY(read_list(&list, &metric->labels, "thresholds", 1, node, from, error));
    metric->list = list;
    metric->sums.results = true;
    return sort_levels(&metric->sums, list, metric->labels, false, from, error);
}

/* Precision, Recall, TruePositives ...: one threshold, or several. */
plim_status metric_read_counts(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const struct model_option options[] = {
        {NAME},
        {DTYPE},
        {"thresholds", option_node, TO(thresholds)},
        {"top_k", option_whole, TO(metric.sums.top), .least = 1, .nullable = true},
        {CLASS_ID}};
    struct metric_keys keys;
    struct sample_sums_attributes *sums = &keys.metric.sums;
    bool plain = strstr(metric->type->name, "_positives") || strstr(metric->type->name, "_negatives");
    TRY(read_map(&keys, options, plain ? COUNT(options) - 2 : COUNT(options), metric, from, error));
    sums->size = 1;
    sums->threshold = sums->top ? SUMS_NOTHING : 0.5;
    TRY(read_threshold(&keys.metric, keys.thresholds, from, error));
    *metric = keys.metric;
    return PLIM_OK;
}

static plim_status check_thresholds(struct sample_sums_attributes *sums, int64_t least, const char *where,
                                    plim_error *error)
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
    struct sample_sums_attributes *sums = &metric->sums;
    float *list = NULL;
    int64_t count = 0;
    if (yaml_absent(node))
        return check_thresholds(sums, 2, from->where, error);
    TRY(read_list(&list, &count, "thresholds", 1, node, from, error));
    TRY(sort_levels(sums, list, count, true, from, error));
    if (!are_even(sums->level, sums->size))
        return PLIM_OK;
    sums->level = NULL;
    return check_thresholds(sums, 2, from->where, error);
}

/* multi_label, num_labels, label_weights. */
static plim_status read_labels(struct metric_keys *keys, const struct metric_source *from, plim_error *error)
{
    struct metric *metric = &keys->metric;
    float *list = NULL;
    int64_t said = keys->num_labels;
    if (said && !metric->multi_label)
        return hint(error, fail_at(error, PLIM_BAD_JOB, from->where, "num_labels: only with multi_label: true"),
                    "{AUC: {multi_label: true, num_labels: %lld}}", (long long)said);
    metric->labels = said;
    if (!yaml_absent(keys->label_weights)) {
        TRY(read_list(&list, &metric->labels, "label_weights", HUGE_VAL, keys->label_weights, from, error));
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
    static const char *const curves[] = {"ROC", "PR", "PRGAIN"};
    static const char *const methods[] = {"interpolation", "minoring", "majoring"};
    static const struct choices curve = {curves, COUNT(curves), NULL, 0}, method = {methods, COUNT(methods), NULL, 0};
    static const struct model_option options[] = {
        {NAME},
        {DTYPE},
        {"num_thresholds", option_whole, TO(metric.sums.size), .least = 2},
        {"curve", option_choice, TO(metric.curve), .with = &curve},
        {"summation_method", option_choice, TO(metric.method), .with = &method},
        {"from_logits", option_flag, TO(metric.from_logits)},
        {"thresholds", option_node, TO(thresholds)},
        {"multi_label", option_flag, TO(metric.multi_label)},
        {"num_labels", option_whole, TO(num_labels), .least = 1, .nullable = true},
        {"label_weights", option_node, TO(label_weights)},
    };
    struct metric_keys keys;
    metric->sums.size = 200;
    metric->sums.lowest = true;
    TRY(read_map(&keys, options, COUNT(options), metric, from, error));
    TRY(read_curve_thresholds(&keys.metric, keys.thresholds, from, error));
    TRY(read_labels(&keys, from, error));
    *metric = keys.metric;
    return PLIM_OK;
}

/* {SensitivityAtSpecificity: {specificity: 0.9}} */
plim_status metric_read_constrained(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const char *const bounds[] = {"specificity", "sensitivity", "recall", "precision"};
    const char *bound = bounds[metric->type->part];
    const struct model_option options[] = {{NAME},
                                           {DTYPE},
                                           {bound, option_number, TO(metric.value)},
                                           {"num_thresholds", option_whole, TO(metric.sums.size), .least = 1},
                                           {CLASS_ID}};
    struct metric_keys keys;
    metric->sums.size = 200;
    metric->value = NAN;
    TRY(read_map(&keys, options, COUNT(options), metric, from, error));
    if (!(keys.metric.value >= 0 && keys.metric.value <= 1))
        return hint(
            error,
            fail_at(error, PLIM_BAD_JOB, from->where, "%s: '%s' must be said, from 0 to 1", metric->type->name, bound),
            "%s: 0.9", bound);
    TRY(check_thresholds(&keys.metric.sums, 1, from->where, error));
    *metric = keys.metric;
    return PLIM_OK;
}

/* {threshold: 0.5}: scores above it count, not the largest one. */
static OPTION_READER(read_limit)
{
    struct sample_sums_attributes *sums = out;
    sums->limited = true;
    return option_number(&sums->threshold, option, at, node, error);
}

plim_status metric_read_score(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const char *const averages[] = {"micro", "macro", "weighted"};
    static const struct model_option options[] = {{NAME},
                                                  {DTYPE},
                                                  {"average", option_node, TO(average)},
                                                  {"threshold", read_limit, TO(metric.sums), .nullable = true},
                                                  {"beta", option_number, TO(metric.value)}};
    struct metric_keys keys;
    metric->value = 1.0;
    TRY(read_map(&keys, options, metric->type->part ? COUNT(options) : COUNT(options) - 1, metric, from, error));
    keys.metric.method = AVERAGE_NONE;
    if (!yaml_absent(keys.average) && keys.average->kind != YAML_SCALAR)
        return hint(error, fail_at(error, PLIM_BAD_JOB, from->where, "average: expected a word"), "average: macro");
    if (!yaml_absent(keys.average))
        TRY(choose_word(&keys.metric.method, "average", keys.average->text, CHOICES(averages), from->where, error));
    keys.metric.sums.results = keys.metric.method == AVERAGE_NONE;
    if (!(keys.metric.value > 0))
        return fail_at(error, PLIM_BAD_JOB, from->where, "beta: must be above 0, got %g", keys.metric.value);
    *metric = keys.metric;
    return PLIM_OK;
}

/* [0, 2]: which classes count. */
static plim_status read_targets(struct metric *metric, const char *job, const struct yaml *node, const char *where,
                                plim_error *error)
{
    const struct setting id = {"target_class_ids", SETTING_WHOLE, 0, 0};
    int64_t class = 0;
    if (yaml_absent(node))
        return PLIM_OK;
    memset(metric->target, 0, sizeof metric->target);
    for (const struct yaml *item = node->kind == YAML_LIST ? node->first : node; item; item = item->next) {
        if (!yaml_absent(item))
            TRY(setting_value(&class, &id, job, item, error));
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

static OPTION_READER(read_ignored)
{
    struct sample_sums_attributes *sums = out;
    sums->ignores = true;
    return option_number(&sums->ignored, option, at, node, error);
}

plim_status metric_read_iou(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const struct model_option options[] = {
        {NAME},
        {DTYPE},
        {"num_classes", option_whole, TO(metric.sums.size), .least = 1},
        {"ignore_class", read_ignored, TO(metric.sums), .nullable = true},
        {"sparse_y_true", option_flag, TO(metric.sums.sparse_labels)},
        {"sparse_y_pred", option_flag, TO(metric.sums.sparse_scores)},
        {"axis", option_only, .with = "-1"},
        {"target_class_ids", option_node, TO(targets)},
    };
    static const struct model_option binary[] = {{NAME},
                                                 {DTYPE},
                                                 {"target_class_ids", option_node, TO(targets)},
                                                 {"threshold", option_number, TO(metric.sums.threshold)}};
    int part = metric->type->part;
    bool two = part == BINARY_IOU, hot = part == ONE_HOT_IOU || part == ONE_HOT_MEAN_IOU;
    bool all = part == MEAN_IOU || part == ONE_HOT_MEAN_IOU; /* classes: none can be chosen */
    struct metric_keys keys;
    const struct sample_sums_attributes *sums = &keys.metric.sums;
    metric->sums = (struct sample_sums_attributes){
        .size = two ? 2 : 0, .binary = two, .threshold = 0.5, .sparse_labels = !hot, .sparse_scores = !hot && !two};
    TRY(two ? read_map(&keys, binary, COUNT(binary), metric, from, error)
            : read_map(&keys, options, COUNT(options) - all, metric, from, error));
    if (sums->size < 1 || sums->size > MOST_CONFUSED)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, from->where, "%s: 'num_classes' must be said, from 1 to %d",
                            metric->type->name, MOST_CONFUSED),
                    "num_classes: 3");
    TRY(read_targets(&keys.metric, from->job, keys.targets, from->where, error));
    if (!two && !all && !keys.metric.targeted)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, from->where, "%s: 'target_class_ids' is missing", metric->type->name),
                    "target_class_ids: [0]");
    *metric = keys.metric;
    return PLIM_OK;
}

plim_status metric_read_r2(struct metric *metric, const struct metric_source *from, plim_error *error)
{
    static const char *const ways[] = {"uniform_average", "variance_weighted_average"};
    static const char *const keras_ways[] = {"null"}; /* one score an output */
    static const struct choices way = {ways, COUNT(ways), keras_ways, COUNT(keras_ways)};
    static const struct model_option options[] = {{NAME},
                                                  {DTYPE},
                                                  {"class_aggregation", option_choice, TO(metric.method), .with = &way},
                                                  {"num_regressors", option_whole, TO(metric.k)}};
    struct metric_keys keys;
    metric->k = 0;
    TRY(read_map(&keys, options, COUNT(options), metric, from, error));
    *metric = keys.metric;
    return PLIM_OK;
}
