/* speed_graph.c - what a line of the speed table is measured on: the op's own sizes, or its largest example with a last
   axis and a batch that are long enough to be measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"
#include "kernel_speed.h"

#define OPERAND_BYTES ((uint64_t)12 << 20) /* more than a cache of one core, and little of any budget */
#define ROW_ELEMENTS  4096                 /* rows of batched operands are stretched to about so many */
#define MOST_STRETCH  64
#define MOST_BATCH    (1 << 20)
#define MOST_TENSORS  64
#define PATTERN       4096 /* values repeat after so many */

/* How an example's graph is made. */
struct attempt {
    int variant;
    int64_t batch;
    int64_t stretch; /* the last axis of inputs, weights and states is so many times as long; 0: 1 */
    bool floats;     /* of floating ones only; float64 (numbers of a step) never is */
};

static uint64_t tensor_bytes(const struct tensor *tensor)
{
    return tensor ? (uint64_t)shape_count(&tensor->shape) * type_bytes(tensor->type) : 0;
}

static uint64_t operand_bytes(const struct graph *graph)
{
    uint64_t bytes = 0;
    for (int t = 0; t < graph->tensor_count; t++)
        bytes += tensor_bytes(graph->tensor[t]);
    return bytes;
}

/* Elements of the largest row of a batched operand of the last node; 0: there is none. */
static int64_t largest_row(const struct graph *graph)
{
    int64_t largest = 0;
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensor[t]->batched && shape_row(&graph->tensor[t]->shape) > largest)
            largest = shape_row(&graph->tensor[t]->shape);
    return largest;
}

static bool has_type(const struct graph *graph, enum type type)
{
    const struct node *node = graph->node[graph->node_count - 1];
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type == type)
            return true;
    return false;
}

/* ---- longer examples ---- */

/* An axis of one element is broadcast, or there is one: it stays. */
static bool stretch_shape(struct shape *shape, const struct tensor *tensor, const struct attempt *attempt)
{
    int64_t *last = shape->rank > (tensor->kind == KIND_INPUT) ? &shape->dim[shape->rank - 1] : NULL;
    bool wanted = (!attempt->floats || type_is_float(tensor->type)) && tensor->type != TYPE_F64;
    if (!wanted || !last || *last <= 1 || *last > INT64_MAX / attempt->stretch)
        return false;
    *last *= attempt->stretch;
    return true;
}

static struct tensor *add_leaf(struct graph *to, const struct tensor *tensor, struct shape shape)
{
    if (tensor->kind == KIND_INPUT)
        return graph_input(to, tensor->name, tensor->column, tensor->type, shape);
    if (tensor->kind == KIND_WEIGHT)
        return graph_weight(to, tensor->name, tensor->type, shape, tensor->trainable);
    struct tensor *state = graph_state(to, tensor->name, tensor->type, shape);
    if (state)
        state->batched = tensor->batched;
    return state;
}

/* The same nodes over longer leaves: their ops find the shapes of the rest. False when nothing got longer, or when an
   op refuses, for its attributes may fit the example's own shapes alone. */
static bool stretch_graph(struct graph *to, const struct graph *from, const struct attempt *attempt)
{
    struct tensor *made[MOST_TENSORS] = {NULL};
    bool longer = false;
    for (int t = 0; t < from->tensor_count && t < MOST_TENSORS; t++) {
        struct shape shape = from->tensor[t]->shape;
        if (from->tensor[t]->producer)
            continue;
        longer |= stretch_shape(&shape, from->tensor[t], attempt);
        made[t] = add_leaf(to, from->tensor[t], shape);
    }
    for (int n = 0; longer && !to->failed && n < from->node_count; n++) {
        const struct node *node = from->node[n];
        struct tensor *inputs[MOST_INPUTS];
        for (int i = 0; i < node->input_count; i++)
            inputs[i] = node->input[i] ? made[node->input[i]->id] : NULL;
        graph_add(to, node->op, inputs, node->input_count, node->attributes, node->attributes_bytes);
        for (int k = 0; !to->failed && k < node->output_count; k++)
            made[node->output[k]->id] = to->node[n]->output[k];
    }
    return longer && !to->failed;
}

/* ---- examples ---- */

static bool build_example(struct graph *graph, const struct op *op, enum type type, int variant)
{
    struct tensor *made = example_add(graph, op, variant, type);
    return made && !graph->failed && graph->tensor_count <= MOST_TENSORS && graph->node_count &&
           graph->node[graph->node_count - 1]->op == op;
}

/* Whether the example can be built so; the graph is released when not. Some examples are of types of their own whatever
   is asked for: those are lines of float32 only. */
static bool try_example(struct graph *graph, const struct speed_bench *bench, const struct op *op, enum type type,
                        const struct attempt *attempt)
{
    struct graph small;
    bool built;
    graph_init(graph, bench->budget, attempt->batch);
    if (attempt->stretch > 1) {
        graph_init(&small, bench->budget, attempt->batch);
        built = build_example(&small, op, type, attempt->variant) && stretch_graph(graph, &small, attempt);
        graph_release(&small);
    } else {
        built = build_example(graph, op, type, attempt->variant);
    }
    if (built && (type == TYPE_F32 || has_type(graph, type)))
        return true;
    graph_release(graph);
    return false;
}

