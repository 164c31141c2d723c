/* initializer.c - first values of weights, by Keras's names.

   Each number is a function of (seed, name of the weight, index), so the
   order in which weights are filled does not matter. */
#include <math.h>
#include <string.h>

#include "base/numbers/hash.h"
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
    {"he_uniform", {.kind = INITIAL_SCALED, .value = 2, .distribution = DISTRIBUTION_UNIFORM}},
    {"lecun_normal", {.kind = INITIAL_SCALED, .value = 1}},
    {"lecun_uniform", {.kind = INITIAL_SCALED, .value = 1, .distribution = DISTRIBUTION_UNIFORM}},
    {"variance_scaling", {.kind = INITIAL_SCALED, .value = 1}},
    {"orthogonal", {.kind = INITIAL_ORTHOGONAL, .value = 1}},
    {"identity", {.kind = INITIAL_IDENTITY, .value = 1}},
};

static const char *const keras_words[] = {"stft"};

static const char *const modes[] = {"fan_in", "fan_out", "fan_avg"}; /* enum fans */
/* enum distribution */
static const char *const distributions[] = {"truncated_normal", "untruncated_normal", "uniform", "normal"};
#define NORMAL 3 /* Keras's other word for truncated_normal */

struct arguments {
    double value; /* a constant, a deviation, a scale or a gain */
    double minval, maxval, mean;
    int mode, distribution;
};

#define TO(field) .offset = offsetof(struct arguments, field)
static const struct {
    enum initializer_kind kind;
    struct model_option option;
} argument_options[] = {
    {INITIAL_CONSTANT, {"value", option_number, TO(value)}},
    {INITIAL_UNIFORM, {"minval", option_number, TO(minval)}},
    {INITIAL_UNIFORM, {"maxval", option_number, TO(maxval)}},
    {INITIAL_NORMAL, {"mean", option_number, TO(mean)}},
    {INITIAL_NORMAL, {"stddev", option_number, TO(value)}},
    {INITIAL_TRUNCATED_NORMAL, {"mean", option_number, TO(mean)}},
    {INITIAL_TRUNCATED_NORMAL, {"stddev", option_number, TO(value)}},
    {INITIAL_SCALED, {"scale", option_number, TO(value)}},
    {INITIAL_SCALED, {"mode", option_choice, TO(mode), .with = CHOICES(modes)}},
    {INITIAL_SCALED, {"distribution", option_choice, TO(distribution), .with = CHOICES(distributions)}},
    {INITIAL_ORTHOGONAL, {"gain", option_number, TO(value)}},
    {INITIAL_IDENTITY, {"gain", option_number, TO(value)}},
};

/* Those of this kind, and seed: the job's own counts. */
static int options_of(struct model_option *out, enum initializer_kind kind)
{
    int count = 0;
    for (int i = 0; i < COUNT(argument_options); i++)
        if (argument_options[i].kind == kind)
            out[count++] = argument_options[i].option;
    out[count++] = (struct model_option){.word = "seed"};
    return count;
}

/* `constant: 0.5`, `Constant: {value: 0.5}`, `RandomUniform: {minval: -0.1, maxval: 0.1}`. */
static plim_status read_arguments(struct initializer *out, const char *job, const struct yaml *node, plim_error *error)
{
    struct model_option options[COUNT(argument_options) + 1];
    struct arguments a = {.value = out->value,
                          .minval = -out->value,
                          .maxval = out->value,
                          .mode = (int)out->fans,
                          .distribution = (int)out->distribution};
    if (yaml_absent(node))
        return PLIM_OK;
    const struct option_place at = {node->key, job, node, NULL};
    int count = options_of(options, out->kind);
    if (node->kind == YAML_SCALAR && count < 2)
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "arguments of %s: it takes none", node->key);
    if (node->kind == YAML_SCALAR)
        TRY(options[0].read((char *)&a + options[0].offset, &options[0], &at, node, error));
    else
        TRY(options_read(&a, options, count, &at, error));
    bool uniform = out->kind == INITIAL_UNIFORM;
    out->fans = (enum fans)a.mode;
    out->distribution = a.distribution == NORMAL ? DISTRIBUTION_TRUNCATED : (enum distribution)a.distribution;
    out->value = uniform ? (a.maxval - a.minval) / 2 : a.value;
    out->center = uniform ? (a.maxval + a.minval) / 2 : a.mean;
    if (!isfinite(out->value) || (out->kind == INITIAL_SCALED && out->value <= 0))
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "an initializer's scale must be more than 0");
    return PLIM_OK;
}

OPTION_READER(option_initializer)
{
    return initializer_read(out, at->job, option->word, node, error);
}

plim_status initializer_read(struct initializer *out, const char *job, const char *word, const struct yaml *node,
                             plim_error *error)
{
    const char *names[COUNT(words)], *name;
    const struct yaml *arguments;
    char where[256];
    int found;
    if (yaml_absent(node))
        return PLIM_OK;
    yaml_place(where, job, node);
    if (!named_node(&name, &arguments, node))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected an initializer's name", word);
    for (int i = 0; i < COUNT(words); i++)
        names[i] = words[i].name;
    TRY(choose_word(&found, "initializer", name, CHOICES_OF(names, keras_words), where, error));
    *out = words[found].is;
    return read_arguments(out, job, arguments, error);
}

/* ---- numbers ---- */

struct stream {
    uint64_t seed, name;
};

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
    if (initializer->distribution == DISTRIBUTION_UNIFORM)
        fill_uniform(data, type, count, sqrt(3 * variance), 0, stream);
    else if (initializer->distribution == DISTRIBUTION_NORMAL)
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
    struct stream stream = {seed, fnv1a_text(name)};
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
