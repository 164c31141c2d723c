/* optimizer.c - SGD and Adam with Keras's words and defaults. */
#include "model/optimizer.h"

#include "model/layer_options.h"
#include "ops/ops.h"

/* Keras's words for all optimizers that we have only the default of. */
struct optimizer_words {
    struct optimizer optimizer;
    const struct yaml *amsgrad, *weight_decay, *clipnorm, *clipvalue, *global_clipnorm, *use_ema, *accumulation, *name;
    const struct yaml *learning_rate;
};

#define AT(field) offsetof(struct optimizer_words, field)
#define COMMON_WORDS                                                                                                   \
    {"learning_rate", SETTING_NODE, AT(learning_rate), 0}, {"weight_decay", SETTING_NODE, AT(weight_decay), 0},        \
        {"clipnorm", SETTING_NODE, AT(clipnorm), 0}, {"clipvalue", SETTING_NODE, AT(clipvalue), 0},                    \
        {"global_clipnorm", SETTING_NODE, AT(global_clipnorm), 0}, {"use_ema", SETTING_NODE, AT(use_ema), 0},          \
        {"gradient_accumulation_steps", SETTING_NODE, AT(accumulation), 0},                                            \
    {                                                                                                                  \
        "name", SETTING_NODE, AT(name), 0                                                                              \
    }

static plim_status in_range(const char *job, const struct yaml *yaml, const char *word, double value, double least,
                            double most, plim_error *error)
{
    char where[256];
    if (value >= least && value <= most)
        return PLIM_OK;
    const struct yaml *at = yaml && yaml->kind == YAML_MAP ? yaml_get(yaml, word) : yaml;
    yaml_place(where, job, at ? at : yaml);
    return fail_at(error, PLIM_BAD_JOB, where, "%s: must be between %g and %g, got %g", word, least, most, value);
}

static plim_status read_rate(struct optimizer *out, const char *job, const struct yaml *node, plim_error *error)
{
    const struct setting number = {"learning_rate", SETTING_NUMBER, 0, 0};
    char where[256];
    if (!node)
        return PLIM_OK;
    if (node->kind != YAML_SCALAR) {
        yaml_place(where, job, node);
        return fail_at(error, PLIM_UNSUPPORTED, where, "learning_rate: schedules are not supported yet");
    }
    return setting_value(&out->learning_rate, &number, job, node, error);
}

/* `adam: 0.001` is the learning rate, as Keras's first argument. */
static plim_status read_words(struct optimizer *out, const struct setting *settings, int count, const char *job,
                              const struct yaml *yaml, plim_error *error)
{
    struct optimizer_words words = {.optimizer = *out};
    const char *owner = out->type->name;
    if (!yaml)
        return PLIM_OK;
    if (yaml->kind == YAML_SCALAR && !yaml->is_null)
        words.learning_rate = yaml;
    else
        TRY(settings_read(&words, settings, count, job, yaml, error));
    TRY(read_rate(&words.optimizer, job, words.learning_rate, error));
    TRY(option_default(owner, job, "amsgrad", "false", words.amsgrad, error));
    TRY(option_default(owner, job, "weight_decay", "null", words.weight_decay, error));
    TRY(option_default(owner, job, "clipnorm", "null", words.clipnorm, error));
    TRY(option_default(owner, job, "clipvalue", "null", words.clipvalue, error));
    TRY(option_default(owner, job, "global_clipnorm", "null", words.global_clipnorm, error));
    TRY(option_default(owner, job, "use_ema", "false", words.use_ema, error));
    TRY(option_default(owner, job, "gradient_accumulation_steps", "null", words.accumulation, error));
    TRY(in_range(job, yaml, "learning_rate", words.optimizer.learning_rate, 0.0, 1e30, error));
    *out = words.optimizer;
    return PLIM_OK;
}

static struct tensor *slot(struct graph *graph, const struct tensor *w, const char *name)
{
    if (graph->failed || !w)
        return NULL;
    const char *full = arena_format(&graph->arena, "optimizer/%s/%s", w->name, name);
    if (!full) {
        graph->failed = budget_refused(graph->arena.budget, TAG_PLANNER, graph->arena.block_bytes, &graph->error);
        return NULL;
    }
    return graph_state(graph, full, w->type, w->shape);
}

/* ---- SGD ---- */

static const struct setting sgd_settings[] = {
    {"momentum", SETTING_NUMBER, AT(optimizer.momentum), 0},
    {"nesterov", SETTING_BOOL, AT(optimizer.nesterov), 0},
    COMMON_WORDS,
};

