/* map_shape.c - the same values under another shape: reshape, squeeze, expand_dims.

   Where all rows have one shape no byte moves. The extents of a cell lie in its row: that is written anew, its values
   stay where they are; they are copied only into a column of a fixed shape. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/text/settings.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/text/map_words.h"

enum shape_kind { SHAPE_RESHAPE, SHAPE_SQUEEZE, SHAPE_EXPAND };
static const char *const names[] = {"reshape", "squeeze", "expand_dims"};

/* ---- shapes ---- */

/* An extent of -1 is what is left of `count` values; -1 again where that is not known (count < 0). */
static bool reshape(struct shape *out, const struct shape *wanted, int64_t count)
{
    int64_t others = 1;
    int open = -1;
    *out = *wanted;
    for (int a = 0; a < wanted->rank; a++)
        if (wanted->dim[a] < 0)
            open = a;
        else if (!mul_i64(&others, others, wanted->dim[a]))
            return false;
    if (count < 0)
        return true;
    if (open >= 0)
        out->dim[open] = count / others;
    return open >= 0 ? count % others == 0 : count == others;
}

static int64_t known_count(const struct shape *shape)
{
    for (int a = 0; a < shape->rank; a++)
        if (shape->dim[a] < 0)
            return -1;
    return shape_count(shape);
}

static bool is_named(const struct shape_options *options, const struct shape *shape, int axis)
{
    if (!options->axis_count)
        return shape->dim[axis] == 1;
    for (int i = 0; i < options->axis_count; i++)
        if (options->axis[i] == axis || options->axis[i] + shape->rank == axis)
            return true;
    return false;
}

/* `which` decides which axes go: the column's shape, for rows that happen to have 1 elsewhere. */
static void squeeze(struct shape *out, const struct shape *shape, const struct shape_options *options,
                    const struct shape *which)
{
    *out = (struct shape){0};
    for (int a = 0; a < shape->rank; a++)
        if (!is_named(options, which, a))
            out->dim[out->rank++] = shape->dim[a];
}

static void expand(struct shape *out, const struct shape *shape, int64_t axis)
{
    int at = (int)(axis < 0 ? axis + shape->rank + 1 : axis);
    *out = *shape;
    memmove(out->dim + at + 1, shape->dim + at, (size_t)(shape->rank - at) * sizeof out->dim[0]);
    out->dim[at] = 1;
    out->rank++;
}

static plim_status check_squeeze(const struct shape *shape, const struct shape_options *options, const char *text,
                                 plim_error *error)
{
    for (int i = 0; i < options->axis_count; i++) {
        int64_t axis = options->axis[i] + (options->axis[i] < 0 ? shape->rank : 0);
        if (axis < 0 || axis >= shape->rank || shape->dim[axis] != 1)
            return fail(error, PLIM_BAD_JOB, "squeeze: axis %lld of %s is not 1", (long long)options->axis[i], text);
    }
    return PLIM_OK;
}

static plim_status change(struct shape *out, const struct shape *shape, const struct shape_options *options,
                          enum shape_kind kind, plim_error *error)
{
    char text[64], to[64];
    shape_text(text, sizeof text, shape, false);
    shape_text(to, sizeof to, &options->shape, false);
    if (kind == SHAPE_RESHAPE)
        return reshape(out, &options->shape, known_count(shape))
                   ? PLIM_OK
                   : fail(error, PLIM_BAD_JOB, "reshape: %s cannot become %s", text, to);
    if (kind == SHAPE_SQUEEZE) {
        TRY(check_squeeze(shape, options, text, error));
        squeeze(out, shape, options, shape);
        return PLIM_OK;
    }
    int64_t axis = options->axis[0];
    if (axis < -shape->rank - 1 || axis > shape->rank || shape->rank >= MOST_AXES - 1)
        return fail(error, PLIM_BAD_JOB, "expand_dims: no axis %lld in %s", (long long)axis, text);
    expand(out, shape, axis);
    return PLIM_OK;
}

static plim_status infer(struct spec *spec, const struct shape_options *options, enum shape_kind kind,
                         plim_error *error)
{
    int c = map_first_column(spec, options->column);
    if (c < 0)
        return map_no_column(spec, names[kind], options->column, error);
    struct column *column = &spec->column[c];
    struct shape shape;
    bool cells = column_is_variable(column);
    TRY(change(&shape, &column->shape, options, kind, error));
    column->shape = shape;
    column->origin = cells ? -1 : ORIGIN_RESHAPED(column->origin);
    return PLIM_OK;
}

