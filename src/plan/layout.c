/* layout.c - assigns offsets in the tensor arena to instances whose lifetimes are known.

   The algorithm is greedy packing: it places the instances in a given order, and each one goes into the lowest gap that
   is free for its whole lifetime. The result depends on the order, so several orders are tried and the one with the
   lowest top wins. The lower bound of any packing is the largest sum of the bytes that live at one instruction.

   The placed instances are kept sorted by offset (struct packing), in a treap of blocks. Each block summarizes its
   members and its subtree, so that a search can skip a whole block or subtree; this matters because a model of 5,000
   layers has 15,000 instances.

   The first order is TWA (largest live total touched, then lifetime, then area), because it reaches the lower bound on
   nearly every training schedule, and then the other orders need not run. When an order misses the bound, the instance
   that reached the top moves to the front of the order and the packing is repeated, up to REPAIR_ROUNDS times. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/memory/work.h"
#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "base/numbers/minmax.h"
#include "plan/plan.h"

#define STEPS_A_SLOT  64 /* one packing stops searching for gaps after about STEPS_A_SLOT * n * log2(n) steps */
#define REPAIR_ROUNDS 100
#define REPAIR_SLOTS  20000 /* limit on rounds * instances, so that large plans get fewer rounds */

struct item {
    int index; /* index of the instance */
    int first, last;
    uint64_t bytes;   /* rounded up to LAYOUT_ALIGNMENT */
    uint64_t touched; /* largest live total during its lifetime */
    uint64_t offset;
};

uint64_t layout_bytes(uint64_t bytes)
{
    return round_up(bytes, LAYOUT_ALIGNMENT);
}

static int64_t lifetime(const struct item *item)
{
    return (int64_t)item->last - item->first + 1;
}

static int larger(uint64_t a, uint64_t b)
{
    return a > b ? -1 : a < b;
}

static int by_index(const struct item *a, const struct item *b)
{
    return a->index < b->index ? -1 : a->index > b->index;
}

static int by_area(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    double x = (double)a->bytes * (double)lifetime(a), y = (double)b->bytes * (double)lifetime(b);
    return x != y ? (x > y ? -1 : 1) : by_index(a, b);
}

static int by_lifetime(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    int order = larger((uint64_t)lifetime(a), (uint64_t)lifetime(b));
    return order ? order : by_area(a, b);
}

static int by_touched(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    int order = larger(a->touched, b->touched);
    return order ? order : by_lifetime(a, b);
}

static int by_size(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    int order = larger(a->bytes, b->bytes);
    return order ? order : by_lifetime(a, b);
}

static int by_start(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    return a->first != b->first ? (a->first < b->first ? -1 : 1) : by_size(a, b);
}

typedef int item_order(const void *left, const void *right);
static item_order *const orders[] = {by_touched, by_lifetime, by_area, by_size, by_start};

uint64_t layout_max_live(uint64_t *live, const struct instance *instance, int count, int instructions, int *peak)
{
    uint64_t most = 0, now = 0;
    int at = 0;
    memset(live, 0, (size_t)instructions * sizeof(*live));
    /* live[] is first a difference array (bytes that begin or end at each instruction), then its prefix sum. Unsigned
     * wrap-around cancels in the sum. */
    for (int k = 0; k < count; k++) {
        live[instance[k].first] += layout_bytes(instance[k].bytes);
        if (instance[k].last + 1 < instructions)
            live[instance[k].last + 1] -= layout_bytes(instance[k].bytes);
    }
    for (int i = 0; i < instructions; i++) {
        now += live[i];
        live[i] = now;
        if (now > most) {
            most = now;
            at = i;
        }
    }
    if (peak)
        *peak = at;
    return most;
}

/* ---- the placed instances, sorted by offset ---------------------------- */

#define BLOCK 32

/* A placed instance. */
struct member {
    int first, last;
    uint64_t offset, end;
};

/* Summary of a run of members that are adjacent in offset order. */
struct summary {
    int least_first, most_first, least_last, most_last;
    uint64_t begin, end; /* range of bytes that the members cover */
    uint64_t gap;        /* upper bound of the widest gap between members */
};

/* A node of the treap. Blocks are sorted by offset: the subtree `left` holds the blocks before this one, and the
   subtree `right` those after it. */
struct block {
    int count;
    int left, right;         /* -1: none */
    uint32_t rank;           /* heap priority: no block in the subtree has a higher rank */
    struct summary own, all; /* of its own members; of its whole subtree */
    struct member member[BLOCK];
};

