/* optimizer.c - reading an optimizer's keys. */
#include "model/training/optimizer.h"

#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "model/layers/layer_options.h"

/* ---- options of all optimizers ---- */

struct common_keys {
    struct optimizer optimizer;
    const struct yaml *states;
};

static plim_status in_range(const char *job, const struct yaml *yaml, const char *word, double value, double least,
                            double most, plim_error *error)
{
    if (value >= least && value <= most)
        return PLIM_OK;
    const struct yaml *at = yaml && yaml->kind == YAML_MAP ? yaml_get(yaml, word) : yaml;
    return yaml_fail(error, PLIM_BAD_JOB, job, at ? at : yaml, "%s: must be between %g and %g, got %g", word, least,
                     most, value);
}

static OPTION_READER(read_limit)
{
    TRY(option_number(out, option, at, node, error));
    return in_range(at->job, node, option->word, *(const double *)out, 0.0, 1e30, error);
}

/* A number or a schedule. */
static OPTION_READER(read_rate)
{
    struct optimizer *optimizer = out;
    if (yaml_absent(node))
        return PLIM_OK;
    if (node->kind == YAML_SCALAR)
        return option_number(&optimizer->learning_rate, option, at, node, error);
    TRY(schedule_read(&optimizer->schedule, at->job, node, error));
    optimizer->learning_rate = (double)(float)schedule_rate(&optimizer->schedule, 0);
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct common_keys, field)
static const struct model_option common_options[] = {
    {"learning_rate", read_rate, TO(optimizer)},
    {"weight_decay", read_limit, TO(optimizer.rule.weight_decay), .nullable = true},
    {"clipnorm", read_limit, TO(optimizer.clipnorm), .nullable = true},
    {"clipvalue", read_limit, TO(optimizer.clipvalue), .nullable = true},
    {"global_clipnorm", read_limit, TO(optimizer.global_clipnorm), .nullable = true},
    {"use_ema", option_flag, TO(optimizer.use_ema)},
    {"ema_momentum", option_number, TO(optimizer.ema_momentum)},
    {"ema_overwrite_frequency", option_whole, TO(optimizer.ema_overwrite_frequency), .least = 1, .nullable = true},
    {"gradient_accumulation_steps", option_whole, TO(optimizer.accumulation), .least = 2, .nullable = true},
    {"loss_scale_factor", option_only, .with = "null"},
    {"states", option_node, TO(states)},
    {.word = "name"},
};

/* ---- all keys of one optimizer ------------------------------------------- */

static void set_standards(struct optimizer *out)
{
    const struct optimizer_type *type = out->type;
    out->learning_rate = type->learning_rate;
    out->rule.weight_decay = type->weight_decay;
    out->ema_momentum = 0.99;
    for (const struct optimizer_word *word = type->word; word < type->word + MOST_OPTIMIZER_WORDS && word->word;
         word++) {
        char *at = (char *)out + word->offset;
        if (word->truth)
            *(bool *)at = word->standard != 0.0;
        else
            *(double *)at = word->standard;
    }
}

static plim_status check_keys(const struct optimizer *optimizer, const char *job, const struct yaml *yaml,
                              plim_error *error)
{
    const struct optimizer_type *type = optimizer->type;
    for (const struct optimizer_word *word = type->word; word < type->word + MOST_OPTIMIZER_WORDS && word->word; word++)
        if (!word->truth)
            TRY(in_range(job, yaml, word->word, *(const double *)((const char *)optimizer + word->offset), word->least,
                         word->most, error));
    TRY(in_range(job, yaml, "learning_rate", optimizer->learning_rate, 0.0, 1e30, error));
    TRY(in_range(job, yaml, "ema_momentum", optimizer->ema_momentum, 0.0, 1.0, error));
    int clips = (optimizer->clipnorm > 0) + (optimizer->clipvalue > 0) + (optimizer->global_clipnorm > 0);
    if (clips < 2)
        return PLIM_OK;
    return yaml_fail(error, PLIM_BAD_JOB, job, yaml, "only one of clipnorm, clipvalue and global_clipnorm can be set");
}

