/* api_stages.c - stages whose functions are the caller's, and those that join several data sets.

   A caller's function and its context need a place as long as the data set lives: a map that changes nothing keeps them
   in its node (api_keep). */
#include "api/api.h"
#include "pipeline/core/chunk.h"

#include <stdio.h>
#include <string.h>

#define MOST_JOINED 65536
#define MOST_SIZES  65536

/* ---- keeping ---- */

static plim_status keep_infer(struct spec *spec, const void *options, plim_error *error)
{
    (void)spec, (void)options, (void)error;
    return PLIM_OK;
}

static plim_status keep_run(const struct map_call *call, plim_error *error)
{
    (void)call, (void)error;
    return PLIM_OK;
}

static void keep_release(void *options)
{
    struct api_kept *kept = options;
    if (kept->arena.budget)
        arena_release(&kept->arena);
}

static const struct map_function keep_function = {
    .name = "keep",
    .infer = keep_infer,
    .run = keep_run,
    .options_bytes = sizeof(struct api_kept),
    .options_release = keep_release,
};

struct dataset *api_keep(const struct api_kept **kept, struct dataset *dataset, const struct api_kept *what)
{
    dataset = dataset_map(dataset, &keep_function, what);
    *kept = dataset->error ? NULL : dataset->options;
    return dataset;
}

/* ---- rows in a callback's hands ---- */

struct view {
    plim_chunk chunk;
    void *from[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS];
};

static void look_at(struct view *view, const struct chunk *chunk, int64_t first, int64_t count)
{
    view->chunk = (plim_chunk){.count = count,
                               .from = view->from,
                               .from_stride = view->stride,
                               .index = chunk->index + first,
                               .epoch = count ? chunk->epoch[first] : 0};
    for (int c = 0; c < chunk->spec->column_count; c++) {
        view->stride[c] = chunk->spec->column[c].bytes;
        view->from[c] = chunk->column[c] + (uint64_t)first * view->stride[c];
    }
}

static plim_status run_test(bool *keep, const struct chunk *chunk, void *context, plim_error *error)
{
    const struct api_kept *kept = context;
    struct view view;
    look_at(&view, chunk, 0, chunk->count);
    unsigned mode = floats_enter();
    plim_status status = kept->test(keep, kept->context, &view.chunk, error);
    floats_restore(mode); /* whatever the function has set */
    if (status == PLIM_OK || (error && error->code == status && error->message[0]))
        return status;
    return fail(error, status, "the test of the caller failed (%s)", plim_status_name(status));
}

typedef struct dataset *tested(struct dataset *dataset, element_test *test, void *context);

static plim_dataset *with_test(plim_dataset *dataset, tested *stage, plim_test *test, void *context)
{
    const struct api_kept *kept, what = {.test = test, .context = context};
    if (!dataset)
        return NULL;
    if (!test)
        return api_dataset_null(dataset, "the test");
    struct dataset *node = api_keep(&kept, inside(dataset), &what);
    return outside(kept ? stage(node, run_test, (void *)(uintptr_t)kept) : node);
}

plim_dataset *plim_dataset_filter(plim_dataset *dataset, plim_test *test, void *context)
{
    return with_test(dataset, dataset_filter, test, context);
}

plim_dataset *plim_dataset_take_while(plim_dataset *dataset, plim_test *test, void *context)
{
    return with_test(dataset, dataset_take_while, test, context);
}

plim_dataset *plim_dataset_filter_expression(plim_dataset *dataset, const char *expression)
{
    HOST_FLOATS;
    if (!dataset)
        return NULL;
    if (!expression)
        return api_dataset_null(dataset, "the expression");
    return outside(dataset_filter_expression(inside(dataset), expression, "filter"));
}

plim_dataset *plim_dataset_take_while_expression(plim_dataset *dataset, const char *expression)
{
    HOST_FLOATS;
    if (!dataset)
        return NULL;
    if (!expression)
        return api_dataset_null(dataset, "the expression");
    return outside(dataset_take_while_expression(inside(dataset), expression, "take_while"));
}

/* ---- a data set for each element ---- */

static struct dataset *make_inner(const struct chunk *elements, int64_t row, void *context, struct budget *budget)
{
    const struct api_kept *kept = context;
    struct view view;
    plim_budget outer = {.inner = budget};
    look_at(&view, elements, row, 1);
    unsigned mode = floats_enter();
    plim_dataset *dataset = kept->make(kept->context, &view.chunk, &outer);
    floats_restore(mode); /* whatever the function has set */
    if (dataset)
        return inside(dataset);
    const plim_error error = {.code = PLIM_BAD_DATA, .message = "the function made no data set of this element"};
    return dataset_failed(budget, &error);
}

