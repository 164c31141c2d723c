/* test_pages.c - weights and states that lie on the disk but for their uses: the same bits, fewer bytes, a plan that is
   proved, and disks that fail. */
#include <errno.h>

#include "base/fault.h"
#include "base/files/transfer_file.h"
#include "base/numbers/count.h"
#include "training_run.h"

#define BATCH 32
#define WIDTH 1200 /* states of a layer have 11 MiB: they pass by in pieces */
#define MOST  64

static const int64_t counts[] = {BATCH, BATCH - 9, BATCH};

enum { WEIGHTS = 1, STATES = 2 };

static void build(struct run *run)
{
    struct graph *graph = &run->graph;
    struct made *made = &run->made;
    char name[32];
    graph_init(graph, run->budget, BATCH);
    made->plain = true;
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_2(BATCH, WIDTH));
    struct tensor *label = graph_input(graph, "label", 1, TYPE_F32, rank_1(BATCH));
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "dense_%d", i);
        x = unary(graph, &op_gelu, made_dense(made, graph, name, x, WIDTH));
    }
    x = made_dense(made, graph, "last", x, 1);
    made_finish(made, graph, binary(graph, &op_sigmoid_crossentropy, x, label), true);
}

static void open_paged(struct run *run, struct spilled *paged, int kinds, bool waits, int threads)
{
    begin_run(run);
    build(run);
    run->last_batch = BATCH - 9;
    run->spilled = paged;
    for (int t = 0; t < run->graph.tensor_count; t++) {
        const struct tensor *tensor = run->graph.tensor[t];
        bool wanted =
            (tensor->kind == KIND_WEIGHT && (kinds & WEIGHTS)) || (tensor->kind == KIND_STATE && (kinds & STATES));
        if (wanted && tensor_bytes(tensor) >= 4096)
            paged[run->spilled_count++] = (struct spilled){t, waits};
    }
    open_run(run, threads);
}

/* ---- bits and bytes ---------------------------------------------------- */

static void compare(const uint8_t *bits, uint64_t arena, int kinds, bool waits, int threads)
{
    struct spilled paged[MOST];
    struct run run;
    open_paged(&run, paged, kinds, waits, threads);
    assert_int_equal(run.program->paged_count, run.spilled_count);
    assert_true(train_of(&run)->paged_bytes > 0);
    if (waits || kinds == STATES)
        assert_true(run.program->tensor_arena_bytes < arena);
    uint8_t *other = train_run(&run, counts, COUNT(counts));
    assert_memory_equal(bits, other, states_size(&run));
    test_free(other);
    close_run(&run);
}

static void bits_are_the_same(void **state)
{
    struct run plain;
    (void)state;
    open_paged(&plain, NULL, 0, false, 1);
    assert_int_equal(plain.program->transfer_count, 0);
    uint8_t *bits = train_run(&plain, counts, COUNT(counts));
    for (int kinds = WEIGHTS; kinds <= (WEIGHTS | STATES); kinds++)
        for (int threads = 1; threads <= 3; threads++)
            compare(bits, plain.program->tensor_arena_bytes, kinds, threads != 2, threads);
    test_free(bits);
    close_run(&plain);
}

/* A step moves what the plan says, and the states of a layer are never there as a whole. */
static void a_step_moves_what_is_planned(void **state)
{
    struct spilled paged[MOST];
    struct run run;
    int in_row = 0;
    (void)state;
    open_paged(&run, paged, STATES, true, 2);
    for (int i = 0; i < run.program->persistent_count; i++)
        in_row += run.program->home[i].pieces > 1;
    assert_true(in_row >= 6); /* momentum and velocity of three kernels, and what shares their chains */
    uint64_t states = 6 * WIDTH * WIDTH * sizeof(float);
    assert_true(train_of(&run)->paged_bytes >= 2 * states);
    set_weights(&run);
    uint64_t before = transfer_file_written(run.machine.scratch), read = transfer_file_read(run.machine.scratch);
    test_free(train_run(&run, counts, 1));            /* writes first values once more, and reads all in the end */
    uint64_t moved = train_of(&run)->paged_bytes / 2; /* each piece in, and out */
    assert_true(transfer_file_written(run.machine.scratch) - before == 2 * moved);
    assert_true(transfer_file_read(run.machine.scratch) - read == 2 * moved);
    uint64_t most = 0;
    for (int k = 0; k < train_of(&run)->instance_count; k++)
        if (train_of(&run)->instance[k].tag == TAG_OPTIMIZER && train_of(&run)->instance[k].bytes > most)
            most = train_of(&run)->instance[k].bytes;
    assert_true(most <= ((uint64_t)8 << 20) / 2 + 2 * TRANSFER_ALIGNMENT);
    close_run(&run);
}

/* ---- spoilt plans ------------------------------------------------------ */

/* The second instruction of a chain that is several. */
static struct instruction *second_piece(const struct run *run)
{
    for (int i = 0; i < train_of(run)->instruction_count; i++)
        if (train_of(run)->instruction[i].first_unit > 0)
            return &train_of(run)->instruction[i];
    fail_msg("no chain is several instructions");
    return NULL;
}

