/* array_source.c - arrays in files as a source: a column each, rows read in place by number. */
#include "formats/tables/array_source.h"

#include <stdio.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/files/scratch_file.h"

plim_status array_source_reserve(struct array_source *source, int count, plim_error *error)
{
    struct budget *budget = source->base.budget;
    TRY(budget_alloc(&source->part, budget, TAG_FORMATS, (size_t)count * sizeof *source->part, error));
    source->part_most = count;
    return PLIM_OK;
}

plim_status array_source_open_file(struct array_part **out, struct array_source *source, const char *path,
                                   plim_error *error)
{
    struct array_part *part = &source->part[source->part_count];
    TRY(file_open(&part->origin, source->base.budget, path, FILE_READ, error));
    source->part_count++;
    *out = part;
    return PLIM_OK;
}

void array_part_set(struct array_part *part, struct file *file, const struct npy_header *header)
{
    part->rows = (struct rows){.file = file,
                               .at = header->at,
                               .row_bytes = header->data_bytes / (uint64_t)header->shape.dim[0],
                               .swap = header->big_endian ? (uint32_t)type_bytes(header->type) : 1};
    if (header->fortran)
        part->fortran = npy_fortran_of(file, header);
}

void array_source_close(struct source *base)
{
    struct array_source *source = (struct array_source *)base;
    file_close(source->scratch);
    for (int i = 0; i < source->part_count && !source->container; i++) {
        struct array_part *part = &source->part[i];
        if (part->rows.file != part->origin)
            file_close(part->rows.file);
        file_close(part->origin);
    }
    budget_give(base->budget, TAG_FORMATS, source->part, (size_t)source->part_most * sizeof *source->part);
}

/* ---- reading ---- */

plim_status array_source_read(struct source *base, const int64_t *index, int64_t count, void *const *to,
                              const uint64_t *stride, plim_error *error)
{
    const struct array_source *source = (const struct array_source *)base;
    TRY(source_check(base, index, count, error));
    for (int i = 0; i < source->part_count; i++) {
        const struct array_part *part = &source->part[i];
        const struct npy_fortran *fortran = &part->fortran;
        if (!part->rows.file)
            return fail(error, PLIM_INTERNAL, "%s source: read before start", base->type->name);
        if (fortran->item) {
            const struct npy_fortran_part row = {.array = fortran, .elements = shape_row(&fortran->shape)};
            TRY(npy_fortran_read(&row, index, count, to[i], stride[i], error));
        } else {
            TRY(rows_read(&part->rows, index, count, to[i], stride[i], error));
        }
    }
    source_count_read(base, (uint64_t)count * base->spec.element_bytes);
    return PLIM_OK;
}

/* Whether rows of the array lie in one piece each, in a file that is there. */
static bool has_rows(const struct array_part *part)
{
    return part->rows.file && !part->fortran.item;
}

void array_source_expect(struct source *base, int64_t first, int64_t count)
{
    const struct array_source *source = (const struct array_source *)base;
    for (int i = 0; i < source->part_count; i++)
        if (has_rows(&source->part[i]))
            rows_expect(&source->part[i].rows, first, count);
}

bool array_source_waits(const struct source *base)
{
    const struct array_source *source = (const struct array_source *)base;
    for (int i = 0; i < source->part_count; i++)
        if (has_rows(&source->part[i]) && file_waits(source->part[i].rows.file))
            return true;
    return false;
}

bool array_source_layout(struct row_layout *out, const struct source *base)
{
    const struct array_source *source = (const struct array_source *)base;
    out->part_count = source->part_count;
    for (int i = 0; i < source->part_count; i++) {
        if (source->part[i].fortran.item)
            return false;
        out->part[i] = rows_layout(&source->part[i].rows);
        out->column[i] = (struct layout_column){.part = i};
    }
    return true;
}

/* ---- where an element comes from ---- */

/* Of files side by side it is the one of the column. The byte of a packed file is that of what it unpacks to. A row in
   Fortran order lies scattered over the whole file; of a container only the file is said. */
