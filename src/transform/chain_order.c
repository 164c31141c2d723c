/* chain_order.c - the order in which nodes run, chosen so that chains are
   long.

   List scheduling: of the nodes that are ready, the first in program order that
   may join the current chain goes next; when none may, a new chain begins, with an
   update if one is ready (its gradient dies), else with the first in program
   order.

   Invariants:
    1. a node runs after the nodes that make what it reads;
    2. accesses to a weight or state keep program order around each update of it;
    3. a node that makes something again, or a weight's copy in another type, waits for all that its first reader waits
       for: else it would run in forward (the copies of all weights at its start), and what it makes would be kept;
    4. inside a chain, what is written is read by the same rows only (both CUT);
    5. what every slice walks through as a whole (weights, sums) fits in half of a nominal L2, or
       is one node's: else a chain of many layers would read all weights again for each slice.

   A weight gradient that is cut by rows and the update that alone reads it
   are scheduled as one (`pair`): the gradient then lives in slice buffers only. */
#include "base/memory/work.h"
#include "transform/chain_join.h"

struct edge {
    int to, next; /* leader of a pair; index of the next edge from the same node */
};

struct schedule {
    struct chain_work *work;
    int *pair;   /* by node id: the update that runs right after it; -1 */
    int *leader; /* by node id: itself, or the gradient that it is paired with */
    struct edge *edge;
    int edge_count;
    int *first_edge;        /* by leader */
    int *waits;             /* by leader: edges that have not been served */
    struct joining joining; /* leaders that are ready */
    int scheduled;
};

static bool writes(const struct node *node, int input)
{
    return node->op->updates >> input & 1;
}

/* Could run long before anybody reads what it makes: a weight in another form waits for nothing. */
static bool is_late(const struct node *node)
{
    const struct tensor *x = node->input_count == 1 ? node->input[0] : NULL;
    bool copies = x && x->kind == KIND_WEIGHT && node->output_count == 1 && !node->op->updates;
    return node->again || (copies && shape_equal(&x->shape, &node->output[0]->shape));
}

/* From who makes an operand; of weights and states from the update before, and to the update after; and what a late
   node waits for. */
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

/* The input of an update that a row-cut node makes for it alone; or -1. */
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
            made->output[0] == PART_CUT && cut->input[i] == PART_CUT)
            return i;
    }
    return -1;
}

/* What the maker reads must not be what the update writes, unless row by row. */
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
        if (input < 0 || !pair_is_safe(s, update->input[input]->producer, update) ||
            s->leader[update->input[input]->producer->id] != update->input[input]->producer->id)
            continue; /* who follows another has no follower of its own: runs are of two */
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

/* Readers of weights and states since their last update: a list a tensor. */
struct access {
    int *writer; /* by tensor id: last update; -1 */
    int *head;   /* by tensor id: into next; -1 */
    int *next;   /* by operand: node * MOST_INPUTS + input */
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

/* Invariant 3. made_for: by node id, the first reader of a late node; of a reader that is late itself, the one for
   which that is made; -1: none. Readers stand behind those they read: from the last on, that is known already. */
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
