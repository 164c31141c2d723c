/* test_streams.c - data without an index: elements one after another, with strings and values of any extent. */
#include "made_source.h"

#include "pipeline/core/chunk.h"

/* ---- a stream of our own: id int64, name string, list float32 (-1) ---- */

struct told_options {
    int64_t count;
    int64_t bad;   /* PLIM_BAD_DATA here; -1: none */
    bool skips;    /* the reader can pass over elements */
    bool borrows;  /* strings lie in the reader's own memory */
    uint64_t room; /* 0: 8 KiB */
};

struct told {
    struct source base;
    struct told_options options;
};

struct reader {
    struct told *told;
    int64_t at;
    char name[32][32];
};

static uint64_t name_of(char out[32], int64_t id)
{
    return (uint64_t)snprintf(out, 32, "%.*s%lld", (int)(id % 11), "abcdefghijkl", (long long)id);
}

static plim_status told_open(struct reader **out, struct source *source, struct budget *budget, plim_error *error)
{
    struct reader *reader = budget_take(budget, TAG_FORMATS, sizeof *reader);
    if (!reader)
        return budget_refused(budget, TAG_FORMATS, sizeof *reader, error);
    reader->told = (struct told *)source;
    *out = reader;
    return PLIM_OK;
}

static void told_close(struct reader *reader)
{
    budget_give(reader->told->base.budget, TAG_FORMATS, reader, sizeof *reader);
}

static plim_status told_rewind(struct reader *reader, uint64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    reader->at = 0;
    return PLIM_OK;
}

static bool told_row(struct reader *reader, int64_t row, const struct row_target *target)
{
    int64_t id = reader->at, length = id % 7;
    char *name = reader->name[row];
    struct string string = {.bytes = name_of(name, id)};
    string.data = reader->told->options.borrows ? (void *)name : value_buffer_take_bytes(target->values, string.bytes);
    struct cell cell = {.data = value_buffer_take(target->values, (uint64_t)length * sizeof(float)), .dim = {length}};
    if (!string.data || !cell.data)
        return false;
    if (!reader->told->options.borrows)
        memcpy((void *)(uintptr_t)string.data, name, string.bytes);
    for (int64_t i = 0; i < length; i++)
        ((float *)cell.data)[i] = (float)(id * 10 + i);
    memcpy((char *)target->to[0] + (uint64_t)row * target->stride[0], &id, sizeof id);
    memcpy((char *)target->to[1] + (uint64_t)row * target->stride[1], &string, sizeof string);
    memcpy((char *)target->to[2] + (uint64_t)row * target->stride[2], &cell, sizeof cell);
    return true;
}

static plim_status told_next(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                             plim_error *error)
{
    const struct told_options *options = &reader->told->options;
    for (*got = 0; *got < most && *got < 32 && reader->at < options->count; reader->at++, (*got)++) {
        if (reader->at == options->bad && *got)
            return PLIM_OK;
        if (reader->at == options->bad) {
            reader->at++;
            return fail_at(error, PLIM_BAD_DATA, "told", "element %lld is bad", (long long)options->bad);
        }
        if (!told_row(reader, *got, target))
            return PLIM_OK;
    }
    return PLIM_OK;
}

static plim_status told_skip(int64_t *passed, struct reader *reader, int64_t count, plim_error *error)
{
    int64_t left = reader->told->options.count - reader->at;
    (void)error;
    *passed = count < left ? count : left;
    reader->at += *passed;
    return PLIM_OK;
}

static void told_free(struct source *source)
{
    budget_give(source->budget, TAG_FORMATS, source, sizeof(struct told));
}

#define TOLD_FUNCTIONS                                                                                                 \
    .name = "told", .reader_open = told_open, .reader_close = told_close, .reader_rewind = told_rewind,                \
    .reader_next = told_next, .close = told_free
static const struct source_type told_type = {TOLD_FUNCTIONS};
static const struct source_type told_skipping = {TOLD_FUNCTIONS, .reader_skip = told_skip};

