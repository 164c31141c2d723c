/* dataset.h - files to batches: the lazy description, and its iterator.

   Two halves. The index prefix (source, shuffle, take, skip, shard, repeat) is a pure map from (epoch, position) to
   a source index: nothing to save but the position. Then come streams: stages that see elements one after
   another. What lies behind the last of them, maps and the batch, is a flow (flow.h): any worker runs it, on
   rows that go straight into a batch slot. Slots are a fixed ring: the ring is the credit, so the pipeline never
   holds more than it was granted.

   A stage is one table entry in stages.def; nobody switches on stages. */
#ifndef PIPELINE_CORE_DATASET_H
#define PIPELINE_CORE_DATASET_H

#include "base/log.h"
#include "formats/source.h"

struct yaml;
struct dataset; /* counted, immutable once built (but for expect); a failed one carries its error */

/* Each takes over the reference it is given. */
struct dataset *dataset_from_source(struct source *source);              /* takes the source over, too */
struct dataset *dataset_shuffle(struct dataset *dataset, uint64_t seed); /* exact, global; anew each epoch */
enum shuffle_kind { SHUFFLE_EXACT, SHUFFLE_BLOCKS, SHUFFLE_BUFFER };
struct shuffle_options {
    enum shuffle_kind kind;
    uint64_t seed;
    bool same_each_epoch;      /* reshuffle_each_iteration: false */
    int64_t block_size, group; /* blocks: rows of a row block, row blocks of a group; 0: about 1 MiB, 16 */
    int64_t buffer_size;       /* buffer: elements */
    uint64_t bytes;            /* and bytes at most; 0: as many as the elements take, of values 16 MiB */
};
struct dataset *dataset_shuffle_with(struct dataset *dataset, const struct shuffle_options *options);
struct dataset *dataset_take(struct dataset *dataset, int64_t count);
struct dataset *dataset_skip(struct dataset *dataset, int64_t count);
struct dataset *dataset_repeat(struct dataset *dataset, int64_t times); /* -1: without end */
struct dataset *dataset_batch(struct dataset *dataset, int64_t size, bool drop_remainder);
struct dataset *dataset_prefetch(struct dataset *dataset, int64_t depth); /* batches; PREFETCH_AUTO */
#define PREFETCH_AUTO (-1)
struct dataset *dataset_shard(struct dataset *dataset, int64_t num_shards, int64_t index);
struct dataset *dataset_assert_cardinality(struct dataset *dataset, int64_t count);
/* An int64 column in front, which counts from `start`; name NULL: "index". */
struct dataset *dataset_enumerate(struct dataset *dataset, int64_t start, const char *name);
/* The first of equal elements: in one column, or (NULL) in all. memory: of the set of those seen; 0: by cardinality. */
struct dataset *dataset_unique(struct dataset *dataset, const char *column, uint64_t memory);

struct chunk; /* rows of elements: pipeline/core/chunk.h */
/* Which rows of a chunk pass: keep[0..chunk->count). */
typedef plim_status element_test(bool *keep, const struct chunk *chunk, void *context, plim_error *error);
struct dataset *dataset_filter(struct dataset *dataset, element_test *test, void *context);
struct dataset *dataset_take_while(struct dataset *dataset, element_test *test, void *context);
/* The test as job files write it, "label < 5"; `where` is the place of errors. */
struct dataset *dataset_filter_expression(struct dataset *dataset, const char *text, const char *where);
struct dataset *dataset_take_while_expression(struct dataset *dataset, const char *text, const char *where);

/* Passes over elements that are PLIM_BAD_DATA, as many as the limit says of each epoch. */
enum ignore_limit { IGNORE_ALL, IGNORE_MOST, IGNORE_RATE };
struct ignore_options {
    enum ignore_limit limit;
    int64_t most;          /* so many */
    double rate;           /* this share of the elements so far, and always one */
    const struct log *log; /* the first few are reported; NULL: none. Must outlive the dataset */
};
struct dataset *dataset_ignore_errors(struct dataset *dataset, const struct ignore_options *options);

