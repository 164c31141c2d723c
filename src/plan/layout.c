/* layout.c - assigns arena offsets to instances whose lifetimes are known.

   The algorithm is greedy packing: it places the instances in a given order, and each one goes into the lowest gap that
   is free for its whole lifetime. The result depends on the order, so several orders are tried and the one with the
   lowest top wins. The lower bound of any packing is the largest sum of the bytes that live at one instruction.

   The placed instances are kept sorted by offset (struct shelf), in a treap of blocks. Each block summarizes its
   members and its subtree, so that a search can skip a whole block or subtree; this matters because a model of 5,000
   layers has 15,000 instances.

   The first order is TWA (largest live total touched, then lifetime, then area), because it reaches the lower bound on
   nearly every training schedule, and then the other orders need not run. When an order misses the bound, the instance
   that reached the top moves to the front of the order and the packing is repeated, up to REPAIR_ROUNDS times. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/work.h"
#include "base/numbers/checked.h"
#include "plan/plan.h"

#define STEPS_A_SLOT  64 /* one packing stops searching for gaps after about STEPS_A_SLOT * n * log2(n) steps */
#define REPAIR_ROUNDS 100
#define REPAIR_SLOTS  20000 /* limit on rounds * instances, so that large plans get fewer rounds */

struct slot {
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

static int64_t lifetime(const struct slot *slot)
{
    return (int64_t)slot->last - slot->first + 1;
}

static int larger(uint64_t a, uint64_t b)
{
    return a > b ? -1 : a < b;
}

static int by_index(const struct slot *a, const struct slot *b)
{
    return a->index < b->index ? -1 : a->index > b->index;
}

static int by_area(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;
    double x = (double)a->bytes * (double)lifetime(a), y = (double)b->bytes * (double)lifetime(b);
    return x != y ? (x > y ? -1 : 1) : by_index(a, b);
}

static int by_lifetime(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;
    int order = larger((uint64_t)lifetime(a), (uint64_t)lifetime(b));
    return order ? order : by_area(a, b);
}

static int by_touched(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;
    int order = larger(a->touched, b->touched);
    return order ? order : by_lifetime(a, b);
}

static int by_size(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;
    int order = larger(a->bytes, b->bytes);
    return order ? order : by_lifetime(a, b);
}

static int by_start(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;
    return a->first != b->first ? (a->first < b->first ? -1 : 1) : by_size(a, b);
}

typedef int slot_order(const void *left, const void *right);
static slot_order *const orders[] = {by_touched, by_lifetime, by_area, by_size, by_start};

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

/* ---- the shelf: placed instances, sorted by offset --------------------- */

#define BLOCK 32

/* A placed instance. */
struct member {
    int first, last;
    uint64_t offset, end;
};

/* Summary of a run of members that are adjacent in offset order. */
struct reach {
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
    struct reach reach, all; /* of its own members; of its whole subtree */
    struct member member[BLOCK];
};

/* Where the last slot of a given lifetime and size was placed. A later slot of the same lifetime and size finds no gap
   below that offset. */
struct found {
    int first, last;
    uint64_t bytes, offset;
};

/* A segment tree over instructions that holds the highest end offset of the placed slots.
   own[k]: maximum over the slots whose lifetime has node k in its decomposition into tree nodes.
   all[k]: maximum over the slots whose first or last instruction is below node k.
   roof_over needs both arrays. */
struct roof {
    uint64_t *own, *all;
    size_t size; /* number of leaves; 0: there is no tree */
};

struct shelf {
    struct block *block;
    int block_count;
    int root;                   /* -1: nothing is placed */
    struct found *found;        /* hash table by lifetime and size; a later entry overwrites. NULL: unused */
    size_t found_count;         /* a power of two */
    uint64_t steps, most_steps; /* blocks visited by the searches of this packing, and the limit */
    uint64_t all_steps;         /* sum over all packings */
    struct roof roof;
};

static size_t most_blocks(int count)
{
    return (size_t)count / (BLOCK / 2) + 2;
}

static void describe(struct block *block)
{
    struct reach made = {.least_first = block->member[0].first, .least_last = block->member[0].last};
    made.most_first = made.least_first;
    made.most_last = made.least_last;
    made.begin = made.end = block->member[0].offset;
    for (int i = 0; i < block->count; i++) {
        const struct member *at = &block->member[i];
        made.least_first = at->first < made.least_first ? at->first : made.least_first;
        made.most_first = at->first > made.most_first ? at->first : made.most_first;
        made.least_last = at->last < made.least_last ? at->last : made.least_last;
        made.most_last = at->last > made.most_last ? at->last : made.most_last;
        if (at->offset > made.end && at->offset - made.end > made.gap)
            made.gap = at->offset - made.end;
        made.end = at->end > made.end ? at->end : made.end;
    }
    block->reach = made;
}

/* Whether the members need not be examined one by one. This holds in three cases: all members end at or before *at; no
   member's lifetime overlaps the slot's; or all lifetimes overlap it and no gap is large enough. In the third case *at
   advances to the end of the members. */
static bool pass_over(uint64_t *at, const struct reach *reach, const struct slot *slot)
{
    if (reach->end <= *at || reach->most_last < slot->first || slot->last < reach->least_first)
        return true;
    bool all = reach->most_first <= slot->last && slot->first <= reach->least_last;
    if (!all || reach->gap >= slot->bytes || (reach->begin >= *at && reach->begin - *at >= slot->bytes))
        return false;
    *at = reach->end > *at ? reach->end : *at;
    return true;
}

/* Searches the block for the lowest gap from *at on, between members whose lifetimes overlap the slot's. True: *at is
   that gap. False: *at has advanced past those members. */
static bool gap_in_block(uint64_t *at, const struct block *block, const struct slot *slot)
{
    for (int i = 0; i < block->count; i++) {
        const struct member *placed = &block->member[i];
        if (placed->last < slot->first || slot->last < placed->first)
            continue;
        if (placed->offset >= *at && placed->offset - *at >= slot->bytes)
            return true;
        if (placed->end > *at)
            *at = placed->end;
    }
    return false;
}

/* The same search in the subtree of block k. The recursion is as deep as the treap, about 2 log n. */
static bool gap_below(uint64_t *at, struct shelf *shelf, int k, const struct slot *slot)
{
    const struct block *block = k < 0 ? NULL : &shelf->block[k];
    shelf->steps++;
    if (!block || pass_over(at, &block->all, slot))
        return false;
    if (gap_below(at, shelf, block->left, slot))
        return true;
    if (!pass_over(at, &block->reach, slot) && gap_in_block(at, block, slot))
        return true;
    return gap_below(at, shelf, block->right, slot);
}

/* Adds b to a; b's members come after a's in offset order. The joined gap is an upper bound, because members of a may
   reach into a gap of b. */
static void reach_join(struct reach *a, const struct reach *b)
{
    uint64_t between = b->begin > a->end ? b->begin - a->end : 0, gap = b->gap > between ? b->gap : between;
    a->least_first = b->least_first < a->least_first ? b->least_first : a->least_first;
    a->most_first = b->most_first > a->most_first ? b->most_first : a->most_first;
    a->least_last = b->least_last < a->least_last ? b->least_last : a->least_last;
    a->most_last = b->most_last > a->most_last ? b->most_last : a->most_last;
    a->gap = gap > a->gap ? gap : a->gap;
    a->end = b->end > a->end ? b->end : a->end;
}

static void sum_up(struct shelf *shelf, int k)
{
    struct block *block = &shelf->block[k];
    struct reach all = block->left < 0 ? block->reach : shelf->block[block->left].all;
    if (block->left >= 0)
        reach_join(&all, &block->reach);
    if (block->right >= 0)
        reach_join(&all, &shelf->block[block->right].all);
    block->all = all;
}

/* Restores the heap order at block k by at most one rotation and returns the new root of this subtree. The summaries in
   the subtree are correct afterwards. */
static int lift(struct shelf *shelf, int k)
{
    struct block *block = &shelf->block[k];
    int left = block->left, right = block->right;
    sum_up(shelf, k);
    if (left >= 0 && shelf->block[left].rank > block->rank) {
        block->left = shelf->block[left].right;
        shelf->block[left].right = k;
    } else if (right >= 0 && shelf->block[right].rank > block->rank) {
        block->right = shelf->block[right].left;
        shelf->block[right].left = k;
        left = right;
    } else {
        return k;
    }
    sum_up(shelf, k);
    sum_up(shelf, left);
    return left;
}

static int new_block(struct shelf *shelf)
{
    uint32_t number = (uint32_t)shelf->block_count + 1;
    struct block *block = &shelf->block[shelf->block_count];
    number = (number ^ number >> 16) * 0x7feb352du; /* a hash: pseudo-random, and the same in every run */
    number = (number ^ number >> 15) * 0x846ca68bu;
    block->left = block->right = -1;
    block->count = 0;
    block->rank = number ^ number >> 16;
    return shelf->block_count++;
}

/* Moves the second half of a full block into a new block and returns the new block. */
static int split(struct shelf *shelf, struct block *full)
{
    int k = new_block(shelf);
    struct block *half = &shelf->block[k];
    half->count = BLOCK / 2;
    full->count -= half->count;
    memcpy(half->member, &full->member[full->count], (size_t)half->count * sizeof(*half->member));
    describe(full);
    describe(half);
    half->all = half->reach;
    return k;
}

/* Inserts block `added` before all blocks of subtree k, which may be empty (-1). Returns the root of the subtree. */
static int put_first(struct shelf *shelf, int k, int added)
{
    if (k < 0)
        return added;
    shelf->block[k].left = put_first(shelf, shelf->block[k].left, added);
    return lift(shelf, k);
}

/* Inserts the slot after all members whose offset is not larger. */
static void put_in_block(struct block *block, const struct slot *slot)
{
    int k = block->count++;
    for (; k > 0 && block->member[k - 1].offset > slot->offset; k--)
        block->member[k] = block->member[k - 1];
    block->member[k] = (struct member){slot->first, slot->last, slot->offset, slot->offset + slot->bytes};
    describe(block);
}

/* Inserts the slot into the last block that begins at or before its offset, or into the first block if there is none.
   Returns the root of the subtree. */
static int put_below(struct shelf *shelf, int k, const struct slot *slot)
{
    struct block *block = &shelf->block[k];
    if (block->right >= 0 && shelf->block[block->right].all.begin <= slot->offset) {
        block->right = put_below(shelf, block->right, slot);
    } else if (block->left >= 0 && block->reach.begin > slot->offset) {
        block->left = put_below(shelf, block->left, slot);
    } else {
        put_in_block(block, slot);
        if (block->count == BLOCK)
            block->right = put_first(shelf, block->right, split(shelf, block));
    }
    return lift(shelf, k);
}

/* ---- placing the slots of one order ------------------------------------ */

static uint64_t larger_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void raise_roof(struct roof *roof, const struct slot *slot)
{
    uint64_t end = slot->offset + slot->bytes;
    size_t begin = roof->size + (size_t)slot->first, behind = roof->size + (size_t)slot->last + 1;
    for (size_t a = begin, b = behind; a < b; a /= 2, b /= 2) {
        if (a & 1) {
            roof->own[a] = larger_of(roof->own[a], end);
            a++;
        }
        if (b & 1) {
            b--;
            roof->own[b] = larger_of(roof->own[b], end);
        }
    }
    for (size_t a = begin, b = behind - 1; a; a /= 2, b /= 2) {
        roof->all[a] = larger_of(roof->all[a], end);
        roof->all[b] = larger_of(roof->all[b], end);
    }
}

/* The offset above all placed slots whose lifetimes overlap the slot's. */
static uint64_t roof_over(const struct roof *roof, const struct slot *slot)
{
    uint64_t most = 0;
    size_t begin = roof->size + (size_t)slot->first, behind = roof->size + (size_t)slot->last + 1;
    for (size_t a = begin, b = behind; a < b; a /= 2, b /= 2) {
        most = larger_of(most, a & 1 ? roof->all[a++] : 0);
        most = larger_of(most, b & 1 ? roof->all[--b] : 0);
    }
    for (size_t a = begin, b = behind - 1; a; a /= 2, b /= 2)
        most = larger_of(most, larger_of(roof->own[a], roof->own[b]));
    return most;
}

static struct found *found_slot(const struct shelf *shelf, const struct slot *slot)
{
    uint64_t hash = ((uint64_t)slot->first << 32 ^ (uint64_t)slot->last) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29 ^ slot->bytes) * 0xbf58476d1ce4e5b9u;
    return &shelf->found[(hash >> 32) & (shelf->found_count - 1)];
}

