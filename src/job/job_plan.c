/* job_plan.c - plans a job before any record is read: opens its data, tells the planner (plan/planner.h) what is to be
   run, and chooses how the data is read.

   A run is planned once. Only plim_job_plan searches for the largest batch, after the measurement: so both predict the
   same bytes. */
#include "base/files/file.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/minmax.h"
#include "base/threads/clock.h"
#include "job/job.h"
#include "ops/sample_state.h"
#include "report/plan_view.h"

#include <stdio.h>
#include <string.h>

/* ---- the workload ---- */

static plim_status one_graph(struct graph *graph, struct model_tensors *tensors, struct plim_job *job,
                             const struct dataset *dataset, int64_t batch, bool backward, plim_error *error)
{
    struct spec spec;
    struct column_spec columns[MOST_COLUMNS];
    dataset_sample_spec(&spec, dataset);
    const struct step_spec step = {.column = columns,
                                   .column_count = job_columns(columns, &spec),
                                   .training = &job->training,
                                   .backward = backward};
    graph_init(graph, job->budget, batch);
    TRY(model_build(tensors, graph, job->model, &step, error));
    return graph_check(graph, error);
}

/* Sets job->train_tensors and job->evaluate_tensors. */
static plim_status build_graphs(struct graph *train, struct graph *evaluate, void *context, int64_t batch,
                                int64_t evaluate_batch, plim_error *error)
{
    struct plim_job *job = context;
    graph_init(train, job->budget, 0);
    graph_init(evaluate, job->budget, 0);
    TRY(one_graph(train, &job->train_tensors, job, job->train.dataset, batch, true, error));
    if (!job->validation.dataset)
        return PLIM_OK;
    TRY(one_graph(evaluate, &job->evaluate_tensors, job, job->validation.dataset, evaluate_batch, false, error));
    build_free(evaluate); /* weights and figures are the training graph's */
    return PLIM_OK;
}

static int64_t last_batch(const struct dataset *dataset)
{
    int64_t last;
    dataset_steps(dataset, &last);
    return last ? last : LAST_BATCH_ANY;
}

/* What `plan:` says of techniques. What lies on the disk takes half of what the data leaves of --disk, because caches
   of unknown size and model files that are unpacked take of the rest, and half of what is free, because checkpoints may
   lie there too. */
static plim_status find_rules(struct technique_rules *out, const struct plim_job *job, plim_error *error)
{
    const char *why = "--disk leaves no room";
    uint64_t data = job_data_disk(job), limit = job->scratch.limit_bytes;
    bool stated = job->spill == SPILL_ALWAYS || job->page.kind == PAGE_STATED;
    *out = (struct technique_rules){.recompute = job->recompute, .spill = job->spill, .page = job->page};
    if (job->spill == SPILL_NEVER && job->page.kind == PAGE_NEVER)
        return PLIM_OK;
    if (data < limit)
        TRY(file_probe_scratch(&why, job->budget, job->scratch.folder, error));
    out->disk_bytes = why ? 0 : min_u64(limit - data, file_room(job->scratch.folder)) / 2;
    if (!why || !stated)
        return PLIM_OK;
    const char *rule =
        job->spill == SPILL_ALWAYS ? "{spill: always}: nothing can be spilled" : "{page: ...}: nothing can be paged";
    plim_status status =
        fail_at(error, PLIM_OVER_DISK, job->path, "plan: %s to %s: %s", rule, job->scratch.folder, why);
    return hint(error, status, "--scratch names a folder on a disk, --disk how much of it may be used");
}

static plim_status describe_workload(struct workload *out, struct plim_job *job, plim_error *error)
{
    const struct dataset *train = job->train.dataset, *validation = job->validation.dataset;
    struct spec sample;
    dataset_sample_spec(&sample, train);
    *out = (struct workload){
        .build = build_graphs,
        .context = job,
        .threads = job->compute_threads,
        .save_buffer_bytes = job->options.save_buffer_bytes,
        .batch = dataset_batch_size(train),
        .evaluate_batch = validation ? dataset_batch_size(validation) : 0,
        .last_batch_train = last_batch(train),
        .last_batch_evaluate = validation ? last_batch(validation) : 0,
        .samples = dataset_cardinality(train),
        .sample_bytes = sample.element_bytes,
        .scratch_folder = job->scratch.folder,
    };
    return find_rules(&out->rules, job, error);
}

