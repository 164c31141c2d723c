/* test_stage_stacks.c - elements that are stacks of elements: padded_batch, unbatch, rebatch, window,
   bucket_by_sequence_length, group_by_window. The lists are those that tf.data printed for the same calls. */
#include "stream_text.h"

#include "base/numbers/count.h"
#include "pipeline/stages/keep/store.h"

static const int lengths[] = {1, 3, 0, 2, 4};
static const int many_lengths[] = {1, 7, 3, 5, 2, 9, 4, 4, 12, 6, 1, 1, 8, 10, 3};

/* ---- one column of ragged numbers ---- */

static plim_status first_only(struct spec *spec, const void *options, plim_error *error)
{
    (void)options, (void)error;
    spec->column_count = 1;
    return PLIM_OK;
}

static plim_status nothing(const struct map_call *call, plim_error *error)
{
    (void)call, (void)error;
    return PLIM_OK;
}

static const struct map_function map_first = {.name = "first", .infer = first_only, .run = nothing};

static struct dataset *rows(struct budget *budget, const int *length, int64_t count, bool stream)
{
    return dataset_map(ragged(budget, length, count, stream), &map_first, NULL);
}

/* ---- padded_batch ---- */

static struct dataset *padded(struct budget *budget)
{
    return dataset_padded_batch(rows(budget, lengths, 5, true), 2, NULL, 0, false, 0);
}

static struct dataset *padded_by_index(struct budget *budget)
{
    return dataset_padded_batch(rows(budget, lengths, 5, false), 2, NULL, 0, false, 0);
}

static struct dataset *padded_to_five(struct budget *budget)
{
    const struct padding padding = {
        .column = "x", .has_shape = true, .shape = {1, {5}}, .has_value = true, .value = -1};
    return dataset_padded_batch(rows(budget, lengths, 5, true), 2, &padding, 1, true, 0);
}

/* Strings are padded with strings, numbers side by side with them with numbers. */
static struct dataset *padded_windows(struct budget *budget)
{
    return dataset_padded_batch(ragged(budget, lengths, 5, true), 3, NULL, 0, false, 0);
}

/* Batches of 2, 2 and 1 numbers, side by side: elements of rank 1, padded in rank 2. */
static struct dataset *padded_batches(struct budget *budget)
{
    const struct padding padding = {.has_value = true, .value = 9};
    return dataset_padded_batch(dataset_batch(numbers(budget, 0, 5), 2, false), 3, &padding, 1, false, 0);
}

static struct dataset *padded_twice(struct budget *budget)
{
    const struct padding padding = {.has_value = true, .value = 7};
    return dataset_padded_batch(padded(budget), 2, &padding, 1, false, 0);
}

static struct dataset *padded_words(struct budget *budget)
{
    const struct padding padding = {.has_value = true, .text = "-"};
    struct dataset *dataset = dataset_padded_batch(ragged(budget, lengths, 5, true), 2, NULL, 0, false, 0);
    return dataset_padded_batch(dataset, 2, &padding, 1, false, 0);
}

