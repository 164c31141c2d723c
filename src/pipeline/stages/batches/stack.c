/* stack.c - batches as elements: what a stage behind batch sees.

   A batch at the end of a pipeline is open: its rows are written one by one into a batch slot, and the spec is that
   of a sample. A stage that wants to shuffle, repeat, filter or cache whole batches closes it: each batch becomes one
   element with one more axis in front. The iterator opens such elements again when it gives them. */
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/core/stage.h"

/* ---- specs ---- */

plim_status spec_stack(struct spec *spec, int64_t rows, plim_error *error)
{
    for (int c = 0; c < spec->column_count; c++) {
        struct shape *shape = &spec->column[c].shape;
        if (shape->rank >= MOST_AXES)
            return fail(error, PLIM_UNSUPPORTED, "column '%s' has %d axes already", spec->column[c].name, shape->rank);
        memmove(shape->dim + 1, shape->dim, (size_t)shape->rank * sizeof shape->dim[0]);
        shape->dim[0] = rows;
        shape->rank++;
    }
    return PLIM_OK;
}

/* A column is that of the input it comes from as long as its rows look alike, or are said to have the same bytes. */
static void find_origin(struct column *column, const struct spec *before)
{
    bool reshaped = column->origin < -1;
    int origin = reshaped ? ORIGIN_RESHAPED(column->origin) : column->origin;
    const struct column *from = before && origin >= 0 ? &before->column[origin] : NULL;
    bool same = from && from->type == column->type;
    if (same && reshaped)
        same = from->bytes == column->bytes && !column_is_variable(from) && !column_is_variable(column);
    else if (same)
        same = shape_equal(&from->shape, &column->shape);
    column->origin = same ? origin : -1;
}

plim_status spec_measure(struct spec *spec, const struct spec *before, plim_error *error)
{
    uint64_t bytes = 0;
    bool fits = true;
    for (int c = 0; c < spec->column_count && fits; c++) {
        struct column *column = &spec->column[c];
        fits = column_bytes(&column->bytes, column) && add_u64(&bytes, bytes, column->bytes);
        find_origin(column, before);
    }
    spec->element_bytes = bytes;
    if (!fits || bytes > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "an element would have more bytes than an address can say");
    return PLIM_OK;
}

/* ---- running ---- */

struct stack_stream {
    struct stream stream;
    struct chunk rows; /* samples on their way into the batch */
};

#define STACK_ROWS 64

static int64_t rows_of(const struct dataset *dataset)
{
    return dataset->stacked < STACK_ROWS ? dataset->stacked : STACK_ROWS;
}

static uint64_t stack_bytes(const struct dataset *dataset)
{
    const struct dataset *input = dataset->input;
    return add_most(round_up(sizeof(struct stack_stream), 64),
                    chunk_bytes(input->spec, rows_of(dataset), input->value_bytes));
}

static plim_status stack_start(struct stream *stream, plim_error *error)
{
    struct stack_stream *self = (struct stack_stream *)stream;
    const struct dataset *input = stream->dataset->input;
    (void)error;
    chunk_lay(&self->rows, (uint8_t *)stream + round_up(sizeof *self, 64), input->spec, rows_of(stream->dataset),
              input->value_bytes);
    return PLIM_OK;
}

/* Where sample 0 of a column goes: into the row itself, or into the buffer, for as many samples as a batch may have. */
static uint8_t *begin_column(struct chunk *to, const struct dataset *dataset, int c)
{
    const struct column *column = &to->spec->column[c], *sample = &dataset->input->spec->column[c];
    uint8_t *row = chunk_row(to, c, 0);
    if (!column_is_variable(column))
        return row;
    struct cell *cell = (struct cell *)row;
    cell->data = value_buffer_take(&to->values, sample->bytes * (uint64_t)dataset->stacked);
    memcpy(cell->dim, column->shape.dim, sizeof cell->dim);
    cell->dim[0] = 0;
    return cell->data;
}

static plim_status begin_element(uint8_t *at[MOST_COLUMNS], struct chunk *to, const struct dataset *dataset,
                                 plim_error *error)
{
    for (int c = 0; c < to->spec->column_count; c++) {
        at[c] = begin_column(to, dataset, c);
        if (!at[c])
            return stream_too_large(dataset, to->values.wanted, to->values.capacity, error);
    }
    return PLIM_OK;
}

