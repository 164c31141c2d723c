/* test_rederive.c - what backward makes again: which values, the same bits from less memory, and not from what was
   written in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan_models.h"
#include "train/trainer.h"

#define BATCH  1024
#define WIDTH  512 /* so many rows of it are worth making again */
#define BLOCKS 4

struct run {
    struct budget *budget;
    struct backend *backend;
    struct graph graph;
    struct made made;
    struct program *program;
    struct machine machine;
};

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
        assert_int_equal(rederive(graph, &error), PLIM_OK);
}

static int made_again(const struct graph *graph, const struct op *op)
{
    int count = 0;
    for (int n = 0; n < graph->node_count; n++)
        count += graph->node[n]->again && graph->node[n]->op == op;
    return count;
}

static void open_run(struct run *run, bool again, int threads)
{
    plim_error error = {0};
    *run = (struct run){0};
    assert_int_equal(budget_make(&run->budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    assert_int_equal(cpu_backend.open(&run->backend, run->budget, &error), PLIM_OK);
    build(run, again, false);
    const struct program_input input = {
        .budget = run->budget, .backend = run->backend, .threads = threads, .train = &run->graph};
    if (program_make(&run->program, &input, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    assert_int_equal(machine_open(&run->machine, run->program, run->budget, &error), PLIM_OK);
    run->machine.poison = true;
}

static void close_run(struct run *run)
{
    machine_close(&run->machine);
    program_free(run->program);
    graph_release(&run->graph);
    run->backend->type->close(run->backend);
    budget_free(run->budget);
}

/* Weights and states after two steps; test_free it. */
static uint8_t *train(struct run *run)
{
    static float x[BATCH * 32], label[BATCH];
    struct batch batch = {.count = BATCH, .column = {x, label}};
    memset(run->machine.arena, 0, run->program->persistent_bytes);
    random_fill_unit(x, BATCH * 32, 3, 1, 0);
    for (int i = 0; i < BATCH; i++)
        label[i] = (float)(i % 2);
    for (int w = 0; w < run->made.weight_count; w++) {
        const struct tensor *tensor = run->made.weight[w];
        float *data = machine_data(&run->machine, PHASE_TRAIN, tensor);
        random_fill_unit(data, (uint64_t)shape_count(&tensor->shape), 5, (uint64_t)w, 0);
        for (int64_t i = 0; i < shape_count(&tensor->shape); i++)
            data[i] = (data[i] - 0.5f) / 16;
    }
    for (int p = 0; p < run->program->persistent_count; p++)
        if (strcmp(run->program->persistent[p]->name, "optimizer/learning_rate") == 0)
            *(float *)(run->machine.arena + run->program->persistent_offset[p]) = 0.01f;
    for (int step = 0; step < 2; step++)
        machine_run(&run->machine, PHASE_TRAIN, &batch);
    uint8_t *out = test_malloc(run->program->persistent_bytes);
    memcpy(out, run->machine.arena, run->program->persistent_bytes);
    return out;
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
        open_run(&kept, false, 1);
        open_run(&again, true, threads);
        uint8_t *one = train(&kept), *other = train(&again);
        assert_int_equal(kept.program->persistent_bytes, again.program->persistent_bytes);
        assert_memory_equal(one, other, kept.program->persistent_bytes);
        float loss = *(const float *)machine_data(&again.machine, PHASE_TRAIN, again.made.loss);
        assert_true(loss > 0 && loss < 100);
        /* All but two are gone when the most is there: one just made again, and one on its way back. */
        assert_true(again.program->phase[PHASE_TRAIN].max_live + (BLOCKS - 2) * BATCH * WIDTH * sizeof(float) <=
                    kept.program->phase[PHASE_TRAIN].max_live);
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
