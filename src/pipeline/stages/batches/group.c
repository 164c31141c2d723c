/* group.c - elements by key: kept until a group is full, then given as stacked batches of that group; at the end
   what is left, by ascending key. As tf.data's group_by_window with batch or padded_batch as its reduce function.

   1. `group` is sorted by key and holds no empty one. The elements of a group are a list in the store.
   2. `giving` is a group taken out, of which batches are still to be given. What was given is in `given` until the next
      call: its values are in use until then.
   3. Input rows at.. of `rows` have not been looked at yet. */
#include "pipeline/stages/batches/group.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/stages/keep/store.h"

#define GROUP_ROWS 64

struct group {
    int64_t key, first, last, count;
};

struct group_stream {
    struct stream stream;
    const struct group_options *options;
    bool over;
    struct group giving;
    int64_t given_count;
    int64_t *given;
    struct group *group;
    int64_t group_count;
    struct chunk rows;
    int64_t at;
    struct store store;
};

/* ---- laying out ---- */

static uint64_t lists_bytes(const struct group_options *options)
{
    uint64_t groups = (uint64_t)options->rows * sizeof(struct group);
    return round_up(groups + (uint64_t)options->largest * sizeof(int64_t), 64);
}

static uint64_t group_bytes(const struct dataset *dataset)
{
    const struct group_options *options = dataset->options;
    const struct dataset *input = dataset->input;
    uint64_t rows = chunk_bytes(input->spec, GROUP_ROWS, input->value_bytes);
    uint64_t store = store_bytes(input->spec, options->rows, stacking_value_bytes(dataset));
    return add_most(round_up(sizeof(struct group_stream), 64) + lists_bytes(options), add_most(rows, store));
}

static plim_status group_start(struct stream *stream, plim_error *error)
{
    struct group_stream *self = (struct group_stream *)stream;
    const struct dataset *input = stream->dataset->input;
    uint8_t *at = (uint8_t *)stream + round_up(sizeof *self, 64);
    (void)error;
    self->options = stream->dataset->options;
    self->group = (struct group *)at;
    self->given = (int64_t *)(self->group + self->options->rows);
    at += lists_bytes(self->options);
    chunk_lay(&self->rows, at, input->spec, GROUP_ROWS, input->value_bytes);
    at += chunk_bytes(input->spec, GROUP_ROWS, input->value_bytes);
    store_lay(&self->store, at, input->spec, self->options->rows, stacking_value_bytes(stream->dataset));
    return PLIM_OK;
}

static plim_status group_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct group_stream *self = (struct group_stream *)stream;
    self->over = false;
    self->giving = (struct group){0};
    self->given_count = self->group_count = 0;
    self->at = self->rows.count = 0;
    store_clear(&self->store);
    return stream_rewind_inputs(stream, epoch, error);
}

/* ---- groups ---- */

static int64_t of_key(const struct group_options *options, const int64_t *each, int64_t key)
{
    return each[options->bucket_count ? key : 0];
}