/* Samples behind `count` others; strings are taken along. */
static plim_status add_samples(struct stack_stream *self, struct chunk *to, uint8_t *const at[MOST_COLUMNS],
                               int64_t count, plim_error *error)
{
    const struct spec *spec = self->rows.spec;
    for (int c = 0; c < spec->column_count; c++) {
        const struct column *column = &spec->column[c];
        uint8_t *place_to = at[c] + (uint64_t)count * column->bytes;
        memcpy(place_to, self->rows.column[c], (uint64_t)self->rows.count * column->bytes);
        for (int64_t i = 0; column_has_values(column) && i < self->rows.count; i++)
            if (!value_own(&to->values, column, place_to + (uint64_t)i * column->bytes))
                return stream_too_large(self->stream.dataset, to->values.wanted, to->values.capacity, error);
    }
    return PLIM_OK;
}

static void end_element(struct chunk *to, int64_t count)
{
    for (int c = 0; c < to->spec->column_count; c++)
        if (column_is_variable(&to->spec->column[c]))
            ((struct cell *)chunk_row(to, c, 0))->dim[0] = count;
    to->count = 1;
}

static plim_status stack_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct stack_stream *self = (struct stack_stream *)stream;
    const struct dataset *dataset = stream->dataset;
    uint8_t *at[MOST_COLUMNS];
    int64_t count = 0;
    (void)most;
    TRY(begin_element(at, to, dataset, error));
    while (count < dataset->stacked) {
        TRY(stream_pull(stream->input, &self->rows, dataset->stacked - count, error));
        if (!self->rows.count)
            break;
        if (!count) {
            to->index[0] = self->rows.index[0];
            to->epoch[0] = self->rows.epoch[0];
        }
        TRY(add_samples(self, to, at, count, error));
        count += self->rows.count;
    }
    if (count && (count == dataset->stacked || !dataset->drop_remainder))
        end_element(to, count);
    return PLIM_OK;
}

static plim_status stack_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                              plim_error *error)
{
    struct stack_stream *self = (struct stack_stream *)stream;
    const struct dataset *dataset = stream->dataset;
    int64_t samples = 0;
    (void)by;
    if (!mul_i64(&samples, count, dataset->stacked))
        samples = INT64_MAX;
    TRY(stream_skip(&samples, stream->input, samples, &self->rows, error));
    bool partial = samples % dataset->stacked && !dataset->drop_remainder;
    *passed = samples / dataset->stacked + partial;
    return PLIM_OK;
}

static const struct stream_type stack_stream = {
    .bytes = stack_bytes, .start = stack_start, .pull = stack_pull, .skip = stack_skip};

/* ---- building ---- */

static plim_status stack_build(struct dataset *dataset, plim_error *error)
{
    struct spec *spec = dataset_own_spec(dataset);
    const struct dataset *input = dataset->input;
    int64_t last, steps = dataset_steps(input, &last);
    bool whole = input->drop_remainder || last == input->batch_size;
    dataset->stacked = input->batch_size;
    dataset->batch_size = 0;
    dataset->cardinality = steps;
    for (int c = 0; c < spec->column_count; c++)
        if (column_is_variable(&spec->column[c])) {
            fail(error, PLIM_BAD_JOB, "batch: column '%s' has elements of different shapes", spec->column[c].name);
            return hint(error, PLIM_BAD_JOB, "use padded_batch");
        }
    uint64_t bytes = 0;
    bool fits = mul_u64(&bytes, spec->element_bytes, (uint64_t)dataset->stacked);
    TRY(spec_stack(spec, whole ? dataset->stacked : -1, error));
    TRY(spec_measure(spec, input->spec, error));
    uint64_t gaps = VALUE_ALIGNMENT * (uint64_t)spec->column_count;
    if (spec_has_values(spec))
        dataset->value_bytes = fits ? add_most(input->value_bytes, add_most(bytes, gaps)) : UINT64_MAX;
    return PLIM_OK;
}

static const struct stage stage_stack = {
    .name = "batch",
    .after_batch = true,
    .build = stack_build,
    .stream = &stack_stream,
    .sequential = true,
    .changes_spec = true,
};

struct dataset *dataset_close_batch(struct dataset *dataset)
{
    if (!dataset->batch_size || dataset->error)
        return dataset;
    return dataset_add(dataset, &stage_stack, (struct stage_arguments){0});
}
