/* test_elementwise.c - what the common tests of ops do not ask: how exact the kernels' functions are over the floats,
   infinities and what is not a number, casts at their limits, shapes that do not broadcast, and values known
   by hand. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu.h"
#include "base/numbers/count.h"
#include "op_fixture.h"
#include "ops/ops.h"

#define MOST 20000

/* One op on `count` elements a side, batch of 1; run by a kernel and by the reference. */
struct trial {
    struct budget *budget;
    struct graph graph;
    const struct node *node;
    size_t bytes; /* of an element of the output */
    float fast[MOST], exact[MOST];
};

static void trial_run(struct trial *trial, const struct cpu_variant *variant, const struct node *node,
                      void *const *inputs, void *fast, void *exact)
{
    struct backend *backend;
    const struct kernel *kernel;
    struct call call = {.node = node, .begin = 0, .end = 1, .count = 1};
    assert_int_equal(cpu_backend.open(&backend, trial->budget, NULL), PLIM_OK);
    ((struct cpu_backend *)backend)->variant = variant;
    assert_int_equal(cpu_backend.prepare(&kernel, backend, &(struct kernel_request){.node = node, .slice = 1}, NULL),
                     PLIM_OK);
    assert_string_not_equal(kernel->implementation, "reference");
    call.scratch = budget_take(trial->budget, TAG_SCRATCH, kernel->scratch_bytes);
    for (int i = 0; i < node->input_count; i++)
        call.input[i] = inputs[i];
    call.output[0] = fast;
    kernel->run(kernel, &call);
    call.output[0] = exact;
    node->op->reference(&call);
    budget_give(trial->budget, TAG_SCRATCH, call.scratch, kernel->scratch_bytes);
    cpu_backend.close(backend);
}

