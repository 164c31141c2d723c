/* examples_shape.c - examples of the ops of src/ops/shape/. */
#include "base/numbers/count.h"
#include "examples.h"

#include <string.h>

/* ---- arrange --------------------------------------------------------------- */

struct tensor *transpose_example(struct graph *graph, int variant, enum type type)
{
    static const struct {
        struct shape row;
        int axes[MOST_AXES];
    } cases[] = {
        {{2, {5, 37}}, {0, 2, 1}},
        {{3, {3, 4, 5}}, {0, 3, 1, 2}},
        {{3, {3, 4, 5}}, {0, 2, 1, 3}},
        {{1, {7}}, {0, 1}},
        {{4, {2, 3, 1, 5}}, {0, 4, 2, 3, 1}},
        {{2, {35, 33}}, {0, 2, 1}},
        {{5, {2, 3, 2, 3, 2}}, {0, 5, 3, 4, 1, 2}},
    };
    if (variant >= COUNT(cases))
        return NULL;
    struct tensor *x = example_input(graph, "x", type, cases[variant].row.rank, cases[variant].row.dim);
    return transpose(graph, x, cases[variant].axes);
}

struct tensor *concatenate_example(struct graph *graph, int variant, enum type type)
{
    static const struct {
        int axis, count;
        struct shape row;
        int64_t extent[MOST_INPUTS]; /* of the axis, by input */
    } cases[] = {
        {1, 2, {1, {0}}, {5, 3}},       {3, 3, {3, {2, 3, 0}}, {16, 1, 7}},
        {1, 2, {3, {0, 3, 2}}, {4, 2}}, {2, 4, {3, {2, 0, 1}}, {1, 2, 3, 4}},
        {1, 1, {1, {0}}, {6}},
    };
    if (variant >= COUNT(cases))
        return NULL;
    struct concatenate_attributes attributes = {cases[variant].axis};
    struct tensor *x[MOST_INPUTS];
    for (int i = 0; i < cases[variant].count; i++) {
        struct shape row = cases[variant].row;
        row.dim[cases[variant].axis - 1] = cases[variant].extent[i];
        x[i] = example_input(graph, "x", type, row.rank, row.dim);
    }
    return graph_add(graph, &op_concatenate, x, cases[variant].count, &attributes, sizeof(attributes));
}

/* ---- embedding ------------------------------------------------------------- */

static const struct {
    enum type type;
    const char *name;
    int rank;
    int64_t row[2], rows, width;
} embedding_examples[] = {
    {TYPE_I64, "index:7", 1, {5}, 7, 3},       {TYPE_U8, "index:2", 0, {0}, 9, 1},
    {TYPE_I32, "index:40", 2, {3, 4}, 41, 19}, {TYPE_F32, "index:11", 1, {1}, 11, 17},
    {TYPE_I16, "index:3", 1, {9}, 3, 64},
};

static struct tensor *example_ids(struct graph *graph, int variant)
{
    return example_input(graph, embedding_examples[variant].name, embedding_examples[variant].type,
                         embedding_examples[variant].rank, embedding_examples[variant].row);
}

struct tensor *embedding_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(embedding_examples))
        return NULL;
    struct shape shape = shape_2(embedding_examples[variant].rows, embedding_examples[variant].width);
    struct tensor *ids = example_ids(graph, variant);
    return binary(graph, &op_embedding, ids, graph_weight(graph, "w", type, shape, true));
}

struct tensor *embedding_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(embedding_examples))
        return NULL;
    struct embedding_gradient_attributes attributes = {embedding_examples[variant].rows};
    int64_t row[3] = {embedding_examples[variant].row[0], embedding_examples[variant].row[1]};
    row[embedding_examples[variant].rank] = embedding_examples[variant].width;
    struct tensor *ids = example_ids(graph, variant);
    struct tensor *dy = example_input(graph, "dy", type, embedding_examples[variant].rank + 1, row);
    return graph_add(graph, &op_embedding_gradient, (struct tensor *[]){ids, dy}, 2, &attributes, sizeof(attributes));
}

