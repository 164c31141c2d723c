/* npy.c - numpy's arrays: files side by side, or one cut into column ranges. */
#include <stdio.h>
#include <string.h>

#include "formats/tables/npy_fortran.h"
#include "formats/tables/rows.h"

struct npy_source {
    struct source base;
    int file_count;
    struct rows rows[MOST_COLUMNS];
    struct npy_fortran fortran[MOST_COLUMNS]; /* used where item is not 0: the file is in Fortran order */
    int part_count;                           /* 0: a column a file */
    struct row_part part[MOST_COLUMNS];
};

/* Columns of one file in Fortran order: the whole row, or its parts. */
static plim_status read_fortran(const struct npy_source *npy, const int64_t *index, int64_t count, void *const *to,
                                const uint64_t *stride, plim_error *error)
{
    uint64_t item = npy->fortran[0].item;
    for (int p = 0; p < npy->part_count; p++)
        TRY(npy_fortran_read(&npy->fortran[0], (int64_t)(npy->part[p].offset / item),
                             (int64_t)(npy->part[p].bytes / item), index, count, to[p], stride[p], error));
    return PLIM_OK;
}

static plim_status read_file(const struct npy_source *npy, int i, const int64_t *index, int64_t count, void *to,
                             uint64_t stride, plim_error *error)
{
    const struct npy_fortran *fortran = &npy->fortran[i];
    if (!fortran->item)
        return rows_read(&npy->rows[i], index, count, to, stride, error);
    return npy_fortran_read(fortran, 0, shape_row(&fortran->shape), index, count, to, stride, error);
}

static plim_status npy_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                            const uint64_t *stride, plim_error *error)
{
    struct npy_source *npy = (struct npy_source *)source;
    TRY(source_check(source, index, count, error));
    if (npy->part_count && npy->fortran[0].item)
        TRY(read_fortran(npy, index, count, to, stride, error));
    else if (npy->part_count)
        TRY(rows_read_parts(&npy->rows[0], npy->part, npy->part_count, index, count, to, stride, error));
    for (int i = 0; i < npy->file_count && !npy->part_count; i++)
        TRY(read_file(npy, i, index, count, to[i], stride[i], error));
    source_count_read(source, (uint64_t)count * source->spec.element_bytes);
    return PLIM_OK;
}

static void npy_expect(struct source *source, int64_t first, int64_t count)
{
    struct npy_source *npy = (struct npy_source *)source;
    for (int i = 0; i < npy->file_count; i++)
        if (!npy->fortran[i].item)
            rows_expect(&npy->rows[i], first, count);
}

static bool npy_waits(const struct source *source)
{
    const struct npy_source *npy = (const struct npy_source *)source;
    for (int i = 0; i < npy->file_count; i++)
        if (!npy->fortran[i].item && file_waits(npy->rows[i].file))
            return true;
    return false;
}

static bool npy_layout(struct row_layout *out, const struct source *source)
{
    const struct npy_source *npy = (const struct npy_source *)source;
    out->part_count = npy->file_count;
    for (int i = 0; i < npy->file_count; i++) {
        if (npy->fortran[i].item)
            return false;
        out->part[i] = rows_layout(&npy->rows[i]);
        out->column[i] = (struct layout_column){.part = i};
    }
    for (int p = 0; p < npy->part_count; p++)
        out->column[p] = (struct layout_column){.offset = npy->part[p].offset};
    return true;
}

/* Of files side by side it is the one of the column. */
static bool npy_describe(char out[256], const struct source *source, int64_t index, const char *column)
{
    const struct npy_source *npy = (const struct npy_source *)source;
    int file = npy->file_count == 1 ? 0 : column ? spec_find(&source->spec, column) : -1;
    if (file < 0)
        return false;
    const struct rows *rows = &npy->rows[file];
    bool fortran = npy->fortran[file].item != 0; /* its row is all over the file */
    source_place(out, file_path(rows->file), index,
                 fortran ? SOURCE_BYTE_UNKNOWN : rows->at + (uint64_t)index * rows->row_bytes);
    return true;
}

static int64_t npy_file_count(const struct source *source)
{
    return ((const struct npy_source *)source)->file_count;
}

static void npy_file_path(char out[4096], const struct source *source, int64_t file)
{
    snprintf(out, 4096, "%s", file_path(((const struct npy_source *)source)->rows[file].file));
}

static void npy_close(struct source *source)
{
    struct npy_source *npy = (struct npy_source *)source;
    for (int i = 0; i < npy->file_count; i++)
        file_close(npy->rows[i].file);
    budget_give(source->budget, TAG_FORMATS, npy, sizeof *npy);
}

