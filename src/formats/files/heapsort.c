/* heapsort.c - puts indices in order: O(n log n), in place, no recursion. */
#include "formats/files/heapsort.h"
#include "base/memory/budget_stop.h"

/* order[root] goes down until neither child belongs after it. */
static void sift(uint32_t *order, uint64_t root, uint64_t count, index_before *before, const void *context)
{
    for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && before(context, order[child], order[child + 1]))
            child++;
        if (!before(context, order[root], order[child]))
            return;
        uint32_t other = order[root];
        order[root] = order[child];
        order[child] = other;
    }
}

static bool stopped(const struct budget *budget)
{
    return budget && budget_may_transfer(budget, NULL) != PLIM_OK;
}

void sort_indices(uint32_t *order, uint32_t count, index_before *before, const void *context,
                  const struct budget *budget)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint64_t i = count / 2; i-- > 0 && !stopped(budget);)
        sift(order, i, count, before, context);
    for (uint64_t i = count; i-- > 1 && !stopped(budget);) {
        uint32_t last = order[i];
        order[i] = order[0];
        order[0] = last;
        sift(order, 0, i, before, context);
    }
}
