/* chain_order.c - chooses the execution order of the nodes so that chains are long.

   The algorithm is list scheduling: among the ready nodes, the first in program order that may join the current chain
   runs next. When none may, a new chain begins with an update if one is ready, because its gradient can then be freed,
   and otherwise with the first ready node in program order.

   Invariants:
    1. a node runs after the nodes that compute its inputs;
    2. accesses to a weight or state keep program order around each update of it;
    3. a recomputation, or a copy of a weight in another type, waits for everything that its first reader waits for,
       because otherwise it would run in the forward pass (the copies of all weights at its start) and its output would
       be kept;
    4. inside a chain, a tensor that is written is read by the same rows only (both accesses are CUT);
    5. the tensors that every slice accesses as a whole (weights, sums) fit in half of a nominal L2 or belong to one
       node, because otherwise a chain of many layers would read all weights again for each slice.

   A weight gradient that is cut by rows and the update that is its only reader are scheduled as one (`pair`), so the
   gradient exists in slice buffers only. */
#include "base/memory/work.h"
#include "transform/chain_join.h"

struct edge {
    int to, next; /* to: a leader; next: index of the next edge from the same node, or -1 */
};

struct schedule {
    struct chain_work *work;
    int *pair;   /* by node id: the update that runs right after the node; -1: none */
    int *leader; /* by node id: the node itself, or the gradient that it is paired with */
    struct edge *edge;
    int edge_count;
    int *first_edge;        /* by leader: index of its first edge; -1: none */
    int *waits;             /* by leader: incoming edges whose source has not been scheduled */
    struct joining joining; /* leaders that are ready */
    int scheduled;
};

static bool writes(const struct node *node, int input)
{
    return node->op->updates >> input & 1;
}

/* Whether the node could run long before its output is read: it is a recomputation, or a copy of a weight, which waits
   for nothing. */
static bool is_late(const struct node *node)
{
    const struct tensor *x = node->input_count == 1 ? node->input[0] : NULL;
    bool copies = x && x->kind == KIND_WEIGHT && node->output_count == 1 && !node->op->updates;
    return node->again || (copies && shape_equal(&x->shape, &node->output[0]->shape));
}

/* An upper bound of the number of edges: one from the producer of an operand; for an operand that is a weight or state
   one from the update before and one to the update after; and, for a late node, one from each node it waits for. */
static size_t most_edges(const struct graph *graph)
{
    size_t count = 0;
    for (int n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->node[n]->input_count; i++)
            count += graph->node[n]->input[i] ? 2 : 0;
        count += is_late(graph->node[n]) ? MOST_INPUTS : 0;
    }
    return count;
}

static bool take_tables(struct schedule *s, struct chain_work *work)
{
    size_t nodes = (size_t)work->graph->node_count;
    struct arena *arena = &work->arena;
    s->work = work;
    s->pair = arena_array(arena, nodes, sizeof(*s->pair));
    s->leader = arena_array(arena, nodes, sizeof(*s->leader));
    s->edge = arena_array(arena, most_edges(work->graph), sizeof(*s->edge));
    s->first_edge = arena_array(arena, nodes, sizeof(*s->first_edge));
    s->waits = arena_array(arena, nodes, sizeof(*s->waits));
    return s->pair && s->leader && s->edge && s->first_edge && s->waits;
}

/* ---- pairs ------------------------------------------------------------- */

/* The index of the update's input that a node cut by rows computes for this update alone; -1: none. */
static int gradient_input(const struct schedule *s, const struct node *update)
{
    const struct chain_work *work = s->work;
    const struct cut *cut = &work->cut[update->id];
    for (int i = 0; i < update->input_count; i++) {
        const struct tensor *tensor = update->input[i];
        if (!tensor || tensor->kind != KIND_VALUE || !tensor->producer || work->readers[tensor->id] != 1)
            continue;
        const struct node *maker = tensor->producer;
        const struct cut *made = &work->cut[maker->id];
        if (maker->output_count == 1 && !made->by_sample && !cut->by_sample && made->extent == cut->extent &&
            made->grain % cut->grain == 0 && made->output[0] == PART_CUT && cut->input[i] == PART_CUT)
            return i;
    }
    return -1;
}

/* The update must not write a tensor that the maker reads, unless both access it row by row. */
static bool pair_is_safe(const struct schedule *s, const struct node *maker, const struct node *update)
{
    for (int i = 0; i < update->input_count; i++)
        for (int j = 0; writes(update, i) && j < maker->input_count; j++)
            if (maker->input[j] == update->input[i] &&
                (s->work->cut[maker->id].input[j] != PART_CUT || s->work->cut[update->id].input[i] != PART_CUT))
                return false;
    return true;
}

static void find_pairs(struct schedule *s)
{
    struct graph *graph = s->work->graph;
    for (int n = 0; n < graph->node_count; n++) {
        s->pair[n] = s->first_edge[n] = -1;
        s->leader[n] = n;
    }
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *update = graph->node[n];
        int input = update->op->updates ? gradient_input(s, update) : -1;
        if (input < 0 || update->begins_chain || s->work->sums[n].parts ||
            !pair_is_safe(s, update->input[input]->producer, update) ||
            s->leader[update->input[input]->producer->id] != update->input[input]->producer->id)
            continue; /* a node that follows another has no follower: pairs have two nodes */
        s->pair[update->input[input]->producer->id] = n;
        s->leader[n] = update->input[input]->producer->id;
    }
}

/* ---- dependencies ------------------------------------------------------ */

