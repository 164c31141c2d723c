/* quantize.h - Adam's states in a byte an element, for the reference and the
   kernels alike: both must find the same codes, so both run this, in float32.

   A block of BLOCK elements of a row shares two scales, the largest |m| and the
   largest sqrt(v). m is kept as 127 sign(m) sqrt(|m| / scale), v as 255 sqrt(sqrt(v) / scale):
   small ones keep digits, and a v that is not 0 never becomes 0. Rounding is by
   chance (a function of step and element), so that changes smaller than a code add up. */
#ifndef OPS_UPDATE_QUANTIZE_H
#define OPS_UPDATE_QUANTIZE_H

#include <math.h>
#include <stdint.h>

#define QUANTIZED_BLOCK 256

struct quantized_step {
    float m_rate, v_rate, step, epsilon, decay;
    uint32_t seed; /* of the step */
};

static inline float quantized_m(int8_t code, float scale)
{
    float x = (float)code * (1.0f / 127.0f);
    return (code < 0 ? -x * x : x * x) * scale;
}

static inline float quantized_v(uint8_t code, float scale)
{
    float x = (float)code * (1.0f / 255.0f), root = x * x * scale;
    return root * root;
}

/* In [0, 1): an integer hash, the same for an element whoever asks. */
static inline float quantized_chance(uint32_t element, uint32_t seed)
{
    uint32_t x = element * 0x9e3779b9u ^ seed;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return (float)((x ^ (x >> 16)) >> 8) * (1.0f / 16777216.0f);
}

static inline int8_t quantized_code_m(float m, float over_scale, float chance)
{
    float size = sqrtf((m < 0 ? -m : m) * over_scale) * 127.0f;
    int32_t code = (int32_t)(size + chance);
    code = code > 127 ? 127 : code;
    return (int8_t)(m < 0 ? -code : code);
}

static inline uint8_t quantized_code_v(float root, float over_scale, float chance)
{
    int32_t code = (int32_t)(sqrtf(root * over_scale) * 255.0f + chance);
    code = code > 255 ? 255 : code;
    return (uint8_t)(code == 0 && root > 0 ? 1 : code);
}

/* Both states of one block: their codes, and the scale of each. */
struct quantized_states {
    int8_t *m;
    uint8_t *v;
    float *scale; /* [2] */
};

/* One block: w and its states. `element` is the number of its first one. */
static inline void quantized_adam(float *w, const float *g, const struct quantized_states *states, int64_t count,
                                  uint32_t element, const struct quantized_step *k)
{
    int8_t *m = states->m;
    uint8_t *v = states->v;
    float *scale = states->scale;
    float new_m[QUANTIZED_BLOCK], root[QUANTIZED_BLOCK], most_m = 0, most_v = 0;
    for (int64_t i = 0; i < count; i++) {
        float before_m = quantized_m(m[i], scale[0]), before_v = quantized_v(v[i], scale[1]);
        new_m[i] = before_m + (g[i] - before_m) * k->m_rate;
        root[i] = sqrtf(before_v + (g[i] * g[i] - before_v) * k->v_rate);
        float kept = w[i] - w[i] * k->decay;
        w[i] = kept - new_m[i] * k->step / (root[i] + k->epsilon);
    }
    for (int64_t i = 0; i < count; i++) {
        float size = new_m[i] < 0 ? -new_m[i] : new_m[i];
        most_m = size > most_m ? size : most_m;
        most_v = root[i] > most_v ? root[i] : most_v;
    }
    float over_m = most_m > 0 ? 1.0f / most_m : 0, over_v = most_v > 0 ? 1.0f / most_v : 0;
    for (int64_t i = 0; i < count; i++) {
        float chance = quantized_chance(element + (uint32_t)i, k->seed);
        m[i] = quantized_code_m(new_m[i], over_m, chance);
        v[i] = quantized_code_v(root[i], over_v, 1.0f - chance);
    }
    scale[0] = most_m;
    scale[1] = most_v;
}

#endif
