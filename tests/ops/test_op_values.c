/* test_op_values.c - known answers, worked out by hand or by another way of
   reckoning: gradients agree with a wrong forward too. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "model/ops/op_words.h"
#include "op_fixture.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

/* A graph of one node, with values given in the test. */
static void start(struct fixture *fixture, int64_t batch)
{
    *fixture = (struct fixture){0};
    assert_int_equal(budget_make(&fixture->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&fixture->graph, fixture->budget, batch);
}

static void put(struct fixture *fixture, const struct tensor *tensor, const double *values, int count)
{
    assert_int_equal(shape_count(&tensor->shape), count);
    for (int i = 0; i < count; i++)
        element_set(fixture->data[tensor->id], tensor->type, i, values[i]);
}
#define PUT(fixture, tensor, ...)                                                                                      \
    put(fixture, tensor, (const double[]){__VA_ARGS__}, COUNT(((const double[]){__VA_ARGS__})))

static void expect(const struct fixture *fixture, const struct tensor *tensor, const double *values, int count)
{
    assert_int_equal(shape_count(&tensor->shape), count);
    for (int i = 0; i < count; i++) {
        double got = fixture_get(fixture, tensor, i);
        bool same = isnan(values[i]) ? isnan(got) : fabs(got - values[i]) <= 1e-9;
        if (!same)
            fail_msg("%s[%d] is %.12g, not %.12g", tensor->name, i, got, values[i]);
    }
}
#define EXPECT(fixture, tensor, ...)                                                                                   \
    expect(fixture, tensor, (const double[]){__VA_ARGS__}, COUNT(((const double[]){__VA_ARGS__})))

static struct tensor *input(struct fixture *fixture, const char *name, enum type type, struct shape shape)
{
    return graph_input(&fixture->graph, name, 0, type, shape);
}

static void prepare(struct fixture *fixture)
{
    plim_error error = {0};
    if (graph_check(&fixture->graph, &error))
        fail_msg("%s", error.message);
    fixture_fill(fixture, 0);
}

/* Masked means, a step that is not a number where the mask is false, and a sample without any step. */
static void mask_values(void **state)
{
    struct fixture f;
    struct mask_of_attributes any = {.value = 2, .over_last = 1};
    struct sum_time_attributes mean = {.mean = 1};
    (void)state;
    start(&f, 2);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(2, 3, 2));
    struct tensor *mask = graph_add(&f.graph, &op_mask_of, &x, 1, &any, sizeof(any));
    struct tensor *y = graph_add(&f.graph, &op_sum_time, (struct tensor *[]){x, mask}, 2, &mean, sizeof(mean));
    struct tensor *count = unary(&f.graph, &op_mask_count, mask);
    struct tensor *rows = binary(&f.graph, &op_mask_rows, x, mask);
    prepare(&f);
    PUT(&f, x, 1, 2, 2, 2, 5, 6, 2, 2, 2, 2, 2, 2);
    fixture_run_all(&f, false);
    EXPECT(&f, mask, 1, 0, 1, 0, 0, 0);
    EXPECT(&f, y, 3, 4, NAN, NAN);
    EXPECT(&f, count, 2, 0);
    EXPECT(&f, rows, 1, 2, 0, 0, 5, 6, 0, 0, 0, 0, 0, 0);
    fixture_release(&f);
}

