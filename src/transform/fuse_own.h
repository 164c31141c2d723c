/* fuse_own.h - what the rewrites of fuse() share. */
#ifndef TRANSFORM_FUSE_OWN_H
#define TRANSFORM_FUSE_OWN_H

#include "ops/ops.h"
#include "transform/transform.h"

struct fusion {
    struct graph *graph;
    int *readers; /* by tensor id, of the tensors there were in the beginning */
    plim_error *error;
};

/* A value that one operand of one node reads, and nobody outside. */
static inline bool read_once(const struct fusion *fusion, const struct tensor *tensor)
{
    return tensor->kind == KIND_VALUE && fusion->readers[tensor->id] == 1;
}

/* Dense layers over many classes with their loss; after activations were taken in. */
plim_status fuse_vocabulary(struct fusion *fusion);

#endif
