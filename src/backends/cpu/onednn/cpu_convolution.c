/* cpu_convolution.c - convolutions and their gradients over oneDNN. Weights are
   re-laid once an instruction (pack); their gradient comes out in the library's
   layout and is added to HWIO. */
#include "backends/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

#include "backends/cpu/onednn/onednn.h"
#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "base/status.h"
#include "base/threads/workers.h"
#include "ops/ops.h"

/* size[]: where things lie in scratch after the library's own part. */
enum { LAYOUT_AT, BIAS_AT, BIAS_COUNT };

/* The library is opened by the first that needs it. One that the budget has no room for is as one that is not there,
   but for missing_bytes. */
static plim_status library_of(struct onednn **out, struct cpu_backend *backend, plim_error *error)
{
    if (backend->backend.missing_bytes)
        return PLIM_UNSUPPORTED;
    plim_status status = backend->onednn ? PLIM_OK : onednn_open(&backend->onednn, backend->budget, error);
    if (status == PLIM_OVER_BUDGET) {
        backend->backend.missing_bytes = ONEDNN_BYTES;
        return PLIM_UNSUPPORTED;
    }
    *out = backend->onednn;
    return status;
}

static void release(struct cpu_backend *backend, void *own)
{
    (void)backend;
    convolution_free(own);
}

static int add_length(int64_t *lengths, int count, int64_t rows)
{
    for (int i = 0; i < count; i++)
        if (lengths[i] == rows)
            return count;
    if (rows < 1)
        return count;
    lengths[count] = rows;
    return count + 1;
}

/* Bits are those of this version of the library from now on. */
static void note_version(struct cpu_backend *backend)
{
    snprintf(backend->features, sizeof backend->features, "%.8s onednn-%.14s", backend->variant->name,
             onednn_version(backend->onednn));
}

#define SLOW "onednn ref" /* the library's own reference: our columns are many times faster */

/* PLIM_UNSUPPORTED when the library is not on this machine or does not offer this one, or not a fast one: own kernels
   take the node. Any other trouble is an error, for they have other bits. */
static plim_status make_convolution(struct convolution **out, struct cpu_request *request,
                                    const struct convolution_sizes *sizes)
{
    struct onednn *library;
    int64_t lengths[MOST_LENGTHS];
    if (request->asked->short_count >= MOST_LENGTHS)
        return fail(request->error, PLIM_INTERNAL, "%s: %d lengths of slices", request->asked->node->op->name,
                    request->asked->short_count);
    int count = add_length(lengths, 0, request->asked->slice);
    for (int i = 0; i < request->asked->short_count; i++)
        count = add_length(lengths, count, request->asked->short_rows[i]);
    int contexts = request->backend->backend.threads > 0 ? request->backend->backend.threads : cpu_count();
    TRY(library_of(&library, request->backend, request->error));
    TRY(convolution_make(out, library, sizes, lengths, count, contexts, request->error));
    if (strncmp(convolution_implementation(*out), SLOW, strlen(SLOW)) != 0)
        return PLIM_OK;
    convolution_free(*out);
    return PLIM_UNSUPPORTED;
}

/* Fills in sizes->of. */
static bool make(struct cpu_kernel *out, struct cpu_request *request, struct convolution_sizes *sizes)
{
    struct convolution *convolution;
    if (!cpu_all_f32(request->asked->node))
        return false;
    conv_sizes_of(&sizes->of, request->asked->node);
    plim_status status = make_convolution(&convolution, request, sizes);
    request->status = status == PLIM_UNSUPPORTED ? PLIM_OK : status;
    if (status != PLIM_OK)
        return false;
    note_version(request->backend);
    out->own = convolution;
    out->release = release;
    out->kernel.implementation = convolution_implementation(convolution);
    out->kernel.scratch_bytes = convolution_scratch_bytes(convolution);
    return true;
}

static void note(const struct kernel *kernel, plim_status status)
{
    if (status != PLIM_OK)
        backend_fail(&cpu_kernel_of(kernel)->backend->backend, status);
}

static void pack_weights(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    (void)unit;
    note(kernel, convolution_pack(cpu_kernel_of(kernel)->own, pack, whole->input[1]));
}

/* Forward and the gradient of x: weights come packed. */
static bool make_packed(struct cpu_kernel *out, struct cpu_request *request, struct convolution_sizes *sizes)
{
    if (!make(out, request, sizes))
        return false;
    cpu_set_pack(out, pack_weights, 1, convolution_layout_bytes(out->own));
    return true;
}

