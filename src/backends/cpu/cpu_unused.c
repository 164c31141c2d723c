/* cpu_unused.c - where the kernels for other processors lie in our code, so that nobody counts them as memory.

   The kernels of an instruction set are a library of their own, linked whole: their code lies together, but for a few
   functions that the compiler puts elsewhere. So: the addresses of all makers and runners, in order, and of these the
   run around the middle one without a wide gap. What lies outside is counted, which is never too little. */
#include "backends/cpu/cpu.h"
#include "base/mappings.h"

#define MOST_ADDRESSES 1024
#define WIDE_GAP       ((uintptr_t)64 * 1024)

static int insert(uintptr_t *address, int count, uintptr_t one)
{
    int i = count;
    if (!one || count == MOST_ADDRESSES)
        return count;
    for (; i > 0 && address[i - 1] > one; i--)
        address[i] = address[i - 1];
    address[i] = one;
    return count + 1;
}

static struct code_range range_of(const struct cpu_variant *variant)
{
    uintptr_t address[MOST_ADDRESSES];
    int count = 0;
    for (int i = 0; i < variant->entry_count; i++) {
        count = insert(address, count, (uintptr_t)variant->entry[i].make);
        count = insert(address, count, (uintptr_t)variant->entry[i].run);
    }
    if (!count)
        return (struct code_range){0};
    int first = count / 2, last = first;
    while (first > 0 && address[first] - address[first - 1] < WIDE_GAP)
        first--;
    while (last + 1 < count && address[last + 1] - address[last] < WIDE_GAP)
        last++;
    return (struct code_range){.begin = address[first], .end = address[last]};
}

/* Two that are neighbours are one: nobody runs what lies between. */
static bool join(struct code_range *before, struct code_range range)
{
    bool above = range.begin >= before->end && range.begin - before->end < WIDE_GAP;
    bool below = before->begin >= range.end && before->begin - range.end < WIDE_GAP;
    if (above)
        before->end = range.end;
    else if (below)
        before->begin = range.begin;
    return above || below;
}

int cpu_unused_code(struct code_range *out)
{
    int count = 0;
    const struct cpu_variant *used = cpu_variant_here();
    for (int i = 0; i < cpu_choices_count && count < MOST_UNUSED; i++) {
        struct code_range range = range_of(cpu_choices[i].variant);
        if (cpu_choices[i].variant == used || (count && join(&out[count - 1], range)))
            continue;
        out[count++] = range;
    }
    return count;
}
