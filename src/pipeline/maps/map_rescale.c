/* map_rescale.c - x * scale + offset. */
#include "base/text/settings.h"
#include "pipeline/maps/map_functions.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static plim_status rescale_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct rescale_options *rescale = options;
    int c = map_first_column(spec, rescale->column);
    if (c < 0)
        return map_no_column(spec, "rescale", rescale->column, error);
    TRY(map_need_numbers(&spec->column[c], "rescale", error));
    if (!type_is_float(spec->column[c].type))
        spec->column[c].type = TYPE_F32;
    return PLIM_OK;
}

/* y = x * scale + offset, each step rounded to float as Keras does it; in double for float64. */
static void rescale_row(void *to, enum type to_type, const void *from, enum type from_type, int64_t n,
                        const struct rescale_options *rescale)
{
    float scale = (float)rescale->scale, offset = (float)rescale->offset;
    if (to_type == TYPE_F32 && from_type == TYPE_U8)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = ((const uint8_t *)from)[i] * scale + offset;
    else if (to_type == TYPE_F32 && from_type == TYPE_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = ((const float *)from)[i] * scale + offset;
    else if (to_type == TYPE_F64)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] = ((const double *)from)[i] * rescale->scale + rescale->offset;
    else
        for (int64_t i = 0; i < n; i++)
            element_set(to, to_type, i, (float)element_get(from, from_type, i) * scale + offset);
}

static plim_status rescale_run(const struct map_call *call, plim_error *error)
{
    const struct rescale_options *rescale = call->options;
    int c = map_first_column(call->from_spec, rescale->column);
    const struct column *from = &call->from_spec->column[c], *to = &call->to_spec->column[c];
    for (int64_t i = 0; i < call->count; i++) {
        int64_t count;
        const void *values = map_values(&count, call, c, i);
        void *result = map_values_to(call, c, i);
        if (!result)
            return map_full(call, error);
        rescale_row(result, to->type, values, from->type, count, rescale);
    }
    return PLIM_OK;
}

static uint64_t rescale_room(const struct spec *from, const struct spec *to, const void *options)
{
    const struct rescale_options *rescale = options;
    (void)from;
    return map_values_room(&to->column[map_first_column(to, rescale->column)]);
}

static plim_status rescale_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct rescale_options *rescale = options;
    static const struct setting settings[] = {
        {"scale", SETTING_NUMBER, offsetof(struct rescale_options, scale), 0},
        {"offset", SETTING_NUMBER, offsetof(struct rescale_options, offset), 0},
    };
    const struct setting alone = {"rescale", SETTING_NUMBER, 0, 0};
    rescale->scale = 1;
    if (value->kind == YAML_SCALAR)
        return setting_value(&rescale->scale, &alone, job, value, error);
    return settings_read(rescale, settings, COUNT(settings), job, value, error);
}

const struct map_function map_rescale = {
    .name = "rescale",
    .infer = rescale_infer,
    .run = rescale_run,
    .options_bytes = sizeof(struct rescale_options),
    .room_bytes = rescale_room,
    .read = rescale_read,
};
