/* plimsoll.h - train neural networks inside a stated number of bytes.

   Every function that can fail returns a plim_status and takes a plim_error
   last (may be NULL, is yours). Outputs come first and are untouched on
   failure. Nothing here ends the process.

   Every call takes NULL and answers PLIM_USAGE where it needs more (builders
   return NULL, or a data set that carries the error). A job, a graph, a program and an iterator serve one call at a
   time: a second one, from another thread or from a function that the first
   one calls, answers PLIM_USAGE (a builder NULL) and changes nothing. What is
   closed or freed meanwhile goes when the running call returns. Budgets and
   data sets may be shared by threads.

   Each call computes in C's default floating-point environment and gives
   back yours, flags too. Listeners, meters and visits run in yours; functions
   that a data set calls (generators, maps, tests, scans, interleave) run on any thread,
   rounding to nearest, without traps, denormals as zero. */
#ifndef PLIMSOLL_H
#define PLIMSOLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PLIM_API __attribute__((visibility("default")))
#else
#define PLIM_API
#endif

#define PLIM_VERSION "0.1.0"

/* ---- status -------------------------------------------------------- */

typedef enum plim_status {
    PLIM_OK = 0,
    PLIM_USAGE,
    PLIM_BAD_JOB,
    PLIM_BAD_DATA,
    PLIM_BAD_MODEL,
    PLIM_OVER_BUDGET, /* no plan fits; the hint says what would */
    PLIM_OVER_DISK,
    PLIM_NO_MEMORY, /* the system broke its word */
    PLIM_IO,
    PLIM_INTERRUPTED, /* stopped, with a checkpoint unless they are turned off */
    PLIM_UNSUPPORTED,
    PLIM_INTERNAL /* our fault */
} plim_status;

/* One line for people: "where: message; hint". */
typedef struct plim_error {
    plim_status code;
    char where[256];   /* file:line:column, or file and byte */
    char message[512]; /* what is wrong */
    char hint[256];    /* what to try; may be empty */
} plim_error;

PLIM_API const char *plim_version(void);
/* "OVER_BUDGET" and so on. */
PLIM_API const char *plim_status_name(plim_status status);
/* The exit code of a program that ends with this status. */
PLIM_API int plim_status_exit(plim_status status);

/* ---- a job: one file, one run --------------------------------------- */

typedef struct plim_job plim_job;

typedef struct plim_job_options {
    const char *memory;           /* "48MiB", "80%", "auto"; NULL: the job file's */
    const char *threads;          /* "2" or "compute=2,data=1"; NULL: the job file's, or all cores */
    const char *scratch;          /* folder for unpacked sources; NULL: the job file's */
    const char *disk;             /* "2GiB"; NULL: the job file's */
    const char *checkpoint;       /* folder of checkpoints; NULL: the job file's */
    const char *const *overrides; /* "train.epochs=1", overrides_count of them */
    size_t overrides_count;
    bool resume;         /* go on from the newest checkpoint that loads */
    bool data_changed;   /* with resume: goes on although the data is not what the checkpoint was made with */
    bool digest;         /* digests of weights and optimizer in the end event */
    bool data_only;      /* for the calls about data: model: and train: are not read and may be missing */
    const char *command; /* of plim, that hints name where opening is refused: "plan"; NULL: "train" */
} plim_job_options;

/* Reads and checks a job file; opens no data. */
PLIM_API plim_status plim_job_open(plim_job **job, const char *path, const plim_job_options *options,
                                   plim_error *error);
/* A job over data files alone (as with data_only): what they are is found out by their first bytes and names. */
PLIM_API plim_status plim_job_open_files(plim_job **job, const char *const *paths, size_t count,
                                         const plim_job_options *options, plim_error *error);
/* A job that is at work (from its listener, or another thread) is asked to stop, and goes when that call returns. */
PLIM_API void plim_job_close(plim_job *job);

/* What a run tells while it goes on: one call an event, on the calling
   thread. `json` is one complete line without newline. */
typedef enum plim_event_kind {
    PLIM_EVENT_PLAN,
    PLIM_EVENT_BEGIN,
    PLIM_EVENT_STEP,
    PLIM_EVENT_EPOCH,
    PLIM_EVENT_END
} plim_event_kind;

typedef struct plim_plan_report {
    bool fits;
    uint64_t budget_bytes;
    const char *budget_source; /* stated | cgroup | rlimit | available */
    uint64_t predicted_peak_bytes;
    uint64_t smallest_budget_bytes;
    int64_t largest_batch; /* of plim_job_plan; 0 where a run planned for itself, which does not look for it */
    const char *text;      /* the plan for people, several lines */
    const char *json;      /* the plan object of doc/json.md, one line */
} plim_plan_report;

#define PLIM_MOST_METRICS 64

