/* test_transfers.c - values that lie in a scratch file between two uses: the same bits, fewer bytes, a plan that is proved,
   and disks that fail. */
#include <errno.h>

#include "base/fault.h"
#include "base/files/transfer_file.h"
#include "base/numbers/count.h"
#include "training_run.h"
#include "transform/in_place.h"

#define BATCH  1024
#define WIDTH  96
#define LAYERS 6

static const int64_t counts[] = {BATCH, BATCH - 100, BATCH};

/* x -> gelu(dense) ... -> loss; each layer a chain of its own, so that values lie in the arena. */
static void build(struct run *run)
{
    struct graph *graph = &run->graph;
    struct made *made = &run->made;
    char name[32];
    graph_init(graph, run->budget, BATCH);
    made->plain = true;
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_2(BATCH, WIDTH));
    struct tensor *label = graph_input(graph, "label", 1, TYPE_F32, rank_1(BATCH));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "dense_%d", i);
        x = unary(graph, &op_gelu, made_dense(made, graph, name, x, WIDTH));
    }
    x = made_dense(made, graph, "last", x, 1);
    made_finish(made, graph, binary(graph, &op_sigmoid_crossentropy, x, label), true);
    for (int n = 0; n < graph->node_count; n++)
        graph->node[n]->begins_chain = graph->node[n]->op == &op_matmul;
}

static bool is_wide(const struct tensor *tensor)
{
    const struct node *maker = tensor->producer;
    return maker && !maker->backward && tensor->kind == KIND_VALUE && tensor_bytes(tensor) >= BATCH * WIDTH * 4;
}

/* All large values of the forward pass. */
static void spill(struct run *run, struct spilled *spilled, bool waits)
{
    run->spilled = spilled;
    for (int t = 0; t < run->graph.tensor_count; t++)
        if (is_wide(run->graph.tensor[t]))
            spilled[run->spilled_count++] = (struct spilled){t, waits};
}

static void open_spilled(struct run *run, struct spilled *spilled, int threads)
{
    begin_run(run);
    build(run);
    run->last_batch = BATCH - 100;
    if (spilled)
        spill(run, spilled, true);
    open_run(run, threads);
}

/* ---- bits and bytes ---------------------------------------------------- */

static void bits_are_the_same(void **state)
{
    struct spilled spilled[4 * LAYERS];
    struct run plain;
    (void)state;
    open_spilled(&plain, NULL, 1);
    assert_int_equal(train_of(&plain)->transfer_count, 0);
    uint8_t *bits = train_run(&plain, counts, COUNT(counts));
    for (int threads = 1; threads <= 3; threads++) {
        struct run run;
        open_spilled(&run, spilled, threads);
        assert_true(train_of(&run)->transfer_count >= LAYERS - 1);
        assert_true(train_of(&run)->max_live < train_of(&plain)->max_live);
        uint8_t *other = train_run(&run, counts, COUNT(counts));
        assert_memory_equal(bits, other, plain.program->persistent_bytes);
        assert_true(transfer_file_written(run.machine.scratch) == COUNT(counts) * train_of(&run)->scratch_file_bytes);
        test_free(other);
        close_run(&run);
    }
    test_free(bits);
    close_run(&plain);
}

/* Without waits a value stays where the nominal disk is too slow for its gap; what is left has the order of the steps. */
static void nothing_moves_too_late(void **state)
{
    struct spilled spilled[4 * LAYERS];
    struct run run;
    (void)state;
    begin_run(&run);
    build(&run);
    spill(&run, spilled, false);
    open_run(&run, 1);
    const struct phase *phase = train_of(&run);
    int at[4 * LAYERS] = {0};
    for (int i = 0; i < phase->instruction_count; i++)
        if (phase->instruction[i].kind != INSTRUCTION_COMPUTE)
            at[phase->instruction[i].transfer]++;
    for (int k = 0; k < phase->transfer_count; k++)
        assert_int_equal(at[k], 4);
    close_run(&run);
}

/* ---- spoilt plans ------------------------------------------------------ */

static void swap(struct instruction *a, struct instruction *b)
{
    struct instruction first = *a;
    uint64_t live = a->live_bytes;
    *a = *b;
    a->live_bytes = live;
    live = b->live_bytes;
    *b = first;
    b->live_bytes = live;
}

/* The value is overwritten while it is on its way out. */
static void forget_to_wait(struct run *run)
{
    struct instruction *wait = instruction_of(run, INSTRUCTION_WAIT, 0);
    assert_int_equal(wait[-1].kind, INSTRUCTION_OUT);
    swap(wait, wait + 1);
    swap(wait + 1, wait + 2);
}

static void read_before_it_is_back(struct run *run)
{
    struct instruction *wait = instruction_of(run, INSTRUCTION_IN, 0), *next;
    int transfer = wait->transfer;
    while (wait->kind != INSTRUCTION_WAIT || wait->transfer != transfer)
        wait++;
    for (next = wait; next->kind != INSTRUCTION_COMPUTE; next++)
        continue;
    swap(wait, next);
}

static void never_come_back(struct run *run)
{
    instruction_of(run, INSTRUCTION_IN, 0)->kind = INSTRUCTION_WAIT;
}

static void go_out_twice(struct run *run)
{
    instruction_of(run, INSTRUCTION_IN, 0)->kind = INSTRUCTION_OUT;
}

static void share_the_file(struct run *run)
{
    train_of(run)->transfer[1].file_offset = train_of(run)->transfer[0].file_offset;
}

static void move_too_little(struct run *run)
{
    train_of(run)->transfer[0].bytes -= TRANSFER_ALIGNMENT;
}

static void misalign(struct run *run)
{
    train_of(run)->transfer[0].from += 64;
}

