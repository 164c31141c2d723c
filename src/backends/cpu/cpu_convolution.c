/* cpu_convolution.c - conv2d and its gradients over oneDNN. Weights are
   re-laid once an instruction (pack); their gradient comes out in the library's
   layout and is added to HWIO. */
#include "backends/cpu/cpu.h"

#include <stdio.h>

#include "backends/cpu/onednn.h"
#include "base/checked.h"
#include "base/status.h"
#include "base/workers.h"
#include "ops/ops.h"

/* size[]: where things lie in scratch after the library's own part. */
enum { LAYOUT_AT, BIAS_AT, BIAS_COUNT };

static void sizes_from(struct convolution_sizes *s, const struct conv2d_attributes *conv, const struct shape *x,
                       const struct shape *y)
{
    s->height = x->dim[1];
    s->width = x->dim[2];
    s->in = x->dim[3];
    s->rows = y->dim[1];
    s->columns = y->dim[2];
    s->out = y->dim[3];
    for (int i = 0; i < 2; i++)
        s->stride[i] = conv->stride[i];
    for (int i = 0; i < 4; i++)
        s->pad[i] = conv->pad[i];
    s->relu = conv->activation == ACTIVATION_RELU;
}

/* The library is opened by the first that needs it. */
static plim_status library_of(struct onednn **out, struct cpu_backend *backend, plim_error *error)
{
    if (!backend->onednn)
        TRY(onednn_open(&backend->onednn, backend->budget, error));
    *out = backend->onednn;
    return PLIM_OK;
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

/* PLIM_OK without a convolution when the library is not on this machine or does not offer this one: the
   reference takes the node. Any other trouble is an error, for the reference has other bits. */
static plim_status make(struct cpu_kernel *out, const struct cpu_request *request,
                        const struct convolution_sizes *sizes, plim_error *error)
{
    struct onednn *library;
    struct convolution *convolution;
    int64_t lengths[MOST_LENGTHS];
    if (request->short_count >= MOST_LENGTHS)
        return fail(error, PLIM_INTERNAL, "%s: %d lengths of slices", request->node->op->name, request->short_count);
    int count = add_length(lengths, 0, request->slice);
    for (int i = 0; i < request->short_count; i++)
        count = add_length(lengths, count, request->short_rows[i]);
    int contexts = request->backend->backend.threads > 0 ? request->backend->backend.threads : cpu_count();
    plim_status status = library_of(&library, request->backend, error);
    if (status == PLIM_OK)
        status = convolution_make(&convolution, library, sizes, lengths, count, contexts, error);
    if (status == PLIM_UNSUPPORTED)
        return PLIM_OK;
    TRY(status);
    note_version(request->backend);
    out->own = convolution;
    out->release = release;
    out->kernel.implementation = convolution_implementation(convolution);
    out->kernel.scratch_bytes = convolution_scratch_bytes(convolution);
    return PLIM_OK;
}

static bool is_f32(const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != TYPE_F32)
            return false;
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
static plim_status make_packed(struct cpu_kernel *out, const struct cpu_entry *entry, const struct cpu_request *request,
                               const struct convolution_sizes *sizes, plim_error *error)
{
    TRY(make(out, request, sizes, error));
    if (!out->own)
        return PLIM_OK;
    out->kernel.run = entry->run;
    out->kernel.pack = pack_weights;
    out->kernel.pack_units = 1;
    out->kernel.pack_bytes = convolution_layout_bytes(out->own);
    return PLIM_OK;
}

static plim_status make_forward(struct cpu_kernel *out, const struct cpu_entry *entry,
                                const struct cpu_request *request, plim_error *error)
{
    const struct node *node = request->node;
    struct convolution_sizes sizes = {.direction = FORWARD, .bias = node->input[2] != NULL};
    if (!is_f32(node))
        return PLIM_OK;
    const struct shape *k = &node->input[1]->shape;
    sizes.kernel[0] = k->dim[0];
    sizes.kernel[1] = k->dim[1];
    sizes_from(&sizes, node->attributes, &node->input[0]->shape, &node->output[0]->shape);
    return make_packed(out, entry, request, &sizes, error);
}

static void run_forward(const struct kernel *kernel, const struct call *call)
{
    const struct convolution_operands operands = {call->input[0], call->output[0], (void *)call->pack, call->input[2],
                                                  call->scratch};
    int64_t rows = cpu_rows(kernel, call);
    if (rows)
        note(kernel, convolution_run(cpu_kernel_of(kernel)->own, rows, &operands));
}

static plim_status make_input_gradient(struct cpu_kernel *out, const struct cpu_entry *entry,
                                       const struct cpu_request *request, plim_error *error)
{
    const struct node *node = request->node;
    const struct conv2d_gradient_attributes *attributes = node->attributes;
    struct convolution_sizes sizes = {.direction = BACKWARD_DATA,
                                      .kernel = {attributes->kernel[0], attributes->kernel[1]}};
    if (!is_f32(node))
        return PLIM_OK;
    sizes_from(&sizes, &attributes->conv, &node->output[0]->shape, &node->input[0]->shape);
    return make_packed(out, entry, request, &sizes, error);
}

static void run_input_gradient(const struct kernel *kernel, const struct call *call)
{
    const struct convolution_operands operands = {call->output[0], call->input[0], (void *)call->pack, NULL,
                                                  call->scratch};
    int64_t rows = cpu_rows(kernel, call);
    if (rows)
        note(kernel, convolution_run(cpu_kernel_of(kernel)->own, rows, &operands));
}

static plim_status make_weight_gradient(struct cpu_kernel *out, const struct cpu_entry *entry,
                                        const struct cpu_request *request, plim_error *error)
{
    const struct node *node = request->node;
    const struct conv2d_gradient_attributes *attributes = node->attributes;
    struct convolution_sizes sizes = {
        .direction = BACKWARD_WEIGHTS, .bias = true, .kernel = {attributes->kernel[0], attributes->kernel[1]}};
    if (!is_f32(node))
        return PLIM_OK;
    sizes_from(&sizes, &attributes->conv, &node->input[0]->shape, &node->input[1]->shape);
    TRY(make(out, request, &sizes, error));
    if (!out->own)
        return PLIM_OK;
    out->kernel.run = entry->run;
    out->size[BIAS_COUNT] = sizes.out;
    out->size[LAYOUT_AT] = (int64_t)round_up(out->kernel.scratch_bytes, 64);
    out->size[BIAS_AT] = out->size[LAYOUT_AT] + (int64_t)round_up(convolution_layout_bytes(out->own), 64);
    out->kernel.scratch_bytes = (size_t)out->size[BIAS_AT] + (size_t)sizes.out * sizeof(float);
    return PLIM_OK;
}

static void run_weight_gradient(const struct kernel *kernel, const struct call *call)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    char *scratch = call->scratch;
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
        to[i] = call->add ? to[i] + bias[i] : bias[i];
}

const struct cpu_entry cpu_convolution_entries[] = {
    {&op_conv2d, make_forward, run_forward},
    {&op_conv2d_input_gradient, make_input_gradient, run_input_gradient},
    {&op_conv2d_weight_gradient, make_weight_gradient, run_weight_gradient},
};
const int cpu_convolution_count = sizeof cpu_convolution_entries / sizeof *cpu_convolution_entries;