/* As Keras: 3 * 0.5 is 1.5, and 3 / 2 too; a whole number beside whole ones leaves them what they are. */
static void whole_numbers_beside_fractions(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, 2);
    struct tensor *x = input(&f, "x", TYPE_I32, SHAPE(2, 2)), *two[2] = {x, x};
    struct tensor *half = op_word_apply(&f.graph, "multiply", &x, 1, "{b: 0.5}");
    struct tensor *less = op_word_apply(&f.graph, "less", &x, 1, "{b: 3.5}");
    struct tensor *power = op_word_apply(&f.graph, "power", &x, 1, "{a: 0.5}");
    struct tensor *parts = op_word_apply(&f.graph, "divide", &x, 1, "{b: 2}");
    struct tensor *ratio = op_word_apply(&f.graph, "divide", two, 2, NULL);
    struct tensor *sum = op_word_apply(&f.graph, "add", &x, 1, "{b: 2}");
    struct tensor *where = op_word_apply(&f.graph, "where", two, 2, "{b: 0.5}");
    assert_non_null(where);
    assert_int_equal(half->type, TYPE_F32);
    assert_int_equal(sum->type, TYPE_I32);
    prepare(&f);
    PUT(&f, x, 3, 4, 5, 0);
    for (int i = 0; i < f.graph.tensor_count; i++)
        if (f.graph.tensor[i]->initial != 0)
            element_set(f.data[f.graph.tensor[i]->id], f.graph.tensor[i]->type, 0, f.graph.tensor[i]->initial);
    fixture_run_all(&f, false);
    EXPECT(&f, half, 1.5, 2, 2.5, 0);
    EXPECT(&f, less, 1, 0, 0, 1);
    EXPECT(&f, power, 0.125, 0.0625, 0.03125, 1);
    EXPECT(&f, parts, 1.5, 2, 2.5, 0);
    EXPECT(&f, ratio, 1, 1, 1, NAN);
    EXPECT(&f, sum, 5, 6, 7, 2);
    EXPECT(&f, where, 3, 4, 5, 0.5);
    fixture_release(&f);
}

/* keras.backend.result_type of Keras 3.15, of each two types in this order. */
static void types_are_promoted(void **state)
{
    static const enum type types[] = {TYPE_BOOL, TYPE_U8,   TYPE_I8,  TYPE_I16, TYPE_I32,
                                      TYPE_I64,  TYPE_BF16, TYPE_F16, TYPE_F32, TYPE_F64};
    static const char *const expected[] = {
        "bool uint8 int8 int16 int32 int64 bfloat16 float16 float32 float64",
        "uint8 uint8 int16 int16 int32 int64 bfloat16 float16 float32 float64",
        "int8 int16 int8 int16 int32 int64 bfloat16 float16 float32 float64",
        "int16 int16 int16 int16 int32 int64 bfloat16 float16 float32 float64",
        "int32 int32 int32 int32 int32 int64 bfloat16 float16 float32 float64",
        "int64 int64 int64 int64 int64 int64 bfloat16 float16 float32 float64",
        "bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 float32 float64",
        "float16 float16 float16 float16 float16 float16 float32 float16 float32 float64",
        "float32 float32 float32 float32 float32 float32 float32 float32 float32 float64",
        "float64 float64 float64 float64 float64 float64 float64 float64 float64 float64",
    };
    (void)state;
    assert_int_equal(COUNT(types), TYPE_COUNT);
    for (int i = 0; i < COUNT(types); i++) {
        char row[200] = "";
        for (int k = 0; k < COUNT(types); k++) {
            strcat(row, k ? " " : "");
            strcat(row, type_name(promoted_type(types[i], types[k])));
        }
        assert_string_equal(row, expected[i]);
    }
}

