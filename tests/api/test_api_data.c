/* test_api_data.c - data sets as a C program uses them: nothing but plimsoll.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plimsoll.h"

#define N   1000
#define MIB ((uint64_t)1024 * 1024)

static plim_budget *budget_of(uint64_t bytes)
{
    plim_budget *budget;
    plim_error error = {0};
    assert_int_equal(plim_budget_make(&budget, bytes, &error), PLIM_OK);
    return budget;
}

/* Everything was given back. */
static void free_budget(plim_budget *budget, uint64_t before)
{
    uint64_t now, peak;
    plim_budget_figures(&now, &peak, budget);
    assert_int_equal(now, before);
    plim_budget_free(budget);
}

static uint64_t held(const plim_budget *budget)
{
    uint64_t now, peak;
    plim_budget_figures(&now, &peak, budget);
    return now;
}

static plim_iterator *opened(plim_dataset *dataset, plim_budget *budget, const plim_iterator_options *options)
{
    plim_iterator *iterator;
    plim_error error = {0};
    plim_status status = plim_iterator_open(&iterator, dataset, budget, options, &error);
    if (status != PLIM_OK)
        print_error("%s; %s\n", error.message, error.hint);
    assert_int_equal(status, PLIM_OK);
    return iterator;
}

static const plim_batch *next(plim_iterator *iterator)
{
    const plim_batch *batch;
    plim_error error = {0};
    plim_status status = plim_iterator_next(&batch, iterator, &error);
    if (status != PLIM_OK)
        print_error("%s; %s\n", error.message, error.hint);
    assert_int_equal(status, PLIM_OK);
    return batch;
}

/* ---- sources ---- */

static void tensors_become_slices(void **unused)
{
    static float x[N][3];
    static int32_t y[N];
    (void)unused;
    for (int i = 0; i < N; i++) {
        x[i][0] = x[i][1] = x[i][2] = (float)i;
        y[i] = i * 2;
    }
    const plim_tensor tensors[] = {{"x", PLIM_FLOAT32, 2, {N, 3}, x}, {"label", PLIM_INT32, 1, {N}, y}};
    plim_budget *budget = budget_of(4 * MIB);
    uint64_t before = held(budget);
    plim_dataset *dataset = plim_dataset_batch(plim_dataset_from_tensor_slices(budget, tensors, 2), 32, false);
    plim_column columns[PLIM_MOST_COLUMNS];
    assert_int_equal(plim_dataset_spec(columns, dataset), 2);
    assert_string_equal(columns[0].name, "x");
    assert_int_equal(columns[0].rank, 1);
    assert_int_equal(columns[0].shape[0], 3);
    assert_int_equal(columns[1].type, PLIM_INT32);
    assert_int_equal(columns[1].row_bytes, 4);
    assert_int_equal(plim_dataset_cardinality(dataset), 32);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    int64_t at = 0;
    for (const plim_batch *batch; (batch = next(iterator));)
        for (int64_t i = 0; i < batch->count; i++, at++) {
            assert_true(((const float *)batch->column[0])[i * 3 + 2] == (float)at);
            assert_int_equal(((const int32_t *)batch->column[1])[i], at * 2);
        }
    assert_int_equal(at, N);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    free_budget(budget, before);
}

