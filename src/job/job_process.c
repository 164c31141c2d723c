/* job_process.c - memory of the process that the allocator does not see (code, libraries, heap of libraries, page
   tables): measured from /proc after everything is loaded, then reserved in the budget.

   Once it is reserved, the sum that the budget counts is the memory usage that the kernel counts. */
#include "backends/backend.h"
#include "base/memory/mappings.h"
#include "base/numbers/checked.h"
#include "job/job.h"

#include <sys/resource.h>

#define KIB           ((uint64_t)1024)
#define HEAP_MARGIN   (32 * KIB) /* heap that libc allocates after the measurement; the rest of its page is counted */
#define KERNEL_MARGIN (64 * KIB) /* kernel memory of this process besides page tables: stacks and tables */
/* Two measurements of the same job differ: page tables and stacks by the addresses that the kernel chose for mappings,
   oneDNN's code by the pages that fault-around mapped. */
#define PAGES_SLACK (32 * KIB)
/* NEEDSWORK: if pages of oneDNN have left the page cache, fault-around maps fewer pages: one measurement next to runs
   in small cgroups was 448 KiB lower, and the budget printed then is refused later. */
#define LIBRARY_SLACK  (96 * KIB)
#define ESTIMATE_SLACK (1024 * KIB) /* kernels that replace those of a missing library need other amounts of scratch */
#define PEAK_SLACK     256          /* a peak that only the kernel knows (VmHWM) varies by less than 1/256 */

plim_status job_bind_early(struct plim_job *job, const char *memory, plim_error *error)
{
    uint64_t bytes;
    const char *source;
    char place[256];
    plim_status status = limits_parse(&bytes, &source, place, memory, job->budget, error);
    if (status == PLIM_USAGE) /* job_read reports the error with its place */
        status = limits_parse(&bytes, &source, place, NULL, job->budget, error);
    if (status != PLIM_OK)
        return status;
    if (budget_bind_process(job->budget, bytes, NULL) != PLIM_OK)
        budget_unbind_process(job->budget); /* job_bind refuses later, when it can name the command */
    return PLIM_OK;
}

plim_status job_bind(struct plim_job *job, plim_error *error)
{
    return budget_bind_process(job->budget, job->memory_bytes, error);
}

static uint64_t address_left(uint64_t mapped)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur > mapped ? limit.rlim_cur - mapped : 0;
}

/* The budget's peak plus the process bytes measured now is an upper bound of the kernel's peak (VmHWM), and it is the
   same in every run. A higher VmHWM comes from memory that was used outside the budget and is already free: by the
   parser of a large job file, or by the host program. */
static void set_planning_peak(struct plim_job *job, uint64_t ledger_peak, uint64_t kernel_peak, bool library)
{
    uint64_t counted = round_up(ledger_peak + job->process_bytes, 4 * KIB);
    job->slack_bytes = PAGES_SLACK + (library ? LIBRARY_SLACK : 0);
    job->planning_peak = counted;
    if (kernel_peak <= counted)
        return;
    job->planning_peak = round_up(kernel_peak, 4 * KIB);
    if (job->slack_bytes < kernel_peak / PEAK_SLACK)
        job->slack_bytes = kernel_peak / PEAK_SLACK;
}

/* A library that was not opened because the budget is too small cannot be measured. Its known size is added instead, so
   the printed value is approximate. */
static void add_missing(struct plim_job *job)
{
    uint64_t missing = job->backend ? job->backend->missing_bytes : 0;
    if (!missing)
        return;
    job->process_bytes += missing;
    job->planning_peak += missing;
    job->slack_bytes = ESTIMATE_SLACK;
}

uint64_t job_told_budget(const struct plim_job *job, uint64_t peak)
{
    return round_up(add_most(peak, job->slack_bytes), 4 * KIB);
}

plim_status job_measure(struct plim_job *job, uint64_t later_bytes, plim_error *error)
{
    struct usage usage;
    struct mappings mappings;
    struct budget_figures figures = budget_figures(job->budget);
    struct code_range unused[MOST_UNUSED];
    int count = backends_unused_code(unused, job->backend);
    TRY(mappings_read(&mappings, job->budget, unused, count, error));
    if (!usage_now(&usage))
        return fail(error, PLIM_IO, "cannot read this process's memory from /proc");
    uint64_t heap = mappings.anonymous > figures.now ? mappings.anonymous - figures.now : 0;
    uint64_t files = mappings.small_files + mappings.large_files;
    job->process_bytes = round_up(heap + files + HEAP_MARGIN + later_bytes, 4 * KIB);
    job->kernel_bytes = usage.page_tables + KERNEL_MARGIN;
    set_planning_peak(job, figures.peak, usage.peak_rss, mappings.large_files > 0);
    add_missing(job);
    job->address_bytes = address_left(usage.mapped);
    return PLIM_OK;
}

uint64_t job_page_tables(uint64_t bytes)
{
    return bytes / 512 + 8 * KIB;
}

/* A stated budget may exceed the memory of the machine. So the memory that the run will still allocate must fit below
   RLIMIT_AS and into the headroom of cgroups and machine. */
plim_status job_find_obstacle(struct plim_job *job, uint64_t least, plim_error *error)
{
    struct limits limits;
    uint64_t now = budget_figures(job->budget).now;
    uint64_t still = least > now + job->process_bytes ? least - now - job->process_bytes : 0;
    job->obstacle = NULL;
    if (least > job->memory_bytes)
        return PLIM_OK;
    TRY(limits_here(&limits, job->budget, error));
    if (still > job->address_bytes)
        job->obstacle = "the limit on address space (RLIMIT_AS)";
    else if (still > limits.headroom)
        job->obstacle = arena_string(&job->arena, limits.place);
    return PLIM_OK;
}

plim_status job_enter_budget(struct plim_job *job, plim_error *error)
{
    if (job->process_reserved)
        return PLIM_OK;
    budget_unbind_process(job->budget);
    TRY(budget_limit(job->budget, job->memory_bytes, error));
    TRY(budget_reserve(job->budget, TAG_PROCESS, job->process_bytes, error));
    job->process_reserved = true;
    TRY(budget_reserve(job->budget, TAG_KERNEL, job->prediction.by_tag[TAG_KERNEL], error));
    job->kernel_reserved = true;
    return PLIM_OK;
}

void job_leave_budget(struct plim_job *job)
{
    if (job->process_reserved)
        budget_release(job->budget, TAG_PROCESS, job->process_bytes);
    if (job->kernel_reserved)
        budget_release(job->budget, TAG_KERNEL, job->prediction.by_tag[TAG_KERNEL]);
    job->process_reserved = job->kernel_reserved = false;
    if (job->memory_bytes)
        (void)job_bind(job, NULL); /* if usage already exceeds the limit, the next allocation is refused */
}
