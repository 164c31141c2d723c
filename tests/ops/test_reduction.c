/* test_reduction.c - known answers of reductions and rankings, by the reference and by
   the kernels of the CPU backend: ties, zeros, NaN and infinities. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "op_fixture.h"
#include "ops/ops.h"

#define WIDTH 40 /* of a row: vectors and a rest */

/* One sample of a row, all axes but the batch reduced. */
struct one {
    struct fixture fixture;
    struct tensor *input[3], *y;
};

static void one_init(struct one *one, const struct op *op, int inputs, const void *attributes)
{
    struct fixture *f = &one->fixture;
    plim_error error = {0};
    *one = (struct one){0};
    assert_int_equal(budget_make(&f->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&f->graph, f->budget, 1);
    struct shape row = shape_of(2, (int64_t[]){1, WIDTH}), scalar = shape_of(1, (int64_t[]){1});
    int x = inputs > 1; /* gradients: dy, x, y */
    for (int i = 0; i < inputs; i++)
        one->input[i] = graph_input(&f->graph, i == x ? "x" : i ? "y" : "dy", i, TYPE_F32, i == x ? row : scalar);
    one->y = graph_add(&f->graph, op, one->input, inputs, attributes, op->attributes_bytes);
    if (graph_check(&f->graph, &error))
        fail_msg("%s", error.message);
    f->node = f->graph.node[0];
    fixture_fill(f, 1);
    float *values = f->data[one->input[x]->id];
    for (int i = 0; i < WIDTH; i++)
        values[i] = 0;
}

static float *values_of(struct one *one, int input)
{
    return one->fixture.data[one->input[input]->id];
}

/* By reference (0) or kernel (1). */
static void one_run(struct one *one, int fast)
{
    struct backend *backend = NULL;
    const struct kernel *kernel = NULL;
    const struct backend_type *type = fast ? &cpu_backend : &reference_backend;
    struct call call;
    assert_int_equal(type->open(&backend, one->fixture.budget, NULL), PLIM_OK);
    backend_threads(backend, 1);
    assert_int_equal(
        type->prepare(&kernel, backend, &(struct kernel_request){.node = one->fixture.node, .slice = 1}, NULL),
        PLIM_OK);
    void *scratch = budget_take(one->fixture.budget, TAG_SCRATCH, kernel->scratch_bytes);
    fixture_call(&call, &one->fixture, one->fixture.node, 0, 1, 1);
    call.scratch = scratch;
    kernel->run(kernel, &call);
    budget_give(one->fixture.budget, TAG_SCRATCH, scratch, kernel->scratch_bytes);
    type->close(backend);
}

static double result(struct one *one, int output, int64_t i)
{
    return fixture_get(&one->fixture, one->fixture.node->output[output], i);
}

static const struct reduce_attributes all = {.axes = 1 << 1}, all_least = {.axes = 1 << 1, .choice = 1};

static void nan_is_the_largest(void **state)
{
    (void)state;
    struct arg_max_attributes along = {.axis = 1};
    struct one max, least, place;
    one_init(&max, &op_reduce_max, 1, &all);
    one_init(&least, &op_reduce_max, 1, &all_least);
    one_init(&place, &op_arg_max, 1, &along);
    for (int fast = 0; fast < 2; fast++)
        for (int at = 0; at < WIDTH; at += 13) {
            values_of(&max, 0)[at] = values_of(&least, 0)[at] = values_of(&place, 0)[at] = NAN;
            one_run(&max, fast);
            one_run(&least, fast);
            one_run(&place, fast);
            assert_true(isnan(result(&max, 0, 0)) && isnan(result(&least, 0, 0)));
            assert_true(result(&place, 0, 0) == at);
            values_of(&max, 0)[at] = values_of(&least, 0)[at] = values_of(&place, 0)[at] = 0;
        }
    fixture_release(&max.fixture);
    fixture_release(&least.fixture);
    fixture_release(&place.fixture);
}

static void first_of_equals_is_the_place(void **state)
{
    (void)state;
    struct arg_max_attributes along = {.axis = 1}, least = {.axis = 1, .least = 1};
    for (int kind = 0; kind < 2; kind++) {
        struct one place;
        one_init(&place, &op_arg_max, 1, kind ? &least : &along);
        for (int at = 0; at + 7 < WIDTH; at++)
            for (int fast = 0; fast < 2; fast++) {
                float *x = values_of(&place, 0);
                x[at] = x[at + 2] = x[at + 7] = kind ? -3 : 3;
                one_run(&place, fast);
                assert_true(result(&place, 0, 0) == at);
                x[at] = x[at + 2] = x[at + 7] = 0;
            }
        fixture_release(&place.fixture);
    }
}

/* 4, then 3 twice: the first of them, then the second; then the first 0. */
static void top_k_in_order(void **state)
{
    (void)state;
    static const double values[] = {4, 3, 3, 0}, places[] = {30, 5, 17, 0};
    struct top_k_attributes four = {4};
    struct one top;
    one_init(&top, &op_top_k, 1, &four);
    values_of(&top, 0)[5] = values_of(&top, 0)[17] = 3;
    values_of(&top, 0)[30] = 4;
    for (int fast = 0; fast < 2; fast++) {
        one_run(&top, fast);
        for (int i = 0; i < 4; i++)
            assert_true(result(&top, 0, i) == values[i] && result(&top, 1, i) == places[i]);
    }
    fixture_release(&top.fixture);
}

static void shares_of_the_largest(void **state)
{
    (void)state;
    struct one back;
    one_init(&back, &op_reduce_max_gradient, 3, &all);
    values_of(&back, 0)[0] = 12;
    values_of(&back, 1)[3] = values_of(&back, 1)[20] = values_of(&back, 1)[39] = 2;
    values_of(&back, 2)[0] = 2;
    for (int fast = 0; fast < 2; fast++) {
        one_run(&back, fast);
        for (int i = 0; i < WIDTH; i++)
            assert_true(result(&back, 0, i) == (i == 3 || i == 20 || i == 39 ? 4 : 0));
    }
    fixture_release(&back.fixture);
}

/* One 0 among twos: only it has a gradient; with two of them none has. */
static void products_with_zeros(void **state)
{
    (void)state;
    struct one back;
    one_init(&back, &op_reduce_prod_gradient, 2, &all);
    values_of(&back, 0)[0] = 3;
    for (int fast = 0; fast < 2; fast++)
        for (int zeros = 1; zeros < 3; zeros++) {
            for (int i = 0; i < WIDTH; i++)
                values_of(&back, 1)[i] = i < 4 ? 2 : 1;
            values_of(&back, 1)[7] = 0;
            values_of(&back, 1)[30] = zeros == 2 ? 0 : 1;
            one_run(&back, fast);
            for (int i = 0; i < WIDTH; i++)
                assert_true(result(&back, 0, i) == (i == 7 && zeros == 1 ? 48 : 0));
        }
    fixture_release(&back.fixture);
}

static void logsumexp_far_out(void **state)
{
    (void)state;
    struct one sum;
    one_init(&sum, &op_reduce_logsumexp, 1, &all);
    float *x = values_of(&sum, 0);
    for (int fast = 0; fast < 2; fast++) {
        for (int i = 0; i < WIDTH; i++)
            x[i] = 1000;
        one_run(&sum, fast);
        assert_true(fabs(result(&sum, 0, 0) - 1000 - log(WIDTH)) < 1e-3);
        for (int i = 0; i < WIDTH; i++)
            x[i] = -INFINITY;
        one_run(&sum, fast);
        assert_true(result(&sum, 0, 0) == -INFINITY);
        x[33] = 7;
        one_run(&sum, fast);
        assert_true(fabs(result(&sum, 0, 0) - 7) < 1e-5);
        x[11] = INFINITY;
        one_run(&sum, fast);
        assert_true(result(&sum, 0, 0) == INFINITY);
        x[20] = NAN;
        one_run(&sum, fast);
        assert_true(isnan(result(&sum, 0, 0)));
    }
    fixture_release(&sum.fixture);
}

/* A mean far from 0 takes no digits from the variance. */
static void variance_far_out(void **state)
{
    (void)state;
    struct one variance;
    one_init(&variance, &op_reduce_variance, 1, &all);
    for (int fast = 0; fast < 2; fast++) {
        for (int i = 0; i < WIDTH; i++)
            values_of(&variance, 0)[i] = 1e6f + (float)(i % 2);
        one_run(&variance, fast);
        assert_true(fabs(result(&variance, 0, 0) - 0.25) < 1e-6);
    }
    fixture_release(&variance.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_is_the_largest),  cmocka_unit_test(first_of_equals_is_the_place),
        cmocka_unit_test(top_k_in_order),      cmocka_unit_test(shares_of_the_largest),
        cmocka_unit_test(products_with_zeros), cmocka_unit_test(logsumexp_far_out),
        cmocka_unit_test(variance_far_out),
    };
    return cmocka_run_group_tests_name("reduction", tests, NULL, NULL);
}