static const struct source_type npy_type = {.name = "npy",
                                            .read = npy_read,
                                            .expect = npy_expect,
                                            .waits = npy_waits,
                                            .layout = npy_layout,
                                            .describe = npy_describe,
                                            .file_count = npy_file_count,
                                            .file_path = npy_file_path,
                                            .close = npy_close};

/* A column for each range of the second axis. */
static plim_status add_ranges(struct npy_source *npy, const struct npy_header *header, const struct npy_range *ranges,
                              int range_count, plim_error *error)
{
    const char *path = file_path(npy->rows[0].file);
    if (header->shape.rank != 2)
        return fail_at(error, PLIM_BAD_JOB, path, "columns can be cut from 2 axes; this file has %d",
                       header->shape.rank);
    uint64_t bytes = type_bytes(header->type);
    for (int i = 0; i < range_count; i++) {
        const struct npy_range *range = &ranges[i];
        int64_t width = header->shape.dim[1];
        if (range->first < 0 || range->end <= range->first || range->end > width)
            return fail_at(error, PLIM_BAD_JOB, path, "columns %lld up to %lld of a file with %lld",
                           (long long)range->first, (long long)range->end, (long long)width);
        struct shape shape = {.rank = 1, .dim = {range->end - range->first}};
        if (range->scalar && shape.dim[0] != 1)
            return fail_at(error, PLIM_BAD_JOB, path, "a scalar column of %lld columns", (long long)shape.dim[0]);
        if (range->scalar)
            shape = (struct shape){0};
        TRY(spec_add(&npy->base.spec, range->name, header->type, &shape, error));
        npy->part[npy->part_count++] = (struct row_part){.offset = (uint64_t)range->first * bytes,
                                                         .bytes = (uint64_t)(range->end - range->first) * bytes};
    }
    return PLIM_OK;
}

static plim_status add_file(struct npy_source *npy, struct npy_header *header, const char *path, plim_error *error)
{
    struct rows *rows = &npy->rows[npy->file_count];
    TRY(file_open(&rows->file, npy->base.budget, path, FILE_READ, error));
    npy->file_count++;
    TRY(npy_header_read(header, rows->file, npy->base.budget, error));
    rows->at = header->at;
    rows->row_bytes = header->data_bytes / (uint64_t)header->shape.dim[0];
    if (header->fortran)
        npy->fortran[npy->file_count - 1] = npy_fortran_of(rows->file, header);
    rows->swap = header->big_endian ? (uint32_t)type_bytes(header->type) : 1;
    if (npy->file_count == 1)
        npy->base.count = header->shape.dim[0];
    if (npy->base.count != header->shape.dim[0])
        return fail_at(error, PLIM_BAD_DATA, path, "%lld elements, but %s has %lld", (long long)header->shape.dim[0],
                       file_path(npy->rows[0].file), (long long)npy->base.count);
    return PLIM_OK;
}

static plim_status add_column(struct npy_source *npy, const struct npy_header *header, plim_error *error)
{
    struct shape shape = shape_of(header->shape.rank - 1, header->shape.dim + 1);
    return spec_add(&npy->base.spec, NULL, header->type, &shape, error);
}

plim_status npy_open(struct source **out, struct budget *budget, const char *const *paths, int count,
                     const struct npy_range *ranges, int range_count, plim_error *error)
{
    if (count < 1 || count > MOST_COLUMNS)
        return fail(error, PLIM_BAD_JOB, "npy: %d files: 1 to %d are possible", count, MOST_COLUMNS);
    if (range_count && count != 1)
        return fail(error, PLIM_BAD_JOB, "npy: columns can be cut from one file, not from %d", count);
    struct npy_source *npy = budget_take(budget, TAG_FORMATS, sizeof *npy);
    if (!npy)
        return budget_refused(budget, TAG_FORMATS, sizeof *npy, error);
    npy->base.type = &npy_type;
    npy->base.budget = budget;
    plim_status status = PLIM_OK;
    for (int i = 0; i < count && status == PLIM_OK; i++) {
        struct npy_header header;
        status = add_file(npy, &header, paths[i], error);
        if (status == PLIM_OK)
            status =
                range_count ? add_ranges(npy, &header, ranges, range_count, error) : add_column(npy, &header, error);
    }
    if (status != PLIM_OK) {
        source_close(&npy->base);
        return status;
    }
    *out = &npy->base;
    return PLIM_OK;
}