typedef struct dataset *interleaved(struct dataset *dataset, const struct interleave_options *options);

static plim_dataset *with_inner(plim_dataset *dataset, interleaved *stage, const plim_interleave *interleave)
{
    plim_error error = {0};
    if (!dataset)
        return NULL;
    if (!interleave || !interleave->make)
        return api_dataset_null(dataset, "the function that makes a data set for each element");
    const struct api_kept *kept, what = {.make = interleave->make, .context = interleave->context};
    struct interleave_options options = {
        .make = make_inner,
        .value_bytes = interleave->value_bytes,
        .reserve_bytes = interleave->reserve_bytes,
        .cycle_length = interleave->cycle_length ? interleave->cycle_length : 1,
        .block_length = interleave->block_length ? interleave->block_length : 1,
    };
    if (api_spec(&options.spec, interleave->columns, interleave->column_count, &error) != PLIM_OK)
        return api_dataset_fail(dataset, &error);
    struct dataset *node = api_keep(&kept, inside(dataset), &what);
    options.context = (void *)(uintptr_t)kept;
    return outside(kept ? stage(node, &options) : node);
}

plim_dataset *plim_dataset_interleave(plim_dataset *dataset, const plim_interleave *interleave)
{
    return with_inner(dataset, dataset_interleave, interleave);
}

plim_dataset *plim_dataset_flat_map(plim_dataset *dataset, const plim_interleave *interleave)
{
    return with_inner(dataset, dataset_flat_map, interleave);
}

/* ---- several into one ---- */

/* All are there; else they are given up, and the error is in what comes back (NULL where there is no budget for it). */
static bool all_there(plim_dataset **failed, plim_dataset *const *datasets, int count)
{
    struct budget *budget = NULL;
    bool there = datasets && count > 0 && count <= MOST_JOINED;
    plim_error error = {0};
    *failed = NULL;
    if (!there)
        return false; /* what a list of a senseless length holds is not looked at */
    for (int i = 0; i < count; i++) {
        there &= datasets[i] != NULL;
        if (datasets[i] && !budget)
            budget = inside(datasets[i])->budget;
    }
    if (there)
        return true;
    for (int i = 0; i < count; i++)
        dataset_unref(inside(datasets[i]));
    fail(&error, PLIM_USAGE, "a data set of those to be joined is NULL");
    *failed = budget ? outside(dataset_failed(budget, &error)) : NULL;
    return false;
}

plim_dataset *plim_dataset_zip(plim_dataset *const *datasets, int count)
{
    plim_dataset *failed;
    return all_there(&failed, datasets, count) ? outside(dataset_zip((struct dataset *const *)datasets, count))
                                               : failed;
}

plim_dataset *plim_dataset_concatenate(plim_dataset *const *datasets, int count)
{
    plim_dataset *failed;
    return all_there(&failed, datasets, count) ? outside(dataset_concatenate((struct dataset *const *)datasets, count))
                                               : failed;
}

plim_dataset *plim_dataset_choose_from_datasets(plim_dataset *const *datasets, int count, plim_dataset *choices,
                                                bool stop_on_empty)
{
    plim_dataset *failed;
    if (!all_there(&failed, datasets, count)) {
        plim_dataset_unref(choices);
        return failed;
    }
    if (!choices) {
        for (int i = 1; i < count; i++)
            plim_dataset_unref(datasets[i]);
        return api_dataset_null(datasets[0], "the data set of choices");
    }
    return outside(
        dataset_choose_from_datasets((struct dataset *const *)datasets, count, inside(choices), stop_on_empty));
}

plim_dataset *plim_dataset_sample_from_datasets(plim_dataset *const *datasets, int count, const double *weights,
                                                uint64_t seed, bool stop_on_empty)
{
    plim_dataset *failed;
    HOST_FLOATS;
    if (!all_there(&failed, datasets, count))
        return failed;
    return outside(
        dataset_sample_from_datasets((struct dataset *const *)datasets, count, weights, seed, stop_on_empty));
}

/* ---- stacks of elements ---- */

plim_dataset *plim_dataset_padded_batch(plim_dataset *dataset, int64_t size, double padding, bool drop_remainder)
{
    const struct padding all = {.has_value = true, .value = padding};
    HOST_FLOATS;
    if (!dataset)
        return NULL;
    return outside(dataset_padded_batch(inside(dataset), size, &all, padding != 0, drop_remainder, 0));
}

plim_dataset *plim_dataset_unbatch(plim_dataset *dataset)
{
    return dataset ? outside(dataset_unbatch(inside(dataset))) : NULL;
}

