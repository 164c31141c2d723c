/* test_sum_order.c - the order of sums: pieces of an axis nest, and training has the same bits whatever chains nodes
   are in. */
#include <stdio.h>

#include "base/numbers/count.h"
#include "base/numbers/random.h"
#include "training_run.h"

/* ---- pieces ------------------------------------------------------------ */

static void check_pieces(int64_t extent, int64_t grain, int64_t pieces)
{
    int64_t most = 0, all = 0;
    for (int64_t i = 0; i < pieces; i++) {
        int64_t begin = piece_begin(extent, grain, i, pieces), rows = piece_begin(extent, grain, i + 1, pieces) - begin;
        assert_true(rows > 0 && begin % grain == 0);
        most = rows > most ? rows : most;
        all += rows;
        if (2 * pieces <= extent / grain)
            assert_int_equal(begin, piece_begin(extent, grain, 2 * i, 2 * pieces));
    }
    assert_int_equal(all, extent);
    assert_int_equal(most, piece_most(extent, grain, pieces));
}

static void pieces_nest(void **state)
{
    static const int64_t extents[] = {1, 2, 3, 7, 24, 31, 32, 33, 100, 192, 1000, 10007, 50257}, grains[] = {1, 8, 96};
    (void)state;
    for (size_t e = 0; e < COUNT(extents); e++)
        for (size_t g = 0; g < COUNT(grains); g++)
            for (int64_t pieces = 1; pieces == 1 || pieces <= extents[e] / grains[g]; pieces *= 2)
                check_pieces(extents[e], grains[g], pieces);
    /* No product of a row and a number of pieces overflows. */
    int64_t most = INT64_MAX - 1, middle = piece_begin(most, 1, MOST_CUT_PIECES / 2, MOST_CUT_PIECES);
    assert_int_equal(middle, most / 2);
}

/* ---- orders ------------------------------------------------------------ */

/* Sums of `rows` samples of `cells` x `width` values over all but the last axis. */
static struct sum_order order_of(int64_t rows, int64_t cells, int64_t width)
{
    struct budget *budget;
    struct graph graph;
    struct cut cut;
    struct sum_rows_attributes attributes = {0};
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&graph, budget, rows);
    struct tensor *x = graph_input(&graph, "x", 0, TYPE_F32, rank_4(rows, cells, 1, width));
    struct node *node =
        graph_add(&graph, &op_sum_rows, (struct tensor *[]){x}, 1, &attributes, sizeof attributes)->producer;
    node->op->cut(&cut, node);
    struct sum_order order = sum_order(node, &cut);
    assert_true(order.parts >= 1 && order.leaves % order.parts == 0);
    assert_true(order.leaves <= MOST_CUT_PIECES);
    assert_true(order.leaves == 1 || order.leaves <= rows / sum_grain(&cut));
    graph_release(&graph);
    budget_free(budget);
    return order;
}

/* Many rows are worth many parts, few values none; wide rows have short leaves. */
static void orders_follow_shapes(void **state)
{
    (void)state;
    assert_int_equal(order_of(32, 1, 1).parts, 1);
    assert_int_equal(order_of(64, 1, 512).parts, 16);
    assert_int_equal(order_of(64, 1, 4096).parts, 4);
    assert_int_equal(order_of(100000, 1, 64).parts, 64);
    assert_int_equal(order_of(3, 1, 1 << 20).leaves, 1);
    assert_int_equal(order_of(16, 1 << 16, 16).leaves, 16);
    order_of(((int64_t)1 << 40) - 8, 1 << 20, 1);
    for (int64_t rows = 1; rows < 300; rows += 7)
        order_of(rows, 1, 1000);
}

/* ---- training in other chains ------------------------------------------ */

#define BATCH 24

/* Convolutions with normalisation, a dense layer: everything that adds over samples. */
static void build(struct run *run, uint64_t seed)
{
    struct graph *graph = &run->graph;
    struct made *made = &run->made;
    struct batch_normalize_attributes normal = {.epsilon = 1e-3};
    struct layer_normalize_attributes layer = {.epsilon = 1e-3, .axes = 1, .kind = NORMAL_LAYER};
    struct batch_statistics_attributes f32 = {.type = TYPE_F32};
    plim_error error = {0};
    graph_init(graph, run->budget, BATCH);
    made->plain = true;
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_4(BATCH, 40, 40, 3));
    struct tensor *label = graph_input(graph, "label", 1, TYPE_F32, rank_1(BATCH));
    for (int i = 0; i < 2; i++) {
        char name[24];
        snprintf(name, sizeof name, "conv_%d", i);
        x = made_conv(made, graph, name, x, 16);
        struct tensor *moments = graph_add(graph, &op_batch_moments, &x, 1, NULL, 0);
        struct tensor *statistics = graph_add(
            graph, &op_batch_statistics, (struct tensor *[]){moments, graph_output(moments, 1)}, 2, &f32, sizeof f32);
        snprintf(name, sizeof name, "normal_%d", i);
        struct tensor *gamma = made_weight(made, graph, name, rank_1(16));
        x = graph_add(graph, &op_batch_normalize,
                      (struct tensor *[]){x, statistics, graph_output(statistics, 1), gamma, NULL}, 5, &normal,
                      sizeof normal);
        x = made_pool(graph, "pool", x);
    }
    x = graph_add(graph, &op_layer_normalize,
                  (struct tensor *[]){x, made_weight(made, graph, "layer", rank_1(16)), NULL}, 3, &layer, sizeof layer);
    x = unary(graph, &op_flatten, x);
    x = unary(graph, &op_gelu, made_dense(made, graph, "wide", x, 64));
    x = made_dense(made, graph, "last", x, 1);
    made_finish(made, graph, binary(graph, &op_sigmoid_crossentropy, x, label), true);
    assert_int_equal(graph_check(graph, &error), PLIM_OK);
    for (int n = 0; n < graph->node_count && seed; n++)
        graph->node[n]->begins_chain = random_key(seed, (uint64_t)n, 0) % 3 == 0;
}

/* Weights and states after full batches and a short one. last: what the plan knows of the short one's size. */
static uint8_t *train(int64_t last, uint64_t seed, int threads, size_t *bytes, int *instructions)
{
    static const int64_t counts[] = {BATCH, 13, BATCH};
    struct run run;
    begin_run(&run);
    build(&run, seed);
    run.last_batch = last;
    open_run(&run, threads);
    *bytes = run.program->persistent_bytes;
    *instructions = run.program->phase[PHASE_TRAIN].instruction_count;
    uint8_t *out = train_run(&run, counts, COUNT(counts));
    float loss = *(const float *)machine_data(&run.machine, PHASE_TRAIN, run.made.loss);
    assert_true(loss > 0 && loss < 100);
    close_run(&run);
    return out;
}

static void compare_chains(int64_t last)
{
    size_t bytes, other_bytes;
    int instructions, others;
    uint8_t *one = train(last, 0, 1, &bytes, &instructions);
    for (uint64_t seed = 1; seed < 6; seed++) {
        uint8_t *other = train(last, seed, 1 + (int)(seed % 3), &other_bytes, &others);
        assert_true(others > instructions); /* the chains are others */
        assert_int_equal(bytes, other_bytes);
        assert_memory_equal(one, other, bytes);
        test_free(other);
    }
    test_free(one);
}

static void bits_do_not_depend_on_chains(void **state)
{
    (void)state;
    compare_chains(13);
    compare_chains(LAST_BATCH_ANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_nest),
        cmocka_unit_test(orders_follow_shapes),
        cmocka_unit_test(bits_do_not_depend_on_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