/* ---- gather ---------------------------------------------------------------- */

static const struct {
    struct shape row, index_row;
    struct gather_attributes attributes;
    const char *name;
    int64_t extent; /* of scatter_add */
    enum type type;
} gather_examples[] = {
    {{2, {6, 5}}, {1, {4}}, {1, 0}, "index:6", 9, TYPE_I32},
    {{1, {7}}, {0, {0}}, {1, 0}, "index:7", 7, TYPE_I64},
    {{2, {3, 8}}, {2, {3, 2}}, {2, 1}, "index:8", 8, TYPE_I64},
    {{3, {4, 3, 2}}, {3, {5, 3, 2}}, {1, 1}, "index:4", 4, TYPE_U8},
    {{3, {2, 5, 3}}, {1, {6}}, {2, 0}, "index:5", 6, TYPE_F32},
};

struct tensor *gather_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(gather_examples))
        return NULL;
    struct tensor *x =
        example_input(graph, "x", type, gather_examples[variant].row.rank, gather_examples[variant].row.dim);
    struct tensor *index =
        example_input(graph, gather_examples[variant].name, gather_examples[variant].type,
                      gather_examples[variant].index_row.rank, gather_examples[variant].index_row.dim);
    return graph_add(graph, &op_gather, (struct tensor *[]){x, index}, 2, &gather_examples[variant].attributes,
                     sizeof(gather_examples[variant].attributes));
}

/* The values have the shape that the looked up ones have. */
struct tensor *scatter_add_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(gather_examples))
        return NULL;
    struct scatter_attributes attributes = {gather_examples[variant].attributes, gather_examples[variant].extent};
    struct shape row = gather_examples[variant].row, index_row = gather_examples[variant].index_row;
    int at = (int)attributes.gather.axis - 1;
    row.dim[at] = attributes.gather.along ? index_row.dim[at] : index_row.rank ? index_row.dim[0] : 1;
    struct tensor *values = example_input(graph, "values", type, row.rank, row.dim);
    struct tensor *index = example_input(graph, gather_examples[variant].name, gather_examples[variant].type,
                                         index_row.rank, index_row.dim);
    return graph_add(graph, &op_scatter_add, (struct tensor *[]){values, index}, 2, &attributes, sizeof(attributes));
}

/* ---- mask ------------------------------------------------------------------ */

/* Rows of 9 steps, of 1, of 7 x 3, of 2 x 3 x 4. Masks leave a step: a mean of none is not a number. */
static struct tensor *example_steps(struct graph *graph, int variant, enum type type, struct tensor **mask)
{
    static const int64_t rows[][3] = {{9, 0, 0}, {1, 0, 0}, {7, 3, 0}, {2, 3, 4}};
    static const int ranks[] = {1, 1, 2, 3};
    if (mask)
        *mask = variant < 4
                    ? example_input(graph, rows[variant][0] > 5 ? "index:4" : "mask", TYPE_BOOL, 1, rows[variant])
                    : NULL;
    return variant < 4 ? example_input(graph, "x", type, ranks[variant], rows[variant]) : NULL;
}

struct tensor *mask_of_example(struct graph *graph, int variant, enum type type)
{
    static const enum type types[] = {TYPE_I32, TYPE_I64, TYPE_U8, TYPE_F32};
    struct mask_of_attributes attributes = {.value = variant == 3 ? 1 : 0, .over_last = variant > 3};
    (void)type;
    if (variant > 6)
        return NULL;
    struct tensor *x = variant <= 3   ? example_input(graph, "index:3", types[variant], ROW(9))
                       : variant == 4 ? example_input(graph, "index:2", TYPE_F32, ROW(9, 2))
                       : variant == 5 ? example_input(graph, "index:2", TYPE_I32, ROW(4, 3))
                                      : example_input(graph, "index:2", TYPE_F32, ROW(3, 1));
    return graph_add(graph, &op_mask_of, &x, 1, &attributes, sizeof(attributes));
}

