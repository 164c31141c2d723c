/* largest_batch.c - the largest batch whose plan fits into the budget.

   Planning is cheap, preparing kernels is not: the search plans with a backend that hands out the kernels that were
   made for the same node at the job's own batch. Their scratch depends on the slice, not on the batch, so the sizes
   hold. A few nodes exist at some batch sizes only (small values are not encoded): their kernels are prepared. */
#include <string.h>

#include "base/numbers/hash.h"
#include "base/threads/workers.h"
#include "ops/sample_state.h"
#include "plan/planner.h"

#define MOST_BATCH    ((int64_t)1 << 30)
#define ROUNDING      ((uint64_t)64 * 1024)  /* batches are rounded to pages, and the plan's tables differ a little */
#define OTHER_KERNELS ((uint64_t)512 * 1024) /* oneDNN's code for other shapes */

/* A kernel by layer and op. Both graphs have the forward nodes, so the kernels of one serve the other: the first of
   equals counts, those of training before those of evaluation. The plan's own program is freed before the search,
   because two programs of thousands of layers would be too much. */
struct known {
    uint64_t hash; /* of layer and op */
    const struct kernel *kernel;
};

struct search {
    struct backend backend; /* stands in for plan->backend */
    struct plan *plan;
    struct known *table;  /* open addressing; at most half full */
    size_t capacity;      /* a power of two */
    uint64_t own_program; /* program_cost of the plan's own program */
    uint64_t margin;
    bool one_batch;  /* a stateful layer: evaluation uses the same batch as training */
    bool confirming; /* the answer is being planned as a run would plan it */
};

static uint64_t hash_of(const struct node *node)
{
    uint64_t hash = fnv1a(FNV1A_START, node->op->name, strlen(node->op->name) + 1);
    hash = fnv1a(hash, node->name, strlen(node->name));
    return hash ^ hash >> 32;
}

/* The entry of the node's kernel, which is empty if there is none. */
static struct known *find_kernel(const struct search *search, const struct node *node)
{
    uint64_t hash = hash_of(node);
    for (uint64_t at = hash;; at++) {
        struct known *known = &search->table[at & (search->capacity - 1)];
        if (!known->kernel || known->hash == hash)
            return known;
    }
}

static void add_kernels(const struct search *search, const struct phase *phase)
{
    for (int i = 0; i < phase->instruction_count; i++)
        for (int t = 0; t < phase->instruction[i].task_count; t++) {
            const struct task *task = &phase->instruction[i].task[t];
            struct known *known = find_kernel(search, task->node);
            if (!known->kernel)
                *known = (struct known){hash_of(task->node), task->kernel};
        }
}

static size_t count_tasks(const struct phase *phase)
{
    size_t count = 0;
    for (int i = 0; i < phase->instruction_count; i++)
        count += (size_t)phase->instruction[i].task_count;
    return count;
}

static plim_status search_prepare(const struct kernel **out, struct backend *backend,
                                  const struct kernel_request *request, plim_error *error)
{
    const struct search *search = (const struct search *)backend;
    struct backend *own = search->plan->backend;
    *out = find_kernel(search, request->node)->kernel;
    return *out ? PLIM_OK : own->type->prepare(out, own, request, error);
}

static const char *search_features(const struct backend *backend)
{
    const struct backend *own = ((const struct search *)backend)->plan->backend;
    return own->type->features(own);
}

static const struct backend_type search_backend = {
    .name = "search", .prepare = search_prepare, .features = search_features};