static plim_status sgd_read(struct optimizer *optimizer, const char *job, const struct yaml *yaml, plim_error *error)
{
    optimizer->learning_rate = 0.01;
    TRY(read_words(optimizer, sgd_settings, LENGTH(sgd_settings), job, yaml, error));
    return in_range(job, yaml, "momentum", optimizer->momentum, 0.0, 1.0, error);
}

static void sgd_update(const struct optimizer *optimizer, struct graph *graph, struct tensor *w, struct tensor *g,
                       struct tensor *learning_rate, struct tensor *iteration)
{
    (void)iteration;
    struct sgd_attributes attributes = {.momentum = optimizer->momentum, .nesterov = optimizer->nesterov};
    bool keeps = optimizer->momentum != 0.0;
    struct tensor *inputs[4] = {w, g, learning_rate, keeps ? slot(graph, w, "momentum") : NULL};
    graph_add(graph, &op_sgd, inputs, keeps ? 4 : 3, &attributes, sizeof attributes);
}

static const struct optimizer_type sgd = {.name = "sgd", .read = sgd_read, .update = sgd_update};

/* ---- Adam ---- */

static const struct setting adam_settings[] = {
    {"beta_1", SETTING_NUMBER, AT(optimizer.beta_1), 0},
    {"beta_2", SETTING_NUMBER, AT(optimizer.beta_2), 0},
    {"epsilon", SETTING_NUMBER, AT(optimizer.epsilon), 0},
    {"amsgrad", SETTING_NODE, AT(amsgrad), 0},
    COMMON_WORDS,
};

static plim_status adam_read(struct optimizer *optimizer, const char *job, const struct yaml *yaml, plim_error *error)
{
    optimizer->learning_rate = 0.001;
    optimizer->beta_1 = 0.9;
    optimizer->beta_2 = 0.999;
    optimizer->epsilon = 1e-7;
    TRY(read_words(optimizer, adam_settings, LENGTH(adam_settings), job, yaml, error));
    TRY(in_range(job, yaml, "beta_1", optimizer->beta_1, 0.0, 0.999999999, error));
    TRY(in_range(job, yaml, "beta_2", optimizer->beta_2, 0.0, 0.999999999, error));
    return in_range(job, yaml, "epsilon", optimizer->epsilon, 0.0, 1e30, error);
}

static void adam_update(const struct optimizer *optimizer, struct graph *graph, struct tensor *w, struct tensor *g,
                        struct tensor *learning_rate, struct tensor *iteration)
{
    struct adam_attributes attributes = {
        .beta_1 = optimizer->beta_1, .beta_2 = optimizer->beta_2, .epsilon = optimizer->epsilon};
    struct tensor *m = slot(graph, w, "momentum"), *v = slot(graph, w, "velocity");
    struct tensor *inputs[6] = {w, g, m, v, learning_rate, iteration};
    graph_add(graph, &op_adam, inputs, 6, &attributes, sizeof attributes);
}

static const struct optimizer_type adam = {.name = "adam", .read = adam_read, .update = adam_update};

/* ---- by name ---- */

static const struct optimizer_type *const optimizers[] = {&adam, &sgd};

static const char *const keras_optimizers[] = {
    "rmsprop", "adamw", "adadelta", "adagrad", "adamax", "adafactor",
    "nadam",   "ftrl",  "lion",     "lamb",    "muon",   "loss_scale_optimizer",
};

plim_status optimizer_read(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    const char *names[LENGTH(optimizers)];
    char where[256];
    bool map = yaml->kind == YAML_MAP && yaml->count == 1;
    const char *name = map ? yaml->first->key : yaml->text;
    yaml_place(where, job, yaml);
    if (!map && (yaml->kind != YAML_SCALAR || yaml->is_null))
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where, "optimizer: expected a name, or one name with its settings"),
                    "optimizer: {adam: {learning_rate: 0.001}}");
    for (int i = 0; i < LENGTH(optimizers); i++) {
        names[i] = optimizers[i]->name;
        if (same_word(name, names[i])) {
            struct optimizer optimizer = {.type = optimizers[i]};
            TRY(optimizer.type->read(&optimizer, job, map ? yaml->first : NULL, error));
            *out = optimizer;
            return PLIM_OK;
        }
    }
    return option_unknown("optimizer", name, where, names, LENGTH(names), keras_optimizers, LENGTH(keras_optimizers),
                          error);
}
