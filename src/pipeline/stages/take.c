/* take.c - the first elements of an epoch (take), or all but those (skip). */
#include "pipeline/core/stage.h"

/* Positions of data without end are added to skips: bounded, so that no sum overflows. */
#define MOST_SKIPPED_WITHOUT_END ((int64_t)1 << 48)

static plim_status take_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->number < -1)
        return fail(error, PLIM_BAD_JOB, "take: must be at least 0, or -1 for all; got %lld",
                    (long long)dataset->number);
    bool fewer = dataset->cardinality == CARDINALITY_INFINITE || dataset->number < dataset->cardinality;
    if (dataset->number == 0 || (dataset->number > 0 && fewer)) /* of an unknown number: still unknown */
        dataset->cardinality = dataset->number;
    return PLIM_OK;
}

static plim_status skip_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->number < 0)
        return fail(error, PLIM_BAD_JOB, "skip: must be at least 0; got %lld", (long long)dataset->number);
    if (dataset->cardinality < 0 && dataset->number > MOST_SKIPPED_WITHOUT_END)
        return fail(error, PLIM_UNSUPPORTED, "skip: at most 2^48 elements of data without end; got %lld",
                    (long long)dataset->number);
    if (dataset->cardinality >= 0)
        dataset->cardinality = dataset->number < dataset->cardinality ? dataset->cardinality - dataset->number : 0;
    return PLIM_OK;
}

/* The first elements are where they were. */
static void take_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                        int64_t count)
{
    (void)state, (void)dataset, (void)position, (void)epoch, (void)count;
}

static void skip_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                        int64_t count)
{
    (void)state, (void)epoch;
    for (int64_t i = 0; i < count; i++)
        position[i] += dataset->number;
}

/* ---- one after another ---- */

struct take_stream {
    struct stream stream;
    int64_t given; /* this epoch; skip: passed over */
    bool skipped;  /* skip: this epoch */
};

static int64_t take_left(const struct take_stream *self, int64_t most)
{
    int64_t number = self->stream.dataset->number;
    return number < 0 || number - self->given > most ? most : number - self->given;
}

static plim_status take_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct take_stream *self = (struct take_stream *)stream;
    most = take_left(self, most);
    if (!most)
        return PLIM_OK;
    plim_status status = stream_pull(stream->input, to, most, error);
    self->given += status == PLIM_OK ? to->count : 0;
    return status;
}

static plim_status take_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error)
{
    struct take_stream *self = (struct take_stream *)stream;
    plim_status status = stream_skip(passed, stream->input, take_left(self, count), by, error);
    self->given += *passed;
    return status;
}

/* The elements to be passed over, before the first one is given. */
static plim_status skip_first(struct take_stream *self, struct chunk *by, plim_error *error)
{
    int64_t passed = 0, number = self->stream.dataset->number;
    if (self->skipped)
        return PLIM_OK;
    plim_status status = stream_skip(&passed, self->stream.input, number - self->given, by, error);
    self->given += passed + (status == PLIM_BAD_DATA); /* a bad one is one of those that are passed over */
    self->skipped = status == PLIM_OK || self->given >= number;
    return status;
}

static plim_status skip_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    TRY(skip_first((struct take_stream *)stream, to, error));
    return stream_pull(stream->input, to, most, error);
}

static plim_status skip_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error)
{
    TRY(skip_first((struct take_stream *)stream, by, error));
    return stream_skip(passed, stream->input, count, by, error);
}

static const struct stream_type take_stream = {
    .state_bytes = sizeof(struct take_stream), .pull = take_pull, .skip = take_skip};
static const struct stream_type skip_stream = {
    .state_bytes = sizeof(struct take_stream), .pull = skip_pull, .skip = skip_skip};

/* ---- building ---- */

struct dataset *dataset_take(struct dataset *dataset, int64_t count)
{
    return dataset_add(dataset, &stage_take, (struct stage_arguments){.number = count});
}

struct dataset *dataset_skip(struct dataset *dataset, int64_t count)
{
    return dataset_add(dataset, &stage_skip, (struct stage_arguments){.number = count});
}

const struct stage stage_take = {
    .name = "take",
    .build = take_build,
    .locate = take_locate,
    .stream = &take_stream,
    .keeps_elements = true,
    .least = -1,
};

const struct stage stage_skip = {
    .name = "skip",
    .build = skip_build,
    .locate = skip_locate,
    .stream = &skip_stream,
    .keeps_elements = true,
};