/* The offset of the lowest gap. The search begins where the last slot of the same lifetime and size was placed, because
   placing a slot only ever removes free space. */
static uint64_t find_gap(struct shelf *shelf, const struct slot *slot)
{
    struct found *found = shelf->found ? found_slot(shelf, slot) : NULL;
    bool same = found && found->first == slot->first && found->last == slot->last && found->bytes == slot->bytes;
    uint64_t at = same ? found->offset : 0;
    gap_below(&at, shelf, shelf->root, slot);
    if (found)
        *found = (struct found){slot->first, slot->last, slot->bytes, at};
    return at;
}

/* Places the slots in the given order and returns the top. Once the searches have used most_steps, each remaining slot
   goes above all slots whose lifetimes overlap its own. */
static uint64_t place_all(struct shelf *shelf, struct slot *slot, int count)
{
    uint64_t top = 0;
    int i = 0;
    shelf->block_count = 0;
    shelf->steps = 0;
    shelf->root = new_block(shelf);
    if (shelf->found)
        memset(shelf->found, 0, shelf->found_count * sizeof(*shelf->found));
    for (; i < count && (shelf->steps < shelf->most_steps || !shelf->roof.size); i++) {
        slot[i].offset = i > 0 ? find_gap(shelf, &slot[i]) : 0;
        shelf->root = put_below(shelf, shelf->root, &slot[i]);
        top = larger_of(top, slot[i].offset + slot[i].bytes);
    }
    shelf->all_steps += shelf->steps + (uint64_t)count;
    if (i == count)
        return top;
    memset(shelf->roof.own, 0, 2 * shelf->roof.size * sizeof(*shelf->roof.own));
    memset(shelf->roof.all, 0, 2 * shelf->roof.size * sizeof(*shelf->roof.all));
    for (int k = 0; k < i; k++)
        raise_roof(&shelf->roof, &slot[k]);
    for (; i < count; i++) {
        slot[i].offset = roof_over(&shelf->roof, &slot[i]);
        raise_roof(&shelf->roof, &slot[i]);
        top = larger_of(top, slot[i].offset + slot[i].bytes);
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
        if (a & 1) {
            most = tree[a] > most ? tree[a] : most;
            a++;
        }
        if (b & 1) {
            b--;
            most = tree[b] > most ? tree[b] : most;
        }
    }
    return most;
}