/* Where the group of this key is, or would be. */
static int64_t find_group(const struct group_stream *self, int64_t key)
{
    int64_t low = 0, high = self->group_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (self->group[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct group *group_of(struct group_stream *self, int64_t key)
{
    int64_t at = find_group(self, key);
    struct group *group = &self->group[at];
    if (at < self->group_count && group->key == key)
        return group;
    memmove(group + 1, group, (size_t)(self->group_count - at) * sizeof *group);
    self->group_count++;
    *group = (struct group){.key = key, .first = -1, .last = -1};
    return group;
}

static void take_out(struct group_stream *self, struct group *group)
{
    self->giving = *group;
    self->group_count--;
    memmove(group, group + 1, (size_t)(self->group + self->group_count - group) * sizeof *group);
}

static plim_status store_full(const struct group_stream *self, plim_error *error)
{
    const struct dataset *dataset = self->stream.dataset;
    if (self->store.wanted)
        return stream_too_large(dataset, self->store.wanted, self->store.elements.values.capacity, error);
    fail(error, PLIM_OVER_BUDGET, "%s: %lld elements of %lld groups are kept and none of these is full",
         dataset->stage->name, (long long)self->options->rows, (long long)self->group_count);
    return hint(error, PLIM_OVER_BUDGET, "give it more room (`room:`), use smaller windows or fewer keys");
}

/* One element into its group; a group that is full then is taken out. */
static plim_status add_row(struct group_stream *self, plim_error *error)
{
    int64_t key, row = self->at++;
    TRY(self->options->key(&key, &self->rows, row, self->options, error));
    int64_t element = store_add(&self->store, &self->rows, row);
    if (element < 0)
        return store_full(self, error);
    struct group *group = group_of(self, key);
    if (group->last >= 0)
        self->store.next[group->last] = element;
    else
        group->first = element;
    group->last = element;
    if (++group->count >= of_key(self->options, self->options->window, key))
        take_out(self, group);
    return PLIM_OK;
}

/* ---- giving ---- */

static void give_up(struct group_stream *self)
{
    for (int64_t i = 0; i < self->given_count; i++)
        store_give(&self->store, self->given[i]);
    self->given_count = 0;
}

/* The next batch of the group that is being given; none when what is left of it is dropped. */
static plim_status give_batch(struct group_stream *self, struct chunk *to, plim_error *error)
{
    const struct group_options *options = self->options;
    const struct dataset *dataset = self->stream.dataset;
    struct group *giving = &self->giving;
    int64_t batch = of_key(options, options->batch, giving->key), extent = -1;
    int64_t count = giving->count < batch ? giving->count : batch;
    for (int64_t i = 0; i < count; i++) {
        self->given[i] = giving->first;
        giving->first = self->store.next[giving->first];
    }
    giving->count -= count;
    self->given_count = count;
    if (count < batch && dataset->drop_remainder)
        return PLIM_OK;
    if (options->pad_to_boundary)
        extent = options->boundary[giving->key] - 1;
    return padding_stack(to, &self->store.elements, self->given, count, options->stacking.padding, extent, dataset,
                         error);
}

/* Until a group is full, or the input is at its end and the next of those left is taken. */
static plim_status find_full(struct group_stream *self, plim_error *error)
{
    while (!self->giving.count) {
        if (self->at < self->rows.count) {
            TRY(add_row(self, error));
        } else if (!self->over) {
            self->at = 0;
            TRY(stream_pull(self->stream.input, &self->rows, GROUP_ROWS, error));
            self->over = !self->rows.count;
        } else if (self->group_count) {
            take_out(self, self->group);
        } else {
            return PLIM_OK;
        }
    }
    return PLIM_OK;
}

static plim_status group_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct group_stream *self = (struct group_stream *)stream;
    (void)most;
    do {
        give_up(self);
        TRY(find_full(self, error));
        if (!self->giving.count)
            return PLIM_OK;
        TRY(give_batch(self, to, error));
    } while (!to->count);
    return PLIM_OK;
}

const struct stream_type group_stream = {
    .bytes = group_bytes, .start = group_start, .rewind = group_rewind, .pull = group_pull};

/* ---- building ---- */

struct dataset *group_node(struct dataset **dataset, const struct stage *stage, struct group_options **options)
{
    void *block;
    struct dataset *node = dataset_stage(dataset, stage, sizeof **options, &block);
    if (node)
        node->options = *options = block;
    return node;
}

static plim_status check_numbers(const struct dataset *dataset, const struct group_options *options, plim_error *error)
{
    int count = options->bucket_count ? options->bucket_count : 1;
    for (int i = 0; i < count; i++)
        if (options->window[i] < 1 || options->batch[i] < 1 || options->window[i] > INT32_MAX)
            return fail(error, PLIM_BAD_JOB, "%s: sizes must be at least 1", dataset->stage->name);
    for (int i = 0; i + 2 < options->bucket_count; i++)
        if (options->boundary[i] >= options->boundary[i + 1])
            return fail(error, PLIM_BAD_JOB, "%s: boundaries must ascend", dataset->stage->name);
    return PLIM_OK;
}

/* Batches of the same number of samples each, always. */
static bool all_whole(const struct group_options *options)
{
    for (int i = 1; i < options->bucket_count; i++)
        if (options->batch[i] != options->batch[0])
            return false;
    return options->stacking.drop_remainder;
}

plim_status group_build(struct dataset *dataset, plim_error *error)
{
    struct group_options *options = (struct group_options *)(uintptr_t)dataset->options;
    TRY(check_numbers(dataset, options, error));
    int count = options->bucket_count ? options->bucket_count : 1;
    for (int i = 0; i < count; i++)
        options->largest = options->batch[i] > options->largest ? options->batch[i] : options->largest;
    if (dataset->cardinality > 0)
        dataset->cardinality = CARDINALITY_UNKNOWN;
    return stacking_build(dataset, options->rows, options->largest, all_whole(options), error);
}
