/* cpu_loss.h - what the files of losses share. size[0]: columns of the scores, size[1]: rows a sample. */
#ifndef CPU_LOSS_H
#define CPU_LOSS_H

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define EPSILON 1e-7f /* as Keras clips probabilities */
#define CHUNK   64

/* False: scores are not f32. */
INLINE bool take_score_sizes(struct cpu_kernel *out, const struct node *node)
{
    const struct tensor *x = node->input[0];
    out->size[0] = x->shape.dim[x->shape.rank - 1];
    out->size[1] = shape_row(&x->shape) / out->size[0];
    return x->type == TYPE_F32;
}

static inline float largest(const float *x, int64_t count)
{
    float most = x[0];
    for (int64_t i = 1; i < count; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* The first of the largest. */
static inline int64_t largest_at(const float *x, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

INLINE float above(float x, float low)
{
    return x < low ? low : x;
}

/* Of a score x and a target t; k: numbers that some formulas need. */
typedef float formula(float x, float t, const float *k);
#define FORMULA(name, expression)                                                                                      \
    INLINE float name(float x, float t, UNUSED const float *k)                                                         \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

/* Cross-entropy of a probability (nothing flows where it was clipped) and of a logit. */
INLINE float bernoulli(float x, float t, UNUSED const float *k)
{
    float p = above(x, EPSILON), q = above(1.0f - x, EPSILON);
    return -t * log_of(p) - (1.0f - t) * log_of(q);
}
FORMULA(bernoulli_slope, x<EPSILON ? 0.0f : x> 1.0f - EPSILON ? 0.0f : (x - t) / (x * (1.0f - x)))
FORMULA(logits, above(x, 0) - x * t + log1p_of(exp_of(-abs_of(x))))
FORMULA(logits_slope, sigmoid_of(x) - t)

#endif
