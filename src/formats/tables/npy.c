/* npy.c - numpy's arrays: files side by side, or one cut into column ranges. */
#include "formats/tables/array_source.h"

struct npy_source {
    struct array_source arrays;
    int range_count; /* columns that are ranges of the one file's rows; 0: a column a file */
    struct row_part range[MOST_COLUMNS];
};

static plim_status read_ranges(const struct npy_source *npy, const int64_t *index, int64_t count, void *const *to,
                               const uint64_t *stride, plim_error *error)
{
    const struct array_part *array = &npy->arrays.part[0];
    const struct cut_rows cut = {.rows = &array->rows, .part = npy->range, .part_count = npy->range_count};
    uint64_t item = array->fortran.item;
    if (!item)
        return rows_read_parts(&cut, index, count, to, stride, error);
    for (int r = 0; r < npy->range_count; r++) {
        const struct npy_fortran_part part = {.array = &array->fortran,
                                              .first = (int64_t)(npy->range[r].offset / item),
                                              .elements = (int64_t)(npy->range[r].bytes / item)};
        TRY(npy_fortran_read(&part, index, count, to[r], stride[r], error));
    }
    return PLIM_OK;
}

static plim_status npy_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                            const uint64_t *stride, plim_error *error)
{
    const struct npy_source *npy = (const struct npy_source *)source;
    if (!npy->range_count)
        return array_source_read(source, index, count, to, stride, error);
    TRY(source_check(source, index, count, error));
    TRY(read_ranges(npy, index, count, to, stride, error));
    source_count_read(source, (uint64_t)count * source->spec.element_bytes);
    return PLIM_OK;
}

static bool npy_layout(struct row_layout *out, const struct source *source)
{
    const struct npy_source *npy = (const struct npy_source *)source;
    if (!array_source_layout(out, source))
        return false;
    for (int r = 0; r < npy->range_count; r++)
        out->column[r] = (struct layout_column){.offset = npy->range[r].offset};
    return true;
}

static const struct source_type npy_type = {.name = "npy",
                                            .read = npy_read,
                                            .expect = array_source_expect,
                                            .waits = array_source_waits,
                                            .layout = npy_layout,
                                            ARRAY_SOURCE_FILES,
                                            .close = array_source_close};

/* A column for each range of the second axis. */
static plim_status add_ranges(struct npy_source *npy, const struct npy_header *header, const struct npy_cut *cut,
                              plim_error *error)
{
    const char *path = file_path(npy->arrays.part[0].origin);
    if (header->shape.rank != 2)
        return fail_at(error, PLIM_BAD_JOB, path, "columns can be cut from 2 axes; this file has %d",
                       header->shape.rank);
    uint64_t bytes = type_bytes(header->type);
    for (int i = 0; i < cut->count; i++) {
        const struct npy_range *range = &cut->ranges[i];
        int64_t width = header->shape.dim[1];
        if (range->first < 0 || range->end <= range->first || range->end > width)
            return fail_at(error, PLIM_BAD_JOB, path, "columns %lld up to %lld of a file with %lld",
                           (long long)range->first, (long long)range->end, (long long)width);
        struct shape shape = {.rank = 1, .dim = {range->end - range->first}};
        if (range->scalar && shape.dim[0] != 1)
            return fail_at(error, PLIM_BAD_JOB, path, "a scalar column of %lld columns", (long long)shape.dim[0]);
        if (range->scalar)
            shape = (struct shape){0};
        TRY(spec_add(&npy->arrays.base.spec, range->name, header->type, &shape, error));
        npy->range[npy->range_count++] = (struct row_part){.offset = (uint64_t)range->first * bytes,
                                                           .bytes = (uint64_t)(range->end - range->first) * bytes};
    }
    return PLIM_OK;
}

static plim_status add_file(struct npy_source *npy, struct npy_header *header, const char *path, plim_error *error)
{
    struct source *base = &npy->arrays.base;
    struct array_part *part;
    TRY(array_source_open_file(&part, &npy->arrays, path, error));
    TRY(npy_header_read(header, part->origin, base->budget, error));
    array_part_set(part, part->origin, header);
    if (npy->arrays.part_count == 1)
        base->count = header->shape.dim[0];
    if (base->count != header->shape.dim[0])
        return fail_at(error, PLIM_BAD_DATA, path, "%lld elements, but %s has %lld", (long long)header->shape.dim[0],
                       file_path(npy->arrays.part[0].origin), (long long)base->count);
    return PLIM_OK;
}

static plim_status add_column(struct npy_source *npy, const struct npy_header *header, plim_error *error)
{
    struct shape shape = shape_of(header->shape.rank - 1, header->shape.dim + 1);
    return spec_add(&npy->arrays.base.spec, NULL, header->type, &shape, error);
}

static plim_status fill(struct npy_source *npy, const char *const *paths, int count, const struct npy_cut *cut,
                        plim_error *error)
{
    TRY(array_source_reserve(&npy->arrays, count, error));
    for (int i = 0; i < count; i++) {
        struct npy_header header;
        TRY(add_file(npy, &header, paths[i], error));
        TRY(cut ? add_ranges(npy, &header, cut, error) : add_column(npy, &header, error));
    }
    return PLIM_OK;
}

plim_status npy_open(struct source **out, struct budget *budget, const char *const *paths, int count,
                     const struct npy_cut *cut, plim_error *error)
{
    if (count < 1 || count > MOST_COLUMNS)
        return fail(error, PLIM_BAD_JOB, "npy: %d files: 1 to %d are possible", count, MOST_COLUMNS);
    if (cut && count != 1)
        return fail(error, PLIM_BAD_JOB, "npy: columns can be cut from one file, not from %d", count);
    struct npy_source *npy;
    TRY(source_make(&npy, sizeof *npy, &npy_type, budget, error));
    return source_opened(out, &npy->arrays.base, fill(npy, paths, count, cut, error));
}
