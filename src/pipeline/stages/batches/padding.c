/* padding.c - samples of different shapes into one stacked element. */
#include "pipeline/stages/batches/padding.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "base/text/text.h"

#define ROOM_MOST ((uint64_t)4 * 1024 * 1024)

/* ---- what is padded ---- */

static const struct padding *said_of(const struct column *column, const struct padding *said, int count)
{
    for (int i = 0; i < count; i++)
        if (said[i].column && strcmp(said[i].column, column->name) == 0)
            return &said[i];
    return NULL;
}

static const struct padding *said_of_all(const struct padding *said, int count)
{
    for (int i = 0; i < count; i++)
        if (!said[i].column)
            return &said[i];
    return NULL;
}

static plim_status resolve_shape(struct shape *out, const struct column *column, const struct shape *said,
                                 plim_error *error)
{
    if (said->rank != column->shape.rank)
        return fail(error, PLIM_BAD_JOB, "column '%s' has %d axes, its padded shape has %d", column->name,
                    column->shape.rank, said->rank);
    for (int i = 0; i < said->rank; i++) {
        if (said->dim[i] >= 0 && column->shape.dim[i] > said->dim[i])
            return fail(error, PLIM_BAD_JOB, "column '%s': axis %d has %lld elements and cannot be padded to %lld",
                        column->name, i, (long long)column->shape.dim[i], (long long)said->dim[i]);
        if (said->dim[i] >= 0) /* -1 for an extent that is known: the known one */
            out->dim[i] = said->dim[i];
    }
    return PLIM_OK;
}

static plim_status resolve_value(struct column_padding *out, const struct column *column, const struct padding *said,
                                 plim_error *error)
{
    if (column->type == TYPE_STRING) {
        struct string text = {.data = (const uint8_t *)"", .bytes = 0};
        if (said && said->has_value && said->text)
            text = (struct string){.data = (const uint8_t *)said->text, .bytes = strlen(said->text)};
        else if (said && said->has_value && said->column)
            return fail(error, PLIM_BAD_JOB, "column '%s' is of strings: its padding must be one", column->name);
        memcpy(out->value, &text, sizeof text);
        return PLIM_OK;
    }
    if (said && said->has_value && said->text && said->column)
        return fail(error, PLIM_BAD_JOB, "column '%s' is of %s: '%s' is no padding for it", column->name,
                    type_name(column->type), said->text);
    element_set(out->value, column->type, 0, said && said->has_value && !said->text ? said->value : 0);
    return PLIM_OK;
}

plim_status padding_resolve(struct column_padding *out, const struct spec *spec, const struct padding *said, int count,
                            plim_error *error)
{
    for (int i = 0; i < count; i++)
        if (said[i].column && spec_find(spec, said[i].column) < 0)
            return fail(error, PLIM_BAD_JOB, "padding: there is no column '%s'", said[i].column);
    for (int c = 0; c < spec->column_count; c++) {
        const struct column *column = &spec->column[c];
        const struct padding *own = said_of(column, said, count), *all = said_of_all(said, count);
        out[c] = (struct column_padding){.shape = column->shape};
        if (own && own->has_shape)
            TRY(resolve_shape(&out[c].shape, column, &own->shape, error));
        else if (all && all->has_shape)
            TRY(resolve_shape(&out[c].shape, column, &all->shape, error));
        TRY(resolve_value(&out[c], column, own && own->has_value ? own : all, error));
    }
    return PLIM_OK;
}

/* The spec of a stack of padded samples: `rows`, or any number of them (-1). */
static plim_status padded_spec(struct spec *spec, const struct column_padding *padding, int64_t rows, plim_error *error)
{
    const struct spec before = *spec;
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].shape = padding[c].shape;
    TRY(spec_stack(spec, rows, error));
    return spec_measure(spec, &before, error);
}

/* For so many samples of the input: enough when all are as large as the largest may be, but no more than a few MiB,
   unless one sample may be larger. stated: instead (0: not). */
static uint64_t padded_value_bytes(const struct dataset *input, int64_t samples, uint64_t stated)
{
    const struct spec *spec = input->spec;
    uint64_t gaps = VALUE_ALIGNMENT * (uint64_t)spec->column_count;
    uint64_t each = add_most(input->value_bytes, add_most(spec->element_bytes, gaps)), all;
    if (stated)
        return round_up(stated, VALUE_ALIGNMENT);
    if (!mul_u64(&all, each, (uint64_t)samples))
        all = UINT64_MAX;
    uint64_t most = each > ROOM_MOST ? each : ROOM_MOST;
    return round_up(all < most ? all : most, VALUE_ALIGNMENT);
}

