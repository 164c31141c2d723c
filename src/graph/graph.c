/* graph.c - building, checking and printing graphs.

   Tables double inside the arena; the halves left behind are small and die
   with it. Names of weights and states are kept in a hash table: a model of
   5,000 layers has 30,000 of them. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/hash.h"
#include "base/text/text.h"
#include "graph/op.h"

#define MOST_NODES (1 << 20) /* of a graph: what repeats inside what repeats has an end */

void graph_init(struct graph *graph, struct budget *budget, int64_t batch)
{
    *graph = (struct graph){.batch = batch};
    arena_init(&graph->arena, budget, TAG_PLANNER);
    arena_init(&graph->build_arena, budget, TAG_PLANNER);
    if (batch < 1)
        graph_fail(graph, PLIM_BAD_MODEL, "a batch of %lld samples; it must be at least 1", (long long)batch);
}

void graph_release(struct graph *graph)
{
    arena_release(&graph->arena);
    arena_release(&graph->build_arena);
    *graph = (struct graph){0};
}

void *graph_fail(struct graph *graph, plim_status code, const char *format, ...)
{
    char message[sizeof(graph->error.message)];
    va_list arguments;
    if (graph->failed)
        return NULL;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    graph->failed = fail(&graph->error, code, "%s", message);
    return NULL;
}

plim_status graph_check(const struct graph *graph, plim_error *error)
{
    if (graph->failed && error)
        *error = graph->error;
    return graph->failed;
}

/* What the arena asked for was a block at least. */
void *graph_refused(struct graph *graph, size_t bytes)
{
    size_t block = bytes > graph->arena.block_bytes ? bytes : graph->arena.block_bytes;
    if (!graph->failed)
        graph->failed = budget_refused(graph->arena.budget, TAG_PLANNER, block, &graph->error);
    return NULL;
}

void tensor_ask_ids(struct tensor *tensor, int64_t below)
{
    if (below <= INT32_MAX && (!tensor->below || below < tensor->below))
        tensor->below = (int32_t)below;
}

/* Once from the end: a node's inputs were made before it. */
void graph_trace_ids(struct graph *graph, int first)
{
    for (int n = graph->node_count; n-- > first;) {
        struct node *node = graph->node[n];
        int32_t below = node->op->hands_on && node->op->hands_on(node) ? node->output[0]->below : 0;
        for (int i = 0; below && i < node->input_count; i++)
            if (node->input[i])
                tensor_ask_ids(node->input[i], below);
    }
}

static void *graph_take(struct graph *graph, size_t bytes)
{
    void *block = arena_take(&graph->arena, bytes);
    if (!block)
        graph_refused(graph, bytes);
    return block;
}

static const char *copy_string(struct graph *graph, const char *text)
{
    const char *copy = arena_string(&graph->arena, text);
    if (!copy)
        graph_refused(graph, strlen(text) + 1);
    return copy;
}

/* Room for one more pointer in a table of the graph. */
static bool table_room(struct graph *graph, void ***table, int count, int *capacity)
{
    if (count < *capacity)
        return true;
    int larger = *capacity ? *capacity * 2 : 64;
    void **copy = graph_take(graph, (size_t)larger * sizeof(*copy));
    if (!copy)
        return false;
    if (count)
        memcpy(copy, *table, (size_t)count * sizeof(*copy));
    *table = copy;
    *capacity = larger;
    return true;
}

/* ---- names: open addressing, at most half full ------------------------- */

static size_t name_place(struct tensor *const *names, int capacity, const char *name)
{
    size_t place = (size_t)fnv1a_text(name) & (size_t)(capacity - 1);
    while (names[place] && strcmp(names[place]->name, name) != 0)
        place = (place + 1) & (size_t)(capacity - 1);
    return place;
}

static bool names_room(struct graph *graph)
{
    if (graph->name_count * 2 < graph->name_capacity)
        return true;
    int larger = graph->name_capacity ? graph->name_capacity * 2 : 64;
    struct tensor **names = graph_take(graph, (size_t)larger * sizeof(struct tensor *));
    if (!names)
        return false;
    for (int i = 0; i < graph->name_capacity; i++) {
        if (graph->names[i])
            names[name_place(names, larger, graph->names[i]->name)] = graph->names[i];
    }
    graph->names = names;
    graph->name_capacity = larger;
    return true;
}

static bool name_register(struct graph *graph, struct tensor *tensor)
{
    if (!names_room(graph))
        return false;
    size_t place = name_place(graph->names, graph->name_capacity, tensor->name);
    if (graph->names[place]) {
        graph_fail(graph, PLIM_BAD_MODEL, "two weights or states are named %s", tensor->name);
        return false;
    }
    graph->names[place] = tensor;
    graph->name_count++;
    return true;
}

/* ---- tensors ----------------------------------------------------------- */

static bool shape_fits(struct graph *graph, const char *name, enum type type, const struct shape *shape)
{
    uint64_t bytes;
    char text[160];
    bool fits = shape_bytes(&bytes, shape, type);
    for (int i = 0; fits && i < shape->rank; i++)
        fits = shape->dim[i] > 0;
    if (fits)
        return true;
    shape_text(text, sizeof(text), shape, false);
    graph_fail(graph, PLIM_BAD_MODEL, "%s: a shape of %s is not possible", name, text);
    return false;
}

