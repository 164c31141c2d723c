/* examples_loss.c - examples of the ops of src/ops/loss/. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- loss ------------------------------------------------------------------ */

static struct tensor *add_loss(struct graph *graph, const struct op *op, struct tensor *scores, struct tensor *labels)
{
    return labels ? binary(graph, op, scores, labels) : NULL;
}

static struct tensor *add_loss_gradient(struct graph *graph, const struct op *op, enum type type, struct tensor *scores,
                                        struct tensor *labels)
{
    return labels ? trinary(graph, op, scores, labels, example_input(graph, "d", type, 0, NULL)) : NULL;
}

struct tensor *softmax_crossentropy_example(struct graph *graph, int variant, enum type type)
{
    struct crossentropy_attributes a = {.ignores = variant % 2, .ignored = 1};
    struct tensor *scores = NULL, *labels = example_labels(&scores, graph, variant, type);
    struct tensor *inputs[2] = {scores, labels};
    return labels ? graph_add(graph, &op_softmax_crossentropy, inputs, 2, &a, sizeof(a)) : NULL;
}

struct tensor *softmax_crossentropy_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct crossentropy_attributes a = {.ignores = variant % 2, .ignored = 1};
    struct tensor *scores = NULL, *labels = example_labels(&scores, graph, variant, type);
    if (!labels)
        return NULL;
    struct shape rows = shape_of(scores->shape.rank - 1, scores->shape.dim);
    struct tensor *inputs[3] = {scores, labels, graph_input(graph, "d", 0, type, rows)};
    return graph_add(graph, &op_softmax_crossentropy_gradient, inputs, 3, &a, sizeof(a));
}

struct tensor *sigmoid_crossentropy_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *scores = NULL, *targets = example_targets(&scores, graph, variant, type, "scores");
    return add_loss(graph, &op_sigmoid_crossentropy, scores, targets);
}

struct tensor *sigmoid_crossentropy_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *scores = NULL, *targets = example_targets(&scores, graph, variant, type, "scores");
    return add_loss_gradient(graph, &op_sigmoid_crossentropy_gradient, type, scores, targets);
}

struct tensor *binary_crossentropy_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *scores = NULL, *targets = example_targets(&scores, graph, variant, type, "positive:p");
    return add_loss(graph, &op_binary_crossentropy, scores, targets);
}

struct tensor *binary_crossentropy_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *scores = NULL, *targets = example_targets(&scores, graph, variant, type, "positive:p");
    return add_loss_gradient(graph, &op_binary_crossentropy_gradient, type, scores, targets);
}

/* ---- loss_elementwise ------------------------------------------------------ */

/* Scores in (0, 1); targets 0 or 1. */
static const struct {
    bool positive, binary;
} formulas[FORMULA_COUNT] = {
    [FORMULA_LOGARITHMIC] = {true, false},   [FORMULA_HINGE] = {false, true},
    [FORMULA_SQUARED_HINGE] = {false, true}, [FORMULA_POISSON] = {true, false},
    [FORMULA_DIVERGENCE] = {true, false},    [FORMULA_BINARY] = {true, true},
    [FORMULA_BINARY_LOGITS] = {false, true}, [FORMULA_BINARY_FOCAL] = {true, true},
};

/* All formulas on (3, 5), then other shapes and types of targets. */
static struct tensor *loss_elementwise_example(struct graph *graph, int variant, enum type type, bool gradient)
{
    static const struct elementwise_loss_attributes others[] = {
        {.formula = FORMULA_HUBER, .delta = 0.3},
        {.formula = FORMULA_BINARY_FOCAL, .gamma = 1.5, .alpha = 0.25, .balances = true, .smoothing = 0.1},
        {.formula = FORMULA_DIVERGENCE, .sums = true},
        {.formula = FORMULA_HINGE},
    };
    struct elementwise_loss_attributes a = {.delta = 1, .gamma = 2, .alpha = 0.25};
    if (variant >= FORMULA_COUNT + 4)
        return NULL;
    a.formula = (enum loss_formula)variant;
    if (variant >= FORMULA_COUNT)
        a = others[variant - FORMULA_COUNT];
    bool small = variant >= FORMULA_COUNT, binary_targets = formulas[a.formula].binary;
    const char *name = formulas[a.formula].positive ? "positive:x" : "x";
    struct tensor *x = small ? example_input(graph, name, type, ROW(1)) : example_input(graph, name, type, ROW(3, 37));
    const char *label = binary_targets ? "label:2" : "positive label"; /* a target: no gradient flows to it */
    struct tensor *t = small ? example_input(graph, label, binary_targets ? TYPE_U8 : TYPE_F32, 0, NULL)
                             : example_input(graph, label, TYPE_F32, ROW(3, 37));
    struct tensor *d = small ? example_input(graph, "d", type, 0, NULL) : example_input(graph, "d", type, ROW(3));
    struct tensor *count =
        a.formula == FORMULA_HINGE && small ? graph_state(graph, "label:1", TYPE_F32, shape_1(1)) : NULL;
    struct tensor *forward[3] = {x, t, count}, *back[4] = {x, t, d, count};
    return gradient ? graph_add(graph, &op_elementwise_loss_gradient, back, 4, &a, sizeof(a))
                    : graph_add(graph, &op_elementwise_loss, forward, 3, &a, sizeof(a));
}

