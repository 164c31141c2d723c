/* examples_attention.c - examples of the ops of src/ops/attention/. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- attention ------------------------------------------------------------- */

struct attention_case {
    int64_t queries, keys, heads, groups, depth, value_depth;
    int mask;            /* axes of it, with the batch; 0: none; negative: no batch */
    enum type mask_type; /* of it */
    struct attention_attributes attributes;
};

static const struct attention_case attention_examples[] = {
    {5, 5, 2, 2, 4, 4, 0, TYPE_BOOL, {0, 0, 0, 0}},      {7, 7, 3, 1, 5, 3, 0, TYPE_BOOL, {0.3, 0, 0, 1}},
    {1, 6, 4, 2, 3, 7, 2, TYPE_BOOL, {0, 0, 0, 0}},      {6, 9, 2, 2, 1, 1, 3, TYPE_U8, {2, 0, 0, 1}},
    {4, 3, 2, 1, 6, 2, 4, TYPE_F32, {0, 0, 0, 0}},       {3, 4, 2, 2, 2, 5, -3, TYPE_F32, {0, 0, 0, 0}},
    {5, 70, 2, 2, 3, 4, 0, TYPE_BOOL, {0, 0.25, 77, 0}}, {3, 5, 2, 1, 3, 2, -2, TYPE_BOOL, {0, 0.5, 78, 1}},
    {2, 230, 1, 1, 2, 3, 0, TYPE_BOOL, {0, 0, 0, 0}},    /* more than one block of keys */
    {115, 3, 1, 1, 2, 2, 2, TYPE_BOOL, {0, 0.1, 79, 1}}, /* and of queries */
    {16, 16, 1, 1, 17, 33, 0, TYPE_BOOL, {0, 0, 0, 1}},
};

/* A mask's ones: bool and u8 masks come out of [0, 2). */
static struct tensor *example_mask(struct graph *graph, const struct attention_case *e)
{
    int rank = e->mask < 0 ? -e->mask : e->mask, batch = e->mask > 0 ? 1 : 0;
    const int64_t full[3] = {e->heads, e->queries, e->keys};
    struct shape shape = {.rank = rank};
    if (rank == 0)
        return NULL;
    for (int i = 0; i < rank; i++)
        shape.dim[i] = i < batch ? graph->batch : full[3 - (rank - i)];
    const char *name = e->mask_type == TYPE_F32 ? "mask" : "label:2";
    return batch ? graph_input(graph, name, 3, e->mask_type, shape)
                 : graph_weight(graph, name, e->mask_type, shape, false);
}

/* The five operands; false after the last variant. */
static const struct attention_case *attention_example_operands(struct tensor **inputs, struct graph *graph, int variant,
                                                               enum type type)
{
    if (variant >= COUNT(attention_examples))
        return NULL;
    const struct attention_case *e = &attention_examples[variant];
    inputs[0] = example_input(graph, "q", type, ROW(e->queries, e->heads, e->depth));
    inputs[1] = example_input(graph, "k", type, ROW(e->keys, e->groups, e->depth));
    inputs[2] = example_input(graph, "v", type, ROW(e->keys, e->groups, e->value_depth));
    inputs[3] = example_mask(graph, e);
    inputs[4] = e->attributes.dropout > 0 ? graph_state(graph, "iteration", TYPE_I64, shape_1(1)) : NULL;
    return e;
}

struct tensor *attention_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[5];
    const struct attention_case *e = attention_example_operands(inputs, graph, variant, type);
    return e ? graph_add(graph, &op_attention, inputs, 5, &e->attributes, sizeof(e->attributes)) : NULL;
}

/* Any out and logsumexp will do: what is computed from them is the same formula. */
struct tensor *attention_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[8];
    const struct attention_case *e = attention_example_operands(inputs, graph, variant, type);
    if (!e)
        return NULL;
    inputs[5] = example_input(graph, "out", type, ROW(e->queries, e->heads, e->value_depth));
    inputs[6] = example_input(graph, "positive:sums", wide_type(type), ROW(e->heads, e->queries));
    inputs[7] = example_input(graph, "dout", type, ROW(e->queries, e->heads, e->value_depth));
    return graph_add(graph, &op_attention_gradient, inputs, 8, &e->attributes, sizeof(e->attributes));
}
