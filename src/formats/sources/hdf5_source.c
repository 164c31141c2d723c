/* hdf5_source.c - data sets of an HDF5 file side by side.

   Contiguous ones lie in the file as rows: they are read in place. Chunked ones go into one scratch file, one behind
   the other, when reading starts. */

#include <string.h>

#include "formats/containers/hdf5.h"
#include "formats/files/scratch_file.h"
#include "formats/tables/array_source.h"

struct hdf5_source {
    struct array_source arrays;
    struct hdf5 *hdf5;
    struct hdf5_dataset dataset[MOST_COLUMNS]; /* one for each part */
};

/* ---- unpacking ---- */

static plim_status unpack(struct array_source *arrays, int i, plim_error *error)
{
    struct hdf5_source *self = (struct hdf5_source *)arrays;
    return hdf5_unpack(self->hdf5, &self->dataset[i], arrays->scratch, arrays->part[i].scratch_at, error);
}

static plim_status hdf5_start(struct source *source, struct scratch_disk *scratch, plim_error *error)
{
    return array_source_unpack((struct array_source *)source, scratch, unpack, error);
}

static void close_source(struct source *source)
{
    array_source_close(source);
    hdf5_close(((struct hdf5_source *)source)->hdf5);
}

static const struct source_type hdf5_type = {
    .name = "hdf5", .start = hdf5_start, .read = array_source_read, ARRAY_SOURCE_FILES, .close = close_source};

/* ---- opening ---- */

static plim_status add_part(struct hdf5_source *self, const char *path, const char *name, plim_error *error)
{
    static const struct array_naming naming = {"data set", "{file: ..., x: /images, y: /labels}"};
    struct array_source *arrays = &self->arrays;
    struct file *file = hdf5_file(self->hdf5);
    if (arrays->part_count == MOST_COLUMNS)
        return fail_at(error, PLIM_BAD_JOB, file_path(file), "more than %d data sets: choose some", MOST_COLUMNS);
    struct hdf5_dataset *dataset = &self->dataset[arrays->part_count];
    TRY(hdf5_find(dataset, self->hdf5, path, error));
    if (dataset->shape.rank == 0)
        return fail_at(error, PLIM_BAD_DATA, file_path(file),
                       "data set '%.200s': a single value has no elements to iterate over", path);
    bool chunked = dataset->layout == HDF5_CHUNKED;
    const struct npy_header header = {.type = dataset->type,
                                      .big_endian = dataset->big_endian,
                                      .shape = dataset->shape,
                                      .at = chunked ? 0 : dataset->at,
                                      .data_bytes = dataset->bytes};
    const struct array_member member = {.file = file, .header = &header, .name = path, .column = name};
    TRY(array_source_add_member(arrays, &member, &naming, error));
    if (!chunked)
        return PLIM_OK;
    return array_source_plan_unpacking(arrays, dataset->bytes, hdf5_unpack_cost(dataset) + SCRATCH_FILE_BYTES, error);
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

static plim_status fill(struct hdf5_source *self, const char *path, const struct array_column *columns, int count,
                        plim_error *error)
{
    struct naming naming = {.count = 0};
    self->arrays.container = true;
    TRY(hdf5_open(&self->hdf5, self->arrays.base.budget, path, error));
    file_expect_random(hdf5_file(self->hdf5));
    if (!count)
        TRY(hdf5_names(self->hdf5, keep_name, &naming, error));
    TRY(array_source_reserve(&self->arrays, count ? count : naming.count, error));
    for (int i = 0; i < naming.count; i++) {
        plim_status status = add_part(self, naming.name[i], naming.name[i], error);
        if (status != PLIM_OK)
            return hint(error, status, "name the data sets: {file: ..., x: /images, y: /labels}");
    }
    for (int i = 0; i < count; i++)
        TRY(add_part(self, columns[i].array, columns[i].name, error));
    return self->arrays.part_count ? PLIM_OK : fail_at(error, PLIM_BAD_DATA, path, "holds no data sets");
}

plim_status hdf5_source_open(struct source **out, struct budget *budget, const char *path,
                             const struct array_column *columns, int column_count, plim_error *error)
{
    struct hdf5_source *self;
    TRY(source_make(&self, sizeof *self, &hdf5_type, budget, error));
    return source_opened(out, &self->arrays.base, fill(self, path, columns, column_count, error));
}
