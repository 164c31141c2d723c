/* cache.c - elements kept in memory while the first epoch goes by, and given from there afterwards; and what job files
   say of caches.

   1. The input is run as epoch 0, whichever epoch is asked for: what is kept is the same however a run was begun
      and resumed. Elements are numbered anew, by their place; their epoch is the one they are given in.
   2. One region, declared: values grow from its beginning, rows from its end.
   3. All of an epoch or nothing: one that was left early is kept anew from its beginning.
   4. An optional one that the budget has no room for keeps nothing: epoch 0 is run again. The elements are the same. */
#include "pipeline/stages/keep/cache.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "base/text/text.h"
#include "pipeline/stages/keep/packed.h"

/* ---- building ---- */

/* What all elements take, where it is known; 0: it is not. */
static uint64_t known_bytes(const struct dataset *dataset)
{
    struct packed packed;
    uint64_t bytes;
    packed_lay(&packed, dataset->spec);
    if (dataset->cardinality < 0 || spec_has_values(dataset->spec))
        return 0;
    return mul_u64(&bytes, (uint64_t)dataset->cardinality, packed.bytes) ? bytes : UINT64_MAX;
}

static plim_status cache_build(struct dataset *dataset, plim_error *error)
{
    const struct cache_options *options = dataset->options;
    uint64_t known = known_bytes(dataset);
    char need[16], given[16];
    if (dataset->cardinality == CARDINALITY_INFINITE)
        return hint(error, fail(error, PLIM_BAD_JOB, "cache: data without end is never complete"),
                    "put cache before repeat");
    if (!known && !options->memory && !options->optional && dataset->cardinality) {
        fail(error, PLIM_BAD_JOB, "cache: how much memory its elements take is not known beforehand");
        return hint(error, PLIM_BAD_JOB, "cache: {memory: 64MiB}, or cache: FILE");
    }
    if (!options->memory || known <= options->memory)
        return PLIM_OK;
    text_size(need, known);
    text_size(given, options->memory);
    fail(error, PLIM_OVER_BUDGET, "cache: %lld elements take %s, not %s", (long long)dataset->cardinality, need, given);
    return hint(error, PLIM_OVER_BUDGET, "cache: FILE, or leave `memory` out");
}

/* ---- running ---- */

struct cache_stream {
    struct stream stream;
    struct packed packed;
    uint8_t *region;
    uint64_t bytes;
    struct value_buffer values; /* from the region's beginning to its last row */
    int64_t count, at;          /* kept; the next to be given */
    bool complete;
    bool passes; /* nothing is kept */
};

static bool cache_may_spare(const struct dataset *dataset)
{
    const struct cache_options *options = dataset->options;
    return options->optional;
}

/* 0: nothing is kept. Where it is not known beforehand how much there is to keep, an optional cache keeps nothing. */
static uint64_t region_bytes(const struct dataset *dataset, bool caches)
{
    const struct cache_options *options = dataset->options;
    uint64_t known = known_bytes(dataset);
    if (options->optional && !caches)
        return 0;
    return known ? known : options->memory & ~(uint64_t)7;
}

static void cache_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches)
{
    uint64_t bytes = region_bytes(dataset, caches);
    by_tag[TAG_CACHE] = add_most(by_tag[TAG_CACHE], bytes ? budget_charge(bytes) : 0);
}

static plim_status cache_start(struct stream *stream, plim_error *error)
{
    struct cache_stream *self = (struct cache_stream *)stream;
    packed_lay(&self->packed, stream->dataset->spec);
    self->bytes = region_bytes(stream->dataset, stream->run.caches);
    self->passes = !self->bytes && cache_may_spare(stream->dataset);
    if (self->passes)
        return PLIM_OK;
    self->region = self->bytes == UINT64_MAX ? NULL : budget_take(stream->run.budget, TAG_CACHE, self->bytes);
    return self->region ? PLIM_OK : budget_refused(stream->run.budget, TAG_CACHE, self->bytes, error);
}

static void cache_stop(struct stream *stream)
{
    struct cache_stream *self = (struct cache_stream *)stream;
    if (self->region)
        budget_give(stream->run.budget, TAG_CACHE, self->region, self->bytes);
}

static plim_status cache_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct cache_stream *self = (struct cache_stream *)stream;
    (void)epoch;
    self->at = 0;
    if (self->complete)
        return PLIM_OK;
    self->count = 0;
    value_buffer_init(&self->values, self->region, self->bytes);
    return stream_rewind_inputs(stream, 0, error);
}

static uint8_t *row_at(const struct cache_stream *self, int64_t row)
{
    return self->region + self->bytes - (uint64_t)(row + 1) * self->packed.bytes;
}

static bool keep_row(struct cache_stream *self, const struct chunk *chunk, int64_t row)
{
    uint64_t rows = (uint64_t)(self->count + 1) * self->packed.bytes;
    if (rows > self->bytes || self->bytes - rows < self->values.used)
        return false;
    uint8_t *to = row_at(self, self->count);
    self->values.capacity = self->bytes - rows;
    packed_put(&self->packed, to, chunk, row);
    for (int c = 0; c < chunk->spec->column_count; c++)
        if (!value_own(&self->values, &chunk->spec->column[c], to + self->packed.at[c]))
            return false;
    self->count++;
    return true;
}

