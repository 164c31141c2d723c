/* random_tone.c - brightness and contrast of pictures, by a number drawn for each sample. */
#include "ops/helpers.h"

float random_tone_draw(const struct random_tone_attributes *attributes, uint64_t step, int64_t sample)
{
    uint32_t bits[4];
    float low = (float)attributes->low, high = (float)attributes->high;
    noise_bits(bits, attributes->seed, step, sample, 0);
    return low + (high - low) * random_unit(bits[0]);
}

static plim_status tone_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct random_tone_attributes *attributes = node->attributes;
    int last = node->input_count - 1;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_type(node, last, TYPE_I64, error));
    if (last == 2)
        TRY(need_alike(node, 0, 1, error));
    if (node->input[0]->shape.rank < 2 || node->input[last]->batched || shape_count(&node->input[last]->shape) != 1)
        return misfit(node, error, "wants pictures with channels, and an iteration of one value");
    if (!(attributes->value_low <= attributes->value_high))
        return misfit(node, error, "clipping to [%g, %g] is not possible", attributes->value_low,
                      attributes->value_high);
    return output_like(graph, node, 0, node->input[0]);
}

/* y = x * factor + offset of one channel of one sample; the mean of `count` of input `x`, `step` apart. */
struct tone {
    double factor, offset;
};

static double mean_of(const struct call *call, int input, int64_t first, int64_t count, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += get(call, input, first + i * step);
    return sum / (double)count;
}

static struct tone tone_of(const struct call *call, int x, int iteration, int64_t n, int64_t channel)
{
    const struct random_tone_attributes *attributes = call->node->attributes;
    const struct shape *shape = &call->node->output[0]->shape;
    uint64_t step = (uint64_t) * (const int64_t *)call->input[iteration];
    int64_t channels = shape->dim[shape->rank - 1], row = shape_row(shape);
    double drawn = (double)random_tone_draw(attributes, step, call->begin + n);
    if (attributes->kind == TONE_BRIGHTNESS)
        return (struct tone){1, drawn};
    return (struct tone){drawn, (1 - drawn) * mean_of(call, x, n * row + channel, row / channels, channels)};
}

static void random_tone_reference(const struct call *call)
{
    const struct random_tone_attributes *attributes = call->node->attributes;
    const struct shape *shape = &call->node->output[0]->shape;
    int64_t rows = call_rows(call, call->node->output[0]), row = shape_row(shape),
            channels = shape->dim[shape->rank - 1];
    for (int64_t n = 0; n < rows; n++)
        for (int64_t c = 0; c < channels; c++) {
            struct tone tone = tone_of(call, 0, 1, n, c);
            for (int64_t i = n * row + c; i < (n + 1) * row; i += channels) {
                double y = get(call, 0, i) * tone.factor + tone.offset;
                y = y < attributes->value_low ? attributes->value_low : y;
                set(call, 0, i, y > attributes->value_high ? attributes->value_high : y);
            }
        }
}

const struct op op_random_tone = {
    OP_HEAD(random_tone, 2, 1, tone_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct random_tone_attributes),
    .gradient_op = &op_random_tone_gradient,
    .gradient_reads = {READ_D, READ_X0, READ_X1},
    .keeps_inputs = 1 << 0 | 1 << 1,
};

/* What was clipped has none. g: dy where it was not; dx = g * factor, and of contrast + mean(g) * (1 - factor). */
static void random_tone_gradient_reference(const struct call *call)
{
    const struct random_tone_attributes *attributes = call->node->attributes;
    const struct shape *shape = &call->node->output[0]->shape;
    int64_t rows = call_rows(call, call->node->output[0]), row = shape_row(shape),
            channels = shape->dim[shape->rank - 1];
    for (int64_t n = 0; n < rows; n++)
        for (int64_t c = 0; c < channels; c++) {
            struct tone tone = tone_of(call, 1, 2, n, c);
            double sum = 0;
            for (int pass = 0; pass < 2; pass++)
                for (int64_t i = n * row + c; i < (n + 1) * row; i += channels) {
                    double y = get(call, 1, i) * tone.factor + tone.offset;
                    bool inside = y >= attributes->value_low && y <= attributes->value_high;
                    double g = inside ? get(call, 0, i) : 0, share = sum * (double)channels / (double)row;
                    if (pass == 0)
                        sum += g;
                    else
                        set(call, 0, i, g * tone.factor + share * (1 - tone.factor));
                }
        }
}

const struct op op_random_tone_gradient = {
    OP_HEAD(random_tone_gradient, 3, 1, tone_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct random_tone_attributes),
    .no_gradient = NO_SECOND,
};