typedef struct plim_progress {
    int64_t epoch, epochs;   /* epoch counts from 1 */
    int64_t step, steps;     /* in this epoch; steps is -1 when unknown */
    int64_t total_steps;     /* since the start of training */
    int64_t samples;         /* in this epoch */
    double seconds;          /* this epoch so far */
    double seconds_per_step; /* first step left out */
    double step_loss;        /* of the last batch alone */
    double loss, val_loss;   /* running means over the epoch */
    bool validated;          /* the val_ figures are of this epoch */
    int metric_count;
    const char *metric[PLIM_MOST_METRICS]; /* "accuracy" */
    double metric_value[PLIM_MOST_METRICS], val_metric_value[PLIM_MOST_METRICS];
    /* Of a metric that is several numbers (F1Score without an average, Precision with several thresholds), whose mean
       is the value: how many, and they; 0 and NULL of others. They are valid while the event is being handled. */
    int64_t metric_each_count[PLIM_MOST_METRICS];
    const double *metric_each[PLIM_MOST_METRICS], *val_metric_each[PLIM_MOST_METRICS];
    uint64_t budget_bytes;
    const char *note;      /* something to tell once (BEGIN, STEP), or NULL */
    int64_t skipped_steps; /* that loss scaling left out because a gradient was not finite, of total_steps */
} plim_progress;

typedef struct plim_end {
    const char *status; /* done | stopped | failed */
    int64_t steps, samples;
    double seconds, samples_per_s;
    uint64_t predicted_peak_bytes, peak_rss_bytes;
    double allocations_per_step;
    int64_t malloc_growth_bytes; /* held by malloc: end against step 100; 0 is right */
    double data_wait_share;
    const char *note;           /* all that was to be reported, or NULL */
    int64_t skipped_steps;      /* since the start of training, as in plim_progress */
    const char *checkpoint;     /* path, or NULL */
    const char *weights_digest; /* NULL unless asked for */
    const char *optimizer_digest;
} plim_end;

typedef struct plim_event {
    plim_event_kind kind;
    const plim_plan_report *plan;
    const plim_progress *progress;
    const plim_end *end;
} plim_event;

typedef void plim_listener(void *context, const plim_event *event);

/* Makes the plan: what the job would take, before any record is read. Fills
   *report even when nothing fits (status PLIM_OVER_BUDGET). The strings live
   as long as the job. */
PLIM_API plim_status plim_job_plan(plim_plan_report *report, plim_job *job, plim_error *error);
/* Write the plan (made first, if there is none yet) to a file for people: budgets against time as SVG; the memory of the
   training step as one HTML page, which loads nothing else. Of a plan that does not fit, too. */
PLIM_API plim_status plim_job_plan_plot(plim_job *job, const char *path, plim_error *error);
PLIM_API plim_status plim_job_plan_page(plim_job *job, const char *path, plim_error *error);
/* Plans (if not done yet), then trains. */
PLIM_API plim_status plim_job_train(plim_job *job, plim_listener *listener, void *context, plim_error *error);
/* Keras's table of the model. The text lives as long as the job. */
PLIM_API plim_status plim_job_summary(const char **text, const char **json, plim_job *job, plim_error *error);
/* Asks whatever the job does to end: PLIM_INTERRUPTED within half a second, or after the step, the write to the disk,
   the weight that is filled or the element of a map that it is in. Training writes a checkpoint first; planning, and
   data that is read or converted, leave nothing. Safe in a signal handler, and from any thread until plim_job_close. It
   is not taken back: later calls of this job end so, too. */
PLIM_API void plim_job_stop(plim_job *job);

typedef struct plim_data_figures {
    int64_t elements, batches;
    double seconds, elements_per_s, ns_per_element;
    uint64_t bytes_read, peak_rss_bytes, predicted_peak_bytes;
    double readiness; /* share of batches that were there when they were asked for */
    int threads;      /* that were enough at the end, the caller's among them: tuned while it ran */
} plim_data_figures;

/* Runs one epoch of the training data alone and measures it; data without end for 5 seconds. */
PLIM_API plim_status plim_job_bench_data(plim_data_figures *figures, plim_job *job, plim_error *error);

/* The stages of the training data: bytes granted, elements, spec, what was chosen and why; with seconds > 0 after
   running at most so long, with time by stage and the bottleneck. The texts live until the next call. */
PLIM_API plim_status plim_job_explain_data(const char **text, const char **json, plim_job *job, double seconds,
                                           plim_error *error);

/* What is in the training data: columns, how many elements where that is known, the first few of them in short form.
   The texts live until the next call. */
PLIM_API plim_status plim_job_inspect_data(const char **text, const char **json, plim_job *job, plim_error *error);

/* Called now and then with how far something long is; total 0: not known. false stops it with PLIM_INTERRUPTED. */
typedef bool plim_meter(void *context, uint64_t done, uint64_t total);
/* Streams the training data through its pipeline into output: X.tfrecord (.gz too), X.npy, X.tar, or a folder (a
   snapshot). Written under another name first: whole or not there. meter may be NULL. */
PLIM_API plim_status plim_job_convert(int64_t *elements, plim_job *job, const char *output, plim_meter *meter,
                                      void *context, plim_error *error);
