/* buffers.c - a worker's own bytes: local values and scratch of the tasks of
   one instruction, packed by their lifetimes inside the chain. Time here is the
   place of a task in its instruction; all instructions use the same bytes. */
#include "plan/plan_builder.h"

struct pool {
    struct instance *instance;
    int *tensor; /* root of each instance's group; NOWHERE for a task's scratch */
    int count;
};

static void add(struct pool *pool, struct instance instance, int tensor)
{
    pool->tensor[pool->count] = tensor;
    pool->instance[pool->count++] = instance;
}

/* A group is entered when its root is made: that is in this chain, for groups
   with no place in the tensor arena live in one chain. */
static void add_outputs(struct pool *pool, const struct builder *builder, const struct node *node,
                        const struct chain *chain)
{
    for (int k = 0; k < node->output_count; k++) {
        const struct tensor *tensor = node->output[k];
        const struct life *life = &builder->life[tensor->id];
        if (life->root != tensor->id || life->in_tensor_arena)
            continue;
        bool cut = builder->cut[node->id].output[k] == PART_CUT;
        add(pool,
            (struct instance){
                .name = tensor->name,
                .bytes = cut ? tensor_row_bytes(tensor) * (uint64_t)chain_slice(chain) : tensor_bytes(tensor),
                .first = life->first - chain->first,
                .last = life->end - chain->first,
            },
            tensor->id);
    }
}

static plim_status pack_instruction(struct builder *builder, struct instruction *instruction, struct pool *pool,
                                    plim_error *error)
{
    uint64_t top;
    pool->count = 0;
    for (int t = 0; t < instruction->task_count; t++) {
        const struct task *task = &instruction->task[t];
        add_outputs(pool, builder, task->node, &instruction->chain);
        if (task->kernel->scratch_bytes)
            add(pool, (struct instance){.name = "scratch", .bytes = task->kernel->scratch_bytes, .first = t, .last = t},
                NOWHERE);
    }
    TRY(layout_pack(&top, pool->instance, pool->count, builder->graph->arena.budget, error));
    for (int i = 0; i < pool->count; i++) {
        if (pool->tensor[i] == NOWHERE)
            instruction->task[pool->instance[i].first].scratch = pool->instance[i].offset;
        else
            builder->life[pool->tensor[i]].offset = pool->instance[i].offset;
    }
    if (top > builder->phase->worker_bytes)
        builder->phase->worker_bytes = top;
    return PLIM_OK;
}

plim_status buffers_make(struct builder *builder, plim_error *error)
{
    struct phase *phase = builder->phase;
    size_t most = 0;
    for (int i = 0; i < phase->instruction_count; i++)
        if ((size_t)phase->instruction[i].task_count > most)
            most = (size_t)phase->instruction[i].task_count;
    most *= MOST_OUTPUTS + 1;
    struct pool pool = {
        .instance = arena_array(&builder->work, most, sizeof(*pool.instance)),
        .tensor = arena_array(&builder->work, most, sizeof(*pool.tensor)),
    };
    if (!pool.instance || !pool.tensor)
        return program_refused(builder->program, error);
    for (int i = 0; i < phase->instruction_count; i++)
        TRY(pack_instruction(builder, &phase->instruction[i], &pool, error));
    return PLIM_OK;
}