/* Words, types of their operands (a number: the second one's text), and the type that Keras gives. */
static void operands_become_one_type(void **state)
{
    static const struct {
        const char *word, *a, *b, *number, *made;
    } cases[] = {
        {"add", "int32", "float32", NULL, "float32"},
        {"add", "bool", "int32", NULL, "int32"},
        {"add", "bfloat16", "float32", NULL, "float32"},
        {"add", "uint8", "int8", NULL, "int16"},
        {"multiply", "bool", "float16", NULL, "float16"},
        {"divide", "int32", "int64", NULL, "float32"},
        {"divide", "uint8", "bfloat16", NULL, "bfloat16"},
        {"minimum", "bfloat16", "float16", NULL, "float32"},
        {"power", "int8", "uint8", NULL, "int16"},
        {"equal", "bool", "float32", NULL, "bool"},
        {"logical_and", "int32", "bool", NULL, "bool"},
        {"concatenate", "int32", "float32", NULL, "float32"},
        {"stack", "bool", "uint8", NULL, "uint8"},
        {"matmul", "int8", "int8", NULL, "int32"},
        {"matmul", "int32", "float16", NULL, "float16"},
        {"matmul", "bool", "int32", NULL, "int32"},
        {"add", "bool", NULL, "2", "int32"},
        {"add", "bool", NULL, "2.5", "float32"},
        {"add", "uint8", NULL, "2", "uint8"},
        {"add", "uint8", NULL, "2.0", "float32"},
        {"add", "int64", NULL, "true", "int64"},
        {"add", "bfloat16", NULL, "2.5", "bfloat16"},
        {"divide", "bool", NULL, "2", "float32"},
        {"less", "uint8", NULL, "300", "bool"},
        {"square", "bool", NULL, NULL, "int32"},
        {"abs", "uint8", NULL, NULL, "uint8"},
        {"exp", "int32", NULL, NULL, "float32"},
        {"floor", "int64", NULL, NULL, "float32"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct fixture f;
        enum type type;
        start(&f, 2);
        assert_true(type_from_name(&type, cases[i].a));
        struct tensor *x[2] = {input(&f, "a", type, SHAPE(2, 3, 3))};
        if (cases[i].b) {
            assert_true(type_from_name(&type, cases[i].b));
            x[1] = input(&f, "b", type, SHAPE(2, 3, 3));
        }
        struct tensor *y = op_word_apply(&f.graph, cases[i].word, x, cases[i].b ? 2 : 1, cases[i].number);
        if (!y || strcmp(type_name(y->type), cases[i].made) != 0)
            fail_msg("%s of %s and %s is %s, not %s: %s", cases[i].word, cases[i].a,
                     cases[i].b ? cases[i].b : cases[i].number, y ? type_name(y->type) : "nothing", cases[i].made,
                     f.graph.error.message);
        graph_release(&f.graph);
        budget_free(f.budget);
    }
}

/* What does not fit a type is refused, and not something else by and by; gradients go back into the float's type. */
static void values_of_mixed_types(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, 2);
    struct tensor *count = input(&f, "count", TYPE_U8, SHAPE(2, 2)), *x = input(&f, "x", TYPE_F32, SHAPE(2, 2));
    struct tensor *truth = input(&f, "truth", TYPE_BOOL, SHAPE(2, 2));
    struct tensor *product = op_word_apply(&f.graph, "multiply", (struct tensor *[]){count, x}, 2, NULL);
    struct tensor *one = op_word_apply(&f.graph, "subtract", &truth, 1, "{a: 3}");
    struct tensor *all = op_word_apply(&f.graph, "less", &count, 1, "300");
    struct tensor *chosen = op_word_apply(&f.graph, "where", (struct tensor *[]){truth, count, x}, 3, NULL);
    struct tensor *numbers = op_word_apply(&f.graph, "where", &truth, 1, "{a: 1, b: 0.5}");
    assert_non_null(numbers);
    prepare(&f);
    PUT(&f, count, 200, 3, 0, 255);
    PUT(&f, x, 0.5, -1, 2, 3);
    PUT(&f, truth, 1, 0, 0, 1);
    for (int i = 0; i < f.graph.tensor_count; i++)
        if (f.graph.tensor[i]->initial != 0)
            element_set(f.data[f.graph.tensor[i]->id], f.graph.tensor[i]->type, 0, f.graph.tensor[i]->initial);
    fixture_run_all(&f, false);
    EXPECT(&f, product, 100, -3, 0, 765);
    EXPECT(&f, one, 2, 3, 3, 2);
    EXPECT(&f, all, 1, 1, 1, 1);
    EXPECT(&f, chosen, 200, -1, 2, 255);
    EXPECT(&f, numbers, 1, 0.5, 0.5, 1);
    assert_null(op_word_apply(&f.graph, "add", &count, 1, "300"));
    assert_non_null(strstr(f.graph.error.message, "300 is no uint8"));
    fixture_release(&f);
}

