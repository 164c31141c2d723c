/* layout.c - offsets for instances whose lifetimes are known.

   Greedy: instances are taken in some order, each goes into the lowest gap that
   is free for its whole life. The order decides; several are tried and the
   lowest top wins. TWA (largest live total touched, then lifetime, then area)
   comes first: it reaches the bound on nearly every training schedule, and then
   the others need not run. Where an order misses the bound, who reached the top is
   placed first, and again, a number of times. */
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

uint64_t layout_max_live(const struct instance *instance, int count, int instructions, int *peak)
{
    uint64_t most = 0;
    int at = 0;
    for (int i = 0; i < instructions; i++) {
        uint64_t live = 0;
        for (int k = 0; k < count; k++)
            if (instance[k].first <= i && i <= instance[k].last)
                live += layout_bytes(instance[k].bytes);
        if (live > most) {
            most = live;
            at = i;
        }
    }
    if (peak)
        *peak = at;
    return most;
}

/* Lowest gap among those placed that live at the same time; `placed` is
   sorted by offset. Returns where the new slot belongs in it. */
static int find_gap(struct slot *slot, const struct slot *placed, int count)
{
    uint64_t at = 0;
    int k;
    for (k = 0; k < count; k++) {
        if (placed[k].last < slot->first || slot->last < placed[k].first)
            continue;
        if (placed[k].offset >= at && placed[k].offset - at >= slot->bytes)
            break;
        if (placed[k].offset + placed[k].bytes > at)
            at = placed[k].offset + placed[k].bytes;
    }
    slot->offset = at;
    for (k = 0; k < count && placed[k].offset <= at; k++)
        ;
    return k;
}

static uint64_t place_all(struct slot *placed, struct slot *slot, int count)
{
    uint64_t top = 0;
    for (int i = 0; i < count; i++) {
        int k = find_gap(&slot[i], placed, i);
        memmove(&placed[k + 1], &placed[k], (size_t)(i - k) * sizeof(*placed));
        placed[k] = slot[i];
        if (slot[i].offset + slot[i].bytes > top)
            top = slot[i].offset + slot[i].bytes;
    }
    return top;
}

/* live: room for one total an instruction. Returns the bound. */
static uint64_t measure(struct slot *slot, int count, uint64_t *live, int instructions)
{
    uint64_t most = 0;
    for (int i = 0; i < count; i++)
        for (int t = slot[i].first; t <= slot[i].last; t++)
            live[t] += slot[i].bytes;
    for (int i = 0; i < count; i++)
        for (int t = slot[i].first; t <= slot[i].last; t++)
            if (live[t] > slot[i].touched)
                slot[i].touched = live[t];
    for (int t = 0; t < instructions; t++)
        if (live[t] > most)
            most = live[t];
    return most;
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
                           struct slot *placed, int count)
{
    *reached = place_all(placed, slot, count);
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

static void try_orders(uint64_t *top, struct instance *instance, struct slot *slot, struct slot *placed, int count,
                       uint64_t bound)
{
    uint64_t reached;
    *top = UINT64_MAX;
    for (size_t k = 0; k < sizeof(orders) / sizeof(*orders) && *top > bound; k++) {
        qsort(slot, (size_t)count, sizeof(*slot), orders[k]);
        place_and_keep(top, &reached, instance, slot, placed, count);
        for (int64_t round = 0; round < REPAIR_ROUNDS && round * count<REPAIR_SLOTS && * top> bound; round++) {
            promote(slot, count, reached);
            place_and_keep(top, &reached, instance, slot, placed, count);
        }
    }
}

plim_status layout_pack(uint64_t *top, struct instance *instance, int count, struct budget *budget, plim_error *error)
{
    struct arena work;
    int instructions;
    plim_status status = PLIM_OK;
    if (count == 0) {
        *top = 0;
        return PLIM_OK;
    }
    arena_init(&work, budget, TAG_PLANNER);
    struct slot *slot = arena_array(&work, (size_t)count, sizeof(*slot));
    struct slot *placed = arena_array(&work, (size_t)count, sizeof(*placed));
    uint64_t *live = NULL;
    if (slot && placed && (status = load(slot, &instructions, instance, count, error)) == PLIM_OK)
        live = arena_array(&work, (size_t)instructions, sizeof(*live));
    if (live)
        try_orders(top, instance, slot, placed, count, measure(slot, count, live, instructions));
    else if (status == PLIM_OK)
        status = budget_refused(budget, TAG_PLANNER, (uint64_t)count * sizeof(*slot) * 2, error);
    arena_release(&work);
    return status;
}
