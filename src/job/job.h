/* job.h - one job file, one run: from YAML to datasets, model, plan and trainer.

   open   reads and checks the file, with overrides applied        (job_read, job_data)
   plan   opens data headers and asks the planner                  (job_plan, plan/planner.h)
   run    executes the plan, and nothing that was not planned      (job_run)

   The job owns everything that it makes; plim_job_close frees it in reverse order. */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "base/memory/limits.h"
#include "base/numbers/floats.h"
#include "base/text/settings.h"
#include "base/threads/busy.h"
#include "base/threads/stop.h"
#include "pipeline/keys/source_key.h"
#include "plan/planner.h"
#include "train/calibration.h"

struct stage_table;

struct job_data {
    const char *split;       /* "train", "validation" */
    const struct yaml *yaml; /* NULL: the job does not have this split */
    struct dataset *dataset;
};

/* One report in two forms. */
struct job_text {
    struct text text, json;
};

struct plim_job {
    struct budget *budget;
    struct arena arena; /* the job's own tables and strings */
    const char *path, *folder;
    const char *command;       /* the job file and its options except --memory, quoted for a shell */
    const char *verb;          /* the last command: "train", "plan", ... */
    const char *memory_option; /* --memory as written, or NULL */
    bool memory_seen;          /* an override or the text of the job file states the memory; found before parsing */
    struct yaml *yaml;
    bool data_only;        /* without model and training: for `plim data` */
    const char *made_text; /* text of a job that was generated from `files`, instead of a job file */
    const char *const *files;
    int file_count;

    const char *memory_source; /* of plan.limit_bytes */
    char memory_place[256];
    int compute_threads, data_threads;
    struct scratch_disk scratch;
    uint64_t seed;

    struct job_data train, validation;
    struct model *model;
    struct yaml *model_yaml;           /* of a model from a model file: its layers as job-file YAML; else NULL */
    const char *model_weights;         /* the file that contains the model's weights, or NULL */
    bool model_only;                   /* the path is that of a model file: without data and training */
    const char *lacks, *lacks_example; /* a missing part that training needs and a summary does not; or NULL */
    struct training training;
    struct recompute_rule recompute;
    enum spill spill;
    struct page_rule page;
    const struct yaml *recompute_layers; /* the list of names, or NULL */
    struct trainer_options options;

    /* Results of planning: */
    bool planned, data_planned; /* data_planned: only the training data is planned */
    bool searched;              /* the largest batch has been searched for, too */
    struct plan plan;           /* its budget, arena and limit_bytes are set before */
    struct model_tensors train_tensors, evaluate_tensors;
    uint64_t load_bytes; /* bytes that load_weights temporarily allocates */
    struct grant train_grant, validation_grant;
    uint64_t direct_bytes; /* bytes that the last data-only run read without the page cache */
    double plan_seconds;
    plim_plan_report report;
    struct job_text plan_text, summary_text; /* valid until the job is freed */
    struct job_text data_text;               /* a report on the data: valid until the next call */
    bool summarized;                         /* the summary has been made */
    struct old_texts *old_texts;             /* texts of earlier plans */
    struct stage_table *stages;              /* of a data plan: one line per stage */
    uint64_t sink_bytes;                     /* memory of the writers of output files (convert) */
    const char *written;                     /* names of the files that convert has written, or NULL */

    struct busy busy; /* a public call is using the job */
    struct stop stop; /* set by plim_job_stop, also from a signal handler */
};

/* job.c: frees the job after the last call on it. */
void job_free(struct plim_job *job);

/* job_texts.c */
void job_init_texts(struct plim_job *job);
void job_release_texts(struct plim_job *job);
/* Empties both forms before they are written; afterwards job_text_done says whether both are whole. */
void job_text_clear(struct job_text *text);
plim_status job_text_done(const struct job_text *text, plim_error *error);
/* Keeps the texts of an earlier plan readable until the job is freed, and prepares empty texts for the next plan. */
plim_status job_keep_texts(struct plim_job *job, plim_error *error);
/* Opens an iterator over the training data, from its beginning. */
plim_status job_iterate(struct iterator **out, struct plim_job *job, struct grant grant, plim_error *error);

/* job_call.c: every public call on a job except plim_job_stop and plim_job_close is enclosed in job_begin and job_end.
   PLIM_USAGE: the job is NULL, or another call is using it. */
struct job_call {
    struct plim_job *job;
    struct host_floats host;
};
plim_status job_begin(struct job_call *call, struct plim_job *job, const char *verb, plim_error *error);
/* Frees the job if it was closed during the call. Returns `status`. */
plim_status job_end(struct job_call *call, plim_status status);
/* job_tell and job_meter call the host program's callbacks with the host's own floating-point environment. */
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
/* Resolves a path of the job file, which is relative to the folder of the file. */
const char *job_path(struct plim_job *job, const char *path);

/* job_techniques.c: reads the key `plan`; checks its names of layers against the model's and the training graph's. */
plim_status job_techniques_read(struct plim_job *job, const struct yaml *plan, plim_error *error);
plim_status job_techniques_check(const struct plim_job *job, const struct graph *graph, plim_error *error);