/* Sets slot->touched and returns the lower bound. tree is zeroed and has two entries per leaf. */
static uint64_t measure(struct slot *slot, int count, uint64_t *tree, int instructions)
{
    size_t size = tree_size(instructions);
    uint64_t *live = tree + size, now = 0;
    for (int i = 0; i < count; i++) {
        live[slot[i].first] += slot[i].bytes;
        if (slot[i].last + 1 < instructions)
            live[slot[i].last + 1] -= slot[i].bytes;
    }
    for (int t = 0; t < instructions; t++)
        live[t] = now += live[t];
    for (size_t k = size - 1; k > 0; k--)
        tree[k] = tree[2 * k] > tree[2 * k + 1] ? tree[2 * k] : tree[2 * k + 1];
    for (int i = 0; i < count; i++)
        slot[i].touched = most_between(tree, size, slot[i].first, slot[i].last);
    return size > 1 ? tree[1] : live[0];
}

static plim_status load(struct slot *slot, int *instructions, const struct instance *instance, int count,
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
        slot[i] = (struct slot){.index = i, .first = instance[i].first, .last = instance[i].last, .bytes = bytes};
        if (instance[i].last >= *instructions)
            *instructions = instance[i].last + 1;
    }
    return PLIM_OK;
}

/* Places all slots and copies their offsets to the instances if the top is the lowest so far. */
static void place_and_keep(uint64_t *top, uint64_t *reached, struct instance *instance, struct slot *slot,
                           struct shelf *shelf, int count)
{
    *reached = place_all(shelf, slot, count);
    if (*reached >= *top)
        return;
    *top = *reached;
    for (int i = 0; i < count; i++)
        instance[slot[i].index].offset = slot[i].offset;
}

