/* repeat.c - the same elements several times an epoch, or without end.

   Each repetition is an epoch of its own for what lies before it, so that it is
   shuffled anew: repetition r of epoch e is epoch e * times + r of the input. */
#include "base/numbers/checked.h"
#include "pipeline/core/stage.h"

/* Without end an epoch has no last repetition; later epochs start this many further on. */
#define REPETITIONS_WITHOUT_END ((uint64_t)1 << 40)

static plim_status repeat_build(struct dataset *dataset, plim_error *error)
{
    int64_t times = dataset->number;
    if (times == 0 || times < -1)
        return fail(error, PLIM_BAD_JOB, "repeat: must be at least 1, or -1 for no end; got %lld", (long long)times);
    if (dataset->cardinality == 0 || dataset->cardinality == CARDINALITY_INFINITE)
        return PLIM_OK;
    if (times < 0)
        dataset->cardinality = CARDINALITY_INFINITE;
    else if (dataset->cardinality == CARDINALITY_UNKNOWN)
        return PLIM_OK;
    else if (!mul_i64(&dataset->cardinality, dataset->cardinality, times))
        return fail(error, PLIM_BAD_JOB, "repeat: %lld times is more than 2^63 elements", (long long)times);
    return PLIM_OK;
}

static void repeat_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                          int64_t count)
{
    (void)state;
    int64_t n = dataset->input->cardinality;
    uint64_t times = dataset->number < 0 ? REPETITIONS_WITHOUT_END : (uint64_t)dataset->number;
    for (int64_t i = 0; i < count; i++) {
        int64_t repetition = n > 0 ? position[i] / n : 0; /* an input without end is its own first repetition */
        epoch[i] = epoch[i] * times + (uint64_t)repetition;
        position[i] -= n > 0 ? repetition * n : 0;
    }
}

/* ---- one after another ---- */

struct repeat_stream {
    struct stream stream;
    uint64_t repetition;
    bool any; /* this repetition has given something: without end, an empty input would never end */
};

static plim_status begin_repetition(struct repeat_stream *self, uint64_t repetition, plim_error *error)
{
    const struct dataset *dataset = self->stream.dataset;
    uint64_t times = dataset->number < 0 ? REPETITIONS_WITHOUT_END : (uint64_t)dataset->number;
    self->repetition = repetition;
    self->any = false;
    return stream_rewind_inputs(&self->stream, self->stream.epoch * times + repetition, error);
}

static plim_status repeat_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    (void)epoch; /* stream->epoch */
    return begin_repetition((struct repeat_stream *)stream, 0, error);
}

/* Whether another repetition follows the one that is over. */
static bool goes_on(const struct repeat_stream *self)
{
    int64_t times = self->stream.dataset->number;
    return times < 0 ? self->any : self->repetition + 1 < (uint64_t)times;
}

static plim_status repeat_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct repeat_stream *self = (struct repeat_stream *)stream;
    for (;;) {
        TRY(stream_pull(stream->input, to, most, error));
        if (to->count) {
            self->any = true;
            return PLIM_OK;
        }
        if (!goes_on(self))
            return PLIM_OK;
        TRY(begin_repetition(self, self->repetition + 1, error));
    }
}

static plim_status repeat_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                               plim_error *error)
{
    struct repeat_stream *self = (struct repeat_stream *)stream;
    for (*passed = 0; *passed < count;) {
        int64_t some;
        TRY(stream_skip(&some, stream->input, count - *passed, by, error));
        self->any = self->any || some;
        *passed += some;
        if (*passed == count || !goes_on(self))
            return PLIM_OK;
        TRY(begin_repetition(self, self->repetition + 1, error));
    }
    return PLIM_OK;
}

static const struct stream_type repeat_stream = {
    .state_bytes = sizeof(struct repeat_stream), .rewind = repeat_rewind, .pull = repeat_pull, .skip = repeat_skip};

/* ---- building ---- */

struct dataset *dataset_repeat(struct dataset *dataset, int64_t times)
{
    return dataset_add(dataset, &stage_repeat, (struct stage_arguments){.number = times});
}

const struct stage stage_repeat = {
    .name = "repeat",
    .bare = true,
    .build = repeat_build,
    .locate = repeat_locate,
    .stream = &repeat_stream,
    .keeps_elements = true,
    .least = -1,
};
