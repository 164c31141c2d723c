/* planner.c - the steps of a plan: graphs, program, measurement, prediction, decision.

   The bytes of the process itself are measured, not guessed: everything that a run loads is loaded first (libraries,
   primitives, tables), then the resident size is read, and what the run will still take is added. So the order of the
   steps matters. */
#include "plan/planner.h"

#include "base/memory/limits.h"
#include "base/numbers/checked.h"
#include "base/threads/workers.h"

#define KIB           ((uint64_t)1024)
#define ONEDNN_MARGIN (384 * KIB) /* code of oneDNN that the first step touches, after the measurement */

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
    return workload->build(&plan->train, &plan->evaluate, workload->context, workload->batch, workload->evaluate_batch,
                           error);
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
    for (int n = 0; n < phase->graph->node_count; n++)
        out->recomputed += phase->graph->node[n]->again;
}

plim_status plan_program(struct plan *plan, plim_error *error)
{
    const struct workload *workload = &plan->workload;
    const struct program_input input = {
        .budget = plan->budget,
        .backend = plan->backend,
        .threads = workload->threads,
        .train = &plan->train,
        .evaluate = workload->evaluate_batch ? &plan->evaluate : NULL,
        .last_batch_train = workload->last_batch_train,
        .last_batch_evaluate = workload->last_batch_evaluate,
        .save_buffer_bytes = workload->save_buffer_bytes,
    };
    TRY(program_make(&plan->program, &input, error));
    count_figures(&plan->figures, plan->program);
    return PLIM_OK;
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

plim_status plan_decide(struct plan *plan, const struct run_costs *least, plim_error *error)
{
    struct prediction prediction;
    predict(&prediction, plan, least);
    plan->least_peak = prediction.peak;
    plan->smallest_bytes = round_up(add_most(prediction.peak, plan->process.slack_bytes), 4 * KIB);
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
