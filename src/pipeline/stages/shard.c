/* shard.c - every n-th element, beginning with the index-th: the part of one machine, or of one fold. */
#include "base/numbers/checked.h"
#include "pipeline/core/stage.h"

struct shard_options {
    int64_t num_shards, index;
};

static plim_status shard_build(struct dataset *dataset, plim_error *error)
{
    const struct shard_options *options = dataset->options;
    if (options->num_shards < 1)
        return fail(error, PLIM_BAD_JOB, "shard: num_shards must be at least 1, got %lld",
                    (long long)options->num_shards);
    if (options->index < 0 || options->index >= options->num_shards)
        return fail(error, PLIM_BAD_JOB, "shard: index must be from 0 to %lld, got %lld",
                    (long long)options->num_shards - 1, (long long)options->index);
    int64_t count = dataset->cardinality;
    if (count >= 0)
        dataset->cardinality = count / options->num_shards + (count % options->num_shards > options->index);
    return PLIM_OK;
}

static void shard_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                         int64_t count)
{
    const struct shard_options *options = dataset->options;
    (void)state, (void)epoch;
    for (int64_t i = 0; i < count; i++) /* within the input's count; unsigned: data without end has none */
        position[i] = (int64_t)((uint64_t)position[i] * (uint64_t)options->num_shards + (uint64_t)options->index);
}

/* ---- one after another ---- */

struct shard_stream {
    struct stream stream;
    int64_t before; /* elements of others up to the next one of ours */
};

static plim_status shard_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    const struct shard_options *options = stream->dataset->options;
    ((struct shard_stream *)stream)->before = options->index;
    return stream_rewind_inputs(stream, epoch, error);
}

static void keep_ours(struct shard_stream *self, struct chunk *to)
{
    const struct shard_options *options = self->stream.dataset->options;
    int64_t kept = 0;
    uint64_t row = (uint64_t)self->before; /* may pass 2^63 by less than a chunk */
    for (; row < (uint64_t)to->count; row += (uint64_t)options->num_shards)
        chunk_move(to, kept++, (int64_t)row);
    self->before = (int64_t)(row - (uint64_t)to->count);
    to->count = kept;
}

/* A bad element of another shard is met here too: it counts as one of those passed over. */
static plim_status shard_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct shard_stream *self = (struct shard_stream *)stream;
    const struct shard_options *options = stream->dataset->options;
    int64_t wanted = 0;
    if (!mul_i64(&wanted, most, options->num_shards) || wanted > to->capacity)
        wanted = to->capacity;
    do {
        plim_status status = stream_pull(stream->input, to, wanted, error);
        if (status == PLIM_BAD_DATA)
            self->before = self->before ? self->before - 1 : options->num_shards - 1;
        TRY(status);
        if (!to->count)
            return PLIM_OK;
        keep_ours(self, to);
    } while (!to->count);
    return PLIM_OK;
}

static plim_status shard_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                              plim_error *error)
{
    struct shard_stream *self = (struct shard_stream *)stream;
    const struct shard_options *options = stream->dataset->options;
    while (*passed < count) {
        int64_t wanted = self->before + 1, some;
        TRY(stream_skip(&some, stream->input, wanted, by, error));
        if (some < wanted) {
            self->before -= some;
            return PLIM_OK;
        }
        self->before = options->num_shards - 1;
        (*passed)++;
    }
    return PLIM_OK;
}

static const struct stream_type shard_stream = {
    .state_bytes = sizeof(struct shard_stream), .rewind = shard_rewind, .pull = shard_pull, .skip = shard_skip};

/* ---- building ---- */

static void shard_shards(int64_t *count, int64_t *index, const struct dataset *dataset)
{
    const struct shard_options *options = dataset->options;
    *count = options->num_shards;
    *index = options->index;
}

struct dataset *dataset_shard(struct dataset *dataset, int64_t num_shards, int64_t index)
{
    const struct shard_options options = {num_shards, index};
    return dataset_add(dataset, &stage_shard,
                       (struct stage_arguments){.options = &options, .options_bytes = sizeof options});
}

/* {num_shards: 4, index: 0}, or [4, 0]. */
static plim_status shard_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    const struct yaml *value = entry->value;
    struct shard_options options = {0, -1};
    static const struct setting settings[] = {
        {"num_shards", SETTING_WHOLE, offsetof(struct shard_options, num_shards), 1},
        {"index", SETTING_WHOLE, offsetof(struct shard_options, index), 0},
    };
    if (value->kind == YAML_LIST && value->count == 2) {
        TRY(setting_value(&options.num_shards, &settings[0], entry->job, value->first, error));
        TRY(setting_value(&options.index, &settings[1], entry->job, value->first->next, error));
    } else if (value->kind == YAML_MAP) {
        TRY(settings_read(&options, settings, 2, entry->job, value, error));
    }
    if (!options.num_shards || options.index < 0)
        return stage_bad(entry, "expected num_shards and index", "{num_shards: 4, index: 0}", error);
    *dataset = dataset_shard(*dataset, options.num_shards, options.index);
    return PLIM_OK;
}

const struct stage stage_shard = {
    .name = "shard",
    .build = shard_build,
    .locate = shard_locate,
    .stream = &shard_stream,
    .keeps_elements = true,
    .shards = shard_shards,
    .read = shard_read,
};
