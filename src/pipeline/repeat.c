/* repeat.c - the same elements several times an epoch, or without end.

   Each repetition is an epoch of its own for what lies before it, so that it is
   shuffled anew: repetition r of epoch e is epoch e * times + r of the input. */
#include "base/checked.h"
#include "base/settings.h"
#include "pipeline/stage.h"

/* Without end an epoch has no last repetition; later epochs start this many further on. */
#define REPETITIONS_WITHOUT_END ((uint64_t)1 << 40)

static plim_status repeat_build(struct dataset *dataset, plim_error *error)
{
    int64_t times = dataset->number;
    if (times == 0 || times < -1)
        return fail(error, PLIM_BAD_JOB, "repeat: must be at least 1, or -1 for no end; got %lld", (long long)times);
    if (dataset->cardinality <= 0)
        return PLIM_OK;
    if (times < 0)
        dataset->cardinality = -1;
    else if (!mul_i64(&dataset->cardinality, dataset->cardinality, times))
        return fail(error, PLIM_BAD_JOB, "repeat: %lld times is more than 2^63 elements", (long long)times);
    return PLIM_OK;
}

static void repeat_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                          int64_t count)
{
    (void)state;
    int64_t n = dataset->input->cardinality;
    uint64_t times = dataset->number < 0 ? REPETITIONS_WITHOUT_END : (uint64_t)dataset->number;
    for (int64_t i = 0; i < count; i++) {
        int64_t repetition = n > 0 ? position[i] / n : 0; /* an input without end is its own first repetition */
        epoch[i] = epoch[i] * times + (uint64_t)repetition;
        position[i] -= n > 0 ? repetition * n : 0;
    }
}

struct dataset *dataset_repeat(struct dataset *dataset, int64_t times)
{
    struct dataset *node = dataset_stage(&dataset, &stage_repeat, 0, NULL);
    if (!node)
        return dataset;
    node->number = times;
    return dataset_built(node);
}

static plim_status repeat_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                               plim_error *error)
{
    int64_t times = -1;
    const struct setting setting = {"repeat", SETTING_WHOLE, 0, -1};
    (void)seed;
    if (value && !value->is_null)
        TRY(setting_value(&times, &setting, job, value, error));
    *dataset = dataset_repeat(*dataset, times);
    return PLIM_OK;
}

const struct stage stage_repeat = {
    .name = "repeat",
    .bare = true,
    .build = repeat_build,
    .locate = repeat_locate,
    .read = repeat_read,
};
