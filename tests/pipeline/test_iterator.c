/* test_iterator.c - the iterator: seeking, costs, errors in their place, closing, faults. */
#include "await.h"
#include "made_source.h"
#include "pipeline/core/iterator_own.h"
#include "pipeline/core/stage.h"

/* ---- position is state ---- */

#define SEEK_EPOCHS 3

static struct dataset *seekable(struct budget *budget)
{
    return dataset_batch(dataset_repeat(dataset_shuffle(counting(budget, 101), SEED), 2), 13, false);
}

static void check_rest(struct iterator *iterator, const int64_t *all, int64_t epoch, int64_t step, int64_t batches)
{
    for (int64_t i = 0; i < batches && epoch < SEEK_EPOCHS; i++) {
        struct batch *batch;
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        if (step == 16) { /* 202 elements in batches of 13 */
            assert_null(batch);
            epoch++;
            step = 0;
            continue;
        }
        assert_non_null(batch);
        assert_int_equal(batch->epoch, epoch);
        assert_int_equal(batch->step, step);
        assert_int_equal(batch->count, step == 15 ? 7 : 13);
        assert_true(same(batch->column[2], all + epoch * 202 + step * 13, batch->count));
        step++;
    }
}

static void resumes_the_same_anywhere(void **state)
{
    struct budget *budget = open_budget();
    int64_t all[SEEK_EPOCHS * 202];
    uint32_t random[4];
    (void)state;
    struct dataset *dataset = seekable(budget);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    for (int e = 0; e < SEEK_EPOCHS; e++)
        assert_int_equal(collect(all + e * 202, iterator), 202);
    iterator_close(iterator);
    for (int slots = 1; slots <= 6; slots++) {
        iterator = open_iterator(dataset, budget, slots, 1, 5);
        check_rest(iterator, all, 1, 5, 20);
        uint64_t takes = budget_usage(budget).takes;
        for (uint64_t i = 0; i < 150; i++) {
            random_block(random, SEED, (uint64_t)slots, i);
            int64_t epoch = random[0] % SEEK_EPOCHS, step = random[1] % 17;
            assert_int_equal(iterator_seek(iterator, epoch, step, NULL), PLIM_OK);
            check_rest(iterator, all, epoch, step, random[2] % 12);
        }
        assert_int_equal(budget_usage(budget).takes, takes);
        assert_int_equal(iterator_seek(iterator, 0, 18, NULL), PLIM_BAD_DATA);
        assert_int_equal(iterator_seek(iterator, -1, 0, NULL), PLIM_BAD_DATA);
        iterator_close(iterator);
    }
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(2),
                                   &(struct batch_place){0, 18}, NULL),
                     PLIM_BAD_DATA);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- the end of an epoch ---- */

/* Opened where an epoch ends: the caller is told so, then comes the next one; data with an index and streams alike. */
static void opens_at_the_end_of_an_epoch(void **state)
{
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        struct budget *budget = open_budget();
        struct iterator *iterator;
        struct batch *batch;
        struct dataset *dataset = counting(budget, 12);
        if (stream)
            dataset =
                dataset_shuffle_with(dataset, &(struct shuffle_options){.kind = SHUFFLE_BUFFER, .buffer_size = 5});
        dataset = dataset_batch(dataset, 4, false);
        assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(1),
                                       &(struct batch_place){0, 3}, NULL),
                         PLIM_OK);
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        assert_null(batch);
        for (int64_t epoch = 1; epoch < 3; epoch++) {
            for (int64_t step = 0; step < 3; step++) {
                assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
                assert_non_null(batch);
                assert_int_equal(batch->epoch, epoch);
                assert_int_equal(batch->step, step);
            }
            assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
            assert_null(batch);
        }
        iterator_close(iterator);
        dataset_unref(dataset);
        close_budget(budget);
    }
}

/* ---- tuning ---- */