static void add_edge(struct schedule *s, int from, int to)
{
    from = s->leader[from];
    to = s->leader[to];
    if (from == to)
        return;
    s->edge[s->edge_count] = (struct edge){.to = to, .next = s->first_edge[from]};
    s->first_edge[from] = s->edge_count++;
    s->waits[to]++;
}

/* Readers of weights and states since their last update: one list per tensor. */
struct access {
    int *writer; /* by tensor id: the last update; -1: none */
    int *head;   /* by tensor id: the first operand of the list; -1: none */
    int *next;   /* by operand (node * MOST_INPUTS + input): the next operand of the list; -1: none */
};

static void order_access(struct schedule *s, struct access *access, const struct node *node, int input)
{
    int t = node->input[input]->id, operand = node->id * MOST_INPUTS + input;
    if (access->writer[t] >= 0 && access->writer[t] != node->id)
        add_edge(s, access->writer[t], node->id);
    if (!writes(node, input)) {
        access->next[operand] = access->head[t];
        access->head[t] = operand;
        return;
    }
    for (int at = access->head[t]; at >= 0; at = access->next[at])
        if (at / MOST_INPUTS != node->id)
            add_edge(s, at / MOST_INPUTS, node->id);
    access->head[t] = -1;
    access->writer[t] = node->id;
}

static bool find_edges(struct schedule *s)
{
    struct graph *graph = s->work->graph;
    struct arena *arena = &s->work->arena;
    struct access access = {
        .writer = arena_array(arena, (size_t)graph->tensor_count, sizeof(int)),
        .head = arena_array(arena, (size_t)graph->tensor_count, sizeof(int)),
        .next = arena_array(arena, (size_t)graph->node_count * MOST_INPUTS, sizeof(int)),
    };
    if (!access.writer || !access.head || !access.next)
        return false;
    for (int t = 0; t < graph->tensor_count; t++)
        access.writer[t] = access.head[t] = -1;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; i < node->input_count; i++) {
            const struct tensor *tensor = node->input[i];
            if (tensor && tensor->producer)
                add_edge(s, tensor->producer->id, n);
            else if (tensor && tensor->kind != KIND_INPUT)
                order_access(s, &access, node, i);
        }
    }
    return true;
}

/* Adds the edges of invariant 3. made_for: by node id, the first reader of the node's outputs, or that reader's
   made_for if the reader itself is late; -1: none. The loop runs from the last node to the first, so that the reader's
   made_for is known already, because readers come after the nodes that they read. */
static bool find_late_edges(struct schedule *s)
{
    struct graph *graph = s->work->graph;
    int *made_for = arena_array(&s->work->arena, (size_t)graph->node_count, sizeof(*made_for));
    if (!made_for)
        return false;
    for (int n = 0; n < graph->node_count; n++)
        made_for[n] = -1;
    for (int n = graph->node_count - 1; n >= 0; n--)
        for (int i = 0; i < graph->node[n]->input_count; i++)
            if (graph->node[n]->input[i] && graph->node[n]->input[i]->producer)
                made_for[graph->node[n]->input[i]->producer->id] = is_late(graph->node[n]) ? made_for[n] : n;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *first = is_late(graph->node[n]) && made_for[n] >= 0 ? graph->node[made_for[n]] : NULL;
        for (int i = 0; first && i < first->input_count; i++) {
            const struct node *maker = first->input[i] ? first->input[i]->producer : NULL;
            if (maker && !is_late(maker))
                add_edge(s, maker->id, n);
        }
    }
    return true;
}

/* ---- scheduling -------------------------------------------------------- */

static void append(struct schedule *s, int id, int index)
{
    s->work->chains->order[s->scheduled++] = s->work->graph->node[id];
    s->work->chains->chain[index].count++;
}

static void run(struct schedule *s, int leader, int index)
{
    joining_take(&s->joining, leader);
    append(s, leader, index);
    if (s->pair[leader] >= 0)
        append(s, s->pair[leader], index);
    for (int e = s->first_edge[leader]; e >= 0; e = s->edge[e].next)
        if (--s->waits[s->edge[e].to] == 0)
            joining_add(&s->joining, s->edge[e].to);
}

static void run_all(struct schedule *s)
{
    struct chains *chains = s->work->chains;
    int leader;
    while ((leader = joining_begin(&s->joining, chains->chain_count)) >= 0) {
        int index = chains->chain_count++;
        const struct cut *cut = &s->work->cut[leader];
        chains->chain[index] =
            (struct chain){.first = s->scheduled, .extent = cut->extent, .by_sample = cut->by_sample};
        for (; leader >= 0; leader = joining_next(&s->joining))
            run(s, leader, index);
    }
}

plim_status chain_order(struct chain_work *work, plim_error *error)
{
    struct schedule s = {0};
    struct graph *graph = work->graph;
    work->chains->chain = arena_array(&work->arena, (size_t)graph->node_count, sizeof(struct chain));
    bool ok = work->chains->chain && take_tables(&s, work);
    if (ok) {
        find_pairs(&s);
        ok = find_edges(&s) && find_late_edges(&s) && joining_init(&s.joining, work, s.pair, s.leader);
    }
    if (!ok)
        return budget_refused(graph->arena.budget, TAG_PLANNER, work->graph->arena.block_bytes, error);
    for (int n = 0; n < graph->node_count; n++)
        if (s.leader[n] == n && s.waits[n] == 0)
            joining_add(&s.joining, n);
    run_all(&s);
    work_count(graph->arena.budget, s.joining.steps + (uint64_t)s.edge_count);
    if (s.scheduled != graph->node_count)
        return fail(error, PLIM_INTERNAL, "chains: %d of %d nodes can be ordered", s.scheduled, graph->node_count);
    return PLIM_OK;
}
