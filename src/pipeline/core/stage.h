/* stage.h - what a stage of the pipeline is, and how a job file names one.

   A stage is one table entry (`stage_NAME`, listed in stages.def). It says what it makes of the facts of its input
   when it is built; for those of the index prefix, where a position of its output lies in its input; and how
   it goes through elements one after another (stream.h), where its input has no index or it keeps something
   itself (a buffer, a window, a set of what was seen). */
#ifndef PIPELINE_CORE_STAGE_H
#define PIPELINE_CORE_STAGE_H

#include <stdatomic.h>

#include "base/numbers/random.h"
#include "base/text/settings.h"
#include "pipeline/core/dataset.h"
#include "pipeline/core/stream.h"

#define MOST_STAGES 64

/* What a stage may keep between two calls of locate: a cache, never the truth. */
struct stage_state {
    struct permutation permutation, inner;
    int64_t group;         /* whose inner permutation it is */
    int64_t row_block[16]; /* and whose row blocks, where they are no more */
    int64_t announced;     /* the last group whose rows were said to come */
    uint64_t epoch;
    bool ready;
};

#define MOST_COMING 96

/* Neighbours, and which group of runs they belong to: groups come in this order. */
struct coming {
    int64_t first, count, group;
};

struct stage;

/* An entry of `pipeline:`. */
struct stage_entry {
    const struct stage *stage;
    const char *job;          /* the file, for errors */
    const struct yaml *value; /* NULL only where the stage may be written without one */
    char where[256];          /* of the value, for errors */
    uint64_t seed;
};
/* The value's settings; a scalar is the first of them. alone: how errors name a scalar (NULL: as the first setting). */
plim_status stage_settings(void *out, const struct setting *settings, int count, const char *alone,
                           const struct stage_entry *entry, plim_error *error);
/* PLIM_BAD_JOB at the value, with what to write instead. */
plim_status stage_bad(const struct stage_entry *entry, const char *what, const char *instead, plim_error *error);

struct stage {
    const char *name;
    bool after_batch;    /* may stand after batch: changes neither the count nor the order of elements */
    bool bare;           /* may be written without a value: `- repeat` */
    const char *partner; /* another key that may stand in its entry; `read` is given the whole entry then */
    bool changes_spec;   /* its nodes get a spec of their own, a copy of their input's: dataset_own_spec */
    /* Sets the new dataset's facts, which are still those of its input, from number, seed, function. */
    plim_status (*build)(struct dataset *dataset, plim_error *error);
    /* Positions and epochs of the output into those of the input; NULL: they are the same. */
    void (*locate)(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                   int64_t count);
    bool by_epoch; /* locate depends on the epoch */
    /* Called before locate: which rows of its input are soon needed besides, in runs of neighbours; how many runs.
       May be NULL. */
    int (*coming)(struct coming out[MOST_COMING], struct stage_state *state, const struct dataset *dataset,
                  int64_t position, uint64_t epoch);
    /* Rows of its input are taken from `count` row blocks of `rows` neighbours at a time; number b begins at row
       b * rows. May be NULL. */
    void (*row_blocks)(int64_t *rows, int64_t *count, const struct dataset *dataset);
    /* One after another. NULL: only over data with an index. */
    const struct stream_type *stream;
    bool sequential; /* never by index, even where its input could be */
    /* NEEDSWORK: errors of padded_batch, bucket_by_sequence_length and rejection_resample name the element alone.
       As a stream: elements keep the index and epoch that its input gave them, so that errors can tell their file. */
    bool keeps_elements;
    /* It is a cache that may keep nothing: grant.caches decides. May be NULL: it is not. */
    bool (*may_spare)(const struct dataset *dataset);
    /* What it will write to disk, as far as it is known beforehand; may be NULL. */
    uint64_t (*disk)(const struct dataset *dataset);
    /* Gives back what its options own, when the dataset is freed; may be NULL. */
    void (*release)(const struct dataset *dataset);
    /* Of how many parts of its input, dealt out in turn, this is which; NULL: it is all of it. */
    void (*shards)(int64_t *count, int64_t *index, const struct dataset *dataset);
    /* Wraps *dataset from an entry of a job file. NULL: the value is a whole number, at least `least`, and -1 where
       there is none. */
    plim_status (*read)(struct dataset **dataset, const struct stage_entry *entry, plim_error *error);
    int64_t least;
};

/* What dataset_expect said. */
struct label_rule {
    int column;
    enum expectation kind;
    int64_t below;
};
#define MOST_LABEL_RULES MOST_COLUMNS

