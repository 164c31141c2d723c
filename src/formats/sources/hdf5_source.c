/* hdf5_source.c - data sets of an HDF5 file side by side.

   Contiguous ones lie in the file as rows: they are read in place. Chunked ones go into one scratch file, one behind
   the other, when reading starts. */
#include "formats/sources/hdf5_source.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "formats/containers/hdf5.h"
#include "formats/files/scratch_file.h"
#include "formats/tables/rows.h"

struct hdf5_part {
    struct hdf5_dataset dataset;
    struct rows rows;    /* of the scratch file, once unpacked */
    uint64_t scratch_at; /* of a chunked one */
};

struct hdf5_source {
    struct source base;
    struct hdf5 *hdf5;
    struct file *scratch;
    int part_count;
    struct hdf5_part part[MOST_COLUMNS];
};

/* ---- reading ---- */

static void set_rows(struct hdf5_part *part, struct file *file, uint64_t at)
{
    const struct hdf5_dataset *dataset = &part->dataset;
    part->rows = (struct rows){.file = file,
                               .at = at,
                               .row_bytes = dataset->bytes / (uint64_t)dataset->shape.dim[0],
                               .swap = dataset->big_endian ? (uint32_t)type_bytes(dataset->type) : 1};
}

static plim_status unpack(struct hdf5_source *self, plim_error *error)
{
    for (int i = 0; i < self->part_count; i++) {
        struct hdf5_part *part = &self->part[i];
        if (part->dataset.layout != HDF5_CHUNKED)
            continue;
        TRY(hdf5_unpack(self->hdf5, &part->dataset, self->scratch, part->scratch_at, error));
        set_rows(part, self->scratch, part->scratch_at);
    }
    file_expect_random(self->scratch);
    return PLIM_OK;
}

static plim_status hdf5_start(struct source *source, struct scratch *scratch, plim_error *error)
{
    struct hdf5_source *self = (struct hdf5_source *)source;
    if (!source->scratch_bytes)
        return PLIM_OK;
    TRY(scratch_open(&self->scratch, source->budget, scratch, source->scratch_bytes, file_path(hdf5_file(self->hdf5)),
                     error));
    plim_status status = unpack(self, error);
    if (status == PLIM_OK)
        return PLIM_OK;
    scratch_give(scratch, source->scratch_bytes);
    file_close(self->scratch);
    self->scratch = NULL;
    return status;
}

static plim_status read_rows(struct source *source, const int64_t *index, int64_t count, void *const *to,
                             const uint64_t *stride, plim_error *error)
{
    struct hdf5_source *self = (struct hdf5_source *)source;
    TRY(source_check(source, index, count, error));
    for (int i = 0; i < self->part_count; i++) {
        if (!self->part[i].rows.file)
            return fail(error, PLIM_INTERNAL, "hdf5 source: read before start");
        TRY(rows_read(&self->part[i].rows, index, count, to[i], stride[i], error));
    }
    source_count_read(source, (uint64_t)count * source->spec.element_bytes);
    return PLIM_OK;
}

static void close_source(struct source *source)
{
    struct hdf5_source *self = (struct hdf5_source *)source;
    file_close(self->scratch);
    hdf5_close(self->hdf5);
    budget_give(source->budget, TAG_FORMATS, self, sizeof *self);
}

static bool hdf5_describe(char out[256], const struct source *source, int64_t index, const char *column)
{
    (void)column;
    source_place(out, file_path(hdf5_file(((const struct hdf5_source *)source)->hdf5)), index, SOURCE_BYTE_UNKNOWN);
    return true;
}

static int64_t hdf5_file_count(const struct source *source)
{
    (void)source;
    return 1;
}

static void hdf5_file_path(char out[4096], const struct source *source, int64_t file)
{
    (void)file;
    snprintf(out, 4096, "%s", file_path(hdf5_file(((const struct hdf5_source *)source)->hdf5)));
}

static const struct source_type hdf5_type = {.name = "hdf5",
                                             .start = hdf5_start,
                                             .read = read_rows,
                                             .describe = hdf5_describe,
                                             .file_count = hdf5_file_count,
                                             .file_path = hdf5_file_path,
                                             .close = close_source};

/* ---- opening ---- */

