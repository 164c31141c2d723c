/* cpu_update.c - Adam and SGD over the rows of a weight. */
#include <math.h>

#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* size[0]: elements of a row of w. All that is cut is f32; iteration is i64. */
MAKER(make_update)
{
    (void)error;
    const struct node *node = request->node;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != TYPE_F32 && node->input[i]->type != TYPE_I64)
            return PLIM_OK;
    out->size[0] = shape_row(&node->input[0]->shape);
    out->kernel.run = entry->run;
    return PLIM_OK;
}

/* m += (g - m)(1 - b1); v += (g g - v)(1 - b2); w -= m a / (sqrt(v) + epsilon) */
static void adam(float *restrict w, const float *restrict g, float *restrict m, float *restrict v, int64_t count,
                 const float rate[4])
{
    float m_rate = rate[0], v_rate = rate[1], step = rate[2], epsilon = rate[3];
    for (int64_t i = 0; i < count; i++) {
        float m_new = madd(g[i] - m[i], m_rate, m[i]);
        float v_new = madd(madd(g[i], g[i], -v[i]), v_rate, v[i]);
        m[i] = m_new;
        v[i] = v_new;
        w[i] -= m_new * step / (sqrtf(v_new) + epsilon);
    }
}

RUNNER(run_adam)
{
    const struct adam_attributes *attributes = call->node->attributes;
    const float *learning_rate = call->input[4];
    const int64_t *iteration = call->input[5];
    double t = (double)*iteration + 1;
    double step = *learning_rate * sqrt(1 - pow(attributes->beta_2, t)) / (1 - pow(attributes->beta_1, t));
    const float rate[4] = {(float)(1 - attributes->beta_1), (float)(1 - attributes->beta_2), (float)step,
                           (float)attributes->epsilon};
    adam(call->input[0], call->input[1], call->input[2], call->input[3],
         cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[0], rate);
}

/* w -= lr g */
static void descend(float *restrict w, const float *restrict g, int64_t count, float rate)
{
    for (int64_t i = 0; i < count; i++)
        w[i] = madd(g[i], -rate, w[i]);
}

/* m = mu m - lr g; w += m, or w += mu m - lr g */
static void descend_with_momentum(float *restrict w, const float *restrict g, float *restrict m, int64_t count,
                                  float rate, float momentum, bool nesterov)
{
    float ahead = nesterov ? momentum : 1, now = nesterov ? rate : 0;
    for (int64_t i = 0; i < count; i++) {
        float m_new = momentum * m[i] - rate * g[i];
        m[i] = m_new;
        w[i] += ahead * m_new - now * g[i];
    }
}

RUNNER(run_sgd)
{
    const struct sgd_attributes *attributes = call->node->attributes;
    int64_t count = cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[0];
    const float *rate = call->input[2];
    if (call->input[3])
        descend_with_momentum(call->input[0], call->input[1], call->input[3], count, *rate, (float)attributes->momentum,
                              attributes->nesterov);
    else
        descend(call->input[0], call->input[1], count, *rate);
}

MAKER(make_count_step)
{
    (void)error;
    if (request->node->input[0]->type == TYPE_I64)
        out->kernel.run = entry->run;
    return PLIM_OK;
}

RUNNER(run_count_step)
{
    (void)kernel;
    int64_t *iteration = call->input[0];
    *iteration += 1;
}