/* x * stop(x): half the slope of x * x; and none behind a stop alone, whatever else has one. */
static void gradients_stop(void **state)
{
    struct fixture f;
    plim_error error = {0};
    (void)state;
    start(&f, 2);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(2)), *gradients[3];
    struct tensor *w = graph_weight(&f.graph, "w", TYPE_F64, SHAPE(1), true);
    struct tensor *v = graph_weight(&f.graph, "v", TYPE_F64, SHAPE(1), true);
    struct tensor *still = op_word_apply(&f.graph, "stop_gradient", &x, 1, NULL);
    struct tensor *product = binary(&f.graph, &op_multiply, x, still);
    struct tensor *hidden = unary(&f.graph, &op_stop_gradient, binary(&f.graph, &op_multiply, x, w));
    struct tensor *open = binary(&f.graph, &op_multiply, x, v);
    struct tensor *sum = binary(&f.graph, &op_add, binary(&f.graph, &op_add, product, hidden), open);
    struct tensor *loss = unary(&f.graph, &op_batch_mean, sum);
    int forward = f.graph.node_count;
    assert_int_equal(gradient_append(&f.graph, loss, (struct tensor *[]){x, w, v}, 3, gradients, &error), PLIM_OK);
    assert_null(gradients[1]);
    for (int i = forward; i < f.graph.node_count; i++) /* nothing is done for what is not wanted */
        for (int k = 0; k < f.graph.node[i]->input_count; k++)
            assert_ptr_not_equal(f.graph.node[i]->input[k], w);
    prepare(&f);
    PUT(&f, x, 3, -5);
    PUT(&f, w, 7);
    PUT(&f, v, 0.5);
    fixture_run_all(&f, true);
    EXPECT(&f, sum, 9 + 21 + 1.5, 25 - 35 - 2.5);
    EXPECT(&f, gradients[0], (3 + 0.5) / 2, (-5 + 0.5) / 2);
    EXPECT(&f, gradients[2], -1);
    fixture_release(&f);
}

/* Numbers of the graph's own, broadcast over a batch; their shape and type are those that were said. */
static void constants_are_what_they_were(void **state)
{
    struct fixture f;
    const float numbers[] = {1, -2, 0.5f, 4, 5, 6};
    struct constant_attributes attributes = {numbers, TYPE_F32, SHAPE(2, 3)};
    (void)state;
    start(&f, 2);
    struct tensor *c = graph_add(&f.graph, &op_constant, NULL, 0, &attributes, sizeof(attributes));
    struct tensor *x = input(&f, "x", TYPE_F32, SHAPE(2, 1, 3)), *y = binary(&f.graph, &op_add, x, c);
    prepare(&f);
    PUT(&f, x, 1, 2, 3, 10, 20, 30);
    fixture_run_all(&f, false);
    EXPECT(&f, c, 1, -2, 0.5, 4, 5, 6);
    EXPECT(&f, y, 2, 0, 3.5, 5, 7, 9, 11, 18, 30.5, 14, 25, 36);
    attributes.shape.dim[1] = INT64_MAX;
    assert_null(graph_add(&f.graph, &op_constant, NULL, 0, &attributes, sizeof(attributes)));
    assert_non_null(strstr(f.graph.error.message, "no elements"));
    fixture_release(&f);
}

static void matmul_values(void **state)
{
    struct fixture f;
    struct matmul_attributes relu = {.activation = ACTIVATION_RELU}, transposed = {.transposed = true};
    (void)state;
    start(&f, 2);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(2, 3));
    struct tensor *w = graph_weight(&f.graph, "w", TYPE_F64, SHAPE(3, 2), true);
    struct tensor *b = graph_weight(&f.graph, "b", TYPE_F64, SHAPE(2), true);
    struct tensor *in[] = {x, w, b};
    struct tensor *y = graph_add(&f.graph, &op_matmul, in, 3, NULL, 0);
    struct tensor *r = graph_add(&f.graph, &op_matmul, in, 3, &relu, sizeof(relu));
    struct tensor *back =
        graph_add(&f.graph, &op_matmul, (struct tensor *[]){y, w}, 2, &transposed, sizeof(transposed));
    struct tensor *dw = binary(&f.graph, &op_matmul_weight_gradient, x, y);
    prepare(&f);
    PUT(&f, x, 1, 2, 3, -4, 5, 6);
    PUT(&f, w, 1, 10, 2, 20, 3, -30);
    PUT(&f, b, 0.5, -1);
    fixture_run_all(&f, false);
    EXPECT(&f, y, 14.5, -41, 24.5, -121);
    EXPECT(&f, r, 14.5, 0, 24.5, 0);
    EXPECT(&f, back, 14.5 - 410, 29 - 820, 43.5 + 1230, 24.5 - 1210, 49 - 2420, 73.5 + 3630);
    EXPECT(&f, dw, 14.5 - 98, -41 + 484, 29 + 122.5, -82 - 605, 43.5 + 147, -123 - 726);
    fixture_release(&f);
}