/* Reshaped rows of any number: as many as before only where a row keeps its size. */
static bool shape_changes_rows(const struct spec *from, const void *context)
{
    const struct shape_options *options = context;
    int c = map_first_column(from, options->column);
    struct shape before = from->column[c].shape, after = options->shape;
    if (!after.rank || after.dim[0] >= 0) /* not reshape, or the spec tells */
        return false;
    before.dim[0] = after.dim[0] = 1;
    return known_count(&before) != known_count(&after);
}

/* ---- rows that are cells ---- */

static plim_status row_shape(struct shape *out, const struct shape *shape, const struct map_call *call, int c,
                             int64_t row, enum shape_kind kind, plim_error *error)
{
    const struct shape_options *options = call->options;
    char text[64], to[64];
    if (kind == SHAPE_SQUEEZE) {
        squeeze(out, shape, options, &call->from_spec->column[c].shape);
    } else if (kind == SHAPE_EXPAND) {
        expand(out, shape, options->axis[0]);
    } else if (!reshape(out, &options->shape, shape_count(shape))) {
        shape_text(text, sizeof text, shape, false);
        shape_text(to, sizeof to, &options->shape, false);
        return fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is %s and cannot become %s",
                    map_element(call, row), call->from_spec->column[c].name, text, to);
    }
    return PLIM_OK;
}

static plim_status run(const struct map_call *call, enum shape_kind kind, plim_error *error)
{
    const struct shape_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    const struct column *from = &call->from_spec->column[c], *to = &call->to_spec->column[c];
    for (int64_t i = 0; column_is_variable(from) && i < call->count; i++) {
        const struct cell *cell = (const void *)((uint8_t *)call->from[c] + (uint64_t)i * call->from_stride[c]);
        uint8_t *at = (uint8_t *)call->to[c] + (uint64_t)i * call->to_stride[c];
        struct shape shape = value_shape(from, cell), whole;
        TRY(row_shape(&whole, &shape, call, c, i, kind, error));
        if (column_is_variable(to)) {
            struct cell made = {.data = cell->data};
            memcpy(made.dim, whole.dim, sizeof made.dim);
            *(struct cell *)(void *)at = made;
        } else {
            memcpy(at, cell->data, to->bytes);
        }
    }
    return PLIM_OK;
}

/* ---- job files ---- */

static plim_status reshape_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct shape_options *options = context;
    int open = 0;
    TRY(map_shape_read(&options->shape, "reshape", job, value, error));
    for (int a = 0; a < options->shape.rank; a++)
        open += options->shape.dim[a] < 0;
    return open > 1 ? fail(error, PLIM_BAD_JOB, "reshape: only one extent may be -1") : PLIM_OK;
}

static plim_status squeeze_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct shape_options *options = context;
    const struct setting setting = {"squeeze", SETTING_WHOLE, 0, -MOST_AXES};
    if (!value)
        return PLIM_OK;
    if (value->kind == YAML_SCALAR)
        options->axis_count = 1;
    if (value->kind == YAML_SCALAR)
        return setting_value(&options->axis[0], &setting, job, value, error);
    for (const struct yaml *item = value->first; item; item = item->next) {
        if (options->axis_count == MOST_AXES)
            return fail(error, PLIM_BAD_JOB, "squeeze: more than %d axes", MOST_AXES);
        TRY(setting_value(&options->axis[options->axis_count++], &setting, job, item, error));
    }
    return PLIM_OK;
}

static plim_status expand_dims_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct shape_options *options = context;
    const struct setting setting = {"expand_dims", SETTING_WHOLE, 0, -MOST_AXES};
    return setting_value(&options->axis[0], &setting, job, value, error);
}

#define SHAPE_FUNCTION(word, kind, alone)                                                                              \
    static plim_status word##_infer(struct spec *spec, const void *options, plim_error *error)                         \
    {                                                                                                                  \
        return infer(spec, options, kind, error);                                                                      \
    }                                                                                                                  \
    static plim_status word##_run(const struct map_call *call, plim_error *error)                                      \
    {                                                                                                                  \
        return run(call, kind, error);                                                                                 \
    }                                                                                                                  \
    const struct map_function map_##word = {.name = #word,                                                             \
                                            .infer = word##_infer,                                                     \
                                            .changes_rows = shape_changes_rows,                                        \
                                            .run = word##_run,                                                         \
                                            .options_bytes = sizeof(struct shape_options),                             \
                                            .bare = alone,                                                             \
                                            .read = word##_read};
SHAPE_FUNCTION(reshape, SHAPE_RESHAPE, false)
SHAPE_FUNCTION(squeeze, SHAPE_SQUEEZE, true)
SHAPE_FUNCTION(expand_dims, SHAPE_EXPAND, false)
