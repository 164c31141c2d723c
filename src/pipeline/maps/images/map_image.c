/* map_image.c - what the functions over images share: rows as pictures, results in their place, factors. */
#include "pipeline/maps/images/map_image.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/random.h"
#include "base/text/settings.h"
#include "pipeline/core/chunk.h"

plim_status map_image_column(int *out, const struct spec *spec, const char *function, const char *name, bool any_type,
                             plim_error *error)
{
    char shape[64];
    int c = map_first_column(spec, name);
    if (c < 0)
        return map_no_column(spec, function, name, error);
    const struct column *column = &spec->column[c];
    shape_text(shape, sizeof shape, &column->shape, false);
    if (column->shape.rank != 3)
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s, not (height, width, channels)", function, column->name,
                    shape);
    if (column->type == TYPE_STRING || (!any_type && column->type != TYPE_U8 && column->type != TYPE_F32)) {
        fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s; images are uint8 or float32", function, column->name,
             type_name(column->type));
        return hint(error, PLIM_BAD_JOB, "cast: float32");
    }
    *out = c;
    return PLIM_OK;
}

/* ---- rows ---- */

const void *map_image_from(struct picture *out, const struct map_call *call, int c, int64_t row)
{
    const struct column *column = &call->from_spec->column[c];
    const uint8_t *at = (const uint8_t *)call->from[c] + (uint64_t)row * call->from_stride[c];
    struct shape shape = value_shape(column, at);
    *out = (struct picture){column->type, shape.dim[0], shape.dim[1], shape.dim[2]};
    return column_is_variable(column) ? ((const struct cell *)at)->data : at;
}

uint64_t picture_values(const struct picture *picture)
{
    return (uint64_t)picture->height * (uint64_t)picture->width * (uint64_t)picture->channels;
}

void *map_image_to(const struct map_call *call, int c, int64_t row, const struct picture *picture)
{
    uint8_t *at = (uint8_t *)call->to[c] + (uint64_t)row * call->to_stride[c];
    if (!column_is_variable(&call->to_spec->column[c]))
        return at;
    void *data = room_take(call->room, picture_values(picture) * type_bytes(picture->type));
    if (data)
        *(struct cell *)at = (struct cell){data, {picture->height, picture->width, picture->channels}};
    return data;
}

void *map_image_own(struct picture *out, const struct map_call *call, int c, int64_t row)
{
    const void *pixels = map_image_from(out, call, c, row);
    const uint8_t *at = pixels, *room = call->room ? call->room->bytes : NULL;
    if (!column_is_variable(&call->to_spec->column[c]) || (room && at >= room && at < room + call->room->used))
        return (void *)(uintptr_t)pixels; /* in place: the column itself, or what a function before us made */
    void *copy = map_image_to(call, c, row, out);
    if (copy)
        memcpy(copy, pixels, picture_values(out) * type_bytes(out->type));
    return copy;
}

float *map_image_floats(struct picture *out, const struct map_call *call, int c, int64_t row)
{
    const uint8_t *pixels = map_image_from(out, call, c, row);
    if (out->type == TYPE_F32)
        return map_image_own(out, call, c, row);
    out->type = TYPE_F32;
    float *to = map_image_to(call, c, row, out);
    for (uint64_t i = 0, count = picture_values(out); to && i < count; i++)
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
    char where[256];
    yaml_place(where, job, value);
    return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a list of %d numbers", what, count);
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
