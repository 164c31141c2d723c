/* resample.c - rejection_resample: elements are left out such that classes come as often as they should.

   With p the distribution of classes that come in and q the one that is wanted, an element of class c is kept with
   probability (q[c] / p[c]) / max(q / p): what is left has the distribution q, and no element comes twice. Where p is
   not given it is estimated from what has come so far, each class counted as if seen 10 times before. Chances are a
   function of (seed, epoch, number of the element). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/core/pipeline_digest.h"

#define SEEN_BEFORE 10
#define SUM_SLACK   1e-4

static plim_status check_dist(const char *word, const double *dist, int count, plim_error *error)
{
    double sum = 0;
    for (int c = 0; c < count; c++) {
        if (!(dist[c] >= 0 && dist[c] <= 1))
            return fail(error, PLIM_BAD_JOB, "rejection_resample: %s: %g is no probability", word, dist[c]);
        sum += dist[c];
    }
    if (fabs(sum - 1) > SUM_SLACK)
        return fail(error, PLIM_BAD_JOB, "rejection_resample: %s: sums to %g, not to 1", word, sum);
    return PLIM_OK;
}

static plim_status check_column(const struct dataset *dataset, const struct resample_options *options,
                                plim_error *error)
{
    int column = spec_find(dataset->spec, options->column);
    if (options->class_of)
        return PLIM_OK;
    if (column < 0)
        return fail(error, PLIM_BAD_JOB, "rejection_resample: there is no column '%s'", options->column);
    const struct column *found = &dataset->spec->column[column];
    if (found->shape.rank || found->type == TYPE_STRING || type_is_float(found->type))
        return fail(error, PLIM_BAD_JOB, "rejection_resample: column '%s' holds no class numbers", options->column);
    return PLIM_OK;
}

static plim_status resample_build(struct dataset *dataset, plim_error *error)
{
    const struct resample_options *options = dataset->options;
    if (options->class_count < 1 || options->class_count > RESAMPLE_CLASSES)
        return fail(error, PLIM_BAD_JOB, "rejection_resample: 1 to %d classes, not %d", RESAMPLE_CLASSES,
                    options->class_count);
    TRY(check_dist("target_dist", options->target_dist, options->class_count, error));
    if (options->has_initial)
        TRY(check_dist("initial_dist", options->initial_dist, options->class_count, error));
    TRY(check_column(dataset, options, error));
    if (dataset->cardinality > 0)
        dataset->cardinality = CARDINALITY_UNKNOWN;
    return PLIM_OK;
}

/* ---- running ---- */

struct resample_stream {
    struct stream stream;
    int column;
    uint64_t key, seen;
    double count[RESAMPLE_CLASSES]; /* of each class so far, or its given share */
};

static plim_status resample_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct resample_stream *self = (struct resample_stream *)stream;
    const struct dataset *dataset = stream->dataset;
    const struct resample_options *options = dataset->options;
    self->column = spec_find(dataset->spec, options->column);
    self->key = random_key(dataset->seed, (uint64_t)dataset->node, epoch);
    self->seen = 0;
    for (int c = 0; c < options->class_count; c++)
        self->count[c] = options->has_initial ? options->initial_dist[c] : SEEN_BEFORE;
    return stream_rewind_inputs(stream, epoch, error);
}

static plim_status class_of(int *out, const struct resample_stream *self, const struct chunk *chunk, int64_t row,
                            plim_error *error)
{
    const struct resample_options *options = self->stream.dataset->options;
    int64_t class;
    if (options->class_of)
        class = options->class_of(chunk, row, options->context);
    else
        class = (int64_t)element_get(chunk_row(chunk, self->column, row), chunk->spec->column[self->column].type, 0);
    if (class < 0 || class >= options->class_count)
        return fail(error, PLIM_BAD_DATA, "rejection_resample: element %lld is of class %lld, not one of %d from 0",
                    (long long)chunk->index[row], (long long)class, options->class_count);
    *out = (int)class;
    return PLIM_OK;
}

/* Classes that never come in have no say; one that does though it should not has no chance but where it is wanted. */
static double chance(const struct resample_stream *self, int class)
{
    const struct resample_options *options = self->stream.dataset->options;
    double most = 0;
    for (int c = 0; c < options->class_count; c++)
        if (self->count[c] > 0 && options->target_dist[c] / self->count[c] > most)
            most = options->target_dist[c] / self->count[c];
    if (!(self->count[class] > 0) || !(most > 0))
        return options->target_dist[class] > 0;
    return options->target_dist[class] / self->count[class] / most;
}

