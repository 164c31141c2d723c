/* test_kernels.c - every kernel of the CPU backend against the reference of
   its op: the examples of all ops, in slices, short batches and each instruction
   set this processor has; and the sizes of the models we measure (convolutions: test_kernels_convolution.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/gemm/gemm_tiles.h"
#include "base/numbers/count.h"
#include "kernel_check.h"

#define BATCH 7

/* ---- every op's examples ------------------------------------------------ */

#define MUCH_WORK 2e5

static const enum type types[] = {TYPE_F32, TYPE_F16, TYPE_BF16};

static void check_examples(struct bench *bench, const struct op *op, enum type type)
{
    static const int64_t slices[] = {0, 1, 2, 3}, counts[] = {BATCH, 4};
    struct fixture fast, exact;
    for (int variant = 0; fixture_init(&fast, op, variant, type, BATCH); variant++) {
        assert_true(fixture_init(&exact, op, variant, type, BATCH));
        struct cut cut;
        op->cut(&cut, fast.node);
        /* Small floats, whose references take long: not each pair of slice and count; one where there is much work. */
        int first = type == TYPE_F32 || cut.work < MUCH_WORK ? 0 : 5, step = type == TYPE_F32 ? 1 : 3;
        for (int i = first; i < 8; i += step)
            check_pair(bench, &fast, &exact, slices[i / 2], counts[i % 2]);
        fixture_release(&fast);
        fixture_release(&exact);
    }
}

static void check_op(const struct op *op)
{
    struct bench bench;
    for (int i = 0; i < cpu_variant_count; i++) {
        if (!cpu_variants[i].supported())
            continue;
        bench_open(&bench, cpu_variants[i].variant, 2);
        for (size_t k = 0; k < (op->wide_only ? 1 : COUNT(types)); k++)
            check_examples(&bench, op, types[k]);
        bench_close(&bench);
    }
}

#define OP(name)                                                                                                       \
    static void parity_of_##name(void **state)                                                                         \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_op(&op_##name);                                                                                          \
    }
#include "ops/ops.def"
#undef OP

/* ---- who runs what ------------------------------------------------------ */

/* In types that are trained in only the first examples: others come later. */
static void nothing_falls_to_the_reference(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture fixture;
    bench_open(&bench, NULL, 2);
    for (int i = 0; i < all_ops_count * (int)COUNT(types); i++) {
        const struct op *op = all_ops[i / (int)COUNT(types)];
        if (i % (int)COUNT(types) && op->wide_only)
            continue;
        assert_true(fixture_init(&fixture, op, 0, types[i % (int)COUNT(types)], BATCH));
        bool batched = fixture.node->output_count && fixture.node->output[0]->batched;
        for (int k = 0; k < fixture.node->input_count; k++)
            batched |= fixture.node->input[k] && fixture.node->input[k]->batched;
        if (i % (int)COUNT(types) && !batched) { /* weights, their states and updates are never small */
            fixture_release(&fixture);
            continue;
        }
        const struct kernel *kernel = kernel_of(&bench, fixture.node, 2, BATCH);
        if (strcmp(kernel->implementation, "reference") == 0)
            fail_msg("%s of %s is run by its reference", op->name, type_name(types[i % (int)COUNT(types)]));
        fixture_release(&fixture);
    }
    bench_close(&bench);
}