struct tensor *mask_rows_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *mask, *x = example_steps(graph, variant, type, &mask);
    return x ? binary(graph, &op_mask_rows, x, mask) : NULL;
}

struct tensor *mask_count_example(struct graph *graph, int variant, enum type type)
{
    (void)type;
    if (variant > 1)
        return NULL;
    return unary(graph, &op_mask_count, example_input(graph, "index:2", TYPE_BOOL, ROW(variant ? 1 : 37)));
}

struct tensor *sum_time_example(struct graph *graph, int variant, enum type type)
{
    struct sum_time_attributes attributes = {.mean = variant / 4 % 2};
    bool masked = variant < 8;
    struct tensor *mask = NULL,
                  *x = variant < 16 ? example_steps(graph, variant % 4, type, masked ? &mask : NULL) : NULL;
    if (!x)
        return NULL;
    return graph_add(graph, &op_sum_time, (struct tensor *[]){x, mask}, 2, &attributes, sizeof(attributes));
}

struct tensor *sum_time_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct sum_time_attributes attributes = {.mean = variant % 2, .steps = variant < 4 ? 5 : 1};
    bool masked = variant & 2;
    if (variant > 7) /* of a masked mean: sum_time's own examples */
        return NULL;
    struct tensor *dy =
        variant < 4 ? example_input(graph, "dy", type, ROW(3)) : example_input(graph, "dy", type, 0, NULL);
    struct tensor *mask = masked ? example_input(graph, "index:2", TYPE_BOOL, ROW(attributes.steps)) : NULL;
    if (masked)
        attributes.mean = 0;
    return graph_add(graph, &op_sum_time_gradient, (struct tensor *[]){dy, mask}, 2, &attributes, sizeof(attributes));
}

/* ---- one_hot --------------------------------------------------------------- */

struct tensor *one_hot_example(struct graph *graph, int variant, enum type type)
{
    static const struct {
        struct one_hot_attributes attributes;
        struct shape row;
        enum type type;
        const char *name;
    } cases[] = {
        {{5, ONE_HOT}, {1, {3}}, TYPE_I32, "index:5"},       {{3, ONE_HOT}, {0, {0}}, TYPE_U8, "index:4"},
        {{6, ONE_HOT_MULTI}, {1, {4}}, TYPE_I64, "index:6"}, {{7, ONE_HOT_COUNT}, {2, {2, 9}}, TYPE_F32, "index:7"},
        {{4, ONE_HOT_COUNT}, {0, {0}}, TYPE_I16, "index:4"},
    };
    (void)type;
    if (variant >= COUNT(cases))
        return NULL;
    struct tensor *index =
        example_input(graph, cases[variant].name, cases[variant].type, cases[variant].row.rank, cases[variant].row.dim);
    return graph_add(graph, &op_one_hot, &index, 1, &cases[variant].attributes, sizeof(cases[variant].attributes));
}

struct tensor *bucketize_example(struct graph *graph, int variant, enum type type)
{
    struct bucketize_attributes attributes = {3, {-0.5, 0, 0.25}};
    if (variant > 2)
        return NULL;
    if (variant == 1)
        attributes = (struct bucketize_attributes){1, {50}};
    struct tensor *x = example_input(graph, "x", variant == 1 ? TYPE_I32 : type, ROW(4, 5));
    return graph_add(graph, &op_bucketize, &x, 1, &attributes, sizeof(attributes));
}

/* ---- remap ----------------------------------------------------------------- */

struct remap_case {
    struct shape row;
    struct axis_map axis[MOST_AXES - 1]; /* after the batch; extent 0: kept */
    double value;
};

static struct tensor *remap_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                    const struct remap_case *cases, int count)
{
    if (variant >= count)
        return NULL;
    const struct remap_case *c = &cases[variant];
    struct tensor *x = example_input(graph, "x", type, c->row.rank, c->row.dim);
    struct axis_map axis[MOST_AXES] = {{0}};
    memcpy(axis + 1, c->axis, sizeof(c->axis));
    return remap(graph, op, x, axis, c->row.rank + 1, c->value);
}

