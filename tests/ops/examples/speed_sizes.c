/* speed_sizes.c - the sizes that models have of products, attention and others, and the table of ops that have some. */
#include "examples.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/count.h"
#include "model_convolutions.h"

/* Dense layers: y[N, T, out] = x[N, T, in] . w; T 0: there is no such axis. */
static const struct {
    const char *model;
    int64_t batch, tokens, in, out;
} products[] = {
    {"gpt2", 1, 1024, 768, 2304},    {"gpt2", 1, 1024, 768, 768}, {"gpt2", 1, 1024, 768, 3072},
    {"gpt2", 1, 1024, 3072, 768},    {"mlp", 10000, 0, 100, 64},  {"cnn", 32, 0, 12544, 128},
    {"resnet50", 32, 0, 2048, 1000},
};

/* Of GPT-2 124M; a vocabulary of the common length would take 150 MB alone. */
enum { TOKENS = 1024, HEADS = 12, DEPTH = 64, WIDTH = 768, CLASSES = 8192 };

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static struct tensor *rows(struct graph *graph, const char *name, enum type type, int number, int64_t last)
{
    int64_t batch = products[number].batch, tokens = products[number].tokens;
    return graph_input(graph, name, 0, type, tokens ? SHAPE(batch, tokens, last) : SHAPE(batch, last));
}

static void say(struct speed *line, struct graph *graph, int number, const char *what)
{
    snprintf(line->name, sizeof line->name, "%s %s %lld -> %lld", products[number].model, what,
             (long long)products[number].in, (long long)products[number].out);
    graph->batch = products[number].batch;
}

/* All of them forward, then all of them backward to the data. */
static struct tensor *matmul_speed(struct graph *graph, struct speed *line, int variant, enum type type)
{
    if (variant >= 2 * COUNT(products))
        return NULL;
    bool back = variant >= COUNT(products);
    int number = variant % COUNT(products);
    int64_t in = products[number].in, out = products[number].out;
    struct matmul_attributes attributes = {.transposed = back};
    say(line, graph, number, back ? "data" : "dense");
    struct tensor *x = rows(graph, "x", type, number, back ? out : in);
    struct tensor *w = graph_weight(graph, "w", type, SHAPE(in, out), true);
    return graph_add(graph, &op_matmul, (struct tensor *[]){x, w}, 2, &attributes, sizeof attributes);
}

static struct tensor *matmul_weight_gradient_speed(struct graph *graph, struct speed *line, int variant, enum type type)
{
    if (variant >= COUNT(products))
        return NULL;
    say(line, graph, variant, "weights");
    struct tensor *x = rows(graph, "x", type, variant, products[variant].in);
    struct tensor *dy = rows(graph, "dy", type, variant, products[variant].out);
    return binary(graph, &op_matmul_weight_gradient, x, dy);
}

/* Scores of all heads, [T, d] . [d, T], and weighted values, [T, T] . [T, d]. */
static struct tensor *batch_matmul_speed(struct graph *graph, struct speed *line, int variant, enum type type)
{
    struct batch_matmul_attributes attributes = {.transpose_b = variant == 0};
    int64_t tokens = TOKENS / 4;
    if (variant > 1)
        return NULL;
    snprintf(line->name, sizeof line->name, "%s of %d heads, %lld tokens", variant ? "values" : "scores", HEADS,
             (long long)tokens);
    graph->batch = 4;
    struct tensor *a = graph_input(graph, "a", 0, type, SHAPE(4, HEADS, tokens, variant ? tokens : DEPTH));
    struct tensor *b = graph_input(graph, "b", 1, type, SHAPE(4, HEADS, tokens, DEPTH));
    return graph_add(graph, &op_batch_matmul, (struct tensor *[]){a, b}, 2, &attributes, sizeof attributes);
}

