/* optimizer.c - reading an optimizer's words. */
#include "model/training/optimizer.h"

#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "model/layers/layer_options.h"

/* Words of all optimizers; numbers that may be null are nodes. */
struct common_words {
    struct optimizer optimizer;
    const struct yaml *learning_rate, *weight_decay, *clipnorm, *clipvalue, *global_clipnorm, *overwrite, *accumulation,
        *scale_factor, *name;
    const char *states;
};

#define AT(field) offsetof(struct common_words, field)
static const struct setting common_settings[] = {
    {"learning_rate", SETTING_NODE, AT(learning_rate), 0},
    {"weight_decay", SETTING_NODE, AT(weight_decay), 0},
    {"clipnorm", SETTING_NODE, AT(clipnorm), 0},
    {"clipvalue", SETTING_NODE, AT(clipvalue), 0},
    {"global_clipnorm", SETTING_NODE, AT(global_clipnorm), 0},
    {"use_ema", SETTING_BOOL, AT(optimizer.use_ema), 0},
    {"ema_momentum", SETTING_NUMBER, AT(optimizer.ema_momentum), 0},
    {"ema_overwrite_frequency", SETTING_NODE, AT(overwrite), 0},
    {"gradient_accumulation_steps", SETTING_NODE, AT(accumulation), 0},
    {"loss_scale_factor", SETTING_NODE, AT(scale_factor), 0},
    {"states", SETTING_WORD, AT(states), 0},
    {"name", SETTING_NODE, AT(name), 0},
};
#define COMMON LENGTH(common_settings)

/* ---- numbers ------------------------------------------------------------ */

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

static bool absent(const struct yaml *node)
{
    return !node || (node->kind == YAML_SCALAR && node->is_null);
}

static plim_status number_or_null(double *out, const char *job, const char *word, const struct yaml *node, double least,
                                  plim_error *error)
{
    const struct setting number = {word, SETTING_NUMBER, 0, 0};
    if (absent(node))
        return PLIM_OK;
    TRY(setting_value(out, &number, job, node, error));
    return in_range(job, node, word, *out, least, 1e30, error);
}

static plim_status whole_or_null(int64_t *out, const char *job, const char *word, const struct yaml *node,
                                 int64_t least, plim_error *error)
{
    const struct setting whole = {word, SETTING_WHOLE, 0, least};
    return absent(node) ? PLIM_OK : setting_value(out, &whole, job, node, error);
}

static plim_status read_rate(struct optimizer *out, const char *job, const struct yaml *node, plim_error *error)
{
    const struct setting number = {"learning_rate", SETTING_NUMBER, 0, 0};
    if (absent(node))
        return PLIM_OK;
    if (node->kind == YAML_SCALAR)
        return setting_value(&out->learning_rate, &number, job, node, error);
    TRY(schedule_read(&out->schedule, job, node, error));
    out->learning_rate = (double)(float)schedule_rate(&out->schedule, 0);
    return PLIM_OK;
}

/* ---- all words of one optimizer ------------------------------------------ */

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

static plim_status check_words(const struct optimizer *optimizer, const char *job, const struct yaml *yaml,
                               plim_error *error)
{
    const struct optimizer_type *type = optimizer->type;
    char where[256];
    for (const struct optimizer_word *word = type->word; word < type->word + MOST_OPTIMIZER_WORDS && word->word; word++)
        if (!word->truth)
            TRY(in_range(job, yaml, word->word, *(const double *)((const char *)optimizer + word->offset), word->least,
                         word->most, error));
    TRY(in_range(job, yaml, "learning_rate", optimizer->learning_rate, 0.0, 1e30, error));
    TRY(in_range(job, yaml, "ema_momentum", optimizer->ema_momentum, 0.0, 1.0, error));
    int clips = (optimizer->clipnorm > 0) + (optimizer->clipvalue > 0) + (optimizer->global_clipnorm > 0);
    if (clips < 2)
        return PLIM_OK;
    yaml_place(where, job, yaml);
    return fail_at(error, PLIM_BAD_JOB, where, "only one of clipnorm, clipvalue and global_clipnorm can be set");
}

/* Our own word: what the states are kept in. */
static plim_status read_states(struct optimizer *out, const char *job, const struct yaml *yaml, const char *word,
                               plim_error *error)
{
    char where[256];
    if (!word || same_word(word, "float32"))
        return PLIM_OK;
    yaml_place(where, job, yaml_get(yaml, "states"));
    if (!same_word(word, "8bit"))
        return fail_at(error, PLIM_BAD_JOB, where, "states: float32 or 8bit, got '%s'", word);
    if (!out->type->small)
        return fail_at(error, PLIM_UNSUPPORTED, where, "%s has no 8bit states; adam and adamw have", out->type->name);
    if (out->amsgrad)
        return fail_at(error, PLIM_UNSUPPORTED, where, "amsgrad with 8bit states is not offered");
    out->small_states = true;
    return PLIM_OK;
}