static plim_status plan_unpacking(struct hdf5_source *self, struct hdf5_part *part, plim_error *error)
{
    struct source *base = &self->base;
    uint64_t cost = hdf5_unpack_cost(&part->dataset) + SCRATCH_FILE_BYTES;
    part->scratch_at = base->scratch_bytes;
    if (!add_u64(&base->scratch_bytes, base->scratch_bytes, part->dataset.bytes) || base->scratch_bytes > INT64_MAX / 2)
        return fail_at(error, PLIM_BAD_DATA, file_path(hdf5_file(self->hdf5)), "unpacks to more than any disk holds");
    base->scratch_bytes = round_up(base->scratch_bytes, 64);
    base->start_bytes = cost > base->start_bytes ? cost : base->start_bytes; /* one after the other */
    return PLIM_OK;
}

static plim_status add_part(struct hdf5_source *self, const char *path, const char *name, plim_error *error)
{
    struct hdf5_part *part = &self->part[self->part_count];
    const struct hdf5_dataset *dataset = &part->dataset;
    const char *file = file_path(hdf5_file(self->hdf5));
    if (self->part_count == MOST_COLUMNS)
        return fail_at(error, PLIM_BAD_JOB, file, "more than %d data sets: choose some", MOST_COLUMNS);
    TRY(hdf5_find(&part->dataset, self->hdf5, path, error));
    if (spec_find(&self->base.spec, name) >= 0)
        return fail_at(error, PLIM_BAD_JOB, file, "a second column '%.63s'", name);
    if (dataset->shape.rank == 0)
        return fail_at(error, PLIM_BAD_DATA, file, "data set '%.200s': a single value has no elements to iterate over",
                       path);
    if (self->part_count == 0)
        self->base.count = dataset->shape.dim[0];
    if (dataset->shape.dim[0] != self->base.count) {
        fail_at(error, PLIM_BAD_DATA, file, "data set '%.200s' has %lld rows, the first one %lld", path,
                (long long)dataset->shape.dim[0], (long long)self->base.count);
        return hint(error, PLIM_BAD_DATA, "choose those that belong together: {file: ..., x: /images, y: /labels}");
    }
    struct shape shape = shape_of(dataset->shape.rank - 1, dataset->shape.dim + 1);
    TRY(spec_add(&self->base.spec, name, dataset->type, &shape, error));
    self->part_count++;
    if (dataset->layout == HDF5_CHUNKED)
        return plan_unpacking(self, part, error);
    set_rows(part, hdf5_file(self->hdf5), dataset->at);
    return PLIM_OK;
}

struct naming {
    int count;
    char name[MOST_COLUMNS][64];
};

static bool keep_name(void *context, const char *name)
{
    struct naming *naming = context;
    if (naming->count < MOST_COLUMNS && strlen(name) < sizeof naming->name[0])
        memcpy(naming->name[naming->count++], name, strlen(name) + 1);
    return naming->count < MOST_COLUMNS;
}

static plim_status fill(struct hdf5_source *self, const char *path, const struct hdf5_column *columns, int count,
                        plim_error *error)
{
    struct naming naming = {.count = 0};
    TRY(hdf5_open(&self->hdf5, self->base.budget, path, error));
    file_expect_random(hdf5_file(self->hdf5));
    if (!count)
        TRY(hdf5_names(self->hdf5, keep_name, &naming, error));
    for (int i = 0; i < naming.count; i++) {
        plim_status status = add_part(self, naming.name[i], naming.name[i], error);
        if (status != PLIM_OK)
            return hint(error, status, "name the data sets: {file: ..., x: /images, y: /labels}");
    }
    for (int i = 0; i < count; i++)
        TRY(add_part(self, columns[i].path, columns[i].name, error));
    return self->part_count ? PLIM_OK : fail_at(error, PLIM_BAD_DATA, path, "holds no data sets");
}

plim_status hdf5_source_open(struct source **out, struct budget *budget, const char *path,
                             const struct hdf5_column *columns, int column_count, plim_error *error)
{
    struct hdf5_source *self = budget_take(budget, TAG_FORMATS, sizeof *self);
    if (!self)
        return budget_refused(budget, TAG_FORMATS, sizeof *self, error);
    self->base.type = &hdf5_type;
    self->base.budget = budget;
    plim_status status = fill(self, path, columns, column_count, error);
    if (status != PLIM_OK) {
        source_close(&self->base);
        return status;
    }
    *out = &self->base;
    return PLIM_OK;
}
