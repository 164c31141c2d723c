/* map_image.c - what the functions over images share: rows as pictures, results in their place, factors. */
#include "pipeline/maps/images/map_image.h"

#include <string.h>

#include "base/numbers/random.h"

plim_status map_need_image(const struct column *column, const char *function, bool any_type, plim_error *error)
{
    char shape[64];
    shape_text(shape, sizeof shape, &column->shape, false);
    if (column->shape.rank != 3)
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s, not (height, width, channels)", function, column->name,
                    shape);
    if (column->type == TYPE_STRING || (!any_type && column->type != TYPE_U8 && column->type != TYPE_F32)) {
        fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s; images are uint8 or float32", function, column->name,
             type_name(column->type));
        return hint(error, PLIM_BAD_JOB, "cast: float32");
    }
    return PLIM_OK;
}

plim_status map_need_size(const struct column *column, const char *function, plim_error *error)
{
    const int64_t *is = column->shape.dim;
    const struct picture picture = {column->type, is[0], is[1], is[2]};
    char shape[64];
    shape_text(shape, sizeof shape, &column->shape, false);
    if (!picture_fits(&picture))
        return fail(error, PLIM_BAD_JOB, "%s: images of %s (column '%s') cannot be resized or cropped", function, shape,
                    column->name);
    return PLIM_OK;
}

/* ---- rows ---- */

struct picture map_picture(const struct map_row *row)
{
    return (struct picture){row->from->type, row->shape.dim[0], row->shape.dim[1], row->shape.dim[2]};
}

void *map_image_result(const struct map_row *row, int64_t height, int64_t width)
{
    const struct shape shape = shape_of(3, (int64_t[]){height, width, row->shape.dim[2]});
    return map_result(row, &shape);
}

void *map_image_own(const struct map_row *row)
{
    const struct value_buffer *buffer = row->call->values;
    const uint8_t *at = row->values;
    if (!column_is_variable(row->to) || (buffer && at >= buffer->bytes && at < buffer->bytes + buffer->used))
        return (void *)(uintptr_t)at; /* in place: the column itself, or what a function before us made */
    void *copy = map_result(row, &row->shape);
    if (copy)
        memcpy(copy, at, (size_t)row->count * type_bytes(row->from->type));
    return copy;
}

float *map_image_floats(const struct map_row *row)
{
    const uint8_t *pixels = row->values;
    if (row->from->type == TYPE_F32)
        return map_image_own(row);
    float *to = map_result(row, &row->shape);
    for (int64_t i = 0; to && i < row->count; i++)
        to[i] = pixels[i];
    return to;
}

float factor_draw(const struct factor *factor, uint32_t bits)
{
    float lower = (float)factor->lower, upper = (float)factor->upper;
    return lower + (upper - lower) * random_unit(bits);
}

/* ---- job files ---- */

static plim_status bad_list(const char *what, int count, const char *job, const struct yaml *value, plim_error *error)
{
    return yaml_fail(error, PLIM_BAD_JOB, job, value, "%s: expected a list of %d numbers", what, count);
}

plim_status map_read_sizes(int64_t *out, int count, int64_t least, const char *what, const char *job,
                           const struct yaml *value, plim_error *error)
{
    const struct setting setting = {what, SETTING_WHOLE, 0, least};
    if (value->kind != YAML_LIST || value->count != count)
        return bad_list(what, count, job, value, error);
    for (const struct yaml *item = value->first; item; item = item->next)
        TRY(setting_value(out++, &setting, job, item, error));
    return PLIM_OK;
}

plim_status map_read_factor(struct factor *out, const char *what, const char *job, const struct yaml *value,
                            plim_error *error)
{
    const struct setting setting = {what, SETTING_NUMBER, 0, 0};
    struct factor factor;
    if (value->kind == YAML_SCALAR) {
        TRY(setting_value(&factor.upper, &setting, job, value, error));
        factor.upper = factor.upper < 0 ? -factor.upper : factor.upper;
        *out = (struct factor){-factor.upper, factor.upper};
        return PLIM_OK;
    }
    if (value->kind != YAML_LIST || value->count != 2)
        return bad_list(what, 2, job, value, error);
    TRY(setting_value(&factor.lower, &setting, job, value->first, error));
    TRY(setting_value(&factor.upper, &setting, job, value->first->next, error));
    *out = factor.lower <= factor.upper ? factor : (struct factor){factor.upper, factor.lower};
    return PLIM_OK;
}
