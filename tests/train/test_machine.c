/* test_machine.c - running plans: the same bits on any number of threads and
   over any garbage, short batches, a loss that falls, no allocation in a step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan_models.h"
#include "train/trainer.h"

enum which { MLP, CNN, CNN_PLAIN /* not fused */ };

struct bench {
    struct budget *budget;
    struct backend *backend;
    struct graph train, evaluate;
    struct made made, made_evaluate;
    struct program *program;
    struct machine machine;
};

struct data {
    float *x;
    float *target;
    uint8_t *label;
    int64_t count, width;
};

/* ---- models and data --------------------------------------------------- */

static int64_t width_of(enum which which)
{
    return which == MLP ? 12 : 20 * 20 * 2;
}

static void build(struct bench *bench, enum which which, int64_t batch, int64_t hidden)
{
    if (which != MLP) {
        bench->made_evaluate = cnn_build(&bench->evaluate, bench->budget, batch, false, which == CNN_PLAIN);
        bench->made = cnn_build(&bench->train, bench->budget, batch, true, which == CNN_PLAIN);
    } else {
        bench->made_evaluate = mlp_make(&bench->evaluate, bench->budget, batch, 12, hidden, false);
        bench->made = mlp_make(&bench->train, bench->budget, batch, 12, hidden, true);
    }
}

/* The same weights whatever the batch: a function of the weight and the element. */
static void initialize(struct bench *bench)
{
    const struct program *program = bench->program;
    memset(bench->machine.tensor_arena, 0, program->persistent_bytes);
    for (int w = 0; w < bench->made.weight_count; w++) {
        const struct tensor *tensor = bench->made.weight[w];
        float *data = machine_data(&bench->machine, PHASE_TRAIN, tensor);
        int64_t count = shape_count(&tensor->shape), fan_in = count / tensor->shape.dim[tensor->shape.rank - 1];
        assert_non_null(data);
        if (tensor->shape.rank == 1)
            continue;
        random_fill_unit(data, (uint64_t)count, 5, (uint64_t)w, 0);
        for (int64_t i = 0; i < count; i++)
            data[i] = (data[i] * 2 - 1) / sqrtf((float)fan_in);
    }
    for (int p = 0; p < program->persistent_count; p++)
        if (strcmp(program->persistent[p]->name, "optimizer/learning_rate") == 0)
            *(float *)(bench->machine.tensor_arena + program->persistent_offset[p]) = 0.01f;
}

