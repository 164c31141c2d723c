/* zip_stage.c - columns of several data sets side by side, until the first of them ends.

   Inputs give as many elements at a time as they like. One whose rows refer to values has a buffer here: its rows are
   handed on from there, and the values stay valid until our next call. The others write straight into the chunk
   that is to be filled, as often as it takes. Where elements may be bad, they go one by one: an input that fails still
   lets the others go one further, so that they stay side by side. */
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/stages/join/join.h"

#define ZIP_ROWS 128

struct zip_input {
    int column; /* where its columns begin */
    bool buffered;
    struct chunk rows; /* buffered: elements from..rows.count are still to be given */
    int64_t from;
};

struct zip_stream {
    struct stream stream;
    bool over;
    int64_t index[ZIP_ROWS]; /* which elements the inputs besides the first gave: nobody asks */
    uint64_t epoch[ZIP_ROWS];
    struct zip_input input[];
};

static uint64_t head_bytes(const struct dataset *dataset)
{
    return round_up(sizeof(struct zip_stream) + (uint64_t)join_count(dataset) * sizeof(struct zip_input), 64);
}

static uint64_t buffer_bytes(const struct dataset *input)
{
    return spec_has_values(input->spec) ? chunk_bytes(input->spec, ZIP_ROWS, input->value_bytes) : 0;
}

static uint64_t zip_bytes(const struct dataset *dataset)
{
    uint64_t bytes = head_bytes(dataset);
    for (int i = 0; i < join_count(dataset); i++)
        bytes = add_most(bytes, round_up(buffer_bytes(join_input(dataset, i)), 64));
    return bytes;
}

static plim_status zip_start(struct stream *stream, plim_error *error)
{
    struct zip_stream *self = (struct zip_stream *)stream;
    const struct dataset *dataset = stream->dataset;
    uint8_t *at = (uint8_t *)stream + head_bytes(dataset);
    int column = 0;
    (void)error;
    for (int i = 0; i < join_count(dataset); i++) {
        const struct dataset *from = join_input(dataset, i);
        struct zip_input *input = &self->input[i];
        input->column = column;
        column += from->spec->column_count;
        input->buffered = spec_has_values(from->spec);
        if (input->buffered)
            chunk_lay(&input->rows, at, from->spec, ZIP_ROWS, from->value_bytes);
        at += round_up(buffer_bytes(from), 64);
    }
    return PLIM_OK;
}

static plim_status zip_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct zip_stream *self = (struct zip_stream *)stream;
    self->over = false;
    for (int i = 0; i < join_count(stream->dataset); i++)
        self->input[i].from = self->input[i].rows.count = 0;
    return stream_rewind_inputs(stream, epoch, error);
}

/* ---- one input ---- */

/* The columns of input `i`, from row `first` on, as a chunk of its own. */
static void view(struct chunk *out, struct zip_stream *self, int i, struct chunk *to, int64_t first, int64_t rows)
{
    const struct spec *spec = join_input(self->stream.dataset, i)->spec;
    *out = (struct chunk){.spec = spec, .capacity = rows};
    for (int c = 0; c < spec->column_count; c++)
        out->column[c] = chunk_row(to, self->input[i].column + c, first);
    out->index = i ? self->index : to->index + first;
    out->epoch = i ? self->epoch : to->epoch + first;
}

/* Exactly *count rows straight into `to`, fewer at the end. */
static plim_status pull_direct(int64_t *count, struct zip_stream *self, int i, struct chunk *to, plim_error *error)
{
    int64_t got = 0;
    while (got < *count) {
        struct chunk part;
        view(&part, self, i, to, got, *count - got);
        TRY(stream_pull(stream_input(&self->stream, i), &part, *count - got, error));
        if (!part.count)
            break;
        got += part.count;
    }
    *count = got;
    return PLIM_OK;
}

static plim_status fill_buffer(struct zip_stream *self, int i, int64_t most, plim_error *error)
{
    struct zip_input *input = &self->input[i];
    if (input->from < input->rows.count)
        return PLIM_OK;
    input->from = 0;
    return stream_pull(stream_input(&self->stream, i), &input->rows, most, error);
}

static void take_buffered(struct zip_stream *self, int i, struct chunk *to, int64_t count)
{
    struct zip_input *input = &self->input[i];
    const struct spec *spec = input->rows.spec;
    for (int c = 0; c < spec->column_count; c++)
        memcpy(chunk_row(to, input->column + c, 0), chunk_row(&input->rows, c, input->from),
               (uint64_t)count * spec->column[c].bytes);
    if (i == 0) {
        memcpy(to->index, input->rows.index + input->from, (size_t)count * sizeof *to->index);
        memcpy(to->epoch, input->rows.epoch + input->from, (size_t)count * sizeof *to->epoch);
    }
    input->from += count;
}

/* ---- all of them ---- */

/* Samples of one element, in every column the same number: batches of 4 and of 32 cannot stand side by side. */
static plim_status check_samples(const struct dataset *dataset, const struct chunk *to, plim_error *error)
{
    for (int64_t row = 0; dataset->stacked && row < to->count; row++) {
        int64_t first = value_shape(&to->spec->column[0], chunk_row(to, 0, row)).dim[0];
        for (int c = 1; c < to->spec->column_count; c++) {
            int64_t other = value_shape(&to->spec->column[c], chunk_row(to, c, row)).dim[0];
            if (other != first)
                return fail(error, PLIM_BAD_DATA, "zip: batches of %lld and of %lld samples side by side",
                            (long long)first, (long long)other);
        }
    }
    return PLIM_OK;
}