static struct dataset *told_dataset(struct budget *budget, const struct told_options *options)
{
    struct told *told = budget_take(budget, TAG_FORMATS, sizeof *told);
    assert_non_null(told);
    told->options = *options;
    told->base = (struct source){
        .type = options->skips ? &told_skipping : &told_type,
        .budget = budget,
        .count = CARDINALITY_UNKNOWN,
        .value_bytes = options->room ? options->room : 8192,
        .reader_bytes = budget_charge(sizeof(struct reader)),
        .spec = {.column_count = 3,
                 .element_bytes = 8 + sizeof(struct string) + sizeof(struct cell),
                 .column = {{"id", TYPE_I64, {0, {0}}, 8, 0},
                            {"name", TYPE_STRING, {0, {0}}, sizeof(struct string), 1},
                            {"list", TYPE_F32, {1, {-1}}, sizeof(struct cell), 2}}},
    };
    return dataset_from_source(&told->base);
}

static struct dataset *told(struct budget *budget, int64_t count)
{
    return told_dataset(budget, &(struct told_options){.count = count, .bad = -1, .skips = true});
}

/* ---- looking at batches ---- */

static void check_row(const struct batch *batch, int64_t row, int64_t id)
{
    char name[32];
    uint64_t bytes = name_of(name, id);
    struct string string = ((struct string *)batch->column[1])[row];
    struct cell cell = ((struct cell *)batch->column[2])[row];
    assert_int_equal(((int64_t *)batch->column[0])[row], id);
    assert_int_equal(string.bytes, bytes);
    assert_memory_equal(string.data, name, bytes);
    assert_int_equal(cell.dim[0], id % 7);
    for (int64_t i = 0; i < cell.dim[0]; i++)
        assert_true(((float *)cell.data)[i] == (float)(id * 10 + i));
}

static struct iterator *open_with(struct dataset *dataset, struct budget *budget, struct grant grant, int64_t epoch,
                                  int64_t step)
{
    struct iterator *iterator;
    plim_error error = {0};
    if (iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, grant,
                      &(struct batch_place){epoch, step}, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    return iterator;
}

/* One epoch from `step` on: ids first, first + 1, ... up to end, in batches of `size`. */
static void check_epoch(struct iterator *iterator, int64_t first, int64_t end, int64_t size)
{
    struct batch *batch;
    plim_error error = {0};
    for (int64_t id = first; id < end;) {
        if (iterator_next(&batch, iterator, &error) != PLIM_OK)
            fail_msg("%s", error.message);
        assert_non_null(batch);
        assert_int_equal(batch->count, end - id < size ? end - id : size);
        for (int64_t i = 0; i < batch->count; i++, id++)
            check_row(batch, i, id);
    }
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
    assert_null(batch);
}

/* ---- tests ---- */

static void each_once_with_any_grant(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    for (int borrows = 0; borrows < 2; borrows++) {
        struct told_options options = {.count = 205, .bad = -1, .borrows = borrows};
        struct dataset *dataset = dataset_batch(told_dataset(budget, &options), 16, false);
        for (int slots = 1; slots < 5; slots++)
            for (int workers = 0; workers < 4; workers++) {
                struct grant grant = {.slots = slots, .workers = workers};
                struct iterator *iterator = open_with(dataset, budget, grant, 0, 0);
                uint64_t takes = budget_usage(budget).takes;
                for (int epoch = 0; epoch < 3; epoch++)
                    check_epoch(iterator, 0, 205, 16);
                assert_int_equal(budget_usage(budget).takes, takes);
                iterator_close(iterator);
            }
        dataset_unref(dataset);
    }
    close_budget(budget);
}

static void takes_what_it_says(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset = dataset_prefetch(dataset_batch(dataset_take(told(budget, 90), 77), 8, false), 2);
    for (int workers = 0; workers < 3; workers++) {
        struct grant grant = {.slots = 3, .workers = workers};
        uint64_t cost[TAG_COUNT] = {0};
        struct budget_usage before = budget_usage(budget);
        dataset_cost(cost, NULL, dataset, grant);
        struct iterator *iterator = open_with(dataset, budget, grant, 0, 0);
        check_epoch(iterator, 0, 77, 8);
        struct budget_usage after = budget_usage(budget);
        for (int tag = 0; tag < TAG_COUNT; tag++)
            assert_int_equal(after.now_by_tag[tag] - before.now_by_tag[tag], cost[tag]);
        iterator_close(iterator);
    }
    dataset_unref(dataset);
    close_budget(budget);
}

static void resumes_anywhere(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    for (int skips = 0; skips < 2; skips++) {
        struct told_options options = {.count = 100, .bad = -1, .skips = skips};
        struct dataset *dataset = dataset_batch(dataset_skip(told_dataset(budget, &options), 3), 10, false);
        for (int64_t step = 0; step <= 10; step++) {
            struct iterator *iterator = open_with(dataset, budget, GRANT(1 + (int)step % 3), 1, step);
            check_epoch(iterator, 3 + step * 10, 100, 10);
            assert_int_equal(iterator_seek(iterator, 0, 10 - step, NULL), PLIM_OK);
            check_epoch(iterator, 3 + (10 - step) * 10, 100, 10);
            check_epoch(iterator, 3, 100, 10);
            iterator_close(iterator);
        }
        dataset_unref(dataset);
    }
    close_budget(budget);
}

/* Errors stand where their element does; the good ones before it are given. */
static void a_bad_element_in_its_place(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct told_options options = {.count = 100, .bad = 42};
    struct dataset *dataset = dataset_batch(told_dataset(budget, &options), 8, false);
    for (int workers = 0; workers < 3; workers++) {
        struct iterator *iterator = open_with(dataset, budget, (struct grant){.slots = 4, .workers = workers}, 0, 0);
        for (int round = 0; round < 2; round++) {
            struct batch *batch;
            plim_error error = {0};
            for (int i = 0; i < 5; i++)
                assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
            assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA);
            assert_string_equal(error.where, "told");
            assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA);
            assert_int_equal(iterator_seek(iterator, 0, 0, NULL), PLIM_OK);
        }
        iterator_close(iterator);
    }
    dataset_unref(dataset);
    close_budget(budget);
}