static void pads(void **state)
{
    struct budget *budget = open_budget();
    struct runner runner;
    plim_error error = {0};
    (void)state;
    expect_elements(padded, "[[[1, 0, 0], [11, 12, 13]], [[0, 0], [31, 32]], [[41, 42, 43, 44]]]", 3);
    expect_elements(padded_by_index, "[[[1, 0, 0], [11, 12, 13]], [[0, 0], [31, 32]], [[41, 42, 43, 44]]]", 3);
    expect_elements(padded_to_five,
                    "[[[1, -1, -1, -1, -1], [11, 12, 13, -1, -1]], [[-1, -1, -1, -1, -1], [31, 32, -1, -1, -1]]]", 2);
    expect_elements(padded_windows,
                    "[([[1, 0, 0], [11, 12, 13], [0, 0, 0]], ['s00', 's01', 's02']), "
                    "([[31, 32, 0, 0], [41, 42, 43, 44]], ['s03', 's04'])]",
                    2);
    expect_elements(padded_batches, "[[[0, 1], [2, 3], [4, 9]]]", 1);
    expect_elements(padded_twice, "[[[[1, 0, 0], [11, 12, 13]], [[0, 0, 7], [31, 32, 7]]], [[[41, 42, 43, 44]]]]", 2);
    expect_elements(padded_words,
                    "[([[[1, 0, 0], [11, 12, 13]], [[0, 0, 0], [31, 32, 0]]], [['s00', 's01'], ['s02', 's03']]), "
                    "([[[41, 42, 43, 44]]], [['s04']])]",
                    2);
    const struct padding two = {.has_shape = true, .shape = {1, {2}}};
    struct dataset *dataset = dataset_padded_batch(rows(budget, lengths, 5, true), 2, &two, 1, false, 0);
    run_open(&runner, dataset, budget, 1);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "element 1: axis 0 of column 'x' has 3 elements, more than the 2"));
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), PLIM_OK); /* the next batch */
    assert_int_equal(runner.chunk.count, 1);
    run_close(&runner);
    dataset_unref(dataset);
    dataset = dataset_padded_batch(rows(budget, many_lengths, 15, true), 15, NULL, 0, false, 600);
    run_open(&runner, dataset, budget, 1);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "padded_batch: an element needs"));
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
}

