/* job_run.c - runs what was planned, and nothing else. */
#include "base/memory/budget_alloc.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/floats.h"
#include "base/threads/clock.h"
#include "job/job.h"

#include <stdlib.h>

static plim_status open_machine(struct machine *machine, struct plim_job *job, plim_error *error)
{
    plim_status status = machine_open(machine, job->plan.program, job->budget, &job->scratch, error);
    if (status == PLIM_OVER_DISK)
        return hint(error, status, "--disk allows more, or plan: {spill: never, page: never}");
    return status == PLIM_IO
               ? hint(error, status, "--scratch names another folder, plan: {spill: never, page: never} does without")
               : status;
}

static plim_status open_trainer(struct trainer *trainer, struct plim_job *job, plim_error *error)
{
    *trainer = (struct trainer){
        .budget = job->budget,
        .build = job->plan.train.build,
        .train_tensors = job->train_tensors,
        .evaluate_tensors = job->evaluate_tensors,
        .train = job->train.dataset,
        .validation = job->validation.dataset,
        .scratch = &job->scratch,
        .options = job->options,
        .stop = &job->stop,
        .predicted_peak = job->plan.prediction.peak,
        .budget_bytes = job->plan.limit_bytes,
    };
    job_digest(trainer->options.job_digest, job);
    trainer->options.train_grant = job->train_grant;
    trainer->options.validation_grant = job->validation_grant;
    bool refused = budget_stop_refuses(job->budget, true); /* nothing is written yet */
    plim_status status = open_machine(&trainer->machine, job, error);
    if (status == PLIM_OK) {
        unsigned mode = floats_enter();
        trainer->machine.disk_bytes = job->plan.disk_bytes; /* a run that moves nothing hands it on */
        status = job->options.checkpoint_folder ? machine_probe_disk(&trainer->machine, error) : PLIM_OK;
        if (status == PLIM_OK)
            status = trainer_initialize(trainer, error);
        floats_restore(mode);
        if (status != PLIM_OK)
            machine_close(&trainer->machine);
    }
    budget_stop_refuses(job->budget, refused);
    if (status != PLIM_OK && stop_asked(&job->stop))
        return fail_at(error, PLIM_INTERRUPTED, job->path, "stopped before the first step: nothing was written");
    return status;
}

/* What tells the data from other data: for runs that write checkpoints, or go on from one. */
static plim_status look_at_data(struct trainer_options *options, struct plim_job *job, plim_error *error)
{
    if (!options->checkpoint_folder || (options->checkpoint_every < 0 && !options->resume))
        return PLIM_OK;
    TRY(fingerprint_make(&options->data, job->train.dataset, job->budget, error));
    if (!job->validation.dataset)
        return PLIM_OK;
    return fingerprint_make(&options->validation_data, job->validation.dataset, job->budget, error);
}

static plim_status prepare(struct plim_job *job, plim_error *error)
{
    TRY(job_plan(job, error));
    if (!job->report.fits)
        return job_refuse(job, error);
    return plan_enter_budget(&job->plan, error);
}

static plim_status train(struct plim_job *job, plim_listener *listener, void *context, plim_error *error)
{
    struct trainer trainer;
    TRY(job_plan(job, error));
    if (listener)
        listener(context, &(plim_event){.kind = PLIM_EVENT_PLAN, .plan = &job->report});
    TRY(prepare(job, error));
    TRY(open_trainer(&trainer, job, error));
    plim_status status = look_at_data(&trainer.options, job, error);
    if (status == PLIM_OK)
        status = trainer_run(&trainer, listener, context, error);
    machine_close(&trainer.machine);
    if (status == PLIM_INTERRUPTED && trainer.checkpointed)
        job_hint_resume(job, error);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, job->path);
}

plim_status plim_job_train(plim_job *job, plim_listener *listener, void *context, plim_error *error)
{
    struct job_call call;
    struct job_listener host = {listener, context, &call.host};
    TRY(job_begin(&call, job, "train", error));
    return job_end(&call, train(job, listener ? job_tell : NULL, &host, error));
}

/* Once: the texts live as long as the job. */
static plim_status write_summary(struct plim_job *job, const struct build *build, plim_error *error)
{
    if (job->summarized)
        return PLIM_OK;
    job_text_clear(&job->summary_text);
    model_summary(&job->summary_text.text, build, file_columns(1)); /* its failure is the text's, below */
    model_summary_json(&job->summary_text.json, build);
    TRY(job_text_done(&job->summary_text, error));
    job->summarized = true;
    return PLIM_OK;
}

static plim_status summarize(struct plim_job *job, plim_error *error)
{
    struct graph graph;
    if (!job->model_only && !job->lacks) {
        TRY(job_plan(job, error));
        return write_summary(job, job->plan.train.build, error);
    }
    plim_status status = job_model_build(&graph, job, error);
    if (status == PLIM_OK)
        status = write_summary(job, graph.build, error);
    graph_release(&graph);
    return status;
}

