/* phase.c - one phase of a program, from its graph: chains, kernels,
   lifetimes, offsets, places. */
#include "base/memory/work.h"
#include "base/sets/names.h"
#include "plan/plan_builder.h"

static bool take_tables(struct builder *b)
{
    size_t nodes = (size_t)b->graph->node_count, tensors = (size_t)b->graph->tensor_count;
    b->cut = arena_array(&b->work, nodes, sizeof(*b->cut));
    b->position = arena_array(&b->work, nodes, sizeof(*b->position));
    b->chain_of = arena_array(&b->work, nodes, sizeof(*b->chain_of));
    b->pieces = arena_array(&b->work, (size_t)b->chains.chain_count, sizeof(*b->pieces));
    b->first_slot = arena_array(&b->work, (size_t)b->chains.chain_count + 1, sizeof(*b->first_slot));
    b->life = arena_array(&b->work, tensors, sizeof(*b->life));
    b->partial = arena_array(&b->work, nodes * MOST_OUTPUTS, sizeof(*b->partial));
    b->pack = arena_array(&b->work, nodes, sizeof(*b->pack));
    b->persistent = arena_array(&b->work, tensors, sizeof(*b->persistent));
    return b->cut && b->position && b->chain_of && b->pieces && b->first_slot && b->life && b->partial && b->pack &&
           b->persistent;
}

static void collect_nodes(struct builder *b)
{
    for (int c = 0; c < b->chains.chain_count; c++) {
        const struct chain *chain = &b->chains.chain[c];
        for (int at = chain->first; at < chain->first + chain->count; at++) {
            const struct node *node = b->chains.order[at];
            node->op->cut(&b->cut[node->id], node);
            b->position[node->id] = at;
            b->chain_of[node->id] = c;
        }
    }
}

static bool same_type(const struct tensor *a, const struct tensor *b)
{
    return a->type == b->type && shape_equal(&a->shape, &b->shape);
}

/* Weights and states of another graph of the program are the same by name. */
static plim_status match_persistent(struct builder *b, plim_error *error)
{
    const struct program *program = b->program;
    struct names names;
    names_init(&names, &b->work);
    for (int i = 0; i < program->persistent_count; i++)
        if (!names_add(&names, program->persistent[i]->name, i))
            return program_refused(program, error);
    for (int t = 0; t < b->graph->tensor_count; t++) {
        const struct tensor *tensor = b->graph->tensor[t];
        if (tensor->kind != KIND_WEIGHT && tensor->kind != KIND_STATE)
            continue;
        int found = names_find(&names, tensor->name);
        if (found < 0 || !same_type(program->persistent[found], tensor))
            return fail(error, PLIM_BAD_MODEL, "%s has another shape or type in the graphs of one program",
                        tensor->name);
        b->persistent[t] = found;
    }
    work_count(b->work.budget, names.steps + (uint64_t)b->graph->tensor_count);
    return PLIM_OK;
}

static plim_status build(struct builder *b, plim_error *error)
{
    TRY(chain_find(&b->chains, b->graph, error));
    if (!take_tables(b))
        return program_refused(b->program, error);
    collect_nodes(b);
    TRY(match_persistent(b, error));
    lifetime_find(b);
    TRY(pages_cut(b, error));
    TRY(transfers_schedule(b, error));
    TRY(tasks_prepare(b, error));
    TRY(instances_make(b, error));
    TRY(buffers_make(b, error));
    TRY(transfers_place(b, error));
    return tasks_place(b, error);
}

plim_status phase_make(struct program *program, int phase, const struct phase_input *input, plim_error *error)
{
    struct builder builder = {
        .program = program, .phase = &program->phase[phase], .graph = input->graph, .input = input};
    if (input->last_batch < LAST_BATCH_ANY || input->last_batch > input->graph->batch)
        return fail(error, PLIM_INTERNAL, "plan: a last batch of %lld samples, a batch of %lld",
                    (long long)input->last_batch, (long long)input->graph->batch);
    *builder.phase = (struct phase){.name = input->name, .graph = input->graph};
    arena_init(&builder.work, program->arena.budget, TAG_PLANNER);
    plim_status status = build(&builder, error);
    arena_release(&builder.work);
    return status;
}

plim_status phase_make_buffer(struct program *program, int phase, const char *name, uint64_t bytes, plim_error *error)
{
    struct phase *made = &program->phase[phase];
    *made = (struct phase){.name = name, .instance_count = 1};
    made->instance = arena_array(&program->arena, 1, sizeof(*made->instance));
    if (!made->instance)
        return program_refused(program, error);
    made->instance[0] = (struct instance){
        .name = name, .tag = TAG_CHECKPOINT, .bytes = layout_bytes(bytes), .offset = program->persistent_bytes};
    made->max_live = made->top = made->instance[0].bytes;
    return PLIM_OK;
}

void phase_measure(struct program *program, struct phase *phase)
{
    uint64_t workers = program->worker_bytes * (uint64_t)program->threads;
    for (int i = 0; i < phase->instruction_count; i++)
        phase->instruction[i].live_bytes += program->persistent_bytes + workers;
    for (int i = 0; i < program->persistent_count; i++)
        if (!program_home(program, i))
            phase->by_tag[program->persistent[i]->kind == KIND_WEIGHT ? TAG_WEIGHTS : TAG_OPTIMIZER] +=
                layout_bytes(tensor_bytes(program->persistent[i]));
    for (int k = 0; k < phase->instance_count; k++)
        if (phase->instance[k].first <= phase->peak && phase->peak <= phase->instance[k].last)
            phase->by_tag[phase->instance[k].tag] += phase->instance[k].bytes;
    phase->by_tag[TAG_SCRATCH] += workers;
}
