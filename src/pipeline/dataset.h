/* dataset.h - files to batches: the lazy description, and its iterator.

   Two halves. The index prefix (source, shuffle, take, skip, shard, repeat) is
   a pure map from (epoch, position) to a source index: nothing to save but the
   position. Then rows are read straight into a batch slot, and maps run over the
   slot in chunks. Slots are a fixed ring: the ring is the credit, so the
   pipeline never holds more than it was granted.

   A stage is one table entry in stages.def; nobody switches on stages. */
#ifndef PIPELINE_DATASET_H
#define PIPELINE_DATASET_H

#include "formats/source.h"

struct dataset; /* counted, immutable once built (but for expect_labels); a failed one carries its error */

/* Each takes over the reference it is given. */
struct dataset *dataset_from_source(struct source *source); /* takes the source over, too */
struct dataset *dataset_shuffle(struct dataset *dataset, uint64_t seed); /* exact, global; anew each epoch */
struct dataset *dataset_take(struct dataset *dataset, int64_t count);
struct dataset *dataset_skip(struct dataset *dataset, int64_t count);
struct dataset *dataset_repeat(struct dataset *dataset, int64_t times); /* -1: without end */
struct dataset *dataset_batch(struct dataset *dataset, int64_t size, bool drop_remainder);
struct dataset *dataset_prefetch(struct dataset *dataset, int64_t depth); /* batches; PREFETCH_AUTO */
#define PREFETCH_AUTO (-1)
struct map_call {
    const struct spec *from_spec, *to_spec;
    void *const *from;
    void *const *to;
    const uint64_t *from_stride, *to_stride;
    int64_t count;
    const int64_t *index;
    uint64_t seed, epoch;
    const void *options;
};
/* A function over `count` elements of a chunk, in place or into another type. */
struct map_function {
    const char *name;
    /* Changes the spec; refuses what it cannot do. */
    plim_status (*infer)(struct spec *spec, const void *options, plim_error *error);
    /* from[c], to[c]: rows of `count` elements by column, in the two specs. index: source indices;
       random ones are functions of (seed, epoch, index) only. */
    plim_status (*run)(const struct map_call *call, plim_error *error);
    size_t options_bytes;
};
struct dataset *dataset_map(struct dataset *dataset, const struct map_function *function, const void *options);
/* Keeps the first error; returns a dataset that carries it. */
struct dataset *dataset_failed(struct budget *budget, const plim_error *error);

/* From now on a batch of this dataset is refused (BAD_DATA, naming the element) when its label column
   holds anything but whole numbers from 0 to classes - 1; LABELS_ARE_NUMBERS: anything but numbers. For the
   dataset that iterators are opened on, before they are; stages put around it do not inherit it. */
plim_status dataset_expect_labels(struct dataset *dataset, int column, int64_t classes, plim_error *error);
#define LABELS_ARE_NUMBERS 0

/* Another reference, to branch. */
struct dataset *dataset_ref(struct dataset *dataset);
void dataset_unref(struct dataset *dataset);
plim_status dataset_check(const struct dataset *dataset, plim_error *error);

const struct spec *dataset_spec(const struct dataset *dataset);
/* Elements an epoch, -1 when it never ends. */
int64_t dataset_cardinality(const struct dataset *dataset);
int64_t dataset_batch_size(const struct dataset *dataset); /* 0: not batched */
/* Batches an epoch (-1: no end) and samples in the last one. */
int64_t dataset_steps(const struct dataset *dataset, int64_t *last_batch);

/* What an iterator will take, by tag (batches, pipeline, formats, stacks), for a
   number of slots: added to by_tag and *scratch_bytes (may be NULL). And the least
   number it can work with (1 slot: no thread). */
int dataset_least_slots(const struct dataset *dataset);
int dataset_wanted_slots(const struct dataset *dataset); /* prefetch auto: 3 */
void dataset_cost(uint64_t by_tag[TAG_COUNT], uint64_t *scratch_bytes, const struct dataset *dataset, int slots);

struct batch {
    int64_t count;                 /* samples */
    void *column[MOST_COLUMNS];    /* row 0; rows are packed */
    int64_t epoch, step;           /* which batch this is */
};

struct iterator;
/* Takes everything now (slots are touched); starts at batch (epoch, step).
   slots > 1 reads ahead in a thread of its own. */
plim_status iterator_open(struct iterator **out, struct dataset *dataset, struct budget *budget, struct scratch *scratch, int slots, uint64_t seed, int64_t epoch, int64_t step, plim_error *error);
void iterator_close(struct iterator *iterator);
/* The next batch of this epoch, or *batch = NULL at the epoch's end (then the next
   call begins the next epoch). Valid until the next call. */
plim_status iterator_next(struct batch **batch, struct iterator *iterator, plim_error *error);
/* Goes on at another batch (validation starts from 0 each time). */
plim_status iterator_seek(struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error);

struct iterator_figures {
    uint64_t bytes_read, wait_ns, batches, elements;
    uint64_t ready; /* iterator_next calls served without waiting */
};
void iterator_figures(struct iterator_figures *out, const struct iterator *iterator);

#endif
