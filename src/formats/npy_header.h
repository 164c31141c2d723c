/* npy_header.h - the header of an npy file, parsed by hand. */
#ifndef FORMATS_NPY_HEADER_H
#define FORMATS_NPY_HEADER_H

#include "base/file.h"
#include "graph/tensor.h"

struct npy_header {
    enum type type;
    bool big_endian;
    struct shape shape;  /* rank >= 1, no axis of length 0 */
    uint64_t at;         /* byte where the data begin */
    uint64_t data_bytes; /* shape times type; checked to be what the file has */
};

plim_status npy_header_read(struct npy_header *out, struct file *file, struct budget *budget, plim_error *error);

#endif
