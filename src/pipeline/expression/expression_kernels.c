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
/* Names end in their lane: q for bool, i, f, d, s. */
#define UNARY(name, result, type, formula)  LOOP(name, result, type, type, type, formula)
#define BINARY(name, result, type, formula) LOOP(name, result, type, type, type, formula)
#define FLOATS(name, formula_f, formula_d)                                                                             \
    UNARY(name##_f, float, float, formula_f)                                                                           \
    UNARY(name##_d, double, double, formula_d)
#define NUMBERS(name, formula_i, formula)                                                                              \
    BINARY(name##_i, int64_t, int64_t, formula_i)                                                                      \
    BINARY(name##_f, float, float, formula)                                                                            \
    BINARY(name##_d, double, double, formula)
#define COMPARES(name, formula)                                                                                        \
    BINARY(name##_q, uint8_t, uint8_t, formula)                                                                        \
    BINARY(name##_i, uint8_t, int64_t, formula)                                                                        \
    BINARY(name##_f, uint8_t, float, formula)                                                                          \
    BINARY(name##_d, uint8_t, double, formula)

NUMBERS(add, (uint64_t)a[i] + (uint64_t)b[i], a[i] + b[i])
NUMBERS(subtract, (uint64_t)a[i] - (uint64_t)b[i], a[i] - b[i])
NUMBERS(multiply, (uint64_t)a[i] * (uint64_t)b[i], a[i] * b[i])
BINARY(divide_f, float, float, a[i] / b[i])
BINARY(divide_d, double, double, a[i] / b[i])

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

BINARY(floor_divide_i, int64_t, int64_t, floor_divide(a[i], b[i]))
BINARY(floor_divide_f, float, float, floorf(a[i] / b[i]))
BINARY(floor_divide_d, double, double, floor(a[i] / b[i]))
BINARY(modulo_i, int64_t, int64_t, modulo(a[i], b[i]))
BINARY(modulo_f, float, float, modulo_float(a[i], b[i]))
BINARY(modulo_d, double, double, modulo_double(a[i], b[i]))
BINARY(power_i, int64_t, int64_t, power(a[i], b[i]))
BINARY(power_f, float, float, powf(a[i], b[i]))
BINARY(power_d, double, double, pow(a[i], b[i]))

COMPARES(equal, a[i] == b[i])
COMPARES(unequal, a[i] != b[i])
COMPARES(less, a[i] < b[i])
COMPARES(less_equal, a[i] <= b[i])

static inline bool same_text(text a, text b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}
LOOP(equal_s, uint8_t, text, text, text, same_text(a[i], b[i]))
LOOP(unequal_s, uint8_t, text, text, text, !same_text(a[i], b[i]))

BINARY(and_q, uint8_t, uint8_t, a[i] & b[i])
BINARY(or_q, uint8_t, uint8_t, a[i] | b[i])
UNARY(not_q, uint8_t, uint8_t, !a[i])

NUMBERS(negate, 0 - (uint64_t)a[i], -a[i])
UNARY(abs_i, int64_t, int64_t, a[i] < 0 ? 0 - (uint64_t)a[i] : (uint64_t)a[i])
FLOATS(abs, fabsf(a[i]), fabs(a[i]))
FLOATS(sqrt, sqrtf(a[i]), sqrt(a[i]))
FLOATS(exp, expf(a[i]), exp(a[i]))
FLOATS(log, logf(a[i]), log(a[i]))
FLOATS(log1p, log1pf(a[i]), log1p(a[i]))
FLOATS(sin, sinf(a[i]), sin(a[i]))
FLOATS(cos, cosf(a[i]), cos(a[i]))
FLOATS(tanh, tanhf(a[i]), tanh(a[i]))
FLOATS(floor, floorf(a[i]), floor(a[i]))
FLOATS(ceil, ceilf(a[i]), ceil(a[i]))
FLOATS(round, rintf(a[i]), rint(a[i]))
/* NaN stays NaN. */
NUMBERS(sign, (a[i] > 0) - (a[i] < 0), a[i] != a[i] ? a[i] : (a[i] > 0) - (a[i] < 0))
UNARY(isnan_f, uint8_t, float, a[i] != a[i])
UNARY(isnan_d, uint8_t, double, a[i] != a[i])
/* NaN wins on either side, as in numpy. */
NUMBERS(minimum, a[i] < b[i] ? a[i] : b[i], a[i] < b[i] || a[i] != a[i] ? a[i] : b[i])
NUMBERS(maximum, a[i] > b[i] ? a[i] : b[i], a[i] > b[i] || a[i] != a[i] ? a[i] : b[i])

LOOP(where_q, uint8_t, uint8_t, uint8_t, uint8_t, a[i] ? b[i] : c[i])
LOOP(where_i, int64_t, uint8_t, int64_t, int64_t, a[i] ? b[i] : c[i])
LOOP(where_f, float, uint8_t, float, float, a[i] ? b[i] : c[i])
LOOP(where_d, double, uint8_t, double, double, a[i] ? b[i] : c[i])

#define Q [LANE_BOOL]
#define I [LANE_INT]
#define F [LANE_FLOAT]
#define D [LANE_DOUBLE]
#define S [LANE_STRING]
#define OF_NUMBERS(name)                                                                                               \
    {                                                                                                                  \
        I = name##_i, F = name##_f, D = name##_d                                                                       \
    }
#define OF_FLOATS(name)                                                                                                \
    {                                                                                                                  \
        F = name##_f, D = name##_d                                                                                     \
    }
#define OF_ANY(name)                                                                                                   \
    {                                                                                                                  \
        Q = name##_q, I = name##_i, F = name##_f, D = name##_d                                                         \
    }

static expression_kernel *const kernels[OPERATION_COUNT][LANE_COUNT] = {
    [OPERATION_ADD] = OF_NUMBERS(add),
    [OPERATION_SUBTRACT] = OF_NUMBERS(subtract),
    [OPERATION_MULTIPLY] = OF_NUMBERS(multiply),
    [OPERATION_DIVIDE] = OF_FLOATS(divide),
    [OPERATION_FLOOR_DIVIDE] = OF_NUMBERS(floor_divide),
    [OPERATION_MODULO] = OF_NUMBERS(modulo),
    [OPERATION_POWER] = OF_NUMBERS(power),
    [OPERATION_EQUAL] = {Q = equal_q, I = equal_i, F = equal_f, D = equal_d, S = equal_s},
    [OPERATION_UNEQUAL] = {Q = unequal_q, I = unequal_i, F = unequal_f, D = unequal_d, S = unequal_s},
    [OPERATION_LESS] = OF_ANY(less),
    [OPERATION_LESS_EQUAL] = OF_ANY(less_equal),
    [OPERATION_AND] = {Q = and_q},
    [OPERATION_OR] = {Q = or_q},
    [OPERATION_NOT] = {Q = not_q},
    [OPERATION_NEGATE] = OF_NUMBERS(negate),
    [OPERATION_ABS] = OF_NUMBERS(abs),
    [OPERATION_SQRT] = OF_FLOATS(sqrt),
    [OPERATION_EXP] = OF_FLOATS(exp),
    [OPERATION_LOG] = OF_FLOATS(log),
    [OPERATION_LOG1P] = OF_FLOATS(log1p),
    [OPERATION_SIN] = OF_FLOATS(sin),
    [OPERATION_COS] = OF_FLOATS(cos),
    [OPERATION_TANH] = OF_FLOATS(tanh),
    [OPERATION_FLOOR] = OF_FLOATS(floor),
    [OPERATION_CEIL] = OF_FLOATS(ceil),
    [OPERATION_ROUND] = OF_FLOATS(round),
    [OPERATION_SIGN] = OF_NUMBERS(sign),
    [OPERATION_ISNAN] = OF_FLOATS(isnan),
    [OPERATION_MINIMUM] = OF_NUMBERS(minimum),
    [OPERATION_MAXIMUM] = OF_NUMBERS(maximum),
    [OPERATION_WHERE] = OF_ANY(where),
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

UNARY(int_of_bool, int64_t, uint8_t, a[i])
UNARY(float_of_bool, float, uint8_t, a[i])
UNARY(double_of_bool, double, uint8_t, a[i])
UNARY(bool_of_int, uint8_t, int64_t, a[i] != 0)
UNARY(float_of_int, float, int64_t, a[i])
UNARY(double_of_int, double, int64_t, a[i])
UNARY(bool_of_float, uint8_t, float, a[i] != 0)
UNARY(int_of_float, int64_t, float, whole((double)a[i], -0x1p63, 0x1p63))
UNARY(double_of_float, double, float, a[i])
UNARY(bool_of_double, uint8_t, double, a[i] != 0)
UNARY(int_of_double, int64_t, double, whole(a[i], -0x1p63, 0x1p63))
UNARY(float_of_double, float, double, a[i])

expression_kernel *expression_convert(enum lane to, enum lane from)
{
    static expression_kernel *const converts[LANE_COUNT][LANE_COUNT] = {
        [LANE_BOOL] = {I = bool_of_int, F = bool_of_float, D = bool_of_double},
        [LANE_INT] = {Q = int_of_bool, F = int_of_float, D = int_of_double},
        [LANE_FLOAT] = {Q = float_of_bool, I = float_of_int, D = float_of_double},
        [LANE_DOUBLE] = {Q = double_of_bool, I = double_of_int, F = double_of_float},
    };
    return converts[to][from];
}

static inline float by_way_of(enum type type, float value)
{
    uint16_t bits;
    element_set(&bits, type, 0, (double)value);
    return (float)element_get(&bits, type, 0);
}

UNARY(narrow_i8, int64_t, int64_t, (int8_t)a[i])
UNARY(narrow_i16, int64_t, int64_t, (int16_t)a[i])
UNARY(narrow_i32, int64_t, int64_t, (int32_t)a[i])
UNARY(narrow_u8, int64_t, int64_t, (uint8_t)a[i])
UNARY(narrow_f16, float, float, by_way_of(TYPE_F16, a[i]))
UNARY(narrow_bf16, float, float, by_way_of(TYPE_BF16, a[i]))

expression_kernel *expression_narrow(enum type type)
{
    static expression_kernel *const narrows[TYPE_COUNT + 1] = {
        [TYPE_I8] = narrow_i8, [TYPE_I16] = narrow_i16, [TYPE_I32] = narrow_i32,
        [TYPE_U8] = narrow_u8, [TYPE_F16] = narrow_f16, [TYPE_BF16] = narrow_bf16,
    };
    return narrows[type];
}

enum lane lane_of(enum type type)
{
    static const enum lane lanes[TYPE_COUNT + 1] = {
        [TYPE_BOOL] = LANE_BOOL, [TYPE_I8] = LANE_INT,     [TYPE_I16] = LANE_INT,       [TYPE_I32] = LANE_INT,
        [TYPE_I64] = LANE_INT,   [TYPE_U8] = LANE_INT,     [TYPE_F16] = LANE_FLOAT,     [TYPE_BF16] = LANE_FLOAT,
        [TYPE_F32] = LANE_FLOAT, [TYPE_F64] = LANE_DOUBLE, [TYPE_STRING] = LANE_STRING,
    };
    return lanes[type];
}

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

static inline uint16_t small_of_float(enum type type, float value)
{
    uint16_t bits;
    element_set(&bits, type, 0, (double)value);
    return bits;
}

LOAD(load_bool, uint8_t, uint8_t, x != 0)
LOAD(load_i8, int64_t, int8_t, x)
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

expression_load *expression_load_of(enum type type, enum lane lane)
{
    static expression_load *const loads[TYPE_COUNT + 1] = {
        [TYPE_BOOL] = load_bool, [TYPE_I8] = load_i8,   [TYPE_I16] = load_i16,       [TYPE_I32] = load_i32,
        [TYPE_I64] = load_i64,   [TYPE_U8] = load_u8,   [TYPE_F16] = load_f16,       [TYPE_BF16] = load_bf16,
        [TYPE_F32] = load_f32,   [TYPE_F64] = load_f64, [TYPE_STRING] = load_string,
    };
    static expression_load *const floats[TYPE_COUNT + 1] = {
        [TYPE_I8] = float_i8, [TYPE_I16] = float_i16, [TYPE_I32] = float_i32, [TYPE_U8] = float_u8};
    return lane == lane_of(type) ? loads[type] : lane == LANE_FLOAT ? floats[type] : NULL;
}

expression_store *expression_store_of(enum type type)
{
    static expression_store *const stores[TYPE_COUNT + 1] = {
        [TYPE_BOOL] = store_bool, [TYPE_I8] = store_i8,   [TYPE_I16] = store_i16,       [TYPE_I32] = store_i32,
        [TYPE_I64] = store_i64,   [TYPE_U8] = store_u8,   [TYPE_F16] = store_f16,       [TYPE_BF16] = store_bf16,
        [TYPE_F32] = store_f32,   [TYPE_F64] = store_f64, [TYPE_STRING] = store_string,
    };
    return stores[type];
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
