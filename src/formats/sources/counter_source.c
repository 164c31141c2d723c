/* counter_source.c - start, start + step, ...: so many, or without end. */
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

static void counter_close(struct source *source)
{
    budget_give(source->budget, TAG_FORMATS, source, sizeof(struct counter_source));
}

static const struct source_type counter_type = {.name = "counter", .read = counter_read, .close = counter_close};

plim_status counter_open(struct source **out, struct budget *budget, int64_t start, int64_t step, int64_t count,
                         plim_error *error)
{
    if (count < 1 && count != CARDINALITY_INFINITE)
        return fail(error, PLIM_BAD_JOB, "counter: %lld elements: at least 1 is needed, or -1 for no end",
                    (long long)count);
    struct counter_source *self = budget_take(budget, TAG_FORMATS, sizeof *self);
    if (!self)
        return budget_refused(budget, TAG_FORMATS, sizeof *self, error);
    self->start = start;
    self->step = step;
    self->base.type = &counter_type;
    self->base.budget = budget;
    self->base.count = count;
    plim_status status = spec_add(&self->base.spec, NULL, TYPE_I64, &(struct shape){0}, error);
    if (status != PLIM_OK) {
        source_close(&self->base);
        return status;
    }
    *out = &self->base;
    return PLIM_OK;
}
