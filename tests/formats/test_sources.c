/* test_sources.c - sources without a file: random, range, memory. */
#include "format_files.h"

#include "formats/source.h"

static void numbers_of_range(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct source *source;
    int64_t out[6] = {0};
    assert_int_equal(range_open(&source, budget, 0, NULL), PLIM_BAD_JOB);
    assert_int_equal(range_open(&source, budget, (int64_t)1 << 60, NULL), PLIM_OK);
    assert_int_equal(source->spec.column[0].type, TYPE_I64);
    int64_t index[] = {5, ((int64_t)1 << 60) - 1, 0};
    assert_int_equal(source->type->read(source, index, 3, (void *[]){out}, (uint64_t[]){16}, NULL), PLIM_OK);
    assert_true(out[0] == 5 && out[2] == index[1] && out[4] == 0);
    index[0] = (int64_t)1 << 60;
    assert_int_equal(source->type->read(source, index, 1, (void *[]){out}, (uint64_t[]){16}, NULL), PLIM_INTERNAL);
    source_close(source);
    source_close(NULL);
    end_budget(budget);
}

static void arrays_of_memory(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct source *source;
    enum { ROWS = 8000 };
    static float x[ROWS][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    static uint8_t y[ROWS] = {10, 11, 12, 13};
    float out_x[3][2];
    uint8_t out_y[12];
    struct spec spec = {
        .column_count = 2,
        .column = {{.name = "a", .type = TYPE_F32, .shape = {.rank = 1, .dim = {2}}}, {.type = TYPE_U8}}};
    assert_int_equal(memory_open(&source, budget, &spec, (const void *[]){x, y}, ROWS, NULL), PLIM_OK);
    assert_string_equal(source->spec.column[0].name, "a");
    assert_string_equal(source->spec.column[1].name, "y");
    assert_int_equal(source->spec.element_bytes, 9);
    assert_true(budget_usage(budget).now_by_tag[TAG_FORMATS] < sizeof x / 2); /* nothing was copied */
    int64_t index[] = {2, 3, 0};
    assert_int_equal(source->type->read(source, index, 3, (void *[]){out_x, out_y}, (uint64_t[]){8, 4}, NULL), PLIM_OK);
    assert_true(out_x[0][0] == 4 && out_x[1][1] == 7 && out_x[2][1] == 1);
    assert_true(out_y[0] == 12 && out_y[4] == 13 && out_y[8] == 10);
    source_close(source);
    end_budget(budget);
}

enum { SAMPLES = 2000, FEATURES = 60 };
static float features[SAMPLES][FEATURES];
static union {
    int32_t label[SAMPLES];
    float target[SAMPLES];
} wanted;

static void fill(int64_t classes, bool learnable)
{
    static int64_t index[SAMPLES];
    struct budget *budget = new_budget();
    struct source *source;
    struct random_options options = {.elements = SAMPLES,
                                     .shape = {.rank = 2, .dim = {20, 3}},
                                     .classes = classes,
                                     .seed = 7,
                                     .learnable = learnable};
    assert_int_equal(random_open(&source, budget, &options, NULL), PLIM_OK);
    assert_int_equal(source->count, SAMPLES);
    assert_int_equal(source->spec.column[1].type, classes == 1 ? TYPE_F32 : TYPE_I32);
    for (int i = 0; i < SAMPLES; i++)
        index[i] = i;
    uint64_t takes = budget_usage(budget).takes;
    assert_int_equal(source->type->read(source, index, SAMPLES, (void *[]){features, &wanted},
                                        (uint64_t[]){sizeof features[0], 4}, NULL),
                     PLIM_OK);
    assert_int_equal(budget_usage(budget).takes, takes);
    /* The same alone as among others. */
    float one[FEATURES], target;
    assert_int_equal(
        source->type->read(source, (int64_t[]){1234}, 1, (void *[]){one, &target}, (uint64_t[]){0, 0}, NULL), PLIM_OK);
    assert_memory_equal(one, features[1234], sizeof one);
    assert_memory_equal(&target, &wanted.target[1234], 4);
    source_close(source);
    end_budget(budget);
}

static double mean_of_features(void)
{
    double sum = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int f = 0; f < FEATURES; f++) {
            assert_true(features[i][f] >= 0 && features[i][f] < 1);
            sum += features[i][f];
        }
    return sum / SAMPLES / FEATURES;
}

static void random_numbers(void **state)
{
    (void)state;
    int seen[10] = {0};
    fill(10, false);
    double mean = mean_of_features();
    assert_true(mean > 0.49 && mean < 0.51);
    for (int i = 0; i < SAMPLES; i++) {
        assert_in_range(wanted.label[i], 0, 9);
        seen[wanted.label[i]]++;
    }
    for (int c = 0; c < 10; c++)
        assert_in_range(seen[c], SAMPLES / 10 * 3 / 4, SAMPLES / 10 * 5 / 4);
    fill(1, false);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(wanted.target[i] >= 0 && wanted.target[i] < 1);
}

/* The rule that a linear model would find: the group of features with the largest sum. */
static void learnable_labels(void **state)
{
    (void)state;
    for (int classes = 2; classes <= 10; classes += 8) {
        int group = FEATURES / classes, seen[10] = {0};
        fill(classes, true);
        mean_of_features();
        for (int i = 0; i < SAMPLES; i++) {
            int best = 0;
            double best_sum = -1;
            for (int c = 0; c < classes; c++) {
                double sum = 0;
                for (int f = 0; f < group; f++)
                    sum += features[i][c * group + f];
                if (sum > best_sum) {
                    best_sum = sum;
                    best = c;
                }
            }
            assert_int_equal(wanted.label[i], best);
            seen[best]++;
        }
        for (int c = 0; c < classes; c++)
            assert_in_range(seen[c], SAMPLES / classes / 2, SAMPLES / classes * 2);
    }
    fill(1, true);
    double least = 1, most = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double first = 0, second = 0;
        for (int f = 0; f < FEATURES / 2; f++) {
            first += features[i][f];
            second += features[i][FEATURES / 2 + f];
        }
        double target = 0.5 + (first - second) / FEATURES;
        assert_true(target - wanted.target[i] < 1e-6 && wanted.target[i] - target < 1e-6);
        least = target < least ? target : least;
        most = target > most ? target : most;
    }
    assert_true(least < 0.3 && most > 0.7);
}

static void random_refuses(void **state)
{
    (void)state;
    const struct random_options good = {
        .elements = 10, .shape = {.rank = 1, .dim = {4}}, .classes = 2, .learnable = true};
    struct random_options bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].elements = 0;
    bad[1].classes = 0;
    bad[2].classes = (int64_t)1 << 31;
    bad[3].shape.dim[0] = 0;
    bad[4].shape.dim[0] = INT64_MAX;
    bad[5].classes = 5;
    struct budget *budget = new_budget();
    struct source *source;
    for (int i = 0; i < 6; i++) {
        plim_error error = {0};
        assert_int_equal(random_open(&source, budget, &bad[i], &error), PLIM_BAD_JOB);
        assert_true(error.message[0] != 0);
    }
    end_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_range), cmocka_unit_test(arrays_of_memory), cmocka_unit_test(random_numbers),
        cmocka_unit_test(learnable_labels), cmocka_unit_test(random_refuses),
    };
    return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
