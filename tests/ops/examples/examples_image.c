/* examples_image.c - examples of the ops of src/ops/image/. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- pooling --------------------------------------------------------------- */

/* Rests under the stride, overlap, padding on one side, a window to the rim; one and three axes; more cells than a
   byte counts; windows that differ. */
struct pooling_case {
    int axes;
    int64_t x[MOST_SPACE], channels;
    struct pool_attributes pool;
};

static const struct pooling_case pooling_cases[] = {
    {2, {4, 6}, 3, {{2, 2}, {2, 2}, {0, 0, 0, 0}, 0}},
    {2, {5, 7}, 2, {{2, 2}, {2, 2}, {0, 0, 0, 0}, 0}},
    {2, {6, 5}, 17, {{3, 2}, {1, 2}, {1, 0, 0, 1}, 0}},
    {2, {15, 17}, 1, {{15, 17}, {1, 1}, {0, 0, 0, 0}, 0}},
    {2, {9, 8}, 33, {{3, 3}, {2, 2}, {1, 1, 0, 1}, 0}},
    {1, {11}, 5, {{3}, {2}, {1, 1}, 0}},
    {3, {4, 3, 5}, 2, {{2, 3, 2}, {2, 1, 1}, {0, 0, 1, 1, 1, 0}, 0}},
    {2, {16, 17}, 3, {{16, 17}, {1, 1}, {0, 0, 0, 0}, 0}},
    {2, {7, 5}, 2, {{3, 5}, {0}, {0}, 1}},
    {2, {7, 5}, 18, {{2, 3}, {0}, {0}, 1}},
    {1, {300}, 2, {{1}, {0}, {0}, 1}},
    {1, {9}, 3, {{2}, {2}, {0, 1}, 0}},
    {2, {6, 6}, 8, {{2, 2}, {2, 2}, {0, 0, 0, 0}, 0}},
};

static const struct pooling_case any_place = {2, {6, 5}, 7, {{3, 2}, {1, 2}, {1, 0, 0, 1}, 0}};

static struct tensor *pooling_example_x(struct graph *graph, const struct pooling_case *c, enum type type)
{
    int64_t row[MOST_SPACE + 1];
    for (int i = 0; i < c->axes; i++)
        row[i] = c->x[i];
    row[c->axes] = c->channels;
    return example_input(graph, "x", type, c->axes + 1, row);
}

static struct tensor *example_dy(struct graph *graph, const struct pooling_case *c, const char *name, enum type type)
{
    int64_t row[MOST_SPACE + 1];
    const struct pool_attributes *pool = &c->pool;
    for (int i = 0; i < c->axes; i++)
        row[i] = pool->adaptive
                     ? pool->window[i]
                     : (c->x[i] + pool->pad[2 * i] + pool->pad[2 * i + 1] - pool->window[i]) / pool->stride[i] + 1;
    row[c->axes] = c->channels;
    return example_input(graph, name, type, c->axes + 1, row);
}

struct tensor *max_pool_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(pooling_cases))
        return NULL;
    const struct pooling_case *c = &pooling_cases[variant];
    struct tensor *x = pooling_example_x(graph, c, type);
    return graph_add(graph, &op_max_pool, &x, 1, &c->pool, sizeof(c->pool));
}

static struct pool_gradient_attributes example_backward(const struct pooling_case *c)
{
    struct pool_gradient_attributes back = {.pool = c->pool};
    for (int i = 0; i < MOST_SPACE; i++)
        back.input[i] = c->x[i];
    return back;
}

/* With the places that max_pool finds, and once with any that fit in the bits: some lie in padding, some nowhere. */
struct tensor *max_pool_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant > COUNT(pooling_cases))
        return NULL;
    const struct pooling_case *c = variant < COUNT(pooling_cases) ? &pooling_cases[variant] : &any_place;
    struct pool_gradient_attributes back = example_backward(c);
    struct tensor *dy = example_dy(graph, c, "dy", type),
                  *x = variant < COUNT(pooling_cases) ? pooling_example_x(graph, c, type) : NULL;
    if (!dy)
        return NULL;
    struct tensor *index = x ? graph_output(graph_add(graph, &op_max_pool, &x, 1, &c->pool, sizeof(c->pool)), 1)
                             : example_input(graph, "index:256", TYPE_U8, ROW(packed_bytes(shape_row(&dy->shape), 4)));
    return graph_add(graph, &op_max_pool_gradient, (struct tensor *[]){dy, index}, 2, &back, sizeof(back));
}

struct tensor *average_pool_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(pooling_cases))
        return NULL;
    const struct pooling_case *c = &pooling_cases[variant];
    struct tensor *x = pooling_example_x(graph, c, type);
    return graph_add(graph, &op_average_pool, &x, 1, &c->pool, sizeof(c->pool));
}

struct tensor *average_pool_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(pooling_cases))
        return NULL;
    const struct pooling_case *c = &pooling_cases[variant];
    struct pool_gradient_attributes back = example_backward(c);
    struct tensor *dy = example_dy(graph, c, "dy", type);
    return graph_add(graph, &op_average_pool_gradient, &dy, 1, &back, sizeof(back));
}

/* ---- random_tone ----------------------------------------------------------- */

static const struct random_tone_attributes random_tone_examples[] = {
    {TONE_CONTRAST, 0.5, 1.5, -0.8, 0.9, 3},
    {TONE_BRIGHTNESS, -0.4, 0.4, -0.75, 0.75, 4},
    {TONE_CONTRAST, 1.2, 1.2, -100, 100, 5},
};

