/* test_stream_rules.c - what streams and the iterator must keep when elements are bad, batches are opened again, rows
   are dropped, and somebody looks on. */
#include "await.h"
#include "made_source.h"

#include <unistd.h>

#include "pipeline/core/stage.h"

/* ---- numbers from a function of the caller's ---- */

struct counter {
    int64_t at, count, bad;
};

static plim_status counter_next(bool *more, void *context, void *const *row, plim_error *error)
{
    struct counter *counter = context;
    *more = counter->at < counter->count;
    if (!*more)
        return PLIM_OK;
    int64_t id = counter->at++;
    memcpy(row[0], &id, sizeof id);
    return id == counter->bad ? fail_at(error, PLIM_BAD_DATA, "counter", "%lld is bad", (long long)id) : PLIM_OK;
}

static plim_status counter_rewind(void *context, int64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    ((struct counter *)context)->at = 0;
    return PLIM_OK;
}

static struct dataset *counted(struct budget *budget, struct counter *counter)
{
    const struct spec spec = {.column_count = 1, .column = {{.name = "i", .type = TYPE_I64}}};
    const struct generator generator = {.next = counter_next, .rewind = counter_rewind, .context = counter};
    return dataset_from_generator(budget, &spec, &generator);
}

/* Until the end or an error; takes the dataset over. */
static int64_t run(int64_t *out, plim_status *status, struct dataset *dataset, struct budget *budget,
                   struct grant grant, int column)
{
    struct iterator *iterator;
    struct batch *batch;
    int64_t count = 0;
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, grant, NULL, NULL),
                     PLIM_OK);
    while ((*status = iterator_next(&batch, iterator, NULL)) == PLIM_OK && batch) {
        assert_true(count + batch->count <= MOST);
        memcpy(out + count, batch->column[column], (size_t)batch->count * sizeof *out);
        count += batch->count;
    }
    iterator_close(iterator);
    dataset_unref(dataset);
    return count;
}

static const struct ignore_options all = {.limit = IGNORE_ALL};

/* ---- dropped remainders, opened batches ---- */

static void opened_batches_lose_nothing(void **state)
{
    struct budget *budget = open_budget();
    int64_t out[MOST];
    plim_status status;
    (void)state;
    for (int workers = 0; workers < 3; workers++) {
        struct counter counter = {.count = 10, .bad = -1};
        struct dataset *dataset = dataset_unbatch(dataset_batch(counted(budget, &counter), 4, true));
        struct grant grant = {.slots = 2, .workers = workers};
        assert_int_equal(run(out, &status, dataset, budget, grant, 0), 8);
        assert_int_equal(status, PLIM_OK);
        assert_int_equal(out[7], 7);
    }
    plim_error error = {0};
    struct dataset *twice = dataset_batch(dataset_take(plain(budget), 3), 2, false);
    assert_int_equal(dataset_check(twice, &error), PLIM_UNSUPPORTED);
    dataset_unref(twice);
    close_budget(budget);
}

/* ---- bad elements ---- */

static void good_ones_before_a_bad_one(void **state)
{
    struct budget *budget = open_budget();
    int64_t out[MOST];
    plim_status status;
    (void)state;
    for (int workers = 0; workers < 3; workers++) {
        struct grant grant = {.slots = 2, .workers = workers};
        struct counter counter = {.count = 700, .bad = 342};
        assert_int_equal(run(out, &status, counted(budget, &counter), budget, grant, 0), 342);
        assert_int_equal(status, PLIM_BAD_DATA);
        struct made_options made = {.count = 700, .bad = 342};
        assert_int_equal(run(out, &status, made_open(budget, &made), budget, grant, 2), 342);
        assert_int_equal(status, PLIM_BAD_DATA);
        assert_int_equal(out[341], 341);
    }
    close_budget(budget);
}

static void a_bad_one_costs_itself_alone(void **state)
{
    struct budget *budget = open_budget();
    int64_t out[MOST];
    plim_status status;
    (void)state;
    for (int batched = 0; batched < 2; batched++) {
        struct counter counter = {.count = 1000, .bad = 201};
        struct dataset *dataset = dataset_ignore_errors(counted(budget, &counter), &all);
        if (batched)
            dataset = dataset_batch(dataset, 16, false);
        assert_int_equal(run(out, &status, dataset, budget, GRANT(2), 0), 999);
        assert_int_equal(out[201], 202);
    }
    struct counter counter = {.count = 30, .bad = 3};
    struct dataset *dataset = dataset_ignore_errors(dataset_skip(counted(budget, &counter), 5), &all);
    assert_int_equal(run(out, &status, dataset, budget, GRANT(1), 0), 25); /* the bad one is one of the five */
    assert_int_equal(out[0], 5);
    close_budget(budget);
}