/* Where the last item of a given lifetime and size was placed. A later item of the same lifetime and size finds no gap
   below that offset. */
struct found {
    int first, last;
    uint64_t bytes, offset;
};

/* A segment tree over instructions that holds the highest end offset of the placed items.
   own[k]: maximum over the items whose lifetime has node k in its decomposition into tree nodes.
   all[k]: maximum over the items whose first or last instruction is below node k.
   ends_over needs both arrays. */
struct end_tree {
    uint64_t *own, *all;
    size_t size; /* number of leaves; 0: there is no tree */
};

struct packing {
    struct block *block;
    int block_count;
    int root;                   /* -1: nothing is placed */
    struct found *found;        /* hash table by lifetime and size; a later entry overwrites. NULL: unused */
    size_t found_count;         /* a power of two */
    uint64_t steps, most_steps; /* blocks visited by the searches of this packing, and the limit */
    uint64_t all_steps;         /* sum over all packings */
    struct end_tree ends;
    const struct budget *budget; /* whose stop ends the search; NULL: the packing is small */
};

static bool is_stopped(const struct packing *packing)
{
    return packing->budget && budget_go_on(packing->budget, NULL) != PLIM_OK;
}

static size_t most_blocks(int count)
{
    return (size_t)count / (BLOCK / 2) + 2;
}

/* Adds b to a; b's members come after a's in offset order. The joined gap is an upper bound, because members of a may
   reach into a gap of b. */
static void summary_join(struct summary *a, const struct summary *b)
{
    uint64_t between = b->begin > a->end ? b->begin - a->end : 0;
    a->least_first = b->least_first < a->least_first ? b->least_first : a->least_first;
    a->most_first = b->most_first > a->most_first ? b->most_first : a->most_first;
    a->least_last = b->least_last < a->least_last ? b->least_last : a->least_last;
    a->most_last = b->most_last > a->most_last ? b->most_last : a->most_last;
    a->gap = max_u64(a->gap, max_u64(b->gap, between));
    a->end = max_u64(a->end, b->end);
}

static struct summary summary_of(const struct member *member)
{
    return (struct summary){member->first, member->first, member->last, member->last, member->offset, member->end, 0};
}

static void summarize_members(struct block *block)
{
    block->own = summary_of(&block->member[0]);
    for (int i = 1; i < block->count; i++) {
        const struct summary next = summary_of(&block->member[i]);
        summary_join(&block->own, &next);
    }
}

/* Whether the members need not be examined one by one. This holds in three cases: all members end at or before *at; no
   member's lifetime overlaps the item's; or all lifetimes overlap it and no gap is large enough. In the third case *at
   advances to the end of the members. */
static bool can_skip(uint64_t *at, const struct summary *summary, const struct item *item)
{
    if (summary->end <= *at || summary->most_last < item->first || item->last < summary->least_first)
        return true;
    bool all = summary->most_first <= item->last && item->first <= summary->least_last;
    if (!all || summary->gap >= item->bytes || (summary->begin >= *at && summary->begin - *at >= item->bytes))
        return false;
    *at = summary->end > *at ? summary->end : *at;
    return true;
}

/* Searches the block for the lowest gap from *at on, between members whose lifetimes overlap the item's. True: *at is
   that gap. False: *at has advanced past those members. */
static bool gap_in_block(uint64_t *at, const struct block *block, const struct item *item)
{
    for (int i = 0; i < block->count; i++) {
        const struct member *placed = &block->member[i];
        if (placed->last < item->first || item->last < placed->first)
            continue;
        if (placed->offset >= *at && placed->offset - *at >= item->bytes)
            return true;
        if (placed->end > *at)
            *at = placed->end;
    }
    return false;
}

/* The same search in the subtree of block k. The recursion is as deep as the treap, about 2 log n. */
static bool gap_below(uint64_t *at, struct packing *packing, int k, const struct item *item)
{
    const struct block *block = k < 0 ? NULL : &packing->block[k];
    packing->steps++;
    if (!block || can_skip(at, &block->all, item))
        return false;
    if (gap_below(at, packing, block->left, item))
        return true;
    if (!can_skip(at, &block->own, item) && gap_in_block(at, block, item))
        return true;
    return gap_below(at, packing, block->right, item);
}

static void update_summary(struct packing *packing, int k)
{
    struct block *block = &packing->block[k];
    struct summary all = block->left < 0 ? block->own : packing->block[block->left].all;
    if (block->left >= 0)
        summary_join(&all, &block->own);
    if (block->right >= 0)
        summary_join(&all, &packing->block[block->right].all);
    block->all = all;
}

