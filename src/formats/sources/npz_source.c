/* npz_source.c - arrays of an npz file side by side.

   Stored arrays lie in the file as an npy file would: rows are read in place. Deflated ones go into one scratch file,
   one behind the other, when reading starts; the member's checksum is looked at then. */
#include "formats/sources/npz_source.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "formats/containers/zip.h"
#include "formats/files/cursor.h"
#include "formats/files/scratch_file.h"
#include "formats/tables/npy_fortran.h"
#include "formats/tables/rows.h"

struct npz_part {
    struct npz_array array;
    struct rows rows;
    struct npy_fortran fortran; /* used where item is not 0 */
    uint64_t scratch_at;        /* of a deflated one */
};

struct npz_source {
    struct source base;
    struct zip *zip;
    struct file *scratch; /* NULL: nothing was deflated, or reading has not started */
    int part_count;
    size_t part_bytes;
    struct npz_part *part;
};

/* ---- reading ---- */

/* Where the array lies, now that it is known in which file. */
static void set_rows(struct npz_part *part, struct file *file, uint64_t at)
{
    const struct npy_header *header = &part->array.header;
    part->rows = (struct rows){.file = file,
                               .at = at,
                               .row_bytes = header->data_bytes / (uint64_t)header->shape.dim[0],
                               .swap = header->big_endian ? (uint32_t)type_bytes(header->type) : 1};
    part->fortran = (struct npy_fortran){0};
    if (header->fortran) {
        part->fortran = npy_fortran_of(file, header);
        part->fortran.at = at;
    }
}

static plim_status read_member(size_t *got, void *context, void *to, size_t bytes, plim_error *error)
{
    return zip_stream_read(got, context, to, bytes, error);
}

static plim_status unpack(struct npz_source *npz, struct npz_part *part, plim_error *error)
{
    struct zip_stream *stream;
    uint64_t written;
    TRY(zip_stream_open(&stream, npz->zip, &part->array.member, error));
    plim_status status =
        scratch_fill(&written, npz->scratch, part->scratch_at, npz->base.budget, read_member, stream, error);
    zip_stream_close(stream);
    if (status == PLIM_OK)
        set_rows(part, npz->scratch, part->scratch_at + part->array.header.at);
    return status;
}

static plim_status npz_start(struct source *source, struct scratch *scratch, plim_error *error)
{
    struct npz_source *npz = (struct npz_source *)source;
    plim_status status = PLIM_OK;
    if (!source->scratch_bytes)
        return PLIM_OK;
    TRY(scratch_open(&npz->scratch, source->budget, scratch, source->scratch_bytes, file_path(zip_file(npz->zip)),
                     error));
    for (int i = 0; i < npz->part_count && status == PLIM_OK; i++)
        if (!npz_is_stored(&npz->part[i].array))
            status = unpack(npz, &npz->part[i], error);
    if (status == PLIM_OK) {
        file_expect_random(npz->scratch);
        return PLIM_OK;
    }
    scratch_give(scratch, source->scratch_bytes);
    file_close(npz->scratch);
    npz->scratch = NULL;
    return status;
}

static plim_status npz_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                            const uint64_t *stride, plim_error *error)
{
    struct npz_source *npz = (struct npz_source *)source;
    TRY(source_check(source, index, count, error));
    for (int i = 0; i < npz->part_count; i++) {
        const struct npz_part *part = &npz->part[i];
        if (!part->rows.file)
            return fail(error, PLIM_INTERNAL, "npz source: read before start");
        if (part->fortran.item)
            TRY(npy_fortran_read(&part->fortran, 0, shape_row(&part->fortran.shape), index, count, to[i], stride[i],
                                 error));
        else
            TRY(rows_read(&part->rows, index, count, to[i], stride[i], error));
    }
    source_count_read(source, (uint64_t)count * source->spec.element_bytes);
    return PLIM_OK;
}

static void npz_close(struct source *source)
{
    struct npz_source *npz = (struct npz_source *)source;
    file_close(npz->scratch);
    if (npz->zip)
        zip_close(npz->zip);
    budget_give(source->budget, TAG_FORMATS, npz->part, npz->part_bytes);
    budget_give(source->budget, TAG_FORMATS, npz, sizeof *npz);
}

static bool npz_describe(char out[256], const struct source *source, int64_t index, const char *column)
{
    (void)column;
    source_place(out, file_path(zip_file(((const struct npz_source *)source)->zip)), index, SOURCE_BYTE_UNKNOWN);
    return true;
}

static int64_t npz_file_count(const struct source *source)
{
    (void)source;
    return 1;
}

static void npz_file_path(char out[4096], const struct source *source, int64_t file)
{
    (void)file;
    snprintf(out, 4096, "%s", file_path(zip_file(((const struct npz_source *)source)->zip)));
}