static void another_number_is_told_once(void **state)
{
    struct budget *budget = open_budget();
    int64_t out[MOST];
    plim_status status;
    (void)state;
    struct counter counter = {.count = 9, .bad = -1};
    struct dataset *dataset = dataset_ignore_errors(dataset_assert_cardinality(counted(budget, &counter), 10), &all);
    assert_int_equal(run(out, &status, dataset, budget, GRANT(1), 0), 9);
    assert_int_equal(status, PLIM_OK);
    close_budget(budget);
}

static plim_status not_in_epoch_1(bool *keep, const struct chunk *chunk, void *context, plim_error *error)
{
    (void)context, (void)error;
    for (int64_t i = 0; i < chunk->count; i++)
        keep[i] = chunk->epoch[i] != 1;
    return PLIM_OK;
}

static void an_empty_repetition_is_not_the_end(void **state)
{
    struct budget *budget = open_budget();
    int64_t out[MOST];
    plim_status status;
    (void)state;
    struct counter counter = {.count = 4, .bad = -1};
    struct dataset *dataset = dataset_repeat(dataset_filter(counted(budget, &counter), not_in_epoch_1, NULL), 3);
    assert_int_equal(run(out, &status, dataset, budget, GRANT(1), 0), 8);
    close_budget(budget);
}

/* ---- errors do not depend on workers, nor on who looks on ---- */

static plim_status same_spec(struct spec *spec, const void *options, plim_error *error)
{
    (void)spec, (void)options, (void)error;
    return PLIM_OK;
}

static plim_status slow_at_nine(const struct map_call *call, plim_error *error)
{
    for (int64_t i = 0; i < call->count; i++) {
        int64_t *value = (int64_t *)call->to[0] + i;
        if (*value == 9) {
            usleep(20000);
            return fail_at(error, PLIM_BAD_DATA, "map", "nine");
        }
        *value += 1000;
    }
    return PLIM_OK;
}

static const struct map_function map_slow = {.name = "slow", .infer = same_spec, .run = slow_at_nine, .heavy = true};

static void an_error_in_dropped_rows_is_told(void **state)
{
    struct budget *budget = open_budget();
    int64_t out[MOST];
    plim_status status;
    (void)state;
    for (int workers = 0; workers < 4; workers++) {
        struct counter counter = {.count = 10, .bad = -1};
        struct dataset *dataset = dataset_batch(dataset_map(counted(budget, &counter), &map_slow, NULL), 4, true);
        struct grant grant = {.slots = 2, .workers = workers};
        assert_int_equal(run(out, &status, dataset, budget, grant, 0), 8);
        assert_int_equal(status, PLIM_BAD_DATA);
    }
    close_budget(budget);
}

static void nothing(void *context, const struct dataset *node, uint64_t elements, uint64_t ns)
{
    (void)context, (void)node, (void)elements, (void)ns;
}

static void looking_on_swallows_no_error(void **state)
{
    struct budget *budget = open_budget();
    struct iterator *iterator;
    struct batch *batch;
    (void)state;
    struct counter counter = {.count = 40, .bad = -1};
    struct dataset *dataset = dataset_batch(dataset_map(counted(budget, &counter), &map_slow, NULL), 4, false);
    struct grant grant = {.slots = 6, .workers = 1, .timed = true};
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, grant, NULL, NULL),
                     PLIM_OK);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    usleep(10000);
    iterator_times_each(nothing, NULL, iterator);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(((int64_t *)batch->column[0])[3], 1007);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_BAD_DATA);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* A stream's next epoch may be a program that is run: it begins when it is asked for. */
static void no_epoch_begins_unasked(void **state)
{
    struct budget *budget = open_budget();
    struct iterator *iterator;
    struct batch *batch;
    (void)state;
    struct counter counter = {.count = 8, .bad = -1};
    struct dataset *dataset = dataset_batch(counted(budget, &counter), 4, false);
    struct grant grant = {.slots = 4, .workers = 2};
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, grant, NULL, NULL),
                     PLIM_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_null(batch);
    assert_true(await(others_sleep, NULL));
    assert_int_equal(counter.at, 8);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_batches_lose_nothing),        cmocka_unit_test(good_ones_before_a_bad_one),
        cmocka_unit_test(a_bad_one_costs_itself_alone),       cmocka_unit_test(another_number_is_told_once),
        cmocka_unit_test(an_empty_repetition_is_not_the_end), cmocka_unit_test(an_error_in_dropped_rows_is_told),
        cmocka_unit_test(looking_on_swallows_no_error),       cmocka_unit_test(no_epoch_begins_unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