static void too_large_for_its_room(void **state)
{
    struct budget *budget = open_budget();
    struct batch *batch;
    plim_error error = {0};
    (void)state;
    struct dataset *dataset = told(budget, 100);
    dataset_set_value_bytes(dataset, 64);
    dataset = dataset_batch(dataset, 4, false);
    struct iterator *iterator = open_with(dataset, budget, GRANT(1), 0, 0);
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "room"));
    assert_non_null(strstr(error.hint, "largest_element"));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- what rows refer to, and the rooms it has to fit ---- */

static plim_status dawdle_infer(struct spec *spec, const void *options, plim_error *error)
{
    (void)spec, (void)options, (void)error;
    return PLIM_OK;
}

/* Meanwhile another worker pulls. */
static plim_status dawdle_run(const struct map_call *call, plim_error *error)
{
    (void)call, (void)error;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    return PLIM_OK;
}

static const struct map_function map_dawdle = {
    .name = "dawdle", .infer = dawdle_infer, .run = dawdle_run, .heavy = true};

/* Cells fill a flow's room but for a rest that is too small for the strings: a part that cannot be kept is finished by
   who pulled it, before the reader's memory changes. */
static void borrowed_values_beyond_the_room(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset =
        told_dataset(budget, &(struct told_options){.count = 500, .bad = -1, .borrows = true, .room = 640});
    dataset = dataset_batch(dataset_map(dataset, &map_dawdle, NULL), 32, false);
    for (int workers = 0; workers <= 3; workers++)
        for (int slots = 1; slots <= 4; slots += 3) {
            struct grant grant = {.slots = slots, .workers = workers};
            struct iterator *iterator = open_with(dataset, budget, grant, 0, 0);
            check_epoch(iterator, 0, 500, 32);
            check_epoch(iterator, 0, 500, 32);
            iterator_close(iterator);
        }
    dataset_unref(dataset);
    close_budget(budget);
}

#define EXACT_ROWS 28

