/* test_plan.c - plans of an MLP and a CNN: as printed, as verified, and what
   verification says of plans that were spoilt on purpose.

   The printed plans stand in tests/golden/plan_*.txt (golden_text.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/numbers/count.h"
#include "golden_text.h"
#include "plan/plan.h"
#include "plan_models.h"

struct bench {
    struct budget *budget;
    struct backend *backend;
    struct graph train, evaluate;
    struct program *program;
};

enum which { MLP, MLP_LARGE, CNN };

static plim_status make(struct bench *bench, enum which which, int threads)
{
    struct made train, evaluate;
    plim_error error = {0};
    assert_int_equal(budget_make(&bench->budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    assert_int_equal(reference_backend.open(&bench->backend, bench->budget, &error), PLIM_OK);
    int64_t batch = which == CNN ? 16 : which == MLP ? 32 : 10000;
    if (which == CNN) {
        evaluate = cnn_make(&bench->evaluate, bench->budget, 8, false);
        train = cnn_make(&bench->train, bench->budget, batch, true);
    } else {
        evaluate = mlp_make(&bench->evaluate, bench->budget, batch, 100, 64, false);
        train = mlp_make(&bench->train, bench->budget, batch, 100, 64, true);
    }
    (void)train, (void)evaluate;
    struct program_input input = {
        .budget = bench->budget,
        .backend = bench->backend,
        .threads = threads,
        .train = &bench->train,
        .evaluate = &bench->evaluate,
        .last_batch_train = 7,
        .save_buffer_bytes = 5000,
    };
    plim_status status = program_make(&bench->program, &input, &error);
    if (status)
        print_message("%s\n", error.message);
    return status;
}

/* Everything that was taken is given back. */
static void release(struct bench *bench)
{
    program_free(bench->program);
    graph_release(&bench->train);
    graph_release(&bench->evaluate);
    bench->backend->type->close(bench->backend);
    struct budget *fresh;
    assert_int_equal(budget_make(&fresh, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(budget_usage(bench->budget).now, budget_usage(fresh).now);
    budget_free(fresh);
    budget_free(bench->budget);
}

/* ---- what plans look like ---------------------------------------------- */

static void golden(enum which which, const char *name)
{
    struct bench bench = {0};
    struct text text;
    assert_int_equal(make(&bench, which, 2), PLIM_OK);
    text_init(&text, bench.budget, TAG_PLANNER);
    program_print(&text, bench.program);
    assert_false(text.failed);
    compare_golden(name, text.data);
    text_release(&text);
    release(&bench);
}

static void golden_mlp(void **state)
{
    (void)state;
    golden(MLP, "plan_mlp.txt");
}

static void golden_mlp_large(void **state)
{
    (void)state;
    golden(MLP_LARGE, "plan_mlp_10000.txt");
}

static void golden_cnn(void **state)
{
    (void)state;
    golden(CNN, "plan_cnn.txt");
}

/* Forward and backward of the MLP are one chain; no value between layers has a place. */
static void mlp_is_one_chain(void **state)
{
    struct bench bench = {0};
    (void)state;
    assert_int_equal(make(&bench, MLP, 2), PLIM_OK);
    const struct phase *phase = &bench.program->phase[PHASE_TRAIN];
    assert_int_equal(phase->instruction[2].task_count, 12);
    assert_int_equal(phase->instruction[2].chain.units, 1);
    for (int k = 0; k < phase->instance_count; k++)
        assert_true(phase->instance[k].tag != TAG_ACTIVATIONS || strcmp(phase->instance[k].name, "loss") == 0 ||
                    strcmp(phase->instance[k].name, "optimizer/step_control") == 0);
    assert_int_equal(bench.program->phase[PHASE_EVALUATE].instruction_count, 1);
    release(&bench);
}

/* The gradient of the heavy layer is made and used up row by row. */
static void heavy_gradient_has_no_place(void **state)
{
    struct bench bench = {0};
    (void)state;
    assert_int_equal(make(&bench, CNN, 1), PLIM_OK);
    const struct phase *phase = &bench.program->phase[PHASE_TRAIN];
    for (int k = 0; k < phase->instance_count; k++)
        assert_string_not_equal(phase->instance[k].name, "dense/kernel gradient");
    bool together = false;
    for (int i = 0; i < phase->instruction_count; i++) {
        const struct instruction *instruction = &phase->instruction[i];
        together |= instruction->task_count == 2 && instruction->task[0].node->op == &op_matmul_weight_gradient &&
                    instruction->task[1].node->op == &op_adam;
    }
    assert_true(together);
    assert_int_equal(phase->top, phase->max_live);
    release(&bench);
}

/* Chains, slices and offsets of phases do not hang on the number of threads. */
static void threads_change_workers_only(void **state)
{
    struct bench one = {0}, four = {0};
    (void)state;
    assert_int_equal(make(&one, CNN, 1), PLIM_OK);
    assert_int_equal(make(&four, CNN, 4), PLIM_OK);
    const struct phase *a = &one.program->phase[PHASE_TRAIN], *b = &four.program->phase[PHASE_TRAIN];
    assert_int_equal(a->instruction_count, b->instruction_count);
    for (int i = 0; i < a->instruction_count; i++)
        assert_memory_equal(&a->instruction[i].chain, &b->instruction[i].chain, sizeof(struct chain));
    for (int k = 0; k < a->instance_count; k++)
        assert_int_equal(a->instance[k].offset, b->instance[k].offset);
    assert_int_equal(four.program->tensor_arena_bytes - one.program->tensor_arena_bytes, 3 * one.program->worker_bytes);
    release(&one);
    release(&four);
}

static void prediction_adds_up(void **state)
{
    struct bench bench = {0};
    struct prediction prediction;
    uint64_t outside[TAG_COUNT] = {[TAG_PROCESS] = 1000, [TAG_WEIGHTS] = 1, [TAG_BATCHES] = 77}, sum = 0;
    (void)state;
    assert_int_equal(make(&bench, CNN, 2), PLIM_OK);
    program_predict(&prediction, bench.program, outside);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        sum += prediction.by_tag[tag];
    assert_int_equal(sum, prediction.peak);
    assert_int_equal(prediction.peak, bench.program->tensor_arena_bytes + 1078);
    assert_string_equal(prediction.peak_at, "dense_1 backward");
    assert_true(program_kernels(bench.program, "reference") > 20);
    assert_int_equal(program_kernels(bench.program, "onednn"), 0);
    assert_true(prediction.by_tag[TAG_WEIGHTS] > 300000 && prediction.by_tag[TAG_OPTIMIZER] > 600000);
    outside[TAG_BATCHES] = UINT64_MAX - 4095; /* more than can be counted: not a small number */
    program_predict(&prediction, bench.program, outside);
    assert_true(prediction.peak == UINT64_MAX);
    outside[TAG_WEIGHTS] = UINT64_MAX;
    program_predict(&prediction, bench.program, outside);
    assert_true(prediction.by_tag[TAG_WEIGHTS] == UINT64_MAX && prediction.peak == UINT64_MAX);
    release(&bench);
}

/* One name, two shapes: it cannot be the same weight. */
static void unlike_weights_are_refused(void **state)
{
    struct bench bench = {0};
    plim_error error = {0};
    (void)state;
    assert_int_equal(make(&bench, MLP, 1), PLIM_OK);
    struct graph other;
    mlp_make(&other, bench.budget, 32, 100, 63, false);
    struct program_input input = {
        .budget = bench.budget, .backend = bench.backend, .threads = 1, .train = &bench.train, .evaluate = &other};
    struct program *program = NULL;
    assert_int_equal(program_make(&program, &input, &error), PLIM_BAD_MODEL);
    assert_non_null(strstr(error.message, "another shape"));
    assert_null(program);
    graph_release(&other);
    release(&bench);
}

/* Fails the n-th allocation, n = 1, 2, ... until a plan needs no more. */
static void lack_of_memory_is_an_error(void **state)
{
    struct bench bench = {0};
    (void)state;
    assert_int_equal(make(&bench, CNN, 1), PLIM_OK);
    struct program_input input = {.budget = bench.budget,
                                  .backend = bench.backend,
                                  .threads = 1,
                                  .train = &bench.train,
                                  .evaluate = &bench.evaluate};
    for (uint64_t room = 0;; room += 3000) {
        struct program *program = NULL;
        plim_error error = {0};
        assert_int_equal(budget_limit(bench.budget, budget_usage(bench.budget).now + room, NULL), PLIM_OK);
        plim_status status = program_make(&program, &input, &error);
        assert_int_equal(budget_limit(bench.budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
        program_free(program);
        if (status == PLIM_OK)
            break;
        assert_true(status == PLIM_OVER_BUDGET || status == PLIM_NO_MEMORY);
        assert_non_null(strstr(error.message, "planner"));
    }
    release(&bench);
}

/* ---- spoilt plans ------------------------------------------------------ */

static struct phase *train_of(struct bench *bench)
{
    return &bench->program->phase[PHASE_TRAIN];
}

static struct instance *instance_named(struct bench *bench, const char *name)
{
    for (int k = 0; k < train_of(bench)->instance_count; k++)
        if (strcmp(train_of(bench)->instance[k].name, name) == 0)
            return &train_of(bench)->instance[k];
    fail_msg("no instance %s", name);
    return NULL;
}

static struct task *task_of(struct bench *bench, const struct op *op, int which, int *instruction)
{
    for (int i = 0; i < train_of(bench)->instruction_count; i++)
        for (int t = 0; t < train_of(bench)->instruction[i].task_count; t++)
            if (train_of(bench)->instruction[i].task[t].node->op == op && which-- == 0) {
                *instruction = i;
                return &train_of(bench)->instruction[i].task[t];
            }
    fail_msg("no task %s", op->name);
    return NULL;
}

static void share_bytes(struct bench *bench)
{
    instance_named(bench, "max_pooling2d/max_pool.1")->offset = instance_named(bench, "max_pooling2d/max_pool")->offset;
}

static void misalign(struct bench *bench)
{
    instance_named(bench, "loss")->offset += 4;
}

static void leave_the_arena(struct bench *bench)
{
    instance_named(bench, "loss")->offset = bench->program->workers_offset;
}

/* Another life for an instance, with the figures that go with it. */
static void change_life(struct bench *bench, const char *name, int first, int last)
{
    struct instance *instance = instance_named(bench, name);
    for (int i = 0; i < train_of(bench)->instruction_count; i++)
        if (instance->first <= i && i <= instance->last && (i < first || i > last))
            train_of(bench)->instruction[i].live_bytes -= instance->bytes;
    instance->first = first;
    instance->last = last;
}

static void die_early(struct bench *bench)
{
    change_life(bench, "max_pooling2d/max_pool.1", 2, 4);
}

static void be_born_late(struct bench *bench)
{
    change_life(bench, "dense/relu", 4, 4);
}

static void read_elsewhere(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_relu_gradient, 1, &at)->input[1].offset += 64;
}

static void read_another_row_size(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_max_pool, 0, &at)->output[1].row_bytes *= 2;
}

static void read_another_column(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_conv2d, 0, &at)->input[0].offset = 1;
}

static void lose_a_fold(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_conv2d_weight_gradient, 0, &at);
    train_of(bench)->instruction[at].fold_count--;
}

