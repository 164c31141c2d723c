/* trainer.h - runs a program: steps, evaluation, checkpoints.

   The machine holds the one arena and the team; it knows instructions and
   nothing of models. The trainer knows epochs, metrics and checkpoints. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "base/workers.h"
#include "model/model.h"
#include "pipeline/dataset.h"
#include "plan/plan.h"

/* ---- machine.c: executes the plan's instructions ---- */
struct machine {
    struct program *program;
    struct budget *budget;
    struct team *team;
    uint8_t *arena; /* program->arena_bytes, mapped and touched */
    uint64_t booked[TAG_COUNT]; /* of the arena, moved from activations to other tags of the ledger */
    bool poison;    /* fill with NaN before a phase, and what dies during it: finds plans that read it */
};
/* Takes and touches the arena (tags from the plan), starts the team. */
plim_status machine_open(struct machine *machine, struct program *program, struct budget *budget, plim_error *error);
void machine_close(struct machine *machine);
/* Runs every instruction of the phase on this batch, whose count must be the batch of the
   graph or the last batch that the plan was told of. Allocates nothing. */
void machine_run(struct machine *machine, int phase, const struct batch *batch);
/* Where a weight, a state or a result of a phase lives. */
void *machine_data(const struct machine *machine, int phase, const struct tensor *tensor);
/* The buffer of a phase without graph (save, resume); NULL and 0 when there is none. Its bytes
   are those of the step's values, which are dead between steps. */
void *machine_buffer(uint64_t *bytes, const struct machine *machine, int phase);

/* ---- checkpoint.c ---- */
struct position {
    int64_t epoch, step;      /* next batch to train on: epoch from 0 */
    int64_t total_steps;
    int64_t epoch_samples;    /* running sums of this epoch */
    double loss_sum, metric_sum;
    uint64_t seed;
    int64_t batch;            /* batch size: refused when it differs */
    int64_t dataset_count;
    char instructions[32];    /* "avx512": another one says that bits may differ */
};
/* FOLDER/checkpoint.safetensors, the one before as checkpoint.previous.safetensors.
   A failure leaves what was there. */
#define CHECKPOINT_NAME "checkpoint.safetensors"
#define CHECKPOINT_PREVIOUS_NAME "checkpoint.previous.safetensors"
plim_status checkpoint_save(const char *folder, struct machine *machine, const struct position *position,
                            plim_error *error);
/* Writes all of it to the partial name and takes it away again: a folder that
   cannot be written and a disk that is too full show before the first step. */
plim_status checkpoint_rehearse(const char *folder, struct machine *machine, const struct position *position,
                                plim_error *error);
/* The newest that is whole; *found = false when there is none. A broken newest
   one is passed over for the one before, and `note` says so. Straight into place. */
plim_status checkpoint_load(bool *found, struct position *position, char note[256], const char *folder, struct machine *machine, plim_error *error);
/* What saving or loading takes from the budget for a while, at most. */
uint64_t checkpoint_cost(const struct program *program);
plim_status weights_save(const char *path, struct machine *machine, plim_error *error);
/* Every weight of the model must be there; optimizer states (of a
   checkpoint) are passed over, other tensors are refused. */
plim_status weights_load(const char *path, struct machine *machine, plim_error *error);
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
    uint64_t save_buffer_bytes; /* for the plan: where the buffer lies is its business */
    int train_slots, validation_slots;
};

struct trainer {
    struct budget *budget;
    struct machine machine;
    struct model *model;
    struct model_tensors train_tensors, evaluate_tensors;
    struct dataset *train, *validation; /* borrowed */
    struct iterator *train_iterator, *validation_iterator;
    struct scratch *scratch;
    struct trainer_options options;
    struct position position;
    const volatile int *stop; /* set by a signal handler */
    uint64_t predicted_peak, budget_bytes;
    const char *metric; /* "accuracy" or NULL */
    char note[256];     /* set before the first BEGIN: what a resume found; "" when nothing is to be said */
};
/* Calls listener with BEGIN, STEP, EPOCH and END events. */
plim_status trainer_run(struct trainer *trainer, plim_listener *listener, void *context, plim_error *error);
/* Weights from the model's initialisers, states zero, learning rate set. */
plim_status trainer_initialize(struct trainer *trainer, const struct training *training, plim_error *error);

/* For trainer.c: ---- evaluate.c, resume.c ---- */
struct evaluation {
    int64_t samples;
    double loss, metric; /* sums over samples */
};
/* The validation data from its start; ends early when a stop is asked for. */
plim_status evaluate(struct evaluation *sums, struct trainer *trainer, plim_error *error);
/* Position and tensors of the checkpoint when options.resume finds one, else
   of options.load_weights. trainer->position says what this job is. */
plim_status trainer_resume(bool *resumed, struct trainer *trainer, plim_error *error);
bool trainer_stop_asked(const struct trainer *trainer);

#endif
