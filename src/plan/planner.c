/* planner.c - the steps of a plan: graphs, program, measurement, prediction, decision.

   The bytes of the process itself are measured, not guessed: everything that a run loads is loaded first (libraries,
   primitives, tables), then the resident size is read, and what the run will still take is added. So the order of the
   steps matters. */
#include "plan/planner.h"

#include "base/files/transfer_file.h"
#include "base/memory/budget_stop.h"
#include "base/memory/limits.h"
#include "base/numbers/checked.h"
#include "base/numbers/minmax.h"
#include "base/threads/workers.h"
#include "plan/search/op_time.h"

#define KIB           ((uint64_t)1024)
#define ONEDNN_MARGIN (384 * KIB) /* code of oneDNN that the first step touches, after the measurement */
#define ONEDNN_OTHERS (192 * KIB) /* by how much oneDNN's heap may grow with the kernels of a point that was not made */
#define MADE_SLACK    (48 * KIB)  /* by how much two measurements of the process with the same kernels differ */

/* ---- graphs and program ---- */

void plan_release_program(struct plan *plan)
{
    if (plan->program)
        program_free(plan->program);
    if (plan->graphs_built) {
        graph_release(&plan->train);
        graph_release(&plan->evaluate);
    }
    plan->program = NULL;
    plan->graphs_built = false;
}

void plan_release(struct plan *plan)
{
    plan_release_program(plan);
    if (plan->frontier.count)
        arena_release(&plan->frontier_tables);
    plan->frontier = (struct frontier){0};
    plan->point = 0;
    plan->retimed = false;
    plan->disk_bytes = 0;
    if (plan->backend)
        plan->backend->type->close(plan->backend);
    plan->backend = NULL;
    plan_leave_budget(plan);
}

plim_status plan_graphs(struct plan *plan, plim_error *error)
{
    const struct workload *workload = &plan->workload;
    plan_release_program(plan);
    plan->graphs_built = true;
    TRY(workload->build(&plan->train, &plan->evaluate, workload->context, workload->batch, workload->evaluate_batch,
                        error));
    return plan->frontier.count ? frontier_apply(&plan->train, &plan->frontier.point[plan->point], error) : PLIM_OK;
}

/* Values of one byte or less an element that a forward node made and a backward node reads: places in windows, bits of
   slopes. */
static int64_t count_encoded(const struct graph *graph)
{
    int64_t encoded = 0;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; i < node->input_count && node->backward; i++) {
            const struct tensor *tensor = node->input[i];
            encoded += tensor && tensor->type == TYPE_U8 && tensor->producer && !tensor->producer->backward;
        }
    }
    return encoded;
}

static void count_figures(struct plan_figures *out, const struct program *program)
{
    const struct phase *phase = &program->phase[PHASE_TRAIN];
    *out = (struct plan_figures){
        .encoded = count_encoded(phase->graph),
        .tensor_arena_bytes = program->tensor_arena_bytes,
        .live_bytes = phase->max_live,
        .packed_bytes = phase->top,
        .threads = program->threads,
        .reference_kernels = program_kernels(program, "reference"),
    };
    for (int i = 0; i < phase->instance_count; i++)
        out->kept += phase->instance[i].tag == TAG_ACTIVATIONS;
    out->kept -= 2 * phase->spilled_count; /* a value that is spilled has an instance before and one after */
    for (int n = 0; n < phase->graph->node_count; n++)
        out->recomputed += phase->graph->node[n]->again;
    out->spilled = phase->spilled_count;
    out->spilled_bytes = phase->spilled_bytes;
    out->paged = program->paged_count;
    out->paged_bytes = phase->paged_bytes;
}

plim_status plan_program(struct plan *plan, plim_error *error)
{
    const struct workload *workload = &plan->workload;
    const struct frontier_point *point = &plan->frontier.point[plan->point]; /* of zeros before plan_explore */
    const struct program_input input = {
        .budget = plan->budget,
        .backend = plan->backend,
        .threads = workload->threads,
        .train = &plan->train,
        .evaluate = workload->evaluate_batch ? &plan->evaluate : NULL,
        .last_batch_train = workload->last_batch_train,
        .last_batch_evaluate = workload->last_batch_evaluate,
        .save_buffer_bytes = workload->save_buffer_bytes,
        .spilled = point->spilled,
        .spilled_count = point->spilled_count,
        .scratch_folder = workload->scratch_folder,
    };
    TRY(program_make(&plan->program, &input, error));
    count_figures(&plan->figures, plan->program);
    plan->cost = program_cost(plan->program) + budget_usage(plan->budget).now;
    return PLIM_OK;
}