/* The files that the last plim_job_convert wrote: "set.x.npy, set.y.npy"; valid as long as the job. */
PLIM_API plim_status plim_job_converted(const char **names, plim_job *job, plim_error *error);
/* PREFIX-00000-of-0000N.tfrecord and so on: N files. */
typedef struct plim_shards {
    const char *prefix;
    int64_t count; /* 2 to 4,096 */
} plim_shards;
/* plim_job_convert into shards, an element to each in turn. */
PLIM_API plim_status plim_job_shard(int64_t *elements, plim_job *job, const plim_shards *shards, plim_meter *meter,
                                    void *context, plim_error *error);
/* Writes PATH.index for a raw TFRecord file, which makes its records readable by number; done and total are bytes. */
PLIM_API plim_status plim_records_index(int64_t *records, const char *path, plim_meter *meter, void *context,
                                        plim_error *error);

typedef struct plim_step_figures {
    int64_t steps;
    double median_seconds, best_seconds, mean_seconds;
    uint64_t predicted_peak_bytes, peak_rss_bytes;
} plim_step_figures;

/* Takes one batch and runs the training step on it again and again; 0 steps: for ten seconds, 3 to 1,000. */
PLIM_API plim_status plim_job_bench_step(plim_step_figures *figures, plim_job *job, int64_t steps, plim_error *error);

/* ---- data sets in C --------------------------------------------------- */

/* The most bytes that everything made from it may hold together: descriptions, iterators, batches. (A job's budget is
   that of the whole process; here the process is yours.) */
typedef struct plim_budget plim_budget;
PLIM_API plim_status plim_budget_make(plim_budget **budget, uint64_t bytes, plim_error *error);
/* Once nothing made from it is left; before that it does nothing, and answers PLIM_USAGE. */
PLIM_API plim_status plim_budget_free(plim_budget *budget);
/* Bytes held now, and the most that were ever held. */
PLIM_API void plim_budget_figures(uint64_t *now, uint64_t *peak, const plim_budget *budget);

typedef enum plim_type {
    PLIM_FLOAT32,
    PLIM_FLOAT64,
    PLIM_FLOAT16,
    PLIM_BFLOAT16,
    PLIM_INT8,
    PLIM_INT16,
    PLIM_INT32,
    PLIM_INT64,
    PLIM_UINT8,
    PLIM_BOOL,
    PLIM_STRING, /* rows are plim_string */
    PLIM_OTHER   /* one that this header does not know yet */
} plim_type;

#define PLIM_MOST_COLUMNS 64
#define PLIM_MOST_AXES    6
#define PLIM_INFINITE     (-1) /* cardinalities that are no counts */
#define PLIM_UNKNOWN      (-2)
#define PLIM_AUTO         (-1) /* prefetch, cache */

/* A row of a string column. */
typedef struct plim_string {
    const uint8_t *data;
    uint64_t bytes;
} plim_string;

/* A row of a column whose shape has an extent of -1: data holds the product of dim[0..rank) elements. */
typedef struct plim_cell {
    void *data;
    int64_t dim[PLIM_MOST_AXES];
} plim_cell;

typedef struct plim_column {
    char name[64];
    plim_type type;
    int rank;
    int64_t shape[PLIM_MOST_AXES]; /* of one element; -1: any extent, and rows are plim_cell */
    uint64_t row_bytes;            /* filled in by the library, never read */
} plim_column;

/* An array of yours. */
typedef struct plim_tensor {
    const char *name; /* NULL: x, y, c2, ... */
    plim_type type;
    int rank;
    int64_t shape[PLIM_MOST_AXES];
    const void *data;
} plim_tensor;

/* A lazy description. Builders take over the reference they are given and can be chained without checks: one that
   could not be built carries its error, which plim_dataset_check and plim_iterator_open report. */
typedef struct plim_dataset plim_dataset;

/* One element: these arrays. They must outlive the data set. */
PLIM_API plim_dataset *plim_dataset_from_tensors(plim_budget *budget, const plim_tensor *tensors, int count);
/* An element for each index of their first axis; never copied whole. They must outlive the data set. */
PLIM_API plim_dataset *plim_dataset_from_tensor_slices(plim_budget *budget, const plim_tensor *tensors, int count);

typedef struct plim_generator {
    /* The next element into row[c], one for each column; *more = false: the epoch is over. What strings and cells refer
       to must live until the next call. */
    plim_status (*next)(bool *more, void *context, void *const *row, plim_error *error);
    /* To the beginning of an epoch, called before its first element; NULL: there is one epoch only. */
    plim_status (*rewind)(void *context, int64_t epoch, plim_error *error);
    void *context;
    int64_t count;        /* elements an epoch; 0: not known */
    uint64_t value_bytes; /* of the largest element's strings and cells; 0: 256 KiB */
} plim_generator;
/* Elements that a function makes; it is called by one thread at a time, for one iterator at a time. */
PLIM_API plim_dataset *plim_dataset_from_generator(plim_budget *budget, const plim_column *columns, int count,
                                                   const plim_generator *generator);
