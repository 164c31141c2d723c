/* training_run.h - a graph of plan_models.h that trains on a machine: what tests of transforms of the graph compare the
   weights and the memory of. */
#ifndef TESTS_TRAINING_RUN_H
#define TESTS_TRAINING_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan_models.h"
#include "train/trainer.h"
#include "transform/in_place.h"

struct run {
    struct budget *budget;
    struct backend *backend;
    struct graph graph;
    struct made made;
    struct program *program;
    struct machine machine;
    int64_t last_batch; /* program_input.last_batch_train */
    const struct spilled *spilled;
    int spilled_count;
    struct scratch_disk disk;
};

/* Then the test makes run->graph, */
static inline void begin_run(struct run *run)
{
    *run = (struct run){.disk = {.folder = "/var/tmp", .limit_bytes = UINT64_MAX}};
    assert_int_equal(budget_make(&run->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(cpu_backend.open(&run->backend, run->budget, NULL), PLIM_OK);
}

/* and this a machine for it. */
static inline void open_run(struct run *run, int threads)
{
    plim_error error = {0};
    const struct program_input input = {.budget = run->budget,
                                        .backend = run->backend,
                                        .threads = threads,
                                        .train = &run->graph,
                                        .last_batch_train = run->last_batch,
                                        .spilled = run->spilled,
                                        .spilled_count = run->spilled_count,
                                        .scratch_folder = run->disk.folder};
    if (program_make(&run->program, &input, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    assert_int_equal(machine_open(&run->machine, run->program, run->budget, &run->disk, &error), PLIM_OK);
    run->machine.poison = true;
}

static inline void close_run(struct run *run)
{
    machine_close(&run->machine);
    program_free(run->program);
    graph_release(&run->graph);
    run->backend->type->close(run->backend);
    budget_free(run->budget);
}

static inline struct phase *train_of(const struct run *run)
{
    return &run->program->phase[PHASE_TRAIN];
}

/* The instruction of this kind that comes after `which` others of it. */
static inline struct instruction *instruction_of(const struct run *run, enum instruction_kind kind, int which)
{
    for (int i = 0; i < train_of(run)->instruction_count; i++)
        if (train_of(run)->instruction[i].kind == kind && which-- == 0)
            return &train_of(run)->instruction[i];
    fail_msg("no instruction of kind %d", (int)kind);
    return NULL;
}

/* Its number among the model's weights; -1: it is none. */
static inline int weight_number(const struct run *run, const struct tensor *tensor)
{
    for (int w = 0; w < run->made.weight_count; w++)
        if (run->made.weight[w] == tensor)
            return w;
    return -1;
}

static inline void fill_state(const struct run *run, const struct tensor *tensor, const struct state_bytes *bytes)
{
    int w = weight_number(run, tensor);
    memset(bytes->data, 0, bytes->bytes);
    if (strcmp(tensor->name, "optimizer/learning_rate") == 0)
        *(float *)bytes->data = 0.01f;
    if (w < 0)
        return;
    float *data = bytes->data;
    random_fill_unit(data, bytes->bytes / sizeof *data, 5, (uint64_t)w, 0); /* weights have one piece */
    for (uint64_t i = 0; i < bytes->bytes / sizeof *data; i++)
        data[i] = (data[i] - 0.5f) / 16;
}

static inline void set_weights(struct run *run)
{
    memset(run->machine.tensor_arena, 0, run->program->persistent_bytes);
    for (int i = 0; i < run->program->persistent_count; i++)
        for (int piece = 0; piece < state_pieces(&run->machine, i); piece++) {
            struct state_bytes bytes = state_piece(&run->machine, i, piece);
            fill_state(run, run->program->persistent[i], &bytes);
            assert_int_equal(state_store(&run->machine, i, piece, NULL), PLIM_OK);
        }
}

/* All weights and states, where they would be if none were paged. */
static inline uint64_t states_size(const struct run *run)
{
    uint64_t size = 0;
    for (int i = 0; i < run->program->persistent_count; i++)
        size += layout_bytes(tensor_bytes(run->program->persistent[i]));
    return size;
}

static inline uint8_t *copy_states(struct run *run)
{
    uint8_t *out = test_calloc(1, states_size(run)), *at = out;
    for (int i = 0; i < run->program->persistent_count; i++) {
        for (int piece = 0; piece < state_pieces(&run->machine, i); piece++) {
            struct state_bytes bytes;
            if (state_load(&bytes, &run->machine, i, piece, NULL) == PLIM_OK)
                memcpy(at + bytes.first, bytes.data, bytes.bytes);
        }
        at += layout_bytes(tensor_bytes(run->program->persistent[i]));
    }
    return out;
}

/* Weights and states after a step for each of `counts` samples of a graph over (x, label), or after the step that
   failed; test_free it. */
static inline uint8_t *try_run(plim_status *status, struct run *run, const int64_t *counts, int steps,
                               plim_error *error)
{
    int64_t samples = run->graph.batch, width = shape_count(&run->graph.tensor[0]->shape);
    float *x = test_malloc((size_t)width * sizeof *x), *label = test_malloc((size_t)samples * sizeof *label);
    struct batch batch = {.column = {x, label}};
    set_weights(run);
    random_fill_unit(x, (uint64_t)width, 3, 1, 0);
    for (int64_t i = 0; i < samples; i++)
        label[i] = (float)(i % 2);
    *status = PLIM_OK;
    for (int step = 0; step < steps && *status == PLIM_OK; step++) {
        batch.count = counts[step];
        *status = machine_run(&run->machine, PHASE_TRAIN, &batch, error);
    }
    test_free(x);
    test_free(label);
    return copy_states(run);
}

static inline uint8_t *train_run(struct run *run, const int64_t *counts, int steps)
{
    plim_status status;
    uint8_t *out = try_run(&status, run, counts, steps, NULL);
    assert_int_equal(status, PLIM_OK);
    return out;
}

/* Nodes of one op. */
static inline int count_of(const struct graph *graph, const struct op *op)
{
    int count = 0;
    for (int n = 0; n < graph->node_count; n++)
        count += graph->node[n]->op == op;
    return count;
}

#endif
