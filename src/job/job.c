/* job.c - opening and closing a job, and the small calls of the API. */
#include "job/job.h"

#include <string.h>

#define MOST_JOB_FILES 4096

/* "a/b/job.yaml" -> "a/b"; "job.yaml" -> ".". */
static const char *folder_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/" : arena_format(arena, "%.*s", (int)(slash - path), path);
}

static plim_status make(struct plim_job **out, const char *path, plim_error *error)
{
    struct budget *budget;
    TRY(budget_make(&budget, JOB_EARLY_LIMIT, error));
    struct plim_job *job = budget_take(budget, TAG_PLANNER, sizeof *job);
    if (!job) {
        plim_status status = budget_refused(budget, TAG_PLANNER, sizeof *job, error);
        budget_free(budget);
        return status;
    }
    job->budget = budget;
    arena_init(&job->arena, budget, TAG_PLANNER);
    text_init(&job->plan_text, budget, TAG_PLANNER);
    text_init(&job->plan_json, budget, TAG_PLANNER);
    text_init(&job->summary_text, budget, TAG_PLANNER);
    text_init(&job->summary_json, budget, TAG_PLANNER);
    job->path = arena_string(&job->arena, path);
    job->folder = folder_of(&job->arena, path);
    if (!job->path || !job->folder) {
        plim_job_close(job);
        return fail(error, PLIM_NO_MEMORY, "no memory for the job");
    }
    *out = job;
    return PLIM_OK;
}

plim_status plim_job_open(plim_job **out, const char *path, const plim_job_options *options, plim_error *error)
{
    static const plim_job_options defaults;
    struct plim_job *job = NULL;
    if (!path)
        return fail(error, PLIM_USAGE, "no job file given");
    TRY(make(&job, path, error));
    plim_status status = job_read(job, options ? options : &defaults, error);
    if (status != PLIM_OK) {
        plim_job_close(job);
        return status;
    }
    *out = job;
    return PLIM_OK;
}

static plim_status read_files(struct plim_job *job, const char *const *paths, size_t count,
                              const plim_job_options *options, plim_error *error)
{
    const char **files = arena_take(&job->arena, count * sizeof *files);
    if (!files)
        return arena_refused(&job->arena, error);
    for (size_t i = 0; i < count; i++)
        if (!(files[i] = arena_string(&job->arena, paths[i])))
            return arena_refused(&job->arena, error);
    job->folder = "."; /* paths are the caller's */
    job->data_only = true;
    job->files = files;
    job->file_count = (int)count;
    TRY(job_files_text(&job->made_text, job, error));
    return job_read(job, options, error);
}

plim_status plim_job_open_files(plim_job **out, const char *const *paths, size_t count,
                                const plim_job_options *options, plim_error *error)
{
    static const plim_job_options defaults;
    struct plim_job *job = NULL;
    if (!count || count > MOST_JOB_FILES)
        return fail(error, PLIM_USAGE, "1 to %d files, not %zu", MOST_JOB_FILES, count);
    TRY(make(&job, paths[0], error));
    plim_status status = read_files(job, paths, count, options ? options : &defaults, error);
    if (status != PLIM_OK) {
        plim_job_close(job);
        return status;
    }
    *out = job;
    return PLIM_OK;
}

void plim_job_close(plim_job *job)
{
    if (!job)
        return;
    struct budget *budget = job->budget;
    job_unplan(job);
    if (job->model)
        model_free(job->model);
    text_release(&job->plan_text);
    text_release(&job->plan_json);
    text_release(&job->summary_text);
    text_release(&job->summary_json);
    arena_release(&job->arena);
    budget_give(budget, TAG_PLANNER, job, sizeof *job);
    budget_free(budget);
}

void plim_job_stop(plim_job *job)
{
    job->stop = 1;
}

const char *job_path(struct plim_job *job, const char *path)
{
    if (path[0] == '/' || strcmp(job->folder, ".") == 0)
        return path;
    return arena_format(&job->arena, "%s/%s", job->folder, path);
}