static struct tensor *batch_matmul_sum_speed(struct graph *graph, struct speed *line, int variant, enum type type)
{
    struct batch_matmul_attributes attributes = {.transpose_a = 1};
    if (variant > 0)
        return NULL;
    snprintf(line->name, sizeof line->name, "%d matrices, 256 x 128 and 256 x 256", HEADS);
    graph->batch = 8;
    struct tensor *a = graph_input(graph, "a", 0, type, SHAPE(8, HEADS, 256, 128));
    struct tensor *b = graph_input(graph, "b", 1, type, SHAPE(8, HEADS, 256, 256));
    return graph_add(graph, &op_batch_matmul_sum, (struct tensor *[]){a, b}, 2, &attributes, sizeof attributes);
}

/* Causal: half of the scores are not needed. */
static struct tensor *attend(struct graph *graph, struct speed *line, int variant, enum type type, bool backward)
{
    struct attention_attributes attributes = {.causal = 1};
    struct tensor *x[8] = {0};
    if (variant > 0)
        return NULL;
    snprintf(line->name, sizeof line->name, "gpt2 causal, %d heads of %d, %d tokens", HEADS, DEPTH, TOKENS);
    line->share = 0.5;
    graph->batch = 1;
    for (int i = 0; i < (backward ? 8 : 3); i++)
        if (i != 3 && i != 4)
            x[i] = graph_input(graph, "positive", i, i == 6 ? wide_type(type) : type,
                               i == 6 ? SHAPE(1, HEADS, TOKENS) : SHAPE(1, TOKENS, HEADS, DEPTH));
    return graph_add(graph, backward ? &op_attention_gradient : &op_attention, x, backward ? 8 : 5, &attributes,
                     sizeof attributes);
}

static struct tensor *attention_speed(struct graph *graph, struct speed *line, int variant, enum type type)
{
    return attend(graph, line, variant, type, false);
}

static struct tensor *attention_gradient_speed(struct graph *graph, struct speed *line, int variant, enum type type)
{
    return attend(graph, line, variant, type, true);
}

static struct tensor *classify(struct graph *graph, struct speed *line, int variant, enum type type, bool backward)
{
    char labels[32];
    if (variant > 0)
        return NULL;
    snprintf(line->name, sizeof line->name, "%d tokens of %d, %d classes", TOKENS, WIDTH, CLASSES);
    snprintf(labels, sizeof labels, "label:%d", CLASSES);
    graph->batch = 1;
    struct tensor *inputs[] = {
        graph_input(graph, "h", 0, type, SHAPE(1, TOKENS, WIDTH)),
        graph_weight(graph, "w", type, SHAPE(CLASSES, WIDTH), true),
        graph_input(graph, labels, 1, TYPE_I32, SHAPE(1, TOKENS)),
        backward ? graph_input(graph, "positive:sums", 2, wide_type(type), SHAPE(1, TOKENS)) : NULL,
        backward ? graph_input(graph, "dloss", 3, wide_type(type), SHAPE(1, TOKENS)) : NULL,
    };
    const struct vocabulary_attributes attributes = {.rounds = backward && type == TYPE_BF16};
    return graph_add(graph, backward ? &op_vocabulary_crossentropy_gradient : &op_vocabulary_crossentropy, inputs,
                     backward ? 5 : 3, &attributes, sizeof attributes);
}

static struct tensor *vocabulary_crossentropy_speed(struct graph *graph, struct speed *line, int variant,
                                                    enum type type)
{
    return classify(graph, line, variant, type, false);
}

static struct tensor *vocabulary_crossentropy_gradient_speed(struct graph *graph, struct speed *line, int variant,
                                                             enum type type)
{
    return classify(graph, line, variant, type, true);
}

static struct tensor *spectral_sums_speed(struct graph *graph, struct speed *line, int variant, enum type type)
{
    static const struct {
        const char *name;
        struct shape shape;
    } sizes[] = {{"discriminator 3x3 256 -> 256", {4, {3, 3, 256, 256}}}, {"dense 4096 -> 1024", {2, {4096, 1024}}}};
    if (variant >= COUNT(sizes))
        return NULL;
    graph->batch = 1;
    snprintf(line->name, sizeof line->name, "%s", sizes[variant].name);
    struct tensor *w = graph_weight(graph, "w", type, sizes[variant].shape, true);
    return binary(graph, &op_spectral_sums, w, graph_weight(graph, "u", type, shape_2(1, last_dim(w)), false));
}

