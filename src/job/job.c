/* job.c - opening and closing a job, and the small calls of the API. */
#include "job/job.h"

#include "base/memory/budget_stop.h"
#include "report/report.h"

#include <string.h>

#define MOST_JOB_FILES   4096
#define MOST_HINTED_PATH 200 /* a command that is cut is none */

/* "a/b/job.yaml" -> "a/b"; "job.yaml" -> ".". */
static const char *folder_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/" : arena_format(arena, "%.*s", (int)(slash - path), path);
}

/* The budget ended before the job's own command line was put together: reported with what the caller gave. */
static plim_status refuse_early(const char *path, const plim_job_options *options, plim_error *error)
{
    bool more =
        options->overrides_count || options->threads || options->scratch || options->disk || options->checkpoint;
    bool plain = !more && strlen(path) < MOST_HINTED_PATH && !strpbrk(path, " \t\n\"'\\$`&|;<>(){}*?[]~#!");
    error_at(error, PLIM_OVER_BUDGET, path);
    if (!options->memory || (error && error->hint[0])) /* all that there is was not enough; or it says what would do */
        return PLIM_OVER_BUDGET;
    if (!plain)
        return hint(error, PLIM_OVER_BUDGET, "--memory auto");
    return hint(error, PLIM_OVER_BUDGET, "plim %s --memory auto %s", options->command ? options->command : "train",
                path);
}

/* The budget binds before anything else is taken. */
static plim_status begin(struct plim_job *job, const char *path, const plim_job_options *options, plim_error *error)
{
    TRY(job_bind_early(job, options->memory, error));
    job->path = arena_string(&job->arena, path);
    job->folder = folder_of(&job->arena, path);
    return job->path && job->folder ? PLIM_OK : arena_refused(&job->arena, error);
}

static plim_status make(struct plim_job **out, const char *path, const plim_job_options *options, plim_error *error)
{
    struct budget *budget;
    TRY(budget_make(&budget, BUDGET_UNLIMITED, error));
    struct plim_job *job = budget_take(budget, TAG_PLANNER, sizeof *job);
    if (!job) {
        plim_status status = budget_refused(budget, TAG_PLANNER, sizeof *job, error);
        budget_free(budget);
        return status;
    }
    job->budget = budget;
    budget_watch_stop(budget, &job->stop);
    arena_init(&job->arena, budget, TAG_PLANNER);
    job->plan = (struct plan){.budget = budget, .arena = &job->arena};
    job_init_texts(job);
    plim_status status = begin(job, path, options, error);
    if (status == PLIM_OVER_BUDGET)
        refuse_early(path, options, error);
    return OPENED(out, job, job_free, status);
}

#define MOST_OVERRIDES 65536

static plim_status check_options(const plim_job_options *options, plim_error *error)
{
    if (options->overrides_count > MOST_OVERRIDES)
        return fail(error, PLIM_USAGE, "%zu overrides: at most %d", options->overrides_count, MOST_OVERRIDES);
    if (options->overrides_count && !options->overrides)
        return fail(error, PLIM_USAGE, "%zu overrides, and their list is NULL", options->overrides_count);
    for (size_t i = 0; i < options->overrides_count; i++)
        if (!options->overrides[i])
            return fail(error, PLIM_USAGE, "override %zu is NULL", i);
    if (!options->data_changed || options->resume)
        return PLIM_OK;
    fail(error, PLIM_USAGE, "--data-changed without --resume: there is no checkpoint to compare with");
    return hint(error, PLIM_USAGE, "--resume --data-changed goes on from the checkpoint; neither of them starts anew");
}

/* The job is the caller's, or gone. */
static plim_status opened(plim_job **out, struct plim_job *job, const plim_job_options *options, plim_status status,
                          plim_error *error)
{
    if (status == PLIM_OVER_BUDGET && job->command)
        job_refuse_unplanned(job, error);
    else if (status == PLIM_OVER_BUDGET)
        refuse_early(job->path, options, error); /* of several files: it names the first */
    return OPENED(out, job, job_free, status);
}

plim_status plim_job_open(plim_job **out, const char *path, const plim_job_options *options, plim_error *error)
{
    static const plim_job_options defaults;
    struct plim_job *job = NULL;
    HOST_FLOATS;
    options = options ? options : &defaults;
    if (!path)
        return fail(error, PLIM_USAGE, "no job file given");
    TRY(need_argument(out, "where the job is to go", error));
    TRY(check_options(options, error));
    TRY(make(&job, path, options, error));
    return opened(out, job, options, job_read(job, options, error), error);
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

static plim_status check_files(const char *const *paths, size_t count, plim_error *error)
{
    if (!count || count > MOST_JOB_FILES)
        return fail(error, PLIM_USAGE, "1 to %d files, not %zu", MOST_JOB_FILES, count);
    TRY(need_argument(paths, "the list of files", error));
    for (size_t i = 0; i < count; i++)
        if (!paths[i])
            return fail(error, PLIM_USAGE, "file %zu is NULL", i);
    return PLIM_OK;
}

plim_status plim_job_open_files(plim_job **out, const char *const *paths, size_t count, const plim_job_options *options,
                                plim_error *error)
{
    static const plim_job_options defaults;
    struct plim_job *job = NULL;
    HOST_FLOATS;
    options = options ? options : &defaults;
    TRY(check_files(paths, count, error));
    TRY(need_argument(out, "where the job is to go", error));
    TRY(check_options(options, error));
    TRY(make(&job, paths[0], options, error));
    return opened(out, job, options, read_files(job, paths, count, options, error), error);
}

void job_free(struct plim_job *job)
{
    struct budget *budget = job->budget;
    job_unplan(job);
    if (job->model)
        model_free(job->model);
    job_release_texts(job);
    arena_release(&job->arena);
    budget_give(budget, TAG_PLANNER, job, sizeof *job);
    budget_free(budget);
}

void plim_job_close(plim_job *job)
{
    if (!job)
        return;
    stop_ask(&job->stop); /* what runs has no reader any more */
    if (busy_give_up(&job->busy))
        job_free(job);
}

void plim_job_stop(plim_job *job)
{
    if (job)
        stop_ask(&job->stop);
}

void plim_report_watch(plim_report *report, const plim_job *job)
{
    if (report)
        report_watch(report, job ? &job->stop : NULL);
}

const char *job_path(struct plim_job *job, const char *path)
{
    struct data_reader reader = job_reader(job);
    return reader_path(&reader, path);
}