bool array_source_describe(char out[256], const struct source *base, int64_t index, const char *column)
{
    const struct array_source *source = (const struct array_source *)base;
    bool one_file = source->container || source->part_count == 1;
    int file = one_file ? 0 : column ? spec_find(&base->spec, column) : -1;
    if (file < 0)
        return false;
    const struct array_part *part = &source->part[file];
    bool in_place = !source->container && !part->fortran.item;
    source_place(out, file_path(part->origin), index,
                 in_place ? part->rows.at + (uint64_t)index * part->rows.row_bytes : SOURCE_BYTE_UNKNOWN);
    return true;
}

int64_t array_source_file_count(const struct source *base)
{
    const struct array_source *source = (const struct array_source *)base;
    return source->container ? 1 : source->part_count;
}

void array_source_file_path(char out[4096], const struct source *source, int64_t file)
{
    snprintf(out, 4096, "%s", file_path(((const struct array_source *)source)->part[file].origin));
}

/* ---- containers ---- */

plim_status array_source_add_member(struct array_source *source, const struct array_member *member,
                                    const struct array_naming *naming, plim_error *error)
{
    struct source *base = &source->base;
    const struct npy_header *header = member->header;
    const char *path = file_path(member->file);
    if (spec_find(&base->spec, member->column) >= 0)
        return fail_at(error, PLIM_BAD_JOB, path, "a second column '%.63s'", member->column);
    if (source->part_count == 0)
        base->count = header->shape.dim[0];
    if (header->shape.dim[0] != base->count) {
        fail_at(error, PLIM_BAD_DATA, path, "%s '%.200s' has %lld rows, the first one %lld", naming->kind, member->name,
                (long long)header->shape.dim[0], (long long)base->count);
        return hint(error, PLIM_BAD_DATA, "choose those that belong together: %s", naming->choose);
    }
    struct shape shape = shape_of(header->shape.rank - 1, header->shape.dim + 1);
    TRY(spec_add(&base->spec, member->column, header->type, &shape, error));
    struct array_part *part = &source->part[source->part_count++];
    part->origin = member->file;
    array_part_set(part, member->file, header);
    return PLIM_OK;
}

plim_status array_source_plan_unpacking(struct array_source *source, uint64_t bytes, uint64_t cost, plim_error *error)
{
    struct source *base = &source->base;
    struct array_part *part = &source->part[source->part_count - 1];
    part->rows.file = NULL;
    part->scratch_at = base->scratch_bytes;
    if (!add_u64(&base->scratch_bytes, base->scratch_bytes, bytes) || base->scratch_bytes > INT64_MAX / 2)
        return fail_at(error, PLIM_BAD_DATA, file_path(part->origin), "unpacks to more than any disk holds");
    base->scratch_bytes = round_up(base->scratch_bytes, 64);
    base->start_bytes = cost > base->start_bytes ? cost : base->start_bytes; /* one after the other */
    return PLIM_OK;
}

/* Rows of packed arrays are in the scratch file from now on. */
static void use_scratch(struct array_source *source)
{
    file_expect_random(source->scratch);
    for (int i = 0; i < source->part_count; i++) {
        struct array_part *part = &source->part[i];
        if (part->rows.file)
            continue;
        part->rows.file = part->fortran.file = source->scratch;
        part->rows.at = part->fortran.at = part->scratch_at + part->rows.at;
    }
}

plim_status array_source_unpack(struct array_source *source, struct scratch_disk *scratch,
                                plim_status (*unpack)(struct array_source *source, int i, plim_error *error),
                                plim_error *error)
{
    struct source *base = &source->base;
    plim_status status = PLIM_OK;
    if (!base->scratch_bytes)
        return PLIM_OK;
    const char *path = file_path(source->part[0].origin);
    TRY(scratch_open(&source->scratch, base->budget, scratch, base->scratch_bytes, path, error));
    for (int i = 0; i < source->part_count && status == PLIM_OK; i++)
        if (!source->part[i].rows.file)
            status = unpack(source, i, error);
    if (status == PLIM_OK) {
        use_scratch(source);
        return PLIM_OK;
    }
    scratch_disk_give(scratch, base->scratch_bytes);
    file_close(source->scratch);
    source->scratch = NULL;
    return status;
}