static void pass_the_end(struct run *run)
{
    train_of(run)->scratch_file_bytes -= TRANSFER_ALIGNMENT;
}

static void take_another_value(struct run *run)
{
    train_of(run)->transfer[0].tensor = train_of(run)->transfer[1].tensor;
}

static void come_back_elsewhere(struct run *run)
{
    train_of(run)->transfer[0].to = run->program->workers_offset;
}

static void move_nothing_known(struct run *run)
{
    instruction_of(run, INSTRUCTION_OUT, 0)->transfer = train_of(run)->transfer_count;
}

/* The partial sums of a task that runs while the first value is on its way out, or in, go where that value is. */
static void add_over(struct run *run, enum instruction_kind kind)
{
    struct instruction *begin = instruction_of(run, kind, 0), *wait, *compute;
    const struct transfer *transfer = &train_of(run)->transfer[begin->transfer];
    uint64_t to = kind == INSTRUCTION_OUT ? transfer->from : transfer->to;
    for (wait = begin; wait->kind != INSTRUCTION_WAIT || wait->transfer != begin->transfer; wait++)
        continue;
    for (compute = wait; compute->fold_count == 0; compute++)
        continue;
    for (int t = 0; t < compute->task_count; t++)
        for (int k = 0; k < compute->task[t].node->output_count; k++)
            if (compute->task[t].output[k].part_bytes && compute->task[t].output[k].offset == compute->fold[0].from)
                compute->task[t].output[k].offset = to;
    compute->fold[0].from = to;
    for (; wait < compute; wait++)
        swap(wait, wait + 1);
}

static void add_over_what_goes_out(struct run *run)
{
    add_over(run, INSTRUCTION_OUT);
}

static void add_over_what_comes_in(struct run *run)
{
    add_over(run, INSTRUCTION_IN);
}

static void spoilt_plans_are_found(void **state)
{
    static void (*const spoil[])(struct run *) = {
        forget_to_wait,        read_before_it_is_back, never_come_back,    go_out_twice,
        share_the_file,        move_too_little,        misalign,           pass_the_end,
        take_another_value,    come_back_elsewhere,    move_nothing_known, add_over_what_goes_out,
        add_over_what_comes_in};
    struct spilled spilled[4 * LAYERS];
    (void)state;
    for (size_t k = 0; k < COUNT(spoil); k++) {
        struct run run;
        plim_error error = {0};
        open_spilled(&run, spilled, 1);
        assert_int_equal(plan_verify(run.program, train_of(&run), &error), PLIM_OK);
        spoil[k](&run);
        plim_status status = plan_verify(run.program, train_of(&run), &error);
        if (status != PLIM_INTERNAL)
            fail_msg("spoilt plan %zu passes", k);
        close_run(&run);
    }
}

/* ---- disks that fail --------------------------------------------------- */

/* One step with the n-th file call failing; whether it came to that. A step that ends well has the same bits. */
static bool step_with_fault(unsigned sites, int64_t nth, int error_number, const uint8_t *bits)
{
    struct spilled spilled[4 * LAYERS];
    struct run run;
    plim_error error = {0};
    open_spilled(&run, spilled, 1);
    fault_arm(sites, nth, false, error_number);
    plim_status status;
    uint8_t *other = try_run(&status, &run, counts, 1, &error);
    bool reached = fault_disarm();
    if (status == PLIM_OK)
        assert_memory_equal(bits, other, run.program->persistent_bytes);
    else
        assert_true(status == PLIM_IO && error.message[0] && reached);
    test_free(other);
    close_run(&run);
    return reached;
}

static void a_failing_disk_ends_the_step(void **state)
{
    static const struct {
        unsigned sites;
        int error_number;
    } faults[] = {{FAULT_WRITE, EIO}, {FAULT_WRITE, 0}, {FAULT_READ, EIO}, {FAULT_READ, 0}};
    struct run plain;
    (void)state;
    open_spilled(&plain, NULL, 1);
    uint8_t *bits = train_run(&plain, counts, 1);
    for (size_t k = 0; k < COUNT(faults); k++) {
        int64_t calls = 0;
        while (step_with_fault(faults[k].sites, calls + 1, faults[k].error_number, bits))
            calls++;
        assert_true(calls >= LAYERS - 1);
    }
    test_free(bits);
    close_run(&plain);
}

static void a_full_disk_is_known_before(void **state)
{
    struct spilled spilled[4 * LAYERS];
    struct run run;
    struct machine machine;
    plim_error error = {0};
    (void)state;
    open_spilled(&run, spilled, 1);
    struct scratch_disk small = {.folder = "/var/tmp", .limit_bytes = run.program->scratch_file_bytes - 1};
    uint64_t before = budget_usage(run.budget).now;
    assert_int_equal(machine_open(&machine, run.program, run.budget, &small, &error), PLIM_OVER_DISK);
    assert_non_null(strstr(error.message, "bytes of disk"));
    assert_int_equal(machine_open(&machine, run.program, run.budget, NULL, &error), PLIM_OVER_DISK);
    assert_int_equal(budget_usage(run.budget).now, before);
    assert_int_equal(small.used_bytes, 0);
    small = (struct scratch_disk){.folder = "/var/tmp/not/there", .limit_bytes = UINT64_MAX};
    assert_int_equal(machine_open(&machine, run.program, run.budget, &small, &error), PLIM_IO);
    assert_int_equal(budget_usage(run.budget).now, before);
    assert_int_equal(small.used_bytes, 0);
    close_run(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same),           cmocka_unit_test(nothing_moves_too_late),
        cmocka_unit_test(spoilt_plans_are_found),      cmocka_unit_test(a_failing_disk_ends_the_step),
        cmocka_unit_test(a_full_disk_is_known_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