static plim_status search_init(struct search *out, struct plan *plan, plim_error *error)
{
    const struct phase *train = &plan->program->phase[PHASE_TRAIN], *evaluate = &plan->program->phase[PHASE_EVALUATE];
    size_t wanted = 2 * (count_tasks(train) + count_tasks(evaluate));
    *out = (struct search){.backend = {.type = &search_backend},
                           .plan = plan,
                           .own_program = program_cost(plan->program),
                           .one_batch = graph_find_sample_state(&plan->train) != NULL,
                           .margin = plan->process.slack_bytes + ROUNDING + plan->limit_bytes / 512};
    if (program_kernels(plan->program, "onednn"))
        out->margin += OTHER_KERNELS;
    out->capacity = 64;
    while (out->capacity < wanted)
        out->capacity *= 2;
    out->table = budget_take_array(plan->budget, TAG_PLANNER, out->capacity, sizeof *out->table);
    if (!out->table)
        return budget_refused(plan->budget, TAG_PLANNER, out->capacity * sizeof *out->table, error);
    add_kernels(out, train);
    add_kernels(out, evaluate);
    return PLIM_OK;
}

/* ---- one batch size ---- */

struct attempt {
    struct graph train, evaluate;
    struct program *program;
};

static void release_attempt(struct attempt *attempt)
{
    program_free(attempt->program);
    graph_release(&attempt->train);
    graph_release(&attempt->evaluate);
    attempt->program = NULL;
}

/* The program at this batch. The caller releases it, after a failure too. */
static plim_status make_attempt(struct attempt *out, struct search *search, int64_t batch,
                                const struct frontier_point *point, plim_error *error)
{
    const struct workload *workload = &search->plan->workload;
    int64_t evaluate_batch = workload->evaluate_batch && search->one_batch ? batch : workload->evaluate_batch;
    const struct program_input input = {
        .budget = search->plan->budget,
        .backend = &search->backend,
        .threads = workload->threads,
        .train = &out->train,
        .evaluate = evaluate_batch ? &out->evaluate : NULL,
        .save_buffer_bytes = workload->save_buffer_bytes,
        .size_only = true,
        .last_batch_train = LAST_BATCH_ANY, /* kernels of a shorter last batch count, too */
        .last_batch_evaluate = evaluate_batch ? LAST_BATCH_ANY : 0,
        .spilled = point->spilled,
        .spilled_count = point->spilled_count,
        .scratch_folder = workload->scratch_folder,
    };
    out->program = NULL;
    TRY(workload->build(&out->train, &out->evaluate, workload->context, batch, evaluate_batch, error));
    TRY(frontier_apply(&out->train, point, error));
    return program_make(&out->program, &input, error);
}

/* A point whose program takes at most `allowed` bytes; one that changes nothing, if none is found. In the end the
   points of the frontier count, because a run takes one of those. */
static plim_status find_point(struct frontier_point *out, const struct search *search, const struct program *program,
                              uint64_t allowed, struct arena *tables, plim_error *error)
{
    struct frontier frontier;
    const struct technique_rules *rules = &search->plan->workload.rules;
    uint64_t over = program_cost(program) - allowed;
    uint64_t live = program->persistent_bytes + program->phase[PHASE_TRAIN].max_live;
    if (!search->confirming)
        return over < live ? frontier_reach(out, program, rules, live - over, tables, error) : PLIM_OK;
    TRY(frontier_find(&frontier, program, rules, tables, error));
    *out = frontier.point[frontier.count - 1];
    return PLIM_OK;
}

/* What the program takes at this batch, with as much dropped as `allowed` demands. */
static plim_status plan_at(uint64_t *bytes, struct search *search, int64_t batch, uint64_t allowed, plim_error *error)
{
    struct attempt attempt;
    struct arena tables;
    struct frontier_point point = {0};
    uint64_t taken = 0;
    arena_init(&tables, search->plan->budget, TAG_PLANNER);
    plim_status status = make_attempt(&attempt, search, batch, &point, error);
    if (status == PLIM_OK) {
        taken = budget_usage(search->plan->budget).now;
        *bytes = program_cost(attempt.program);
        if (*bytes > allowed)
            status = find_point(&point, search, attempt.program, allowed, &tables, error);
    }
    release_attempt(&attempt);
    if (status == PLIM_OK && frontier_point_changes(&point)) {
        status = make_attempt(&attempt, search, batch, &point, error);
        if (status == PLIM_OK) /* more nodes make larger tables */
            *bytes = program_cost(attempt.program) + budget_usage(search->plan->budget).now - taken;
        release_attempt(&attempt);
    }
    arena_release(&tables);
    return status;
}

