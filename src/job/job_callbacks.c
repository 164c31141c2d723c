/* job_callbacks.c - Keras's callbacks that a job file does not have, each with what does its work. */
#include "job/job.h"

#include "model/layers/layer_options.h"

#define NONE  "checkpoint is the only one: callbacks: [checkpoint: {every: 500}]"
#define RATE  "a schedule: optimizer: {adam: {learning_rate: {CosineDecay: {...}}}}"
#define LINES "plim train --json writes a line of figures an epoch"

static const char *const later[][2] = {
    {"EarlyStopping", NONE},
    {"ReduceLROnPlateau", RATE},
    {"LearningRateScheduler", RATE},
    {"ModelCheckpoint", "callbacks: [checkpoint: {every: 500, path: DIR}]"},
    {"BackupAndRestore", "it is always on: plim train JOB.yaml --resume"},
    {"CSVLogger", LINES},
    {"TensorBoard", LINES},
    {"ProgbarLogger", LINES},
    {"RemoteMonitor", LINES},
    {"History", LINES},
    {"SwapEMAWeights", "use_ema: true puts the averages into the weights at the end"},
    {"TerminateOnNaN", NONE},
    {"LambdaCallback", "in C: a listener (plim_job_train)"},
};

plim_status job_callback_check(const struct plim_job *job, const struct yaml *entry, const char *word,
                               plim_error *error)
{
    for (int i = 0; i < COUNT(later); i++) {
        if (!same_word(word, later[i][0]))
            continue;
        return hint(
            error, yaml_fail(error, PLIM_UNSUPPORTED, job->path, entry, "the callback '%s' is not supported yet", word),
            "%s", later[i][1]);
    }
    return PLIM_OK;
}
