/* onednn_calls.h - what 2.x and 3.x of oneDNN call differently, under one name. onednn_2.c and onednn_3.c are the two
   ways; the headers that are there when this is built choose one. */
#ifndef CPU_ONEDNN_CALLS_H
#define CPU_ONEDNN_CALLS_H

#include "backends/cpu/onednn/onednn_library.h"

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t described; /* how the library takes a layout */
#else
typedef const dnnl_memory_desc_t *described;
#endif

/* How values lie in memory. All zero: nothing made yet. */
struct layout {
    dnnl_memory_desc_t of;
};

dnnl_status_t layout_make(struct layout *out, const struct onednn *o, int rank, dnnl_dims_t extents,
                          dnnl_format_tag_t tag);
/* A copy of one that a descriptor names; `out` is released first. */
dnnl_status_t layout_query(struct layout *out, const struct onednn *o, dnnl_primitive_desc_t descriptor,
                           dnnl_query_t what);
void layout_release(struct layout *layout, const struct onednn *o);
described layout_described(const struct layout *layout);

struct convolution_layouts {
    const struct layout *x, *weights, *bias, *y; /* bias: NULL without */
    dnnl_dims_t strides, gaps, before, after;
};

/* Backward directions want the forward descriptor as a hint. */
dnnl_status_t convolution_describe(dnnl_primitive_desc_t *out, const struct onednn *o, enum direction direction,
                                   const struct convolution_layouts *of, dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t forward);

dnnl_status_t post_relu(const struct onednn *o, dnnl_post_ops_t post);
dnnl_status_t post_add(const struct onednn *o, dnnl_post_ops_t post);

#endif
