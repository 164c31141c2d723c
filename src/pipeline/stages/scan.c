/* scan.c - one element after another through a state of the caller's: running sums, differences, numbering. */
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/core/stage.h"

#define SCAN_ROWS  64
#define SCAN_BYTES ((uint64_t)64 * 1024)

/* The state as it begins lies behind the options. */
static void *state_of(const struct dataset *dataset)
{
    return (uint8_t *)(uintptr_t)dataset->options + round_up(sizeof(struct scan_options), 64);
}

static plim_status scan_build(struct dataset *dataset, plim_error *error)
{
    const struct scan_options *options = dataset->options;
    struct spec *spec = dataset_own_spec(dataset);
    if (!options->run)
        return fail(error, PLIM_USAGE, "scan: there is no function");
    if (!options->spec)
        return PLIM_OK;
    *spec = *options->spec;
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].origin = -1;
    TRY(spec_measure(spec, NULL, error));
    dataset->stacked = 0;
    if (spec_has_values(spec) && !dataset->value_bytes_stated)
        dataset->value_bytes = add_most(dataset->input->value_bytes, options->value_bytes);
    return PLIM_OK;
}

/* ---- running ---- */

struct scan_stream {
    struct stream stream;
    void *state;
    struct chunk in;
    int64_t at; /* its next row */
};

static int64_t rows_of(const struct dataset *dataset)
{
    uint64_t bytes = dataset->input->spec->element_bytes;
    int64_t rows = bytes ? (int64_t)(SCAN_BYTES / bytes) : SCAN_ROWS;
    return rows < 1 ? 1 : rows < SCAN_ROWS ? rows : SCAN_ROWS;
}

static uint64_t state_bytes(const struct dataset *dataset)
{
    const struct scan_options *options = dataset->options;
    return round_up(options->state_bytes, 64);
}

static uint64_t scan_bytes(const struct dataset *dataset)
{
    uint64_t rows = chunk_bytes(dataset->input->spec, rows_of(dataset), dataset->input->value_bytes);
    return add_most(round_up(sizeof(struct scan_stream), 64) + state_bytes(dataset), rows);
}

static plim_status scan_start(struct stream *stream, plim_error *error)
{
    struct scan_stream *self = (struct scan_stream *)stream;
    const struct dataset *dataset = stream->dataset;
    (void)error;
    self->state = (uint8_t *)stream + round_up(sizeof *self, 64);
    chunk_lay(&self->in, (uint8_t *)self->state + state_bytes(dataset), dataset->input->spec, rows_of(dataset),
              dataset->input->value_bytes);
    return PLIM_OK;
}

static plim_status scan_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct scan_stream *self = (struct scan_stream *)stream;
    const struct scan_options *options = stream->dataset->options;
    if (options->state_bytes)
        memcpy(self->state, state_of(stream->dataset), options->state_bytes);
    self->at = self->in.count = 0;
    return stream_rewind_inputs(stream, epoch, error);
}

/* Rows that came in are made into rows that go out. What it makes values of goes out one by one: a full buffer can
   not be tried again, the state has gone on. */
static plim_status scan_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct scan_stream *self = (struct scan_stream *)stream;
    const struct scan_options *options = stream->dataset->options;
    if (self->at == self->in.count) {
        self->at = 0;
        TRY(stream_pull(stream->input, &self->in, self->in.capacity, error));
    }
    most = spec_has_values(to->spec) || stream->careful ? 1 : most;
    for (; self->at < self->in.count && to->count < most; to->count++) {
        to->index[to->count] = self->in.index[self->at];
        to->epoch[to->count] = self->in.epoch[self->at];
        TRY(options->run(self->state, to, &self->in, self->at++, options->context, error));
    }
    return PLIM_OK;
}

static const struct stream_type scan_stream = {
    .bytes = scan_bytes, .start = scan_start, .rewind = scan_rewind, .pull = scan_pull};

static const struct stage stage_scan = {
    .name = "scan",
    .build = scan_build,
    .stream = &scan_stream,
    .sequential = true,
    .changes_spec = true,
};

struct dataset *dataset_scan(struct dataset *dataset, const struct scan_options *options)
{
    void *block;
    size_t bytes = round_up(sizeof *options, 64) + options->state_bytes;
    struct dataset *node = dataset_stage(&dataset, &stage_scan, bytes, &block);
    if (!node)
        return dataset;
    node->options = memcpy(block, options, sizeof *options);
    if (options->state_bytes)
        memcpy(state_of(node), options->state, options->state_bytes);
    return dataset_built(node);
}
