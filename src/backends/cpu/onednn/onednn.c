/* onednn.c - convolutions through oneDNN, 2.x or 3.x (onednn_calls.h).

   1. One thread: the OpenMP setting of the calling thread is 1 around every
      call that makes or runs something, and what it was before afterwards.
   2. We own primitives; the library's cache, which a host may share, is off while
      we make them, and what it was before afterwards. Scratchpads are ours.
   3. A run allocates nothing of ours: memory objects are made beforehand,
      one set a context; a context is taken for the time of one call.
   4. The library does not survive a failed allocation: we ask for room
      before each call that makes something. */
#include "backends/cpu/onednn/onednn_calls.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/status.h"

/* ---- a convolution ------------------------------------------------------ */

/* One length of slices. */
struct length {
    int64_t samples;
    dnnl_primitive_t primitive;
    struct layout x, y, scratch;
};

enum shared_memory { MEMORY_WEIGHTS, MEMORY_PLAIN, MEMORY_BIAS, SHARED_COUNT };
enum length_memory { MEMORY_X, MEMORY_Y, MEMORY_SCRATCH, LENGTH_COUNT };

/* What one thread needs for a call. */
struct context {
    atomic_flag busy;
    dnnl_stream_t stream;
    dnnl_memory_t shared[SHARED_COUNT];
    dnnl_memory_t by_length[MOST_LENGTHS][LENGTH_COUNT];
};

struct convolution {
    struct onednn *library;
    struct convolution_sizes sizes;
    struct layout any, weights, plain, bias;   /* weights: any of the library's choice, then that choice */
    dnnl_primitive_t pack, unpack, unpack_add; /* those that the direction needs */
    struct length length[MOST_LENGTHS];
    int length_count;
    struct context *context;
    int context_count;
    size_t layout_bytes, scratch_bytes;
    char implementation[80];
};

static const struct {
    dnnl_query_t weights;
    int x, y, weights_argument, bias_argument;
} roles[] = {
    [FORWARD] = {dnnl_query_weights_md, DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS},
    [BACKWARD_DATA] = {dnnl_query_weights_md, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS},
    [BACKWARD_WEIGHTS] = {dnnl_query_diff_weights_md, DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS,
                          DNNL_ARG_DIFF_BIAS},
};

/* Attributes with our scratchpad and at most one post-op. */
static dnnl_status_t attributes_make(dnnl_primitive_attr_t *out, const struct onednn *o, bool relu, bool sum)
{
    dnnl_post_ops_t post = NULL;
    dnnl_status_t status = o->dnnl_primitive_attr_create(out);
    if (status != dnnl_success)
        return status;
    status = o->dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && (relu || sum))
        status = o->dnnl_post_ops_create(&post);
    if (status == dnnl_success && relu)
        status = post_relu(o, post);
    if (status == dnnl_success && sum)
        status = post_add(o, post);
    if (status == dnnl_success && post)
        status = o->dnnl_primitive_attr_set_post_ops(*out, post);
    if (post)
        o->dnnl_post_ops_destroy(post);
    if (status != dnnl_success)
        o->dnnl_primitive_attr_destroy(*out);
    return status;
}

/* Depth is an axis of its own only where there is one: kernels for two axes are faster and more. */
static int axes_of(const struct conv_sizes *s)
{
    return s->x[0] == 1 && s->k[0] == 1 && s->y[0] == 1 && !s->before[0] && !s->after[0] ? 2 : 3;
}

/* (n, channels, the axes there are). */
static void data_dims(dnnl_dims_t out, const struct conv_sizes *s, int64_t samples, int64_t channels,
                      const int64_t *extents)
{
    int axes = axes_of(s);
    out[0] = samples;
    out[1] = channels;
    for (int i = 0; i < axes; i++)
        out[2 + i] = extents[MOST_SPACE - axes + i];
}