/* Restores the heap order at block k by at most one rotation and returns the new root of this subtree. The summaries in
   the subtree are correct afterwards. */
static int rotate_up(struct packing *packing, int k)
{
    struct block *block = &packing->block[k];
    int left = block->left, right = block->right;
    update_summary(packing, k);
    if (left >= 0 && packing->block[left].rank > block->rank) {
        block->left = packing->block[left].right;
        packing->block[left].right = k;
    } else if (right >= 0 && packing->block[right].rank > block->rank) {
        block->right = packing->block[right].left;
        packing->block[right].left = k;
        left = right;
    } else {
        return k;
    }
    update_summary(packing, k);
    update_summary(packing, left);
    return left;
}

static int make_block(struct packing *packing)
{
    uint32_t number = (uint32_t)packing->block_count + 1;
    struct block *block = &packing->block[packing->block_count];
    number = (number ^ number >> 16) * 0x7feb352du; /* a hash: pseudo-random, and the same in every run */
    number = (number ^ number >> 15) * 0x846ca68bu;
    block->left = block->right = -1;
    block->count = 0;
    block->rank = number ^ number >> 16;
    return packing->block_count++;
}

/* Moves the second half of a full block into a new block and returns the new block. */
static int split_block(struct packing *packing, struct block *full)
{
    int k = make_block(packing);
    struct block *half = &packing->block[k];
    half->count = BLOCK / 2;
    full->count -= half->count;
    memcpy(half->member, &full->member[full->count], (size_t)half->count * sizeof(*half->member));
    summarize_members(full);
    summarize_members(half);
    half->all = half->own;
    return k;
}

/* Inserts block `added` before all blocks of subtree k, which may be empty (-1). Returns the root of the subtree. */
static int insert_first(struct packing *packing, int k, int added)
{
    if (k < 0)
        return added;
    packing->block[k].left = insert_first(packing, packing->block[k].left, added);
    return rotate_up(packing, k);
}

/* Inserts the item after all members whose offset is not larger. */
static void insert_in_block(struct block *block, const struct item *item)
{
    int k = block->count++;
    for (; k > 0 && block->member[k - 1].offset > item->offset; k--)
        block->member[k] = block->member[k - 1];
    block->member[k] = (struct member){item->first, item->last, item->offset, item->offset + item->bytes};
    summarize_members(block);
}

/* Inserts the item into the last block that begins at or before its offset, or into the first block if there is none.
   Returns the root of the subtree. */
static int insert_item(struct packing *packing, int k, const struct item *item)
{
    struct block *block = &packing->block[k];
    if (block->right >= 0 && packing->block[block->right].all.begin <= item->offset) {
        block->right = insert_item(packing, block->right, item);
    } else if (block->left >= 0 && block->own.begin > item->offset) {
        block->left = insert_item(packing, block->left, item);
    } else {
        insert_in_block(block, item);
        if (block->count == BLOCK)
            block->right = insert_first(packing, block->right, split_block(packing, block));
    }
    return rotate_up(packing, k);
}

/* ---- placing the items of one order ------------------------------------ */

static void ends_add(struct end_tree *ends, const struct item *item)
{
    uint64_t end = item->offset + item->bytes;
    size_t begin = ends->size + (size_t)item->first, behind = ends->size + (size_t)item->last + 1;
    for (size_t a = begin, b = behind; a < b; a /= 2, b /= 2) {
        size_t left = a & 1 ? a++ : 0, right = b & 1 ? --b : 0; /* entry 0 is unused */
        ends->own[left] = max_u64(ends->own[left], end);
        ends->own[right] = max_u64(ends->own[right], end);
    }
    for (size_t a = begin, b = behind - 1; a; a /= 2, b /= 2) {
        ends->all[a] = max_u64(ends->all[a], end);
        ends->all[b] = max_u64(ends->all[b], end);
    }
}

/* The offset above all placed items whose lifetimes overlap the item's. */
static uint64_t ends_over(const struct end_tree *ends, const struct item *item)
{
    uint64_t most = 0;
    size_t begin = ends->size + (size_t)item->first, behind = ends->size + (size_t)item->last + 1;
    for (size_t a = begin, b = behind; a < b; a /= 2, b /= 2) {
        most = max_u64(most, a & 1 ? ends->all[a++] : 0);
        most = max_u64(most, b & 1 ? ends->all[--b] : 0);
    }
    for (size_t a = begin, b = behind - 1; a; a /= 2, b /= 2)
        most = max_u64(most, max_u64(ends->own[a], ends->own[b]));
    return most;
}