struct tensor *elementwise_loss_example(struct graph *graph, int variant, enum type type)
{
    return loss_elementwise_example(graph, variant, type, false);
}

struct tensor *elementwise_loss_gradient_example(struct graph *graph, int variant, enum type type)
{
    return loss_elementwise_example(graph, variant, type, true);
}

/* ---- loss_reduce ----------------------------------------------------------- */

struct tensor *weigh_example(struct graph *graph, int variant, enum type type)
{
    static const enum type types[] = {TYPE_F32, TYPE_U8, TYPE_BOOL, TYPE_I64};
    if (variant > 3)
        return NULL;
    struct tensor *v =
        variant == 2 ? example_input(graph, "v", type, 0, NULL) : example_input(graph, "v", type, ROW(3, 7));
    struct tensor *w = variant == 0   ? example_input(graph, "label:5", types[0], 0, NULL)
                       : variant == 3 ? example_input(graph, "label:5", types[3], ROW(1))
                       : variant == 2 ? example_input(graph, "label:2", types[2], 0, NULL)
                                      : example_input(graph, "label:5", types[1], ROW(3, 7));
    return binary(graph, &op_weigh, v, w);
}

struct tensor *loss_mean_example(struct graph *graph, int variant, enum type type)
{
    struct loss_mean_attributes a = {.sums = variant == 2};
    if (variant > 2)
        return NULL;
    struct tensor *v =
        variant == 1 ? example_input(graph, "v", type, 0, NULL) : example_input(graph, "v", type, ROW(3, 7));
    struct tensor *inputs[2] = {v, variant == 1 ? graph_state(graph, "positive:count", TYPE_F32, shape_1(1)) : NULL};
    return graph_add(graph, &op_loss_mean, inputs, 2, &a, sizeof(a));
}

struct tensor *loss_mean_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct loss_mean_attributes a = {.sums = variant == 2};
    if (variant > 2)
        return NULL;
    struct tensor *inputs[3] = {
        variant == 1 ? graph_weight(graph, "d", type, shape_1(1), false) : NULL,
        variant == 1 ? example_input(graph, "v", type, 0, NULL) : example_input(graph, "v", type, ROW(3, 7)),
        variant == 1 ? graph_state(graph, "positive:count", TYPE_F32, shape_1(1)) : NULL,
    };
    return graph_add(graph, &op_loss_mean_gradient, inputs, 3, &a, sizeof(a));
}

static struct tensor *example_counted(struct graph *graph, int variant)
{
    static const enum type types[] = {TYPE_I64, TYPE_U8, TYPE_F32};
    if (variant > 2)
        return NULL;
    return variant == 1 ? example_input(graph, "label:3", types[variant], 0, NULL)
                        : example_input(graph, "label:3", types[variant], ROW(5));
}

struct tensor *count_valid_example(struct graph *graph, int variant, enum type type)
{
    struct count_valid_attributes a = {.ignored = variant};
    struct tensor *x = example_counted(graph, variant);
    (void)type;
    return x ? graph_add(graph, &op_count_valid, &x, 1, &a, sizeof(a)) : NULL;
}

struct tensor *count_others_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = example_counted(graph, variant);
    (void)type;
    return x ? unary(graph, &op_count_others, x) : NULL;
}

/* ---- loss_rows ------------------------------------------------------------- */

