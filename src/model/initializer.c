/* initializer.c - first values of weights, by Keras's names.

   Each number is a function of (seed, name of the weight, index), so the
   order in which weights are filled does not matter. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "model/layer_options.h"

#define KERAS_LIMIT 0.05 /* of random_uniform without arguments */

struct initializer_word {
    const char *name;
    enum initializer_kind kind;
};

static const struct initializer_word words[] = {
    {"glorot_uniform", INITIAL_GLOROT_UNIFORM},
    {"he_normal", INITIAL_HE_NORMAL},
    {"zeros", INITIAL_ZEROS},
    {"ones", INITIAL_ONES},
    {"constant", INITIAL_CONSTANT},
    {"random_uniform", INITIAL_UNIFORM},
    {"uniform", INITIAL_UNIFORM},
};

static const char *const keras_words[] = {
    "glorot_normal",  "he_uniform",       "lecun_normal", "lecun_uniform",    "random_normal",
    "truncated_normal", "orthogonal",   "variance_scaling", "identity",
};

/* `constant: 0.5`, `Constant: {value: 0.5}`; the others have no arguments here but a null. */
static plim_status read_arguments(struct initializer *out, const struct layer *layer, const char *word,
                                  const struct yaml *arguments, plim_error *error)
{
    const char *job = layer->model->job;
    const struct setting value = {"value", SETTING_NUMBER, 0, 0};
    if (out->kind == INITIAL_CONSTANT && arguments) {
        if (arguments->kind == YAML_MAP)
            return settings_read(&out->value, &value, 1, job, arguments, error);
        return setting_value(&out->value, &value, job, arguments, error);
    }
    if (!arguments || (arguments->kind == YAML_SCALAR ? arguments->is_null : arguments->count == 0))
        return PLIM_OK;
    char where[256];
    yaml_place(where, job, arguments);
    return fail_at(error, PLIM_UNSUPPORTED, where, "%s: arguments of %s are not supported yet", word, arguments->key);
}

plim_status option_initializer(struct initializer *out, const struct layer *layer, const char *word,
                               const struct yaml *node, plim_error *error)
{
    const char *names[LENGTH(words)];
    char where[256];
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    const struct yaml *arguments = node->kind == YAML_MAP && node->count == 1 ? node->first : NULL;
    const char *name = arguments ? arguments->key : node->text;
    yaml_place(where, layer->model->job, node);
    if (!arguments && node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected an initializer's name", word);
    for (int i = 0; i < LENGTH(words); i++) {
        names[i] = words[i].name;
        if (same_word(name, words[i].name)) {
            out->kind = words[i].kind;
            if (out->kind == INITIAL_UNIFORM)
                out->value = KERAS_LIMIT;
            return read_arguments(out, layer, word, arguments, error);
        }
    }
    return option_unknown("initializer", name, where, names, LENGTH(names), keras_words, LENGTH(keras_words), error);
}

static uint64_t name_hash(const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 1099511628211u;
    return hash;
}

static void fill_uniform(void *data, enum type type, int64_t count, double limit, uint64_t seed, uint64_t stream)
{
    uint32_t bits[4];
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            random_block(bits, seed, stream, (uint64_t)i / 4);
        element_set(data, type, i, limit * (2.0 * (double)random_unit(bits[i % 4]) - 1.0));
    }
}

/* A standard normal number between -2 and 2: the first of the candidates of
   this index that lies inside (Box and Muller). */
static double truncated_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t bits[4];
    for (uint64_t attempt = 0; attempt < 16; attempt++) {
        random_block(bits, seed, stream, index + (attempt << 48));
        for (int i = 0; i < 4; i += 2) {
            double radius = sqrt(-2.0 * log(1.0 - (double)random_unit(bits[i])));
            double turn = 6.283185307179586 * (double)random_unit(bits[i + 1]);
            double pair[2] = {radius * cos(turn), radius * sin(turn)};
            for (int k = 0; k < 2; k++)
                if (fabs(pair[k]) < 2.0)
                    return pair[k];
        }
    }
    return 0.0;
}

static void fill_he_normal(void *data, enum type type, int64_t count, int64_t fan_in, uint64_t seed, uint64_t stream)
{
    /* The division makes up for the deviation that the cut takes away. */
    double deviation = sqrt(2.0 / (double)(fan_in > 0 ? fan_in : 1)) / 0.87962566103423978;
    for (int64_t i = 0; i < count; i++)
        element_set(data, type, i, deviation * truncated_normal(seed, stream, (uint64_t)i));
}

static void fill_constant(void *data, enum type type, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++)
        element_set(data, type, i, value);
}

void initializer_fill(void *data, enum type type, int64_t count, const struct initializer *initializer, uint64_t seed,
                      const char *name)
{
    uint64_t stream = name_hash(name);
    double fans = (double)initializer->fan_in + (double)initializer->fan_out;
    switch (initializer->kind) {
    case INITIAL_ZEROS:
        fill_constant(data, type, count, 0.0);
        break;
    case INITIAL_ONES:
        fill_constant(data, type, count, 1.0);
        break;
    case INITIAL_CONSTANT:
        fill_constant(data, type, count, initializer->value);
        break;
    case INITIAL_UNIFORM:
        fill_uniform(data, type, count, initializer->value, seed, stream);
        break;
    case INITIAL_GLOROT_UNIFORM:
        fill_uniform(data, type, count, sqrt(6.0 / (fans > 0.0 ? fans : 1.0)), seed, stream);
        break;
    case INITIAL_HE_NORMAL:
        fill_he_normal(data, type, count, initializer->fan_in, seed, stream);
        break;
    }
}
