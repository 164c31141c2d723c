/* map_functions.c - the functions that `map:` knows by name, and what they share. */
#include "pipeline/maps/map_functions.h"

#include <string.h>

#include "base/text/text.h"
#include "pipeline/core/chunk.h"
#include "pipeline/core/stage.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- columns ---- */

int map_first_column(const struct spec *spec, const char *name)
{
    return *name ? spec_find(spec, name) : 0;
}

int map_last_column(const struct spec *spec, const char *name)
{
    return *name ? spec_find(spec, name) : spec->column_count - 1;
}

plim_status map_no_column(const struct spec *spec, const char *function, const char *name, plim_error *error)
{
    const char *names[MOST_COLUMNS];
    for (int c = 0; c < spec->column_count; c++)
        names[c] = spec->column[c].name;
    const char *near = text_nearest(name, names, (size_t)spec->column_count);
    fail(error, PLIM_BAD_JOB, "%s: there is no column '%s'", function, name);
    return near ? hint(error, PLIM_BAD_JOB, "did you mean '%s'?", near) : PLIM_BAD_JOB;
}

plim_status map_need_numbers(const struct column *column, const char *function, plim_error *error)
{
    if (column->type != TYPE_STRING)
        return PLIM_OK;
    return fail(error, PLIM_BAD_JOB, "%s: column '%s' holds strings, not numbers", function, column->name);
}

/* ---- rows ---- */

const void *map_values(int64_t *count, const struct map_call *call, int c, int64_t row)
{
    const struct column *column = &call->from_spec->column[c];
    const uint8_t *at = (const uint8_t *)call->from[c] + (uint64_t)row * call->from_stride[c];
    *count = value_count(column, at);
    return column_is_variable(column) ? ((const struct cell *)(const void *)at)->data : at;
}

void *map_values_to(const struct map_call *call, int c, int64_t row)
{
    const struct column *from = &call->from_spec->column[c], *to = &call->to_spec->column[c];
    const uint8_t *source = (const uint8_t *)call->from[c] + (uint64_t)row * call->from_stride[c];
    uint8_t *at = (uint8_t *)call->to[c] + (uint64_t)row * call->to_stride[c];
    if (!column_is_variable(to))
        return at;
    struct cell cell = *(const struct cell *)(const void *)source;
    cell.data = room_take(call->room, (uint64_t)value_count(from, source) * type_bytes(to->type));
    if (cell.data)
        *(struct cell *)(void *)at = cell;
    return cell.data;
}

uint64_t map_values_room(const struct column *to)
{
    uint64_t values = to->shape.rank >= 3 ? MAP_VALUES : MAP_SEQUENCE;
    return column_is_variable(to) ? values * type_bytes(to->type) + ROOM_ALIGNMENT : 0;
}

/* ---- by name ---- */

static const struct map_function *const functions[] = {
#define MAP_FUNCTION(name) &map_##name,
#include "pipeline/maps/map_functions.def"
#undef MAP_FUNCTION
};

static const char *const later_functions[] = {
    "flip",
    "rotate",
    "parse_example",
    "parse_single_example",
    "random_height",
    "random_width",
    "random_hue",
    "random_saturation",
    "random_jpeg_quality",
    "adjust_hue",
    "adjust_gamma",
    "adjust_saturation",
    "adjust_brightness",
    "adjust_contrast",
    "rgb_to_grayscale",
    "random_shear",
    "random_erasing",
    "encode_jpeg",
    "encode_png",
};

const struct map_function *map_function_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        if (strcmp(functions[i]->name, name) == 0)
            return functions[i];
    return NULL;
}

const char *map_function_nearest(const char *name)
{
    const char *names[COUNT(functions)];
    for (size_t i = 0; i < COUNT(functions); i++)
        names[i] = functions[i]->name;
    return text_nearest(name, names, COUNT(names));
}

plim_status map_function_unknown(const char *name, const char *where, plim_error *error)
{
    const char *names[COUNT(functions)];
    for (size_t i = 0; i < COUNT(functions); i++)
        names[i] = functions[i]->name;
    return stage_unknown("function", name, names, COUNT(names), later_functions, COUNT(later_functions), where, error);
}

plim_status map_function_read(union map_options *options, const struct map_function *function, const char *job,
                              const struct yaml *value, plim_error *error)
{
    memset(options, 0, sizeof *options);
    if (function->options_bytes > sizeof *options)
        return fail(error, PLIM_INTERNAL, "%s: its options are too large", function->name);
    if (value && value->is_null)
        value = NULL;
    if (!value && !function->bare)
        return fail(error, PLIM_BAD_JOB, "%s: its value is missing", function->name);
    if (!function->read && value)
        return fail(error, PLIM_BAD_JOB, "%s: takes no value", function->name);
    return function->read ? function->read(options, job, value, error) : PLIM_OK;
}