/* What the values of a batch take, side by side. */
static uint64_t exact_bytes(void)
{
    char name[32];
    uint64_t bytes = 0;
    for (int64_t id = 0; id < EXACT_ROWS; id++)
        bytes += name_of(name, id) + (uint64_t)(id % 7) * sizeof(float);
    return bytes;
}

/* Gaps between values are not the user's: a batch whose values fill the stated room to the last 64 bytes is there with
   any number of workers, in whatever order they finish rows, and one that needs more is refused with any number. */
static void gaps_are_not_charged(void **state)
{
    uint64_t room = (exact_bytes() + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
    (void)state;
    for (int workers = 0; workers <= 3; workers++)
        for (int borrows = 0; borrows < 2; borrows++)
            for (int less = 0; less < 2; less++) {
                struct budget *budget = open_budget();
                struct batch *batch;
                struct told_options options = {.count = EXACT_ROWS, .bad = -1, .borrows = borrows};
                struct dataset *dataset = told_dataset(budget, &options);
                dataset_set_value_bytes(dataset, room - (less ? VALUE_ALIGNMENT : 0));
                dataset = dataset_batch(dataset, EXACT_ROWS, false);
                struct grant grant = {.slots = 2, .workers = workers};
                struct iterator *iterator = open_with(dataset, budget, grant, 0, 0);
                if (less)
                    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OVER_BUDGET);
                else
                    check_epoch(iterator, 0, EXACT_ROWS, EXACT_ROWS);
                iterator_close(iterator);
                dataset_unref(dataset);
                close_budget(budget);
            }
}

/* A chunk of one column of lists of strings, `rows` of them, each of two: "row0", "row1", "tail". */
struct lists {
    uint8_t block[4096] __attribute__((aligned(VALUE_ALIGNMENT)));
    struct spec spec;
    struct chunk chunk;
    struct string strings[4][2];
};

static void make_lists(struct lists *lists, int64_t rows, uint64_t room)
{
    static const char *const words[] = {"row0", "row1", "row2", "row3"};
    *lists = (struct lists){.spec = {.column_count = 1, .column = {{.name = "x", .type = TYPE_STRING}}}};
    lists->spec.column[0].shape = shape_of(1, (int64_t[]){-1});
    lists->spec.column[0].bytes = lists->spec.element_bytes = sizeof(struct cell);
    assert_true(chunk_bytes(&lists->spec, rows, room) <= sizeof lists->block);
    chunk_lay(&lists->chunk, lists->block, &lists->spec, rows, room);
    for (int64_t row = 0; row < rows; row++) {
        lists->strings[row][0] = (struct string){(const uint8_t *)words[row], 4};
        lists->strings[row][1] = (struct string){(const uint8_t *)"tail", 4};
        struct cell cell = {.data = lists->strings[row], .dim = {2}};
        memcpy(chunk_row(&lists->chunk, 0, row), &cell, sizeof cell);
    }
    lists->chunk.count = rows;
}

static bool is_inside(const struct chunk *chunk, const void *data)
{
    return (const uint8_t *)data >= chunk->values.bytes &&
           (const uint8_t *)data < chunk->values.bytes + chunk->values.capacity;
}

static void check_list(const struct chunk *chunk, int64_t row, bool owned)
{
    char expected[8];
    struct cell cell;
    snprintf(expected, sizeof expected, "row%lld", (long long)row);
    memcpy(&cell, chunk_row(chunk, 0, row), sizeof cell);
    const struct string *strings = cell.data;
    assert_int_equal(is_inside(chunk, strings), owned);
    assert_int_equal(is_inside(chunk, strings[0].data), owned);
    assert_int_equal(is_inside(chunk, strings[1].data), owned);
    assert_memory_equal(strings[0].data, expected, 4);
    assert_memory_equal(strings[1].data, "tail", 4);
}