static plim_status open_all(struct plim_job *job, plim_error *error)
{
    TRY(job_data_open(job, &job->train, error));
    if (job->validation.yaml)
        TRY(job_data_open(job, &job->validation, error));
    TRY(job_data_trains(job, &job->train, error));
    if (job->validation.yaml)
        TRY(job_data_trains(job, &job->validation, error));
    TRY(job_data_check(job, error));
    TRY(backend_standard()->open(&job->plan.backend, job->budget, error));
    backend_threads(job->plan.backend, job->compute_threads);
    return PLIM_OK;
}

static void close_data(struct job_data *data)
{
    if (data->dataset)
        dataset_unref(data->dataset);
    data->dataset = NULL;
}

void job_unplan(struct plim_job *job)
{
    plan_release(&job->plan);
    close_data(&job->train);
    close_data(&job->validation);
    job->planned = job->data_planned = job->searched = false;
}

/* ---- checks of data and graphs ---- */

/* Declares the values that the model can take: a label that names no class, or an id without a row, would otherwise
   train to NaN without a message. */
static plim_status expect(struct plim_job *job, struct dataset *dataset, const struct graph *graph,
                          const struct model_tensors *tensors, plim_error *error)
{
    for (int t = 0; dataset && t < graph->tensor_count; t++) {
        const struct tensor *input = graph->tensor[t];
        if (input->kind == KIND_INPUT && input->below)
            TRY(dataset_expect(dataset, input->column, EXPECT_IDS, input->below, error));
    }
    for (int i = 0; dataset && i < job->model->output_count; i++) {
        const struct output_loss *loss = &job->training.output_loss[i];
        bool classes = !loss->none && loss->loss.type->sparse && !loss->loss.ignores;
        const struct tensor *output = tensors->output[i].value, *label = tensors->output[i].label;
        if (label)
            TRY(dataset_expect(dataset, label->column, classes ? EXPECT_CLASSES : EXPECT_NUMBERS,
                               classes ? output->shape.dim[output->shape.rank - 1] : 0, error));
    }
    return PLIM_OK;
}

/* `which`: "the last of train has", "those of validation have". */
static plim_status other_batch(const struct plim_job *job, const struct job_data *data, const char *which,
                               const char *verb, int64_t samples, plim_error *error)
{
    long long batch = job->plan.workload.batch;
    plim_status status = yaml_fail(error, PLIM_BAD_JOB, job->path, data->yaml,
                                   "a stateful layer takes batches of %lld samples, %s %s %s %lld", batch, which,
                                   data->split, verb, (long long)samples);
    return hint(error, status, "batch: {size: %lld, drop_remainder: true}", batch);
}

/* The last batch of an epoch must not be shorter, if a step will use it. */
static plim_status check_last(const struct plim_job *job, const struct job_data *data, int64_t steps_asked,
                              plim_error *error)
{
    int64_t last, steps = dataset_steps(data->dataset, &last);
    if (!last || last == job->plan.workload.batch || (steps_asked && steps_asked < steps))
        return PLIM_OK;
    return other_batch(job, data, "the last of", "has", last, error);
}

/* Layers with stateful: true have one state row per sample of a batch, so all batches must have the same size. */
static plim_status check_states(const struct plim_job *job, plim_error *error)
{
    const struct workload *workload = &job->plan.workload;
    if (!graph_find_sample_state(&job->plan.train))
        return PLIM_OK;
    TRY(check_last(job, &job->train, job->options.steps_per_epoch, error));
    if (!job->validation.dataset)
        return PLIM_OK;
    if (workload->evaluate_batch != workload->batch)
        return other_batch(job, &job->validation, "those of", "have", workload->evaluate_batch, error);
    return check_last(job, &job->validation, job->options.validation_steps, error);
}

/* ---- how the data is read ---- */