static bool data_descriptors(struct convolution *c, struct length *length)
{
    const struct conv_sizes *s = &c->sizes.of;
    const struct onednn *o = c->library;
    int axes = axes_of(s);
    dnnl_format_tag_t tag = axes == 3 ? dnnl_ndhwc : dnnl_nhwc;
    dnnl_dims_t x, y;
    data_dims(x, s, length->samples, s->in, s->x);
    data_dims(y, s, length->samples, s->out, s->y);
    return layout_make(&length->x, o, axes + 2, x, tag) == dnnl_success &&
           layout_make(&length->y, o, axes + 2, y, tag) == dnnl_success;
}

/* (groups where there are several, out and in of a group, the axes). */
static bool weight_descriptors(struct convolution *c)
{
    const struct conv_sizes *s = &c->sizes.of;
    const struct onednn *o = c->library;
    int axes = axes_of(s), rank = 0;
    bool grouped = s->groups > 1;
    dnnl_format_tag_t plain = axes == 3 ? (grouped ? dnnl_dhwigo : dnnl_dhwio) : (grouped ? dnnl_hwigo : dnnl_hwio);
    dnnl_dims_t weights, bias = {s->out};
    if (grouped)
        weights[rank++] = s->groups;
    weights[rank++] = s->out / s->groups;
    weights[rank++] = s->in / s->groups;
    for (int i = 0; i < axes; i++)
        weights[rank++] = s->k[MOST_SPACE - axes + i];
    return layout_make(&c->any, o, rank, weights, dnnl_format_tag_any) == dnnl_success &&
           layout_make(&c->plain, o, rank, weights, plain) == dnnl_success &&
           layout_make(&c->bias, o, 1, bias, dnnl_a) == dnnl_success;
}

static void lay_out(struct convolution_layouts *out, const struct convolution *c, const struct length *length,
                    const struct layout *weights)
{
    const struct conv_sizes *s = &c->sizes.of;
    *out = (struct convolution_layouts){
        .x = &length->x, .weights = weights, .bias = c->sizes.bias ? &c->bias : NULL, .y = &length->y};
    for (int i = 0, axes = axes_of(s); i < axes; i++) {
        int from = MOST_SPACE - axes + i;
        out->strides[i] = s->stride[from];
        out->gaps[i] = s->gap[from];
        out->before[i] = s->before[from];
        out->after[i] = s->after[from];
    }
}

/* The first length is free to choose a layout of the weights, the others are not. */
static dnnl_status_t descriptor_make(dnnl_primitive_desc_t *out, const struct convolution *c,
                                     const struct length *length)
{
    const struct onednn *o = c->library;
    struct convolution_layouts of;
    dnnl_primitive_desc_t forward = NULL;
    dnnl_primitive_attr_t attributes;
    dnnl_status_t status = attributes_make(&attributes, o, c->sizes.relu, false);
    if (status != dnnl_success)
        return status;
    if (c->sizes.direction != FORWARD) {
        lay_out(&of, c, length, &c->any);
        status = convolution_describe(&forward, o, FORWARD, &of, NULL, NULL);
    }
    lay_out(&of, c, length, length == c->length ? &c->any : &c->weights);
    if (status == dnnl_success)
        status = convolution_describe(out, o, c->sizes.direction, &of, attributes, forward);
    if (forward)
        o->dnnl_primitive_desc_destroy(forward);
    o->dnnl_primitive_attr_destroy(attributes);
    return status;
}

/* What the descriptor says of its length, and for the first one of the whole convolution. */
static dnnl_status_t length_read(struct convolution *c, struct length *length, dnnl_primitive_desc_t descriptor)
{
    const struct onednn *o = c->library;
    const char *name = "";
    dnnl_status_t status = layout_query(&length->scratch, o, descriptor, dnnl_query_scratchpad_md);
    if (status != dnnl_success)
        return status;
    size_t bytes = o->dnnl_memory_desc_get_size(layout_described(&length->scratch));
    c->scratch_bytes = bytes > c->scratch_bytes ? bytes : c->scratch_bytes;
    if (length != c->length)
        return dnnl_success;
    o->dnnl_primitive_desc_query(descriptor, dnnl_query_impl_info_str, 0, &name);
    snprintf(c->implementation, sizeof c->implementation, "onednn %s", name);
    return layout_query(&c->weights, o, descriptor, roles[c->sizes.direction].weights);
}

