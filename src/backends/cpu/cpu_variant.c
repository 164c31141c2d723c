/* cpu_variant.c - the table of own kernels of one instruction set. */
#include "backends/cpu/cpu_own.h"
#include "base/numbers/count.h"
#include "ops/ops.h"

/* Of the three kinds of lines each table takes its own. */
#define ENTRY(what, maker, runner) {&op_##what, VARIANT(maker), runner},

static const struct cpu_entry entries[] = {
#define KERNEL(op, maker, runner) ENTRY(op, maker, VARIANT(runner))
#define CHOICE(op, maker)         ENTRY(op, maker, NULL)
#define FALLBACK(...)
#include "backends/cpu/kernels.def"
};

/* After oneDNN. */
static const struct cpu_entry fallbacks[] = {
#define KERNEL(...)
#define CHOICE(...)
#define FALLBACK(op, maker, runner) ENTRY(op, maker, VARIANT(runner))
#include "backends/cpu/kernels.def"
};

/* The linker's names for the section of marks. */
extern const uintptr_t VARIANT(__start_plim_code)[], VARIANT(__stop_plim_code)[];

const struct cpu_variant VARIANT(cpu_variant) = {
    .name = VARIANT_NAME,
    .implementation = "own " VARIANT_NAME,
    .entry = entries,
    .entry_count = COUNT(entries),
    .fallback = fallbacks,
    .fallback_count = COUNT(fallbacks),
    .widen = VARIANT(widen),
    .narrow = VARIANT(narrow),
    .peak = VARIANT(cpu_peak),
    .stream = VARIANT(cpu_stream),
    .first_mark = VARIANT(__start_plim_code),
    .end_of_marks = VARIANT(__stop_plim_code),
};