static const struct source_type npz_type = {.name = "npz",
                                            .start = npz_start,
                                            .read = npz_read,
                                            .describe = npz_describe,
                                            .file_count = npz_file_count,
                                            .file_path = npz_file_path,
                                            .close = npz_close};

/* ---- opening ---- */

/* What start() will need for a deflated array. */
static plim_status plan_unpacking(struct npz_source *npz, struct npz_part *part, plim_error *error)
{
    struct source *base = &npz->base;
    part->scratch_at = base->scratch_bytes;
    if (!add_u64(&base->scratch_bytes, base->scratch_bytes, part->array.member.bytes))
        return fail_at(error, PLIM_BAD_DATA, file_path(zip_file(npz->zip)), "unpacks to more than any disk holds");
    base->scratch_bytes = round_up(base->scratch_bytes, 64);
    base->start_bytes = ZIP_STREAM_BYTES + SCRATCH_BUFFER_BYTES + SCRATCH_FILE_BYTES;
    return PLIM_OK;
}

static plim_status add_part(struct npz_source *npz, const char *name, plim_error *error)
{
    struct npz_part *part = &npz->part[npz->part_count];
    const struct npy_header *header = &part->array.header;
    const char *path = file_path(zip_file(npz->zip));
    char own[64];
    if (!name) { /* as the array; one that is too long or has a slash keeps its beginning */
        size_t bytes = part->array.name_bytes < sizeof own ? part->array.name_bytes : sizeof own - 1;
        memcpy(own, part->array.member.name, bytes);
        own[bytes] = 0;
        name = own;
    }
    if (spec_find(&npz->base.spec, name) >= 0)
        return fail_at(error, PLIM_BAD_JOB, path, "a second column '%.63s'", name);
    if (npz->part_count == 0)
        npz->base.count = header->shape.dim[0];
    if (header->shape.dim[0] != npz->base.count) {
        fail_at(error, PLIM_BAD_DATA, path, "array '%.63s' has %lld rows, the first one %lld", name,
                (long long)header->shape.dim[0], (long long)npz->base.count);
        return hint(error, PLIM_BAD_DATA, "choose those that belong together: columns: [x_train, y_train]");
    }
    struct shape shape = shape_of(header->shape.rank - 1, header->shape.dim + 1);
    TRY(spec_add(&npz->base.spec, name, header->type, &shape, error));
    npz->part_count++;
    if (!npz_is_stored(&part->array))
        return plan_unpacking(npz, part, error);
    set_rows(part, zip_file(npz->zip), header->at);
    return PLIM_OK;
}

static plim_status count_arrays(int *count, struct npz_source *npz, plim_error *error)
{
    struct zip_walk walk = {0};
    struct npz_array array;
    bool more = true;
    for (*count = 0; more && *count <= MOST_COLUMNS; *count += more)
        TRY(npz_next(&more, &array, &walk, npz->zip, error));
    return PLIM_OK;
}

static plim_status fill(struct npz_source *npz, const char *path, const struct npz_column *columns, int column_count,
                        plim_error *error)
{
    struct zip_walk walk = {0};
    int count = column_count;
    TRY(zip_open(&npz->zip, npz->base.budget, path, error));
    file_expect_random(zip_file(npz->zip));
    if (!count)
        TRY(count_arrays(&count, npz, error));
    if (count < 1)
        return fail_at(error, PLIM_BAD_DATA, path, "holds no arrays");
    if (count > MOST_COLUMNS)
        return hint(error, fail_at(error, PLIM_BAD_DATA, path, "holds more than %d arrays", MOST_COLUMNS),
                    "choose some: columns: [x, y]");
    npz->part_bytes = (size_t)count * sizeof *npz->part;
    npz->part = budget_take(npz->base.budget, TAG_FORMATS, npz->part_bytes);
    if (!npz->part)
        return budget_refused(npz->base.budget, TAG_FORMATS, npz->part_bytes, error);
    for (int i = 0; i < count; i++) {
        bool more = true;
        if (column_count)
            TRY(npz_find(&npz->part[i].array, npz->zip, columns[i].array, error));
        else
            TRY(npz_next(&more, &npz->part[i].array, &walk, npz->zip, error));
        TRY(add_part(npz, column_count ? (columns[i].name ? columns[i].name : columns[i].array) : NULL, error));
    }
    return PLIM_OK;
}

plim_status npz_open(struct source **out, struct budget *budget, const char *path, const struct npz_column *columns,
                     int column_count, plim_error *error)
{
    struct npz_source *npz = budget_take(budget, TAG_FORMATS, sizeof *npz);
    if (!npz)
        return budget_refused(budget, TAG_FORMATS, sizeof *npz, error);
    npz->base.type = &npz_type;
    npz->base.budget = budget;
    plim_status status = fill(npz, path, columns, column_count, error);
    if (status != PLIM_OK) {
        source_close(&npz->base);
        return status;
    }
    *out = &npz->base;
    return PLIM_OK;
}
