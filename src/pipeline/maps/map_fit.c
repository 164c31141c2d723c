/* map_fit.c - rows of other extents: pad fills up, truncate cuts, to_dense does both.

   pad: 10                               to_dense: {shape: [10], value: -1}
   pad: {shape: [10, -1], value: 0}      truncate: 10 */
#include <stdio.h>
#include <string.h>

#include "base/text/settings.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/text/map_words.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const char *const names[] = {"pad", "truncate", "to_dense"};

/* An extent as it goes on, -1 where rows differ. */
static int64_t extent_of(int64_t extent, int64_t wanted, enum fit_kind kind)
{
    if (wanted < 0)
        return extent;
    if (kind == FIT_TRUNCATE)
        return extent < 0 || extent < wanted ? extent : wanted;
    return wanted;
}

static plim_status infer(struct spec *spec, const struct fit_options *options, enum fit_kind kind, plim_error *error)
{
    int c = map_first_column(spec, options->column);
    if (c < 0)
        return map_no_column(spec, names[kind], options->column, error);
    struct column *column = &spec->column[c];
    char shape[64];
    shape_text(shape, sizeof shape, &column->shape, false);
    if (column->shape.rank != options->shape.rank || column->shape.rank == 0)
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s, of other axes than the %d given", names[kind],
                    column->name, shape, options->shape.rank);
    for (int a = 0; a < column->shape.rank; a++) {
        int64_t *extent = &column->shape.dim[a], wanted = options->shape.dim[a];
        if (kind == FIT_PAD && wanted >= 0 && *extent > wanted)
            return hint(error, fail(error, PLIM_BAD_JOB, "pad: column '%s' is %s: too long", column->name, shape),
                        "to_dense cuts what is too long");
        *extent = extent_of(*extent, wanted, kind);
    }
    if (column_is_variable(column)) /* the extents of rows change, if not the column's */
        column->origin = -1;
    return PLIM_OK;
}

static bool fit_changes_rows(const struct spec *from, const void *options)
{
    (void)from;
    return ((const struct fit_options *)options)->shape.dim[0] >= 0;
}

/* ---- rows ---- */

/* The part that both have, row by row of the last axis. */
static void copy_common(uint8_t *to, const struct shape *to_shape, const uint8_t *from, const struct shape *from_shape,
                        uint64_t bytes)
{
    int64_t at[MOST_AXES] = {0};
    int last = to_shape->rank - 1;
    struct shape common = *to_shape;
    for (int a = 0; a <= last; a++)
        if (from_shape->dim[a] < common.dim[a])
            common.dim[a] = from_shape->dim[a];
    if (shape_count(&common) == 0)
        return;
    for (;;) {
        uint64_t source = 0, target = 0;
        for (int a = 0; a <= last; a++) {
            source = source * (uint64_t)from_shape->dim[a] + (uint64_t)at[a];
            target = target * (uint64_t)to_shape->dim[a] + (uint64_t)at[a];
        }
        memcpy(to + target * bytes, from + source * bytes, (uint64_t)common.dim[last] * bytes);
        int a = last - 1;
        while (a >= 0 && ++at[a] == common.dim[a])
            at[a--] = 0;
        if (a < 0)
            return;
    }
}

static void fill(uint8_t *to, int64_t count, enum type type, const struct fit_options *options)
{
    if (type == TYPE_STRING) {
        const struct string text = {(const uint8_t *)options->text, strlen(options->text)};
        for (int64_t i = 0; i < count; i++)
            ((struct string *)(void *)to)[i] = text;
    } else if (options->value == 0) {
        memset(to, 0, (size_t)count * type_bytes(type));
    } else {
        for (int64_t i = 0; i < count; i++)
            element_set(to, type, i, options->value);
    }
}

/* The extents of this row. */
static plim_status row_shape(struct shape *out, const struct shape *shape, const struct map_call *call, int64_t row,
                             enum fit_kind kind, plim_error *error)
{
    const struct fit_options *options = call->options;
    *out = *shape;
    for (int a = 0; a < shape->rank; a++) {
        int64_t wanted = options->shape.dim[a];
        if (kind == FIT_PAD && wanted >= 0 && shape->dim[a] > wanted)
            return hint(error,
                        fail(error, PLIM_BAD_DATA,
                             "element %lld: axis %d has %lld elements, more than the %lld to pad to",
                             map_element(call, row), a, (long long)shape->dim[a], (long long)wanted),
                        "to_dense cuts what is too long");
        out->dim[a] = extent_of(shape->dim[a], wanted, kind);
    }
    return PLIM_OK;
}

