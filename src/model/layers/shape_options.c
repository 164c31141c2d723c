/* shape_options.c - what layers that move things about read. */
#include "model/layers/shape_options.h"

static bool absent(const struct yaml *node)
{
    return !node || (node->kind == YAML_SCALAR && node->is_null);
}

static plim_status read_one(int64_t *out, int64_t least, const struct layer *layer, const char *word,
                            const struct yaml *node, plim_error *error)
{
    const struct setting setting = {word, SETTING_WHOLE, 0, least};
    TRY(setting_value(out, &setting, layer->model->job, node, error));
    return option_extent(layer, word, *out, error);
}

static plim_status wrong_count(const struct layer *layer, const char *word, const struct yaml *node, int count,
                               plim_error *error)
{
    char where[256];
    yaml_place(where, layer->model->job, node);
    return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a whole number or %d, got a %s of %d", word, count,
                   node->kind == YAML_LIST ? "list" : "map", node->count);
}

plim_status option_wholes(int64_t *out, int count, int64_t least, const struct layer *layer, const char *word,
                          const struct yaml *node, plim_error *error)
{
    if (absent(node))
        return PLIM_OK;
    if (node->kind != YAML_SCALAR && (node->kind != YAML_LIST || node->count != count))
        return wrong_count(layer, word, node, count, error);
    const struct yaml *entry = node->kind == YAML_LIST ? node->first : NULL;
    for (int i = 0; i < count; i++, entry = entry ? entry->next : NULL)
        TRY(read_one(&out[i], least, layer, word, entry ? entry : node, error));
    return PLIM_OK;
}

plim_status option_borders(int64_t (*out)[2], int axes, const struct layer *layer, const char *word,
                           const struct yaml *node, plim_error *error)
{
    if (absent(node))
        return PLIM_OK;
    if (node->kind == YAML_SCALAR || axes == 1) {
        TRY(option_wholes(out[0], 2, 0, layer, word, node, error));
        for (int i = 1; i < axes; i++) {
            out[i][0] = out[0][0];
            out[i][1] = out[0][1];
        }
        return PLIM_OK;
    }
    if (node->kind != YAML_LIST || node->count != axes)
        return wrong_count(layer, word, node, axes, error);
    const struct yaml *entry = node->first;
    for (int i = 0; i < axes; i++, entry = entry->next)
        TRY(option_wholes(out[i], 2, 0, layer, word, entry, error));
    return PLIM_OK;
}

plim_status option_word(int *out, const struct layer *layer, const char *word, const struct yaml *node,
                        const char *const *words, int count, const char *const *keras, int keras_count,
                        plim_error *error)
{
    char where[256];
    if (absent(node))
        return PLIM_OK;
    yaml_place(where, layer->model->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a word, got a %s", word,
                       node->kind == YAML_LIST ? "list" : "map");
    for (int i = 0; i < count; i++)
        if (same_word(node->text, words[i])) {
            *out = i;
            return PLIM_OK;
        }
    return option_unknown(word, node->text, where, words, count, keras, keras_count, error);
}

bool layer_needs_rank(const struct layer *layer, struct graph *graph, const struct tensor *x, int rank)
{
    static const char *const wanted[] = {"(batch)",
                                         "(batch, features)",
                                         "(batch, steps, channels)",
                                         "(batch, height, width, channels)",
                                         "(batch, depth, height, width, channels)",
                                         "(batch, steps, depth, height, width, channels)"};
    char shape[96];
    if (!x || x->shape.rank == rank)
        return x != NULL;
    shape_text(shape, sizeof shape, &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: wants %s, got %s", layer->name, wanted[rank - 1], shape);
    return false;
}

int layer_axis(const struct layer *layer, struct graph *graph, const struct tensor *x, int64_t axis)
{
    char shape[96];
    int64_t at = axis < 0 ? axis + x->shape.rank : axis;
    if (at > 0 && at < x->shape.rank)
        return (int)at;
    shape_text(shape, sizeof shape, &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: axis %lld of %s is %s", layer->name, (long long)axis, shape,
               at == 0 ? "the batch" : "not there");
    return -1;
}
