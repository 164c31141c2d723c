/* losses.c - Keras's losses over one output.

   Where the output is a softmax or a sigmoid, cross-entropies take the logits, as
   Keras does on TensorFlow: the same value, computed without loss of digits.
   Otherwise probabilities are clipped first, with Keras's epsilon. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "ops/ops.h"

#define EPSILON 1e-7

/* ---- shapes ------------------------------------------------------------- */

static void refuse(struct graph *graph, const char *layer, const char *loss, const struct tensor *x,
                   const struct tensor *label, const char *rule)
{
    char output[96], labels[96];
    shape_text(output, sizeof output, &x->shape, true);
    shape_text(labels, sizeof labels, &label->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: outputs %s of %s%s, labels %s: %s", loss, output, layer ? "layer " : "",
               layer ? layer : x->name, labels, rule);
}

/* The first `rank` axes are equal. */
static bool begins_alike(const struct shape *a, const struct shape *b, int rank)
{
    for (int i = 0; i < rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

/* Labels [N, ...] or [N, ..., 1] of class numbers (of any type, as in Keras) against scores [N, ..., c]. */
static bool sparse_fits(const struct shape *x, const struct shape *label)
{
    bool ends = label->rank == x->rank - 1 || (label->rank == x->rank && label->dim[label->rank - 1] == 1);
    return ends && begins_alike(x, label, x->rank - 1);
}

/* Targets like the outputs; the last axis may be missing where it is 1. */
static bool targets_fit(const struct shape *x, const struct shape *label)
{
    bool shorter = label->rank == x->rank - 1 && x->dim[x->rank - 1] == 1;
    return (shorter || label->rank == x->rank) && begins_alike(x, label, label->rank);
}

/* Class numbers where a row of shares is asked for: the most frequent slip. */
static void refuse_targets(struct graph *graph, const char *layer, const struct loss_type *type, const struct tensor *x,
                           const struct tensor *label)
{
    refuse(graph, layer, type->name, x, label, "there must be a label for each output");
    if (strncmp(type->name, "categorical", 11) == 0 && sparse_fits(&x->shape, &label->shape))
        hint(&graph->error, PLIM_BAD_JOB, "of class numbers: loss: sparse_categorical_crossentropy");
}

bool loss_fits(struct graph *graph, const char *layer, const struct loss_type *type, const struct tensor *x,
               const struct tensor *label)
{
    if (x->shape.rank < 2)
        refuse(graph, layer, type->name, x, label, "outputs must be (batch, units)");
    else if (type->sparse && x->shape.dim[x->shape.rank - 1] < 2)
        refuse(graph, layer, type->name, x, label,
               "wants an output for each class; for one output use binary_crossentropy");
    else if (type->sparse && !sparse_fits(&x->shape, &label->shape))
        refuse(graph, layer, type->name, x, label, "labels must be class numbers, one a sample");
    else if (!type->sparse && !targets_fit(&x->shape, &label->shape))
        refuse_targets(graph, layer, type, x, label);
    return !graph->failed;
}

/* ---- values ------------------------------------------------------------- */

static struct tensor *sparse_values(struct graph *graph, const struct loss *loss, struct tensor *x,
                                    struct tensor *label, bool logits)
{
    struct crossentropy_attributes attributes = {.ignores = loss->ignores, .ignored = loss->ignored};
    struct clip_log_attributes clip = {.low = EPSILON, .high = 1.0 - EPSILON};
    if (!logits)
        x = graph_add(graph, &op_clip_log, &x, 1, &clip, sizeof clip);
    struct tensor *inputs[2] = {x, label};
    return graph_add(graph, &op_softmax_crossentropy, inputs, 2, &attributes, sizeof attributes);
}

static struct tensor *element_values(struct graph *graph, const struct loss *loss, struct tensor *x,
                                     struct tensor *label, bool logits)
{
    struct elementwise_loss_attributes attributes = {.formula = loss->type->formula,
                                                     .sums = loss->type->formula == FORMULA_DIVERGENCE,
                                                     .balances = loss->balances,
                                                     .smoothing = loss->smoothing,
                                                     .delta = loss->delta,
                                                     .alpha = loss->alpha,
                                                     .gamma = loss->gamma};
    struct tensor *inputs[3] = {x, label, NULL};
    (void)logits;
    return graph_add(graph, &op_elementwise_loss, inputs, 3, &attributes, sizeof attributes);
}

/* Two axes and nothing to smooth: an op of their own. */
static struct tensor *binary_values(struct graph *graph, const struct loss *loss, struct tensor *x,
                                    struct tensor *label, bool logits)
{
    struct elementwise_loss_attributes attributes = {.formula = logits ? FORMULA_BINARY_LOGITS : FORMULA_BINARY,
                                                     .smoothing = loss->smoothing};
    struct tensor *inputs[2] = {x, label};
    if (x && x->shape.rank == 2 && loss->smoothing == 0.0)
        return binary(graph, logits ? &op_sigmoid_crossentropy : &op_binary_crossentropy, x, label);
    return graph_add(graph, &op_elementwise_loss, inputs, 2, &attributes, sizeof attributes);
}

static struct tensor *focal_values(struct graph *graph, const struct loss *loss, struct tensor *x, struct tensor *label,
                                   bool logits)
{
    return element_values(graph, loss, logits ? unary(graph, &op_sigmoid, x) : x, label, false);
}

/* Hinges want to know whether all labels of the batch are 0 and 1. */
static struct tensor *hinge_values(struct graph *graph, const struct loss *loss, struct tensor *x, struct tensor *label,
                                   bool logits)
{
    struct elementwise_loss_attributes attributes = {.formula = loss->type->formula};
    struct tensor *inputs[3] = {x, label, unary(graph, &op_count_others, label)};
    (void)logits;
    return graph_add(graph, &op_elementwise_loss, inputs, 3, &attributes, sizeof attributes);
}

static struct tensor *row_values(struct graph *graph, const struct loss *loss, struct tensor *x, struct tensor *label,
                                 bool logits)
{
    struct row_loss_attributes attributes = {
        .formula = loss->type->row, .smoothing = loss->smoothing, .alpha = loss->alpha, .gamma = loss->gamma};
    struct tensor *inputs[2] = {x, label};
    if (logits && attributes.formula == ROW_CATEGORICAL)
        attributes.formula = ROW_CATEGORICAL_LOGITS;
    else if (logits)
        inputs[0] = unary(graph, &op_softmax, x);
    return graph_add(graph, &op_row_loss, inputs, 2, &attributes, sizeof attributes);
}

/* ---- the table ---------------------------------------------------------- */

struct loss_words {
    struct loss loss;
    const struct yaml *axis, *reduction, *ignore_class, *name, *dtype;
};
#define AT(field) offsetof(struct loss_words, field)
#define LOGITS                                                                                                         \
    {                                                                                                                  \
        "from_logits", SETTING_BOOL, AT(loss.from_logits), 0                                                           \
    }
#define SMOOTHING                                                                                                      \
    {                                                                                                                  \
        "label_smoothing", SETTING_NUMBER, AT(loss.smoothing), 0                                                       \
    }
#define ALPHA                                                                                                          \
    {                                                                                                                  \
        "alpha", SETTING_NUMBER, AT(loss.alpha), 0                                                                     \
    }
#define GAMMA                                                                                                          \
    {                                                                                                                  \
        "gamma", SETTING_NUMBER, AT(loss.gamma), 0                                                                     \
    }
#define AXIS                                                                                                           \
    {                                                                                                                  \
        "axis", SETTING_NODE, AT(axis), 0                                                                              \
    }
#define COMMON                                                                                                         \
    {"reduction", SETTING_NODE, AT(reduction), 0}, {"name", SETTING_NODE, AT(name), 0},                                \
    {                                                                                                                  \
        "dtype", SETTING_NODE, AT(dtype), 0                                                                            \
    }
static const struct setting common[] = {COMMON};

static const struct loss_type losses[] = {
    {.name = "sparse_categorical_crossentropy",
     .kind = LOSS_SOFTMAX,
     .sparse = true,
     .values = sparse_values,
     .setting = {LOGITS, {"ignore_class", SETTING_NODE, AT(ignore_class), 0}, AXIS}},
    {.name = "binary_crossentropy",
     .alias = "bce",
     .kind = LOSS_BINARY,
     .values = binary_values,
     .setting = {LOGITS, SMOOTHING, AXIS}},
    {.name = "categorical_crossentropy",
     .kind = LOSS_SOFTMAX,
     .row = ROW_CATEGORICAL,
     .values = row_values,
     .setting = {LOGITS, SMOOTHING, AXIS}},
    {.name = "binary_focal_crossentropy",
     .kind = LOSS_PLAIN,
     .formula = FORMULA_BINARY_FOCAL,
     .values = focal_values,
     .setting = {{"apply_class_balancing", SETTING_BOOL, AT(loss.balances), 0}, ALPHA, GAMMA, LOGITS, SMOOTHING, AXIS}},
    {.name = "categorical_focal_crossentropy",
     .kind = LOSS_PLAIN,
     .row = ROW_CATEGORICAL_FOCAL,
     .values = row_values,
     .setting = {ALPHA, GAMMA, LOGITS, SMOOTHING, AXIS}},
    {.name = "mean_squared_error",
     .alias = "mse",
     .kind = LOSS_PLAIN,
     .formula = FORMULA_SQUARED,
     .values = element_values},
    {.name = "mean_absolute_error",
     .alias = "mae",
     .kind = LOSS_PLAIN,
     .formula = FORMULA_ABSOLUTE,
     .values = element_values},
    {.name = "mean_absolute_percentage_error",
     .alias = "mape",
     .kind = LOSS_PLAIN,
     .formula = FORMULA_PERCENTAGE,
     .values = element_values},
    {.name = "mean_squared_logarithmic_error",
     .alias = "msle",
     .kind = LOSS_PLAIN,
     .formula = FORMULA_LOGARITHMIC,
     .values = element_values},
    {.name = "huber",
     .kind = LOSS_PLAIN,
     .formula = FORMULA_HUBER,
     .values = element_values,
     .setting = {{"delta", SETTING_NUMBER, AT(loss.delta), 0}}},
    {.name = "log_cosh", .kind = LOSS_PLAIN, .formula = FORMULA_LOG_COSH, .values = element_values},
    {.name = "hinge", .kind = LOSS_PLAIN, .formula = FORMULA_HINGE, .values = hinge_values},
    {.name = "squared_hinge", .kind = LOSS_PLAIN, .formula = FORMULA_SQUARED_HINGE, .values = hinge_values},
    {.name = "categorical_hinge", .kind = LOSS_PLAIN, .row = ROW_CATEGORICAL_HINGE, .values = row_values},
    {.name = "kl_divergence",
     .alias = "kld",
     .second_alias = "kullback_leibler_divergence",
     .kind = LOSS_PLAIN,
     .formula = FORMULA_DIVERGENCE,
     .values = element_values},
    {.name = "poisson", .kind = LOSS_PLAIN, .formula = FORMULA_POISSON, .values = element_values},
    {.name = "cosine_similarity", .kind = LOSS_PLAIN, .row = ROW_COSINE, .values = row_values, .setting = {AXIS}},
};

static const char *const keras_losses[] = {"ctc", "dice", "tversky", "circle", "categorical_generalized_cross_entropy"};

const int losses_count = LENGTH(losses);

const char *loss_name(int i)
{
    return losses[i].name;
}

const struct loss_type *loss_named(const char *name)
{
    for (int i = 0; i < LENGTH(losses); i++)
        if (same_word(name, losses[i].name) || (losses[i].alias && same_word(name, losses[i].alias)) ||
            (losses[i].second_alias && same_word(name, losses[i].second_alias)))
            return &losses[i];
    return NULL;
}

/* ---- reading ------------------------------------------------------------ */

void loss_standards(struct loss *out)
{
    out->delta = 1.0;
    out->alpha = 0.25;
    out->gamma = 2.0;
}

static plim_status read_reduction(struct loss *out, const char *job, const struct yaml *node, plim_error *error)
{
    static const char *const words[] = {"sum_over_batch_size", "mean", "sum"};
    static const char *const keras[] = {"none", "mean_with_sample_weight"};
    char where[256];
    if (!node)
        return PLIM_OK;
    yaml_place(where, job, node);
    if (node->kind != YAML_SCALAR || node->is_null)
        return fail_at(error, PLIM_BAD_JOB, where, "reduction: a step needs one number: sum_over_batch_size or sum");
    for (int i = 0; i < LENGTH(words); i++)
        if (same_word(node->text, words[i])) {
            out->sums = i == 2;
            return PLIM_OK;
        }
    return option_unknown("reduction", node->text, where, words, LENGTH(words), keras, LENGTH(keras), error);
}

plim_status loss_read_arguments(struct loss *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    struct loss_words words = {.loss = *out};
    const struct setting number = {"ignore_class", SETTING_NUMBER, 0, 0};
    struct setting settings[LENGTH(out->type->setting) + LENGTH(common)];
    char where[256];
    int count = 0;
    while (count < LENGTH(out->type->setting) && out->type->setting[count].word) {
        settings[count] = out->type->setting[count];
        count++;
    }
    memcpy(&settings[count], common, sizeof common);
    TRY(settings_read(&words, settings, count + LENGTH(common), job, yaml, error));
    TRY(option_default(out->type->name, job, "axis", "-1", words.axis, error));
    TRY(option_default(out->type->name, job, "dtype", "float32", words.dtype, error));
    TRY(read_reduction(&words.loss, job, words.reduction, error));
    if (words.ignore_class && !words.ignore_class->is_null) {
        TRY(setting_value(&words.loss.ignored, &number, job, words.ignore_class, error));
        words.loss.ignores = true;
    }
    yaml_place(where, job, yaml);
    if (words.loss.smoothing < 0.0 || words.loss.smoothing > 1.0)
        return fail_at(error, PLIM_BAD_JOB, where, "label_smoothing: must be between 0 and 1, got %g",
                       words.loss.smoothing);
    *out = words.loss;
    return PLIM_OK;
}

plim_status loss_read(struct loss *out, enum loss_kind *kind, const char *job, const struct yaml *yaml,
                      plim_error *error)
{
    const char *names[LENGTH(losses)];
    char where[256];
    bool map = yaml->kind == YAML_MAP && yaml->count == 1;
    const char *name = map ? yaml->first->key : yaml->text;
    yaml_place(where, job, yaml);
    if (!map && (yaml->kind != YAML_SCALAR || yaml->is_null))
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "loss: expected a name, or one name with its settings"),
                    "loss: {Huber: {delta: 2}}");
    struct loss loss = {.type = loss_named(name)};
    for (int i = 0; i < LENGTH(losses); i++)
        names[i] = losses[i].name;
    if (!loss.type)
        return option_unknown("loss", name, where, names, LENGTH(names), keras_losses, LENGTH(keras_losses), error);
    loss_standards(&loss);
    if (map && yaml->first->kind == YAML_MAP)
        TRY(loss_read_arguments(&loss, job, yaml->first, error));
    else if (map && !(yaml->first->kind == YAML_SCALAR && yaml->first->is_null))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected its arguments by name", name);
    *out = loss;
    *kind = loss.type->kind;
    return PLIM_OK;
}

