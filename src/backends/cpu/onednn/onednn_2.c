/* onednn_2.c - oneDNN 2.x: layouts are structs, a description comes before the descriptor. */
#include "backends/cpu/onednn/onednn_calls.h"

dnnl_status_t layout_make(struct layout *out, const struct onednn *o, int rank, dnnl_dims_t extents,
                          dnnl_format_tag_t tag)
{
    return o->dnnl_memory_desc_init_by_tag(&out->of, rank, extents, dnnl_f32, tag);
}

dnnl_status_t layout_query(struct layout *out, const struct onednn *o, dnnl_primitive_desc_t descriptor,
                           dnnl_query_t what)
{
    out->of = *o->dnnl_primitive_desc_query_md(descriptor, what, 0);
    return dnnl_success;
}

void layout_release(struct layout *layout, const struct onednn *o)
{
    (void)layout, (void)o;
}

described layout_described(const struct layout *layout)
{
    return &layout->of;
}

static dnnl_status_t describe(dnnl_convolution_desc_t *out, const struct onednn *o, enum direction direction,
                              const struct convolution_layouts *of)
{
    const dnnl_memory_desc_t *bias = of->bias ? &of->bias->of : NULL;
    if (direction == BACKWARD_DATA)
        return o->dnnl_dilated_convolution_backward_data_desc_init(out, dnnl_convolution_direct, &of->x->of,
                                                                   &of->weights->of, &of->y->of, of->strides, of->gaps,
                                                                   of->before, of->after);
    if (direction == BACKWARD_WEIGHTS)
        return o->dnnl_dilated_convolution_backward_weights_desc_init(out, dnnl_convolution_direct, &of->x->of,
                                                                      &of->weights->of, bias, &of->y->of, of->strides,
                                                                      of->gaps, of->before, of->after);
    return o->dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, dnnl_convolution_direct,
                                                         &of->x->of, &of->weights->of, bias, &of->y->of, of->strides,
                                                         of->gaps, of->before, of->after);
}

dnnl_status_t convolution_describe(dnnl_primitive_desc_t *out, const struct onednn *o, enum direction direction,
                                   const struct convolution_layouts *of, dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t description;
    dnnl_status_t status = describe(&description, o, direction, of);
    if (status != dnnl_success)
        return status;
    return o->dnnl_primitive_desc_create(out, &description, attributes, o->engine, forward);
}

dnnl_status_t post_relu(const struct onednn *o, dnnl_post_ops_t post)
{
    return o->dnnl_post_ops_append_eltwise(post, 1.0f, dnnl_eltwise_relu, 0, 0);
}

dnnl_status_t post_add(const struct onednn *o, dnnl_post_ops_t post)
{
    return o->dnnl_post_ops_append_sum(post, 1.0f);
}