/* The bits of all elements at once, from runs of them. */
static void check_runs(struct bench *bench, const struct op *op, enum type type, int *found)
{
    enum { MANY = 400 };
    struct fixture whole, runs;
    struct call call;
    assert_true(fixture_init(&whole, op, 0, type, MANY));
    assert_true(fixture_init(&runs, op, 0, type, MANY));
    const struct node *node = runs.node;
    const struct kernel *kernel = kernel_of(bench, node, MANY, MANY);
    int64_t all = kernel->each ? elements(node->output_count ? node->output[0] : node->input[0], MANY) : 0;
    fixture_fill(&whole, 3);
    fixture_fill(&runs, 3);
    fixture_run_before(&whole, MANY);
    fixture_run_before(&runs, MANY);
    void *scratch = budget_take(bench->budget, TAG_SCRATCH, kernel->scratch_bytes);
    if (all)
        run_kernel(bench, &whole, whole.node, 0, MANY);
    for (int64_t first = 0; first < all; first += EACH_GRAIN) {
        fixture_call(&call, &runs, node, 0, MANY, MANY);
        call.end = all - first < EACH_GRAIN ? all - first : EACH_GRAIN;
        call.scratch = scratch;
        for (int i = 0; i < node->input_count; i++)
            if (call.input[i])
                call.input[i] = (char *)call.input[i] + first * (int64_t)type_bytes(node->input[i]->type);
        for (int k = 0; k < node->output_count; k++)
            call.output[k] = (char *)call.output[k] + first * (int64_t)type_bytes(node->output[k]->type);
        kernel->each->run(kernel->each, &call);
    }
    for (int k = 0; all && k < node->output_count; k++)
        assert_memory_equal(whole.data[node->output[k]->id], runs.data[node->output[k]->id],
                            whole.bytes[node->output[k]->id]);
    *found += all > EACH_GRAIN;
    budget_give(bench->budget, TAG_SCRATCH, scratch, kernel->scratch_bytes);
    fixture_release(&whole);
    fixture_release(&runs);
}

static void runs_of_elements(void **state)
{
    (void)state;
    int found = 0;
    for (int v = 0; v < cpu_variant_count; v++) {
        struct bench bench;
        if (!cpu_variants[v].supported())
            continue;
        bench_open(&bench, cpu_variants[v].variant, 2);
        for (int i = 0; i < all_ops_count * (int)COUNT(types); i++)
            if (i % (int)COUNT(types) == 0 || !all_ops[i / (int)COUNT(types)]->wide_only)
                check_runs(&bench, all_ops[i / (int)COUNT(types)], types[i % (int)COUNT(types)], &found);
        bench_close(&bench);
    }
    assert_true(found > 100); /* activations, their gradients, arithmetic */
}

/* Outputs that are cut, of the examples of an op in one type: the same bytes from slices of any length. */
static void check_slices(struct bench *bench, const struct op *op, enum type type, int *compared)
{
    enum { ROWS = 24 };
    static const int64_t slices[] = {1, 2, 5, 8, 12};
    struct fixture whole, sliced;
    struct cut cut;
    for (int variant = 0; fixture_init(&whole, op, variant, type, ROWS); variant++) {
        fixture_fill(&whole, 3);
        fixture_run_before(&whole, ROWS);
        run_kernel(bench, &whole, whole.node, 0, ROWS);
        op->cut(&cut, whole.node);
        for (size_t s = 0; s < COUNT(slices) && !op->updates; s++) {
            assert_true(fixture_init(&sliced, op, variant, type, ROWS));
            fixture_fill(&sliced, 3);
            fixture_run_before(&sliced, ROWS);
            run_kernel(bench, &sliced, sliced.node, slices[s], ROWS);
            for (int k = 0; k < op->outputs; k++) {
                int id = whole.node->output[k]->id;
                if (cut.output[k] == PART_SUM)
                    continue;
                if (memcmp(whole.data[id], sliced.data[id], whole.bytes[id]) != 0)
                    fail_msg("%s, example %d, %s: output %d is another in slices of %lld", op->name, variant,
                             type_name(type), k, (long long)slices[s]);
                ++*compared;
            }
            fixture_release(&sliced);
        }
        fixture_release(&whole);
    }
}

/* Slices follow what a chain holds, so no row may depend on the slice that it is computed in. */
static void rows_are_the_same_in_any_slice(void **state)
{
    static const enum type compute[] = {TYPE_F32, TYPE_BF16};
    int compared = 0;
    (void)state;
    for (int v = 0; v < cpu_variant_count; v++) {
        struct bench bench;
        if (!cpu_variants[v].supported())
            continue;
        bench_open(&bench, cpu_variants[v].variant, 2);
        for (int i = 0; i < all_ops_count; i++)
            for (size_t t = 0; t < (all_ops[i]->wide_only ? 1 : COUNT(compute)); t++)
                check_slices(&bench, all_ops[i], compute[t], &compared);
        bench_close(&bench);
    }
    assert_true(compared > 1000);
}

