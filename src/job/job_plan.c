/* job_plan.c - what the job takes, before any record is read.

   The bytes of the process itself are measured, not guessed: everything that
   a run loads is loaded first (libraries, primitives, tables), then the resident
   size is read, and what the run will still take is added. So the order
   here matters: data headers, graphs, kernels, plan, and the measurement last. Only plim_job_plan searches for the
   largest batch, behind the measurement: a run is planned once, and both predict the same bytes.

   Invariants:
    1. the figure that refuses is the figure that is printed;
    2. nothing but the prefetch depth depends on the budget. */
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/threads/clock.h"
#include "job/job.h"
#include "ops/remember.h"

#define KIB ((uint64_t)1024)
/* Touched after the measurement: code of oneDNN in the first step. */
#define ONEDNN_MARGIN (768 * KIB)

static plim_status one_graph(struct graph *graph, struct model_tensors *tensors, struct plim_job *job,
                             const struct dataset *dataset, int64_t batch, bool backward, plim_error *error)
{
    struct spec spec;
    struct column_spec columns[MOST_COLUMNS];
    dataset_sample_spec(&spec, dataset);
    int count = job_columns(columns, &spec);
    graph_init(graph, job->budget, batch);
    TRY(model_build(tensors, graph, job->model, columns, count, &job->training, backward, error));
    return graph_check(graph, error);
}

plim_status job_graphs(struct graph *train, struct graph *evaluate, struct model_tensors *train_tensors,
                       struct model_tensors *evaluate_tensors, struct plim_job *job, int64_t batch,
                       int64_t evaluate_batch, plim_error *error)
{
    graph_init(train, job->budget, 0);
    graph_init(evaluate, job->budget, 0);
    TRY(one_graph(train, train_tensors, job, job->train.dataset, batch, true, error));
    if (!job->validation.dataset)
        return PLIM_OK;
    TRY(one_graph(evaluate, evaluate_tensors, job, job->validation.dataset, evaluate_batch, false, error));
    build_free(evaluate); /* weights and figures are the training graph's */
    return PLIM_OK;
}

static int64_t last_batch(const struct dataset *dataset)
{
    int64_t last;
    dataset_steps(dataset, &last);
    return last ? last : LAST_BATCH_ANY;
}

static plim_status make_program(struct plim_job *job, plim_error *error)
{
    struct program_input input = {
        .budget = job->budget,
        .backend = job->backend,
        .threads = job->compute_threads,
        .train = &job->train_graph,
        .evaluate = job->validation.dataset ? &job->evaluate_graph : NULL,
        .save_buffer_bytes = job->options.save_buffer_bytes,
    };
    input.last_batch_train = last_batch(job->train.dataset);
    if (job->validation.dataset)
        input.last_batch_evaluate = last_batch(job->validation.dataset);
    return program_make(&job->program, &input, error);
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
    TRY(backend_standard()->open(&job->backend, job->budget, error));
    backend_threads(job->backend, job->compute_threads);
    return PLIM_OK;
}

void job_release_program(struct plim_job *job)
{
    if (job->program)
        program_free(job->program);
    if (job->graphs_built) {
        graph_release(&job->train_graph);
        graph_release(&job->evaluate_graph);
    }
    job->program = NULL;
    job->graphs_built = false;
}

static void close_data(struct job_data *data)
{
    if (data->dataset)
        dataset_unref(data->dataset);
    data->dataset = NULL;
}

void job_unplan(struct plim_job *job)
{
    job_release_program(job);
    if (job->backend)
        job->backend->type->close(job->backend);
    job->backend = NULL;
    close_data(&job->train);
    close_data(&job->validation);
    job_leave_budget(job);
    job->planned = job->data_planned = job->searched = false;
}

/* A label that names no class, or an id without a row, would train to NaN without a word. */
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

