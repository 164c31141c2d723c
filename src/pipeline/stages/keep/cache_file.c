/* cache_file.c - elements kept in a file (formats/records/snapshot.h) while the first epoch goes by; a later run finds
   them.

   1. A file that is there is taken when it was made by the same stages with the same seed, and when the first elements
      of the input are still those in it; else it is made anew. One that is no snapshot is never overwritten.
   2. The input is run as epoch 0, and elements are numbered by their place, as in cache.c.
   3. It gets its name when all of an epoch is in it; whatever happens before leaves nothing behind.
   4. Its bytes count against the limit of disk before they are written: all of them at once where they are known. They
      stay counted with the file, and are given back with one that was not finished. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "base/text/text.h"
#include "formats/files/scratch_file.h"
#include "formats/records/snapshot.h"
#include "pipeline/core/flow.h"
#include "pipeline/core/pipeline_digest.h"
#include "pipeline/stages/keep/cache.h"

#define CHECKED_ROWS 8 /* of the input, against those in the file */

struct file_stream {
    struct stream stream;
    struct snapshot *snapshot;
    int64_t count, at;
    bool complete;
    uint64_t taken;           /* of the disk */
    struct chunk fresh, kept; /* for the check */
    int64_t index[FLOW_ROWS];
};

/* ---- laying out ---- */

static uint64_t check_bytes(const struct dataset *dataset)
{
    return chunk_bytes(dataset->spec, CHECKED_ROWS, dataset->value_bytes);
}

static uint64_t file_stream_bytes(const struct dataset *dataset)
{
    return add_most(round_up(sizeof(struct file_stream), 64), add_most(check_bytes(dataset), check_bytes(dataset)));
}

static void file_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches)
{
    (void)caches;
    const struct cache_options *options = dataset->options;
    by_tag[TAG_FORMATS] = add_most(by_tag[TAG_FORMATS], snapshot_bytes(options->file));
}

/* ---- finding it again ---- */

static bool same_spec(const struct spec *a, const struct spec *b)
{
    bool same = a->column_count == b->column_count;
    for (int c = 0; same && c < a->column_count; c++)
        same = strcmp(a->column[c].name, b->column[c].name) == 0 && a->column[c].type == b->column[c].type &&
               shape_equal(&a->column[c].shape, &b->column[c].shape);
    return same;
}

static bool same_strings(const struct string *a, const struct string *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (a[i].bytes != b[i].bytes || (a[i].bytes && memcmp(a[i].data, b[i].data, a[i].bytes) != 0))
            return false;
    return true;
}

static bool same_value(const struct column *column, const void *a, const void *b)
{
    struct shape shape_a = value_shape(column, a), shape_b = value_shape(column, b);
    if (!shape_equal(&shape_a, &shape_b))
        return false;
    if (column_is_variable(column)) {
        a = ((const struct cell *)a)->data;
        b = ((const struct cell *)b)->data;
    }
    int64_t count = shape_count(&shape_a);
    if (column->type == TYPE_STRING)
        return same_strings(a, b, count);
    return !count || memcmp(a, b, (size_t)count * type_bytes(column->type)) == 0;
}

static bool same_rows(const struct chunk *a, const struct chunk *b)
{
    bool same = a->count == b->count;
    for (int c = 0; same && c < a->spec->column_count; c++)
        for (int64_t row = 0; same && row < a->count; row++)
            same = same_value(&a->spec->column[c], chunk_row(a, c, row), chunk_row(b, c, row));
    return same;
}

/* Elements first.. of the file, as many as fit. */
static plim_status read_kept(struct file_stream *self, struct chunk *to, int64_t first, int64_t count,
                             plim_error *error)
{
    struct row_pointers rows;
    const struct row_target target = {.to = rows.row, .stride = rows.stride, .values = &to->values};
    chunk_pointers(&rows, to);
    count = count < FLOW_ROWS ? count : FLOW_ROWS;
    for (int64_t i = 0; i < count; i++)
        self->index[i] = first + i;
    value_buffer_empty(&to->values);
    to->count = 0;
    TRY(snapshot_read(&to->count, self->snapshot, self->index, count, &target, error));
    if (count && !to->count)
        return stream_too_large(self->stream.dataset, to->values.wanted, to->values.capacity, error);
    return PLIM_OK;
}