static struct found *found_item(const struct packing *packing, const struct item *item)
{
    uint64_t hash = ((uint64_t)item->first << 32 ^ (uint64_t)item->last) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29 ^ item->bytes) * 0xbf58476d1ce4e5b9u;
    return &packing->found[(hash >> 32) & (packing->found_count - 1)];
}

/* The offset of the lowest gap. The search begins where the last item of the same lifetime and size was placed, because
   placing an item only ever removes free space. */
static uint64_t find_gap(struct packing *packing, const struct item *item)
{
    struct found *found = packing->found ? found_item(packing, item) : NULL;
    bool same = found && found->first == item->first && found->last == item->last && found->bytes == item->bytes;
    uint64_t at = same ? found->offset : 0;
    gap_below(&at, packing, packing->root, item);
    if (found)
        *found = (struct found){item->first, item->last, item->bytes, at};
    return at;
}

/* Places the items in the given order and returns the top. Once the searches have used most_steps, or a stop was asked
   for, each remaining item goes above all items whose lifetimes overlap its own. */
static uint64_t place_all(struct packing *packing, struct item *item, int count)
{
    uint64_t top = 0;
    int i = 0;
    packing->block_count = 0;
    packing->steps = 0;
    packing->root = make_block(packing);
    if (packing->found)
        memset(packing->found, 0, packing->found_count * sizeof(*packing->found));
    for (; i < count && !is_stopped(packing) && (packing->steps < packing->most_steps || !packing->ends.size); i++) {
        item[i].offset = i > 0 ? find_gap(packing, &item[i]) : 0;
        packing->root = insert_item(packing, packing->root, &item[i]);
        top = max_u64(top, item[i].offset + item[i].bytes);
    }
    packing->all_steps += packing->steps + (uint64_t)count;
    if (i == count)
        return top;
    memset(packing->ends.own, 0, 2 * packing->ends.size * sizeof(*packing->ends.own));
    memset(packing->ends.all, 0, 2 * packing->ends.size * sizeof(*packing->ends.all));
    for (int k = 0; k < i; k++)
        ends_add(&packing->ends, &item[k]);
    for (; i < count; i++) {
        item[i].offset = ends_over(&packing->ends, &item[i]);
        ends_add(&packing->ends, &item[i]);
        top = max_u64(top, item[i].offset + item[i].bytes);
    }
    return top;
}

/* ---- orders ------------------------------------------------------------ */

/* The smallest power of two that is not less than `instructions`. */
static size_t tree_size(int instructions)
{
    size_t size = 1;
    while (size < (size_t)instructions)
        size *= 2;
    return size;
}

/* The maximum over instructions first..last, from a segment tree of maxima: tree[size + i] is instruction i. */
static uint64_t most_between(const uint64_t *tree, size_t size, int first, int last)
{
    uint64_t most = 0;
    for (size_t a = size + (size_t)first, b = size + (size_t)last + 1; a < b; a /= 2, b /= 2) {
        most = max_u64(most, a & 1 ? tree[a++] : 0);
        most = max_u64(most, b & 1 ? tree[--b] : 0);
    }
    return most;
}

/* Sets item->touched and returns the lower bound. tree has two entries per leaf, and those behind the instructions are
   zero. */
static uint64_t measure(struct item *item, const struct instance *instance, int count, uint64_t *tree, int instructions)
{
    size_t size = tree_size(instructions);
    uint64_t bound = layout_max_live(tree + size, instance, count, instructions, NULL);
    for (size_t k = size - 1; k > 0; k--)
        tree[k] = max_u64(tree[2 * k], tree[2 * k + 1]);
    for (int i = 0; i < count; i++)
        item[i].touched = most_between(tree, size, item[i].first, item[i].last);
    return bound;
}

static plim_status load(struct item *item, int *instructions, const struct instance *instance, int count,
                        plim_error *error)
{
    uint64_t sum = 0;
    *instructions = 0;
    for (int i = 0; i < count; i++) {
        uint64_t bytes = layout_bytes(instance[i].bytes);
        if (instance[i].first < 0 || instance[i].last < instance[i].first)
            return fail(error, PLIM_INTERNAL, "layout: %s lives from %d to %d", instance[i].name, instance[i].first,
                        instance[i].last);
        if (bytes < instance[i].bytes || !add_u64(&sum, sum, bytes))
            return fail(error, PLIM_OVER_BUDGET, "the values of a step need more bytes than 64 bits can count");
        item[i] = (struct item){.index = i, .first = instance[i].first, .last = instance[i].last, .bytes = bytes};
        if (instance[i].last >= *instructions)
            *instructions = instance[i].last + 1;
    }
    return PLIM_OK;
}