/* For transfers to and from the disk. */
static uint64_t transfers_cost(const struct program *program)
{
    return program->transfer_count ? transfer_file_cost(program->scratch_folder, program->transfer_count) : 0;
}

uint64_t program_cost(const struct program *program)
{
    return program->tensor_arena_bytes + process_tables(program->tensor_arena_bytes, program->threads) +
           team_cost(program->threads) + transfers_cost(program);
}

/* ---- the frontier ---- */

/* Kernels live as long as their backend: those of other points would count against this one. After a failure there
   still is a backend: another point may be tried. */
static plim_status reopen_backend(struct plan *plan, plim_error *error)
{
    const struct backend_type *type = plan->backend->type;
    struct backend *fresh;
    plan_release_program(plan);
    TRY(type->open(&fresh, plan->budget, error));
    backend_threads(fresh, plan->backend->threads);
    type->close(plan->backend);
    plan->backend = fresh;
    budget_trim_heap(); /* else what a point takes would depend on those that were made before it */
    return PLIM_OK;
}

/* What the program that was just made for the point takes. */
static plim_status note_cost(struct plan *plan, plim_error *error)
{
    struct process_memory process;
    TRY(process_measure(&process, plan->budget, plan->backend, 0, error));
    plan->frontier.point[plan->point].cost = plan->cost;
    plan->frontier.point[plan->point].process = process.process_bytes;
    return PLIM_OK;
}

static plim_status take_point(struct plan *plan, int point, plim_error *error)
{
    TRY(reopen_backend(plan, error));
    plan->point = point;
    TRY(plan_graphs(plan, error));
    TRY(plan_program(plan, error));
    return note_cost(plan, error);
}

/* What a point takes: known, or by the model, which takes the first as it is. */
static uint64_t point_cost(const struct plan *plan, int point)
{
    const struct frontier *frontier = &plan->frontier;
    uint64_t freed = frontier->point[0].peak - frontier->point[point].peak;
    return frontier->point[point].cost ? frontier->point[point].cost : frontier->point[0].cost - freed;
}

/* Makes the point, unless that was done before. *made: false if there is no program for it, because its tables do not
   fit or it has more nodes than a graph may have. */
static plim_status try_point(bool *made, struct plan *plan, int point, plim_error *error)
{
    bool known = plan->frontier.point[point].cost > 0;
    plim_status status = known ? PLIM_OK : take_point(plan, point, error);
    *made = status == PLIM_OK;
    if (status != PLIM_OVER_BUDGET && status != PLIM_BAD_MODEL)
        return status;
    return budget_go_on(plan->budget, error); /* a stop refuses memory, too */
}

/* Makes the points that end a search, to know what they take: the model is rough. What lies behind the smallest of them
   goes. */
static plim_status compare_ends(struct plan *plan, plim_error *error)
{
    struct frontier *frontier = &plan->frontier;
    int least = -1;
    for (int k = 1; k < frontier->count; k++) {
        bool made = false;
        if (frontier->point[k].ends_search)
            TRY(try_point(&made, plan, k, error));
        if (made && (least < 0 || frontier->point[k].cost <= frontier->point[least].cost))
            least = k;
    }
    frontier->count = least < 0 ? frontier->count : least + 1;
    return PLIM_OK;
}

/* The last point goes if it cannot be made, or is no smaller than the one before it. */
static plim_status find_floor(struct plan *plan, plim_error *error)
{
    struct frontier *frontier = &plan->frontier;
    TRY(compare_ends(plan, error));
    for (; frontier->count > 1; frontier->count--) {
        int last = frontier->count - 1;
        bool made, before;
        TRY(try_point(&made, plan, last, error));
        if (!made)
            continue;
        TRY(try_point(&before, plan, last - 1, error));
        if (!before || frontier->point[last - 1].cost > frontier->point[last].cost)
            return PLIM_OK;
    }
    return PLIM_OK;
}

