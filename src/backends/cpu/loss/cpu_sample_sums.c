/* cpu_sample_sums.c - sums over samples for metrics, weights of classes. size[0]: columns of the scores. */
#include <math.h>
#include <string.h>

#include "backends/cpu/loss/cpu_loss.h"

MAKER(make_sample_sums)
{
    const struct tensor *scores = node->input[0];
    out->size[0] = scores->shape.rank > 1 ? scores->shape.dim[scores->shape.rank - 1] : 1;
    out->size[1] = shape_row(&scores->shape); /* elements a sample */
    return node->op != &op_sample_sums || scores->type == TYPE_F32;
}

static int64_t largest_label(const struct call *call, int64_t first, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        best = label_at(call, first + i) > label_at(call, first + best) ? i : best;
    return best;
}

/* Fewer than `top` scores of the row come before x[i]. */
static bool is_top(const float *x, int64_t width, int64_t i, int64_t top)
{
    int64_t before = 0;
    for (int64_t k = 0; k < width; k++)
        before += x[k] > x[i] || (x[k] == x[i] && k < i);
    return before < top;
}

/* The first level that the score does not pass. */
static int64_t passed_levels(const float *level, int64_t count, float score)
{
    int64_t first = 0;
    while (first < count) {
        int64_t middle = first + (count - first) / 2;
        if (score > level[middle])
            first = middle + 1;
        else
            count = middle;
    }
    return first;
}

static int64_t passed(const struct sample_sums_attributes *a, float score)
{
    if (a->level)
        return passed_levels(a->level, a->size, score);
    if (!a->even)
        return score > (float)a->threshold;
    float clipped = score > 1 ? 1 : score > 0 ? score : 0;
    int64_t count = (int64_t)ceilf(clipped * (float)(a->size - 1));
    return a->lowest && count < 1 ? 1 : count;
}

static void add_thresholds(const struct call *call, const float *x, int64_t row, int64_t width, double weight)
{
    const struct sample_sums_attributes *a = call->node->attributes;
    double *sums = call->output[0];
    int64_t begin = a->only < 0 ? 0 : a->only, end = a->only < 0 ? width : a->only + 1;
    for (int64_t i = begin; i < end; i++) {
        float score = a->top && !is_top(x, width, i, a->top) ? (float)SUMS_NOTHING : x[i];
        int64_t line = (a->apart ? 2 * i : 0) + (label_at(call, row * width + i) != 0);
        sums[line * (a->size + 1) + passed(a, score)] += weight;
    }
}

static void add_classes(const struct call *call, const float *x, int64_t row, int64_t width, double weight)
{
    const struct sample_sums_attributes *a = call->node->attributes;
    double *sums = call->output[0];
    float most = x[largest_at(x, width)];
    for (int64_t i = 0; i < width; i++) {
        double target = label_at(call, row * width + i);
        bool chosen = a->limited ? x[i] > (float)a->threshold : x[i] >= most && fabs((double)x[i]) > 1e-9;
        sums[i] += chosen ? target * weight : 0;
        sums[width + i] += chosen ? (1 - target) * weight : 0;
        sums[2 * width + i] += chosen ? 0 : target * weight;
    }
}

static void add_squares(const struct call *call, const float *x, int64_t row, int64_t width, double weight)
{
    double *sums = call->output[0];
    for (int64_t i = 0; i < width; i++) {
        double target = label_at(call, row * width + i), far = target - (double)x[i];
        sums[i] += target * weight;
        sums[width + i] += target * target * weight;
        sums[2 * width + i] += far * far * weight;
        sums[3 * width + i] += weight;
        sums[4 * width + i] += 1;
    }
}

static void add_means(const struct call *call, const float *x, int64_t row, int64_t width, double weight)
{
    double *sums = call->output[0], sum = 0;
    (void)row;
    for (int64_t i = 0; i < width; i++)
        sum += (double)x[i];
    sums[0] += sum / (double)width * weight;
    sums[1] += weight;
}

static int64_t class_of(double value, int64_t classes)
{
    return value > -1 && value < (double)classes ? (int64_t)value : -1;
}

static void add_confusion(const struct call *call, const float *x, int64_t sample, int64_t width, double weight)
{
    const struct sample_sums_attributes *a = call->node->attributes;
    const struct shape *shape = &call->node->input[1]->shape;
    double *sums = call->output[0];
    int64_t labels = a->sparse_labels ? 1 : shape->dim[shape->rank - 1], row, column;
    if (a->binary)
        column = x[0] >= (float)a->threshold;
    else
        column = a->sparse_scores ? class_of((double)x[0], a->size) : largest_at(x, width);
    row = a->sparse_labels ? class_of(label_at(call, sample), a->size) : largest_label(call, sample * labels, labels);
    bool counts = row >= 0 && column >= 0 && row < a->size && column < a->size;
    if (counts && !(a->ignores && (double)row == a->ignored))
        sums[row * a->size + column] += weight;
}

RUNNER(run_sample_sums)
{
    const struct sample_sums_attributes *a = call->node->attributes;
    const struct tensor *weights = call->node->input[2];
    bool single = a->formula == SUMS_CONFUSION && (a->sparse_scores || a->binary);
    int64_t all = cpu_kernel_of(kernel)->size[1], samples = cpu_rows(kernel, call);
    int64_t width = single ? 1 : a->formula == SUMS_MEANS ? all : cpu_kernel_of(kernel)->size[0], each = all / width;
    static void (*const add[SUMS_FORMULA_COUNT])(const struct call *, const float *, int64_t, int64_t,
                                                 double) = {[SUMS_THRESHOLDS] = add_thresholds,
                                                            [SUMS_CLASSES] = add_classes,
                                                            [SUMS_CONFUSION] = add_confusion,
                                                            [SUMS_SQUARES] = add_squares,
                                                            [SUMS_MEANS] = add_means};
    const float *x = call->input[0];
    if (!call->add)
        memset(call->output[0], 0, (size_t)shape_count(&call->node->output[0]->shape) * sizeof(double));
    for (int64_t sample = 0; sample < samples; sample++) {
        double weight = weights ? element_get(call->input[2], weights->type, sample) : 1;
        for (int64_t i = 0; i < each; i++, x += width)
            add[a->formula](call, x, sample * each + i, width, weight);
    }
}

RUNNER(run_class_weight)
{
    const struct class_weight_attributes *attributes = call->node->attributes;
    enum type type = call->node->input[0]->type;
    int64_t rows = cpu_rows(kernel, call), width = cpu_kernel_of(kernel)->size[0];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++) {
        int64_t best = 0;
        for (int64_t i = 1; i < width; i++)
            if (element_get(call->input[0], type, row * width + i) >
                element_get(call->input[0], type, row * width + best))
                best = i;
        double class = width > 1 ? (double)best : rint(element_get(call->input[0], type, row));
        double place = class - (double)attributes->first;
        bool said = place >= 0 && place < (double)attributes->count;
        y[row] = said ? attributes->factor[(int64_t)place] : 1.0F;
    }
}
