/* test_map_expressions.c - expressions in `map:`, columns chosen and renamed, shapes: through pipelines from
   job text. */
#include "stage_checks.h"

#include "pipeline/core/flow.h"
#include "pipeline/core/pipeline_digest.h"
#include "pipeline/maps/text/map_text.h"

/* The first `count` elements' column as doubles, with this many slots. */
static int64_t values_of(double *out, struct dataset *dataset, struct budget *budget, int slots, const char *name)
{
    int c = spec_find(dataset_spec(dataset), name);
    assert_true(c >= 0);
    const struct column *column = &dataset_spec(dataset)->column[c];
    struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
    struct batch *batch;
    int64_t count = 0;
    for (assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK); batch;
         assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK)) {
        int64_t n = batch->count * shape_count(&column->shape);
        assert_true(count + n <= MOST);
        for (int64_t i = 0; i < n; i++)
            out[count++] = element_get(batch->column[c], column->type, i);
    }
    iterator_close(iterator);
    return count;
}

static void expect_spec(const struct dataset *dataset, int c, const char *name, enum type type, const char *shape)
{
    char text[64];
    const struct column *column = &dataset_spec(dataset)->column[c];
    shape_text(text, sizeof text, &column->shape, false);
    assert_string_equal(column->name, name);
    assert_int_equal(column->type, type);
    assert_string_equal(text, shape);
}

/* ---- expressions ---- */

static void columns_are_replaced_and_added(void **state)
{
    (void)state;
    double values[MOST];
    struct budget *budget = open_budget();
    struct dataset *dataset =
        staged(counting(budget, 100), budget,
               "[map: {y: \"(y - 4) / 2\", old: \"i >= 50\", mean: \"mean(image)\", image: [rescale: 2]}, batch: 7]");
    expect_spec(dataset, 0, "image", TYPE_F32, "(2, 3, 1)");
    expect_spec(dataset, 1, "y", TYPE_F32, "()");
    expect_spec(dataset, 3, "old", TYPE_BOOL, "()");
    expect_spec(dataset, 4, "mean", TYPE_F32, "()");
    for (int slots = 1; slots <= 4; slots++) {
        assert_int_equal(values_of(values, dataset, budget, slots, "y"), 100);
        for (int i = 0; i < 100; i++)
            assert_true(values[i] == (i % 10 - 4) / 2.0);
        values_of(values, dataset, budget, slots, "old");
        for (int i = 0; i < 100; i++)
            assert_true(values[i] == (i >= 50));
        values_of(values, dataset, budget, slots, "mean"); /* of the image as it came in */
        for (int i = 0; i < 100; i++) {
            double sum = 0;
            for (int p = 0; p < 6; p++)
                sum += pixel(i, p);
            assert_true((float)values[i] == (float)(sum / 6));
        }
    }
    check_stage(dataset, budget, "i");
    dataset_unref(dataset);
    close_budget(budget);
}

/* Each sees what came in: over columns in place, over their neighbours, round in a circle. */
static void expressions_do_not_see_each_other(void **state)
{
    (void)state;
    double i[MOST], j[MOST], k[MOST];
    struct budget *budget = open_budget();
    struct dataset *dataset =
        staged(counting(budget, 100), budget,
               "[map: {j: \"i * 10\", k: \"i * 100\"}, map: {i: \"j + 0\", j: \"k + 1\", k: \"i * 2\"}, batch: 8]");
    for (int slots = 1; slots <= 2; slots++) {
        values_of(i, dataset, budget, slots, "i");
        values_of(j, dataset, budget, slots, "j");
        values_of(k, dataset, budget, slots, "k");
        for (int n = 0; n < 100; n++)
            assert_true(i[n] == n * 10 && j[n] == n * 100 + 1 && k[n] == n * 2);
    }
    dataset_unref(dataset);
    close_budget(budget);
}

/* A column that nobody else reads is computed where it is: there is no second one of it. */
static void in_place_where_it_can_be(void **state)
{
    (void)state;
    struct budget *budget = open_budget();
    struct dataset *plain_map = dataset_batch(dataset_map_expression(counting(budget, 10), "i", "i * 2 + 1"), 4, false);
    struct dataset *turned =
        dataset_batch(dataset_map_expression(counting(budget, 10), "image", "image[0, 0, 0]"), 4, false);
    struct dataset *both = staged(counting(budget, 10), budget, "[map: {i: \"i * 2\", z: \"i\"}, batch: 4]");
    assert_int_equal(dataset_spec(plain_map)->column[2].origin, 2);
    assert_int_equal(dataset_spec(turned)->column[0].origin, -1);
    assert_int_equal(dataset_spec(both)->column[2].origin, -1);
    assert_true(flow_bytes(plain_map) < flow_bytes(both));
    double values[MOST];
    values_of(values, plain_map, budget, 2, "i");
    for (int n = 0; n < 10; n++)
        assert_true(values[n] == n * 2 + 1);
    dataset_unref(plain_map);
    dataset_unref(turned);
    dataset_unref(both);
    close_budget(budget);
}