/* One element after another through a state: run() reads row `row` of `from`, changes the state and makes row
   to->count of `to` (values in to->values; PLIM_OVER_BUDGET when it is full). The state begins each epoch as given. */
struct scan_options {
    const void *state;
    size_t state_bytes;
    const struct spec *spec; /* of what it makes (bytes are measured here); NULL: as the input's */
    uint64_t value_bytes;    /* of its values, where it has any */
    plim_status (*run)(void *state, struct chunk *to, const struct chunk *from, int64_t row, void *context,
                       plim_error *error);
    void *context;
};
struct dataset *dataset_scan(struct dataset *dataset, const struct scan_options *options);

/* Keeps elements such that the classes of what is left are distributed as target_dist says (sums to 1): each with a
   chance of its own, by (seed, epoch, position). */
#define RESAMPLE_CLASSES 256
struct resample_options {
    int64_t (*class_of)(const struct chunk *chunk, int64_t row, void *context); /* NULL: the number in `column` */
    void *context;
    char column[64];
    int class_count;
    double target_dist[RESAMPLE_CLASSES], initial_dist[RESAMPLE_CLASSES];
    bool has_initial; /* else it is estimated from what has come so far */
    uint64_t seed;
};
struct dataset *dataset_rejection_resample(struct dataset *dataset, const struct resample_options *options);

/* Elements of the first epoch kept, given again in later ones; the input is run as epoch 0 always. */
struct cache_options {
    uint64_t memory;  /* bytes to keep them in; 0: what the elements take, where that is known */
    bool optional;    /* kept where the budget has room for all of them, made anew each epoch where it has not */
    const char *file; /* NULL: in memory. FILE and FILE.values: complete or not there; a later run finds them */
};
struct dataset *dataset_cache(struct dataset *dataset, const struct cache_options *options);
/* The same in a folder, which is made: what dataset_save writes there, too. */
struct dataset *dataset_snapshot(struct dataset *dataset, const char *folder);
struct map_call {
    const struct map_function *function;
    const struct spec *from_spec, *to_spec;
    void *const *from;
    void *const *to;
    const uint64_t *from_stride, *to_stride;
    int64_t count;
    const int64_t *index;
    uint64_t seed, epoch;
    const void *options;
    void *state;                 /* of this worker's, for this stage; NULL when the function has none */
    struct value_buffer *values; /* for values that it makes; NULL when it makes none */
    int64_t *bad;                /* for map_element; NULL: nobody asks */
};
struct sha256;
struct map_row; /* pipeline/maps/map_functions.h */

