/* examples_formulas.c - examples of the ops of src/ops/elementwise/unary.def and binary.def, and of their like. */
#include "examples.h"

#include "base/numbers/count.h"
#include "ops/broadcast.h"

/* ---- unary ----------------------------------------------------------------- */

static struct tensor *unary_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                    const char *name, const struct numbers_attributes *numbers)
{
    struct tensor *x = example_plain(graph, variant, type, name);
    return x ? graph_add(graph, op, &x, 1, op->attributes_bytes ? numbers : NULL, op->attributes_bytes) : NULL;
}

static struct tensor *unary_gradient_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                             const char *name, const struct numbers_attributes *numbers)
{
    struct tensor *dy = example_plain(graph, variant, type, "dy");
    struct tensor *read = example_plain(graph, variant, type, name);
    if (!dy || !read)
        return NULL;
    return graph_add(graph, op, (struct tensor *[]){dy, read}, 2, op->attributes_bytes ? numbers : NULL,
                     op->attributes_bytes);
}

#define NONE         (0)
#define NUMBERS(...) (__VA_ARGS__)
#define IN_BRACES(...)                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#define FORWARD(name, given, numbers_given)                                                                            \
    static const struct numbers_attributes name##_numbers = IN_BRACES numbers_given;                                   \
    struct tensor *name##_example(struct graph *graph, int variant, enum type type)                                    \
    {                                                                                                                  \
        return unary_example(graph, variant, type, &op_##name, given, &name##_numbers);                                \
    }
#define SMOOTH(name, given, gradient_given, numbers_given)                                                             \
    FORWARD(name, given, numbers_given)                                                                                \
    struct tensor *name##_gradient_example(struct graph *graph, int variant, enum type type)                           \
    {                                                                                                                  \
        return unary_gradient_example(graph, variant, type, &op_##name##_gradient, gradient_given, &name##_numbers);   \
    }
#define FROM_X(name, given, numbers, ...) SMOOTH(name, given, given, numbers)
#define FROM_Y(name, given, numbers, ...) SMOOTH(name, given, "wide:y", numbers)
#define FAR_X                             FROM_X
#define FAR_Y                             FROM_Y
#define FLAT(name, given, ...)            FORWARD(name, given, NONE)
#define PREDICATE(name, given, ...)       FORWARD(name, given, NONE)
#include "ops/elementwise/unary.def"
#undef FORWARD

struct tensor *negative_example(struct graph *graph, int variant, enum type type)
{
    return unary_example(graph, variant, type, &op_negative, "x", NULL);
}

/* ---- binary ---------------------------------------------------------------- */

/* The same, [c], scalar, a channel's scale by sample, [..., 1], both broadcast, no batch. */
struct binary_pair {
    int rank[2];
    int64_t row[2][4];
    bool weight[2]; /* without a batch: the row is all of it */
};

static const struct binary_pair pairs[] = {
    {{1, 1}, {{7}, {7}}, {false, false}},
    {{3, 3}, {{3, 2, 37}, {3, 2, 37}}, {false, false}},
    {{0, 0}, {{0}, {0}}, {false, false}},
    {{3, 1}, {{2, 3, 37}, {37}}, {false, true}},
    {{1, 2}, {{5}, {1, 5}}, {true, false}},
    {{2, 1}, {{3, 19}, {1}}, {false, true}},
    {{3, 3}, {{2, 2, 70}, {1, 1, 70}}, {false, false}},
    {{3, 1}, {{2, 3, 5}, {5}}, {false, false}},
    {{2, 2}, {{3, 1}, {3, 70}}, {false, false}},
    {{2, 2}, {{3, 1}, {1, 4}}, {false, false}},
    {{2, 3}, {{3, 4}, {1, 3, 1}}, {false, true}},
    {{2, 1}, {{3, 4}, {4}}, {true, true}},
    {{2, 2}, {{3, 4}, {3, 1}}, {true, true}},
};

static struct tensor *example_side(struct graph *graph, const struct binary_pair *pair, int side, const char *name,
                                   enum type type)
{
    if (pair->weight[side])
        return graph_weight(graph, name, type, shape_of(pair->rank[side], pair->row[side]), true);
    return example_input(graph, name, type, pair->rank[side], pair->row[side]);
}

static struct tensor *binary_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                     const char *first, const char *second)
{
    if (variant >= COUNT(pairs))
        return NULL;
    struct tensor *a = example_side(graph, &pairs[variant], 0, first, type);
    struct tensor *b = example_side(graph, &pairs[variant], 1, second, type);
    return binary(graph, op, a, b);
}

/* dy has the shape that a and b broadcast to. */
static struct tensor *binary_gradient_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                              const char *first, const char *second)
{
    struct operand_attributes attributes = {variant % 2};
    struct broadcast broadcast;
    if (variant / 2 >= COUNT(pairs))
        return NULL;
    struct tensor *a = example_side(graph, &pairs[variant / 2], 0, first, type);
    struct tensor *b = example_side(graph, &pairs[variant / 2], 1, second, type);
    if (!a || !b || !broadcast_of(&broadcast, (const struct tensor *[]){a, b}, 2))
        return NULL;
    struct tensor *d = broadcast.batched ? graph_input(graph, "dy", 2, type, broadcast.shape)
                                         : graph_weight(graph, "dy", type, broadcast.shape, true);
    return graph_add(graph, op, (struct tensor *[]){d, a, b}, 3, &attributes, sizeof(attributes));
}