/* The variant with most bytes, of those with an operand of the type if there are any; -1: none can be had. */
static int largest_variant(const struct speed_bench *bench, const struct op *op, enum type type)
{
    struct attempt attempt = {.batch = 2};
    struct graph graph;
    uint64_t most = 0;
    bool typed = false;
    int best = -1;
    for (; try_example(&graph, bench, op, type, &attempt); attempt.variant++) {
        bool has = has_type(&graph, type);
        if (has >= typed && (has > typed || operand_bytes(&graph) > most)) {
            most = operand_bytes(&graph);
            typed = has;
            best = attempt.variant;
        }
        graph_release(&graph);
    }
    return best;
}

/* Bytes with two and with four samples say what a sample takes. */
static bool measure_bytes(uint64_t *fixed, uint64_t *sample, int64_t *row, const struct speed_bench *bench,
                          const struct op *op, enum type type, struct attempt attempt)
{
    struct graph graph;
    uint64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        attempt.batch = 2 * (i + 1);
        if (!try_example(&graph, bench, op, type, &attempt))
            return false;
        bytes[i] = operand_bytes(&graph);
        *row = largest_row(&graph);
        graph_release(&graph);
    }
    *sample = bytes[1] > bytes[0] ? (bytes[1] - bytes[0]) / 2 : 0;
    *fixed = bytes[0] - 2 * *sample;
    return true;
}

/* As long as it is let: all operands, or those of floating type, or none. */
static void choose_stretch(struct attempt *attempt, const struct speed_bench *bench, const struct op *op,
                           enum type type, uint64_t room)
{
    uint64_t fixed, sample;
    int64_t row, factor;
    struct graph graph;
    if (!measure_bytes(&fixed, &sample, &row, bench, op, type, *attempt))
        return;
    factor = sample ? ROW_ELEMENTS / (row ? row : 1) : (int64_t)(room / (fixed ? fixed : 1));
    if (sample && factor > MOST_STRETCH)
        factor = MOST_STRETCH;
    for (int floats = 0; floats < 2 && factor > 1; floats++) {
        struct attempt longer = {attempt->variant, 2, factor, floats};
        if (!try_example(&graph, bench, op, type, &longer))
            continue;
        bool fits = operand_bytes(&graph) <= room;
        graph_release(&graph);
        if (fits) {
            attempt->stretch = factor;
            attempt->floats = floats;
            return;
        }
    }
}

static plim_status example_graph(struct graph *graph, bool *there, const struct speed_bench *bench, const struct op *op,
                                 enum type type, plim_error *error)
{
    uint64_t fixed, sample, room = bench->room_bytes / 2 < OPERAND_BYTES ? bench->room_bytes / 2 : OPERAND_BYTES;
    int64_t row;
    struct attempt attempt = {.variant = largest_variant(bench, op, type), .batch = 2};
    *there = false;
    if (attempt.variant < 0)
        return type != TYPE_F32 ? PLIM_OK : fail(error, PLIM_INTERNAL, "%s: no example can be built", op->name);
    choose_stretch(&attempt, bench, op, type, room);
    if (!measure_bytes(&fixed, &sample, &row, bench, op, type, attempt))
        return fail(error, PLIM_INTERNAL, "%s: its example cannot be built again", op->name);
    if (sample && room > fixed + sample)
        attempt.batch = (int64_t)((room - fixed) / sample);
    if (attempt.batch > MOST_BATCH)
        attempt.batch = MOST_BATCH;
    *there = try_example(graph, bench, op, type, &attempt);
    return *there ? PLIM_OK : fail(error, PLIM_INTERNAL, "%s: its example depends on the batch", op->name);
}

plim_status speed_graph(struct graph *graph, struct speed *line, bool *there, const struct speed_bench *bench,
                        const struct op *op, int number, enum type type, plim_error *error)
{
    *line = (struct speed){.share = 1};
    *there = false;
    if (!speed_is_given(op))
        return number == 0 ? example_graph(graph, there, bench, op, type, error) : PLIM_OK;
    graph_init(graph, bench->budget, 1);
    *there = speed_add(graph, line, op, number, type) && graph_check(graph, error) == PLIM_OK;
    plim_status status = graph->failed && type == TYPE_F32 ? graph_check(graph, error) : PLIM_OK;
    if (!*there)
        graph_release(graph);
    return status;
}

/* ---- values ---- */

static double value_for(const struct tensor *tensor, double unit)
{
    const char *name = tensor->name;
    if (strncmp(name, "label:", 6) == 0 || strncmp(name, "index:", 6) == 0)
        return (double)(int64_t)(unit * (double)strtoll(name + 6, NULL, 10));
    if (strncmp(name, "positive", 8) == 0)
        return 0.1 + 0.8 * unit;
    if (strncmp(name, "wide", 4) == 0)
        return 8 * unit - 4;
    if (strncmp(name, "iteration", 9) == 0)
        return (double)(int64_t)(unit * 7);
    return type_is_float(tensor->type) ? 2 * unit - 1 : (double)(int64_t)(unit * 100);
}

void speed_fill(void *data, const struct tensor *tensor, int64_t count)
{
    size_t each = type_bytes(tensor->type);
    for (int64_t i = 0; i < count && i < PATTERN; i++) {
        uint32_t block[4];
        random_block(block, 1, (uint64_t)tensor->id, (uint64_t)i);
        element_set(data, tensor->type, i, value_for(tensor, random_unit(block[0])));
    }
    for (int64_t done = PATTERN; done < count; done *= 2)
        memcpy((char *)data + (size_t)done * each, data, (size_t)(count - done < done ? count - done : done) * each);
}
