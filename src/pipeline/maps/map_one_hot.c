/* map_one_hot.c - class numbers into rows of zeros with a one. */
#include <string.h>

#include "pipeline/maps/map_functions.h"

static plim_status one_hot_infer(struct column *column, const struct map_function *self, const void *options,
                                 plim_error *error)
{
    const struct one_hot_options *one_hot = options;
    TRY(map_need_numbers(column, self->name, error));
    if (one_hot->classes < 1)
        return fail(error, PLIM_BAD_JOB, "one_hot: needs at least 1 class");
    if (type_is_float(column->type))
        return fail(error, PLIM_BAD_JOB, "one_hot: column '%s' holds %s, not class numbers", column->name,
                    type_name(column->type));
    if (column->shape.rank >= MOST_AXES - 1) /* a batch axis comes before them */
        return fail(error, PLIM_UNSUPPORTED, "one_hot: column '%s' has %d axes already", column->name,
                    column->shape.rank);
    column->shape.dim[column->shape.rank++] = one_hot->classes;
    column->type = TYPE_F32;
    return PLIM_OK;
}

static plim_status one_hot_row(const struct map_row *row, plim_error *error)
{
    const struct one_hot_options *one_hot = row->options;
    float *to = map_result(row, &row->shape);
    if (!to)
        return map_full(row->call, error);
    memset(to, 0, (size_t)(row->count * one_hot->classes) * sizeof *to);
    for (int64_t k = 0; k < row->count; k++) {
        double label = element_get(row->values, row->from->type, k);
        if (label < 0 || label >= (double)one_hot->classes)
            return fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is %.0f, not one of %lld classes from 0",
                        map_element(row->call, row->index), row->from->name, label, (long long)one_hot->classes);
        to[k * one_hot->classes + (int64_t)label] = 1;
    }
    return PLIM_OK;
}

static uint64_t one_hot_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from;
    return map_column_value_bytes(&to->column[map_column(to, &map_one_hot, options)]);
}

static plim_status one_hot_read(void *options, const struct map_function *self, const char *job,
                                const struct yaml *value, plim_error *error)
{
    static const struct setting classes = {"classes", SETTING_WHOLE, offsetof(struct one_hot_options, classes), 1};
    return map_settings_read(options, &(struct map_settings){&classes, 1, self->name}, job, value, error);
}

const struct map_function map_one_hot = {
    .name = "one_hot",
    .infer_column = one_hot_infer,
    .last_column = true,
    .run_row = one_hot_row,
    .options_bytes = sizeof(struct one_hot_options),
    .value_bytes = one_hot_value_bytes,
    .read = one_hot_read,
};
