/* job.h - one job file, one run: from yaml to data sets, model, plan, trainer.

   open   reads and checks the file, overrides applied          (job_read, job_data)
   plan   opens data headers, builds graphs, plans, predicts    (job_plan)
   run    only what was planned                                  (job_run)

   The job owns everything below it; plim_job_close frees in reverse. */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "base/memory/limits.h"
#include "base/numbers/floats.h"
#include "base/text/settings.h"
#include "base/threads/busy.h"
#include "base/threads/stop.h"
#include "pipeline/keys/source_key.h"
#include "train/trainer.h"

struct stage_table;

struct job_data {
    const char *split;       /* "train", "validation" */
    const struct yaml *yaml; /* NULL: this split is not in the job */
    struct dataset *dataset;
};

struct plim_job {
    struct budget *budget;
    struct arena arena; /* the job's own tables and strings */
    const char *path, *folder;
    const char *command;       /* the job file and its options but --memory, as a shell reads them */
    const char *verb;          /* what was asked for last: "train", "plan", ... */
    const char *memory_option; /* --memory as it was given, or NULL */
    bool memory_seen;          /* in the job file's text, before it was parsed */
    struct yaml *yaml;
    bool data_only;        /* no model, no training: what plim data looks at */
    const char *made_text; /* instead of a job file: made of `files` */
    const char *const *files;
    int file_count;

    uint64_t memory_bytes;
    const char *memory_source;
    char memory_place[256];
    int compute_threads, data_threads;
    struct scratch scratch;
    uint64_t seed;

    struct job_data train, validation;
    struct model *model;
    struct yaml *model_words;          /* of a model that came from a file: its layers in a job's words; else NULL */
    const char *model_weights;         /* the file that the model came with its weights from, or NULL */
    bool model_only;                   /* the path is a model's: no data, no training */
    const char *lacks, *lacks_example; /* a part that a summary can do without, and training cannot; or NULL */
    struct training training;
    struct trainer_options options;

    /* Of the plan: */
    bool planned, data_planned; /* data_planned: of the training data alone */
    bool searched;              /* for the largest batch, too */
    struct backend *backend;
    struct graph train_graph, evaluate_graph;
    bool graphs_built;
    struct model_tensors train_tensors, evaluate_tensors;
    struct program *program;
    struct prediction prediction;
    uint64_t process_bytes, kernel_bytes;   /* measured */
    uint64_t planning_peak;                 /* of the process, while the job was planned: no prediction is below it */
    uint64_t slack_bytes;                   /* by which two measurements of this job may differ */
    uint64_t load_bytes;                    /* that load_weights takes for a while */
    uint64_t address_bytes;                 /* left under RLIMIT_AS when planning was over */
    const char *obstacle;                   /* what is in the way beside the budget, or NULL */
    bool process_reserved, kernel_reserved; /* in the ledger */
    struct grant train_grant, validation_grant;
    uint64_t direct_bytes; /* read past the page cache by the last run over the data alone */
    double plan_seconds;
    plim_plan_report report;
    struct text plan_text, plan_json, summary_text, summary_json; /* valid as long as the job */
    struct text data_text, data_json;                             /* of the data: until the next call */
    bool summarized;                                              /* the summary is there */
    struct old_texts *old_texts;                                  /* of plans before this one */
    struct stage_table *stages;                                   /* of a data plan: its lines */
    uint64_t sink_bytes;                                          /* that files which are written beside take */
    const char *written; /* names of the files that were converted to, or NULL */

    struct busy busy; /* a public call works on it */
    struct stop stop; /* asked for by plim_job_stop, from a signal handler too */
};

/* job.c: after the last call. */
void job_free(struct plim_job *job);

/* job_texts.c: what was told of an older plan stays readable until the job is freed; makes room for the next one. */
plim_status job_keep_texts(struct plim_job *job, plim_error *error);
void job_release_texts(struct plim_job *job);

/* job_call.c: around every public call on a job but plim_job_stop and plim_job_close. A NULL job, and one that another
   call works on, are PLIM_USAGE. */
struct job_call {
    struct plim_job *job;
    struct host_floats host;
};
plim_status job_begin(struct job_call *call, struct plim_job *job, const char *verb, plim_error *error);
/* Frees a job that was closed meanwhile. Returns the status. */
plim_status job_end(struct job_call *call, plim_status status);
/* A listener and a meter of the host's see its own floating-point environment. */
struct job_listener {
    plim_listener *listener;
    void *context;
    struct host_floats *host;
};
void job_tell(void *listener, const plim_event *event);
struct job_meter {
    plim_meter *meter;
    void *context;
    struct host_floats *host;
};
bool job_meter(void *meter, uint64_t done, uint64_t total);

/* job_read.c */
plim_status job_read(struct plim_job *job, const plim_job_options *options, plim_error *error);
/* A path of the job file: relative to the file's folder. */
const char *job_path(struct plim_job *job, const char *path);

/* job_model.c: layers in the job file, or a file of Keras's; sets model and model_weights. */
plim_status job_model_read(struct plim_job *job, const struct yaml *node, plim_error *error);
plim_status job_model_file(struct plim_job *job, const char *path, plim_error *error);
/* Whether the job's path is a model's file rather than a job's; and its layers' shapes, without data: in graph->build. The
   graph is the caller's to release, after a failure too. */
