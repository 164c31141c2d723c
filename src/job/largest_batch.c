/* largest_batch.c - the largest batch whose plan stays inside the budget.

   Plans are cheap, kernels are not: the search plans with a backend that hands
   out the kernels already made for the same node at the job's own batch. Their
   scratch is by slice, not by batch, so the sizes hold. A few nodes come and go with
   the batch (what is too small to be worth it is not kept as bits): those are
   prepared. */
#include "job/job.h"

#include <string.h>

#include "ops/remember.h"

#define MOST_BATCH ((int64_t)1 << 30)
/* Slots and buffers are rounded to pages, tables of the plan differ a little: the figure is to hold when it is used. */
#define ROUNDING      ((uint64_t)64 * 1024)
#define OTHER_KERNELS ((uint64_t)512 * 1024) /* oneDNN's code for other shapes */

/* Kernels by layer and op: both graphs have the forward nodes, and the sizes of one serve for the other. The first of
   equals counts, those of training before those of evaluation. The job's own plan is given up meanwhile: it is made
   again afterwards, and two of thousands of layers are not held at once. */
struct known {
    uint64_t hash; /* of layer and op */
    const struct kernel *kernel;
};

struct sizing {
    struct backend backend;
    struct backend *own; /* the job's */
    struct budget *budget;
    struct known *table; /* open addressing; at most half full */
    size_t capacity;     /* a power of two */
    uint64_t margin;
    uint64_t own_peak, own_program; /* of the job's plan: in all, and of its program */
    bool one_batch;                 /* a stateful layer: evaluation takes the same batch as training */
};

static uint64_t hash_of(const struct node *node)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *c = node->op->name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    hash *= 1099511628211u;
    for (const char *c = node->name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    return hash ^ hash >> 32;
}

/* Where the kernel of such a node is, or would be. */
static struct known *find(const struct sizing *sizing, const struct node *node)
{
    uint64_t hash = hash_of(node);
    for (uint64_t at = hash;; at++) {
        struct known *known = &sizing->table[at & (sizing->capacity - 1)];
        if (!known->kernel || known->hash == hash)
            return known;
    }
}

static void add_tasks(const struct sizing *sizing, const struct phase *phase)
{
    for (int i = 0; i < phase->instruction_count; i++)
        for (int t = 0; t < phase->instruction[i].task_count; t++) {
            const struct task *task = &phase->instruction[i].task[t];
            struct known *place = find(sizing, task->node);
            if (!place->kernel)
                *place = (struct known){hash_of(task->node), task->kernel};
        }
}

static size_t count_tasks(const struct phase *phase)
{
    size_t count = 0;
    for (int i = 0; i < phase->instruction_count; i++)
        count += (size_t)phase->instruction[i].task_count;
    return count;
}

static const struct backend_type sizing_backend;

/* What depends on the program: the arena, its page tables, the workers' stacks. As job_predict counts them. */
static uint64_t program_bytes(const struct program *program)
{
    return program->arena_bytes + job_page_tables(program->arena_bytes) + team_cost(program->threads) +
           (uint64_t)program->threads * JOB_THREAD_TABLES;
}

static plim_status sizing_init(struct sizing *out, struct plim_job *job, plim_error *error)
{
    const struct phase *train = &job->program->phase[PHASE_TRAIN], *evaluate = &job->program->phase[PHASE_EVALUATE];
    size_t wanted = 2 * (count_tasks(train) + count_tasks(evaluate));
    struct prediction own;
    job_predict(&own, job, job->program, dataset_least_grant(job->train.dataset), job->validation_grant,
                job->train.dataset);
    *out = (struct sizing){.backend = {.type = &sizing_backend},
                           .own = job->backend,
                           .budget = job->budget,
                           .own_peak = own.peak,
                           .own_program = program_bytes(job->program),
                           .one_batch = graph_remembers(&job->train_graph) != NULL,
                           .margin = job->slack_bytes + ROUNDING + job->memory_bytes / 512};
    if (program_kernels(job->program, "onednn"))
        out->margin += OTHER_KERNELS;
    out->capacity = 64;
    while (out->capacity < wanted)
        out->capacity *= 2;
    out->table = budget_take_array(job->budget, TAG_PLANNER, out->capacity, sizeof *out->table);
    if (!out->table)
        return budget_refused(job->budget, TAG_PLANNER, out->capacity * sizeof *out->table, error);
    add_tasks(out, train);
    add_tasks(out, evaluate);
    return PLIM_OK;
}

static void sizing_release(struct sizing *sizing)
{
    budget_give(sizing->budget, TAG_PLANNER, sizing->table, sizing->capacity * sizeof *sizing->table);
}

static plim_status sizing_prepare(const struct kernel **out, struct backend *backend, const struct node *node,
                                  int64_t slice, const int64_t *short_rows, int short_count, plim_error *error)
{
    const struct sizing *sizing = (const struct sizing *)backend;
    *out = find(sizing, node)->kernel;
    if (*out)
        return PLIM_OK;
    return sizing->own->type->prepare(out, sizing->own, node, slice, short_rows, short_count, error);
}