/* Gives the descriptor up. */
static plim_status primitive_make(dnnl_primitive_t *out, const struct onednn *o, dnnl_primitive_desc_t descriptor)
{
    plim_status status = onednn_room();
    if (status == PLIM_OK)
        status = onednn_said(o->dnnl_primitive_create(out, descriptor));
    o->dnnl_primitive_desc_destroy(descriptor);
    return status;
}

static plim_status length_make(struct convolution *c, struct length *length)
{
    dnnl_primitive_desc_t descriptor;
    TRY(onednn_room());
    if (!data_descriptors(c, length))
        return PLIM_UNSUPPORTED;
    TRY(onednn_said(descriptor_make(&descriptor, c, length)));
    dnnl_status_t status = length_read(c, length, descriptor);
    if (status != dnnl_success) {
        c->library->dnnl_primitive_desc_destroy(descriptor);
        return onednn_said(status);
    }
    return primitive_make(&length->primitive, c->library, descriptor);
}

/* A reorder that wants no scratchpad: pack() has none to give. */
static plim_status reorder_make(dnnl_primitive_t *out, const struct convolution *c, const struct layout *from,
                                const struct layout *to, bool add)
{
    const struct onednn *o = c->library;
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t descriptor;
    TRY(onednn_room());
    TRY(onednn_said(attributes_make(&attributes, o, false, add)));
    dnnl_status_t status = o->dnnl_reorder_primitive_desc_create(&descriptor, layout_described(from), o->engine,
                                                                 layout_described(to), o->engine, attributes);
    o->dnnl_primitive_attr_destroy(attributes);
    TRY(onednn_said(status));
    if (o->dnnl_memory_desc_get_size(o->dnnl_primitive_desc_query_md(descriptor, dnnl_query_scratchpad_md, 0)) == 0)
        return primitive_make(out, o, descriptor);
    o->dnnl_primitive_desc_destroy(descriptor);
    return PLIM_UNSUPPORTED;
}

static plim_status reorders_make(struct convolution *c)
{
    if (c->sizes.direction != BACKWARD_WEIGHTS)
        return reorder_make(&c->pack, c, &c->plain, &c->weights, false);
    TRY(reorder_make(&c->unpack, c, &c->weights, &c->plain, false));
    return reorder_make(&c->unpack_add, c, &c->weights, &c->plain, true);
}

static plim_status memory_make(dnnl_memory_t *out, const struct onednn *o, const struct layout *layout)
{
    return onednn_said(o->dnnl_memory_create(out, layout_described(layout), o->engine, DNNL_MEMORY_NONE));
}

static plim_status context_make(struct context *context, const struct convolution *c)
{
    const struct onednn *o = c->library;
    atomic_flag_clear(&context->busy);
    TRY(onednn_said(o->dnnl_stream_create(&context->stream, o->engine, dnnl_stream_default_flags)));
    TRY(memory_make(&context->shared[MEMORY_WEIGHTS], o, &c->weights));
    TRY(memory_make(&context->shared[MEMORY_PLAIN], o, &c->plain));
    TRY(memory_make(&context->shared[MEMORY_BIAS], o, &c->bias));
    for (int i = 0; i < c->length_count; i++) {
        TRY(memory_make(&context->by_length[i][MEMORY_X], o, &c->length[i].x));
        TRY(memory_make(&context->by_length[i][MEMORY_Y], o, &c->length[i].y));
        TRY(memory_make(&context->by_length[i][MEMORY_SCRATCH], o, &c->length[i].scratch));
    }
    return PLIM_OK;
}

