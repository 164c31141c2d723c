/* test_normalize.c - what the common tests of ops cannot ask of the ones that
   normalise: known answers, means far from 0, and all kernels in f32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "op_fixture.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static void start(struct fixture *fixture, int64_t batch)
{
    *fixture = (struct fixture){0};
    assert_int_equal(budget_make(&fixture->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&fixture->graph, fixture->budget, batch);
}

static void ready(struct fixture *fixture)
{
    plim_error error = {0};
    if (graph_check(&fixture->graph, &error))
        fail_msg("%s", error.message);
    fixture_fill(fixture, 1);
}

/* Every node with its kernel of the CPU backend, in slices of `slice`. */
static void run_fast(struct fixture *fixture, int64_t slice, int64_t count)
{
    struct backend *backend = NULL;
    assert_int_equal(cpu_backend.open(&backend, fixture->budget, NULL), PLIM_OK);
    backend_threads(backend, 1);
    for (int n = 0; n < fixture->graph.node_count; n++) {
        const struct node *node = fixture->graph.node[n];
        const struct kernel *kernel = NULL;
        struct cut cut;
        struct call call;
        node->op->cut(&cut, node);
        int64_t end = cut.by_sample ? count : cut.extent, step = cut.by_sample ? slice : end;
        int64_t tail = end % step;
        const struct kernel_request request = {.node = node, .slice = step, .short_rows = &tail, .short_count = 1};
        assert_int_equal(cpu_backend.prepare(&kernel, backend, &request, NULL), PLIM_OK);
        assert_string_not_equal(kernel->implementation, "reference");
        void *scratch = budget_take(fixture->budget, TAG_SCRATCH, kernel->scratch_bytes);
        void *pack = budget_take(fixture->budget, TAG_SCRATCH, kernel->pack_bytes);
        fixture_call(&call, fixture, node, 0, end, count);
        for (int unit = kernel->pack_units - 1; unit >= 0; unit--)
            kernel->pack(kernel, &call, unit, pack);
        for (int64_t begin = 0; begin < end; begin += step) {
            fixture_call(&call, fixture, node, begin, begin + step < end ? begin + step : end, count);
            call.scratch = scratch;
            call.pack = pack;
            kernel->run(kernel, &call);
        }
        budget_give(fixture->budget, TAG_SCRATCH, scratch, kernel->scratch_bytes);
        budget_give(fixture->budget, TAG_SCRATCH, pack, kernel->pack_bytes);
    }
    cpu_backend.close(backend);
}

/* ---- batch normalisation ------------------------------------------------- */

static struct tensor *statistics_of(struct graph *graph, struct tensor *x)
{
    struct batch_statistics_attributes type = {x->type};
    struct tensor *moments[2] = {unary(graph, &op_batch_moments, x), NULL};
    moments[1] = graph_output(moments[0], 1);
    return graph_add(graph, &op_batch_statistics, moments, 2, &type, sizeof type);
}

/* Two channels by hand: 1, 3, 5, 7 and 2, 2, 2, 2. The batch has 3 samples, of which 2 are there. */
static void batch_statistics_by_hand(void **state)
{
    (void)state;
    static const float values[] = {1, 2, 3, 2, 5, 2, 7, 2, 99, 99, 99, 99};
    struct fixture f;
    start(&f, 3);
    struct tensor *x = graph_input(&f.graph, "x", 0, TYPE_F32, SHAPE(3, 2, 2));
    struct tensor *mean = statistics_of(&f.graph, x), *variance = graph_output(mean, 1);
    ready(&f);
    memcpy(f.data[x->id], values, sizeof values);
    for (int slice = 1; slice <= 2; slice++) {
        run_fast(&f, slice, 2);
        assert_true(fixture_get(&f, mean, 0) == 4 && fixture_get(&f, mean, 1) == 2);
        assert_true(fixture_get(&f, variance, 0) == 5 && fixture_get(&f, variance, 1) == 0);
    }
    fixture_release(&f);
}

