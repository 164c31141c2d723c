/* job_plan.c - what the job takes, before any record is read.

   The bytes of the process itself are measured, not guessed: everything that
   a run loads is loaded first (libraries, primitives, tables), then the resident
   size is read, and what the run will still take is added. So the order
   here matters: data headers, graphs, kernels, plan, search for the largest batch, and the
   measurement last.

   Invariants:
    1. the figure that refuses is the figure that is printed;
    2. nothing but the prefetch depth depends on the budget. */
#include "base/checked.h"
#include "base/clock.h"
#include "base/mappings.h"
#include "job/job.h"

#include <sys/resource.h>

#define KIB ((uint64_t)1024)
/* Touched after the measurement: stack and heap pages of libc; code of oneDNN in the first step. */
#define HEAP_MARGIN (128 * KIB)
#define ONEDNN_MARGIN (768 * KIB)

static struct column_spec column_of(const struct dataset *dataset, int column)
{
    const struct column *c = &dataset_spec(dataset)->column[column];
    return (struct column_spec){.type = c->type, .shape = c->shape};
}

static plim_status one_graph(struct graph *graph, struct model_tensors *tensors, struct plim_job *job, const struct dataset *dataset,
                             int64_t batch, bool backward, plim_error *error)
{
    struct column_spec input = column_of(dataset, 0), label = column_of(dataset, 1);
    graph_init(graph, job->budget, batch);
    TRY(model_build(tensors, graph, job->model, &input, &label, &job->training, backward, error));
    return graph_check(graph, error);
}

plim_status job_graphs(struct graph *train, struct graph *evaluate, struct model_tensors *train_tensors,
                       struct model_tensors *evaluate_tensors, struct plim_job *job, int64_t batch, int64_t evaluate_batch, plim_error *error)
{
    graph_init(train, job->budget, 0);
    graph_init(evaluate, job->budget, 0);
    if (job->validation.dataset)
        TRY(one_graph(evaluate, evaluate_tensors, job, job->validation.dataset, evaluate_batch, false, error));
    /* The training graph last: the model remembers the weights of the graph it built last. */
    return one_graph(train, train_tensors, job, job->train.dataset, batch, true, error);
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
    dataset_steps(job->train.dataset, &input.last_batch_train);
    if (job->validation.dataset)
        dataset_steps(job->validation.dataset, &input.last_batch_evaluate);
    return program_make(&job->program, &input, error);
}

static plim_status open_all(struct plim_job *job, plim_error *error)
{
    TRY(job_data_open(job, &job->train, error));
    if (job->validation.yaml)
        TRY(job_data_open(job, &job->validation, error));
    TRY(job_data_check(job, error));
    TRY(cpu_backend.open(&job->backend, job->budget, error));
    backend_threads(job->backend, job->compute_threads);
    return PLIM_OK;
}

static void release_program(struct plim_job *job)
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
    release_program(job);
    if (job->backend)
        job->backend->type->close(job->backend);
    job->backend = NULL;
    close_data(&job->train);
    close_data(&job->validation);
    job->planned = false;
}

/* A label that names no class would train to NaN without a word. */
static plim_status expect_labels(struct plim_job *job, struct dataset *dataset, const struct tensor *output, plim_error *error)
{
    bool classes = job->training.loss == LOSS_SPARSE_CATEGORICAL;
    if (!dataset)
        return PLIM_OK;
    return dataset_expect_labels(dataset, 1, classes ? output->shape.dim[output->shape.rank - 1] : LABELS_ARE_NUMBERS, error);
}

/* Graphs and plan for the job's own batch. Made twice: the search for the largest
   batch builds other graphs in between, and kernels are kept by the backend. */
static plim_status build(struct plim_job *job, plim_error *error)
{
    int64_t batch = dataset_batch_size(job->train.dataset);
    int64_t evaluate_batch = job->validation.dataset ? dataset_batch_size(job->validation.dataset) : 0;
    release_program(job);
    job->graphs_built = true;
    TRY(job_graphs(&job->train_graph, &job->evaluate_graph, &job->train_tensors, &job->evaluate_tensors, job, batch, evaluate_batch, error));
    TRY(expect_labels(job, job->train.dataset, job->train_tensors.output, error));
    TRY(expect_labels(job, job->validation.dataset, job->train_tensors.output, error));
    return make_program(job, error);
}

static uint64_t address_left(uint64_t mapped)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur > mapped ? limit.rlim_cur - mapped : 0;
}

/* What the process holds now that the ledger does not count by name, and the
   code it may still touch. */
