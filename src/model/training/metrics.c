/* metrics.c - Keras's metrics over the model's outputs: a mean over the batch
   each, which the trainer averages over an epoch, or sums that a step adds to
   (metric_sums.c). Losses are metrics too. */
#include <math.h>
#include <string.h>

#include "model/ops/op_words.h"
#include "model/training/metric_types.h"
#include "ops/ops.h"

/* A probability of 0.5 is a logit of 0. */
static struct tensor *binary_accuracy(struct graph *graph, const struct metric *metric, struct tensor *x,
                                      struct tensor *label, bool logits)
{
    struct binary_accuracy_attributes attributes = {.threshold = metric->threshold};
    struct tensor *inputs[2] = {x, label};
    if (logits && metric->threshold == 0.5)
        attributes.threshold = 0.0;
    else if (logits)
        inputs[0] = unary(graph, &op_sigmoid, x);
    return graph_add(graph, &op_binary_accuracy, inputs, 2, &attributes, sizeof attributes);
}

/* The largest logit is the largest probability. */
static struct tensor *sparse_accuracy(struct graph *graph, const struct metric *metric, struct tensor *x,
                                      struct tensor *label, bool logits)
{
    (void)metric, (void)logits;
    return binary(graph, &op_sparse_accuracy, x, label);
}

static struct tensor *ranked(struct graph *graph, struct tensor *x, struct tensor *label, int64_t k, bool sparse)
{
    struct ranked_accuracy_attributes attributes = {.k = k, .sparse = sparse};
    struct tensor *inputs[2] = {x, label};
    return graph_add(graph, &op_ranked_accuracy, inputs, 2, &attributes, sizeof attributes);
}

static struct tensor *categorical_accuracy(struct graph *graph, const struct metric *metric, struct tensor *x,
                                           struct tensor *label, bool logits)
{
    (void)metric, (void)logits;
    return ranked(graph, x, label, 0, false);
}

static struct tensor *top_k(struct graph *graph, const struct metric *metric, struct tensor *x, struct tensor *label,
                            bool logits)
{
    (void)logits;
    return ranked(graph, x, label, metric->k, false);
}

static struct tensor *sparse_top_k(struct graph *graph, const struct metric *metric, struct tensor *x,
                                   struct tensor *label, bool logits)
{
    (void)logits;
    return ranked(graph, x, label, metric->k, true);
}

/* Keras chooses by shapes. */
static struct tensor *accuracy(struct graph *graph, const struct metric *metric, struct tensor *x, struct tensor *label,
                               bool logits)
{
    const struct shape *scores = &x->shape, *labels = &label->shape;
    if (scores->dim[scores->rank - 1] == 1)
        return binary_accuracy(graph, metric, x, label, logits);
    if (labels->rank < scores->rank || labels->dim[labels->rank - 1] == 1)
        return sparse_accuracy(graph, metric, x, label, logits);
    return categorical_accuracy(graph, metric, x, label, logits);
}

static const struct metric_type metrics[] = {
    {.name = "accuracy", .alias = "acc", .values = accuracy},
    {.name = "binary_accuracy", .values = binary_accuracy},
    {.name = "categorical_accuracy", .values = categorical_accuracy},
    {.name = "sparse_categorical_accuracy", .values = sparse_accuracy},
    {.name = "top_k_categorical_accuracy", .values = top_k},
    {.name = "sparse_top_k_categorical_accuracy", .values = sparse_top_k},
};

/* Losses by another name. */
static const struct {
    const char *name, *loss, *shown;
    bool root;
} other_names[] = {
    {"root_mean_squared_error", "mean_squared_error", "root_mean_squared_error", true},
    {"log_cosh_error", "log_cosh", "logcosh", false},
};

static const char *const keras_metrics[] = {
    "mean", "sum", "mean_metric_wrapper", "concordance_correlation", "pearson_correlation",
};

/* ---- reading ------------------------------------------------------------ */

static plim_status read_keys(struct metric *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    static const struct model_option options[] = {
        {"name", option_text, .offset = offsetof(struct metric, name)},
        {.word = "dtype"}, /* float32, whatever the policy */
        {"k", option_whole, .offset = offsetof(struct metric, k), .least = 1},
        {"threshold", option_number, .offset = offsetof(struct metric, threshold)},
    };
    const struct option_place at = {out->type->name, job, yaml, NULL};
    return yaml_absent(yaml) ? PLIM_OK : options_read(out, options, COUNT(options), &at, error);
}

