/* map_functions.c - the functions that `map:` knows by name, and what they share. */
#include "pipeline/maps/map_functions.h"

#include <string.h>

#include "base/numbers/count.h"
#include "base/text/text.h"
#include "pipeline/core/chunk.h"
#include "pipeline/core/stage.h"

/* ---- columns ---- */

int map_column(const struct spec *spec, const struct map_function *function, const void *options)
{
    const char *name = options;
    return *name ? spec_find(spec, name) : function->last_column ? spec->column_count - 1 : 0;
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

plim_status map_need_text(const struct column *column, const char *function, plim_error *error)
{
    char shape[64];
    if (column->type == TYPE_STRING && column->shape.rank == 0)
        return PLIM_OK;
    shape_text(shape, sizeof shape, &column->shape, false);
    fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s %s, not one text", function, column->name, type_name(column->type),
         column->shape.rank ? shape : "");
    return column->type == TYPE_STRING ? hint(error, PLIM_BAD_JOB, "put map before batch") : PLIM_BAD_JOB;
}

/* ---- rows ---- */

static plim_status run_rows(const struct map_call *call, plim_error *error)
{
    int c = map_column(call->from_spec, call->function, call->options);
    struct map_row row = {
        .call = call, .options = call->options, .from = &call->from_spec->column[c], .to = &call->to_spec->column[c]};
    bool cells = column_is_variable(row.from);
    row.shape = row.from->shape;
    row.count = cells ? 0 : shape_count(&row.shape);
    for (; row.index < call->count; row.index++) {
        const uint8_t *at = (const uint8_t *)call->from[c] + (uint64_t)row.index * call->from_stride[c];
        row.values = cells ? ((const struct cell *)(const void *)at)->data : at;
        row.to_row = (uint8_t *)call->to[c] + (uint64_t)row.index * call->to_stride[c];
        if (cells) {
            row.shape = value_shape(row.from, at);
            row.count = shape_count(&row.shape);
        }
        TRY(call->function->run_row(&row, error));
    }
    return PLIM_OK;
}

plim_status map_run(const struct map_call *call, plim_error *error)
{
    return call->function->run ? call->function->run(call, error) : run_rows(call, error);
}

/* Extents that the column leaves open are the row's own. */
void *map_result(const struct map_row *row, const struct shape *shape)
{
    struct cell cell = {0};
    struct shape whole = row->to->shape;
    uint64_t bytes;
    if (!column_is_variable(row->to))
        return row->to_row;
    for (int i = 0; i < whole.rank; i++)
        cell.dim[i] = whole.dim[i] = whole.dim[i] < 0 ? shape->dim[i] : whole.dim[i];
    if (!shape_bytes(&bytes, &whole, row->to->type))
        bytes = UINT64_MAX;
    cell.data = value_buffer_take(row->call->values, bytes);
    if (cell.data)
        *(struct cell *)(void *)row->to_row = cell;
    return cell.data;
}

uint64_t map_column_value_bytes(const struct column *to)
{
    uint64_t values = to->shape.rank >= 3 ? MAP_VALUES : MAP_SEQUENCE;
    return column_is_variable(to) ? values * type_bytes(to->type) + VALUE_ALIGNMENT : 0;
}

uint64_t map_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    const char *name = options;
    (void)from;
    return map_column_value_bytes(&to->column[*name ? spec_find(to, name) : 0]);
}

void map_random(uint32_t random[4], const struct map_row *row)
{
    random_block(random, row->call->seed, row->call->epoch, (uint64_t)row->call->index[row->index]);
}

plim_status map_reword(const struct map_call *call, int64_t row, plim_status status, plim_error *error)
{
    return error ? reword(error, status, "element %lld: %s", map_element(call, row), error->message) : status;
}

plim_status map_bad(const struct map_call *call, int64_t row, plim_status status, plim_error *error)
{
    return status == PLIM_BAD_DATA ? map_reword(call, row, status, error) : status;
}

/* ---- options in job files ---- */

plim_status map_settings_read(void *out, const struct map_settings *settings, const char *job, const struct yaml *value,
                              plim_error *error)
{
    struct setting first = settings->table[0];
    if (value->kind == YAML_MAP || (value->kind == YAML_LIST && first.kind != SETTING_NODE))
        return settings_read(out, settings->table, settings->count, job, value, error);
    first.word = settings->alone;
    return setting_value((char *)out + first.offset, &first, job, value, error);
}

plim_status map_shape_read(struct shape *out, const char *what, const char *job, const struct yaml *value,
                           plim_error *error)
{
    const struct setting extent = {what, SETTING_WHOLE, 0, -1};
    char where[256];
    int64_t count = 0;
    *out = (struct shape){0};
    yaml_place(where, job, value);
    if (value->kind == YAML_MAP || value->count > MOST_AXES - 1)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected at most %d whole numbers", what, MOST_AXES - 1);
    const struct yaml *item = value->kind == YAML_LIST ? value->first : value;
    for (; item; item = value->kind == YAML_LIST ? item->next : NULL) {
        TRY(setting_value(&count, &extent, job, item, error));
        if (count == 0)
            return fail_at(error, PLIM_BAD_JOB, where, "%s: an extent of 0", what);
        out->dim[out->rank++] = count;
    }
    return PLIM_OK;
}

plim_status map_fixed_shape_read(struct shape *out, const char *job, const struct yaml *list, plim_error *error)
{
    const struct setting extent = {"shape", SETTING_WHOLE, 0, 1};
    uint64_t bytes;
    bool fits = list->kind == YAML_LIST && list->count < MOST_AXES;
    for (const struct yaml *item = fits ? list->first : NULL; item; item = item->next)
        TRY(setting_value(&out->dim[out->rank++], &extent, job, item, error));
    if (fits && shape_bytes(&bytes, out, TYPE_F64))
        return PLIM_OK;
    return yaml_fail(error, PLIM_BAD_JOB, job, list, "shape: expected a list of at most %d whole numbers",
                     MOST_AXES - 1);
}

plim_status map_choice_read(int *out, const struct word_choices *choices, const char *name, const char *job,
                            const struct yaml *value, plim_error *error)
{
    char where[256];
    for (size_t i = 0; i < choices->count; i++)
        if (strcmp(name, choices->names[i]) == 0) {
            *out = (int)i;
            return PLIM_OK;
        }
    yaml_place(where, job, value);
    return stage_unknown(choices, name, where, error);
}

plim_status map_text_read(char *out, size_t capacity, const char *what, const char *text, plim_error *error)
{
    if (strlen(text) >= capacity)
        return fail(error, PLIM_BAD_JOB, "%s: at most %d bytes", what, (int)capacity - 1);
    memcpy(out, text, strlen(text) + 1);
    return PLIM_OK;
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
    const struct word_choices choices = {.what = "function",
                                         .names = names,
                                         .count = COUNT(names),
                                         .later = later_functions,
                                         .later_count = COUNT(later_functions)};
    return stage_unknown(&choices, name, where, error);
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
    return function->read ? function->read(options, function, job, value, error) : PLIM_OK;
}
