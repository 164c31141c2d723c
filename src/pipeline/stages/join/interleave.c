/* interleave.c - a data set for each element, made by a callback: their elements one after the other (flat_map) or by
   turns (interleave, tf.data's order).

   The data sets of one member of the cycle, with everything that runs them, live in a ledger of their own, as large as
   was stated; the pipeline's ledger reserves all of these when it is opened. So what a callback makes can neither
   pass the budget nor starve others, and one that is too large is an error that says so. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "base/text/text.h"
#include "formats/files/interleave_order.h"
#include "pipeline/stages/join/join.h"

#define MOST_CYCLE 1024

struct cycle_member {
    struct budget *budget;
    struct dataset *dataset;
    struct stream *stream;
};

struct interleave_stream {
    struct stream stream;
    const struct interleave_options *options;
    struct interleave_order order;
    bool reserved;
    int64_t given;        /* this epoch: elements are numbered anew */
    struct chunk element; /* of the input: what the callback gets */
    int64_t *open;
    struct cycle_member *member;
};

/* ---- laying out ---- */

static uint64_t lists_bytes(const struct interleave_options *options)
{
    return round_up((uint64_t)options->cycle_length * (sizeof(struct cycle_member) + sizeof(int64_t)), 64);
}

static uint64_t interleave_bytes(const struct dataset *dataset)
{
    const struct dataset *input = dataset->input;
    uint64_t own = round_up(sizeof(struct interleave_stream), 64) + lists_bytes(dataset->options);
    return add_most(own, chunk_bytes(input->spec, 1, input->value_bytes));
}

static uint64_t reserve_bytes(const struct interleave_options *options)
{
    uint64_t bytes;
    return mul_u64(&bytes, options->reserve_bytes, (uint64_t)options->cycle_length) ? bytes : UINT64_MAX;
}

static void interleave_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches)
{
    (void)caches;
    by_tag[TAG_PIPELINE] = add_most(by_tag[TAG_PIPELINE], reserve_bytes(dataset->options));
}

static plim_status interleave_start(struct stream *stream, plim_error *error)
{
    struct interleave_stream *self = (struct interleave_stream *)stream;
    const struct dataset *input = stream->dataset->input;
    uint8_t *at = (uint8_t *)stream + round_up(sizeof *self, 64);
    const struct interleave_options *options = self->options = stream->dataset->options;
    self->member = (struct cycle_member *)at;
    self->open = (int64_t *)(self->member + options->cycle_length);
    at += lists_bytes(options);
    chunk_lay(&self->element, at, input->spec, 1, input->value_bytes);
    TRY(budget_reserve(stream->run.budget, TAG_PIPELINE, reserve_bytes(options), error));
    self->reserved = true;
    for (int64_t i = 0; i < options->cycle_length; i++)
        TRY(budget_make(&self->member[i].budget, options->reserve_bytes, error));
    interleave_begin(&self->order, INTERLEAVE_UNKNOWN, options->cycle_length, options->block_length, self->open);
    return PLIM_OK;
}

static void close_member(struct cycle_member *member)
{
    stream_close(member->stream);
    dataset_unref(member->dataset);
    member->stream = NULL;
    member->dataset = NULL;
}

static void interleave_stop(struct stream *stream)
{
    struct interleave_stream *self = (struct interleave_stream *)stream;
    for (int64_t i = 0; self->member && i < self->options->cycle_length; i++) {
        close_member(&self->member[i]);
        if (self->member[i].budget)
            budget_free(self->member[i].budget);
    }
    if (self->reserved)
        budget_release(stream->run.budget, TAG_PIPELINE, reserve_bytes(self->options));
}

static plim_status interleave_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct interleave_stream *self = (struct interleave_stream *)stream;
    for (int64_t i = 0; i < self->options->cycle_length; i++)
        close_member(&self->member[i]);
    interleave_begin(&self->order, INTERLEAVE_UNKNOWN, self->options->cycle_length, self->options->block_length,
                     self->open);
    self->given = 0;
    return stream_rewind_inputs(stream, epoch, error);
}

/* ---- one data set ---- */

static plim_status check_made(const struct interleave_stream *self, const struct dataset *made, plim_error *error)
{
    TRY(dataset_error(made, error));
    if (made->source->scratch_bytes)
        return fail(error, PLIM_UNSUPPORTED, "a source that has to be unpacked first cannot be made for each element");
    if (!spec_rows_alike(made->spec, self->stream.dataset->spec))
        return fail(error, PLIM_BAD_DATA, "the data set made for it has other columns than were stated");
    return PLIM_OK;
}

static plim_status open_member(struct interleave_stream *self, struct cycle_member *member, int64_t number,
                               plim_error *error)
{
    const struct stream *stream = &self->stream;
    const struct interleave_options *options = self->options;
    member->dataset = dataset_close_batch(options->make(&self->element, 0, options->context, member->budget));
    TRY(check_made(self, member->dataset, error));
    TRY(dataset_start(member->dataset, NULL, error));
    const struct stream_run run = {.budget = member->budget,
                                   .scratch = stream->run.scratch,
                                   .seed =
                                       random_key(stream->run.seed, (uint64_t)stream->dataset->node, (uint64_t)number)};
    TRY(stream_open(&member->stream, member->dataset, &run, error));
    if (stream->careful)
        stream_be_careful(member->stream);
    return stream_rewind(member->stream, stream->epoch, error);
}

