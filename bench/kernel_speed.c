/* kernel_speed.c - runs a kernel slice by slice, again and again: the quickest run of each slice counts, because others
   may share the machine. */
#include "kernel_speed.h"

#include <stdio.h>
#include <string.h>

#include "base/threads/clock.h"
#include "transform/transform.h"

#define MOST_TENSORS 64
#define MOST_SLICES  4096 /* of longer ops the rest is left out, and counted as what was run */
#define LEAST_RUNS   5
#define MOST_RUNS    1000
#define SLOW_RUNS    4 /* a first run may take so many times line_ns; then its first slices stand for all */

struct subject {
    const struct graph *graph;
    const struct node *node; /* the last */
    const struct kernel *kernel;
    struct cut cut;
    int64_t slice;
    bool near;
    void *data[MOST_TENSORS]; /* by tensor id */
    size_t bytes[MOST_TENSORS];
    void *scratch, *pack;
    double *best; /* of each slice */
    int slices;
    struct call call;
};

/* ---- what is run ---- */

/* Rows of a near operand: those of one slice. */
static int64_t near_rows(const struct subject *s, const struct tensor *tensor)
{
    for (int i = 0; i < s->node->input_count; i++)
        if (s->node->input[i] == tensor && s->cut.input[i] != PART_CUT)
            return -1;
    for (int k = 0; k < s->node->output_count; k++)
        if (s->node->output[k] == tensor && s->cut.output[k] != PART_CUT)
            return -1;
    return tensor->batched ? s->slice : -1;
}

/* Elements that lie in memory; tensors that the last node does not have are there for those before it. */
static int64_t elements_of(const struct subject *s, const struct tensor *tensor)
{
    int64_t rows = s->near ? near_rows(s, tensor) : -1;
    return rows < 0 ? shape_count(&tensor->shape) : rows * shape_row(&tensor->shape);
}

static uint64_t bytes_needed(struct subject *s)
{
    uint64_t sum = s->kernel->scratch_bytes + s->kernel->pack_bytes;
    for (int t = 0; t < s->graph->tensor_count; t++) {
        s->bytes[t] = (size_t)elements_of(s, s->graph->tensor[t]) * type_bytes(s->graph->tensor[t]->type);
        sum += s->bytes[t];
    }
    return sum;
}

/* Rows of a call of the node's kernel. */
static int64_t slice_of(const struct chains *chains, const struct node *node, const struct cut *cut)
{
    struct sum_order sums = sum_order(node, cut);
    if (sums.leaves)
        return piece_most(cut->extent, sum_grain(cut), sums.leaves);
    for (int c = 0; c < chains->chain_count; c++) {
        const struct chain *chain = &chains->chain[c];
        for (int i = chain->first; i < chain->first + chain->count; i++)
            if (chains->order[i] == node)
                return chain_slice(chain);
    }
    return cut->extent;
}

static void subject_release(struct subject *s, struct budget *budget)
{
    for (int t = 0; t < s->graph->tensor_count; t++)
        budget_give(budget, TAG_SCRATCH, s->data[t], s->bytes[t]);
    budget_give(budget, TAG_SCRATCH, s->scratch, s->kernel->scratch_bytes);
    budget_give(budget, TAG_SCRATCH, s->pack, s->kernel->pack_bytes);
    budget_give(budget, TAG_SCRATCH, s->best, MOST_SLICES * sizeof *s->best);
}

static plim_status subject_take(struct subject *s, struct budget *budget, plim_error *error)
{
    bool taken = true;
    for (int t = 0; taken && t < s->graph->tensor_count; t++) {
        taken = (s->data[t] = budget_take(budget, TAG_SCRATCH, s->bytes[t])) != NULL;
        if (taken && !s->graph->tensor[t]->producer)
            speed_fill(s->data[t], s->graph->tensor[t], elements_of(s, s->graph->tensor[t]));
    }
    taken = taken && (s->scratch = budget_take(budget, TAG_SCRATCH, s->kernel->scratch_bytes)) &&
            (s->pack = budget_take(budget, TAG_SCRATCH, s->kernel->pack_bytes)) &&
            (s->best = budget_take(budget, TAG_SCRATCH, MOST_SLICES * sizeof *s->best));
    return taken ? PLIM_OK : budget_refused(budget, TAG_SCRATCH, s->kernel->pack_bytes, error);
}

/* ---- running ---- */

static void *operand(const struct subject *s, const struct tensor *tensor, enum part part, int64_t begin)
{
    if (!tensor)
        return NULL;
    int64_t row = shape_row(&tensor->shape) * (int64_t)type_bytes(tensor->type);
    return (char *)s->data[tensor->id] + (part == PART_CUT && !s->near ? begin * row : 0);
}

static void call_set(struct call *call, const struct subject *s, const struct node *node, const struct cut *cut,
                     int64_t begin, int64_t end)
{
    *call = (struct call){.node = node, .begin = begin, .end = end, .count = s->graph->batch, .add = begin > 0};
    for (int i = 0; i < node->input_count; i++)
        call->input[i] = operand(s, node->input[i], cut->input[i], begin);
    for (int k = 0; k < node->output_count; k++)
        call->output[k] = operand(s, node->output[k], cut->output[k], begin);
    call->scratch = s->scratch;
    call->pack = s->kernel->pack_bytes ? s->pack : NULL;
}

/* The nodes before the one that is measured, once, by their references where the kernels want more than there is. */
static void run_before(struct subject *s)
{
    for (int n = 0; n + 1 < s->graph->node_count; n++) {
        struct call call;
        struct cut cut;
        const struct node *node = s->graph->node[n];
        node->op->cut(&cut, node);
        call_set(&call, s, node, &cut, 0, cut.extent);
        node->op->reference(&call);
    }
}

