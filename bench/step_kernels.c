/* step_kernels.c - how long the kernels of the training steps take: the MLP at
   batches of 32 and 10,000, the CNN at 32, in slices, on one and more threads.

   usage: bench-step-kernels [threads] (ninja -C build bench-step-kernels). Prints the least of several runs, in
   microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/threads/clock.h"
#include "base/threads/workers.h"
#include "ops/ops.h"

#define MOST_UNITS 4096
#define RUNS       15

struct bench {
    struct budget *budget;
    struct backend *backend;
    struct team *team;
    int threads;
};

/* One node with bytes behind its operands. */
struct subject {
    struct graph graph;
    struct node *node;
    void *data[16];
    size_t bytes[16];
};

struct work {
    const struct kernel *kernel;
    struct call call[MOST_UNITS];
    char *scratch[64]; /* a worker's: the kernel's bytes, then its partial sums */
    bool sum[MOST_OUTPUTS];
};
#define PARTIAL_BYTES ((size_t)8 << 20)

static void must(plim_status status, const plim_error *error)
{
    if (status == PLIM_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void *take(struct bench *bench, size_t bytes)
{
    void *block = budget_take(bench->budget, TAG_SCRATCH, bytes);
    must(block ? PLIM_OK : PLIM_NO_MEMORY, &(plim_error){.message = "no memory"});
    return block;
}

static void subject_fill(struct subject *subject, struct bench *bench)
{
    plim_error error = {0};
    must(graph_check(&subject->graph, &error), &error);
    subject->node = subject->graph.node[subject->graph.node_count - 1];
    for (int t = 0; t < subject->graph.tensor_count; t++) {
        const struct tensor *tensor = subject->graph.tensor[t];
        int64_t count = shape_count(&tensor->shape);
        subject->bytes[t] = (size_t)count * type_bytes(tensor->type);
        subject->data[t] = take(bench, subject->bytes[t]);
        for (int64_t i = 0; i < count; i++)
            element_set(subject->data[t], tensor->type, i,
                        tensor->type == TYPE_F32   ? (double)((i * 7919) % 1000) / 1000 - 0.4
                        : tensor->type == TYPE_F64 ? 1.0 /* the control of a step: it applies */
                                                   : (double)(i % 2));
    }
}

static void subject_release(struct subject *subject, struct bench *bench)
{
    for (int t = 0; t < subject->graph.tensor_count; t++)
        budget_give(bench->budget, TAG_SCRATCH, subject->data[t], subject->bytes[t]);
    graph_release(&subject->graph);
}

static void *operand(const struct subject *subject, const struct tensor *tensor, enum part part, int64_t begin)
{
    if (!tensor)
        return NULL;
    int64_t row = shape_row(&tensor->shape) * (int64_t)type_bytes(tensor->type);
    return (char *)subject->data[tensor->id] + (part == PART_CUT ? begin * row : 0);
}

static void call_fill(struct call *call, const struct subject *subject, int64_t begin, int64_t end)
{
    struct cut cut;
    const struct node *node = subject->node;
    node->op->cut(&cut, node);
    *call = (struct call){.node = node, .begin = begin, .end = end, .count = subject->graph.batch};
    for (int i = 0; i < node->input_count; i++)
        call->input[i] = operand(subject, node->input[i], cut.input[i], begin);
    for (int i = 0; i < node->output_count; i++)
        call->output[i] = operand(subject, node->output[i], cut.output[i], begin);
}

static void run_unit(void *context, int unit, int worker)
{
    struct work *work = context;
    struct call *call = &work->call[unit];
    call->scratch = work->scratch[worker];
    for (int k = 0; k < MOST_OUTPUTS; k++)
        if (work->sum[k])
            call->output[k] = work->scratch[worker] + work->kernel->scratch_bytes + (size_t)k * PARTIAL_BYTES;
    work->kernel->run(work->kernel, call);
}

static double time_slices(struct bench *bench, struct work *work, const struct subject *subject, int64_t slice,
                          void *pack)
{
    struct cut cut;
    int units = 0;
    double best = 1e30;
    subject->node->op->cut(&cut, subject->node);
    for (int k = 0; k < MOST_OUTPUTS; k++) /* to partial sums, as in a plan */
        work->sum[k] = k < subject->node->output_count && cut.output[k] == PART_SUM;
    for (int64_t begin = 0; begin < cut.extent && units < MOST_UNITS; begin += slice) {
        struct call *call = &work->call[units++];
        call_fill(call, subject, begin, begin + slice < cut.extent ? begin + slice : cut.extent);
        call->pack = pack;
        call->add = begin > 0;
    }
    int again = cut.work > 2e7 ? 1 : (int)(2e7 / cut.work) + 1;
    for (int run = 0; run < RUNS; run++) {
        uint64_t from = clock_ns();
        for (int i = 0; i < again; i++) {
            if (work->kernel->pack)
                work->kernel->pack(work->kernel, &work->call[0], 0, pack);
            team_run(bench->team, units, run_unit, work);
        }
        double ns = (double)(clock_ns() - from) / again;
        best = ns < best ? ns : best;
    }
    return best;
}

static void measure(struct bench *bench, const char *name, struct subject *subject, int64_t slice)
{
    static struct work work;
    plim_error error = {0};
    struct cut cut;
    subject_fill(subject, bench);
    subject->node->op->cut(&cut, subject->node);
    slice = slice && slice < cut.extent ? slice : cut.extent;
    int64_t rest = cut.extent % slice;
    const struct kernel_request request = {
        .node = subject->node, .slice = slice, .short_rows = &rest, .short_count = 1};
    must(cpu_backend.prepare(&work.kernel, bench->backend, &request, &error), &error);
    void *pack = take(bench, work.kernel->pack_bytes);
    size_t room = work.kernel->scratch_bytes + MOST_OUTPUTS * PARTIAL_BYTES;
    for (int i = 0; i < bench->threads; i++)
        work.scratch[i] = take(bench, room);
    double ns = time_slices(bench, &work, subject, slice, pack);
    printf("%-34s slice %5lld %10.2f us %7.1f G/s  %s, scratch %zu, pack %zu\n", name, (long long)slice, ns / 1000,
           cut.work / ns, work.kernel->implementation, work.kernel->scratch_bytes, work.kernel->pack_bytes);
    for (int i = 0; i < bench->threads; i++)
        budget_give(bench->budget, TAG_SCRATCH, work.scratch[i], room);
    budget_give(bench->budget, TAG_SCRATCH, pack, work.kernel->pack_bytes);
    subject_release(subject, bench);
}

/* ---- subjects ------------------------------------------------------------ */

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static struct graph *begin(struct subject *subject, struct bench *bench, int64_t batch)
{
    *subject = (struct subject){0};
    graph_init(&subject->graph, bench->budget, batch);
    return &subject->graph;
}

static void matmul(struct bench *bench, const char *name, int64_t batch, int64_t in, int64_t out, bool transposed,
                   int64_t slice)
{
    struct subject subject;
    struct graph *graph = begin(&subject, bench, batch);
    struct matmul_attributes attributes = {transposed, transposed ? ACTIVATION_NONE : ACTIVATION_RELU, 0};
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(batch, in));
    struct tensor *w = graph_weight(graph, "w", TYPE_F32, transposed ? SHAPE(out, in) : SHAPE(in, out), true);
    struct tensor *b = transposed ? NULL : graph_weight(graph, "b", TYPE_F32, SHAPE(out), true);
    graph_add(graph, &op_matmul, (struct tensor *[]){x, w, b}, 3, &attributes, sizeof attributes);
    measure(bench, name, &subject, slice);
}

/* An op of two batched tensors of these widths. */
static void pair(struct bench *bench, const char *name, const struct op *op, int64_t batch, int64_t a, int64_t b,
                 int64_t slice)
{
    struct subject subject;
    struct graph *graph = begin(&subject, bench, batch);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(batch, a));
    struct tensor *y = b ? graph_input(graph, "y", 1, TYPE_F32, SHAPE(batch, b)) : NULL;
    struct tensor *d =
        op == &op_sigmoid_crossentropy_gradient ? graph_input(graph, "d", 2, TYPE_F32, SHAPE(batch)) : NULL;
    graph_add(graph, op, (struct tensor *[]){x, y, d}, 1 + (b > 0) + (d != NULL), NULL, 0);
    measure(bench, name, &subject, slice);
}

