/* stream.h - elements one after another: how a stage runs where positions do not tell.

   A running stage is one block: its struct, which begins with a struct stream, and its buffers behind it.
   type->bytes says how large, so that what a pipeline takes is known before it is opened. Streams are pulled:
   the one at the end asks the one before it, on one thread at a time.

   A stage that hands on what it is given (filter, take, enumerate) pulls straight into the chunk it was asked to
   fill and changes it there. One that keeps elements (shuffle, window) copies them with their values. */
#ifndef PIPELINE_CORE_STREAM_H
#define PIPELINE_CORE_STREAM_H

#include "pipeline/core/chunk.h"

struct dataset;
struct stream;

struct stream_type {
    /* Of the whole block, struct included; a pure function of the dataset. */
    uint64_t (*bytes)(const struct dataset *dataset);
    /* What start() takes besides, by tag; may be NULL. */
    void (*cost)(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset);
    /* Lays out the zeroed block; inputs are open already. May be NULL. */
    plim_status (*start)(struct stream *stream, plim_error *error);
    /* Gives back what start() took besides; may be NULL. Inputs are closed afterwards. */
    void (*stop)(struct stream *stream);
    /* To the beginning of an epoch. NULL: the inputs are rewound, and that is all. */
    plim_status (*rewind)(struct stream *stream, uint64_t epoch, plim_error *error);
    /* The next 1..most elements (most <= to->capacity) into `to`, from its row 0 on, count, index and epoch set; none at
       the end of the epoch, and again none when asked again. Values lie in to->room, which the caller has
       emptied, or in memory of the stream's until its next call. An element that does not fit even into an empty
       room is an error (stream_too_large). After PLIM_BAD_DATA the bad element counts as given: pulling again
       goes on behind it. */
    plim_status (*pull)(struct stream *stream, struct chunk *to, int64_t most, plim_error *error);
    /* Passes over up to `count` elements; *passed < count: the epoch is over. NULL: they are pulled, into `by`. */
    plim_status (*skip)(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error);
};

struct stream {
    const struct stream_type *type;
    const struct dataset *dataset;
    struct budget *budget;
    struct scratch *scratch; /* whose disk caches in files take; NULL: nobody counts it */
    uint64_t bytes;
    uint64_t seed;  /* of the run; a stage makes its own of it: stream_key */
    uint64_t epoch; /* of the stream's output */
    bool timed;     /* the clock runs: pulls are measured, inputs included */
    uint64_t busy_ns, elements;
    bool careful;             /* bad elements are passed over further on: maps run for one element at a time */
    _Atomic uint64_t skipped; /* bad elements passed over, ever */
    struct stream *input;     /* NULL: a source */
    struct stream **others;   /* dataset->other_count of them */
};

/* What runs the elements of `dataset`: its stage's stream, or a flow of maps over the nearest one before it. */
plim_status stream_open(struct stream **out, const struct dataset *dataset, struct budget *budget,
                        struct scratch *scratch, uint64_t seed, plim_error *error);
void stream_close(struct stream *stream);
void stream_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset);
/* The same by running part, the last first: a stage's own, or the flow of maps that `dataset` is the last of. */
typedef void stream_visit(void *context, const struct dataset *dataset, const uint64_t by_tag[TAG_COUNT]);
void stream_cost_each(stream_visit *visit, void *context, const struct dataset *dataset);
plim_status stream_rewind(struct stream *stream, uint64_t epoch, plim_error *error);
/* Empties the chunk and its room first. */
plim_status stream_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error);
/* The inputs of a stage, for types that have a rewind of their own. */
plim_status stream_rewind_inputs(struct stream *stream, uint64_t epoch, plim_error *error);
/* Where the stream cannot skip by itself, elements are pulled into `by`, a chunk of its spec. */
plim_status stream_pull_past(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                             plim_error *error);
plim_status stream_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error);

/* Which file an element that this stream gave is from, and where in it: source_type.describe. False: nobody can tell,
   as it is made of several, or numbered anew. Any thread. */
bool stream_describe(char out[256], struct stream *stream, uint64_t epoch, int64_t index, const char *column);

/* From now on PLIM_BAD_DATA costs the bad element alone, never its neighbours: for a stage that goes on after it. */
void stream_be_careful(struct stream *stream);
/* From now on the clock runs; then: what each stage took itself, and the elements that it gave. */
void stream_time(struct stream *stream);
typedef void stream_time_visit(void *context, const struct dataset *node, uint64_t busy_ns, uint64_t elements);
void stream_times_each(stream_time_visit *visit, void *context, const struct stream *stream);
/* Bad elements that this stream and those before it have passed over. Any thread may ask. */
uint64_t stream_skipped(const struct stream *stream);
/* A key for what is random in this stage, of (run, stage, epoch). */
uint64_t stream_key(const struct stream *stream, uint64_t epoch);
/* The error for an element that needs `wanted` bytes of a room of `capacity`. */
plim_status stream_too_large(const struct dataset *dataset, uint64_t wanted, uint64_t capacity, plim_error *error);

#endif