static plim_status explain(const struct interleave_stream *self, int64_t number, plim_status status, plim_error *error)
{
    char where[96], size[16];
    const char *name = self->stream.dataset->stage->name;
    snprintf(where, sizeof where, "%s: element %lld", name, (long long)number);
    if (status != PLIM_OVER_BUDGET)
        return error_at(error, status, where);
    text_size(size, self->options->reserve_bytes);
    fail_at(error, status, where, "the data set made for it, with what runs it, needs more than the %s stated", size);
    return hint(error, status, "state a larger reserve");
}

/* Opens what comes next, if anything does, in the member whose turn it is. */
static plim_status open_next(struct interleave_stream *self, int64_t at, int64_t number, plim_error *error)
{
    struct cycle_member *where = &self->member[at];
    plim_status status = stream_pull(self->stream.input, &self->element, 1, error);
    if (status != PLIM_OK || !self->element.count) {
        interleave_not_opened(&self->order, status == PLIM_OK);
        return status;
    }
    status = open_member(self, where, number, error);
    if (status == PLIM_OK)
        return PLIM_OK;
    close_member(where);
    interleave_ended(&self->order);
    return explain(self, number, status, error);
}

/* The member whose turn it is, open; NULL: everything has ended. */
static plim_status find_member(struct cycle_member **out, struct interleave_stream *self, plim_error *error)
{
    for (;;) {
        int64_t opens, at = interleave_turn(&opens, &self->order);
        *out = at < 0 ? NULL : &self->member[at];
        if (at < 0 || opens < 0)
            return PLIM_OK;
        TRY(open_next(self, at, opens, error));
        if ((*out)->stream)
            return PLIM_OK;
    }
}

/* ---- running ---- */

static plim_status interleave_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct interleave_stream *self = (struct interleave_stream *)stream;
    for (;;) {
        struct cycle_member *member;
        TRY(find_member(&member, self, error));
        if (!member)
            return PLIM_OK;
        int64_t left = interleave_left(&self->order);
        plim_status status = stream_pull(member->stream, to, left < most ? left : most, error);
        if (status == PLIM_OK && !to->count) {
            close_member(member);
            interleave_ended(&self->order);
            continue;
        }
        int64_t count = status == PLIM_OK ? to->count : status == PLIM_BAD_DATA;
        chunk_number(to, self->given, stream->epoch);
        self->given += count;
        interleave_gave(&self->order, count);
        return status;
    }
}

static plim_status interleave_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                                   plim_error *error)
{
    struct interleave_stream *self = (struct interleave_stream *)stream;
    *passed = 0;
    while (*passed < count) {
        struct cycle_member *member;
        int64_t some, most = count - *passed;
        TRY(find_member(&member, self, error));
        if (!member)
            break;
        most = interleave_left(&self->order) < most ? interleave_left(&self->order) : most;
        TRY(stream_skip(&some, member->stream, most, by, error));
        self->given += some;
        *passed += some;
        interleave_gave(&self->order, some);
        if (some == most)
            continue;
        close_member(member);
        interleave_ended(&self->order);
    }
    return PLIM_OK;
}

static const struct stream_type interleave_stream = {
    .bytes = interleave_bytes,
    .cost = interleave_cost,
    .start = interleave_start,
    .stop = interleave_stop,
    .rewind = interleave_rewind,
    .pull = interleave_pull,
    .skip = interleave_skip,
};

/* ---- building ---- */

static plim_status interleave_build(struct dataset *dataset, plim_error *error)
{
    const struct interleave_options *options = dataset->options;
    struct spec *spec = dataset_own_spec(dataset);
    const char *name = dataset->stage->name;
    *spec = options->spec;
    if (!options->make || options->cycle_length < 1 || options->cycle_length > MOST_CYCLE || options->block_length < 1)
        return fail(error, PLIM_BAD_JOB, "%s: needs a callback, a cycle length of 1 to %d and a block length", name,
                    MOST_CYCLE);
    if (spec->column_count < 1 || !options->reserve_bytes)
        return fail(error, PLIM_BAD_JOB, "%s: the columns and the reserve of what the callback makes must be stated",
                    name);
    TRY(spec_measure(spec, NULL, error));
    dataset->value_bytes = spec_has_values(spec) ? options->value_bytes : 0;
    dataset->stacked = 0;
    if (dataset->cardinality != 0)
        dataset->cardinality = CARDINALITY_UNKNOWN;
    return PLIM_OK;
}

static const struct stage stage_interleave = {.name = "interleave",
                                              .build = interleave_build,
                                              .stream = &interleave_stream,
                                              .sequential = true,
                                              .changes_spec = true};
static const struct stage stage_flat_map = {.name = "flat_map",
                                            .build = interleave_build,
                                            .stream = &interleave_stream,
                                            .sequential = true,
                                            .changes_spec = true};

struct dataset *dataset_interleave(struct dataset *dataset, const struct interleave_options *options)
{
    return dataset_add(dataset, &stage_interleave,
                       (struct stage_arguments){.options = options, .options_bytes = sizeof *options});
}

struct dataset *dataset_flat_map(struct dataset *dataset, const struct interleave_options *options)
{
    struct interleave_options one = *options;
    one.cycle_length = 1;
    one.block_length = INT64_MAX / 2;
    return dataset_add(dataset, &stage_flat_map,
                       (struct stage_arguments){.options = &one, .options_bytes = sizeof one});
}
