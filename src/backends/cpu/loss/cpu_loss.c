/* cpu_loss.c - cross-entropies, their gradients and accuracies, a value a
   sample. Labels come in any type. */
#include <math.h>

#include "backends/cpu/loss/cpu_loss.h"

MAKER(make_loss)
{
    return take_score_sizes(out, node) && node->output[0]->type == TYPE_F32;
}

/* The class of a sample, or -1 when there is no such class. */
static int64_t class_of(const struct call *call, int64_t row, int64_t classes)
{
    double label = label_at(call, row);
    return label >= 0 && label < (double)classes ? (int64_t)label : -1;
}

static int64_t score_rows(const struct kernel *kernel, const struct call *call)
{
    return cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[1];
}

static bool ignored(const struct call *call, int64_t row)
{
    const struct crossentropy_attributes *attributes = call->node->attributes;
    return attributes->ignores && label_at(call, row) == attributes->ignored;
}

/* log(sum(exp(x - most))) + most - x[label] */
RUNNER(run_softmax_crossentropy)
{
    int64_t rows = score_rows(kernel, call), classes = cpu_kernel_of(kernel)->size[0];
    const float *x = call->input[0];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++, x += classes) {
        int64_t label = class_of(call, row, classes);
        float most = largest(x, classes), sum = 0;
        if (ignored(call, row)) {
            y[row] = 0;
            continue;
        }
        for (int64_t i = 0; i < classes; i++)
            sum += exp_of(x[i] - most);
        y[row] = label < 0 ? NAN : logf(sum) + (most - x[label]);
    }
}

/* d * (softmax(x)[i] - (i == label)) */
RUNNER(run_softmax_crossentropy_gradient)
{
    int64_t rows = score_rows(kernel, call), classes = cpu_kernel_of(kernel)->size[0];
    const float *x = call->input[0], *d = call->input[2];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++, x += classes, y += classes) {
        int64_t label = class_of(call, row, classes);
        float most = largest(x, classes), sum = 0, share = label < 0 ? NAN : d[row];
        if (ignored(call, row)) {
            memset(y, 0, (size_t)classes * sizeof *y);
            continue;
        }
        INDEPENDENT
        for (int64_t i = 0; i < classes; i++)
            y[i] = exp_of(x[i] - most);
        for (int64_t i = 0; i < classes; i++)
            sum += y[i];
        float scale = share / sum;
        for (int64_t i = 0; i < classes; i++)
            y[i] *= scale;
        if (label >= 0)
            y[label] -= share;
        else
            y[0] = NAN; /* also when all of the sum is lost */
    }
}

/* Targets first..first + count as floats: where they lie, or in `room`. */
static const float *targets_at(float *room, const struct call *call, int64_t first, int64_t count)
{
    if (call->node->input[1]->type == TYPE_F32)
        return (const float *)call->input[1] + first;
    for (int64_t i = 0; i < count; i++)
        room[i] = (float)label_at(call, first + i);
    return room;
}

/* y[row] = mean over the row of value(score, target). */
INLINE void mean_of(const struct kernel *kernel, const struct call *call, formula *value)
{
    int64_t width = cpu_kernel_of(kernel)->size[0], count = cpu_rows(kernel, call) * width;
    const float *x = call->input[0];
    float *y = call->output[0];
    float room[CHUNK], values[CHUNK], sum = 0;
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t chunk = count - first < CHUNK ? count - first : CHUNK;
        const float *t = targets_at(room, call, first, chunk);
        float *to = width == 1 ? y + first : values;
        INDEPENDENT
        for (int64_t i = 0; i < chunk; i++)
            to[i] = value(x[first + i], t[i], NULL);
        for (int64_t i = 0; width > 1 && i < chunk; i++) {
            sum = (first + i) % width ? sum + values[i] : values[i];
            if ((first + i + 1) % width == 0)
                y[(first + i) / width] = sum / (float)width;
        }
    }
}

/* dx[i] = d[row] * derivative(score, target) / width */
INLINE void gradient_of_mean(const struct kernel *kernel, const struct call *call, formula *derivative)
{
    int64_t width = cpu_kernel_of(kernel)->size[0], count = cpu_rows(kernel, call) * width;
    const float *x = call->input[0], *d = call->input[2];
    float *y = call->output[0];
    float room[CHUNK], shares[CHUNK];
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t chunk = count - first < CHUNK ? count - first : CHUNK;
        const float *t = targets_at(room, call, first, chunk);
        for (int64_t i = 0; width > 1 && i < chunk; i++)
            shares[i] = d[(first + i) / width] / (float)width;
        const float *share = width == 1 ? d + first : shares;
        INDEPENDENT
        for (int64_t i = 0; i < chunk; i++)
            y[first + i] = share[i] * derivative(x[first + i], t[i], NULL);
    }
}

#define MEAN(name, formula)                                                                                            \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        mean_of(kernel, call, formula);                                                                                \
    }                                                                                                                  \
    RUNNER(run_##name##_gradient)                                                                                      \
    {                                                                                                                  \
        gradient_of_mean(kernel, call, formula##_slope);                                                               \
    }
MEAN(sigmoid_crossentropy, logits)
MEAN(binary_crossentropy, bernoulli)

/* 1 where the first largest score is the label's. */
RUNNER(run_sparse_accuracy)
{
    int64_t rows = score_rows(kernel, call), classes = cpu_kernel_of(kernel)->size[0];
    const float *x = call->input[0];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++, x += classes)
        y[row] = (double)largest_at(x, classes) == label_at(call, row);
}

/* Mean over the row of (score > threshold) == target. */
RUNNER(run_binary_accuracy)
{
    const struct binary_accuracy_attributes *attributes = call->node->attributes;
    int64_t rows = score_rows(kernel, call), width = cpu_kernel_of(kernel)->size[0];
    const float *x = call->input[0];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++) {
        int64_t right = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++)
            right += (double)((double)x[i] > attributes->threshold) == label_at(call, i);
        y[row] = (float)right / (float)width;
    }
}

/* Fewer than k scores are larger than that of the right class. */
RUNNER(run_ranked_accuracy)
{
    const struct ranked_accuracy_attributes *attributes = call->node->attributes;
    int64_t rows = score_rows(kernel, call), classes = cpu_kernel_of(kernel)->size[0];
    const float *x = call->input[0];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++, x += classes) {
        int64_t right = 0, larger = 0;
        if (attributes->sparse)
            right = class_of(call, row, classes);
        for (int64_t i = 1; !attributes->sparse && i < classes; i++)
            right = label_at(call, row * classes + i) > label_at(call, row * classes + right) ? i : right;
        float score = right < 0 ? 0 : x[right];
        for (int64_t i = 0; i < classes; i++)
            larger += x[i] > score;
        y[row] = right >= 0 && (attributes->k ? larger < attributes->k : largest_at(x, classes) == right);
    }
}
