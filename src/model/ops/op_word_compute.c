/* op_word_compute.c - op words that compute: elements, products, normalisation, places looked up. */
#include <math.h>
#include <string.h>

#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

struct tensor *word_plain(const struct op_call *call)
{
    return unary(call->graph, call->word->op, call->x[0]);
}

/* As Keras has it, whole numbers and truth values are floats here; some words make them whole again. */
struct tensor *word_unary(const struct op_call *call)
{
    struct tensor *x = call->x[0];
    if (type_is_float(x->type))
        return unary(call->graph, call->word->op, x);
    struct tensor *y = unary(call->graph, call->word->op, policy_cast(call->graph, x, TYPE_F32));
    enum type whole = x->type == TYPE_BOOL ? TYPE_I32 : x->type;
    return y && call->word->choice ? policy_cast(call->graph, y, whole) : y;
}

struct tensor *word_numbers(const struct op_call *call)
{
    struct numbers_attributes numbers = {word_number(call, 0), word_number(call, 1), word_number(call, 2)};
    return graph_add(call->graph, call->word->op, call->x, 1, &numbers, sizeof numbers);
}

/* Plain relu where nothing else is asked for: others know it. */
struct tensor *word_relu(const struct op_call *call)
{
    struct numbers_attributes n = {word_number(call, 0), word_number(call, 1), word_number(call, 2)};
    if (n.a == 0 && isinf(n.b) && n.c == 0)
        return unary(call->graph, &op_relu, call->x[0]);
    return graph_add(call->graph, n.a < 0 || n.c < 0 ? &op_rectify_any : &op_rectify, call->x, 1, &n, sizeof n);
}

struct tensor *word_gelu(const struct op_call *call)
{
    return unary(call->graph, call->arguments.reverse ? &op_gelu_tanh : &op_gelu, call->x[0]);
}

struct tensor *word_along(const struct op_call *call)
{
    int axis;
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 0))
        return NULL;
    struct axis_attributes attributes = {call->x[0]->shape.rank - 1 - axis};
    return graph_add(call->graph, call->word->op, call->x, 1, &attributes, sizeof attributes);
}

struct tensor *word_cast(const struct op_call *call)
{
    enum type type;
    if (!call->arguments.word || !type_from_name(&type, call->arguments.word))
        return graph_fail(call->graph, PLIM_USAGE, "cast: dtype is float32, int32, bool, ...; not '%s'",
                          call->arguments.word ? call->arguments.word : "");
    struct cast_attributes attributes = {type};
    return graph_add(call->graph, call->word->op, call->x, 1, &attributes, sizeof attributes);
}

/* A weight of two axes is what layers have; else both are stacks of matrices. */
static struct tensor *multiply(const struct op_call *call)
{
    const struct op_arguments *arguments = &call->arguments;
    bool weight = call->x[0]->batched && !call->x[1]->batched && call->x[1]->shape.rank == 2 && !arguments->transpose_a;
    struct matmul_attributes dense = {.transposed = arguments->transpose_b};
    struct batch_matmul_attributes stacks = {arguments->transpose_a, arguments->transpose_b, 0};
    if (weight)
        return graph_add(call->graph, &op_matmul, call->x, 2, &dense, sizeof dense);
    return graph_add(call->graph, &op_batch_matmul, call->x, 2, &stacks, sizeof stacks);
}

struct tensor *word_matmul(const struct op_call *call)
{
    struct tensor *x[2];
    struct op_call both = *call;
    both.x = x;
    both.count = 2;
    return word_pair(x, call) ? word_product(&both, multiply) : NULL;
}

/* ---- normalisation, penalties ---- */

/* Over as many axes as gamma has; without it over the last one. */
struct tensor *word_normalize(const struct op_call *call)
{
    struct layer_normalize_attributes attributes = {.epsilon = word_number(call, 0),
                                                    .axes = call->count > 1 ? call->x[1]->shape.rank : 1,
                                                    .kind = call->word->choice};
    return graph_add(call->graph, call->word->op, call->x, call->count, &attributes, sizeof attributes);
}

struct tensor *word_penalty(const struct op_call *call)
{
    struct penalty_attributes attributes = {word_number(call, 0), word_number(call, 1)};
    return graph_add(call->graph, call->word->op, call->x, 1, &attributes, sizeof attributes);
}

/* ---- places ---- */

struct tensor *word_one_hot(const struct op_call *call)
{
    struct one_hot_attributes attributes = {call->arguments.whole, call->word->choice};
    if (attributes.depth < 1)
        return graph_fail(call->graph, PLIM_USAGE, "%s: 'num_classes' is missing", call->word->name);
    return graph_add(call->graph, call->word->op, call->x, 1, &attributes, sizeof attributes);
}

struct tensor *word_embedding(const struct op_call *call)
{
    return binary(call->graph, &op_embedding, call->x[0], call->x[1]);
}

/* Rows of a weight are an embedding. */
struct tensor *word_take(const struct op_call *call)
{
    int axis;
    if (!call->x[0]->batched && !call->word->choice)
        return binary(call->graph, &op_embedding, call->x[1], call->x[0]);
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 0))
        return NULL;
    struct gather_attributes attributes = {axis, call->word->choice};
    return graph_add(call->graph, call->word->op, call->x, 2, &attributes, sizeof attributes);
}

struct tensor *word_scatter(const struct op_call *call)
{
    int axis;
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 0))
        return NULL;
    struct scatter_attributes attributes = {.gather = {.axis = axis}, .extent = call->arguments.whole};
    if (attributes.extent < 1)
        return graph_fail(call->graph, PLIM_USAGE, "scatter_add: 'num_segments' is missing");
    return graph_add(call->graph, call->word->op, call->x, 2, &attributes, sizeof attributes);
}
