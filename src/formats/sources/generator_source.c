/* generator_source.c - elements that a function of the caller's makes, one after another. */
#include "base/numbers/floats.h"
#include "formats/tables/rows.h"

#define DEFAULT_ROOM ((uint64_t)256 * 1024)

struct generator_source {
    struct source base;
    struct generator generator;
    bool in_use; /* there is one function, with one state: one reader at a time */
};

struct generator_reader {
    struct generator_source *source;
    bool over; /* this epoch */
    struct held_error held;
};

static plim_status generator_reader_open(struct reader **out, struct source *source, struct budget *budget,
                                         plim_error *error)
{
    struct generator_source *self = (struct generator_source *)source;
    if (__atomic_exchange_n(&self->in_use, true, __ATOMIC_ACQ_REL))
        return fail(error, PLIM_UNSUPPORTED, "generator: one iterator at a time can run it");
    struct generator_reader *reader = budget_take(budget, TAG_FORMATS, sizeof *reader);
    if (!reader) {
        __atomic_store_n(&self->in_use, false, __ATOMIC_RELEASE);
        return budget_refused(budget, TAG_FORMATS, sizeof *reader, error);
    }
    reader->source = self;
    *out = (struct reader *)reader;
    return PLIM_OK;
}

static void generator_reader_close(struct reader *reader)
{
    struct generator_reader *self = (struct generator_reader *)reader;
    struct generator_source *source = self->source;
    budget_give(source->base.budget, TAG_FORMATS, self, sizeof *self);
    __atomic_store_n(&source->in_use, false, __ATOMIC_RELEASE);
}

/* A caller's function may fail without a word. */
static plim_status checked(plim_status status, const char *what, plim_error *error)
{
    if (status == PLIM_OK || (error && error->code == status && error->message[0]))
        return status;
    return fail(error, status, "generator: %s failed (%s)", what, plim_status_name(status));
}

static plim_status generator_rewind(struct reader *reader, uint64_t epoch, plim_error *error)
{
    struct generator_reader *self = (struct generator_reader *)reader;
    const struct generator *generator = &self->source->generator;
    self->over = false;
    self->held.status = PLIM_OK;
    if (!generator->rewind)
        return epoch == 0 ? PLIM_OK : fail(error, PLIM_UNSUPPORTED, "generator: it has no rewind: one epoch only");
    unsigned mode = floats_enter();
    plim_status status = generator->rewind(generator->context, (int64_t)epoch, error);
    floats_restore(mode); /* whatever the function has set */
    return checked(status, "rewind", error);
}

/* One element; *more false: the epoch is over. */
static plim_status call_next(bool *more, struct generator_source *source, int64_t i, const struct row_target *target,
                             plim_error *error)
{
    const struct generator *generator = &source->generator;
    void *row[MOST_COLUMNS];
    for (int c = 0; c < source->base.spec.column_count; c++)
        row[c] = (uint8_t *)target->to[c] + (uint64_t)i * target->stride[c];
    *more = true;
    unsigned mode = floats_enter();
    plim_status status = generator->next(more, generator->context, row, error);
    floats_restore(mode); /* whatever the function has set */
    return checked(status, "next", error);
}

/* Values live until the function is called again: one element at a time then. */
static plim_status generator_next(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                                  plim_error *error)
{
    struct generator_reader *self = (struct generator_reader *)reader;
    struct generator_source *source = self->source;
    int64_t count = spec_has_values(&source->base.spec) && most > 1 ? 1 : most;
    *got = 0;
    TRY(held_error_report(&self->held, error));
    for (bool more; *got < count && !self->over; *got += more) {
        self->held.status = call_next(&more, source, *got, target, &self->held.error);
        if (self->held.status != PLIM_OK && !*got)
            return held_error_report(&self->held, error);
        if (self->held.status != PLIM_OK) /* reported by the next call, after the elements before it */
            break;
        self->over = !more;
    }
    source_count_read(&source->base, (uint64_t)*got * source->base.spec.element_bytes);
    return PLIM_OK;
}

static const struct source_type generator_type = {
    .name = "generator",
    .reader_open = generator_reader_open,
    .reader_close = generator_reader_close,
    .reader_rewind = generator_rewind,
    .reader_next = generator_next,
};

plim_status generator_open(struct source **out, struct budget *budget, const struct spec *spec,
                           const struct generator *generator, plim_error *error)
{
    if (spec->column_count < 1)
        return fail(error, PLIM_BAD_JOB, "generator: no columns");
    struct generator_source *self;
    TRY(source_make(&self, sizeof *self, &generator_type, budget, error));
    self->base.count = generator->count ? generator->count : CARDINALITY_UNKNOWN;
    self->base.value_bytes = generator->value_bytes ? generator->value_bytes : DEFAULT_ROOM;
    self->base.reader_bytes = budget_charge(sizeof(struct generator_reader));
    self->generator = *generator;
    plim_status status = PLIM_OK;
    for (int c = 0; c < spec->column_count && status == PLIM_OK; c++) {
        const struct column *column = &spec->column[c];
        status = spec_add(&self->base.spec, column->name[0] ? column->name : NULL, column->type, &column->shape, error);
    }
    return source_opened(out, &self->base, status);
}