/* One channel, 3x3 input, 2x2 kernel, padding on the left only. */
static void conv2d_values(void **state)
{
    struct fixture f;
    struct conv_attributes conv = {.stride = {1, 2}, .pad = {0, 0, 1, 0}};
    struct conv_gradient_attributes back = {.conv = conv, .input = {3, 3}, .kernel = {2, 2}, .bias = 1, .groups = 1};
    (void)state;
    start(&f, 1);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(1, 3, 3, 1));
    struct tensor *k = graph_weight(&f.graph, "k", TYPE_F64, SHAPE(2, 2, 1, 1), true);
    struct tensor *y = graph_add(&f.graph, &op_conv2d, (struct tensor *[]){x, k}, 2, &conv, sizeof(conv));
    struct tensor *dy = input(&f, "dy", TYPE_F64, y->shape);
    struct tensor *dx =
        graph_add(&f.graph, &op_conv2d_input_gradient, (struct tensor *[]){dy, k}, 2, &back, sizeof(back));
    struct tensor *dk =
        graph_add(&f.graph, &op_conv2d_weight_gradient, (struct tensor *[]){x, dy}, 2, &back, sizeof(back));
    prepare(&f);
    PUT(&f, x, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    PUT(&f, k, 1, 10, 100, 1000);
    PUT(&f, dy, 1, 2, 3, 4);
    fixture_run_all(&f, false);
    /* Windows [0 1; 0 4], [2 3; 5 6], [0 4; 0 7], [5 6; 8 9]. */
    EXPECT(&f, y, 4010, 6532, 7040, 9865);
    EXPECT(&f, dx, 10, 2, 20, 1030, 204, 2040, 3000, 400, 4000);
    EXPECT(&f, dk, 2 * 2 + 4 * 5, 1 + 6 + 12 + 24, 10 + 32, 4 + 12 + 21 + 36);
    EXPECT(&f, graph_output(dk, 1), 10);
    fixture_release(&f);
}

/* Channels lie last: two in, two out, 1x1. */
static void conv2d_channels(void **state)
{
    struct fixture f;
    struct conv_attributes conv = {.stride = {1, 1}, .activation = ACTIVATION_RELU};
    (void)state;
    start(&f, 1);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(1, 1, 2, 2));
    struct tensor *k = graph_weight(&f.graph, "k", TYPE_F64, SHAPE(1, 1, 2, 2), true);
    struct tensor *b = graph_weight(&f.graph, "b", TYPE_F64, SHAPE(2), true);
    struct tensor *y = graph_add(&f.graph, &op_conv2d, (struct tensor *[]){x, k, b}, 3, &conv, sizeof(conv));
    prepare(&f);
    PUT(&f, x, 1, 2, -3, 4);
    PUT(&f, k, 1, 10, 100, 1000);
    PUT(&f, b, 0.5, -2011);
    fixture_run_all(&f, false);
    EXPECT(&f, y, 201.5, 0, 397.5, 1959);
    fixture_release(&f);
}