/* A function over `count` elements of a chunk, in place or into another type. */
struct map_function {
    const char *name;
    int kind; /* which one it is, of several functions that share their code */
    /* Makes what the options own (tables, programs), once, in the dataset's own copy of them, before infer; what it
       takes is of the dataset (tag pipeline), and options_release gives it back, whatever of it was made. Pointers that
       the options were given need not live any longer than this, unless said. May be NULL. */
    plim_status (*options_make)(void *options, struct budget *budget, const struct spec *from, plim_error *error);
    /* Where options hold addresses: a number that stands for what they say (pipeline_digest.h). May be NULL. */
    int64_t (*options_number)(const void *options);
    /* Adds what the options have read from files (a vocabulary), so that other content under the same name is noticed.
       May be NULL. */
    void (*options_content)(struct sha256 *sha, const void *options);
    /* Changes the spec; refuses what it cannot do. A column that keeps its type and shape is worked on in place
       (to[c] == from[c]); one that is moved takes its `origin` along; a new one, or one of other bytes but the same
       type and shape that cannot be made in place, has origin -1; one of the same bytes in another shape has
       ORIGIN_RESHAPED(its origin). */
    plim_status (*infer)(struct spec *spec, const void *options, plim_error *error);
    /* Instead of infer, for a function that changes one column: the rules are the same. Its options begin with the name
       of the column; "" is the first one, or the last one where last_column is set. */
    plim_status (*infer_column)(struct column *column, const struct map_function *self, const void *options,
                                plim_error *error);
    bool last_column;
    /* from[c], to[c]: rows of `count` elements by column, in the two specs. index: source indices;
       random ones are functions of (seed, epoch, index) only. A full buffer: map_full(). */
    plim_status (*run)(const struct map_call *call, plim_error *error);
    /* Instead of run, for a function that changes one column: called for each row. Neither of them: the spec is all
       that changes. */
    plim_status (*run_row)(const struct map_row *row, plim_error *error);
    size_t options_bytes;
    /* Functions that make values (strings, cells), or need the buffer to work in: what the largest element is expected
       to take of it. Such a function is called for one element at a time. NULL, or 0 for these columns: it needs
       none. */
    uint64_t (*value_bytes)(const struct spec *from, const struct spec *to, const void *options);
    /* What a worker keeps between calls (decoders, tables in use), in the flow's own block, zeroed; state_start may
       take state_cost more from the budget (tag pipeline). All may be NULL but in pairs. */
    uint64_t (*state_bytes)(const struct spec *from, const struct spec *to, const void *options);
    uint64_t (*state_cost)(const struct spec *from, const struct spec *to, const void *options);
    plim_status (*state_start)(void *state, struct budget *budget, const struct spec *from, const struct spec *to,
                               const void *options, plim_error *error);
    void (*state_stop)(void *state);
    /* Gives back what the options own, when the dataset is freed; may be NULL. */
    void (*options_release)(void *options);
    bool heavy; /* microseconds an element: worth a thread of its own */
    /* Whether it may change a column's first extent where the spec does not tell (-1 before and after): elements that
       were batches are none any more. NULL: it never does. */
    bool (*changes_rows)(const struct spec *from, const void *options);
    /* For job files: options (zeroed) from what stands behind the function's name; the column is set by the caller.
       value is NULL where nothing stands there, which only `bare` ones allow. NULL: the column is all there is. */
    bool bare;
    plim_status (*read)(void *options, const struct map_function *self, const char *job, const struct yaml *value,
                        plim_error *error);
    /* After read: the function right behind this one in the same list (NULL: there is none). May be NULL. */
    plim_status (*precede)(void *options, const char *job, const char *next, const struct yaml *next_value,
                           plim_error *error);
};
#define ORIGIN_RESHAPED(column) (-2 - (column))
/* The number of the element in this row, for an error about it: whoever runs the function then tells its file. */
long long map_element(const struct map_call *call, int64_t row);
/* Runs call->function. */
plim_status map_run(const struct map_call *call, plim_error *error);
/* The error of a map_function that found call->values full. */
plim_status map_full(const struct map_call *call, plim_error *error);
struct dataset *dataset_map(struct dataset *dataset, const struct map_function *function, const void *options);

/* Expressions over the columns as they come in, all at once: each replaces its column, or adds one of a new name.
   `where` is the place of errors, and may be NULL. Texts are copied. */
struct map_expression {
    const char *column, *text, *where;
};
struct dataset *dataset_map_expressions(struct dataset *dataset, const struct map_expression *list, int count);
struct dataset *dataset_map_expression(struct dataset *dataset, const char *column, const char *text);
/* These columns alone, in this order; and the same columns under other names. Nothing is copied. */
struct dataset *dataset_select(struct dataset *dataset, const char *const *columns, int count);
struct dataset *dataset_rename(struct dataset *dataset, const char *const *from, const char *const *to, int count);

/* ---- several into one: all of them are taken over ---- */

