/* stream.h - sequential (pull) execution of a stage, used when an element cannot be computed from its index.

   A running stage is one block of memory: its struct, which begins with a struct stream, followed by its buffers.
   type->bytes returns the size of the block, so the memory of a pipeline is known before it is opened. Streams follow
   the pull model: the last one asks the one before it for elements, on one thread at a time.

   A stage that forwards its input (filter, take, enumerate) pulls straight into the chunk that it has to fill and
   changes it there. A stage that keeps elements (shuffle, window) copies them with their strings and cells. */
#ifndef PIPELINE_CORE_STREAM_H
#define PIPELINE_CORE_STREAM_H

#include "pipeline/core/chunk.h"

struct dataset;
struct stream;

struct stream_type {
    /* The size of the whole block, including the struct; a pure function of the dataset. NULL: state_bytes. */
    uint64_t (*bytes)(const struct dataset *dataset);
    /* Of a struct that needs no buffers. Without rewind(), all of it behind its struct stream is zeroed when an epoch
       begins. */
    size_t state_bytes;
    /* Adds to by_tag what start() allocates in addition to the block. caches: optional caches keep their elements. May
       be NULL. */
    void (*cost)(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches);
    /* Lays out the zeroed block. The inputs are already open. May be NULL. */
    plim_status (*start)(struct stream *stream, plim_error *error);
    /* Frees what start() allocated in addition to the block. The inputs are closed afterwards. May be NULL. */
    void (*stop)(struct stream *stream);
    /* Moves to the beginning of an epoch. NULL: the state is zeroed (state_bytes) and the inputs are rewound. */
    plim_status (*rewind)(struct stream *stream, uint64_t epoch, plim_error *error);
    /* Writes the next 1..most elements (most <= to->capacity) into `to`, from row 0 on, and sets count, index and
       epoch. At the end of the epoch there are none, and every further pull returns none. The strings and cells lie in
       to->values, which the caller has emptied, or in memory of the stream that is valid until its next call. An
       element that does not fit into an empty buffer is an error (stream_too_large). After PLIM_BAD_DATA the bad
       element counts as delivered: the next pull continues after it. */
    plim_status (*pull)(struct stream *stream, struct chunk *to, int64_t most, plim_error *error);
    /* Instead of pull(), for stages that leave elements out: those of the input are in `to`, at most FLOW_ROWS of them.
       Moves the ones to keep to the front and sets count. */
    plim_status (*keep)(struct stream *stream, struct chunk *to, plim_error *error);
    /* Skips up to `count` elements. *passed < count: the epoch is over. NULL: elements are pulled into `by` instead. */
    plim_status (*skip)(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error);
};

/* What all streams of a run share. */
struct stream_run {
    struct budget *budget;
    struct scratch_disk *scratch; /* disk budget of file caches; NULL: their bytes are not counted */
    uint64_t seed;                /* each stage derives its own key from it: stream_key */
    bool caches;                  /* optional caches keep their elements */
};

struct stream {
    const struct stream_type *type;
    const struct dataset *dataset;
    struct stream_run run;
    uint64_t bytes;
    uint64_t epoch; /* of the stream's output */
    bool timed;     /* the time of each pull is measured, including its inputs */
    uint64_t busy_ns, elements;
    bool careful;             /* a later stage skips bad elements, so maps run for one element at a time */
    _Atomic uint64_t skipped; /* total number of bad elements that this stage has skipped */
    int input_count;
    struct stream *input;   /* NULL: this is a source */
    struct stream **others; /* further inputs: input_count - 1 of them */
};

static inline struct stream *stream_input(const struct stream *stream, int i)
{
    return i ? stream->others[i - 1] : stream->input;
}

/* Opens the stream that yields the elements of `dataset`: the stream of its stage, or a flow of maps over the nearest
   stream before it. */
plim_status stream_open(struct stream **out, const struct dataset *dataset, const struct stream_run *run,
                        plim_error *error);
void stream_close(struct stream *stream);
void stream_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches);
/* The same for each running part, starting with the last one: a stage, or a flow of maps, of which `dataset` is the
   last map. */
typedef void stream_visit(void *context, const struct dataset *dataset, const uint64_t by_tag[TAG_COUNT]);
void stream_cost_each(stream_visit *visit, void *context, const struct dataset *dataset, bool caches);
plim_status stream_rewind(struct stream *stream, uint64_t epoch, plim_error *error);
/* Empties the chunk and its buffer (to->values), then pulls. */
plim_status stream_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error);
/* Rewinds the inputs of a stage, for types with their own rewind. */
plim_status stream_rewind_inputs(struct stream *stream, uint64_t epoch, plim_error *error);
/* Skips by pulling elements into `by`, a chunk of the stream's spec, for streams that have no faster way to skip. */
plim_status stream_pull_past(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                             plim_error *error);
plim_status stream_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error);

/* Writes the file, and the place in it, that an element of this stream comes from (source_type.describe). False: this
   is unknown, because a stage combines or renumbers elements. Any thread may call it. */
bool stream_describe(char out[256], struct stream *stream, uint64_t epoch, int64_t index, const char *column);

/* From now on PLIM_BAD_DATA loses only the bad element, never its neighbours. A stage that continues after bad elements
   calls this. */
void stream_be_careful(struct stream *stream);
/* stream_time starts measuring. stream_times_each then reports the time of each stage, without its inputs, and the
   number of elements that it yielded. */
void stream_time(struct stream *stream);
typedef void stream_time_visit(void *context, const struct dataset *node, uint64_t busy_ns, uint64_t elements);
void stream_times_each(stream_time_visit *visit, void *context, const struct stream *stream);
/* The number of bad elements that this stream and the streams before it have skipped. Any thread may call it. */
uint64_t stream_skipped(const struct stream *stream);
/* The random key of this stage, derived from (run, stage, epoch). */
uint64_t stream_key(const struct stream *stream, uint64_t epoch);
/* The error for an element that needs `wanted` bytes and does not fit into a buffer of `capacity` bytes. */
plim_status stream_too_large(const struct dataset *dataset, uint64_t wanted, uint64_t capacity, plim_error *error);

#endif