static void doubles_are_the_references(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture fixture;
    bench_open(&bench, NULL, 2);
    assert_true(fixture_init(&fixture, &op_matmul, 0, TYPE_F64, BATCH));
    assert_string_equal(kernel_of(&bench, fixture.node, 2, BATCH)->implementation, "reference");
    fixture_release(&fixture);
    bench_close(&bench);
}

static void equal_nodes_share_a_kernel(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture a, b, c, d;
    bench_open(&bench, NULL, 2);
    assert_true(fixture_init(&a, &op_conv2d, 0, TYPE_F32, BATCH));
    assert_true(fixture_init(&b, &op_conv2d, 0, TYPE_F32, BATCH));
    assert_true(fixture_init(&c, &op_conv2d, 1, TYPE_F32, BATCH));
    const struct kernel *kernel = kernel_of(&bench, a.node, 2, BATCH);
    assert_ptr_equal(kernel_of(&bench, b.node, 2, BATCH), kernel);
    assert_ptr_not_equal(kernel_of(&bench, b.node, 3, BATCH), kernel);
    assert_ptr_not_equal(kernel_of(&bench, c.node, 2, BATCH), kernel);
    /* A weight as large as a batch is no batch: it has no short ones. */
    fixture_begin(&d, BATCH);
    unary(&d.graph, &op_relu, graph_weight(&d.graph, "w", TYPE_F32, SHAPE(BATCH, 3), true));
    unary(&d.graph, &op_relu, graph_input(&d.graph, "x", 0, TYPE_F32, SHAPE(BATCH, 3)));
    fixture_end(&d);
    assert_ptr_not_equal(kernel_of(&bench, d.graph.node[0], 2, BATCH), kernel_of(&bench, d.graph.node[1], 2, BATCH));
    fixture_release(&d);
    fixture_release(&a);
    fixture_release(&b);
    fixture_release(&c);
    bench_close(&bench);
}

/* ---- real sizes --------------------------------------------------------- */

struct matmul_case {
    int64_t batch, in, out;
    bool transposed, bias;
    int64_t slice;
};

static void build_typed_matmul(struct fixture *fixture, const struct matmul_case *c, enum type type)
{
    struct graph *graph = &fixture->graph;
    struct matmul_attributes attributes = {c->transposed, c->bias ? ACTIVATION_RELU : ACTIVATION_NONE, 0};
    fixture_begin(fixture, c->batch);
    struct tensor *x = graph_input(graph, "x", 0, type, SHAPE(c->batch, c->in));
    struct shape w_shape = c->transposed ? SHAPE(c->out, c->in) : SHAPE(c->in, c->out);
    struct tensor *w = graph_weight(graph, "w", type, w_shape, true);
    struct tensor *bias = c->bias ? graph_weight(graph, "bias", TYPE_F32, SHAPE(c->out), true) : NULL;
    graph_add(graph, &op_matmul, (struct tensor *[]){x, w, bias}, 3, &attributes, sizeof attributes);
    fixture_end(fixture);
}

static void build_matmul(struct fixture *fixture, const struct matmul_case *c)
{
    build_typed_matmul(fixture, c, TYPE_F32);
}

static void build_weight_gradient(struct fixture *fixture, const struct matmul_case *c)
{
    struct graph *graph = &fixture->graph;
    fixture_begin(fixture, c->batch);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(c->batch, c->in));
    struct tensor *dy = graph_input(graph, "dy", 1, TYPE_F32, SHAPE(c->batch, c->out));
    binary(graph, &op_matmul_weight_gradient, x, dy);
    fixture_end(fixture);
}

static void check_built(void (*build)(struct fixture *, const struct matmul_case *), const struct matmul_case *c)
{
    struct bench bench;
    struct fixture fast, exact;
    for (int i = 0; i < cpu_variant_count; i++) {
        if (!cpu_variants[i].supported())
            continue;
        bench_open(&bench, cpu_variants[i].variant, 2);
        build(&fast, c);
        build(&exact, c);
        check_pair(&bench, &fast, &exact, c->slice, c->batch);
        check_pair(&bench, &fast, &exact, 0, c->batch - c->batch / 4);
        fixture_release(&fast);
        fixture_release(&exact);
        bench_close(&bench);
    }
}

