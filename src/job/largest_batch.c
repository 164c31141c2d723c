/* largest_batch.c - the largest batch whose plan stays inside the budget.

   Plans are cheap, kernels are not: the search plans with a backend that hands
   out the kernels already made for the same node at the job's own batch. Their
   scratch is by slice, not by batch, so the sizes hold. */
#include "job/job.h"

#include <string.h>

/* Slots and buffers are rounded to pages: the figure is to hold when it is used. */
#define PAGES_SLACK (64.0 * 1024)

struct sizing {
    struct backend backend;
    const struct program *program;
};

/* By layer and op: both graphs have the forward nodes, and the sizes of one serve for the other. */
static const struct kernel *kernel_of(const struct phase *phase, const struct node *node)
{
    for (int i = 0; i < phase->instruction_count; i++)
        for (int t = 0; t < phase->instruction[i].task_count; t++) {
            const struct task *task = &phase->instruction[i].task[t];
            if (task->node->op == node->op && strcmp(task->node->name, node->name) == 0)
                return task->kernel;
        }
    return NULL;
}

static plim_status sizing_prepare(const struct kernel **out, struct backend *backend, const struct node *node, int64_t slice,
                                  const int64_t *short_rows, int short_count, plim_error *error)
{
    const struct sizing *sizing = (const struct sizing *)backend;
    (void)slice, (void)short_rows, (void)short_count;
    *out = kernel_of(&sizing->program->phase[PHASE_TRAIN], node);
    if (!*out)
        *out = kernel_of(&sizing->program->phase[PHASE_EVALUATE], node);
    return *out ? PLIM_OK : fail(error, PLIM_INTERNAL, "sizing: node %d has no kernel", node->id);
}

static const char *sizing_features(const struct backend *backend)
{
    const struct sizing *sizing = (const struct sizing *)backend;
    return sizing->program->backend->type->features(sizing->program->backend);
}

static const struct backend_type sizing_backend = {.name = "sizing", .prepare = sizing_prepare, .features = sizing_features};

static plim_status plan_at(uint64_t *arena_bytes, struct plim_job *job, int64_t batch, plim_error *error)
{
    struct sizing sizing = {.backend = {.type = &sizing_backend}, .program = job->program};
    struct graph train, evaluate;
    struct model_tensors tensors, unused;
    struct program *program = NULL;
    int64_t evaluate_batch = job->validation.dataset ? dataset_batch_size(job->validation.dataset) : 0;
    plim_status status = job_graphs(&train, &evaluate, &tensors, &unused, job, batch, evaluate_batch, error);
    struct program_input input = {
        .budget = job->budget,
        .backend = &sizing.backend,
        .threads = job->compute_threads,
        .train = &train,
        .evaluate = job->validation.dataset ? &evaluate : NULL,
        .save_buffer_bytes = job->options.save_buffer_bytes,
    };
    if (status == PLIM_OK)
        status = program_make(&program, &input, error);
    if (status == PLIM_OK) {
        *arena_bytes = program->arena_bytes;
        program_free(program);
    }
    graph_release(&train);
    graph_release(&evaluate);
    return status;
}

/* Whether training at this batch fits: the job's own prediction, and the difference that the batch makes to
   arena, page tables and slots. */
static plim_status fits(bool *out, struct plim_job *job, int64_t batch, plim_error *error)
{
    struct prediction own;
    uint64_t arena_bytes;
    int slots = dataset_least_slots(job->train.dataset);
    plim_status status = plan_at(&arena_bytes, job, batch, error);
    if (status != PLIM_OK) { /* too large to count is too large to fit; the rest is a failure */
        *out = false;
        return status == PLIM_BAD_MODEL || status == PLIM_BAD_JOB || status == PLIM_OVER_BUDGET ? PLIM_OK : status;
    }
    job_predict(&own, job, job->program, slots, job->validation_slots, job->train.dataset);
    double arena = (double)arena_bytes - (double)job->program->arena_bytes;
    double rows = (double)(batch - dataset_batch_size(job->train.dataset)) * (double)dataset_spec(job->train.dataset)->element_bytes;
    double peak = (double)own.peak + arena * (1 + 1.0 / 512) + rows * slots;
    *out = peak * (1 + 1.0 / SMALLEST_SLACK) + PAGES_SLACK <= (double)job->memory_bytes;
    return PLIM_OK;
}

/* To 1/64: the figure is for people. */
static plim_status bisect(int64_t *low, int64_t high, struct plim_job *job, plim_error *error)
{
    while (high - *low > 1 && high - *low > *low / 64) {
        int64_t middle = *low + (high - *low) / 2;
        bool inside;
        TRY(fits(&inside, job, middle, error));
        if (inside)
            *low = middle;
        else
            high = middle;
    }
    return PLIM_OK;
}

/* Always plans at least once, fitting or not: what the heap keeps from it is then the same in every run of a job, and
   the measurement that follows does not wobble. */
plim_status largest_batch(int64_t *out, struct plim_job *job, plim_error *error)
{
    int64_t low = 0, high = dataset_batch_size(job->train.dataset);
    int64_t most = dataset_cardinality(job->train.dataset);
    bool inside;
    TRY(fits(&inside, job, high, error));
    while (inside && high < most) {
        low = high;
        high = high < most / 2 ? high * 2 : most;
        TRY(fits(&inside, job, high, error));
    }
    if (inside)
        low = high;
    else
        TRY(bisect(&low, high, job, error));
    *out = low;
    return PLIM_OK;
}
