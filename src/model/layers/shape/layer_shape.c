/* layer_shape.c - Input, Rescaling and Flatten: layers without weights at
   the border between data and model. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

/* ---- Input: says what the data must look like; adds nothing ---- */

struct input {
    struct layer_keys keys;
    struct shape shape; /* of one element; -1: any */
    const char *dtype;  /* the data's own counts; this is what shapes without data are made with */
};

static OPTION_READER(read_input_shape)
{
    if (node->kind != YAML_LIST || node->count >= MOST_AXES)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "shape: expected a list of at most %d whole numbers",
                         MOST_AXES - 1);
    return option_open_shape(out, option, at, node, error);
}

static OPTION_READER(read_input_type)
{
    const char *word;
    enum type type;
    char where[256];
    TRY(option_text(&word, option, at, node, error));
    layer_place(where, at->layer);
    if (!type_from_name(&type, word))
        return fail_at(error, PLIM_BAD_JOB, where, "dtype: '%s' is no type of numbers", word);
    *(const char **)out = word;
    return PLIM_OK;
}

static const struct model_option input_options[] = {
    {"shape", read_input_shape, .offset = offsetof(struct input, shape), .least = 1, .required = true},
    {.word = "batch_size"},
    {"dtype", read_input_type, .offset = offsetof(struct input, dtype)},
};

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
    return graph_fail(graph, PLIM_BAD_JOB, "%s: says %s, an element of the data is %s", layer->name, wanted, got);
}

const struct layer_type layer_input = {
    NAMES("Input", "input_layer"),
    .alias = "InputLayer",
    .hidden = true,
    .any_type = true,
    .keeps_mask = true,
    OPTIONS(struct input, input_options),
    .example = "Input: {shape: [28, 28, 1]}",
    .build = input_build,
};

/* ---- Rescaling: y = x * scale + offset, from any type ---- */

struct rescaling {
    struct layer_keys keys;
    double scale, offset;
};

static const struct model_option rescaling_options[] = {
    {"scale", option_number, .offset = offsetof(struct rescaling, scale), .required = true},
    {"offset", option_number, .offset = offsetof(struct rescaling, offset)},
};

static struct tensor *rescaling_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct rescaling *rescaling = layer->options;
    struct rescale_attributes attributes = {.scale = rescaling->scale, .offset = rescaling->offset};
    return graph_add(graph, &op_rescale, &x, 1, &attributes, sizeof attributes);
}

const struct layer_type layer_rescaling = {
    NAMES("Rescaling", "rescaling"),
    .keeps_mask = true,
    .any_type = true,
    OPTIONS(struct rescaling, rescaling_options),
    .example = "Rescaling: 1/255",
    .build = rescaling_build,
};

/* ---- Flatten ---- */

static const struct model_option flatten_options[] = {DATA_FORMAT};

static struct tensor *flatten_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    (void)layer;
    if (x && x->shape.rank == 2)
        return x;
    return unary(graph, &op_flatten, x);
}

const struct layer_type layer_flatten = {
    NAMES("Flatten", "flatten"),
    OPTIONS(struct layer_keys, flatten_options),
    .build = flatten_build,
};
