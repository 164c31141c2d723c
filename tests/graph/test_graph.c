/* test_graph.c - types and shapes, builders and their errors, and the graph
   that gradients make of a small network. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/text/text.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static struct budget *budget;
static uint64_t empty; /* what the budget itself takes */

static int setup(void **state)
{
    (void)state;
    if (budget_make(&budget, BUDGET_UNLIMITED, NULL) != PLIM_OK)
        return 1;
    empty = budget_usage(budget).now;
    return 0;
}

/* Nothing may be left. */
static int teardown(void **state)
{
    (void)state;
    uint64_t left = budget_usage(budget).now;
    budget_free(budget);
    return left != empty;
}

/* ---- types and shapes -------------------------------------------------- */

static void type_names(void **state)
{
    enum type type;
    (void)state;
    for (int i = 0; i < TYPE_COUNT; i++) {
        assert_true(type_from_name(&type, type_name((enum type)i)));
        assert_int_equal(type, i);
        assert_true(type_from_name(&type, type_safetensors_name((enum type)i)));
        assert_int_equal(type, i);
    }
    assert_int_equal(type_bytes(TYPE_BF16), 2);
    assert_false(type_from_name(&type, "float33"));
}

static void shape_sizes(void **state)
{
    struct shape shape = SHAPE(32, 28, 28, 1);
    uint64_t bytes;
    char text[64];
    (void)state;
    assert_int_equal(shape_count(&shape), 32 * 28 * 28);
    assert_int_equal(shape_row(&shape), 28 * 28);
    assert_true(shape_bytes(&bytes, &shape, TYPE_F32));
    assert_int_equal(bytes, 4 * 32 * 28 * 28);
    shape_text(text, sizeof(text), &shape, true);
    assert_string_equal(text, "(None, 28, 28, 1)");
    shape = SHAPE(7);
    shape_text(text, sizeof(text), &shape, false);
    assert_string_equal(text, "(7,)");
    shape = SHAPE((int64_t)1 << 40, (int64_t)1 << 40);
    assert_false(shape_bytes(&bytes, &shape, TYPE_U8));
    shape = SHAPE(0, (int64_t)1 << 40, (int64_t)1 << 40);
    assert_false(shape_bytes(&bytes, &shape, TYPE_U8));
    shape = SHAPE(3, -1);
    assert_false(shape_bytes(&bytes, &shape, TYPE_U8));
    shape = SHAPE(3, 0);
    assert_true(shape_bytes(&bytes, &shape, TYPE_F64));
    assert_int_equal(bytes, 0);
}

/* Every bit pattern of the small floats comes back. */
static void small_floats(void **state)
{
    static const enum type types[] = {TYPE_F16, TYPE_BF16};
    (void)state;
    for (int t = 0; t < 2; t++) {
        for (int bits = 0; bits < 65536; bits++) {
            uint16_t from = (uint16_t)bits, to = 0;
            double value = element_get(&from, types[t], 0);
            element_set(&to, types[t], 0, value);
            if (!isnan(value) && to != from)
                fail_msg("%s: 0x%04x came back as 0x%04x", type_name(types[t]), from, to);
        }
    }
}

static uint16_t half(double value)
{
    uint16_t bits;
    element_set(&bits, TYPE_F16, 0, value);
    return bits;
}

static void rounding(void **state)
{
    uint16_t bits;
    (void)state;
    assert_int_equal(half(1.0), 0x3c00);
    assert_int_equal(half(-2.0), 0xc000);
    assert_int_equal(half(1 + 0x1p-11), 0x3c00);           /* a tie: to even */
    assert_int_equal(half(1 + 3 * 0x1p-11), 0x3c02);       /* a tie: to even */
    assert_int_equal(half(1 + 0x1p-11 + 0x1p-40), 0x3c01); /* through f32 it would be the tie */
    assert_int_equal(half(65519.9), 0x7bff);
    assert_int_equal(half(65520), 0x7c00); /* beyond the largest: infinity */
    assert_int_equal(half(0x1p-24), 0x0001);
    assert_int_equal(half(0x1p-25), 0x0000);
    assert_int_equal(half(-0.0), 0x8000);
    element_set(&bits, TYPE_BF16, 0, 3.0);
    assert_int_equal(bits, 0x4040);
}

static void whole_numbers(void **state)
{
    int64_t wide;
    int8_t narrow;
    uint8_t byte;
    (void)state;
    element_set(&wide, TYPE_I64, 0, 1e30);
    assert_true(wide == INT64_MAX);
    element_set(&wide, TYPE_I64, 0, -1e30);
    assert_true(wide == INT64_MIN);
    element_set(&wide, TYPE_I64, 0, (double)NAN);
    assert_true(wide == 0);
    element_set(&narrow, TYPE_I8, 0, -200);
    assert_int_equal(narrow, -128);
    element_set(&byte, TYPE_U8, 0, 255.9);
    assert_int_equal(byte, 255);
    element_set(&byte, TYPE_BOOL, 0, 0.5);
    assert_int_equal(byte, 1);
}