/* The smallest point becomes the only one. */
static void keep_last(struct frontier *frontier)
{
    frontier->point[0] = frontier->point[frontier->count - 1];
    frontier->count = 1;
}

plim_status plan_explore(struct plan *plan, plim_error *error)
{
    const struct technique_rules *rules = &plan->workload.rules;
    struct frontier *frontier = &plan->frontier;
    arena_init(&plan->frontier_tables, plan->budget, TAG_PLANNER);
    TRY(frontier_find(frontier, plan->program, rules, &plan->frontier_tables, error));
    if (frontier_point_changes(&frontier->point[0]))
        TRY(take_point(plan, 0, error));
    else
        TRY(note_cost(plan, error));
    if (frontier->count == 1)
        return PLIM_OK;
    TRY(find_floor(plan, error));
    if (rules->recompute.kind == RECOMPUTE_ALWAYS)
        keep_last(frontier);
    return take_point(plan, 0, error);
}

plim_status plan_retime(struct plan *plan, const struct op_costs *costs, plim_error *error)
{
    struct frontier *frontier = &plan->frontier;
    if (frontier->count > 1 && !frontier_point_changes(&frontier->point[0]))
        TRY(frontier_retime(frontier, plan->program, &plan->workload.rules, costs, error));
    plan->retimed = true;
    plan->disk_bytes = costs->disk_bytes;
    return PLIM_OK;
}

bool plan_has_next(const struct plan *plan)
{
    return !plan->fits && !plan->backend->missing_bytes && plan->point + 1 < plan->frontier.count;
}

/* Whether the point could fit, by the model. */
static bool is_in_reach(const struct plan *plan, int point)
{
    uint64_t freed = plan->frontier.point[0].peak - plan->frontier.point[point].peak;
    double peak = (double)plan->least_peak + (double)plan->frontier.point[0].cost - (double)plan->cost;
    return peak - (double)freed <= (double)plan->limit_bytes * (1 + MODEL_SLACK);
}

plim_status plan_again(bool *same, struct plan *plan, plim_error *error)
{
    struct plan_figures before = plan->figures;
    TRY(take_point(plan, plan->point, error));
    const struct plan_figures *now = &plan->figures;
    *same = now->tensor_arena_bytes == before.tensor_arena_bytes && now->packed_bytes == before.packed_bytes &&
            now->reference_kernels == before.reference_kernels && now->threads == before.threads;
    return PLIM_OK;
}

plim_status plan_next(struct plan *plan, plim_error *error)
{
    int point = plan->point + 1;
    while (point + 1 < plan->frontier.count && !is_in_reach(plan, point))
        point++;
    return take_point(plan, point, error);
}

/* ---- what it takes ---- */

plim_status plan_measure(struct plan *plan, plim_error *error)
{
    bool onednn = plan->program && program_kernels(plan->program, "onednn");
    return process_measure(&plan->process, plan->budget, plan->backend, onednn ? ONEDNN_MARGIN : 0, error);
}

static void predict(struct prediction *out, const struct plan *plan, const struct run_costs *costs)
{
    const struct program *program = plan->program;
    const struct process_memory *process = &plan->process;
    struct budget_usage usage = budget_usage(plan->budget);
    uint64_t outside[TAG_COUNT], taken = 0;
    for (int tag = 0; tag < TAG_COUNT; tag++) {
        outside[tag] = add_most(usage.now_by_tag[tag], costs->by_tag[tag]);
        taken = add_most(taken, costs->by_tag[tag]);
    }
    outside[TAG_STACKS] += program ? team_cost(program->threads) : 0;
    outside[TAG_FORMATS] += program ? transfers_cost(program) : 0; /* files are under this tag */
    outside[TAG_PROCESS] = process->process_bytes;
    outside[TAG_KERNEL] =
        add_most(process->kernel_bytes, program ? process_tables(program->tensor_arena_bytes, program->threads)
                                                : process_tables(taken, costs->threads));
    program_predict(out, program, outside);
    if (out->peak < process->planning_peak) { /* as of thousands of layers with a handful of bytes each */
        out->by_tag[TAG_PLANNER] += process->planning_peak - out->peak;
        out->peak = process->planning_peak;
        out->peak_at = "planning";
    }
}