/* What is left of the data is too few for a batch, and a step will come to it. */
static plim_status check_last(const struct plim_job *job, const struct job_data *data, int64_t steps_asked,
                              int64_t batch, plim_error *error)
{
    int64_t last, steps = dataset_steps(data->dataset, &last);
    char where[256];
    if (!last || last == batch || (steps_asked && steps_asked < steps))
        return PLIM_OK;
    yaml_place(where, job->path, data->yaml);
    plim_status status =
        fail_at(error, PLIM_BAD_JOB, where, "a stateful layer takes batches of %lld samples, the last of %s has %lld",
                (long long)batch, data->split, (long long)last);
    return hint(error, status, "batch: {size: %lld, drop_remainder: true}", (long long)batch);
}

/* Layers with stateful: true have a row for each sample of a batch: all batches are of one size. */
static plim_status check_states(const struct plim_job *job, int64_t batch, int64_t evaluate_batch, plim_error *error)
{
    char where[256];
    if (!graph_remembers(&job->train_graph))
        return PLIM_OK;
    TRY(check_last(job, &job->train, job->options.steps_per_epoch, batch, error));
    if (!job->validation.dataset)
        return PLIM_OK;
    yaml_place(where, job->path, job->validation.yaml);
    if (evaluate_batch != batch)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where,
                            "a stateful layer takes batches of %lld samples, those of validation have %lld",
                            (long long)batch, (long long)evaluate_batch),
                    "batch: {size: %lld, drop_remainder: true}", (long long)batch);
    return check_last(job, &job->validation, job->options.validation_steps, batch, error);
}

/* Graphs and plan for the job's own batch. Made again after a search for the largest batch, which builds other graphs;
   kernels are kept by the backend. */
static plim_status build(struct plim_job *job, plim_error *error)
{
    int64_t batch = dataset_batch_size(job->train.dataset);
    int64_t evaluate_batch = job->validation.dataset ? dataset_batch_size(job->validation.dataset) : 0;
    job_release_program(job);
    job->graphs_built = true;
    TRY(job_graphs(&job->train_graph, &job->evaluate_graph, &job->train_tensors, &job->evaluate_tensors, job, batch,
                   evaluate_batch, error));
    TRY(check_states(job, batch, evaluate_batch, error));
    TRY(expect(job, job->train.dataset, &job->train_graph, &job->train_tensors, error));
    TRY(expect(job, job->validation.dataset, &job->evaluate_graph, &job->evaluate_tensors, error));
    return make_program(job, error);
}

/* Everything that a run loads is loaded; of oneDNN's code the first step touches some more. */
static plim_status measure(struct plim_job *job, plim_error *error)
{
    return job_measure(job, program_kernels(job->program, "onednn") ? ONEDNN_MARGIN : 0, error);
}

void job_predict(struct prediction *out, const struct plim_job *job, const struct program *program,
                 struct grant train_grant, struct grant validation_grant, const struct dataset *train)
{
    struct budget_figures figures = budget_figures(job->budget);
    uint64_t outside[TAG_COUNT], scratch = 0;
    for (int tag = 0; tag < TAG_COUNT; tag++)
        outside[tag] = figures.now_by_tag[tag];
    outside[TAG_PROCESS] = job->process_bytes;
    outside[TAG_STACKS] += team_cost(program->threads);
    uint64_t saving = checkpoint_cost(program);
    outside[TAG_CHECKPOINT] += job->load_bytes > saving ? job->load_bytes : saving; /* never at the same time */
    dataset_cost(outside, &scratch, train, train_grant);
    if (job->validation.dataset)
        dataset_cost(outside, &scratch, job->validation.dataset, validation_grant);
    outside[TAG_KERNEL] =
        job->kernel_bytes + job_page_tables(program->arena_bytes) + (uint64_t)program->threads * JOB_THREAD_TABLES;
    program_predict(out, program, outside);
    if (out->peak < job->planning_peak) { /* thousands of layers on a handful of bytes */
        out->by_tag[TAG_PLANNER] += job->planning_peak - out->peak;
        out->peak = job->planning_peak;
        out->peak_at = "planning";
    }
}

static bool fits(void *context, struct grant grant)
{
    struct plim_job *job = context;
    job_predict(&job->prediction, job, job->program, grant, job->validation_grant, job->train.dataset);
    return job->prediction.peak <= job->memory_bytes;
}