/* Whether training at this batch fits: the least peak of the plan, and the difference that the batch makes to the
   program and to the one batch in memory. */
static plim_status fits(bool *out, struct search *search, int64_t batch, plim_error *error)
{
    uint64_t bytes;
    const struct plan *plan = search->plan;
    double rows = (double)(batch - plan->workload.batch) * (double)plan->workload.sample_bytes;
    double allowed = (double)plan->limit_bytes - (double)search->margin - rows - (double)plan->least_peak +
                     (double)search->own_program;
    plim_status status = plan_at(&bytes, search, batch, allowed > 0 ? (uint64_t)allowed : 0, error);
    if (status != PLIM_OK) { /* what is too large to be counted does not fit; other errors are failures */
        *out = false;
        return status == PLIM_BAD_MODEL || status == PLIM_BAD_JOB || status == PLIM_OVER_BUDGET ? PLIM_OK : status;
    }
    *out = (double)bytes <= allowed;
    return PLIM_OK;
}

/* ---- the search ---- */

/* Stops at a precision of 1/64, which is enough for people. */
static plim_status bisect(int64_t *low, int64_t high, struct search *search, plim_error *error)
{
    while (high - *low > 1 && high - *low > *low / 64) {
        int64_t middle = *low + (high - *low) / 2;
        bool inside;
        TRY(fits(&inside, search, middle, error));
        if (inside)
            *low = middle;
        else
            high = middle;
    }
    return PLIM_OK;
}

/* The kernels of a layer may need other scratch at another batch, so the answer is planned with kernels of its own. */
static plim_status confirm(int64_t *batch, struct search *search, plim_error *error)
{
    int64_t own = search->plan->workload.batch;
    memset(search->table, 0, search->capacity * sizeof *search->table);
    search->confirming = true;
    while (*batch > 0 && *batch != own) {
        bool inside;
        TRY(fits(&inside, search, *batch, error));
        if (inside)
            return PLIM_OK;
        int64_t less = *batch - 1 - *batch / 64;
        *batch = less < own && search->plan->fits ? own : less; /* the job's own is known to fit */
    }
    return PLIM_OK;
}

/* Whether the job's own batch fits is what the plan says, so that the figures agree. */
static plim_status find_batch(int64_t *out, struct search *search, plim_error *error)
{
    const struct workload *workload = &search->plan->workload;
    int64_t low = 0, high = workload->batch, most = workload->samples < 0 ? MOST_BATCH : workload->samples;
    bool inside = search->plan->fits;
    while (inside && high < most) {
        low = high;
        high = high < most / 2 ? high * 2 : most;
        TRY(fits(&inside, search, high, error));
    }
    if (inside)
        low = high;
    else
        TRY(bisect(&low, high, search, error));
    *out = low;
    return confirm(out, search, error);
}

plim_status plan_largest_batch(int64_t *out, struct plan *plan, plim_error *error)
{
    struct search search;
    plan->prediction.peak_at =
        arena_string(plan->arena, plan->prediction.peak_at); /* it may be a name of the program */
    if (!plan->prediction.peak_at)
        return arena_refused(plan->arena, error);
    plim_status status = search_init(&search, plan, error);
    if (status == PLIM_OK) {
        plan_release_program(plan);
        status = find_batch(out, &search, error);
        budget_give(plan->budget, TAG_PLANNER, search.table, search.capacity * sizeof *search.table);
    }
    if (status != PLIM_OVER_BUDGET)
        return status;
    *out = 0; /* no memory for the search itself: the plan is not refused for it */
    return PLIM_OK;
}