/* 0, 1, ... n - 1 as int64. */
PLIM_API plim_dataset *plim_dataset_range(plim_budget *budget, int64_t n);
/* start, start + step, ...: so many, or PLIM_INFINITE. */
PLIM_API plim_dataset *plim_dataset_counter(plim_budget *budget, int64_t start, int64_t step, int64_t count);
/* Paths that match a pattern, as strings: sorted, or shuffled anew each epoch. */
PLIM_API plim_dataset *plim_dataset_list_files(plim_budget *budget, const char *const *patterns, int count,
                                               bool shuffle, uint64_t seed);
/* `elements` of float32 in [0, 1) of this shape, and a label below `classes` (int32): functions of seed and index. */
PLIM_API plim_dataset *plim_dataset_random(plim_budget *budget, int64_t elements, const int64_t *shape, int rank,
                                           int64_t classes, uint64_t seed);
/* npy files side by side, a column each. */
PLIM_API plim_dataset *plim_dataset_npy(plim_budget *budget, const char *const *paths, int count);
/* IDX files side by side, plain or gzip. */
PLIM_API plim_dataset *plim_dataset_idx(plim_budget *budget, const char *const *paths, int count);

/* Any source of a job file with its pipeline, in a job file's words:
   "{tfrecord: {files: data/X.tfrecord, features: {x: 'float32[100]', y: int64}}, pipeline: [batch: 32]}". */
PLIM_API plim_dataset *plim_dataset_read(plim_budget *budget, const char *text, uint64_t seed);
/* Any stage of a job file, in its words: "map: [cast: float32, rescale: 1/255]". */
PLIM_API plim_dataset *plim_dataset_stage(plim_dataset *dataset, const char *text, uint64_t seed);

/* Exact, over the whole data set, anew each epoch; takes no memory. */
PLIM_API plim_dataset *plim_dataset_shuffle(plim_dataset *dataset, uint64_t seed);
/* The first `count` elements; -1: all. */
PLIM_API plim_dataset *plim_dataset_take(plim_dataset *dataset, int64_t count);
/* All but the first `count`. */
PLIM_API plim_dataset *plim_dataset_skip(plim_dataset *dataset, int64_t count);
/* Several times an epoch; -1: without end. */
PLIM_API plim_dataset *plim_dataset_repeat(plim_dataset *dataset, int64_t times);
/* Batches of `size`; the last one may be smaller unless it is dropped. */
PLIM_API plim_dataset *plim_dataset_batch(plim_dataset *dataset, int64_t size, bool drop_remainder);
/* Batches read ahead; PLIM_AUTO: as the budget allows. */
PLIM_API plim_dataset *plim_dataset_prefetch(plim_dataset *dataset, int64_t depth);

/* Elements in a callback's hands: row i of column c is at from[c] + i * from_stride[c]. */
typedef struct plim_chunk {
    int64_t count;
    void *const *from;
    const uint64_t *from_stride;
    void *const *to; /* to[c] == from[...] where the column stays */
    const uint64_t *to_stride;
    const int64_t *index; /* which elements these are: random choices depend on seed, epoch and index alone */
    uint64_t epoch, seed;
    void *room; /* for plim_chunk_take */
} plim_chunk;

typedef struct plim_map {
    const char *name; /* for messages; NULL: "function" */
    /* What comes out; NULL: the same columns, changed in place. A column of the name, type and shape of one that comes
       in is that one, and stays as it is unless it is changed; others are new. */
    const plim_column *columns;
    int column_count;
    /* One of the two, for a chunk or for an element. Called by several threads at once, in any order. */
    plim_status (*chunk)(void *context, const plim_chunk *chunk, plim_error *error);
    plim_status (*element)(void *context, void *const *from, void *const *to, int64_t index, plim_error *error);
    void *context;
    uint64_t value_bytes; /* that strings and cells it makes of one element take at most; 0: it makes none */
    bool heavy;           /* microseconds an element: worth several threads */
} plim_map;
PLIM_API plim_dataset *plim_dataset_map(plim_dataset *dataset, const plim_map *map);
/* Bytes for a string or a cell that a map makes (value_bytes says how many); NULL: more than that. */
PLIM_API void *plim_chunk_take(const plim_chunk *chunk, uint64_t bytes);

