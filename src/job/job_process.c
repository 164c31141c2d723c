/* job_process.c - the bytes of the process itself: measured once everything that a run loads is loaded, then booked.

   What the ledger does not count by name (code, libraries, heap of others, page tables) is read from /proc and
   *reserved*, so that from then on the ledger's sum is the kernel's figure. */
#include "base/checked.h"
#include "backends/backend.h"
#include "base/mappings.h"
#include "job/job.h"

#include <sys/resource.h>

#define KIB ((uint64_t)1024)
#define HEAP_MARGIN (128 * KIB) /* stack and heap pages of libc that are touched after the measurement */

static uint64_t address_left(uint64_t mapped)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur > mapped ? limit.rlim_cur - mapped : 0;
}

plim_status job_measure(struct plim_job *job, uint64_t later_bytes, plim_error *error)
{
    struct usage usage;
    struct mappings mappings;
    struct budget_figures figures = budget_figures(job->budget);
    struct code_range unused[MOST_UNUSED];
    int count = cpu_unused_code(unused, job->backend);
    TRY(mappings_read(&mappings, job->budget, unused, count, error));
    if (!usage_now(&usage))
        return fail(error, PLIM_IO, "cannot read this process's memory from /proc");
    uint64_t heap = mappings.anonymous > figures.now ? mappings.anonymous - figures.now : 0;
    uint64_t files = mappings.small_files + mappings.large_files;
    job->process_bytes = round_up(heap + files + HEAP_MARGIN + later_bytes, 4 * KIB);
    job->kernel_bytes = usage.page_tables + 64 * KIB;
    job->planning_peak = round_up(usage.peak_rss, 4 * KIB);
    job->address_bytes = address_left(usage.mapped);
    return PLIM_OK;
}

uint64_t job_page_tables(uint64_t bytes)
{
    return bytes / 512 + 8 * KIB;
}

/* A stated budget may be more than the machine has: what the run will still take has to fit below RLIMIT_AS
   and into the headroom of cgroups and machine. */
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
    budget_limit(job->budget, JOB_EARLY_LIMIT, NULL); /* only ever raises it */
}