static void padding_is_refused(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    expect_refused(dataset_padded_batch(rows(budget, lengths, 5, true), 0, NULL, 0, false, 0), PLIM_BAD_JOB,
                   "a batch of 0");
    const struct padding other = {.column = "z"}, axes = {.has_shape = true, .shape = {2, {1, 1}}},
                         text = {.column = "x", .has_value = true, .text = "a"};
    expect_refused(dataset_padded_batch(rows(budget, lengths, 5, true), 2, &other, 1, false, 0), PLIM_BAD_JOB,
                   "no column 'z'");
    expect_refused(dataset_padded_batch(rows(budget, lengths, 5, true), 2, &axes, 1, false, 0), PLIM_BAD_JOB,
                   "has 1 axes, its padded shape has 2");
    expect_refused(dataset_padded_batch(rows(budget, lengths, 5, true), 2, &text, 1, false, 0), PLIM_BAD_JOB,
                   "'a' is no padding");
    struct dataset *dataset = padded(budget);
    assert_int_equal(dataset_batch_size(dataset), 2);
    assert_int_equal(dataset_check(dataset, NULL), PLIM_OK);
    assert_int_equal(dataset_spec(dataset)->column[0].shape.dim[0], -1);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- unbatch, rebatch ---- */

static struct dataset *unbatched(struct budget *budget)
{
    return dataset_unbatch(dataset_batch(numbers(budget, 0, 5), 2, false));
}

static struct dataset *unbatched_whole(struct budget *budget)
{
    return dataset_unbatch(dataset_batch(numbers(budget, 0, 5), 2, true));
}

static struct dataset *unbatched_padded(struct budget *budget)
{
    return dataset_unbatch(dataset_padded_batch(ragged(budget, lengths, 5, true), 2, NULL, 0, false, 0));
}

static void unbatches(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    expect_elements(unbatched, "[0, 1, 2, 3, 4]", 5);
    expect_elements(unbatched_whole, "[0, 1, 2, 3]", 4);
    expect_elements(unbatched_padded,
                    "[([1, 0, 0], 's00'), ([11, 12, 13], 's01'), ([0, 0], 's02'), ([31, 32], 's03'), "
                    "([41, 42, 43, 44], 's04')]",
                    5);
    expect_refused(dataset_unbatch(numbers(budget, 0, 5)), PLIM_BAD_JOB, "column 'x' is a single value");
    close_budget(budget);
}

static struct dataset *rebatched(struct budget *budget, const int64_t *sizes, int count, bool drop)
{
    return dataset_rebatch(dataset_batch(numbers(budget, 0, 20), 6, false), sizes, count, drop);
}

static struct dataset *rebatched_list(struct budget *budget)
{
    return rebatched(budget, (const int64_t[]){3, 1, 4}, 3, false);
}

static struct dataset *rebatched_list_whole(struct budget *budget)
{
    return rebatched(budget, (const int64_t[]){3, 1, 4}, 3, true);
}

static struct dataset *rebatched_closed(struct budget *budget)
{
    return dataset_close_batch(rebatched(budget, (const int64_t[]){4}, 1, false));
}

static struct dataset *rebatched_whole(struct budget *budget)
{
    return dataset_close_batch(rebatched(budget, (const int64_t[]){8}, 1, true));
}

static void rebatches(void **state)
{
    static const char *const list =
        "[[0, 1, 2], [3], [4, 5, 6, 7], [8, 9, 10], [11], [12, 13, 14, 15], [16, 17, 18], [19]]";
    (void)state;
    expect_elements(rebatched_list, list, 8);
    expect_elements(rebatched_list_whole, list, 8);
    expect_elements(rebatched_closed,
                    "[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]", 5);
    expect_elements(rebatched_whole, "[[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]", 2);
}

/* ---- window ---- */

struct window_case {
    int64_t n, size, shift, stride;
    bool drop;
    const char *windows;
    int64_t count;
};

static const struct window_case window_cases[] = {
    {7, 2, 0, 1, true, "[[0, 1], [2, 3], [4, 5]]", 3},
    {7, 3, 2, 1, true, "[[0, 1, 2], [2, 3, 4], [4, 5, 6]]", 3},
    {7, 3, 2, 1, false, "[[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]]", 4},
    {7, 3, 0, 2, true, "[[0, 2, 4]]", 1},
    {7, 3, 1, 2, false, "[[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5], [4, 6], [5], [6]]", 7},
    {10, 3, 5, 1, false, "[[0, 1, 2], [5, 6, 7]]", 2},
    {10, 4, 5, 3, false, "[[0, 3, 6, 9], [5, 8]]", 2},
    {4, 5, 1, 1, false, "[[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]]", 4},
    {10, 2, 7, 3, false, "[[0, 3], [7]]", 2},
    {10, 2, 3, 4, true, "[[0, 4], [3, 7]]", 2},
};
static const struct window_case *window_now;

static struct dataset *windowed(struct budget *budget)
{
    const struct window_case *w = window_now;
    return dataset_window(numbers(budget, 0, w->n), w->size, w->shift, w->stride, w->drop);
}

static struct dataset *windowed_strings(struct budget *budget)
{
    struct dataset *dataset = dataset_unbatch(
        dataset_padded_batch(ragged(budget, many_lengths, 15, true), 4,
                             &(struct padding){.column = "x", .has_shape = true, .shape = {1, {12}}}, 1, false, 0));
    return dataset_take(dataset_window(dataset, 3, 4, 2, true), 3);
}

static void windows(void **state)
{
    struct budget *budget = open_budget();
    static struct paper paper;
    struct runner runner;
    (void)state;
    for (size_t i = 0; i < COUNT(window_cases); i++) {
        window_now = &window_cases[i];
        expect_elements(windowed, window_now->windows, window_now->count);
    }
    struct dataset *dataset = windowed_strings(budget);
    run_open(&runner, dataset, budget, 1);
    run_epoch(&paper, &runner, 0, 0);
    assert_non_null(strstr(paper.text, "['s00', 's02', 's04']), ("));
    assert_non_null(strstr(paper.text, "[[41, 42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [61, 62,"));
    assert_non_null(strstr(paper.text, "['s08', 's10', 's12'])]"));
    run_close(&runner);
    dataset_unref(dataset);
    expect_refused(dataset_window(rows(budget, lengths, 5, true), 2, 1, 1, true), PLIM_BAD_JOB, "different shapes");
    expect_refused(dataset_window(numbers(budget, 0, 5), 0, 1, 1, true), PLIM_BAD_JOB, "at least 1");
    expect_refused(dataset_window(numbers(budget, 0, 5), INT64_MAX, 1, INT64_MAX, true), PLIM_BAD_JOB, "2^31");
    close_budget(budget);
}

/* ---- buckets ---- */

static const int64_t boundaries[] = {3, 6}, batch_sizes[] = {3, 2, 2};

static struct dataset *bucketed_with(struct budget *budget, const int *length, int count, bool drop, bool pad)
{
    const struct bucket_options options = {.boundaries = boundaries,
                                           .batch_sizes = batch_sizes,
                                           .boundary_count = 2,
                                           .drop_remainder = drop,
                                           .pad_to_bucket_boundary = pad};
    return dataset_bucket_by_sequence_length(rows(budget, length, count, true), &options);
}

static struct dataset *bucketed(struct budget *budget)
{
    return bucketed_with(budget, many_lengths, 15, false, false);
}

static struct dataset *bucketed_whole(struct budget *budget)
{
    return bucketed_with(budget, many_lengths, 15, true, false);
}

static struct dataset *bucketed_to_boundary(struct budget *budget)
{
    static const int short_lengths[] = {1, 3, 5, 2, 4, 4, 1, 1, 3};
    return bucketed_with(budget, short_lengths, 9, false, true);
}

#define BUCKETS                                                                                                        \
    "[[[21, 22, 23, 0, 0], [31, 32, 33, 34, 35]], "                                                                    \
    "[[11, 12, 13, 14, 15, 16, 17, 0, 0], [51, 52, 53, 54, 55, 56, 57, 58, 59]], "                                     \
    "[[61, 62, 63, 64], [71, 72, 73, 74]], "                                                                           \
    "[[81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92], [91, 92, 93, 94, 95, 96, 0, 0, 0, 0, 0, 0]], "                 \
    "[[1, 0], [41, 42], [101, 0]], "                                                                                   \
    "[[121, 122, 123, 124, 125, 126, 127, 128, 0, 0], [131, 132, 133, 134, 135, 136, 137, 138, 139, 140]]"

static void buckets(void **state)
{
    struct budget *budget = open_budget();
    struct runner runner;
    plim_error error = {0};
    (void)state;
    expect_elements(bucketed, BUCKETS ", [[111]], [[141, 142, 143]]]", 8);
    expect_elements(bucketed_whole, BUCKETS "]", 6);
    expect_elements(bucketed_to_boundary,
                    "[[[11, 12, 13, 0, 0], [21, 22, 23, 24, 25]], [[41, 42, 43, 44, 0], [51, 52, 53, 54, 0]], "
                    "[[1, 0], [31, 32], [61, 0]], [[71, 0]], [[81, 82, 83, 0, 0]]]",
                    5);
    struct dataset *dataset = bucketed_with(budget, many_lengths, 15, false, true);
    run_open(&runner, dataset, budget, 1);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "element 1 has length 7"));
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- groups ---- */