/* The first elements are still the same: files of the same form may have been put in the place of others. */
static plim_status check_kept(bool *same, struct file_stream *self, plim_error *error)
{
    TRY(stream_rewind(self->stream.input, 0, error));
    TRY(stream_pull(self->stream.input, &self->fresh, CHECKED_ROWS, error));
    int64_t count = snapshot_head(self->snapshot)->count;
    *same = count >= self->fresh.count && (count == 0) == (self->fresh.count == 0);
    if (!*same)
        return PLIM_OK;
    TRY(read_kept(self, &self->kept, 0, self->fresh.count, error));
    if (self->kept.count < self->fresh.count)
        self->fresh.count = self->kept.count;
    *same = same_rows(&self->fresh, &self->kept);
    return PLIM_OK;
}

static plim_status look_for(struct file_stream *self, const char *digest, plim_error *error)
{
    const struct dataset *dataset = self->stream.dataset;
    const struct cache_options *options = dataset->options;
    bool there, same = false;
    TRY(file_exists(&there, options->file, error));
    if (!there)
        return PLIM_OK;
    plim_status status = snapshot_open(&self->snapshot, self->stream.run.budget, options->file, error);
    if (status == PLIM_BAD_DATA)
        return hint(error, status, "it is no cache that can be used: remove it, or choose another name");
    TRY(status);
    if (strcmp(snapshot_head(self->snapshot)->digest, digest) == 0 &&
        same_spec(&snapshot_head(self->snapshot)->spec, dataset->spec))
        TRY(check_kept(&same, self, error));
    self->complete = same;
    self->count = snapshot_head(self->snapshot)->count;
    if (same)
        return PLIM_OK;
    snapshot_close(self->snapshot);
    self->snapshot = NULL;
    return PLIM_OK;
}

/* ---- the disk it takes ---- */

static bool is_known(const struct dataset *dataset)
{
    return dataset->cardinality >= 0 && !spec_has_values(dataset->spec);
}

/* A file that is there already may be the one: when it is not, the limit is met as soon as it is opened. */
static uint64_t file_disk(const struct dataset *dataset)
{
    const struct cache_options *options = dataset->options;
    bool there = false;
    if (!is_known(dataset) || file_exists(&there, options->file, NULL) != PLIM_OK || there)
        return 0;
    return snapshot_disk(dataset->spec, dataset->cardinality);
}

/* From now on it may be so large. */
static plim_status take_disk(struct file_stream *self, uint64_t bytes, plim_error *error)
{
    struct scratch_disk *scratch = self->stream.run.scratch;
    const struct cache_options *options = self->stream.dataset->options;
    char more[16], left[16];
    if (!scratch || bytes <= self->taken)
        return PLIM_OK;
    if (scratch_disk_take(scratch, bytes - self->taken)) {
        self->taken = bytes;
        return PLIM_OK;
    }
    text_size(more, bytes - self->taken);
    text_size(left, scratch_disk_left(scratch));
    fail_at(error, PLIM_OVER_DISK, options->file, "cache: takes %s more of disk after %lld elements, %s are left", more,
            (long long)self->count, left);
    return hint(error, PLIM_OVER_DISK, "--disk allows more; cache: memory takes none");
}

/* At most what the chunk's rows and values will be there. */
static uint64_t chunk_disk(const struct chunk *chunk)
{
    uint64_t at[MOST_COLUMNS], bytes = (uint64_t)chunk->count * snapshot_columns(at, chunk->spec);
    for (int c = 0; c < chunk->spec->column_count; c++)
        for (int64_t row = 0; column_has_values(&chunk->spec->column[c]) && row < chunk->count; row++)
            bytes = add_most(bytes, value_bytes(&chunk->spec->column[c], chunk_row(chunk, c, row)));
    return bytes;
}

static plim_status create(struct file_stream *self, const char *digest, plim_error *error)
{
    const struct dataset *dataset = self->stream.dataset;
    const struct cache_options *options = dataset->options;
    TRY(take_disk(self, snapshot_disk(dataset->spec, is_known(dataset) ? dataset->cardinality : 0), error));
    return snapshot_create(&self->snapshot, self->stream.run.budget, options->file, dataset->spec, digest, error);
}