/* Columns side by side, until the shortest ends; a name that is taken becomes x, y, c2... by its place. */
struct dataset *dataset_zip(struct dataset *const *datasets, int count);
/* One after the other; columns of the same names and types. */
struct dataset *dataset_concatenate(struct dataset *const *datasets, int count);
/* `choices` (one column of int64) says which one gives the next element. One that has ended is passed over, or ends it
   all (stop_on_empty: tf.data's default here). */
struct dataset *dataset_choose_from_datasets(struct dataset *const *datasets, int count, struct dataset *choices,
                                             bool stop_on_empty);
/* By chance, in proportion to weights (NULL: equally); a function of (seed, epoch, position). */
struct dataset *dataset_sample_from_datasets(struct dataset *const *datasets, int count, const double *weights,
                                             uint64_t seed, bool stop_on_empty);

/* ---- elements that are stacks of elements; value_bytes: of one (of all that are kept), 0: as expected ---- */

/* What is said of one column; of all that have nothing of their own where `column` is NULL. */
struct padding {
    const char *column;
    bool has_shape;
    struct shape shape; /* -1: as the longest of the batch */
    bool has_value;
    double value;
    const char *text; /* instead, in a column of strings; must outlive the dataset */
};
struct dataset *dataset_padded_batch(struct dataset *dataset, int64_t size, const struct padding *padding, int count,
                                     bool drop_remainder, uint64_t value_bytes);
struct dataset *dataset_unbatch(struct dataset *dataset);
/* Batches of other sizes, which take turns. */
struct dataset *dataset_rebatch(struct dataset *dataset, const int64_t *sizes, int count, bool drop_remainder);
/* shift 0: as size. */
struct dataset *dataset_window(struct dataset *dataset, int64_t size, int64_t shift, int64_t stride,
                               bool drop_remainder);
struct chunk;
typedef plim_status group_key_function(int64_t *key, const struct chunk *elements, int64_t row, void *context,
                                       plim_error *error);
struct group_by_window_options {
    group_key_function *key; /* or NULL: the column, a whole number */
    void *context;
    const char *column;
    int64_t window_size, batch_size; /* batch_size 0: the window is one batch */
    bool drop_remainder;
    const struct padding *padding;
    int padding_count;
    uint64_t value_bytes;
};
struct dataset *dataset_group_by_window(struct dataset *dataset, const struct group_by_window_options *options);
struct bucket_options {
    const char *column;                      /* whose length counts; NULL: the first */
    const int64_t *boundaries, *batch_sizes; /* batch_sizes: one more than boundaries */
    int boundary_count;
    bool pad_to_bucket_boundary, drop_remainder;
    const struct padding *padding;
    int padding_count;
    uint64_t value_bytes;
};
struct dataset *dataset_bucket_by_sequence_length(struct dataset *dataset, const struct bucket_options *options);

/* ---- a dataset for each element ---- */

struct interleave_options {
    /* Makes the dataset for row `row` of the elements; takes all it needs from this budget, which has reserve_bytes.
       Must give the same for the same element. */
    struct dataset *(*make)(const struct chunk *elements, int64_t row, void *context, struct budget *budget);
    void *context;
    struct spec spec;       /* of what these give: names, types, shapes */
    uint64_t value_bytes;   /* of the values of an element of theirs, where there are values */
    uint64_t reserve_bytes; /* for one of them at a time with everything that runs it; cycle_length are open */
    int64_t cycle_length, block_length;
    int parallel; /* accepted; changes nothing in the order */
};
/* By turns, in tf.data's order. */
struct dataset *dataset_interleave(struct dataset *dataset, const struct interleave_options *options);
/* One after the other: cycle_length and block_length do not count. */
struct dataset *dataset_flat_map(struct dataset *dataset, const struct interleave_options *options);

/* ---- sources without files ---- */

