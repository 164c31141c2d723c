/* test_stage_join.c - zip, concatenate, choose_from_datasets, sample_from_datasets: against lists that tf.data
   printed, and by index where all inputs have one. */
#include "stream_text.h"

static const int lengths[] = {1, 3, 0, 2, 4};

/* ---- zip ---- */

static struct dataset *zip_of(struct dataset *a, struct dataset *b)
{
    return dataset_zip((struct dataset *[]){a, b}, 2);
}

static struct dataset *zip_indexed(struct budget *budget)
{
    return zip_of(numbers(budget, 0, 3), numbers(budget, 0, 5));
}

static struct dataset *zip_streams(struct budget *budget)
{
    return zip_of(streamed(numbers(budget, 0, 3)), numbers(budget, 0, 5));
}

static struct dataset *zip_ragged_by_index(struct budget *budget)
{
    return zip_of(ragged(budget, lengths, 5, false), numbers(budget, 7, 9));
}

static struct dataset *zip_ragged_streams(struct budget *budget)
{
    return zip_of(ragged(budget, lengths, 5, true), streamed(numbers(budget, 7, 9)));
}

static struct dataset *zip_two_ragged(struct budget *budget)
{
    return zip_of(dataset_skip(ragged(budget, lengths, 5, true), 1), ragged(budget, lengths, 3, true));
}

static struct dataset *zip_batches(struct budget *budget)
{
    return zip_of(dataset_batch(numbers(budget, 0, 6), 2, false), dataset_batch(numbers(budget, 10, 4), 2, false));
}

static void zips(void **state)
{
    static const char *const with_ragged = "[([1], 's00', 7), ([11, 12, 13], 's01', 8), ([], 's02', 9), "
                                           "([31, 32], 's03', 10), ([41, 42, 43, 44], 's04', 11)]";
    (void)state;
    expect_elements(zip_indexed, "[(0, 0), (1, 1), (2, 2)]", 3);
    expect_elements(zip_streams, "[(0, 0), (1, 1), (2, 2)]", 3);
    expect_elements(zip_ragged_by_index, with_ragged, 5);
    expect_elements(zip_ragged_streams, with_ragged, 5);
    expect_elements(
        zip_two_ragged,
        "[([11, 12, 13], 's01', [1], 's00'), ([], 's02', [11, 12, 13], 's01'), ([31, 32], 's03', [], 's02')]", 3);
    expect_elements(zip_batches, "[([0, 1], [10, 11]), ([2, 3], [12, 13])]", 2);
}

static void zip_names_its_columns(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset = zip_of(numbers(budget, 0, 3), zip_of(numbers(budget, 0, 4), numbers(budget, 0, 5)));
    const struct spec *spec = dataset_spec(dataset);
    assert_int_equal(spec->column_count, 3);
    assert_string_equal(spec->column[0].name, "x");
    assert_string_equal(spec->column[1].name, "y");
    assert_string_equal(spec->column[2].name, "c2");
    dataset_unref(dataset);
    dataset = zip_of(counting(budget, 3), zip_of(numbers(budget, 0, 4), counting(budget, 2)));
    spec = dataset_spec(dataset);
    assert_string_equal(spec->column[3].name, "x");
    assert_string_equal(spec->column[4].name, "c4"); /* image */
    assert_string_equal(spec->column[5].name, "c5"); /* y */
    assert_string_equal(spec->column[6].name, "c6"); /* i */
    dataset_unref(dataset);
    close_budget(budget);
}

