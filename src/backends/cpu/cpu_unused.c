/* cpu_unused.c - where kernels lie in our code that this plan does not run, so that nobody counts them as memory.

   The kernels of an instruction set are a library of their own, linked whole: their code lies together, object behind
   object, each from its mark on (code_mark.h). Of other instruction sets none is run. Of our own an object is run when
   a kernel's function lies in it, or the maker of an op that the plan has; one without makers and runners serves others
   (gemm). The last object of a set has no end, and the compiler puts some functions elsewhere: what is not sure is
   counted, which is never too little. */
#include "backends/cpu/cpu.h"
#include "base/memory/mappings.h"

#define MOST_OBJECTS 256

/* Objects of an instruction set, in the order in which they lie: object i is mark[i] to mark[i + 1]. */
struct objects {
    uintptr_t mark[MOST_OBJECTS];
    int count;
};

static void insert(struct objects *objects, uintptr_t mark)
{
    int i = objects->count;
    if (i == MOST_OBJECTS)
        return;
    for (; i > 0 && objects->mark[i - 1] > mark; i--)
        objects->mark[i] = objects->mark[i - 1];
    objects->mark[i] = mark;
    objects->count++;
}

static void find_objects(struct objects *out, const struct cpu_variant *variant)
{
    out->count = 0;
    for (const uintptr_t *at = variant->first_mark; at < variant->end_of_marks; at++)
        insert(out, *at);
}

static bool within(struct code_range range, uintptr_t address)
{
    return address >= range.begin && address < range.end;
}

static bool serves_others(const struct cpu_variant *variant, struct code_range object)
{
    for (int i = 0; i < variant->entry_count; i++)
        if (within(object, (uintptr_t)variant->entry[i].make) || within(object, (uintptr_t)variant->entry[i].run))
            return false;
    return true;
}

static bool is_run(const struct cpu_backend *cpu, struct code_range object)
{
    for (const struct cpu_kernel *own = cpu->kernels; own; own = own->next) {
        if (within(object, (uintptr_t)own->kernel.run) || within(object, (uintptr_t)own->kernel.pack))
            return true;
        for (int i = 0; i < cpu->variant->entry_count; i++)
            if (cpu->variant->entry[i].op == own->op && within(object, (uintptr_t)cpu->variant->entry[i].make))
                return true;
    }
    return serves_others(cpu->variant, object);
}

/* Objects that are not run (cpu NULL: none is); those side by side are one range. */
static int unused_objects(struct code_range *out, int room, const struct cpu_variant *variant,
                          const struct cpu_backend *cpu)
{
    struct objects objects;
    int count = 0;
    bool open = false;
    find_objects(&objects, variant);
    for (int i = 0; i + 1 < objects.count; i++) {
        struct code_range object = {.begin = objects.mark[i], .end = objects.mark[i + 1]};
        bool unused = !cpu || !is_run(cpu, object);
        if (unused && open)
            out[count - 1].end = object.end;
        else if (unused && count < room)
            out[count++] = object;
        open = unused && count > 0 && out[count - 1].end == object.end;
    }
    return count;
}

int cpu_unused_code(struct code_range *out, int most, const struct backend *backend)
{
    int count = 0;
    const struct cpu_backend *cpu = (const struct cpu_backend *)backend;
    for (int i = 0; i < cpu_variant_count; i++) {
        const struct cpu_variant *variant = cpu_variants[i].variant;
        count += unused_objects(out + count, most - count, variant, cpu && cpu->variant == variant ? cpu : NULL);
    }
    return count;
}
