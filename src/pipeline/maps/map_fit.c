/* map_fit.c - rows of other extents: pad fills up, truncate cuts, to_dense does both.

   pad: 10                               to_dense: {shape: [10], value: -1}
   pad: {shape: [10, -1], value: 0}      truncate: 10 */
#include <string.h>

#include "pipeline/maps/map_functions.h"

enum fit_kind { FIT_PAD, FIT_TRUNCATE, FIT_DENSE };

/* The extent of the result; -1 where rows differ. */
static int64_t extent_of(int64_t extent, int64_t wanted, int kind)
{
    if (wanted < 0)
        return extent;
    if (kind == FIT_TRUNCATE)
        return extent < 0 || extent < wanted ? extent : wanted;
    return wanted;
}

static plim_status fit_infer(struct column *column, const struct map_function *self, const void *context,
                             plim_error *error)
{
    const struct fit_options *options = context;
    char shape[64];
    shape_text(shape, sizeof shape, &column->shape, false);
    if (column->shape.rank != options->shape.rank || column->shape.rank == 0)
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s, of other axes than the %d given", self->name,
                    column->name, shape, options->shape.rank);
    for (int a = 0; a < column->shape.rank; a++) {
        int64_t *extent = &column->shape.dim[a], wanted = options->shape.dim[a];
        if (self->kind == FIT_PAD && wanted >= 0 && *extent > wanted)
            return hint(error, fail(error, PLIM_BAD_JOB, "pad: column '%s' is %s: too long", column->name, shape),
                        "to_dense cuts what is too long");
        *extent = extent_of(*extent, wanted, self->kind);
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

static plim_status result_shape(struct shape *out, const struct map_row *row, plim_error *error)
{
    const struct fit_options *options = row->options;
    int kind = row->call->function->kind;
    *out = row->shape;
    for (int a = 0; a < out->rank; a++) {
        int64_t extent = row->shape.dim[a], wanted = options->shape.dim[a];
        if (kind == FIT_PAD && wanted >= 0 && extent > wanted)
            return hint(error,
                        fail(error, PLIM_BAD_DATA,
                             "element %lld: axis %d has %lld elements, more than the %lld to pad to",
                             map_element(row->call, row->index), a, (long long)extent, (long long)wanted),
                        "to_dense cuts what is too long");
        out->dim[a] = extent_of(extent, wanted, kind);
    }
    return PLIM_OK;
}

static plim_status fit_row(const struct map_row *row, plim_error *error)
{
    struct shape shape;
    TRY(result_shape(&shape, row, error));
    uint8_t *to = map_result(row, &shape);
    if (!to)
        return map_full(row->call, error);
    if (to == row->values) /* a column that fits as it is */
        return PLIM_OK;
    if (!shape_equal(&shape, &row->shape))
        fill(to, shape_count(&shape), row->from->type, row->options);
    copy_common(to, &shape, row->values, &row->shape, type_bytes(row->from->type));
    return PLIM_OK;
}

/* ---- job files ---- */

struct fit_settings {
    const struct yaml *shape, *value;
};

static plim_status fit_read(void *context, const struct map_function *self, const char *job, const struct yaml *value,
                            plim_error *error)
{
    static const struct setting settings[] = {
        {"shape", SETTING_NODE, offsetof(struct fit_settings, shape), 0},
        {"value", SETTING_NODE, offsetof(struct fit_settings, value), 0}, /* not of truncate: the last */
    };
    const struct setting word = {"value", SETTING_WORD, 0, 0};
    struct fit_options *options = context;
    struct fit_settings read = {0};
    const char *text = "0";
    TRY(map_settings_read(&read, &(struct map_settings){settings, self->kind == FIT_TRUNCATE ? 1 : 2, self->name}, job,
                          value, error));
    if (!read.shape)
        return hint(error, fail(error, PLIM_BAD_JOB, "'shape' is missing"), "%s: {shape: [10]}", self->name);
    if (read.value) {
        TRY(setting_value(&text, &word, job, read.value, error));
        TRY(map_text_read(options->text, sizeof options->text, "value", text, error));
        setting_number(&options->value, text); /* a text stays 0: only columns of strings have use for it */
    }
    return map_shape_read(&options->shape, self->name, job, read.shape, error);
}

#define FIT_FUNCTION(word, which)                                                                                      \
    const struct map_function map_##word = {.name = #word,                                                             \
                                            .kind = which,                                                             \
                                            .infer_column = fit_infer,                                                 \
                                            .changes_rows = fit_changes_rows,                                          \
                                            .run_row = fit_row,                                                        \
                                            .options_bytes = sizeof(struct fit_options),                               \
                                            .value_bytes = map_value_bytes,                                            \
                                            .read = fit_read};
FIT_FUNCTION(pad, FIT_PAD)
FIT_FUNCTION(truncate, FIT_TRUNCATE)
FIT_FUNCTION(to_dense, FIT_DENSE)
