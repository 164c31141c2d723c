/* trainer.h - runs a program: steps, evaluation, checkpoints.

   The machine holds the one arena and the team; it knows instructions and
   nothing of models. The trainer knows epochs, metrics and checkpoints. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "base/threads/stop.h"
#include "base/threads/workers.h"
#include "model/build.h"
#include "pipeline/core/dataset.h"
#include "pipeline/core/fingerprint.h"
#include "plan/plan.h"

/* ---- machine.c: executes the plan's instructions ---- */
struct machine {
    struct program *program;
    struct budget *budget;
    struct team *team;
    uint8_t *arena;             /* program->arena_bytes, mapped and touched */
    uint64_t booked[TAG_COUNT]; /* of the arena, moved from activations to other tags of the ledger */
    bool poison;                /* fill with NaN before a phase, and what dies during it: finds plans that read it */
};
/* Takes and touches the arena (tags from the plan), starts the team. */
plim_status machine_open(struct machine *machine, struct program *program, struct budget *budget, plim_error *error);
void machine_close(struct machine *machine);
/* Runs every instruction of the phase on this batch, whose count must be the batch of the
   graph or the last batch that the plan was told of. Allocates nothing. */
void machine_run(struct machine *machine, int phase, const struct batch *batch);
/* The instructions of a phase one after another: what machine_run does unless the backend has a run_phase of its own, and what
   such a one may call. */
void machine_run_instructions(struct machine *machine, const struct phase *phase, const struct batch *batch);
/* Where a weight, a state or a result of a phase lives. */
void *machine_data(const struct machine *machine, int phase, const struct tensor *tensor);
/* The buffer of a phase without graph (save, resume); NULL and 0 when there is none. Its bytes
   are those of the step's values, which are dead between steps. */
void *machine_buffer(uint64_t *bytes, const struct machine *machine, int phase);

/* ---- checkpoint.c ---- */
struct position {
    int64_t epoch, step; /* next batch to train on: epoch from 0 */
    int64_t total_steps;
    int64_t epoch_samples; /* running sums of this epoch */
    double loss_sum, metric_sum[MOST_METRICS];
    uint64_t seed;
    int64_t batch; /* batch size: refused when it differs */
    int64_t dataset_count;
    char instructions[32];               /* "avx512": another one says that bits may differ */
    struct fingerprint data, validation; /* refused when they differ; of no digest: not compared */
    char job[65];                        /* digest of what defines the run: refused when it differs; "": not compared */
};
struct safetensors_writer;
#define CHECKPOINT_PATH_BYTES 4096
/* The whole state into PATH.partial, on the disk: yours to commit or to abandon. */
plim_status checkpoint_write(struct safetensors_writer **out, const char *path, struct machine *machine,
                             const struct position *position, plim_error *error);
/* Straight into place. *whole tells a file that is damaged (false) from one that does not fit. */
plim_status checkpoint_read(bool *whole, struct position *position, const char *path, struct machine *machine,
                            plim_error *error);
/* The folder of a file; "." when the path names none. */
void path_folder(char out[CHECKPOINT_PATH_BYTES], const char *path);
/* How many steps are in a checkpoint; -1: it does not say. Looks at the header alone. */
plim_status checkpoint_steps(int64_t *steps, const char *path, struct budget *budget, plim_error *error);
/* Reads all of it: PLIM_BAD_DATA of one that is damaged. */
plim_status checkpoint_is_whole(const char *path, struct budget *budget, plim_error *error);
/* What saving or loading takes from the budget for a while, at most. */
uint64_t checkpoint_cost(const struct program *program);
/* The length of the file, at most. */
uint64_t checkpoint_bytes(const struct program *program, bool weights_only);
plim_status weights_save(const char *path, struct machine *machine, plim_error *error);
/* Finds out whether weights_save could make its file there. Leaves nothing. */
plim_status weights_rehearse(const char *path, struct machine *machine, plim_error *error);
/* What weights_load will check, and the bytes of the budget that it will take for a while. */
plim_status weights_check(uint64_t *cost, const char *path, const struct program *program, struct budget *budget,
                          plim_error *error);
/* Every weight of the model must be there; optimizer states (of a
   checkpoint) are passed over, other tensors are refused. */
plim_status weights_load(const char *path, struct machine *machine, plim_error *error);

/* ---- keras_weights.c: the same for .keras files (formats/weights/keras_file.h), of the model's weights alone ---- */
plim_status keras_weights_check(uint64_t *cost, const char *path, const struct program *program,
                                const struct build *build, struct budget *budget, struct scratch *scratch,
                                plim_error *error);
plim_status keras_weights_load(const char *path, struct machine *machine, const struct build *build,
                               struct scratch *scratch, plim_error *error);

/* ---- checkpoint_folder.c ---- */
/* The newest of this run, the one before, and the last one of the run before this one. */
#define CHECKPOINT_NAME          "checkpoint.safetensors"
#define CHECKPOINT_PREVIOUS_NAME "checkpoint.previous.safetensors"
#define CHECKPOINT_OLDER_NAME    "checkpoint.older.safetensors"
struct checkpoint_folder {
    const char *path;
    struct file *lock;  /* NULL: only read */
    bool made;          /* the folder was not there before */
    bool newest_broken; /* checkpoint_load passed over it: the next save takes its place */
    bool kept;          /* checkpoint_begin has renamed what was CHECKPOINT_OLDER_NAME: it has more steps */
    int64_t kept_steps; /* in it; -1: they cannot be read */
    char kept_name[64]; /* what it is called now */
};
/* Makes the folder and keeps other runs out of it until it is closed: PLIM_IO when one is there. */
plim_status checkpoint_folder_open(struct checkpoint_folder *out, const char *path, struct budget *budget,
                                   plim_error *error);
