/* api_words.c - data sets from the words of a job file: everything that job files know, for C programs. */
#include "api/api.h"
#include "job/job.h"
#include "pipeline/core/stage.h"

#include <string.h>

#define PLACE "text"

/* The tree, and what was read from it, live as long as the data set. */
static struct dataset *keep_arena(struct dataset *dataset, struct arena *arena)
{
    const struct api_kept *kept, what = {.arena = *arena};
    return api_keep(&kept, dataset, &what); /* the arena is released with it, or now where it cannot be kept */
}

static plim_status read_source(struct dataset **out, struct plim_job *job, const char *text, plim_error *error)
{
    struct job_data data = {.split = "data"};
    struct yaml *yaml;
    TRY(yaml_parse(&yaml, &job->arena, PLACE, text, strlen(text), error));
    data.yaml = yaml;
    plim_status status = job_data_open(job, &data, error);
    if (status == PLIM_OK)
        *out = data.dataset;
    else if (data.dataset)
        dataset_unref(data.dataset);
    return status;
}

plim_dataset *plim_dataset_read(plim_budget *budget, const char *text, uint64_t seed)
{
    struct dataset *dataset = NULL;
    plim_error error = {0};
    HOST_FLOATS;
    if (!budget)
        return NULL;
    struct budget *inner = budget->inner;
    if (need_argument(text, "the text of the data set", &error) != PLIM_OK)
        return outside(dataset_failed(inner, &error));
    struct plim_job *job = budget_take(inner, TAG_PLANNER, sizeof *job);
    if (!job) {
        budget_refused(inner, TAG_PLANNER, sizeof *job, &error);
        return outside(dataset_failed(inner, &error));
    }
    job->budget = inner;
    job->path = PLACE;
    job->folder = ".";
    job->data_only = true;
    job->seed = seed;
    arena_init(&job->arena, inner, TAG_PIPELINE);
    if (read_source(&dataset, job, text, &error) == PLIM_OK) {
        dataset = keep_arena(dataset, &job->arena);
    } else {
        arena_release(&job->arena);
        dataset = dataset_failed(inner, &error);
    }
    budget_give(inner, TAG_PLANNER, job, sizeof *job);
    return outside(dataset);
}

plim_dataset *plim_dataset_stage(plim_dataset *public, const char *text, uint64_t seed)
{
    struct dataset *dataset = inside(public);
    struct arena arena;
    struct yaml *yaml;
    plim_error error = {0};
    HOST_FLOATS;
    if (!dataset || dataset->error)
        return public;
    if (!text)
        return api_dataset_null(public, "the text of the stage");
    struct budget *budget = dataset->budget;
    arena_init(&arena, budget, TAG_PIPELINE);
    plim_status status = yaml_parse(&yaml, &arena, PLACE, text, strlen(text), &error);
    if (status == PLIM_OK) {
        dataset = keep_arena(dataset, &arena);
        status = dataset_error(dataset, &error);
        if (status == PLIM_OK)
            status = stage_read(&dataset, PLACE, yaml, seed, &error);
    } else {
        arena_release(&arena);
    }
    if (status == PLIM_OK)
        return outside(dataset);
    dataset_unref(dataset);
    return outside(dataset_failed(budget, &error));
}
