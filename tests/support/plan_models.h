/* plan_models.h - small training and evaluation graphs for the tests of plan
   and machine: an MLP and a CNN with a heavy dense layer, all built from ops. */
#ifndef TESTS_PLAN_MODELS_H
#define TESTS_PLAN_MODELS_H

#include <stdio.h>
#include <string.h>

#include "base/numbers/random.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define MOST_MADE 128 /* weights */

struct made {
    struct tensor *loss;
    struct tensor *weight[MOST_MADE];
    int weight_count;
    bool plain; /* not fused */
};

static inline struct shape rank_1(int64_t a)
{
    return (struct shape){1, {a}};
}

static inline struct shape rank_2(int64_t a, int64_t b)
{
    return (struct shape){2, {a, b}};
}

static inline struct shape rank_4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){4, {a, b, c, d}};
}

static inline struct tensor *made_weight(struct made *made, struct graph *graph, const char *name, struct shape shape)
{
    return made->weight[made->weight_count++] = graph_weight(graph, name, TYPE_F32, shape, true);
}

static inline struct tensor *made_dense(struct made *made, struct graph *graph, const char *layer, struct tensor *x,
                                        int64_t units)
{
    char name[64];
    graph->layer = layer;
    snprintf(name, sizeof(name), "%s/kernel", layer);
    struct tensor *w = made_weight(made, graph, name, rank_2(x->shape.dim[1], units));
    snprintf(name, sizeof(name), "%s/bias", layer);
    struct tensor *b = made_weight(made, graph, name, rank_1(units));
    return graph_add(graph, &op_matmul, (struct tensor *[]){x, w, b}, 3, NULL, 0);
}

static inline struct tensor *made_conv(struct made *made, struct graph *graph, const char *layer, struct tensor *x,
                                       int64_t filters)
{
    struct conv_attributes attributes = {.stride = {1, 1}};
    char name[64];
    graph->layer = layer;
    snprintf(name, sizeof(name), "%s/kernel", layer);
    struct tensor *k = made_weight(made, graph, name, rank_4(3, 3, x->shape.dim[3], filters));
    snprintf(name, sizeof(name), "%s/bias", layer);
    struct tensor *b = made_weight(made, graph, name, rank_1(filters));
    x = graph_add(graph, &op_conv2d, (struct tensor *[]){x, k, b}, 3, &attributes, sizeof(attributes));
    return unary(graph, &op_relu, x);
}

static inline struct tensor *made_pool(struct graph *graph, const char *layer, struct tensor *x)
{
    struct pool_attributes attributes = {.window = {2, 2}, .stride = {2, 2}};
    graph->layer = layer;
    return graph_add(graph, &op_max_pool, &x, 1, &attributes, sizeof(attributes));
}

static inline void made_update(struct graph *graph, struct tensor *w, struct tensor *g, struct tensor *control)
{
    struct update_attributes attributes = {.beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7};
    char name[96];
    snprintf(name, sizeof(name), "%s/momentum", w->name);
    struct tensor *m = graph_state(graph, name, TYPE_F32, w->shape);
    snprintf(name, sizeof(name), "%s/velocity", w->name);
    struct tensor *v = graph_state(graph, name, TYPE_F32, w->shape);
    graph_add(graph, &op_adam, (struct tensor *[]){w, g, control, m, v}, 5, &attributes, sizeof(attributes));
}

/* Gradients of all weights, adam for each, the step counted. */
static inline void made_backward(struct made *made, struct graph *graph)
{
    struct tensor *gradient[MOST_MADE];
    plim_error error;
    if (gradient_append(graph, made->loss, made->weight, made->weight_count, gradient, &error) != PLIM_OK) {
        graph_fail(graph, PLIM_INTERNAL, "%s", error.message);
        return;
    }
    graph->backward = true;
    graph->layer = "optimizer";
    struct tensor *iteration = graph_named(graph, "optimizer/iteration"); /* there, where noise is drawn */
    if (!iteration)
        iteration = graph_state(graph, "optimizer/iteration", TYPE_I64, rank_1(1));
    struct tensor *rate = graph_state(graph, "optimizer/learning_rate", TYPE_F32, rank_1(1));
    struct tensor *control = binary(graph, &op_step_control, rate, iteration);
    for (int i = 0; i < made->weight_count; i++)
        if (gradient[i]) /* not of one that the loss does not hang on */
            made_update(graph, made->weight[i], gradient[i], control);
    unary(graph, &op_count_step, iteration);
}

static inline void made_finish(struct made *made, struct graph *graph, struct tensor *losses, bool train)
{
    graph->layer = "loss";
    made->loss = unary(graph, &op_batch_mean, losses);
    graph_result(graph, made->loss, "loss");
    plim_error error;
    if (!made->plain && fuse(graph, &error) != PLIM_OK)
        graph_fail(graph, PLIM_INTERNAL, "%s", error.message);
    if (train && !graph->failed)
        made_backward(made, graph);
}

/* x[N, in] -> dense ReLU -> dense 1, binary cross-entropy from logits. */
static inline struct made mlp_make(struct graph *graph, struct budget *budget, int64_t batch, int64_t in,
                                   int64_t hidden, bool train)
{
    struct made made = {0};
    graph_init(graph, budget, batch);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_2(batch, in));
    struct tensor *y = graph_input(graph, "y", 1, TYPE_F32, rank_1(batch));
    x = unary(graph, &op_relu, made_dense(&made, graph, "dense", x, hidden));
    x = made_dense(&made, graph, "dense_1", x, 1);
    made_finish(&made, graph, binary(graph, &op_sigmoid_crossentropy, x, y), train);
    return made;
}

/* 20x20x2 -> conv 4 -> pool -> conv 32 -> pool -> flatten -> dense 256 (heavy) -> dense 10. */
static inline struct made cnn_build(struct graph *graph, struct budget *budget, int64_t batch, bool train, bool plain)
{
    struct made made = {.plain = plain};
    graph_init(graph, budget, batch);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_4(batch, 20, 20, 2));
    struct tensor *y = graph_input(graph, "y", 1, TYPE_U8, rank_1(batch));
    x = made_pool(graph, "max_pooling2d", made_conv(&made, graph, "conv2d", x, 4));
    x = made_pool(graph, "max_pooling2d_1", made_conv(&made, graph, "conv2d_1", x, 32));
    graph->layer = "flatten";
    x = unary(graph, &op_flatten, x);
    x = unary(graph, &op_relu, made_dense(&made, graph, "dense", x, 256));
    x = made_dense(&made, graph, "dense_1", x, 10);
    made_finish(&made, graph, binary(graph, &op_softmax_crossentropy, x, y), train);
    return made;
}

static inline struct made cnn_make(struct graph *graph, struct budget *budget, int64_t batch, bool train)
{
    return cnn_build(graph, budget, batch, train, false);
}

#endif
