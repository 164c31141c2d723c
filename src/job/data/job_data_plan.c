/* job_data_plan.c - what the training data takes without a model: predicted, chosen within the budget, refused below
   its floor with the least that each stage needs. */
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/threads/clock.h"
#include "job/job.h"
#include "pipeline/core/stage_table.h"

#include <stdio.h>
#include <string.h>

#define KIB ((uint64_t)1024)

/* What a pipeline with this grant makes of the process; the sum of all tags is the peak. */
static void predict(struct prediction *out, const struct plim_job *job, struct grant grant)
{
    struct budget_figures figures = budget_figures(job->budget);
    uint64_t data[TAG_COUNT] = {0}, taken = 0;
    dataset_cost(data, NULL, job->train.dataset, grant);
    *out = (struct prediction){.peak_at = "reading"};
    for (int tag = 0; tag < TAG_COUNT; tag++) {
        out->by_tag[tag] = add_most(figures.now_by_tag[tag], data[tag]);
        taken = add_most(taken, data[tag]);
    }
    out->by_tag[TAG_FORMATS] = add_most(out->by_tag[TAG_FORMATS], job->sink_bytes);
    out->by_tag[TAG_PROCESS] = job->process_bytes;
    uint64_t tables = job_page_tables(add_most(taken, job->sink_bytes)) + (uint64_t)grant.workers * JOB_THREAD_TABLES;
    out->by_tag[TAG_KERNEL] = add_most(job->kernel_bytes, tables);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        out->peak = add_most(out->peak, out->by_tag[tag]);
    if (out->peak < job->planning_peak) {
        out->by_tag[TAG_PLANNER] += job->planning_peak - out->peak;
        out->peak = job->planning_peak;
        out->peak_at = "planning";
    }
}

static bool fits(void *context, struct grant grant)
{
    struct plim_job *job = context;
    predict(&job->prediction, job, grant);
    return job->prediction.peak <= job->memory_bytes;
}

static void predict_least(struct prediction *out, struct plim_job *job)
{
    bool kept = dataset_keep(job->train.dataset, false);
    predict(out, job, dataset_least_grant(job->train.dataset));
    dataset_keep(job->train.dataset, kept);
}

static plim_status check_disk(struct plim_job *job, plim_error *error)
{
    uint64_t by_tag[TAG_COUNT] = {0}, bytes = 0;
    char need[16], limit[16];
    dataset_cost(by_tag, &bytes, job->train.dataset, (struct grant){.slots = 1});
    if (bytes <= job->scratch.limit_bytes)
        return PLIM_OK;
    text_size(need, bytes);
    text_size(limit, job->scratch.limit_bytes);
    plim_status status =
        fail(error, PLIM_OVER_DISK, "unpacked sources and caches take %s of disk, the limit is %s", need, limit);
    return hint(error, status, "--disk %lluKiB", (unsigned long long)(bytes / KIB + 1));
}

static plim_status make_plan(struct plim_job *job, plim_error *error)
{
    struct prediction floor;
    uint64_t begin = clock_ns();
    TRY(job_data_open(job, &job->train, error));
    TRY(check_disk(job, error));
    if (!job->stages && !(job->stages = arena_take(&job->arena, sizeof *job->stages)))
        return arena_refused(&job->arena, error);
    TRY(job_measure(job, 0, error));
    job->train_grant = grant_choose(job->train.dataset, job->data_threads, fits, job);
    predict_least(&floor, job);
    TRY(job_find_obstacle(job, floor.peak, error));
    job->report = (plim_plan_report){
        .fits = floor.peak <= job->memory_bytes && !job->obstacle,
        .budget_bytes = job->memory_bytes,
        .budget_source = job->memory_source,
        .predicted_peak_bytes = job->prediction.peak,
        .smallest_budget_bytes = job_told_budget(job, floor.peak),
    };
    stage_table_fill(job->stages, job->train.dataset, job->train_grant);
    job->plan_seconds = (double)(clock_ns() - begin) * 1e-9;
    return PLIM_OK;
}

plim_status job_data_plan(struct plim_job *job, plim_error *error)
{
    if (job->data_planned)
        return PLIM_OK;
    job_unplan(job); /* of the whole job */
    budget_stop_refuses(job->budget, true);
    plim_status status = make_plan(job, error);
    budget_stop_refuses(job->budget, false);
    if (status != PLIM_OK && stop_asked(&job->stop))
        status = job_stopped_planning(error);
    if (status == PLIM_OVER_BUDGET)
        job_refuse_unplanned(job, error);
    if (status != PLIM_OK) {
        job_unplan(job); /* may be asked again */
        return place(error, status, job->path);
    }
    job->data_planned = true;
    return PLIM_OK;
}

/* ---- refusing ---- */

/* "the process itself 4.6 MiB, batch 9.8 MiB": what each part needs at least, as far as it fits. */
static void list_floors(char *out, size_t capacity, const struct plim_job *job)
{
    char size[16];
    struct stage_table *table = job->stages;
    uint64_t stages = 0, all = job->report.smallest_budget_bytes;
    stage_table_fill(table, job->train.dataset, dataset_least_grant(job->train.dataset));
    for (int i = 0; i < table->count; i++)
        stages = add_most(stages, table->line[i].bytes);
    text_size(size, all > stages ? all - stages : 0);
    size_t length = (size_t)snprintf(out, capacity, "the process itself %s, ", size);
    stage_table_bytes(out + length, capacity - length, table);
}

static plim_status refuse(struct plim_job *job, plim_error *error)
{
    char stated[16], least[16], floors[360], command[256];
    text_size(stated, job->report.budget_bytes);
    text_size(least, job->report.smallest_budget_bytes);
    if (job->obstacle)
        return hint(
            error,
            fail_at(error, PLIM_OVER_BUDGET, job->path, "needs %s; %s leaves less than that", least, job->obstacle),
            "raise that limit, or a smaller batch");
    list_floors(floors, sizeof floors, job);
    plim_status status = fail_at(error, PLIM_OVER_BUDGET, job->path, "needs >= %s, given %s (%s): %s", least, stated,
                                 job->report.budget_source, floors);
    unsigned long long kib = (job->report.smallest_budget_bytes + KIB - 1) / KIB;
    int length = snprintf(command, sizeof command, "plim %s --memory %lluKiB %s", job->verb, kib, job->command);
    if (length >= (int)sizeof command)
        return hint(error, status, "--memory %lluKiB", kib);
    return hint(error, status, "%s", command);
}

plim_status job_data_prepare(struct plim_job *job, plim_error *error)
{
    TRY(job_data_plan(job, error));
    if (!job->report.fits)
        return refuse(job, error);
    return job_enter_budget(job, error);
}
