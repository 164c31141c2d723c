/* test_stage_select.c - shard, filter, take_while, enumerate, unique, ignore_errors, assert_cardinality. */
#include "stage_checks.h"

#include "base/numbers/count.h"
#include "pipeline/core/chunk.h"

/* The numbers of a list, as column "i". */

static const int64_t digits[] = {3, 1, 3, 2, 1, 3, 7, 7, 2, 0, 5, 3};

static struct dataset *listed(struct budget *budget)
{
    static const struct spec spec = {
        .column_count = 1, .element_bytes = 8, .column = {{"i", TYPE_I64, {0, {0}}, 8, 0}}};
    const void *columns[1] = {digits};
    struct source *source;
    assert_int_equal(memory_open(&source, budget, &spec, columns, 12, NULL), PLIM_OK);
    return dataset_from_source(source);
}

/* The same elements without an index: those that no test leaves out. */
static plim_status all_pass(bool *keep, const struct chunk *chunk, void *context, plim_error *error)
{
    (void)context, (void)error;
    memset(keep, 1, (size_t)chunk->count);
    return PLIM_OK;
}

static struct dataset *streamed(struct dataset *dataset)
{
    return dataset_filter(dataset, all_pass, NULL);
}

/* ---- tf.data's own results ---- */

static void as_tf_data_gives_them(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    for (int indexed = 0; indexed < 2; indexed++) {
        struct dataset *(*range)(struct budget *, int64_t) = counting;
#define SOURCE(dataset)         (indexed ? (dataset) : streamed(dataset))
#define CHECK(name, from, text) check_golden(name, staged(SOURCE(from), budget, text), budget, "i")
        CHECK("shard_3_1", range(budget, 20), "[shard: {num_shards: 3, index: 1}]");
        CHECK("shard_20_19", range(budget, 20), "[shard: [20, 19]]");
        CHECK("shard_7_0_skip_1", range(budget, 20), "[shard: [7, 0], skip: 1]");
        CHECK("filter_multiples_of_3", range(budget, 20), "[filter: \"i % 3 == 0\"]");
        CHECK("filter_none", range(budget, 20), "[filter: \"i < 0\"]");
        CHECK("take_while_below_7", range(budget, 20), "[take_while: \"i < 7\"]");
        CHECK("take_while_odd_digits", listed(budget), "[take_while: \"i % 2 == 1\"]");
        CHECK("unique", listed(budget), "[unique]");
        CHECK("filter_after_shard", range(budget, 20), "[shard: [2, 1], filter: \"i > 9\"]");
        CHECK("assert_cardinality", range(budget, 20), "[filter: \"i > 16\", assert_cardinality: 3]");
    }
    struct dataset *dataset = staged(counting(budget, 20), budget, "[skip: 17, enumerate: 5, batch: 2]");
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    int64_t expected[MOST], count = golden_list(expected, "enumerate_5"), at = 0;
    for (struct batch *batch; iterator_next(&batch, iterator, NULL) == PLIM_OK && batch;)
        for (int64_t i = 0; i < batch->count; i++)
            assert_int_equal(((int64_t *)batch->column[0])[i] * 100 + ((int64_t *)batch->column[3])[i], expected[at++]);
    assert_int_equal(at, count);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- every place of every stage ---- */

static void anywhere_and_at_their_cost(void **state)
{
    static const char *const texts[] = {
        "[shard: [3, 2], batch: 4]",
        "[filter: \"id % 3 != 1\"]",
        "[filter: \"len(text) > 40\", shard: [2, 0]]",
        "[take_while: \"id < 61\"]",
        "[enumerate, shard: [3, 0]]",
        "[enumerate: {start: 7, name: number}, unique: text]",
        "[unique: id, ignore_errors, take: 33]",
        "[repeat: 2, unique, skip: 5]",
        "[filter: \"id > 3\", repeat: 2, enumerate]",
        "[filter: \"id < 41\", assert_cardinality: 41]",
    };
    struct budget *budget = open_budget();
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        for (int indexed = i == 0; indexed < 2; indexed++) { /* texts cannot be batched as a stream of cells */
            struct dataset *dataset = i == 0 ? streamed(counting(budget, 80))
                                             : texts_open(budget, indexed ? &texts_indexed : &texts_stream, 80, -1);
            dataset = staged(dataset, budget, texts[i]);
            check_stage(dataset, budget, i == 0 ? "i" : "id");
            dataset_unref(dataset);
        }
    close_budget(budget);
}

static void shards_are_the_whole(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    (void)state;
    for (int64_t n = 0; n < 12; n++)
        for (int indexed = 0; indexed < 2; indexed++) {
            bool seen[12] = {false};
            int64_t all = 0;
            for (int64_t s = 0; s < 5; s++) {
                struct dataset *dataset = dataset_take(counting(budget, 12), n);
                dataset = dataset_shard(indexed ? dataset : streamed(dataset), 5, s);
                assert_true(dataset->indexed == indexed);
                if (indexed)
                    assert_int_equal(dataset_cardinality(dataset), (n - s + 4) / 5);
                if (dataset_cardinality(dataset) == 0) {
                    dataset_unref(dataset);
                    continue;
                }
                int64_t count = ids_of(ids, dataset, budget, "i", 0);
                for (int64_t i = 0; i < count; i++) {
                    assert_int_equal(ids[i] % 5, s);
                    assert_false(seen[ids[i]]);
                    seen[ids[i]] = true;
                }
                all += count;
            }
            assert_int_equal(all, n);
        }
    close_budget(budget);
}

/* ---- functions of the caller's ---- */

struct picky {
    int64_t calls, bad;
};

static plim_status even_test(bool *keep, const struct chunk *chunk, void *context, plim_error *error)
{
    struct picky *picky = context;
    int column = spec_find(chunk->spec, "i");
    for (int64_t row = 0; row < chunk->count; row++) {
        int64_t i;
        memcpy(&i, chunk_row(chunk, column, row), sizeof i);
        picky->calls++;
        if (i == picky->bad)
            return (fail)(error, PLIM_BAD_DATA, "%lld is no number for me", (long long)i);
        keep[row] = i % 2 == 0;
    }
    return PLIM_OK;
}

static void callbacks_choose_and_fail(void **state)
{
    struct budget *budget = open_budget();
    struct picky picky = {.bad = -1};
    int64_t ids[MOST];
    struct batch *batch;
    plim_error error = {0};
    (void)state;
    assert_int_equal(ids_of(ids, dataset_filter(counting(budget, 100), even_test, &picky), budget, "i", 0), 50);
    assert_int_equal(ids[49], 98);
    assert_int_equal(picky.calls, 100);
    assert_int_equal(ids_of(ids, dataset_take_while(counting(budget, 100), even_test, &picky), budget, "i", 0), 1);
    picky.bad = 40;
    struct dataset *dataset = dataset_filter(counting(budget, 100), even_test, &picky);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    plim_status status = PLIM_OK;
    while (status == PLIM_OK)
        status = iterator_next(&batch, iterator, &error);
    assert_int_equal(status, PLIM_BAD_DATA);
    assert_string_equal(error.message, "40 is no number for me");
    iterator_close(iterator);
    /* and where errors are passed over, it costs this one alone */
    dataset = dataset_ignore_errors(dataset, &(struct ignore_options){.limit = IGNORE_ALL});
    assert_int_equal(ids_of(ids, dataset, budget, "i", 0), 49);
    close_budget(budget);
}

/* ---- facts ---- */

static void cardinality_and_spec(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    static const struct {
        const char *text;
        int64_t cardinality;
        int columns;
    } facts[] = {
        {"[filter: \"i > 3\"]", CARDINALITY_UNKNOWN, 3},
        {"[take_while: \"i > 3\"]", CARDINALITY_UNKNOWN, 3},
        {"[enumerate]", 100, 4},
        {"[unique: y]", CARDINALITY_UNKNOWN, 3},
        {"[ignore_errors]", CARDINALITY_UNKNOWN, 3},
        {"[repeat, filter: \"i > 3\"]", CARDINALITY_INFINITE, 3},
        {"[repeat, take_while: \"i < 3\"]", CARDINALITY_UNKNOWN, 3},
        {"[shard: [3, 0]]", 34, 3},
        {"[repeat, shard: [3, 0]]", CARDINALITY_INFINITE, 3},
        {"[assert_cardinality: 100]", 100, 3},
        {"[ignore_errors, assert_cardinality: 90]", 90, 3},
        {"[shuffle: 9]", 100, 3},
    };
    for (size_t i = 0; i < COUNT(facts); i++) {
        struct dataset *dataset = staged(counting(budget, 100), budget, facts[i].text);
        assert_int_equal(dataset_cardinality(dataset), facts[i].cardinality);
        assert_int_equal(dataset_spec(dataset)->column_count, facts[i].columns);
        dataset_unref(dataset);
    }
    struct dataset *dataset = staged(counting(budget, 100), budget, "[enumerate: {name: n}]");
    assert_string_equal(dataset_spec(dataset)->column[0].name, "n");
    assert_int_equal(dataset_spec(dataset)->column[0].type, TYPE_I64);
    assert_int_equal(dataset_spec(dataset)->element_bytes, 23);
    dataset_unref(dataset);
    close_budget(budget);
}

static void wrong_words_are_refused(void **state)
{
    (void)state;
    stage_refused("[shard: {num_shards: 3}]", PLIM_BAD_JOB, "index", "num_shards: 4");
    stage_refused("[shard: [3, 3]]", PLIM_BAD_JOB, "from 0 to 2", "");
    stage_refused("[shard: [0, 0]]", PLIM_BAD_JOB, "at least 1", "");
    stage_refused("[shard: 3]", PLIM_BAD_JOB, "num_shards", "");
    stage_refused("[filter: \"i +\"]", PLIM_BAD_JOB, "", "");
    stage_refused("[filter: \"i + 1\"]", PLIM_BAD_JOB, "not true or false", "label < 5");
    stage_refused("[filter: \"image > 1\"]", PLIM_BAD_JOB, "not true or false", "");
    stage_refused("[filter: \"nothing > 1\"]", PLIM_BAD_JOB, "nothing", "");
    stage_refused("[filter: [1]]", PLIM_BAD_JOB, "expected a test", "");
    stage_refused("[take_while: 1]", PLIM_BAD_JOB, "not true or false", "take_while");
    stage_refused("[enumerate: {name: i}]", PLIM_BAD_JOB, "'i' already", "name");
    stage_refused("[unique: z]", PLIM_BAD_JOB, "'z'", "");
    stage_refused("[unique: {memory: lots}]", PLIM_BAD_JOB, "size", "16MiB");
    stage_refused("[ignore_errors: {most: 1, rate: 0.5}]", PLIM_BAD_JOB, "not both", "");
    stage_refused("[ignore_errors: {rate: 2}]", PLIM_BAD_JOB, "from 0 to 1", "");
    stage_refused("[assert_cardinality: 99]", PLIM_BAD_JOB, "100 elements, not 99", "");
}

/* ---- unique ---- */

static void unique_by_column_and_its_bound(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    struct batch *batch;
    plim_error error = {0};
    (void)state;
    assert_int_equal(ids_of(ids, dataset_unique(counting(budget, 1000), "y", 0), budget, "i", 0), 10);
    assert_int_equal(ids[9], 9);
    /* text_length takes 97 values; with the letter too, texts repeat after 97 * 26 */
    assert_int_equal(
        ids_of(ids, dataset_unique(texts_open(budget, &texts_stream, 3000, -1), "text", 0), budget, "id", 0),
        97 * 26 - 25); /* the empty text is the same in all letters */
    struct dataset *dataset = dataset_unique(dataset_repeat(counting(budget, 1000), -1), "i", 64 * 16);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    int64_t given = 0;
    plim_status status = PLIM_OK;
    for (; status == PLIM_OK; given++)
        status = iterator_next(&batch, iterator, &error);
    assert_int_equal(status, PLIM_OVER_BUDGET);
    assert_int_equal(given - 1, 0); /* all of a chunk */
    assert_non_null(strstr(error.message, "1.0 KiB"));
    assert_non_null(strstr(error.hint, "2.0 KiB"));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- ignore_errors ---- */

struct lines {
    int count;
    char last[512];
};

static void note_line(void *context, const char *line)
{
    struct lines *lines = context;
    lines->count++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

static plim_status run_out(struct iterator_figures *figures, int64_t *given, struct dataset *dataset,
                           struct budget *budget, plim_error *error)
{
    struct batch *batch;
    dataset = spec_has_values(dataset_spec(dataset)) ? dataset : dataset_batch(dataset, 1, false);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    plim_status status = PLIM_OK;
    for (*given = 0;; *given += batch->count) {
        status = iterator_next(&batch, iterator, error);
        if (status != PLIM_OK || !batch)
            break;
    }
    iterator_figures(figures, iterator);
    iterator_close(iterator);
    dataset_unref(dataset);
    return status;
}

/* Every tenth element is bad: y is 9 where classes are 0 to 8. */
static struct dataset *one_in_ten(struct budget *budget, int64_t count, const struct ignore_options *options)
{
    const struct one_hot_options one_hot = {.column = "y", .classes = 9};
    return dataset_ignore_errors(dataset_map(counting(budget, count), &map_one_hot, &one_hot), options);
}

static void bad_ones_are_passed_over(void **state)
{
    struct budget *budget = open_budget();
    struct iterator_figures figures;
    struct lines lines = {0};
    struct log log = {note_line, &lines};
    plim_error error = {0};
    int64_t given;
    (void)state;
    struct ignore_options options = {.limit = IGNORE_ALL, .log = &log};
    assert_int_equal(run_out(&figures, &given, one_in_ten(budget, 100, &options), budget, &error), PLIM_OK);
    assert_int_equal(given, 90);
    assert_int_equal(figures.skipped, 10);
    assert_int_equal(lines.count, 5);
    assert_non_null(strstr(lines.last, "element 49"));
    assert_int_equal(error.code, PLIM_OK);
    options = (struct ignore_options){.limit = IGNORE_MOST, .most = 10};
    assert_int_equal(run_out(&figures, &given, one_in_ten(budget, 100, &options), budget, &error), PLIM_OK);
    options.most = 3;
    assert_int_equal(run_out(&figures, &given, one_in_ten(budget, 100, &options), budget, &error), PLIM_BAD_DATA);
    assert_int_equal(given, 36);
    assert_non_null(strstr(error.message, "element 39"));
    assert_non_null(strstr(error.hint, "4 bad ones of 40"));
    options = (struct ignore_options){.limit = IGNORE_RATE, .rate = 0.1};
    assert_int_equal(run_out(&figures, &given, one_in_ten(budget, 1000, &options), budget, &error), PLIM_OK);
    assert_int_equal(given, 900);
    options.rate = 0.09;
    assert_int_equal(run_out(&figures, &given, one_in_ten(budget, 1000, &options), budget, &error), PLIM_BAD_DATA);
    assert_int_equal(given, 18); /* the first is forgiven, the second is 2 of 20 */
    close_budget(budget);
}

/* A stream whose bad element costs no neighbour; and what is bad besides data stays an error. */
static void only_bad_data_is_passed_over(void **state)
{
    struct budget *budget = open_budget();
    struct iterator_figures figures;
    plim_error error = {0};
    int64_t given;
    const struct ignore_options all = {.limit = IGNORE_ALL};
    (void)state;
    for (int64_t bad = 0; bad < 20; bad++)
        for (int indexed = 0; indexed < 2; indexed++) {
            struct dataset *dataset = texts_open(budget, indexed ? &texts_indexed : &texts_stream, 20, bad);
            assert_int_equal(run_out(&figures, &given, dataset_ignore_errors(dataset, &all), budget, &error), PLIM_OK);
            assert_int_equal(given, 19);
            assert_int_equal(figures.skipped, 1);
        }
    fault_arm(FAULT_READ, 3, false, EIO);
    assert_int_equal(run_out(&figures, &given, dataset_ignore_errors(counting(budget, 20), &all), budget, &error),
                     PLIM_IO);
    fault_disarm();
    close_budget(budget);
}

/* ---- assert_cardinality ---- */

static void a_wrong_count_is_bad_data(void **state)
{
    struct budget *budget = open_budget();
    struct iterator_figures figures;
    plim_error error = {0};
    int64_t given;
    (void)state;
    for (int64_t n = 1; n < 12; n++) {
        struct dataset *dataset = dataset_assert_cardinality(streamed(counting(budget, 6)), n);
        assert_int_equal(run_out(&figures, &given, dataset, budget, &error), n == 6 ? PLIM_OK : PLIM_BAD_DATA);
        assert_int_equal(given, n < 6 ? n : 6);
        if (n != 6)
            assert_non_null(strstr(error.message, n < 6 ? "more than" : "6 elements, not"));
    }
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_tf_data_gives_them),          cmocka_unit_test(anywhere_and_at_their_cost),
        cmocka_unit_test(shards_are_the_whole),           cmocka_unit_test(callbacks_choose_and_fail),
        cmocka_unit_test(cardinality_and_spec),           cmocka_unit_test(wrong_words_are_refused),
        cmocka_unit_test(unique_by_column_and_its_bound), cmocka_unit_test(bad_ones_are_passed_over),
        cmocka_unit_test(only_bad_data_is_passed_over),   cmocka_unit_test(a_wrong_count_is_bad_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