static void refused_at(const char *text, plim_status code, const char *where, const char *message, const char *tip)
{
    struct studio room;
    struct budget *budget = open_budget();
    assert_int_equal(read_stages(&room, counting(budget, 100), budget, text), code);
    if (strcmp(room.error.where, where) != 0 || !strstr(room.error.message, message) || !strstr(room.error.hint, tip))
        fail_msg("%s: '%s: %s; %s' does not say '%s: %s; %s'", text, room.error.where, room.error.message,
                 room.error.hint, where, message, tip);
    dataset_unref(room.dataset);
    close_budget(budget);
}

static void wrong_expressions_have_a_place(void **state)
{
    (void)state;
    refused_at("- map: {y: \"(y - \"}\n", PLIM_BAD_JOB, "job.yaml:1:12", "character 6", "");
    refused_at("- map: {y: \"yy + 1\"}\n", PLIM_BAD_JOB, "job.yaml:1:12", "character 1", "'y'");
    refused_at("- map:\n    y: \"y + 1\"\n    z: \"y + * 2\"\n", PLIM_BAD_JOB, "job.yaml:3:8", "character 5", "");
    refused_at("- map: {cats: float32}\n", PLIM_BAD_JOB, "job.yaml:1:9", "function 'cats'", "'cast'");
    refused_at("- map: {y: {cast: float32}}\n", PLIM_BAD_JOB, "job.yaml:1:12", "an expression or a list", "y:");
    refused_at("- map: {y: }\n", PLIM_BAD_JOB, "job.yaml:1:9", "an expression or a list", "");
    refused_at("- map: {image: [squeeze: 0]}\n", PLIM_BAD_JOB, "job.yaml:1:17", "axis 0", "");
}

static void every_failed_allocation_is_an_error(void **state)
{
    bool reached = true;
    (void)state;
    for (int64_t n = 1; reached; n++) {
        struct budget *budget = open_budget();
        plim_error error = {0};
        fault_arm(FAULT_ALLOCATE, n, n % 2, ENOMEM);
        struct dataset *dataset = counting(budget, 10);
        dataset = dataset_map_expressions(
            dataset, (struct map_expression[]){{"i", "i + mean(image)", NULL}, {"z", "where(y > 3, y, i)", NULL}}, 2);
        dataset = dataset_rename(dataset, (const char *[]){"z"}, (const char *[]){"label"}, 1);
        dataset = dataset_select(dataset, (const char *[]){"i", "label"}, 2);
        plim_status status = dataset_error(dataset, &error);
        reached = fault_disarm();
        assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
        dataset_unref(dataset);
        close_budget(budget);
        assert_true(n < 60);
    }
}

static void two_of_one_column_are_refused(void **state)
{
    (void)state;
    plim_error error = {0};
    struct budget *budget = open_budget();
    struct dataset *dataset =
        dataset_map_expressions(counting(budget, 10), (struct map_expression[]){{"i", "i", NULL}, {"i", "y", NULL}}, 2);
    assert_int_equal(dataset_error(dataset, &error), PLIM_BAD_JOB);
    assert_non_null(strstr(error.message, "'i'"));
    dataset_unref(dataset);
    close_budget(budget);
}

/* What stands for a pipeline where something is kept from run to run tells expressions from each other. */
static void digests_differ(void **state)
{
    (void)state;
    static const char *const texts[] = {"[map: {y: \"y + 1\"}]", "[map: {y: \"y + 2\"}]", "[map: {y: \"y + 1\"}]",
                                        "[select: [y, i]]",      "[select: [i, y]]",      "[select: [y, i]]"};
    char digest[6][65];
    struct budget *budget = open_budget();
    for (int i = 0; i < 6; i++) {
        struct dataset *dataset = staged(counting(budget, 10), budget, texts[i]);
        pipeline_digest(digest[i], dataset, SEED);
        dataset_unref(dataset);
    }
    for (int i = 0; i < 6; i += 3) {
        assert_string_equal(digest[i], digest[i + 2]);
        assert_string_not_equal(digest[i], digest[i + 1]);
    }
    close_budget(budget);
}

/* ---- columns ---- */