static struct home *home_in_row(const struct run *run)
{
    for (int i = 0; i < run->program->persistent_count; i++)
        if (run->program->home[i].pieces > 1)
            return &run->program->home[i];
    fail_msg("nothing passes in pieces");
    return NULL;
}

static struct place *page_of(struct instruction *instruction)
{
    for (int t = 0; t < instruction->task_count; t++)
        for (int i = 0; i < instruction->task[t].node->input_count; i++)
            if (instruction->task[t].input[i].space == SPACE_PAGE)
                return &instruction->task[t].input[i];
    fail_msg("no page");
    return NULL;
}

static void leave_units_out(struct run *run)
{
    second_piece(run)->first_unit++;
}

static void run_units_twice(struct run *run)
{
    second_piece(run)->first_unit--;
}

static void read_another_page(struct run *run)
{
    page_of(second_piece(run))->offset += 64;
}

static void write_elsewhere(struct run *run)
{
    struct instruction *piece = second_piece(run);
    for (int t = 0; t < piece->task_count; t++)
        for (int i = 0; i < piece->task[t].node->input_count; i++)
            if (piece->task[t].input[i].space == SPACE_TENSOR_ARENA && piece->task[t].input[i].row_bytes) {
                piece->task[t].input[i].offset += 64;
                return;
            }
}

static void share_a_home(struct run *run)
{
    home_in_row(run)->file_offset += TRANSFER_ALIGNMENT;
}

static void shrink_a_home(struct run *run)
{
    home_in_row(run)->pieces /= 2;
}

static void shrink_the_window(struct run *run)
{
    run->program->window_bytes = TRANSFER_ALIGNMENT;
}

static void move_the_window(struct run *run)
{
    run->program->window_offset = run->program->workers_offset;
}

static void move_another_piece(struct run *run)
{
    struct phase *phase = train_of(run);
    for (int k = 0; k < phase->transfer_count; k++)
        if (phase->transfer[k].piece == 1) {
            phase->transfer[k].piece = 0;
            return;
        }
}

static void never_go_out(struct run *run)
{
    struct instruction *out = instruction_of(run, INSTRUCTION_OUT, 0);
    out->kind = INSTRUCTION_WAIT;
}

static void come_in_late(struct run *run)
{
    instruction_of(run, INSTRUCTION_IN, 0)->transfer = instruction_of(run, INSTRUCTION_IN, 1)->transfer;
}

/* A step ends, and the last state was not written. */
static void forget_the_last(struct run *run)
{
    struct phase *phase = train_of(run);
    struct instruction *last = &phase->instruction[phase->instruction_count - 1];
    assert_int_equal(last->kind, INSTRUCTION_WAIT);
    phase->instruction_count--;
    for (int k = 0; k < phase->instance_count; k++)
        if (phase->instance[k].last == phase->instruction_count)
            phase->instance[k].last--;
}

static void spoilt_plans_are_found(void **state)
{
    static void (*const spoil[])(struct run *) = {
        leave_units_out,   run_units_twice, read_another_page,  write_elsewhere, share_a_home, shrink_a_home,
        shrink_the_window, move_the_window, move_another_piece, never_go_out,    come_in_late, forget_the_last};
    struct spilled paged[MOST];
    (void)state;
    for (size_t k = 0; k < COUNT(spoil); k++) {
        struct run run;
        plim_error error = {0};
        open_paged(&run, paged, STATES | WEIGHTS, true, 1);
        assert_int_equal(plan_verify(run.program, train_of(&run), &error), PLIM_OK);
        int instructions = train_of(&run)->instruction_count;
        spoil[k](&run);
        plim_status status = plan_verify(run.program, train_of(&run), &error);
        if (status != PLIM_INTERNAL)
            fail_msg("spoilt plan %zu passes", k);
        train_of(&run)->instruction_count = instructions;
        close_run(&run);
    }
}

/* ---- disks that fail --------------------------------------------------- */

/* One step with the n-th transfer failing; whether it came to that. */
static bool step_with_fault(unsigned site, int64_t nth)
{
    struct spilled paged[MOST];
    struct run run;
    float *x = test_calloc(BATCH * WIDTH, sizeof *x), label[BATCH] = {0};
    struct batch batch = {.column = {x, label}, .count = BATCH};
    plim_error error = {0};
    open_paged(&run, paged, STATES, true, 1);
    set_weights(&run);
    fault_arm(site, nth, false, EIO);
    plim_status status = machine_run(&run.machine, PHASE_TRAIN, &batch, &error);
    bool reached = fault_disarm();
    assert_int_equal(status, reached ? PLIM_IO : PLIM_OK);
    if (reached)
        assert_true(error.message[0]);
    test_free(x);
    close_run(&run);
    return reached;
}

static void a_failing_disk_ends_the_step(void **state)
{
    static const unsigned sites[] = {FAULT_WRITE, FAULT_READ};
    (void)state;
    for (size_t k = 0; k < COUNT(sites); k++) {
        int64_t nth = 1;
        while (step_with_fault(sites[k], nth))
            nth += 5;
        assert_true(nth > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same),
        cmocka_unit_test(a_step_moves_what_is_planned),
        cmocka_unit_test(spoilt_plans_are_found),
        cmocka_unit_test(a_failing_disk_ends_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