static struct tensor *tensor_add(struct graph *graph, const char *name, enum type type, const struct shape *shape)
{
    if (graph->failed || !shape_fits(graph, name, type, shape))
        return NULL;
    if (!table_room(graph, (void ***)&graph->tensor, graph->tensor_count, &graph->tensor_capacity))
        return NULL;
    struct tensor *tensor = graph_take(graph, sizeof(*tensor));
    if (!tensor)
        return NULL;
    tensor->id = graph->tensor_count;
    tensor->name = name;
    tensor->type = type;
    tensor->shape = *shape;
    graph->tensor[graph->tensor_count++] = tensor;
    return tensor;
}

struct tensor *graph_value(struct graph *graph, enum type type, struct shape shape, bool batched)
{
    struct tensor *tensor = tensor_add(graph, "value", type, &shape);
    if (!tensor)
        return NULL;
    tensor->kind = KIND_VALUE;
    tensor->batched = batched;
    return tensor;
}

struct tensor *graph_input(struct graph *graph, const char *name, int column, enum type type, struct shape shape)
{
    char text[160];
    if (graph->failed || !(name = copy_string(graph, name)))
        return NULL;
    if (shape.rank < 1 || shape.dim[0] != graph->batch) {
        shape_text(text, sizeof(text), &shape, false);
        return graph_fail(graph, PLIM_BAD_MODEL, "input %s of shape %s: the first axis must be the batch, %lld", name,
                          text, (long long)graph->batch);
    }
    struct tensor *tensor = tensor_add(graph, name, type, &shape);
    if (!tensor)
        return NULL;
    tensor->kind = KIND_INPUT;
    tensor->batched = true;
    tensor->column = column;
    return tensor;
}

static struct tensor *lasting(struct graph *graph, const char *name, enum type type, struct shape shape, enum kind kind)
{
    if (graph->failed || !(name = copy_string(graph, name)))
        return NULL;
    struct tensor *tensor = tensor_add(graph, name, type, &shape);
    if (!tensor || !name_register(graph, tensor))
        return NULL;
    tensor->kind = kind;
    return tensor;
}

struct tensor *graph_weight(struct graph *graph, const char *name, enum type type, struct shape shape, bool trainable)
{
    struct tensor *tensor = lasting(graph, name, type, shape, KIND_WEIGHT);
    if (tensor)
        tensor->trainable = trainable;
    return tensor;
}

struct tensor *graph_state(struct graph *graph, const char *name, enum type type, struct shape shape)
{
    return lasting(graph, name, type, shape, KIND_STATE);
}

struct tensor *graph_named(const struct graph *graph, const char *name)
{
    return graph->name_capacity ? graph->names[name_place(graph->names, graph->name_capacity, name)] : NULL;
}

void graph_result(struct graph *graph, struct tensor *tensor, const char *name)
{
    if (graph->failed || !tensor)
        return;
    if (!tensor->producer || (tensor->kind != KIND_VALUE && tensor->kind != KIND_RESULT)) {
        graph_fail(graph, PLIM_INTERNAL, "result %s: no node makes it", name);
        return;
    }
    if ((name = copy_string(graph, name)))
        tensor->name = name;
    tensor->kind = KIND_RESULT;
}

/* ---- nodes ------------------------------------------------------------- */

static bool inputs_fit(struct graph *graph, const struct op *op, struct tensor *const *inputs, int count)
{
    if (count > op->inputs || op->inputs > MOST_INPUTS) {
        graph_fail(graph, PLIM_INTERNAL, "%s: %d inputs given, it takes %d", op->name, count, op->inputs);
        return false;
    }
    for (int i = 0; i < op->inputs; i++) {
        if ((i >= count || !inputs[i]) && !(op->optional >> i & 1)) {
            graph_fail(graph, PLIM_INTERNAL, "%s: input %d is missing", op->name, i);
            return false;
        }
        enum type type = i < count && inputs[i] ? inputs[i]->type : TYPE_F32;
        if (op->wide_only && (type == TYPE_F16 || type == TYPE_BF16)) {
            graph_fail(graph, PLIM_BAD_MODEL, "%s: input %d is %s, which is not offered: %s", op->name, i,
                       type_name(type), op->wide_only);
            return false;
        }
    }
    return true;
}

/* Those of the node before, where they are the same: thousands of updates share one copy. */
static const void *last_attributes(const struct graph *graph, const struct node *node, const void *attributes)
{
    const struct node *last = graph->node_count ? graph->node[graph->node_count - 1] : NULL;
    bool same = last && last->op == node->op && attributes && last->attributes &&
                memcmp(last->attributes, attributes, node->attributes_bytes) == 0;
    return same ? last->attributes : NULL;
}

