/* test_encode.c - what backward reads a few bits of: which values are kept as bits, the same weights from less memory,
   and what is left alone. */
#include "training_run.h"

#define BATCH  1024
#define WIDTH  512 /* so many rows of it are worth bits */
#define BLOCKS 5

enum how { AS_THEY_ARE, AS_BITS, BITS_AND_AGAIN };

/* Slopes of every kind: one that is chosen, three of them, two that end. */
static struct tensor *bent(struct graph *graph, struct tensor *x, int block)
{
    static const struct numbers_attributes leaky = {0.2, 0.75, 0}, capped = {0, 0.5, 0};
    switch (block) {
    case 1:
        return graph_add(graph, &op_rectify, &x, 1, &leaky, sizeof leaky);
    case 2:
        return graph_add(graph, &op_rectify, &x, 1, &capped, sizeof capped);
    case 3:
        return unary(graph, &op_hard_tanh, x);
    default:
        return unary(graph, &op_relu, x);
    }
}

/* Blocks of a product, a line that bends and a sum with what came in, then a dense layer. */
static void build(struct run *run, enum how how)
{
    struct graph *graph = &run->graph;
    struct made *made = &run->made;
    plim_error error = {0};
    graph_init(graph, run->budget, BATCH);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_2(BATCH, WIDTH));
    struct tensor *label = graph_input(graph, "label", 1, TYPE_F32, rank_1(BATCH));
    static const char *const names[BLOCKS] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < BLOCKS; i++) {
        struct tensor *w = made_weight(made, graph, names[i], rank_2(WIDTH, WIDTH));
        x = binary(graph, &op_add, x, bent(graph, binary(graph, &op_matmul, x, w), i));
    }
    x = made_dense(made, graph, "last", x, 1);
    made_finish(made, graph, binary(graph, &op_sigmoid_crossentropy, x, label), true);
    assert_int_equal(graph_check(graph, &error), PLIM_OK);
    if (how != AS_THEY_ARE)
        assert_int_equal(encode_kept(graph, &error), PLIM_OK);
    if (how == BITS_AND_AGAIN)
        assert_int_equal(recompute(graph, &error), PLIM_OK);
}

static void make_run(struct run *run, enum how how, int threads)
{
    begin_run(run);
    build(run, how);
    open_run(run, threads);
}

/* Three steps, the last of fewer samples. */
static uint8_t *train(struct run *run)
{
    static const int64_t counts[] = {BATCH, BATCH, 333};
    return train_run(run, counts, 3);
}

static void values_with_few_slopes_are_kept_as_bits(void **state)
{
    struct run run = {0};
    (void)state;
    assert_int_equal(budget_make(&run.budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    build(&run, AS_BITS);
    assert_int_equal(count_of(&run.graph, &op_slope_bits), BLOCKS);
    assert_int_equal(count_of(&run.graph, &op_slope_gradient), BLOCKS);
    assert_int_equal(count_of(&run.graph, &op_relu_gradient), 0);
    assert_int_equal(count_of(&run.graph, &op_rectify_gradient), 0);
    for (int n = 0; n < run.graph.node_count; n++) {
        const struct node *node = run.graph.node[n];
        assert_int_equal(node->id, n);
        if (node->op == &op_slope_bits) { /* right behind what it reads, an eighth or a quarter of a byte an element */
            assert_ptr_equal(node->input[0]->producer, run.graph.node[n - 1]);
            assert_false(node->backward);
            assert_true(shape_row(&node->output[0]->shape) == WIDTH / 8 ||
                        shape_row(&node->output[0]->shape) == WIDTH / 4);
        }
    }
    graph_release(&run.graph);
    budget_free(run.budget);
}

static void weights_are_the_same_from_less_memory(void **state)
{
    struct run kept;
    (void)state;
    make_run(&kept, AS_THEY_ARE, 1);
    uint8_t *expected = train(&kept);
    for (int k = 0; k < 4; k++) {
        struct run bits;
        make_run(&bits, k % 2 ? AS_BITS : BITS_AND_AGAIN, 1 + k / 2);
        uint8_t *got = train(&bits);
        assert_int_equal(kept.program->persistent_bytes, bits.program->persistent_bytes);
        assert_memory_equal(expected, got, kept.program->persistent_bytes);
        float loss = *(const float *)machine_data(&bits.machine, PHASE_TRAIN, bits.made.loss);
        assert_true(loss > 0 && loss < 100);
        /* All but what lies at the end of forward are gone. */
        assert_true(bits.program->phase[PHASE_TRAIN].max_live + (BLOCKS - 2) * BATCH * WIDTH * sizeof(float) <=
                    kept.program->phase[PHASE_TRAIN].max_live);
        test_free(got);
        close_run(&bits);
    }
    test_free(expected);
    close_run(&kept);
}

/* ---- what is left alone ---------------------------------------------------- */

enum leave { READ_BY_A_PRODUCT, A_RESULT, SMALL, MADE_AGAIN, SOURCE_OF_MORE, SOURCE_OF_LESS };

/* Nodes that make bits of relu's output, in a graph in which it is also something else. */
static int bits_in(enum leave leave)
{
    struct budget *budget;
    struct graph graph;
    struct made made = {.plain = true};
    plim_error error = {0};
    int64_t width = leave == SMALL ? 32 : WIDTH;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    graph_init(&graph, budget, BATCH);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F32, rank_2(BATCH, width));
    struct tensor *label = graph_input(&graph, "label", 1, TYPE_F32, rank_1(BATCH));
    x = binary(&graph, &op_matmul, x, made_weight(&made, &graph, "a", rank_2(width, width)));
    if (leave == MADE_AGAIN) /* square's gradient reads x too */
        x = binary(&graph, &op_add, unary(&graph, &op_square, x), unary(&graph, &op_relu, x));
    else
        x = unary(&graph, &op_relu, x);
    if (leave == A_RESULT)
        graph_result(&graph, x, "middle");
    if (leave == SOURCE_OF_MORE) /* twice as wide, and read by a product */
        x = concatenate(&graph, (struct tensor *[]){x, x}, 2, 1);
    if (leave != READ_BY_A_PRODUCT && leave != SOURCE_OF_MORE)
        x = binary(&graph, &op_add, x, x);
    x = made_dense(&made, &graph, "last", x, 1);
    made_finish(&made, &graph, binary(&graph, &op_sigmoid_crossentropy, x, label), true);
    assert_int_equal(graph_check(&graph, &error), PLIM_OK);
    assert_int_equal(encode_kept(&graph, &error), PLIM_OK);
    int count = count_of(&graph, &op_slope_bits);
    graph_release(&graph);
    budget_free(budget);
    return count;
}

static void what_is_kept_anyway_stays(void **state)
{
    (void)state;
    assert_int_equal(bits_in(READ_BY_A_PRODUCT), 0);
    assert_int_equal(bits_in(A_RESULT), 0);
    assert_int_equal(bits_in(SMALL), 0);
    assert_int_equal(bits_in(MADE_AGAIN), 0);
    assert_int_equal(bits_in(SOURCE_OF_MORE), 0);
    assert_int_equal(bits_in(SOURCE_OF_LESS), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_with_few_slopes_are_kept_as_bits),
        cmocka_unit_test(weights_are_the_same_from_less_memory),
        cmocka_unit_test(what_is_kept_anyway_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
