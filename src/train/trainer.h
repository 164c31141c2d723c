/* trainer.h - runs a program: steps, evaluation, checkpoints.

   The machine owns the tensor arena and the worker threads (team). It executes instructions and knows nothing about
   models. The trainer handles epochs, metrics and checkpoints. */
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
    uint8_t *tensor_arena;         /* program->tensor_arena_bytes, mapped and touched */
    struct transfer_file *scratch; /* of a program with transfers */
    struct scratch_disk *disk;     /* whose bytes `scratch` takes; NULL: none */
    uint64_t booked[TAG_COUNT]; /* bytes of the tensor arena that the budget counts under other tags than activations */
    bool times;                 /* steps note what their instructions take, in phase.seconds */
    int runs, timed_steps;      /* of the training step, while `times` is set */
    double disk_bytes;          /* a second, to and from `scratch`; 0: not measured */
    bool poison;                /* debugging: fill dead bytes with NaN, so that a plan that reads them fails visibly */
};
/* Allocates and touches the tensor arena (tags from the plan), starts the team, and allocates the scratch file of a
   program with transfers on the disk; `disk` may be NULL for others. */
plim_status machine_open(struct machine *machine, struct program *program, struct budget *budget,
                         struct scratch_disk *disk, plim_error *error);
/* How fast the disk is, for calibrations: before anything lies in the arena or in the scratch file. */
plim_status machine_probe_disk(struct machine *machine, plim_error *error);
void machine_close(struct machine *machine);
/* Runs every instruction of the phase on this batch. batch->count must be the batch size of the graph, or the size of
   the last batch that the plan was made for. Allocates nothing. After an error weights and states are in between two
   steps: only what was saved before is good. */
plim_status machine_run(struct machine *machine, int phase, const struct batch *batch, plim_error *error);
/* Runs the instructions of a phase in order. machine_run does this if the backend has no run_phase; a run_phase may
   call it too. */
plim_status machine_run_instructions(struct machine *machine, const struct phase *phase, const struct batch *batch,
                                     plim_error *error);
/* The address of a weight, a state or a result of a phase. */
void *machine_data(const struct machine *machine, int phase, const struct tensor *tensor);
/* The buffer of a phase without graph (save, resume); NULL and 0: there is none. It shares its bytes with the values of
   a step, which are dead between steps. */
void *machine_buffer(uint64_t *bytes, const struct machine *machine, int phase);

/* ---- checkpoint.c ---- */
struct position {
    int64_t epoch, step; /* the next batch to train on; epochs count from 0 */
    int64_t total_steps;
    int64_t epoch_samples; /* this and the next line: running sums of this epoch */
    double loss_sum, metric_sum[MOST_METRICS];
    uint64_t seed;
    int64_t batch; /* batch size: a checkpoint with another one is refused */
    int64_t dataset_count;
    char instructions[32];               /* "avx512": with another one the result may differ in some bits */
    struct fingerprint data, validation; /* refused if they differ; not compared without a digest */
    char job[65];                        /* digest of what defines the run: refused if it differs; "": not compared */
};
struct safetensors_writer;
#define CHECKPOINT_PATH_BYTES 4096
/* Writes the whole state to PATH.partial and flushes it to disk. The caller commits or abandons the writer. */
plim_status checkpoint_write(struct safetensors_writer **out, const char *path, struct machine *machine,
                             const struct position *position, plim_error *error);
/* Reads a checkpoint directly into the tensor arena. If it fails, *whole distinguishes a damaged file (false) from one
   that does not fit this job (true). */
plim_status checkpoint_read(bool *whole, struct position *position, const char *path, struct machine *machine,
                            plim_error *error);
/* The folder of a file; "." if the path contains none. */
void path_folder(char out[CHECKPOINT_PATH_BYTES], const char *path);
/* The number of training steps in a checkpoint; -1: the file does not say. Reads the header only. */
plim_status checkpoint_steps(int64_t *steps, const char *path, struct budget *budget, plim_error *error);
/* Reads the whole file; PLIM_BAD_DATA: it is damaged. */
plim_status checkpoint_is_whole(const char *path, struct budget *budget, plim_error *error);
/* Upper bound of what saving or loading temporarily allocates from the budget. */
uint64_t checkpoint_cost(const struct program *program);
/* Upper bound of the file size. */
uint64_t checkpoint_bytes(const struct program *program, bool weights_only);
plim_status weights_save(const char *path, struct machine *machine, plim_error *error);
/* Checks that weights_save can write its file there. Leaves no file. */
plim_status weights_rehearse(const char *path, struct machine *machine, plim_error *error);
/* Does the checks of weights_load, and returns how many bytes of the budget weights_load will temporarily allocate. */
plim_status weights_check(uint64_t *cost, const char *path, const struct program *program, struct budget *budget,
                          plim_error *error);
