/* made_source.h - a source that tests make up, and helpers for pipelines over it. */
#ifndef TESTS_MADE_SOURCE_H
#define TESTS_MADE_SOURCE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/numbers/random.h"
#include "pipeline/core/dataset.h"
#include "pipeline/maps/images/map_image.h"
#include "pipeline/maps/map_functions.h"

#define SEED 7
#define MOST 4096
/* Slots, and a thread to fill them where there is more than one. */
#define GRANT(n) ((struct grant){.slots = (n), .workers = (n) > 1, .caches = true})

/* ---- a source of our own: image u8 (2, 3, 1), y u8, i int64 ---- */

struct made_options {
    int64_t count;
    size_t start_bytes;
    int64_t bad; /* this element cannot be read; -1: none */
    bool slow;
};

struct made {
    struct source base;
    struct made_options options;
    void *buffer;
    bool started;
};

static inline uint8_t pixel(int64_t index, int p)
{
    return (uint8_t)(index * 7 + p * 31);
}

static inline plim_status made_start(struct source *source, struct scratch_disk *scratch, plim_error *error)
{
    struct made *made = (struct made *)source;
    (void)scratch;
    assert_false(made->started); /* once, whoever reads */
    made->started = true;
    if (!made->options.start_bytes)
        return PLIM_OK;
    made->buffer = budget_take(source->budget, TAG_FORMATS, made->options.start_bytes);
    return made->buffer ? PLIM_OK : budget_refused(source->budget, TAG_FORMATS, made->options.start_bytes, error);
}

static inline void made_row(int64_t index, void *const *to, const uint64_t *stride, int64_t row)
{
    for (int p = 0; p < 6; p++)
        ((uint8_t *)to[0])[(uint64_t)row * stride[0] + (uint64_t)p] = pixel(index, p);
    ((uint8_t *)to[1])[(uint64_t)row * stride[1]] = (uint8_t)(index % 10);
    memcpy((char *)to[2] + (uint64_t)row * stride[2], &index, sizeof index);
}

static inline plim_status made_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                                    const uint64_t *stride, plim_error *error)
{
    struct made *made = (struct made *)source;
    if (made->options.slow)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (fault_at(FAULT_READ))
        return fail_at(error, PLIM_IO, "made", "cannot be read");
    for (int64_t i = 0; i < count; i++) {
        if (index[i] < 0 || index[i] >= source->count)
            return fail_at(error, PLIM_INTERNAL, "made", "element %lld", (long long)index[i]);
        if (index[i] == made->options.bad)
            return fail_at(error, PLIM_BAD_DATA, "made: byte 12", "element %lld is bad", (long long)index[i]);
        made_row(index[i], to, stride, i);
    }
    __atomic_fetch_add(&source->bytes_read, (uint64_t)count * 15, __ATOMIC_RELAXED);
    return PLIM_OK;
}

static inline void made_close(struct source *source)
{
    struct made *made = (struct made *)source;
    budget_give(source->budget, TAG_FORMATS, made->buffer, made->options.start_bytes);
    budget_give(source->budget, TAG_FORMATS, made, sizeof *made);
}

static const struct source_type made_type = {
    .name = "made", .start = made_start, .read = made_read, .close = made_close};

static inline struct dataset *made_open(struct budget *budget, const struct made_options *options)
{
    struct made *made = budget_take(budget, TAG_FORMATS, sizeof *made);
    plim_error error = {0};
    if (!made) {
        budget_refused(budget, TAG_FORMATS, sizeof *made, &error);
        return dataset_failed(budget, &error);
    }
    made->options = *options;
    made->base = (struct source){
        .type = &made_type,
        .budget = budget,
        .count = options->count,
        .start_bytes = options->start_bytes,
        .spec = {.column_count = 3,
                 .element_bytes = 15,
                 .column = {{"image", TYPE_U8, {3, {2, 3, 1}}, 6, 0},
                            {"y", TYPE_U8, {0, {0}}, 1, 0},
                            {"i", TYPE_I64, {0, {0}}, 8, 0}}},
    };
    return dataset_from_source(&made->base);
}

static inline struct dataset *counting(struct budget *budget, int64_t count)
{
    return made_open(budget, &(struct made_options){.count = count, .bad = -1});
}

/* ---- helpers ---- */

static inline struct budget *open_budget(void)
{
    struct budget *budget;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    return budget;
}

/* All that was taken has been given back: what is left is the ledger itself. */
static inline void close_budget(struct budget *budget)
{
    struct budget_usage usage = budget_usage(budget);
    assert_int_equal(usage.now_by_tag[TAG_BATCHES], 0);
    assert_int_equal(usage.now_by_tag[TAG_PIPELINE], 0);
    assert_int_equal(usage.now_by_tag[TAG_FORMATS], 0);
    assert_int_equal(usage.now_by_tag[TAG_STACKS], 0);
    assert_int_equal(usage.now, usage.now_by_tag[TAG_PLANNER]);
    budget_free(budget);
}

static inline struct iterator *open_iterator(struct dataset *dataset, struct budget *budget, int slots, int64_t epoch,
                                             int64_t step)
{
    struct iterator *iterator = NULL;
    plim_error error = {0};
    if (iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(slots),
                      &(struct batch_place){epoch, step}, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    return iterator;
}

/* The rest of an epoch's indices; returns how many. */
static inline int64_t collect(int64_t *out, struct iterator *iterator)
{
    int64_t count = 0;
    for (;;) {
        struct batch *batch;
        plim_error error = {0};
        if (iterator_next(&batch, iterator, &error) != PLIM_OK)
            fail_msg("%s", error.message);
        if (!batch)
            return count;
        assert_true(count + batch->count <= MOST);
        memcpy(out + count, batch->column[2], (size_t)batch->count * sizeof *out);
        count += batch->count;
    }
}

/* One epoch of a dataset that is given up afterwards. */
static inline int64_t epoch_of(int64_t *out, struct dataset *dataset, struct budget *budget, int64_t epoch)
{
    struct iterator *iterator = open_iterator(dataset, budget, 1, epoch, 0);
    int64_t count = collect(out, iterator);
    iterator_close(iterator);
    dataset_unref(dataset);
    return count;
}

static inline void assert_each(const int64_t *index, int64_t count, int64_t n, int64_t times)
{
    int64_t seen[MOST] = {0};
    for (int64_t i = 0; i < count; i++) {
        assert_in_range(index[i], 0, n - 1);
        seen[index[i]]++;
    }
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(seen[i], times);
}

static inline bool same(const int64_t *a, const int64_t *b, int64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static inline struct dataset *plain(struct budget *budget)
{
    return dataset_batch(dataset_shuffle(counting(budget, 1000), SEED), 32, false);
}

#endif