/* ---- builders ---------------------------------------------------------- */

static void expect_failure(struct graph *graph, plim_status code, const char *message)
{
    plim_error error = {0};
    assert_int_equal(graph_check(graph, &error), code);
    assert_string_equal(error.message, message);
    graph_release(graph);
}

static void inner_sizes(void **state)
{
    struct graph graph;
    (void)state;
    graph_init(&graph, budget, 32);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(32, 100));
    struct tensor *w = graph_weight(&graph, "w", TYPE_F32, SHAPE(64, 10), true);
    struct tensor *y = binary(&graph, &op_matmul, x, w);
    assert_null(y);
    /* Later calls pass the NULL on, and the first error stays. */
    assert_null(unary(&graph, &op_relu, y));
    assert_null(graph_weight(&graph, "w", TYPE_F32, SHAPE(1), true));
    graph_result(&graph, y, "y");
    assert_int_equal(graph.node_count, 0);
    expect_failure(&graph, PLIM_BAD_MODEL, "matmul: inner sizes 100 and 64 differ");
}

static void names_are_unique(void **state)
{
    struct graph graph;
    char name[32];
    (void)state;
    graph_init(&graph, budget, 1);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "dense_%d/kernel", i);
        assert_non_null(graph_weight(&graph, name, TYPE_F32, SHAPE(2), true));
    }
    assert_null(graph_state(&graph, "dense_123/kernel", TYPE_F32, SHAPE(2)));
    expect_failure(&graph, PLIM_BAD_MODEL, "two weights or states are named dense_123/kernel");
}

static void bad_shapes(void **state)
{
    struct graph graph;
    (void)state;
    graph_init(&graph, budget, 0);
    expect_failure(&graph, PLIM_BAD_MODEL, "a batch of 0 samples; it must be at least 1");
    graph_init(&graph, budget, 8);
    graph_input(&graph, "x", 0, TYPE_F32, SHAPE(7, 3));
    expect_failure(&graph, PLIM_BAD_MODEL, "input x of shape (7, 3): the first axis must be the batch, 8");
    graph_init(&graph, budget, 8);
    graph_weight(&graph, "w", TYPE_F32, SHAPE(3, 0), true);
    expect_failure(&graph, PLIM_BAD_MODEL, "w: a shape of (3, 0) is not possible");
    graph_init(&graph, budget, 8);
    graph_weight(&graph, "w", TYPE_F32, SHAPE((int64_t)1 << 40, (int64_t)1 << 40), true);
    expect_failure(&graph, PLIM_BAD_MODEL, "w: a shape of (1099511627776, 1099511627776) is not possible");
}

static void wrong_use(void **state)
{
    struct graph graph;
    struct scale_attributes attributes = {2};
    (void)state;
    graph_init(&graph, budget, 8);
    unary(&graph, &op_add, graph_input(&graph, "x", 0, TYPE_F32, SHAPE(8, 3)));
    expect_failure(&graph, PLIM_INTERNAL, "add: input 1 is missing");
    graph_init(&graph, budget, 8);
    unary(&graph, &op_relu, graph_input(&graph, "x", 0, TYPE_U8, SHAPE(8, 3)));
    expect_failure(&graph, PLIM_BAD_MODEL, "relu: input 0 is uint8; it must be float32, float64, float16 or bfloat16");
    graph_init(&graph, budget, 8);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(8, 3));
    graph_add(&graph, &op_scale, &x, 1, &attributes, 3);
    expect_failure(&graph, PLIM_INTERNAL, "scale: attributes of 3 bytes, it takes 8");
    graph_init(&graph, budget, 8);
    graph_result(&graph, graph_input(&graph, "x", 0, TYPE_F32, SHAPE(8, 3)), "r");
    expect_failure(&graph, PLIM_INTERNAL, "result r: no node makes it");
}