/* A list takes 32 bytes and 8 of text behind them; the next one begins at a multiple of 64. */
static void rows_are_owned_whole_or_not_at_all(void **state)
{
    static struct lists lists;
    (void)state;
    for (int64_t fit = 0; fit <= 4; fit++) {
        make_lists(&lists, 4, (uint64_t)fit * 64);
        assert_int_equal(chunk_own(&lists.chunk), fit == 4);
        for (int64_t row = 0; row < 4; row++)
            check_list(&lists.chunk, row, row < fit);
        assert_int_equal(lists.chunk.values.used, fit ? (uint64_t)(fit - 1) * 64 + 40 : 0);
        assert_int_equal(lists.chunk.values.wanted, fit == 4 ? 0 : (uint64_t)fit * 64 + 40);
        uint64_t used = lists.chunk.values.used;
        assert_int_equal(chunk_own(&lists.chunk), fit == 4); /* what is there is not copied again */
        assert_int_equal(lists.chunk.values.used, used);
    }
    /* A cell that lies in the room, and strings that do not. */
    make_lists(&lists, 1, 256);
    struct cell *cell = (struct cell *)(void *)chunk_row(&lists.chunk, 0, 0);
    cell->data = memcpy(value_buffer_take(&lists.chunk.values, 32), cell->data, 32);
    assert_true(chunk_own(&lists.chunk));
    check_list(&lists.chunk, 0, true);
}

/* ---- stages behind batch: whole batches are their elements ---- */

static void repeats_whole_batches(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    (void)state;
    struct dataset *dataset = dataset_repeat(dataset_batch(counting(budget, 10), 4, false), 3);
    assert_int_equal(dataset_batch_size(dataset), 4);
    assert_int_equal(dataset_steps(dataset, NULL), 9);
    for (int slots = 1; slots < 4; slots++) {
        struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
        struct batch *batch;
        for (int i = 0; i < 9; i++) {
            assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
            assert_int_equal(batch->count, i % 3 == 2 ? 2 : 4);
            assert_int_equal(((int64_t *)batch->column[2])[0], i % 3 * 4);
        }
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        assert_null(batch);
        assert_int_equal(collect(ids, iterator), 30);
        assert_int_equal(iterator_seek(iterator, 0, 5, NULL), PLIM_OK);
        assert_int_equal(collect(ids, iterator), 2 + 10 + 0 * slots);
        assert_int_equal(ids[0], 8);
        iterator_close(iterator);
    }
    struct spec sample;
    dataset_sample_spec(&sample, dataset);
    assert_int_equal(sample.column[0].shape.rank, 3);
    assert_int_equal(sample.column[0].shape.dim[1], 3);
    dataset_unref(dataset);
    close_budget(budget);
}

static void takes_and_maps_whole_batches(void **state)
{
    struct budget *budget = open_budget();
    struct batch *batch;
    (void)state;
    struct dataset *dataset = dataset_take(dataset_skip(dataset_batch(counting(budget, 100), 8, true), 2), 3);
    dataset = dataset_map(dataset, &map_cast, &(struct cast_options){.column = "y", .type = TYPE_F32});
    assert_int_equal(dataset_steps(dataset, NULL), 3);
    struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        assert_int_equal(batch->count, 8);
        for (int r = 0; r < 8; r++) {
            assert_int_equal(((int64_t *)batch->column[2])[r], (i + 2) * 8 + r);
            assert_true(((float *)batch->column[1])[r] == (float)(((i + 2) * 8 + r) % 10));
        }
    }
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_null(batch);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static void elements_without_a_batch(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset = told(budget, 9);
    struct iterator *iterator = open_with(dataset, budget, GRANT(3), 0, 0);
    check_epoch(iterator, 0, 9, 1);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_once_with_any_grant), cmocka_unit_test(takes_what_it_says),
        cmocka_unit_test(resumes_anywhere),         cmocka_unit_test(a_bad_element_in_its_place),
        cmocka_unit_test(too_large_for_its_room),   cmocka_unit_test(borrowed_values_beyond_the_room),
        cmocka_unit_test(gaps_are_not_charged),     cmocka_unit_test(rows_are_owned_whole_or_not_at_all),
        cmocka_unit_test(repeats_whole_batches),    cmocka_unit_test(takes_and_maps_whole_batches),
        cmocka_unit_test(elements_without_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
