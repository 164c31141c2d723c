/* npz_source.c - arrays of an npz file side by side.

   Stored arrays lie in the file as an npy file would: rows are read in place. Deflated ones go into one scratch file,
   one behind the other, when reading starts; the member's checksum is looked at then. */

#include <string.h>

#include "base/memory/budget_alloc.h"
#include "formats/containers/zip.h"
#include "formats/files/scratch_file.h"
#include "formats/tables/array_source.h"

struct npz_source {
    struct array_source arrays;
    struct zip *zip;
    size_t table_bytes;
    struct npz_array *array; /* one for each part */
};

static plim_status unpack(struct array_source *arrays, int i, plim_error *error)
{
    struct npz_source *npz = (struct npz_source *)arrays;
    return zip_unpack(npz->zip, &npz->array[i].member, arrays->scratch, arrays->part[i].scratch_at, error);
}

static plim_status npz_start(struct source *source, struct scratch_disk *scratch, plim_error *error)
{
    return array_source_unpack((struct array_source *)source, scratch, unpack, error);
}

static void npz_close(struct source *source)
{
    struct npz_source *npz = (struct npz_source *)source;
    array_source_close(source);
    zip_close(npz->zip);
    budget_give(source->budget, TAG_FORMATS, npz->array, npz->table_bytes);
}

static const struct source_type npz_type = {
    .name = "npz", .start = npz_start, .read = array_source_read, ARRAY_SOURCE_FILES, .close = npz_close};

/* ---- opening ---- */

static plim_status add_part(struct npz_source *npz, const struct npz_array *array, const char *name, plim_error *error)
{
    static const struct array_naming naming = {"array", "columns: [x_train, y_train]"};
    char own[64];
    if (!name) { /* as the array; one that is too long or has a slash keeps its beginning */
        size_t bytes = array->name_bytes < sizeof own ? array->name_bytes : sizeof own - 1;
        memcpy(own, array->member.name, bytes);
        own[bytes] = 0;
        name = own;
    }
    const struct array_member member = {.file = npz->zip->file, .header = &array->header, .name = name, .column = name};
    TRY(array_source_add_member(&npz->arrays, &member, &naming, error));
    if (npz_is_stored(array))
        return PLIM_OK;
    return array_source_plan_unpacking(&npz->arrays, array->member.bytes,
                                       ZIP_STREAM_BYTES + SCRATCH_BUFFER_BYTES + SCRATCH_FILE_BYTES, error);
}

static plim_status count_arrays(int *count, struct npz_source *npz, plim_error *error)
{
    struct zip_position position = {0};
    struct npz_array array;
    bool more = true;
    for (*count = 0; more && *count <= MOST_COLUMNS; *count += more)
        TRY(npz_next(&more, &array, &position, npz->zip, error));
    return PLIM_OK;
}

static plim_status fill(struct npz_source *npz, const char *path, const struct array_column *columns, int column_count,
                        plim_error *error)
{
    struct zip_position position = {0};
    int count = column_count;
    npz->arrays.container = true;
    TRY(zip_open(&npz->zip, npz->arrays.base.budget, path, error));
    file_expect_random(npz->zip->file);
    if (!count)
        TRY(count_arrays(&count, npz, error));
    if (count < 1)
        return fail_at(error, PLIM_BAD_DATA, path, "holds no arrays");
    if (count > MOST_COLUMNS)
        return hint(error, fail_at(error, PLIM_BAD_DATA, path, "holds more than %d arrays", MOST_COLUMNS),
                    "choose some: columns: [x, y]");
    npz->table_bytes = (size_t)count * sizeof *npz->array;
    TRY(budget_alloc(&npz->array, npz->arrays.base.budget, TAG_FORMATS, npz->table_bytes, error));
    TRY(array_source_reserve(&npz->arrays, count, error));
    for (int i = 0; i < count; i++) {
        bool more = true;
        if (column_count)
            TRY(npz_find(&npz->array[i], npz->zip, columns[i].array, error));
        else
            TRY(npz_next(&more, &npz->array[i], &position, npz->zip, error));
        TRY(add_part(npz, &npz->array[i], column_count ? (columns[i].name ? columns[i].name : columns[i].array) : NULL,
                     error));
    }
    return PLIM_OK;
}

plim_status npz_open(struct source **out, struct budget *budget, const char *path, const struct array_column *columns,
                     int column_count, plim_error *error)
{
    struct npz_source *npz;
    TRY(source_make(&npz, sizeof *npz, &npz_type, budget, error));
    return source_opened(out, &npz->arrays.base, fill(npz, path, columns, column_count, error));
}
