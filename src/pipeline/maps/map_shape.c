/* map_shape.c - the same values under another shape: reshape, squeeze, expand_dims.

   Where all rows have one shape no byte moves. The extents of a cell lie in its row: that is written anew, its values
   stay where they are; they are copied only into a column of a fixed shape. */
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/maps/map_functions.h"

enum shape_kind { SHAPE_RESHAPE, SHAPE_SQUEEZE, SHAPE_EXPAND };

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

static plim_status change(struct shape *out, const struct shape *shape, const struct shape_options *options, int kind,
                          plim_error *error)
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

static plim_status shape_infer(struct column *column, const struct map_function *self, const void *options,
                               plim_error *error)
{
    struct shape shape;
    bool cells = column_is_variable(column);
    TRY(change(&shape, &column->shape, options, self->kind, error));
    column->shape = shape;
    column->origin = cells ? -1 : ORIGIN_RESHAPED(column->origin);
    return PLIM_OK;
}

/* Reshaped rows of any number: as many as before only where a row keeps its size. */
static bool shape_changes_rows(const struct spec *from, const void *context)
{
    const struct shape_options *options = context;
    int c = map_column(from, &map_reshape, options);
    struct shape before = from->column[c].shape, after = options->shape;
    if (!after.rank || after.dim[0] >= 0) /* not reshape, or the spec tells */
        return false;
    before.dim[0] = after.dim[0] = 1;
    return known_count(&before) != known_count(&after);
}

/* ---- rows that are cells ---- */

static plim_status result_shape(struct shape *out, const struct map_row *row, plim_error *error)
{
    const struct shape_options *options = row->options;
    int kind = row->call->function->kind;
    char text[64], to[64];
    if (kind == SHAPE_SQUEEZE) {
        squeeze(out, &row->shape, options, &row->from->shape);
    } else if (kind == SHAPE_EXPAND) {
        expand(out, &row->shape, options->axis[0]);
    } else if (!reshape(out, &options->shape, row->count)) {
        shape_text(text, sizeof text, &row->shape, false);
        shape_text(to, sizeof to, &options->shape, false);
        return fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is %s and cannot become %s",
                    map_element(row->call, row->index), row->from->name, text, to);
    }
    return PLIM_OK;
}

static plim_status reshape_row(const struct map_row *row, plim_error *error)
{
    struct shape shape;
    if (!column_is_variable(row->from))
        return PLIM_OK;
    TRY(result_shape(&shape, row, error));
    if (column_is_variable(row->to)) {
        struct cell cell = {.data = (void *)(uintptr_t)row->values};
        memcpy(cell.dim, shape.dim, sizeof cell.dim);
        *(struct cell *)(void *)row->to_row = cell;
    } else {
        memcpy(row->to_row, row->values, row->to->bytes);
    }
    return PLIM_OK;
}

/* ---- job files ---- */

static plim_status reshape_read(void *context, const struct map_function *self, const char *job,
                                const struct yaml *value, plim_error *error)
{
    struct shape_options *options = context;
    int open = 0;
    TRY(map_shape_read(&options->shape, self->name, job, value, error));
    for (int a = 0; a < options->shape.rank; a++)
        open += options->shape.dim[a] < 0;
    return open > 1 ? fail(error, PLIM_BAD_JOB, "reshape: only one extent may be -1") : PLIM_OK;
}

static plim_status squeeze_read(void *context, const struct map_function *self, const char *job,
                                const struct yaml *value, plim_error *error)
{
    struct shape_options *options = context;
    const struct setting setting = {self->name, SETTING_WHOLE, 0, -MOST_AXES};
    if (!value)
        return PLIM_OK;
    if (value->kind == YAML_SCALAR) {
        options->axis_count = 1;
        return setting_value(&options->axis[0], &setting, job, value, error);
    }
    for (const struct yaml *item = value->first; item; item = item->next) {
        if (options->axis_count == MOST_AXES)
            return fail(error, PLIM_BAD_JOB, "squeeze: more than %d axes", MOST_AXES);
        TRY(setting_value(&options->axis[options->axis_count++], &setting, job, item, error));
    }
    return PLIM_OK;
}

static plim_status expand_dims_read(void *context, const struct map_function *self, const char *job,
                                    const struct yaml *value, plim_error *error)
{
    struct shape_options *options = context;
    const struct setting setting = {self->name, SETTING_WHOLE, 0, -MOST_AXES};
    return setting_value(&options->axis[0], &setting, job, value, error);
}

#define SHAPE_FUNCTION(word, which, alone)                                                                             \
    const struct map_function map_##word = {.name = #word,                                                             \
                                            .kind = which,                                                             \
                                            .infer_column = shape_infer,                                               \
                                            .changes_rows = shape_changes_rows,                                        \
                                            .run_row = reshape_row,                                                    \
                                            .options_bytes = sizeof(struct shape_options),                             \
                                            .bare = alone,                                                             \
                                            .read = word##_read};
SHAPE_FUNCTION(reshape, SHAPE_RESHAPE, false)
SHAPE_FUNCTION(squeeze, SHAPE_SQUEEZE, true)
SHAPE_FUNCTION(expand_dims, SHAPE_EXPAND, false)