#define REMAP_CASES(...)                                                                                               \
    static const struct remap_case cases[] = {__VA_ARGS__};                                                            \
    const int count = COUNT(cases)

struct tensor *slice_example(struct graph *graph, int variant, enum type type)
{
    REMAP_CASES({{1, {9}}, {{AXIS_SLICE, 4, 2, 1}}, 0}, {{1, {9}}, {{AXIS_SLICE, 9, 8, -1}}, 0},
                {{3, {7, 5, 3}}, {{AXIS_SLICE, 3, 1, 2}, {AXIS_SLICE, 5, 4, -1}}, 0},
                {{3, {4, 5, 6}}, {{AXIS_SLICE, 2, 1, 1}, {0}, {AXIS_SLICE, 3, 5, -2}}, 0},
                {{2, {1, 1}}, {{AXIS_SLICE, 1, 0, 1}}, 0}, {{2, {6, 4}}, {{AXIS_SLICE, 3, 2, 1}}, 0});
    return remap_example(graph, variant, type, &op_slice, cases, count);
}

struct tensor *pad_example(struct graph *graph, int variant, enum type type)
{
    REMAP_CASES({{3, {3, 4, 2}}, {{AXIS_PAD, 6, 1, 0}, {AXIS_PAD, 7, 0, 0}}, 0},
                {{1, {5}}, {{AXIS_REFLECT, 12, 4, 0}}, 0},
                {{2, {4, 3}}, {{AXIS_SYMMETRIC, 12, 4, 0}, {AXIS_SYMMETRIC, 5, 0, 0}}, 0},
                {{2, {2, 3}}, {{0}, {AXIS_PAD, 8, 3, 0}}, -1.5},
                {{3, {3, 3, 5}}, {{AXIS_REFLECT, 6, 1, 0}, {AXIS_PAD, 4, 1, 0}}, 2});
    return remap_example(graph, variant, type, &op_pad, cases, count);
}

struct tensor *tile_example(struct graph *graph, int variant, enum type type)
{
    REMAP_CASES({{2, {3, 2}}, {{AXIS_TILE, 6, 0, 0}, {AXIS_TILE, 6, 0, 0}}, 0}, {{1, {1}}, {{AXIS_TILE, 5, 0, 0}}, 0},
                {{2, {1, 19}}, {{AXIS_TILE, 4, 0, 0}}, 0}, {{1, {7}}, {{AXIS_TILE, 7, 0, 0}}, 0});
    return remap_example(graph, variant, type, &op_tile, cases, count);
}

struct tensor *repeat_example(struct graph *graph, int variant, enum type type)
{
    REMAP_CASES({{3, {3, 2, 5}}, {{AXIS_REPEAT, 6, 0, 2}, {AXIS_REPEAT, 6, 0, 3}}, 0},
                {{1, {4}}, {{AXIS_REPEAT, 8, 0, 2}}, 0},
                {{4, {2, 1, 3, 17}}, {{AXIS_REPEAT, 2, 0, 1}, {AXIS_REPEAT, 4, 0, 4}, {AXIS_REPEAT, 6, 0, 2}}, 0});
    return remap_example(graph, variant, type, &op_repeat, cases, count);
}

struct tensor *roll_example(struct graph *graph, int variant, enum type type)
{
    REMAP_CASES({{2, {5, 3}}, {{AXIS_ROLL, 5, 2, 0}, {AXIS_ROLL, 3, -1, 0}}, 0},
                {{1, {4}}, {{AXIS_ROLL, 4, 103, 0}}, 0}, {{2, {7, 18}}, {{AXIS_ROLL, 7, -9, 0}}, 0});
    return remap_example(graph, variant, type, &op_roll, cases, count);
}

struct tensor *resize_nearest_example(struct graph *graph, int variant, enum type type)
{
    REMAP_CASES({{3, {3, 5, 2}}, {{AXIS_NEAREST, 7, 0, 0}, {AXIS_NEAREST, 3, 0, 0}}, 0},
                {{3, {4, 4, 1}}, {{AXIS_NEAREST, 1, 0, 0}, {AXIS_NEAREST, 9, 0, 0}}, 0});
    return remap_example(graph, variant, type, &op_resize_nearest, cases, count);
}

