/* convolutions.c - how fast one thread runs the convolutions of ResNet-50 and MobileNetV2, slice by slice, against
   the machine's peak, which a loop of multiply-adds shows in the same run; what oneDNN does beside what our own kernels
   do.

   usage: bench-convolutions [slice [model [far]]] (ninja -C build bench-convolutions). slice 0: as the chain of that op
   alone would choose; model: resnet50, mobilenetv2, depthwise or all. All slices work on the same bytes, as those
   inside a chain do; with "far", each on its own rows of a whole batch. Prints the least of several runs; a
   multiply-add counts as two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "base/threads/clock.h"
#include "model_convolutions.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define BATCH  32
#define RUNS   3
#define ENOUGH 1e8 /* nanoseconds for one line */

static void must(plim_status status, const plim_error *error)
{
    if (status == PLIM_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

struct subject {
    struct graph graph;
    struct node *node;
    struct chains chains;
    void *data[8];
    size_t bytes[8];
};

static void subject_init(struct subject *subject, struct budget *budget, const struct model_convolution *c,
                         enum conv_role role)
{
    plim_error error = {0};
    *subject = (struct subject){0};
    graph_init(&subject->graph, budget, BATCH);
    model_convolution_add(&subject->graph, c, role, TYPE_F32);
    must(graph_check(&subject->graph, &error), &error);
    must(chain_find(&subject->chains, &subject->graph, &error), &error);
    subject->node = subject->graph.node[0];
    for (int t = 0; t < subject->graph.tensor_count; t++) {
        const struct tensor *tensor = subject->graph.tensor[t];
        int64_t count = shape_count(&tensor->shape);
        subject->bytes[t] = (size_t)count * sizeof(float);
        float *data = subject->data[t] = budget_take(budget, TAG_SCRATCH, subject->bytes[t]);
        must(data ? PLIM_OK : PLIM_NO_MEMORY, &(plim_error){.message = "no memory"});
        for (int64_t i = 0; i < count; i++)
            data[i] = (float)((i * 7919) % 1000) / 1000 - 0.4f;
    }
}

static void subject_release(struct subject *subject, struct budget *budget)
{
    for (int t = 0; t < subject->graph.tensor_count; t++)
        budget_give(budget, TAG_SCRATCH, subject->data[t], subject->bytes[t]);
    graph_release(&subject->graph);
}

static void call_fill(struct call *call, const struct subject *subject, const struct cut *cut, int64_t begin)
{
    const struct node *node = subject->node;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *tensor = node->input[i];
        int64_t row = tensor && cut->input[i] == PART_CUT ? begin * shape_row(&tensor->shape) : 0;
        call->input[i] = tensor ? (float *)subject->data[tensor->id] + row : NULL;
    }
    for (int k = 0; k < node->output_count; k++) {
        const struct tensor *tensor = node->output[k];
        int64_t row = cut->output[k] == PART_CUT ? begin * shape_row(&tensor->shape) : 0;
        call->output[k] = (float *)subject->data[tensor->id] + row;
    }
}

/* Nanoseconds of the quickest slice; others may share the machine. */
static double run_once(const struct kernel *kernel, const struct subject *subject, struct call *call, int64_t slice,
                       bool far)
{
    struct cut cut;
    double best = 1e30;
    subject->node->op->cut(&cut, subject->node);
    for (int64_t begin = 0; begin + slice <= BATCH; begin += slice) {
        call->begin = begin;
        call->end = begin + slice;
        call->add = begin > 0;
        call_fill(call, subject, &cut, far ? begin : 0);
        uint64_t from = clock_ns();
        kernel->run(kernel, call);
        double ns = (double)(clock_ns() - from);
        best = ns < best ? ns : best;
    }
    return best;
}

static double pack_once(const struct kernel *kernel, const struct subject *subject, struct call *call, void *pack)
{
    struct cut cut;
    subject->node->op->cut(&cut, subject->node);
    call_fill(call, subject, &cut, 0);
    uint64_t from = clock_ns();
    for (int unit = 0; unit < kernel->pack_units; unit++)
        kernel->pack(kernel, call, unit, pack);
    return (double)(clock_ns() - from);
}

/* Nanoseconds of the whole batch, and who ran it. */
static double measure(const char **how, struct backend *backend, struct budget *budget, const struct subject *subject,
                      int64_t slice, bool far)
{
    const struct kernel *kernel = NULL;
    plim_error error = {0};
    int64_t rest = BATCH % slice;
    const struct kernel_request request = {
        .node = subject->node, .slice = slice, .short_rows = &rest, .short_count = 1};
    must(cpu_backend.prepare(&kernel, backend, &request, &error), &error);
    *how = kernel->implementation;
    if (strcmp(*how, "reference") == 0)
        return 0;
    struct call call = {.node = subject->node, .count = BATCH};
    void *pack = budget_take(budget, TAG_SCRATCH, kernel->pack_bytes);
    call.scratch = budget_take(budget, TAG_SCRATCH, kernel->scratch_bytes);
    call.pack = pack;
    double best = 1e30, packed = 1e30;
    uint64_t from = clock_ns();
    for (int run = 0; run < RUNS || (double)(clock_ns() - from) < ENOUGH; run++) {
        double pack_ns = pack_once(kernel, subject, &call, pack);
        double ns = run_once(kernel, subject, &call, slice, far);
        best = ns < best ? ns : best;
        packed = pack_ns < packed ? pack_ns : packed;
    }
    budget_give(budget, TAG_SCRATCH, pack, kernel->pack_bytes);
    budget_give(budget, TAG_SCRATCH, call.scratch, kernel->scratch_bytes);
    return packed + best * BATCH / (double)slice;
}

enum { CHOSEN, LIBRARY, COLUMNS, BACKENDS };

static const char *chosen_by(struct backend *backend, const struct subject *subject, int64_t slice)
{
    const struct kernel *kernel = NULL;
    plim_error error = {0};
    must(cpu_backend.prepare(&kernel, backend, &(struct kernel_request){.node = subject->node, .slice = slice}, &error),
         &error);
    return kernel->implementation;
}

/* What oneDNN does, what our own kernel does, and which of them is chosen. */
static void line(struct backend *const backends[BACKENDS], struct budget *budget, const struct model_convolution *c,
                 enum conv_role role, int64_t slice, bool far, double peak)
{
    static const char *const roles[] = {"forward", "data", "weights"};
    struct backend *const measured[] = {backends[LIBRARY], backends[c->depthwise ? CHOSEN : COLUMNS]};
    struct subject subject;
    struct cut cut;
    double bytes = 0;
    subject_init(&subject, budget, c, role);
    subject.node->op->cut(&cut, subject.node);
    slice = slice ? slice : subject.chains.chain[0].slice;
    for (int i = 0; i < subject.node->input_count; i++)
        bytes += subject.node->input[i] ? (double)subject.bytes[subject.node->input[i]->id] : 0;
    bytes += (double)subject.bytes[subject.node->output[0]->id];
    printf("%-11s %s%lldx%lld/%lld %4lld ->%5lld %4lld %-8s%3lld", c->model, c->depthwise ? "dw " : "   ",
           (long long)c->kernel, (long long)c->kernel, (long long)c->stride, (long long)c->in, (long long)c->out,
           (long long)c->size, roles[role], (long long)slice);
    for (int i = 0; i < 2; i++) {
        const char *how;
        double ns = measure(&how, measured[i], budget, &subject, slice, far);
        printf(" | %8.3f ms %6.1f GF/s %3.0f %% %5.1f GB/s", ns * 1e-6, 2 * cut.work / ns, 200 * cut.work / ns / peak,
               bytes / ns);
    }
    printf(" | %s\n", chosen_by(backends[CHOSEN], &subject, slice));
    fflush(stdout);
    subject_release(&subject, budget);
}

int main(int argc, char **argv)
{
    struct budget *budget;
    struct backend *backends[BACKENDS];
    plim_error error = {0};
    must(budget_make(&budget, BUDGET_UNLIMITED, &error), &error);
    for (int i = 0; i < BACKENDS; i++) {
        must(cpu_backend.open(&backends[i], budget, &error), &error);
        backend_threads(backends[i], 1);
    }
    const struct cpu_variant *variant = ((struct cpu_backend *)backends[CHOSEN])->variant;
    struct cpu_variant library = {.name = variant->name, .implementation = variant->implementation};
    struct cpu_variant columns = library;
    columns.entry = variant->fallback;
    columns.entry_count = variant->fallback_count;
    ((struct cpu_backend *)backends[LIBRARY])->variant = &library;
    ((struct cpu_backend *)backends[COLUMNS])->variant = &columns;
    double peak = cpu_backend.peak_operations(backends[CHOSEN]);
    printf("%s, one thread, peak %.1f GF/s; batch %d; oneDNN | own | chosen\n", variant->name, peak, BATCH);
    for (int i = 0; i < model_convolutions_count; i++)
        for (int role = 0; role < 3; role++) {
            const struct model_convolution *c = &model_convolutions[i];
            if (c->axes != 2)
                continue;
            if (argc > 2 && strcmp(argv[2], "all") != 0 && strcmp(argv[2], c->model) != 0 &&
                !(c->depthwise && strcmp(argv[2], "depthwise") == 0))
                continue;
            if (!c->first || role != CONV_INPUT_GRADIENT)
                line(backends, budget, c, (enum conv_role)role, argc > 1 ? strtol(argv[1], NULL, 10) : 0, argc > 3,
                     peak);
        }
    printf("peak again: %.1f GF/s\n", cpu_backend.peak_operations(backends[CHOSEN]));
    for (int i = 0; i < BACKENDS; i++)
        cpu_backend.close(backends[i]);
    budget_free(budget);
    return 0;
}
