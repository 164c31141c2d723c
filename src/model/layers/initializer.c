/* initializer.c - first values of weights, by Keras's names.

   Each number is a function of (seed, name of the weight, index), so the
   order in which weights are filled does not matter. */
#include <math.h>
#include <string.h>

#include "base/numbers/random.h"
#include "model/layers/layer_options.h"

#define SHRUNK 0.87962566103423978 /* deviation of a normal number that is cut at two deviations */

/* ---- words ---- */

struct initializer_word {
    const char *name;
    struct initializer is; /* without arguments */
};

static const struct initializer_word words[] = {
    {"glorot_uniform", {.kind = INITIAL_GLOROT_UNIFORM}},
    {"he_normal", {.kind = INITIAL_HE_NORMAL}},
    {"zeros", {.kind = INITIAL_ZEROS}},
    {"ones", {.kind = INITIAL_ONES}},
    {"constant", {.kind = INITIAL_CONSTANT}},
    {"random_uniform", {.kind = INITIAL_UNIFORM, .value = 0.05}},
    {"uniform", {.kind = INITIAL_UNIFORM, .value = 0.05}},
    {"random_normal", {.kind = INITIAL_NORMAL, .value = 0.05}},
    {"normal", {.kind = INITIAL_NORMAL, .value = 0.05}},
    {"truncated_normal", {.kind = INITIAL_TRUNCATED_NORMAL, .value = 0.05}},
    {"glorot_normal", {.kind = INITIAL_SCALED, .value = 1, .fans = FANS_BOTH}},
    {"he_uniform", {.kind = INITIAL_SCALED, .value = 2, .spread = SPREAD_UNIFORM}},
    {"lecun_normal", {.kind = INITIAL_SCALED, .value = 1}},
    {"lecun_uniform", {.kind = INITIAL_SCALED, .value = 1, .spread = SPREAD_UNIFORM}},
    {"variance_scaling", {.kind = INITIAL_SCALED, .value = 1}},
    {"orthogonal", {.kind = INITIAL_ORTHOGONAL, .value = 1}},
    {"identity", {.kind = INITIAL_IDENTITY, .value = 1}},
};

static const char *const keras_words[] = {"stft"};

struct arguments {
    double value, minval, maxval, mean, stddev, scale, gain;
    const char *mode, *distribution;
    const struct yaml *seed; /* the job's own counts */
};

#define AT(field) offsetof(struct arguments, field)
static const struct {
    enum initializer_kind kind;
    struct setting setting;
} argument_words[] = {
    {INITIAL_CONSTANT, {"value", SETTING_NUMBER, AT(value), 0}},
    {INITIAL_UNIFORM, {"minval", SETTING_NUMBER, AT(minval), 0}},
    {INITIAL_UNIFORM, {"maxval", SETTING_NUMBER, AT(maxval), 0}},
    {INITIAL_NORMAL, {"mean", SETTING_NUMBER, AT(mean), 0}},
    {INITIAL_NORMAL, {"stddev", SETTING_NUMBER, AT(stddev), 0}},
    {INITIAL_TRUNCATED_NORMAL, {"mean", SETTING_NUMBER, AT(mean), 0}},
    {INITIAL_TRUNCATED_NORMAL, {"stddev", SETTING_NUMBER, AT(stddev), 0}},
    {INITIAL_SCALED, {"scale", SETTING_NUMBER, AT(scale), 0}},
    {INITIAL_SCALED, {"mode", SETTING_WORD, AT(mode), 0}},
    {INITIAL_SCALED, {"distribution", SETTING_WORD, AT(distribution), 0}},
    {INITIAL_ORTHOGONAL, {"gain", SETTING_NUMBER, AT(gain), 0}},
    {INITIAL_IDENTITY, {"gain", SETTING_NUMBER, AT(gain), 0}},
};

/* The words of this kind, and seed. */
static int settings_of(struct setting *out, enum initializer_kind kind)
{
    int count = 0;
    for (int i = 0; i < LENGTH(argument_words); i++)
        if (argument_words[i].kind == kind)
            out[count++] = argument_words[i].setting;
    out[count++] = (struct setting){"seed", SETTING_NODE, AT(seed), 0};
    return count;
}

static plim_status choose(int *out, const char *what, const char *word, const char *const *offered, int count,
                          const char *where, plim_error *error)
{
    for (int i = 0; word && i < count; i++)
        if (same_word(word, offered[i])) {
            *out = i;
            return PLIM_OK;
        }
    return word ? option_unknown(what, word, where, offered, count, NULL, 0, error) : PLIM_OK;
}

