/* resume.c - where a run begins: at its checkpoint, at given weights, or at
   the beginning. A checkpoint of another job is refused; one of another
   instruction set is not, but the difference is said. */
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

static plim_status check_same(const char *what, int64_t saved, int64_t now, plim_error *error)
{
    if (saved == now)
        return PLIM_OK;
    plim_status status = fail(error, PLIM_BAD_DATA, "the checkpoint was made with %s %lld, this job has %lld", what,
                              (long long)saved, (long long)now);
    return hint(error, status, "train without --resume to start anew");
}

static plim_status check_position(struct trainer *trainer, const struct position *saved, plim_error *error)
{
    const struct position *here = &trainer->position;
    TRY(check_same("a batch of", saved->batch, here->batch, error));
    TRY(check_same("a number of elements of", saved->dataset_count, here->dataset_count, error));
    TRY(check_same("seed", (int64_t)saved->seed, (int64_t)here->seed, error));
    size_t used = strlen(trainer->note);
    if (strcmp(saved->instructions, here->instructions) != 0)
        snprintf(trainer->note + used, sizeof trainer->note - used,
                 "%sthe checkpoint was made with %s, this machine has %s: the bits may differ from here on",
                 used ? "; " : "", saved->instructions, here->instructions);
    return PLIM_OK;
}

plim_status trainer_resume(bool *resumed, struct trainer *trainer, plim_error *error)
{
    const struct trainer_options *options = &trainer->options;
    struct position saved;
    bool found = false;
    *resumed = false;
    if (options->resume && options->checkpoint_folder)
        TRY(checkpoint_load(&found, &saved, trainer->note, options->checkpoint_folder, &trainer->machine, error));
    if (found) {
        TRY(check_position(trainer, &saved, error));
        memcpy(saved.instructions, trainer->position.instructions, sizeof saved.instructions);
        trainer->position = saved;
        *resumed = true;
        return PLIM_OK;
    }
    if (options->resume)
        snprintf(trainer->note, sizeof trainer->note, "no checkpoint in %.180s: starting from the beginning",
                 options->checkpoint_folder ? options->checkpoint_folder : "(no folder)");
    return options->load_weights ? weights_load(options->load_weights, &trainer->machine, error) : PLIM_OK;
}