static bool make_forward(struct cpu_kernel *out, const struct node *node, struct cpu_request *request)
{
    const struct conv_attributes *conv = node->attributes;
    struct convolution_sizes sizes = {
        .direction = FORWARD, .bias = node->input[2] != NULL, .relu = conv->activation == ACTIVATION_RELU};
    return make_packed(out, request, &sizes);
}

static void run_forward(const struct kernel *kernel, const struct call *call)
{
    const struct convolution_operands operands = {call->input[0], call->output[0], (void *)call->pack, call->input[2],
                                                  call->scratch};
    int64_t rows = cpu_rows(kernel, call);
    if (rows)
        note(kernel, convolution_run(cpu_kernel_of(kernel)->own, rows, &operands));
}

/* size[BIAS_AT]: elements of dx a sample. */
static bool make_input_gradient(struct cpu_kernel *out, const struct node *node, struct cpu_request *request)
{
    struct convolution_sizes sizes = {.direction = BACKWARD_DATA};
    bool made = make_packed(out, request, &sizes);
    out->size[BIAS_AT] = shape_row(&node->output[0]->shape);
    out->size[BIAS_COUNT] = sizes.of.in;
    return made;
}

/* The library's backward takes no bias: it is added while dx is in the cache. */
static void add_bias(float *restrict x, const float *restrict bias, int64_t channels, int64_t count)
{
    for (int64_t i = 0; i < count; i += channels)
        for (int64_t c = 0; c < channels; c++)
            x[i + c] += bias[c];
}

static void run_input_gradient(const struct kernel *kernel, const struct call *call)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    const struct convolution_operands operands = {call->output[0], call->input[0], (void *)call->pack, NULL,
                                                  call->scratch};
    int64_t rows = cpu_rows(kernel, call);
    if (!rows)
        return;
    plim_status status = convolution_run(own->own, rows, &operands);
    if (status == PLIM_OK && call->input[2])
        add_bias(call->output[0], call->input[2], own->size[BIAS_COUNT], rows * own->size[BIAS_AT]);
    note(kernel, status);
}

static bool make_weight_gradient(struct cpu_kernel *out, const struct node *node, struct cpu_request *request)
{
    const struct conv_gradient_attributes *attributes = node->attributes;
    struct convolution_sizes sizes = {.direction = BACKWARD_WEIGHTS, .bias = attributes->bias};
    if (!make(out, request, &sizes))
        return false;
    out->size[BIAS_COUNT] = sizes.of.out;
    out->size[LAYOUT_AT] = (int64_t)round_up(out->kernel.scratch_bytes, 64);
    out->size[BIAS_AT] = out->size[LAYOUT_AT] + (int64_t)round_up(convolution_layout_bytes(out->own), 64);
    out->kernel.scratch_bytes = (size_t)out->size[BIAS_AT] + (size_t)sizes.of.out * sizeof(float);
    return true;
}

static void run_weight_gradient(const struct kernel *kernel, const struct call *call)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    char *scratch = call->scratch;
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    float *bias = (float *)(scratch + own->size[BIAS_AT]), *to = call->output[1];
    const struct convolution_operands operands = {call->input[0], call->input[1], scratch + own->size[LAYOUT_AT], bias,
                                                  scratch};
    int64_t rows = cpu_rows(kernel, call);
    if (!rows) {
        call->node->op->reference(call); /* no rows: zeros, or nothing added */
        return;
    }
    plim_status status = convolution_run(own->own, rows, &operands);
    if (status == PLIM_OK)
        status = convolution_unpack(own->own, call->output[0], operands.weights, call->add);
    note(kernel, status);
    for (int64_t i = 0; status == PLIM_OK && i < own->size[BIAS_COUNT]; i++)
        to[i] = (call->add ? to[i] : 0) + (attributes->bias ? bias[i] : 0);
}

#define FAMILY(name)                                                                                                   \
    {&op_##name, make_forward, run_forward}, {&op_##name##_input_gradient, make_input_gradient, run_input_gradient},   \
    {                                                                                                                  \
        &op_##name##_weight_gradient, make_weight_gradient, run_weight_gradient                                        \
    }

const struct cpu_entry cpu_convolution_entries[] = {
    FAMILY(conv1d), FAMILY(conv2d), FAMILY(conv3d), FAMILY(depthwise_conv1d), FAMILY(depthwise_conv2d),
};
const int cpu_convolution_count = COUNT(cpu_convolution_entries);