static void adam(struct bench *bench, const char *name, int64_t rows, int64_t columns, int64_t slice)
{
    struct subject subject;
    struct graph *graph = begin(&subject, bench, 1);
    struct update_attributes attributes = {.beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7};
    struct shape shape = SHAPE(rows, columns);
    struct tensor *inputs[] = {
        graph_weight(graph, "w", TYPE_F32, shape, true),
        graph_weight(graph, "g", TYPE_F32, shape, false),
        graph_weight(graph, "control", TYPE_F64, SHAPE(CONTROL_COUNT), false),
        graph_state(graph, "m", TYPE_F32, shape),
        graph_state(graph, "v", TYPE_F32, shape),
    };
    graph_add(graph, &op_adam, inputs, 5, &attributes, sizeof attributes);
    measure(bench, name, &subject, slice);
}

static void convolution(struct bench *bench, const char *name, const struct op *op, int64_t size, int64_t in,
                        int64_t out, int64_t slice)
{
    struct subject subject;
    struct graph *graph = begin(&subject, bench, 32);
    struct conv_attributes conv = {{1, 1}, {0, 0, 0, 0}, {0}, op == &op_conv2d ? ACTIVATION_RELU : ACTIVATION_NONE};
    struct conv_gradient_attributes back = {conv, {size, size}, {3, 3}, true, 1};
    struct tensor *k = graph_weight(graph, "k", TYPE_F32, SHAPE(3, 3, in, out), true);
    struct tensor *b = graph_weight(graph, "b", TYPE_F32, SHAPE(out), true);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(32, size, size, in));
    struct tensor *dy = graph_input(graph, "dy", 1, TYPE_F32, SHAPE(32, size - 2, size - 2, out));
    if (op == &op_conv2d)
        graph_add(graph, op, (struct tensor *[]){x, k, b}, 3, &conv, sizeof conv);
    else if (op == &op_conv2d_input_gradient)
        graph_add(graph, op, (struct tensor *[]){dy, k}, 2, &back, sizeof back);
    else
        graph_add(graph, op, (struct tensor *[]){x, dy}, 2, &back, sizeof back);
    measure(bench, name, &subject, slice);
}