/* By row blocks (neighbouring rows), for disks where single rows cost a seek. */
PLIM_API plim_dataset *plim_dataset_shuffle_blocks(plim_dataset *dataset, uint64_t seed);
/* Through a buffer of elements, as tf.data has it: for data without an index. */
PLIM_API plim_dataset *plim_dataset_shuffle_buffer(plim_dataset *dataset, int64_t buffer_size, uint64_t seed);
/* Every shards-th element, beginning with the index-th. */
PLIM_API plim_dataset *plim_dataset_shard(plim_dataset *dataset, int64_t shards, int64_t index);
/* An int64 column "index" in front. */
PLIM_API plim_dataset *plim_dataset_enumerate(plim_dataset *dataset, int64_t start);
/* The first of equal elements, in one column or (NULL) in all; memory: bytes for what was seen, 0: as expected. */
PLIM_API plim_dataset *plim_dataset_unique(plim_dataset *dataset, const char *column, uint64_t memory);
/* An epoch that has another number of elements is an error. */
PLIM_API plim_dataset *plim_dataset_assert_cardinality(plim_dataset *dataset, int64_t count);
/* Passes over bad elements: at most so many an epoch; -1: any number. */
PLIM_API plim_dataset *plim_dataset_ignore_errors(plim_dataset *dataset, int64_t most);

/* Keeps the first epoch: in `memory` bytes (0: what it takes, where that is known; (uint64_t)PLIM_AUTO: the same, where
   the budget has room for it, else it is made anew each epoch), or in a file (complete or not there). */
PLIM_API plim_dataset *plim_dataset_cache(plim_dataset *dataset, uint64_t memory, const char *file);
/* Keeps elements such that the classes in a column are distributed as target says; initial NULL: estimated. */
PLIM_API plim_dataset *plim_dataset_rejection_resample(plim_dataset *dataset, const char *column, const double *target,
                                                       const double *initial, int classes, uint64_t seed);

typedef struct plim_scan {
    const void *state; /* as it begins each epoch; copied */
    size_t state_bytes;
    const plim_column *columns; /* of what it makes; NULL: as they come in */
    int column_count;
    plim_status (*run)(void *context, void *state, void *const *from, void *const *to, plim_error *error);
    void *context;
} plim_scan;
/* One element after another through a state. Columns of strings and cells are not offered. */
PLIM_API plim_dataset *plim_dataset_scan(plim_dataset *dataset, const plim_scan *scan);

/* keep[i]: whether element i of the chunk passes. chunk->to is NULL. */
typedef plim_status plim_test(bool *keep, void *context, const plim_chunk *chunk, plim_error *error);
/* Elements that pass. */
PLIM_API plim_dataset *plim_dataset_filter(plim_dataset *dataset, plim_test *test, void *context);
/* Up to the first that does not. */
PLIM_API plim_dataset *plim_dataset_take_while(plim_dataset *dataset, plim_test *test, void *context);
/* The same with a test over columns: "label < 5". */
PLIM_API plim_dataset *plim_dataset_filter_expression(plim_dataset *dataset, const char *expression);
PLIM_API plim_dataset *plim_dataset_take_while_expression(plim_dataset *dataset, const char *expression);

/* Several into one: all are taken over. Columns side by side, until the shortest ends. */
PLIM_API plim_dataset *plim_dataset_zip(plim_dataset *const *datasets, int count);
/* One after the other. */
PLIM_API plim_dataset *plim_dataset_concatenate(plim_dataset *const *datasets, int count);
/* `choices`, of one int64 column, says which one gives the next element. */
PLIM_API plim_dataset *plim_dataset_choose_from_datasets(plim_dataset *const *datasets, int count,
                                                         plim_dataset *choices, bool stop_on_empty);
/* By chance, in proportion to weights; NULL: equally. */
PLIM_API plim_dataset *plim_dataset_sample_from_datasets(plim_dataset *const *datasets, int count,
                                                         const double *weights, uint64_t seed, bool stop_on_empty);

typedef struct plim_interleave {
    /* The data set for one element, with everything taken from this budget; the same for the same element. */
    plim_dataset *(*make)(void *context, const plim_chunk *element, plim_budget *budget);
    void *context;
    const plim_column *columns; /* of what they give */
    int column_count;
    uint64_t reserve_bytes;             /* that one of them may take; cycle_length are open at a time */
    uint64_t value_bytes;               /* of the strings and cells of an element */
    int64_t cycle_length, block_length; /* 0: 1 */
} plim_interleave;
/* A data set for each element, by turns in tf.data's order; or one after the other. */
PLIM_API plim_dataset *plim_dataset_interleave(plim_dataset *dataset, const plim_interleave *interleave);
PLIM_API plim_dataset *plim_dataset_flat_map(plim_dataset *dataset, const plim_interleave *interleave);

/* Batches whose values are filled up to the longest; strings with nothing. */
PLIM_API plim_dataset *plim_dataset_padded_batch(plim_dataset *dataset, int64_t size, double padding,
                                                 bool drop_remainder);
PLIM_API plim_dataset *plim_dataset_unbatch(plim_dataset *dataset);
/* Batches of other sizes, which take turns. */
PLIM_API plim_dataset *plim_dataset_rebatch(plim_dataset *dataset, const int64_t *sizes, int count,
                                            bool drop_remainder);
/* shift 0: as size. */
PLIM_API plim_dataset *plim_dataset_window(plim_dataset *dataset, int64_t size, int64_t shift, int64_t stride,
                                           bool drop_remainder);
