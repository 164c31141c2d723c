/* layout.c - offsets for instances whose lifetimes are known.

   Greedy: instances are taken in some order, each goes into the lowest gap that
   is free for its whole life. The order decides; several are tried and the
   lowest top wins. What is placed stands on a shelf by offset, in blocks that know enough of their members to be
   passed over whole: 5,000 layers have 15,000 instances, and most of the time is spent here. TWA (largest live total
   touched, then lifetime, then area) comes first: it reaches the bound on nearly every training schedule, and then the
   others need not run. Where an order misses the bound, who reached the top is placed first, and again, a number of
   times. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "plan/plan.h"

#define REPAIR_ROUNDS 100
#define REPAIR_SLOTS  20000 /* rounds times instances: large plans get fewer rounds */

struct slot {
    int index; /* of the instance */
    int first, last;
    uint64_t bytes;   /* rounded */
    uint64_t touched; /* largest live total while it is alive */
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
    for (int k = 0; k < count; k++) { /* changes first; sums wrap, and come back */
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

/* ---- the shelf --------------------------------------------------------- */

#define BLOCK 32

/* What is placed. */
struct member {
    int first, last;
    uint64_t offset, end;
};

/* Of a run of them. */
struct reach {
    int least_first, most_first, least_last, most_last;
    uint64_t begin, end; /* of their bytes */
    uint64_t gap;        /* the widest between them */
};

/* By offset. */
struct block {
    int count;
    struct reach reach;
    struct member member[BLOCK];
};

struct shelf {
    struct block *block;
    int *sequence; /* blocks by offset */
    int block_count;
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

/* The lowest gap from *at on among members that live at the same time; true: it is there. */
static bool gap_in_block(uint64_t *at, const struct block *block, const struct slot *slot)
{
    if (block->reach.most_last < slot->first || slot->last < block->reach.least_first)
        return false; /* none does */
    bool all = block->reach.most_first <= slot->last && slot->first <= block->reach.least_last;
    if (all && block->reach.gap < slot->bytes &&
        !(block->reach.begin >= *at && block->reach.begin - *at >= slot->bytes)) {
        *at = block->reach.end > *at ? block->reach.end : *at;
        return false;
    }
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

/* The block for this offset: the last that begins at or before it. */
static int block_for(const struct shelf *shelf, uint64_t offset)
{
    int low = 0, high = shelf->block_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (shelf->block[shelf->sequence[middle]].reach.begin <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : 0;
}

static void split(struct shelf *shelf, int place)
{
    struct block *full = &shelf->block[shelf->sequence[place]], *half = &shelf->block[shelf->block_count];
    half->count = BLOCK / 2;
    full->count -= half->count;
    memcpy(half->member, &full->member[full->count], (size_t)half->count * sizeof(*half->member));
    memmove(&shelf->sequence[place + 2], &shelf->sequence[place + 1],
            (size_t)(shelf->block_count - place - 1) * sizeof(*shelf->sequence));
    shelf->sequence[place + 1] = shelf->block_count++;
    describe(full);
    describe(half);
}

/* Behind all that begin at or before it. */
static void put_on_shelf(struct shelf *shelf, const struct slot *slot)
{
    if (shelf->block_count == 0) {
        shelf->block[0].count = 0;
        shelf->sequence[shelf->block_count++] = 0;
    }
    int place = shelf->block[shelf->sequence[0]].count ? block_for(shelf, slot->offset) : 0, k;
    struct block *block = &shelf->block[shelf->sequence[place]];
    for (k = block->count; k > 0 && block->member[k - 1].offset > slot->offset; k--)
        block->member[k] = block->member[k - 1];
    block->member[k] = (struct member){slot->first, slot->last, slot->offset, slot->offset + slot->bytes};
    block->count++;
    describe(block);
    if (block->count == BLOCK)
        split(shelf, place);
}

static uint64_t place_all(struct shelf *shelf, struct slot *slot, int count)
{
    uint64_t top = 0;
    shelf->block_count = 0;
    for (int i = 0; i < count; i++) {
        uint64_t at = 0;
        for (int b = 0; b < shelf->block_count; b++)
            if (gap_in_block(&at, &shelf->block[shelf->sequence[b]], &slot[i]))
                break;
        slot[i].offset = at;
        put_on_shelf(shelf, &slot[i]);
        if (at + slot[i].bytes > top)
            top = at + slot[i].bytes;
    }
    return top;
}

/* ---- orders ------------------------------------------------------------ */

/* The smallest power of two that is not less. */
static size_t tree_size(int instructions)
{
    size_t size = 1;
    while (size < (size_t)instructions)
        size *= 2;
    return size;
}

/* The largest of instructions first..last, in a tree of maxima: tree[size + i] is instruction i. */
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

/* tree: zeroed, two a leaf. Returns the bound. */
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

/* Keeps the offsets when they are the lowest so far. */
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

/* The first slot in order that reaches to the top goes to the front, before those that
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

/* The tables, from an arena. */
static plim_status pack(uint64_t *top, struct instance *instance, int count, struct arena *work, plim_error *error)
{
    int instructions;
    struct slot *slot = arena_array(work, (size_t)count, sizeof(*slot));
    struct shelf shelf = {
        .block = arena_array(work, most_blocks(count), sizeof(*shelf.block)),
        .sequence = arena_array(work, most_blocks(count), sizeof(*shelf.sequence)),
    };
    if (!slot || !shelf.block || !shelf.sequence)
        return arena_refused(work, error);
    TRY(load(slot, &instructions, instance, count, error));
    uint64_t *tree = arena_array(work, 2 * tree_size(instructions), sizeof(*tree));
    if (!tree)
        return arena_refused(work, error);
    try_orders(top, instance, slot, &shelf, count, measure(slot, count, tree, instructions));
    return PLIM_OK;
}

/* Few instances: nothing is taken for them. Every chain of a plan has its own few. */
#define FEW              24
#define FEW_INSTRUCTIONS 64

static plim_status pack_few(uint64_t *top, struct instance *instance, int count, plim_error *error)
{
    struct slot slot[FEW];
    struct block block[2];
    int sequence[2], instructions;
    uint64_t tree[2 * FEW_INSTRUCTIONS] = {0};
    struct shelf shelf = {.block = block, .sequence = sequence};
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
