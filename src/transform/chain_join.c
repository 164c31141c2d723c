/* chain_join.c - of the nodes that are ready, the first in program order that may join the current chain.

   A node may join when it is cut as the chain is, when what it shares with the chain's nodes is read and written row by
   row, when it adds no more bytes that every slice walks through as a whole than there is room for, and when no sum of
   one part keeps work that is worth several units in one (`admits`).

   Thousands of nodes may be ready at once (branches, updates), and each chain asks again. So those that are cut alike
   stand together in a tree of least bytes: the first that has room is found in log n. Two things keep the keys true:
    1. what a node adds gets less when the chain touches a whole operand of it: each tensor has a list of the ready
   nodes that read it as a whole. When the next chain begins, what it adds is all of it again (`changed`);
    2. a node meets what the chain writes only if the chain made it ready: values are written once, and an update is
       ready when all who read before it have run. It loses its key until the next chain: once for each node.

   What a chain admits depends on the node's share alone. So nodes that are cut alike stand in one range of places for
   each share, and only the ranges that the chain admits are asked. */
#include "transform/chain_join.h"

#include "transform/in_place.h"

static bool writes(const struct node *node, int input)
{
    return node->op->updates >> input & 1;
}

/* ---- cut alike --------------------------------------------------------- */

/* Where the cut is in a table of twice as many entries as nodes, at least: into alike + 1; 0: nowhere yet. */
static int *entry_of(const struct joining *j, int *entry, size_t entries, const struct alike *like)
{
    uint64_t hash = ((uint64_t)like->extent * 2 + like->by_sample) * 0x9e3779b97f4a7c15u;
    for (size_t at = (size_t)(hash >> 20) & (entries - 1);; at = (at + 1) & (entries - 1)) {
        const struct alike *there = entry[at] ? &j->alike[entry[at] - 1] : NULL;
        if (!there ||
            (there->extent == like->extent && there->by_sample == like->by_sample && there->grain == like->grain))
            return &entry[at];
    }
}

/* The pieces of a sum are those of its axis's own grain, unless the node's grain asks for others: such nodes stand
   apart. */
static struct alike alike_of(const struct cut *cut)
{
    struct cut axis = *cut;
    axis.grain = 1;
    return (struct alike){
        .extent = cut->extent, .by_sample = cut->by_sample, .grain = sum_grain(&axis) % cut->grain ? cut->grain : 1};
}

static enum share share_of(const struct chain_work *work, int id)
{
    if (work->sums[id].parts == 1)
        return SHARE_ONE;
    return work->cut[id].work < LEAST_WORK_SHARED ? SHARE_LITTLE : SHARE_MUCH;
}

/* The places of each kind and share, as many as were counted in `end`. */
static void place_ranges(struct joining *j, int kinds)
{
    int begin = 0;
    for (int a = 0; a < kinds; a++)
        for (int s = 0; s < SHARES; s++) {
            struct range *range = &j->alike[a].range[s];
            int size = range->end;
            range->begin = range->end = begin;
            begin += size;
        }
}

/* Counts those that are cut alike; then each leader gets its place, in program order. */
static bool find_alike(struct joining *j, const int *leader)
{
    int nodes = j->work->graph->node_count, count = 0;
    size_t entries = 16;
    while (entries < 2 * (size_t)nodes)
        entries *= 2;
    int *entry = arena_array(&j->work->arena, entries, sizeof *entry);
    if (!entry)
        return false;
    for (int n = 0; n < nodes; n++) {
        if (leader[n] != n)
            continue;
        struct alike like = alike_of(&j->work->cut[n]);
        int *found = entry_of(j, entry, entries, &like);
        if (!*found) {
            j->alike[count++] = like;
            *found = count;
        }
        j->alike_of[n] = *found - 1;
        j->alike[*found - 1].range[share_of(j->work, n)].end++;
    }
    place_ranges(j, count);
    for (int n = 0; n < nodes; n++)
        if (leader[n] == n) {
            j->place[n] = j->alike[j->alike_of[n]].range[share_of(j->work, n)].end++;
            j->leader_at[j->place[n]] = n;
        }
    return true;
}

