/* op_array.c - tensors of numbers among the words of an op. They come from files of others: nothing is believed before
   it was counted. */
#include "model/ops/op_array.h"

#include <math.h>
#include <string.h>

#include "base/text/settings.h"
#include "model/layers/layer_options.h"

struct array_keys {
    const struct yaml *value, *shape;
    const char *dtype;
};

static const struct setting settings[] = {
    {"value", SETTING_NODE, offsetof(struct array_keys, value), 0},
    {"dtype", SETTING_WORD, offsetof(struct array_keys, dtype), 0},
    {"shape", SETTING_NODE, offsetof(struct array_keys, shape), 0},
};

bool is_array(const struct yaml *node)
{
    return node->kind == YAML_LIST || (node->kind == YAML_MAP && yaml_get(node, "value"));
}

/* ---- type and shape ---- */

static plim_status type_said(enum type *out, const char *word, const char *job, const struct yaml *at,
                             plim_error *error)
{
    if (!type_from_name(out, word))
        return yaml_fail(error, PLIM_BAD_JOB, job, at, "dtype '%.60s' is not offered for constants", word);
    if (*out == TYPE_F64)
        *out = TYPE_F32;
    return PLIM_OK;
}

/* One more axis; false: that is too much, or nothing. */
static bool add_axis(struct shape *shape, int64_t *elements, int64_t extent)
{
    if (shape->rank == MOST_AXES || extent < 1 || extent > ARRAY_MOST / *elements)
        return false;
    shape->dim[shape->rank++] = extent;
    *elements *= extent;
    return true;
}

/* As its first elements say; the others are compared with it when they are read. */
static plim_status shape_of_list(struct array *out, const char *job, const struct yaml *list, plim_error *error)
{
    int64_t elements = 1;
    for (const struct yaml *at = list; at && at->kind == YAML_LIST; at = at->first)
        if (!add_axis(&out->shape, &elements, at->count))
            return yaml_fail(error, PLIM_BAD_JOB, job, list, "a constant has 1 to %lld elements, on at most %d axes",
                             (long long)ARRAY_MOST, MOST_AXES);
    return out->shape.rank || add_axis(&out->shape, &elements, 1) ? PLIM_OK : PLIM_INTERNAL;
}

static plim_status shape_said(struct array *out, const char *job, const struct yaml *list, plim_error *error)
{
    const struct setting whole = {"shape", SETTING_WHOLE, 0, 1};
    int64_t elements = 1, extent;
    for (const struct yaml *at = list->kind == YAML_LIST ? list->first : NULL; at; at = at->next) {
        TRY(setting_value(&extent, &whole, job, at, error));
        if (!add_axis(&out->shape, &elements, extent))
            return yaml_fail(error, PLIM_BAD_JOB, job, at,
                             "shape: a constant has at most %lld elements, on at most %d axes", (long long)ARRAY_MOST,
                             MOST_AXES);
    }
    return out->shape.rank ? PLIM_OK : yaml_fail(error, PLIM_BAD_JOB, job, list, "shape: expected a list of extents");
}

/* ---- elements ---- */

bool truth_of(double *value, const struct yaml *node)
{
    const char *word = node->kind == YAML_SCALAR && !node->is_null && !node->quoted ? node->text : "";
    *value = strcmp(word, "true") == 0;
    return *value || strcmp(word, "false") == 0;
}

/* What numbers are when nobody says: the widest of bool, int32 and float32. */
static enum type type_of_list(const struct yaml *node)
{
    enum type widest = TYPE_BOOL;
    int64_t whole;
    double truth;
    if (node->kind == YAML_SCALAR)
        return truth_of(&truth, node) ? TYPE_BOOL : setting_whole(&whole, node->text) ? TYPE_I32 : TYPE_F32;
    for (const struct yaml *at = node->first; at && widest != TYPE_F32; at = at->next) {
        enum type type = type_of_list(at);
        widest = type == TYPE_BOOL ? widest : type;
    }
    return widest;
}

static plim_status read_element(struct array *out, int64_t i, const char *job, const struct yaml *node,
                                plim_error *error)
{
    double value;
    int64_t whole;
    if (!truth_of(&value, node) && !(node->text && setting_number(&value, node->text)))
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "a constant is made of numbers");
    /* Numbers of more digits than a double has would become others. */
    if (!type_is_float(out->type) && setting_whole(&whole, node->text) &&
        (fabs(value) > 0x1p53 || whole != (int64_t)value))
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "%s is no %s that is computed with exactly", node->text,
                         type_name(out->type));
    element_set(out->data, out->type, i, value);
    double stored = element_get(out->data, out->type, i);
    if (type_is_float(out->type) ? !isfinite(stored) : stored != value || fabs(value) > 0x1p53)
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "%.17g is no %s", value, type_name(out->type));
    return PLIM_OK;
}