plim_dataset *plim_dataset_rebatch(plim_dataset *dataset, const int64_t *sizes, int count, bool drop_remainder)
{
    plim_error error = {0};
    if (!dataset)
        return NULL;
    if (!sizes)
        return api_dataset_null(dataset, "the list of batch sizes");
    if (count > MOST_SIZES) {
        fail(&error, PLIM_USAGE, "%d batch sizes: at most %d", count, MOST_SIZES);
        return api_dataset_fail(dataset, &error);
    }
    return outside(dataset_rebatch(inside(dataset), sizes, count, drop_remainder));
}

plim_dataset *plim_dataset_window(plim_dataset *dataset, int64_t size, int64_t shift, int64_t stride,
                                  bool drop_remainder)
{
    return dataset ? outside(dataset_window(inside(dataset), size, shift, stride, drop_remainder)) : NULL;
}

plim_dataset *plim_dataset_group_by_window(plim_dataset *dataset, const char *column, int64_t window_size,
                                           int64_t batch_size, bool drop_remainder)
{
    const struct group_by_window_options options = {
        .column = column, .window_size = window_size, .batch_size = batch_size, .drop_remainder = drop_remainder};
    if (!dataset)
        return NULL;
    return column ? outside(dataset_group_by_window(inside(dataset), &options))
                  : api_dataset_null(dataset, "the column");
}

plim_dataset *plim_dataset_bucket_by_sequence_length(plim_dataset *dataset, const char *column,
                                                     const int64_t *boundaries, const int64_t *batch_sizes,
                                                     int boundary_count, bool drop_remainder)
{
    const struct bucket_options options = {.column = column,
                                           .boundaries = boundaries,
                                           .batch_sizes = batch_sizes,
                                           .boundary_count = boundary_count,
                                           .drop_remainder = drop_remainder};
    plim_error error = {0};
    if (!dataset)
        return NULL;
    if (!boundaries || !batch_sizes)
        return api_dataset_null(dataset, "the list of boundaries or of batch sizes");
    if (boundary_count < 0 || boundary_count > MOST_SIZES) {
        fail(&error, PLIM_USAGE, "%d boundaries: at most %d", boundary_count, MOST_SIZES);
        return api_dataset_fail(dataset, &error);
    }
    return outside(dataset_bucket_by_sequence_length(inside(dataset), &options));
}

/* ---- others ---- */

plim_dataset *plim_dataset_shuffle_buffer(plim_dataset *dataset, int64_t buffer_size, uint64_t seed)
{
    const struct shuffle_options options = {.kind = SHUFFLE_BUFFER, .seed = seed, .buffer_size = buffer_size};
    return dataset ? outside(dataset_shuffle_with(inside(dataset), &options)) : NULL;
}

plim_dataset *plim_dataset_shuffle_blocks(plim_dataset *dataset, uint64_t seed)
{
    const struct shuffle_options options = {.kind = SHUFFLE_BLOCKS, .seed = seed};
    return dataset ? outside(dataset_shuffle_with(inside(dataset), &options)) : NULL;
}

plim_dataset *plim_dataset_shard(plim_dataset *dataset, int64_t shards, int64_t index)
{
    return dataset ? outside(dataset_shard(inside(dataset), shards, index)) : NULL;
}

plim_dataset *plim_dataset_enumerate(plim_dataset *dataset, int64_t start)
{
    return dataset ? outside(dataset_enumerate(inside(dataset), start, NULL)) : NULL;
}

plim_dataset *plim_dataset_unique(plim_dataset *dataset, const char *column, uint64_t memory)
{
    return dataset ? outside(dataset_unique(inside(dataset), column, memory)) : NULL;
}

plim_dataset *plim_dataset_assert_cardinality(plim_dataset *dataset, int64_t count)
{
    return dataset ? outside(dataset_assert_cardinality(inside(dataset), count)) : NULL;
}

plim_dataset *plim_dataset_ignore_errors(plim_dataset *dataset, int64_t most)
{
    const struct ignore_options options = {.limit = most < 0 ? IGNORE_ALL : IGNORE_MOST, .most = most};
    return dataset ? outside(dataset_ignore_errors(inside(dataset), &options)) : NULL;
}

/* ---- a state of the caller's ---- */

static plim_status run_scan(void *state, struct chunk *to, const struct chunk *from, int64_t row, void *context,
                            plim_error *error)
{
    const struct api_kept *kept = context;
    void *in[MOST_COLUMNS], *out[MOST_COLUMNS];
    for (int c = 0; c < from->spec->column_count; c++)
        in[c] = chunk_row(from, c, row);
    for (int c = 0; c < to->spec->column_count; c++)
        out[c] = chunk_row(to, c, to->count);
    unsigned mode = floats_enter();
    plim_status status = kept->scan(kept->context, state, in, out, error);
    floats_restore(mode); /* whatever the function has set */
    if (status == PLIM_OK || (error && error->code == status && error->message[0]))
        return status;
    return fail(error, status, "scan: the caller's function failed at element %lld (%s)", (long long)from->index[row],
                plim_status_name(status));
}

