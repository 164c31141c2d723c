/* shuffle.c - exact global shuffle: a keyed permutation of positions, anew each epoch.

   O(1) memory for any number of elements. The key is hash(seed, node, epoch), so
   that two shuffles of one pipeline differ, and nothing but the position is state. */
#include "pipeline/stage.h"

#include <string.h>

#include "base/settings.h"

static plim_status shuffle_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->cardinality >= 0)
        return PLIM_OK;
    fail(error, PLIM_UNSUPPORTED, "shuffle: an exact shuffle of data without end is not possible");
    return hint(error, PLIM_UNSUPPORTED, "put shuffle before repeat: each repetition gets an order of its own");
}

/* The epoch may differ within a chunk (a repeat lies after us): the permutation is made anew where it changes. */
static void shuffle_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                           int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!state->ready || state->epoch != epoch[i]) {
            uint64_t key = random_key(dataset->seed, (uint64_t)dataset->node, epoch[i]);
            permutation_init(&state->permutation, (uint64_t)dataset->cardinality, key, 0);
            state->epoch = epoch[i];
            state->ready = true;
        }
        position[i] = (int64_t)permutation_at(&state->permutation, (uint64_t)position[i]);
    }
}

struct dataset *dataset_shuffle(struct dataset *dataset, uint64_t seed)
{
    struct dataset *node = dataset_stage(&dataset, &stage_shuffle, 0, NULL);
    if (!node)
        return dataset;
    node->seed = seed;
    return dataset_built(node);
}

static plim_status shuffle_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                                plim_error *error)
{
    int64_t size;
    char where[256];
    bool scalar = value->kind == YAML_SCALAR;
    if (scalar && strcmp(value->text, "exact") == 0) {
        *dataset = dataset_shuffle(*dataset, seed);
        return PLIM_OK;
    }
    yaml_place(where, job, value);
    if ((scalar && setting_whole(&size, value->text)) || (!scalar && yaml_get(value, "buffer_size")))
        fail_at(error, PLIM_UNSUPPORTED, where, "shuffle: a buffer of elements, as in tf.data, is not offered yet");
    else if (scalar && strcmp(value->text, "blocks") == 0)
        fail_at(error, PLIM_UNSUPPORTED, where, "shuffle: 'blocks' is not offered yet");
    else {
        fail_at(error, PLIM_BAD_JOB, where, "shuffle: expected 'exact', got %s%s%s", scalar ? "'" : "",
                scalar ? value->text : "a list or a map", scalar ? "'" : "");
        return hint(error, PLIM_BAD_JOB, "shuffle: exact");
    }
    return hint(error, PLIM_UNSUPPORTED, "use `shuffle: exact`: the whole data set is shuffled, in no memory");
}

const struct stage stage_shuffle = {
    .name = "shuffle",
    .build = shuffle_build,
    .locate = shuffle_locate,
    .read = shuffle_read,
};
