/* onednn.c - convolutions through oneDNN 2.x, opened at run time.

   1. One thread: the OpenMP setting of the calling thread is 1 around every
      call that makes or runs something, and what it was before afterwards.
   2. We own primitives; the library's cache is off. Scratchpads are ours.
   3. A run allocates nothing of ours: memory objects are made beforehand,
      one set a context; a context is taken for the time of one call.

   NEEDSWORK: oneDNN 3.x has other names and opaque descriptors; a second table
   of functions would take it. Until then a machine with only 3.x has no fast
   convolution. */
#include "backends/cpu/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define LIBRARY_NAME "libdnnl.so.2"

#define FUNCTIONS(X)                                                                                                   \
    X(dnnl_set_primitive_cache_capacity)                                                                               \
    X(dnnl_engine_create)                                                                                              \
    X(dnnl_engine_destroy)                                                                                             \
    X(dnnl_stream_create)                                                                                              \
    X(dnnl_stream_destroy)                                                                                             \
    X(dnnl_memory_desc_init_by_tag)                                                                                    \
    X(dnnl_memory_desc_get_size)                                                                                       \
    X(dnnl_memory_create)                                                                                              \
    X(dnnl_memory_destroy)                                                                                             \
    X(dnnl_memory_set_data_handle)                                                                                     \
    X(dnnl_convolution_forward_desc_init)                                                                              \
    X(dnnl_convolution_backward_data_desc_init)                                                                        \
    X(dnnl_convolution_backward_weights_desc_init)                                                                     \
    X(dnnl_reorder_primitive_desc_create)                                                                              \
    X(dnnl_primitive_attr_create)                                                                                      \
    X(dnnl_primitive_attr_destroy)                                                                                     \
    X(dnnl_primitive_attr_set_scratchpad_mode)                                                                         \
    X(dnnl_primitive_attr_set_post_ops)                                                                                \
    X(dnnl_post_ops_create)                                                                                            \
    X(dnnl_post_ops_destroy)                                                                                           \
    X(dnnl_post_ops_append_eltwise)                                                                                    \
    X(dnnl_post_ops_append_sum)                                                                                        \
    X(dnnl_primitive_desc_create)                                                                                      \
    X(dnnl_primitive_desc_destroy)                                                                                     \
    X(dnnl_primitive_desc_query)                                                                                       \
    X(dnnl_primitive_desc_query_md)                                                                                    \
    X(dnnl_primitive_create)                                                                                           \
    X(dnnl_primitive_destroy)                                                                                          \
    X(dnnl_primitive_execute)

struct onednn {
    struct budget *budget;
    void *handle;
    dnnl_engine_t engine;
    void (*set_threads)(int);
    int (*threads)(void);
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
};

/* ---- the library -------------------------------------------------------- */

static bool find_functions(struct onednn *library)
{
    struct {
        const char *name;
        void **to;
    } functions[] = {
#define X(name) {#name, (void **)&library->name},
        FUNCTIONS(X)
#undef X
        /* Its own OpenMP; a library built without one needs neither. */
        {"omp_set_num_threads", (void **)&library->set_threads},
        {"omp_get_max_threads", (void **)&library->threads},
    };
    int count = sizeof functions / sizeof *functions;
    for (int i = 0; i < count; i++) {
        *functions[i].to = dlsym(library->handle, functions[i].name);
        if (!*functions[i].to && i < count - 2)
            return false;
    }
    return true;
}