bool plan_predict(struct plan *plan, const struct run_costs *costs)
{
    predict(&plan->prediction, plan, costs);
    return plan->prediction.peak <= plan->limit_bytes;
}

/* A stated budget may exceed the memory of the machine. So the memory that the run will still allocate must fit below
   RLIMIT_AS and into the headroom of cgroups and machine. */
static plim_status find_obstacle(struct plan *plan, plim_error *error)
{
    struct limits limits;
    uint64_t now = budget_usage(plan->budget).now + plan->process.process_bytes;
    uint64_t still = plan->least_peak > now ? plan->least_peak - now : 0;
    plan->obstacle = NULL;
    if (plan->least_peak > plan->limit_bytes)
        return PLIM_OK;
    TRY(limits_here(&limits, plan->budget, error));
    if (still > plan->process.address_bytes)
        plan->obstacle = "the limit on address space (RLIMIT_AS)";
    else if (still > limits.headroom)
        plan->obstacle = arena_string(plan->arena, limits.place);
    return PLIM_OK;
}

/* The smallest budget of a point, by that of the one that was taken. */
static uint64_t point_budget(const struct plan *plan, int k)
{
    const struct frontier_point *point = &plan->frontier.point[k], *taken = &plan->frontier.point[plan->point];
    bool onednn = plan->program && program_kernels(plan->program, "onednn");
    uint64_t peak = plan->least_peak - plan->cost + point_cost(plan, k), slack = plan->process.slack_bytes;
    if (point->cost && k != plan->point) {
        peak = peak + point->process - taken->process;
        slack += onednn ? MADE_SLACK : 0;
    } else if (k != plan->point) {
        slack += onednn ? ONEDNN_OTHERS : 0;
    }
    return round_up(add_most(max_u64(peak, plan->process.planning_peak), slack), 4 * KIB);
}

/* The smallest budget for each point, with the least that the data can do with. A point that is slower never seems to
   take more. */
static void find_budgets(struct plan *plan)
{
    struct frontier *frontier = &plan->frontier;
    uint64_t least = 0;
    plan->smallest_bytes = round_up(add_most(plan->least_peak, plan->process.slack_bytes), 4 * KIB);
    for (int k = frontier->count - 1; k >= 0; k--) {
        frontier->point[k].budget_bytes = max_u64(point_budget(plan, k), least);
        least = frontier->point[k].budget_bytes + 4 * KIB;
    }
    if (frontier->count)
        plan->smallest_bytes = frontier->point[frontier->count - 1].budget_bytes;
}

plim_status plan_decide(struct plan *plan, const struct run_costs *least, plim_error *error)
{
    struct prediction prediction;
    predict(&prediction, plan, least);
    plan->least_peak = prediction.peak;
    find_budgets(plan);
    TRY(find_obstacle(plan, error));
    bool missing = plan->backend && plan->backend->missing_bytes;
    plan->fits = plan->least_peak <= plan->limit_bytes && !plan->obstacle && !missing;
    return PLIM_OK;
}

/* ---- the budget of a run ---- */

plim_status plan_enter_budget(struct plan *plan, plim_error *error)
{
    uint64_t kernel_bytes = plan->prediction.by_tag[TAG_KERNEL];
    if (plan->reserved_process)
        return PLIM_OK;
    budget_unbind_process(plan->budget);
    TRY(budget_limit(plan->budget, plan->limit_bytes, error));
    TRY(budget_reserve(plan->budget, TAG_PROCESS, plan->process.process_bytes, error));
    plan->reserved_process = plan->process.process_bytes;
    TRY(budget_reserve(plan->budget, TAG_KERNEL, kernel_bytes, error));
    plan->reserved_kernel = kernel_bytes;
    return PLIM_OK;
}

void plan_leave_budget(struct plan *plan)
{
    budget_release(plan->budget, TAG_PROCESS, plan->reserved_process);
    budget_release(plan->budget, TAG_KERNEL, plan->reserved_kernel);
    plan->reserved_process = plan->reserved_kernel = 0;
    if (plan->limit_bytes) /* if usage already exceeds the limit, the next allocation is refused */
        (void)budget_bind_process(plan->budget, plan->limit_bytes, NULL);
}
