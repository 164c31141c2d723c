/* test_noise.c - what is drawn in a step: shares and moments, nothing repeated between samples, steps and seeds, and
   the same numbers in backward. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "examples.h"
#include "op_fixture.h"
#include "ops/helpers.h"

#define BATCH        16
#define ROW_ELEMENTS 4000

struct draw {
    struct fixture fixture;
    struct backend *backend;
    struct tensor *x, *iteration, *y;
};

static void draw_open(struct draw *draw, const struct op *op, const void *attributes, size_t bytes)
{
    *draw = (struct draw){0};
    struct graph *graph = &draw->fixture.graph;
    assert_int_equal(budget_make(&draw->fixture.budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(graph, draw->fixture.budget, BATCH);
    draw->x = example_input(graph, "x", TYPE_F32, ROW(ROW_ELEMENTS));
    draw->iteration = graph_state(graph, "iteration", TYPE_I64, shape_1(1));
    draw->y = graph_add(graph, op, (struct tensor *[]){draw->x, draw->iteration}, 2, attributes, bytes);
    draw->fixture.node = draw->y->producer;
    fixture_fill(&draw->fixture, 1);
    float *x = draw->fixture.data[draw->x->id];
    for (int i = 0; i < BATCH * ROW_ELEMENTS; i++)
        x[i] = 1;
    assert_int_equal(cpu_backend.open(&draw->backend, draw->fixture.budget, NULL), PLIM_OK);
}

static void draw_close(struct draw *draw)
{
    cpu_backend.close(draw->backend);
    fixture_release(&draw->fixture);
}

/* Samples [begin, end) of step `step`, by the fast kernel. */
static const float *draw_step(struct draw *draw, int64_t step, int64_t begin, int64_t end)
{
    const struct kernel *kernel;
    struct call call;
    *(int64_t *)draw->fixture.data[draw->iteration->id] = step;
    assert_int_equal(cpu_backend.prepare(&kernel, draw->backend,
                                         &(struct kernel_request){.node = draw->fixture.node, .slice = BATCH}, NULL),
                     PLIM_OK);
    assert_string_not_equal(kernel->implementation, "reference");
    fixture_call(&call, &draw->fixture, draw->fixture.node, begin, end, BATCH);
    kernel->run(kernel, &call);
    return draw->fixture.data[draw->y->id];
}

static double share_of_zeros(const float *y, int64_t count)
{
    int64_t zeros = 0;
    for (int64_t i = 0; i < count; i++)
        zeros += y[i] == 0;
    return (double)zeros / (double)count;
}

/* Of two rows of independent choices at rate 1/2, half agree. */
static double share_of_equals(const float *a, const float *b, int64_t count)
{
    int64_t equals = 0;
    for (int64_t i = 0; i < count; i++)
        equals += a[i] == b[i];
    return (double)equals / (double)count;
}

static void as_many_are_dropped_as_said(void **state)
{
    static const double rates[] = {0.01, 0.1, 0.5, 0.9};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct draw draw;
        struct dropout_attributes attributes = {.rate = rates[i], .scale = 1 / (1 - rates[i]), .seed = 5};
        draw_open(&draw, &op_dropout, &attributes, sizeof(attributes));
        const float *y = draw_step(&draw, 3, 0, BATCH);
        double zeros = share_of_zeros(y, BATCH * ROW_ELEMENTS);
        double deviation = sqrt(rates[i] * (1 - rates[i]) / (BATCH * ROW_ELEMENTS));
        assert_true(fabs(zeros - rates[i]) < 4 * deviation);
        for (int64_t k = 0; k < BATCH * ROW_ELEMENTS; k++)
            assert_true(y[k] == 0 || y[k] == (float)(1 / (1 - rates[i])));
        draw_close(&draw);
    }
}

