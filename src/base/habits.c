/* habits.c - words that people bring along from elsewhere, and what they are called or where they stand here. */
#include "base/habits.h"

#include <string.h>

#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Other names of a word; a word may have several. */
static const char *const names[][2] = {
    {"lr", "learning_rate"},
    {"eps", "epsilon"},
    {"beta1", "beta_1"},
    {"beta2", "beta_2"},
    {"decay", "weight_decay"},
    {"max_norm", "clipnorm"},
    {"max_grad_norm", "global_clipnorm"},
    {"batch_size", "batch"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"out_features", "units"},
    {"out_channels", "filters"},
    {"label_name", "label"},
    {"file_pattern", "files"},
    {"validation_data", "validation"},
    {"val", "validation"},
    {"valid", "validation"},
    {"test", "validation"},
    {"memory_budget", "memory"},
    {"ram", "memory"},
    {"opt", "optimizer"},
    {"criterion", "loss"},
    {"lr_schedule", "learning_rate"},
};

/* Words of compile() and fit() that have another place in a job file. */
static const char *const places[][2] = {
    {"batch_size", "data: {train: {..., pipeline: [batch: 32]}}"},
    {"shuffle", "data: {train: {..., pipeline: [shuffle: exact, batch: 32]}}"},
    {"validation_data", "data: {train: ..., validation: {npy: [vx.npy, vy.npy], pipeline: [batch: 32]}}"},
    {"validation_split", "name the split: data: {train: ..., validation: {..., pipeline: [take: 1000, batch: 32]}}"},
    {"validation_batch_size", "data: {validation: {..., pipeline: [batch: 32]}}"},
    {"sample_weight", "a third column of the data: npy: [x.npy, y.npy, w.npy], or one that is named sample_weight"},
    {"learning_rate", "train: {optimizer: {adam: {learning_rate: 0.001}}}"},
    {"lr", "train: {optimizer: {adam: {learning_rate: 0.001}}}"},
    {"weight_decay", "an option of the optimizer: {adamw: {weight_decay: 0.004}}"},
    {"momentum", "an option of the optimizer: {sgd: {momentum: 0.9}}"},
    {"clipnorm", "an option of the optimizer: {adam: {clipnorm: 1.0}}"},
    {"clipvalue", "an option of the optimizer: {adam: {clipvalue: 0.5}}"},
    {"global_clipnorm", "an option of the optimizer: {adam: {global_clipnorm: 1.0}}"},
    {"use_ema", "an option of the optimizer: {adam: {use_ema: true}}"},
    {"gradient_accumulation_steps", "an option of the optimizer: {adam: {gradient_accumulation_steps: 4}}"},
    {"dtype", "train: {precision: mixed_bfloat16}"},
    {"mixed_precision", "train: {precision: mixed_bfloat16}"},
    {"initial_epoch", "plim train JOB.yaml --resume goes on where a run stopped"},
    {"verbose", "plim train --json, or | tail -6"},
    {"device", "it runs on the CPU; threads: 4 says on how many cores"},
};

const char *habit_place(const char *word)
{
    for (size_t i = 0; i < COUNT(places); i++)
        if (strcmp(places[i][0], word) == 0)
            return places[i][1];
    return NULL;
}

const char *habit_word(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t k = 0; strcmp(names[i][0], word) == 0 && k < count; k++)
            if (strcmp(names[i][1], words[k]) == 0)
                return words[k];
    return habit_place(word) ? NULL : text_nearest(word, words, count);
}
