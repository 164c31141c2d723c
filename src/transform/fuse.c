/* fuse.c - exact rewrites of the forward graph, before gradients are taken.

   relu moves behind what only selects or re-arranges (max_pool, flatten), then
   what computes takes it in as its activation. The tensor that others hold is
   always the last one of the pattern: it keeps its identity (name, kind), so
   no reader has to be changed. */
#include <string.h>

#include "base/memory/work.h"
#include "base/numbers/count.h"
#include "transform/fuse_own.h"

static plim_status refused(struct fusion *fusion)
{
    return arena_refused(&fusion->graph->arena, fusion->error);
}

static void count_readers(struct fusion *fusion)
{
    for (int n = 0; n < fusion->graph->node_count; n++) {
        const struct node *node = fusion->graph->node[n];
        for (int i = 0; i < node->input_count; i++)
            if (node->input[i])
                fusion->readers[node->input[i]->id]++;
    }
}

/* x -> relu -> r -> node -> y   becomes   x -> node -> r -> relu -> y.
   r takes the shape that y has. Exact for max_pool: max(relu(x)) = relu(max(x)), and
   where the first maximum differs (all of a window <= 0) no gradient flows. */
static void swap_with_relu(struct node *relu, struct node *node)
{
    struct tensor *x = relu->input[0], *r = relu->output[0], *y = node->output[0];
    node->input[0] = x;
    node->output[0] = r;
    r->producer = node;
    r->gone = true; /* what it was before is nowhere any more */
    r->shape = y->shape;
    r->batched = y->batched;
    relu->input[0] = r;
    relu->output[0] = y;
    y->producer = relu;
    if (y->kind == KIND_VALUE) { /* names follow what a tensor holds */
        const char *name = r->name;
        r->name = y->name;
        y->name = name;
    }
}

static bool passes_relu(const struct op *op)
{
    return op == &op_max_pool || op == &op_flatten;
}

/* Relus come to stand right behind the nodes that they were moved through, and ids follow. behind: by node id, the relu
   that does so + 1, or 0; moved: it is one of them. */
static void move_relus(struct graph *graph, const int *behind, const bool *moved, struct node **order)
{
    int count = 0;
    for (int n = 0; n < graph->node_count; n++) {
        if (moved[n])
            continue;
        order[count++] = graph->node[n];
        if (behind[n])
            order[count++] = graph->node[behind[n] - 1];
    }
    for (int n = 0; n < count; n++) {
        graph->node[n] = order[n];
        graph->node[n]->id = n;
    }
}

/* One pass over the nodes; a relu goes on through several in a row: host, by its id, is the last of them. */
static plim_status sink_relus(struct fusion *fusion, struct arena *work)
{
    struct graph *graph = fusion->graph;
    size_t nodes = (size_t)graph->node_count;
    int *behind = arena_array(work, nodes, sizeof(*behind)), *host = arena_array(work, nodes, sizeof(*host));
    bool *moved = arena_array(work, nodes, sizeof(*moved));
    struct node **order = arena_array(work, nodes, sizeof(struct node *));
    if (!behind || !host || !moved || !order)
        return arena_refused(work, fusion->error);
    for (int n = 0; n < graph->node_count; n++) {
        struct node *node = graph->node[n];
        struct tensor *r = passes_relu(node->op) ? node->input[0] : NULL;
        struct node *relu = r ? r->producer : NULL;
        if (!relu || relu->op != &op_relu || !read_once(fusion, r))
            continue;
        swap_with_relu(relu, node);
        if (moved[relu->id])
            behind[host[relu->id]] = 0;
        moved[relu->id] = true;
        host[relu->id] = n;
        behind[n] = relu->id + 1;
    }
    move_relus(graph, behind, moved, order);
    work_count(work->budget, (uint64_t)graph->node_count);
    return PLIM_OK;
}

