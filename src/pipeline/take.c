/* take.c - the first elements of an epoch (take), or all but those (skip). */
#include "base/settings.h"
#include "pipeline/stage.h"

/* Positions of data without end are added to skips: bounded, so that no sum overflows. */
#define MOST_SKIPPED_WITHOUT_END ((int64_t)1 << 48)

static plim_status take_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->number < -1)
        return fail(error, PLIM_BAD_JOB, "take: must be at least 0, or -1 for all; got %lld",
                    (long long)dataset->number);
    if (dataset->number >= 0 && (dataset->cardinality < 0 || dataset->number < dataset->cardinality))
        dataset->cardinality = dataset->number;
    return PLIM_OK;
}

static plim_status skip_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->number < 0)
        return fail(error, PLIM_BAD_JOB, "skip: must be at least 0; got %lld", (long long)dataset->number);
    if (dataset->cardinality < 0 && dataset->number > MOST_SKIPPED_WITHOUT_END)
        return fail(error, PLIM_UNSUPPORTED, "skip: at most 2^48 elements of data without end; got %lld",
                    (long long)dataset->number);
    if (dataset->cardinality >= 0)
        dataset->cardinality = dataset->number < dataset->cardinality ? dataset->cardinality - dataset->number : 0;
    return PLIM_OK;
}

static void skip_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                        int64_t count)
{
    (void)state, (void)epoch;
    for (int64_t i = 0; i < count; i++)
        position[i] += dataset->number;
}

static struct dataset *numbered(struct dataset *dataset, const struct stage *stage, int64_t count)
{
    struct dataset *node = dataset_stage(&dataset, stage, 0, NULL);
    if (!node)
        return dataset;
    node->number = count;
    return dataset_built(node);
}

struct dataset *dataset_take(struct dataset *dataset, int64_t count)
{
    return numbered(dataset, &stage_take, count);
}

struct dataset *dataset_skip(struct dataset *dataset, int64_t count)
{
    return numbered(dataset, &stage_skip, count);
}

static plim_status take_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                             plim_error *error)
{
    int64_t count = 0;
    const struct setting setting = {"take", SETTING_WHOLE, 0, -1};
    (void)seed;
    TRY(setting_value(&count, &setting, job, value, error));
    *dataset = dataset_take(*dataset, count);
    return PLIM_OK;
}

static plim_status skip_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                             plim_error *error)
{
    int64_t count = 0;
    const struct setting setting = {"skip", SETTING_WHOLE, 0, 0};
    (void)seed;
    TRY(setting_value(&count, &setting, job, value, error));
    *dataset = dataset_skip(*dataset, count);
    return PLIM_OK;
}

const struct stage stage_take = {
    .name = "take",
    .build = take_build,
    .read = take_read,
};

const struct stage stage_skip = {
    .name = "skip",
    .build = skip_build,
    .locate = skip_locate,
    .read = skip_read,
};