/* An exact shuffle behind zip or concatenate goes over everything. */
static void index_prefix_stays(void **state)
{
    struct budget *budget = open_budget();
    int64_t seen[20] = {0};
    static struct paper paper;
    struct runner runner;
    (void)state;
    struct dataset *dataset =
        dataset_concatenate((struct dataset *[]){numbers(budget, 0, 5), dataset_skip(numbers(budget, 0, 12), 5),
                                                 dataset_take(dataset_repeat(numbers(budget, 12, 4), 2), 6)},
                            3);
    assert_true(dataset->indexed);
    assert_int_equal(dataset_cardinality(dataset), 18);
    dataset = dataset_shuffle(dataset, SEED);
    run_open(&runner, dataset, budget, 5);
    run_epoch(&paper, &runner, 3, 0);
    run_close(&runner);
    int sorted = 0, last = -1;
    for (const char *at = paper.text; *at; at++)
        if (*at == '[' || *at == ' ') {
            int value = 0;
            assert_int_equal(sscanf(at + 1, "%d", &value), 1);
            seen[value]++;
            sorted += value > last;
            last = value;
        }
    for (int i = 0; i < 16; i++)
        assert_int_equal(seen[i], i == 12 || i == 13 ? 2 : 1);
    assert_true(sorted < 16);
    dataset_unref(dataset);
    /* a child that is shuffled anew each epoch is not placed once and for all */
    dataset = zip_of(dataset_shuffle(numbers(budget, 0, 3), SEED), numbers(budget, 0, 3));
    assert_false(dataset->indexed);
    dataset_unref(dataset);
    close_budget(budget);
}

/* The room of 1 KiB holds a few elements at a time: runs are cut, never lost. */
static void values_that_fill_the_room(void **state)
{
    static int many[60];
    struct budget *budget = open_budget();
    static struct paper paper;
    struct runner runner;
    (void)state;
    for (int i = 0; i < 60; i++)
        many[i] = 1 + i % 5;
    struct dataset *dataset = zip_of(ragged(budget, many, 60, false), ragged(budget, many, 60, false));
    assert_true(dataset->indexed);
    run_open(&runner, dataset, budget, 64);
    run_epoch(&paper, &runner, 0, 0);
    run_close(&runner);
    assert_non_null(strstr(paper.text, "([591, 592, 593, 594, 595], 's59', [591, 592, 593, 594, 595], 's59')]"));
    dataset_unref(dataset);
    close_budget(budget);
}

/* Behind a bad element both sides go on together. */
static void zip_stays_aligned(void **state)
{
    struct budget *budget = open_budget();
    struct runner runner;
    static struct paper paper;
    plim_error error = {0};
    (void)state;
    struct dataset *dataset = zip_of(ragged_with(budget, lengths, 5, true, 1), streamed(numbers(budget, 0, 9)));
    run_open(&runner, dataset, budget, 8);
    stream_be_careful(runner.stream);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 8, &error), PLIM_OK);
    assert_int_equal(runner.chunk.count, 1);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 8, &error), PLIM_BAD_DATA);
    run_rest(&paper, &runner);
    assert_string_equal(paper.text, "[([], 's02', 2), ([31, 32], 's03', 3), ([41, 42, 43, 44], 's04', 4)]");
    run_close(&runner);
    dataset_unref(dataset);
    dataset = zip_of(dataset_batch(numbers(budget, 0, 5), 2, false), dataset_batch(numbers(budget, 0, 7), 2, false));
    run_open(&runner, dataset, budget, 1);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "batches of 1 and of 2"));
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
}

/* Where one has ended the others are not asked for more: not for what is bad further on, nor for none at all of data
   without end. */
static void zip_ends_with_the_first_that_ends(void **state)
{
    static const char *const expected = "[([1], 's00', [1], 's00'), ([11, 12, 13], 's01', [11, 12, 13], 's01'), "
                                        "([], 's02', [], 's02')]";
    struct budget *budget = open_budget();
    struct runner runner;
    static struct paper paper;
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct dataset *other =
            kind % 2 ? dataset_repeat(ragged(budget, lengths, 4, true), -1) : ragged_with(budget, lengths, 5, true, 3);
        struct dataset *dataset = zip_of(ragged(budget, lengths, 3, true), other);
        run_open(&runner, dataset, budget, kind < 2 ? 1 : 8);
        run_epoch(&paper, &runner, 0, 0);
        assert_string_equal(paper.text, expected);
        run_close(&runner);
        dataset_unref(dataset);
    }
    close_budget(budget);
}

/* ---- concatenate ---- */

static struct dataset *concatenated(struct budget *budget)
{
    return dataset_concatenate((struct dataset *[]){numbers(budget, 0, 3), numbers(budget, 10, 2)}, 2);
}

