/* job_data_plan.c - plans the training data without a model: what it takes, chosen within the budget. */
#include "base/numbers/checked.h"
#include "base/threads/clock.h"
#include "job/job.h"
#include "pipeline/core/stage_table.h"

#include <stdio.h>

static plim_status make_plan(struct plim_job *job, plim_error *error)
{
    uint64_t begin = clock_ns();
    if (job->data_planned)
        return PLIM_OK;
    job_unplan(job); /* a plan of the whole job */
    TRY(job_data_open(job, &job->train, error));
    TRY(job_disk_check(job, error));
    if (!job->stages && !(job->stages = arena_take(&job->arena, sizeof *job->stages)))
        return arena_refused(&job->arena, error);
    TRY(plan_measure(&job->plan, error));
    TRY(job_choose(job, error));
    stage_table_fill(job->stages, job->train.dataset, job->train_grant);
    job->plan_seconds = (double)(clock_ns() - begin) * 1e-9;
    job->data_planned = true;
    return PLIM_OK;
}

plim_status job_data_plan(struct plim_job *job, plim_error *error)
{
    return job_plan_by(job, make_plan, error);
}

void job_data_floors(char *out, size_t capacity, const struct plim_job *job)
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

plim_status job_data_prepare(struct plim_job *job, plim_error *error)
{
    TRY(job_data_plan(job, error));
    if (!job->report.fits)
        return job_refuse(job, error);
    return plan_enter_budget(&job->plan, error);
}