/* Batches of elements with the same whole number in a column; batch_size 0: the window is one batch. */
PLIM_API plim_dataset *plim_dataset_group_by_window(plim_dataset *dataset, const char *column, int64_t window_size,
                                                    int64_t batch_size, bool drop_remainder);
/* Padded batches of elements of like length; batch_sizes has one more than boundaries. column NULL: the first. */
PLIM_API plim_dataset *plim_dataset_bucket_by_sequence_length(plim_dataset *dataset, const char *column,
                                                              const int64_t *boundaries, const int64_t *batch_sizes,
                                                              int boundary_count, bool drop_remainder);

struct plim_batch;
/* Another reference, to branch; and giving one up. */
PLIM_API plim_dataset *plim_dataset_ref(plim_dataset *dataset);
PLIM_API void plim_dataset_unref(plim_dataset *dataset);
/* The error that it carries, if any; and whether an epoch has something to give. */
PLIM_API plim_status plim_dataset_check(const plim_dataset *dataset, plim_error *error);
/* The columns of one sample; how many there are. */
PLIM_API int plim_dataset_spec(plim_column columns[PLIM_MOST_COLUMNS], const plim_dataset *dataset);
/* Batches (elements where there is no batch stage) an epoch, PLIM_INFINITE or PLIM_UNKNOWN. */
PLIM_API int64_t plim_dataset_cardinality(const plim_dataset *dataset);

/* Each batch of one epoch, with a state of yours. */
PLIM_API plim_status plim_dataset_reduce(void *state, plim_dataset *dataset, plim_budget *budget,
                                         plim_status (*visit)(void *state, const struct plim_batch *batch,
                                                              plim_error *error),
                                         plim_error *error);
/* All elements of one epoch into a folder, which plim_dataset_read(b, "{snapshot: FOLDER}", 0) reads again. */
PLIM_API plim_status plim_dataset_save(plim_dataset *dataset, const char *folder, plim_budget *budget,
                                       plim_error *error);

/* Where an iterator is: taken at any batch, with anything read ahead. Plain bytes, to be written anywhere. */
typedef struct plim_iterator_state {
    int64_t epoch;
    int64_t samples;   /* of this epoch given so far, by all shards together */
    uint64_t pipeline; /* of which pipeline and seed */
    uint64_t reserved; /* 0 */
} plim_iterator_state;

typedef struct plim_iterator_options {
    int threads;                      /* that read ahead beside the caller; 0: none */
    int slots;                        /* batches in memory; 0: as prefetch says, as far as the budget allows */
    uint64_t seed;                    /* of shuffles without one and of random functions */
    const char *scratch;              /* folder for unpacked sources; NULL: /var/tmp */
    uint64_t disk_bytes;              /* most bytes there, and of caches in files; 0: 10 GiB */
    const plim_iterator_state *state; /* goes on from here; NULL: from the beginning */
} plim_iterator_options;

typedef struct plim_batch {
    int64_t count;                   /* samples */
    void *column[PLIM_MOST_COLUMNS]; /* row 0; rows are packed, each of the shape that plim_iterator_shape tells */
    int64_t epoch, step;
    const void
        *origin; /* of an iterator's batch: plim_program_run compares its columns with the graph's inputs. NULL in
                           one of your own, whose bytes are taken for what the graph says */
} plim_batch;

typedef struct plim_iterator plim_iterator;
/* Takes all its memory now, or says what each stage needs; afterwards nothing is allocated. options may be NULL. */
PLIM_API plim_status plim_iterator_open(plim_iterator **iterator, plim_dataset *dataset, plim_budget *budget,
                                        const plim_iterator_options *options, plim_error *error);
/* On a thread of its own, in a function that its data set calls, it does nothing. */
PLIM_API void plim_iterator_close(plim_iterator *iterator);
/* The next batch, or *batch = NULL at an epoch's end (the next call begins the next one). Valid until the next call. */
PLIM_API plim_status plim_iterator_next(const plim_batch **batch, plim_iterator *iterator, plim_error *error);
/* The shape of a column of the batch that was given last, its samples first; returns its rank, or 0 where no batch is
   held or there is no such column. Where batches are padded to lengths of their own (padded_batch,
   bucket_by_sequence_length), what plim_dataset_spec tells as -1 is this batch's extent, and rows are packed numbers or
   strings. Elsewhere -1 stays -1, and rows are plim_cell. */
PLIM_API int plim_iterator_shape(int64_t shape[PLIM_MOST_AXES + 1], const plim_iterator *iterator, int column);
/* Behind the batch that was given last; epoch is -1 where the iterator is NULL or at work. */
PLIM_API void plim_iterator_state_take(plim_iterator_state *state, const plim_iterator *iterator);
/* Goes on behind it: exactly the elements that were left, in their order, with any number of threads. Where the
   pipeline is shard, maps and batch, with any number of shards too: all were stopped after the same batch. */
PLIM_API plim_status plim_iterator_restore(plim_iterator *iterator, const plim_iterator_state *state,
                                           plim_error *error);