/* What the run takes beside its program. */
static void count_costs(struct run_costs *out, const struct plim_job *job, struct grant train_grant,
                        struct grant validation_grant)
{
    const struct program *program = job->plan.program;
    *out = (struct run_costs){.threads = train_grant.workers};
    out->by_tag[TAG_FORMATS] = job->sink_bytes;
    if (program) /* loading and saving, never at the same time */
        out->by_tag[TAG_CHECKPOINT] = max_u64(job->load_bytes, max_u64(checkpoint_cost(program), CALIBRATION_BYTES));
    dataset_cost(out->by_tag, NULL, job->train.dataset, train_grant);
    if (job->validation.dataset)
        dataset_cost(out->by_tag, NULL, job->validation.dataset, validation_grant);
}

static bool fits(void *context, struct grant grant)
{
    struct plim_job *job = context;
    struct run_costs costs;
    count_costs(&costs, job, grant, job->validation_grant);
    return plan_predict(&job->plan, &costs);
}

plim_status job_choose(struct plim_job *job, plim_error *error)
{
    struct run_costs least;
    const struct dataset *train = job->train.dataset, *validation = job->validation.dataset;
    job->validation_grant = validation ? dataset_least_grant(validation) : (struct grant){0};
    count_costs(&least, job, dataset_least_grant(train), job->validation_grant);
    job->train_grant = grant_choose(train, job->data_threads, fits, job);
    job->validation_grant.caches = validation; /* the same data each epoch: worth keeping in what is left */
    if (!fits(job, job->train_grant)) {
        job->validation_grant.caches = false;
        fits(job, job->train_grant);
    }
    TRY(plan_decide(&job->plan, &least, error));
    job->report = (plim_plan_report){
        .fits = job->plan.fits,
        .budget_bytes = job->plan.limit_bytes,
        .budget_source = job->memory_source,
        .predicted_peak_bytes = job->plan.prediction.peak,
        .smallest_budget_bytes = job->plan.smallest_bytes,
    };
    return PLIM_OK;
}

/* ---- the whole ---- */

/* By what an earlier run of the job took on this machine, where it has left that beside its checkpoints. */
static plim_status retime(struct plim_job *job, plim_error *error)
{
    const struct backend *backend = job->plan.backend;
    const struct calibration_place place = {.folder = job->options.checkpoint_folder,
                                            .features = backend->type->features(backend),
                                            .threads = backend->threads};
    struct op_costs costs;
    struct arena tables;
    bool found = false;
    if (!place.folder)
        return PLIM_OK;
    arena_init(&tables, job->budget, TAG_PLANNER);
    plim_status status = calibration_read(&found, &costs, &place, &tables, error);
    if (found)
        status = plan_retime(&job->plan, &costs, error);
    arena_release(&tables);
    return status;
}

static plim_status make_plan(struct plim_job *job, plim_error *error)
{
    uint64_t begin = clock_ns();
    struct plan *plan = &job->plan;
    job_unplan(job); /* a plan of the data alone */
    TRY(open_all(job, error));
    TRY(job_weights_save(job, error));
    TRY(describe_workload(&plan->workload, job, error));
    TRY(plan_graphs(plan, error));
    TRY(job_techniques_check(job, &plan->train, error));
    TRY(check_states(job, error));
    TRY(expect(job, job->train.dataset, &plan->train, &job->train_tensors, error));
    TRY(expect(job, job->validation.dataset, &plan->evaluate, &job->evaluate_tensors, error));
    TRY(plan_program(plan, error));
    TRY(plan_explore(plan, error));
    TRY(retime(job, error));
    TRY(job_weights_load(job, error));
    TRY(plan_measure(plan, error));
    TRY(job_choose(job, error));
    while (plan_has_next(plan)) {
        TRY(plan_next(plan, error));
        TRY(plan_measure(plan, error));
        TRY(job_choose(job, error));
    }
    job->plan_seconds = (double)(clock_ns() - begin) * 1e-9;
    job->planned = true;
    return PLIM_OK;
}

/* For a run. The search for the largest batch frees the program: then it is made again. */
static plim_status plan_to_run(struct plim_job *job, plim_error *error)
{
    bool same = job->planned;
    if (job->planned && !job->plan.program)
        TRY(plan_again(&same, &job->plan, error));
    if (same)
        return PLIM_OK;
    TRY(make_plan(job, error));
    return job_explain(job, NULL, error);
}

