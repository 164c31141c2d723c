/* npy_header.h - the header of an npy file, parsed by hand. */
#ifndef FORMATS_TABLES_NPY_HEADER_H
#define FORMATS_TABLES_NPY_HEADER_H

#include "base/files/file.h"
#include "graph/tensor.h"

struct npy_header {
    enum type type;
    bool big_endian;
    bool fortran;        /* the first axis varies fastest: see npy_fortran.h. Never of rank 1 */
    struct shape shape;  /* rank >= 1, no axis of length 0 */
    uint64_t at;         /* byte where the data begin */
    uint64_t data_bytes; /* shape times type; checked to be what the file has */
};

/* The bytes of an array in order, wherever it lies. */
struct npy_bytes {
    plim_status (*read)(void *context, void *to, size_t bytes, plim_error *error); /* the next ones, all of them */
    void *context;
    const char *path;
    uint64_t base;    /* byte of the file, or of the unpacked data, where the array begins: added to header.at */
    uint64_t present; /* how many bytes there are; none is asked for beyond */
    char *text;       /* for the header's own text where it fits, so that nothing is taken; NULL: from the budget */
    size_t text_bytes;
};

plim_status npy_header_read(struct npy_header *out, struct file *file, struct budget *budget, plim_error *error);
/* Of an array that lies in a part of a file. */
plim_status npy_header_read_part(struct npy_header *out, struct file *file, uint64_t at, uint64_t bytes,
                                 struct budget *budget, plim_error *error);
plim_status npy_header_parse(struct npy_header *out, const struct npy_bytes *bytes, struct budget *budget,
                             plim_error *error);

#endif
