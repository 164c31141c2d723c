/* ignore_errors.c - passes over elements that cannot be read or parsed, within a limit.

   Only PLIM_BAD_DATA is passed over, one element at a time: a broken disk or a full memory stays an error. How many
   there were, and the first of them, is in the iterator's figures. */
#include "pipeline/core/stage.h"

#define LOGGED 5 /* lines; the rest is in the count */

static plim_status ignore_build(struct dataset *dataset, plim_error *error)
{
    const struct ignore_options *options = dataset->options;
    if (options->rate < 0 || options->rate > 1)
        return fail(error, PLIM_BAD_JOB, "ignore_errors: rate must be from 0 to 1, got %g", options->rate);
    if (options->most < 0)
        return fail(error, PLIM_BAD_JOB, "ignore_errors: most must be at least 0");
    if (dataset->cardinality > 0)
        dataset->cardinality = CARDINALITY_UNKNOWN;
    return PLIM_OK;
}

/* ---- running ---- */

struct ignore_stream {
    struct stream stream;
    int64_t given, skipped; /* this epoch */
};

static plim_status ignore_start(struct stream *stream, plim_error *error)
{
    (void)error;
    stream_be_careful(stream->input);
    return PLIM_OK;
}

/* With a rate the first one is always forgiven: of few elements a share says nothing. */
static bool too_many(const struct ignore_stream *self)
{
    const struct ignore_options *options = self->stream.dataset->options;
    if (options->limit == IGNORE_MOST)
        return self->skipped > options->most;
    double seen = (double)(self->given + self->skipped);
    return options->limit == IGNORE_RATE && self->skipped > 1 && (double)self->skipped > options->rate * seen;
}

/* The error as it was, with how many there were before it. */
static plim_status give_up(const struct ignore_stream *self, plim_error *error)
{
    return hint(error, PLIM_BAD_DATA, "ignore_errors: %lld bad ones of %lld elements are too many",
                (long long)self->skipped, (long long)(self->given + self->skipped));
}

static plim_status ignore_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct ignore_stream *self = (struct ignore_stream *)stream;
    const struct ignore_options *options = stream->dataset->options;
    for (;;) {
        plim_error bad = {0};
        plim_status status = stream_pull(stream->input, to, most, &bad);
        if (status == PLIM_OK) {
            self->given += to->count;
            return PLIM_OK;
        }
        if (error)
            *error = bad;
        if (status != PLIM_BAD_DATA)
            return status;
        self->skipped++;
        stream->skipped++;
        if (too_many(self))
            return give_up(self, error);
        if (self->skipped <= LOGGED)
            log_line(options->log, "passed over: %s: %s", bad.where, bad.message);
        if (error)
            *error = (plim_error){0};
    }
}

static const struct stream_type ignore_stream = {
    .state_bytes = sizeof(struct ignore_stream), .start = ignore_start, .pull = ignore_pull};

/* ---- building ---- */

struct dataset *dataset_ignore_errors(struct dataset *dataset, const struct ignore_options *options)
{
    return dataset_add(dataset, &stage_ignore_errors,
                       (struct stage_arguments){.options = options, .options_bytes = sizeof *options});
}

static plim_status ignore_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct ignore_options options = {.most = -1, .rate = -1};
    static const struct setting settings[] = {
        {"most", SETTING_WHOLE, offsetof(struct ignore_options, most), 0},
        {"rate", SETTING_NUMBER, offsetof(struct ignore_options, rate), 0},
    };
    TRY(stage_settings(&options, settings, COUNT(settings), NULL, entry, error));
    bool most = options.most >= 0, rate = options.rate != -1;
    if (most && rate)
        return fail_at(error, PLIM_BAD_JOB, entry->where, "ignore_errors: 'most' or 'rate', not both");
    options.limit = most ? IGNORE_MOST : rate ? IGNORE_RATE : IGNORE_ALL;
    options.most = most ? options.most : 0;
    options.rate = rate ? options.rate : 0;
    *dataset = dataset_ignore_errors(*dataset, &options);
    return PLIM_OK;
}

const struct stage stage_ignore_errors = {
    .name = "ignore_errors",
    .bare = true,
    .build = ignore_build,
    .stream = &ignore_stream,
    .keeps_elements = true,
    .sequential = true,
    .read = ignore_read,
};