/* Frees the program. */
static plim_status search_and_explain(struct plim_job *job, const struct text *view, plim_error *error)
{
    plan_leave_budget(&job->plan);
    TRY(plan_largest_batch(&job->report.largest_batch, &job->plan, error));
    TRY(budget_go_on(job->budget, error)); /* a stop makes the search end early */
    job->searched = true;
    return job_explain(job, view, error);
}

/* For who asks for the plan alone: a run does not wait for the search. */
static plim_status plan_to_report(struct plim_job *job, plim_error *error)
{
    struct text view;
    if (job->searched)
        return PLIM_OK;
    if (!job->planned)
        TRY(make_plan(job, error));
    text_init(&view, job->budget, TAG_PLANNER);
    plan_view_text(&view, &job->plan);
    plim_status status = search_and_explain(job, &view, error);
    text_release(&view);
    return status;
}

plim_status job_plan_by(struct plim_job *job, plim_status (*make)(struct plim_job *, plim_error *), plim_error *error)
{
    bool refused = budget_stop_refuses(job->budget, true);
    plim_status status = make(job, error);
    budget_stop_refuses(job->budget, refused);
    if (status == PLIM_OK)
        return PLIM_OK;
    if (stop_asked(&job->stop)) /* a stop makes allocations fail, so another error may have been reported */
        status = fail(error, PLIM_INTERRUPTED, "stopped while the job was planned: nothing was written");
    if (status == PLIM_OVER_BUDGET)
        job_refuse_unplanned(job, error);
    job_unplan(job); /* the next call plans anew */
    return error_at(error, status, job->path);
}

static plim_status check_complete(const struct plim_job *job, plim_error *error)
{
    if (job->model_only)
        return hint(error,
                    fail_at(error, PLIM_USAGE, job->path, "is a model, and no job: it does not say what to train on"),
                    "write a job file with model: %s", job->path);
    if (job->data_only)
        return fail_at(error, PLIM_USAGE, job->path, "was opened for its data alone: there is no model to plan");
    return job->lacks ? job_lacks(job, error) : PLIM_OK;
}

plim_status job_plan(struct plim_job *job, plim_error *error)
{
    TRY(check_complete(job, error));
    return job_plan_by(job, plan_to_run, error);
}

plim_status plim_job_plan(plim_plan_report *report, plim_job *job, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(report, "plan: the report", error));
    TRY(job_begin(&call, job, "plan", error));
    plim_status status = check_complete(job, error);
    if (status == PLIM_OK)
        status = job_plan_by(job, plan_to_report, error);
    if (status == PLIM_OK) {
        *report = job->report;
        status = job->report.fits ? PLIM_OK : job_refuse(job, error);
    }
    return job_end(&call, status);
}

/* ---- files for people ---- */

/* For what shows no program. */
static plim_status plan_to_plot(struct plim_job *job, plim_error *error)
{
    return job->planned ? PLIM_OK : plan_to_run(job, error);
}

struct view {
    plim_status (*make)(struct plim_job *job, plim_error *error); /* as job_plan_by takes it */
    plim_status (*write)(const char *path, const struct plan *plan, const char *title, plim_error *error);
};

static plim_status write_view(struct plim_job *job, const char *path, const struct view *view, plim_error *error)
{
    char title[80]; /* the width of a plot */
    bool same = false;
    TRY(check_complete(job, error));
    TRY(file_same(&same, path, job->path, error));
    if (same)
        return fail_at(error, PLIM_USAGE, path, "is the job file: the plan would be written over it");
    TRY(job_plan_by(job, view->make, error));
    snprintf(title, sizeof title, "batch %lld, %s", (long long)job->plan.workload.batch, job->model->name);
    title[text_whole(title, strlen(title))] = '\0';
    plim_status status = view->write(path, &job->plan, title, error);
    return status == PLIM_OK ? status : error_at(error, status, path);
}

plim_status plim_job_plan_plot(plim_job *job, const char *path, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(path, "plan: the path of the plot", error));
    TRY(job_begin(&call, job, "plan", error));
    return job_end(&call, write_view(job, path, &(struct view){plan_to_plot, plan_view_plot}, error));
}

plim_status plim_job_plan_page(plim_job *job, const char *path, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(path, "plan: the path of the page", error));
    TRY(job_begin(&call, job, "plan", error));
    return job_end(&call, write_view(job, path, &(struct view){plan_to_run, plan_view_page}, error));
}
