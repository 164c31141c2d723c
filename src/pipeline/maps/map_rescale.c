/* map_rescale.c - x * scale + offset. */
#include "base/numbers/count.h"
#include "pipeline/maps/map_functions.h"

static plim_status rescale_infer(struct column *column, const struct map_function *self, const void *options,
                                 plim_error *error)
{
    (void)options;
    TRY(map_need_numbers(column, self->name, error));
    if (!type_is_float(column->type))
        column->type = TYPE_F32;
    return PLIM_OK;
}

/* y = x * scale + offset, each step rounded to float as Keras does it; in double for float64. */
static plim_status rescale_row(const struct map_row *row, plim_error *error)
{
    const struct rescale_options *rescale = row->options;
    const void *from = row->values;
    enum type type = row->from->type, to_type = row->to->type;
    float scale = (float)rescale->scale, offset = (float)rescale->offset;
    void *to = map_result(row, &row->shape);
    if (!to)
        return map_full(row->call, error);
    int64_t count = row->count;
    if (to_type == TYPE_F32 && type == TYPE_U8)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = ((const uint8_t *)from)[i] * scale + offset;
    else if (to_type == TYPE_F32 && type == TYPE_F32)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = ((const float *)from)[i] * scale + offset;
    else if (to_type == TYPE_F64)
        for (int64_t i = 0; i < count; i++)
            ((double *)to)[i] = ((const double *)from)[i] * rescale->scale + rescale->offset;
    else
        for (int64_t i = 0; i < count; i++)
            element_set(to, to_type, i, (float)element_get(from, type, i) * scale + offset);
    return PLIM_OK;
}

static plim_status rescale_read(void *options, const struct map_function *self, const char *job,
                                const struct yaml *value, plim_error *error)
{
    struct rescale_options *rescale = options;
    static const struct setting settings[] = {
        {"scale", SETTING_NUMBER, offsetof(struct rescale_options, scale), 0},
        {"offset", SETTING_NUMBER, offsetof(struct rescale_options, offset), 0},
    };
    rescale->scale = 1;
    return map_settings_read(rescale, &(struct map_settings){settings, COUNT(settings), self->name}, job, value, error);
}

const struct map_function map_rescale = {
    .name = "rescale",
    .infer_column = rescale_infer,
    .run_row = rescale_row,
    .options_bytes = sizeof(struct rescale_options),
    .value_bytes = map_value_bytes,
    .read = rescale_read,
};