static void fold_too_little(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_conv2d_weight_gradient, 0, &at);
    train_of(bench)->instruction[at].fold[0].count--;
}

static void add_without_partials(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_conv2d_weight_gradient, 0, &at)->output[0].part_bytes = 0;
}

static void swap_instructions(struct bench *bench)
{
    struct instruction *instruction = train_of(bench)->instruction, first = instruction[2];
    instruction[2] = instruction[3];
    instruction[3] = first;
}

static void swap_tasks(struct bench *bench)
{
    struct task *task = train_of(bench)->instruction[2].task, first = task[0];
    task[0] = task[1];
    task[1] = first;
}

static void forget_a_node(struct bench *bench)
{
    train_of(bench)->instruction_count--;
}

static void run_twice(struct bench *bench)
{
    train_of(bench)->instruction[3].task[0].node = train_of(bench)->instruction[2].task[0].node;
}

/* The update of the heavy kernel before the gradient that still reads it. */
static void update_early(struct bench *bench)
{
    int update = 0, reader;
    struct instruction *instruction = train_of(bench)->instruction, moved;
    task_of(bench, &op_matmul_weight_gradient, 1, &update);
    reader = update - 1;
    assert_true(instruction[reader].task[0].node->op == &op_matmul);
    moved = instruction[reader];
    instruction[reader] = instruction[update];
    instruction[update] = moved;
}

