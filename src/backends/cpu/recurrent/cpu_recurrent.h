/* cpu_recurrent.h - what the files of recurrent cells share: activations over rows, products of a step, dropout.

   The kernel is packed gate by gate, once an instruction. A step's rows lie one behind another in scratch, `row` floats
   apart (not a power of two: rows of a tile stay out of one another's cache sets). */
#ifndef CPU_RECURRENT_H
#define CPU_RECURRENT_H

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_philox.h"
#include "backends/cpu/gemm/gemm.h"
#include "ops/ops.h"

#define ROW_PAD 16

INLINE int64_t padded_row(int64_t width)
{
    return (width + 15) / 16 * 16 + ROW_PAD;
}

/* Floats of one packed gate, [U, U]. */
INLINE int64_t gate_floats(int64_t units)
{
    return gemm_b_floats(units, units);
}

/* One call. */
struct recurrent_run {
    const struct call *call;
    const struct recurrent_attributes *a;
    struct recurrent_sizes z;
    int64_t rows;        /* samples */
    int64_t row, states; /* floats between rows of gates, of states, in scratch */
    const uint8_t *mask; /* [rows, T], or NULL */
    float *kept;         /* [rows, gates]: factors of dropout, or NULL */
};

INLINE struct recurrent_run recurrent_run_of(const struct kernel *kernel, const struct call *call, int mask)
{
    struct recurrent_run r = {.call = call,
                              .a = call->node->attributes,
                              .z = recurrent_sizes(call->node),
                              .rows = cpu_rows(kernel, call),
                              .mask = call->input[mask]};
    r.row = padded_row(r.z.columns);
    r.states = padded_row(r.z.units);
    return r;
}

/* `count` arrays of states in scratch, then one of gates, then the factors of dropout. */
INLINE int64_t recurrent_floats(const struct recurrent_sizes *z, int count, int64_t rows, bool dropout)
{
    return rows * (count * padded_row(z->units) + padded_row(z->columns) * (dropout ? 2 : 1));
}

INLINE void recurrent_lay_out(struct recurrent_run *r, float **const arrays[], int count)
{
    float *at = r->call->scratch;
    for (int i = 0; i <= count; i++, at += r->rows * r->states)
        *arrays[i] = at;
    r->kept = r->a->dropout > 0 ? *arrays[count] + r->rows * r->row : NULL;
}

/* Gate `gate` of the kernel as panels, its columns `step` and `column` floats apart. */
INLINE void recurrent_pack(void *pack, const struct call *whole, int gate, int input, int64_t step, int64_t column)
{
    struct recurrent_sizes z = recurrent_sizes(whole->node);
    const float *b = (const float *)whole->input[input] + gate * z.units;
    const struct gemm g = {.n = z.units, .k = z.units, .b = b, .b_step = step, .b_column = column};
    VARIANT(gemm_pack_b)((float *)pack + gate * gate_floats(z.units), &g, 0, 1);
}

INLINE bool is_there(const struct recurrent_run *r, int64_t n, int64_t t)
{
    return !r->mask || r->mask[n * r->z.steps + t];
}

/* c[rows, U] (+)= x[rows, U] . gate, packed. */
INLINE void multiply_gate(const struct recurrent_run *r, float *c, int64_t c_row, const float *x, int64_t x_row,
                          int64_t gate, bool add)
{
    const struct gemm g = {.m = r->rows,
                           .n = r->z.units,
                           .k = r->z.units,
                           .a = x,
                           .a_row = x_row,
                           .a_step = 1,
                           .a_in_place = true,
                           .b_packed = (const float *)r->call->pack + gate * gate_floats(r->z.units),
                           .c = c,
                           .c_row = c_row,
                           .add = add};
    VARIANT(gemm_packed)(&g);
}

/* Factors of all gates and units of a sample. */
INLINE void draw_recurrent(float *kept, const struct recurrent_attributes *a, int64_t columns, const void *iteration,
                           int64_t sample)
{
    uint32_t bits[NOISE_CHUNK];
    const uint32_t threshold = (uint32_t)dropout_threshold(a->dropout);
    const float factor = (float)(1 / (1 - a->dropout));
    int64_t step;
    memcpy(&step, iteration, sizeof step);
    for (int64_t i = 0; i < columns; i++) {
        if (i % NOISE_CHUNK == 0)
            philox_chunk(bits, a->seed, (uint64_t)step, sample, i / NOISE_CHUNK);
        kept[i] = bits[i % NOISE_CHUNK] >= threshold ? factor : 0;
    }
}

