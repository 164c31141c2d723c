/* map_ensure_shape.c - a column whose rows might have any extents, and must have these: tf.ensure_shape. */
#include <string.h>

#include "pipeline/maps/map_functions.h"

static plim_status ensure_infer(struct column *column, const struct map_function *self, const void *context,
                                plim_error *error)
{
    const struct ensure_shape_options *options = context;
    char is[64], wanted[64];
    bool possible = column->shape.rank == options->shape.rank;
    for (int a = 0; possible && a < options->shape.rank; a++)
        possible = column->shape.dim[a] < 0 || column->shape.dim[a] == options->shape.dim[a];
    shape_text(is, sizeof is, &column->shape, false);
    shape_text(wanted, sizeof wanted, &options->shape, false);
    if (!possible)
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s, never %s", self->name, column->name, is, wanted);
    column->shape = options->shape;
    return PLIM_OK;
}

/* Only cells are checked here: of other columns the shape was checked when the data set was built. */
static plim_status ensure_row(const struct map_row *row, plim_error *error)
{
    char is[64], wanted[64];
    if (!column_is_variable(row->from))
        return PLIM_OK;
    if (shape_equal(&row->shape, &row->to->shape)) {
        memcpy(row->to_row, row->values, row->to->bytes);
        return PLIM_OK;
    }
    shape_text(is, sizeof is, &row->shape, false);
    shape_text(wanted, sizeof wanted, &row->to->shape, false);
    return fail(error, PLIM_BAD_DATA, "element %lld: ensure_shape: '%s' is %s, not %s",
                map_element(row->call, row->index), row->from->name, is, wanted);
}

static plim_status ensure_read(void *context, const struct map_function *self, const char *job,
                               const struct yaml *value, plim_error *error)
{
    struct ensure_shape_options *options = context;
    (void)self;
    return map_fixed_shape_read(&options->shape, job, value, error);
}

const struct map_function map_ensure_shape = {
    .name = "ensure_shape",
    .infer_column = ensure_infer,
    .run_row = ensure_row,
    .options_bytes = sizeof(struct ensure_shape_options),
    .read = ensure_read,
};