static void keep_first(plim_status *status, plim_error *error, plim_status other, const plim_error *why)
{
    if (*status != PLIM_OK || other == PLIM_OK)
        return;
    *status = other;
    if (error)
        *error = *why;
}

/* How many elements all inputs with buffers can give. On an error every input has still gone as far as it could. */
static plim_status fill_buffers(int64_t *count, struct zip_stream *self, plim_error *error)
{
    plim_status status = PLIM_OK;
    for (int i = 0; i < join_count(self->stream.dataset); i++) {
        struct zip_input *input = &self->input[i];
        plim_error why = {0};
        if (!input->buffered || !*count) /* one that has ended ends them all */
            continue;
        plim_status own = fill_buffer(self, i, *count, &why);
        keep_first(&status, error, own, &why);
        int64_t left = input->rows.count - input->from;
        *count = own == PLIM_OK && left < *count ? left : *count;
    }
    return status;
}

static plim_status zip_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct zip_stream *self = (struct zip_stream *)stream;
    int64_t count = self->over ? 0 : stream->careful ? 1 : most < ZIP_ROWS ? most : ZIP_ROWS;
    if (!count)
        return PLIM_OK;
    plim_status status = fill_buffers(&count, self, error);
    for (int i = 0; i < join_count(stream->dataset) && (status == PLIM_OK || stream->careful); i++) {
        plim_error why = {0};
        if (!self->input[i].buffered && count)
            keep_first(&status, error, pull_direct(&count, self, i, to, &why), &why);
    }
    for (int i = 0; i < join_count(stream->dataset); i++) {
        struct zip_input *input = &self->input[i];
        if (input->buffered && status == PLIM_OK)
            take_buffered(self, i, to, count);
        else if (input->buffered) /* the element that failed counts as given */
            input->from = input->rows.count;
    }
    if (status != PLIM_OK)
        return status;
    self->over = !count;
    to->count = count;
    return check_samples(stream->dataset, to, error);
}

static plim_status skip_one(int64_t *passed, struct zip_stream *self, int i, int64_t count, struct chunk *by,
                            plim_error *error)
{
    struct zip_input *input = &self->input[i];
    struct stream *stream = stream_input(&self->stream, i);
    struct chunk part;
    if (!input->buffered) {
        int64_t rows = by->capacity < ZIP_ROWS ? by->capacity : ZIP_ROWS;
        view(&part, self, i, by, 0, rows);
        return stream_skip(passed, stream, count, &part, error);
    }
    int64_t held = input->rows.count - input->from, some = 0;
    held = held < count ? held : count;
    input->from += held;
    if (held < count)
        TRY(stream_skip(&some, stream, count - held, &input->rows, error));
    if (held < count)
        input->from = input->rows.count = 0;
    *passed = held + some;
    return PLIM_OK;
}

static plim_status zip_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error)
{
    struct zip_stream *self = (struct zip_stream *)stream;
    int64_t least = self->over ? 0 : count;
    for (int i = 0; i < join_count(stream->dataset) && least; i++) {
        int64_t some;
        TRY(skip_one(&some, self, i, least, by, error));
        least = some < least ? some : least;
    }
    self->over = self->over || least < count;
    *passed = least;
    return PLIM_OK;
}

static const struct stream_type zip_stream = {
    .bytes = zip_bytes, .start = zip_start, .rewind = zip_rewind, .pull = zip_pull, .skip = zip_skip};

/* ---- building ---- */

/* The shortest: an end that is known is one, even beside others that are not. */
static int64_t shorter(int64_t a, int64_t b)
{
    if (a == CARDINALITY_INFINITE || b == CARDINALITY_INFINITE)
        return a == CARDINALITY_INFINITE ? b : a;
    if (a == CARDINALITY_UNKNOWN || b == CARDINALITY_UNKNOWN)
        return a == 0 || b == 0 ? 0 : CARDINALITY_UNKNOWN;
    return a < b ? a : b;
}

static plim_status zip_build(struct dataset *dataset, plim_error *error)
{
    struct spec *spec = dataset_own_spec(dataset);
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].origin = c;
    for (int i = 1; i < join_count(dataset); i++) {
        const struct dataset *input = join_input(dataset, i);
        TRY(spec_beside(spec, input->spec, error));
        dataset->value_bytes = add_most(dataset->value_bytes, input->value_bytes);
        dataset->cardinality = shorter(dataset->cardinality, input->cardinality);
        if (dataset->stacked != input->stacked)
            dataset->stacked = 0;
    }
    return PLIM_OK;
}

static const struct stage stage_zip = {
    .name = "zip",
    .build = zip_build,
    .stream = &zip_stream,
    .sequential = true,
    .changes_spec = true,
};

struct dataset *dataset_zip(struct dataset *const *datasets, int count)
{
    struct dataset *failed;
    if (joined_possible(datasets, count, true))
        return joined_open(datasets, count, true);
    struct dataset *node = join_stage(&failed, &stage_zip, datasets, count, 0, NULL);
    return node ? dataset_built(node) : failed;
}
