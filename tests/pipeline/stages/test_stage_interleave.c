/* test_stage_interleave.c - a data set for each element: flat_map, and interleave in the order that tf.data printed. */
#include "stream_text.h"

#include "base/numbers/count.h"
#include "formats/files/interleave_order.h"

struct turn_case {
    int files, cycle, block;
    int length[8];
    const char *order; /* file * 100 + element, as tf.data gives it, with and without num_parallel_calls */
    int64_t count;
};

static const struct turn_case cases[] = {
    {5,
     2,
     4,
     {6, 6, 6, 6, 6},
     "[0, 1, 2, 3, 100, 101, 102, 103, 4, 5, 104, 105, 200, 201, 202, 203, 300, 301, 302, 303, 204, 205, 304, 305, "
     "400, 401, 402, 403, 404, 405]",
     30},
    {5, 2, 1, {1, 3, 0, 4, 2}, "[0, 100, 101, 102, 300, 301, 400, 302, 401, 303]", 10},
    {6, 3, 2, {5, 1, 0, 0, 7, 2}, "[0, 1, 100, 2, 3, 400, 401, 4, 500, 501, 402, 403, 404, 405, 406]", 15},
    {4, 8, 3, {2, 9, 1, 4}, "[0, 1, 100, 101, 102, 200, 300, 301, 302, 103, 104, 105, 303, 106, 107, 108]", 16},
    {3, 1, 2, {3, 0, 2}, "[0, 1, 2, 200, 201]", 5},
    {6, 2, 2, {0, 0, 4, 1, 3, 2}, "[200, 201, 300, 202, 203, 400, 401, 402, 500, 501]", 10},
};
static const struct turn_case *now;

/* ---- the order alone ---- */

static void order_is_tf_datas(void **state)
{
    static struct paper paper;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct turn_case *turn = &cases[i];
        struct interleave_order order;
        int64_t open[8], at[8] = {0}, file[8] = {0}, opens, place;
        bool any = false;
        paper = (struct paper){0};
        print(&paper, "[");
        interleave_begin(&order, turn->files, turn->cycle, turn->block, open);
        while ((place = interleave_turn(&opens, &order)) >= 0) {
            if (opens >= 0) {
                file[place] = opens;
                at[place] = 0;
            }
            if (at[place] == turn->length[file[place]]) {
                interleave_ended(&order);
                continue;
            }
            print(&paper, "%s%d", any ? ", " : "", (int)(file[place] * 100 + at[place]++));
            any = true;
            interleave_gave(&order, 1);
        }
        print(&paper, "]");
        assert_string_equal(paper.text, turn->order);
    }
}

/* ---- the stage ---- */

static struct dataset *make_numbers(const struct chunk *elements, int64_t row, void *context, struct budget *budget)
{
    int64_t i;
    (void)context;
    memcpy(&i, chunk_row(elements, 0, row), sizeof i);
    if (!now->length[i])
        return dataset_take(numbers(budget, 0, 1), 0);
    return i % 2 ? streamed(numbers(budget, i * 100, now->length[i])) : numbers(budget, i * 100, now->length[i]);
}

static struct interleave_options options_now(void)
{
    return (struct interleave_options){
        .make = make_numbers,
        .spec = {.column_count = 1, .column = {{"x", TYPE_I64, {0, {0}}, 8, 0}}},
        .reserve_bytes = 192 * 1024,
        .cycle_length = now->cycle,
        .block_length = now->block,
        .parallel = 2,
    };
}

static struct dataset *interleaved(struct budget *budget)
{
    const struct interleave_options options = options_now();
    return dataset_interleave(numbers(budget, 0, now->files), &options);
}

static struct dataset *flat(struct budget *budget)
{
    const struct interleave_options options = options_now();
    return dataset_flat_map(numbers(budget, 0, now->files), &options);
}

static void interleaves(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        now = &cases[i];
        expect_elements(interleaved, now->order, now->count);
    }
    now = &cases[2];
    expect_elements(flat, "[0, 1, 2, 3, 4, 100, 400, 401, 402, 403, 404, 405, 406, 500, 501]", 15);
}

/* Files of ragged rows: values pass through. */
static struct dataset *make_ragged(const struct chunk *elements, int64_t row, void *context, struct budget *budget)
{
    static const int length[] = {2, 0, 1};
    (void)elements, (void)row, (void)context;
    return ragged(budget, length, 3, true);
}

static struct dataset *flat_ragged(struct budget *budget)
{
    struct interleave_options options = options_now();
    options.make = make_ragged;
    options.value_bytes = 512;
    options.spec = (struct spec){.column_count = 2,
                                 .column = {{"x", TYPE_I32, {1, {-1}}, 0, 0}, {"s", TYPE_STRING, {0, {0}}, 0, 0}}};
    return dataset_flat_map(numbers(budget, 0, 2), &options);
}

static void values_pass_through(void **state)
{
    (void)state;
    now = &cases[0];
    expect_elements(flat_ragged,
                    "[([1, 2], 's00'), ([], 's01'), ([21], 's02'), ([1, 2], 's00'), ([], 's01'), ([21], 's02')]", 6);
}

static struct dataset *make_failed(const struct chunk *elements, int64_t row, void *context, struct budget *budget)
{
    int64_t i;
    memcpy(&i, chunk_row(elements, 0, row), sizeof i);
    if (i == 1)
        return dataset_failed(budget, &(plim_error){.code = PLIM_BAD_DATA, .message = "no such file"});
    return make_numbers(elements, row, context, budget);
}

static void errors_are_placed(void **state)
{
    struct budget *budget = open_budget();
    struct runner runner;
    plim_error error = {0};
    static struct paper paper;
    (void)state;
    now = &cases[2];
    struct interleave_options options = options_now();
    options.make = make_failed;
    struct dataset *dataset = dataset_flat_map(numbers(budget, 0, 6), &options);
    run_open(&runner, dataset, budget, 8);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 8, &error), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 8, &error), PLIM_BAD_DATA);
    assert_string_equal(error.where, "flat_map: element 1");
    assert_string_equal(error.message, "no such file");
    run_rest(&paper, &runner);
    assert_string_equal(paper.text, "[400, 401, 402, 403, 404, 405, 406, 500, 501]");
    run_close(&runner);
    dataset_unref(dataset);

    options = options_now();
    options.reserve_bytes = budget_usage(budget).now / 4 + 4096;
    dataset = dataset_interleave(numbers(budget, 0, 6), &options);
    struct budget *tried;
    if (budget_make(&tried, options.reserve_bytes, NULL) == PLIM_OK) {
        budget_free(tried);
        run_open(&runner, dataset, budget, 8);
        assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
        memset(&error, 0, sizeof error);
        assert_int_equal(stream_pull(runner.stream, &runner.chunk, 8, &error), PLIM_OVER_BUDGET);
        assert_non_null(strstr(error.message, "needs more than the"));
        run_close(&runner);
    }
    dataset_unref(dataset);
    options = options_now();
    options.reserve_bytes = 0;
    expect_refused(dataset_interleave(numbers(budget, 0, 6), &options), PLIM_BAD_JOB, "must be stated");
    options = options_now();
    options.spec.column[0].type = TYPE_F32;
    dataset = dataset_interleave(numbers(budget, 0, 6), &options);
    run_open(&runner, dataset, budget, 8);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 8, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "other columns"));
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
}

static void faults(void **state)
{
    (void)state;
    now = &cases[1];
    expect_faults(interleaved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_tf_datas), cmocka_unit_test(interleaves), cmocka_unit_test(values_pass_through),
        cmocka_unit_test(errors_are_placed), cmocka_unit_test(faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