static void pool(struct bench *bench, const char *name, bool gradient, int64_t size, int64_t channels, int64_t slice)
{
    struct subject subject;
    struct graph *graph = begin(&subject, bench, 32);
    struct pool_attributes attributes = {.window = {2, 2}, .stride = {2, 2}};
    struct pool_gradient_attributes back = {.pool = attributes, .input = {size, size}};
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(32, size, size, channels));
    struct tensor *dy = graph_input(graph, "dy", 1, TYPE_F32, SHAPE(32, size / 2, size / 2, channels));
    struct tensor *index =
        graph_input(graph, "index", 2, TYPE_U8, SHAPE(32, packed_bytes(size / 2 * (size / 2) * channels, 2)));
    if (gradient)
        graph_add(graph, &op_max_pool_gradient, (struct tensor *[]){dy, index}, 2, &back, sizeof back);
    else
        graph_add(graph, &op_max_pool, &x, 1, &attributes, sizeof attributes);
    measure(bench, name, &subject, slice);
}

static void mlp(struct bench *bench, int64_t batch, int64_t slice)
{
    printf("MLP, batch %lld\n", (long long)batch);
    matmul(bench, "dense 100 -> 64, relu", batch, 100, 64, false, slice);
    matmul(bench, "dense 64 -> 1", batch, 64, 1, false, slice);
    pair(bench, "sigmoid cross-entropy", &op_sigmoid_crossentropy, batch, 1, 1, slice);
    pair(bench, "its gradient", &op_sigmoid_crossentropy_gradient, batch, 1, 1, slice);
    pair(bench, "dw 64 x 1", &op_matmul_weight_gradient, batch, 64, 1, slice);
    pair(bench, "db 1", &op_sum_rows, batch, 1, 0, slice);
    matmul(bench, "dx 1 -> 64", batch, 1, 64, true, slice);
    pair(bench, "relu gradient", &op_relu_gradient, batch, 64, 64, slice);
    pair(bench, "dw 100 x 64", &op_matmul_weight_gradient, batch, 100, 64, slice);
    pair(bench, "db 64", &op_sum_rows, batch, 64, 0, slice);
    adam(bench, "adam 100 x 64", 100, 64, 0);
    adam(bench, "adam 64", 64, 1, 0);
}

static void cnn(struct bench *bench)
{
    static const int64_t slices[] = {1, 2, 4, 8, 16, 32};
    printf("CNN, batch 32\n");
    for (int i = 0; i < 6; i++) {
        int64_t n = slices[i];
        convolution(bench, "conv 3 -> 32, 64", &op_conv2d, 64, 3, 32, n);
        convolution(bench, "its dw", &op_conv2d_weight_gradient, 64, 3, 32, n);
        convolution(bench, "conv 32 -> 64, 31", &op_conv2d, 31, 32, 64, n);
        convolution(bench, "its dw", &op_conv2d_weight_gradient, 31, 32, 64, n);
        convolution(bench, "its dx", &op_conv2d_input_gradient, 31, 32, 64, n);
        pool(bench, "pool 62 x 32", false, 62, 32, n);
        pool(bench, "its gradient", true, 62, 32, n);
    }
    matmul(bench, "dense 12544 -> 128 by columns", 32, 12544, 128, false, 16);
    matmul(bench, "dense 12544 -> 128 by columns", 32, 12544, 128, false, 64);
    matmul(bench, "its dx by columns", 32, 128, 12544, true, 96);
    matmul(bench, "its dx by columns", 32, 128, 12544, true, 1568);
    pair(bench, "its dw by rows", &op_matmul_weight_gradient, 32, 12544, 128, 128);
    pair(bench, "its dw by rows", &op_matmul_weight_gradient, 32, 12544, 128, 1568);
    matmul(bench, "dense 128 -> 10", 32, 128, 10, false, 16);
    adam(bench, "adam 12544 x 128", 12544, 128, 128);
    adam(bench, "adam 12544 x 128", 12544, 128, 1568);
}

int main(int argc, char **argv)
{
    struct bench bench = {.threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1};
    plim_error error = {0};
    if (bench.threads < 1 || bench.threads > 64)
        return 2;
    must(budget_make(&bench.budget, BUDGET_UNLIMITED, &error), &error);
    must(cpu_backend.open(&bench.backend, bench.budget, &error), &error);
    backend_threads(bench.backend, bench.threads);
    must(team_make(&bench.team, bench.budget, bench.threads, cpu_backend.thread_start, &error), &error);
    printf("%s, %d threads\n", cpu_backend.features(bench.backend), bench.threads);
    mlp(&bench, 32, 0);
    mlp(&bench, 10000, 256);
    cnn(&bench);
    team_free(bench.team);
    cpu_backend.close(bench.backend);
    budget_free(bench.budget);
    return 0;
}
