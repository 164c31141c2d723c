/* products.c - how fast one thread runs the matrix products and the attention of GPT-2 124M, in the slices that their
   chains would choose, against the machine's peak, which a loop of multiply-adds shows in the same run.

   usage: bench-products (ninja -C build bench-products). A line is the sum of the quickest runs of each slice: others
   may share the machine. A multiply-add counts as two; of causal attention half of the scores count. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/cpu.h"
#include "base/clock.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define RUNS        7
#define MOST_SLICES 1024
#define TOKENS      1024

static void must(plim_status status, const plim_error *error)
{
    if (status == PLIM_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

struct bench {
    struct budget *budget;
    struct backend *backend;
    double peak;
};

struct subject {
    struct graph graph;
    void *data[16];
    size_t bytes[16];
};

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static void *take(struct bench *bench, size_t bytes)
{
    void *block = budget_take(bench->budget, TAG_SCRATCH, bytes);
    must(block ? PLIM_OK : PLIM_NO_MEMORY, &(plim_error){.message = "no memory"});
    return block;
}

static struct graph *begin(struct subject *subject, struct bench *bench)
{
    *subject = (struct subject){0};
    graph_init(&subject->graph, bench->budget, 1);
    return &subject->graph;
}

static void fill(struct subject *subject, struct bench *bench)
{
    for (int t = 0; t < subject->graph.tensor_count; t++) {
        const struct tensor *tensor = subject->graph.tensor[t];
        int64_t count = shape_count(&tensor->shape);
        subject->bytes[t] = (size_t)count * sizeof(float);
        float *data = subject->data[t] = take(bench, subject->bytes[t]);
        for (int64_t i = 0; i < count; i++)
            data[i] = (float)((i * 7919) % 1000) / 1000 - 0.4f;
    }
}

static void *operand(const struct subject *subject, const struct tensor *tensor, enum part part, int64_t row)
{
    if (!tensor)
        return NULL;
    return (float *)subject->data[tensor->id] + (part == PART_CUT ? row * shape_row(&tensor->shape) : 0);
}

static void call_fill(struct call *call, const struct subject *subject, const struct cut *cut, int64_t from, int64_t to)
{
    const struct node *node = call->node;
    call->begin = from;
    call->end = to;
    for (int i = 0; i < node->input_count; i++)
        call->input[i] = operand(subject, node->input[i], cut->input[i], from);
    for (int k = 0; k < node->output_count; k++)
        call->output[k] = operand(subject, node->output[k], cut->output[k], from);
}

/* Nanoseconds: the quickest pack and the quickest run of every slice. */
static double time_slices(const struct kernel *kernel, struct call *call, const struct subject *subject,
                          const struct cut *cut, int64_t slice, void *pack)
{
    static double best[MOST_SLICES];
    double packed = kernel->pack_bytes ? 1e30 : 0, sum = 0;
    int slices = 0;
    for (int run = 0; run < RUNS; run++) {
        uint64_t start = clock_ns();
        call_fill(call, subject, cut, 0, cut->extent);
        for (int unit = 0; unit < kernel->pack_units; unit++)
            kernel->pack(kernel, call, unit, pack);
        double ns = (double)(clock_ns() - start);
        packed = ns < packed ? ns : packed;
        slices = 0;
        for (int64_t from = 0; from < cut->extent && slices < MOST_SLICES; from += slice, slices++) {
            call_fill(call, subject, cut, from, from + slice < cut->extent ? from + slice : cut->extent);
            start = clock_ns();
            kernel->run(kernel, call);
            ns = (double)(clock_ns() - start);
            best[slices] = run == 0 || ns < best[slices] ? ns : best[slices];
        }
    }
    for (int i = 0; i < slices; i++)
        sum += best[i];
    return packed + sum;
}