plim_status onednn_open(struct onednn **out, struct budget *budget, plim_error *error)
{
    void *handle = dlopen(LIBRARY_NAME, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        return fail(error, PLIM_UNSUPPORTED, "%s is not on this machine", LIBRARY_NAME);
    struct onednn *library = budget_take(budget, TAG_PLANNER, sizeof *library);
    if (!library) {
        dlclose(handle);
        return budget_refused(budget, TAG_PLANNER, sizeof *library, error);
    }
    library->budget = budget;
    library->handle = handle;
    if (!find_functions(library) || library->dnnl_set_primitive_cache_capacity(0) != dnnl_success ||
        library->dnnl_engine_create(&library->engine, dnnl_cpu, 0) != dnnl_success) {
        onednn_close(library);
        return fail(error, PLIM_UNSUPPORTED, "%s does not work here", LIBRARY_NAME);
    }
    *out = library;
    return PLIM_OK;
}

void onednn_close(struct onednn *library)
{
    if (!library)
        return;
    if (library->engine)
        library->dnnl_engine_destroy(library->engine);
    /* Not dlclose: its OpenMP keeps data of threads that are still there. */
    budget_give(library->budget, TAG_PLANNER, library, sizeof *library);
}

static int threads_to_one(const struct onednn *library)
{
    if (!library->set_threads || !library->threads)
        return 0;
    int before = library->threads();
    if (before != 1)
        library->set_threads(1);
    return before;
}

static void threads_back(const struct onednn *library, int before)
{
    if (before > 1)
        library->set_threads(before);
}

/* ---- a convolution ------------------------------------------------------ */

/* One length of slices. */
struct length {
    int64_t samples;
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t x, y, scratch;
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
    dnnl_memory_desc_t weights, plain, bias;
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
        status = o->dnnl_post_ops_append_eltwise(post, 1.0f, dnnl_eltwise_relu, 0, 0);
    if (status == dnnl_success && sum)
        status = o->dnnl_post_ops_append_sum(post, 1.0f);
    if (status == dnnl_success && post)
        status = o->dnnl_primitive_attr_set_post_ops(*out, post);
    if (post)
        o->dnnl_post_ops_destroy(post);
    if (status != dnnl_success)
        o->dnnl_primitive_attr_destroy(*out);
    return status;
}

static bool data_descriptors(struct convolution *c, struct length *length)
{
    const struct convolution_sizes *s = &c->sizes;
    dnnl_dims_t x = {length->samples, s->in, s->height, s->width};
    dnnl_dims_t y = {length->samples, s->out, s->rows, s->columns};
    return c->library->dnnl_memory_desc_init_by_tag(&length->x, 4, x, dnnl_f32, dnnl_nhwc) == dnnl_success &&
           c->library->dnnl_memory_desc_init_by_tag(&length->y, 4, y, dnnl_f32, dnnl_nhwc) == dnnl_success;
}

static bool weight_descriptors(struct convolution *c)
{
    const struct convolution_sizes *s = &c->sizes;
    dnnl_dims_t weights = {s->out, s->in, s->kernel[0], s->kernel[1]}, bias = {s->out};
    const struct onednn *o = c->library;
    return o->dnnl_memory_desc_init_by_tag(&c->weights, 4, weights, dnnl_f32, dnnl_format_tag_any) == dnnl_success &&
           o->dnnl_memory_desc_init_by_tag(&c->plain, 4, weights, dnnl_f32, dnnl_hwio) == dnnl_success &&
           o->dnnl_memory_desc_init_by_tag(&c->bias, 1, bias, dnnl_f32, dnnl_a) == dnnl_success;
}

static dnnl_status_t describe(dnnl_convolution_desc_t *out, const struct convolution *c, const struct length *length,
                              enum direction direction)
{
    const struct onednn *o = c->library;
    const struct convolution_sizes *s = &c->sizes;
    const dnnl_memory_desc_t *bias = s->bias ? &c->bias : NULL;
    dnnl_dims_t strides = {s->stride[0], s->stride[1]};
    dnnl_dims_t before = {s->pad[0], s->pad[2]}, after = {s->pad[1], s->pad[3]};
    if (direction == BACKWARD_DATA)
        return o->dnnl_convolution_backward_data_desc_init(out, dnnl_convolution_direct, &length->x, &c->weights,
                                                           &length->y, strides, before, after);
    if (direction == BACKWARD_WEIGHTS)
        return o->dnnl_convolution_backward_weights_desc_init(out, dnnl_convolution_direct, &length->x, &c->weights,
                                                              bias, &length->y, strides, before, after);
    return o->dnnl_convolution_forward_desc_init(out, dnnl_forward_training, dnnl_convolution_direct, &length->x,
                                                 &c->weights, bias, &length->y, strides, before, after);
}

/* Backward descriptors want the forward one as a hint. */
static dnnl_status_t descriptor_make(dnnl_primitive_desc_t *out, const struct convolution *c,
                                     const struct length *length)
{
    const struct onednn *o = c->library;
    dnnl_convolution_desc_t description;
    dnnl_primitive_desc_t forward = NULL;
    dnnl_primitive_attr_t attributes;
    dnnl_status_t status = attributes_make(&attributes, o, c->sizes.relu, false);
    if (status != dnnl_success)
        return status;
    if (c->sizes.direction != FORWARD) {
        struct convolution any = *c;
        any.weights.format_kind = dnnl_format_kind_any;
        status = describe(&description, &any, length, FORWARD);
        if (status == dnnl_success)
            status = o->dnnl_primitive_desc_create(&forward, &description, NULL, o->engine, NULL);
    }
    if (status == dnnl_success)
        status = describe(&description, c, length, c->sizes.direction);
    if (status == dnnl_success)
        status = o->dnnl_primitive_desc_create(out, &description, attributes, o->engine, forward);
    if (forward)
        o->dnnl_primitive_desc_destroy(forward);
    o->dnnl_primitive_attr_destroy(attributes);
    return status;
}

/* The first length chooses the layout of the weights; the others obey. */
static bool length_make(struct convolution *c, struct length *length)
{
    const struct onednn *o = c->library;
    dnnl_primitive_desc_t descriptor;
    const char *name = "";
    if (!data_descriptors(c, length) || descriptor_make(&descriptor, c, length) != dnnl_success)
        return false;
    c->weights = *o->dnnl_primitive_desc_query_md(descriptor, roles[c->sizes.direction].weights, 0);
    length->scratch = *o->dnnl_primitive_desc_query_md(descriptor, dnnl_query_scratchpad_md, 0);
    size_t bytes = o->dnnl_memory_desc_get_size(&length->scratch);
    c->scratch_bytes = bytes > c->scratch_bytes ? bytes : c->scratch_bytes;
    o->dnnl_primitive_desc_query(descriptor, dnnl_query_impl_info_str, 0, &name);
    if (length == c->length)
        snprintf(c->implementation, sizeof c->implementation, "onednn %s", name);
    bool made = o->dnnl_primitive_create(&length->primitive, descriptor) == dnnl_success;
    o->dnnl_primitive_desc_destroy(descriptor);
    return made;
}

/* A reorder that wants no scratchpad: pack() has none to give. */
static bool reorder_make(dnnl_primitive_t *out, const struct convolution *c, const dnnl_memory_desc_t *from,
                         const dnnl_memory_desc_t *to, bool add)
{
    const struct onednn *o = c->library;
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t descriptor;
    if (attributes_make(&attributes, o, false, add) != dnnl_success)
        return false;
    dnnl_status_t status =
        o->dnnl_reorder_primitive_desc_create(&descriptor, from, o->engine, to, o->engine, attributes);
    o->dnnl_primitive_attr_destroy(attributes);
    if (status != dnnl_success)
        return false;
    bool plain =
        o->dnnl_memory_desc_get_size(o->dnnl_primitive_desc_query_md(descriptor, dnnl_query_scratchpad_md, 0)) == 0;
    bool made = plain && o->dnnl_primitive_create(out, descriptor) == dnnl_success;
    o->dnnl_primitive_desc_destroy(descriptor);
    return made;
}

static bool reorders_make(struct convolution *c)
{
    if (c->sizes.direction != BACKWARD_WEIGHTS)
        return reorder_make(&c->pack, c, &c->plain, &c->weights, false);
    return reorder_make(&c->unpack, c, &c->weights, &c->plain, false) &&
           reorder_make(&c->unpack_add, c, &c->weights, &c->plain, true);
}

static bool memory_make(dnnl_memory_t *out, const struct onednn *o, const dnnl_memory_desc_t *descriptor)
{
    return o->dnnl_memory_create(out, descriptor, o->engine, DNNL_MEMORY_NONE) == dnnl_success;
}

static bool context_make(struct context *context, const struct convolution *c)
{
    const struct onednn *o = c->library;
    atomic_flag_clear(&context->busy);
    bool made = o->dnnl_stream_create(&context->stream, o->engine, dnnl_stream_default_flags) == dnnl_success &&
                memory_make(&context->shared[MEMORY_WEIGHTS], o, &c->weights) &&
                memory_make(&context->shared[MEMORY_PLAIN], o, &c->plain) &&
                memory_make(&context->shared[MEMORY_BIAS], o, &c->bias);
    for (int i = 0; made && i < c->length_count; i++)
        made = memory_make(&context->by_length[i][MEMORY_X], o, &c->length[i].x) &&
               memory_make(&context->by_length[i][MEMORY_Y], o, &c->length[i].y) &&
               memory_make(&context->by_length[i][MEMORY_SCRATCH], o, &c->length[i].scratch);
    return made;
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

static bool build(struct convolution *c, const int64_t *lengths, int length_count)
{
    bool made = weight_descriptors(c);
    for (int i = 0; made && i < length_count; i++) {
        c->length[i].samples = lengths[i];
        c->length_count = i + 1;
        made = length_make(c, &c->length[i]);
    }
    made = made && reorders_make(c);
    if (made)
        c->layout_bytes = c->library->dnnl_memory_desc_get_size(&c->weights);
    for (int i = 0; made && i < c->context_count; i++)
        made = context_make(&c->context[i], c);
    return made;
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
    int before = threads_to_one(library);
    bool made = length_count <= MOST_LENGTHS && build(c, lengths, length_count);
    threads_back(library, before);
    if (!made) {
        convolution_free(c);
        return fail(error, PLIM_UNSUPPORTED, "oneDNN has no such convolution");
    }
    *out = c;
    return PLIM_OK;
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
        if (c->length[i].primitive)
            o->dnnl_primitive_destroy(c->length[i].primitive);
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

static bool point(const struct onednn *o, dnnl_memory_t memory, const void *to)
{
    return o->dnnl_memory_set_data_handle(memory, (void *)to) == dnnl_success;
}

static bool execute(const struct onednn *o, dnnl_primitive_t primitive, struct context *context,
                    const dnnl_exec_arg_t *arguments, int count)
{
    int before = threads_to_one(o);
    dnnl_status_t status = o->dnnl_primitive_execute(primitive, context->stream, count, arguments);
    threads_back(o, before);
    return status == dnnl_success;
}

static bool run_in(struct context *context, const struct convolution *c, int which,
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
    bool pointed = point(o, by_length[MEMORY_X], operands->x) && point(o, by_length[MEMORY_Y], operands->y) &&
                   point(o, shared[MEMORY_WEIGHTS], operands->weights) &&
                   point(o, by_length[MEMORY_SCRATCH], operands->scratch) &&
                   point(o, shared[MEMORY_BIAS], operands->bias);
    return pointed && execute(o, c->length[which].primitive, context, arguments, c->sizes.bias ? 5 : 4);
}

bool convolution_run(const struct convolution *c, int64_t samples, const struct convolution_operands *operands)
{
    int which = 0;
    while (which < c->length_count && c->length[which].samples != samples)
        which++;
    if (which == c->length_count)
        return false;
    struct context *context = take_context(c);
    bool done = run_in(context, c, which, operands);
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return done;
}

static bool reorder(const struct convolution *c, dnnl_primitive_t primitive, const void *layout, const void *plain,
                    bool to_plain)
{
    const struct onednn *o = c->library;
    struct context *context = take_context(c);
    dnnl_memory_t *shared = context->shared;
    dnnl_exec_arg_t arguments[2] = {
        {to_plain ? DNNL_ARG_FROM : DNNL_ARG_TO, shared[MEMORY_WEIGHTS]},
        {to_plain ? DNNL_ARG_TO : DNNL_ARG_FROM, shared[MEMORY_PLAIN]},
    };
    bool done = point(o, shared[MEMORY_WEIGHTS], layout) && point(o, shared[MEMORY_PLAIN], plain) &&
                execute(o, primitive, context, arguments, 2);
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return done;
}

bool convolution_pack(const struct convolution *c, void *layout, const float *hwio)
{
    return reorder(c, c->pack, layout, hwio, false);
}

bool convolution_unpack(const struct convolution *c, float *hwio, const void *layout, bool add)
{
    return reorder(c, add ? c->unpack_add : c->unpack, layout, hwio, true);
}
