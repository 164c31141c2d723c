/* layer_arrange.c - Reshape, Permute, RepeatVector, Concatenate. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct arrange {
    struct layer_keys keys;
    struct shape row; /* Reshape: one -1 at most; Permute: axes from 1 */
    int64_t number;   /* RepeatVector: n; Concatenate: axis */
};

#define TO(field) .offset = offsetof(struct arrange, field)

/* ---- Reshape ---- */

/* At most one extent of -1. */
static OPTION_READER(read_target)
{
    const struct shape *row = out;
    int open = 0;
    TRY(option_shape(out, option, at, node, error));
    for (int i = 0; i < row->rank; i++)
        open += row->dim[i] == -1;
    if (open <= 1)
        return PLIM_OK;
    return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "target_shape: only one -1 can be worked out, got %d", open);
}

static const struct model_option reshape_options[] = {
    {"target_shape", read_target, TO(row), .least = -1, .required = true},
};

static struct tensor *reshape_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct arrange *arrange = layer->options;
    struct shape row = arrange->row;
    int64_t known = 1, elements = x ? shape_row(&x->shape) : 1;
    char texts[2][96];
    bool fits = x != NULL;
    for (int i = 0; fits && i < row.rank; i++)
        fits = row.dim[i] == -1 || !__builtin_mul_overflow(known, row.dim[i], &known);
    for (int i = 0; fits && i < row.rank; i++)
        if (row.dim[i] == -1)
            known *= row.dim[i] = known > 0 && elements % known == 0 ? elements / known : 0;
    if (fits && known == elements)
        return reshape(graph, x, row);
    if (!x)
        return NULL;
    shape_text(texts[0], sizeof texts[0], &x->shape, true);
    shape_text(texts[1], sizeof texts[1], &arrange->row, false);
    return graph_fail(graph, PLIM_BAD_JOB, "%s: %s cannot become %s a sample", layer->name, texts[0], texts[1]);
}

const struct layer_type layer_reshape = {
    NAMES("Reshape", "reshape"),
    OPTIONS(struct arrange, reshape_options),
    .example = "Reshape: {target_shape: [7, 7, -1]}",
    .build = reshape_build,
};

/* ---- Permute ---- */

/* Each of 1 to rank once. */
static OPTION_READER(read_dims)
{
    const struct shape *row = out;
    unsigned seen = 0;
    TRY(option_shape(out, option, at, node, error));
    for (int i = 0; i < row->rank; i++)
        if (row->dim[i] <= row->rank)
            seen |= 1u << row->dim[i];
    if (seen == (2u << row->rank) - 2)
        return PLIM_OK;
    return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "dims: each of 1 to %d must stand there once", row->rank);
}

static const struct model_option permute_options[] = {
    {"dims", read_dims, TO(row), .least = 1, .required = true},
};

static struct tensor *permute_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct arrange *arrange = layer->options;
    int axes[MOST_AXES] = {0};
    bool same = true;
    if (!x)
        return NULL;
    if (x->shape.rank != arrange->row.rank + 1)
        return layer_misfit(layer, graph, x, "%d dims for", arrange->row.rank);
    for (int i = 0; i < arrange->row.rank; i++) {
        axes[i + 1] = (int)arrange->row.dim[i];
        same &= axes[i + 1] == i + 1;
    }
    return same ? x : transpose(graph, x, axes);
}

const struct layer_type layer_permute = {
    NAMES("Permute", "permute"),
    OPTIONS(struct arrange, permute_options),
    .example = "Permute: {dims: [2, 1]}",
    .build = permute_build,
};

/* ---- RepeatVector: (features) -> (n, features) ---- */

static const struct model_option repeat_options[] = {
    {"n", option_extent, TO(number), .least = 1, .required = true},
};

static struct tensor *repeat_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct arrange *arrange = layer->options;
    if (!layer_needs_rank(layer, graph, x, 2))
        return NULL;
    x = reshape(graph, x, shape_of(2, (int64_t[]){1, x->shape.dim[1]}));
    return arrange->number == 1 ? x : tile_axis(graph, x, 1, arrange->number);
}

const struct layer_type layer_repeat_vector = {
    NAMES("RepeatVector", "repeat_vector"),
    OPTIONS(struct arrange, repeat_options),
    .example = "RepeatVector: 3",
    .build = repeat_build,
};

/* ---- Concatenate ---- */

#define MOST_JOINED 64 /* inputs with masks */

static const struct model_option concatenate_options[] = {
    {"axis", option_whole, TO(number), .least = -MOST_AXES},
};

/* Along time masks are joined as well; along other axes all inputs must have the same one, or none. */
static bool join_masks(const struct layer *layer, struct graph *graph, int count, int axis)
{
    struct tensor *first = NULL, *masks[MOST_JOINED];
    int present = 0;
    bool same = true;
    for (int i = 0; i < count; i++) {
        struct tensor *mask = layer_mask(graph, i);
        same &= !first || !mask || mask == first;
        first = first ? first : mask;
        if (mask && present < MOST_JOINED)
            masks[present++] = mask;
    }
    if (axis == 1 && present && present == count)
        layer_set_mask(graph, concatenate(graph, masks, count, 1));
    else if (first && (axis == 1 || !same))
        graph_fail(graph, PLIM_UNSUPPORTED, "%s: joining inputs of different masks is not supported yet", layer->name);
    else
        layer_set_mask(graph, first);
    return !graph->failed;
}

static struct tensor *concatenate_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x,
                                        int count)
{
    const struct arrange *arrange = layer->options;
    int axis = count > 0 && x[0] ? layer_axis(layer, graph, x[0], arrange->number) : -1;
    if (axis < 0 || !join_masks(layer, graph, count, axis))
        return NULL;
    return concatenate(graph, x, count, axis);
}

const struct layer_type layer_concatenate = {
    NAMES("Concatenate", "concatenate"),
    OPTIONS(struct arrange, concatenate_options),
    .defaults = &(const struct arrange){.number = -1},
    .merge = concatenate_merge,
};