/* ---- graphs and programs: ops, gradients, loops of your own ------------- */

/* What is to be computed for one batch. Builders chain without checks: after the first that failed they return NULL and
   take NULL, and plim_graph_check says what went wrong. Values live as long as their graph.
   Axis 0 of what comes from the batch is the batch; weights and states have none. */
typedef struct plim_graph plim_graph;
typedef struct plim_value plim_value;

typedef struct plim_graph_options {
    int64_t batch; /* samples of a step, at most */
    bool training; /* layers do what they do in training: Dropout drops, BatchNormalization takes the batch's figures */
    uint64_t seed; /* of first weights and of what layers draw */
} plim_graph_options;
PLIM_API plim_status plim_graph_make(plim_graph **graph, plim_budget *budget, const plim_graph_options *options,
                                     plim_error *error);
/* A graph that a program runs goes when that program goes. */
PLIM_API void plim_graph_free(plim_graph *graph);
/* The first error, if any. */
PLIM_API plim_status plim_graph_check(const plim_graph *graph, plim_error *error);

/* The next column of the batch; shape of one element. */
PLIM_API plim_value *plim_graph_input(plim_graph *graph, const char *name, plim_type type, const int64_t *shape,
                                      int rank);
/* float32; initializer in a job file's words: "glorot_uniform", "{constant: 0.1}"; NULL: zeros. */
PLIM_API plim_value *plim_graph_weight(plim_graph *graph, const char *name, const int64_t *shape, int rank,
                                       const char *initializer, bool trainable);
/* What lasts from step to step, and no optimizer touches: written by plim_graph_assign and plim_program_write. */
PLIM_API plim_value *plim_graph_state(plim_graph *graph, const char *name, plim_type type, const int64_t *shape,
                                      int rank, double initial);
/* One number, which broadcasts to any shape. */
PLIM_API plim_value *plim_graph_constant(plim_graph *graph, plim_type type, double number);
/* A weight or state by name ("dense/kernel", "optimizer/learning_rate"); NULL: there is none. */
PLIM_API plim_value *plim_graph_find(const plim_graph *graph, const char *name);
/* The trainable weights, in the order in which they were made: the first `most` of them into weights; returns how many
   it wrote. plim_graph_weight_count says how many there are. */
PLIM_API int plim_graph_weights(plim_value **weights, int most, const plim_graph *graph);
PLIM_API int plim_graph_weight_count(const plim_graph *graph);

/* An op by its name in keras.ops or numpy, an activation or (values of each row) a loss, with its arguments in YAML:
   "matmul", "mean" "{axis: -1, keepdims: true}", "leaky_relu" "0.1", "huber" "{delta: 2}". words may be NULL.
   doc/c-api.md lists them. Of several outputs it is the first. */
PLIM_API plim_value *plim_op(plim_graph *graph, const char *name, plim_value *const *inputs, int count,
                             const char *words);
/* Output k of the op that made the value: of top_k, output 1 are the places. */
PLIM_API plim_value *plim_op_output(plim_graph *graph, plim_value *value, int k);
/* Parts of the axis, of the sizes given. */
PLIM_API void plim_op_split(plim_value **parts, plim_graph *graph, plim_value *value, int axis, const int64_t *sizes,
                            int count);
/* One number from outputs and labels, by a job file's words: "sparse_categorical_crossentropy", "{Huber: {delta: 2}}".
   Of an output that a softmax or sigmoid made, cross-entropies take what came before it, as Keras does. */
PLIM_API plim_value *plim_loss(plim_graph *graph, const char *words, plim_value *output, plim_value *label);

/* Layers in a job file's words, "[Dense: {units: 64, activation: relu}, Dropout: 0.5, Dense: 10]", or the path of a
   .keras file (with its weights) or config.json. Their weights have Keras's names, numbered on through the graph;
   graphs of one program that read the same texts in the same order share them. */
typedef struct plim_layers plim_layers;
PLIM_API plim_layers *plim_layers_read(plim_graph *graph, const char *text);
/* The output of the layers over these values. Again: with the same weights. */
PLIM_API plim_value *plim_layers_apply(plim_graph *graph, plim_layers *layers, plim_value *const *inputs, int count);
/* All of them, of layers with `outputs: [a, b]`: outputs has room for output_count, which is plim_layers_outputs. */
PLIM_API int plim_layers_outputs(const plim_layers *layers);
PLIM_API void plim_layers_apply_all(plim_value **outputs, int output_count, plim_graph *graph, plim_layers *layers,
                                    plim_value *const *inputs, int count);
/* The loss, and what the regularisers of all layers so far ask for. */
PLIM_API plim_value *plim_layers_penalties(plim_graph *graph, plim_value *loss);

/* d(loss)/d(of[i]) for each of them; NULL where none flows. loss is one number. All gradients are taken before the
   first update or assign. What was not used by then may be gone: what else is to be read of a step is a result
   before. */