/* Loads the weights. The file must contain every weight of the model. Optimizer states (of a checkpoint) are skipped,
   and other tensors are refused. */
plim_status weights_load(const char *path, struct machine *machine, plim_error *error);

/* ---- keras_weights.c: the same for .keras files (formats/weights/keras_file.h), for the model's weights only ---- */
struct plan;
plim_status keras_weights_check(uint64_t *cost, const char *path, const struct plan *plan,
                                const struct scratch_disk *scratch, plim_error *error);
plim_status keras_weights_load(const char *path, struct machine *machine, const struct build *build,
                               struct scratch_disk *scratch, plim_error *error);
/* The model's weight of this name, or NULL. *guess: where to look first, because persistent tensors come in the order
   of the weights; 0 at first. */
const struct weight *weight_named(const struct build *build, const char *name, int *guess);

/* ---- checkpoint_folder.c ---- */
/* The newest checkpoint of this run, the one before it, and the last checkpoint of the previous run. */
#define CHECKPOINT_NAME          "checkpoint.safetensors"
#define CHECKPOINT_PREVIOUS_NAME "checkpoint.previous.safetensors"
#define CHECKPOINT_OLDER_NAME    "checkpoint.older.safetensors"
struct checkpoint_folder {
    const char *path;
    struct file *lock;  /* NULL: the folder is only read */
    bool made;          /* this run created the folder */
    bool newest_broken; /* checkpoint_load skipped the newest checkpoint: the next save replaces it */
    bool kept;          /* checkpoint_begin renamed the old CHECKPOINT_OLDER_NAME instead of replacing it */
    int64_t kept_steps; /* number of steps in that file; -1: unreadable */
    char kept_name[64]; /* its new name */
};
/* Creates the folder and locks it against other runs until it is closed. PLIM_IO: another run has locked it. */
plim_status checkpoint_folder_open(struct checkpoint_folder *out, const char *path, struct budget *budget,
                                   plim_error *error);
void checkpoint_folder_close(struct checkpoint_folder *folder);
/* Closes the folder after a failed start. If this run created it, the folder and its first checkpoint are deleted. */
void checkpoint_folder_discard(struct checkpoint_folder *folder);
/* For a run that starts from scratch: its initial state becomes the newest checkpoint. The newest checkpoint of an
   older run is renamed to CHECKPOINT_OLDER_NAME if it contains steps, and the other one of that run is removed. A
   damaged checkpoint is skipped if another one is whole. If a file with that name exists and has more steps, or an
   unknown number of steps, it is renamed too (folder->kept). */
plim_status checkpoint_begin(bool *set_aside, struct checkpoint_folder *folder, struct machine *machine,
                             const struct position *position, plim_error *error);
/* For a run that continues: writes a whole checkpoint under the partial name and deletes it again. Like
   checkpoint_begin it proves that the disk has space for all files of the run, so that a full disk is detected before
   the first step. */
plim_status checkpoint_rehearse(const struct checkpoint_folder *folder, struct machine *machine,
                                const struct position *position, plim_error *error);
/* Saves a checkpoint. A failure leaves the existing files intact. */
plim_status checkpoint_save(struct checkpoint_folder *folder, struct machine *machine, const struct position *position,
                            plim_error *error);
/* Loads the newest checkpoint that is whole; *found = false: the folder has none. If the newest one is damaged, the one
   before it is loaded, and `note` says so. */
plim_status checkpoint_load(bool *found, struct position *position, char note[256], struct checkpoint_folder *folder,
                            struct machine *machine, plim_error *error);

/* ---- state_access.c: weights and states while no phase runs. i: of the program's persistent tensors ---- */
/* Bytes `first` and on of the tensor, in memory. */
struct state_bytes {
    void *data;
    uint64_t first, bytes;
};
/* 1: the tensor is in memory as a whole. Of a paged one each piece is, from state_load or state_piece on, until the
   next piece of any tensor. */