/* Moves the first slot that reaches the top to the front of the order, so that it is placed before the slots that
   pushed it up. */
static void promote(struct slot *slot, int count, uint64_t reached)
{
    int k = 0;
    while (k + 1 < count && slot[k].offset + slot[k].bytes < reached)
        k++;
    struct slot moved = slot[k];
    memmove(&slot[1], &slot[0], (size_t)k * sizeof(*slot));
    slot[0] = moved;
}

static void try_orders(uint64_t *top, struct instance *instance, struct slot *slot, struct shelf *shelf, int count,
                       uint64_t bound)
{
    uint64_t reached;
    *top = UINT64_MAX;
    for (size_t k = 0; k < sizeof(orders) / sizeof(*orders) && *top > bound; k++) {
        qsort(slot, (size_t)count, sizeof(*slot), orders[k]);
        place_and_keep(top, &reached, instance, slot, shelf, count);
        for (int64_t round = 0; round < REPAIR_ROUNDS && round * count<REPAIR_SLOTS && * top> bound; round++) {
            promote(slot, count, reached);
            place_and_keep(top, &reached, instance, slot, shelf, count);
        }
    }
}

/* Packs with tables from an arena. */
static plim_status pack(uint64_t *top, struct instance *instance, int count, struct arena *work, plim_error *error)
{
    int instructions;
    struct slot *slot = arena_array(work, (size_t)count, sizeof(*slot));
    struct shelf shelf = {
        .block = arena_array(work, most_blocks(count), sizeof(*shelf.block)),
    };
    if (!slot || !shelf.block)
        return arena_refused(work, error);
    TRY(load(slot, &instructions, instance, count, error));
    size_t size = tree_size(instructions), log = 1;
    uint64_t *tree = arena_array(work, 2 * size, sizeof(*tree));
    for (shelf.found_count = 1; shelf.found_count < (size_t)count;) {
        shelf.found_count *= 2;
        log++;
    }
    shelf.found = arena_array(work, shelf.found_count, sizeof(*shelf.found));
    shelf.most_steps = STEPS_A_SLOT * (uint64_t)count * log;
    shelf.roof = (struct roof){.own = arena_array(work, 2 * size, sizeof(uint64_t)),
                               .all = arena_array(work, 2 * size, sizeof(uint64_t)),
                               .size = size};
    if (!tree || !shelf.found || !shelf.roof.own || !shelf.roof.all)
        return arena_refused(work, error);
    try_orders(top, instance, slot, &shelf, count, measure(slot, count, tree, instructions));
    work_count(work->budget, shelf.all_steps);
    return PLIM_OK;
}

/* A small packing allocates nothing: its tables are on the stack. Each chain of a plan packs its own few instances. */
#define FEW              24
#define FEW_INSTRUCTIONS 64

static plim_status pack_few(uint64_t *top, struct instance *instance, int count, plim_error *error)
{
    struct slot slot[FEW];
    struct block block[2];
    int instructions;
    uint64_t tree[2 * FEW_INSTRUCTIONS] = {0};
    struct shelf shelf = {.block = block};
    TRY(load(slot, &instructions, instance, count, error));
    try_orders(top, instance, slot, &shelf, count, measure(slot, count, tree, instructions));
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