static void columns_are_chosen(void **state)
{
    (void)state;
    double values[MOST];
    struct budget *budget = open_budget();
    struct dataset *dataset = staged(counting(budget, 50), budget, "[select: [i, y], rename: {y: label}, batch: 8]");
    assert_int_equal(dataset_spec(dataset)->column_count, 2);
    expect_spec(dataset, 0, "i", TYPE_I64, "()");
    expect_spec(dataset, 1, "label", TYPE_U8, "()");
    assert_int_equal(dataset_spec(dataset)->element_bytes, 9);
    for (int slots = 1; slots <= 2; slots++) {
        assert_int_equal(values_of(values, dataset, budget, slots, "label"), 50);
        for (int n = 0; n < 50; n++)
            assert_true(values[n] == n % 10);
    }
    check_stage(dataset, budget, "i");
    dataset_unref(dataset);
    dataset = staged(counting(budget, 50), budget, "- rename: {y: i, i: y}\n- batch: 8\n"); /* all at once */
    values_of(values, dataset, budget, 1, "y");
    assert_true(values[49] == 49);
    dataset_unref(dataset);
    close_budget(budget);
}

static void inputs_come_first(void **state)
{
    (void)state;
    static const char *const texts[] = {"- inputs: [i]\n  label: y\n- batch: 4\n",
                                        "- label: y\n  inputs: i\n- batch: 4\n",
                                        "- batch: 4\n- {inputs: [i], label: y}\n"};
    double values[MOST];
    for (int t = 0; t < 3; t++) {
        struct budget *budget = open_budget();
        struct dataset *dataset = staged(counting(budget, 50), budget, texts[t]);
        assert_int_equal(dataset_spec(dataset)->column_count, 2);
        expect_spec(dataset, 0, "i", TYPE_I64, "()");
        expect_spec(dataset, 1, "y", TYPE_U8, "()");
        assert_int_equal(values_of(values, dataset, budget, 2, "i"), 50);
        for (int n = 0; n < 50; n++)
            assert_true(values[n] == n);
        dataset_unref(dataset);
        close_budget(budget);
    }
}

static void wrong_columns_are_refused(void **state)
{
    (void)state;
    refused_at("- select: [i, yy]\n", PLIM_BAD_JOB, "job.yaml:1:3", "'yy'", "'y'");
    refused_at("- select: [i, i]\n", PLIM_BAD_JOB, "job.yaml:1:3", "twice", "map:");
    refused_at("- select: []\n", PLIM_BAD_JOB, "job.yaml:1:11", "list of columns", "");
    refused_at("- rename: {z: y}\n", PLIM_BAD_JOB, "job.yaml:1:12", "'z'", "");
    refused_at("- rename: {i: y}\n", PLIM_BAD_JOB, "job.yaml:1:3", "second column 'y'", "");
    refused_at("- rename: y\n", PLIM_BAD_JOB, "job.yaml:1:11", "{old: new}", "");
    refused_at("- inputs: [i, image]\n  label: {a: y, b: y}\n", PLIM_BAD_JOB, "job.yaml:1:3", "twice", "copy");
    refused_at("- inputs: [i]\n  label: {a: yy}\n", PLIM_BAD_JOB, "job.yaml:1:3", "'yy'", "'y'");
    refused_at("- inputs: [i]\n  label: i\n", PLIM_BAD_JOB, "job.yaml:1:3", "twice", "copy");
    refused_at("- inputs: [i]\n  lable: y\n", PLIM_BAD_JOB, "job.yaml:2:3", "'lable'", "'label'");
    refused_at("- label: y\n", PLIM_BAD_JOB, "job.yaml:1:3", "'inputs:' is missing", "");
    refused_at("- inputs\n", PLIM_BAD_JOB, "job.yaml:1:3", "value is missing", "");
}

/* ---- shapes ---- */

static void shapes_change_without_a_copy(void **state)
{
    (void)state;
    double values[MOST];
    static const char *const words[] = {"reshape: [6]", "reshape: [-1, 2]", "squeeze",
                                        "squeeze: 2",   "expand_dims: 0",   "expand_dims: -1"};
    static const char *const shapes[] = {"(6,)", "(3, 2)", "(2, 3)", "(2, 3)", "(1, 2, 3, 1)", "(2, 3, 1, 1)"};
    for (int w = 0; w < 6; w++) {
        char text[128];
        struct budget *budget = open_budget();
        snprintf(text, sizeof text, "[map: {image: [%s]}, batch: 4]", words[w]);
        struct dataset *dataset = staged(counting(budget, 9), budget, text);
        expect_spec(dataset, 0, "image", TYPE_U8, shapes[w]);
        assert_int_equal(dataset_spec(dataset)->column[0].origin, 0);
        assert_int_equal(values_of(values, dataset, budget, 2, "image"), 54);
        for (int i = 0; i < 54; i++)
            assert_true(values[i] == pixel(i / 6, i % 6));
        dataset_unref(dataset);
        close_budget(budget);
    }
    refused_at("- map: [reshape: [4]]\n", PLIM_BAD_JOB, "job.yaml:1:9", "(2, 3, 1) cannot become (4,)", "");
    refused_at("- map: [reshape: [-1, -1]]\n", PLIM_BAD_JOB, "job.yaml:1:9", "only one", "");
    refused_at("- map: [expand_dims: 5]\n", PLIM_BAD_JOB, "job.yaml:1:9", "no axis 5", "");
}

