/* expression_kernels.c - the typed loops that expressions are made of.

   One line a loop, written so that compilers vectorise it; this file is compiled for speed (see meson.build). Whole
   numbers are added as unsigned, because they wrap. */
#include "pipeline/expression/expression_kernels.h"

#include <math.h>
#include <string.h>

/* Iterations are independent, even when `to` is `a`. clang has no word for that which it takes back where a loop
   cannot be vectorised: it checks for itself when it runs. */
#ifdef __clang__
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

typedef const struct string *text;

#define LOOP(name, result, type_a, type_b, type_c, formula)                                                            \
    static void name(void *to_, const void *a_, const void *b_, const void *c_, int64_t n)                             \
    {                                                                                                                  \
        result *to = to_;                                                                                              \
        const type_a *a = a_;                                                                                          \
        const type_b *b = b_;                                                                                          \
        const type_c *c = c_;                                                                                          \
        (void)b;                                                                                                       \
        (void)c;                                                                                                       \
        INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = (result)(formula);                                         \
    }
/* Names end in their lane: q for bool, i, f, d, s. A plain loop has operands of one type. */
#define PLAIN_LOOP(name, result, type, formula) LOOP(name, result, type, type, type, formula)
#define FLOAT_LOOPS(name, formula_f, formula_d)                                                                        \
    PLAIN_LOOP(name##_f, float, float, formula_f)                                                                      \
    PLAIN_LOOP(name##_d, double, double, formula_d)
#define NUMBER_LOOPS(name, formula_i, formula)                                                                         \
    PLAIN_LOOP(name##_i, int64_t, int64_t, formula_i)                                                                  \
    PLAIN_LOOP(name##_f, float, float, formula)                                                                        \
    PLAIN_LOOP(name##_d, double, double, formula)
#define COMPARE_LOOPS(name, formula)                                                                                   \
    PLAIN_LOOP(name##_q, uint8_t, uint8_t, formula)                                                                    \
    PLAIN_LOOP(name##_i, uint8_t, int64_t, formula)                                                                    \
    PLAIN_LOOP(name##_f, uint8_t, float, formula)                                                                      \
    PLAIN_LOOP(name##_d, uint8_t, double, formula)

NUMBER_LOOPS(add, (uint64_t)a[i] + (uint64_t)b[i], a[i] + b[i])
NUMBER_LOOPS(subtract, (uint64_t)a[i] - (uint64_t)b[i], a[i] - b[i])
NUMBER_LOOPS(multiply, (uint64_t)a[i] * (uint64_t)b[i], a[i] * b[i])
FLOAT_LOOPS(divide, a[i] / b[i], a[i] / b[i])

/* Towards minus infinity; x // 0 and x % 0 are 0, and the least number // -1 wraps to itself. */
static inline int64_t floor_divide(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t modulo(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline double modulo_double(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline float modulo_float(float a, float b)
{
    float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* The exponent is not negative: expression_check saw it. */
static inline int64_t power(int64_t base, int64_t exponent)
{
    uint64_t result = 1, square = (uint64_t)base;
    for (; exponent > 0; exponent >>= 1, square *= square)
        if (exponent & 1)
            result *= square;
    return (int64_t)result;
}

PLAIN_LOOP(floor_divide_i, int64_t, int64_t, floor_divide(a[i], b[i]))
FLOAT_LOOPS(floor_divide, floorf(a[i] / b[i]), floor(a[i] / b[i]))
PLAIN_LOOP(modulo_i, int64_t, int64_t, modulo(a[i], b[i]))
FLOAT_LOOPS(modulo, modulo_float(a[i], b[i]), modulo_double(a[i], b[i]))
PLAIN_LOOP(power_i, int64_t, int64_t, power(a[i], b[i]))
FLOAT_LOOPS(power, powf(a[i], b[i]), pow(a[i], b[i]))

COMPARE_LOOPS(equal, a[i] == b[i])
COMPARE_LOOPS(unequal, a[i] != b[i])
COMPARE_LOOPS(less, a[i] < b[i])
COMPARE_LOOPS(less_equal, a[i] <= b[i])

static inline bool same_text(text a, text b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}
LOOP(equal_s, uint8_t, text, text, text, same_text(a[i], b[i]))
LOOP(unequal_s, uint8_t, text, text, text, !same_text(a[i], b[i]))

PLAIN_LOOP(and_q, uint8_t, uint8_t, a[i] & b[i])
PLAIN_LOOP(or_q, uint8_t, uint8_t, a[i] | b[i])
PLAIN_LOOP(not_q, uint8_t, uint8_t, !a[i])

NUMBER_LOOPS(negate, 0 - (uint64_t)a[i], -a[i])
PLAIN_LOOP(abs_i, int64_t, int64_t, a[i] < 0 ? 0 - (uint64_t)a[i] : (uint64_t)a[i])
FLOAT_LOOPS(abs, fabsf(a[i]), fabs(a[i]))
FLOAT_LOOPS(sqrt, sqrtf(a[i]), sqrt(a[i]))
FLOAT_LOOPS(exp, expf(a[i]), exp(a[i]))
FLOAT_LOOPS(log, logf(a[i]), log(a[i]))
FLOAT_LOOPS(log1p, log1pf(a[i]), log1p(a[i]))
FLOAT_LOOPS(sin, sinf(a[i]), sin(a[i]))
FLOAT_LOOPS(cos, cosf(a[i]), cos(a[i]))
FLOAT_LOOPS(tanh, tanhf(a[i]), tanh(a[i]))
FLOAT_LOOPS(floor, floorf(a[i]), floor(a[i]))
FLOAT_LOOPS(ceil, ceilf(a[i]), ceil(a[i]))
FLOAT_LOOPS(round, rintf(a[i]), rint(a[i]))
/* NaN stays NaN. */
NUMBER_LOOPS(sign, (a[i] > 0) - (a[i] < 0), a[i] != a[i] ? a[i] : (a[i] > 0) - (a[i] < 0))
/* NaN wins on either side, as in numpy. */
NUMBER_LOOPS(minimum, a[i] < b[i] ? a[i] : b[i], a[i] < b[i] || a[i] != a[i] ? a[i] : b[i])
NUMBER_LOOPS(maximum, a[i] > b[i] ? a[i] : b[i], a[i] > b[i] || a[i] != a[i] ? a[i] : b[i])

LOOP(where_q, uint8_t, uint8_t, uint8_t, uint8_t, a[i] ? b[i] : c[i])
LOOP(where_i, int64_t, uint8_t, int64_t, int64_t, a[i] ? b[i] : c[i])
LOOP(where_f, float, uint8_t, float, float, a[i] ? b[i] : c[i])
LOOP(where_d, double, uint8_t, double, double, a[i] ? b[i] : c[i])

/* Which lanes an operation has kernels for. */
#define NONE                    0
#define BOOLS(name)             [LANE_BOOL] = name##_q
#define FLOATS(name)            [LANE_FLOAT] = name##_f, [LANE_DOUBLE] = name##_d
#define NUMBERS(name)           [LANE_INT] = name##_i, FLOATS(name)
#define NUMBERS_AND_BOOLS(name) BOOLS(name), NUMBERS(name)
#define ANY(name)               NUMBERS_AND_BOOLS(name), [LANE_STRING] = name##_s

static expression_kernel *const kernels[OPERATION_COUNT][LANE_COUNT] = {
#define OPERATION(name, text, rule, kernels) [OPERATION_##name] = {kernels},
#include "pipeline/expression/expression_operations.def"
#undef OPERATION
};

expression_kernel *expression_kernel_of(enum operation operation, enum lane lane)
{
    return kernels[operation][lane];
}

/* ---- from lane to lane ---- */

/* Towards zero; NaN is 0, and what does not fit is the nearest that does: not left to the hardware. */
static inline int64_t whole(double value, double low, double high)
{
    if (value != value)
        return 0;
    if (value <= low)
        return (int64_t)low;
    if (value >= high)
        return high >= 0x1p63 ? INT64_MAX : (int64_t)high; /* 2^63 is a double but not an int64_t */
    return (int64_t)value;
}

PLAIN_LOOP(int_of_bool, int64_t, uint8_t, a[i])
PLAIN_LOOP(float_of_bool, float, uint8_t, a[i])
PLAIN_LOOP(double_of_bool, double, uint8_t, a[i])
PLAIN_LOOP(bool_of_int, uint8_t, int64_t, a[i] != 0)
PLAIN_LOOP(float_of_int, float, int64_t, a[i])
PLAIN_LOOP(double_of_int, double, int64_t, a[i])
PLAIN_LOOP(bool_of_float, uint8_t, float, a[i] != 0)
PLAIN_LOOP(int_of_float, int64_t, float, whole((double)a[i], -0x1p63, 0x1p63))
PLAIN_LOOP(double_of_float, double, float, a[i])
PLAIN_LOOP(bool_of_double, uint8_t, double, a[i] != 0)
PLAIN_LOOP(int_of_double, int64_t, double, whole(a[i], -0x1p63, 0x1p63))
PLAIN_LOOP(float_of_double, float, double, a[i])

expression_kernel *expression_convert(enum lane to, enum lane from)
{
    static expression_kernel *const converts[LANE_COUNT][LANE_COUNT] = {
        [LANE_BOOL] = {NULL, bool_of_int, bool_of_float, bool_of_double},
        [LANE_INT] = {int_of_bool, NULL, int_of_float, int_of_double},
        [LANE_FLOAT] = {float_of_bool, float_of_int, NULL, float_of_double},
        [LANE_DOUBLE] = {double_of_bool, double_of_int, double_of_float, NULL},
    };
    return converts[to][from];
}

static inline uint16_t small_of_float(enum type type, float value)
{
    uint16_t bits;
    element_set(&bits, type, 0, (double)value);
    return bits;
}

static inline float by_way_of(enum type type, float value)
{
    uint16_t bits = small_of_float(type, value);
    return (float)element_get(&bits, type, 0);
}

PLAIN_LOOP(narrow_i8, int64_t, int64_t, (int8_t)a[i])
PLAIN_LOOP(narrow_i16, int64_t, int64_t, (int16_t)a[i])
PLAIN_LOOP(narrow_i32, int64_t, int64_t, (int32_t)a[i])
PLAIN_LOOP(narrow_u8, int64_t, int64_t, (uint8_t)a[i])
PLAIN_LOOP(narrow_f16, float, float, by_way_of(TYPE_F16, a[i]))
PLAIN_LOOP(narrow_bf16, float, float, by_way_of(TYPE_BF16, a[i]))

size_t lane_bytes(enum lane lane)
{
    return lane == LANE_BOOL ? 1 : lane == LANE_FLOAT ? 4 : 8;
}

/* ---- columns into lanes, and back ---- */

/* A type of any alignment that may lie over any other. */
#define LOOSE(type) typedef type loose_##type __attribute__((aligned(1), may_alias))
LOOSE(float);
LOOSE(double);
LOOSE(int8_t);
LOOSE(int16_t);
LOOSE(int32_t);
LOOSE(int64_t);
LOOSE(uint8_t);
LOOSE(uint16_t);

/* Values side by side get a loop of their own: that one is vectorised. */
#define LOAD(name, lane, type, formula)                                                                                \
    static void name(void *to_, const uint8_t *from, uint64_t stride, int64_t n)                                       \
    {                                                                                                                  \
        lane *to = to_;                                                                                                \
        if (stride == sizeof(type)) {                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                type x = ((const loose_##type *)from)[i];                                                              \
                to[i] = formula;                                                                                       \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++, from += stride) {                                                              \
            type x = *(const loose_##type *)from;                                                                      \
            to[i] = formula;                                                                                           \
        }                                                                                                              \
    }
#define STORE(name, type, lane, formula)                                                                               \
    static void name(uint8_t *to, uint64_t stride, const void *from_, int64_t n)                                       \
    {                                                                                                                  \
        const lane *from = from_;                                                                                      \
        if (stride == sizeof(type)) {                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                lane x = from[i];                                                                                      \
                ((loose_##type *)to)[i] = (type)(formula);                                                             \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++, to += stride) {                                                                \
            lane x = from[i];                                                                                          \
            *(loose_##type *)to = (type)(formula);                                                                     \
        }                                                                                                              \
    }

/* Exact. No float that is a denormal on the way: they count as zero in our floating-point mode. */
static inline float float_of_half(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff, whole_bits;
    float small = (float)rest * 0x1p-24f, value;
    uint32_t large = (rest << 13) + (rest >= 0x7c00 ? 224u << 23 : 112u << 23);
    memcpy(&whole_bits, &small, sizeof small);
    whole_bits = (rest < 0x400 ? whole_bits : large) | sign;
    memcpy(&value, &whole_bits, sizeof value);
    return value;
}

static inline float float_of_bfloat(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

LOAD(load_bool, uint8_t, uint8_t, x != 0)
LOAD(load_i8, int64_t, int8_t, x) /* NOLINT(bugprone-signed-char-misuse,cert-str34-c): a number, not a character */
LOAD(load_i16, int64_t, int16_t, x)
LOAD(load_i32, int64_t, int32_t, x)
LOAD(load_i64, int64_t, int64_t, x)
LOAD(load_u8, int64_t, uint8_t, x)
LOAD(float_i8, float, int8_t, (float)x)
LOAD(float_i16, float, int16_t, (float)x)
LOAD(float_i32, float, int32_t, (float)x)
LOAD(float_u8, float, uint8_t, (float)x)
LOAD(load_f16, float, uint16_t, float_of_half(x))
LOAD(load_bf16, float, uint16_t, float_of_bfloat(x))
LOAD(load_f32, float, float, x)
LOAD(load_f64, double, double, x)

static void load_string(void *to_, const uint8_t *from, uint64_t stride, int64_t n)
{
    text *to = to_;
    for (int64_t i = 0; i < n; i++)
        to[i] = (text)(const void *)(from + (uint64_t)i * stride);
}

STORE(store_bool, uint8_t, uint8_t, x)
STORE(store_i8, int8_t, int64_t, x)
STORE(store_i16, int16_t, int64_t, x)
STORE(store_i32, int32_t, int64_t, x)
STORE(store_i64, int64_t, int64_t, x)
STORE(store_u8, uint8_t, int64_t, x)
STORE(store_f16, uint16_t, float, small_of_float(TYPE_F16, x))
STORE(store_bf16, uint16_t, float, small_of_float(TYPE_BF16, x))
STORE(store_f32, float, float, x)
STORE(store_f64, double, double, x)

static void store_string(uint8_t *to, uint64_t stride, const void *from_, int64_t n)
{
    const text *from = from_;
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (uint64_t)i * stride, from[i], sizeof(struct string));
}

/* ---- by type ---- */

static const struct {
    enum lane lane;
    expression_load *load, *load_float; /* into the lane; at once into floats */
    expression_store *store;
    expression_kernel *narrow;
} types[TYPE_COUNT + 1] = {
    [TYPE_BOOL] = {LANE_BOOL, load_bool, NULL, store_bool, NULL},
    [TYPE_I8] = {LANE_INT, load_i8, float_i8, store_i8, narrow_i8},
    [TYPE_I16] = {LANE_INT, load_i16, float_i16, store_i16, narrow_i16},
    [TYPE_I32] = {LANE_INT, load_i32, float_i32, store_i32, narrow_i32},
    [TYPE_I64] = {LANE_INT, load_i64, NULL, store_i64, NULL},
    [TYPE_U8] = {LANE_INT, load_u8, float_u8, store_u8, narrow_u8},
    [TYPE_F16] = {LANE_FLOAT, load_f16, NULL, store_f16, narrow_f16},
    [TYPE_BF16] = {LANE_FLOAT, load_bf16, NULL, store_bf16, narrow_bf16},
    [TYPE_F32] = {LANE_FLOAT, load_f32, NULL, store_f32, NULL},
    [TYPE_F64] = {LANE_DOUBLE, load_f64, NULL, store_f64, NULL},
    [TYPE_STRING] = {LANE_STRING, load_string, NULL, store_string, NULL},
};

enum lane lane_of(enum type type)
{
    return types[type].lane;
}

expression_kernel *expression_narrow(enum type type)
{
    return types[type].narrow;
}

expression_load *expression_load_of(enum type type, enum lane lane)
{
    return lane == types[type].lane ? types[type].load : lane == LANE_FLOAT ? types[type].load_float : NULL;
}

expression_store *expression_store_of(enum type type)
{
    return types[type].store;
}

/* ---- a row into one value ---- */

static void reduce_ints(struct reduction *r, enum reduce reduce, const int64_t *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t now = (int64_t)r->whole, x = values[i];
        if (reduce == REDUCE_SUM || reduce == REDUCE_MEAN)
            r->whole += (uint64_t)x;
        else if (!r->begun || (reduce == REDUCE_MIN ? x < now : x > now))
            r->whole = (uint64_t)x;
        r->begun = true;
    }
}

static void reduce_doubles(struct reduction *r, enum reduce reduce, const double *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = values[i];
        if (reduce == REDUCE_SUM || reduce == REDUCE_MEAN)
            r->real += x;
        else if (!r->begun || x != x || (reduce == REDUCE_MIN ? x < r->real : x > r->real))
            r->real = r->real != r->real ? r->real : x; /* NaN wins and stays */
        r->begun = true;
    }
}

void expression_reduce(struct reduction *reduction, enum reduce reduce, enum lane lane, const void *values, int64_t n)
{
    if (lane == LANE_INT)
        reduce_ints(reduction, reduce, values, n);
    else
        reduce_doubles(reduction, reduce, values, n);
}
