/* fuzz_keras_config.c - any bytes as the config.json of a Keras model, up to its layers, and what it says
   of compile(). */
#include "fuzz_file.h"
#include "model/keras/keras_config.h"
#include "model/model.h"

/* A value of the document is a node of a tree, of the tree made of it, and options of a layer: so many bytes each. */
#define BYTES_A_BYTE ((uint64_t)700)

static struct compile_key word_of(const struct yaml *compiled, const char *word)
{
    return (struct compile_key){yaml_get(compiled, word), "config.json"};
}

/* As a job reads it that says nothing itself. */
static plim_status read_compiled(const struct model *model, const struct yaml *compiled, struct arena *arena,
                                 plim_error *error)
{
    static struct training training;
    const struct compile_keys keys = {.loss = word_of(compiled, "loss"),
                                      .loss_weights = word_of(compiled, "loss_weights"),
                                      .metrics = word_of(compiled, "metrics"),
                                      .weighted_metrics = word_of(compiled, "weighted_metrics")};
    const struct yaml *optimizer = yaml_get(compiled, "optimizer");
    training = (struct training){0};
    if (optimizer)
        TRY(optimizer_read(&training.optimizer, "config.json", optimizer, error));
    return keys.loss.node ? compile_read(&training, model, arena, &keys, error) : PLIM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct arena arena;
    struct keras_config config;
    struct model *model = NULL;
    plim_error error = {0};
    uint64_t most = (uint64_t)bytes * BYTES_A_BYTE + FUZZ_SLACK_BYTES;
    if (budget_make(&budget, most, NULL) != PLIM_OK)
        return 0;
    arena_init(&arena, budget, TAG_PLANNER);
    plim_status status = keras_config_read(&config, &arena, "config.json", (const char *)data, bytes, &error);
    if (status == PLIM_OK)
        status = model_read(&model, budget, "config.json", config.yaml, &error);
    if (status == PLIM_OK && config.compiled)
        status = read_compiled(model, config.compiled, &arena, &error);
    model_free(model);
    if (status != PLIM_OK &&
        (status == PLIM_INTERNAL || status == PLIM_OVER_BUDGET || status != error.code || !error.message[0]))
        abort();
    arena_release(&arena);
    budget_free(budget); /* asserts that it is empty */
    return 0;
}