PLIM_API plim_status plim_graph_gradients(plim_value **gradients, plim_graph *graph, plim_value *loss,
                                          plim_value *const *of, int count, plim_error *error);
/* An optimizer in a job file's words, "adam", "{sgd: {learning_rate: 0.1, momentum: 0.9}}", over these weights;
   gradients may be of your own making, NULL ones are passed over. name is that of its states (NULL: "optimizer"), which
   graphs of one program share. Returns its learning rate, a state. */
PLIM_API plim_value *plim_graph_update(plim_graph *graph, const char *optimizer, const char *name,
                                       plim_value *const *weights, plim_value *const *gradients, int count);
/* state = value; state += value. What reads the state afterwards sees it. */
PLIM_API plim_value *plim_graph_assign(plim_graph *graph, plim_value *state, plim_value *value);
PLIM_API plim_value *plim_graph_assign_add(plim_graph *graph, plim_value *state, plim_value *value);
/* Can be read after a step. */
PLIM_API void plim_graph_result(plim_graph *graph, plim_value *value, const char *name);

/* The batch is axis 0 of values that have one; returns the rank. */
PLIM_API int plim_value_shape(int64_t shape[PLIM_MOST_AXES], const plim_value *value);
PLIM_API plim_type plim_value_type(const plim_value *value);

/* One or two graphs (a step of training, one of evaluation) over the same weights and states, which match by name:
   planned, in memory, ready to run. */
typedef struct plim_program plim_program;
typedef struct plim_program_options {
    int threads; /* 0: all cores. Results do not depend on it, nor on the others. */
    /* What the budget has no room for lies in a file without a name, and comes into memory when it is needed: */
    const char *scratch; /* its folder; NULL: /var/tmp */
    uint64_t disk_bytes; /* the most that it has, and at most half of what is free there; 0: 10 GiB */
    bool in_memory;      /* there is to be none */
} plim_program_options;
/* PLIM_OVER_BUDGET tells how many bytes the budget would need at least. The graphs are finished with it. options may be
   NULL. */
PLIM_API plim_status plim_program_make(plim_program **program, plim_graph *const *graphs, int count,
                                       const plim_program_options *options, plim_error *error);
PLIM_API void plim_program_free(plim_program *program);
/* What it holds of the budget; nothing is added while it runs. */
PLIM_API uint64_t plim_program_bytes(const plim_program *program);
/* Runs a graph (0 is the first) on a batch: count samples, a column for each input of the graph, in the order in which
   they were made. PLIM_USAGE when a plim_iterator's batch has other types, or more or fewer elements a row, than these;
   a batch of your own (origin NULL) is taken at your word. Labels and ids are to be in the range of what reads them:
   others make nan. */
PLIM_API plim_status plim_program_run(plim_program *program, int graph, const plim_batch *batch, plim_error *error);
/* A result of the graph that ran last, a weight or a state; of results with a batch so many whole rows as asked for. */
PLIM_API plim_status plim_program_read(void *data, size_t bytes, const plim_program *program, const plim_value *value,
                                       plim_error *error);
/* A weight or a state. */
PLIM_API plim_status plim_program_write(plim_program *program, const plim_value *value, const void *data, size_t bytes,
                                        plim_error *error);
/* All weights as safetensors. */
PLIM_API plim_status plim_program_save(plim_program *program, const char *path, plim_error *error);
PLIM_API plim_status plim_program_load(plim_program *program, const char *path, plim_error *error);

/* ---- what people and programs see ------------------------------------ */

typedef struct plim_report plim_report;

typedef enum plim_report_form {
    PLIM_REPORT_TERMINAL,  /* Keras's progress line, redrawn in place */
    PLIM_REPORT_PLAIN,     /* a line an epoch: for pipes and log files */
    PLIM_REPORT_JSON,      /* JSON lines: plan, epochs, end */
    PLIM_REPORT_JSON_STEPS /* and every step */
} plim_report_form;

/* Writes to `descriptor` (1 is standard output). */
PLIM_API plim_status plim_report_make(plim_report **report, plim_report_form form, int descriptor, plim_error *error);
PLIM_API void plim_report_free(plim_report *report);
/* A plim_listener; context is the report. */
PLIM_API void plim_report_listen(void *report, const plim_event *event);
/* The error object of doc/json.md, in the JSON forms; nothing in the others. */
PLIM_API void plim_report_error(plim_report *report, const plim_error *error);
/* 0 when every line arrived, else the error number (as in errno.h) of the first that did not. */
PLIM_API int plim_report_lost(const plim_report *report);
/* A report waits for its reader. From here on it gives up soon after this job was asked to stop: the lines are lost
   then (EAGAIN). Before the job is closed: NULL, which keeps a stop that was asked for. It watches one job: of
   trainings that share a report at the same time, the others wait for their turn, and for a reader, whatever they are
   asked. */
PLIM_API void plim_report_watch(plim_report *report, const plim_job *job);

#ifdef __cplusplus
}
#endif
#endif
