/* examples.c - the example of every op of ops.def, and what examples are made of. */
#include "examples.h"
#include "base/numbers/count.h"

/* An op without an example does not link. */
static const struct {
    const struct op *op;
    struct tensor *(*add)(struct graph *graph, int variant, enum type type);
} examples[] = {
#define OP(name) {&op_##name, name##_example},
#include "ops/ops.def"
#undef OP
};

struct tensor *example_add(struct graph *graph, const struct op *op, int variant, enum type type)
{
    for (size_t i = 0; i < COUNT(examples); i++)
        if (examples[i].op == op)
            return examples[i].add(graph, variant, type);
    graph_fail(graph, PLIM_INTERNAL, "%s is not in ops.def", op->name);
    return NULL;
}

/* ---- what they are made of ------------------------------------------------ */

struct tensor *trinary(struct graph *graph, const struct op *op, struct tensor *a, struct tensor *b, struct tensor *c)
{
    return graph_add(graph, op, (struct tensor *[]){a, b, c}, 3, NULL, 0);
}

struct tensor *example_input(struct graph *graph, const char *name, enum type type, int rank, const int64_t *row)
{
    struct shape shape = {.rank = rank + 1, .dim = {graph->batch}};
    for (int i = 0; i < rank; i++)
        shape.dim[i + 1] = row[i];
    return graph_input(graph, name, 0, type, shape);
}

struct tensor *example_plain(struct graph *graph, int variant, enum type type, const char *name)
{
    switch (variant) {
    case 0:
        return example_input(graph, name, type, ROW(7));
    case 1:
        return example_input(graph, name, type, 0, NULL);
    case 2:
        return example_input(graph, name, type, ROW(3, 2, 37));
    default:
        return NULL;
    }
}

/* Every type that labels come in, [N] and [N, 1]. */
struct tensor *example_labels(struct tensor **scores, struct graph *graph, int variant, enum type type)
{
    static const struct {
        enum type type;
        int rank;
        int64_t classes;
        const char *name;
    } cases[] = {
        {TYPE_I64, 0, 10, "label:10"}, {TYPE_U8, 1, 3, "label:3"},  {TYPE_F32, 1, 1, "label:1"},
        {TYPE_I32, 0, 37, "label:37"}, {TYPE_I16, 0, 5, "label:5"}, {TYPE_I8, 1, 17, "label:17"},
    };
    const int most = COUNT(cases);
    if (variant == most) { /* a label for each of several rows */
        *scores = example_input(graph, "scores", type, ROW(2, 3, 7));
        return example_input(graph, "label:7", TYPE_I32, ROW(2, 3));
    }
    if (variant > most)
        return NULL;
    *scores = example_input(graph, "scores", type, ROW(cases[variant].classes));
    return example_input(graph, cases[variant].name, cases[variant].type, cases[variant].rank, (int64_t[]){1});
}

struct tensor *example_targets(struct tensor **scores, struct graph *graph, int variant, enum type type,
                               const char *name)
{
    static const struct {
        enum type type;
        int rank;
        int64_t width;
    } cases[] = {{TYPE_F32, 0, 1}, {TYPE_U8, 1, 1}, {TYPE_F32, 1, 7}, {TYPE_I64, 1, 3}, {TYPE_F64, 1, 2}};
    if (variant >= COUNT(cases))
        return NULL;
    *scores = example_input(graph, name, type, ROW(cases[variant].width));
    return example_input(graph, "label:2", cases[variant].type, cases[variant].rank, &cases[variant].width);
}

const struct shape update_shapes[] = {{2, {7, 5}}, {1, {13}}, {1, {1}}, {4, {3, 2, 1, 9}}, {2, {1, 40}}};
const int update_shapes_count = COUNT(update_shapes);