struct dataset {
    const struct stage *stage; /* NULL: a source, or a failed one */
    struct dataset *input;
    struct dataset *const *others; /* inputs besides the first: of zip, concatenate and the like; owned */
    int other_count;
    struct source *source; /* of the whole chain; owned by its first node */
    struct budget *budget; /* NULL: the two constants that stand for "no room even for a description" */
    size_t bytes;          /* of this block */
    atomic_int references;
    int node;                /* its place in the chain: 0 is the source */
    const plim_error *error; /* a failed one; everything below is then zero */

    /* Facts: of the elements that come out here. */
    const struct spec *spec;
    int64_t cardinality;  /* or CARDINALITY_... */
    bool indexed;         /* element i can be had without those before it */
    bool sequential;      /* this node runs as a stream of its own; others are part of the flow behind one */
    uint64_t value_bytes; /* a good size for the value buffer of a chunk of these elements; 0: no column has values */
    uint64_t value_bytes_stated; /* by the user, for every value buffer; 0: not */
    int64_t batch_size; /* 0: not batched. The spec is that of a sample then: the batch is open (see stack.c) */
    int64_t stacked;    /* elements are batches of at most so many samples, the first axis of every column; 0: not */
    bool drop_remainder;
    bool prefetched;
    int64_t depth; /* of prefetch */

    /* The stage's own. */
    int64_t number;
    uint64_t seed;
    const struct map_function *function;
    const void *options; /* of the function, or of a stage: in this block */

    /* What changes after building. */
    bool started; /* source only: start() has been called */
    struct label_rule labels[MOST_LABEL_RULES];
    int label_count;
};

/* What a stage that makes batches, windows and the like of elements makes of their columns: one more axis in front,
   of `rows`, or of any extent (-1). The result's rows must be measured: spec_measure. */
plim_status spec_stack(struct spec *spec, int64_t rows, plim_error *error);
/* Bytes of rows and of an element from types and shapes, origins where they stay true. */
plim_status spec_measure(struct spec *spec, const struct spec *before, plim_error *error);
/* A dataset whose batch is open, as one whose elements are the batches; others as they are. */
struct dataset *dataset_close_batch(struct dataset *dataset);

/* Starts the sources of the whole pipeline that have not been. */
plim_status dataset_start(const struct dataset *dataset, struct scratch_disk *scratch, plim_error *error);

/* What the node of a stage gets besides the facts of its input. */
struct stage_arguments {
    const void *options; /* copied into the node's block */
    size_t options_bytes;
    int64_t number;
    uint64_t seed;
};
/* A new node of `stage` over the dataset, built; or a failed one. */
struct dataset *dataset_add(struct dataset *dataset, const struct stage *stage, struct stage_arguments arguments);
/* The same in steps: a node with `extra` bytes of its own in *block. NULL: *dataset has become a failed one. The caller
   sets the stage's own fields, then calls dataset_built. */
struct dataset *dataset_stage(struct dataset **dataset, const struct stage *stage, size_t extra, void **block);
/* Runs stage->build; gives the node, or a failed one in its place. */
struct dataset *dataset_built(struct dataset *dataset);
/* A failed one in place of the dataset, which is given up. */
struct dataset *dataset_refuse(struct dataset *dataset, const plim_error *error);
/* dataset_built where the node's fields could be set, else dataset_refuse. */
struct dataset *dataset_finish(struct dataset *dataset, plim_status status, const plim_error *error);
static inline struct spec *dataset_own_spec(struct dataset *dataset)
{
    return (struct spec *)(uintptr_t)dataset->spec;
}
/* A function of it takes microseconds an element. */
bool dataset_is_heavy(const struct dataset *dataset);
/* The error carried, if any. Unlike dataset_check it does not ask for a batch. */
plim_status dataset_error(const struct dataset *dataset, plim_error *error);
/* The same, and that an epoch has something to give. */
plim_status dataset_runs(const struct dataset *dataset, plim_error *error);

#define STAGE(name) extern const struct stage stage_##name;
#include "pipeline/stages/stages.def"
#undef STAGE

/* One entry of `pipeline:` (`batch: 32`, `repeat`) around *dataset. The caller owns *dataset afterwards
   too: on failure it is the old one or one that carries the error. */
plim_status stage_read(struct dataset **dataset, const char *job, const struct yaml *entry, uint64_t seed,
                       plim_error *error);
/* An entry of a list: a bare word, or a map of one key. value is NULL for a bare word. */
plim_status stage_word(const char **word, const struct yaml **value, const char *job, const struct yaml *entry,
                       plim_error *error);
/* PLIM_UNSUPPORTED for one of `later`, PLIM_BAD_JOB with the nearest of `names` for others. */
plim_status stage_unknown(const struct word_choices *choices, const char *word, const char *where, plim_error *error);

#endif