/* One line each, from the op that minds. */
static void op_errors(void **state)
{
    struct graph graph;
    struct conv_attributes conv = {.stride = {1, 1}};
    struct pool_attributes pool = {.window = {2, 2}, .stride = {2, 2}, .pad = {2, 0, 0, 0}};
    (void)state;
    graph_init(&graph, budget, 8);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(8, 2, 5, 3));
    struct tensor *k = graph_weight(&graph, "k", TYPE_F32, SHAPE(3, 3, 3, 4), true);
    graph_add(&graph, &op_conv2d, (struct tensor *[]){x, k}, 2, &conv, sizeof(conv));
    expect_failure(&graph, PLIM_BAD_MODEL, "conv2d: a kernel of 3x3 does not fit in a padded input of 2x5");
    graph_init(&graph, budget, 8);
    x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(8, 4, 4, 3));
    graph_add(&graph, &op_max_pool, &x, 1, &pool, sizeof(pool));
    expect_failure(&graph, PLIM_BAD_MODEL, "max_pool: a padding of 2 for a window of 2");
    graph_init(&graph, budget, 8);
    x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(8, 10));
    binary(&graph, &op_softmax_crossentropy, x, graph_input(&graph, "y", 1, TYPE_U8, SHAPE(8, 10)));
    expect_failure(&graph, PLIM_BAD_MODEL,
                   "softmax_crossentropy: labels of shape (None, 10); one class number a sample is needed");
    graph_init(&graph, budget, 8);
    x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(8, 2));
    binary(&graph, &op_sigmoid_crossentropy, x, graph_input(&graph, "y", 1, TYPE_F32, SHAPE(8)));
    expect_failure(&graph, PLIM_BAD_MODEL,
                   "sigmoid_crossentropy: targets of shape (None,) for outputs of shape (None, 2)");
}

/* A small budget is an error, not a crash, wherever it strikes. */
static void over_budget(void **state)
{
    struct budget *small;
    struct graph graph;
    char name[32];
    (void)state;
    assert_int_equal(budget_make(&small, 64 * 1024, NULL), PLIM_OK);
    graph_init(&graph, small, 4);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(4, 4));
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        x = binary(&graph, &op_matmul, x, graph_weight(&graph, name, TYPE_F32, SHAPE(4, 4), true));
        graph_result(&graph, graph_output(x, 0), "r");
    }
    assert_null(x);
    assert_int_equal(graph_check(&graph, NULL), PLIM_OVER_BUDGET);
    graph_release(&graph);
    budget_free(small);
}

/* ---- gradients --------------------------------------------------------- */

static struct tensor *dense(struct graph *graph, const char *name, struct tensor *x, int64_t units,
                            struct tensor **weights)
{
    char text[2][64];
    snprintf(text[0], sizeof(text[0]), "%s/kernel", name);
    snprintf(text[1], sizeof(text[1]), "%s/bias", name);
    graph->layer = name;
    weights[0] = graph_weight(graph, text[0], TYPE_F32, SHAPE(x ? x->shape.dim[1] : 1, units), true);
    weights[1] = graph_weight(graph, text[1], TYPE_F32, SHAPE(units), true);
    return graph_add(graph, &op_matmul, (struct tensor *[]){x, weights[0], weights[1]}, 3, NULL, 0);
}

static const char mlp_golden[] = "0 matmul dense (32, 64) <- x dense/kernel dense/bias\n"
                                 "1 relu dense (32, 64) <- 0\n"
                                 "2 matmul dense_1 (32, 1) <- 1 dense_1/kernel dense_1/bias\n"
                                 "3 sigmoid_crossentropy loss (32,) <- 2 y\n"
                                 "4 batch_mean loss (1,) <- 3\n"
                                 "5 batch_mean_gradient loss (32,) <- - 3\n"
                                 "6 sigmoid_crossentropy_gradient loss (32, 1) <- 2 y 5\n"
                                 "7 matmul_weight_gradient dense_1 (64, 1) <- 1 6\n"
                                 "8 sum_rows dense_1 (1,) <- 6\n"
                                 "9 matmul dense_1 (32, 64) <- 6 dense_1/kernel -\n"
                                 "10 relu_gradient dense (32, 64) <- 9 1\n"
                                 "11 matmul_weight_gradient dense (100, 64) <- x 10\n"
                                 "12 sum_rows dense (64,) <- 10\n"
                                 "13 sgd dense <- dense/kernel 11 control -\n";

/* Forward and backward; NULL gradients where it failed. */
static plim_status build_mlp(struct graph *graph, struct tensor **weights, struct tensor **gradients, plim_error *error)
{
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(32, 100));
    struct tensor *y = graph_input(graph, "y", 1, TYPE_U8, SHAPE(32));
    struct tensor *h = unary(graph, &op_relu, dense(graph, "dense", x, 64, &weights[0]));
    struct tensor *logits = dense(graph, "dense_1", h, 1, &weights[2]);
    graph->layer = "loss";
    struct tensor *loss = unary(graph, &op_batch_mean, binary(graph, &op_sigmoid_crossentropy, logits, y));
    graph_result(graph, loss, "loss");
    return gradient_append(graph, loss, weights, 4, gradients, error);
}

