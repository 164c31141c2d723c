/* concatenate.c - one data set after the other. Where all can be read by index, the result can be
   too (joined_source). */
#include "base/numbers/checked.h"
#include "pipeline/stages/join/join.h"

struct concatenate_stream {
    struct stream stream;
    int input;     /* whose turn it is */
    int64_t given; /* this epoch: elements are numbered anew */
};

static uint64_t concatenate_bytes(const struct dataset *dataset)
{
    return add_most(round_up(sizeof(struct concatenate_stream), 64), widen_bytes(dataset, join_count(dataset)));
}

static void *widen_block(struct concatenate_stream *self)
{
    return (uint8_t *)self + round_up(sizeof *self, 64);
}

static plim_status concatenate_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct concatenate_stream *self = (struct concatenate_stream *)stream;
    self->input = 0;
    self->given = 0;
    return stream_rewind_inputs(stream, epoch, error);
}

static plim_status concatenate_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct concatenate_stream *self = (struct concatenate_stream *)stream;
    for (; self->input < join_count(stream->dataset); self->input++) {
        plim_status status = widen_pull(stream, self->input, widen_block(self), to, most, error);
        if (status != PLIM_OK) {
            self->given += status == PLIM_BAD_DATA;
            return status;
        }
        if (!to->count)
            continue;
        chunk_number(to, self->given, stream->epoch);
        self->given += to->count;
        return PLIM_OK;
    }
    return PLIM_OK;
}

static plim_status concatenate_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                                    plim_error *error)
{
    struct concatenate_stream *self = (struct concatenate_stream *)stream;
    *passed = 0;
    while (*passed < count && self->input < join_count(stream->dataset)) {
        int64_t some, rest = count - *passed;
        TRY(widen_skip(&some, stream, self->input, widen_block(self), rest, by, error));
        *passed += some;
        self->given += some;
        self->input += some < rest;
    }
    return PLIM_OK;
}

static const struct stream_type concatenate_stream = {
    .bytes = concatenate_bytes,
    .rewind = concatenate_rewind,
    .pull = concatenate_pull,
    .skip = concatenate_skip,
};

static plim_status concatenate_build(struct dataset *dataset, plim_error *error)
{
    int64_t total = 0;
    TRY(join_widen(dataset, join_count(dataset), error));
    for (int i = 0; i < join_count(dataset); i++) {
        int64_t count = join_input(dataset, i)->cardinality;
        if (total == CARDINALITY_INFINITE || count == CARDINALITY_INFINITE)
            total = CARDINALITY_INFINITE;
        else if (total == CARDINALITY_UNKNOWN || count == CARDINALITY_UNKNOWN)
            total = CARDINALITY_UNKNOWN;
        else if (__builtin_add_overflow(total, count, &total))
            return fail(error, PLIM_BAD_JOB, "concatenate: more than 2^63 elements");
    }
    dataset->cardinality = total;
    return PLIM_OK;
}

static const struct stage stage_concatenate = {
    .name = "concatenate",
    .build = concatenate_build,
    .stream = &concatenate_stream,
    .sequential = true,
    .changes_spec = true,
};

struct dataset *dataset_concatenate(struct dataset *const *datasets, int count)
{
    struct dataset *failed;
    if (joined_possible(datasets, count, false))
        return joined_open(datasets, count, false);
    struct dataset *node = join_stage(&failed, &stage_concatenate, datasets, count, 0, NULL);
    return node ? dataset_built(node) : failed;
}