#define FORWARD(name, first, second)                                                                                   \
    struct tensor *name##_example(struct graph *graph, int variant, enum type type)                                    \
    {                                                                                                                  \
        return binary_example(graph, variant, type, &op_##name, first, second);                                        \
    }
#define BOTH(name, first, second)                                                                                      \
    FORWARD(name, first, second)                                                                                       \
    struct tensor *name##_gradient_example(struct graph *graph, int variant, enum type type)                           \
    {                                                                                                                  \
        return binary_gradient_example(graph, variant, type, &op_##name##_gradient, first, second);                    \
    }
#define COMPOSED(name, ...) FORWARD(name, "a", "positive:b")
#define SLOPED(name, ...)   BOTH(name, "a", "positive:b")
#define TESTED(name, ...)   BOTH(name, "positive:a", "wide:b")
#define STEPPED(name, ...)  FORWARD(name, "a", "positive:b")
#define TRUTH(name, ...)    FORWARD(name, "label:3", "label:2")
#include "ops/elementwise/binary.def"

static struct tensor *example_condition(struct graph *graph, int variant, bool batched)
{
    static const enum type types[] = {TYPE_BOOL, TYPE_U8, TYPE_BOOL, TYPE_BOOL, TYPE_I32, TYPE_BOOL};
    enum type type = types[variant % 6];
    if (!batched || variant % 3 == 2)
        return graph_weight(graph, "label:2", type, shape_1(1), false);
    return example_input(graph, "label:2", type, variant % 3, (int64_t[]){1});
}

struct tensor *where_example(struct graph *graph, int variant, enum type type)
{
    if (variant == 0) {
        struct tensor *condition = example_input(graph, "label:2", TYPE_BOOL, ROW(3, 7));
        struct tensor *a = example_input(graph, "a", type, ROW(3, 7)), *b = example_input(graph, "b", type, ROW(3, 7));
        return trinary(graph, &op_where, condition, a, b);
    }
    if (variant >= COUNT(pairs))
        return NULL;
    bool batched = !pairs[variant].weight[0] || !pairs[variant].weight[1];
    struct tensor *condition = example_condition(graph, variant, batched);
    struct tensor *a = example_side(graph, &pairs[variant], 0, "a", type);
    struct tensor *b = example_side(graph, &pairs[variant], 1, "b", type);
    return trinary(graph, &op_where, condition, a, b);
}

struct tensor *where_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct operand_attributes attributes = {variant % 2};
    if (variant > 3)
        return NULL;
    struct tensor *d = example_input(graph, "dy", type, ROW(3, 7));
    struct tensor *condition =
        variant < 2 ? example_input(graph, "label:2", TYPE_BOOL, ROW(3, 7)) : example_condition(graph, variant, true);
    return graph_add(graph, &op_where_gradient, (struct tensor *[]){d, condition}, 2, &attributes, sizeof(attributes));
}