plim_dataset *plim_dataset_scan(plim_dataset *dataset, const plim_scan *scan)
{
    struct spec spec;
    plim_error error = {0};
    if (!dataset)
        return NULL;
    if (!scan || (scan->state_bytes && !scan->state))
        return api_dataset_null(dataset, "the scan, or its state");
    const struct api_kept *kept, what = {.scan = scan->run, .context = scan->context};
    struct scan_options options = {
        .state = scan->state, .state_bytes = scan->state_bytes, .run = scan->run ? run_scan : NULL};
    plim_status status = PLIM_OK;
    if (scan->columns) {
        status = api_spec(&spec, scan->columns, scan->column_count, &error);
        options.spec = &spec;
    }
    if (status == PLIM_OK && spec_has_values(scan->columns ? &spec : inside(dataset)->spec))
        status = fail(&error, PLIM_UNSUPPORTED, "scan: columns of strings and cells are not offered");
    if (status != PLIM_OK)
        return api_dataset_fail(dataset, &error);
    struct dataset *node = api_keep(&kept, inside(dataset), &what);
    options.context = (void *)(uintptr_t)kept;
    return outside(kept ? dataset_scan(node, &options) : node);
}

plim_dataset *plim_dataset_cache(plim_dataset *dataset, uint64_t memory, const char *file)
{
    bool optional = memory == (uint64_t)PLIM_AUTO;
    struct cache_options options = {.memory = optional ? 0 : memory, .optional = optional, .file = file};
    return dataset ? outside(dataset_cache(inside(dataset), &options)) : NULL;
}

plim_dataset *plim_dataset_rejection_resample(plim_dataset *dataset, const char *column, const double *target,
                                              const double *initial, int classes, uint64_t seed)
{
    struct resample_options options = {.class_count = classes, .has_initial = initial != NULL, .seed = seed};
    HOST_FLOATS;
    if (!dataset)
        return NULL;
    if (!column || !target)
        return api_dataset_null(dataset, "the column, or the distribution that is wanted,");
    int copied = classes < 0 || classes > RESAMPLE_CLASSES ? 0 : classes; /* others are refused further on */
    snprintf(options.column, sizeof options.column, "%s", column);
    memcpy(options.target_dist, target, (size_t)copied * sizeof *target);
    if (initial)
        memcpy(options.initial_dist, initial, (size_t)copied * sizeof *initial);
    return outside(dataset_rejection_resample(inside(dataset), &options));
}

/* ---- to the end ---- */

struct reduction {
    void *state;
    plim_status (*visit)(void *state, const plim_batch *batch, plim_error *error);
    struct host_floats *host;
};

static plim_status visit_batch(void *state, const struct batch *batch, const struct spec *spec, plim_error *error)
{
    const struct reduction *reduction = state;
    (void)spec;
    floats_end(reduction->host);
    plim_status status = reduction->visit(reduction->state, (const plim_batch *)batch, error);
    floats_begin(reduction->host);
    return status;
}

plim_status plim_dataset_reduce(void *state, plim_dataset *dataset, plim_budget *budget,
                                plim_status (*visit)(void *state, const plim_batch *batch, plim_error *error),
                                plim_error *error)
{
    HOST_FLOATS;
    struct reduction reduction = {state, visit, &host_floats};
    struct scratch_disk scratch = {.folder = API_SCRATCH, .limit_bytes = API_DISK};
    TRY(need_argument(dataset, "the data set", error));
    TRY(need_argument(budget, "the budget", error));
    TRY(need_argument(visit ? &reduction : NULL, "the function that visits batches", error));
    const struct data_run run = {.budget = budget->inner, .scratch = &scratch};
    return dataset_reduce(&reduction, inside(dataset), &run, visit_batch, error);
}

plim_status plim_dataset_save(plim_dataset *dataset, const char *folder, plim_budget *budget, plim_error *error)
{
    HOST_FLOATS;
    struct scratch_disk scratch = {.folder = API_SCRATCH, .limit_bytes = API_DISK};
    TRY(need_argument(dataset, "the data set", error));
    TRY(need_argument(folder, "the folder", error));
    TRY(need_argument(budget, "the budget", error));
    const struct data_run run = {.budget = budget->inner, .scratch = &scratch};
    return dataset_save(inside(dataset), folder, &run, error);
}