plim_status plim_job_summary(const char **text, const char **json, plim_job *job, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(text, "summary: where the text is to go", error));
    TRY(need_argument(json, "summary: where the JSON is to go", error));
    TRY(job_begin(&call, job, "summary", error));
    plim_status status = summarize(job, error);
    if (status == PLIM_OVER_BUDGET)
        job_refuse_unplanned(job, error);
    if (status == PLIM_OK) {
        *text = job->summary_text.text.data;
        *json = job->summary_text.json.data;
    }
    return job_end(&call, status);
}

/* ---- measuring ---- */

/* Where nobody says how many. */
#define USUAL_STEPS 1000
#define LEAST_STEPS 3
#define USUAL_NS    ((uint64_t)10 * 1000 * 1000 * 1000)
#define WARM_NS     ((uint64_t)1000 * 1000 * 1000)

plim_status job_iterate(struct iterator **out, struct plim_job *job, struct grant grant, plim_error *error)
{
    const struct data_run run = {.budget = job->budget, .scratch = &job->scratch, .seed = job->seed};
    return iterator_open(out, job->train.dataset, &run, grant, NULL, error);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void step_figures(plim_step_figures *figures, double *seconds, int64_t steps)
{
    double sum = 0;
    for (int64_t i = 0; i < steps; i++)
        sum += seconds[i];
    qsort(seconds, (size_t)steps, sizeof *seconds, compare_doubles);
    figures->steps = steps;
    figures->mean_seconds = sum / (double)steps;
    figures->best_seconds = seconds[0];
    figures->median_seconds = seconds[steps / 2];
}

/* One step to begin with, four more where they are short. */
static plim_status warm_up(struct trainer *trainer, const struct batch *batch, plim_error *error)
{
    uint64_t begin = clock_ns();
    for (int i = 0; i < 5 && (i == 0 || clock_ns() - begin < WARM_NS); i++)
        TRY(machine_run(&trainer->machine, PHASE_TRAIN, batch, error));
    return PLIM_OK;
}

static plim_status time_steps(plim_step_figures *figures, struct trainer *trainer, const struct batch *batch,
                              int64_t steps, plim_error *error)
{
    int64_t most = steps ? steps : USUAL_STEPS, done = 0;
    size_t bytes = (size_t)most * sizeof(double);
    double *seconds;
    TRY(budget_alloc(&seconds, trainer->budget, TAG_PLANNER, bytes, error));
    plim_status status = warm_up(trainer, batch, error);
    uint64_t first = clock_ns();
    while (status == PLIM_OK && done < most && (steps || done < LEAST_STEPS || clock_ns() - first < USUAL_NS)) {
        uint64_t begin = clock_ns();
        status = machine_run(&trainer->machine, PHASE_TRAIN, batch, error);
        seconds[done++] = (double)(clock_ns() - begin) * 1e-9;
        if (status == PLIM_OK)
            status = budget_go_on(trainer->budget, error);
    }
    if (status == PLIM_OK)
        step_figures(figures, seconds, done);
    budget_give(trainer->budget, TAG_PLANNER, seconds, bytes);
    return status;
}

static plim_status bench_step(plim_step_figures *out, struct plim_job *job, int64_t steps, plim_error *error)
{
    struct trainer trainer;
    struct iterator *iterator;
    struct batch *batch;
    struct process_usage usage = {0};
    plim_step_figures figures = {0};
    TRY(prepare(job, error));
    TRY(open_trainer(&trainer, job, error));
    plim_status status = job_iterate(&iterator, job, job->train_grant, error);
    if (status == PLIM_OK) {
        status = iterator_next(&batch, iterator, error);
        if (status == PLIM_OK && !batch)
            status = fail(error, PLIM_BAD_DATA, "the data set is empty");
        if (status == PLIM_OK)
            status = time_steps(&figures, &trainer, batch, steps, error);
        iterator_close(iterator);
    }
    machine_close(&trainer.machine);
    if (status != PLIM_OK)
        return status;
    process_usage_now(&usage);
    figures.predicted_peak_bytes = job->plan.prediction.peak;
    figures.peak_rss_bytes = usage.peak_rss;
    *out = figures;
    return PLIM_OK;
}

plim_status plim_job_bench_step(plim_step_figures *out, plim_job *job, int64_t steps, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(out, "bench: where the figures are to go", error));
    if (steps < 0 || steps > 1000000)
        return fail(error, PLIM_USAGE, "steps must be in 0..1000000");
    TRY(job_begin(&call, job, "bench", error));
    return job_end(&call, bench_step(out, job, steps, error));
}