static size_t count_whole(const struct chain_work *work)
{
    size_t count = 0;
    for (int n = 0; n < work->graph->node_count; n++)
        for (int i = 0; i < work->graph->node[n]->input_count && work->cut[n].by_sample; i++)
            count += work->graph->node[n]->input[i] && work->cut[n].input[i] != PART_CUT;
    return count;
}

bool joining_init(struct joining *j, struct chain_work *work, const int *pair, const int *leader)
{
    struct arena *arena = &work->arena;
    size_t nodes = (size_t)work->graph->node_count, tensors = (size_t)work->graph->tensor_count;
    *j = (struct joining){
        .work = work,
        .pair = pair,
        .place = arena_array(arena, nodes, sizeof(int)),
        .leader_at = arena_array(arena, nodes, sizeof(int)),
        .alike_of = arena_array(arena, nodes, sizeof(int)),
        .alike = arena_array(arena, nodes, sizeof(struct alike)),
        .touch = arena_array(arena, tensors, sizeof(struct touch)),
        .reader_head = arena_array(arena, tensors, sizeof(int)),
        .reader = arena_array(arena, count_whole(work), sizeof(struct whole_reader)),
        .changed = arena_array(arena, nodes, sizeof(int)),
        .is_changed = arena_array(arena, nodes, sizeof(bool)),
    };
    if (!j->place || !j->leader_at || !j->alike_of || !j->alike || !j->touch || !j->reader_head || !j->reader ||
        !j->changed || !j->is_changed)
        return false;
    for (size_t t = 0; t < tensors; t++) {
        j->touch[t].chain = -1;
        j->reader_head[t] = -1;
    }
    return number_set_init(&j->updates, arena, (int)nodes) && number_set_init(&j->others, arena, (int)nodes) &&
           min_tree_init(&j->bytes, arena, (int)nodes) && find_alike(j, leader);
}

/* ---- what a node adds -------------------------------------------------- */

/* Bytes that the node adds to what each slice of the current chain walks through as a whole. */
static int64_t added_bytes(const struct joining *j, const struct node *node)
{
    const struct cut *cut = &j->work->cut[node->id];
    int64_t bytes = 0;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && cut->input[i] != PART_CUT && j->touch[node->input[i]->id].chain != j->index)
            bytes += (int64_t)tensor_bytes(node->input[i]);
    for (int k = 0; k < node->output_count; k++)
        if (cut->output[k] != PART_CUT)
            bytes += (int64_t)tensor_bytes(node->output[k]);
    return bytes;
}

/* Only slices of samples are bounded by it; pairs are cut by rows. */
static int64_t key_of(const struct joining *j, int leader)
{
    if (j->work->graph->node[leader]->begins_chain)
        return LEAST_NONE;
    return j->work->cut[leader].by_sample ? added_bytes(j, j->work->graph->node[leader]) : 0;
}

static void change(struct joining *j, int leader, int64_t key)
{
    min_tree_set(&j->bytes, j->place[leader], key);
    if (!j->is_changed[leader])
        j->changed[j->changed_count++] = leader;
    j->is_changed[leader] = true;
}

void joining_add(struct joining *j, int leader)
{
    const struct node *node = j->work->graph->node[leader];
    const struct cut *cut = &j->work->cut[leader];
    number_set_add(node->op->updates || j->pair[leader] >= 0 ? &j->updates : &j->others, leader);
    change(j, leader, key_of(j, leader));
    for (int i = 0; i < node->input_count && cut->by_sample; i++)
        if (node->input[i] && cut->input[i] != PART_CUT) {
            int *head = &j->reader_head[node->input[i]->id];
            j->reader[j->reader_count] = (struct whole_reader){leader, *head};
            *head = j->reader_count++;
        }
}

/* The chain touches the tensor for the first time: those that read it as a whole add less. Who has run leaves
   the list. */
static void lessen(struct joining *j, const struct tensor *tensor)
{
    for (int *at = &j->reader_head[tensor->id]; *at >= 0;) {
        int leader = j->reader[*at].leader;
        j->steps++;
        if (j->work->chain_of[leader] >= 0) {
            *at = j->reader[*at].next;
            continue;
        }
        bool for_now = j->bytes.key[j->bytes.leaves + j->place[leader]] != LEAST_NONE;
        if (for_now && &j->alike[j->alike_of[leader]] == j->now)
            change(j, leader, key_of(j, leader));
        at = &j->reader[*at].next;
    }
}

