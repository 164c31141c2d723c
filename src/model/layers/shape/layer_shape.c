/* layer_shape.c - Input, Rescaling and Flatten: layers without weights at
   the border between data and model. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "ops/ops.h"

/* ---- Input: says what the data must look like; adds nothing ---- */

struct input {
    struct layer_words words;
    struct shape shape; /* of one element; -1: any */
    const struct yaml *shape_word, *batch_size;
    const char *dtype; /* the data's own counts; this is what shapes without data are made with */
};

static const struct setting input_settings[] = {
    {"shape", SETTING_NODE, offsetof(struct input, shape_word), 0},
    {"batch_size", SETTING_NODE, offsetof(struct input, batch_size), 0},
    {"dtype", SETTING_WORD, offsetof(struct input, dtype), 0},
    LAYER_WORDS,
};

static plim_status input_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct input *input = layer->options;
    const struct setting extent = {"shape", SETTING_WHOLE, 0, 1};
    char where[256];
    TRY(layer_read(layer, input_settings, LENGTH(input_settings), yaml, error));
    enum type type;
    if (input->dtype && !type_from_name(&type, input->dtype)) {
        layer_place(where, layer);
        return fail_at(error, PLIM_BAD_JOB, where, "dtype: '%s' is no type of numbers", input->dtype);
    }
    if (!input->shape_word)
        return layer_missing(layer, "shape", "Input: {shape: [28, 28, 1]}", error);
    if (input->shape_word->kind != YAML_LIST || input->shape_word->count >= MOST_AXES) {
        yaml_place(where, layer->model->job, input->shape_word);
        return fail_at(error, PLIM_BAD_JOB, where, "shape: expected a list of at most %d whole numbers", MOST_AXES - 1);
    }
    for (const struct yaml *entry = input->shape_word->first; entry; entry = entry->next) {
        int64_t *dim = &input->shape.dim[input->shape.rank++];
        *dim = -1;
        if (entry->kind != YAML_SCALAR || (!entry->is_null && strcmp(entry->text, "None") != 0))
            TRY(setting_value(dim, &extent, layer->model->job, entry, error));
    }
    return PLIM_OK;
}

void input_spec(struct column_spec *out, const struct layer *layer)
{
    const struct input *input = layer->options;
    *out = (struct column_spec){.type = TYPE_F32, .shape = input->shape};
    if (input->dtype)
        type_from_name(&out->type, input->dtype);
}

static struct tensor *input_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct input *input = layer->options;
    char wanted[96], got[96];
    if (!x)
        return NULL;
    bool fits = x->shape.rank == input->shape.rank + 1;
    for (int i = 0; fits && i < input->shape.rank; i++)
        fits = input->shape.dim[i] < 0 || input->shape.dim[i] == x->shape.dim[i + 1];
    if (fits)
        return x;
    struct shape element = shape_of(x->shape.rank - 1, x->shape.dim + 1);
    shape_text(wanted, sizeof wanted, &input->shape, false);
    shape_text(got, sizeof got, &element, false);
    graph_fail(graph, PLIM_BAD_JOB, "%s: says %s, an element of the data is %s", layer->name, wanted, got);
    return NULL;
}

const struct layer_type layer_input = {
    .name = "Input",
    .alias = "InputLayer",
    .snake = "input_layer",
    .hidden = true,
    .any_type = true,
    .keeps_mask = true,
    .options_bytes = sizeof(struct input),
    .read = input_read,
    .build = input_build,
};

/* ---- Rescaling: y = x * scale + offset, from any type ---- */

struct rescaling {
    struct layer_words words;
    double scale, offset;
    const struct yaml *scale_word;
};

static const struct setting rescaling_settings[] = {
    {"scale", SETTING_NODE, offsetof(struct rescaling, scale_word), 0},
    {"offset", SETTING_NUMBER, offsetof(struct rescaling, offset), 0},
    LAYER_WORDS,
};

static plim_status rescaling_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct rescaling *rescaling = layer->options;
    const struct setting scale = {"scale", SETTING_NUMBER, 0, 0};
    TRY(layer_read(layer, rescaling_settings, LENGTH(rescaling_settings), yaml, error));
    if (!rescaling->scale_word)
        return layer_missing(layer, "scale", "Rescaling: 1/255", error);
    return setting_value(&rescaling->scale, &scale, layer->model->job, rescaling->scale_word, error);
}

static struct tensor *rescaling_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct rescaling *rescaling = layer->options;
    struct rescale_attributes attributes = {.scale = rescaling->scale, .offset = rescaling->offset};
    return graph_add(graph, &op_rescale, &x, 1, &attributes, sizeof attributes);
}

const struct layer_type layer_rescaling = {
    .name = "Rescaling",
    .snake = "rescaling",
    .keeps_mask = true,
    .any_type = true,
    .options_bytes = sizeof(struct rescaling),
    .read = rescaling_read,
    .build = rescaling_build,
};

/* ---- Flatten ---- */

struct flatten {
    struct layer_words words;
    const struct yaml *data_format;
};

static const struct setting flatten_settings[] = {
    {"data_format", SETTING_NODE, offsetof(struct flatten, data_format), 0},
    LAYER_WORDS,
};

static plim_status flatten_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct flatten *flatten = layer->options;
    TRY(layer_read(layer, flatten_settings, LENGTH(flatten_settings), yaml, error));
    return option_default("Flatten", layer->model->job, "data_format", "channels_last", flatten->data_format, error);
}

static struct tensor *flatten_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    (void)layer;
    if (x && x->shape.rank == 2)
        return x;
    return unary(graph, &op_flatten, x);
}

const struct layer_type layer_flatten = {
    .name = "Flatten",
    .snake = "flatten",
    .options_bytes = sizeof(struct flatten),
    .read = flatten_read,
    .build = flatten_build,
};