/* slice counts grains: 16 columns, 8 rows of a heavy gradient. */
static const struct matmul_case matmul_cases[] = {
    {32, 100, 64, false, true, 0},   {32, 100, 64, false, true, 13},  {32, 64, 1, false, true, 0},
    {32, 1, 64, true, false, 0},     {32, 128, 10, false, true, 8},   {32, 10, 128, true, false, 8},
    {1, 100, 64, false, true, 0},    {32, 1300, 128, false, true, 4}, {9, 70, 1000, false, true, 3},
    {32, 128, 1300, true, false, 5}, {131, 130, 600, true, false, 7}, {3, 70000, 1, false, true, 0},
};

static void dense_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(matmul_cases); i++)
        check_built(build_matmul, &matmul_cases[i]);
}

static const struct matmul_case weight_gradient_cases[] = {
    {32, 100, 64, false, false, 0},   {32, 64, 1, false, false, 9},     {32, 128, 10, false, false, 8},
    {200, 20, 64, false, false, 150}, {32, 1300, 128, false, false, 3}, {5, 70000, 1, false, false, 999},
};

static void dense_weight_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(weight_gradient_cases); i++)
        check_built(build_weight_gradient, &weight_gradient_cases[i]);
}

/* Cutting columns, or a batch, must not change the bits of what is left. */
static void cuts_keep_bits(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture whole, cut;
    bench_open(&bench, NULL, 2);
    for (size_t i = 0; i < 2 * COUNT(matmul_cases); i++) {
        const struct matmul_case *c = &matmul_cases[i / 2];
        build_typed_matmul(&whole, c, i % 2 ? TYPE_BF16 : TYPE_F32);
        build_typed_matmul(&cut, c, i % 2 ? TYPE_BF16 : TYPE_F32);
        fixture_fill(&whole, 5);
        fixture_fill(&cut, 5);
        run_kernel(&bench, &whole, whole.node, 0, c->batch);
        run_kernel(&bench, &cut, cut.node, 1, c->batch);
        int id = whole.node->output[0]->id;
        assert_memory_equal(whole.data[id], cut.data[id], whole.bytes[id]);
        fixture_release(&whole);
        fixture_release(&cut);
    }
    bench_close(&bench);
}

/* More classes than are done together, in slices that end between. */
static void classes_in_several_goes(void **state)
{
    (void)state;
    enum { TOKENS = 5, WIDTH = 40, MANY = 500 };
    for (int i = 0; i < 4; i++) {
        enum type type = i % 2 ? TYPE_BF16 : TYPE_F32;
        const struct vocabulary_attributes attributes = {.columns = i > 1, .rounds = type == TYPE_BF16};
        struct fixture both[2];
        struct bench bench;
        for (int k = 0; k < 2; k++) {
            struct graph *graph = &both[k].graph;
            fixture_begin(&both[k], 3);
            struct tensor *inputs[] = {
                graph_input(graph, "h", 0, type, SHAPE(3, TOKENS, WIDTH)),
                graph_weight(graph, "w", type, i > 1 ? SHAPE(WIDTH, MANY) : SHAPE(MANY, WIDTH), true),
                graph_input(graph, "label:500", 1, TYPE_I32, SHAPE(3, TOKENS)),
                graph_input(graph, "positive:sums", 2, TYPE_F32, SHAPE(3, TOKENS)),
                graph_input(graph, "dloss", 3, TYPE_F32, SHAPE(3, TOKENS)),
                graph_weight(graph, "bias", TYPE_F32, SHAPE(MANY), true),
            };
            graph_add(graph, &op_vocabulary_crossentropy_gradient, inputs, 6, &attributes, sizeof attributes);
            fixture_end(&both[k]);
        }
        bench_open(&bench, NULL, 2);
        check_pair(&bench, &both[0], &both[1], 0, 3);
        check_pair(&bench, &both[0], &both[1], 3, 2);
        bench_close(&bench);
        for (int k = 0; k < 2; k++)
            fixture_release(&both[k]);
    }
}

