/* test_api_planned.c - a loop of one's own in a smaller budget: spilled and paged, with the same bits. Results are there
   after weights were read, whatever lies on the disk. */
#include "api_graph_support.h"

#define BATCH  256
#define UNITS  900
#define LAYERS 4
#define STEPS  3

static const char layers[] = "[Dense: {units: 900, activation: gelu}, Dense: {units: 900, activation: gelu}, "
                             "Dense: {units: 900, activation: gelu}, Dense: {units: 900, name: last}]";

static float inputs[BATCH * UNITS];

/* What a loop leaves. */
struct left {
    float loss[STEPS], weight[UNITS * UNITS], momentum[UNITS * UNITS];
    int64_t steps;
    uint64_t bytes; /* of the program */
};

struct loop {
    plim_budget *budget;
    plim_graph *graph;
    plim_value *loss, *weight, *momentum, *steps;
    plim_program *program;
};

static plim_status open_loop(struct loop *out, uint64_t bytes, const plim_program_options *options, plim_error *error)
{
    plim_value *weights[2 * LAYERS], *gradients[2 * LAYERS];
    *out = (struct loop){.budget = budget_of(bytes)};
    plim_graph *graph = out->graph = graph_of(out->budget, BATCH, true);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(UNITS));
    plim_value *y = plim_layers_apply(graph, plim_layers_read(graph, layers), &x, 1);
    out->loss = plim_op(graph, "mean", LIST(plim_op(graph, "squared_difference", LIST(y, x), NULL)), NULL);
    int count = plim_graph_weights(weights, 2 * LAYERS, graph);
    assert_int_equal(count, 2 * LAYERS);
    plim_status status = plim_graph_gradients(gradients, graph, out->loss, weights, count, error);
    plim_graph_update(graph, "adam", "mine", weights, gradients, count);
    plim_graph_result(graph, out->loss, "loss");
    out->weight = plim_graph_find(graph, "last/kernel");
    out->momentum = plim_graph_find(graph, "mine/last/kernel/momentum");
    out->steps = plim_graph_find(graph, "mine/iteration");
    return status == PLIM_OK ? plim_program_make(&out->program, &graph, 1, options, error) : status;
}

static void close_loop(struct loop *loop)
{
    plim_program_free(loop->program);
    plim_graph_free(loop->graph);
    plim_budget_free(loop->budget);
}

static void run_loop(struct left *out, struct loop *loop)
{
    const plim_batch batch = {.count = BATCH, .column = {inputs}};
    out->bytes = plim_program_bytes(loop->program);
    uint64_t before = held(loop->budget);
    for (int step = 0; step < STEPS; step++) {
        good(plim_program_run(loop->program, 0, &batch, &told));
        good(plim_program_read(out->weight, sizeof out->weight, loop->program, loop->weight, &told));
        good(plim_program_read(out->momentum, sizeof out->momentum, loop->program, loop->momentum, &told));
        good(plim_program_read(&out->loss[step], sizeof(float), loop->program, loop->loss, &told));
        good(plim_program_write(loop->program, loop->weight, out->weight, sizeof out->weight, &told));
        good(plim_program_write(loop->program, loop->momentum, out->momentum, sizeof out->momentum, &told));
    }
    good(plim_program_read(&out->steps, sizeof out->steps, loop->program, loop->steps, &told));
    assert_true(held(loop->budget) == before);
}

static void same(const struct left *a, const struct left *b)
{
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->weight, b->weight, sizeof a->weight);
    assert_memory_equal(a->momentum, b->momentum, sizeof a->momentum);
    assert_true(a->steps == b->steps && b->steps == STEPS);
}

static void a_smaller_budget_gives_the_same_bits(void **state)
{
    static struct left whole, left;
    struct loop loop;
    plim_error error = {0};
    unsigned long long least = 0;
    int smaller = 0;
    (void)state;
    assert_int_equal(open_loop(&loop, 256 * MIB, NULL, &error), PLIM_OK);
    run_loop(&whole, &loop);
    close_loop(&loop);
    for (uint64_t bytes = whole.bytes + MIB; !least; bytes -= 4 * MIB) {
        assert_true(bytes > 4 * MIB);
        plim_status status = open_loop(&loop, bytes, NULL, &error);
        if (status == PLIM_OK) {
            run_loop(&left, &loop);
            same(&whole, &left);
            assert_true(held(loop.budget) <= bytes);
            smaller += left.bytes < whole.bytes - MIB;
            print_message("%llu bytes in a budget of %llu\n", (unsigned long long)left.bytes,
                          (unsigned long long)bytes);
        } else {
            const char *at = strstr(error.message, "the program needs ");
            assert_int_equal(status, PLIM_OVER_BUDGET);
            assert_true(at && sscanf(at, "the program needs %llu bytes", &least) == 1 && least > bytes);
        }
        close_loop(&loop);
    }
    assert_true(smaller >= 4);
    assert_int_equal(open_loop(&loop, least, NULL, &error), PLIM_OK);
    run_loop(&left, &loop);
    same(&whole, &left);
    close_loop(&loop);
}

/* Nothing lies on the disk where that is forbidden, or where there is none. */
static void the_disk_may_be_forbidden(void **state)
{
    static struct left whole;
    struct loop loop;
    plim_error error = {0};
    const plim_program_options options[] = {
        {.in_memory = true}, {.disk_bytes = 4096}, {.scratch = "/dev/shm"}, {.scratch = "/not/there"}};
    const char *const says[] = {"options.in_memory", NULL, "it is in memory", "no scratch file can be made there"};
    (void)state;
    assert_int_equal(open_loop(&loop, 256 * MIB, NULL, &error), PLIM_OK);
    run_loop(&whole, &loop);
    close_loop(&loop);
    for (int i = 0; i < COUNT(options); i++) {
        assert_int_equal(open_loop(&loop, whole.bytes - 4 * MIB, &options[i], &error), PLIM_OVER_BUDGET);
        assert_true(i == 1 || strstr(error.hint, says[i]));
        close_loop(&loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_smaller_budget_gives_the_same_bits),
                                       cmocka_unit_test(the_disk_may_be_forbidden)};
    for (uint32_t i = 0; i < COUNT(inputs); i++)
        inputs[i] = number_at(i);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