/* A loss's arguments, and a name. */
static plim_status read_loss_keys(struct metric *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    const struct setting word = {"name", SETTING_WORD, 0, 0};
    if (yaml_absent(yaml))
        return PLIM_OK;
    TRY(loss_read_arguments(&out->loss, job, yaml, error));
    const struct yaml *name = yaml->kind == YAML_MAP ? yaml_get(yaml, "name") : NULL;
    return name ? setting_value(&out->name, &word, job, name, error) : PLIM_OK;
}

static bool is_named(const struct metric_type *type, const char *name)
{
    return same_word(name, type->name) || (type->alias && same_word(name, type->alias));
}

/* *shown: what it is called unless it has a name of its own. */
static bool find_metric(struct metric *out, const char **shown, const char *name)
{
    const char *loss = name;
    for (int i = 0; i < COUNT(metrics) + summed_metrics_count; i++) {
        const struct metric_type *type = i < COUNT(metrics) ? &metrics[i] : &summed_metrics[i - COUNT(metrics)];
        if (is_named(type, name)) {
            out->type = type;
            *shown = type->name;
            return true;
        }
    }
    *shown = NULL;
    for (int i = 0; i < COUNT(other_names); i++)
        if (same_word(name, other_names[i].name)) {
            loss = other_names[i].loss;
            *shown = other_names[i].shown;
            out->root = other_names[i].root;
        }
    out->loss.type = loss_named(loss);
    if (out->loss.type && !*shown)
        *shown = out->loss.type->name;
    return out->loss.type != NULL;
}

#define MOST_NAMES 96

static plim_status unknown_metric(const char *name, const char *where, plim_error *error)
{
    const char *names[MOST_NAMES];
    int count = 0;
    for (int i = 0; i < COUNT(metrics); i++)
        names[count++] = metrics[i].name;
    for (int i = 0; i < summed_metrics_count && count < MOST_NAMES; i++)
        names[count++] = summed_metrics[i].name;
    for (int i = 0; i < losses_count && count < MOST_NAMES; i++)
        names[count++] = loss_name(i);
    const struct choices choices = {
        .words = names, .count = count, .keras = keras_metrics, .keras_count = COUNT(keras_metrics)};
    return option_unknown("metric", name, where, &choices, error);
}

static plim_status read_metric(struct metric *out, struct arena *arena, const char *job, const struct yaml *yaml,
                               plim_error *error)
{
    const struct yaml *arguments;
    const char *name, *shown;
    char where[256];
    yaml_place(where, job, yaml);
    if (!named_node(&name, &arguments, yaml))
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "metrics: expected names"), "metrics: [accuracy]");
    *out = (struct metric){.k = 5, .threshold = 0.5, .name = name};
    if (!find_metric(out, &shown, name))
        return unknown_metric(name, where, error);
    loss_standards(&out->loss);
    if (arguments)
        out->name = shown;
    if (out->type && out->type->read)
        return out->type->read(out, &(struct metric_source){job, where, arguments, arena}, error);
    if (!arguments)
        return PLIM_OK;
    return (out->type ? read_keys : read_loss_keys)(out, job, arguments, error);
}

/* "a_accuracy" of output a. */
static plim_status name_with(struct metric *metric, const char *prefix, struct arena *arena, plim_error *error)
{
    if (!prefix)
        return PLIM_OK;
    metric->name = arena_format(arena, "%s_%s", prefix, metric->name);
    return metric->name ? PLIM_OK : arena_refused(arena, error);
}

static bool is_taken(const struct training *training, const char *name)
{
    for (int i = 0; i < training->metric_count; i++)
        if (strcmp(training->metric[i].name, name) == 0)
            return true;
    return false;
}

/* As Keras names it; where a weighted one has the name of another, "weighted_accuracy". */
static plim_status name_metric(struct metric *metric, const struct training *training, const struct metric_place *place,
                               struct arena *arena, plim_error *error)
{
    const char *own = metric->name;
    TRY(name_with(metric, place->prefix, arena, error));
    if (!place->weighted || !is_taken(training, metric->name))
        return PLIM_OK;
    metric->name = arena_format(arena, "weighted_%s", own);
    return metric->name ? name_with(metric, place->prefix, arena, error) : arena_refused(arena, error);
}

