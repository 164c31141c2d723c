/* snapshot_source.c - a saved snapshot as a source with an index. */
#include <stdio.h>
#include <string.h>

#include "formats/records/snapshot.h"
#include "formats/tables/rows.h"

#define ROOM_BYTES ((uint64_t)256 * 1024)

struct snapshot_source {
    struct source base;
    struct snapshot *snapshot;
};

static plim_status read_values(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                               const struct row_target *target, plim_error *error)
{
    struct snapshot_source *self = (struct snapshot_source *)source;
    const struct value_buffer *values = target->values;
    uint64_t before = values ? values->used : 0;
    TRY(source_check(source, index, count, error));
    TRY(snapshot_read(done, self->snapshot, index, count, target, error));
    source_count_read(source, (uint64_t)*done * source->spec.element_bytes + (values ? values->used - before : 0));
    return PLIM_OK;
}

static plim_status read_rows(struct source *source, const int64_t *index, int64_t count, void *const *to,
                             const uint64_t *stride, plim_error *error)
{
    int64_t done;
    return read_values(&done, source, index, count, &(struct row_target){.to = to, .stride = stride}, error);
}

static void close_snapshot(struct source *source)
{
    snapshot_close(((struct snapshot_source *)source)->snapshot);
}

static bool snapshot_describe(char out[256], const struct source *source, int64_t index, const char *column)
{
    (void)column;
    source_place(out, snapshot_path(((const struct snapshot_source *)source)->snapshot), index, SOURCE_BYTE_UNKNOWN);
    return true;
}

static int64_t snapshot_file_count(const struct source *source)
{
    return spec_has_values(&source->spec) ? 2 : 1;
}

static void snapshot_file_path(char out[4096], const struct source *source, int64_t file)
{
    const struct snapshot *snapshot = ((const struct snapshot_source *)source)->snapshot;
    snprintf(out, 4096, "%s", file ? snapshot_values_path(snapshot) : snapshot_path(snapshot));
}

#define SNAPSHOT_FILES                                                                                                 \
    .describe = snapshot_describe, .file_count = snapshot_file_count, .file_path = snapshot_file_path,                 \
    .close = close_snapshot
static const struct source_type fixed_type = {.name = "snapshot", .read = read_rows, SNAPSHOT_FILES};
static const struct source_type values_type = {.name = "snapshot", .read_values = read_values, SNAPSHOT_FILES};

static plim_status open_in(struct snapshot_source *self, const char *folder, plim_error *error)
{
    struct source *source = &self->base;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, SNAPSHOT_NAME) >= (int)sizeof path)
        return fail_at(error, PLIM_BAD_DATA, folder, "the name is too long");
    TRY(snapshot_open(&self->snapshot, source->budget, path, error));
    source->spec = snapshot_head(self->snapshot)->spec;
    source->count = snapshot_head(self->snapshot)->count;
    bool values = spec_has_values(&source->spec);
    source->type = values ? &values_type : &fixed_type;
    source->value_bytes = values ? ROOM_BYTES : 0;
    return PLIM_OK;
}

plim_status snapshot_source_open(struct source **out, struct budget *budget, const char *folder, plim_error *error)
{
    struct snapshot_source *self;
    TRY(source_make(&self, sizeof *self, &fixed_type, budget, error));
    return source_opened(out, &self->base, open_in(self, folder, error));
}