static void gradient_of_mlp(void **state)
{
    struct graph graph;
    struct tensor *weights[4], *gradients[4];
    struct text text;
    (void)state;
    graph_init(&graph, budget, 32);
    assert_int_equal(build_mlp(&graph, weights, gradients, NULL), PLIM_OK);
    assert_string_equal(graph.layer, "loss");
    assert_false(graph.backward);
    for (int i = 0; i < 4; i++) {
        assert_true(gradients[i]->gradient && gradients[i]->producer->backward);
        assert_true(shape_equal(&gradients[i]->shape, &weights[i]->shape));
    }
    assert_string_equal(gradients[0]->name, "dense/kernel gradient");
    graph.layer = "dense";
    struct tensor *control = graph_state(&graph, "control", TYPE_F64, SHAPE(CONTROL_COUNT));
    struct tensor *updated =
        graph_add(&graph, &op_sgd, (struct tensor *[]){weights[0], gradients[0], control}, 3, NULL, 0);
    assert_ptr_equal(updated, weights[0]);
    assert_int_equal(graph_check(&graph, NULL), PLIM_OK);
    text_init(&text, budget, TAG_PLANNER);
    graph_print(&text, &graph);
    assert_string_equal(text.data, mlp_golden);
    text_release(&text);
    graph_release(&graph);
}

/* Every allocation fails once: an error, and nothing is left. */
static void every_allocation_fails(void **state)
{
    struct tensor *weights[4], *gradients[4];
    bool reached = true;
    int faults = 0;
    (void)state;
    for (int64_t nth = 1; reached; nth++) {
        struct graph graph;
        plim_error error = {0};
        graph_init(&graph, budget, 32);
        graph.arena.block_bytes = 64; /* nearly every take is a block */
        fault_arm(FAULT_ALLOCATE, nth, false, 12);
        plim_status status = build_mlp(&graph, weights, gradients, &error);
        reached = fault_disarm();
        assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
        assert_int_equal(error.code, status);
        graph_release(&graph);
        assert_true(budget_usage(budget).now == empty);
        faults += reached;
    }
    assert_true(faults > 50);
}

static const char shared_golden[] = "0 multiply (2,) <- x x\n"
                                    "1 batch_mean (1,) <- 0\n"
                                    "2 batch_mean_gradient (2,) <- - 0\n"
                                    "3 multiply (2,) <- 2 x\n"
                                    "4 multiply (2,) <- 2 x\n"
                                    "5 add (2,) <- 3 4\n";

/* Two readers of a tensor, one of them twice: contributions are added. */
static void contributions_add_up(void **state)
{
    struct graph graph;
    struct tensor *gradient = NULL;
    struct text text;
    (void)state;
    graph_init(&graph, budget, 2);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F64, SHAPE(2));
    struct tensor *loss = unary(&graph, &op_batch_mean, binary(&graph, &op_multiply, x, x));
    assert_int_equal(gradient_append(&graph, loss, &x, 1, &gradient, NULL), PLIM_OK);
    assert_ptr_equal(gradient, graph.node[5]->output[0]);
    text_init(&text, budget, TAG_PLANNER);
    graph_print(&text, &graph);
    assert_string_equal(text.data, shared_golden);
    text_release(&text);
    graph_release(&graph);
}

static void no_gradient_flows(void **state)
{
    struct graph graph;
    struct tensor *gradient = NULL;
    plim_error error = {0};
    (void)state;
    graph_init(&graph, budget, 4);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F32, SHAPE(4, 3));
    struct tensor *y = graph_input(&graph, "y", 1, TYPE_U8, SHAPE(4));
    struct tensor *unread = graph_weight(&graph, "unread", TYPE_F32, SHAPE(3), true);
    struct tensor *right = unary(&graph, &op_batch_mean, binary(&graph, &op_sparse_accuracy, x, y));
    int before = graph.node_count;
    assert_int_equal(gradient_append(&graph, right, &unread, 1, &gradient, &error), PLIM_OK);
    assert_null(gradient);
    assert_int_equal(graph.node_count, before);
    assert_int_equal(gradient_append(&graph, x, &unread, 1, &gradient, &error), PLIM_UNSUPPORTED);
    assert_string_equal(error.message, "gradients are taken of one number, and x is none");
    assert_int_equal(gradient_append(&graph, right, &x, 1, &gradient, &error), PLIM_UNSUPPORTED);
    assert_string_equal(error.message, "sparse_accuracy has no gradient: an accuracy moves in steps");
    graph_release(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_names),
        cmocka_unit_test(shape_sizes),
        cmocka_unit_test(small_floats),
        cmocka_unit_test(rounding),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(inner_sizes),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(bad_shapes),
        cmocka_unit_test(wrong_use),
        cmocka_unit_test(op_errors),
        cmocka_unit_test(over_budget),
        cmocka_unit_test(gradient_of_mlp),
        cmocka_unit_test(contributions_add_up),
        cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test(no_gradient_flows),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