/* The caller's arrays as one element; as `count` of them. They are never copied whole and must outlive the dataset. */
struct dataset *dataset_from_tensors(struct budget *budget, const struct spec *spec, const void *const *columns);
struct dataset *dataset_from_tensor_slices(struct budget *budget, const struct spec *spec, const void *const *columns,
                                           int64_t count);
/* Elements that a function makes. */
struct dataset *dataset_from_generator(struct budget *budget, const struct spec *spec,
                                       const struct generator *generator);
/* start, start + step, ...: so many, or CARDINALITY_INFINITE. */
struct dataset *dataset_counter(struct budget *budget, int64_t start, int64_t step, int64_t count);
/* Paths that match, as strings: sorted, or shuffled anew each epoch. */
struct dataset *dataset_list_files(struct budget *budget, const char *const *patterns, int count, bool shuffle,
                                   uint64_t seed);

/* Keeps the first error; returns a dataset that carries it. */
struct dataset *dataset_failed(struct budget *budget, const plim_error *error);

enum expectation { EXPECT_NUMBERS, EXPECT_CLASSES, EXPECT_IDS };
/* From now on a batch of this dataset is refused (BAD_DATA, naming the element) when this column holds anything but
   whole numbers from 0 to below - 1 (classes of a loss, ids of an embedding); EXPECT_NUMBERS: anything but numbers. For
   the dataset that iterators are opened on, before they are; stages put around it do not inherit it. Of several rules
   of a column the last holds. */
plim_status dataset_expect(struct dataset *dataset, int column, enum expectation kind, int64_t below,
                           plim_error *error);

/* How large a value, with all that is made of it on its way, may become: instead of what source and functions expect.
   For a dataset fresh from its source, before stages are put around it. */
void dataset_set_value_bytes(struct dataset *dataset, uint64_t bytes);

/* Another reference, to branch. */
struct dataset *dataset_ref(struct dataset *dataset);
void dataset_unref(struct dataset *dataset);
plim_status dataset_check(const struct dataset *dataset, plim_error *error);

const struct spec *dataset_spec(const struct dataset *dataset);
/* Of one sample: the spec less the axis of the batch, where elements are batches. */
void dataset_sample_spec(struct spec *out, const struct dataset *dataset);
/* "5 elements", "1 element", "elements without end", "an unknown number of elements": for messages. */
void elements_text(char out[48], int64_t cardinality);
/* Elements an epoch, or CARDINALITY_INFINITE, CARDINALITY_UNKNOWN. */
int64_t dataset_cardinality(const struct dataset *dataset);
int64_t dataset_batch_size(const struct dataset *dataset); /* 0: not batched */
/* Batches an epoch (or CARDINALITY_...) and samples in the last one (0: not known, it may be any number). */
int64_t dataset_steps(const struct dataset *dataset, int64_t *last_batch);

/* What an iterator works with: batch slots, and threads that fill them besides the caller. */
struct grant {
    int slots, workers;
    int held;    /* row blocks of a shuffle that are in memory, 0 to held_most() (held_blocks.h) */
    bool caches; /* optional caches keep their elements */
    bool timed;  /* the clock runs: iterator_times_each tells what each stage takes */
};
/* The least and the most that is of use: prefetch auto has 3 slots, more small ones where row blocks are held; threads
   as many as there are for data, fewer where the work is too light to be shared. */
struct grant dataset_least_grant(const struct dataset *dataset);
struct grant dataset_wanted_grant(const struct dataset *dataset, int data_threads);
/* A little less: of held blocks of the next group, of slots, of the other held blocks, of threads, in this order; false
   when it is the least already. */
bool grant_shrink(struct grant *grant, struct grant least);
/* The most that is of use and fits: caches go last, after all that only reads ahead. */
typedef bool grant_fits(void *context, struct grant grant);
struct grant grant_choose(const struct dataset *dataset, int data_threads, grant_fits *fits, void *context);
/* What an iterator will take, by tag (batches, pipeline, formats, stacks), and on disk for unpacked sources and caches
   in files, as far as that is known: added to by_tag and *scratch_bytes (may be NULL). */
