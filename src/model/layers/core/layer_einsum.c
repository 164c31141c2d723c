/* layer_einsum.c - EinsumDense and Dot: products written as equations or by axes. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "ops/ops.h"

#define MOST_LETTERS 16

/* ---- EinsumDense ----

   Equations that are one matmul: the kernel's letters are first those that x ends with and that are summed over, then
   those that y ends with; all others are x's and y's alike, in order ("abc,cde->abde", "...x,xy->...y"). */

struct einsum {
    struct layer_keys keys;
    const char *equation, *bias_axes;
    const struct activation_type *activation;
    struct initializer kernel, bias;
    char x[MOST_LETTERS], w[MOST_LETTERS], y[MOST_LETTERS]; /* letters; an ellipsis is one '.' */
    int inner, outer;                                       /* axes of the kernel */
    int64_t shape[MOST_AXES];                               /* of the output; 0: not known, as x has it */
    int rank;
};

/* Letters up to `end` (or the end of the text): blanks left out, an ellipsis as one dot. */
static const char *take_letters(char out[MOST_LETTERS], const char *from, const char *end)
{
    size_t length = strcspn(from, end);
    int count = 0;
    for (size_t i = 0; i < length && count < MOST_LETTERS - 1; i++) {
        if (strncmp(from + i, "...", 3) == 0)
            i += 2;
        if (from[i] != ' ')
            out[count++] = from[i];
    }
    out[count] = 0;
    return from + length;
}

/* The rule above: x = rest + inner, w = inner + outer, y = rest + outer. */
static bool split_equation(struct einsum *e)
{
    const char *at = take_letters(e->x, e->equation, ",");
    if (*at != ',')
        return false;
    at = take_letters(e->w, at + 1, "-");
    if (strncmp(at, "->", 2) != 0)
        return false;
    take_letters(e->y, at + 2, "");
    int x = (int)strlen(e->x), w = (int)strlen(e->w), y = (int)strlen(e->y);
    e->inner = 0;
    while (e->inner < w && strchr(e->x, e->w[e->inner]))
        e->inner++;
    e->outer = w - e->inner;
    int rest = x - e->inner;
    return e->inner > 0 && e->outer > 0 && rest > 0 && y == rest + e->outer &&
           strncmp(e->x + rest, e->w, (size_t)e->inner) == 0 && strncmp(e->x, e->y, (size_t)rest) == 0 &&
           strcmp(e->y + rest, e->w + e->inner) == 0;
}

/* A whole number, or a list of numbers and nulls. */
static OPTION_READER(read_shape)
{
    struct einsum *e = out;
    if (node->kind == YAML_SCALAR) {
        e->rank = 1;
        return option_whole(&e->shape[0], option, at, node, error);
    }
    if (node->kind != YAML_LIST || node->count > MOST_AXES)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "output_shape: expected a whole number or a list of them");
    for (const struct yaml *entry = node->first; entry; entry = entry->next, e->rank++)
        if (!entry->is_null)
            TRY(option_whole(&e->shape[e->rank], option, at, entry, error));
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct einsum, field)
static const struct model_option einsum_options[] = {
    {"equation", option_text, TO(equation), .required = true},
    {"output_shape", read_shape, TO(keys), .least = 1, .required = true},
    {"activation", option_activation, TO(activation)},
    {"bias_axes", option_text, TO(bias_axes)},
    KERNEL_AND_BIAS,
};
#undef TO

static plim_status einsum_check(struct layer *layer, plim_error *error)
{
    struct einsum *e = layer->options;
    if (!split_equation(e))
        return hint(error,
                    layer_fail(layer, error, PLIM_UNSUPPORTED, "the equation %s is not supported yet", e->equation),
                    "sums over the last axes of the input, with the kernel's first, are: abc,cde->abde");
    if (e->rank < e->outer || e->shape[e->rank - 1] == 0)
        return layer_fail(layer, error, PLIM_BAD_JOB, "output_shape must say the last %d axes", e->outer);
    if (e->bias_axes && *e->bias_axes && strcmp(e->bias_axes, e->w + e->inner) != 0)
        return layer_fail(layer, error, PLIM_UNSUPPORTED, "bias_axes other than %s is not supported yet",
                          e->w + e->inner);
    return PLIM_OK;
}

static struct tensor *einsum_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct einsum *e = layer->options;
    struct shape shape = {.rank = e->inner + e->outer};
    if (!x)
        return NULL;
    bool open = strchr(e->x, '.') != NULL;
    int letters = (int)strlen(e->x) - (open ? 1 : 0);
    if (x->shape.rank < letters || (!open && x->shape.rank != letters) || shape.rank > MOST_AXES)
        return layer_misfit(layer, graph, x, "the equation %s does not fit an input of shape", e->equation);
    for (int i = 0; i < e->inner; i++)
        shape.dim[i] = x->shape.dim[x->shape.rank - e->inner + i];
    for (int i = 0; i < e->outer; i++)
        shape.dim[e->inner + i] = e->shape[e->rank - e->outer + i];
    struct matmul_attributes attributes = {.inner_axes = e->inner};
    struct tensor *inputs[3] = {x, model_kernel(layer, graph, "kernel", shape, e->kernel), NULL};
    if (e->bias_axes && *e->bias_axes)
        inputs[2] = model_weight(layer, graph, "bias", shape_of(e->outer, shape.dim + e->inner), e->bias);
    x = graph_add(graph, &op_matmul, inputs, 3, &attributes, sizeof attributes);
    return activation_apply(layer, graph, e->activation, x);
}

