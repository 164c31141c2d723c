/* test_recompute.c - what backward makes again: which values, the same bits from less memory, and not from what was
   written in between. */
#include "training_run.h"

#define BATCH  1024
#define WIDTH  512 /* so many rows of it are worth making again */
#define BLOCKS 4

/* Blocks of a product and gelu, layer normalisation, a dense layer; the factor of the normalisation may be written
 * before backward. */
static void build(struct run *run, bool again, bool written)
{
    struct graph *graph = &run->graph;
    struct made *made = &run->made;
    struct layer_normalize_attributes normal = {.epsilon = 1e-3, .axes = 1, .kind = NORMAL_LAYER};
    plim_error error = {0};
    graph_init(graph, run->budget, BATCH);
    made->plain = true;
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_2(BATCH, 32));
    struct tensor *label = graph_input(graph, "label", 1, TYPE_F32, rank_1(BATCH));
    static const char *const names[BLOCKS] = {"a", "b", "c", "d"};
    for (int i = 0; i < BLOCKS; i++)
        x = unary(graph, &op_gelu,
                  binary(graph, &op_matmul, x, made_weight(made, graph, names[i], rank_2(x->shape.dim[1], WIDTH))));
    struct tensor *gamma = made_weight(made, graph, "normal/gamma", rank_1(WIDTH));
    x = graph_add(graph, &op_layer_normalize, (struct tensor *[]){x, gamma, NULL}, 3, &normal, sizeof normal);
    x = made_dense(made, graph, "last", x, 1);
    if (written)
        binary(graph, &op_assign, gamma, graph_state(graph, "other", TYPE_F32, rank_1(WIDTH)));
    made_finish(made, graph, binary(graph, &op_sigmoid_crossentropy, x, label), true);
    assert_int_equal(graph_check(graph, &error), PLIM_OK);
    if (again)
        assert_int_equal(recompute(graph, &error), PLIM_OK);
}

static int made_again(const struct graph *graph, const struct op *op)
{
    int count = 0;
    for (int n = 0; n < graph->node_count; n++)
        count += graph->node[n]->again && graph->node[n]->op == op;
    return count;
}

static void make_run(struct run *run, bool again, int threads)
{
    begin_run(run);
    build(run, again, false);
    open_run(run, threads);
}

static uint8_t *train(struct run *run)
{
    static const int64_t counts[] = {BATCH, BATCH};
    return train_run(run, counts, 2);
}

static void cheap_values_are_made_again(void **state)
{
    struct run run = {0};
    (void)state;
    assert_int_equal(budget_make(&run.budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    build(&run, true, false);
    assert_int_equal(made_again(&run.graph, &op_gelu), BLOCKS);
    assert_int_equal(made_again(&run.graph, &op_layer_normalize), 1);
    assert_int_equal(made_again(&run.graph, &op_matmul), 0);
    graph_release(&run.graph);
    run.made = (struct made){0};
    build(&run, true, true);
    assert_int_equal(made_again(&run.graph, &op_gelu), BLOCKS);
    assert_int_equal(made_again(&run.graph, &op_layer_normalize), 0); /* its factor is another by then */
    graph_release(&run.graph);
    budget_free(run.budget);
}

static void bits_are_the_same_from_less_memory(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct run kept, again;
        make_run(&kept, false, 1);
        make_run(&again, true, threads);
        uint8_t *one = train(&kept), *other = train(&again);
        assert_int_equal(kept.program->persistent_bytes, again.program->persistent_bytes);
        assert_memory_equal(one, other, kept.program->persistent_bytes);
        float loss = *(const float *)machine_data(&again.machine, PHASE_TRAIN, again.made.loss);
        assert_true(loss > 0 && loss < 100);
        /* All but two are gone when the most is there: one just made again, and one on its way back. Partial sums do not
           count: those of the last kernel's gradient are made at that moment only where the value before it is made
           again. */
        assert_true(again.program->phase[PHASE_TRAIN].by_tag[TAG_ACTIVATIONS] +
                        (BLOCKS - 2) * BATCH * WIDTH * sizeof(float) <=
                    kept.program->phase[PHASE_TRAIN].by_tag[TAG_ACTIVATIONS]);
        test_free(one);
        test_free(other);
        close_run(&kept);
        close_run(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheap_values_are_made_again),
        cmocka_unit_test(bits_are_the_same_from_less_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