/* Down to one beside the caller while all is ready, up to all while batches are waited for, and no swinging between. */
static void threads_follow_need(void **state)
{
    (void)state;
    int now = 8;
    for (int i = 0; i < 20; i++)
        now = threads_wanted(now, 8, 64, 64);
    assert_int_equal(now, 2);
    assert_int_equal(threads_wanted(now, 8, 60, 64), 2);
    for (int i = 0; i < 20; i++)
        now = threads_wanted(now, 8, 10, 64);
    assert_int_equal(now, 8);
    assert_int_equal(threads_wanted(8, 8, 63, 64), 8);
}

/* ---- costs ---- */

static void check_cost(struct dataset *(*make)(struct budget *budget), int slots)
{
    struct budget *budget = open_budget();
    uint64_t cost[TAG_COUNT] = {0}, scratch = 0;
    struct batch *batch;
    struct dataset *dataset = make(budget);
    dataset_cost(cost, &scratch, dataset, GRANT(slots));
    assert_int_equal(scratch, 0);
    struct budget_usage before = budget_usage(budget);
    struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
    struct budget_usage after = budget_usage(budget);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        assert_int_equal(after.now_by_tag[tag] - before.now_by_tag[tag], cost[tag]);
    for (int i = 0; i < 40; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(iterator_seek(iterator, 1, 1, NULL), PLIM_OK);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(budget_usage(budget).takes, after.takes);
    assert_int_equal(budget_usage(budget).peak, after.now);
    cost[TAG_FORMATS] = 0;
    dataset_cost(cost, &scratch, dataset, GRANT(slots));
    assert_int_equal(cost[TAG_FORMATS], 0); /* started: a second iterator does not pay for it again */
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static struct dataset *with_start(struct budget *budget)
{
    return dataset_batch(made_open(budget, &(struct made_options){.count = 1000, .bad = -1, .start_bytes = 4096}), 32,
                         false);
}

/* Batches of 300: 300 * 10 * 4 bytes of y alone, several slots are mapped. */
static struct dataset *mapped(struct budget *budget)
{
    struct dataset *dataset = dataset_map(plain(budget), &map_cast, &(struct cast_options){.type = TYPE_F32});
    dataset = dataset_map(dataset, &map_rescale, &(struct rescale_options){.scale = 1.0 / 255});
    dataset = dataset_map(dataset, &map_one_hot, &(struct one_hot_options){.column = "y", .classes = 1000});
    return dataset_prefetch(dataset, PREFETCH_AUTO);
}

static void cost_is_what_opening_takes(void **state)
{
    (void)state;
    for (int slots = 1; slots <= 4; slots++) {
        check_cost(plain, slots);
        check_cost(with_start, slots);
        check_cost(mapped, slots);
    }
}

/* ---- errors ---- */

static void error_in_its_place(int slots)
{
    struct budget *budget = open_budget();
    plim_error error = {0};
    struct batch *batch;
    struct made_options options = {.count = 100, .bad = 47};
    struct dataset *dataset = dataset_batch(made_open(budget, &options), 10, false);
    struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
        assert_int_equal(batch->step, i);
    }
    for (int i = 0; i < 3; i++) {
        memset(&error, 0, sizeof error);
        assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA);
        assert_string_equal(error.where, "made: byte 12");
        assert_non_null(strstr(error.message, "element 47"));
    }
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_BAD_DATA);
    assert_int_equal(iterator_seek(iterator, 0, 5, &error), PLIM_OK);
    for (int i = 5; i < 10; i++) {
        assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
        assert_int_equal(batch->step, i);
    }
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
    assert_null(batch);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static void errors_arrive_at_their_batch(void **state)
{
    (void)state;
    for (int slots = 1; slots <= 8; slots++)
        error_in_its_place(slots);
}

static void over_the_budget(void **state)
{
    struct budget *budget = open_budget();
    plim_error error = {0};
    struct iterator *iterator;
    uint64_t cost[TAG_COUNT] = {0}, all = 0;
    (void)state;
    struct dataset *dataset = mapped(budget);
    dataset_cost(cost, NULL, dataset, GRANT(3));
    for (int tag = 0; tag < TAG_COUNT; tag++)
        all += cost[tag];
    uint64_t now = budget_usage(budget).now;
    assert_int_equal(budget_limit(budget, now + all - 1, NULL), PLIM_OK);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, 0}, GRANT(3), NULL, &error),
                     PLIM_OVER_BUDGET);
    assert_int_equal(budget_usage(budget).now, now);
    assert_int_equal(budget_limit(budget, now + all, NULL), PLIM_OK);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, 0}, GRANT(3), NULL, &error),
                     PLIM_OK);
    struct dataset *more = dataset_take(dataset_ref(dataset), 3);
    assert_int_equal(dataset_check(more, &error), PLIM_OVER_BUDGET);
    dataset_unref(more);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- closing, figures, sharing ---- */