static plim_status read_common(struct common_words *words, const char *job, const struct yaml *yaml, plim_error *error)
{
    struct optimizer *out = &words->optimizer;
    struct setting settings[COMMON + MOST_OPTIMIZER_WORDS];
    int count = 0;
    for (const struct optimizer_word *word = out->type->word; count < MOST_OPTIMIZER_WORDS && word->word; word++)
        settings[count++] =
            (struct setting){word->word, word->truth ? SETTING_BOOL : SETTING_NUMBER, AT(optimizer) + word->offset, 0};
    memcpy(&settings[count], common_settings, sizeof common_settings);
    TRY(settings_read(words, settings, count + COMMON, job, yaml, error));
    TRY(number_or_null(&out->rule.weight_decay, job, "weight_decay", words->weight_decay, 0.0, error));
    TRY(number_or_null(&out->clipnorm, job, "clipnorm", words->clipnorm, 0.0, error));
    TRY(number_or_null(&out->clipvalue, job, "clipvalue", words->clipvalue, 0.0, error));
    TRY(number_or_null(&out->global_clipnorm, job, "global_clipnorm", words->global_clipnorm, 0.0, error));
    TRY(whole_or_null(&out->ema_overwrite_frequency, job, "ema_overwrite_frequency", words->overwrite, 1, error));
    TRY(whole_or_null(&out->accumulation, job, "gradient_accumulation_steps", words->accumulation, 2, error));
    TRY(read_states(out, job, yaml, words->states, error));
    return option_default(out->type->name, job, "loss_scale_factor", "null", words->scale_factor, error);
}

/* `adam: 0.001` is the learning rate, as Keras's first argument. */
static plim_status read_type(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    struct common_words words = {.optimizer = *out};
    set_standards(&words.optimizer);
    if (yaml && yaml->kind == YAML_SCALAR && !yaml->is_null)
        words.learning_rate = yaml;
    else if (!absent(yaml))
        TRY(read_common(&words, job, yaml, error));
    TRY(read_rate(&words.optimizer, job, words.learning_rate, error));
    TRY(check_words(&words.optimizer, job, yaml, error));
    *out = words.optimizer;
    return PLIM_OK;
}

/* ---- by name ------------------------------------------------------------- */

static const char *const keras_optimizers[] = {"muon", "schedule_free_adamw", "radam", "asgd"};

/* Keras's wrapper for float16: {inner_optimizer: adam, initial_scale: 32768, dynamic_growth_steps: 2000}. */
static plim_status read_scaled(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    struct {
        const struct yaml *inner, *name;
        double scale;
        int64_t growth;
    } words = {.scale = 32768.0, .growth = 2000};
    const struct setting settings[] = {
        {"inner_optimizer", SETTING_NODE, (size_t)((char *)&words.inner - (char *)&words), 0},
        {"initial_scale", SETTING_NUMBER, (size_t)((char *)&words.scale - (char *)&words), 0},
        {"dynamic_growth_steps", SETTING_WHOLE, (size_t)((char *)&words.growth - (char *)&words), 1},
        {"name", SETTING_NODE, (size_t)((char *)&words.name - (char *)&words), 0},
    };
    char where[256];
    TRY(settings_read(&words, settings, LENGTH(settings), job, yaml, error));
    yaml_place(where, job, yaml);
    if (!words.inner)
        return fail_at(error, PLIM_BAD_JOB, where, "loss_scale_optimizer: 'inner_optimizer' is missing");
    TRY(in_range(job, yaml, "initial_scale", words.scale, 1e-30, 1e30, error));
    TRY(optimizer_read(out, job, words.inner, error));
    if (out->scales_loss)
        return fail_at(error, PLIM_BAD_JOB, where, "inner_optimizer: is a loss_scale_optimizer itself");
    out->scales_loss = true;
    out->initial_scale = words.scale;
    out->growth_steps = words.growth;
    return PLIM_OK;
}

plim_status optimizer_read(struct optimizer *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    const char *names[32];
    char where[256];
    bool map = yaml->kind == YAML_MAP && yaml->count == 1;
    const char *name = map ? yaml->first->key : yaml->text;
    yaml_place(where, job, yaml);
    if (!map && (yaml->kind != YAML_SCALAR || yaml->is_null))
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where, "optimizer: expected a name, or one name with its settings"),
                    "optimizer: {adam: {learning_rate: 0.001}}");
    if (same_word(name, "loss_scale_optimizer") && map && yaml->first->kind == YAML_MAP)
        return read_scaled(out, job, yaml->first, error);
    for (int i = 0; i < optimizer_types_count; i++) {
        names[i] = optimizer_types[i]->name;
        if (same_word(name, names[i])) {
            struct optimizer optimizer = {.type = optimizer_types[i], .initial_scale = 32768.0, .growth_steps = 2000};
            TRY(read_type(&optimizer, job, map ? yaml->first : NULL, error));
            *out = optimizer;
            return PLIM_OK;
        }
    }
    return option_unknown("optimizer", name, where, names, optimizer_types_count, keras_optimizers,
                          LENGTH(keras_optimizers), error);
}