static plim_status take_arguments(struct initializer *out, const struct arguments *a, const char *where,
                                  plim_error *error)
{
    static const char *const modes[] = {"fan_in", "fan_out", "fan_avg"};
    static const char *const distributions[] = {"truncated_normal", "untruncated_normal", "uniform", "normal"};
    int fans = (int)out->fans, spread = (int)out->spread;
    TRY(choose(&fans, "mode", a->mode, modes, LENGTH(modes), where, error));
    TRY(choose(&spread, "distribution", a->distribution, distributions, LENGTH(distributions), where, error));
    out->fans = (enum fans)fans;
    out->spread = spread == 3 ? SPREAD_TRUNCATED : (enum spread)spread; /* Keras's other word for it */
    switch (out->kind) {
    case INITIAL_CONSTANT:
        out->value = a->value;
        break;
    case INITIAL_UNIFORM:
        out->value = (a->maxval - a->minval) / 2;
        out->center = (a->maxval + a->minval) / 2;
        break;
    case INITIAL_NORMAL:
    case INITIAL_TRUNCATED_NORMAL:
        out->value = a->stddev;
        out->center = a->mean;
        break;
    case INITIAL_SCALED:
        out->value = a->scale;
        break;
    default:
        out->value = a->gain;
    }
    bool good = isfinite(out->value) && (out->kind != INITIAL_SCALED || out->value > 0);
    return good ? PLIM_OK : fail_at(error, PLIM_BAD_JOB, where, "an initializer's scale must be more than 0");
}

/* `constant: 0.5`, `Constant: {value: 0.5}`, `RandomUniform: {minval: -0.1, maxval: 0.1}`. */
static plim_status read_arguments(struct initializer *out, const char *job, const struct yaml *node, plim_error *error)
{
    struct setting settings[LENGTH(argument_words) + 1];
    struct arguments a = {.value = out->value,
                          .minval = -out->value,
                          .maxval = out->value,
                          .stddev = out->value,
                          .scale = out->value,
                          .gain = out->value};
    char where[256];
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    yaml_place(where, job, node);
    int count = settings_of(settings, out->kind);
    if (node->kind == YAML_SCALAR && count < 2)
        return fail_at(error, PLIM_BAD_JOB, where, "arguments of %s: it takes none", node->key);
    if (node->kind == YAML_SCALAR)
        TRY(setting_value((char *)&a + settings[0].offset, &settings[0], job, node, error));
    else
        TRY(settings_read(&a, settings, count, job, node, error));
    return count > 1 ? take_arguments(out, &a, where, error) : PLIM_OK;
}

plim_status option_initializer(struct initializer *out, const struct layer *layer, const char *word,
                               const struct yaml *node, plim_error *error)
{
    return initializer_read(out, layer->model->job, word, node, error);
}

plim_status initializer_read(struct initializer *out, const char *job, const char *word, const struct yaml *node,
                             plim_error *error)
{
    const char *names[LENGTH(words)];
    char where[256];
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    const struct yaml *arguments = node->kind == YAML_MAP && node->count == 1 ? node->first : NULL;
    const char *name = arguments ? arguments->key : node->text;
    yaml_place(where, job, node);
    if (!arguments && node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected an initializer's name", word);
    for (int i = 0; i < LENGTH(words); i++) {
        names[i] = words[i].name;
        if (same_word(name, words[i].name)) {
            *out = words[i].is;
            return read_arguments(out, job, arguments, error);
        }
    }
    return option_unknown("initializer", name, where, names, LENGTH(names), keras_words, LENGTH(keras_words), error);
}

/* ---- numbers ---- */

struct stream {
    uint64_t seed, name;
};

static uint64_t name_hash(const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 1099511628211u;
    return hash;
}

static void fill_uniform(void *data, enum type type, int64_t count, double limit, double center, struct stream stream)
{
    uint32_t bits[4];
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            random_block(bits, stream.seed, stream.name, (uint64_t)i / 4);
        element_set(data, type, i, center + limit * (2.0 * (double)random_unit(bits[i % 4]) - 1.0));
    }
}

/* A standard normal number between -most and most: the first of the candidates of
   this index that lies inside (Box and Muller). */
static double normal(struct stream stream, uint64_t index, double most)
{
    uint32_t bits[4];
    for (uint64_t attempt = 0; attempt < 16; attempt++) {
        random_block(bits, stream.seed, stream.name, index + (attempt << 48));
        for (int i = 0; i < 4; i += 2) {
            double radius = sqrt(-2.0 * log(1.0 - (double)random_unit(bits[i])));
            double turn = 6.283185307179586 * (double)random_unit(bits[i + 1]);
            double pair[2] = {radius * cos(turn), radius * sin(turn)};
            for (int k = 0; k < 2; k++)
                if (fabs(pair[k]) < most)
                    return pair[k];
        }
    }
    return 0.0;
}

static void fill_normal(void *data, enum type type, int64_t count, double deviation, double mean, double most,
                        struct stream stream)
{
    for (int64_t i = 0; i < count; i++)
        element_set(data, type, i, mean + deviation * normal(stream, (uint64_t)i, most));
}

