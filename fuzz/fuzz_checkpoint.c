/* fuzz_checkpoint.c - any bytes, sealed as they should be, as a checkpoint and as a file of weights. Without the seal
   nothing behind it would be reached. What is refused must leave the machine as it was. */
#include <string.h>

#include "base/numbers/digest.h"
#include "fuzz_file.h"
#include "train/trainer.h"

#define ARENA_BYTES 1024
#define MOST_COUNT  ((int64_t)1 << 53)

struct subject {
    struct tensor tensor[3];
    struct tensor *persistent[3];
    uint64_t offset[3];
    struct program program;
    struct machine machine;
    uint8_t tensor_arena[ARENA_BYTES];
};

static void subject_init(struct subject *model, struct budget *budget)
{
    *model = (struct subject){.offset = {0, 256, 512}};
    model->tensor[0] = (struct tensor){.name = "dense/kernel", .kind = KIND_WEIGHT, .shape = {2, {3, 4}}};
    model->tensor[1] = (struct tensor){.name = "dense/bias", .kind = KIND_WEIGHT, .shape = {1, {4}}};
    model->tensor[2] =
        (struct tensor){.name = "optimizer/iteration", .kind = KIND_STATE, .type = TYPE_I64, .shape = {1, {1}}};
    for (int i = 0; i < 3; i++)
        model->persistent[i] = &model->tensor[i];
    model->program =
        (struct program){.persistent = model->persistent, .persistent_offset = model->offset, .persistent_count = 3};
    model->machine =
        (struct machine){.program = &model->program, .budget = budget, .tensor_arena = model->tensor_arena};
}

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static bool untouched(const struct subject *model)
{
    static const uint8_t zeros[ARENA_BYTES];
    return memcmp(model->tensor_arena, zeros, sizeof zeros) == 0;
}

static plim_status load(struct budget *budget, const char *path)
{
    struct subject model;
    struct position position;
    int64_t steps, iteration;
    uint64_t cost;
    bool whole;
    subject_init(&model, budget);
    plim_status status = checkpoint_read(&whole, &position, path, &model.machine, NULL);
    memcpy(&iteration, model.tensor_arena + model.offset[2], sizeof iteration);
    if (status == PLIM_OK) {
        expect(whole && iteration >= 0 && iteration <= MOST_COUNT);
        expect(position.step >= 0 && position.step <= MOST_COUNT && position.epoch >= 0 &&
               position.epoch <= MOST_COUNT);
    } else {
        expect(untouched(&model));
    }
    checkpoint_steps(&steps, path, budget, NULL);
    subject_init(&model, budget);
    plim_status fits = weights_check(&cost, path, &model.program, budget, NULL);
    expect(weights_load(path, &model.machine, NULL) == fits && (fits == PLIM_OK || untouched(&model)));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct fuzz_file file;
    struct sha256 sha;
    uint8_t seal[32];
    sha256_init(&sha);
    sha256_add(&sha, data, bytes);
    sha256_end(&sha, seal);
    if (!fuzz_file_open(&file, data, bytes))
        return 0;
    if (write(file.descriptor, seal, sizeof seal) == (ssize_t)sizeof seal &&
        budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK)
        fuzz_budget_free(budget, bytes, load(budget, file.path));
    fuzz_file_close(&file);
    return 0;
}