static void tensors_are_one_element(void **unused)
{
    static const int64_t x[4] = {1, 2, 3, 4};
    (void)unused;
    plim_budget *budget = budget_of(4 * MIB);
    const plim_tensor tensor = {"x", PLIM_INT64, 1, {4}, x};
    plim_dataset *dataset = plim_dataset_repeat(plim_dataset_from_tensors(budget, &tensor, 1), 2);
    assert_int_equal(plim_dataset_cardinality(dataset), 2);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(next(iterator)->column[0], x, sizeof x);
    assert_null(next(iterator));
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

static void strings_are_rows(void **unused)
{
    (void)unused;
    static const plim_string words[] = {
        {(const uint8_t *)"one", 3}, {(const uint8_t *)"", 0}, {(const uint8_t *)"three", 5}};
    plim_budget *budget = budget_of(4 * MIB);
    const plim_tensor tensor = {"word", PLIM_STRING, 1, {3}, words};
    plim_dataset *dataset = plim_dataset_batch(plim_dataset_from_tensor_slices(budget, &tensor, 1), 2, false);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    const plim_batch *batch = next(iterator);
    const plim_string *row = batch->column[0];
    assert_int_equal(batch->count, 2);
    assert_int_equal(row[0].bytes, 3);
    assert_memory_equal(row[0].data, "one", 3);
    assert_int_equal(row[1].bytes, 0);
    row = next(iterator)->column[0];
    assert_memory_equal(row[0].data, "three", 5);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

/* ---- a generator ---- */

struct squares {
    int64_t at, count, fails_at;
    char text[16];
};

static plim_status squares_next(bool *more, void *context, void *const *row, plim_error *error)
{
    struct squares *squares = context;
    (void)error;
    if (squares->at == squares->fails_at)
        return PLIM_IO;
    *more = squares->at < squares->count;
    if (!*more)
        return PLIM_OK;
    *(int64_t *)row[0] = squares->at * squares->at;
    plim_string *text = row[1];
    text->bytes = (uint64_t)snprintf(squares->text, sizeof squares->text, "%lld", (long long)squares->at);
    text->data = (const uint8_t *)squares->text;
    squares->at++;
    return PLIM_OK;
}

static plim_status squares_rewind(void *context, int64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    ((struct squares *)context)->at = 0;
    return PLIM_OK;
}

static const plim_column squares_columns[] = {{.name = "n", .type = PLIM_INT64}, {.name = "text", .type = PLIM_STRING}};

static void generators_are_called(void **unused)
{
    (void)unused;
    for (int threads = 0; threads < 3; threads++) {
        struct squares squares = {.count = 100, .fails_at = -1};
        plim_budget *budget = budget_of(8 * MIB);
        uint64_t before = held(budget);
        const plim_generator generator = {.next = squares_next, .rewind = squares_rewind, .context = &squares};
        plim_dataset *dataset = plim_dataset_from_generator(budget, squares_columns, 2, &generator);
        assert_int_equal(plim_dataset_cardinality(dataset), PLIM_UNKNOWN);
        dataset = plim_dataset_prefetch(plim_dataset_batch(dataset, 8, false), PLIM_AUTO);
        plim_iterator *iterator = opened(dataset, budget, &(plim_iterator_options){.threads = threads});
        for (int epoch = 0; epoch < 2; epoch++) {
            int64_t at = 0;
            for (const plim_batch *batch; (batch = next(iterator));)
                for (int64_t i = 0; i < batch->count; i++, at++) {
                    const plim_string *text = (const plim_string *)batch->column[1] + i;
                    char expected[16];
                    assert_int_equal(((const int64_t *)batch->column[0])[i], at * at);
                    assert_int_equal(text->bytes, snprintf(expected, sizeof expected, "%lld", (long long)at));
                    assert_memory_equal(text->data, expected, text->bytes);
                }
            assert_int_equal(at, 100);
        }
        plim_iterator *second = NULL; /* one state: one iterator */
        plim_error error = {0};
        assert_int_equal(plim_iterator_open(&second, dataset, budget, NULL, &error), PLIM_UNSUPPORTED);
        plim_iterator_close(iterator);
        plim_dataset_unref(dataset);
        free_budget(budget, before);
    }
}

static void a_generator_that_fails_is_told(void **unused)
{
    (void)unused;
    struct squares squares = {.count = 100, .fails_at = 20};
    plim_budget *budget = budget_of(8 * MIB);
    const plim_generator generator = {.next = squares_next, .rewind = squares_rewind, .context = &squares};
    plim_dataset *dataset =
        plim_dataset_batch(plim_dataset_from_generator(budget, squares_columns, 2, &generator), 8, false);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    plim_error error = {0};
    const plim_batch *batch;
    assert_int_equal(next(iterator)->count, 8);
    assert_int_equal(next(iterator)->count, 8);
    assert_int_equal(plim_iterator_next(&batch, iterator, &error), PLIM_IO);
    assert_non_null(strstr(error.message, "generator"));
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

/* ---- maps ---- */

static plim_status halve(void *context, const plim_chunk *chunk, plim_error *error)
{
    (void)error;
    for (int64_t i = 0; i < chunk->count; i++) {
        int64_t x =
            *(const int64_t *)(const void *)((const char *)chunk->from[0] + (uint64_t)i * chunk->from_stride[0]);
        float half = (float)x * *(const float *)context;
        memcpy((char *)chunk->to[1] + (uint64_t)i * chunk->to_stride[1], &half, sizeof half);
    }
    return PLIM_OK;
}

static plim_status count_up(void *context, void *const *from, void *const *to, int64_t index, plim_error *error)
{
    (void)context, (void)from, (void)index, (void)error;
    ++*(int64_t *)to[0];
    return PLIM_OK;
}

static plim_status refuse_seven(void *context, void *const *from, void *const *to, int64_t index, plim_error *error)
{
    (void)context, (void)to, (void)error, (void)from;
    return index == 7 ? PLIM_BAD_DATA : PLIM_OK;
}

static plim_status spell(void *context, const plim_chunk *chunk, plim_error *error)
{
    (void)context, (void)error;
    for (int64_t i = 0; i < chunk->count; i++) {
        plim_string *text = (plim_string *)(void *)((char *)chunk->to[0] + (uint64_t)i * chunk->to_stride[0]);
        int64_t x =
            *(const int64_t *)(const void *)((const char *)chunk->from[0] + (uint64_t)i * chunk->from_stride[0]);
        char *bytes = plim_chunk_take(chunk, 24);
        if (!bytes)
            return PLIM_OVER_BUDGET;
        text->data = (uint8_t *)bytes;
        text->bytes = (uint64_t)snprintf(bytes, 24, "<%lld>", (long long)x);
    }
    return PLIM_OK;
}

static void maps_call_back(void **unused)
{
    (void)unused;
    float half = 0.5f;
    static const plim_column columns[] = {{.name = "x", .type = PLIM_INT64}, {.name = "half", .type = PLIM_FLOAT32}};
    const plim_map add = {.element = count_up};
    const plim_map halves = {.chunk = halve, .context = &half, .columns = columns, .column_count = 2, .heavy = true};
    for (int threads = 0; threads < 4; threads++) {
        plim_budget *budget = budget_of(8 * MIB);
        uint64_t before = held(budget);
        plim_dataset *dataset = plim_dataset_map(plim_dataset_map(plim_dataset_range(budget, N), &add), &halves);
        dataset = plim_dataset_prefetch(plim_dataset_batch(dataset, 64, false), 2);
        plim_iterator *iterator = opened(dataset, budget, &(plim_iterator_options){.threads = threads});
        int64_t at = 0;
        for (const plim_batch *batch; (batch = next(iterator));)
            for (int64_t i = 0; i < batch->count; i++, at++) {
                assert_int_equal(((const int64_t *)batch->column[0])[i], at + 1);
                assert_true(((const float *)batch->column[1])[i] == (float)(at + 1) / 2);
            }
        assert_int_equal(at, N);
        plim_iterator_close(iterator);
        plim_dataset_unref(dataset);
        free_budget(budget, before);
    }
}

static void maps_make_strings(void **unused)
{
    (void)unused;
    static const plim_column column = {.name = "text", .type = PLIM_STRING};
    const plim_map map = {.name = "spell", .chunk = spell, .columns = &column, .column_count = 1, .value_bytes = 64};
    plim_budget *budget = budget_of(8 * MIB);
    plim_dataset *dataset = plim_dataset_map(plim_dataset_range(budget, 50), &map);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    for (int i = 0; i < 50; i++) {
        char expected[24];
        const plim_string *text = next(iterator)->column[0];
        assert_int_equal(text->bytes, snprintf(expected, sizeof expected, "<%d>", i));
        assert_memory_equal(text->data, expected, text->bytes);
    }
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

/* ---- errors ---- */

static void errors_are_carried(void **unused)
{
    (void)unused;
    plim_budget *budget = budget_of(4 * MIB);
    plim_error error = {0};
    plim_iterator *iterator;
    const plim_map neither = {.name = "neither"}, bad = {.name = "picky", .element = refuse_seven};
    static const char *const paths[] = {"/nowhere/x.npy"};
    plim_dataset *dataset = plim_dataset_batch(plim_dataset_take(plim_dataset_range(budget, 10), -7), 2, false);
    assert_int_equal(plim_dataset_check(dataset, &error), PLIM_BAD_JOB);
    assert_non_null(strstr(error.message, "take"));
    assert_int_equal(plim_iterator_open(&iterator, dataset, budget, NULL, &error), PLIM_BAD_JOB);
    plim_dataset_unref(dataset);
    dataset = plim_dataset_npy(budget, paths, 1);
    assert_int_equal(plim_dataset_check(dataset, &error), PLIM_IO);
    plim_dataset_unref(dataset);
    dataset = plim_dataset_map(plim_dataset_range(budget, 10), &neither);
    assert_int_equal(plim_dataset_check(dataset, &error), PLIM_USAGE);
    plim_dataset_unref(dataset);
    dataset = plim_dataset_map(plim_dataset_range(budget, 10), &bad);
    iterator = opened(dataset, budget, NULL);
    const plim_batch *batch;
    plim_status status = PLIM_OK;
    int given = 0;
    while (given < 8 && (status = plim_iterator_next(&batch, iterator, &error)) == PLIM_OK)
        given++;
    assert_int_equal(status, PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "picky"));
    assert_non_null(strstr(error.message, "element 7"));
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

/* Fewer slots where there is no room for more; below the floor, what each stage needs. */
static void budgets_hold(void **unused)
{
    (void)unused;
    static const int64_t shape[] = {64, 64};
    uint64_t limits[] = {4 * MIB, 2 * MIB, MIB / 4};
    for (int i = 0; i < 3; i++) {
        plim_budget *budget = budget_of(limits[i]);
        plim_error error = {0};
        plim_iterator *iterator = NULL;
        uint64_t now, peak;
        plim_dataset *dataset = plim_dataset_random(budget, 200, shape, 2, 10, 1);
        dataset = plim_dataset_prefetch(plim_dataset_batch(dataset, 32, false), 4); /* 512 KiB a batch */
        plim_status status =
            plim_iterator_open(&iterator, dataset, budget, &(plim_iterator_options){.threads = 1}, &error);
        assert_int_equal(status, i == 2 ? PLIM_OVER_BUDGET : PLIM_OK);
        if (status == PLIM_OK)
            while (next(iterator))
                ;
        else
            assert_non_null(strstr(error.message, "batch 5"));
        plim_budget_figures(&now, &peak, budget);
        assert_true(peak <= limits[i]);
        plim_iterator_close(iterator);
        plim_dataset_unref(dataset);
        plim_budget_free(budget);
    }
}

/* A file of 4,000 rows of 512 bytes: row i is i, 128 times. */
static void write_rows(const char *path)
{
    char head[128];
    float row[128];
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    head[10 + snprintf(head + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': (4000, 128), }")] = ' ';
    head[127] = '\n';
    fwrite(head, 1, sizeof head, out);
    for (int i = 0; i < 4000; i++) {
        for (int j = 0; j < 128; j++)
            row[j] = (float)i;
        fwrite(row, sizeof row, 1, out);
    }
    assert_int_equal(fclose(out), 0);
}

/* Blocks are held where there is room for them; where there is none, rows come one by one, and the same. */
static void blocks_are_held_where_there_is_room(void **unused)
{
    static const char *const path = "api_rows.npy";
    static float first[2][4000];
    (void)unused;
    write_rows(path);
    for (int small = 0; small < 2; small++) {
        plim_budget *budget = budget_of(small ? MIB / 2 : 64 * MIB);
        plim_dataset *dataset = plim_dataset_batch(
            plim_dataset_shuffle_blocks(plim_dataset_npy(budget, (const char *const[]){path}, 1), 5), 32, false);
        plim_iterator *iterator = opened(dataset, budget, &(plim_iterator_options){.slots = small});
        int64_t at = 0;
        for (const plim_batch *batch; (batch = next(iterator));)
            for (int64_t i = 0; i < batch->count; i++)
                first[small][at++] = ((const float *)batch->column[0])[i * 128];
        assert_int_equal(at, 4000);
        plim_iterator_close(iterator);
        plim_dataset_unref(dataset);
        plim_budget_free(budget);
    }
    assert_memory_equal(first[0], first[1], sizeof first[0]);
    remove(path);
}

/* A budget that still holds something is left alone. */
static void a_budget_waits(void **unused)
{
    (void)unused;
    plim_budget *budget = budget_of(4 * MIB);
    plim_dataset *dataset = plim_dataset_range(budget, 10);
    plim_budget_free(budget);
    assert_int_equal(plim_dataset_cardinality(dataset), 10);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

/* ---- shapes ---- */

struct lists {
    int64_t at;
    int32_t numbers[8];
};

/* 0; 1 1; 2 2 2; ... of up to five. */
static plim_status lists_next(bool *more, void *context, void *const *row, plim_error *error)
{
    struct lists *lists = context;
    plim_cell *cell = row[1];
    (void)error;
    *more = lists->at < 7;
    if (!*more)
        return PLIM_OK;
    *(int64_t *)row[0] = lists->at;
    cell->data = lists->numbers;
    cell->dim[0] = lists->at % 5 + 1;
    for (int64_t i = 0; i < cell->dim[0]; i++)
        lists->numbers[i] = (int32_t)lists->at;
    lists->at++;
    return PLIM_OK;
}

static plim_status lists_rewind(void *context, int64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    ((struct lists *)context)->at = 0;
    return PLIM_OK;
}

static plim_dataset *lists_of(plim_budget *budget, struct lists *lists)
{
    static const plim_column columns[] = {{.name = "n", .type = PLIM_INT64},
                                          {.name = "list", .type = PLIM_INT32, .rank = 1, .shape = {-1}}};
    const plim_generator generator = {.next = lists_next, .rewind = lists_rewind, .context = lists};
    return plim_dataset_from_generator(budget, columns, 2, &generator);
}

static void check_shape(const plim_iterator *iterator, int column, int rank, int64_t samples, int64_t extent)
{
    int64_t shape[PLIM_MOST_AXES + 1] = {-7, -7, -7};
    assert_int_equal(plim_iterator_shape(shape, iterator, column), rank);
    assert_int_equal(shape[0], rank > 0 ? samples : -7);
    assert_int_equal(shape[1], rank > 1 ? extent : -7);
}

/* Batches of 3, 3 and 1, each as long as its longest. */
static void padded_batches_tell_their_shape(void **unused)
{
    static const int64_t samples[] = {3, 3, 1}, longest[] = {3, 5, 2};
    (void)unused;
    for (int threads = 0; threads < 3; threads++) {
        struct lists lists = {0};
        plim_budget *budget = budget_of(8 * MIB);
        plim_dataset *dataset = plim_dataset_padded_batch(lists_of(budget, &lists), 3, -1, false);
        plim_column columns[PLIM_MOST_COLUMNS];
        assert_int_equal(plim_dataset_spec(columns, dataset), 2);
        assert_int_equal(columns[1].shape[0], -1);
        plim_iterator *iterator = opened(dataset, budget, &(plim_iterator_options){.threads = threads, .slots = 2});
        check_shape(iterator, 1, 0, 0, 0); /* nothing was given yet */
        int64_t at = 0;
        for (int b = 0; b < 3; b++) {
            const plim_batch *batch = next(iterator);
            assert_int_equal(batch->count, samples[b]);
            check_shape(iterator, 0, 1, samples[b], 0);
            check_shape(iterator, 1, 2, samples[b], longest[b]);
            check_shape(iterator, 2, 0, 0, 0);
            check_shape(iterator, -1, 0, 0, 0);
            for (int64_t i = 0; i < batch->count; i++, at++)
                for (int64_t j = 0; j < longest[b]; j++)
                    assert_int_equal(((const int32_t *)batch->column[1])[i * longest[b] + j], j <= at % 5 ? at : -1);
        }
        assert_null(next(iterator));
        check_shape(iterator, 1, 0, 0, 0);
        plim_iterator_close(iterator);
        plim_dataset_unref(dataset);
        plim_budget_free(budget);
    }
}

/* Rows that are cells, elements one by one, and shapes that never change. */
static void other_batches_tell_theirs(void **unused)
{
    static const float x[5][3] = {{0}};
    const plim_tensor tensor = {"x", PLIM_FLOAT32, 2, {5, 3}, x};
    struct lists lists = {0};
    plim_iterator_state state;
    (void)unused;
    plim_budget *budget = budget_of(8 * MIB);
    plim_dataset *dataset = plim_dataset_batch(lists_of(budget, &lists), 4, false);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    plim_iterator_state_take(&state, iterator);
    assert_int_equal(((const plim_cell *)next(iterator)->column[1])[3].dim[0], 4);
    check_shape(iterator, 1, 2, 4, -1);
    assert_int_equal(plim_iterator_restore(iterator, &state, NULL), PLIM_OK);
    check_shape(iterator, 1, 0, 0, 0); /* the batch is no longer there */
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    dataset = plim_dataset_from_tensor_slices(budget, &tensor, 1);
    iterator = opened(dataset, budget, NULL);
    next(iterator);
    check_shape(iterator, 0, 2, 1, 3);
    plim_iterator_close(iterator);
    dataset = plim_dataset_batch(dataset, 4, false);
    iterator = opened(dataset, budget, NULL);
    next(iterator);
    check_shape(iterator, 0, 2, 4, 3);
    next(iterator);
    check_shape(iterator, 0, 2, 1, 3);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

/* ---- places ---- */

static plim_dataset *shuffled(plim_budget *budget, int64_t batch)
{
    return plim_dataset_prefetch(
        plim_dataset_batch(plim_dataset_shuffle(plim_dataset_range(budget, N), 3), batch, false), PLIM_AUTO);
}

static int64_t collect(int64_t *out, plim_iterator *iterator, int batches)
{
    int64_t count = 0;
    for (int b = 0; b != batches; b++) {
        const plim_batch *batch = next(iterator);
        if (!batch)
            break;
        memcpy(out + count, batch->column[0], (size_t)batch->count * sizeof *out);
        count += batch->count;
    }
    return count;
}

/* Stopped after any batch, gone on with other batches and threads: the same order. */
static void states_go_on(void **unused)
{
    static int64_t whole[N], parts[2 * N];
    (void)unused;
    plim_budget *budget = budget_of(8 * MIB);
    plim_dataset *dataset = shuffled(budget, 32), *others = shuffled(budget, 7);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    assert_int_equal(collect(whole, iterator, -1), N);
    plim_iterator_close(iterator);
    assert_true(sizeof(plim_iterator_state) < 1024);
    for (int batches = 0; batches <= 32; batches++) {
        plim_iterator_state state;
        iterator = opened(dataset, budget, &(plim_iterator_options){.threads = 1});
        int64_t count = collect(parts, iterator, batches);
        plim_iterator_state_take(&state, iterator);
        plim_iterator_close(iterator);
        assert_int_equal(state.epoch, 0);
        iterator = opened(others, budget, &(plim_iterator_options){.threads = batches % 2, .state = &state});
        count += collect(parts + count, iterator, 3);
        plim_iterator_state_take(&state, iterator);
        plim_iterator_close(iterator);
        iterator = opened(dataset, budget, &(plim_iterator_options){.state = &state});
        if (state.epoch == 0)
            count += collect(parts + count, iterator, -1);
        assert_int_equal(count, N);
        assert_memory_equal(parts, whole, sizeof whole);
        plim_iterator_close(iterator);
    }
    plim_dataset_unref(dataset);
    plim_dataset_unref(others);
    plim_budget_free(budget);
}

/* The same one by one. */
static void states_of_elements_go_on(void **unused)
{
    static int64_t whole[N], parts[2 * N];
    (void)unused;
    plim_budget *budget = budget_of(8 * MIB);
    plim_dataset *dataset = plim_dataset_shuffle(plim_dataset_range(budget, N), 5);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    assert_int_equal(collect(whole, iterator, -1), N);
    plim_iterator_close(iterator);
    for (int given = 0; given <= N; given += 71) {
        plim_iterator_state state;
        iterator = opened(dataset, budget, NULL);
        int64_t count = collect(parts, iterator, given);
        plim_iterator_state_take(&state, iterator);
        assert_int_equal(state.samples, given);
        plim_iterator_close(iterator);
        iterator = opened(dataset, budget, &(plim_iterator_options){.state = &state});
        count += collect(parts + count, iterator, 5);
        plim_iterator_state_take(&state, iterator);
        plim_error error = {0};
        assert_int_equal(plim_iterator_restore(iterator, &state, &error), PLIM_OK);
        count += collect(parts + count, iterator, -1);
        assert_int_equal(count, N);
        assert_memory_equal(parts, whole, sizeof whole);
        plim_iterator_close(iterator);
    }
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

static plim_dataset *shard_of(plim_budget *budget, int64_t shards, int64_t index, int64_t batch)
{
    plim_dataset *dataset = plim_dataset_shard(plim_dataset_shuffle(plim_dataset_range(budget, N), 9), shards, index);
    return plim_dataset_batch(dataset, batch, false);
}

/* All shards give `batches` batches from a state, or (-1) the rest; marks what came. */
static plim_iterator_state run_shards(plim_budget *budget, int *seen, int64_t shards, int64_t batch, int batches,
                                      const plim_iterator_state *state)
{
    static int64_t given[N];
    plim_iterator_state first = {0}, next_state;
    for (int64_t k = 0; k < shards; k++) {
        plim_dataset *dataset = shard_of(budget, shards, k, batch);
        plim_iterator *iterator = opened(dataset, budget, &(plim_iterator_options){.state = state});
        int64_t count = collect(given, iterator, batches);
        for (int64_t i = 0; i < count; i++)
            seen[given[i]]++;
        plim_iterator_state_take(&next_state, iterator);
        if (k && batches >= 0)
            assert_memory_equal(&next_state, &first, sizeof first); /* any of them tells for all */
        first = k ? first : next_state;
        plim_iterator_close(iterator);
        plim_dataset_unref(dataset);
    }
    return first;
}

/* Stopped together, gone on with other numbers of shards: every element once. */
static void shards_may_change(void **unused)
{
    (void)unused;
    static const int64_t numbers[] = {1, 2, 3, 4, 7};
    plim_budget *budget = budget_of(8 * MIB);
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) {
            static int seen[N];
            memset(seen, 0, sizeof seen);
            plim_iterator_state state = run_shards(budget, seen, numbers[a], 16, 2, NULL);
            assert_int_equal(state.samples, 32 * numbers[a]);
            state = run_shards(budget, seen, numbers[b], 5, 3, &state);
            state = run_shards(budget, seen, numbers[a], 8, 1, &state);
            run_shards(budget, seen, numbers[b], 16, -1, &state);
            for (int i = 0; i < N; i++)
                assert_int_equal(seen[i], 1);
        }
    plim_budget_free(budget);
}

/* ---- stages ---- */

static plim_status is_even(bool *keep, void *context, const plim_chunk *chunk, plim_error *error)
{
    (void)error;
    for (int64_t i = 0; i < chunk->count; i++) {
        int64_t x =
            *(const int64_t *)(const void *)((const char *)chunk->from[0] + (uint64_t)i * chunk->from_stride[0]);
        keep[i] = x % *(const int64_t *)context == 0;
    }
    return PLIM_OK;
}

static plim_dataset *count_to(void *context, const plim_chunk *element, plim_budget *budget)
{
    (void)context;
    return plim_dataset_range(budget, *(const int64_t *)element->from[0] + 1);
}

/* The one int64 column of every batch, in order. */
static int64_t values(int64_t *out, plim_dataset *dataset, plim_budget *budget)
{
    plim_iterator *iterator = opened(dataset, budget, NULL);
    int64_t count = collect(out, iterator, -1);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    return count;
}

static void stages_chain(void **unused)
{
    (void)unused;
    static const plim_column column = {.name = "x", .type = PLIM_INT64};
    static const int64_t flat[] = {0, 0, 1, 0, 1, 2}, turns[] = {0, 0, 0, 1, 1, 2};
    int64_t out[N], two = 2;
    plim_budget *budget = budget_of(16 * MIB);
    uint64_t before = held(budget);
    assert_int_equal(values(out, plim_dataset_filter(plim_dataset_range(budget, 10), is_even, &two), budget), 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(out[i], 2 * i);
    assert_int_equal(values(out, plim_dataset_filter_expression(plim_dataset_range(budget, 10), "x > 6"), budget), 3);
    assert_int_equal(values(out, plim_dataset_take_while_expression(plim_dataset_range(budget, 10), "x < 4"), budget),
                     4);
    plim_dataset *pair[] = {plim_dataset_range(budget, 3), plim_dataset_range(budget, 2)};
    assert_int_equal(values(out, plim_dataset_concatenate(pair, 2), budget), 5);
    assert_int_equal(out[3], 0);
    plim_interleave inner = {
        .make = count_to, .columns = &column, .column_count = 1, .reserve_bytes = MIB, .cycle_length = 1};
    assert_int_equal(values(out, plim_dataset_flat_map(plim_dataset_range(budget, 3), &inner), budget), 6);
    assert_memory_equal(out, flat, sizeof flat);
    inner.cycle_length = 3;
    assert_int_equal(values(out, plim_dataset_interleave(plim_dataset_range(budget, 3), &inner), budget), 6);
    assert_memory_equal(out, turns, sizeof turns);
    assert_int_equal(values(out, plim_dataset_window(plim_dataset_range(budget, 10), 3, 2, 1, true), budget), 12);
    assert_int_equal(out[3], 2);
    assert_int_equal(values(out, plim_dataset_shuffle_buffer(plim_dataset_range(budget, 100), 10, 1), budget), 100);
    plim_dataset *shared = plim_dataset_range(budget, 4), *same[] = {shared, plim_dataset_ref(shared)};
    plim_dataset *zipped = plim_dataset_zip(same, 2);
    plim_column columns[PLIM_MOST_COLUMNS];
    assert_int_equal(plim_dataset_spec(columns, zipped), 2);
    plim_dataset_unref(zipped);
    free_budget(budget, before);
}

static plim_status add_up(void *context, void *state, void *const *from, void *const *to, plim_error *error)
{
    (void)context, (void)error;
    *(int64_t *)state += *(const int64_t *)from[0];
    *(int64_t *)to[0] = *(const int64_t *)state;
    return PLIM_OK;
}

static plim_status count_samples(void *state, const plim_batch *batch, plim_error *error)
{
    (void)error;
    *(int64_t *)state += batch->count;
    return PLIM_OK;
}

static void states_of_the_caller(void **unused)
{
    (void)unused;
    int64_t out[N], ten = 10, count = 0;
    plim_error error = {0};
    plim_budget *budget = budget_of(16 * MIB);
    uint64_t before = held(budget);
    const plim_scan sums = {.state = &ten, .state_bytes = sizeof ten, .run = add_up};
    assert_int_equal(values(out, plim_dataset_scan(plim_dataset_range(budget, 5), &sums), budget), 5);
    assert_int_equal(out[4], 20);
    plim_dataset *dataset = plim_dataset_batch(plim_dataset_range(budget, 100), 7, false);
    assert_int_equal(plim_dataset_reduce(&count, dataset, budget, count_samples, &error), PLIM_OK);
    assert_int_equal(count, 100);
    plim_dataset_unref(dataset);
    assert_int_equal(values(out, plim_dataset_cache(plim_dataset_range(budget, 50), 0, NULL), budget), 50);
    free_budget(budget, before);
}

static void a_saved_one_is_read_again(void **unused)
{
    (void)unused;
    char folder[] = "plim_saved_XXXXXX", text[128], file[64];
    int64_t out[N];
    plim_error error = {0};
    assert_non_null(mkdtemp(folder));
    plim_budget *budget = budget_of(16 * MIB);
    plim_dataset *dataset = plim_dataset_skip(plim_dataset_range(budget, 100), 40);
    assert_int_equal(plim_dataset_save(dataset, folder, budget, &error), PLIM_OK);
    plim_dataset_unref(dataset);
    snprintf(text, sizeof text, "{snapshot: %s}", folder);
    assert_int_equal(values(out, plim_dataset_read(budget, text, 0), budget), 60);
    assert_int_equal(out[59], 99);
    plim_budget_free(budget);
    snprintf(file, sizeof file, "%s/snapshot", folder);
    assert_int_equal(remove(file), 0);
    assert_int_equal(remove(folder), 0);
}

static void words_of_job_files_work(void **unused)
{
    (void)unused;
    plim_error error = {0};
    plim_budget *budget = budget_of(16 * MIB);
    uint64_t before = held(budget);
    plim_dataset *dataset = plim_dataset_read(budget, "{range: 100, pipeline: [take: 50]}", 0);
    dataset = plim_dataset_stage(plim_dataset_stage(dataset, "map: [cast: float32]", 0), "batch: 8", 0);
    plim_iterator *iterator = opened(dataset, budget, NULL);
    const plim_batch *batch = next(iterator);
    assert_int_equal(batch->count, 8);
    assert_true(((const float *)batch->column[0])[7] == 7.0f);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    dataset = plim_dataset_stage(plim_dataset_range(budget, 5), "bacth: 8", 0);
    assert_int_equal(plim_dataset_check(dataset, &error), PLIM_BAD_JOB);
    assert_non_null(strstr(error.hint, "batch"));
    plim_dataset_unref(dataset);
    dataset = plim_dataset_read(budget, "{rnage: 100}", 0);
    assert_int_equal(plim_dataset_check(dataset, &error), PLIM_BAD_JOB);
    assert_non_null(strstr(error.hint, "range"));
    plim_dataset_unref(dataset);
    dataset = plim_dataset_read(budget, "{range: [", 0);
    assert_int_equal(plim_dataset_check(dataset, &error), PLIM_BAD_JOB);
    plim_dataset_unref(dataset);
    free_budget(budget, before);
}

static void a_state_of_another_pipeline_is_refused(void **unused)
{
    (void)unused;
    plim_budget *budget = budget_of(8 * MIB);
    plim_error error = {0};
    plim_iterator_state state, wrong;
    plim_dataset *dataset = shuffled(budget, 32), *other = plim_dataset_batch(plim_dataset_range(budget, N), 32, false);
    plim_iterator *iterator = opened(dataset, budget, NULL), *another = opened(other, budget, NULL);
    plim_iterator_state_take(&state, iterator);
    assert_int_equal(plim_iterator_restore(another, &state, &error), PLIM_BAD_DATA);
    wrong = state;
    wrong.samples = -1;
    assert_int_equal(plim_iterator_restore(iterator, &wrong, &error), PLIM_BAD_DATA);
    assert_int_equal(plim_iterator_restore(iterator, &state, &error), PLIM_OK);
    plim_iterator_close(another);
    plim_iterator_close(iterator);
    plim_dataset_unref(other);
    plim_dataset_unref(dataset);
    plim_budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_become_slices),
        cmocka_unit_test(tensors_are_one_element),
        cmocka_unit_test(strings_are_rows),
        cmocka_unit_test(generators_are_called),
        cmocka_unit_test(a_generator_that_fails_is_told),
        cmocka_unit_test(maps_call_back),
        cmocka_unit_test(maps_make_strings),
        cmocka_unit_test(errors_are_carried),
        cmocka_unit_test(budgets_hold),
        cmocka_unit_test(blocks_are_held_where_there_is_room),
        cmocka_unit_test(a_budget_waits),
        cmocka_unit_test(padded_batches_tell_their_shape),
        cmocka_unit_test(other_batches_tell_theirs),
        cmocka_unit_test(states_go_on),
        cmocka_unit_test(states_of_elements_go_on),
        cmocka_unit_test(shards_may_change),
        cmocka_unit_test(stages_chain),
        cmocka_unit_test(states_of_the_caller),
        cmocka_unit_test(a_saved_one_is_read_again),
        cmocka_unit_test(words_of_job_files_work),
        cmocka_unit_test(a_state_of_another_pipeline_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