bool job_is_model(struct plim_job *job);
plim_status job_model_build(struct graph *graph, struct plim_job *job, plim_error *error);
/* That job->lacks something. */
plim_status job_lacks(const struct plim_job *job, plim_error *error);

/* job_data.c */
struct data_reader job_reader(struct plim_job *job);
/* PLIM_BAD_JOB at a place of the job file. */
plim_status job_bad(struct plim_job *job, const struct yaml *at, const char *what, plim_error *error);
plim_status job_data_open(struct plim_job *job, struct job_data *data, plim_error *error);
/* What a sample of the training data looks like, for who goes through batches sample by sample. Batches that were padded
   to lengths of their own are refused: their samples have no common size. */
plim_status job_samples(struct spec *spec, const struct plim_job *job, plim_error *error);
/* The columns as a model sees them; names are the spec's. */
int job_columns(struct column_spec *out, const struct spec *spec);
/* That a model can be fed with it. */
plim_status job_data_trains(struct plim_job *job, const struct job_data *data, plim_error *error);
/* What the splits, once open, must be: finite, alike, within the disk budget. */
plim_status job_data_check(struct plim_job *job, plim_error *error);

/* job_digest.c: equal for jobs that are one run. */
void job_digest(char out[65], const struct plim_job *job);

/* job_plan.c */
plim_status job_plan(struct plim_job *job, plim_error *error);
/* What a stop makes of an error that planning met: who was refused a block may have called it something else. */
plim_status job_stopped_planning(plim_error *error);
/* Gives back graphs and program alone. */
void job_release_program(struct plim_job *job);
/* Gives back what planning made: data sets, backend, graphs, program. */
void job_unplan(struct plim_job *job);
/* Predicts for these slots; the sum of all tags is the peak. */
void job_predict(struct prediction *out, const struct plim_job *job, const struct program *program,
                 struct grant train_grant, struct grant validation_grant, const struct dataset *train);

/* job_process.c */
/* While a job is opened and planned the stated budget bounds the process as the kernel counts it: budget_bind_process.
   memory is --memory as it was given; NULL, or nonsense that is reported later: auto. */
plim_status job_bind_early(struct plim_job *job, const char *memory, plim_error *error);
/* The same once the job has said its own memory_bytes: OVER_BUDGET when the bare process takes more. */
plim_status job_bind(struct plim_job *job, plim_error *error);
/* What the process holds now that the ledger does not count by name, and later_bytes that it may still touch: sets
   process_bytes, kernel_bytes, planning_peak, slack_bytes, address_bytes. */
plim_status job_measure(struct plim_job *job, uint64_t later_bytes, plim_error *error);
/* The budget to tell for a prediction: one that this job fits in each time, whatever the measurement differs by. */
uint64_t job_told_budget(const struct plim_job *job, uint64_t peak);
#define JOB_THREAD_TABLES ((uint64_t)16 * 1024) /* kernel memory of a thread */
/* By how much page tables grow for so many bytes. */
uint64_t job_page_tables(uint64_t bytes);
/* Sets obstacle: what is in the way of a run that needs `least` beside the budget. */
plim_status job_find_obstacle(struct plim_job *job, uint64_t least, plim_error *error);
/* From here on the ledger counts what we do not allocate ourselves too, and refuses everything beyond the stated
   budget; and back. */
plim_status job_enter_budget(struct plim_job *job, plim_error *error);
void job_leave_budget(struct plim_job *job);

/* job_data_plan.c: the training data without a model. */
plim_status job_data_plan(struct plim_job *job, plim_error *error);
/* Plans, refuses what does not fit (with the least that each stage needs), enters the budget. */
plim_status job_data_prepare(struct plim_job *job, plim_error *error);

/* job_files.c: the text of a job over these files; in the job's arena. */
plim_status job_files_text(const char **out, struct plim_job *job, plim_error *error);

/* job_callbacks.c: refuses a callback of Keras's that there is not; PLIM_OK for any other word. */
plim_status job_callback_check(const struct plim_job *job, const struct yaml *entry, const char *word,
                               plim_error *error);

/* job_weights.c: load_weights fits the model (sets load_bytes); save_weights is no file that the job reads. */
plim_status job_weights_load(struct plim_job *job, plim_error *error);
plim_status job_weights_save(struct plim_job *job, plim_error *error);

/* job_explain.c: the plan as text and as the object of doc/json.md. */
plim_status job_explain(struct plim_job *job, plim_error *error);
/* OVER_BUDGET with the budget that would do and the command for it, or with
   the limit on address space that is in the way. */
plim_status job_refuse(const struct plim_job *job, plim_error *error);
/* The budget ended before there was a plan: the error says what did not fit, and gets the command that tells how much does. */
plim_status job_refuse_unplanned(const struct plim_job *job, plim_error *error);
/* The command that goes on from the checkpoint of a run that was stopped. */
plim_status job_hint_resume(const struct plim_job *job, plim_error *error);

/* largest_batch.c: the largest batch whose plan stays inside the budget. Gives up the job's own graphs and program. */
plim_status largest_batch(int64_t *out, struct plim_job *job, plim_error *error);

/* Builds both graphs for a batch size. The graphs are yours to release. */
plim_status job_graphs(struct graph *train, struct graph *evaluate, struct model_tensors *train_tensors,
                       struct model_tensors *evaluate_tensors, struct plim_job *job, int64_t batch,
                       int64_t evaluate_batch, plim_error *error);

#endif
