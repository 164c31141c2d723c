/* assert_cardinality.c - how many elements there are: said by the user, checked on the way. */
#include "pipeline/core/stage.h"

static plim_status assert_build(struct dataset *dataset, plim_error *error)
{
    int64_t known = dataset->cardinality;
    char there[48], said[48];
    if (dataset->number < CARDINALITY_INFINITE)
        return fail(error, PLIM_BAD_JOB, "assert_cardinality: must be at least 0, or -1 for no end; got %lld",
                    (long long)dataset->number);
    elements_text(there, known);
    elements_text(said, dataset->number);
    if (known != CARDINALITY_UNKNOWN && known != dataset->number)
        return fail(error, PLIM_BAD_JOB, "assert_cardinality: the data has %s, not %s", there, said);
    dataset->cardinality = dataset->number;
    return PLIM_OK;
}

/* Data with an index is known to have as many. */
static void assert_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                          int64_t count)
{
    (void)state, (void)dataset, (void)position, (void)epoch, (void)count;
}

struct assert_stream {
    struct stream stream;
    int64_t given;
    bool told; /* that it is over, or too many: nothing more comes */
};

static plim_status check_count(const struct assert_stream *self, bool over, plim_error *error)
{
    int64_t number = self->stream.dataset->number;
    char said[48];
    elements_text(said, number);
    if (over && self->given != number)
        return fail(error, PLIM_BAD_DATA, "assert_cardinality: the data has %lld elements, not %s",
                    (long long)self->given, said);
    if (number >= 0 && self->given > number)
        return fail(error, PLIM_BAD_DATA, "assert_cardinality: the data has more than %lld elements",
                    (long long)number);
    return PLIM_OK;
}

/* No further than to the element that is one too many: those before it are good. */
static plim_status assert_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct assert_stream *self = (struct assert_stream *)stream;
    int64_t left = stream->dataset->number - self->given;
    if (left > 0 && left < most)
        most = left;
    if (self->told)
        return PLIM_OK;
    TRY(stream_pull(stream->input, to, most, error));
    self->given += to->count;
    plim_status status = check_count(self, !to->count, error);
    self->told = status != PLIM_OK || !to->count;
    return status;
}

static plim_status assert_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                               plim_error *error)
{
    struct assert_stream *self = (struct assert_stream *)stream;
    TRY(stream_skip(passed, stream->input, count, by, error));
    self->given += *passed;
    return check_count(self, *passed < count, error);
}

static const struct stream_type assert_stream = {
    .state_bytes = sizeof(struct assert_stream), .pull = assert_pull, .skip = assert_skip};

struct dataset *dataset_assert_cardinality(struct dataset *dataset, int64_t count)
{
    return dataset_add(dataset, &stage_assert_cardinality, (struct stage_arguments){.number = count});
}

const struct stage stage_assert_cardinality = {
    .name = "assert_cardinality",
    .build = assert_build,
    .locate = assert_locate,
    .stream = &assert_stream,
    .keeps_elements = true,
    .least = CARDINALITY_INFINITE,
};