int state_pieces(const struct machine *machine, int i);
/* Where the piece belongs, not read: to be filled and stored. */
struct state_bytes state_piece(const struct machine *machine, int i, int piece);
plim_status state_load(struct state_bytes *out, struct machine *machine, int i, int piece, plim_error *error);
/* To the disk; nothing, if it is not paged. */
plim_status state_store(struct machine *machine, int i, int piece, plim_error *error);
/* Sets all of a state to its initial value. */
plim_status state_initialize(struct machine *machine, int i, plim_error *error);

/* ---- state_digest.c ---- */
/* SHA-256 over names, shapes and bytes, in the order of the names. */
plim_status digest_weights(char text[65], struct machine *machine, enum kind kind, plim_error *error);

/* ---- trainer.c ---- */
struct trainer_options {
    int64_t epochs, steps_per_epoch; /* steps_per_epoch 0: the whole dataset */
    int64_t validation_steps;        /* 0: all */
    int64_t checkpoint_every;        /* in steps; 0: only after each epoch; -1: never */
    const char *checkpoint_folder;   /* NULL: no checkpoints */
    const char *save_weights, *load_weights;
    uint64_t seed;
    bool resume, digest;
    bool data_changed;                        /* accept a checkpoint that was made with other data */
    struct fingerprint data, validation_data; /* stored in checkpoints; not compared without a digest */
    char job_digest[65];                      /* of what defines the run, stored in its checkpoints; "": not compared */
    uint64_t save_buffer_bytes;               /* for the plan, which decides where the buffer lies */
    struct grant train_grant, validation_grant;
};

struct trainer {
    struct budget *budget;
    struct machine machine;
    const struct build *build; /* of the training graph: holds its weights */
    struct model_tensors train_tensors, evaluate_tensors;
    struct dataset *train, *validation; /* borrowed */
    struct iterator *train_iterator, *validation_iterator;
    struct scratch_disk *scratch;
    const struct tensor *sample_state; /* a state with one row per sample, or NULL; set when the run begins */
    struct trainer_options options;
    struct position position;
    struct checkpoint_folder checkpoints;
    const struct stop *stop; /* set by a signal handler; NULL: the run is never stopped */
    bool checkpointed;       /* the last run left a checkpoint from which it can continue */
    uint64_t predicted_peak, budget_bytes;
    char note[2048]; /* message about this run: what a resume found, too little data; "": none */
};
/* Trains. Calls the listener with BEGIN, STEP, EPOCH and END events. */
plim_status trainer_run(struct trainer *trainer, plim_listener *listener, void *context, plim_error *error);
/* Sets the weights by the model's initializers, and the states to their initial values. */
plim_status trainer_initialize(struct trainer *trainer, plim_error *error);

/* ---- evaluate.c, resume.c: for trainer.c ---- */
struct evaluation {
    int64_t samples;
    double loss;                      /* sum over samples */
    double metric[MOST_METRICS];      /* the values to report */
    const double *each[MOST_METRICS]; /* the numbers of a metric that consists of several; else NULL */
};
/* Sets the sums of metrics to 0. */
void clear_sums(struct trainer *trainer, int phase, const struct model_tensors *tensors);
/* Evaluates on the validation data from its beginning. PLIM_INTERRUPTED: a stop was requested. */
plim_status evaluate(struct evaluation *sums, struct trainer *trainer, plim_error *error);
/* Loads position and tensors from the checkpoint if options.resume finds one, else weights from options.load_weights;
   then writes the first checkpoint of a new run. Errors that would fail a run at its end fail here: files that cannot
   be written, or that the disk has no space for. On entry trainer->position describes this job. On success
   trainer->checkpoints is open, and *checkpointed says whether it holds a checkpoint of this run. */
plim_status trainer_begin(bool *checkpointed, struct trainer *trainer, plim_error *error);
/* Appends to trainer->note and returns the appended part. Allocates nothing. */
__attribute__((format(printf, 2, 3))) const char *trainer_tell(struct trainer *trainer, const char *format, ...);
bool trainer_saves(const struct trainer *trainer);
bool trainer_stop_asked(const struct trainer *trainer);
/* Stateful layers keep one state row per sample, so every batch must have as many samples as there are rows.
   PLIM_BAD_DATA: this batch has not. */
plim_status trainer_check_batch(const struct trainer *trainer, const struct batch *batch, plim_error *error);

#endif
