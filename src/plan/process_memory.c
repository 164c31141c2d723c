/* process_memory.c - memory of the process that the allocator does not see (code, libraries, heap of libraries, page
   tables): measured from /proc after everything is loaded.

   Once it is reserved, the sum that the budget counts is the memory usage that the system counts. */
#include <sys/resource.h>

#include "base/memory/limits.h"
#include "base/memory/mappings.h"
#include "base/numbers/checked.h"
#include "plan/planner.h"

#define KIB           ((uint64_t)1024)
#define HEAP_MARGIN   (32 * KIB) /* heap that libc allocates after the measurement; the rest of its page is counted */
#define KERNEL_MARGIN (64 * KIB) /* the system's memory for this process besides page tables: stacks and tables */
/* Two measurements of the same job differ: page tables and stacks by the addresses that the system chose for mappings,
   oneDNN's code by the pages that fault-around mapped. */
#define PAGES_SLACK   (32 * KIB)
#define LIBRARY_SLACK (96 * KIB)
/* oneDNN's code counts at least this much, with what the first step still touches. Around a fault the system maps only
   those neighbours that are in the page cache, so what is resident depends on what others read and what a full cgroup
   evicted: the same plan measured 4.2 to 5.2 MiB. Up to this floor the printed budget does not depend on it. NEEDSWORK:
   three-dimensional convolutions touch more (5.8 MiB): a budget that is printed after an eviction may be refused later. */
#define LIBRARY_FLOOR  (5696 * KIB)
#define ESTIMATE_SLACK (1024 * KIB) /* kernels that replace those of a missing library need other amounts of scratch */
#define THREAD_TABLES  (16 * KIB)   /* the system's memory for one thread */
#define PEAK_SLACK     256          /* a peak that only the system knows (VmHWM) varies by less than 1/256 */

static uint64_t address_left(uint64_t mapped)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur > mapped ? limit.rlim_cur - mapped : 0;
}

/* The budget's peak plus the process bytes measured now is an upper bound of the system's peak (VmHWM), and it is the
   same in every run. A higher VmHWM comes from memory that was used outside the budget and is already free: by the
   parser of a large job file, or by the host program. */
static void set_planning_peak(struct process_memory *out, uint64_t ledger_peak, uint64_t kernel_peak, uint64_t library)
{
    uint64_t counted = round_up(ledger_peak + out->process_bytes, 4 * KIB);
    out->slack_bytes = PAGES_SLACK + (library > LIBRARY_FLOOR ? LIBRARY_SLACK : 0);
    out->planning_peak = counted;
    if (kernel_peak <= counted)
        return;
    out->planning_peak = round_up(kernel_peak, 4 * KIB);
    if (out->slack_bytes < kernel_peak / PEAK_SLACK)
        out->slack_bytes = kernel_peak / PEAK_SLACK;
}

/* A library that was not opened because the budget is too small cannot be measured. Its known size is added instead, so
   the printed value is approximate. */
static void add_missing(struct process_memory *out, uint64_t missing_bytes)
{
    out->process_bytes += missing_bytes;
    out->planning_peak += missing_bytes;
    out->slack_bytes = ESTIMATE_SLACK;
}

plim_status process_measure(struct process_memory *out, struct budget *budget, const struct backend *backend,
                            uint64_t later_bytes, plim_error *error)
{
    struct process_usage process;
    struct mappings mappings;
    struct budget_usage usage = budget_usage(budget);
    struct code_range unused[MOST_UNUSED];
    int count = backends_unused_code(unused, backend);
    TRY(mappings_read(&mappings, budget, unused, count, error));
    if (!process_usage_now(&process))
        return fail(error, PLIM_IO, "cannot read this process's memory from /proc");
    uint64_t heap = mappings.anonymous > usage.now ? mappings.anonymous - usage.now : 0;
    uint64_t library = mappings.large_files + later_bytes;
    uint64_t files = mappings.small_files + (later_bytes > 0 && library < LIBRARY_FLOOR ? LIBRARY_FLOOR : library);
    *out = (struct process_memory){
        .process_bytes = round_up(heap + files + HEAP_MARGIN, 4 * KIB),
        .kernel_bytes = process.page_tables + KERNEL_MARGIN,
        .address_bytes = address_left(process.mapped),
    };
    set_planning_peak(out, usage.peak, process.peak_rss, library);
    if (backend && backend->missing_bytes)
        add_missing(out, backend->missing_bytes);
    return PLIM_OK;
}

uint64_t process_tables(uint64_t bytes, int threads)
{
    return bytes / 512 + 8 * KIB + (uint64_t)threads * THREAD_TABLES;
}