/* A mean 100,000 times the deviation: f32 sums of squares would have no digit left. */
static void variance_far_from_zero(void **state)
{
    (void)state;
    enum { SAMPLES = 7, POSITIONS = 50, CHANNELS = 3 };
    struct fixture f;
    start(&f, SAMPLES);
    struct tensor *x = graph_input(&f.graph, "x", 0, TYPE_F32, SHAPE(SAMPLES, POSITIONS, CHANNELS));
    struct tensor *mean = statistics_of(&f.graph, x), *variance = graph_output(mean, 1);
    ready(&f);
    float *data = f.data[x->id];
    for (int i = 0; i < SAMPLES * POSITIONS * CHANNELS; i++)
        data[i] = 65536.0f + data[i];
    run_fast(&f, 2, SAMPLES);
    for (int k = 0; k < CHANNELS; k++) {
        double sum = 0, squares = 0, values = SAMPLES * POSITIONS;
        for (int i = 0; i < SAMPLES * POSITIONS; i++)
            sum += (double)data[i * CHANNELS + k];
        for (int i = 0; i < SAMPLES * POSITIONS; i++)
            squares += pow((double)data[i * CHANNELS + k] - sum / values, 2);
        assert_true(fabs(fixture_get(&f, variance, k) - squares / values) <= 1e-5 * squares / values);
    }
    fixture_release(&f);
}

/* What comes out has mean 0 and variance 1, and mean and variance do not depend on how many samples a slice has. */
static void batch_normalize_is_normal(void **state)
{
    (void)state;
    enum { SAMPLES = 9, POSITIONS = 40, CHANNELS = 5 };
    struct batch_normalize_attributes attributes = {.epsilon = 1e-9};
    struct fixture f;
    start(&f, SAMPLES);
    struct tensor *x = graph_input(&f.graph, "x", 0, TYPE_F32, SHAPE(SAMPLES, POSITIONS, CHANNELS));
    struct tensor *mean = statistics_of(&f.graph, x), *in[3] = {x, mean, graph_output(mean, 1)};
    struct tensor *y = graph_add(&f.graph, &op_batch_normalize, in, 3, &attributes, sizeof attributes);
    ready(&f);
    run_fast(&f, 4, SAMPLES);
    for (int k = 0; k < CHANNELS; k++) {
        double sum = 0, squares = 0, values = SAMPLES * POSITIONS;
        for (int i = 0; i < SAMPLES * POSITIONS; i++) {
            double value = fixture_get(&f, y, i * CHANNELS + k);
            sum += value;
            squares += value * value;
        }
        assert_true(fabs(sum / values) < 1e-6 && fabs(squares / values - 1) < 1e-5);
    }
    fixture_release(&f);
}

/* A relu or relu6 behind it goes into it; another bound stays alone. */
static void activations_are_taken_in(void **state)
{
    (void)state;
    static const struct numbers_attributes six = {0, 6, 0}, seven = {0, 7, 0};
    static const enum activation expected[] = {ACTIVATION_RELU, ACTIVATION_RELU6, ACTIVATION_NONE};
    for (int kind = 0; kind < 3; kind++) {
        struct batch_normalize_attributes attributes = {.epsilon = 1e-3};
        struct fixture f;
        start(&f, 3);
        struct tensor *x = graph_input(&f.graph, "x", 0, TYPE_F32, SHAPE(3, 2, 2));
        struct tensor *in[3] = {x, graph_weight(&f.graph, "mean", TYPE_F32, SHAPE(2), false),
                                graph_weight(&f.graph, "variance", TYPE_F32, SHAPE(2), false)};
        struct tensor *z = graph_add(&f.graph, &op_batch_normalize, in, 3, &attributes, sizeof attributes);
        if (kind == 0)
            unary(&f.graph, &op_relu, z);
        else
            graph_add(&f.graph, &op_rectify, &z, 1, kind == 1 ? &six : &seven, sizeof six);
        assert_int_equal(fuse(&f.graph, NULL), PLIM_OK);
        const struct batch_normalize_attributes *fused = f.graph.node[0]->attributes;
        assert_int_equal(f.graph.node_count, kind == 2 ? 2 : 1);
        assert_int_equal(fused->activation, expected[kind]);
        fixture_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_statistics_by_hand),
        cmocka_unit_test(variance_far_from_zero),
        cmocka_unit_test(batch_normalize_is_normal),
        cmocka_unit_test(activations_are_taken_in),
    };
    return cmocka_run_group_tests_name("normalize", tests, NULL, NULL);
}
