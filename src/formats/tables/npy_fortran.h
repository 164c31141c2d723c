/* npy_fortran.h - rows of an array in Fortran order: their elements lie a whole column apart. */
#ifndef FORMATS_TABLES_NPY_FORTRAN_H
#define FORMATS_TABLES_NPY_FORTRAN_H

#include "formats/tables/npy_header.h"

struct npy_fortran {
    struct file *file;
    uint64_t at;   /* byte where the array's data begin */
    uint32_t item; /* bytes of an element */
    bool big_endian;
    struct shape shape; /* of the array; rank >= 2 */
};

struct npy_fortran npy_fortran_of(struct file *file, const struct npy_header *header);
/* Elements first..first + elements of each row, in C order. */
struct npy_fortran_part {
    const struct npy_fortran *array;
    int64_t first, elements;
};
/* Those of rows index[0..count) to `to` + i * stride. Rows that follow one another share their reads, one an element; a
   row by itself takes as many reads as it has elements. */
plim_status npy_fortran_read(const struct npy_fortran_part *part, const int64_t *index, int64_t count, void *to,
                             uint64_t stride, plim_error *error);

#endif