void checkpoint_folder_close(struct checkpoint_folder *folder);
/* Closes it after a start that failed: what this run has made, the folder and its first checkpoint, goes again. */
void checkpoint_folder_discard(struct checkpoint_folder *folder);
/* A run that starts anew: its first state becomes the newest checkpoint. What an older run left is set
   aside under CHECKPOINT_OLDER_NAME when there are steps in it, and its other generation removed; a damaged one is
   passed over where another is whole. One that has that name already and has more steps gets a name of its own:
   folder->kept. */
plim_status checkpoint_begin(bool *set_aside, struct checkpoint_folder *folder, struct machine *machine,
                             const struct position *position, plim_error *error);
/* A run that goes on: writes all of it to the partial name and takes it away again. Like checkpoint_begin it proves
   that there is room for all files of the run: a full disk shows before the first step. */
plim_status checkpoint_rehearse(const struct checkpoint_folder *folder, struct machine *machine,
                                const struct position *position, plim_error *error);
/* A failure leaves what was there. */
plim_status checkpoint_save(struct checkpoint_folder *folder, struct machine *machine, const struct position *position,
                            plim_error *error);
/* The newest that is whole; *found = false when there is none. A broken newest
   one is passed over for the one before, and `note` says so. */
plim_status checkpoint_load(bool *found, struct position *position, char note[256], struct checkpoint_folder *folder,
                            struct machine *machine, plim_error *error);

/* ---- machine.c, state_digest.c ---- */
/* Persistent tensor number i of the program. */
void *persistent_data(const struct machine *machine, int i);
/* SHA-256 over names, shapes and bytes, in order of names. */
void digest_weights(char text[65], struct machine *machine, enum kind kind);

/* ---- trainer.c ---- */
struct trainer_options {
    int64_t epochs, steps_per_epoch; /* 0: the whole data set */
    int64_t validation_steps;        /* 0: all */
    int64_t checkpoint_every;        /* steps; 0: each epoch only; -1: never */
    const char *checkpoint_folder;   /* NULL: no checkpoints */
    const char *save_weights, *load_weights;
    uint64_t seed;
    bool resume, digest;
    bool data_changed;                        /* other data than the checkpoint's is no reason to refuse it */
    struct fingerprint data, validation_data; /* kept in checkpoints; of no digest: not compared */
    char job_digest[65];                      /* of what defines the run, kept in its checkpoints; "": not compared */
    uint64_t save_buffer_bytes;               /* for the plan: where the buffer lies is its business */
    struct grant train_grant, validation_grant;
};

struct trainer {
    struct budget *budget;
    struct machine machine;
    const struct build *build; /* of the training graph: its weights */
    struct model_tensors train_tensors, evaluate_tensors;
    struct dataset *train, *validation; /* borrowed */
    struct iterator *train_iterator, *validation_iterator;
    struct scratch *scratch;
    const struct tensor *remembered; /* a state with a row for each sample, or NULL; set when it begins */
    struct trainer_options options;
    struct position position;
    struct checkpoint_folder checkpoints;
    const struct stop *stop; /* asked for by a signal handler; NULL: never */
    bool checkpointed;       /* the last run has left a checkpoint to go on from */
    uint64_t predicted_peak, budget_bytes;
    char note[2048]; /* what is to be said of this run: what a resume found, data too short; "": nothing */
};
/* Calls listener with BEGIN, STEP, EPOCH and END events. */
plim_status trainer_run(struct trainer *trainer, plim_listener *listener, void *context, plim_error *error);
/* Weights from the model's initialisers, states from their own first value. */
plim_status trainer_initialize(struct trainer *trainer, plim_error *error);

/* For trainer.c: ---- evaluate.c, resume.c ---- */
struct evaluation {
    int64_t samples;
    double loss;                      /* sum over samples */
    double metric[MOST_METRICS];      /* as they are reported */
    const double *each[MOST_METRICS]; /* of those that are several numbers; else NULL */
};
/* Sums of metrics begin anew. */
void clear_sums(struct trainer *trainer, int phase, const struct model_tensors *tensors);
/* The validation data from its start; PLIM_INTERRUPTED when a stop is asked for. */
plim_status evaluate(struct evaluation *sums, struct trainer *trainer, plim_error *error);
/* Position and tensors of the checkpoint when options.resume finds one, else
   of options.load_weights; then the first checkpoint of a new run. What would fail a run at its end
   fails here: files that cannot be written, or do not fit. trainer->position says what this job is.
   trainer->checkpoints is open afterwards, if it went well, and *checkpointed tells whether it holds this run. */
plim_status trainer_begin(bool *checkpointed, struct trainer *trainer, plim_error *error);
/* Adds to the note, and returns what was added. Allocates nothing. */
__attribute__((format(printf, 2, 3))) const char *trainer_tell(struct trainer *trainer, const char *format, ...);
bool trainer_saves(const struct trainer *trainer);
bool trainer_stop_asked(const struct trainer *trainer);
/* Where layers keep a row for each sample, every batch has as many: PLIM_BAD_DATA of one that has not. */
plim_status trainer_check_batch(const struct trainer *trainer, const struct batch *batch, plim_error *error);

#endif