static struct tensor *loss_rows_example(struct graph *graph, int variant, enum type type, bool gradient)
{
    struct row_loss_attributes a = {.gamma = 2, .alpha = 0.25};
    if (variant >= 2 * ROW_FORMULA_COUNT)
        return NULL;
    a.formula = (enum row_formula)(variant / 2);
    a.smoothing = variant % 2 ? 0.1 : 0;
    bool positive = a.formula == ROW_CATEGORICAL || a.formula == ROW_CATEGORICAL_FOCAL, flat = variant % 2;
    const char *name = positive ? "positive:x" : "x";
    struct tensor *x = flat ? example_input(graph, name, type, ROW(37)) : example_input(graph, name, type, ROW(3, 5));
    struct tensor *t = flat ? example_input(graph, "label:2", TYPE_U8, ROW(37))
                            : example_input(graph, "positive label", TYPE_F32, ROW(3, 5));
    struct tensor *d = flat ? example_input(graph, "d", type, 0, NULL) : example_input(graph, "d", type, ROW(3));
    struct tensor *inputs[3] = {x, t, d};
    return graph_add(graph, gradient ? &op_row_loss_gradient : &op_row_loss, inputs, gradient ? 3 : 2, &a, sizeof(a));
}

struct tensor *row_loss_example(struct graph *graph, int variant, enum type type)
{
    return loss_rows_example(graph, variant, type, false);
}

struct tensor *row_loss_gradient_example(struct graph *graph, int variant, enum type type)
{
    return loss_rows_example(graph, variant, type, true);
}

/* ---- metric ---------------------------------------------------------------- */

struct tensor *sparse_accuracy_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *scores = NULL, *labels = example_labels(&scores, graph, variant, type);
    return labels ? binary(graph, &op_sparse_accuracy, scores, labels) : NULL;
}

struct tensor *binary_accuracy_example(struct graph *graph, int variant, enum type type)
{
    struct binary_accuracy_attributes attributes = {variant % 2 ? 0.5 : 0};
    struct tensor *scores = NULL, *targets = example_targets(&scores, graph, variant, type, "scores");
    if (!targets)
        return NULL;
    return graph_add(graph, &op_binary_accuracy, (struct tensor *[]){scores, targets}, 2, &attributes,
                     sizeof(attributes));
}

struct tensor *ranked_accuracy_example(struct graph *graph, int variant, enum type type)
{
    struct ranked_accuracy_attributes a = {.k = variant % 3, .sparse = variant < 6};
    struct tensor *scores = NULL, *labels = NULL;
    if (a.sparse)
        labels = example_labels(&scores, graph, variant, type);
    else if (variant < 9) {
        scores = example_input(graph, "scores", type, ROW(2, 5));
        labels = example_input(graph, "targets", TYPE_F32, ROW(2, 5));
    }
    struct tensor *inputs[2] = {scores, labels};
    return labels ? graph_add(graph, &op_ranked_accuracy, inputs, 2, &a, sizeof(a)) : NULL;
}

/* ---- sample_sums ----------------------------------------------------------------- */

struct tensor *class_weight_example(struct graph *graph, int variant, enum type type)
{
    struct class_weight_attributes attributes = {.count = 3, .factor = {0.5F, 3.0F, 0.0F}};
    struct tensor *labels = NULL;
    (void)type;
    attributes.first = variant == 1;
    if (variant == 0)
        labels = example_input(graph, "label:5", TYPE_I64, 0, NULL);
    else if (variant == 1)
        labels = example_input(graph, "label:4", TYPE_U8, ROW(1));
    else if (variant == 2)
        labels = example_input(graph, "targets", TYPE_F32, ROW(5));
    return labels ? graph_add(graph, &op_class_weight, &labels, 1, &attributes, sizeof(attributes)) : NULL;
}