static plim_status square_modulo_seven(int64_t *key, const struct chunk *chunk, int64_t row, void *context,
                                       plim_error *error)
{
    int64_t x;
    (void)context, (void)error;
    memcpy(&x, chunk_row(chunk, 0, row), sizeof x);
    *key = x * x % 7;
    return PLIM_OK;
}

static plim_status minus_modulo_three(int64_t *key, const struct chunk *chunk, int64_t row, void *context,
                                      plim_error *error)
{
    TRY(square_modulo_seven(key, chunk, row, context, error));
    memcpy(key, chunk_row(chunk, 0, row), sizeof *key);
    *key = -(*key % 3);
    return PLIM_OK;
}

static struct dataset *grouped(struct budget *budget)
{
    const struct group_by_window_options options = {.key = square_modulo_seven, .window_size = 3};
    return dataset_group_by_window(numbers(budget, 0, 20), &options);
}

static struct dataset *grouped_in_batches(struct budget *budget)
{
    const struct group_by_window_options options = {.key = minus_modulo_three, .window_size = 4, .batch_size = 2};
    return dataset_group_by_window(numbers(budget, 0, 20), &options);
}

static void groups(void **state)
{
    struct budget *budget = open_budget();
    struct runner runner;
    plim_error error = {0};
    (void)state;
    expect_elements(grouped, "[[1, 6, 8], [2, 5, 9], [3, 4, 10], [0, 7, 14], [11, 17, 18], [12, 16, 19], [13, 15]]", 7);
    expect_elements(grouped_in_batches,
                    "[[0, 3], [6, 9], [1, 4], [7, 10], [2, 5], [8, 11], [14, 17], [13, 16], [19], [12, 15], [18]]", 11);
    struct group_by_window_options options = {.column = "y", .window_size = 3, .value_bytes = 4096};
    struct dataset *dataset = dataset_group_by_window(counting(budget, 400), &options);
    run_open(&runner, dataset, budget, 1);
    int64_t samples = 0;
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    for (;;) {
        assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, NULL), PLIM_OK);
        if (!runner.chunk.count)
            break;
        const struct cell *y = (const struct cell *)chunk_row(&runner.chunk, 1, 0);
        const struct cell *i = (const struct cell *)chunk_row(&runner.chunk, 2, 0);
        for (int64_t k = 0; k < y->dim[0]; k++)
            assert_int_equal(((const int64_t *)i->data)[k] % 10, ((const uint8_t *)y->data)[0]);
        samples += y->dim[0];
    }
    assert_int_equal(samples, 400);
    run_close(&runner);
    dataset_unref(dataset);
    options = (struct group_by_window_options){.key = minus_modulo_three, .window_size = 50, .value_bytes = 128};
    dataset = dataset_group_by_window(numbers(budget, 0, 1000), &options);
    run_open(&runner, dataset, budget, 1);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "50 elements of 3 groups are kept"));
    run_close(&runner);
    dataset_unref(dataset);
    options = (struct group_by_window_options){.column = "image", .window_size = 2};
    expect_refused(dataset_group_by_window(counting(budget, 3), &options), PLIM_BAD_JOB, "must be a whole number");
    close_budget(budget);
}