static plim_status run(const struct map_call *call, enum fit_kind kind, plim_error *error)
{
    const struct fit_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    const struct column *from = &call->from_spec->column[c];
    for (int64_t i = 0; i < call->count; i++) {
        int64_t count;
        const void *values = map_values(&count, call, c, i);
        struct shape whole, shape = value_shape(from, (uint8_t *)call->from[c] + (uint64_t)i * call->from_stride[c]);
        TRY(row_shape(&whole, &shape, call, i, kind, error));
        uint8_t *to = map_category_to(call, c, i, &whole);
        if (!to)
            return map_full(call, error);
        if (to == values) /* a column that fits as it is */
            continue;
        if (!shape_equal(&whole, &shape))
            fill(to, shape_count(&whole), from->type, options);
        copy_common(to, &whole, values, &shape, type_bytes(from->type));
    }
    return PLIM_OK;
}

static uint64_t fit_room(const struct spec *from, const struct spec *to, const void *context)
{
    const struct fit_options *options = context;
    (void)from;
    return map_values_room(&to->column[map_first_column(to, options->column)]);
}

/* ---- job files ---- */

struct fit_words {
    const struct yaml *shape, *value;
};

static const struct setting fit_settings[] = {
    {"shape", SETTING_NODE, offsetof(struct fit_words, shape), 0},
    {"value", SETTING_NODE, offsetof(struct fit_words, value), 0},
};

static plim_status read_fit(struct fit_options *options, const char *job, const struct yaml *value, enum fit_kind kind,
                            plim_error *error)
{
    struct fit_words words = {.shape = value};
    const struct setting word = {"value", SETTING_WORD, 0, 0};
    const char *text = "0";
    if (value->kind == YAML_MAP) {
        words.shape = NULL;
        TRY(settings_read(&words, fit_settings, kind == FIT_TRUNCATE ? 1 : COUNT(fit_settings), job, value, error));
    }
    if (!words.shape)
        return hint(error, fail(error, PLIM_BAD_JOB, "'shape' is missing"), "%s: {shape: [10]}", names[kind]);
    if (words.value) {
        TRY(setting_value(&text, &word, job, words.value, error));
        if (strlen(text) >= sizeof options->text)
            return fail(error, PLIM_BAD_JOB, "value: at most %d bytes", (int)sizeof options->text - 1);
        snprintf(options->text, sizeof options->text, "%s", text);
        setting_number(&options->value, text); /* a text stays 0: only columns of strings have use for it */
    }
    return map_shape_read(&options->shape, names[kind], job, words.shape, error);
}

#define FIT_FUNCTION(word, kind)                                                                                       \
    static plim_status word##_infer(struct spec *spec, const void *options, plim_error *error)                         \
    {                                                                                                                  \
        return infer(spec, options, kind, error);                                                                      \
    }                                                                                                                  \
    static plim_status word##_run(const struct map_call *call, plim_error *error)                                      \
    {                                                                                                                  \
        return run(call, kind, error);                                                                                 \
    }                                                                                                                  \
    static plim_status word##_read(void *options, const char *job, const struct yaml *value, plim_error *error)        \
    {                                                                                                                  \
        return read_fit(options, job, value, kind, error);                                                             \
    }                                                                                                                  \
    const struct map_function map_##word = {.name = #word,                                                             \
                                            .infer = word##_infer,                                                     \
                                            .changes_rows = fit_changes_rows,                                          \
                                            .run = word##_run,                                                         \
                                            .options_bytes = sizeof(struct fit_options),                               \
                                            .room_bytes = fit_room,                                                    \
                                            .read = word##_read};
FIT_FUNCTION(pad, FIT_PAD)
FIT_FUNCTION(truncate, FIT_TRUNCATE)
FIT_FUNCTION(to_dense, FIT_DENSE)
