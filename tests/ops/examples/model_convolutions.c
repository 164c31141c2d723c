/* model_convolutions.c - the convolutions of models, and graphs of one of them. */
#include "model_convolutions.h"

#include <stdio.h>

#include "base/numbers/count.h"
#include "examples.h"

#define BATCH 32

const struct model_convolution model_convolutions[] = {
    {"resnet50", 224, 3, 64, 7, 2, 3, 3, false, true, 2},
    {"resnet50", 56, 64, 64, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 56, 64, 64, 3, 1, 1, 1, false, false, 2},
    {"resnet50", 56, 64, 256, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 56, 256, 64, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 56, 256, 128, 1, 2, 0, 0, false, false, 2},
    {"resnet50", 28, 128, 128, 3, 1, 1, 1, false, false, 2},
    {"resnet50", 28, 128, 512, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 56, 256, 512, 1, 2, 0, 0, false, false, 2},
    {"resnet50", 28, 512, 128, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 28, 512, 256, 1, 2, 0, 0, false, false, 2},
    {"resnet50", 14, 256, 256, 3, 1, 1, 1, false, false, 2},
    {"resnet50", 14, 256, 1024, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 28, 512, 1024, 1, 2, 0, 0, false, false, 2},
    {"resnet50", 14, 1024, 256, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 14, 1024, 512, 1, 2, 0, 0, false, false, 2},
    {"resnet50", 7, 512, 512, 3, 1, 1, 1, false, false, 2},
    {"resnet50", 7, 512, 2048, 1, 1, 0, 0, false, false, 2},
    {"resnet50", 14, 1024, 2048, 1, 2, 0, 0, false, false, 2},
    {"resnet50", 7, 2048, 512, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 224, 3, 32, 3, 2, 0, 1, false, true, 2},
    {"mobilenetv2", 112, 32, 32, 3, 1, 1, 1, true, false, 2},
    {"mobilenetv2", 112, 32, 16, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 112, 16, 96, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 112, 96, 96, 3, 2, 0, 1, true, false, 2},
    {"mobilenetv2", 56, 96, 24, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 56, 24, 144, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 56, 144, 144, 3, 1, 1, 1, true, false, 2},
    {"mobilenetv2", 56, 144, 24, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 56, 144, 144, 3, 2, 0, 1, true, false, 2},
    {"mobilenetv2", 28, 144, 32, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 28, 32, 192, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 28, 192, 192, 3, 1, 1, 1, true, false, 2},
    {"mobilenetv2", 28, 192, 32, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 28, 192, 192, 3, 2, 0, 1, true, false, 2},
    {"mobilenetv2", 14, 192, 64, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 14, 64, 384, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 14, 384, 384, 3, 1, 1, 1, true, false, 2},
    {"mobilenetv2", 14, 384, 64, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 14, 384, 96, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 14, 96, 576, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 14, 576, 576, 3, 1, 1, 1, true, false, 2},
    {"mobilenetv2", 14, 576, 96, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 14, 576, 576, 3, 2, 0, 1, true, false, 2},
    {"mobilenetv2", 7, 576, 160, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 7, 160, 960, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 7, 960, 960, 3, 1, 1, 1, true, false, 2},
    {"mobilenetv2", 7, 960, 160, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 7, 960, 320, 1, 1, 0, 0, false, false, 2},
    {"mobilenetv2", 7, 320, 1280, 1, 1, 0, 0, false, false, 2},
    {"depthwise", 28, 240, 240, 5, 1, 2, 2, true, false, 2},
    {"depthwise", 56, 144, 144, 5, 2, 1, 2, true, false, 2},
    {"sequence", 1024, 128, 128, 3, 1, 1, 1, false, false, 1},
    {"sequence", 1024, 256, 256, 7, 1, 3, 3, true, false, 1},
    {"volume", 24, 32, 64, 3, 1, 1, 1, false, false, 3},
};
const int model_convolutions_count = COUNT(model_convolutions);

static const struct op *op_of(const struct model_convolution *c, enum conv_role role)
{
    static const struct op *const ops[][2][3] = {
        {{&op_conv1d, &op_conv1d_input_gradient, &op_conv1d_weight_gradient},
         {&op_depthwise_conv1d, &op_depthwise_conv1d_input_gradient, &op_depthwise_conv1d_weight_gradient}},
        {{&op_conv2d, &op_conv2d_input_gradient, &op_conv2d_weight_gradient},
         {&op_depthwise_conv2d, &op_depthwise_conv2d_input_gradient, &op_depthwise_conv2d_weight_gradient}},
        {{&op_conv3d, &op_conv3d_input_gradient, &op_conv3d_weight_gradient}, {NULL, NULL, NULL}},
    };
    return ops[c->axes - 1][c->depthwise][role];
}

/* [first, extent for each axis, then the rest]. */
static struct shape shape_with(const struct model_convolution *c, int64_t first, int64_t extent, int64_t last)
{
    struct shape shape = {.dim = {first}};
    shape.rank = first > 0;
    for (int i = 0; i < c->axes; i++)
        shape.dim[shape.rank++] = extent;
    shape.dim[shape.rank++] = last;
    return shape;
}

struct tensor *model_convolution_add(struct graph *graph, const struct model_convolution *c, enum conv_role role,
                                     enum type type)
{
    int64_t n = graph->batch, out = (c->size + c->before + c->after - c->kernel) / c->stride + 1;
    struct conv_gradient_attributes back = {.groups = 1};
    for (int i = 0; i < c->axes; i++) {
        back.conv.stride[i] = c->stride;
        back.conv.pad[2 * i] = c->before;
        back.conv.pad[2 * i + 1] = c->after;
        back.input[i] = c->size;
        back.kernel[i] = c->kernel;
    }
    struct shape k_shape = shape_with(c, 0, c->kernel, c->in);
    k_shape.dim[k_shape.rank++] = c->depthwise ? 1 : c->out;
    struct tensor *k = graph_weight(graph, "k", type, k_shape, true);
    struct tensor *x = graph_input(graph, "x", 0, type, shape_with(c, n, c->size, c->in));
    struct tensor *dy = graph_input(graph, "dy", 1, type, shape_with(c, n, out, c->out));
    const struct op *op = op_of(c, role);
    if (role == CONV_FORWARD)
        return graph_add(graph, op, (struct tensor *[]){x, k}, 2, &back.conv, sizeof back.conv);
    if (role == CONV_INPUT_GRADIENT)
        return graph_add(graph, op, (struct tensor *[]){dy, k}, 2, &back, sizeof back);
    return graph_add(graph, op, (struct tensor *[]){x, dy}, 2, &back, sizeof back);
}

struct tensor *model_convolution_speed(struct graph *graph, struct speed *line, const struct op *op, int variant,
                                       enum type type)
{
    enum conv_role role;
    conv_family_of(&role, op);
    for (int i = 0; i < model_convolutions_count; i++) {
        const struct model_convolution *c = &model_convolutions[i];
        if (op_of(c, role) != op || (c->first && role == CONV_INPUT_GRADIENT) || variant-- > 0)
            continue;
        snprintf(line->name, sizeof line->name, "%s %lldx%lld/%lld %lld -> %lld, %lld", c->model, (long long)c->kernel,
                 (long long)(c->axes == 1 ? 1 : c->kernel), (long long)c->stride, (long long)c->in, (long long)c->out,
                 (long long)c->size);
        line->near = true;
        graph->batch = BATCH;
        return model_convolution_add(graph, c, role, type);
    }
    return NULL;
}
