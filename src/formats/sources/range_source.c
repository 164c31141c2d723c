/* range_source.c - the numbers 0, 1, ... n - 1: for trying pipelines out. */
#include <string.h>

#include "formats/tables/rows.h"

static plim_status range_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                              const uint64_t *stride, plim_error *error)
{
    TRY(source_check(source, index, count, error));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)to[0] + (uint64_t)i * stride[0], &index[i], sizeof index[i]);
    source_count_read(source, (uint64_t)count * sizeof index[0]);
    return PLIM_OK;
}

static void range_close(struct source *source)
{
    budget_give(source->budget, TAG_FORMATS, source, sizeof *source);
}

static const struct source_type range_type = {.name = "range", .read = range_read, .close = range_close};

plim_status range_open(struct source **out, struct budget *budget, int64_t n, plim_error *error)
{
    if (n < 1)
        return fail(error, PLIM_BAD_JOB, "range: %lld elements: at least 1 is needed", (long long)n);
    struct source *source = budget_take(budget, TAG_FORMATS, sizeof *source);
    if (!source)
        return budget_refused(budget, TAG_FORMATS, sizeof *source, error);
    source->type = &range_type;
    source->budget = budget;
    source->count = n;
    plim_status status = spec_add(&source->spec, NULL, TYPE_I64, &(struct shape){0}, error);
    if (status != PLIM_OK) {
        source_close(source);
        return status;
    }
    *out = source;
    return PLIM_OK;
}
