/* map_cast.c - a column in another type. */
#include "base/text/text.h"
#include "pipeline/maps/map_functions.h"

static plim_status cast_infer(struct column *column, const struct map_function *self, const void *options,
                              plim_error *error)
{
    const struct cast_options *cast = options;
    TRY(map_need_numbers(column, self->name, error));
    column->type = cast->type;
    return PLIM_OK;
}

static plim_status cast_row(const struct map_row *row, plim_error *error)
{
    enum type from = row->from->type, to = row->to->type;
    if (from == to)
        return PLIM_OK;
    void *result = map_result(row, &row->shape);
    if (!result)
        return map_full(row->call, error);
    int64_t count = row->count;
    if (to == TYPE_F32 && from == TYPE_U8)
        for (int64_t i = 0; i < count; i++)
            ((float *)result)[i] = ((const uint8_t *)row->values)[i];
    else
        for (int64_t i = 0; i < count; i++)
            element_set(result, to, i, element_get(row->values, from, i));
    return PLIM_OK;
}

static uint64_t cast_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    int c = map_column(from, &map_cast, options);
    return from->column[c].type == to->column[c].type ? 0 : map_column_value_bytes(&to->column[c]);
}

static plim_status cast_read(void *options, const struct map_function *self, const char *job, const struct yaml *value,
                             plim_error *error)
{
    struct cast_options *cast = options;
    const char *word = NULL, *names[TYPE_COUNT];
    const struct setting setting = {self->name, SETTING_WORD, 0, 0};
    TRY(setting_value(&word, &setting, job, value, error));
    if (type_from_name(&cast->type, word))
        return PLIM_OK;
    for (int i = 0; i < TYPE_COUNT; i++)
        names[i] = type_name((enum type)i);
    const char *near = text_nearest(word, names, TYPE_COUNT);
    yaml_fail(error, PLIM_BAD_JOB, job, value, "cast: unknown type '%s'", word);
    return hint(error, PLIM_BAD_JOB, near ? "did you mean '%s'?" : "cast: float32", near);
}

const struct map_function map_cast = {
    .name = "cast",
    .infer_column = cast_infer,
    .run_row = cast_row,
    .options_bytes = sizeof(struct cast_options),
    .value_bytes = cast_value_bytes,
    .read = cast_read,
};
