/* kernel_check.h - what tests of kernels share: running one as the executor does, and comparing it with the reference
   of its op. */
#ifndef TESTS_KERNEL_CHECK_H
#define TESTS_KERNEL_CHECK_H

#include <math.h>
#include <string.h>

#include "kernel_bench.h"
#include "op_fixture.h"
#include "ops/ops.h"

#define TOLERANCE 1e-5 /* of the largest value */

/* ---- running a kernel --------------------------------------------------- */

static inline const struct kernel *kernel_of(struct bench *bench, const struct node *node, int64_t slice, int64_t count)
{
    const struct kernel *kernel = NULL;
    int64_t shorter[2] = {count % slice, slice > count ? count : 0};
    plim_error error = {0};
    const struct kernel_request request = {.node = node, .slice = slice, .short_rows = shorter, .short_count = 2};
    if (cpu_backend.prepare(&kernel, bench->backend, &request, &error))
        fail_msg("%s: %s", node->op->name, error.message);
    assert_non_null(kernel->implementation);
    return kernel;
}

/* As the executor does it: pack once, then slice after slice. Threads pack in any order: the last first here. */
static inline void run_kernel(struct bench *bench, struct fixture *fixture, const struct node *node, int64_t slice,
                              int64_t count)
{
    struct cut cut;
    struct call call;
    node->op->cut(&cut, node);
    int64_t end = cut.by_sample && count < cut.extent ? count : cut.extent;
    int64_t step = slice ? slice * cut.grain : end;
    const struct kernel *kernel = kernel_of(bench, node, step, end);
    void *scratch = budget_take(bench->budget, TAG_SCRATCH, kernel->scratch_bytes);
    void *pack = budget_take(bench->budget, TAG_SCRATCH, kernel->pack_bytes);
    memset(pack, POISON, kernel->pack_bytes);
    uint64_t takes = budget_usage(bench->budget).takes;
    fixture_call(&call, fixture, node, 0, end, count);
    for (int unit = kernel->pack_units - 1; unit >= 0; unit--)
        kernel->pack(kernel, &call, unit, pack);
    for (int64_t begin = 0; begin < end; begin += step) {
        fixture_call(&call, fixture, node, begin, begin + step < end ? begin + step : end, count);
        call.scratch = scratch;
        call.pack = kernel->pack_bytes ? pack : NULL;
        memset(scratch, POISON, kernel->scratch_bytes);
        kernel->run(kernel, &call);
    }
    assert_int_equal(budget_usage(bench->budget).takes, takes);
    budget_give(bench->budget, TAG_SCRATCH, scratch, kernel->scratch_bytes);
    budget_give(bench->budget, TAG_SCRATCH, pack, kernel->pack_bytes);
}

static inline int64_t elements(const struct tensor *tensor, int64_t rows)
{
    return tensor->batched ? rows * shape_row(&tensor->shape) : shape_count(&tensor->shape);
}

/* Both sides round once to what is stored; where they fall on two sides of a tie they are one place apart. */
static inline double one_place(enum type type, double y)
{
    double place = type == TYPE_BF16 ? 0x1p-7 : type == TYPE_F16 ? 0x1p-10 : 0;
    return place ? place * fabs(y) + 0x1p-24 : 0;
}

/* Gradients of logits in bf16 are rounded before they are multiplied: one that the two sides see on two sides of a tie
   moves what it goes into by a place of itself. Few do, so few elements may be so far off. */
static inline bool rounds_between(const struct node *node)
{
    const struct vocabulary_attributes *attributes = node->attributes;
    return node->op == &op_vocabulary_crossentropy_gradient && attributes->rounds;
}

static inline void compare(const struct fixture *fast, const struct fixture *exact, int id, int64_t rows)
{
    const struct tensor *a = fast->graph.tensor[id], *b = exact->graph.tensor[id];
    int64_t moved = rounds_between(fast->node) ? elements(b, rows) / 10 : 0;
    double most = 0;
    for (int64_t i = 0; i < elements(b, rows); i++)
        most = isinf(fixture_get(exact, b, i)) ? most : fmax(most, fabs(fixture_get(exact, b, i)));
    for (int64_t i = 0; i < elements(b, rows); i++) {
        double x = fixture_get(fast, a, i), y = fixture_get(exact, b, i);
        bool near = x == y || fabs(x - y) <= TOLERANCE * fmax(most, 1e-3) + one_place(a->type, y);
        if (!near && !(fabs(x - y) <= 0x1p-8 * most && moved-- > 0))
            fail_msg("%s: output %d (%s) [%lld] is %.9g, not %.9g (largest %g)", fast->node->op->name, id,
                     type_name(a->type), (long long)i, x, y, most);
    }
    const unsigned char *bytes = fast->data[id];
    for (size_t i = (size_t)elements(a, rows) * type_bytes(a->type); a->producer && i < fast->bytes[id]; i++)
        assert_int_equal(bytes[i], POISON);
    for (int64_t i = elements(a, rows); !a->producer && i < shape_count(&a->shape); i++)
        assert_true(isnan(fixture_get(fast, a, i))); /* a state's rows that the batch has not: as they were spoiled */
}

/* Both fixtures hold the same graph; the second is the oracle. */
static inline void check_pair(struct bench *bench, struct fixture *fast, struct fixture *exact, int64_t slice,
                              int64_t count)
{
    const struct op *op = fast->node->op;
    fixture_fill(fast, 3);
    fixture_fill(exact, 3);
    fixture_spoil(fast, count);
    fixture_run_before(fast, count);
    fixture_run_before(exact, count);
    run_kernel(bench, fast, fast->node, slice, count);
    fixture_run(exact, exact->node, 0, count);
    for (int i = 0; i < fast->node->input_count; i++)
        if (op->updates >> i & 1 && fast->node->input[i])
            compare(fast, exact, fast->node->input[i]->id, count);
    for (int k = 0; k < op->outputs; k++)
        compare(fast, exact, fast->node->output[k]->id, count);
}

/* ---- graphs of one node -------------------------------------------------- */

static inline void fixture_begin(struct fixture *fixture, int64_t batch)
{
    *fixture = (struct fixture){0};
    assert_int_equal(budget_make(&fixture->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&fixture->graph, fixture->budget, batch);
}

static inline void fixture_end(struct fixture *fixture)
{
    plim_error error = {0};
    if (graph_check(&fixture->graph, &error))
        fail_msg("%s", error.message);
    fixture->node = fixture->graph.node[fixture->graph.node_count - 1];
}

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

#endif
