/* examples_others.c - examples of the ops that lie in src/ops/ itself. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- assign ---------------------------------------------------------------- */

struct tensor *assign_example(struct graph *graph, int variant, enum type type)
{
    struct assign_attributes attributes = {variant % 2};
    if (variant >= 2 * update_shapes_count)
        return NULL;
    struct shape shape = update_shapes[variant % update_shapes_count];
    struct shape values = variant < update_shapes_count ? shape : shape_1(1);
    struct tensor *inputs[2] = {graph_state(graph, "state", type, shape), graph_state(graph, "value", type, values)};
    return graph_add(graph, &op_assign, inputs, 2, &attributes, sizeof(attributes));
}

/* ---- cast ------------------------------------------------------------------ */

/* From the tested type to each, then from each to it, then among the others. Whole numbers: only from f64 to
   itself is there a gradient that finite differences can see. */
struct tensor *cast_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= 3 * TYPE_COUNT)
        return NULL;
    enum type other = (enum type)(variant % TYPE_COUNT), third = (enum type)((variant + 3) % TYPE_COUNT);
    enum type from = variant < TYPE_COUNT ? type : other;
    struct cast_attributes to = {variant < TYPE_COUNT ? other : variant < 2 * TYPE_COUNT ? type : third};
    struct tensor *x = example_input(graph, variant == TYPE_F64 ? "x" : "index:100", from, ROW(3, 37));
    return graph_add(graph, &op_cast, &x, 1, &to, sizeof(to));
}

/* ---- constant -------------------------------------------------------------- */

struct tensor *constant_example(struct graph *graph, int variant, enum type type)
{
    static const struct shape shapes[] = {{1, {7}}, {1, {1}}, {3, {3, 2, 37}}, {2, {1, 5}}};
    if (variant >= COUNT(shapes))
        return NULL;
    struct constant_attributes attributes = {.type = type, .shape = shapes[variant]};
    int64_t count = shape_count(&attributes.shape);
    void *data = arena_array(&graph->arena, (size_t)count, type_bytes(type));
    for (int64_t i = 0; data && i < count; i++)
        element_set(data, type, i, (double)(i % 16) / 8 - 1); /* what every type of floats has */
    attributes.data = data;
    return graph_add(graph, &op_constant, NULL, 0, &attributes, sizeof(attributes));
}

/* ---- state_read, state_write -------------------------------------------------------------- */

static struct tensor *example_state(struct graph *graph, int variant, enum type type)
{
    static const struct shape rows[] = {{2, {0, 7}}, {2, {0, 1}}, {3, {0, 3, 5}}};
    if (variant > 2)
        return NULL;
    return graph_sample_state(graph, "state", type, rows[variant]);
}

struct tensor *state_read_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *state = example_state(graph, variant, type);
    return state ? unary(graph, &op_state_read, state) : NULL;
}

struct tensor *state_write_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *state = example_state(graph, variant, type);
    if (!state)
        return NULL;
    struct tensor *inputs[2] = {state, example_input(graph, "y", type, state->shape.rank - 1, state->shape.dim + 1)};
    return graph_add(graph, &op_state_write, inputs, 2, NULL, 0);
}
