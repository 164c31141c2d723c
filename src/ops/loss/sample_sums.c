/* sample_sums.c - counts and sums over samples: sample_sums.h says which. */
#include <math.h>

#include "ops/helpers.h"

#define NO_GRADIENT "it counts"

/* The first largest of `count` values from `first` on. */
static int64_t first_largest(const struct call *call, int input, int64_t first, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (get(call, input, first + i) > get(call, input, first + best))
            best = i;
    return best;
}

/* ---- class_weight ------------------------------------------------------- */

static plim_status class_weight_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *labels = node->input[0];
    TRY(need_batched(node, 0, error));
    if (!is_label(labels->type) || labels->shape.rank > 2)
        return misfit(node, error, "labels are one class a sample: numbers, or rows of targets");
    return output_of(graph, node, 0, TYPE_F32, shape_1(labels->shape.dim[0]), true);
}

static void class_weight_reference(const struct call *call)
{
    const struct class_weight_attributes *attributes = call->node->attributes;
    const struct tensor *labels = call->node->input[0];
    int64_t rows = call_rows(call, labels), width = shape_row(&labels->shape);
    for (int64_t row = 0; row < rows; row++) {
        double class = width > 1 ? (double)first_largest(call, 0, row * width, width) : rint(get(call, 0, row));
        double place = class - (double)attributes->first;
        bool said = place >= 0 && place < (double)attributes->count;
        set(call, 0, row, said ? (double)attributes->factor[(int64_t)place] : 1.0);
    }
}

const struct op op_class_weight = {
    OP_HEAD(class_weight, 1, 1, class_weight_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct class_weight_attributes),
    .no_gradient = NO_GRADIENT,
};

/* ---- sample_sums -------------------------------------------------------- */

/* How many scores, and labels, make one class of confusion. */
static int64_t scores_each(const struct node *node)
{
    const struct sample_sums_attributes *a = node->attributes;
    return a->sparse_scores || a->binary ? 1 : last_dim(node->input[0]);
}

static int64_t labels_each(const struct node *node)
{
    const struct sample_sums_attributes *a = node->attributes;
    return a->sparse_labels ? 1 : last_dim(node->input[1]);
}

static bool labels_fit(const struct node *node)
{
    const struct sample_sums_attributes *a = node->attributes;
    if (a->formula == SUMS_MEANS || !node->input[1])
        return a->formula == SUMS_MEANS && !node->input[1];
    const struct shape *scores = &node->input[0]->shape, *labels = &node->input[1]->shape;
    if (scores->rank < 2 || !is_label(node->input[1]->type) || labels->dim[0] != scores->dim[0])
        return false;
    if (a->formula == SUMS_CONFUSION)
        return shape_count(scores) / scores_each(node) == shape_count(labels) / labels_each(node);
    return shape_count(scores) == shape_count(labels) && (a->formula != SUMS_SQUARES || scores->rank == 2);
}

/* What samples count by. */
static bool weights_fit(const struct node *node)
{
    const struct tensor *weights = node->input[2];
    return !weights || (is_label(weights->type) && shape_count(&weights->shape) == node->input[0]->shape.dim[0]);
}

static struct shape sample_sums_shape(const struct sample_sums_attributes *a, int64_t width)
{
    struct shape shape = a->formula == SUMS_THRESHOLDS  ? shape_2(a->apart ? 2 * width : 2, a->size + 1)
                         : a->formula == SUMS_CONFUSION ? shape_2(a->size, a->size)
                         : a->formula == SUMS_CLASSES   ? shape_2(3, width)
                         : a->formula == SUMS_SQUARES   ? shape_2(5, width)
                                                        : shape_2(1, 2);
    shape.dim[0] += a->results;
    return shape;
}

static plim_status sample_sums_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct sample_sums_attributes *a = node->attributes;
    TRY(need_real(node, 0, error));
    for (int i = 0; i < 3; i++)
        if (node->input[i])
            TRY(need_batched(node, i, error));
    if (!labels_fit(node))
        return misfit(node, error, "labels do not fit the outputs");
    if (!weights_fit(node))
        return misfit(node, error, "weights of samples are one a sample");
    int64_t width = last_dim(node->input[0]);
    if (a->only >= width || a->top > width)
        return misfit(node, error, "class %lld, or the top %lld, of %lld outputs", (long long)a->only,
                      (long long)a->top, (long long)width);
    struct shape shape = sample_sums_shape(a, width);
    return output_of(graph, node, 0, TYPE_F64, shape, false);
}

/* Scores of the row that come before score i. */
static int64_t rank_of(const struct call *call, int64_t row, int64_t width, int64_t i)
{
    double score = get(call, 0, row * width + i);
    int64_t before = 0;
    for (int64_t k = 0; k < width; k++) {
        double other = get(call, 0, row * width + k);
        before += other > score || (other == score && k < i);
    }
    return before;
}