void dataset_cost(uint64_t by_tag[TAG_COUNT], uint64_t *scratch_bytes, const struct dataset *dataset,
                  struct grant grant);

struct batch {
    int64_t count;              /* samples */
    void *column[MOST_COLUMNS]; /* row 0; rows are packed */
    int64_t epoch, step;        /* which batch this is */
    const void *origin;         /* the iterator that gave it */
};

/* What running a dataset takes memory and disk from, and the seed of what is random in it. */
struct data_run {
    struct budget *budget;
    struct scratch_disk *scratch; /* NULL: there is none */
    uint64_t seed;
};
struct batch_place {
    int64_t epoch, step;
};

struct iterator;
/* Takes everything now (slots are touched); starts at this batch (NULL: at the first one): at once where the data has
   an index, else elements before it are passed over. A dataset without batch gives its elements one by one. */
plim_status iterator_open(struct iterator **out, struct dataset *dataset, const struct data_run *run,
                          struct grant grant, const struct batch_place *start, plim_error *error);
void iterator_close(struct iterator *iterator);
/* The next batch of this epoch, or *batch = NULL at the epoch's end (then the next
   call begins the next epoch). Valid until the next call. */
plim_status iterator_next(struct batch **batch, struct iterator *iterator, plim_error *error);
/* The shape of a column of the batch given last, samples first: where they were padded, how far. Samples of different
   shapes (-1) are cells. */
struct shape iterator_shape(const struct iterator *iterator, int column);
/* Whether the caller is one of its own threads, in a function that the data set calls: it must not wait for a batch. */
bool iterator_is_worker(const struct iterator *iterator);
const struct spec *iterator_spec(const struct iterator *iterator);
/* Goes on at another batch (validation starts from 0 each time). */
plim_status iterator_seek(struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error);

/* The same by element (a batch where elements are batches): the rest of that epoch, in batches from there on. */
plim_status iterator_seek_element(struct iterator *iterator, int64_t epoch, int64_t element, plim_error *error);
/* Where the next batch begins; behind a last one that is not whole, further on than there are elements. */
void iterator_position(int64_t *epoch, int64_t *element, const struct iterator *iterator);

struct iterator_figures {
    uint64_t bytes_read, wait_ns, batches, elements;
    uint64_t ready;        /* iterator_next calls served without waiting */
    int threads;           /* that were enough lately, the caller among them */
    uint64_t skipped;      /* bad elements that ignore_errors passed over */
    uint64_t direct_bytes; /* of held blocks, that were read past the page cache */
};
void iterator_figures(struct iterator_figures *out, const struct iterator *iterator);
/* How many threads, of `most`, are wanted after so many of these batches were ready when they were asked for: fewer
   when all were, more when many were not. Which of them fills a batch never changes it. */
int threads_wanted(int now, int most, uint64_t ready, uint64_t batches);
/* Of an iterator with a timed grant, once or more a stage (each worker has its own): nanoseconds, and elements
   given. */
typedef void iterator_visit(void *context, const struct dataset *node, uint64_t busy_ns, uint64_t elements);
void iterator_times_each(iterator_visit *visit, void *context, struct iterator *iterator);

/* ---- running one to its end ---- */

/* Each batch of epoch 0, or each element where there is no batch stage, with the caller's state. */
typedef plim_status batch_visit(void *state, const struct batch *batch, const struct spec *spec, plim_error *error);
plim_status dataset_reduce(void *state, struct dataset *dataset, const struct data_run *run, batch_visit *visit,
                           plim_error *error);
/* All elements of epoch 0 as a snapshot (formats/records/snapshot.h) in a folder: complete, or not there. */
plim_status dataset_save(struct dataset *dataset, const char *folder, const struct data_run *run, plim_error *error);

#endif
