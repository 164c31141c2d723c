/* tensor.c - element types, shapes, and one element at a time. */
#include "graph/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"

struct type_facts {
    size_t bytes;
    const char *name, *safetensors;
};

static const struct type_facts facts[TYPE_COUNT + 1] = {
#define TYPE(name, bytes, keras, safetensors) [TYPE_##name] = {bytes, keras, safetensors},
#include "graph/types.def"
#undef TYPE
    [TYPE_STRING] = {sizeof(struct string), "string", "string"},
};

size_t type_bytes(enum type type)
{
    return facts[type].bytes;
}

const char *type_name(enum type type)
{
    return facts[type].name;
}

const char *type_safetensors_name(enum type type)
{
    return facts[type].safetensors;
}

bool type_from_name(enum type *out, const char *name)
{
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (strcmp(name, facts[i].name) == 0 || strcmp(name, facts[i].safetensors) == 0) {
            *out = (enum type)i;
            return true;
        }
    }
    return false;
}

bool type_of_column(enum type *out, const char *name)
{
    if (strcmp(name, facts[TYPE_STRING].name) != 0)
        return type_from_name(out, name);
    *out = TYPE_STRING;
    return true;
}

bool type_is_float(enum type type)
{
    return type == TYPE_F32 || type == TYPE_F64 || type == TYPE_F16 || type == TYPE_BF16;
}

struct shape shape_of(int rank, const int64_t *dim)
{
    struct shape shape = {.rank = rank};
    for (int i = 0; i < rank && i < MOST_AXES; i++)
        shape.dim[i] = dim[i];
    return shape;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i])
            return false;
    }
    return true;
}

int64_t shape_count(const struct shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

int64_t shape_row(const struct shape *shape)
{
    int64_t count = 1;
    for (int i = 1; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

/* Each partial product is checked, and a zero comes last: (2^62, 2^62, 0) is
   refused, so that a row of it still fits. */
bool shape_bytes(uint64_t *bytes, const struct shape *shape, enum type type)
{
    uint64_t total = type_bytes(type);
    bool empty = false;
    if (shape->rank < 0 || shape->rank > MOST_AXES)
        return false;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 0)
            return false;
        if (shape->dim[i] == 0)
            empty = true;
        else if (!mul_u64(&total, total, (uint64_t)shape->dim[i]) || total > INT64_MAX)
            return false;
    }
    *bytes = empty ? 0 : total;
    return true;
}

void shape_text(char *out, size_t capacity, const struct shape *shape, bool with_none)
{
    size_t at = 0;
    if (capacity == 0)
        return;
    at += (size_t)snprintf(out, capacity, "(");
    for (int i = 0; i < shape->rank && i < MOST_AXES && at < capacity; i++) {
        const char *comma = i == 0 ? "" : ", ";
        if (i == 0 && with_none)
            at += (size_t)snprintf(out + at, capacity - at, "None");
        else
            at += (size_t)snprintf(out + at, capacity - at, "%s%lld", comma, (long long)shape->dim[i]);
    }
    /* A tuple of one, as Python writes it. */
    if (at < capacity)
        snprintf(out + at, capacity - at, shape->rank == 1 ? ",)" : ")");
}

/* The small floats: a sign, then exponent bits with a bias of half their
   range, then mantissa bits. */
struct small_float {
    int exponent_bits, mantissa_bits;
};
static const struct small_float f16 = {5, 10}, bf16 = {8, 7};

static double small_get(uint16_t bits, struct small_float format)
{
    int most = (1 << format.exponent_bits) - 1;
    int bias = most >> 1;
    int exponent = bits >> format.mantissa_bits & most;
    int mantissa = bits & ((1 << format.mantissa_bits) - 1);
    double value;
    if (exponent == most) {
        value = mantissa ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(mantissa, 1 - bias - format.mantissa_bits);
    } else { /* by its bits: references read every element many times */
        uint64_t wide = (uint64_t)(exponent - bias + 1023) << 52 | (uint64_t)mantissa << (52 - format.mantissa_bits);
        memcpy(&value, &wide, sizeof(value));
    }
    return bits & 0x8000 ? -value : value;
}

/* Rounds to nearest, ties to even, once: a float in between would round
   twice. */
static uint16_t small_set(double value, struct small_float format)
{
    int most = (1 << format.exponent_bits) - 1;
    int bias = most >> 1;
    int exponent;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    uint16_t infinite = (uint16_t)(sign | most << format.mantissa_bits);
    if (isnan(value))
        return infinite | (uint16_t)(1 << (format.mantissa_bits - 1));
    if (isinf(value))
        return infinite;
    frexp(size, &exponent);
    exponent = exponent - 1 < 1 - bias || size == 0 ? 1 - bias : exponent - 1;
    if (exponent > bias)
        return infinite;
    /* Steps of the last bit, implicit one included. A carry into the next
       exponent (or from subnormal to normal) is what adding them does. */
    int steps = (int)rint(ldexp(size, format.mantissa_bits - exponent));
    int result = ((exponent + bias - 1) << format.mantissa_bits) + steps;
    return (uint16_t)(sign | result);
}

double element_get(const void *data, enum type type, int64_t i)
{
    switch (type) {
    case TYPE_F32:
        return ((const float *)data)[i];
    case TYPE_F64:
        return ((const double *)data)[i];
    case TYPE_F16:
        return small_get(((const uint16_t *)data)[i], f16);
    case TYPE_BF16:
        return small_get(((const uint16_t *)data)[i], bf16);
    case TYPE_I8:
        return ((const int8_t *)data)[i];
    case TYPE_I16:
        return ((const int16_t *)data)[i];
    case TYPE_I32:
        return ((const int32_t *)data)[i];
    case TYPE_I64:
        return (double)((const int64_t *)data)[i];
    case TYPE_U8:
    case TYPE_BOOL:
        return ((const uint8_t *)data)[i];
    case TYPE_STRING:
        break;
    }
    return (double)NAN;
}

/* A whole number in [low, high], towards zero; NaN is 0. Out of range is not
   left to the hardware. */
static int64_t whole(double value, double low, double high)
{
    if (isnan(value))
        return 0;
    if (value <= low)
        return (int64_t)low;
    /* 2^63 is a double but not an int64_t. */
    if (value >= high)
        return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)value;
}

void element_set(void *data, enum type type, int64_t i, double value)
{
    switch (type) {
    case TYPE_F32:
        ((float *)data)[i] = (float)value;
        break;
    case TYPE_F64:
        ((double *)data)[i] = value;
        break;
    case TYPE_F16:
        ((uint16_t *)data)[i] = small_set(value, f16);
        break;
    case TYPE_BF16:
        ((uint16_t *)data)[i] = small_set(value, bf16);
        break;
    case TYPE_I8:
        ((int8_t *)data)[i] = (int8_t)whole(value, INT8_MIN, INT8_MAX);
        break;
    case TYPE_I16:
        ((int16_t *)data)[i] = (int16_t)whole(value, INT16_MIN, INT16_MAX);
        break;
    case TYPE_I32:
        ((int32_t *)data)[i] = (int32_t)whole(value, INT32_MIN, INT32_MAX);
        break;
    case TYPE_I64:
        ((int64_t *)data)[i] = whole(value, -0x1p63, 0x1p63);
        break;
    case TYPE_U8:
        ((uint8_t *)data)[i] = (uint8_t)whole(value, 0, UINT8_MAX);
        break;
    case TYPE_BOOL:
        ((uint8_t *)data)[i] = value != 0;
        break;
    case TYPE_STRING:
        break;
    }
}