/* Our own option: what the states are kept in. */
static plim_status read_states(struct optimizer *out, const struct option_place *at, const struct yaml *node,
                               plim_error *error)
{
    const char *word = "";
    TRY(option_text(&word, &(struct model_option){.word = "states"}, at, node, error));
    if (same_word(word, "float32"))
        return PLIM_OK;
    if (!same_word(word, "8bit"))
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "states: float32 or 8bit, got '%s'", word);
    if (!out->type->small)
        return yaml_fail(error, PLIM_UNSUPPORTED, at->job, node, "%s has no 8bit states; adam and adamw have",
                         out->type->name);
    if (out->amsgrad)
        return yaml_fail(error, PLIM_UNSUPPORTED, at->job, node, "amsgrad with 8bit states is not offered");
    out->small_states = true;
    return PLIM_OK;
}

static plim_status read_all(struct common_keys *keys, const struct option_place *at, plim_error *error)
{
    const struct optimizer_type *type = keys->optimizer.type;
    struct model_option options[COUNT(common_options) + MOST_OPTIMIZER_WORDS];
    int count = 0;
    for (const struct optimizer_word *word = type->word; count < MOST_OPTIMIZER_WORDS && word->word; word++)
        options[count++] =
            (struct model_option){word->word, word->truth ? option_flag : option_number,
                                  .offset = (uint32_t)(offsetof(struct common_keys, optimizer) + word->offset)};
    memcpy(&options[count], common_options, sizeof common_options);
    TRY(options_read(keys, options, count + COUNT(common_options), at, error));
    return keys->states ? read_states(&keys->optimizer, at, keys->states, error) : PLIM_OK;
}

/* `adam: 0.001` is the learning rate, as Keras's first argument. */
static plim_status read_type(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    struct common_keys keys = {.optimizer = *out};
    const struct option_place at = {out->type->name, job, yaml, NULL};
    set_standards(&keys.optimizer);
    if (yaml && yaml->kind == YAML_SCALAR && !yaml->is_null)
        TRY(read_rate(&keys.optimizer, &common_options[0], &at, yaml, error));
    else if (!yaml_absent(yaml))
        TRY(read_all(&keys, &at, error));
    TRY(check_keys(&keys.optimizer, job, yaml, error));
    *out = keys.optimizer;
    return PLIM_OK;
}

/* ---- by name ------------------------------------------------------------- */

static const char *const keras_optimizers[] = {"muon", "schedule_free_adamw", "radam", "asgd"};

/* Keras's wrapper for float16: {inner_optimizer: adam, initial_scale: 32768, dynamic_growth_steps: 2000}. */
struct scale_keys {
    const struct yaml *inner;
    double scale;
    int64_t growth;
};
#undef TO
#define TO(field) .offset = offsetof(struct scale_keys, field)
static const struct model_option scale_options[] = {
    {"inner_optimizer", option_node, TO(inner), .required = true},
    {"initial_scale", option_number, TO(scale)},
    {"dynamic_growth_steps", option_whole, TO(growth), .least = 1},
    {.word = "name"},
};

static plim_status read_scaled(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    struct scale_keys keys = {.scale = 32768.0, .growth = 2000};
    const struct option_place at = {"loss_scale_optimizer", job, yaml, NULL};
    TRY(options_read(&keys, scale_options, COUNT(scale_options), &at, error));
    TRY(in_range(job, yaml, "initial_scale", keys.scale, 1e-30, 1e30, error));
    TRY(optimizer_read(out, job, keys.inner, error));
    if (out->scales_loss)
        return yaml_fail(error, PLIM_BAD_JOB, job, yaml, "inner_optimizer: is a loss_scale_optimizer itself");
    out->scales_loss = true;
    out->initial_scale = keys.scale;
    out->growth_steps = keys.growth;
    return PLIM_OK;
}

plim_status optimizer_read(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    const char *names[32], *name;
    const struct yaml *arguments;
    char where[256];
    int found;
    yaml_place(where, job, yaml);
    if (!named_node(&name, &arguments, yaml))
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where, "optimizer: expected a name, or one name with its settings"),
                    "optimizer: {adam: {learning_rate: 0.001}}");
    if (same_word(name, "loss_scale_optimizer") && arguments && arguments->kind == YAML_MAP)
        return read_scaled(out, job, arguments, error);
    for (int i = 0; i < optimizer_types_count; i++)
        names[i] = optimizer_types[i]->name;
    const struct choices choices = {names, optimizer_types_count, keras_optimizers, COUNT(keras_optimizers)};
    TRY(choose_word(&found, "optimizer", name, &choices, where, error));
    struct optimizer optimizer = {.type = optimizer_types[found], .initial_scale = 32768.0, .growth_steps = 2000};
    TRY(read_type(&optimizer, job, arguments, error));
    *out = optimizer;
    return PLIM_OK;
}
