/* value_range.c - see value_range.h. */
#include "ops/image/value_range.h"

#include <math.h>

#include "ops/image/random_warp.h"
#include "ops/ops.h"

#define BYTE_MOST  255
#define FAR_WIDER  10
#define MOST_STEPS 64 /* from a layer back to its input */

struct value_map value_map_after(struct value_map later, struct value_map first)
{
    return (struct value_map){later.scale * first.scale, later.scale * first.offset + later.offset};
}

bool value_map_is_outgrown(struct value_map map, double low, double high)
{
    double wide = BYTE_MOST * fabs(map.scale);
    return wide > 0 && high - low > FAR_WIDER * wide;
}

/* Ops that leave values in their range. */
static bool keeps_range(const struct node *node)
{
    return node->op == &op_random_warp || node->op == &op_slice || (node->op->hands_on && node->op->hands_on(node));
}

/* The input that x was made of by such ops and by rescale, or NULL. */
static const struct tensor *trace_input(struct value_map *map, const struct tensor *x)
{
    for (int i = 0; x && x->producer && i < MOST_STEPS; i++) {
        const struct node *node = x->producer;
        if (node->op == &op_rescale) {
            const struct rescale_attributes *rescale = node->attributes;
            *map = value_map_after(*map, (struct value_map){rescale->scale, rescale->offset});
        } else if (!keeps_range(node)) {
            return NULL;
        }
        x = node->input[0];
    }
    return x && x->kind == KIND_INPUT ? x : NULL;
}

const struct node *graph_outgrown_range(struct value_map *map, double range[2], const struct graph *graph,
                                        value_map_of *of, const void *context)
{
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        const struct random_tone_attributes *tone = node->op == &op_random_tone ? node->attributes : NULL;
        if (!tone || tone->kind != TONE_BRIGHTNESS)
            continue;
        struct value_map found = {1, 0};
        const struct tensor *input = trace_input(&found, node->input[0]);
        if (!input)
            continue;
        *map = value_map_after(found, of(context, input->column));
        range[0] = tone->value_low;
        range[1] = tone->value_high;
        if (value_map_is_outgrown(*map, range[0], range[1]))
            return node;
    }
    return NULL;
}