plim_status stacking_build(struct dataset *dataset, int64_t kept, int64_t largest, bool whole, plim_error *error)
{
    struct stacking *stacking = (struct stacking *)(uintptr_t)dataset->options;
    struct spec *spec = dataset_own_spec(dataset);
    uint64_t stated = stacking->value_bytes ? stacking->value_bytes : dataset->value_bytes_stated;
    stacking->value_bytes = padded_value_bytes(dataset->input, kept, stated);
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].origin = c;
    TRY(padded_spec(spec, stacking->padding, whole ? largest : -1, error));
    dataset->stacked = largest;
    dataset->drop_remainder = stacking->drop_remainder;
    dataset->value_bytes = spec_has_values(spec) ? stacking->value_bytes : 0;
    return PLIM_OK;
}

uint64_t stacking_value_bytes(const struct dataset *dataset)
{
    const struct stacking *stacking = dataset->options;
    return spec_has_values(dataset->input->spec) ? stacking->value_bytes : 0;
}

/* ---- padding ---- */

static int64_t row_at(const int64_t *rows, int64_t i)
{
    return rows ? rows[i] : i;
}

/* The extents that all samples of a column get. */
static plim_status find_extents(struct shape *out, const struct chunk *from, int c, const int64_t *rows, int64_t count,
                                const struct column_padding *padding, int64_t open_extent, plim_error *error)
{
    const struct column *column = &from->spec->column[c];
    *out = padding->shape;
    for (int a = 0; a < out->rank; a++)
        out->dim[a] = padding->shape.dim[a] < 0 ? (open_extent < 0 ? 0 : open_extent) : padding->shape.dim[a];
    if (!column_is_variable(column))
        return PLIM_OK;
    for (int64_t i = 0; i < count; i++) {
        struct shape shape = value_shape(column, chunk_row(from, c, row_at(rows, i)));
        for (int a = 0; a < shape.rank; a++) {
            bool stated = padding->shape.dim[a] >= 0 || open_extent >= 0;
            if (stated && shape.dim[a] > out->dim[a])
                return fail(error, PLIM_BAD_DATA,
                            "element %lld: axis %d of column '%s' has %lld elements, more than the %lld to pad to",
                            (long long)from->index[row_at(rows, i)], a, column->name, (long long)shape.dim[a],
                            (long long)out->dim[a]);
            if (shape.dim[a] > out->dim[a])
                out->dim[a] = shape.dim[a];
        }
    }
    return PLIM_OK;
}