/* What runs where there is no oneDNN: every convolution's examples, with the library out of the way. */
static void columns_take_every_convolution(void **state)
{
    (void)state;
    static const struct op *const ops[] = {
        &op_conv1d, &op_conv1d_input_gradient, &op_conv1d_weight_gradient,
        &op_conv2d, &op_conv2d_input_gradient, &op_conv2d_weight_gradient,
        &op_conv3d, &op_conv3d_input_gradient, &op_conv3d_weight_gradient,
    };
    for (int i = 0; i < cpu_variant_count; i++) {
        struct bench bench;
        struct fixture fixture;
        if (!cpu_variants[i].supported())
            continue;
        struct cpu_variant only = *cpu_variants[i].variant;
        only.entry = only.fallback;
        only.entry_count = only.fallback_count;
        bench_open(&bench, &only, 2);
        for (size_t k = 0; k < COUNT(ops); k++) {
            assert_true(fixture_init(&fixture, ops[k], 0, TYPE_F32, BATCH));
            assert_string_equal(kernel_of(&bench, fixture.node, 2, BATCH)->implementation, only.implementation);
            fixture_release(&fixture);
            check_examples(&bench, ops[k], TYPE_F32);
        }
        bench_close(&bench);
    }
}

/* ---- odd values --------------------------------------------------------- */

static const struct op *const in_place_ops[] = {&op_relu,     &op_relu_gradient, &op_sigmoid,          &op_add,
                                                &op_multiply, &op_scale,         &op_sigmoid_gradient, &op_flatten};

static void in_place_is_the_same(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture apart, placed;
    struct call call;
    bench_open(&bench, NULL, 2);
    for (size_t i = 0; i < COUNT(in_place_ops); i++) {
        assert_true(fixture_init(&apart, in_place_ops[i], 0, TYPE_F32, BATCH));
        assert_true(fixture_init(&placed, in_place_ops[i], 0, TYPE_F32, BATCH));
        fixture_fill(&apart, 6);
        fixture_fill(&placed, 6);
        run_kernel(&bench, &apart, apart.node, 0, BATCH);
        fixture_call(&call, &placed, placed.node, 0, BATCH, BATCH);
        call.output[0] = call.input[0];
        const struct kernel *kernel = kernel_of(&bench, placed.node, BATCH, BATCH);
        kernel->run(kernel, &call);
        int id = apart.node->output[0]->id;
        assert_memory_equal(apart.data[id], call.input[0], apart.bytes[id]);
        fixture_release(&apart);
        fixture_release(&placed);
    }
    bench_close(&bench);
}

/* Whole numbers from a few: windows with several maxima. */
static void first_of_equal_maxima_wins(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture fast, exact;
    bench_open(&bench, NULL, 2);
    for (int variant = 0; fixture_init(&fast, &op_max_pool, variant, TYPE_F32, BATCH); variant++) {
        assert_true(fixture_init(&exact, &op_max_pool, variant, TYPE_F32, BATCH));
        fixture_fill(&fast, 8);
        float *x = fast.data[fast.node->input[0]->id];
        for (int64_t i = 0; i < shape_count(&fast.node->input[0]->shape); i++)
            x[i] = (float)((i * i / 3) % 3);
        fixture_fill(&exact, 8);
        memcpy(exact.data[exact.node->input[0]->id], x, fast.bytes[fast.node->input[0]->id]);
        run_kernel(&bench, &fast, fast.node, 0, BATCH);
        fixture_run(&exact, exact.node, 0, BATCH);
        for (int k = 0; k < 2; k++)
            compare(&fast, &exact, fast.node->output[k]->id, BATCH);
        fixture_release(&fast);
        fixture_release(&exact);
    }
    bench_close(&bench);
}

