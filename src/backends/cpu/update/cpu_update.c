/* cpu_update.c - the optimizers that work element by element. Each formula is
   one inline function of an element; the loops over it become vectors. */
#include <math.h>

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* size[0]: elements of a row of input 0. What is real is f32, but for the control (f64) and sums of squares. */
MAKER(make_update)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *x = node->input[i];
        if (x && x->type != TYPE_F32 && x->type != TYPE_I64 && (x->type != TYPE_F64 || i == 0))
            return false;
    }
    if (node->output_count && node->op->in_place == 1 << 0 && node->output[0]->type != TYPE_F32)
        return false;
    out->size[0] = shape_row(&node->input[0]->shape);
    return true;
}

struct element {
    float w, g, a, b, c;
};
typedef void rule(struct element *e, const float *k);

/* An absent state is 0 and is not written. */
INLINE void run_rule(const struct kernel *kernel, const struct call *call, rule *step, int states, float product)
{
    const double *control = call->input[2];
    int64_t count = cpu_elements(kernel, call);
    double numbers[UPDATE_NUMBERS];
    float k[UPDATE_NUMBERS];
    float *restrict w = call->input[0], *restrict a = call->input[3], *restrict b = call->input[4],
                    *restrict c = call->input[5];
    const float *restrict g = call->input[1];
    if (control[CONTROL_APPLIES] == 0)
        return;
    update_numbers(numbers, call->node, control, (double)product);
    for (int i = 0; i < UPDATE_NUMBERS; i++)
        k[i] = (float)numbers[i];
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        struct element e = {madd(w[i], -k[UPDATE_NUMBERS - 1], w[i]), g[i], 0, 0, 0};
        if (states & 1)
            e.a = a[i];
        if (states & 2)
            e.b = b[i];
        if (states & 4)
            e.c = c[i];
        step(&e, k);
        w[i] = e.w;
        if (states & 1)
            a[i] = e.a;
        if (states & 2)
            b[i] = e.b;
        if (states & 4)
            c[i] = e.c;
    }
}

/* The runner of an optimizer that has one rule. */
#define RULE(name, step, states)                                                                                       \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        run_rule(kernel, call, step, states, 0);                                                                       \
    }

static bool has(const struct call *call, int state)
{
    return state + 3 < call->node->input_count && call->input[state + 3];
}

/* ---- sgd ---------------------------------------------------------------- */

INLINE void sgd_plain(struct element *e, const float *k)
{
    e->w = madd(e->g, -k[0], e->w);
}

INLINE void sgd_momentum(struct element *e, const float *k)
{
    e->a = k[1] * e->a - k[0] * e->g;
    e->w += e->a;
}

INLINE void sgd_nesterov(struct element *e, const float *k)
{
    e->a = k[1] * e->a - k[0] * e->g;
    e->w += k[1] * e->a - k[0] * e->g;
}

RUNNER(run_sgd)
{
    const struct update_attributes *attributes = call->node->attributes;
    if (!has(call, 0))
        run_rule(kernel, call, sgd_plain, 0, 0);
    else if (attributes->nesterov)
        run_rule(kernel, call, sgd_nesterov, 1, 0);
    else
        run_rule(kernel, call, sgd_momentum, 1, 0);
}

/* ---- rmsprop: velocity, momentum, average_gradient ---------------------- */

INLINE float rms_step(struct element *e, const float *k, float average)
{
    e->a = k[1] * e->a + k[2] * (e->g * e->g);
    return k[0] * e->g / sqrtf(e->a - average * average + k[3]);
}

INLINE void rms_plain(struct element *e, const float *k)
{
    e->w -= rms_step(e, k, 0);
}

INLINE void rms_momentum(struct element *e, const float *k)
{
    e->b = k[4] * e->b + rms_step(e, k, 0);
    e->w -= e->b;
}

INLINE void rms_centered(struct element *e, const float *k)
{
    e->c = k[1] * e->c + k[2] * e->g;
    e->w -= rms_step(e, k, e->c);
}

INLINE void rms_both(struct element *e, const float *k)
{
    e->c = k[1] * e->c + k[2] * e->g;
    e->b = k[4] * e->b + rms_step(e, k, e->c);
    e->w -= e->b;
}