plim_status metrics_read(struct training *out, const struct metric_place *place, struct arena *arena, const char *job,
                         const struct yaml *yaml, plim_error *error)
{
    char where[256];
    for (const struct yaml *entry = yaml->kind == YAML_LIST ? yaml->first : yaml; entry; entry = entry->next) {
        yaml_place(where, job, entry);
        if (out->metric_count == MOST_METRICS)
            return fail_at(error, PLIM_UNSUPPORTED, where, "metrics: at most %d", MOST_METRICS);
        struct metric *metric = &out->metric[out->metric_count];
        TRY(read_metric(metric, arena, job, entry, error));
        TRY(name_metric(metric, out, place, arena, error));
        metric->output = place->output;
        metric->weighted = place->weighted;
        if (strcmp(metric->name, "loss") == 0)
            return fail_at(error, PLIM_BAD_JOB, where, "a metric is named 'loss', as the loss is");
        if (is_taken(out, metric->name))
            return fail_at(error, PLIM_BAD_JOB, where, "two metrics are named '%s'", metric->name);
        out->metric_count++;
        if (entry == yaml)
            break;
    }
    return PLIM_OK;
}

/* ---- into the graph ----------------------------------------------------- */

/* One output, as its metrics see it. */
struct output {
    struct tensor *x, *label;
    struct tensor *weight; /* what samples count by, or NULL */
    const char *layer;
    bool logits;         /* x comes before the activation, */
    enum loss_kind kind; /* which is this loss's */
};

/* What the activation would have made, where it was left to the loss. */
static struct tensor *probabilities(struct graph *graph, const struct output *output)
{
    if (!output->logits)
        return output->x;
    return unary(graph, output->kind == LOSS_BINARY ? &op_sigmoid : &op_softmax, output->x);
}

static struct tensor *loss_values(struct graph *graph, const struct loss *loss, const struct output *output)
{
    struct scale_attributes negative = {-1.0};
    if (!loss_fits(graph, output->layer, loss->type, output->x, output->label))
        return NULL;
    bool logits = output->logits && loss->type->kind == output->kind;
    struct tensor *x = logits ? output->x : probabilities(graph, output);
    if (!output->logits && !loss->from_logits)
        x = before_activation(&logits, loss->type, x);
    struct tensor *values = loss->type->values(graph, loss, x, output->label, logits || loss->from_logits);
    if (loss->type->row != ROW_COSINE || !values) /* as a loss its sign is the other one */
        return values;
    return graph_add(graph, &op_scale, &values, 1, &negative, sizeof negative);
}

static struct tensor *mean(struct graph *graph, struct tensor *values)
{
    if (values && values->shape.rank == 1)
        return unary(graph, &op_batch_mean, values);
    struct loss_mean_attributes attributes = {.sums = false};
    return graph_add(graph, &op_loss_mean, &values, 1, &attributes, sizeof attributes);
}

static struct output output_of_model(const struct model_tensors *tensors, struct graph *graph,
                                     const struct metric *metric)
{
    const struct build *build = graph->build;
    const struct model *model = build->model;
    int i = metric->output;
    return (struct output){.x = tensors->output[i].value,
                           .label = tensors->output[i].label,
                           .weight = metric->weighted ? sample_weights(graph, &tensors->output[i]) : NULL,
                           .layer = model->use[model->output[i].from].layer->name,
                           .logits = output_has_logits(build, i),
                           .kind = build->training->output_loss[i].kind};
}

/* No weight of a layer is called so: its name would be empty. */
#define TRAINING_STATES   "metric//"
#define VALIDATION_STATES "validation_metric//"

bool is_metric_state(const char *name)
{
    return strncmp(name, TRAINING_STATES, strlen(TRAINING_STATES)) == 0 ||
           strncmp(name, VALIDATION_STATES, strlen(VALIDATION_STATES)) == 0;
}