static struct dataset *concatenated_streams(struct budget *budget)
{
    struct dataset *all[] = {streamed(numbers(budget, 0, 3)), dataset_take(streamed(numbers(budget, 0, 4)), 0),
                             streamed(numbers(budget, 10, 2))};
    return dataset_concatenate(all, 3);
}

/* Batches of 2 and of 3: rows become cells. */
static struct dataset *concatenated_shapes(struct budget *budget)
{
    return dataset_concatenate((struct dataset *[]){dataset_window(numbers(budget, 0, 4), 2, 0, 1, true),
                                                    dataset_window(numbers(budget, 10, 6), 3, 0, 1, true)},
                               2);
}

static void concatenates(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    expect_elements(concatenated, "[0, 1, 2, 10, 11]", 5);
    expect_elements(concatenated_streams, "[0, 1, 2, 10, 11]", 5);
    expect_elements(concatenated_shapes, "[[0, 1], [2, 3], [10, 11, 12], [13, 14, 15]]", 4);
    expect_refused(dataset_concatenate((struct dataset *[]){numbers(budget, 0, 3), counting(budget, 2)}, 2),
                   PLIM_BAD_JOB, "the first input has 1 columns, input 2 has 3");
    expect_refused(
        dataset_concatenate(
            (struct dataset *[]){numbers(budget, 0, 3), dataset_window(numbers(budget, 0, 4), 2, 0, 1, true)}, 2),
        PLIM_BAD_JOB, "column 'x' is int64");
    close_budget(budget);
}

/* ---- choose and sample ---- */

static struct dataset *choices(struct budget *budget)
{
    static const int64_t order[] = {0, 1, 2, 1, 0, 1, 1, 2, 2, 0, 0, 2, 2, 2, 2};
    struct source *source;
    const struct spec spec = {.column_count = 1, .column = {{"x", TYPE_I64, {0, {0}}, 8, 0}}};
    plim_error error = {0};
    if (memory_open(&source, budget, &spec, (const void *[]){order}, 15, &error) != PLIM_OK)
        return dataset_failed(budget, &error);
    return dataset_from_source(source);
}

static struct dataset *chosen(struct budget *budget, bool stop)
{
    struct dataset *from[] = {numbers(budget, 0, 3), streamed(numbers(budget, 100, 2)), numbers(budget, 200, 6)};
    return dataset_choose_from_datasets(from, 3, choices(budget), stop);
}

static struct dataset *chosen_until_empty(struct budget *budget)
{
    return chosen(budget, true);
}

static struct dataset *chosen_to_the_end(struct budget *budget)
{
    return chosen(budget, false);
}

/* Rows with values go run by run. */
static struct dataset *chosen_ragged(struct budget *budget)
{
    struct dataset *from[] = {ragged(budget, lengths, 3, true), ragged(budget, lengths, 2, false),
                              ragged(budget, lengths, 5, true)};
    return dataset_choose_from_datasets(from, 3, choices(budget), false);
}

static void chooses(void **state)
{
    struct budget *budget = open_budget();
    struct runner runner;
    plim_error error = {0};
    (void)state;
    expect_elements(chosen_until_empty, "[0, 100, 200, 101, 1]", 5);
    expect_elements(chosen_to_the_end, "[0, 100, 200, 101, 1, 201, 202, 2, 203, 204, 205]", 11);
    expect_elements(chosen_ragged,
                    "[([1], 's00'), ([1], 's00'), ([1], 's00'), ([11, 12, 13], 's01'), ([11, 12, 13], 's01'), "
                    "([11, 12, 13], 's01'), ([], 's02'), ([], 's02'), ([31, 32], 's03'), ([41, 42, 43, 44], 's04')]",
                    10);
    struct dataset *dataset =
        dataset_choose_from_datasets((struct dataset *[]){numbers(budget, 0, 3)}, 1, numbers(budget, 0, 2), true);
    run_open(&runner, dataset, budget, 4);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 4, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "choice 1 is 1, there are 1 data sets"));
    run_close(&runner);
    dataset_unref(dataset);
    expect_refused(
        dataset_choose_from_datasets((struct dataset *[]){numbers(budget, 0, 3)}, 1, counting(budget, 2), true),
        PLIM_BAD_JOB, "one column of int64");
    close_budget(budget);
}

