/* onednn.h - the one door to oneDNN: convolutions for one thread.

   The library is opened at run time, when the first convolution is made, and
   not at all without one. Its types do not leave onednn*.c. */
#ifndef CPU_ONEDNN_H
#define CPU_ONEDNN_H

#include "base/memory/budget.h"
#include "ops/products/convolution.h"

struct onednn;
/* What the library takes of a process, with the primitives of a usual model; 8.3 to 9.3 MiB were measured. */
#define ONEDNN_BYTES ((uint64_t)10 << 20)

/* PLIM_UNSUPPORTED when there is no such library here, PLIM_OVER_BUDGET when the budget has no room for it; when there
   is one that cannot be opened, PLIM_NO_MEMORY or PLIM_IO. */
plim_status onednn_open(struct onednn **out, struct budget *budget, plim_error *error);
void onednn_close(struct onednn *library);                /* NULL is fine */
const char *onednn_version(const struct onednn *library); /* "2.6.3" */

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS };

/* Data is [n, ..., channels], kernels [..., in / groups, out]; a depth of 1 everywhere is a convolution of two axes. */
struct convolution_sizes {
    enum direction direction;
    struct conv_sizes of;
    bool bias, relu;
};

#define MOST_LENGTHS 8

/* One convolution for slices of several lengths, all with weights in one
   layout of the library's choice. */
struct convolution;
/* lengths[0] chooses the layout. `contexts`: how many threads may run it at
   once without waiting for one another. PLIM_UNSUPPORTED when the library does not
   offer it, and for no other reason. */
plim_status convolution_make(struct convolution **out, struct onednn *library, const struct convolution_sizes *sizes,
                             const int64_t *lengths, int length_count, int contexts, plim_error *error);
void convolution_free(struct convolution *convolution);

const char *convolution_implementation(const struct convolution *convolution); /* "onednn jit:avx512_core" */
size_t convolution_layout_bytes(const struct convolution *convolution);
size_t convolution_scratch_bytes(const struct convolution *convolution);

struct convolution_operands {
    void *x, *y;   /* or their gradients */
    void *weights; /* in the library's layout; BACKWARD_WEIGHTS writes them */
    void *bias;    /* NULL without */
    void *scratch; /* convolution_scratch_bytes */
};

/* Runs a slice of `samples`, one of the lengths. */
plim_status convolution_run(const struct convolution *convolution, int64_t samples,
                            const struct convolution_operands *operands);
/* HWIO into the library's layout, and back: over what is there, or added to it. */
plim_status convolution_pack(const struct convolution *convolution, void *layout, const float *hwio);
plim_status convolution_unpack(const struct convolution *convolution, float *hwio, const void *layout, bool add);

#endif
