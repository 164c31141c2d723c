/* model_convolutions.h - every distinct convolution of ResNet-50 and of MobileNetV2 on pictures of 224 x 224, and
   depthwise kernels of 5 x 5; for the bench and for the test of what runs them. */
#ifndef BENCH_MODEL_CONVOLUTIONS_H
#define BENCH_MODEL_CONVOLUTIONS_H

#include "ops/ops.h"

struct model_convolution {
    const char *model;
    int64_t size, in, out, kernel, stride; /* square pictures and kernels */
    int64_t before, after;                 /* padding, of both axes */
    bool depthwise;
    bool first; /* reads the picture: nobody wants a gradient of it */
};

static const struct model_convolution model_convolutions[] = {
    {"resnet50", 224, 3, 64, 7, 2, 3, 3, false, true},      {"resnet50", 56, 64, 64, 1, 1, 0, 0, false, false},
    {"resnet50", 56, 64, 64, 3, 1, 1, 1, false, false},     {"resnet50", 56, 64, 256, 1, 1, 0, 0, false, false},
    {"resnet50", 56, 256, 64, 1, 1, 0, 0, false, false},    {"resnet50", 56, 256, 128, 1, 2, 0, 0, false, false},
    {"resnet50", 28, 128, 128, 3, 1, 1, 1, false, false},   {"resnet50", 28, 128, 512, 1, 1, 0, 0, false, false},
    {"resnet50", 56, 256, 512, 1, 2, 0, 0, false, false},   {"resnet50", 28, 512, 128, 1, 1, 0, 0, false, false},
    {"resnet50", 28, 512, 256, 1, 2, 0, 0, false, false},   {"resnet50", 14, 256, 256, 3, 1, 1, 1, false, false},
    {"resnet50", 14, 256, 1024, 1, 1, 0, 0, false, false},  {"resnet50", 28, 512, 1024, 1, 2, 0, 0, false, false},
    {"resnet50", 14, 1024, 256, 1, 1, 0, 0, false, false},  {"resnet50", 14, 1024, 512, 1, 2, 0, 0, false, false},
    {"resnet50", 7, 512, 512, 3, 1, 1, 1, false, false},    {"resnet50", 7, 512, 2048, 1, 1, 0, 0, false, false},
    {"resnet50", 14, 1024, 2048, 1, 2, 0, 0, false, false}, {"resnet50", 7, 2048, 512, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 224, 3, 32, 3, 2, 0, 1, false, true},   {"mobilenetv2", 112, 32, 32, 3, 1, 1, 1, true, false},
    {"mobilenetv2", 112, 32, 16, 1, 1, 0, 0, false, false}, {"mobilenetv2", 112, 16, 96, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 112, 96, 96, 3, 2, 0, 1, true, false},  {"mobilenetv2", 56, 96, 24, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 56, 24, 144, 1, 1, 0, 0, false, false}, {"mobilenetv2", 56, 144, 144, 3, 1, 1, 1, true, false},
    {"mobilenetv2", 56, 144, 24, 1, 1, 0, 0, false, false}, {"mobilenetv2", 56, 144, 144, 3, 2, 0, 1, true, false},
    {"mobilenetv2", 28, 144, 32, 1, 1, 0, 0, false, false}, {"mobilenetv2", 28, 32, 192, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 28, 192, 192, 3, 1, 1, 1, true, false}, {"mobilenetv2", 28, 192, 32, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 28, 192, 192, 3, 2, 0, 1, true, false}, {"mobilenetv2", 14, 192, 64, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 14, 64, 384, 1, 1, 0, 0, false, false}, {"mobilenetv2", 14, 384, 384, 3, 1, 1, 1, true, false},
    {"mobilenetv2", 14, 384, 64, 1, 1, 0, 0, false, false}, {"mobilenetv2", 14, 384, 96, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 14, 96, 576, 1, 1, 0, 0, false, false}, {"mobilenetv2", 14, 576, 576, 3, 1, 1, 1, true, false},
    {"mobilenetv2", 14, 576, 96, 1, 1, 0, 0, false, false}, {"mobilenetv2", 14, 576, 576, 3, 2, 0, 1, true, false},
    {"mobilenetv2", 7, 576, 160, 1, 1, 0, 0, false, false}, {"mobilenetv2", 7, 160, 960, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 7, 960, 960, 3, 1, 1, 1, true, false},  {"mobilenetv2", 7, 960, 160, 1, 1, 0, 0, false, false},
    {"mobilenetv2", 7, 960, 320, 1, 1, 0, 0, false, false}, {"mobilenetv2", 7, 320, 1280, 1, 1, 0, 0, false, false},
    {"depthwise", 28, 240, 240, 5, 1, 2, 2, true, false},   {"depthwise", 56, 144, 144, 5, 2, 1, 2, true, false},
};
#define MODEL_CONVOLUTIONS (int)(sizeof model_convolutions / sizeof *model_convolutions)

/* Adds one of its three ops to an empty graph. */
static inline struct tensor *model_convolution_add(struct graph *graph, const struct model_convolution *c,
                                                   enum conv_role role)
{
    int64_t n = graph->batch, out = (c->size + c->before + c->after - c->kernel) / c->stride + 1;
    int64_t k_dim[] = {c->kernel, c->kernel, c->in, c->depthwise ? 1 : c->out};
    const struct op *const ops[][3] = {
        {&op_conv2d, &op_conv2d_input_gradient, &op_conv2d_weight_gradient},
        {&op_depthwise_conv2d, &op_depthwise_conv2d_input_gradient, &op_depthwise_conv2d_weight_gradient},
    };
    struct conv_gradient_attributes back = {
        .conv = {.stride = {c->stride, c->stride}, .pad = {c->before, c->after, c->before, c->after}},
        .input = {c->size, c->size},
        .kernel = {c->kernel, c->kernel},
        .groups = 1,
    };
    struct tensor *k = graph_weight(graph, "k", TYPE_F32, shape_of(4, k_dim), true);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, shape_of(4, (int64_t[]){n, c->size, c->size, c->in}));
    struct tensor *dy = graph_input(graph, "dy", 1, TYPE_F32, shape_of(4, (int64_t[]){n, out, out, c->out}));
    const struct op *op = ops[c->depthwise][role];
    if (role == CONV_FORWARD)
        return graph_add(graph, op, (struct tensor *[]){x, k}, 2, &back.conv, sizeof back.conv);
    if (role == CONV_INPUT_GRADIENT)
        return graph_add(graph, op, (struct tensor *[]){dy, k}, 2, &back, sizeof back);
    return graph_add(graph, op, (struct tensor *[]){x, dy}, 2, &back, sizeof back);
}

#endif