/* Elements from *at on; calls go as deep as there are axes. */
static plim_status read_list(struct array *out, int64_t *at, int axis, const char *job, const struct yaml *node,
                             plim_error *error)
{
    if (axis == out->shape.rank || node->kind == YAML_SCALAR) {
        if (node->kind != YAML_SCALAR || node->is_null || *at >= shape_count(&out->shape))
            return yaml_fail(error, PLIM_BAD_JOB, job, node, "the lists of a constant are of different lengths");
        return read_element(out, (*at)++, job, node, error);
    }
    if (node->kind != YAML_LIST || node->count != out->shape.dim[axis])
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "the lists of a constant are of different lengths");
    for (const struct yaml *child = node->first; child; child = child->next)
        TRY(read_list(out, at, axis + 1, job, child, error));
    return PLIM_OK;
}

/* ---- hexadecimal digits ---- */

static const char digits[] = "0123456789abcdef";

const char *array_text(struct arena *arena, const struct array *array)
{
    size_t bytes = (size_t)shape_count(&array->shape) * type_bytes(array->type);
    char *text = arena_array(arena, 2 * bytes + 1, 1);
    const unsigned char *data = array->data;
    for (size_t i = 0; text && i < bytes; i++) {
        text[2 * i] = digits[data[i] >> 4];
        text[2 * i + 1] = digits[data[i] & 15];
    }
    return text;
}

/* Asked before there is room for them. */
static plim_status count_digits(const struct array *array, const char *job, const struct yaml *node, plim_error *error)
{
    size_t wanted = 2 * (size_t)shape_count(&array->shape) * type_bytes(array->type);
    if (node->kind != YAML_SCALAR || strlen(node->text) != wanted)
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "value: %zu hexadecimal digits are wanted", wanted);
    return PLIM_OK;
}

static plim_status read_digits(struct array *out, const char *job, const struct yaml *node, plim_error *error)
{
    int64_t count = shape_count(&out->shape);
    size_t bytes = (size_t)count * type_bytes(out->type);
    unsigned char *data = out->data;
    for (size_t i = 0; i < 2 * bytes; i++) {
        const char *digit = strchr(digits, node->text[i]);
        if (!digit || !*digit)
            return yaml_fail(error, PLIM_BAD_JOB, job, node, "value: '%c' is no hexadecimal digit", node->text[i]);
        data[i / 2] = (unsigned char)(data[i / 2] << 4 | (digit - digits));
    }
    for (size_t i = 0; i < bytes && out->type == TYPE_BOOL; i++)
        if (data[i] > 1)
            return yaml_fail(error, PLIM_BAD_JOB, job, node, "value: a truth value is 00 or 01");
    for (int64_t i = 0; i < count && type_is_float(out->type); i++)
        if (!isfinite(element_get(data, out->type, i)))
            return yaml_fail(error, PLIM_BAD_JOB, job, node, "value: element %lld is not finite", (long long)i);
    return PLIM_OK;
}

/* ---- all of it ---- */

plim_status array_read(struct array *out, struct arena *arena, const char *job, const struct yaml *node,
                       plim_error *error)
{
    struct array_keys keys = {.value = node};
    int64_t at = 0;
    *out = (struct array){0};
    if (node->kind == YAML_MAP)
        TRY(settings_read(&keys, settings, COUNT(settings), job, node, error));
    if (keys.value->kind == YAML_MAP || (keys.value->kind == YAML_SCALAR && keys.value->is_null))
        return yaml_fail(error, PLIM_BAD_JOB, job, keys.value, "a constant is a number or a list of numbers");
    out->type = keys.dtype ? TYPE_F32 : type_of_list(keys.value);
    if (keys.dtype)
        TRY(type_said(&out->type, keys.dtype, job, node, error));
    TRY(keys.shape ? shape_said(out, job, keys.shape, error) : shape_of_list(out, job, keys.value, error));
    if (keys.shape)
        TRY(count_digits(out, job, keys.value, error));
    size_t elements = (size_t)shape_count(&out->shape);
    if (!(out->data = arena_array(arena, elements, type_bytes(out->type))))
        return arena_refused(arena, error);
    if (keys.shape)
        return read_digits(out, job, keys.value, error);
    TRY(read_list(out, &at, 0, job, keys.value, error));
    return at == (int64_t)elements
               ? PLIM_OK
               : yaml_fail(error, PLIM_BAD_JOB, job, node, "the lists of a constant are of different lengths");
}
