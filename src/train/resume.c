/* resume.c - where a run begins: at its checkpoint, at given weights, or at
   the beginning. A checkpoint of another job is refused; one of another
   instruction set is not, but the difference is said. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/files/file.h"
#include "base/memory/budget_stop.h"
#include "base/text/message.h"
#include "base/text/text.h"
#include "formats/weights/keras_file.h"
#include "train/trainer.h"

bool trainer_saves(const struct trainer *trainer)
{
    return trainer->options.checkpoint_folder && trainer->options.checkpoint_every >= 0;
}

const char *trainer_tell(struct trainer *trainer, const char *format, ...)
{
    size_t used = strlen(trainer->note);
    if (used && used < sizeof trainer->note - 3)
        used += (size_t)snprintf(trainer->note + used, sizeof trainer->note - used, "; ");
    va_list list;
    va_start(list, format);
    message_print_list(trainer->note + used, sizeof trainer->note - used, format, list);
    va_end(list);
    return trainer->note + used;
}

/* ---- going on ---- */

static plim_status check_same(const char *what, int64_t saved, int64_t now, plim_error *error)
{
    if (saved == now)
        return PLIM_OK;
    plim_status status = fail(error, PLIM_BAD_DATA, "the checkpoint was made with %s %lld, this job has %lld", what,
                              (long long)saved, (long long)now);
    return hint(error, status, "train without --resume to start anew");
}

static plim_status check_elements(int64_t saved, int64_t now, plim_error *error)
{
    char before[48], here[48];
    if (saved == now)
        return PLIM_OK;
    elements_text(before, saved);
    elements_text(here, now);
    plim_status status = fail(error, PLIM_BAD_DATA, "the checkpoint was made with %s, this job has %s", before, here);
    return hint(error, status, "--data-changed goes on with it; without --resume training starts anew");
}

static plim_status check_job(const char *saved, const char *here, plim_error *error)
{
    if (!saved[0] || !here[0] || strcmp(saved, here) == 0)
        return PLIM_OK;
    plim_status status =
        fail(error, PLIM_BAD_DATA,
             "the checkpoint is of another job: its digest is %.12s..., the one of this job %.12s...", saved, here);
    return hint(error, status, "start without --resume, or --checkpoint another folder");
}

#define PATH_SHOWN 160 /* bytes of a path in a note */

/* "2 files of 11.2 MiB, changed 2026-11-17 03:41:00 UTC: ...data/x.npy" */
static void describe_data(char out[192], const struct fingerprint *data)
{
    char size[16], when[32] = "?";
    time_t changed = (time_t)data->changed;
    struct tm date;
    text_size(size, data->bytes);
    if (gmtime_r(&changed, &date))
        (void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &date);
    snprintf(out, 192, "%lld file%s of %s, changed %s (%s)", (long long)data->files, data->files == 1 ? "" : "s", size,
             when, data->name);
}

/* A vocabulary has no size and no name here: then two descriptions of the same files would say nothing. */
static plim_status refuse_data(const char *which, const struct fingerprint *saved, const struct fingerprint *here,
                               plim_error *error)
{
    char had[192], has[192];
    describe_data(had, saved);
    describe_data(has, here);
    if (!here->files || strcmp(had, has) == 0)
        fail(error, PLIM_BAD_DATA,
             "the %s data is not what the checkpoint was made with: its content differs, in its files or in a "
             "vocabulary or merges that its pipeline reads%s%s",
             which, here->files ? ": " : "", here->files ? has : "");
    else
        fail(error, PLIM_BAD_DATA, "the %s data is not what the checkpoint was made with: that was %s, this is %s",
             which, had, has);
    return hint(error, PLIM_BAD_DATA, "--data-changed goes on with it; without --resume training starts anew");
}