/* A slice that reaches past a short batch ends with the batch. */
static void slices_end_with_the_batch(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture fast, exact;
    struct call call;
    bench_open(&bench, NULL, 2);
    assert_true(fixture_init(&fast, &op_relu, 0, TYPE_F32, BATCH));
    assert_true(fixture_init(&exact, &op_relu, 0, TYPE_F32, BATCH));
    fixture_fill(&fast, 9);
    fixture_fill(&exact, 9);
    const struct kernel *kernel = kernel_of(&bench, fast.node, BATCH, BATCH);
    fixture_call(&call, &fast, fast.node, 2, BATCH, 5);
    kernel->run(kernel, &call);
    fixture_call(&call, &fast, fast.node, 0, 2, 5);
    kernel->run(kernel, &call);
    fixture_run(&exact, exact.node, 0, 5);
    compare(&fast, &exact, fast.node->output[0]->id, 5);
    fixture_release(&fast);
    fixture_release(&exact);
    bench_close(&bench);
}

/* Far scores: no overflow, no loss of the sign, NaN stays NaN. */
static void far_scores_stay_finite(void **state)
{
    (void)state;
    static const float far[BATCH] = {-200, -30, 0, 30, 200, -1e-6f, NAN};
    struct bench bench;
    struct fixture fast, exact;
    const struct op *const ops[] = {&op_sigmoid, &op_sigmoid_crossentropy, &op_sigmoid_crossentropy_gradient};
    bench_open(&bench, NULL, 2);
    for (int i = 0; i < 3; i++) {
        int variant = i == 0 ? 1 : 0; /* one element a sample */
        assert_true(fixture_init(&fast, ops[i], variant, TYPE_F32, BATCH));
        assert_true(fixture_init(&exact, ops[i], variant, TYPE_F32, BATCH));
        fixture_fill(&fast, 7);
        fixture_fill(&exact, 7);
        int64_t width = shape_row(&fast.node->input[0]->shape);
        for (int64_t k = 0; k < BATCH; k++) {
            ((float *)fast.data[fast.node->input[0]->id])[k * width] = far[k];
            ((float *)exact.data[exact.node->input[0]->id])[k * width] = far[k];
        }
        run_kernel(&bench, &fast, fast.node, 0, BATCH);
        fixture_run(&exact, exact.node, 0, BATCH);
        struct tensor *y = fast.node->output[0];
        for (int64_t k = 0; k < shape_count(&y->shape); k++) {
            double a = fixture_get(&fast, y, k), b = fixture_get(&exact, exact.node->output[0], k);
            assert_true(isnan(a) == isnan(b));
            assert_true(isnan(b) || fabs(a - b) <= TOLERANCE * fmax(1, fabs(b)));
        }
        fixture_release(&fast);
        fixture_release(&exact);
    }
    bench_close(&bench);
}

/* A short batch packs more columns of fewer steps: never more than there is room for. */
static void tiles_have_room_for_fewer_steps(void **state)
{
    static const int64_t columns[] = {1, 32, 100, 512, 768, 3072}, steps[] = {1, 31, 512, 4800, 5120, 20000};
    (void)state;
    for (size_t i = 0; i < COUNT(columns); i++)
        for (size_t j = 0; j < COUNT(steps); j++)
            for (int64_t k = 1; k <= steps[j]; k++) {
                int64_t used = (tile_columns(columns[i], k) + TILE_BLOCK) * tile_padded(k) * 2;
                assert_true(used + TILE_BLOCK * TILE_BLOCK * 4 <= tile_room_bytes(columns[i], steps[j], false));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define OP(name) cmocka_unit_test(parity_of_##name),
#include "ops/ops.def"
#undef OP
        cmocka_unit_test(nothing_falls_to_the_reference),
        cmocka_unit_test(doubles_are_the_references),
        cmocka_unit_test(equal_nodes_share_a_kernel),
        cmocka_unit_test(dense_layers),
        cmocka_unit_test(dense_weight_gradients),
        cmocka_unit_test(cuts_keep_bits),
        cmocka_unit_test(runs_of_elements),
        cmocka_unit_test(rows_are_the_same_in_any_slice),
        cmocka_unit_test(classes_in_several_goes),
        cmocka_unit_test(columns_take_every_convolution),
        cmocka_unit_test(in_place_is_the_same),
        cmocka_unit_test(far_scores_stay_finite),
        cmocka_unit_test(first_of_equal_maxima_wins),
        cmocka_unit_test(slices_end_with_the_batch),
        cmocka_unit_test(tiles_have_room_for_fewer_steps),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