static bool copy_attributes(struct graph *graph, struct node *node, const void *attributes, size_t bytes)
{
    if (attributes && bytes != node->op->attributes_bytes) {
        graph_fail(graph, PLIM_INTERNAL, "%s: attributes of %zu bytes, it takes %zu", node->op->name, bytes,
                   node->op->attributes_bytes);
        return false;
    }
    node->attributes_bytes = node->op->attributes_bytes;
    if (node->attributes_bytes == 0)
        return true;
    node->attributes = last_attributes(graph, node, attributes);
    if (node->attributes)
        return true;
    void *copy = graph_take(graph, node->attributes_bytes);
    if (!copy)
        return false;
    if (attributes)
        memcpy(copy, attributes, bytes);
    node->attributes = copy;
    return true;
}

/* "dense/matmul", "max_pooling2d/max_pool.1". */
static const char *output_name(struct graph *graph, const struct node *node, int k)
{
    char number[16] = "";
    if (k)
        snprintf(number, sizeof(number), ".%d", k);
    size_t layer = strlen(node->name), op = strlen(node->op->name), rest = strlen(number), slash = layer != 0;
    char *name = graph_take(graph, layer + slash + op + rest + 1);
    if (!name)
        return NULL;
    memcpy(name, node->name, layer);
    memcpy(name + layer, "/", slash);
    memcpy(name + layer + slash, node->op->name, op);
    memcpy(name + layer + slash + op, number, rest + 1);
    return name;
}

static bool name_outputs(struct graph *graph, struct node *node)
{
    for (int k = 0; k < node->output_count; k++) {
        struct tensor *tensor = node->output[k];
        if (!tensor) {
            graph_fail(graph, PLIM_INTERNAL, "%s: output %d was not made", node->op->name, k);
            return false;
        }
        tensor->producer = node;
        if (!(tensor->name = output_name(graph, node, k)))
            return false;
    }
    return true;
}

/* Nodes of a layer come one after the other: they share a copy of its name. */
static const char *name_for_node(struct graph *graph)
{
    const char *layer = graph->layer ? graph->layer : "";
    if (!graph->node_name || strcmp(graph->node_name, layer) != 0)
        graph->node_name = copy_string(graph, layer);
    return graph->node_name;
}

static struct node *node_make(struct graph *graph, const struct op *op, struct tensor *const *inputs, int input_count,
                              const void *attributes, size_t attributes_bytes)
{
    struct node *node = graph_take(graph, sizeof(*node));
    if (!node)
        return NULL;
    node->id = graph->node_count;
    node->op = op;
    node->name = name_for_node(graph);
    node->backward = graph->backward;
    node->input_count = op->inputs;
    node->output_count = op->outputs;
    for (int i = 0; i < input_count; i++)
        node->input[i] = inputs[i];
    if (!node->name || !copy_attributes(graph, node, attributes, attributes_bytes))
        return NULL;
    return node;
}

struct tensor *graph_add(struct graph *graph, const struct op *op, struct tensor *const *inputs, int input_count,
                         const void *attributes, size_t attributes_bytes)
{
    plim_error error = {0};
    if (graph->failed || !inputs_fit(graph, op, inputs, input_count))
        return NULL;
    if (graph->node_count >= MOST_NODES)
        return graph_fail(graph, PLIM_BAD_MODEL, "more than %d operations in one step", MOST_NODES);
    struct node *node = node_make(graph, op, inputs, input_count, attributes, attributes_bytes);
    if (!node || !table_room(graph, (void ***)&graph->node, graph->node_count, &graph->node_capacity))
        return NULL;
    plim_status status = op->infer(graph, node, &error);
    if (graph->failed)
        return NULL;
    if (status) {
        graph->failed = status;
        graph->error = error;
        return NULL;
    }
    if (!name_outputs(graph, node))
        return NULL;
    graph->node[graph->node_count++] = node;
    return node->output_count ? node->output[0] : node->input[0];
}

struct tensor *graph_output(struct tensor *tensor, int k)
{
    if (!tensor || !tensor->producer || k < 0 || k >= tensor->producer->output_count)
        return NULL;
    return tensor->producer->output[k];
}

/* ---- printing ---------------------------------------------------------- */

/* A value by the node that makes it ("11", its second output "11.1"), others
   by name. */
static void print_source(struct text *out, const struct tensor *tensor)
{
    int k = 0;
    if (!tensor) {
        text_add(out, " -");
        return;
    }
    if (!tensor->producer) {
        text_add(out, " %s", tensor->name);
        return;
    }
    while (tensor->producer->output[k] != tensor)
        k++;
    text_add(out, " %d", tensor->producer->id);
    if (k)
        text_add(out, ".%d", k);
}

static void print_node(struct text *out, const struct node *node)
{
    char shape[160];
    text_add(out, "%d %s", node->id, node->op->name);
    if (node->name[0])
        text_add(out, " %s", node->name);
    for (int k = 0; k < node->output_count; k++) {
        shape_text(shape, sizeof(shape), &node->output[k]->shape, false);
        text_add(out, " %s", shape);
    }
    text_add(out, " <-");
    for (int i = 0; i < node->input_count; i++)
        print_source(out, node->input[i]);
    text_add(out, "\n");
}

void graph_print(struct text *out, const struct graph *graph)
{
    for (int i = 0; i < graph->node_count; i++)
        print_node(out, graph->node[i]);
}