static double pack_once(struct subject *s)
{
    struct call call;
    call_set(&call, s, s->node, &s->cut, 0, s->cut.extent);
    uint64_t from = clock_ns();
    for (int unit = 0; unit < s->kernel->pack_units; unit++)
        s->kernel->pack(s->kernel, &call, unit, s->pack);
    return (double)(clock_ns() - from);
}

/* All slices once, or as many as there is time for when it is the first run. */
static void run_slices(struct subject *s, bool first, uint64_t until)
{
    int64_t begin = 0, extent = s->cut.extent;
    int slice = 0, most = first ? MOST_SLICES : s->slices;
    for (; slice < most && begin < extent && (slice == 0 || !first || clock_ns() < until); slice++, begin += s->slice) {
        struct call call;
        call_set(&call, s, s->node, &s->cut, begin, begin + s->slice < extent ? begin + s->slice : extent);
        uint64_t from = clock_ns();
        s->kernel->run(s->kernel, &call);
        double ns = (double)(clock_ns() - from);
        s->best[slice] = first || ns < s->best[slice] ? ns : s->best[slice];
    }
    if (first)
        s->slices = slice;
}

/* Nanoseconds of the whole op. */
static double run_again(struct subject *s, const struct speed_bench *bench)
{
    double packed = pack_once(s), sum = 0;
    uint64_t from = clock_ns(), until = from + (uint64_t)(SLOW_RUNS * bench->line_ns);
    int64_t least = bench->least_runs ? bench->least_runs : LEAST_RUNS;
    run_slices(s, true, until);
    for (int64_t run = 1; run < MOST_RUNS || run < least; run++) {
        if (run >= least && (double)(clock_ns() - from) > bench->line_ns)
            break;
        double ns = pack_once(s);
        packed = ns < packed ? ns : packed;
        run_slices(s, false, until);
    }
    for (int i = 0; i < s->slices; i++)
        sum += s->best[i];
    int64_t rows = s->slices * s->slice < s->cut.extent ? s->slices * s->slice : s->cut.extent;
    return packed + sum * (double)s->cut.extent / (double)rows;
}

/* ---- a line ---- */

static double operand_bytes(const struct node *node)
{
    double sum = 0;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i])
            sum += (double)shape_count(&node->input[i]->shape) * (double)type_bytes(node->input[i]->type) *
                   (node->op->updates & 1u << i ? 2 : 1);
    for (int k = 0; k < node->output_count; k++)
        sum += (double)shape_count(&node->output[k]->shape) * (double)type_bytes(node->output[k]->type);
    return sum;
}

/* The shapes of the first two operands that are there. */
static void name_line(struct kernel_speed *out, const struct node *node, const struct speed *line)
{
    size_t length = 0;
    snprintf(out->name, sizeof out->name, "%s", line->name);
    for (int i = 0, named = 0; !line->name[0] && i < node->input_count && named < 2; i++) {
        char shape[64];
        if (!node->input[i])
            continue;
        shape_text(shape, sizeof shape, &node->input[i]->shape, false);
        length += (size_t)snprintf(out->name + length, sizeof out->name - length, "%s%s", named++ ? " " : "", shape);
    }
}

static plim_status subject_prepare(struct subject *s, const struct speed_bench *bench, struct graph *graph,
                                   plim_error *error)
{
    struct chains chains;
    if (graph->tensor_count > MOST_TENSORS)
        return fail(error, PLIM_INTERNAL, "%s: an example of too many tensors", s->node->op->name);
    TRY(chain_find(&chains, graph, error));
    s->node->op->cut(&s->cut, s->node);
    s->slice = slice_of(&chains, s->node, &s->cut);
    int64_t rest = s->cut.extent % s->slice;
    const struct kernel_request request = {.node = s->node, .slice = s->slice, .short_rows = &rest, .short_count = 1};
    return bench->backend->type->prepare(&s->kernel, bench->backend, &request, error);
}

plim_status kernel_speed_node(struct kernel_speed *out, const struct speed_bench *bench, struct graph *graph,
                              const struct speed *line, plim_error *error)
{
    struct subject s = {.graph = graph, .node = graph->node[graph->node_count - 1], .near = line->near};
    TRY(subject_prepare(&s, bench, graph, error));
    *out = (struct kernel_speed){.extent = s.cut.extent,
                                 .slice = s.slice,
                                 .operations = 2 * s.cut.work * line->share,
                                 .bytes = operand_bytes(s.node),
                                 .needed_bytes = bytes_needed(&s)};
    name_line(out, s.node, line);
    out->reference = strcmp(s.kernel->implementation, "reference") == 0;
    if (out->needed_bytes > bench->room_bytes)
        return PLIM_OK;
    plim_status status = subject_take(&s, bench->budget, error);
    if (status == PLIM_OK) {
        run_before(&s);
        out->ns = run_again(&s, bench);
        out->implementation = s.kernel->implementation;
        status = backend_check(bench->backend, error);
    }
    subject_release(&s, bench->budget);
    return status;
}

plim_status kernel_speed(struct kernel_speed *out, bool *there, const struct speed_bench *bench, const struct op *op,
                         int number, enum type type, plim_error *error)
{
    struct graph graph;
    struct speed line;
    TRY(speed_graph(&graph, &line, there, bench, op, number, type, error));
    if (!*there)
        return PLIM_OK;
    plim_status status = kernel_speed_node(out, bench, &graph, &line, error);
    graph_release(&graph);
    return status;
}
