/* plimsoll.h - train neural networks inside a stated number of bytes.

   Every function that can fail returns a plim_status and takes a plim_error
   last (may be NULL, is yours). Outputs come first and are untouched on
   failure. Nothing here ends the process. */
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
    bool resume; /* go on from the newest checkpoint that loads */
    bool digest; /* digests of weights and optimizer in the end event */
} plim_job_options;

/* Reads and checks a job file; opens no data. */
PLIM_API plim_status plim_job_open(plim_job **job, const char *path, const plim_job_options *options, plim_error *error);
PLIM_API void plim_job_close(plim_job *job);

/* What a run tells while it goes on: one call an event, on the calling
   thread. `json` is one complete line without newline. */
typedef enum plim_event_kind { PLIM_EVENT_PLAN, PLIM_EVENT_BEGIN, PLIM_EVENT_STEP, PLIM_EVENT_EPOCH, PLIM_EVENT_END } plim_event_kind;

typedef struct plim_plan_report {
    bool fits;
    uint64_t budget_bytes;
    const char *budget_source; /* stated | cgroup | rlimit | available */
    uint64_t predicted_peak_bytes;
    uint64_t smallest_budget_bytes;
    int64_t largest_batch;
    const char *text; /* the plan for people, several lines */
    const char *json; /* the plan object of the contract, one line */
} plim_plan_report;

typedef struct plim_progress {
    int64_t epoch, epochs;          /* epoch counts from 1 */
    int64_t step, steps;            /* in this epoch; steps is -1 when unknown */
    int64_t total_steps;            /* since the start of training */
    int64_t samples;                /* in this epoch */
    double seconds;                 /* this epoch so far */
    double seconds_per_step;        /* first step left out */
    double step_loss;               /* of the last batch alone */
    double loss, val_loss;          /* running means over the epoch */
    bool validated;                 /* the val_ figures are of this epoch */
    const char *metric;             /* "accuracy", or NULL */
    double metric_value, val_metric_value;
    uint64_t budget_bytes;
    const char *note;               /* something to tell once, or NULL */
} plim_progress;

typedef struct plim_end {
    const char *status; /* done | stopped | failed */
    int64_t steps, samples;
    double seconds, samples_per_s;
    uint64_t predicted_peak_bytes, peak_rss_bytes;
    double allocations_per_step;
    int64_t malloc_growth_bytes; /* held by malloc: end against step 100; 0 is right */
    double data_wait_share;
    const char *note;             /* what resuming had to say, or NULL */
    const char *checkpoint;       /* path, or NULL */
    const char *weights_digest;   /* NULL unless asked for */
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
/* Plans (if not done yet), then trains. */
PLIM_API plim_status plim_job_train(plim_job *job, plim_listener *listener, void *context, plim_error *error);
/* Keras's table of the model. The text lives as long as the job. */
PLIM_API plim_status plim_job_summary(const char **text, const char **json, plim_job *job, plim_error *error);
/* Asks a running plim_job_train to write a checkpoint and return
   PLIM_INTERRUPTED after the step it is in. Safe in a signal handler. */
PLIM_API void plim_job_stop(plim_job *job);

typedef struct plim_data_figures {
    int64_t elements, batches;
    double seconds, elements_per_s, ns_per_element;
    uint64_t bytes_read, peak_rss_bytes;
} plim_data_figures;

/* Runs one epoch of the training data alone and measures it. */
PLIM_API plim_status plim_job_bench_data(plim_data_figures *figures, plim_job *job, plim_error *error);

typedef struct plim_step_figures {
    int64_t steps;
    double median_seconds, best_seconds, mean_seconds;
    uint64_t predicted_peak_bytes, peak_rss_bytes;
} plim_step_figures;

/* Takes one batch and runs the training step on it again and again. */
PLIM_API plim_status plim_job_bench_step(plim_step_figures *figures, plim_job *job, int64_t steps, plim_error *error);

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
/* The error object of the contract, in the JSON forms; nothing in the others. */
PLIM_API void plim_report_error(plim_report *report, const plim_error *error);
/* 0 when every line arrived, else the error number (as in errno.h) of the first that did not. */
PLIM_API int plim_report_lost(const plim_report *report);

#ifdef __cplusplus
}
#endif
#endif
