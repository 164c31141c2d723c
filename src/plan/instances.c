/* instances.c - the stretches of the tensor arena that a phase needs, and their
   offsets: values that live outside of slices, partial sums, packs. */
#include <stdio.h>

#include "plan/plan_builder.h"

static int add_instance(struct phase *phase, struct instance instance)
{
    instance.bytes = layout_bytes(instance.bytes);
    phase->instance[phase->instance_count] = instance;
    return phase->instance_count++;
}

static int first_at(const struct builder *builder, int position)
{
    return first_instruction(builder, builder->chains.order[position]);
}

static int last_at(const struct builder *builder, int position)
{
    return last_instruction(builder, builder->chains.order[position]);
}

/* One instance; of a value that leaves the arena one before, and one after. */
static void add_value(struct builder *builder, const struct tensor *tensor, struct life *life)
{
    struct instance instance = {
        .name = tensor->name,
        .tag = life->gradient ? TAG_GRADIENTS : TAG_ACTIVATIONS,
        .bytes = tensor_bytes(tensor),
        .first = first_at(builder, life->first),
        .last = life->result ? builder->phase->instruction_count - 1 : last_at(builder, life->end),
    };
    if (life->move != NOWHERE) {
        struct move *move = &builder->move[life->move];
        struct instance returned = instance;
        instance.bytes = returned.bytes = transfer_instance_bytes(instance.bytes);
        instance.last = move->step[MOVE_OUT_DONE];
        returned.first = move->step[MOVE_IN];
        move->returned = add_instance(builder->phase, returned);
    }
    life->instance = add_instance(builder->phase, instance);
}

static void add_values(struct builder *builder)
{
    for (int t = 0; t < builder->graph->tensor_count; t++) {
        const struct tensor *tensor = builder->graph->tensor[t];
        struct life *life = &builder->life[t];
        if (is_value(tensor) && life->root == t && life->in_tensor_arena)
            add_value(builder, tensor, life);
    }
}

/* Pieces of paged tensors, from the begin of their way in to the end of their way out. */
static void add_visits(struct builder *builder)
{
    for (int m = 0; m < builder->move_count; m++) {
        struct move *move = &builder->move[m];
        const struct tensor *tensor = builder->graph->tensor[move->tensor];
        if (move->piece == NOT_PAGED)
            continue;
        struct instance instance = {
            .name = tensor->name,
            .tag = tensor->kind == KIND_WEIGHT ? TAG_WEIGHTS : TAG_OPTIMIZER,
            .bytes = transfer_instance_bytes(home_bytes(home_of(builder, tensor), move->piece)),
            .first = move->step[MOVE_IN],
            .last = move->step[MOVE_OUT] == NOWHERE ? move->last : move->step[MOVE_OUT_DONE],
        };
        move->returned = add_instance(builder->phase, instance);
    }
}

/* Sums of more than one part: a partial each, which the fold adds up. */
static plim_status add_partials(struct builder *builder, const struct task *task, int at, plim_error *error)
{
    const struct node *node = task->node;
    for (int k = 0; k < node->output_count; k++) {
        const struct tensor *tensor = node->output[k];
        int *partial = &builder->partial[node->id * MOST_OUTPUTS + k];
        *partial = NOWHERE;
        if (task->sums.parts <= 1 || builder->cut[node->id].output[k] != PART_SUM || builder->chains.local[tensor->id])
            continue;
        if (tensor->type != TYPE_F32 && tensor->type != TYPE_F64)
            return fail(error, PLIM_INTERNAL, "%s %s: sums of %s", node->op->name, node->name, type_name(tensor->type));
        char *name = arena_format(&builder->program->arena, "partial sums of %s", tensor->name);
        if (!name)
            return program_refused(builder->program, error);
        *partial =
            add_instance(builder->phase, (struct instance){
                                             .name = name,
                                             .tag = TAG_SCRATCH,
                                             .bytes = layout_bytes(tensor_bytes(tensor)) * (uint64_t)task->sums.parts,
                                             .first = at,
                                             .last = last_instruction(builder, node),
                                         });
    }
    return PLIM_OK;
}

static plim_status add_pack(struct builder *builder, const struct task *task, int at, plim_error *error)
{
    builder->pack[task->node->id] = NOWHERE;
    if (task->kernel->pack_bytes == 0)
        return PLIM_OK;
    char *name = arena_format(&builder->program->arena, "pack of %s %s", task->node->op->name, task->node->name);
    if (!name)
        return program_refused(builder->program, error);
    builder->pack[task->node->id] =
        add_instance(builder->phase, (struct instance){.name = name,
                                                       .tag = TAG_SCRATCH,
                                                       .bytes = task->kernel->pack_bytes,
                                                       .first = at,
                                                       .last = last_instruction(builder, task->node)});
    return PLIM_OK;
}

static plim_status add_all(struct builder *builder, plim_error *error)
{
    struct phase *phase = builder->phase;
    add_values(builder);
    add_visits(builder);
    for (int i = 0; i < phase->instruction_count; i++) {
        for (int t = 0; t < phase->instruction[i].task_count && phase->instruction[i].first_unit == 0; t++) {
            TRY(add_partials(builder, &phase->instruction[i].task[t], i, error));
            TRY(add_pack(builder, &phase->instruction[i].task[t], i, error));
        }
    }
    return PLIM_OK;
}

/* How many there can be: values with a place, and sums and packs of tasks. */
static size_t most_instances(const struct builder *builder)
{
    const struct phase *phase = builder->phase;
    size_t count = (size_t)builder->move_count;
    for (int t = 0; t < builder->graph->tensor_count; t++)
        count += is_value(builder->graph->tensor[t]) && builder->life[t].root == t && builder->life[t].in_tensor_arena;
    for (int i = 0; i < phase->instruction_count; i++)
        for (int t = 0; t < phase->instruction[i].task_count; t++) {
            const struct task *task = &phase->instruction[i].task[t];
            count += task->kernel->pack_bytes != 0;
            count += task->sums.parts > 1 ? (size_t)task->node->output_count : 0;
        }
    return count;
}

plim_status instances_make(struct builder *builder, plim_error *error)
{
    struct phase *phase = builder->phase;
    struct graph *graph = builder->graph;
    size_t most = most_instances(builder);
    struct instance *all = arena_array(&builder->work, most, sizeof(*all));
    if (!all)
        return program_refused(builder->program, error);
    phase->instance = all;
    TRY(add_all(builder, error));
    phase->instance = arena_array(&builder->program->arena, (size_t)phase->instance_count, sizeof(*all));
    if (!phase->instance)
        return program_refused(builder->program, error);
    for (int i = 0; i < phase->instance_count; i++)
        phase->instance[i] = all[i];
    TRY(layout_pack(&phase->top, phase->instance, phase->instance_count, graph->arena.budget, error));
    uint64_t *live = arena_array(&builder->work, (size_t)phase->instruction_count, sizeof(*live));
    if (!live)
        return program_refused(builder->program, error);
    phase->max_live =
        layout_max_live(live, phase->instance, phase->instance_count, phase->instruction_count, &phase->peak);
    for (int i = 0; i < phase->instruction_count; i++)
        phase->instruction[i].live_bytes = live[i];
    for (int i = 0; i < phase->instance_count; i++)
        phase->instance[i].offset += builder->program->persistent_bytes;
    return PLIM_OK;
}