static void context_release(struct context *context, const struct onednn *o)
{
    for (int i = 0; i < SHARED_COUNT; i++)
        if (context->shared[i])
            o->dnnl_memory_destroy(context->shared[i]);
    for (int i = 0; i < MOST_LENGTHS; i++)
        for (int k = 0; k < LENGTH_COUNT; k++)
            if (context->by_length[i][k])
                o->dnnl_memory_destroy(context->by_length[i][k]);
    if (context->stream)
        o->dnnl_stream_destroy(context->stream);
}

static plim_status build(struct convolution *c, const int64_t *lengths, int length_count)
{
    if (!weight_descriptors(c))
        return PLIM_UNSUPPORTED;
    for (int i = 0; i < length_count; i++) {
        c->length[i].samples = lengths[i];
        c->length_count = i + 1;
        TRY(length_make(c, &c->length[i]));
    }
    TRY(reorders_make(c));
    c->layout_bytes = c->library->dnnl_memory_desc_get_size(layout_described(&c->weights));
    TRY(onednn_room());
    for (int i = 0; i < c->context_count; i++)
        TRY(context_make(&c->context[i], c));
    return PLIM_OK;
}

plim_status convolution_make(struct convolution **out, struct onednn *library, const struct convolution_sizes *sizes,
                             const int64_t *lengths, int length_count, int contexts, plim_error *error)
{
    struct budget *budget = library->budget;
    struct convolution *c = budget_take(budget, TAG_PLANNER, sizeof *c);
    if (!c)
        return budget_refused(budget, TAG_PLANNER, sizeof *c, error);
    c->library = library;
    c->sizes = *sizes;
    c->context_count = contexts;
    c->context = budget_take_array(budget, TAG_PLANNER, (size_t)contexts, sizeof *c->context);
    if (!c->context) {
        convolution_free(c);
        return budget_refused(budget, TAG_PLANNER, (size_t)contexts * sizeof *c->context, error);
    }
    struct onednn_host host = onednn_host_leave(library);
    plim_status status = length_count <= MOST_LENGTHS ? build(c, lengths, length_count) : PLIM_INTERNAL;
    onednn_host_back(library, host);
    if (status != PLIM_OK) {
        convolution_free(c);
        return onednn_explain(status, error);
    }
    *out = c;
    return PLIM_OK;
}

static void length_release(struct length *length, const struct onednn *o)
{
    if (length->primitive)
        o->dnnl_primitive_destroy(length->primitive);
    layout_release(&length->x, o);
    layout_release(&length->y, o);
    layout_release(&length->scratch, o);
}

void convolution_free(struct convolution *c)
{
    if (!c)
        return;
    const struct onednn *o = c->library;
    dnnl_primitive_t reorders[] = {c->pack, c->unpack, c->unpack_add};
    for (int i = 0; c->context && i < c->context_count; i++)
        context_release(&c->context[i], o);
    for (int i = 0; i < 3; i++)
        if (reorders[i])
            o->dnnl_primitive_destroy(reorders[i]);
    for (int i = 0; i < c->length_count; i++)
        length_release(&c->length[i], o);
    struct layout *layouts[] = {&c->any, &c->weights, &c->plain, &c->bias};
    for (int i = 0; i < 4; i++)
        layout_release(layouts[i], o);
    if (c->context)
        budget_give(o->budget, TAG_PLANNER, c->context, (size_t)c->context_count * sizeof *c->context);
    budget_give(o->budget, TAG_PLANNER, c, sizeof *c);
}

const char *convolution_implementation(const struct convolution *convolution)
{
    return convolution->implementation;
}

size_t convolution_layout_bytes(const struct convolution *convolution)
{
    return convolution->layout_bytes;
}

size_t convolution_scratch_bytes(const struct convolution *convolution)
{
    return convolution->scratch_bytes;
}

/* ---- running ------------------------------------------------------------ */