static int64_t passed(const struct sample_sums_attributes *a, double score)
{
    int64_t levels = 0;
    while (a->level && levels < a->size && (float)score > a->level[levels])
        levels++;
    if (a->level)
        return levels;
    if (!a->even)
        return (float)score > (float)a->threshold;
    float clipped = score > 1 ? 1 : score > 0 ? (float)score : 0;
    int64_t count = (int64_t)ceilf(clipped * (float)(a->size - 1));
    return a->lowest && count < 1 ? 1 : count;
}

static void add_to(const struct call *call, int64_t at, double value)
{
    set(call, 0, at, element_get(call->output[0], TYPE_F64, at) + value);
}

static void add_thresholds(const struct call *call, int64_t row, int64_t width, double weight)
{
    const struct sample_sums_attributes *a = call->node->attributes;
    for (int64_t i = 0; i < width; i++) {
        bool positive = get(call, 1, row * width + i) != 0;
        double score = get(call, 0, row * width + i);
        if (a->only >= 0 && i != a->only)
            continue;
        if (a->top && rank_of(call, row, width, i) >= a->top)
            score = SUMS_NOTHING;
        int64_t line = (a->apart ? 2 * i : 0) + positive;
        add_to(call, line * (a->size + 1) + passed(a, score), weight);
    }
}

static void add_classes(const struct call *call, int64_t row, int64_t width, double weight)
{
    const struct sample_sums_attributes *a = call->node->attributes;
    double most = get(call, 0, row * width + first_largest(call, 0, row * width, width));
    for (int64_t i = 0; i < width; i++) {
        double score = get(call, 0, row * width + i), target = get(call, 1, row * width + i);
        bool chosen = a->limited ? (float)score > (float)a->threshold : score >= most && fabs(score) > 1e-9;
        add_to(call, i, chosen ? target * weight : 0);
        add_to(call, width + i, chosen ? (1 - target) * weight : 0);
        add_to(call, 2 * width + i, chosen ? 0 : target * weight);
    }
}

static void add_squares(const struct call *call, int64_t row, int64_t width, double weight)
{
    for (int64_t i = 0; i < width; i++) {
        double target = get(call, 1, row * width + i), far = target - get(call, 0, row * width + i);
        add_to(call, i, target * weight);
        add_to(call, width + i, target * target * weight);
        add_to(call, 2 * width + i, far * far * weight);
        add_to(call, 3 * width + i, weight);
        add_to(call, 4 * width + i, 1);
    }
}

static void add_means(const struct call *call, int64_t row, int64_t width, double weight)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += get(call, 0, row * width + i);
    add_to(call, 0, sum / (double)width * weight);
    add_to(call, 1, weight);
}

/* The class that a value is, towards 0; -1: none. */
static int64_t class_of(double value, int64_t classes)
{
    return value > -1 && value < (double)classes ? (int64_t)value : -1;
}

static void add_confusion(const struct call *call, int64_t sample, int64_t width, double weight)
{
    const struct sample_sums_attributes *a = call->node->attributes;
    int64_t scores = width, labels = labels_each(call->node), column, row;
    double score = get(call, 0, sample * scores), label = get(call, 1, sample * labels);
    if (a->binary)
        column = (float)score >= (float)a->threshold;
    else
        column = a->sparse_scores ? class_of(score, a->size) : first_largest(call, 0, sample * scores, scores);
    row = a->sparse_labels ? class_of(label, a->size) : first_largest(call, 1, sample * labels, labels);
    bool counts = row >= 0 && column >= 0 && row < a->size && column < a->size;
    if (counts && !(a->ignores && (double)row == a->ignored))
        add_to(call, row * a->size + column, weight);
}

/* Elements of what is counted together. */
static int64_t sample_sums_width(const struct node *node)
{
    const struct sample_sums_attributes *a = node->attributes;
    if (a->formula == SUMS_CONFUSION)
        return scores_each(node);
    return a->formula == SUMS_MEANS ? shape_row(&node->input[0]->shape) : last_dim(node->input[0]);
}

static void sample_sums_reference(const struct call *call)
{
    static void (*const add[SUMS_FORMULA_COUNT])(const struct call *, int64_t, int64_t,
                                                 double) = {[SUMS_THRESHOLDS] = add_thresholds,
                                                            [SUMS_CLASSES] = add_classes,
                                                            [SUMS_CONFUSION] = add_confusion,
                                                            [SUMS_SQUARES] = add_squares,
                                                            [SUMS_MEANS] = add_means};
    const struct sample_sums_attributes *a = call->node->attributes;
    const struct tensor *x = call->node->input[0], *y = call->node->output[0];
    int64_t width = sample_sums_width(call->node), each = shape_row(&x->shape) / width;
    for (int64_t i = 0; !call->add && i < shape_count(&y->shape); i++)
        set(call, 0, i, 0);
    for (int64_t row = 0; row < call_rows(call, x) * each; row++)
        add[a->formula](call, row, width, call->node->input[2] ? get(call, 2, row / each) : 1);
}

const struct op op_sample_sums = {
    OP_HEAD(sample_sums, 3, 1, sample_sums_infer, cut_input_rows),
    .optional = 1 << 1 | 1 << 2,
    .attributes_bytes = sizeof(struct sample_sums_attributes),
    .no_gradient = NO_GRADIENT,
};