static void overlap_workers(struct bench *bench)
{
    int at = 0;
    struct task *task = task_of(bench, &op_conv2d_input_gradient, 0, &at);
    task->output[0].offset = task->input[0].offset;
}

static void outgrow_the_worker(struct bench *bench)
{
    uint64_t less = bench->program->worker_bytes / 4 * 3;
    bench->program->worker_bytes -= less;
    for (int i = 0; i < train_of(bench)->instruction_count; i++)
        train_of(bench)->instruction[i].live_bytes -= less * (uint64_t)bench->program->threads;
}

static void write_over_weights(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_max_pool, 0, &at)->output[1].offset = 0;
}

static void divide_unevenly(struct bench *bench)
{
    train_of(bench)->instruction[9].chain.units = 3;
}

/* Units of half a part: two workers would add to one partial sum. */
static void split_parts(struct bench *bench)
{
    int at = 0;
    int parts = task_of(bench, &op_conv2d_weight_gradient, 0, &at)->sums.parts;
    train_of(bench)->instruction[at].chain.units = 2 * parts;
    train_of(bench)->instruction[at].chain.slices = 2 * parts;
}

/* Another order of sums than the node's own. */
static void add_in_another_order(struct bench *bench)
{
    int at = 0;
    task_of(bench, &op_conv2d_weight_gradient, 1, &at)->sums.leaves *= 2;
}