/* to = x * factor, element by element; to may be x. */
INLINE void multiply_row(float *to, const float *x, const float *factor, int64_t count)
{
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        to[i] = x[i] * factor[i];
}

#define EACH_ELEMENT(formula)                                                                                          \
    INDEPENDENT                                                                                                        \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        float x = a[i] + b[i];                                                                                         \
        y[i] = formula;                                                                                                \
    }                                                                                                                  \
    break

/* y = activation(a + b); y may be either. */
INLINE void activate_sum(int64_t activation, float *y, const float *a, const float *b, int64_t count)
{
    switch ((enum recurrent_activation)activation) {
    case RECURRENT_TANH:
        EACH_ELEMENT(tanh_of(x));
    case RECURRENT_SIGMOID:
        EACH_ELEMENT(sigmoid_of(x));
    case RECURRENT_RELU:
        EACH_ELEMENT(x < 0 ? 0 : x);
    case RECURRENT_HARD_SIGMOID:
        EACH_ELEMENT(madd(x, 1.0f / 6, 0.5f) < 0 ? 0 : madd(x, 1.0f / 6, 0.5f) > 1 ? 1 : madd(x, 1.0f / 6, 0.5f));
    case RECURRENT_ELU:
        EACH_ELEMENT(x < 0 ? expm1_of(x < 0 ? x : 0) : x);
    case RECURRENT_SOFTSIGN:
        EACH_ELEMENT(x / (1 + abs_of(x)));
    default:
        EACH_ELEMENT(x);
    }
}

#undef EACH_ELEMENT
#define EACH_ELEMENT(slope)                                                                                            \
    INDEPENDENT                                                                                                        \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        float x = y[i];                                                                                                \
        d[i] *= slope;                                                                                                 \
    }                                                                                                                  \
    break

/* d *= activation's slope, from its value y. */
INLINE void multiply_slope(int64_t activation, float *d, const float *y, int64_t count)
{
    switch ((enum recurrent_activation)activation) {
    case RECURRENT_TANH:
        EACH_ELEMENT(1 - x * x);
    case RECURRENT_SIGMOID:
        EACH_ELEMENT(x * (1 - x));
    case RECURRENT_RELU:
        EACH_ELEMENT((x > 0 ? 1.0f : 0.0f));
    case RECURRENT_HARD_SIGMOID:
        EACH_ELEMENT((x > 0 && x < 1 ? 1.0f / 6 : 0.0f));
    case RECURRENT_ELU:
        EACH_ELEMENT((x < 0 ? x + 1 : 1.0f));
    case RECURRENT_SOFTSIGN:
        EACH_ELEMENT((1 - abs_of(x)) * (1 - abs_of(x)));
    default:
        break;
    }
}

#undef EACH_ELEMENT

/* Every operand that is there is f32, but mask and iteration. */
INLINE bool recurrent_takes(const struct node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *x = node->input[i];
        if (x && x->type != TYPE_F32 && x->type != TYPE_BOOL && x->type != TYPE_I64)
            return false;
    }
    return node->output[0]->type == TYPE_F32;
}

/* A kernel whose gates are packed, with so many arrays of states in scratch. */
INLINE bool recurrent_make(struct cpu_kernel *out, const struct cpu_request *request, int arrays,
                           void (*pack)(const struct kernel *, const struct call *, int, void *))
{
    const struct recurrent_attributes *attributes = request->asked->node->attributes;
    if (!recurrent_takes(request->asked->node))
        return false;
    struct recurrent_sizes z = recurrent_sizes(request->asked->node);
    int64_t floats = recurrent_floats(&z, arrays, request->asked->slice, attributes->dropout > 0);
    cpu_set_pack(out, pack, (int)z.gates, (size_t)(z.gates * gate_floats(z.units)) * sizeof(float));
    out->kernel.scratch_bytes = (size_t)floats * sizeof(float);
    return true;
}

#endif
