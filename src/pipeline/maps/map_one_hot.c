/* map_one_hot.c - class numbers into rows of zeros with a one. */
#include <string.h>

#include "base/text/settings.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/text/map_words.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static plim_status one_hot_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct one_hot_options *one_hot = options;
    int c = map_last_column(spec, one_hot->column);
    if (c < 0)
        return map_no_column(spec, "one_hot", one_hot->column, error);
    struct column *column = &spec->column[c];
    TRY(map_need_numbers(column, "one_hot", error));
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

static plim_status one_hot_run(const struct map_call *call, plim_error *error)
{
    const struct one_hot_options *one_hot = call->options;
    int c = map_last_column(call->from_spec, one_hot->column);
    const struct column *from = &call->from_spec->column[c];
    for (int64_t i = 0; i < call->count; i++) {
        int64_t n;
        const void *row = map_values(&n, call, c, i);
        struct shape shape = value_shape(from, (const char *)call->from[c] + (uint64_t)i * call->from_stride[c]);
        float *to = map_category_to(call, c, i, &shape);
        if (!to)
            return map_full(call, error);
        memset(to, 0, (size_t)(n * one_hot->classes) * sizeof *to);
        for (int64_t k = 0; k < n; k++) {
            double label = element_get(row, from->type, k);
            if (label < 0 || label >= (double)one_hot->classes)
                return fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is %.0f, not one of %lld classes from 0",
                            map_element(call, i), from->name, label, (long long)one_hot->classes);
            to[k * one_hot->classes + (int64_t)label] = 1;
        }
    }
    return PLIM_OK;
}

static uint64_t one_hot_room(const struct spec *from, const struct spec *to, const void *options)
{
    const struct one_hot_options *one_hot = options;
    (void)from;
    return map_values_room(&to->column[map_last_column(to, one_hot->column)]);
}

static plim_status one_hot_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct one_hot_options *one_hot = options;
    static const struct setting settings[] = {
        {"classes", SETTING_WHOLE, offsetof(struct one_hot_options, classes), 1},
    };
    const struct setting alone = {"one_hot", SETTING_WHOLE, 0, 1};
    if (value->kind == YAML_SCALAR)
        return setting_value(&one_hot->classes, &alone, job, value, error);
    return settings_read(one_hot, settings, COUNT(settings), job, value, error);
}

const struct map_function map_one_hot = {
    .name = "one_hot",
    .infer = one_hot_infer,
    .run = one_hot_run,
    .options_bytes = sizeof(struct one_hot_options),
    .room_bytes = one_hot_room,
    .read = one_hot_read,
};