/* A free context. There are as many as workers: waiting is for callers who
   promised fewer threads than they use. */
static struct context *take_context(const struct convolution *c)
{
    for (;; sched_yield())
        for (int i = 0; i < c->context_count; i++)
            if (!atomic_flag_test_and_set_explicit(&c->context[i].busy, memory_order_acquire))
                return &c->context[i];
}

static plim_status point(const struct onednn *o, dnnl_memory_t memory, const void *to)
{
    return onednn_said(o->dnnl_memory_set_data_handle(memory, (void *)to));
}

static plim_status execute(const struct onednn *o, dnnl_primitive_t primitive, struct context *context,
                           const dnnl_exec_arg_t *arguments, int count)
{
    int before = onednn_threads_to_one(o);
    dnnl_status_t status = o->dnnl_primitive_execute(primitive, context->stream, count, arguments);
    onednn_threads_back(o, before);
    return onednn_said(status);
}

static plim_status run_in(struct context *context, const struct convolution *c, int which,
                          const struct convolution_operands *operands)
{
    const struct onednn *o = c->library;
    dnnl_memory_t *by_length = context->by_length[which], *shared = context->shared;
    dnnl_exec_arg_t arguments[5] = {
        {roles[c->sizes.direction].x, by_length[MEMORY_X]},
        {roles[c->sizes.direction].y, by_length[MEMORY_Y]},
        {roles[c->sizes.direction].weights_argument, shared[MEMORY_WEIGHTS]},
        {DNNL_ARG_SCRATCHPAD, by_length[MEMORY_SCRATCH]},
        {roles[c->sizes.direction].bias_argument, shared[MEMORY_BIAS]},
    };
    TRY(point(o, by_length[MEMORY_X], operands->x));
    TRY(point(o, by_length[MEMORY_Y], operands->y));
    TRY(point(o, shared[MEMORY_WEIGHTS], operands->weights));
    TRY(point(o, by_length[MEMORY_SCRATCH], operands->scratch));
    TRY(point(o, shared[MEMORY_BIAS], operands->bias));
    return execute(o, c->length[which].primitive, context, arguments, c->sizes.bias ? 5 : 4);
}

plim_status convolution_run(const struct convolution *c, int64_t samples, const struct convolution_operands *operands)
{
    int which = 0;
    while (which < c->length_count && c->length[which].samples != samples)
        which++;
    if (which == c->length_count)
        return PLIM_INTERNAL;
    struct context *context = take_context(c);
    plim_status status = run_in(context, c, which, operands);
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return status;
}

static plim_status reorder_in(struct context *context, const struct onednn *o, dnnl_primitive_t primitive,
                              const void *layout, const void *plain, bool to_plain)
{
    dnnl_memory_t *shared = context->shared;
    dnnl_exec_arg_t arguments[2] = {
        {to_plain ? DNNL_ARG_FROM : DNNL_ARG_TO, shared[MEMORY_WEIGHTS]},
        {to_plain ? DNNL_ARG_TO : DNNL_ARG_FROM, shared[MEMORY_PLAIN]},
    };
    TRY(point(o, shared[MEMORY_WEIGHTS], layout));
    TRY(point(o, shared[MEMORY_PLAIN], plain));
    return execute(o, primitive, context, arguments, 2);
}

static plim_status reorder(const struct convolution *c, dnnl_primitive_t primitive, const void *layout,
                           const void *plain, bool to_plain)
{
    struct context *context = take_context(c);
    plim_status status = reorder_in(context, c->library, primitive, layout, plain, to_plain);
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return status;
}

plim_status convolution_pack(const struct convolution *c, void *layout, const float *hwio)
{
    return reorder(c, c->pack, layout, hwio, false);
}

plim_status convolution_unpack(const struct convolution *c, float *hwio, const void *layout, bool add)
{
    return reorder(c, add ? c->unpack_add : c->unpack, layout, hwio, true);
}