static void trial_init(struct trial *trial)
{
    assert_int_equal(budget_make(&trial->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&trial->graph, trial->budget, 1);
}

static void trial_release(struct trial *trial)
{
    graph_release(&trial->graph);
    budget_free(trial->budget);
}

static struct tensor *side(struct trial *trial, const char *name, enum type type, int64_t count)
{
    return graph_input(&trial->graph, name, 0, type, shape_of(2, (int64_t[]){1, count}));
}

static const struct node *made(struct trial *trial, struct tensor *y)
{
    plim_error error = {0};
    if (graph_check(&trial->graph, &error))
        fail_msg("%s", error.message);
    return y->producer;
}

/* ---- how exact ------------------------------------------------------------ */

static double units(float got, double expected)
{
    if (isnan(expected) || isinf((float)expected))
        return isnan(expected) ? (isnan(got) ? 0 : INFINITY) : got == (float)expected ? 0 : INFINITY;
    /* Denormals are zero in a run: an error of the smallest normal number is none. */
    if (fabs(expected) < 2 * FLT_MIN)
        return fabs(got - expected) <= 2 * FLT_MIN ? 0 : INFINITY;
    return fabs((double)got - expected) / ldexp(1, ilogb(expected) - 23);
}

struct exactness {
    const struct op *op;
    double (*of)(double x);
    double low, high, units;
};

static double rsqrt_of(double x)
{
    return 1 / sqrt(x);
}
static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}
static double softplus_of(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double log_sigmoid_of(double x)
{
    return -softplus_of(-x);
}
static double gelu_of(double x)
{
    return x * erfc(-x / sqrt(2)) / 2;
}
static double silu_of(double x)
{
    return x * sigmoid_of(x);
}
static double mish_of(double x)
{
    return x * tanh(softplus_of(x));
}

/* 16 units are 1e-6. */
static const struct exactness functions[] = {
    {&op_exp, exp, -104, 89, 4},
    {&op_expm1, expm1, -20, 89, 4},
    {&op_expm1, expm1, -1e-3, 1e-3, 4},
    {&op_log, log, 0, 3.4e38, 4},
    {&op_log, log, 0.5, 2, 4},
    {&op_log1p, log1p, -0.999, 10, 4},
    {&op_log1p, log1p, -1e-3, 1e-3, 4},
    {&op_log1p, log1p, 0, 3.4e38, 4},
    {&op_sqrt, sqrt, 0, 3.4e38, 1},
    {&op_rsqrt, rsqrt_of, 1e-30, 1e30, 2},
    {&op_tanh, tanh, -12, 12, 4},
    {&op_tanh, tanh, -1e-2, 1e-2, 4},
    {&op_erf, erf, -5, 5, 4},
    {&op_erf, erf, -1e-2, 1e-2, 4},
    {&op_sin, sin, -10, 10, 4},
    {&op_sin, sin, -1e6, 1e6, 4},
    {&op_cos, cos, -10, 10, 4},
    {&op_cos, cos, -1e6, 1e6, 4},
    {&op_tan, tan, -10, 10, 4},
    {&op_tan, tan, -1e6, 1e6, 4},
    {&op_sin, sin, -1e30, 1e30, 1},
    {&op_softplus, softplus_of, -80, 80, 4},
    {&op_log_sigmoid, log_sigmoid_of, -80, 80, 4},
    {&op_silu, silu_of, -80, 80, 6},
    {&op_gelu, gelu_of, -9, 9, 16},
    {&op_mish, mish_of, -80, 80, 8},
};

/* Evenly over the range, and evenly over the exponents where it has both signs or starts at 0. */
static float point(const struct exactness *f, int i)
{
    double part = (i % (MOST / 2) + 0.5) / (MOST / 2);
    if (i < MOST / 2 || (f->low < 0 && f->high <= 0))
        return (float)(f->low + part * (f->high - f->low));
    double size = ldexp(1 + part, (int)(part * 60) - 60) * f->high;
    return (float)fmin(size * (i % 2 && f->low < 0 ? f->low / f->high : 1), f->high);
}

static void functions_are_exact(void **state)
{
    struct trial *trial = *state;
    static float x[MOST];
    trial_init(trial);
    for (size_t k = 0; k < COUNT(functions); k++) {
        const struct exactness *f = &functions[k];
        const struct node *node = made(trial, unary(&trial->graph, f->op, side(trial, "x", TYPE_F32, MOST)));
        for (int i = 0; i < MOST; i++)
            x[i] = point(f, i);
        for (int v = 0; v < cpu_variant_count; v++) {
            if (!cpu_variants[v].supported())
                continue;
            trial_run(trial, cpu_variants[v].variant, node, (void *[]){x}, trial->fast, trial->exact);
            double worst = 0, at = 0;
            for (int i = 0; i < MOST; i++) {
                double off = units(trial->fast[i], f->of(x[i]));
                at = off > worst ? x[i] : at;
                worst = off > worst ? off : worst;
            }
            /* Without fused multiply-add the square of gelu's argument is rounded. */
            bool plain = cpu_variants[v].variant == &cpu_variant_plain;
            print_message("%s %s: %.2f units, at %g\n", f->op->name, cpu_variants[v].variant->name, worst, at);
            if (!(worst <= f->units * (plain && f->op == &op_gelu ? 4 : 1)))
                fail_msg("%s (%s): %.9g units at %.9g", f->op->name, cpu_variants[v].variant->name, worst, at);
        }
    }
    trial_release(trial);
}

static void powers_are_exact(void **state)
{
    struct trial *trial = *state;
    static float a[MOST], b[MOST];
    trial_init(trial);
    struct tensor *base = side(trial, "a", TYPE_F32, MOST), *exponent = side(trial, "b", TYPE_F32, MOST);
    const struct node *node = made(trial, binary(&trial->graph, &op_power, base, exponent));
    for (int i = 0; i < MOST; i++) {
        a[i] = (float)(ldexp(1 + i % 97 / 97.0, i % 61 - 30) * (i % 3 ? 1 : -1)) * (i % 53 ? 1 : 0);
        b[i] = i % 3 && i % 5 ? (float)(i % 89) / 11 - 3 : (float)(i % 13 - 6);
        b[i] = a[i] == 0 ? fabsf(b[i]) : b[i];
    }
    for (int v = 0; v < cpu_variant_count; v++) {
        if (!cpu_variants[v].supported())
            continue;
        trial_run(trial, cpu_variants[v].variant, node, (void *[]){a, b}, trial->fast, trial->exact);
        for (int i = 0; i < MOST; i++)
            if (!(units(trial->fast[i], pow(a[i], b[i])) <= 1))
                fail_msg("%.9g ^ %.9g is %.9g, not %.9g", a[i], b[i], trial->fast[i], pow(a[i], b[i]));
    }
    trial_release(trial);
}

/* ---- infinities and what is not a number ------------------------------------- */

static const float odd[] = {NAN,       INFINITY,   -INFINITY,  0.0f,        -0.0f,  1.0f,  -1.0f,  1e-37f,
                            -1e-37f,   3e38f,      -3e38f,     1e10f,       -1e10f, 88.8f, -88.8f, 100.0f,
                            -100.0f,   1e-8f,      -1e-8f,     2.5f,        -2.5f,  3.5f,  0.5f,   -0.5f,
                            8388609.f, 16777216.f, 4194304.5f, -4194303.5f, 6.0f,   -3.0f, 3.0f,   2.0f};

static void same(const struct node *node, float got, float expected, float x)
{
    bool close = fabs((double)got - expected) <= 2e-6 * fmax(fabs((double)expected), 1e-30);
    bool tiny = fabsf(got) <= 2 * FLT_MIN && fabsf(expected) <= 2 * FLT_MIN;
    if (!(isnan(expected) ? isnan(got) : got == expected || close || tiny))
        fail_msg("%s of %.9g is %.9g, not %.9g", node->op->name, x, got, expected);
}

static void check_odd(struct trial *trial, const struct op *op, const struct numbers_attributes *numbers)
{
    float x[COUNT(odd)];
    uint8_t truth[2][COUNT(odd)];
    struct tensor *from = side(trial, "x", TYPE_F32, COUNT(odd));
    bool has = op->attributes_bytes != 0;
    const struct node *node =
        made(trial, graph_add(&trial->graph, op, &from, 1, has ? numbers : NULL, has ? sizeof *numbers : 0));
    memcpy(x, odd, sizeof odd);
    for (int v = 0; v < cpu_variant_count; v++) {
        if (!cpu_variants[v].supported())
            continue;
        if (node->output[0]->type == TYPE_BOOL) {
            trial_run(trial, cpu_variants[v].variant, node, (void *[]){x}, truth[0], truth[1]);
            assert_memory_equal(truth[0], truth[1], sizeof truth[0]);
            continue;
        }
        trial_run(trial, cpu_variants[v].variant, node, (void *[]){x}, trial->fast, trial->exact);
        for (int i = 0; i < COUNT(odd); i++)
            same(node, trial->fast[i], trial->exact[i], x[i]);
    }
}

/* squareplus squares its argument: 3e38 is beyond it, as it is beyond Keras's. */
static void odd_values_are_the_references(void **state)
{
    struct trial *trial = *state;
    trial_init(trial);
#define NONE         (0)
#define NUMBERS(...) (__VA_ARGS__)
#define BRACES(...)  {__VA_ARGS__}
#define ONE(name, numbers)                                                                                             \
    if (&op_##name != &op_squareplus)                                                                                  \
        check_odd(trial, &op_##name, &(const struct numbers_attributes)BRACES numbers);
#define FROM_X(name, example, numbers, ...) ONE(name, numbers)
#define FROM_Y(name, example, numbers, ...) ONE(name, numbers)
#define FAR_X(name, example, numbers, ...)  ONE(name, numbers)
#define FAR_Y(name, example, numbers, ...)  ONE(name, numbers)
#define FLAT(name, example, ...)            ONE(name, NONE)
#define PREDICATE(name, example, ...)       ONE(name, NONE)
#include "ops/elementwise/unary.def"
    trial_release(trial);
}

static void odd_pairs_are_the_references(void **state)
{
    static const struct op *const ops[] = {&op_power, &op_minimum, &op_maximum, &op_divide, &op_equal, &op_less};
    struct trial *trial = *state;
    static float a[COUNT(odd) * COUNT(odd)], b[COUNT(odd) * COUNT(odd)];
    static uint8_t truth[2][COUNT(odd) * COUNT(odd)];
    trial_init(trial);
    for (int i = 0; i < COUNT(odd) * COUNT(odd); i++) {
        a[i] = odd[i / COUNT(odd)];
        b[i] = odd[i % COUNT(odd)];
    }
    for (size_t k = 0; k < COUNT(ops); k++) {
        struct tensor *first = side(trial, "a", TYPE_F32, COUNT(odd) * COUNT(odd)),
                      *second = side(trial, "b", TYPE_F32, COUNT(odd) * COUNT(odd));
        const struct node *node = made(trial, binary(&trial->graph, ops[k], first, second));
        bool bytes = node->output[0]->type == TYPE_BOOL;
        for (int v = 0; v < cpu_variant_count; v++) {
            if (!cpu_variants[v].supported())
                continue;
            trial_run(trial, cpu_variants[v].variant, node, (void *[]){a, b}, bytes ? (void *)truth[0] : trial->fast,
                      bytes ? (void *)truth[1] : trial->exact);
            for (int i = 0; i < COUNT(odd) * COUNT(odd); i++)
                same(node, bytes ? truth[0][i] : trial->fast[i], bytes ? truth[1][i] : trial->exact[i], a[i]);
        }
    }
    trial_release(trial);
}

/* ---- casts ---------------------------------------------------------------- */

static const double limits[] = {
    0,          -0.0,      0.5,    -0.5,         1.5,      2.5,       -1.5,         127,           128,   -129,
    255,        256,       65504,  65519.9,      65520,    65536,     1e9,          3e9,           -3e9,  9.3e18,
    -9.3e18,    1e300,     -1e300, 5.9604645e-8, 2.98e-8,  2.99e-8,   6.1e-5,       1e-40,         1e-50, 1.00390625,
    1.01171875, 3.3895e38, 3.4e38, NAN,          INFINITY, -INFINITY, 1.0004882812, 1.00146484375, 0.1,   -0.1};

static void casts_keep_their_limits(void **state)
{
    struct trial *trial = *state;
    double from[COUNT(limits)], back[2][COUNT(limits)];
    trial_init(trial);
    for (int pair = 0; pair < TYPE_COUNT * TYPE_COUNT; pair++) {
        enum type type = (enum type)(pair / TYPE_COUNT);
        struct cast_attributes to = {pair % TYPE_COUNT};
        struct tensor *x = side(trial, "x", type, COUNT(limits));
        const struct node *node = made(trial, graph_add(&trial->graph, &op_cast, &x, 1, &to, sizeof to));
        for (int i = 0; i < COUNT(limits); i++)
            element_set(from, type, i, limits[i]);
        for (int v = 0; v < cpu_variant_count; v++) {
            if (!cpu_variants[v].supported())
                continue;
            trial_run(trial, cpu_variants[v].variant, node, (void *[]){from}, back[0], back[1]);
            for (int i = 0; i < COUNT(limits); i++) {
                double got = element_get(back[0], (enum type)to.type, i),
                       expected = element_get(back[1], (enum type)to.type, i);
                if (!(got == expected || (isnan(got) && isnan(expected))))
                    fail_msg("%.17g from %s to %s is %.17g, not %.17g", limits[i], type_name(type),
                             type_name((enum type)to.type), got, expected);
            }
        }
    }
    trial_release(trial);
}

/* ---- shapes ---------------------------------------------------------------- */

static void refuse_shapes(struct trial *trial, const struct op *op, struct shape a, struct shape b, bool weight)
{
    plim_error error = {0};
    graph_init(&trial->graph, trial->budget, 4);
    struct tensor *x = graph_input(&trial->graph, "x", 0, TYPE_F32, a);
    struct tensor *y =
        weight ? graph_weight(&trial->graph, "w", TYPE_F32, b, true) : graph_input(&trial->graph, "y", 1, TYPE_F32, b);
    binary(&trial->graph, op, x, y);
    assert_int_equal(graph_check(&trial->graph, &error), PLIM_BAD_MODEL);
    assert_non_null(strstr(error.message, "do not broadcast"));
    graph_release(&trial->graph);
}

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static void shapes_that_do_not_broadcast_are_refused(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(budget_make(&trial->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    refuse_shapes(trial, &op_add, SHAPE(4, 3), SHAPE(4, 2), false);
    refuse_shapes(trial, &op_multiply, SHAPE(4, 3, 2), SHAPE(3), true);
    /* As long as the batch, which may be short; before the batch. */
    refuse_shapes(trial, &op_add, SHAPE(4, 3), SHAPE(4, 3), true);
    refuse_shapes(trial, &op_less, SHAPE(4, 3), SHAPE(2, 1, 3), true);
    budget_free(trial->budget);
}

/* [N, c] beside [N, h, w, c] is [N, 1, 1, c], not [1, N, ...]. */
static void the_batch_stays_in_front(void **state)
{
    struct trial *trial = *state;
    trial_init(trial);
    graph_release(&trial->graph);
    graph_init(&trial->graph, trial->budget, 4);
    struct tensor *x = graph_input(&trial->graph, "x", 0, TYPE_F32, SHAPE(4, 5, 4, 3));
    struct tensor *y =
        binary(&trial->graph, &op_multiply, x, graph_input(&trial->graph, "s", 1, TYPE_F32, SHAPE(4, 3)));
    assert_true(shape_equal(&made(trial, y)->output[0]->shape, &x->shape));
    trial_release(trial);
}

/* ---- values known by hand ---------------------------------------------------- */

static void known_values(void **state)
{
    struct trial *trial = *state;
    struct axis_attributes last = {0};
    static const float x[3] = {0, 0.5f, 1}, sparse[3] = {0, 0.25f, 0.75f};
    static const float leaky[5] = {-2, 0.25f, 0.5f, 1.5f, 9}, bent[5] = {-0.25f, -0.025f, 0, 1.5f, 6};
    struct numbers_attributes numbers = {0.1, 6, 0.5};
    trial_init(trial);
    struct tensor *three = side(trial, "x", TYPE_F32, 3), *five = side(trial, "y", TYPE_F32, 5);
    const struct node *node = made(trial, graph_add(&trial->graph, &op_sparsemax, &three, 1, &last, sizeof last));
    trial_run(trial, cpu_variants[0].variant, node, (void *[]){(void *)x}, trial->fast, trial->exact);
    for (int i = 0; i < 3; i++)
        assert_float_equal(trial->exact[i], sparse[i], 1e-6);
    node = made(trial, graph_add(&trial->graph, &op_rectify, &five, 1, &numbers, sizeof numbers));
    trial_run(trial, cpu_variants[0].variant, node, (void *[]){(void *)leaky}, trial->fast, trial->exact);
    for (int i = 0; i < 5; i++)
        assert_float_equal(trial->exact[i], bent[i], 1e-6);
    trial_release(trial);
}

static int setup(void **state)
{
    return (*state = test_malloc(sizeof(struct trial))) ? 0 : -1;
}

static int teardown(void **state)
{
    test_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_exact),           cmocka_unit_test(powers_are_exact),
        cmocka_unit_test(odd_values_are_the_references), cmocka_unit_test(odd_pairs_are_the_references),
        cmocka_unit_test(casts_keep_their_limits),       cmocka_unit_test(shapes_that_do_not_broadcast_are_refused),
        cmocka_unit_test(the_batch_stays_in_front),      cmocka_unit_test(known_values),
    };
    return cmocka_run_group_tests_name("elementwise", tests, setup, teardown);
}
