/* layer_options.c - what the readers of layers' options share. */
#include "model/layers/layer_options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/habits.h"
#include "base/text/text.h"

plim_status option_default(const char *owner, const char *job, const char *word, const char *only,
                           const struct yaml *node, plim_error *error)
{
    char where[256];
    double value, wanted;
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    if (node->kind == YAML_LIST && node->first) {
        for (const struct yaml *entry = node->first; entry; entry = entry->next)
            TRY(option_default(owner, job, word, only, entry, error));
        return PLIM_OK;
    }
    if (node->kind == YAML_SCALAR) {
        if (strcmp(node->text, only) == 0)
            return PLIM_OK;
        if (setting_number(&wanted, only) && setting_number(&value, node->text) && value == wanted)
            return PLIM_OK;
    }
    yaml_place(where, job, node);
    return fail_at(error, PLIM_UNSUPPORTED, where, "%s: %s other than %s is not supported yet", owner, word, only);
}

/* List entries that are scalars: `MaxPooling2D: [2, 2]`, not a list of maps. */
static bool is_first_argument(const struct yaml *yaml)
{
    if (yaml->kind == YAML_LIST)
        return yaml->first && yaml->first->kind == YAML_SCALAR;
    return yaml->kind == YAML_SCALAR && !yaml->is_null;
}

plim_status layer_read(struct layer *layer, const struct setting *settings, int count, const struct yaml *yaml,
                       plim_error *error)
{
    struct layer_words *words = layer->options;
    const char *job = layer->model->job;
    words->trainable = true;
    if (!yaml)
        return PLIM_OK;
    if (is_first_argument(yaml) && layer->type->merge) {
        words->inputs = yaml;
        return PLIM_OK;
    }
    if (is_first_argument(yaml))
        return setting_value((char *)layer->options + settings[0].offset, &settings[0], job, yaml, error);
    TRY(settings_read(layer->options, settings, count, job, yaml, error));
    TRY(weight_options_read(layer, yaml, error));
    return policy_read_node(&layer->compute, &layer->says_compute, layer->type->name, job, words->dtype, error);
}

plim_status layer_missing(const struct layer *layer, const char *word, const char *example, plim_error *error)
{
    char where[256];
    layer_place(where, layer);
    plim_status status = fail_at(error, PLIM_BAD_JOB, where, "%s: '%s' is missing", layer->type->name, word);
    return hint(error, status, "%s", example);
}

plim_status option_extent(const struct layer *layer, const char *word, int64_t extent, plim_error *error)
{
    char where[256];
    if (extent <= MOST_EXTENT)
        return PLIM_OK;
    layer_place(where, layer);
    return fail_at(error, PLIM_BAD_JOB, where, "%s: %s must be at most %lld, got %lld", layer->type->name, word,
                   (long long)MOST_EXTENT, (long long)extent);
}

plim_status option_positive(const struct layer *layer, const char *word, double value, plim_error *error)
{
    char where[256];
    if (value > 0)
        return PLIM_OK;
    layer_place(where, layer);
    return fail_at(error, PLIM_BAD_JOB, where, "%s: %s must be above 0, got %g", layer->type->name, word, value);
}

bool layer_last_axis(const struct layer *layer, struct graph *graph, const struct tensor *x, int64_t axis)
{
    char shape[96];
    int last = x->shape.rank - 1;
    if (last >= 1 && (axis == -1 || axis == last))
        return true;
    shape_text(shape, sizeof shape, &x->shape, true);
    if (last < 1)
        graph_fail(graph, PLIM_BAD_JOB, "%s: wants at least (batch, features), got %s", layer->name, shape);
    else if (axis > last || axis < -1 - last)
        graph_fail(graph, PLIM_BAD_JOB, "%s: axis %lld is outside of %s", layer->name, (long long)axis, shape);
    else
        graph_fail(graph, PLIM_UNSUPPORTED, "%s: axis %lld of %s is not supported yet; only the last one", layer->name,
                   (long long)axis, shape);
    return false;
}

