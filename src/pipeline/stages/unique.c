/* unique.c - each element the first time it comes, by all of its columns or by one.

   What was seen is kept as 128 bits of SHA-256, in a table of stated size: 16 bytes an element however large it is.
   (Two different ones of 10^12 elements share them with a chance of 10^-15.) A full table is an error. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/digest.h"
#include "base/text/text.h"
#include "pipeline/core/pipeline_digest.h"

#define UNIQUE_BYTES ((uint64_t)16 * 1024 * 1024) /* where the number of elements is not known */
#define LEAST_PLACES 64

struct unique_options {
    char column[64]; /* "": all */
    uint64_t memory; /* 0: by the number of elements */
};

/* Both halves 0: nothing is here. */
struct seen {
    uint64_t half[2];
};

static plim_status unique_build(struct dataset *dataset, plim_error *error)
{
    const struct unique_options *options = dataset->options;
    if (options->column[0] && spec_find(dataset->spec, options->column) < 0)
        return fail(error, PLIM_BAD_JOB, "unique: there is no column '%s'", options->column);
    if (dataset->cardinality > 0)
        dataset->cardinality = CARDINALITY_UNKNOWN;
    return PLIM_OK;
}

/* ---- running ---- */

struct unique_stream {
    struct stream stream;
    int first, end; /* columns */
    struct seen *table;
    uint64_t places, used, most;
};

/* At most 7 of 8 places are used: else looking for one takes long. */
static uint64_t places_of(const struct dataset *dataset)
{
    const struct unique_options *options = dataset->options;
    int64_t count = dataset->input->cardinality;
    uint64_t places = options->memory ? options->memory / sizeof(struct seen) : UNIQUE_BYTES / sizeof(struct seen);
    if (!options->memory && count >= 0 && count < INT64_MAX / 128)
        places = (uint64_t)count + (uint64_t)count / 7 + 2;
    return places > LEAST_PLACES ? places : LEAST_PLACES;
}

static uint64_t unique_bytes(const struct dataset *dataset)
{
    uint64_t bytes;
    bool fits = mul_u64(&bytes, places_of(dataset), sizeof(struct seen));
    return fits ? add_most(round_up(sizeof(struct unique_stream), 64), bytes) : UINT64_MAX;
}

static plim_status unique_start(struct stream *stream, plim_error *error)
{
    struct unique_stream *self = (struct unique_stream *)stream;
    const struct unique_options *options = stream->dataset->options;
    const struct spec *spec = stream->dataset->spec;
    (void)error;
    self->first = options->column[0] ? spec_find(spec, options->column) : 0;
    self->end = options->column[0] ? self->first + 1 : spec->column_count;
    self->table = (struct seen *)((uint8_t *)stream + round_up(sizeof *self, 64));
    self->places = places_of(stream->dataset);
    self->most = self->places - self->places / 8;
    return PLIM_OK;
}

static plim_status unique_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct unique_stream *self = (struct unique_stream *)stream;
    memset(self->table, 0, self->places * sizeof *self->table);
    self->used = 0;
    return stream_rewind_inputs(stream, epoch, error);
}

/* A value by its extents and bytes, strings each with its length: nothing reads alike but what is alike. */
static void add_value(struct sha256 *sha, const struct column *column, const void *row)
{
    int64_t count = value_count(column, row);
    const void *data = row;
    if (column_is_variable(column)) {
        const struct cell *cell = row;
        sha256_add(sha, cell->dim, (size_t)column->shape.rank * sizeof cell->dim[0]);
        data = cell->data;
    }
    if (column->type != TYPE_STRING) {
        sha256_add(sha, data, (size_t)count * type_bytes(column->type));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct string *string = (const struct string *)data + i;
        sha256_add(sha, &string->bytes, sizeof string->bytes);
        sha256_add(sha, string->data, string->bytes);
    }
}

static struct seen digest_of(const struct unique_stream *self, const struct chunk *chunk, int64_t row)
{
    struct sha256 sha;
    uint8_t digest[32];
    struct seen out;
    sha256_init(&sha);
    for (int c = self->first; c < self->end; c++)
        add_value(&sha, &chunk->spec->column[c], chunk_row(chunk, c, row));
    sha256_end(&sha, digest);
    memcpy(&out, digest, sizeof out);
    out.half[0] += !out.half[0] && !out.half[1];
    return out;
}

/* Its place, or the free one that it would take. */
static struct seen *find(const struct unique_stream *self, const struct seen *seen)
{
    uint64_t at = (uint64_t)((unsigned __int128)seen->half[0] * self->places >> 64);
    for (;; at = at + 1 < self->places ? at + 1 : 0) {
        struct seen *place = &self->table[at];
        if ((place->half[0] == seen->half[0] && place->half[1] == seen->half[1]) || !(place->half[0] | place->half[1]))
            return place;
    }
}

static plim_status refuse(const struct unique_stream *self, plim_error *error)
{
    char now[16], more[16];
    text_size(now, self->places * sizeof(struct seen));
    text_size(more, self->places * sizeof(struct seen) * 2);
    fail(error, PLIM_OVER_BUDGET, "unique: %llu different elements fill its %s", (unsigned long long)self->used, now);
    return hint(error, PLIM_OVER_BUDGET, "unique: {memory: %s}", more);
}

static plim_status unique_keep(struct stream *stream, struct chunk *to, plim_error *error)
{
    struct unique_stream *self = (struct unique_stream *)stream;
    int64_t kept = 0;
    for (int64_t row = 0; row < to->count; row++) {
        struct seen seen = digest_of(self, to, row), *place = find(self, &seen);
        if (place->half[0] | place->half[1])
            continue;
        if (self->used == self->most)
            return refuse(self, error);
        *place = seen;
        self->used++;
        chunk_move(to, kept++, row);
    }
    to->count = kept;
    return PLIM_OK;
}

static const struct stream_type unique_stream = {
    .bytes = unique_bytes, .start = unique_start, .rewind = unique_rewind, .keep = unique_keep};

/* ---- building ---- */

struct dataset *dataset_unique(struct dataset *dataset, const char *column, uint64_t memory)
{
    struct unique_options options = {.memory = memory};
    snprintf(options.column, sizeof options.column, "%s", column ? column : "");
    return dataset_add(dataset, &stage_unique,
                       (struct stage_arguments){.options = &options,
                                                .options_bytes = sizeof options,
                                                .number = digest_number(options.column, strlen(options.column))});
}

static plim_status unique_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct keys {
        const char *column, *memory;
    } keys = {0};
    static const struct setting settings[] = {
        {"column", SETTING_WORD, offsetof(struct keys, column), 0},
        {"memory", SETTING_WORD, offsetof(struct keys, memory), 0},
    };
    uint64_t memory = 0;
    TRY(stage_settings(&keys, settings, 2, NULL, entry, error));
    if (keys.memory && (!text_parse_size(&memory, keys.memory) || !memory)) {
        fail_at(error, PLIM_BAD_JOB, entry->where, "unique: memory: expected a size, got '%s'", keys.memory);
        return hint(error, PLIM_BAD_JOB, "unique: {memory: 16MiB}");
    }
    *dataset = dataset_unique(*dataset, keys.column, memory);
    return PLIM_OK;
}

const struct stage stage_unique = {
    .name = "unique",
    .bare = true,
    .build = unique_build,
    .stream = &unique_stream,
    .keeps_elements = true,
    .sequential = true,
    .read = unique_read,
};