/* hidden: units of the MLP. */
static void open_hidden(struct bench *bench, enum which which, int64_t batch, int64_t last, int threads, int64_t hidden,
                        const struct backend_type *backend)
{
    plim_error error = {0};
    *bench = (struct bench){0};
    assert_int_equal(budget_make(&bench->budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    assert_int_equal(reference_backend.open(&bench->backend, bench->budget, &error), PLIM_OK);
    bench->backend->type = backend;
    build(bench, which, batch, hidden);
    struct program_input input = {
        .budget = bench->budget,
        .backend = bench->backend,
        .threads = threads,
        .train = &bench->train,
        .evaluate = &bench->evaluate,
        .last_batch_train = last,
        .last_batch_evaluate = last,
        .save_buffer_bytes = 100,
    };
    if (program_make(&bench->program, &input, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    assert_int_equal(machine_open(&bench->machine, bench->program, bench->budget, NULL, &error), PLIM_OK);
    initialize(bench);
}

static void open_bench(struct bench *bench, enum which which, int64_t batch, int64_t last, int threads)
{
    open_hidden(bench, which, batch, last, threads, 16, &reference_backend);
}

static void close_bench(struct bench *bench)
{
    machine_close(&bench->machine);
    struct budget_usage usage = budget_usage(bench->budget);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        assert_true(tag == TAG_PLANNER || usage.now_by_tag[tag] == 0);
    program_free(bench->program);
    graph_release(&bench->train);
    graph_release(&bench->evaluate);
    bench->backend->type->close(bench->backend);
    budget_free(bench->budget);
}

static void make_data(struct data *data, enum which which, int64_t count)
{
    data->count = count;
    data->width = width_of(which);
    data->x = test_malloc((size_t)(count * data->width) * sizeof(float));
    data->target = test_malloc((size_t)count * sizeof(float));
    data->label = test_malloc((size_t)count);
    random_fill_unit(data->x, (uint64_t)(count * data->width), 3, 1, 0);
    for (int64_t i = 0; i < count; i++) {
        const float *row = &data->x[i * data->width];
        data->target[i] = row[0] + row[1] > row[2] + row[3] ? 1.0f : 0.0f;
        data->label[i] = (uint8_t)(i % 10);
    }
}

static void free_data(struct data *data)
{
    test_free(data->x);
    test_free(data->target);
    test_free(data->label);
}

static struct batch batch_of(const struct data *data, enum which which, int64_t count)
{
    struct batch batch = {.count = count,
                          .column = {data->x, which == MLP ? (void *)data->target : (void *)data->label}};
    assert_true(count <= data->count);
    return batch;
}

static float loss_of(const struct bench *bench)
{
    return *(const float *)machine_data(&bench->machine, PHASE_TRAIN, bench->made.loss);
}

/* Weights and states after some steps, full and short, and the last loss; test_free it. */
static uint8_t *trained(size_t *bytes, enum which which, int64_t batch, int threads, int garbage)
{
    struct bench bench;
    struct data data;
    int64_t last = batch * 5 / 8 + 1;
    open_bench(&bench, which, batch, last, threads);
    make_data(&data, which, batch);
    bench.machine.poison = garbage < 0;
    for (int step = 0; step < 4; step++) {
        struct batch full = batch_of(&data, which, step == 2 ? last : batch);
        if (garbage >= 0)
            memset(bench.machine.tensor_arena + bench.program->persistent_bytes, garbage + step,
                   bench.program->tensor_arena_bytes - bench.program->persistent_bytes);
        assert_int_equal(machine_run(&bench.machine, PHASE_TRAIN, &full, NULL), PLIM_OK);
        assert_int_equal(machine_run(&bench.machine, PHASE_EVALUATE, &full, NULL), PLIM_OK);
    }
    *bytes = bench.program->persistent_bytes;
    uint8_t *out = test_malloc(*bytes);
    memcpy(out, bench.machine.tensor_arena, *bytes);
    free_data(&data);
    close_bench(&bench);
    return out;
}

/* ---- tests ------------------------------------------------------------- */

static void compare(enum which which, int64_t batch, int threads, int garbage)
{
    size_t bytes, other_bytes;
    uint8_t *one = trained(&bytes, which, batch, 1, 0), *other = trained(&other_bytes, which, batch, threads, garbage);
    assert_int_equal(bytes, other_bytes);
    assert_memory_equal(one, other, bytes);
    test_free(one);
    test_free(other);
}

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    compare(MLP, 6000, 2, 0);
    compare(MLP, 6000, 4, 0);
    compare(CNN, 16, 2, 0);
    compare(CNN, 16, 4, 0);
}

static void same_bits_over_any_garbage(void **state)
{
    (void)state;
    compare(MLP, 32, 1, 0xff);
    compare(MLP, 6000, 2, 0x5a);
    compare(CNN, 16, 2, 0x5a);
    compare(CNN, 16, 2, -1); /* poisoned with NaN as things die */
    compare(MLP, 6000, 3, -1);
}

/* The plan of the large MLP has several units: else the tests above say little. */
static void work_is_shared(void **state)
{
    struct bench bench;
    (void)state;
    open_bench(&bench, MLP, 6000, 0, 1);
    assert_true(bench.program->phase[PHASE_TRAIN].instruction[2].chain.units > 2);
    close_bench(&bench);
    open_bench(&bench, CNN, 16, 0, 1);
    bool folds = false;
    for (int i = 0; i < bench.program->phase[PHASE_TRAIN].instruction_count; i++)
        folds |= bench.program->phase[PHASE_TRAIN].instruction[i].fold_count > 0;
    assert_true(folds);
    close_bench(&bench);
}

/* Two plans of the same mathematics: sums are cut differently, and that is all. */
static void check_alike(struct bench *a, struct bench *b, const struct batch *batch)
{
    for (int step = 0; step < 2; step++) {
        assert_int_equal(machine_run(&a->machine, PHASE_TRAIN, batch, NULL), PLIM_OK);
        assert_int_equal(machine_run(&b->machine, PHASE_TRAIN, batch, NULL), PLIM_OK);
        assert_float_equal(loss_of(a), loss_of(b), 1e-6);
    }
    for (int w = 0; w < a->made.weight_count; w++) {
        const float *left = machine_data(&a->machine, PHASE_TRAIN, a->made.weight[w]);
        const float *right = machine_data(&b->machine, PHASE_TRAIN, b->made.weight[w]);
        for (int64_t i = 0; i < shape_count(&a->made.weight[w]->shape); i++)
            assert_true(fabsf(left[i] - right[i]) <= 3e-6f);
    }
}

/* ---- a batch of one ---------------------------------------------------- */

static atomic_int runs, elements;

static void slope_each(const struct kernel *kernel, const struct call *call)
{
    const float *dy = call->input[0], *y = call->input[1];
    float *dx = call->output[0];
    (void)kernel;
    for (int64_t i = 0; i < call->end; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
    runs++;
    elements += (int)call->end;
}

/* The reference's, but for the gradient of relu, which offers runs of elements. */
static plim_status prepare_each(const struct kernel **out, struct backend *backend,
                                const struct kernel_request *request, plim_error *error)
{
    static const struct kernel each = {.implementation = "each", .run = slope_each};
    static struct kernel slope;
    plim_status status = reference_backend.prepare(out, backend, request, error);
    if (status != PLIM_OK || request->node->op != &op_relu_gradient)
        return status;
    slope = **out;
    slope.each = &each;
    *out = &slope;
    return PLIM_OK;
}

/* One slice is all there is: its elements are handed out in runs, and the step is the same. */
static void elements_of_one_slice_are_shared(void **state)
{
    enum { HIDDEN = 70000 };
    struct backend_type sharing = reference_backend;
    struct bench bench[2];
    struct data data;
    (void)state;
    sharing.prepare = prepare_each;
    make_data(&data, MLP, 1);
    struct batch batch = batch_of(&data, MLP, 1);
    for (int i = 0; i < 2; i++) {
        open_hidden(&bench[i], MLP, 1, 0, 2, HIDDEN, i ? &sharing : &reference_backend);
        assert_int_equal(machine_run(&bench[i].machine, PHASE_TRAIN, &batch, NULL), PLIM_OK);
    }
    assert_int_equal(runs, 5); /* of 16,384 */
    assert_int_equal(elements, HIDDEN);
    check_alike(&bench[0], &bench[1], &batch);
    for (int i = 0; i < 2; i++)
        close_bench(&bench[i]);
    free_data(&data);
}

static int phases_run;

/* Stands for a backend that records a phase and replays it. */
static plim_status count_phase(struct backend *backend, struct machine *machine, const struct phase *phase,
                               const struct batch *batch, plim_error *error)
{
    assert_ptr_equal(backend, machine->program->backend);
    phases_run++;
    return machine_run_instructions(machine, phase, batch, error);
}

/* A backend may run whole phases itself: the machine hands each to it, and only to it. */
static void a_backend_runs_phases_itself(void **state)
{
    struct backend_type own = reference_backend;
    struct bench bench[2];
    struct data data;
    (void)state;
    own.run_phase = count_phase;
    make_data(&data, MLP, 16);
    struct batch batch = batch_of(&data, MLP, 16);
    for (int i = 0; i < 2; i++) {
        open_hidden(&bench[i], MLP, 16, 0, 2, 16, i ? &own : &reference_backend);
        assert_int_equal(machine_run(&bench[i].machine, PHASE_TRAIN, &batch, NULL), PLIM_OK);
        assert_int_equal(phases_run, i);
    }
    check_alike(&bench[0], &bench[1], &batch);
    for (int i = 0; i < 2; i++)
        close_bench(&bench[i]);
    free_data(&data);
}

/* A short batch in a large plan is the same step as a plan of that size. */
static void check_short(enum which which, int64_t batch, int64_t count)
{
    struct bench large, small;
    struct data data;
    open_bench(&large, which, batch, count, 2);
    open_bench(&small, which, count, 0, 1);
    make_data(&data, which, batch);
    /* Rows that are not there must not be read. */
    memset(data.x + count * data.width, 0xff, (size_t)((batch - count) * data.width) * sizeof(float));
    struct batch cut = batch_of(&data, which, count);
    check_alike(&large, &small, &cut);
    free_data(&data);
    close_bench(&large);
    close_bench(&small);
}

static void fusing_keeps_the_step(void **state)
{
    struct bench fused, plain;
    struct data data;
    (void)state;
    open_bench(&fused, CNN, 16, 0, 1);
    open_bench(&plain, CNN_PLAIN, 16, 0, 1);
    assert_true(fused.train.node_count < plain.train.node_count);
    assert_true(fused.program->tensor_arena_bytes < plain.program->tensor_arena_bytes);
    for (int n = 0; n < fused.train.node_count; n++)
        assert_int_equal(fused.train.node[n]->id, n);
    for (int t = 0; t < fused.train.tensor_count; t++)
        assert_int_equal(fused.train.tensor[t]->id, t);
    make_data(&data, CNN, 16);
    struct batch batch = batch_of(&data, CNN, 16);
    check_alike(&fused, &plain, &batch);
    free_data(&data);
    close_bench(&fused);
    close_bench(&plain);
}

static void short_batches(void **state)
{
    (void)state;
    check_short(MLP, 32, 7);
    check_short(MLP, 6000, 1);
    check_short(MLP, 6000, 3333);
    check_short(CNN, 16, 5);
}

static void loss_falls(void **state)
{
    struct bench bench;
    struct data data;
    (void)state;
    open_bench(&bench, MLP, 64, 0, 2);
    make_data(&data, MLP, 64);
    struct batch batch = batch_of(&data, MLP, 64);
    assert_int_equal(machine_run(&bench.machine, PHASE_TRAIN, &batch, NULL), PLIM_OK);
    float first = loss_of(&bench), before = first;
    for (int round = 0; round < 5; round++) {
        for (int step = 0; step < 20; step++)
            assert_int_equal(machine_run(&bench.machine, PHASE_TRAIN, &batch, NULL), PLIM_OK);
        assert_true(loss_of(&bench) < before);
        before = loss_of(&bench);
    }
    assert_true(before < first * 0.5f);
    /* The evaluation sees the trained weights, and gives the loss of the next step. */
    assert_int_equal(machine_run(&bench.machine, PHASE_EVALUATE, &batch, NULL), PLIM_OK);
    float evaluated = *(const float *)machine_data(&bench.machine, PHASE_EVALUATE, bench.made_evaluate.loss);
    assert_int_equal(machine_run(&bench.machine, PHASE_TRAIN, &batch, NULL), PLIM_OK);
    assert_float_equal(evaluated, loss_of(&bench), 1e-6);
    const int64_t *iteration = NULL;
    for (int p = 0; p < bench.program->persistent_count; p++)
        if (strcmp(bench.program->persistent[p]->name, "optimizer/iteration") == 0)
            iteration = machine_data(&bench.machine, PHASE_TRAIN, bench.program->persistent[p]);
    assert_int_equal(*iteration, 102);
    free_data(&data);
    close_bench(&bench);
}

static void a_step_allocates_nothing(void **state)
{
    struct bench bench;
    struct data data;
    (void)state;
    open_bench(&bench, CNN, 16, 5, 2);
    make_data(&data, CNN, 16);
    struct batch batch = batch_of(&data, CNN, 16);
    uint64_t takes = budget_usage(bench.budget).takes;
    assert_int_equal(machine_run(&bench.machine, PHASE_TRAIN, &batch, NULL), PLIM_OK);
    assert_int_equal(machine_run(&bench.machine, PHASE_EVALUATE, &batch, NULL), PLIM_OK);
    assert_int_equal(budget_usage(bench.budget).takes, takes);
    free_data(&data);
    close_bench(&bench);
}

/* The ledger shows the tensor arena under the tags that the plan predicts. */
static void ledger_shows_the_plan(void **state)
{
    struct bench bench;
    uint64_t by_tag[TAG_COUNT];
    const char *peak_at;
    (void)state;
    open_bench(&bench, CNN, 16, 0, 2);
    struct budget_usage usage = budget_usage(bench.budget);
    program_tensor_arena_tags(by_tag, &peak_at, bench.program);
    assert_int_equal(usage.now_by_tag[TAG_WEIGHTS], by_tag[TAG_WEIGHTS]);
    assert_int_equal(usage.now_by_tag[TAG_OPTIMIZER], by_tag[TAG_OPTIMIZER]);
    assert_int_equal(usage.now_by_tag[TAG_ACTIVATIONS], by_tag[TAG_ACTIVATIONS]);
    assert_int_equal(usage.now_by_tag[TAG_SCRATCH], by_tag[TAG_SCRATCH]);
    uint64_t bytes;
    assert_non_null(machine_buffer(&bytes, &bench.machine, PHASE_SAVE));
    assert_true(bytes >= 100);
    assert_null(machine_buffer(&bytes, &bench.machine, PHASE_TRAIN));
    assert_int_equal(bytes, 0);
    close_bench(&bench);
}

/* No room for the tensor arena, or for the team: an error, and nothing is held. */
static void opening_fails_cleanly(void **state)
{
    struct bench bench;
    struct machine machine = {0};
    plim_error error = {0};
    (void)state;
    open_bench(&bench, MLP, 32, 0, 1);
    machine_close(&bench.machine);
    uint64_t now = budget_usage(bench.budget).now;
    bench.program->threads = 2;
    for (uint64_t room = 0; room < bench.program->tensor_arena_bytes + THREAD_STACK_BYTES;
         room += bench.program->tensor_arena_bytes / 3) {
        assert_int_equal(budget_limit(bench.budget, now + room, NULL), PLIM_OK);
        assert_int_equal(machine_open(&machine, bench.program, bench.budget, NULL, &error), PLIM_OVER_BUDGET);
        assert_int_equal(budget_usage(bench.budget).now, now);
    }
    bench.program->threads = 1;
    assert_int_equal(budget_limit(bench.budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_shared),
        cmocka_unit_test(elements_of_one_slice_are_shared),
        cmocka_unit_test(a_backend_runs_phases_itself),
        cmocka_unit_test(same_bits_on_any_threads),
        cmocka_unit_test(same_bits_over_any_garbage),
        cmocka_unit_test(short_batches),
        cmocka_unit_test(loss_falls),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(ledger_shows_the_plan),
        cmocka_unit_test(opening_fails_cleanly),
        cmocka_unit_test(fusing_keeps_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