/* Ops that can take in an activation (a relu; relu6 too, where so said), and where their attributes keep it. */
static const struct {
    const struct op *op;
    size_t activation;
    bool relu6;
} hosts[] = {
    {&op_matmul, offsetof(struct matmul_attributes, activation), false},
    {&op_batch_normalize, offsetof(struct batch_normalize_attributes, activation), true},
    {&op_conv1d, offsetof(struct conv_attributes, activation), false},
    {&op_conv2d, offsetof(struct conv_attributes, activation), false},
    {&op_conv3d, offsetof(struct conv_attributes, activation), false},
    {&op_depthwise_conv1d, offsetof(struct conv_attributes, activation), false},
    {&op_depthwise_conv2d, offsetof(struct conv_attributes, activation), false},
};

static enum activation *activation_of(const struct op *op, void *attributes, enum activation wanted)
{
    for (size_t i = 0; i < COUNT(hosts); i++)
        if (hosts[i].op == op && (wanted == ACTIVATION_RELU || hosts[i].relu6))
            return (enum activation *)((char *)attributes + hosts[i].activation);
    return NULL;
}

/* What a node is as an activation of another: relu, relu6 or none. */
static enum activation activation_like(const struct node *node)
{
    const struct numbers_attributes *numbers = node->op == &op_rectify ? node->attributes : NULL;
    if (node->op == &op_relu)
        return ACTIVATION_RELU;
    return numbers && numbers->a == 0 && numbers->b == 6 && numbers->c == 0 ? ACTIVATION_RELU6 : ACTIVATION_NONE;
}

/* maker -> z -> relu -> y   becomes   maker+relu -> y. */
static plim_status take_in(struct fusion *fusion, struct node *maker, struct node *relu, bool *taken)
{
    void *attributes = arena_take(&fusion->graph->arena, maker->attributes_bytes);
    if (!attributes)
        return refused(fusion);
    if (maker->attributes_bytes)
        memcpy(attributes, maker->attributes, maker->attributes_bytes);
    enum activation *activation = activation_of(maker->op, attributes, activation_like(relu));
    bool transposed = maker->op == &op_matmul && ((const struct matmul_attributes *)attributes)->transposed;
    if (!activation || *activation != ACTIVATION_NONE || transposed)
        return PLIM_OK;
    *activation = activation_like(relu);
    maker->attributes = attributes;
    maker->output[0]->producer = NULL;
    maker->output[0]->gone = true;
    maker->output[0] = relu->output[0];
    maker->output[0]->producer = maker;
    *taken = true;
    return PLIM_OK;
}

static plim_status take_in_relus(struct fusion *fusion)
{
    struct graph *graph = fusion->graph;
    int kept = 0;
    for (int n = 0; n < graph->node_count; n++) {
        struct node *node = graph->node[n];
        struct tensor *z = activation_like(node) ? node->input[0] : NULL;
        bool taken = false;
        if (z && z->producer && read_once(fusion, z))
            TRY(take_in(fusion, z->producer, node, &taken));
        if (taken)
            continue;
        node->id = kept;
        graph->node[kept++] = node;
    }
    graph->node_count = kept;
    return PLIM_OK;
}

/* Values that no node makes any more are gone; the others close ranks. */
static void drop_dead_tensors(struct graph *graph)
{
    int kept = 0;
    for (int t = 0; t < graph->tensor_count; t++) {
        struct tensor *tensor = graph->tensor[t];
        if (tensor->kind == KIND_VALUE && !tensor->producer)
            continue;
        tensor->id = kept;
        graph->tensor[kept++] = tensor;
    }
    graph->tensor_count = kept;
}

plim_status fuse(struct graph *graph, plim_error *error)
{
    struct arena work;
    struct fusion fusion = {.graph = graph, .error = error};
    TRY(graph_check(graph, error));
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    fusion.readers = arena_array(&work, (size_t)graph->tensor_count, sizeof(*fusion.readers));
    plim_status status = fusion.readers ? PLIM_OK : refused(&fusion);
    if (status == PLIM_OK) {
        count_readers(&fusion);
        status = sink_relus(&fusion, &work);
    }
    if (status == PLIM_OK)
        status = take_in_relus(&fusion);
    if (status == PLIM_OK)
        status = fuse_vocabulary(&fusion);
    if (status == PLIM_OK)
        drop_dead_tensors(graph);
    arena_release(&work);
    return status;
}