static struct dataset *sampled(struct budget *budget)
{
    struct dataset *from[] = {dataset_repeat(numbers(budget, 0, 5), -1), dataset_repeat(numbers(budget, 100, 5), -1),
                              numbers(budget, 0, 1)};
    return dataset_sample_from_datasets(from, 3, (const double[]){3, 1, 0}, 5, false);
}

static struct dataset *sampled_all(struct budget *budget)
{
    struct dataset *from[] = {numbers(budget, 0, 5), streamed(numbers(budget, 100, 3))};
    return dataset_sample_from_datasets(from, 2, (const double[]){0.9, 0.1}, 5, false);
}

/* In proportion to the weights, by (seed, epoch, position), each data set in its own order. */
static void samples(void **state)
{
    struct budget *budget = open_budget();
    struct runner runner;
    static struct paper first, again;
    int64_t drawn[2] = {0}, passed;
    (void)state;
    struct dataset *dataset = sampled(budget);
    assert_int_equal(dataset_cardinality(dataset), CARDINALITY_INFINITE);
    run_open(&runner, dataset, budget, 50);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    for (int64_t n = 0; n < 40000; n += runner.chunk.count) {
        assert_int_equal(stream_pull(runner.stream, &runner.chunk, 50, NULL), PLIM_OK);
        for (int64_t i = 0; i < runner.chunk.count; i++) {
            int64_t value;
            memcpy(&value, chunk_row(&runner.chunk, 0, i), sizeof value);
            int from = value >= 100;
            assert_int_equal(value % 100, drawn[from]++ % 5);
            assert_int_equal(runner.chunk.index[i], drawn[0] + drawn[1] - 1);
        }
    }
    assert_in_range(drawn[0], 29600, 30400); /* 30,000, 4.6 sigma */
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_skip(&passed, runner.stream, 39990, &runner.chunk, NULL), PLIM_OK);
    assert_int_equal(passed, 39990);
    run_close(&runner);
    dataset_unref(dataset);

    dataset = sampled_all(budget);
    run_open(&runner, dataset, budget, 4);
    run_epoch(&first, &runner, 0, 0);
    run_epoch(&again, &runner, 0, 0);
    assert_string_equal(first.text, again.text);
    run_epoch(&again, &runner, 0, 3);
    assert_string_equal(again.text + 1, after(first.text, 3));
    bool differs = false;
    for (uint64_t epoch = 1; epoch < 4; epoch++) {
        run_epoch(&again, &runner, epoch, 0);
        assert_int_equal(again.length, first.length);
        differs = differs || strcmp(first.text, again.text) != 0;
    }
    assert_true(differs);
    run_close(&runner);
    dataset_unref(dataset);
    expect_refused(
        dataset_sample_from_datasets((struct dataset *[]){numbers(budget, 0, 3)}, 1, (const double[]){0}, 0, false),
        PLIM_BAD_JOB, "all weights are 0");
    close_budget(budget);
}

static void faults(void **state)
{
    (void)state;
    expect_faults(zip_indexed);
    expect_faults(zip_ragged_streams);
    expect_faults(concatenated_shapes);
    expect_faults(chosen_to_the_end);
}

/* ---- what joined sources take when they are started ---- */

static struct dataset *starting(struct budget *budget, int64_t count, size_t bytes)
{
    return made_open(budget, &(struct made_options){.count = count, .bad = -1, .start_bytes = bytes});
}

static struct dataset *join_pair(struct dataset *a, struct dataset *b, int kind)
{
    struct dataset *datasets[] = {a, b};
    if (kind == 2)
        datasets[0] = streamed(a);
    return kind == 1 ? dataset_concatenate(datasets, 2) : dataset_zip(datasets, 2);
}