/* The first maximum wins; a padded cell never does, not even among negatives. */
static void max_pool_values(void **state)
{
    struct fixture f;
    struct pool_attributes pool = {.window = {2, 2}, .stride = {2, 2}, .pad = {0, 1, 0, 1}};
    struct pool_gradient_attributes back = {.pool = pool, .input = {3, 3}};
    (void)state;
    start(&f, 1);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(1, 3, 3, 1));
    struct tensor *y = graph_add(&f.graph, &op_max_pool, &x, 1, &pool, sizeof(pool));
    struct tensor *index = graph_output(y, 1), *dy = input(&f, "dy", TYPE_F64, y->shape);
    struct tensor *dx =
        graph_add(&f.graph, &op_max_pool_gradient, (struct tensor *[]){dy, index}, 2, &back, sizeof(back));
    prepare(&f);
    PUT(&f, x, -5, -2, -3, -2, -9, -1, -7, -6, -8);
    PUT(&f, dy, 1, 2, 3, 4);
    fixture_run_all(&f, false);
    EXPECT(&f, y, -2, -1, -6, -8);
    EXPECT(&f, index, 1 | 2 << 2 | 1 << 4); /* two bits each */
    EXPECT(&f, dx, 0, 1, 0, 0, 0, 2, 0, 3, 4);
    fixture_release(&f);
}

static void loss_values(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, 3);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(3, 2));
    struct tensor *label = input(&f, "label", TYPE_I32, SHAPE(3, 1));
    struct tensor *d = input(&f, "d", TYPE_F64, SHAPE(3));
    struct tensor *loss = binary(&f.graph, &op_softmax_crossentropy, x, label);
    struct tensor *dx =
        graph_add(&f.graph, &op_softmax_crossentropy_gradient, (struct tensor *[]){x, label, d}, 3, NULL, 0);
    struct tensor *softmax = unary(&f.graph, &op_softmax, x);
    struct tensor *right = binary(&f.graph, &op_sparse_accuracy, x, label);
    prepare(&f);
    /* exp(1000) overflows; log(4) = log(3) + log(4/3). The last has no such class. */
    PUT(&f, x, 1000, 1000, 0, log(3), 1, 2);
    PUT(&f, label, 0, 1, 2);
    PUT(&f, d, 1, 8, 1);
    fixture_run_all(&f, false);
    EXPECT(&f, loss, log(2), log(4.0 / 3), (double)NAN);
    EXPECT(&f, dx, -0.5, 0.5, 2, -2, (double)NAN, (double)NAN);
    EXPECT(&f, softmax, 0.5, 0.5, 0.25, 0.75, 1 / (1 + exp(1)), exp(1) / (1 + exp(1)));
    EXPECT(&f, right, 1, 1, 0);
    element_set(f.data[label->id], label->type, 2, -1);
    fixture_run_all(&f, false);
    EXPECT(&f, loss, log(2), log(4.0 / 3), (double)NAN);
    fixture_release(&f);
}

static void two_class_values(void **state)
{
    struct fixture f;
    struct binary_accuracy_attributes half = {0.5};
    (void)state;
    start(&f, 2);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(2, 2));
    struct tensor *p = input(&f, "p", TYPE_F64, SHAPE(2, 2));
    struct tensor *target = input(&f, "target", TYPE_U8, SHAPE(2, 2));
    struct tensor *d = input(&f, "d", TYPE_F64, SHAPE(2));
    struct tensor *from_logits = binary(&f.graph, &op_sigmoid_crossentropy, x, target);
    struct tensor *from_p = binary(&f.graph, &op_binary_crossentropy, p, target);
    struct tensor *dp =
        graph_add(&f.graph, &op_binary_crossentropy_gradient, (struct tensor *[]){p, target, d}, 3, NULL, 0);
    struct tensor *right =
        graph_add(&f.graph, &op_binary_accuracy, (struct tensor *[]){p, target}, 2, &half, sizeof(half));
    prepare(&f);
    PUT(&f, x, 0, log(3), -1000, -1000);
    PUT(&f, p, 0.5, 0.75, 0, 1);
    PUT(&f, target, 1, 0, 0, 0);
    PUT(&f, d, 1, 1);
    fixture_run_all(&f, false);
    EXPECT(&f, from_logits, (log(2) + log(4)) / 2, 0);
    EXPECT(&f, from_p, (log(2) + log(4)) / 2, (-log(1 - 1e-7) - log(1e-7)) / 2);
    EXPECT(&f, dp, -1, 2, 0, 0); /* clipped: nothing flows */
    EXPECT(&f, right, 0, 0.5);
    fixture_release(&f);
}

