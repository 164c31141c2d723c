/* onednn_3.c - oneDNN 3.x: layouts are the library's objects, a descriptor is made in one call. */
#include "backends/cpu/onednn/onednn_calls.h"

dnnl_status_t layout_make(struct layout *out, const struct onednn *o, int rank, dnnl_dims_t extents,
                          dnnl_format_tag_t tag)
{
    return o->dnnl_memory_desc_create_with_tag(&out->of, rank, extents, dnnl_f32, tag);
}

dnnl_status_t layout_query(struct layout *out, const struct onednn *o, dnnl_primitive_desc_t descriptor,
                           dnnl_query_t what)
{
    dnnl_memory_desc_t copy;
    dnnl_status_t status = o->dnnl_memory_desc_clone(&copy, o->dnnl_primitive_desc_query_md(descriptor, what, 0));
    if (status != dnnl_success)
        return status;
    layout_release(out, o);
    out->of = copy;
    return dnnl_success;
}

void layout_release(struct layout *layout, const struct onednn *o)
{
    if (layout->of)
        o->dnnl_memory_desc_destroy(layout->of);
    layout->of = NULL;
}

described layout_described(const struct layout *layout)
{
    return layout->of;
}

dnnl_status_t convolution_describe(dnnl_primitive_desc_t *out, const struct onednn *o, enum direction direction,
                                   const struct convolution_layouts *of, dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t forward)
{
    dnnl_memory_desc_t x = of->x->of, weights = of->weights->of, y = of->y->of, bias = of->bias ? of->bias->of : NULL;
    if (direction == BACKWARD_DATA)
        return o->dnnl_convolution_backward_data_primitive_desc_create(out, o->engine, dnnl_convolution_direct, x,
                                                                       weights, y, of->strides, of->gaps, of->before,
                                                                       of->after, forward, attributes);
    if (direction == BACKWARD_WEIGHTS)
        return o->dnnl_convolution_backward_weights_primitive_desc_create(out, o->engine, dnnl_convolution_direct, x,
                                                                          weights, bias, y, of->strides, of->gaps,
                                                                          of->before, of->after, forward, attributes);
    return o->dnnl_convolution_forward_primitive_desc_create(out, o->engine, dnnl_forward_training,
                                                             dnnl_convolution_direct, x, weights, bias, y, of->strides,
                                                             of->gaps, of->before, of->after, attributes);
}

dnnl_status_t post_relu(const struct onednn *o, dnnl_post_ops_t post)
{
    return o->dnnl_post_ops_append_eltwise(post, dnnl_eltwise_relu, 0, 0);
}

dnnl_status_t post_add(const struct onednn *o, dnnl_post_ops_t post)
{
    return o->dnnl_post_ops_append_sum(post, 1.0f, 0, dnnl_data_type_undef);
}