static plim_status file_start(struct stream *stream, plim_error *error)
{
    struct file_stream *self = (struct file_stream *)stream;
    const struct dataset *dataset = stream->dataset;
    char digest[65];
    uint8_t *block = (uint8_t *)stream + round_up(sizeof *self, 64);
    chunk_lay(&self->fresh, block, dataset->spec, CHECKED_ROWS, dataset->value_bytes);
    chunk_lay(&self->kept, block + check_bytes(dataset), dataset->spec, CHECKED_ROWS, dataset->value_bytes);
    pipeline_digest(digest, dataset->input, stream->run.seed);
    TRY(look_for(self, digest, error));
    return self->snapshot ? PLIM_OK : create(self, digest, error);
}

static void file_stop(struct stream *stream)
{
    struct file_stream *self = (struct file_stream *)stream;
    snapshot_close(self->snapshot);
    if (!self->complete)
        scratch_disk_give(stream->run.scratch, self->taken);
}

/* ---- running ---- */

static plim_status file_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct file_stream *self = (struct file_stream *)stream;
    (void)epoch;
    self->at = 0;
    if (self->complete)
        return PLIM_OK;
    self->count = 0;
    snapshot_restart(self->snapshot);
    return stream_rewind_inputs(stream, 0, error);
}

static plim_status keep_and_give(struct file_stream *self, struct chunk *to, int64_t most, plim_error *error)
{
    struct row_pointers rows;
    TRY(stream_pull(self->stream.input, to, most, error));
    chunk_pointers(&rows, to);
    if (self->stream.run.scratch)
        TRY(take_disk(self, add_most(snapshot_size(self->snapshot), chunk_disk(to)), error));
    TRY(snapshot_add(self->snapshot, (const void *const *)rows.row, rows.stride, to->count, error));
    chunk_number(to, self->count, self->stream.epoch);
    self->count += to->count;
    self->at = self->count;
    if (to->count)
        return PLIM_OK;
    TRY(snapshot_finish(self->snapshot, error));
    self->complete = true;
    return PLIM_OK;
}

static plim_status file_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct file_stream *self = (struct file_stream *)stream;
    if (!self->complete)
        return keep_and_give(self, to, most, error);
    int64_t left = self->count - self->at;
    TRY(read_kept(self, to, self->at, left < most ? left : most, error));
    chunk_number(to, self->at, stream->epoch);
    self->at += to->count;
    return PLIM_OK;
}

static plim_status file_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error)
{
    struct file_stream *self = (struct file_stream *)stream;
    if (!self->complete)
        return stream_pull_past(passed, stream, count, by, error);
    *passed = self->count - self->at < count ? self->count - self->at : count;
    self->at += *passed;
    return PLIM_OK;
}

static const struct stream_type file_stream = {
    .bytes = file_stream_bytes,
    .cost = file_cost,
    .start = file_start,
    .stop = file_stop,
    .rewind = file_rewind,
    .pull = file_pull,
    .skip = file_skip,
};

static plim_status file_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->cardinality != CARDINALITY_INFINITE)
        return PLIM_OK;
    fail(error, PLIM_BAD_JOB, "cache: data without end is never complete");
    return hint(error, PLIM_BAD_JOB, "put cache before repeat");
}

const struct stage stage_cache_file = {
    .name = "cache",
    .build = file_build,
    .stream = &file_stream,
    .sequential = true,
    .disk = file_disk,
};

/* The folder is made here: it is where the file goes, and a mistake in its name is reported before anything is read. */
struct dataset *dataset_snapshot(struct dataset *dataset, const char *folder)
{
    char path[4096 + sizeof SNAPSHOT_NAME + 1];
    plim_error error = {0};
    if (dataset->error)
        return dataset;
    plim_status status = PLIM_OK;
    if (snprintf(path, sizeof path, "%s/%s", folder, SNAPSHOT_NAME) >= (int)sizeof path)
        status = fail_at(&error, PLIM_BAD_JOB, folder, "snapshot: the folder's name is too long");
    if (status == PLIM_OK)
        status = file_make_folder(folder, &error);
    if (status == PLIM_OK)
        return dataset_cache(dataset, &(struct cache_options){.file = path});
    return dataset_refuse(dataset, &error);
}
