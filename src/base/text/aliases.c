/* aliases.c - words that people bring along from elsewhere, and what they are called or where they stand here. */
#include "base/text/aliases.h"

#include <string.h>

#include "base/numbers/count.h"
#include "base/text/text.h"

/* Other names of a word; a word may have several. */
static const char *const names[][2] = {
    {"lr", "learning_rate"},
    {"eps", "epsilon"},
    {"beta1", "beta_1"},
    {"beta2", "beta_2"},
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
    {"BatchNorm", "BatchNormalization"},
    {"BatchNorm1d", "BatchNormalization"},
    {"BatchNorm2d", "BatchNormalization"},
    {"LayerNorm", "LayerNormalization"},
    {"GroupNorm", "GroupNormalization"},
    {"RMSNorm", "RMSNormalization"},
    {"Linear", "Dense"},
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
    {"decay",
     "a schedule: learning_rate: {InverseTimeDecay: {initial_learning_rate: 0.01, decay_steps: 1, decay_rate: 0.001}}"},
    {"momentum", "an option of the optimizer: {sgd: {momentum: 0.9}}"},
    {"clipnorm", "an option of the optimizer: {adam: {clipnorm: 1.0}}"},
    {"clipvalue", "an option of the optimizer: {adam: {clipvalue: 0.5}}"},
    {"global_clipnorm", "an option of the optimizer: {adam: {global_clipnorm: 1.0}}"},
    {"use_ema", "an option of the optimizer: {adam: {use_ema: true}}"},
    {"gradient_accumulation_steps", "an option of the optimizer: {adam: {gradient_accumulation_steps: 4}}"},
    {"dtype", "train: {precision: mixed_bfloat16}"},
    {"mixed_precision", "train: {precision: mixed_bfloat16}"},
    {"input_shape", "leave it out: the data says it; or a layer before it: Input: {shape: [28, 28, 1]}"},
    {"batch_input_shape", "leave it out: the data says it; or a layer before it: Input: {shape: [28, 28, 1]}"},
    {"input_dim", "leave it out: the data says it; or a layer before it: Input: {shape: [100]}"},
    {"input_length", "leave it out: the data says it"},
    {"initial_epoch", "plim train JOB.yaml --resume goes on where a run stopped"},
    {"verbose", "plim train --json, or | tail -6"},
    {"device", "it runs on the CPU; threads: 4 says on how many cores"},
};

/* Layers of Keras that are functions of a pipeline here. */
static const char *const functions[][2] = {
    {"StringLookup", "a function of the pipeline: map: {x: [string_lookup: {vocabulary: words.txt}]}"},
    {"IntegerLookup", "a function of the pipeline: map: {x: [integer_lookup: {vocabulary: ids.txt}]}"},
    {"TextVectorization", "a function of the pipeline: map: {x: [text_vectorization: {vocabulary: words.txt}]}"},
    {"Hashing", "a function of the pipeline: map: {x: [hashing: {num_bins: 1000}]}"},
};

static const char *said_of(const char *word, const char *const table[][2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i][0], word) == 0)
            return table[i][1];
    return NULL;
}

const char *habit_instead(const char *word)
{
    return said_of(word, functions, COUNT(functions));
}

const char *habit_place(const char *word)
{
    return said_of(word, places, COUNT(places));
}

const char *habit_word(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t k = 0; strcmp(names[i][0], word) == 0 && k < count; k++)
            if (strcmp(names[i][1], words[k]) == 0)
                return words[k];
    return habit_place(word) ? NULL : text_nearest(word, words, count);
}