static plim_status read_extent(int64_t *out, int64_t least, const struct layer *layer, const char *word,
                               const struct yaml *node, plim_error *error)
{
    const struct setting setting = {word, SETTING_WHOLE, 0, least};
    TRY(setting_value(out, &setting, layer->model->job, node, error));
    return option_extent(layer, word, *out, error);
}

plim_status option_axes(int64_t *out, int axes, int64_t least, const struct layer *layer, const char *word,
                        const struct yaml *node, plim_error *error)
{
    static const char *const count[] = {"", " or two", " or three"};
    char where[256];
    int64_t read[3] = {0};
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    if (node->kind != YAML_SCALAR && (node->kind != YAML_LIST || node->count != axes)) {
        yaml_place(where, layer->model->job, node);
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a whole number%s, got a %s of %d", word,
                       count[axes - 1], node->kind == YAML_LIST ? "list" : "map", node->count);
    }
    const struct yaml *entry = node->kind == YAML_LIST ? node->first : node;
    for (int i = 0; i < axes; i++) {
        TRY(read_extent(&read[i], least, layer, word, entry, error));
        entry = node->kind == YAML_LIST ? entry->next : entry;
    }
    for (int i = 0; i < axes; i++)
        out[i] = read[i];
    return PLIM_OK;
}

bool same_word(const char *a, const char *b)
{
    for (;;) {
        a += *a == '_';
        b += *b == '_';
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

/* All of them, or the page that lists them where they are too many for a line. */
static plim_status hint_offered(const char *what, const char *const *ours, int count, plim_status status,
                                plim_error *error)
{
    char offered[200] = "";
    size_t length = 0;
    for (int i = 0; i < count && length < sizeof offered; i++)
        length += (size_t)snprintf(offered + length, sizeof offered - length, "%s%s", i ? ", " : "", ours[i]);
    if (length < sizeof offered)
        return hint(error, status, "there are %s", offered);
    bool layer = strcmp(what, "layer") == 0;
    return hint(error, status, "doc/%s.md lists those that there are", layer ? "layers" : "training");
}

plim_status option_unknown(const char *what, const char *word, const char *where, const char *const *ours,
                           int our_count, const char *const *keras, int keras_count, plim_error *error)
{
    const char *near = habit_word(word, ours, (size_t)our_count), *instead = habit_instead(word);
    for (int i = 0; i < keras_count; i++)
        if (same_word(word, keras[i])) { /* no slip: what is spelled like it is not meant */
            plim_status later = fail_at(error, PLIM_UNSUPPORTED, where, "%s '%s' is not supported yet", what, word);
            return instead ? hint(error, later, "%s", instead) : hint_offered(what, ours, our_count, later, error);
        }
    plim_status status = fail_at(error, PLIM_BAD_JOB, where, "unknown %s '%s'", what, word);
    return near ? hint(error, status, "did you mean '%s'?", near) : hint_offered(what, ours, our_count, status, error);
}

plim_status option_padding(bool *same, const struct layer *layer, const struct yaml *node, plim_error *error)
{
    static const char *const words[] = {"valid", "same"};
    char where[256];
    if (!node)
        return PLIM_OK;
    yaml_place(where, layer->model->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "padding: expected valid or same, got a %s",
                       node->kind == YAML_LIST ? "list" : "map");
    for (int i = 0; i < LENGTH(words); i++)
        if (same_word(node->text, words[i])) {
            *same = i == 1;
            return PLIM_OK;
        }
    return option_unknown("padding", node->text, where, words, LENGTH(words), NULL, 0, error);
}

bool window_place(int64_t *out, int64_t *before, int64_t *after, int64_t in, int64_t window, int64_t stride, bool same)
{
    *before = *after = 0;
    if (!same) {
        *out = (in - window) / stride + 1;
        return in >= window;
    }
    *out = (in + stride - 1) / stride;
    int64_t missing = (*out - 1) * stride + window - in;
    if (missing > 0) {
        *before = missing / 2;
        *after = missing - *before;
    }
    return true;
}