/* Context: an iterator. Its threads found nothing more to do: the ring is full, or they met an error. */
static bool workers_sleep(const void *context)
{
    struct iterator *iterator = (struct iterator *)context;
    lock(iterator);
    bool all = iterator->sleeping == iterator->worker_count - 1;
    unlock(iterator);
    return all;
}

static void closes_in_any_state(void **state)
{
    struct batch *batch;
    (void)state;
    for (int slots = 1; slots <= 4; slots++)
        for (int taken = 0; taken < 6; taken++) {
            struct budget *budget = open_budget();
            struct made_options options = {.count = 40, .bad = taken % 2 ? 21 : -1, .slow = taken > 3};
            struct dataset *dataset = dataset_batch(made_open(budget, &options), 5, false);
            struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
            dataset_unref(dataset); /* the iterator holds its own */
            for (int i = 0; i < taken; i++)
                iterator_next(&batch, iterator, NULL);
            if (taken == 2)
                assert_true(await(workers_sleep, iterator));
            if (taken == 3)
                iterator_seek(iterator, 4, 2, NULL);
            iterator_close(iterator);
            close_budget(budget);
        }
    iterator_close(NULL);
}

static void figures_are_counted(void **state)
{
    struct budget *budget = open_budget();
    struct iterator_figures figures;
    struct batch *batch;
    (void)state;
    struct dataset *dataset =
        dataset_batch(made_open(budget, &(struct made_options){.count = 50, .bad = -1, .slow = true}), 10, false);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    iterator_figures(&figures, iterator);
    assert_int_equal(figures.batches, 5);
    assert_int_equal(figures.elements, 50);
    assert_int_equal(figures.bytes_read, 50 * 15);
    assert_int_equal(figures.ready, 0);
    assert_true(figures.wait_ns >= 5 * 2000000);
    iterator_close(iterator);
    /* read ahead while the caller is busy: no waiting */
    iterator = open_iterator(dataset, budget, 6, 0, 0);
    assert_true(await(workers_sleep, iterator));
    for (int i = 0; i < 5; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    iterator_figures(&figures, iterator);
    assert_int_equal(figures.ready, 5);
    assert_int_equal(figures.wait_ns, 0);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static void two_iterators_share_a_source(void **state)
{
    struct budget *budget = open_budget();
    int64_t a[MOST], b[MOST];
    (void)state;
    struct dataset *start = with_start(budget);
    struct dataset *branch = dataset_map(dataset_ref(start), &map_cast, &(struct cast_options){.type = TYPE_F32});
    struct iterator *one = open_iterator(start, budget, 3, 0, 0), *two = open_iterator(branch, budget, 2, 0, 0);
    dataset_unref(start);
    dataset_unref(branch);
    assert_int_equal(collect(a, one), 1000);
    assert_int_equal(collect(b, two), 1000);
    assert_true(same(a, b, 1000));
    iterator_close(one);
    iterator_close(two);
    close_budget(budget);
}

/* ---- faults ---- */

/* Open, one epoch, close. Whatever fails, nothing stays behind. */
static plim_status whole_run(struct budget *budget, int slots)
{
    struct made_options options = {.count = 100, .bad = -1, .start_bytes = 128};
    struct iterator *iterator;
    struct batch *batch = NULL;
    struct dataset *dataset = dataset_shuffle(made_open(budget, &options), SEED);
    dataset = dataset_map(dataset, &map_cast, &(struct cast_options){.type = TYPE_F32});
    dataset = dataset_prefetch(dataset_batch(dataset, 16, false), 2);
    plim_error error = {0};
    plim_status status =
        iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(slots), NULL, &error);
    if (status == PLIM_OK) {
        do
            status = iterator_next(&batch, iterator, &error);
        while (status == PLIM_OK && batch);
        iterator_close(iterator);
    }
    dataset_unref(dataset);
    assert_int_equal(status, error.code);
    assert_true(status == PLIM_OK || error.message[0]);
    return status;
}

static void sweep(unsigned sites, plim_status expected, int slots, bool forever)
{
    bool reached = true;
    int64_t n = 1;
    for (; reached; n++) {
        struct budget *budget = open_budget();
        fault_arm(sites, n, forever, ENOMEM);
        plim_status status = whole_run(budget, slots);
        reached = fault_disarm();
        /* A read of the next epoch may be hit after the last batch of this one was given. */
        if (!reached || (sites == FAULT_READ && status == PLIM_OK && n > 7))
            assert_int_equal(status, PLIM_OK);
        else
            assert_int_equal(status, expected);
        close_budget(budget);
        assert_true(n < 200);
        if (sites == FAULT_READ && n > 12)
            break;
    }
    assert_true(sites == FAULT_THREAD ? n == (slots > 1 ? 3 : 2) : n > 7);
}

static void faults_are_errors(void **state)
{
    (void)state;
    for (int slots = 1; slots <= 3; slots++)
        for (int forever = 0; forever < 2; forever++) {
            sweep(FAULT_ALLOCATE, PLIM_NO_MEMORY, slots, forever);
            sweep(FAULT_READ, PLIM_IO, slots, forever);
            sweep(FAULT_THREAD, PLIM_NO_MEMORY, slots, forever);
        }
}

/* ---- rows that must be waited for ---- */

#define ASKED_ROWS 1000

/* What the source was told of, and what it was not told of before it had to give it. */
static struct {
    bool waits, told[ASKED_ROWS];
    int64_t untold, beside;
} asked;

static void asked_expect(struct source *source, int64_t first, int64_t count)
{
    asked.beside += first < 0 || count < 1 || first + count > source->count;
    for (int64_t i = first; i < first + count && i < ASKED_ROWS; i++)
        asked.told[i] = true;
}

static bool asked_waits(const struct source *source)
{
    (void)source;
    return asked.waits;
}

static plim_status asked_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                              const uint64_t *stride, plim_error *error)
{
    for (int64_t i = 0; i < count; i++)
        asked.untold += !asked.told[index[i]];
    return made_read(source, index, count, to, stride, error);
}