static void fill(uint8_t *to, uint64_t count, const uint8_t *value, size_t bytes)
{
    static const uint8_t zeros[PADDING_BYTES];
    if (memcmp(value, zeros, bytes) == 0) {
        memset(to, 0, count * bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * bytes, value, bytes);
}

/* A packed array of shape `from` into the corner of one of shape `to`. */
static void copy_corner(uint8_t *to, const struct shape *to_shape, const uint8_t *from, const struct shape *from_shape,
                        size_t bytes)
{
    int last = from_shape->rank - 1;
    uint64_t line = (uint64_t)from_shape->dim[last] * bytes;
    int64_t at[MOST_AXES] = {0};
    if (shape_count(from_shape) == 0)
        return;
    for (;;) {
        uint64_t place = 0;
        for (int a = 0; a < last; a++)
            place = (place + (uint64_t)at[a]) * (uint64_t)to_shape->dim[a + 1];
        memcpy(to + place * bytes, from, line);
        from += line;
        int a = last - 1;
        for (; a >= 0 && ++at[a] == from_shape->dim[a]; a--)
            at[a] = 0;
        if (a < 0)
            return;
    }
}

static const uint8_t *row_data(const struct column *column, const uint8_t *row)
{
    return column_is_variable(column) ? ((const struct cell *)row)->data : row;
}

static void stack_column(uint8_t *to, const struct chunk *from, int c, const int64_t *rows, int64_t count,
                         const struct shape *extents, const uint8_t *value)
{
    const struct column *column = &from->spec->column[c];
    size_t bytes = type_bytes(column->type);
    uint64_t each = (uint64_t)shape_count(extents);
    for (int64_t i = 0; i < count; i++, to += each * bytes) {
        const uint8_t *row = chunk_row(from, c, row_at(rows, i));
        struct shape shape = value_shape(column, row);
        if (shape_equal(&shape, extents)) {
            if (each)
                memcpy(to, row_data(column, row), each * bytes);
            continue;
        }
        fill(to, each, value, bytes);
        copy_corner(to, extents, row_data(column, row), &shape, bytes);
    }
}

/* Where the samples of a column go: into the row itself, or into the value buffer. */
static plim_status place_column(uint8_t **out, struct chunk *to, int c, int64_t count, const struct shape *extents,
                                const struct dataset *dataset, plim_error *error)
{
    const struct column *column = &to->spec->column[c];
    uint64_t bytes, all;
    *out = chunk_row(to, c, to->count);
    if (!column_is_variable(column))
        return column->shape.dim[0] == count
                   ? PLIM_OK
                   : fail(error, PLIM_INTERNAL, "%s: a batch of %lld samples where all have %lld", dataset->stage->name,
                          (long long)count, (long long)column->shape.dim[0]);
    struct cell *cell = (struct cell *)*out;
    if (!shape_bytes(&bytes, extents, column->type) || !mul_u64(&all, bytes, (uint64_t)count))
        return fail(error, PLIM_BAD_DATA, "column '%s': a padded batch is larger than an address can say",
                    column->name);
    *out = value_buffer_take(&to->values, all);
    if (!*out)
        return stream_too_large(dataset, to->values.wanted, to->values.capacity, error);
    cell->data = *out;
    cell->dim[0] = count;
    memcpy(cell->dim + 1, extents->dim, (size_t)extents->rank * sizeof cell->dim[0]);
    return PLIM_OK;
}

plim_status padding_stack(struct chunk *to, const struct chunk *from, const int64_t *rows, int64_t count,
                          const struct column_padding *padding, int64_t open_extent, const struct dataset *dataset,
                          plim_error *error)
{
    for (int c = 0; c < to->spec->column_count; c++) {
        struct shape extents;
        uint8_t *at;
        TRY(find_extents(&extents, from, c, rows, count, &padding[c], open_extent, error));
        TRY(place_column(&at, to, c, count, &extents, dataset, error));
        stack_column(at, from, c, rows, count, &extents, padding[c].value);
    }
    to->index[to->count] = from->index[row_at(rows, 0)];
    to->epoch[to->count] = from->epoch[row_at(rows, 0)];
    to->count++;
    return PLIM_OK;
}

/* ---- job files ---- */

static struct padding *entry_of(struct padding *out, int *count, const char *column)
{
    for (int i = 0; i < *count; i++)
        if (out[i].column == column || (out[i].column && column && strcmp(out[i].column, column) == 0))
            return &out[i];
    if (*count > MOST_COLUMNS)
        return NULL;
    out[*count] = (struct padding){.column = column};
    return &out[(*count)++];
}

static plim_status bad(const char *job, const struct yaml *at, const char *what, const char *advice, plim_error *error)
{
    return hint(error, yaml_fail(error, PLIM_BAD_JOB, job, at, "%s", what), "%s", advice);
}

/* [5, null] or [5, -1]. */
static plim_status read_shape(struct padding *entry, const char *job, const struct yaml *list, plim_error *error)
{
    const struct setting extent = {"padded_shapes", SETTING_WHOLE, 0, -1};
    if (!entry || list->kind != YAML_LIST || list->count > MOST_AXES - 1)
        return bad(job, list, "padded_shapes: expected a list of extents by column", "padded_shapes: {x: [100]}",
                   error);
    entry->has_shape = true;
    entry->shape.rank = 0;
    for (const struct yaml *item = list->first; item; item = item->next) {
        int64_t *dim = &entry->shape.dim[entry->shape.rank++];
        *dim = -1;
        if (!item->is_null)
            TRY(setting_value(dim, &extent, job, item, error));
    }
    return PLIM_OK;
}

static plim_status read_value(struct padding *entry, const char *job, const struct yaml *value, plim_error *error)
{
    if (!entry || value->kind != YAML_SCALAR || value->is_null)
        return bad(job, value, "padding_values: expected a value, or one by column", "padding_values: {x: -1}", error);
    entry->has_value = true;
    if (value->quoted || !setting_number(&entry->value, value->text))
        entry->text = value->text;
    return PLIM_OK;
}

typedef plim_status read_padding(struct padding *entry, const char *job, const struct yaml *value, plim_error *error);

/* {column: ...}, or what holds for all columns. */
static plim_status read_each(struct padding *out, int *count, read_padding *read_entry, const char *job,
                             const struct yaml *value, plim_error *error)
{
    if (!value || value->is_null)
        return PLIM_OK;
    if (value->kind != YAML_MAP)
        return read_entry(entry_of(out, count, NULL), job, value, error);
    for (const struct yaml *item = value->first; item; item = item->next)
        TRY(read_entry(entry_of(out, count, item->key), job, item, error));
    return PLIM_OK;
}

plim_status padding_read(struct padding *out, int *count, uint64_t *value_bytes, const struct padding_keys *keys,
                         const struct stage_entry *entry, plim_error *error)
{
    *count = 0;
    *value_bytes = 0;
    if (keys->room && (!text_parse_size(value_bytes, keys->room) || !*value_bytes))
        return bad(entry->job, entry->value, "room: expected a size", "room: 8MiB", error);
    TRY(read_each(out, count, read_shape, entry->job, keys->shapes, error));
    return read_each(out, count, read_value, entry->job, keys->values, error);
}
