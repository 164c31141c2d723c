/* counter_source.c - the numbers start, start + step, ...: so many, or without end. A range is 0, 1, ..., n - 1. */
#include <string.h>

#include "formats/tables/rows.h"

struct counter_source {
    struct source base;
    int64_t start, step;
};

static plim_status counter_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                                const uint64_t *stride, plim_error *error)
{
    const struct counter_source *self = (const struct counter_source *)source;
    if (source->count >= 0)
        TRY(source_check(source, index, count, error));
    for (int64_t i = 0; i < count; i++) { /* wraps, as tf.data's does */
        uint64_t value = (uint64_t)self->start + (uint64_t)index[i] * (uint64_t)self->step;
        memcpy((char *)to[0] + (uint64_t)i * stride[0], &value, sizeof value);
    }
    source_count_read(source, (uint64_t)count * sizeof(int64_t));
    return PLIM_OK;
}

static const struct source_type counter_type = {.name = "counter", .read = counter_read};
static const struct source_type range_type = {.name = "range", .read = counter_read};

static plim_status open_numbers(struct source **out, struct budget *budget, const struct source_type *type,
                                int64_t start, int64_t step, int64_t count, plim_error *error)
{
    struct counter_source *self;
    TRY(source_make(&self, sizeof *self, type, budget, error));
    self->start = start;
    self->step = step;
    self->base.count = count;
    return source_opened(out, &self->base, spec_add(&self->base.spec, NULL, TYPE_I64, &(struct shape){0}, error));
}

plim_status counter_open(struct source **out, struct budget *budget, int64_t start, int64_t step, int64_t count,
                         plim_error *error)
{
    if (count < 1 && count != CARDINALITY_INFINITE)
        return fail(error, PLIM_BAD_JOB, "counter: %lld elements: at least 1 is needed, or -1 for no end",
                    (long long)count);
    return open_numbers(out, budget, &counter_type, start, step, count, error);
}

plim_status range_open(struct source **out, struct budget *budget, int64_t n, plim_error *error)
{
    if (n < 1)
        return fail(error, PLIM_BAD_JOB, "range: %lld elements: at least 1 is needed", (long long)n);
    return open_numbers(out, budget, &range_type, 0, 1, n, error);
}