static plim_status measure(struct plim_job *job, plim_error *error)
{
    struct usage usage;
    struct mappings mappings;
    struct budget_figures figures = budget_figures(job->budget);
    TRY(mappings_read(&mappings, job->budget, error));
    if (!usage_now(&usage))
        return fail(error, PLIM_IO, "cannot read this process's memory from /proc");
    uint64_t heap = mappings.anonymous > figures.now ? mappings.anonymous - figures.now : 0;
    uint64_t later = HEAP_MARGIN + (program_kernels(job->program, "onednn") ? ONEDNN_MARGIN : 0);
    job->process_bytes = round_up(heap + mappings.small_files + mappings.large_files + later, 4 * KIB);
    job->kernel_bytes = usage.page_tables + 64 * KIB;
    job->planning_peak = round_up(usage.peak_rss, 4 * KIB);
    job->address_bytes = address_left(usage.mapped);
    return PLIM_OK;
}

static uint64_t page_table_growth(uint64_t bytes)
{
    return bytes / 512 + 8 * KIB;
}

void job_predict(struct prediction *out, const struct plim_job *job, const struct program *program, int train_slots, int validation_slots,
                 const struct dataset *train)
{
    struct budget_figures figures = budget_figures(job->budget);
    uint64_t outside[TAG_COUNT], scratch = 0;
    for (int tag = 0; tag < TAG_COUNT; tag++)
        outside[tag] = figures.now_by_tag[tag];
    outside[TAG_PROCESS] = job->process_bytes;
    outside[TAG_STACKS] += team_cost(program->threads);
    outside[TAG_CHECKPOINT] += checkpoint_cost(program);
    dataset_cost(outside, &scratch, train, train_slots);
    if (job->validation.dataset)
        dataset_cost(outside, &scratch, job->validation.dataset, validation_slots);
    outside[TAG_KERNEL] = job->kernel_bytes + page_table_growth(program->arena_bytes) + (uint64_t)program->threads * 16 * KIB;
    program_predict(out, program, outside);
    if (out->peak < job->planning_peak) { /* thousands of layers on a handful of bytes */
        out->by_tag[TAG_PLANNER] += job->planning_peak - out->peak;
        out->peak = job->planning_peak;
        out->peak_at = "planning";
    }
}

/* The most slots up to what the pipelines want that stay inside the budget. */
static void choose_slots(struct plim_job *job)
{
    int least = dataset_least_slots(job->train.dataset);
    int wanted = job->data_threads ? dataset_wanted_slots(job->train.dataset) : 1;
    job->validation_slots = job->validation.dataset ? dataset_least_slots(job->validation.dataset) : 0;
    job->train_slots = wanted > least ? wanted : least;
    for (;; job->train_slots--) {
        job_predict(&job->prediction, job, job->program, job->train_slots, job->validation_slots, job->train.dataset);
        if (job->prediction.peak <= job->memory_bytes || job->train_slots <= least)
            return;
    }
}

static uint64_t smallest(const struct plim_job *job)
{
    struct prediction prediction;
    job_predict(&prediction, job, job->program, dataset_least_slots(job->train.dataset), job->validation_slots, job->train.dataset);
    return prediction.peak;
}

/* A stated budget may be more than the machine has: what the run will still take has to fit below RLIMIT_AS
   and into the headroom of cgroups and machine. */
static plim_status find_obstacle(struct plim_job *job, uint64_t least, plim_error *error)
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
    else if (still > limits.bytes / 15 * 16)
        job->obstacle = arena_string(&job->arena, limits.place);
    return PLIM_OK;
}

static plim_status make_plan(struct plim_job *job, plim_error *error)
{
    uint64_t begin = clock_ns();
    TRY(open_all(job, error));
    TRY(build(job, error));
    TRY(measure(job, error));
    choose_slots(job);
    int64_t largest;
    TRY(largest_batch(&largest, job, error));
    TRY(build(job, error));
    TRY(measure(job, error));
    choose_slots(job);
    uint64_t least = smallest(job);
    TRY(find_obstacle(job, least, error));
    job->report = (plim_plan_report){
        .fits = least <= job->memory_bytes && !job->obstacle,
        .budget_bytes = job->memory_bytes,
        .budget_source = job->memory_source,
        .predicted_peak_bytes = job->prediction.peak,
        .smallest_budget_bytes = round_up(least + least / SMALLEST_SLACK, 4 * KIB),
        .largest_batch = largest,
    };
    job->plan_seconds = (double)(clock_ns() - begin) * 1e-9;
    return job_explain(job, error);
}

plim_status job_plan(struct plim_job *job, plim_error *error)
{
    if (job->planned)
        return PLIM_OK;
    plim_status status = make_plan(job, error);
    if (status != PLIM_OK) {
        job_unplan(job); /* may be asked again */
        return place(error, status, job->path);
    }
    job->planned = true;
    return PLIM_OK;
}

plim_status plim_job_plan(plim_plan_report *report, plim_job *job, plim_error *error)
{
    TRY(job_plan(job, error));
    *report = job->report;
    return job->report.fits ? PLIM_OK : job_refuse(job, error);
}