struct tensor *sample_sums_example(struct graph *graph, int variant, enum type type)
{
    static const float levels[] = {-0.4F, 0.1F, 0.3F};
    static const struct sample_sums_attributes cases[] = {
        {.formula = SUMS_THRESHOLDS, .size = 1, .threshold = 0.25, .only = -1},
        {.formula = SUMS_THRESHOLDS, .size = 5, .even = true, .lowest = true, .only = -1},
        {.formula = SUMS_THRESHOLDS, .size = 5, .even = true, .only = 2},
        {.formula = SUMS_THRESHOLDS, .size = 1, .threshold = SUMS_NOTHING, .top = 2, .only = -1},
        {.formula = SUMS_CLASSES, .only = -1},
        {.formula = SUMS_CLASSES, .limited = true, .threshold = 0.1, .only = -1},
        {.formula = SUMS_SQUARES, .only = -1},
        {.formula = SUMS_CONFUSION, .size = 3, .only = -1, .sparse_labels = true, .ignores = true, .ignored = 1},
        {.formula = SUMS_CONFUSION, .size = 3, .only = -1},
        {.formula = SUMS_CONFUSION, .size = 2, .only = -1, .binary = true, .sparse_labels = true},
        {.formula = SUMS_CONFUSION, .size = 2, .only = -1, .sparse_scores = true, .sparse_labels = true},
        {.formula = SUMS_THRESHOLDS, .size = 3, .level = levels, .only = -1, .results = true},
        {.formula = SUMS_THRESHOLDS, .size = 4, .even = true, .lowest = true, .apart = true, .only = -1},
        {.formula = SUMS_CLASSES, .only = -1, .results = true},
        {.formula = SUMS_SQUARES, .only = -1},
        {.formula = SUMS_CONFUSION, .size = 3, .only = -1},
        {.formula = SUMS_MEANS, .only = -1},
    };
    int plain = 11; /* the others are weighted */
    if (variant >= COUNT(cases))
        return NULL;
    const struct sample_sums_attributes *a = &cases[variant];
    bool rows = a->formula == SUMS_CONFUSION && a->sparse_labels && !a->binary && !a->sparse_scores;
    struct tensor *inputs[3] = {example_input(graph, "scores", type, ROW(3)), NULL, NULL};
    if (rows)
        inputs[1] = example_input(graph, "label:4", TYPE_I64, 0, NULL);
    else if (a->formula != SUMS_MEANS)
        inputs[1] = example_input(graph, "label:2", variant % 2 ? TYPE_F32 : TYPE_U8, ROW(3));
    if (variant >= plain)
        inputs[2] = variant % 2 ? example_input(graph, "weights", TYPE_F32, ROW(1))
                                : example_input(graph, "label:3", TYPE_U8, 0, NULL);
    return graph_add(graph, &op_sample_sums, inputs, 3, a, sizeof(*a));
}

/* ---- vocabulary_loss ------------------------------------------------------- */

static const struct {
    int64_t tokens, depth, classes; /* tokens 0: no axis between */
    enum type labels;
    const char *name;
    bool bias;
    struct vocabulary_attributes attributes;
} vocabulary_loss_examples[] = {
    {0, 4, 7, TYPE_I64, "label:7", false, {0}},
    {3, 5, 11, TYPE_I32, "label:11", true, {0}},
    {6, 1, 1, TYPE_U8, "label:1", false, {0}},
    {9, 17, 33, TYPE_I64, "label:33", true, {.columns = true}},
    {2, 3, 400, TYPE_I32, "label:400", false, {.columns = true, .ignores = true, .ignored = 7}},
    {60, 2, 5, TYPE_I32, "label:5", true, {.ignores = true, .ignored = 2}},
};

/* h, w, labels and the bias; false after the last variant. */
static bool vocabulary_loss_example_operands(struct tensor **inputs, struct tensor **bias, struct graph *graph,
                                             int variant, enum type type)
{
    if (variant >= COUNT(vocabulary_loss_examples))
        return false;
    int64_t tokens = vocabulary_loss_examples[variant].tokens, depth = vocabulary_loss_examples[variant].depth,
            classes = vocabulary_loss_examples[variant].classes;
    inputs[0] =
        tokens ? example_input(graph, "h", type, ROW(tokens, depth)) : example_input(graph, "h", type, ROW(depth));
    inputs[1] = graph_weight(
        graph, "w", type,
        vocabulary_loss_examples[variant].attributes.columns ? shape_2(depth, classes) : shape_2(classes, depth), true);
    inputs[2] = example_input(graph, vocabulary_loss_examples[variant].name, vocabulary_loss_examples[variant].labels,
                              tokens ? 1 : 0, &tokens);
    *bias = vocabulary_loss_examples[variant].bias
                ? graph_weight(graph, "bias", wide_type(type), shape_1(classes), true)
                : NULL;
    return true;
}

struct tensor *vocabulary_crossentropy_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[4];
    return vocabulary_loss_example_operands(inputs, &inputs[3], graph, variant, type)
               ? graph_add(graph, &op_vocabulary_crossentropy, inputs, 4, &vocabulary_loss_examples[variant].attributes,
                           sizeof(struct vocabulary_attributes))
               : NULL;
}

struct tensor *vocabulary_crossentropy_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[6];
    if (!vocabulary_loss_example_operands(inputs, &inputs[5], graph, variant, type))
        return NULL;
    int64_t tokens = vocabulary_loss_examples[variant].tokens;
    inputs[3] = example_input(graph, "positive:sums", wide_type(type), tokens ? 1 : 0, &tokens);
    inputs[4] = example_input(graph, "dloss", wide_type(type), tokens ? 1 : 0, &tokens);
    struct vocabulary_attributes attributes = vocabulary_loss_examples[variant].attributes;
    attributes.rounds = type == TYPE_BF16;
    return graph_add(graph, &op_vocabulary_crossentropy_gradient, inputs, 6, &attributes, sizeof attributes);
}