/* Places all items and copies their offsets to the instances if the top is the lowest so far. */
static void place_and_keep(uint64_t *top, uint64_t *reached, struct instance *instance, struct item *item,
                           struct packing *packing, int count)
{
    *reached = place_all(packing, item, count);
    if (*reached >= *top)
        return;
    *top = *reached;
    for (int i = 0; i < count; i++)
        instance[item[i].index].offset = item[i].offset;
}

/* Moves the first item that reaches the top to the front of the order, so that it is placed before the items that
   pushed it up. */
static void promote(struct item *item, int count, uint64_t reached)
{
    int k = 0;
    while (k + 1 < count && item[k].offset + item[k].bytes < reached)
        k++;
    struct item moved = item[k];
    memmove(&item[1], &item[0], (size_t)k * sizeof(*item));
    item[0] = moved;
}

static void try_orders(uint64_t *top, struct instance *instance, struct item *item, struct packing *packing, int count,
                       uint64_t bound)
{
    uint64_t reached;
    *top = UINT64_MAX;
    for (size_t k = 0; k < COUNT(orders) && *top > bound && !is_stopped(packing); k++) {
        qsort(item, (size_t)count, sizeof(*item), orders[k]);
        place_and_keep(top, &reached, instance, item, packing, count);
        for (int64_t round = 0; round < REPAIR_ROUNDS && round * count < REPAIR_SLOTS; round++) {
            if (*top <= bound || is_stopped(packing))
                break;
            promote(item, count, reached);
            place_and_keep(top, &reached, instance, item, packing, count);
        }
    }
}

/* Packs with tables from an arena. */
static plim_status pack(uint64_t *top, struct instance *instance, int count, struct arena *work, plim_error *error)
{
    int instructions;
    struct item *item = arena_array(work, (size_t)count, sizeof(*item));
    struct packing packing = {
        .block = arena_array(work, most_blocks(count), sizeof(*packing.block)),
        .budget = work->budget,
    };
    if (!item || !packing.block)
        return arena_refused(work, error);
    TRY(load(item, &instructions, instance, count, error));
    size_t size = tree_size(instructions), log = 1;
    uint64_t *tree = arena_array(work, 2 * size, sizeof(*tree));
    for (packing.found_count = 1; packing.found_count < (size_t)count;) {
        packing.found_count *= 2;
        log++;
    }
    packing.found = arena_array(work, packing.found_count, sizeof(*packing.found));
    packing.most_steps = STEPS_A_SLOT * (uint64_t)count * log;
    packing.ends = (struct end_tree){.own = arena_array(work, 2 * size, sizeof(uint64_t)),
                                     .all = arena_array(work, 2 * size, sizeof(uint64_t)),
                                     .size = size};
    if (!tree || !packing.found || !packing.ends.own || !packing.ends.all)
        return arena_refused(work, error);
    try_orders(top, instance, item, &packing, count, measure(item, instance, count, tree, instructions));
    work_count(work->budget, packing.all_steps);
    return budget_go_on(work->budget, error); /* offsets of a stopped search are thrown away */
}

/* A small packing allocates nothing: its tables are on the stack. Each chain of a plan packs its own few instances. */
#define FEW              24
#define FEW_INSTRUCTIONS 64

static plim_status pack_few(uint64_t *top, struct instance *instance, int count, plim_error *error)
{
    struct item item[FEW];
    struct block block[2];
    int instructions;
    uint64_t tree[2 * FEW_INSTRUCTIONS] = {0};
    struct packing packing = {.block = block};
    TRY(load(item, &instructions, instance, count, error));
    try_orders(top, instance, item, &packing, count, measure(item, instance, count, tree, instructions));
    return PLIM_OK;
}

plim_status layout_pack(uint64_t *top, struct instance *instance, int count, struct budget *budget, plim_error *error)
{
    struct arena work;
    bool few = count <= FEW;
    *top = 0;
    if (count == 0)
        return PLIM_OK;
    for (int i = 0; i < count && few; i++)
        few = instance[i].last < FEW_INSTRUCTIONS;
    if (few)
        return pack_few(top, instance, count, error);
    arena_init(&work, budget, TAG_PLANNER);
    plim_status status = pack(top, instance, count, &work, error);
    arena_release(&work);
    return status;
}