static plim_status check_data(struct trainer *trainer, const char *which, const struct fingerprint *saved,
                              const struct fingerprint *here, plim_error *error)
{
    if (!here->digest[0] || strcmp(saved->digest, here->digest) == 0)
        return PLIM_OK;
    if (!saved->digest[0]) {
        trainer_tell(trainer, "the checkpoint was made %sby an older version: its %s data is not compared",
                     here == &trainer->position.validation ? "without validation data, or " : "", which);
        return PLIM_OK;
    }
    if (!trainer->options.data_changed)
        return refuse_data(which, saved, here, error);
    trainer_tell(trainer, "the %s data is not what the checkpoint was made with: going on with it", which);
    return PLIM_OK;
}

/* Steps are multiplied by the batch to find their place in the data: beyond its end there is none. Of data that has
   become shorter the epoch ends where it ends now. */
static plim_status check_step(struct trainer *trainer, struct position *saved, plim_error *error)
{
    int64_t last, steps = dataset_steps(trainer->train, &last), most = trainer->options.steps_per_epoch;
    if (steps < 0) /* without end, or not known */
        steps = INT64_MAX / (saved->batch > 0 ? saved->batch : 1) - 1;
    if (most && most < steps)
        steps = most;
    if (saved->step <= steps)
        return PLIM_OK;
    if (!trainer->options.data_changed || steps < 1)
        return fail(error, PLIM_BAD_DATA, "the checkpoint is at step %lld of an epoch that has %lld",
                    (long long)saved->step, (long long)steps);
    trainer_tell(trainer, "the checkpoint is at step %lld, and the epoch is shorter now: it ends here, at step %lld",
                 (long long)saved->step, (long long)steps);
    saved->step = steps;
    return PLIM_OK;
}

static plim_status check_position(struct trainer *trainer, struct position *saved, plim_error *error)
{
    const struct position *here = &trainer->position;
    TRY(check_same("a batch of", saved->batch, here->batch, error));
    if (!trainer->options.data_changed)
        TRY(check_elements(saved->dataset_count, here->dataset_count, error));
    TRY(check_same("seed", (int64_t)saved->seed, (int64_t)here->seed, error));
    TRY(check_job(saved->job, here->job, error));
    TRY(check_data(trainer, "training", &saved->data, &here->data, error));
    TRY(check_data(trainer, "validation", &saved->validation, &here->validation, error));
    TRY(check_step(trainer, saved, error));
    if (strcmp(saved->instructions, here->instructions) != 0)
        trainer_tell(trainer, "the checkpoint was made with %s, this machine has %s: the bits may differ from here on",
                     saved->instructions, here->instructions);
    return PLIM_OK;
}

static void tell_no_checkpoint(struct trainer *trainer)
{
    const char *folder = trainer->options.checkpoint_folder;
    char shown[PATH_SHOWN];
    text_end(shown, sizeof shown, folder ? folder : "(no folder)");
    trainer_tell(trainer, "no checkpoint in %s: starting from the beginning", shown);
}

static plim_status resume(bool *resumed, struct trainer *trainer, plim_error *error)
{
    const struct trainer_options *options = &trainer->options;
    struct position saved;
    bool found = false;
    if (options->resume && options->checkpoint_folder)
        TRY(checkpoint_load(&found, &saved, trainer->note, &trainer->checkpoints, &trainer->machine, error));
    if (found) {
        TRY(check_position(trainer, &saved, error));
        memcpy(saved.instructions, trainer->position.instructions, sizeof saved.instructions);
        memcpy(saved.job, trainer->position.job, sizeof saved.job);
        saved.data = trainer->position.data;
        saved.validation = trainer->position.validation;
        saved.dataset_count = trainer->position.dataset_count;
        trainer->position = saved;
        *resumed = true;
        return PLIM_OK;
    }
    if (options->resume)
        tell_no_checkpoint(trainer);
    if (!options->load_weights)
        return PLIM_OK;
    bool keras = false;
    TRY(keras_file_is(&keras, trainer->budget, options->load_weights, error));
    if (keras)
        return keras_weights_load(options->load_weights, &trainer->machine, trainer->build, trainer->scratch, error);
    return weights_load(options->load_weights, &trainer->machine, error);
}

/* ---- what will be written ---- */

