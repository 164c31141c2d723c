/* layer_options.c - what layers share: options, and checks when a graph is built. */
#include "model/layers/layer_options.h"

#include <stdarg.h>
#include <string.h>

#include "base/text/message.h"

OPTION_READER(option_extent)
{
    int64_t extent;
    TRY(option_whole(&extent, option, at, node, error));
    if (extent > MOST_EXTENT)
        return layer_fail(at->layer, error, PLIM_BAD_JOB, "%s must be at most %lld, got %lld", option->word,
                          (long long)MOST_EXTENT, (long long)extent);
    *(int64_t *)out = extent;
    return PLIM_OK;
}

OPTION_READER(option_positive)
{
    double value;
    TRY(option_number(&value, option, at, node, error));
    if (!(value > 0))
        return layer_fail(at->layer, error, PLIM_BAD_JOB, "%s must be above 0, got %g", option->word, value);
    *(double *)out = value;
    return PLIM_OK;
}

OPTION_READER(option_not_negative)
{
    double value;
    TRY(option_number(&value, option, at, node, error));
    if (!(value >= 0))
        return layer_fail(at->layer, error, PLIM_BAD_JOB, "%s must not be negative, got %g", option->word, value);
    *(double *)out = value;
    return PLIM_OK;
}

OPTION_READER(option_rate)
{
    double value;
    TRY(option_number(&value, option, at, node, error));
    if (!(value >= 0 && value < 1))
        return layer_fail(at->layer, error, PLIM_BAD_JOB, "%s must be in [0, 1), got %g", option->word, value);
    *(double *)out = value;
    return PLIM_OK;
}

OPTION_READER(option_axes)
{
    static const char *const count[] = {"", " or two", " or three"};
    int axes = at->layer->type->axes;
    if (yaml_absent(node))
        return PLIM_OK;
    if (node->kind != YAML_SCALAR && (node->kind != YAML_LIST || node->count != axes))
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "%s: expected a whole number%s, got a %s of %d",
                         option->word, count[axes - 1], yaml_kind_name(node), node->count);
    const struct yaml *entry = node->kind == YAML_LIST ? node->first : NULL;
    for (int i = 0; i < axes; i++, entry = entry ? entry->next : NULL)
        TRY(option_extent((int64_t *)out + i, option, at, entry ? entry : node, error));
    return PLIM_OK;
}

OPTION_READER(option_padding)
{
    static const char *const words[] = {"valid", "same"};
    char where[256];
    int same = 0;
    yaml_place(where, at->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "padding: expected valid or same, got a %s", yaml_kind_name(node));
    TRY(choose_word(&same, option->word, node->text, CHOICES(words), where, error));
    *(bool *)out = same;
    return PLIM_OK;
}

/* ---- layers ---- */

static const struct model_option common_options[] = {
    {"name", option_text, .offset = offsetof(struct layer_keys, name)},
    {"dtype", option_node, .offset = offsetof(struct layer_keys, dtype)},
    {"inputs", option_node, .offset = offsetof(struct layer_keys, inputs)},
    {"trainable", option_flag, .offset = offsetof(struct layer_keys, trainable)},
};

/* A scalar or a list of scalars stands for the inputs of a layer that merges. */
static bool is_inputs(const struct layer_type *type, const struct yaml *yaml)
{
    return is_first_argument(yaml) && type->merge && !(type->scalar_first && yaml->kind == YAML_SCALAR);
}

plim_status layer_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    const struct layer_type *type = layer->type;
    struct layer_keys *keys = layer->options;
    struct model_option options[MOST_OPTIONS];
    struct option_place at = {type->name, layer->model->job, yaml, layer};
    int own = type->option_count, count = own + COUNT(common_options);
    if (type->defaults)
        memcpy(layer->options, type->defaults, type->options_bytes);
    keys->trainable = true;
    if (own)
        memcpy(options, type->option, (size_t)own * sizeof *options);
    memcpy(options + own, common_options, sizeof common_options);
    if (yaml && is_inputs(type, yaml)) {
        keys->inputs = yaml;
        at.map = NULL;
    }
    TRY(options_read_argument(layer->options, options, count, &at, error));
    if (yaml)
        TRY(weight_options_read(layer, yaml, error));
    TRY(policy_read_node(&layer->compute, &layer->says_compute, type->name, at.job, keys->dtype, error));
    return type->check ? type->check(layer, error) : PLIM_OK;
}

plim_status layer_missing(const struct layer *layer, const char *word, plim_error *error)
{
    plim_status status = layer_fail(layer, error, PLIM_BAD_JOB, "'%s' is missing", word);
    return hint(error, status, layer->type->example, layer->type->name);
}

plim_status(layer_fail)(const struct layer *layer, plim_error *error, plim_status code, const char *format, ...)
{
    char where[256], message[sizeof error->message + 1];
    va_list list;
    va_start(list, format);
    message_print_list(message, sizeof message, format, list);
    va_end(list);
    layer_place(where, layer);
    return fail_at(error, code, where, "%s: %s", layer->type->name, message);
}

/* ---- shapes, when a graph is built ---- */

struct tensor *layer_misfit(const struct layer *layer, struct graph *graph, const struct tensor *x, const char *format,
                            ...)
{
    char shape[96], message[300];
    va_list list;
    va_start(list, format);
    message_print_list(message, sizeof message, format, list);
    va_end(list);
    shape_text(shape, sizeof shape, &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: %s %s", layer->name, message, shape);
    return NULL;
}

bool layer_last_axis(const struct layer *layer, struct graph *graph, const struct tensor *x, int64_t axis)
{
    char shape[96];
    int last = x->shape.rank - 1;
    if (last >= 1 && (axis == -1 || axis == last))
        return true;
    shape_text(shape, sizeof shape, &x->shape, true);
    if (last < 1)
        layer_misfit(layer, graph, x, "wants at least (batch, features), got");
    else if (axis > last || axis < -1 - last)
        layer_misfit(layer, graph, x, "axis %lld is outside of", (long long)axis);
    else
        graph_fail(graph, PLIM_UNSUPPORTED, "%s: axis %lld of %s is not supported yet; only the last one", layer->name,
                   (long long)axis, shape);
    return false;
}

bool layer_needs_rank(const struct layer *layer, struct graph *graph, const struct tensor *x, int rank)
{
    static const char *const wanted[] = {"(batch)",
                                         "(batch, features)",
                                         "(batch, steps, channels)",
                                         "(batch, height, width, channels)",
                                         "(batch, depth, height, width, channels)",
                                         "(batch, steps, depth, height, width, channels)"};
    if (!x || x->shape.rank == rank)
        return x != NULL;
    return layer_misfit(layer, graph, x, "wants %s, got", wanted[rank - 1]) != NULL;
}

bool has_spatial_axes(const struct layer *layer, struct graph *graph, const struct tensor *x)
{
    static const char *const wanted[] = {"length", "height, width", "depth, height, width"};
    int axes = layer->type->axes;
    return x->shape.rank == axes + 2 ||
           layer_misfit(layer, graph, x, "wants (batch, %s, channels), got", wanted[axes - 1]) != NULL;
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

bool window_place(int64_t *out, int64_t pad[2], int64_t in, int64_t window, int64_t stride, bool same)
{
    pad[0] = pad[1] = 0;
    if (!same) {
        *out = (in - window) / stride + 1;
        return in >= window;
    }
    *out = (in + stride - 1) / stride;
    int64_t missing = (*out - 1) * stride + window - in;
    if (missing > 0) {
        pad[0] = missing / 2;
        pad[1] = missing - pad[0];
    }
    return true;
}
