/* largest_batch.c - the largest batch whose plan stays inside the budget.

   Plans are cheap, kernels are not: the search plans with a backend that hands
   out the kernels already made for the same node at the job's own batch. Their
   scratch is by slice, not by batch, so the sizes hold. */
#include "job/job.h"

struct sizing {
    struct backend backend;
    const struct program *program;
};

static const struct kernel *kernel_of(const struct phase *phase, const struct node *node)
{
    for (int i = 0; i < phase->instruction_count; i++)
        for (int t = 0; t < phase->instruction[i].task_count; t++) {
            const struct task *task = &phase->instruction[i].task[t];
            if (task->node->id == node->id && task->node->op == node->op)
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
    return *out ? PLIM_OK : fail(error, PLIM_INTERNAL, "sizing: node %d has no kernel", node->id);
}

static const char *sizing_features(const struct backend *backend)
{
    const struct sizing *sizing = (const struct sizing *)backend;
    return sizing->program->backend->type->features(sizing->program->backend);
}

static const struct backend_type sizing_backend = {.name = "sizing", .prepare = sizing_prepare, .features = sizing_features};

/* Whether training at this batch fits. The evaluation's own batch stays as it is, and so
   does what it needs: only the training step grows. */
static plim_status fits(bool *out, struct plim_job *job, int64_t batch, plim_error *error)
{
    struct sizing sizing = {.backend = {.type = &sizing_backend}, .program = job->program};
    struct graph train, evaluate;
    struct model_tensors tensors, unused;
    struct program *program = NULL;
    struct prediction prediction;
    plim_status status = job_graphs(&train, &evaluate, &tensors, &unused, job, batch, dataset_batch_size(job->train.dataset), error);
    struct program_input input = {
        .budget = job->budget,
        .backend = &sizing.backend,
        .threads = job->compute_threads,
        .train = &train,
        .save_buffer_bytes = job->options.save_buffer_bytes,
    };
    if (status == PLIM_OK)
        status = program_make(&program, &input, error);
    if (status == PLIM_OK) {
        /* What the search itself holds right now must not count. */
        struct program held = *program;
        uint64_t extra = dataset_spec(job->train.dataset)->element_bytes * (uint64_t)(batch - dataset_batch_size(job->train.dataset));
        program_free(program);
        graph_release(&train);
        graph_release(&evaluate);
        uint64_t arena = held.arena_bytes > job->program->arena_bytes ? held.arena_bytes - job->program->arena_bytes : 0;
        job_predict(&prediction, job, job->program, dataset_least_slots(job->train.dataset), job->validation_slots, job->train.dataset);
        *out = prediction.peak + arena + arena / 512 + extra <= job->memory_bytes;
        return PLIM_OK;
    }
    graph_release(&train);
    graph_release(&evaluate);
    return status;
}

plim_status largest_batch(int64_t *out, struct plim_job *job, plim_error *error)
{
    int64_t low = dataset_batch_size(job->train.dataset), high = low;
    int64_t most = dataset_cardinality(job->train.dataset);
    bool ok = job->prediction.peak <= job->memory_bytes;
    *out = 0;
    if (!ok)
        return PLIM_OK; /* NEEDSWORK: when even the job's batch does not fit, search downwards */
    while (ok && high < most) {
        low = high;
        high = high * 2 < most ? high * 2 : most;
        TRY(fits(&ok, job, high, error));
    }
    if (ok)
        low = high;
    while (!ok && high - low > 1 && (high - low) * 64 > low) {
        int64_t middle = low + (high - low) / 2;
        bool inside;
        TRY(fits(&inside, job, middle, error));
        if (inside)
            low = middle;
        else
            high = middle;
    }
    *out = low;
    return PLIM_OK;
}