static void measure(struct bench *bench, const char *name, struct subject *subject, double work)
{
    plim_error error = {0};
    struct chains chains;
    struct cut cut;
    const struct kernel *kernel = NULL;
    must(graph_check(&subject->graph, &error), &error);
    must(chain_find(&chains, &subject->graph, &error), &error);
    const struct node *node = subject->graph.node[0];
    fill(subject, bench);
    node->op->cut(&cut, node);
    int64_t slice = chains.chain[0].slice, rest = cut.extent % slice;
    must(cpu_backend.prepare(&kernel, bench->backend, node, slice, &rest, 1, &error), &error);
    struct call call = {.node = node, .count = subject->graph.batch};
    void *pack = take(bench, kernel->pack_bytes);
    call.scratch = take(bench, kernel->scratch_bytes);
    call.pack = kernel->pack_bytes ? pack : NULL;
    double ns = time_slices(kernel, &call, subject, &cut, slice, pack);
    printf("%-34s %6lld in slices of %5lld %9.2f ms %7.1f GF/s %5.1f %%  %s, scratch %zu, pack %zu\n", name,
           (long long)cut.extent, (long long)slice, ns / 1e6, 2 * work / ns, 200 * work / ns / bench->peak,
           kernel->implementation, kernel->scratch_bytes, kernel->pack_bytes);
    budget_give(bench->budget, TAG_SCRATCH, pack, kernel->pack_bytes);
    budget_give(bench->budget, TAG_SCRATCH, call.scratch, kernel->scratch_bytes);
    for (int t = 0; t < subject->graph.tensor_count; t++)
        budget_give(bench->budget, TAG_SCRATCH, subject->data[t], subject->bytes[t]);
    graph_release(&subject->graph);
}

/* One dense layer over TOKENS rows: y, dx and dw. */
static void dense(struct bench *bench, int64_t in, int64_t out)
{
    struct subject subject;
    char name[64];
    double work = (double)TOKENS * (double)in * (double)out;
    for (int form = 0; form < 3; form++) {
        struct graph *graph = begin(&subject, bench);
        struct matmul_attributes attributes = {.transposed = form == 1};
        struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(1, TOKENS, form == 1 ? out : in));
        struct tensor *other = form == 2 ? graph_input(graph, "dy", 1, TYPE_F32, SHAPE(1, TOKENS, out))
                                         : graph_weight(graph, "w", TYPE_F32, SHAPE(in, out), true);
        if (form == 2)
            binary(graph, &op_matmul_weight_gradient, x, other);
        else
            graph_add(graph, &op_matmul, (struct tensor *[]){x, other}, 2, &attributes, sizeof attributes);
        snprintf(name, sizeof name, "%s %lld -> %lld",
                 form == 0   ? "dense"
                 : form == 1 ? "its dx"
                             : "its dw",
                 (long long)in, (long long)out);
        measure(bench, name, &subject, work);
    }
}

static void attention(struct bench *bench, int64_t heads, int64_t depth)
{
    struct subject subject;
    struct attention_attributes attributes = {.causal = 1};
    double work = (double)heads * TOKENS * TOKENS * (double)depth;
    for (int backward = 0; backward < 2; backward++) {
        struct graph *graph = begin(&subject, bench);
        struct tensor *x[8] = {0};
        for (int i = 0; i < 8; i++)
            if (i < 3 || (backward && i > 4))
                x[i] = graph_input(graph, "x", i, TYPE_F32,
                                   i == 6 ? SHAPE(1, heads, TOKENS) : SHAPE(1, TOKENS, heads, depth));
        graph_add(graph, backward ? &op_attention_gradient : &op_attention, x, backward ? 8 : 5, &attributes,
                  sizeof attributes);
        measure(bench, backward ? "its gradient" : "attention, causal", &subject, backward ? 2.5 * work : work);
    }
}

static double measure_peak(const struct cpu_variant *variant)
{
    double best = 0;
    for (int run = 0; run < 200; run++) {
        float result[2] = {0.999f, 0.001f};
        uint64_t from = clock_ns();
        double count = variant->peak(100000, result);
        double rate = 2 * count / (double)(clock_ns() - from);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(void)
{
    struct bench bench = {0};
    plim_error error = {0};
    must(budget_make(&bench.budget, BUDGET_UNLIMITED, &error), &error);
    must(cpu_backend.open(&bench.backend, bench.budget, &error), &error);
    const struct cpu_variant *variant = ((struct cpu_backend *)bench.backend)->variant;
    bench.peak = measure_peak(variant);
    printf("%s, one thread, peak %.1f GF/s; %d tokens\n", variant->name, bench.peak, TOKENS);
    dense(&bench, 768, 2304);
    dense(&bench, 768, 768);
    dense(&bench, 768, 3072);
    dense(&bench, 3072, 768);
    attention(&bench, 12, 64);
    dense(&bench, 768, 50257);
    printf("peak again: %.1f GF/s\n", measure_peak(variant));
    cpu_backend.close(bench.backend);
    budget_free(bench.budget);
    return 0;
}