static void fill_constant(void *data, enum type type, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++)
        element_set(data, type, i, value);
}

/* Variance scale / n; n is what flows in, out, or the mean of both. */
static void fill_scaled(void *data, enum type type, int64_t count, const struct initializer *initializer,
                        struct stream stream)
{
    double in = (double)initializer->fan_in, out = (double)initializer->fan_out;
    double n = initializer->fans == FANS_IN ? in : initializer->fans == FANS_OUT ? out : (in + out) / 2;
    double variance = initializer->value / (n > 1 ? n : 1);
    if (initializer->spread == SPREAD_UNIFORM)
        fill_uniform(data, type, count, sqrt(3 * variance), 0, stream);
    else if (initializer->spread == SPREAD_NORMAL)
        fill_normal(data, type, count, sqrt(variance), 0, INFINITY, stream);
    else
        fill_normal(data, type, count, sqrt(variance) / SHRUNK, 0, 2, stream);
}

/* Vectors of `length` numbers, `step` apart, number v from v * next on. */
struct vectors {
    void *data;
    enum type type;
    int64_t count, length, step, next;
};

static double at(const struct vectors *v, int64_t vector, int64_t i)
{
    return element_get(v->data, v->type, vector * v->next + i * v->step);
}

/* Takes from vector a what it has of vector b, or (b == a) makes it `gain` long. */
static void straighten(const struct vectors *v, int64_t a, int64_t b, double gain)
{
    double product = 0, square = 0;
    for (int64_t i = 0; i < v->length; i++) {
        product += at(v, a, i) * at(v, b, i);
        square += at(v, b, i) * at(v, b, i);
    }
    double less = square > 0 ? product / square : 0, factor = square > 0 ? gain / sqrt(square) : 0;
    for (int64_t i = 0; i < v->length; i++)
        element_set(v->data, v->type, a * v->next + i * v->step,
                    a == b ? at(v, a, i) * factor : at(v, a, i) - less * at(v, b, i));
}

/* Of a matrix whose last axis are its columns: the fewer of rows and columns become orthogonal (Gram and Schmidt,
   twice, which is enough). Signs are those of the normal numbers it began with, as after Keras's QR. */
static void fill_orthogonal(void *data, enum type type, int64_t count, const struct initializer *initializer,
                            struct stream stream)
{
    int64_t columns = initializer->columns > 0 ? initializer->columns : 1, rows = count / columns;
    struct vectors v = {data, type, columns, rows, columns, 1};
    if (rows < columns)
        v = (struct vectors){data, type, rows, columns, 1, columns};
    fill_normal(data, type, count, 1, 0, INFINITY, stream);
    for (int64_t a = 0; a < v.count; a++) {
        for (int64_t b = 0; b < 2 * a; b++)
            straighten(&v, a, b % a, 1);
        straighten(&v, a, a, 1);
    }
    for (int64_t a = 0; a < v.count; a++)
        straighten(&v, a, a, initializer->value);
}

static void fill_identity(void *data, enum type type, int64_t count, const struct initializer *initializer)
{
    int64_t columns = initializer->columns > 0 ? initializer->columns : 1;
    for (int64_t i = 0; i < count; i++)
        element_set(data, type, i, i / columns == i % columns ? initializer->value : 0);
}

void initializer_fill(void *data, enum type type, int64_t count, const struct initializer *initializer, uint64_t seed,
                      const char *name)
{
    struct stream stream = {seed, name_hash(name)};
    double in = (double)initializer->fan_in, fans = in + (double)initializer->fan_out;
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
        fill_uniform(data, type, count, initializer->value, initializer->center, stream);
        break;
    case INITIAL_NORMAL:
        fill_normal(data, type, count, initializer->value, initializer->center, INFINITY, stream);
        break;
    case INITIAL_TRUNCATED_NORMAL:
        fill_normal(data, type, count, initializer->value, initializer->center, 2, stream);
        break;
    case INITIAL_GLOROT_UNIFORM:
        fill_uniform(data, type, count, sqrt(6.0 / (fans > 0.0 ? fans : 1.0)), 0, stream);
        break;
    case INITIAL_HE_NORMAL:
        fill_normal(data, type, count, sqrt(2.0 / (in > 0 ? in : 1)) / SHRUNK, 0, 2, stream);
        break;
    case INITIAL_SCALED:
        fill_scaled(data, type, count, initializer, stream);
        break;
    case INITIAL_ORTHOGONAL:
        fill_orthogonal(data, type, count, initializer, stream);
        break;
    case INITIAL_IDENTITY:
        fill_identity(data, type, count, initializer);
        break;
    }
    for (int64_t i = count / 4; i < count / 2 && initializer->forget; i++)
        element_set(data, type, i, 1.0);
}