/* A short batch counts its own samples. */
static void mean_of_a_short_batch(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, 4);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(4));
    struct tensor *mean = unary(&f.graph, &op_batch_mean, x);
    struct tensor *d = binary(&f.graph, &op_batch_mean_gradient, NULL, x);
    prepare(&f);
    PUT(&f, x, 1, 2, 6, 100);
    fixture_run(&f, mean->producer, 2, 3);
    fixture_run(&f, d->producer, 2, 3);
    EXPECT(&f, mean, 3);
    assert_true(fabs(fixture_get(&f, d, 2) - 1.0 / 3) < 1e-12);
    fixture_release(&f);
}

static void small_values(void **state)
{
    struct fixture f;
    struct rescale_attributes rescale = {2, 1, 0};
    struct clip_log_attributes clip = {0.5, 2};
    struct reduce_attributes over_last = {.axes = 1 << 1, .keep = 1};
    struct reduce_broadcast_attributes broadcast = {.axes = 1 << 1, .keep = 1, .factor = 1, .rank = 1, .row = {2}};
    (void)state;
    start(&f, 2);
    struct tensor *x = input(&f, "x", TYPE_F64, SHAPE(2, 2)), *byte = input(&f, "byte", TYPE_U8, SHAPE(2, 2));
    struct tensor *relu = unary(&f.graph, &op_relu, x), *sigmoid = unary(&f.graph, &op_sigmoid, x);
    struct tensor *rescaled = graph_add(&f.graph, &op_rescale, &byte, 1, &rescale, sizeof(rescale));
    struct tensor *logs = graph_add(&f.graph, &op_clip_log, &x, 1, &clip, sizeof(clip));
    struct tensor *rows = unary(&f.graph, &op_sum_rows, x);
    struct tensor *last = graph_add(&f.graph, &op_reduce_sum, &x, 1, &over_last, sizeof(over_last));
    struct tensor *wide = graph_add(&f.graph, &op_reduce_broadcast, &last, 1, &broadcast, sizeof(broadcast));
    prepare(&f);
    PUT(&f, x, -log(3), 0, 1, 4);
    PUT(&f, byte, 0, 1, 200, 255);
    fixture_run_all(&f, false);
    EXPECT(&f, relu, 0, 0, 1, 4);
    EXPECT(&f, sigmoid, 0.25, 0.5, 1 / (1 + exp(-1)), 1 / (1 + exp(-4)));
    EXPECT(&f, rescaled, 1, 3, 401, 511);
    EXPECT(&f, logs, log(0.5), log(0.5), 0, log(2));
    EXPECT(&f, rows, 1 - log(3), 4);
    EXPECT(&f, wide, -log(3), -log(3), 5, 5);
    fixture_release(&f);
}

