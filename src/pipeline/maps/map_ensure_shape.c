/* map_ensure_shape.c - a column whose rows might have any extents, and must have these: tf.ensure_shape. */
#include <stdio.h>
#include <string.h>

#include "base/text/settings.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/map_decode_raw.h"

static plim_status ensure_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct ensure_shape_options *options = context;
    char is[64], wanted[64];
    int c = map_first_column(spec, options->column);
    if (c < 0)
        return map_no_column(spec, "ensure_shape", options->column, error);
    struct column *column = &spec->column[c];
    bool possible = column->shape.rank == options->shape.rank;
    for (int a = 0; possible && a < options->shape.rank; a++)
        possible = column->shape.dim[a] < 0 || column->shape.dim[a] == options->shape.dim[a];
    shape_text(is, sizeof is, &column->shape, false);
    shape_text(wanted, sizeof wanted, &options->shape, false);
    if (!possible)
        return fail(error, PLIM_BAD_JOB, "ensure_shape: column '%s' is %s, never %s", column->name, is, wanted);
    column->shape = options->shape;
    return PLIM_OK;
}

static plim_status ensure_run(const struct map_call *call, plim_error *error)
{
    const struct ensure_shape_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    const struct column *from = &call->from_spec->column[c];
    if (!column_is_variable(from))
        return PLIM_OK; /* it was told when the data set was built */
    for (int64_t i = 0; i < call->count; i++) {
        struct cell cell;
        memcpy(&cell, (const uint8_t *)call->from[c] + (uint64_t)i * call->from_stride[c], sizeof cell);
        struct shape shape = value_shape(from, &cell);
        if (!shape_equal(&shape, &options->shape)) {
            char is[64], wanted[64];
            shape_text(is, sizeof is, &shape, false);
            shape_text(wanted, sizeof wanted, &options->shape, false);
            return fail(error, PLIM_BAD_DATA, "element %lld: ensure_shape: '%s' is %s, not %s", map_element(call, i),
                        from->name, is, wanted);
        }
        memcpy((uint8_t *)call->to[c] + (uint64_t)i * call->to_stride[c], cell.data, call->to_spec->column[c].bytes);
    }
    return PLIM_OK;
}

static plim_status ensure_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct ensure_shape_options *options = context;
    return map_read_shape(&options->shape, job, value, error);
}

const struct map_function map_ensure_shape = {
    .name = "ensure_shape",
    .infer = ensure_infer,
    .run = ensure_run,
    .options_bytes = sizeof(struct ensure_shape_options),
    .read = ensure_read,
};