static plim_status full(const struct cache_stream *self, plim_error *error)
{
    char size[16];
    text_size(size, self->bytes);
    fail(error, PLIM_OVER_BUDGET, "cache: its %s are full after %lld elements", size, (long long)self->count);
    return hint(error, PLIM_OVER_BUDGET, "more memory for it, or cache: FILE");
}

static plim_status keep_and_give(struct cache_stream *self, struct chunk *to, int64_t most, plim_error *error)
{
    int64_t first = self->count;
    TRY(stream_pull(self->stream.input, to, most, error));
    for (int64_t row = 0; row < to->count && !self->passes; row++)
        if (!keep_row(self, to, row))
            return full(self, error);
    self->count += self->passes ? to->count : 0;
    chunk_number(to, first, self->stream.epoch);
    self->complete = to->count == 0 && !self->passes;
    self->at = self->count;
    return PLIM_OK;
}

static plim_status cache_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct cache_stream *self = (struct cache_stream *)stream;
    if (!self->complete)
        return keep_and_give(self, to, most, error);
    to->count = self->count - self->at < most ? self->count - self->at : most;
    for (int64_t row = 0; row < to->count; row++)
        packed_get(&self->packed, to, row, row_at(self, self->at + row));
    chunk_number(to, self->at, stream->epoch);
    self->at += to->count;
    return PLIM_OK;
}

static plim_status cache_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                              plim_error *error)
{
    struct cache_stream *self = (struct cache_stream *)stream;
    if (!self->complete)
        return stream_pull_past(passed, stream, count, by, error);
    *passed = self->count - self->at < count ? self->count - self->at : count;
    self->at += *passed;
    return PLIM_OK;
}

static const struct stream_type cache_stream = {
    .state_bytes = sizeof(struct cache_stream),
    .cost = cache_cost,
    .start = cache_start,
    .stop = cache_stop,
    .rewind = cache_rewind,
    .pull = cache_pull,
    .skip = cache_skip,
};

struct dataset *dataset_cache(struct dataset *dataset, const struct cache_options *options)
{
    void *block;
    size_t name = options->file ? strlen(options->file) + 1 : 0;
    const struct stage *stage = options->file ? &stage_cache_file : &stage_cache;
    struct dataset *node = dataset_stage(&dataset, stage, sizeof *options + name, &block);
    if (!node)
        return dataset;
    struct cache_options *own = block;
    *own = *options;
    if (name)
        own->file = memcpy((char *)block + sizeof *options, options->file, name);
    node->options = own;
    return dataset_built(node);
}

/* ---- job files ---- */

struct cache_keys {
    const char *memory, *file;
    bool optional;
};

/* Paths are relative to the job file. */
static plim_status cache_path(char out[4096], const struct stage_entry *entry, const char *path, plim_error *error)
{
    const char *slash = path[0] == '/' ? NULL : strrchr(entry->job, '/');
    int before = slash ? (int)(slash - entry->job) + 1 : 0;
    if (!path[0] || strlen(path) + (size_t)before >= 4096)
        return fail_at(error, PLIM_BAD_JOB, entry->where, "cache: the file's name is empty or too long");
    memcpy(out, entry->job, (size_t)before);
    memcpy(out + before, path, strlen(path) + 1);
    return PLIM_OK;
}

static plim_status read_keys(struct cache_keys *keys, const struct stage_entry *entry, plim_error *error)
{
    const struct yaml *value = entry->value;
    static const struct setting settings[] = {
        {"memory", SETTING_WORD, offsetof(struct cache_keys, memory), 0},
        {"file", SETTING_WORD, offsetof(struct cache_keys, file), 1},
    };
    *keys = (struct cache_keys){0};
    if (!value || value->is_null)
        return PLIM_OK;
    if (value->kind != YAML_SCALAR)
        return settings_read(keys, settings, 2, entry->job, value, error);
    keys->optional = strcmp(value->text, "auto") == 0;
    if (!keys->optional && strcmp(value->text, "memory") != 0)
        keys->file = value->text;
    return PLIM_OK;
}

static plim_status cache_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct cache_options options = {0};
    struct cache_keys keys;
    char path[4096];
    TRY(read_keys(&keys, entry, error));
    options.optional = keys.optional;
    if (keys.memory && keys.file)
        return fail_at(error, PLIM_BAD_JOB, entry->where, "cache: in memory or in a file, not both");
    if (keys.memory && (!text_parse_size(&options.memory, keys.memory) || !options.memory))
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, entry->where, "cache: memory: expected a size, got '%s'", keys.memory),
                    "cache: {memory: 64MiB}");
    if (keys.file) {
        TRY(cache_path(path, entry, keys.file, error));
        options.file = path;
    }
    *dataset = dataset_cache(*dataset, &options);
    return PLIM_OK;
}

/* tf.data's snapshot is a cache in a folder, found again by what it is made of. */
static plim_status snapshot_read_word(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    const struct setting setting = {"snapshot", SETTING_WORD, 0, 1};
    char path[4096];
    const char *folder = NULL;
    TRY(setting_value(&folder, &setting, entry->job, entry->value, error));
    TRY(cache_path(path, entry, folder, error));
    *dataset = dataset_snapshot(*dataset, path);
    return PLIM_OK;
}

const struct stage stage_cache = {
    .name = "cache",
    .bare = true,
    .build = cache_build,
    .stream = &cache_stream,
    .sequential = true,
    .may_spare = cache_may_spare,
    .read = cache_read,
};

const struct stage stage_snapshot = {.name = "snapshot", .read = snapshot_read_word};
