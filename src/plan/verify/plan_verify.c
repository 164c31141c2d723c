/* plan_verify.c - verifies a phase by symbolic replay before anything runs.

   The replay trusts the graph and the ops' cuts, and nothing that the planner computed. It moves no bytes: for each
   tensor it tracks where a whole copy lies until something overwrites it. It checks the invariants of plan.h by these
   rules:
    1. Every instance is aligned and inside its region. No two instances overlap in both time and space.
    2. Every access is inside a live instance, or inside the fixed place of a weight.
    3. Within one instruction, two accesses to the same bytes, one of them a write, must go by the same rows, because
       units run in any order. A sum has one partial per part, each part belongs to one unit, and a fold adds the
      partials.
    4. Every read finds its tensor at the offset that it reads. Updates keep program order.
    5. Every node runs once, every result exists at the end, and the memory totals add up. A chain that is several
       instructions runs each of its units once, in instructions without another one that computes between them.
    6. What a transfer writes or reads belongs to one instance until it was waited for, and nobody else writes there.
       The value that comes back is the one that went out, and nobody reads it before the wait.
    7. A piece of a paged tensor that comes in is as it was written last, and so is the file when the phase ends. */
#include "base/memory/budget_stop.h"
#include "base/memory/work.h"
#include "plan/verify/replay.h"

/* ---- before the replay ------------------------------------------------- */

static plim_status check_instance(const struct replay *r, const struct instance *instance)
{
    const struct program *program = r->program;
    int end = r->phase->instruction_count ? r->phase->instruction_count : 1;
    if (instance->offset % LAYOUT_ALIGNMENT)
        return WRONG(r, "%s is not aligned", instance->name);
    if (instance->first < 0 || instance->last < instance->first || instance->last >= end)
        return WRONG(r, "%s lives from %d to %d of %d", instance->name, instance->first, instance->last, end);
    if (instance->offset < program->persistent_bytes || instance->bytes > program->workers_offset ||
        instance->offset > program->workers_offset - instance->bytes)
        return WRONG(r, "%s lies outside of the phases' region", instance->name);
    return PLIM_OK;
}

static plim_status check_persistent(const struct replay *r)
{
    const struct program *program = r->program;
    uint64_t end = 0;
    for (int i = 0; i < program->persistent_count; i++) {
        if (program_home(program, i))
            continue;
        if (program->persistent_offset[i] < end || program->persistent_offset[i] % LAYOUT_ALIGNMENT)
            return WRONG(r, "%s shares bytes with the weight before it", program->persistent[i]->name);
        end = program->persistent_offset[i] + tensor_bytes(program->persistent[i]);
    }
    if (end > program->persistent_bytes)
        return WRONG(r, "weights pass the end of their region");
    if (program->window_offset + program->window_bytes > program->workers_offset ||
        (program->paged_count && program->window_offset < program->persistent_bytes))
        return WRONG(r, "the window passes the end of the phases' region");
    if (program->workers_offset + program->worker_bytes * (uint64_t)program->threads > program->tensor_arena_bytes)
        return WRONG(r, "workers' buffers pass the end of the arena");
    return PLIM_OK;
}

/* ---- the replay -------------------------------------------------------- */

static plim_status replay_instruction(struct replay *r, int at)
{
    const struct instruction *instruction = r->instruction = &r->phase->instruction[at];
    uint64_t live = r->program->persistent_bytes + r->program->worker_bytes * (uint64_t)r->program->threads;
    TRY(budget_go_on(r->work.budget, r->error)); /* large plans take a while */
    TRY(replay_enter(r, at));
    TRY(instruction->kind == INSTRUCTION_COMPUTE ? replay_tasks(r) : replay_transfer(r));
    live += r->alive_bytes;
    if (instruction->live_bytes != live || live > r->program->tensor_arena_bytes)
        return WRONG(r, "instruction %d holds %llu bytes, the plan says %llu", at, (unsigned long long)live,
                     (unsigned long long)instruction->live_bytes);
    return PLIM_OK;
}

static plim_status check_end(const struct replay *r)
{
    const struct graph *graph = r->phase->graph;
    for (int n = 0; n < graph->node_count; n++)
        if (!r->ran[n])
            return replay_wrong(r, graph->node[n], " never runs");
    if (r->begun || r->flying_count)
        return WRONG(r, "the phase ends before all is done");
    for (int k = 0; k < r->phase->transfer_count; k++)
        if (r->phase->transfer[k].piece == NOT_PAGED && r->moving[k].where != IS_BACK)
            return WRONG(r, "%s does not come back", r->phase->transfer[k].tensor->name);
    for (int t = 0; r->home && t < graph->tensor_count; t++)
        for (int piece = 0; r->home[t] && piece < r->home[t]->pieces; piece++)
            if (r->written[r->page[t] + piece] != r->version[t])
                return WRONG(r, "%s is not on the disk as it was written last", graph->tensor[t]->name);
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct place *place = &r->phase->place[t];
        if (graph->tensor[t]->kind == KIND_RESULT &&
            (r->copy[t].space != SPACE_TENSOR_ARENA || place->space != SPACE_TENSOR_ARENA ||
             r->copy[t].offset != place->offset))
            return WRONG(r, "the result %s is not there in the end", graph->tensor[t]->name);
    }
    return PLIM_OK;
}

static plim_status replay_graph(struct replay *r)
{
    TRY(replay_begin(r));
    TRY(replay_check_transfers(r));
    for (int i = 0; i < r->phase->instruction_count; i++)
        TRY(replay_instruction(r, i));
    work_count(r->work.budget, r->steps);
    return check_end(r);
}

static plim_status check_figures(const struct replay *r)
{
    uint64_t sum = 0, workers = r->program->worker_bytes * (uint64_t)r->program->threads;
    for (int tag = 0; tag < TAG_COUNT; tag++)
        sum += r->phase->by_tag[tag];
    if (sum != r->program->persistent_bytes + r->phase->max_live + workers || sum > r->program->tensor_arena_bytes)
        return WRONG(r, "phase %s: the tags of its peak sum to %llu", r->phase->name, (unsigned long long)sum);
    return PLIM_OK;
}

plim_status plan_verify(const struct program *program, const struct phase *phase, plim_error *error)
{
    struct replay r = {.program = program, .phase = phase, .error = error};
    arena_init(&r.work, program->arena.budget, TAG_PLANNER);
    plim_status status = check_persistent(&r);
    if (status == PLIM_OK)
        status = replay_check_homes(&r);
    for (int k = 0; k < phase->instance_count && status == PLIM_OK; k++)
        status = check_instance(&r, &phase->instance[k]);
    if (status == PLIM_OK && phase->graph)
        status = replay_graph(&r);
    if (status == PLIM_OK)
        status = check_figures(&r);
    arena_release(&r.work);
    return status;
}