static void note_touch(struct joining *j, const struct tensor *tensor, enum part part, bool written)
{
    struct touch *touch = &j->touch[tensor->id];
    bool first = touch->chain != j->index;
    if (first)
        *touch = (struct touch){.chain = j->index};
    touch->whole |= part != PART_CUT;
    touch->written |= written;
    if (first && j->now->by_sample)
        lessen(j, tensor);
}

static void append(struct joining *j, int id)
{
    const struct node *node = j->work->graph->node[id];
    const struct cut *cut = &j->work->cut[id];
    j->whole_bytes += added_bytes(j, node);
    j->sum_of_work += cut->work;
    j->serial |= j->work->sums[id].parts == 1;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i])
            note_touch(j, node->input[i], cut->input[i], writes(node, i));
    for (int k = 0; k < node->output_count; k++)
        note_touch(j, node->output[k], cut->output[k], true);
}

void joining_take(struct joining *j, int leader)
{
    number_set_remove(&j->updates, leader);
    number_set_remove(&j->others, leader);
    min_tree_set(&j->bytes, j->place[leader], LEAST_NONE);
    j->work->chain_of[leader] = j->index;
    append(j, leader);
    if (j->pair[leader] < 0)
        return;
    j->work->chain_of[j->pair[leader]] = j->index;
    append(j, j->pair[leader]);
}

/* ---- chains ------------------------------------------------------------ */

int joining_begin(struct joining *j, int index)
{
    int leader = number_set_next(&j->updates, 0);
    if (leader < 0)
        leader = number_set_next(&j->others, 0);
    if (leader < 0)
        return -1;
    j->index = index;
    j->whole_bytes = 0;
    j->sum_of_work = 0;
    j->serial = false;
    j->now = &j->alike[j->alike_of[leader]];
    for (int i = 0; i < j->changed_count; i++) {
        int changed = j->changed[i];
        j->is_changed[changed] = false;
        if (j->work->chain_of[changed] < 0)
            min_tree_set(&j->bytes, j->place[changed], key_of(j, changed));
    }
    j->steps += (uint64_t)j->changed_count + 1;
    j->changed_count = 0;
    return leader;
}

/* The node and the chain share what one of them writes, and not row by row. */
static bool meets(const struct joining *j, const struct node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        if (!node->input[i])
            continue;
        const struct touch *touch = &j->touch[node->input[i]->id];
        bool met = touch->chain == j->index && (touch->written || writes(node, i));
        if (met && (touch->whole || j->work->cut[node->id].input[i] != PART_CUT))
            return true;
    }
    return false;
}

/* A sum of one part makes its chain one unit. It joins what is not worth sharing, and what is does not join it. */
static bool admits(const struct joining *j, enum share share)
{
    bool shared = j->sum_of_work >= LEAST_WORK_SHARED;
    if (share == SHARE_ONE)
        return j->serial || !shared;
    return !j->serial || (share == SHARE_LITTLE && !shared);
}

/* Of the ranges that the chain admits, the first leader in program order that has room; -1: none. */
static int first_with_room(struct joining *j, int64_t room)
{
    int first = -1;
    for (int s = 0; s < SHARES; s++) {
        const struct range *range = &j->now->range[s];
        int place = admits(j, (enum share)s) ? min_tree_first(&j->bytes, range->begin, range->end, room) : -1;
        if (place >= 0 && (first < 0 || j->leader_at[place] < first))
            first = j->leader_at[place];
    }
    return first;
}

int joining_next(struct joining *j)
{
    struct node *const *node = j->work->graph->node;
    int64_t room = NOMINAL_L2_BYTES / 2 - j->whole_bytes;
    for (;;) {
        int leader = first_with_room(j, room > 0 ? room : 0);
        j->steps++;
        if (leader < 0 || !(meets(j, node[leader]) || (j->pair[leader] >= 0 && meets(j, node[j->pair[leader]]))))
            return leader;
        change(j, leader, LEAST_NONE);
    }
}