static const char *sizing_features(const struct backend *backend)
{
    const struct sizing *sizing = (const struct sizing *)backend;
    return sizing->own->type->features(sizing->own);
}

static const struct backend_type sizing_backend = {
    .name = "sizing", .prepare = sizing_prepare, .features = sizing_features};

static plim_status plan_at(uint64_t *bytes, struct plim_job *job, struct sizing *sizing, int64_t batch,
                           plim_error *error)
{
    struct graph train, evaluate;
    struct model_tensors tensors, unused;
    struct program *program = NULL;
    int64_t evaluate_batch = job->validation.dataset ? dataset_batch_size(job->validation.dataset) : 0;
    if (evaluate_batch && sizing->one_batch)
        evaluate_batch = batch;
    plim_status status = job_graphs(&train, &evaluate, &tensors, &unused, job, batch, evaluate_batch, error);
    struct program_input input = {
        .budget = job->budget,
        .backend = &sizing->backend,
        .threads = job->compute_threads,
        .train = &train,
        .evaluate = job->validation.dataset ? &evaluate : NULL,
        .save_buffer_bytes = job->options.save_buffer_bytes,
        .size_only = true,
        .last_batch_train = LAST_BATCH_ANY, /* kernels of a shorter last batch count, too */
    };
    if (evaluate_batch)
        input.last_batch_evaluate = LAST_BATCH_ANY;
    if (status == PLIM_OK)
        status = program_make(&program, &input, error);
    if (status == PLIM_OK) {
        *bytes = program_bytes(program);
        program_free(program);
    }
    graph_release(&train);
    graph_release(&evaluate);
    return status;
}

/* Whether training at this batch fits: the job's own prediction, and the difference that the batch makes to the program
   and the slots. */
static plim_status fits(bool *out, struct plim_job *job, struct sizing *sizing, int64_t batch, plim_error *error)
{
    uint64_t bytes;
    struct grant least = dataset_least_grant(job->train.dataset);
    plim_status status = plan_at(&bytes, job, sizing, batch, error);
    if (status != PLIM_OK) { /* too large to count is too large to fit; the rest is a failure */
        *out = false;
        return status == PLIM_BAD_MODEL || status == PLIM_BAD_JOB || status == PLIM_OVER_BUDGET ? PLIM_OK : status;
    }
    double more = (double)bytes - (double)sizing->own_program;
    struct spec sample;
    dataset_sample_spec(&sample, job->train.dataset);
    double rows = (double)(batch - dataset_batch_size(job->train.dataset)) * (double)sample.element_bytes;
    double peak = (double)sizing->own_peak + more + rows * least.slots;
    *out = peak + (double)sizing->margin <= (double)job->memory_bytes;
    return PLIM_OK;
}

/* To 1/64: the figure is for people. */
static plim_status bisect(int64_t *low, int64_t high, struct plim_job *job, struct sizing *sizing, plim_error *error)
{
    while (high - *low > 1 && high - *low > *low / 64) {
        int64_t middle = *low + (high - *low) / 2;
        bool inside;
        TRY(fits(&inside, job, sizing, middle, error));
        if (inside)
            *low = middle;
        else
            high = middle;
    }
    return PLIM_OK;
}

/* Kernels of a layer and op may want other scratch at another batch: what is told was planned with kernels of its own. */
static plim_status confirm(int64_t *batch, struct plim_job *job, struct sizing *sizing, plim_error *error)
{
    int64_t own = dataset_batch_size(job->train.dataset);
    memset(sizing->table, 0, sizing->capacity * sizeof *sizing->table);
    while (*batch > 0 && *batch != own) {
        bool inside;
        TRY(fits(&inside, job, sizing, *batch, error));
        if (inside)
            return PLIM_OK;
        int64_t less = *batch - 1 - *batch / 64;
        *batch = less < own && job->report.fits ? own : less; /* the job's own is known to fit */
    }
    return PLIM_OK;
}

/* Of the job's own batch its plan says whether it fits: the figures agree. */
static plim_status search(int64_t *out, struct plim_job *job, struct sizing *sizing, plim_error *error)
{
    int64_t low = 0, high = dataset_batch_size(job->train.dataset);
    int64_t most = dataset_cardinality(job->train.dataset);
    most = most < 0 ? MOST_BATCH : most; /* nobody knows how many there are */
    bool inside = job->report.fits;
    while (inside && high < most) {
        low = high;
        high = high < most / 2 ? high * 2 : most;
        TRY(fits(&inside, job, sizing, high, error));
    }
    if (inside)
        low = high;
    else
        TRY(bisect(&low, high, job, sizing, error));
    *out = low;
    return confirm(out, job, sizing, error);
}

plim_status largest_batch(int64_t *out, struct plim_job *job, plim_error *error)
{
    struct sizing sizing;
    bool kept = dataset_keep(job->train.dataset, false);
    plim_status status = sizing_init(&sizing, job, error);
    if (status == PLIM_OK) {
        job_release_program(job);
        status = search(out, job, &sizing, error);
        sizing_release(&sizing);
    }
    dataset_keep(job->train.dataset, kept);
    return status;
}