const struct layer_type layer_einsum_dense = {
    NAMES("EinsumDense", "einsum_dense"),
    OPTIONS(struct einsum, einsum_options),
    .defaults = &(const struct einsum){.kernel = {.kind = INITIAL_GLOROT_UNIFORM}},
    .example = "EinsumDense: {equation: \"abc,cd->abd\", output_shape: [null, 64], bias_axes: d}",
    .check = einsum_check,
    .build = einsum_build,
};

/* ---- Dot: products of two inputs, sample by sample, along one axis of each ---- */

struct dot {
    struct layer_keys keys;
    int64_t axes[2];
    bool normalize;
};

/* One axis for both inputs, or one for each. */
static OPTION_READER(read_axes)
{
    int64_t *axes = out;
    bool pair = node->kind == YAML_LIST && node->count == 2;
    TRY(option_whole(&axes[0], option, at, pair ? node->first : node, error));
    return option_whole(&axes[1], option, at, pair ? node->first->next : node, error);
}

static const struct model_option dot_options[] = {
    {"axes", read_axes, .offset = offsetof(struct dot, axes), .least = -2, .required = true},
    {"normalize", option_flag, .offset = offsetof(struct dot, normalize)},
};

static bool dot_fits(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count,
                     int64_t axes[2])
{
    const struct dot *dot = layer->options;
    if (count != 2) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: takes 2 inputs, got %d", layer->name, count);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (!x[i])
            return false;
        int rank = x[i]->shape.rank;
        axes[i] = dot->axes[i] < 0 ? dot->axes[i] + rank : dot->axes[i];
        if (rank < 2 || rank > 3 || axes[i] < 1 || axes[i] >= rank) {
            graph_fail(graph, PLIM_UNSUPPORTED, "%s: axis %lld of an input of %d axes is not supported", layer->name,
                       (long long)dot->axes[i], rank);
            return false;
        }
    }
    return true;
}

/* To length one along an axis. */
static struct tensor *unit_length(struct graph *graph, struct tensor *x, int64_t axis)
{
    const int turned[3] = {0, 2, 1};
    bool last = axis == x->shape.rank - 1;
    struct layer_normalize_attributes unit = {.epsilon = 1e-7, .axes = 1, .kind = NORMAL_UNIT};
    x = last ? x : transpose(graph, x, turned);
    x = graph_add(graph, &op_layer_normalize, &x, 1, &unit, sizeof unit);
    return last ? x : transpose(graph, x, turned);
}

/* Inputs as matrices [N, rest, sum] and [N, sum, rest]; a vector has a rest of 1, which the output drops. */
static struct tensor *dot_merge(const struct layer *layer, struct graph *graph, struct tensor *const *given, int count)
{
    const struct dot *dot = layer->options;
    int64_t axes[2] = {0};
    struct tensor *matrix[2], *x[2];
    struct shape row = {0};
    if (!dot_fits(layer, graph, given, count, axes))
        return NULL;
    for (int i = 0; i < 2; i++)
        x[i] = dot->normalize ? unit_length(graph, given[i], axes[i]) : given[i];
    if (graph->failed)
        return NULL;
    struct batch_matmul_attributes attributes = {0};
    for (int i = 0; i < 2; i++) {
        struct unflatten_attributes wide = {.row = {2, {1, x[i]->shape.dim[1]}}};
        bool vector = x[i]->shape.rank == 2;
        matrix[i] = vector ? graph_add(graph, &op_unflatten, &x[i], 1, &wide, sizeof wide) : x[i];
        bool last = vector || axes[i] == 2;
        *(i == 0 ? &attributes.transpose_a : &attributes.transpose_b) = (i == 0) != last;
        if (!vector)
            row.dim[row.rank++] = x[i]->shape.dim[last ? 1 : 2];
    }
    if (row.rank == 0)
        row = (struct shape){1, {1}};
    struct unflatten_attributes out = {.row = row};
    struct tensor *y = graph_add(graph, &op_batch_matmul, matrix, 2, &attributes, sizeof attributes);
    return graph_add(graph, &op_unflatten, &y, 1, &out, sizeof out);
}

const struct layer_type layer_dot = {
    NAMES("Dot", "dot"),
    OPTIONS(struct dot, dot_options),
    .example = "Dot: {axes: 1, inputs: [a, b]}",
    .merge = dot_merge,
};