/* Files of a folder in memory are memory that the plan does not hold: they have
   to fit beside it. */
static plim_status check_in_memory(const char *folder, uint64_t bytes, uint64_t *left, const char *other,
                                   plim_error *error)
{
    char needed[16], there[16];
    if (!file_folder_in_memory(folder))
        return PLIM_OK;
    if (bytes <= *left) {
        *left -= bytes;
        return PLIM_OK;
    }
    text_size(needed, bytes);
    text_size(there, *left);
    fail_at(error, PLIM_OVER_BUDGET, folder,
            "this folder is in memory: the %s of files in it do not fit into the %s that the plan leaves", needed,
            there);
    return hint(error, PLIM_OVER_BUDGET, "name a folder on a disk with %s", other);
}

/* Checkpoints: the newest, the one before and one that is being written. */
static plim_status check_memory(const struct trainer *trainer, plim_error *error)
{
    const struct trainer_options *options = &trainer->options;
    const struct program *program = trainer->machine.program;
    uint64_t budget = trainer->budget_bytes, peak = trainer->predicted_peak, left = budget > peak ? budget - peak : 0;
    if (!budget)
        return PLIM_OK;
    if (trainer_saves(trainer))
        TRY(check_in_memory(options->checkpoint_folder, 3 * checkpoint_bytes(program, false), &left, "--checkpoint",
                            error));
    if (!options->save_weights)
        return PLIM_OK;
    char folder[CHECKPOINT_PATH_BYTES];
    path_folder(folder, options->save_weights);
    return check_in_memory(folder, checkpoint_bytes(program, true), &left, "train.save_weights", error);
}

/* ---- the whole ---- */

static void tell_kept(struct trainer *trainer)
{
    const struct checkpoint_folder *folder = &trainer->checkpoints;
    char shown[PATH_SHOWN];
    text_end(shown, sizeof shown, folder->path);
    trainer_tell(trainer, "the checkpoint of an earlier run is kept as %s/%s", shown, CHECKPOINT_OLDER_NAME);
    if (folder->kept && folder->kept_steps < 0)
        trainer_tell(trainer, "the one that had this name, whose steps could not be read, as %s", folder->kept_name);
    else if (folder->kept)
        trainer_tell(trainer, "the one of %lld steps that had this name as %s", (long long)folder->kept_steps,
                     folder->kept_name);
}

static plim_status begin(bool *checkpointed, struct trainer *trainer, plim_error *error)
{
    bool set_aside = false;
    *checkpointed = false;
    TRY(check_memory(trainer, error));
    if (trainer->options.save_weights)
        TRY(weights_rehearse(trainer->options.save_weights, &trainer->machine, error));
    TRY(resume(checkpointed, trainer, error));
    if (!trainer_saves(trainer))
        return PLIM_OK;
    if (*checkpointed)
        return checkpoint_rehearse(&trainer->checkpoints, &trainer->machine, &trainer->position, error);
    TRY(checkpoint_begin(&set_aside, &trainer->checkpoints, &trainer->machine, &trainer->position, error));
    *checkpointed = true;
    if (set_aside)
        tell_kept(trainer);
    return PLIM_OK;
}

plim_status trainer_begin(bool *checkpointed, struct trainer *trainer, plim_error *error)
{
    const char *folder = trainer->options.checkpoint_folder;
    trainer->checkpoints = (struct checkpoint_folder){.path = folder};
    if (trainer_saves(trainer))
        TRY(checkpoint_folder_open(&trainer->checkpoints, folder, trainer->budget, error));
    bool refused = budget_stop_refuses(trainer->budget, true); /* nothing of this run has to be kept yet */
    plim_status status = begin(checkpointed, trainer, error);
    budget_stop_refuses(trainer->budget, refused);
    if (status != PLIM_OK)
        checkpoint_folder_discard(&trainer->checkpoints);
    if (status == PLIM_INTERRUPTED)
        return fail(error, PLIM_INTERRUPTED, "stopped before the first step: nothing was written");
    return status;
}