/* ---- into the graph ----------------------------------------------------- */

/* One number: the mean over what counts. */
static struct tensor *reduce(struct graph *graph, const struct loss *loss, struct tensor *values, struct tensor *count)
{
    struct loss_mean_attributes attributes = {.sums = loss->sums};
    struct tensor *inputs[2] = {values, count};
    if (values && values->shape.rank == 1 && !count && !loss->sums)
        return unary(graph, &op_batch_mean, values);
    return graph_add(graph, &op_loss_mean, inputs, count ? 2 : 1, &attributes, sizeof attributes);
}

/* A mask counts only where there is a value for each of its places. */
static bool mask_fits(const struct tensor *mask, const struct tensor *values)
{
    return mask && values && shape_equal(&mask->shape, &values->shape);
}

static struct tensor *count_valid(struct graph *graph, struct tensor *of, double ignored)
{
    struct count_valid_attributes attributes = {.ignored = ignored};
    return graph_add(graph, &op_count_valid, &of, 1, &attributes, sizeof attributes);
}

struct tensor *loss_add(struct graph *graph, const struct loss *loss, const struct loss_operands *operands)
{
    struct tensor *x = operands->output, *label = operands->label;
    if (graph->failed || !x || !label || !loss_fits(graph, operands->layer, loss->type, x, label))
        return NULL;
    struct tensor *values = loss->type->values(graph, loss, x, label, operands->logits || loss->from_logits);
    struct tensor *count = loss->ignores && !loss->sums ? count_valid(graph, label, loss->ignored) : NULL;
    if (mask_fits(operands->mask, values)) {
        values = binary(graph, &op_weigh, values, operands->mask);
        count = loss->sums ? NULL : count_valid(graph, operands->mask, 0.0);
    }
    if (operands->weight)
        values = binary(graph, &op_weigh, values, operands->weight);
    return reduce(graph, loss, values, count);
}