static struct tensor *example_operand(struct graph *graph, int variant, enum type type, const char *name)
{
    return variant == 1 ? example_input(graph, name, type, ROW(4, 5, 1))
                        : example_input(graph, name, type, ROW(3, 4, 3));
}

struct tensor *random_tone_example(struct graph *graph, int variant, enum type type)
{
    if (variant > 2)
        return NULL;
    struct tensor *x = example_operand(graph, variant, type, "x");
    struct tensor *iteration = graph_state(graph, "iteration", TYPE_I64, shape_1(1));
    return graph_add(graph, &op_random_tone, (struct tensor *[]){x, iteration}, 2, &random_tone_examples[variant],
                     sizeof(random_tone_examples[variant]));
}

struct tensor *random_tone_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant > 2)
        return NULL;
    struct tensor *dy = example_operand(graph, variant, type, "dy"), *x = example_operand(graph, variant, type, "x");
    struct tensor *iteration = graph_state(graph, "iteration", TYPE_I64, shape_1(1));
    return graph_add(graph, &op_random_tone_gradient, (struct tensor *[]){dy, x, iteration}, 3,
                     &random_tone_examples[variant], sizeof(random_tone_examples[variant]));
}

/* ---- random_warp ----------------------------------------------------------- */

static const struct {
    int64_t from[3];
    struct random_warp_attributes attributes;
} random_warp_examples[] = {
    {{5, 7, 3}, {WARP_ROTATE, {-0.2, 0}, {0.2, 0}, 0, 0, WARP_REFLECT, 0, 0, {5, 7}, 3}},
    {{4, 6, 1}, {WARP_FLIP, {0, 0}, {1, 1}, 0, 0, WARP_CONSTANT, 1, 0, {4, 6}, 4}},
    {{6, 5, 2}, {WARP_ZOOM, {-0.5, 0}, {0.8, 0}, 1, 0, WARP_WRAP, 0, 0, {6, 5}, 5}},
    {{6, 5, 17}, {WARP_ZOOM, {0.1, -0.6}, {0.8, -0.1}, 0, 0, WARP_NEAREST, 0, 0, {6, 5}, 6}},
    {{7, 7, 2}, {WARP_TRANSLATE, {-0.5, -0.3}, {0.5, 0.3}, 0, 0, WARP_CONSTANT, 0, 1.5, {7, 7}, 7}},
    {{7, 8, 3}, {WARP_CROP, {0, 0}, {0, 0}, 0, 1, WARP_CONSTANT, 1, 0, {4, 5}, 8}},
    {{1, 9, 1}, {WARP_ROTATE, {0.1, 0}, {0.3, 0}, 0, 0, WARP_REFLECT, 1, 0, {1, 9}, 9}},
};

struct tensor *random_warp_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(random_warp_examples))
        return NULL;
    struct tensor *x = example_input(graph, "x", type, 3, random_warp_examples[variant].from);
    struct tensor *iteration = graph_state(graph, "iteration", TYPE_I64, shape_1(1));
    return graph_add(graph, &op_random_warp, (struct tensor *[]){x, iteration}, 2,
                     &random_warp_examples[variant].attributes, sizeof(random_warp_examples[variant].attributes));
}

struct tensor *random_warp_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(random_warp_examples))
        return NULL;
    const struct random_warp_attributes *forward = &random_warp_examples[variant].attributes;
    struct random_warp_gradient_attributes attributes = {
        *forward, {random_warp_examples[variant].from[0], random_warp_examples[variant].from[1]}};
    struct tensor *dy = example_input(graph, "dy", type,
                                      ROW(forward->size[0], forward->size[1], random_warp_examples[variant].from[2]));
    struct tensor *iteration = graph_state(graph, "iteration", TYPE_I64, shape_1(1));
    return graph_add(graph, &op_random_warp_gradient, (struct tensor *[]){dy, iteration}, 2, &attributes,
                     sizeof(attributes));
}

/* ---- resample_ops ---------------------------------------------------------- */

static const struct {
    int64_t from[3];
    struct resize_attributes attributes;
} resample_ops_examples[] = {
    {{3, 5, 2}, {RESAMPLE_BILINEAR, {6, 10}}}, {{7, 4, 1}, {RESAMPLE_BILINEAR, {3, 5}}},
    {{3, 5, 17}, {RESAMPLE_BICUBIC, {6, 10}}}, {{9, 2, 3}, {RESAMPLE_BICUBIC, {4, 7}}},
    {{1, 1, 3}, {RESAMPLE_BILINEAR, {2, 3}}},  {{6, 6, 2}, {RESAMPLE_BICUBIC, {1, 1}}},
};

struct tensor *resize_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(resample_ops_examples))
        return NULL;
    struct tensor *x = example_input(graph, "x", type, 3, resample_ops_examples[variant].from);
    return graph_add(graph, &op_resize, &x, 1, &resample_ops_examples[variant].attributes,
                     sizeof(resample_ops_examples[variant].attributes));
}

struct tensor *resize_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(resample_ops_examples))
        return NULL;
    const struct resize_attributes *forward = &resample_ops_examples[variant].attributes;
    const int64_t *from = resample_ops_examples[variant].from;
    struct resize_gradient_attributes attributes = {*forward, {from[0], from[1]}};
    struct tensor *dy = example_input(graph, "dy", type, ROW(forward->size[0], forward->size[1], from[2]));
    return graph_add(graph, &op_resize_gradient, &dy, 1, &attributes, sizeof(attributes));
}