/* One source in both branches is started once. */
static struct dataset *shared_pair(struct budget *budget, int kind)
{
    struct dataset *one = starting(budget, 50, 4096);
    return join_pair(dataset_skip(dataset_ref(one), 1), dataset_take(one, 30), kind);
}

static struct dataset *two_sources(struct budget *budget, int kind)
{
    return join_pair(starting(budget, 50, 4096), dataset_skip(starting(budget, 40, 12288), 3), kind);
}

/* A pair, and one of its sources once more. */
static struct dataset *nested_pair(struct budget *budget, int kind)
{
    struct dataset *one = starting(budget, 50, 4096);
    struct dataset *pair = join_pair(dataset_ref(one), starting(budget, 40, 12288), 1);
    return join_pair(pair, one, kind);
}

typedef struct dataset *make_pair(struct budget *budget, int kind);

/* What opening takes is what it was said to cost: anew, and where one of the sources runs already. */
static void check_joined_cost(make_pair *make, int kind)
{
    struct budget *budget = open_budget();
    struct dataset *dataset = dataset_batch(make(budget, kind), 8, false);
    struct iterator *iterator[2];
    for (int i = 0; i < 2; i++) {
        uint64_t cost[TAG_COUNT] = {0};
        dataset_cost(cost, NULL, dataset, GRANT(2));
        struct budget_usage before = budget_usage(budget);
        iterator[i] = open_iterator(dataset, budget, 2, 0, 0);
        struct budget_usage after = budget_usage(budget);
        for (int tag = 0; tag < TAG_COUNT; tag++)
            assert_int_equal(after.now_by_tag[tag] - before.now_by_tag[tag], cost[tag]);
    }
    iterator_close(iterator[0]);
    iterator_close(iterator[1]);
    dataset_unref(dataset);
    close_budget(budget);
}

/* A source that has been started by another iterator costs nothing more. */
static void check_started_cost(int kind)
{
    struct budget *budget = open_budget();
    uint64_t cost[TAG_COUNT] = {0};
    struct dataset *one = starting(budget, 50, 4096);
    struct dataset *pair = dataset_batch(join_pair(dataset_ref(one), starting(budget, 40, 12288), kind), 8, false);
    struct iterator *first = open_iterator(one, budget, 1, 0, 0);
    dataset_cost(cost, NULL, pair, GRANT(1));
    struct budget_usage before = budget_usage(budget);
    struct iterator *second = open_iterator(pair, budget, 1, 0, 0);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_FORMATS] - before.now_by_tag[TAG_FORMATS], cost[TAG_FORMATS]);
    iterator_close(first);
    iterator_close(second);
    dataset_unref(one);
    dataset_unref(pair);
    close_budget(budget);
}

static void joined_sources_cost_what_they_take(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        check_joined_cost(two_sources, kind);
        check_joined_cost(shared_pair, kind);
        check_joined_cost(nested_pair, kind);
        check_started_cost(kind);
    }
}

/* Nesting is bounded: what frees data sets recurses. */
static void nesting_ends(void **state)
{
    struct budget *budget = open_budget();
    plim_error error = {0};
    (void)state;
    struct dataset *dataset = streamed(numbers(budget, 0, 3));
    for (int i = 0; i < 200; i++)
        dataset = zip_of(streamed(numbers(budget, 0, 3)),
                         dataset_batch(dataset_unbatch(dataset_batch(dataset, 1, true)), 1, true));
    assert_int_equal(dataset_error(dataset, &error), PLIM_UNSUPPORTED);
    dataset_unref(dataset);
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zips),
        cmocka_unit_test(zip_names_its_columns),
        cmocka_unit_test(index_prefix_stays),
        cmocka_unit_test(values_that_fill_the_room),
        cmocka_unit_test(zip_stays_aligned),
        cmocka_unit_test(zip_ends_with_the_first_that_ends),
        cmocka_unit_test(concatenates),
        cmocka_unit_test(chooses),
        cmocka_unit_test(samples),
        cmocka_unit_test(faults),
        cmocka_unit_test(nesting_ends),
        cmocka_unit_test(joined_sources_cost_what_they_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
