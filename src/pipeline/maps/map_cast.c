/* map_cast.c - a column in another type. */
#include "base/text/settings.h"
#include "base/text/text.h"
#include "pipeline/maps/map_functions.h"

static plim_status cast_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct cast_options *cast = options;
    int c = map_first_column(spec, cast->column);
    if (c < 0)
        return map_no_column(spec, "cast", cast->column, error);
    TRY(map_need_numbers(&spec->column[c], "cast", error));
    spec->column[c].type = cast->type;
    return PLIM_OK;
}

static void cast_row(void *to, enum type to_type, const void *from, enum type from_type, int64_t n)
{
    if (to_type == TYPE_F32 && from_type == TYPE_U8)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = ((const uint8_t *)from)[i];
    else
        for (int64_t i = 0; i < n; i++)
            element_set(to, to_type, i, element_get(from, from_type, i));
}

static plim_status cast_run(const struct map_call *call, plim_error *error)
{
    const struct cast_options *cast = call->options;
    int c = map_first_column(call->from_spec, cast->column);
    const struct column *from = &call->from_spec->column[c];
    if (from->type == cast->type)
        return PLIM_OK;
    for (int64_t i = 0; i < call->count; i++) {
        int64_t count;
        const void *values = map_values(&count, call, c, i);
        void *to = map_values_to(call, c, i);
        if (!to)
            return map_full(call, error);
        cast_row(to, cast->type, values, from->type, count);
    }
    return PLIM_OK;
}

static uint64_t cast_room(const struct spec *from, const struct spec *to, const void *options)
{
    const struct cast_options *cast = options;
    int c = map_first_column(to, cast->column);
    return from->column[c].type == cast->type ? 0 : map_values_room(&to->column[c]);
}

static plim_status cast_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct cast_options *cast = options;
    const char *word = NULL, *names[TYPE_COUNT];
    char where[256];
    const struct setting setting = {"cast", SETTING_WORD, 0, 0};
    TRY(setting_value(&word, &setting, job, value, error));
    if (type_from_name(&cast->type, word))
        return PLIM_OK;
    for (int i = 0; i < TYPE_COUNT; i++)
        names[i] = type_name((enum type)i);
    const char *near = text_nearest(word, names, TYPE_COUNT);
    yaml_place(where, job, value);
    fail_at(error, PLIM_BAD_JOB, where, "cast: unknown type '%s'", word);
    return hint(error, PLIM_BAD_JOB, near ? "did you mean '%s'?" : "cast: float32", near);
}

const struct map_function map_cast = {
    .name = "cast",
    .infer = cast_infer,
    .run = cast_run,
    .options_bytes = sizeof(struct cast_options),
    .room_bytes = cast_room,
    .read = cast_read,
};