/* A state that each step adds to: the sums of values x and labels. */
static struct tensor *add_state(struct graph *graph, const struct metric *metric,
                                const struct sample_sums_attributes *how, struct tensor *const inputs[3])
{
    struct assign_attributes adds = {1};
    struct tensor *sums = graph_add(graph, &op_sample_sums, inputs, 3, how, sizeof *how);
    if (!sums)
        return NULL;
    const char *name =
        arena_format(&graph->arena, "%s%s", graph->build->fitting ? TRAINING_STATES : VALIDATION_STATES, metric->name);
    if (!name)
        return graph_refused(graph, 0);
    struct tensor *pair[2] = {graph_state(graph, name, TYPE_F64, sums->shape), sums};
    graph_add(graph, &op_assign, pair, 2, &adds, sizeof adds);
    return pair[0];
}

static struct tensor *add_sums(struct graph *graph, const struct metric *metric, const struct output *output)
{
    struct tensor *x = probabilities(graph, output);
    if (metric->from_logits)
        x = unary(graph, &op_sigmoid, x);
    if (!x)
        return NULL;
    const struct shape *shape = &x->shape;
    bool classes = metric->sums.formula == SUMS_CONFUSION;
    if (!classes && shape_count(shape) != shape_count(&output->label->shape)) {
        char scores[64], labels[64];
        shape_text(scores, sizeof scores, shape, true);
        shape_text(labels, sizeof labels, &output->label->shape, true);
        return graph_fail(graph, PLIM_BAD_JOB,
                          "%s: outputs %s of layer %s, labels %s: there must be a label for each output", metric->name,
                          scores, output->layer, labels);
    }
    if (metric->sums.apart && (shape->rank != 2 || (metric->labels && shape->dim[1] != metric->labels)))
        graph_fail(graph, PLIM_BAD_JOB, "%s: the output has %lld labels, the metric is told of %lld", metric->name,
                   (long long)(shape->rank == 2 ? shape->dim[1] : 0), (long long)metric->labels);
    return add_state(graph, metric, &metric->sums, (struct tensor *[3]){x, output->label, output->weight});
}

bool metric_has_sums(const struct metric_tensor *metric)
{
    return metric->tensor->kind == KIND_STATE;
}

double metric_value(const struct metric_tensor *metric, const void *sums, double mean)
{
    const struct metric_type *type = metric->metric ? metric->metric->type : NULL;
    if (type && type->result)
        return type->result(metric->metric, sums, &metric->tensor->shape);
    if (metric_has_sums(metric)) { /* a weighted mean */
        const double *pair = sums;
        mean = pair[1] != 0 ? pair[0] / pair[1] : 0;
    }
    return metric->metric && metric->metric->root ? sqrt(mean) : mean;
}

int64_t metric_each(const double **out, const struct metric_tensor *metric, void *sums)
{
    const struct shape *shape = &metric->tensor->shape;
    *out = NULL;
    if (!metric->metric || !metric->metric->sums.results)
        return 0;
    *out = (const double *)sums + (shape->dim[0] - 1) * shape->dim[1];
    return metric->metric->type->each(metric->metric, sums, shape);
}

static void add_metric(struct model_tensors *out, struct graph *graph, const struct metric *metric)
{
    struct tensor *values;
    struct output output = output_of_model(out, graph, metric);
    struct metric_tensor *made = &out->metric[out->metric_count];
    *made = (struct metric_tensor){.name = metric->name, .metric = metric};
    graph->layer = metric->name;
    if (metric->type && metric->type->result) {
        made->tensor = add_sums(graph, metric, &output);
        out->metric_count++;
        return;
    }
    if (metric->type)
        values =
            metric->type->values(graph, metric, output.x, output.label, output.logits && output.kind == LOSS_BINARY);
    else
        values = loss_values(graph, &metric->loss, &output);
    if (graph->failed)
        return;
    if (output.weight && values->shape.rank > 1 && out->output[metric->output].mask) {
        graph_fail(graph, PLIM_UNSUPPORTED, "%s: its output has a mask, and samples have weights: not both so far",
                   metric->name);
        return;
    }
    if (output.weight) {
        const struct sample_sums_attributes how = {.formula = SUMS_MEANS, .only = -1};
        made->tensor = add_state(graph, metric, &how, (struct tensor *[3]){values, NULL, output.weight});
    } else {
        made->tensor = mean(graph, values);
        graph_result(graph, made->tensor, metric->name);
    }
    out->metric_count++;
}

void metrics_add(struct model_tensors *out, struct graph *graph)
{
    const struct training *training = graph->build->training;
    for (int i = 0; i < training->metric_count && !graph->failed; i++)
        add_metric(out, graph, &training->metric[i]);
}
