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

static OPTION_READER(read_reduction)
{
    static const char *const words[] = {"sum_over_batch_size", "mean", "sum"};
    static const char *const keras[] = {"none", "mean_with_sample_weight"};
    char where[256];
    int way;
    yaml_place(where, at->job, node);
    if (node->kind != YAML_SCALAR || node->is_null)
        return fail_at(error, PLIM_BAD_JOB, where, "reduction: a step needs one number: sum_over_batch_size or sum");
    TRY(choose_word(&way, option->word, node->text, CHOICES_OF(words, keras), where, error));
    *(bool *)out = way == 2;
    return PLIM_OK;
}

static OPTION_READER(read_ignored)
{
    struct loss *loss = out;
    loss->ignores = true;
    return option_number(&loss->ignored, option, at, node, error);
}

static OPTION_READER(read_smoothing)
{
    const double *smoothing = out;
    TRY(option_number(out, option, at, node, error));
    if (*smoothing < 0.0 || *smoothing > 1.0)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, at->map, "label_smoothing: must be between 0 and 1, got %g",
                         *smoothing);
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct loss, field)
#define LOGITS    "from_logits", option_flag, TO(from_logits)
#define SMOOTHING "label_smoothing", read_smoothing, TO(smoothing)
#define ALPHA     "alpha", option_number, TO(alpha)
#define GAMMA     "gamma", option_number, TO(gamma)
#define AXIS      "axis", option_only, .with = "-1"

static const struct model_option common[] = {
    {"reduction", read_reduction, TO(sums)},
    {.word = "name"},
    {"dtype", option_only, .with = "float32"},
};

static const struct loss_type losses[] = {
    {.name = "sparse_categorical_crossentropy",
     .kind = LOSS_SOFTMAX,
     .sparse = true,
     .values = sparse_values,
     .option = {{LOGITS}, {"ignore_class", read_ignored, TO(type), .nullable = true}, {AXIS}}},
    {.name = "binary_crossentropy",
     .alias = "bce",
     .kind = LOSS_BINARY,
     .values = binary_values,
     .option = {{LOGITS}, {SMOOTHING}, {AXIS}}},
    {.name = "categorical_crossentropy",
     .kind = LOSS_SOFTMAX,
     .row = ROW_CATEGORICAL,
     .values = row_values,
     .option = {{LOGITS}, {SMOOTHING}, {AXIS}}},
    {.name = "binary_focal_crossentropy",
     .formula = FORMULA_BINARY_FOCAL,
     .values = focal_values,
     .option = {{"apply_class_balancing", option_flag, TO(balances)}, {ALPHA}, {GAMMA}, {LOGITS}, {SMOOTHING}, {AXIS}}},
    {.name = "categorical_focal_crossentropy",
     .row = ROW_CATEGORICAL_FOCAL,
     .values = row_values,
     .option = {{ALPHA}, {GAMMA}, {LOGITS}, {SMOOTHING}, {AXIS}}},
    {.name = "mean_squared_error", .alias = "mse", .formula = FORMULA_SQUARED, .values = element_values},
    {.name = "mean_absolute_error", .alias = "mae", .formula = FORMULA_ABSOLUTE, .values = element_values},
    {.name = "mean_absolute_percentage_error",
     .alias = "mape",
     .formula = FORMULA_PERCENTAGE,
     .values = element_values},
    {.name = "mean_squared_logarithmic_error",
     .alias = "msle",
     .formula = FORMULA_LOGARITHMIC,
     .values = element_values},
    {.name = "huber",
     .formula = FORMULA_HUBER,
     .values = element_values,
     .option = {{"delta", option_number, TO(delta)}}},
    {.name = "log_cosh", .formula = FORMULA_LOG_COSH, .values = element_values},
    {.name = "hinge", .formula = FORMULA_HINGE, .values = hinge_values},
    {.name = "squared_hinge", .formula = FORMULA_SQUARED_HINGE, .values = hinge_values},
    {.name = "categorical_hinge", .row = ROW_CATEGORICAL_HINGE, .values = row_values},
    {.name = "kl_divergence",
     .alias = "kld",
     .second_alias = "kullback_leibler_divergence",
     .formula = FORMULA_DIVERGENCE,
     .values = element_values},
    {.name = "poisson", .formula = FORMULA_POISSON, .values = element_values},
    {.name = "cosine_similarity", .row = ROW_COSINE, .values = row_values, .option = {{AXIS}}},
};

static const char *const keras_losses[] = {"ctc", "dice", "tversky", "circle", "categorical_generalized_cross_entropy"};

const int losses_count = COUNT(losses);

const char *loss_name(int i)
{
    return losses[i].name;
}

const struct loss_type *loss_named(const char *name)
{
    for (int i = 0; i < COUNT(losses); i++)
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

plim_status loss_read_arguments(struct loss *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    const struct loss_type *type = out->type;
    const struct option_place at = {type->name, job, yaml, NULL};
    struct model_option options[COUNT(type->option) + COUNT(common)];
    struct loss loss = *out;
    int own = options_length(type->option, COUNT(type->option));
    memcpy(options, type->option, (size_t)own * sizeof *options);
    memcpy(options + own, common, sizeof common);
    TRY(options_read(&loss, options, own + COUNT(common), &at, error));
    *out = loss;
    return PLIM_OK;
}

plim_status loss_read(struct loss *out, enum loss_kind *kind, const char *job, const struct yaml *yaml,
                      plim_error *error)
{
    const char *names[COUNT(losses)], *name;
    const struct yaml *arguments;
    char where[256];
    yaml_place(where, job, yaml);
    if (!named_node(&name, &arguments, yaml))
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "loss: expected a name, or one name with its settings"),
                    "loss: {Huber: {delta: 2}}");
    struct loss loss = {.type = loss_named(name)};
    for (int i = 0; i < COUNT(losses); i++)
        names[i] = losses[i].name;
    if (!loss.type)
        return option_unknown("loss", name, where, CHOICES_OF(names, keras_losses), error);
    loss_standards(&loss);
    if (!yaml_absent(arguments) && arguments->kind != YAML_MAP)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected its arguments by name", name);
    if (!yaml_absent(arguments))
        TRY(loss_read_arguments(&loss, job, arguments, error));
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