static double at(const void *data, int64_t i)
{
    return ((const float *)data)[i];
}

/* texts: a cell of cell_length(id) numbers id, id + 1, ... */
static void ragged_rows_get_one_shape(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct budget *budget = open_budget();
        struct dataset *dataset = staged(texts_open(budget, kind ? &texts_stream : &texts_indexed, 60, -1), budget,
                                         "- map: {cell: [truncate: 12, pad: {shape: [16], value: -3}]}\n"
                                         "- select: [id, cell]\n- rename: {id: n}\n- batch: 8\n");
        expect_spec(dataset, 1, "cell", TYPE_F32, "(16,)");
        for (int slots = 1; slots <= 2; slots++) {
            struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
            struct batch *batch;
            int64_t seen = 0;
            for (assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK); batch;
                 assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK))
                for (int64_t r = 0; r < batch->count; r++, seen++)
                    for (int64_t i = 0; i < 16; i++)
                        assert_true(at(batch->column[1], r * 16 + i) ==
                                    (i < cell_length(seen) && i < 12 ? (double)(seen + i) : -3));
            assert_int_equal(seen, 60);
            iterator_close(iterator);
        }
        check_stage(dataset, budget, "n");
        dataset_unref(dataset);
        close_budget(budget);
    }
}

/* An element that is too long for pad is named; the others are not lost. */
static void too_long_is_bad_data(void **state)
{
    (void)state;
    struct budget *budget = open_budget();
    struct dataset *dataset = staged(texts_open(budget, &texts_indexed, 60, -1), budget,
                                     "[map: {cell: [pad: 5]}, select: [id, cell], batch: 1]");
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    struct batch *batch;
    plim_error error = {0};
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);         /* 0 numbers */
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA); /* 31 % 23 = 8 */
    assert_non_null(strstr(error.message, "element 1"));
    assert_non_null(strstr(error.hint, "to_dense"));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* Cells keep their values and get other extents; into a fixed shape they must fit. */
static void shapes_of_cells(void **state)
{
    (void)state;
    struct budget *budget = open_budget();
    struct dataset *dataset = staged(texts_open(budget, &texts_indexed, 60, -1), budget,
                                     "[map: {cell: [expand_dims: 0, squeeze: 0, expand_dims: -1]}, rename: {id: n}]");
    expect_spec(dataset, 2, "cell", TYPE_F32, "(-1, 1)");
    struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 0);
    struct batch *batch;
    for (int64_t n = 0; n < 60; n++) {
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        const struct cell *cell = batch->column[2];
        assert_true(cell->dim[0] == cell_length(n) && cell->dim[1] == 1);
        for (int64_t i = 0; i < cell->dim[0]; i++)
            assert_true(at(cell->data, i) == (double)(n + i));
    }
    iterator_close(iterator);
    check_stage(dataset, budget, "n");
    dataset_unref(dataset);
    dataset = staged(texts_open(budget, &texts_indexed, 60, -1), budget,
                     "[map: {cell: [reshape: [2, 4]]}, skip: 1, select: [id, cell], batch: 1]");
    iterator = open_iterator(dataset, budget, 1, 0, 0);
    plim_error error = {0};
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK); /* element 1 has 8 numbers */
    assert_true(at(batch->column[1], 7) == 8);
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "element 2: column 'cell' is (16,) and cannot become (2, 4)"));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_replaced_and_added),
        cmocka_unit_test(expressions_do_not_see_each_other),
        cmocka_unit_test(in_place_where_it_can_be),
        cmocka_unit_test(wrong_expressions_have_a_place),
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(two_of_one_column_are_refused),
        cmocka_unit_test(digests_differ),
        cmocka_unit_test(columns_are_chosen),
        cmocka_unit_test(inputs_come_first),
        cmocka_unit_test(wrong_columns_are_refused),
        cmocka_unit_test(shapes_change_without_a_copy),
        cmocka_unit_test(ragged_rows_get_one_shape),
        cmocka_unit_test(too_long_is_bad_data),
        cmocka_unit_test(shapes_of_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
