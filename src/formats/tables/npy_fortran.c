/* npy_fortran.c - rows of an array in Fortran order, gathered column by column. */
#include "formats/tables/npy_fortran.h"

#include <string.h>

#include "formats/tables/rows.h"

/* On the stack of whoever reads: thousands of rows' elements at a time. */
#define GATHER_BYTES 16384

struct npy_fortran npy_fortran_of(struct file *file, const struct npy_header *header)
{
    return (struct npy_fortran){.file = file,
                                .at = header->at,
                                .item = (uint32_t)type_bytes(header->type),
                                .big_endian = header->big_endian,
                                .shape = header->shape};
}

/* Element k of a row, counted in C order (the last axis fastest), is the row's so-many-th in Fortran order:
   j1 + d1 * (j2 + d2 * (j3 + ...)). */
static int64_t fortran_place(const struct shape *shape, int64_t k)
{
    int64_t place = 0;
    for (int axis = shape->rank - 1; axis > 0; axis--) {
        /* The last axis is the outermost in Fortran order: what came before is multiplied by each further one. */
        place = place * shape->dim[axis] + k % shape->dim[axis];
        k /= shape->dim[axis];
    }
    return place;
}

static void scatter(char *to, uint64_t stride, const char *from, uint32_t item, int64_t count)
{
    for (int64_t r = 0; r < count; r++)
        memcpy(to + (uint64_t)r * stride, from + (uint64_t)r * item, item);
}

/* `run` rows from `row` on: one read an element. */
static plim_status read_run(const struct npy_fortran_part *part, int64_t row, int64_t run, char *to, uint64_t stride,
                            plim_error *error)
{
    char column[GATHER_BYTES];
    const struct npy_fortran *array = part->array;
    uint64_t bytes = (uint64_t)run * array->item;
    for (int64_t k = 0; k < part->elements; k++) {
        uint64_t place = (uint64_t)fortran_place(&array->shape, part->first + k);
        uint64_t at = array->at + (place * (uint64_t)array->shape.dim[0] + (uint64_t)row) * array->item;
        TRY(file_read(array->file, at, column, bytes, error));
        if (array->big_endian)
            swap_elements(column, bytes, array->item);
        scatter(to + (uint64_t)k * array->item, stride, column, array->item, run);
    }
    return PLIM_OK;
}

plim_status npy_fortran_read(const struct npy_fortran_part *part, const int64_t *index, int64_t count, void *to,
                             uint64_t stride, plim_error *error)
{
    int64_t most = GATHER_BYTES / part->array->item;
    for (int64_t i = 0; i < count;) {
        int64_t run = run_length(index + i, count - i < most ? count - i : most);
        TRY(read_run(part, index[i], run, (char *)to + (uint64_t)i * stride, stride, error));
        i += run;
    }
    return PLIM_OK;
}