static void lie_about_bytes(struct bench *bench)
{
    train_of(bench)->instruction[3].live_bytes -= 64;
}

static void lie_about_tags(struct bench *bench)
{
    train_of(bench)->by_tag[TAG_GRADIENTS]++;
}

/* One chain for the heavy gradient and the reader of its weight: units would race. */
static void race(struct bench *bench)
{
    int update = 0;
    struct task *dw = task_of(bench, &op_matmul_weight_gradient, 1, &update);
    struct instruction *instruction = &train_of(bench)->instruction[update - 1];
    static struct task joined[3];
    joined[0] = instruction->task[0];
    joined[1] = dw[0];
    joined[2] = dw[1];
    instruction->chain = train_of(bench)->instruction[update].chain;
    instruction->chain.grain *= 2; /* the matmul's */
    instruction->task = joined;
    instruction->task_count = 3;
    train_of(bench)->instruction[update].task_count = 0;
}

static void every_corruption_is_seen(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(struct bench *bench);
        const char *says;
    } cases[] = {
        {"share bytes", share_bytes, "share bytes"},
        {"misalign", misalign, "aligned"},
        {"leave the arena", leave_the_arena, "outside"},
        {"die early", die_early, "nobody owns"},
        {"be born late", be_born_late, "nobody owns"},
        {"read elsewhere", read_elsewhere, "does not find"},
        {"another row size", read_another_row_size, "fits its cut"},
        {"another column", read_another_column, "does not find"},
        {"lose a fold", lose_a_fold, "no fold"},
        {"fold too little", fold_too_little, "no fold"},
        {"no partials", add_without_partials, "parts add to one"},
        {"swap instructions", swap_instructions, "at instruction 2"},
        {"swap tasks", swap_tasks, "does not find"},
        {"forget a node", forget_a_node, "lives from"},
        {"run twice", run_twice, "runs twice"},
        {"update early", update_early, "sees version"},
        {"overlap in a worker", overlap_workers, "does not find"},
        {"outgrow the worker", outgrow_the_worker, "passes the end"},
        {"write over weights", write_over_weights, "writes over"},
        {"divide unevenly", divide_unevenly, "divide"},
        {"split parts", split_parts, "does not fit its chain"},
        {"another order", add_in_another_order, "does not fit its chain"},
        {"lie about bytes", lie_about_bytes, "the plan says"},
        {"lie about tags", lie_about_tags, "tags"},
        {"race", race, "while units run"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bench bench = {0};
        plim_error error = {0};
        assert_int_equal(make(&bench, CNN, 2), PLIM_OK);
        cases[i].spoil(&bench);
        plim_status status = plan_verify(bench.program, train_of(&bench), &error);
        if (status != PLIM_INTERNAL || !strstr(error.message, cases[i].says))
            fail_msg("%s: %s, %s", cases[i].name, plim_status_name(status), error.message);
        release(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_mlp),
        cmocka_unit_test(golden_mlp_large),
        cmocka_unit_test(golden_cnn),
        cmocka_unit_test(mlp_is_one_chain),
        cmocka_unit_test(heavy_gradient_has_no_place),
        cmocka_unit_test(threads_change_workers_only),
        cmocka_unit_test(prediction_adds_up),
        cmocka_unit_test(unlike_weights_are_refused),
        cmocka_unit_test(lack_of_memory_is_an_error),
        cmocka_unit_test(every_corruption_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