RUNNER(run_rmsprop)
{
    if (has(call, 1) && has(call, 2))
        run_rule(kernel, call, rms_both, 7, 0);
    else if (has(call, 1))
        run_rule(kernel, call, rms_momentum, 3, 0);
    else if (has(call, 2))
        run_rule(kernel, call, rms_centered, 5, 0);
    else
        run_rule(kernel, call, rms_plain, 1, 0);
}

/* ---- adagrad, adadelta -------------------------------------------------- */

INLINE void adagrad_step(struct element *e, const float *k)
{
    e->a += e->g * e->g;
    e->w -= k[0] * e->g / sqrtf(e->a + k[3]);
}

RULE(adagrad, adagrad_step, 1)

INLINE void adadelta_step(struct element *e, const float *k)
{
    e->a = k[1] * e->a + k[2] * (e->g * e->g);
    float step = sqrtf(e->b + k[3]) * e->g / sqrtf(e->a + k[3]);
    e->b = k[1] * e->b + k[2] * (step * step);
    e->w -= k[0] * step;
}

RULE(adadelta, adadelta_step, 3)

/* ---- adam and its family ------------------------------------------------ */

INLINE void adam_moments(struct element *e, const float *k)
{
    e->a = madd(e->g - e->a, k[0], e->a);
    e->b = madd(madd(e->g, e->g, -e->b), k[1], e->b);
}

INLINE void adam_step(struct element *e, const float *k)
{
    adam_moments(e, k);
    e->w -= e->a * k[2] / (sqrtf(e->b) + k[3]);
}

INLINE void adam_amsgrad(struct element *e, const float *k)
{
    adam_moments(e, k);
    e->c = e->c > e->b ? e->c : e->b;
    e->w -= e->a * k[2] / (sqrtf(e->c) + k[3]);
}

RUNNER(run_adam)
{
    if (has(call, 2))
        run_rule(kernel, call, adam_amsgrad, 7, 0);
    else
        run_rule(kernel, call, adam_step, 3, 0);
}

INLINE void adamax_step(struct element *e, const float *k)
{
    float least = k[1] * e->b, g = abs_of(e->g);
    e->a = madd(e->g - e->a, k[0], e->a);
    e->b = least > g ? least : g;
    e->w -= e->a * k[2] / (e->b + k[3]);
}

RULE(adamax, adamax_step, 3)

INLINE void nadam_step(struct element *e, const float *k)
{
    adam_moments(e, k);
    e->w -= (k[2] * e->a + k[3] * e->g) / (sqrtf(e->b * k[4]) + k[5]);
}

RUNNER(run_nadam)
{
    const float *product = call->input[5];
    run_rule(kernel, call, nadam_step, 3, *product);
}

/* ---- lion, ftrl --------------------------------------------------------- */

INLINE void lion_step(struct element *e, const float *k)
{
    float to = e->a * k[1] + e->g * k[2];
    e->w -= to > 0 ? k[0] : to < 0 ? -k[0] : 0;
    e->a = e->a * k[3] + e->g * k[4];
}

RULE(lion, lion_step, 1)

INLINE void ftrl_with(struct element *e, const float *k, float before, float after)
{
    e->b += e->g + k[4] * e->w - (after - before) * k[0] * e->w;
    float clipped = e->b < -k[2] ? -k[2] : e->b > k[2] ? k[2] : e->b;
    e->w = (clipped - e->b) / (after * k[0] + k[3]);
}

INLINE void ftrl_root(struct element *e, const float *k)
{
    float before = sqrtf(e->a);
    e->a += e->g * e->g;
    ftrl_with(e, k, before, sqrtf(e->a));
}

INLINE void ftrl_power(struct element *e, const float *k)
{
    float before = exp_of(k[1] * log_of(e->a));
    e->a += e->g * e->g;
    ftrl_with(e, k, before, exp_of(k[1] * log_of(e->a)));
}

RUNNER(run_ftrl)
{
    const struct update_attributes *attributes = call->node->attributes;
    if (attributes->power == -0.5)
        run_rule(kernel, call, ftrl_root, 3, 0);
    else
        run_rule(kernel, call, ftrl_power, 3, 0);
}