/* Every example of the ops above, the other way. */
struct tensor *remap_gradient_example(struct graph *graph, int variant, enum type type)
{
    REMAP_CASES(
        {{3, {7, 5, 3}}, {{AXIS_SLICE, 3, 1, 2}, {AXIS_SLICE, 5, 4, -1}}, 0},
        {{3, {3, 4, 2}}, {{AXIS_PAD, 6, 1, 0}, {AXIS_PAD, 7, 0, 0}}, 0}, {{1, {5}}, {{AXIS_REFLECT, 12, 4, 0}}, 0},
        {{2, {4, 3}}, {{AXIS_SYMMETRIC, 12, 4, 0}, {AXIS_SYMMETRIC, 5, 0, 0}}, 0},
        {{2, {3, 2}}, {{AXIS_TILE, 6, 0, 0}, {AXIS_TILE, 6, 0, 0}}, 0}, {{2, {1, 19}}, {{AXIS_TILE, 4, 0, 0}}, 0},
        {{3, {3, 2, 5}}, {{AXIS_REPEAT, 6, 0, 2}, {AXIS_REPEAT, 6, 0, 3}}, 0}, {{1, {4}}, {{AXIS_REPEAT, 8, 0, 2}}, 0},
        {{2, {5, 3}}, {{AXIS_ROLL, 5, 2, 0}, {AXIS_ROLL, 3, -1, 0}}, 0},
        {{3, {3, 5, 2}}, {{AXIS_NEAREST, 7, 0, 0}, {AXIS_NEAREST, 3, 0, 0}}, 0},
        {{3, {3, 3, 5}}, {{AXIS_REFLECT, 6, 1, 0}, {AXIS_PAD, 4, 1, 0}}, 2});
    if (variant >= count)
        return NULL;
    struct remap_gradient_attributes back = {.input = {cases[variant].row.rank + 1, {graph->batch}}};
    struct shape row = cases[variant].row;
    back.forward.axis[0].extent = graph->batch;
    for (int axis = 1; axis < back.input.rank; axis++) {
        struct axis_map map = cases[variant].axis[axis - 1];
        back.input.dim[axis] = row.dim[axis - 1];
        map.extent = row.dim[axis - 1] = map.extent ? map.extent : row.dim[axis - 1];
        back.forward.axis[axis] = map;
    }
    struct tensor *dy = example_input(graph, "dy", type, row.rank, row.dim);
    return graph_add(graph, &op_remap_gradient, &dy, 1, &back, sizeof(back));
}

/* ---- shape ----------------------------------------------------------------- */

struct tensor *flatten_example(struct graph *graph, int variant, enum type type)
{
    switch (variant) {
    case 0:
        return unary(graph, &op_flatten, example_input(graph, "x", type, ROW(3, 5, 2)));
    case 1:
        return unary(graph, &op_flatten, example_input(graph, "x", type, 0, NULL));
    case 2:
        return unary(graph, &op_flatten, example_input(graph, "x", TYPE_U8, ROW(7, 3)));
    default:
        return NULL;
    }
}

struct tensor *unflatten_example(struct graph *graph, int variant, enum type type)
{
    static const struct unflatten_attributes rows[] = {{{3, {3, 5, 2}}}, {{0, {0}}}, {{2, {1, 7}}}};
    if (variant > 2)
        return NULL;
    struct tensor *x = example_input(graph, "x", type, ROW(shape_count(&rows[variant].row)));
    return graph_add(graph, &op_unflatten, &x, 1, &rows[variant], sizeof(rows[variant]));
}

struct tensor *stop_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant > 3)
        return NULL;
    if (variant == 3)
        return unary(graph, &op_stop_gradient, graph_weight(graph, "w", type, shape_2(3, 5), true));
    return unary(graph, &op_stop_gradient, example_plain(graph, variant, type, "x"));
}
