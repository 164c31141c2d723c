/* api_plan.c - the plan of a program in C. What its budget has no room for is spilled or paged, as for a job.

   Nothing is computed again: that rewrites a graph, and the graphs of a program may belong to another one, too. */
#include "api/api_program.h"
#include "base/files/file.h"
#include "base/files/transfer_file.h"
#include "base/numbers/checked.h"
#include "base/numbers/minmax.h"
#include "base/threads/workers.h"
#include "plan/search/frontier.h"

#define SAVE_BUFFER_BYTES ((uint64_t)64 * 1024)
#define MODEL_SLACK       0.12 /* the model of a step knows packing and slice buffers only roughly */

uint64_t api_plan_needs(const struct plim_program *program)
{
    const struct program *plan = program->plan;
    uint64_t needs = add_most(budget_usage(program->budget).now, plan->tensor_arena_bytes);
    if (plan->transfer_count)
        needs = add_most(needs, transfer_file_cost(plan->scratch_folder, plan->transfer_count));
    return add_most(needs, team_cost(plan->threads));
}

static bool fits(const struct plim_program *program)
{
    return api_plan_needs(program) <= budget_usage(program->budget).limit;
}

static plim_status make(struct plim_program *program, const struct frontier_point *point, plim_error *error)
{
    const struct program_input input = {
        .budget = program->budget,
        .backend = program->backend,
        .threads = program->threads,
        .train = &program->graph[0]->inner,
        .evaluate = program->count > 1 ? &program->graph[1]->inner : NULL,
        .last_batch_train = LAST_BATCH_ANY,
        .last_batch_evaluate = LAST_BATCH_ANY,
        .save_buffer_bytes = SAVE_BUFFER_BYTES,
        .keeps_results = true,
        .spilled = point->spilled,
        .spilled_count = point->spilled_count,
        .scratch_folder = program->scratch.folder,
    };
    return program_make(&program->plan, &input, error);
}

/* Kernels of the plan before are given back first. */
static plim_status make_again(struct plim_program *program, const struct frontier_point *point, plim_error *error)
{
    program_free(program->plan);
    program->plan = NULL;
    program->backend->type->close(program->backend);
    program->backend = NULL;
    TRY(backend_standard()->open(&program->backend, program->budget, error));
    backend_threads(program->backend, program->threads);
    return make(program, point, error);
}

/* Half of what is free at most; nothing where files are memory. */
static uint64_t disk_room(const struct scratch_disk *scratch)
{
    uint64_t room = file_room(scratch->folder) / 2;
    if (!scratch->limit_bytes || file_folder_in_memory(scratch->folder))
        return 0;
    return room < scratch->limit_bytes ? room : scratch->limit_bytes;
}

/* Whether the point could fit, by the model; the last one is tried in any case. */
static bool is_worth_a_try(const struct plim_program *program, const struct frontier *frontier, int k, uint64_t needs)
{
    double limit = (double)budget_usage(program->budget).limit * (1 + MODEL_SLACK);
    double freed = (double)frontier->point[0].peak - (double)frontier->point[k].peak;
    return k == frontier->count - 1 || (double)needs - freed <= limit;
}

/* *least: what the smallest of the programs that were made needs. */
static plim_status try_points(uint64_t *least, struct plim_program *program, const struct frontier *frontier,
                              plim_error *error)
{
    uint64_t needs = *least;
    for (int k = 1; k < frontier->count && !fits(program); k++) {
        if (!is_worth_a_try(program, frontier, k, needs))
            continue;
        TRY(make_again(program, &frontier->point[k], error));
        *least = min_u64(*least, api_plan_needs(program));
    }
    return PLIM_OK;
}

static plim_status make_smaller(uint64_t *least, struct plim_program *program, plim_error *error)
{
    const struct technique_rules rules = {.recompute.kind = RECOMPUTE_NEVER,
                                          .disk_bytes = disk_room(&program->scratch)};
    struct frontier frontier;
    struct arena tables;
    arena_init(&tables, program->budget, TAG_PLANNER);
    plim_status status = frontier_find(&frontier, program->plan, &rules, &tables, error);
    if (status == PLIM_OK)
        status = try_points(least, program, &frontier, error);
    arena_release(&tables);
    return status;
}

/* Said before anything is taken, with the number that would do. */
static plim_status refuse(const struct plim_program *program, unsigned long long needs, plim_error *error)
{
    fail(error, PLIM_OVER_BUDGET, "the program needs %llu bytes, its budget is %llu", needs,
         (unsigned long long)budget_usage(program->budget).limit);
    return hint(error, PLIM_OVER_BUDGET, "a smaller batch, fewer threads, or a budget of %llu bytes", needs);
}

plim_status api_plan_make(struct plim_program *program, plim_error *error)
{
    TRY(backend_standard()->open(&program->backend, program->budget, error));
    backend_threads(program->backend, program->threads);
    TRY(make(program, &(struct frontier_point){0}, error));
    uint64_t least = api_plan_needs(program);
    if (!fits(program))
        TRY(make_smaller(&least, program, error));
    return fits(program) ? PLIM_OK : refuse(program, least, error);
}
