/* test_api_graph_faults.c - a loop of one's own while the n-th allocation or thread start fails: an error each time,
   and everything is given back. */
#include "api_graph_support.h"

#include <errno.h>

#include "base/fault.h"

static plim_status build(plim_graph *graph, plim_error *error)
{
    plim_value *weights[8], *gradients[8] = {0};
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(4));
    plim_value *label = plim_graph_input(graph, "label", PLIM_INT32, SCALAR);
    plim_value *w = plim_graph_weight(graph, "w", SHAPE(4, 4), "glorot_uniform", true);
    plim_value *h = plim_op(graph, "matmul", LIST(x, w), NULL);
    h = plim_layers_apply(graph, plim_layers_read(graph, "[Dense: {units: 3, activation: relu}, Dropout: 0.1]"), &h, 1);
    h = plim_op(graph, "subtract", &h, 1, "{a: 1}");
    plim_value *loss = plim_loss(graph, "{SparseCategoricalCrossentropy: {from_logits: true}}", h, label);
    int count = plim_graph_weights(weights, 8, graph);
    plim_graph_result(graph, loss, "loss");
    plim_status status = plim_graph_gradients(gradients, graph, loss, weights, count, error);
    if (status == PLIM_OK)
        plim_graph_update(graph, "{adam: {clipnorm: 1}}", NULL, weights, gradients, count);
    return plim_graph_check(graph, error);
}

static plim_status attempt(plim_error *error)
{
    plim_budget *budget;
    plim_graph *graph = NULL;
    plim_program *program = NULL;
    float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int32_t labels[2] = {0, 2};
    plim_status status = plim_budget_make(&budget, 16 * MIB, error);
    if (status != PLIM_OK)
        return status;
    uint64_t before = held(budget);
    status = plim_graph_make(&graph, budget, &(plim_graph_options){.batch = 2, .training = true}, error);
    if (status == PLIM_OK)
        status = build(graph, error);
    if (status == PLIM_OK)
        status = plim_program_make(&program, &graph, 1, &(plim_program_options){.threads = 2}, error);
    for (int step = 0; step < 2 && status == PLIM_OK; step++)
        status = plim_program_run(program, 0, &(plim_batch){.count = 2, .column = {data, labels}}, error);
    plim_program_free(program);
    plim_graph_free(graph);
    assert_int_equal(held(budget), before);
    plim_budget_free(budget);
    return status;
}

static void sweep(unsigned sites, bool forever)
{
    for (int64_t nth = 1;; nth++) {
        plim_error error = {0};
        fault_arm(sites, nth, forever, sites == FAULT_THREAD ? EAGAIN : ENOMEM);
        plim_status status = attempt(&error);
        bool reached = fault_disarm();
        if (!reached) {
            assert_int_equal(status, PLIM_OK);
            assert_true(sites == FAULT_THREAD || nth > 8);
            return;
        }
        if (status != PLIM_OK && (!error.message[0] || status == PLIM_INTERNAL))
            fail_msg("fault %lld: status %d without a word: \"%s\"", (long long)nth, (int)status, error.message);
        if (status == PLIM_OK && sites == FAULT_ALLOCATE && forever)
            fail_msg("fault %lld for ever: all went well", (long long)nth);
    }
}

static void allocations_fail_once(void **state)
{
    (void)state;
    sweep(FAULT_ALLOCATE, false);
}

static void allocations_fail_for_ever(void **state)
{
    (void)state;
    sweep(FAULT_ALLOCATE, true);
}

static void threads_fail(void **state)
{
    (void)state;
    sweep(FAULT_THREAD, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_fail_once),
        cmocka_unit_test(allocations_fail_for_ever),
        cmocka_unit_test(threads_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