static plim_status resample_keep(struct stream *stream, struct chunk *to, plim_error *error)
{
    struct resample_stream *self = (struct resample_stream *)stream;
    const struct resample_options *options = stream->dataset->options;
    int64_t kept = 0;
    for (int64_t row = 0; row < to->count; row++) {
        int class = 0;
        uint32_t random[4];
        random_block(random, self->key, 0, self->seen++);
        TRY(class_of(&class, self, to, row, error));
        if (!options->has_initial)
            self->count[class]++;
        double unit = (double)((uint64_t)random[1] << 21 | random[0] >> 11) * 0x1p-53;
        if (unit < chance(self, class))
            chunk_move(to, kept++, row);
    }
    to->count = kept;
    return PLIM_OK;
}

static const struct stream_type resample_stream = {
    .state_bytes = sizeof(struct resample_stream), .rewind = resample_rewind, .keep = resample_keep};

/* ---- building ---- */

struct dataset *dataset_rejection_resample(struct dataset *dataset, const struct resample_options *options)
{
    double dists[2 * RESAMPLE_CLASSES];
    memcpy(dists, options->target_dist, sizeof options->target_dist);
    memcpy(dists + RESAMPLE_CLASSES, options->initial_dist, sizeof options->initial_dist);
    return dataset_add(dataset, &stage_rejection_resample,
                       (struct stage_arguments){.options = options,
                                                .options_bytes = sizeof *options,
                                                .number = digest_number(dists, sizeof dists),
                                                .seed = options->seed});
}

struct resample_keys {
    const char *column;
    const struct yaml *target, *initial;
    int64_t seed;
};

static plim_status read_dist(double dist[RESAMPLE_CLASSES], int *count, const char *job, const struct yaml *list,
                             plim_error *error)
{
    const struct setting setting = {"a probability", SETTING_NUMBER, 0, 0};
    if (list->kind != YAML_LIST || list->count < 1 || list->count > RESAMPLE_CLASSES)
        return hint(error, yaml_fail(error, PLIM_BAD_JOB, job, list, "expected a list of probabilities"), "[0.5, 0.5]");
    *count = 0;
    for (const struct yaml *item = list->first; item; item = item->next)
        TRY(setting_value(&dist[(*count)++], &setting, job, item, error));
    return PLIM_OK;
}

static plim_status resample_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct resample_options options = {0};
    struct resample_keys keys = {.seed = -1};
    static const struct setting settings[] = {
        {"column", SETTING_WORD, offsetof(struct resample_keys, column), 0},
        {"target_dist", SETTING_NODE, offsetof(struct resample_keys, target), 0},
        {"initial_dist", SETTING_NODE, offsetof(struct resample_keys, initial), 0},
        {"seed", SETTING_WHOLE, offsetof(struct resample_keys, seed), 0},
    };
    int count = 0;
    TRY(settings_read(&keys, settings, COUNT(settings), entry->job, entry->value, error));
    if (!keys.column || !keys.target)
        return stage_bad(entry, "expected column and target_dist", "{column: y, target_dist: [0.5, 0.5]}", error);
    TRY(read_dist(options.target_dist, &options.class_count, entry->job, keys.target, error));
    if (keys.initial) {
        TRY(read_dist(options.initial_dist, &count, entry->job, keys.initial, error));
        if (count != options.class_count)
            return fail_at(error, PLIM_BAD_JOB, entry->where,
                           "rejection_resample: %d classes in target_dist, %d in initial_dist", options.class_count,
                           count);
    }
    options.has_initial = keys.initial != NULL;
    options.seed = keys.seed >= 0 ? (uint64_t)keys.seed : entry->seed;
    snprintf(options.column, sizeof options.column, "%s", keys.column);
    *dataset = dataset_rejection_resample(*dataset, &options);
    return PLIM_OK;
}

const struct stage stage_rejection_resample = {
    .name = "rejection_resample",
    .build = resample_build,
    .stream = &resample_stream,
    .keeps_elements = true,
    .sequential = true,
    .read = resample_read,
};