/* ---- copies: their attributes say the whole shape, so examples cannot be stretched ---- */

struct remap_size {
    char name[80];
    int64_t batch;
    struct shape row;
    struct axis_map axis[MOST_AXES]; /* the first is the batch's */
};

static struct tensor *remap_speed(struct graph *graph, struct speed *line, int variant, enum type type,
                                  const struct op *op, const struct remap_size *size)
{
    if (variant > 0)
        return NULL;
    memcpy(line->name, size->name, sizeof line->name);
    graph->batch = size->batch;
    struct tensor *x = example_input(graph, "x", type, size->row.rank, size->row.dim);
    return remap(graph, op, x, size->axis, size->row.rank + 1, 0);
}

#define REMAP(name, ...)                                                                                               \
    static struct tensor *name##_speed(struct graph *graph, struct speed *line, int variant, enum type type)           \
    {                                                                                                                  \
        static const struct remap_size size = {__VA_ARGS__};                                                           \
        return remap_speed(graph, line, variant, type, &op_##name, &size);                                             \
    }
REMAP(slice, "224 out of 256, 3 channels", 8, {3, {256, 256, 3}},
      {{0}, {AXIS_SLICE, 224, 16, 1}, {AXIS_SLICE, 224, 16, 1}})
REMAP(pad, "resnet50 112 by 1, 64 channels", 2, {3, {112, 112, 64}},
      {{0}, {AXIS_PAD, 114, 1, 0}, {AXIS_PAD, 114, 1, 0}})
REMAP(tile, "1024 values 64 times", 32, {2, {1, 1024}}, {{0}, {AXIS_TILE, 64, 0, 0}})
REMAP(repeat, "32 to 64, 128 channels", 4, {3, {32, 32, 128}}, {{0}, {AXIS_REPEAT, 64, 0, 2}, {AXIS_REPEAT, 64, 0, 2}})
REMAP(roll, "swin 56 by 3, 96 channels", 4, {3, {56, 56, 96}}, {{0}, {AXIS_ROLL, 56, -3, 0}, {AXIS_ROLL, 56, -3, 0}})
REMAP(resize_nearest, "32 to 64, 128 channels", 4, {3, {32, 32, 128}},
      {{0}, {AXIS_NEAREST, 64, 0, 0}, {AXIS_NEAREST, 64, 0, 0}})

/* ---- the table ------------------------------------------------------------ */

#define SPEED(name)                                                                                                    \
    {                                                                                                                  \
        &op_##name, name##_speed                                                                                       \
    }
static const struct given {
    const struct op *op;
    struct tensor *(*add)(struct graph *graph, struct speed *line, int variant, enum type type);
} table[] = {
    SPEED(matmul),
    SPEED(matmul_weight_gradient),
    SPEED(batch_matmul),
    SPEED(batch_matmul_sum),
    SPEED(attention),
    SPEED(attention_gradient),
    SPEED(vocabulary_crossentropy),
    SPEED(vocabulary_crossentropy_gradient),
    SPEED(spectral_sums),
    SPEED(slice),
    SPEED(pad),
    SPEED(tile),
    SPEED(repeat),
    SPEED(roll),
    SPEED(resize_nearest),
};

static const struct given *given_of(const struct op *op)
{
    for (size_t i = 0; i < COUNT(table); i++)
        if (table[i].op == op)
            return &table[i];
    return NULL;
}

bool speed_is_given(const struct op *op)
{
    enum conv_role role;
    return given_of(op) || conv_family_of(&role, op);
}

struct tensor *speed_add(struct graph *graph, struct speed *line, const struct op *op, int variant, enum type type)
{
    const struct given *given = given_of(op);
    return given ? given->add(graph, line, variant, type) : model_convolution_speed(graph, line, op, variant, type);
}
