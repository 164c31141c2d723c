/* fuzz_keras_config.c - any bytes as the config.json of a Keras model, up to its layers. */
#include "fuzz_file.h"
#include "model/keras_config.h"
#include "model/model.h"

/* A value of the document is a node of a tree, of the tree made of it, and options of a layer: so many bytes each. */
#define BYTES_A_BYTE ((uint64_t)700)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct arena arena;
    struct yaml *words = NULL, *compiled = NULL;
    struct model *model;
    plim_error error = {0};
    uint64_t most = (uint64_t)bytes * BYTES_A_BYTE + FUZZ_SLACK_BYTES;
    if (budget_make(&budget, most, NULL) != PLIM_OK)
        return 0;
    arena_init(&arena, budget, TAG_PLANNER);
    plim_status status = keras_config_read(&words, &compiled, &arena, "config.json", (const char *)data, bytes, &error);
    if (status == PLIM_OK)
        status = model_read(&model, budget, "config.json", words, &error);
    if (status == PLIM_OK)
        model_free(model);
    else if (status == PLIM_INTERNAL || status == PLIM_OVER_BUDGET || status != error.code || !error.message[0])
        abort();
    arena_release(&arena);
    budget_free(budget); /* asserts that it is empty */
    return 0;
}
