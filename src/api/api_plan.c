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

struct refusal {
    uint64_t least;  /* what the smallest of the programs that were made needs */
    const char *why; /* what stands against the disk, or NULL */
};

/* Bytes of the budget that the plan needs when its machine is opened, with all that is taken now. */
static uint64_t needs_of(const struct plim_program *program)
{
    const struct program *plan = program->plan;
    uint64_t needs = add_most(budget_usage(program->budget).now, plan->tensor_arena_bytes);
    if (plan->transfer_count)
        needs = add_most(needs, transfer_file_cost(plan->scratch_folder, plan->transfer_count));
    return add_most(needs, team_cost(plan->threads));
}

static bool fits(const struct plim_program *program)
{
    return needs_of(program) <= budget_usage(program->budget).limit;
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

/* Half of what is free at most; 0, and why, where nothing can lie on the disk. */
static plim_status disk_room(uint64_t *bytes, const char **why, const struct plim_program *program, plim_error *error)
{
    const struct scratch_disk *scratch = &program->scratch;
    *bytes = 0;
    *why = "options.in_memory";
    if (!scratch->limit_bytes)
        return PLIM_OK;
    TRY(file_probe_scratch(why, program->budget, scratch->folder, error));
    *bytes = *why ? 0 : min_u64(file_room(scratch->folder) / 2, scratch->limit_bytes);
    return PLIM_OK;
}

/* Whether the point could fit, by the model; the last one is tried in any case. */
static bool is_worth_a_try(const struct plim_program *program, const struct frontier *frontier, int k, uint64_t needs)
{
    double limit = (double)budget_usage(program->budget).limit * (1 + MODEL_SLACK);
    double freed = (double)frontier->point[0].peak - (double)frontier->point[k].peak;
    return k == frontier->count - 1 || (double)needs - freed <= limit;
}

/* The fastest point that fits. Sets what->least. */
static plim_status try_points(struct refusal *what, struct plim_program *program, const struct frontier *frontier,
                              plim_error *error)
{
    uint64_t needs = what->least;
    for (int k = 1; k < frontier->count && !fits(program); k++) {
        if (!is_worth_a_try(program, frontier, k, needs))
            continue;
        TRY(make_again(program, &frontier->point[k], error));
        what->least = min_u64(what->least, needs_of(program));
    }
    return PLIM_OK;
}

static plim_status make_smaller(struct refusal *what, struct plim_program *program, plim_error *error)
{
    struct technique_rules rules = {.recompute.kind = RECOMPUTE_NEVER};
    struct frontier frontier;
    struct arena tables;
    TRY(disk_room(&rules.disk_bytes, &what->why, program, error));
    arena_init(&tables, program->budget, TAG_PLANNER);
    plim_status status = frontier_find(&frontier, program->plan, &rules, &tables, error);
    if (status == PLIM_OK)
        status = try_points(what, program, &frontier, error);
    arena_release(&tables);
    return status;
}

/* Said before anything is taken, with the number that would do. */
static plim_status refuse(const struct plim_program *program, const struct refusal *what, plim_error *error)
{
    unsigned long long needs = what->least;
    fail(error, PLIM_OVER_BUDGET, "the program needs %llu bytes, its budget is %llu", needs,
         (unsigned long long)budget_usage(program->budget).limit);
    if (what->why)
        return hint(error, PLIM_OVER_BUDGET,
                    "a smaller batch, fewer threads, or a budget of %llu bytes; nothing lies in %s: %s", needs,
                    program->scratch.folder, what->why);
    return hint(error, PLIM_OVER_BUDGET, "a smaller batch, fewer threads, or a budget of %llu bytes", needs);
}

plim_status api_plan_make(struct plim_program *program, plim_error *error)
{
    TRY(backend_standard()->open(&program->backend, program->budget, error));
    backend_threads(program->backend, program->threads);
    TRY(make(program, &(struct frontier_point){0}, error));
    struct refusal what = {.least = needs_of(program)};
    if (!fits(program))
        TRY(make_smaller(&what, program, error));
    return fits(program) ? PLIM_OK : refuse(program, &what, error);
}