/* ---- the store ---- */

/* Against a plain model: random adds and gives, values compared, the room just large enough. */
static void store_keeps_values(void **state)
{
    static int length[90];
    struct budget *budget = open_budget();
    struct runner runner;
    struct store store;
    int64_t element[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, number[8] = {0};
    (void)state;
    for (int i = 0; i < 90; i++)
        length[i] = i * 7 % 12;
    struct dataset *dataset = ragged(budget, length, 90, true);
    run_open(&runner, dataset, budget, 1);
    const uint64_t room = 8 * (12 * 4 + 64 + 3);
    uint64_t bytes = store_bytes(dataset->spec, 8, room);
    void *block = budget_take(budget, TAG_PLANNER, bytes);
    store_lay(&store, block, dataset->spec, 8, room);
    uint32_t random[4];
    for (uint64_t n = 0, step = 0; n < 90; step++) {
        random_block(random, SEED, 0, step);
        int slot = random[0] % 8;
        if (element[slot] >= 0) {
            store_give(&store, element[slot]);
            element[slot] = -1;
            continue;
        }
        assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, NULL), PLIM_OK);
        number[slot] = (int64_t)n++;
        element[slot] = store_add(&store, &runner.chunk, 0);
        assert_true(element[slot] >= 0);
        for (int i = 0; i < 8; i++) {
            if (element[i] < 0)
                continue;
            const struct cell *cell = (const struct cell *)chunk_row(&store.elements, 0, element[i]);
            assert_int_equal(cell->dim[0], length[number[i]]);
            for (int64_t k = 0; k < cell->dim[0]; k++)
                assert_int_equal(((const int32_t *)cell->data)[k], 10 * number[i] + k + 1);
        }
    }
    budget_give(budget, TAG_PLANNER, block, bytes);
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
}

static void faults(void **state)
{
    (void)state;
    expect_faults(padded);
    expect_faults(unbatched_padded);
    expect_faults(rebatched_list);
    window_now = &window_cases[2];
    expect_faults(windowed);
    expect_faults(bucketed);
    expect_faults(grouped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pads),      cmocka_unit_test(padding_is_refused),
        cmocka_unit_test(unbatches), cmocka_unit_test(rebatches),
        cmocka_unit_test(windows),   cmocka_unit_test(buckets),
        cmocka_unit_test(groups),    cmocka_unit_test(store_keeps_values),
        cmocka_unit_test(faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