static void samples_steps_and_seeds_differ(void **state)
{
    (void)state;
    static float first[BATCH * ROW_ELEMENTS];
    struct dropout_attributes attributes = {.rate = 0.5, .scale = 2, .seed = 5};
    struct draw draw;
    draw_open(&draw, &op_dropout, &attributes, sizeof(attributes));
    memcpy(first, draw_step(&draw, 0, 0, BATCH), sizeof(first));
    double bound = 4 * sqrt(0.25 / ROW_ELEMENTS);
    for (int n = 1; n < BATCH; n++)
        assert_true(fabs(share_of_equals(first, first + n * ROW_ELEMENTS, ROW_ELEMENTS) - 0.5) < bound);
    const float *second = draw_step(&draw, 1, 0, BATCH);
    assert_true(fabs(share_of_equals(first, second, ROW_ELEMENTS) - 0.5) < bound);
    assert_memory_equal(draw_step(&draw, 0, 0, BATCH), first, sizeof(first));
    draw_close(&draw);
    attributes.seed = 6;
    draw_open(&draw, &op_dropout, &attributes, sizeof(attributes));
    assert_true(fabs(share_of_equals(first, draw_step(&draw, 0, 0, BATCH), ROW_ELEMENTS) - 0.5) < bound);
    draw_close(&draw);
}

/* Slices in any order, to the last bit. */
static void slices_draw_what_the_whole_draws(void **state)
{
    static const int64_t ends[] = {BATCH, 9, 5, 4};
    static float whole[BATCH * ROW_ELEMENTS];
    (void)state;
    struct noise_attributes attributes = {.stddev = 0.7, .seed = 8};
    struct draw draw;
    draw_open(&draw, &op_gaussian_dropout, &attributes, sizeof(attributes));
    memcpy(whole, draw_step(&draw, 7, 0, BATCH), sizeof(whole));
    memset(draw.fixture.data[draw.y->id], POISON, sizeof(whole));
    for (int i = 0; i < 4; i++)
        draw_step(&draw, 7, i < 3 ? ends[i + 1] : 0, ends[i]);
    assert_memory_equal(draw.fixture.data[draw.y->id], whole, sizeof(whole));
    draw_close(&draw);
}

static void noise_is_normal(void **state)
{
    (void)state;
    struct noise_attributes attributes = {.stddev = 0.5, .seed = 5};
    struct draw draw;
    int64_t count = BATCH * ROW_ELEMENTS;
    double mean = 0, square = 0, fourth = 0, beyond = 0;
    draw_open(&draw, &op_gaussian_noise, &attributes, sizeof(attributes));
    const float *y = draw_step(&draw, 3, 0, BATCH);
    for (int64_t i = 0; i < count; i++) {
        double z = ((double)y[i] - 1) / 0.5;
        mean += z / (double)count;
        square += z * z / (double)count;
        fourth += z * z * z * z / (double)count;
        beyond += (fabs(z) > 1.959964) / (double)count;
    }
    assert_true(fabs(mean) < 4 / sqrt((double)count));
    assert_true(fabs(square - 1) < 4 * sqrt(2.0 / (double)count));
    assert_true(fabs(fourth - 3) < 4 * sqrt(96.0 / (double)count));
    assert_true(fabs(beyond - 0.05) < 4 * sqrt(0.05 * 0.95 / (double)count));
    draw_close(&draw);
}

/* The op that backward adds drops the same elements. */
static void backward_draws_the_same(void **state)
{
    (void)state;
    struct dropout_attributes attributes = {.rate = 0.3, .scale = 1.5, .offset = 1, .dropped = -7, .seed = 5};
    struct draw draw;
    draw_open(&draw, &op_dropout, &attributes, sizeof(attributes));
    struct graph *graph = &draw.fixture.graph;
    struct tensor *d[MOST_INPUTS] = {NULL};
    struct tensor *dy = example_input(graph, "dy", TYPE_F32, ROW(ROW_ELEMENTS));
    op_dropout.gradient(graph, draw.fixture.node, &dy, (bool[MOST_INPUTS]){true}, d);
    fixture_fill(&draw.fixture, 2);
    *(int64_t *)draw.fixture.data[draw.iteration->id] = 11;
    fixture_run_all(&draw.fixture, true);
    for (int64_t i = 0; i < BATCH * ROW_ELEMENTS; i++) {
        bool dropped = fixture_get(&draw.fixture, draw.y, i) == -7;
        double expected = dropped ? 0 : (double)(float)(1.5 * fixture_get(&draw.fixture, dy, i));
        assert_true(fixture_get(&draw.fixture, d[0], i) == expected);
    }
    draw_close(&draw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_are_dropped_as_said),      cmocka_unit_test(samples_steps_and_seeds_differ),
        cmocka_unit_test(slices_draw_what_the_whole_draws), cmocka_unit_test(noise_is_normal),
        cmocka_unit_test(backward_draws_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