/* Keras's formulas for one weight, two steps of each. */
static void update_values(void **state)
{
    struct fixture f;
    struct update_attributes momentum = {.momentum = 0.5}, nesterov = {.momentum = 0.5, .nesterov = true};
    struct update_attributes adam = {.beta_1 = 0.75, .beta_2 = 0.5, .epsilon = 0.25}; /* exact in float32 */
    struct tensor *w[4], *m[4];
    const char *const names[] = {"w0", "w1", "w2", "w3"}, *const states[] = {"m0", "m1", "m2", "m3"};
    (void)state;
    start(&f, 1);
    for (int i = 0; i < 4; i++) {
        w[i] = graph_weight(&f.graph, names[i], TYPE_F64, SHAPE(1), true);
        m[i] = graph_state(&f.graph, states[i], TYPE_F64, SHAPE(1));
    }
    struct tensor *g = graph_state(&f.graph, "g", TYPE_F64, SHAPE(1)),
                  *v = graph_state(&f.graph, "v", TYPE_F64, SHAPE(1));
    struct tensor *rate = graph_state(&f.graph, "rate", TYPE_F32, SHAPE(1));
    struct tensor *t = graph_state(&f.graph, "t", TYPE_I64, SHAPE(1));
    struct tensor *control = binary(&f.graph, &op_step_control, rate, t);
    graph_add(&f.graph, &op_sgd, (struct tensor *[]){w[0], g, control}, 3, NULL, 0);
    graph_add(&f.graph, &op_sgd, (struct tensor *[]){w[1], g, control, m[1]}, 4, &momentum, sizeof(momentum));
    graph_add(&f.graph, &op_sgd, (struct tensor *[]){w[2], g, control, m[2]}, 4, &nesterov, sizeof(nesterov));
    graph_add(&f.graph, &op_adam, (struct tensor *[]){w[3], g, control, m[3], v}, 5, &adam, sizeof(adam));
    unary(&f.graph, &op_count_step, t);
    prepare(&f);
    for (int i = 0; i < 4; i++) {
        PUT(&f, w[i], 1);
        PUT(&f, m[i], 0);
    }
    PUT(&f, g, 2);
    PUT(&f, v, 0);
    PUT(&f, rate, 0.5);
    PUT(&f, t, 0);
    fixture_run_all(&f, false);
    fixture_run_all(&f, false);
    EXPECT(&f, w[0], -1);             /* 1 - 1 - 1 */
    EXPECT(&f, w[1], -1.5);           /* m: -1, -1.5 */
    EXPECT(&f, w[2], 1 - 1.5 - 1.75); /* w += m/2 - 1 */
    EXPECT(&f, m[3], 0.875);          /* 0.5 + 0.375 */
    EXPECT(&f, v, 3);                 /* 2 + 1 */
    double first = 0.5 * (0.5 * sqrt(0.5) / 0.25) / (sqrt(2) + 0.25);
    double second = 0.875 * (0.5 * sqrt(0.75) / (1 - 0.5625)) / (sqrt(3) + 0.25);
    EXPECT(&f, w[3], 1 - first - second);
    EXPECT(&f, t, 2);
    fixture_release(&f);
}

/* The reference backend is the references. */
static void reference_backend_runs(void **state)
{
    struct fixture f;
    struct backend *backend;
    const struct kernel *kernel;
    struct call call;
    (void)state;
    assert_true(fixture_init(&f, &op_scale, 0, TYPE_F64, 3));
    uint64_t before = budget_usage(f.budget).now;
    assert_int_equal(reference_backend.open(&backend, f.budget, NULL), PLIM_OK);
    assert_ptr_equal(backend->type, &reference_backend);
    assert_int_equal(
        backend->type->prepare(&kernel, backend, &(struct kernel_request){.node = f.node, .slice = 3}, NULL), PLIM_OK);
    assert_int_equal(kernel->scratch_bytes + kernel->pack_bytes, 0);
    fixture_fill(&f, 5);
    fixture_call(&call, &f, f.node, 0, 3, 3);
    kernel->run(kernel, &call);
    assert_true(fixture_get(&f, f.output, 4) == -3.5 * fixture_get(&f, f.node->input[0], 4));
    uint64_t filled = budget_usage(f.budget).now_by_tag[TAG_ACTIVATIONS];
    backend->type->close(backend);
    assert_true(budget_usage(f.budget).now == before + filled);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_values),
        cmocka_unit_test(matmul_values),
        cmocka_unit_test(conv2d_values),
        cmocka_unit_test(conv2d_channels),
        cmocka_unit_test(max_pool_values),
        cmocka_unit_test(loss_values),
        cmocka_unit_test(two_class_values),
        cmocka_unit_test(whole_numbers_beside_fractions),
        cmocka_unit_test(types_are_promoted),
        cmocka_unit_test(operands_become_one_type),
        cmocka_unit_test(values_of_mixed_types),
        cmocka_unit_test(gradients_stop),
        cmocka_unit_test(constants_are_what_they_were),
        cmocka_unit_test(small_values),
        cmocka_unit_test(mean_of_a_short_batch),
        cmocka_unit_test(update_values),
        cmocka_unit_test(reference_backend_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
