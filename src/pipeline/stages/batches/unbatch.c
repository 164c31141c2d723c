/* unbatch.c - the samples of batches, or the rows of any elements with a first axis, one by one.

   An element of the input stays where it is until its last row has been given: rows refer into it. */
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/core/stage.h"

struct unbatch_stream {
    struct stream stream;
    struct chunk element; /* one of the input */
    int64_t row, rows;    /* of it */
    int64_t given;        /* this epoch: rows are numbered anew */
};

static uint64_t unbatch_bytes(const struct dataset *dataset)
{
    const struct dataset *input = dataset->input;
    return add_most(round_up(sizeof(struct unbatch_stream), 64), chunk_bytes(input->spec, 1, input->value_bytes));
}

static plim_status unbatch_start(struct stream *stream, plim_error *error)
{
    struct unbatch_stream *self = (struct unbatch_stream *)stream;
    const struct dataset *input = stream->dataset->input;
    (void)error;
    chunk_lay(&self->element, (uint8_t *)stream + round_up(sizeof *self, 64), input->spec, 1, input->value_bytes);
    return PLIM_OK;
}

static plim_status unbatch_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct unbatch_stream *self = (struct unbatch_stream *)stream;
    self->row = self->rows = self->given = 0;
    return stream_rewind_inputs(stream, epoch, error);
}

static plim_status next_element(struct unbatch_stream *self, plim_error *error)
{
    const struct spec *spec = self->element.spec;
    self->row = self->rows = 0;
    TRY(stream_pull(self->stream.input, &self->element, 1, error));
    if (!self->element.count)
        return PLIM_OK;
    int64_t rows = value_shape(&spec->column[0], self->element.column[0]).dim[0];
    for (int c = 1; c < spec->column_count; c++) {
        int64_t other = value_shape(&spec->column[c], self->element.column[c]).dim[0];
        if (other != rows)
            return fail(error, PLIM_BAD_DATA, "unbatch: '%s' has %lld rows, '%s' has %lld", spec->column[0].name,
                        (long long)rows, spec->column[c].name, (long long)other);
    }
    self->rows = rows;
    return PLIM_OK;
}

/* Rows of one column of the element: bytes of its value, or cells that refer into it. */
static void give_column(struct chunk *to, const struct unbatch_stream *self, int c, int64_t count)
{
    const struct column *from = &self->element.spec->column[c], *column = &to->spec->column[c];
    uint8_t *row = self->element.column[c];
    struct shape shape = value_shape(from, row);
    uint8_t *data = column_is_variable(from) ? ((struct cell *)row)->data : row;
    uint64_t bytes = (uint64_t)shape_row(&shape) * type_bytes(from->type);
    if (!column_is_variable(column)) {
        if (bytes)
            memcpy(to->column[c], data + (uint64_t)self->row * bytes, (uint64_t)count * bytes);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        struct cell cell = {.data = data + (uint64_t)(self->row + i) * bytes};
        memcpy(cell.dim, shape.dim + 1, (size_t)(shape.rank - 1) * sizeof cell.dim[0]);
        memcpy(chunk_row(to, c, i), &cell, sizeof cell);
    }
}

static plim_status unbatch_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct unbatch_stream *self = (struct unbatch_stream *)stream;
    while (self->row == self->rows) {
        TRY(next_element(self, error));
        if (!self->element.count)
            return PLIM_OK;
    }
    int64_t count = self->rows - self->row < most ? self->rows - self->row : most;
    for (int c = 0; c < to->spec->column_count; c++)
        give_column(to, self, c, count);
    to->count = count;
    chunk_number(to, self->given, stream->epoch);
    self->row += count;
    self->given += count;
    return PLIM_OK;
}

/* Elements that are all batches of the same size are passed over unread. */
static plim_status skip_whole(struct unbatch_stream *self, int64_t *passed, int64_t count, plim_error *error)
{
    int64_t each = self->stream.dataset->input->spec->column[0].shape.dim[0], elements = 0;
    if (each < 1 || count - *passed < each)
        return PLIM_OK;
    TRY(stream_skip(&elements, self->stream.input, (count - *passed) / each, &self->element, error));
    *passed += elements * each;
    self->given += elements * each;
    return PLIM_OK;
}

static plim_status unbatch_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                                plim_error *error)
{
    struct unbatch_stream *self = (struct unbatch_stream *)stream;
    (void)by;
    for (*passed = 0; *passed < count;) {
        if (self->row == self->rows) {
            TRY(skip_whole(self, passed, count, error));
            if (*passed == count)
                break;
            TRY(next_element(self, error));
            if (!self->element.count)
                break;
        }
        int64_t some = self->rows - self->row < count - *passed ? self->rows - self->row : count - *passed;
        self->row += some;
        self->given += some;
        *passed += some;
    }
    return PLIM_OK;
}

static const struct stream_type unbatch_stream = {
    .bytes = unbatch_bytes,
    .start = unbatch_start,
    .rewind = unbatch_rewind,
    .pull = unbatch_pull,
    .skip = unbatch_skip,
};

/* ---- building ---- */

static plim_status unbatch_build(struct dataset *dataset, plim_error *error)
{
    struct spec *spec = dataset_own_spec(dataset);
    int64_t rows = -1;
    for (int c = 0; c < spec->column_count; c++) {
        struct shape *shape = &spec->column[c].shape;
        if (shape->rank < 1) {
            fail(error, PLIM_BAD_JOB, "unbatch: column '%s' is a single value", spec->column[c].name);
            return hint(error, PLIM_BAD_JOB, "put it behind a batch");
        }
        if (shape->dim[0] >= 0 && rows >= 0 && shape->dim[0] != rows)
            return fail(error, PLIM_BAD_JOB, "unbatch: '%s' has %lld rows, other columns %lld", spec->column[c].name,
                        (long long)shape->dim[0], (long long)rows);
        rows = shape->dim[0] >= 0 ? shape->dim[0] : rows;
        *shape = shape_of(shape->rank - 1, shape->dim + 1);
        spec->column[c].origin = -1;
    }
    TRY(spec_measure(spec, NULL, error));
    if (dataset->cardinality > 0 && (rows < 0 || !mul_i64(&dataset->cardinality, dataset->cardinality, rows)))
        dataset->cardinality = CARDINALITY_UNKNOWN;
    dataset->stacked = 0;
    dataset->value_bytes = spec_has_values(spec) ? dataset->value_bytes : 0;
    return PLIM_OK;
}

struct dataset *dataset_unbatch(struct dataset *dataset)
{
    return dataset_add(dataset, &stage_unbatch, (struct stage_arguments){0});
}

static plim_status unbatch_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    if (entry->value && !entry->value->is_null)
        return fail_at(error, PLIM_BAD_JOB, entry->where, "unbatch: has no value");
    *dataset = dataset_unbatch(*dataset);
    return PLIM_OK;
}

const struct stage stage_unbatch = {
    .name = "unbatch",
    .bare = true,
    .build = unbatch_build,
    .stream = &unbatch_stream,
    .sequential = true,
    .changes_spec = true,
    .read = unbatch_read,
};