/* Rows in an order that no disk could guess: the next ones are asked for while those before them are read. */
static void rows_are_asked_for_ahead(void **state)
{
    static const struct source_type asked_type = {.name = "made",
                                                  .start = made_start,
                                                  .read = asked_read,
                                                  .expect = asked_expect,
                                                  .waits = asked_waits,
                                                  .close = made_close};
    int64_t index[2][ASKED_ROWS];
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct budget *budget = open_budget();
        struct dataset *source = counting(budget, ASKED_ROWS);
        memset(&asked, 0, sizeof asked);
        asked.waits = waits;
        source->source->type = &asked_type;
        struct dataset *dataset = dataset_batch(dataset_shuffle(source, SEED), 32, false);
        assert_int_equal(epoch_of(index[waits], dataset, budget, 0), ASKED_ROWS);
        assert_int_equal(asked.beside, 0);
        /* All but those of the first call, a batch. */
        assert_int_equal(asked.untold, waits ? 32 : ASKED_ROWS);
        close_budget(budget);
    }
    assert_true(same(index[0], index[1], ASKED_ROWS)); /* advice changes nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumes_the_same_anywhere),    cmocka_unit_test(opens_at_the_end_of_an_epoch),
        cmocka_unit_test(threads_follow_need),          cmocka_unit_test(cost_is_what_opening_takes),
        cmocka_unit_test(errors_arrive_at_their_batch), cmocka_unit_test(over_the_budget),
        cmocka_unit_test(closes_in_any_state),          cmocka_unit_test(figures_are_counted),
        cmocka_unit_test(two_iterators_share_a_source), cmocka_unit_test(faults_are_errors),
        cmocka_unit_test(rows_are_asked_for_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
