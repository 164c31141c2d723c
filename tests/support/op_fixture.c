/* op_fixture.c - one op's example with bytes behind it. */
#include "op_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/numbers/random.h"
#include "examples.h"

bool fixture_init(struct fixture *fixture, const struct op *op, int variant, enum type type, int64_t batch)
{
    *fixture = (struct fixture){0};
    assert_int_equal(budget_make(&fixture->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&fixture->graph, fixture->budget, batch);
    fixture->output = example_add(&fixture->graph, op, variant, type);
    plim_error error = {0};
    if (graph_check(&fixture->graph, &error))
        fail_msg("%s, variant %d: %s", op->name, variant, error.message);
    if (fixture->output) {
        fixture->node = fixture->graph.node[fixture->graph.node_count - 1];
        assert_ptr_equal(fixture->node->op, op);
        return true;
    }
    fixture_release(fixture);
    return false;
}

void fixture_release(struct fixture *fixture)
{
    for (int i = 0; i < FIXTURE_TENSORS; i++)
        budget_give(fixture->budget, TAG_ACTIVATIONS, fixture->data[i], fixture->bytes[i]);
    graph_release(&fixture->graph);
    budget_free(fixture->budget);
    *fixture = (struct fixture){0};
}

/* In [0, 1), a pure function of seed, tensor and element. */
static double unit(uint64_t seed, const struct tensor *tensor, int64_t i)
{
    uint32_t block[4];
    random_block(block, seed, (uint64_t)tensor->id, (uint64_t)i);
    return random_unit(block[0]);
}

static double value_for(uint64_t seed, const struct tensor *tensor, int64_t i)
{
    double u = unit(seed, tensor, i);
    const char *name = tensor->name;
    if (strncmp(name, "label:", 6) == 0 || strncmp(name, "index:", 6) == 0)
        return (double)(int64_t)(u * (double)strtoll(name + 6, NULL, 10));
    if (strncmp(name, "positive", 8) == 0)
        return (float)(0.1 + 0.8 * u);
    if (strncmp(name, "wide", 4) == 0)
        return (float)(8 * u - 4);
    if (strncmp(name, "iteration", 9) == 0)
        return (double)(int64_t)(u * 7);
    if (!type_is_float(tensor->type))
        return (double)(int64_t)(u * 100);
    return (float)(2 * u - 1);
}

void fixture_fill(struct fixture *fixture, uint64_t seed)
{
    assert_true(fixture->graph.tensor_count <= FIXTURE_TENSORS);
    for (int t = 0; t < fixture->graph.tensor_count; t++) {
        const struct tensor *tensor = fixture->graph.tensor[t];
        int64_t count = shape_count(&tensor->shape);
        size_t bytes = (size_t)count * type_bytes(tensor->type);
        if (!fixture->data[t])
            fixture->data[t] = budget_take(fixture->budget, TAG_ACTIVATIONS, bytes);
        fixture->bytes[t] = bytes;
        assert_non_null(fixture->data[t]);
        memset(fixture->data[t], POISON, bytes);
        for (int64_t i = 0; i < count && !tensor->producer; i++)
            element_set(fixture->data[t], tensor->type, i, value_for(seed, tensor, i));
    }
}

/* With another NaN than the poison's: what was computed from it shows. */
void fixture_spoil(struct fixture *fixture, int64_t count)
{
    for (int t = 0; t < fixture->graph.tensor_count; t++) {
        const struct tensor *tensor = fixture->graph.tensor[t];
        bool real = type_is_float(tensor->type);
        if (!tensor->batched || tensor->producer)
            continue;
        for (int64_t i = count * shape_row(&tensor->shape); i < shape_count(&tensor->shape); i++)
            element_set(fixture->data[t], tensor->type, i, real ? (double)NAN : 113);
    }
}

void fixture_copy(struct fixture *to, const struct fixture *from)
{
    for (int t = 0; t < to->graph.tensor_count; t++) {
        const struct tensor *tensor = to->graph.tensor[t];
        for (int64_t i = 0; i < shape_count(&tensor->shape) && !tensor->producer; i++)
            element_set(to->data[t], tensor->type, i, fixture_get(from, from->graph.tensor[t], i));
    }
}

double fixture_get(const struct fixture *fixture, const struct tensor *tensor, int64_t i)
{
    return element_get(fixture->data[tensor->id], tensor->type, i);
}

static void *operand(const struct fixture *fixture, const struct tensor *tensor, enum part part, int64_t begin)
{
    if (!tensor)
        return NULL;
    int64_t row = shape_row(&tensor->shape) * (int64_t)type_bytes(tensor->type);
    return (char *)fixture->data[tensor->id] + (part == PART_CUT ? begin * row : 0);
}

void fixture_call(struct call *call, const struct fixture *fixture, const struct node *node, int64_t begin, int64_t end,
                  int64_t count)
{
    struct cut cut;
    node->op->cut(&cut, node);
    *call = (struct call){.node = node, .begin = begin, .end = end, .count = count, .add = begin > 0};
    for (int i = 0; i < node->input_count; i++)
        call->input[i] = operand(fixture, node->input[i], cut.input[i], begin);
    for (int k = 0; k < node->output_count; k++)
        call->output[k] = operand(fixture, node->output[k], cut.output[k], begin);
}

void fixture_run(struct fixture *fixture, const struct node *node, int64_t slice, int64_t count)
{
    struct cut cut;
    struct call call;
    node->op->cut(&cut, node);
    int64_t end = cut.by_sample && count < cut.extent ? count : cut.extent;
    int64_t step = slice ? slice * cut.grain : end;
    for (int64_t begin = 0; begin < end; begin += step) {
        fixture_call(&call, fixture, node, begin, begin + step < end ? begin + step : end, count);
        node->op->reference(&call);
    }
}

void fixture_run_before(struct fixture *fixture, int64_t count)
{
    for (int n = 0; n < fixture->node->id; n++)
        fixture_run(fixture, fixture->graph.node[n], 0, count);
}

void fixture_run_all(struct fixture *fixture, bool backward)
{
    for (int n = 0; n < fixture->graph.node_count; n++) {
        const struct node *node = fixture->graph.node[n];
        if (backward || !node->backward)
            fixture_run(fixture, node, 0, fixture->graph.batch);
    }
}