/* job_model.c: reads the model, from layers in the job file or from a Keras file. Sets model and model_weights. */
plim_status job_model_read(struct plim_job *job, const struct yaml *node, plim_error *error);
plim_status job_model_file(struct plim_job *job, const char *path, plim_error *error);
/* job_is_model: whether the job's path is that of a model file and not of a job file. job_model_build: computes the
   shapes of the model's layers in graph->build, from the Input layers, or from the headers of the data if the Input
   layers do not declare all shapes. The caller releases the graph, after a failure too. */
bool job_is_model(struct plim_job *job);
plim_status job_model_build(struct graph *graph, struct plim_job *job, plim_error *error);
/* The error that the part job->lacks is missing. */
plim_status job_lacks(const struct plim_job *job, plim_error *error);

/* job_data.c */
struct data_reader job_reader(struct plim_job *job);
/* The error PLIM_BAD_JOB at a place of the job file. */
plim_status job_bad(struct plim_job *job, const struct yaml *at, const char *what, plim_error *error);
plim_status job_data_open(struct plim_job *job, struct job_data *data, plim_error *error);
/* The columns of one sample of the training data, for callers that process batches sample by sample. Batches that are
   each padded to another length are refused, because their samples have no common size. */
plim_status job_samples(struct spec *spec, const struct plim_job *job, plim_error *error);
/* Converts the columns to the form that a model uses. The names point into the spec. Returns their number. */
int job_columns(struct column_spec *out, const struct spec *spec);
/* Checks that a model can be trained on the data. */
plim_status job_data_trains(struct plim_job *job, const struct job_data *data, plim_error *error);
/* Checks the open splits: each is finite or limited by a number of steps, both have the same input shapes, and their
   files fit into the disk budget. */
plim_status job_data_check(struct plim_job *job, plim_error *error);
/* The disk that unpacked sources and caches in files take, as far as it is known beforehand. */
uint64_t job_data_disk(const struct plim_job *job);
/* Checks that they fit into the disk budget. */
plim_status job_disk_check(const struct plim_job *job, plim_error *error);

/* job_digest.c: the digest is equal for jobs that define the same run. */
void job_digest(char out[65], const struct plim_job *job);

/* job_plan.c: plans a run, unless it is planned already. */
plim_status job_plan(struct plim_job *job, plim_error *error);
/* Plans by a function, during which a stop is noticed. After a failure nothing is planned, and the error says what to
   try. */
plim_status job_plan_by(struct plim_job *job, plim_status (*make)(struct plim_job *, plim_error *), plim_error *error);
/* Chooses how the data is read: the most that is of use and fits. Sets the grants, plan and report. */
plim_status job_choose(struct plim_job *job, plim_error *error);
/* Frees everything that planning made: datasets, backend, graphs, program. */
void job_unplan(struct plim_job *job);

/* job_read.c: while a job is opened and planned, the stated budget limits the memory that the system counts for the
   process (budget_bind_process). memory is --memory as written. NULL, and an invalid value (which is reported later),
   mean auto. */
plim_status job_bind_early(struct plim_job *job, const char *memory, plim_error *error);

/* job_data_plan.c: plans the training data without a model. */
plim_status job_data_plan(struct plim_job *job, plim_error *error);
/* Plans, refuses a plan that does not fit, and enters the budget. */
plim_status job_data_prepare(struct plim_job *job, plim_error *error);
/* "the process itself 4.6 MiB, batch 9.8 MiB": the least memory that each stage needs, as far as there is space. */
void job_data_floors(char *out, size_t capacity, const struct plim_job *job);

/* job_files.c: generates the text of a job that reads job->files; it lies in the job's arena. */
plim_status job_files_text(const char **out, struct plim_job *job, plim_error *error);

/* job_callbacks.c: refuses a Keras callback that is not supported; PLIM_OK for any other key. */
plim_status job_callback_check(const struct plim_job *job, const struct yaml *entry, const char *word,
                               plim_error *error);

/* job_weights.c: checks that the file of load_weights fits the model (sets load_bytes), and that save_weights does not
   name a file that the job reads. */
plim_status job_weights_load(struct plim_job *job, plim_error *error);
plim_status job_weights_save(struct plim_job *job, plim_error *error);

/* job_explain.c: prints the plan as text and as the JSON object of doc/json.md. `view` (NULL: none) goes behind the
   text. */
plim_status job_explain(struct plim_job *job, const struct text *view, plim_error *error);
/* The error PLIM_OVER_BUDGET with the budget that suffices and the command for it, or with the limit (plan.obstacle)
   that prevents the run. Of a data plan it lists what each stage needs. */
plim_status job_refuse(const struct plim_job *job, plim_error *error);
/* The budget was exhausted before a plan existed: the error says what did not fit, and this adds the command with
   --memory auto if a budget was stated. */
plim_status job_refuse_unplanned(const struct plim_job *job, plim_error *error);
/* Adds to the error the command that continues a stopped run from its checkpoint. */
plim_status job_hint_resume(const struct plim_job *job, plim_error *error);

#endif
