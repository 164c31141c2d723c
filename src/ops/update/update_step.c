/* update_step.c - what a step does once: its control, accumulation of
   gradients, averages of weights, the scale of the loss, and counting. */
#include <math.h>

#include "ops/update/update_own.h"

static void cut_once(struct cut *cut, const struct node *node)
{
    *cut = (struct cut){.extent = 1, .grain = 1, .work = CONTROL_COUNT};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = PART_WHOLE;
    for (int k = 0; k < node->output_count; k++)
        cut->output[k] = PART_WHOLE;
}

/* ---- step_control ------------------------------------------------------- */

static plim_status step_control_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_one(node, 0, TYPE_F32, error));
    TRY(need_one(node, 1, TYPE_I64, error));
    if (node->input[2])
        TRY(need_one(node, 2, TYPE_F32, error));
    return output_of(graph, node, 0, TYPE_F64, shape_1(CONTROL_COUNT), false);
}

static void step_control_reference(const struct call *call)
{
    const struct step_control_attributes *a = call->node->attributes;
    float *rate = call->input[0];
    const int64_t *iteration = call->input[1];
    const float *nonfinite = call->input[2];
    double *control = call->output[0];
    int64_t group = a->accumulation > 1 ? a->accumulation : 1;
    if (call->begin >= call->end)
        return;
    if (a->schedule.kind != SCHEDULE_CONSTANT)
        *rate = (float)schedule_rate(&a->schedule, (double)*iteration);
    bool runs = !nonfinite || *nonfinite == 0;
    control[CONTROL_RATE] = (double)*rate;
    control[CONTROL_STEP] = (double)(*iteration / group + 1);
    control[CONTROL_RUNS] = runs;
    control[CONTROL_APPLIES] = runs && (*iteration + 1) % group == 0;
}

const struct op op_step_control = {
    OP_HEAD(step_control, 3, 1, step_control_infer, cut_once),
    .optional = 1 << 2,
    .attributes_bytes = sizeof(struct step_control_attributes),
    .no_gradient = NO_GRADIENT,
    .updates = 1,
};

/* ---- accumulate_gradient: inputs g, control, accumulator ---------------- */

static plim_status accumulate_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct accumulate_attributes *a = node->attributes;
    if (a->steps < 1)
        return misfit(node, error, "gradients of %lld steps cannot be accumulated", (long long)a->steps);
    return infer_direction(graph, node, error);
}

static void accumulate_gradient_reference(const struct call *call)
{
    const struct accumulate_attributes *a = call->node->attributes;
    const double *control = call->input[1];
    int64_t count = update_elements(call);
    double keep = control[CONTROL_APPLIES] != 0 ? 0 : 1, takes = control[CONTROL_RUNS] != 0 ? 1 : 0;
    for (int64_t i = 0; i < count; i++) {
        double before = get(call, 2, i), sum = takes != 0 ? before + get(call, 0, i) : before;
        put(call, 2, i, keep * sum);
        set(call, 0, i, sum / (double)a->steps);
    }
}

const struct op op_accumulate_gradient = {
    OP_HEAD(accumulate_gradient, 3, 1, accumulate_gradient_infer, cut_control_1),
    .attributes_bytes = sizeof(struct accumulate_attributes),
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 2,
    .in_place = 1 << 0,
};

/* ---- moving_average: inputs w, average, control ------------------------- */

/* The first one is the weight itself. */
static void moving_average_reference(const struct call *call)
{
    const struct average_attributes *a = call->node->attributes;
    const double *control = call->input[2];
    int64_t count = update_elements(call), t = (int64_t)control[CONTROL_STEP];
    double keep = t > 1 ? a->momentum : 0;
    bool overwrites = a->overwrite > 0 && t % a->overwrite == 0;
    for (int64_t i = 0; i < count && control[CONTROL_RUNS] != 0; i++) {
        double average = keep * get(call, 1, i) + (1 - keep) * get(call, 0, i);
        put(call, 1, i, average);
        if (overwrites)
            put(call, 0, i, average);
    }
}

UPDATE_OP(moving_average, 3, struct average_attributes, infer_average, 1 << 0 | 1 << 1, cut_control_2);

/* ---- loss scaling: seed, unscale, count, adjust ------------------------- */

static plim_status gradient_seed_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct seed_attributes *a = node->attributes;
    if (node->input[0])
        TRY(need_one(node, 0, TYPE_F32, error));
    return output_of(graph, node, 0, a->type, shape_1(1), false);
}

static void gradient_seed_reference(const struct call *call)
{
    if (call->begin < call->end)
        set(call, 0, 0, call->node->input_count && call->input[0] ? get(call, 0, 0) : 1);
}

const struct op op_gradient_seed = {
    OP_HEAD(gradient_seed, 1, 1, gradient_seed_infer, cut_once),
    .optional = 1,
    .attributes_bytes = sizeof(struct seed_attributes),
    .no_gradient = NO_SECOND,
};

static plim_status unscale_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_one(node, 1, TYPE_F32, error));
    return output_like(graph, node, 0, node->input[0]);
}

static void unscale_gradient_reference(const struct call *call)
{
    int64_t count = update_elements(call);
    double factor = 1 / get(call, 1, 0);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i) * factor);
}

const struct op op_unscale_gradient = {
    OP_HEAD(unscale_gradient, 2, 1, unscale_gradient_infer, cut_control_1),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};

static plim_status count_nonfinite_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    return output_of(graph, node, 0, TYPE_F32, shape_1(1), false);
}

static void count_nonfinite_reference(const struct call *call)
{
    int64_t count = update_elements(call), bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad += !isfinite(get(call, 0, i));
    share(call, 0, 0, (double)bad);
}

const struct op op_count_nonfinite = {
    OP_HEAD(count_nonfinite, 1, 1, count_nonfinite_infer, cut_to_sum),
    .no_gradient = NO_SECOND,
};

static plim_status loss_scale_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_one(node, 0, TYPE_F32, error));
    TRY(need_one(node, 1, TYPE_I64, error));
    TRY(need_one(node, 2, TYPE_I64, error));
    return need_control(node, 3, error);
}

/* Keras's: half after a skipped step, twice after `growth` good ones. */
static void loss_scale_reference(const struct call *call)
{
    const struct loss_scale_attributes *a = call->node->attributes;
    float *scale = call->input[0];
    int64_t *good = call->input[1], *skipped = call->input[2];
    const double *control = call->input[3];
    if (call->begin >= call->end)
        return;
    if (control[CONTROL_RUNS] == 0) {
        *scale *= 0.5f;
        *good = 0;
        *skipped += 1;
    } else if (*good == a->growth - 1) {
        *scale *= 2.0f;
        *good = 0;
    } else {
        *good += 1;
    }
}

UPDATE_OP(loss_scale, 4, struct loss_scale_attributes, loss_scale_infer, 1 << 0 | 1 << 1 | 1 << 2, cut_once);

/* ---- count_step: iteration += 1 ---------------------------------------- */

static plim_status count_step_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_one(node, 0, TYPE_I64, error));
    return node->input[1] ? need_control(node, 1, error) : PLIM_OK;
}

/* As the whole number that it is: a double ends at 2^53. */
static void count_step_reference(const struct call *call)
{
    int64_t *iteration = call->input[0];
    const double *control = call->node->input_count > 1 ? call->input[1] : NULL;
    if (call->begin < call->end && (!control || control[CONTROL_RUNS] != 0))
        *iteration += 1;
}

const struct op op_count_step = {
    OP_HEAD(count_step, 2, 0, count_step_infer, cut_once),
    .optional = 1 << 1,
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 0,
};