static void choose_slots(struct plim_job *job)
{
    job->validation_grant = (struct grant){0};
    if (job->validation.dataset)
        job->validation_grant = dataset_least_grant(job->validation.dataset);
    job->train_grant = grant_choose(job->train.dataset, job->data_threads, fits, job);
    if (!job->validation.dataset)
        return;
    dataset_keep(job->validation.dataset, true); /* the same data each epoch: worth keeping in what is left */
    if (!fits(job, job->train_grant)) {
        dataset_keep(job->validation.dataset, false);
        fits(job, job->train_grant);
    }
}

static uint64_t smallest(const struct plim_job *job)
{
    struct prediction prediction;
    bool kept = dataset_keep(job->train.dataset, false), also = dataset_keep(job->validation.dataset, false);
    job_predict(&prediction, job, job->program, dataset_least_grant(job->train.dataset), job->validation_grant,
                job->train.dataset);
    dataset_keep(job->train.dataset, kept);
    dataset_keep(job->validation.dataset, also);
    return prediction.peak;
}

static plim_status make_plan(struct plim_job *job, plim_error *error)
{
    uint64_t begin = clock_ns();
    TRY(open_all(job, error));
    TRY(job_weights_save(job, error));
    TRY(build(job, error));
    TRY(job_weights_load(job, error));
    TRY(measure(job, error));
    choose_slots(job);
    uint64_t least = smallest(job);
    TRY(job_find_obstacle(job, least, error));
    job->report = (plim_plan_report){
        .fits = least <= job->memory_bytes && !job->obstacle && !job->backend->missing_bytes,
        .budget_bytes = job->memory_bytes,
        .budget_source = job->memory_source,
        .predicted_peak_bytes = job->prediction.peak,
        .smallest_budget_bytes = job_told_budget(job, least),
    };
    job->plan_seconds = (double)(clock_ns() - begin) * 1e-9;
    return job_explain(job, error);
}

plim_status job_stopped_planning(plim_error *error)
{
    return fail(error, PLIM_INTERRUPTED, "stopped while the job was planned: nothing was written");
}

plim_status job_plan(struct plim_job *job, plim_error *error)
{
    if (job->planned)
        return PLIM_OK;
    if (job->model_only)
        return hint(error,
                    fail_at(error, PLIM_USAGE, job->path, "is a model, and no job: it does not say what to train on"),
                    "write a job file with model: %s", job->path);
    if (job->data_only)
        return fail_at(error, PLIM_USAGE, job->path, "was opened for its data alone: there is no model to plan");
    if (job->lacks)
        return job_lacks(job, error);
    job_unplan(job); /* of the data alone */
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
    job->planned = true;
    return PLIM_OK;
}

/* For who asks for the plan alone: a run does not wait for it. */
static plim_status search(struct plim_job *job, plim_error *error)
{
    if (job->searched)
        return PLIM_OK;
    job->prediction.peak_at = arena_string(&job->arena, job->prediction.peak_at); /* the program is made anew */
    if (!job->prediction.peak_at)
        return arena_refused(&job->arena, error);
    job_leave_budget(job);
    plim_status status = largest_batch(&job->report.largest_batch, job, error);
    if (status == PLIM_OVER_BUDGET) /* no room for the search itself: the job is not refused for it */
        job->report.largest_batch = 0;
    else
        TRY(status);
    TRY(build(job, error));
    job->searched = true;
    return job_explain(job, error);
}

static plim_status plan_and_search(struct plim_job *job, plim_error *error)
{
    TRY(job_plan(job, error));
    budget_stop_refuses(job->budget, true);
    plim_status status = search(job, error);
    budget_stop_refuses(job->budget, false);
    if (status == PLIM_OK)
        return PLIM_OK;
    if (stop_asked(&job->stop))
        status = job_stopped_planning(error);
    job_unplan(job);
    return place(error, status, job->path);
}

plim_status plim_job_plan(plim_plan_report *report, plim_job *job, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(report, "plan: the report", error));
    TRY(job_begin(&call, job, "plan", error));
    plim_status status = plan_and_search(job, error);
    if (status == PLIM_OK) {
        *report = job->report;
        status = job->report.fits ? PLIM_OK : job_refuse(job, error);
    }
    return job_end(&call, status);
}
