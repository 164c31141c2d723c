/* layer_arrange.c - Reshape, Permute, RepeatVector, Concatenate. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct arrange {
    struct layer_words words;
    struct shape row; /* Reshape: one -1 at most; Permute: axes from 1 */
    int64_t number;   /* RepeatVector: n; Concatenate: axis */
    const struct yaml *shape_word;
};

#define AT(field) offsetof(struct arrange, field)

/* A list of whole numbers, of at least `least` each. */
static plim_status read_list(struct arrange *arrange, const struct layer *layer, const char *word, int64_t least,
                             plim_error *error)
{
    const struct setting entry_setting = {word, SETTING_WHOLE, 0, least};
    const struct yaml *node = arrange->shape_word;
    char where[256];
    if (node->kind == YAML_SCALAR && !node->is_null) {
        arrange->row.rank = 1;
        return setting_value(&arrange->row.dim[0], &entry_setting, layer->model->job, node, error);
    }
    if (node->kind != YAML_LIST || node->count >= MOST_AXES) {
        yaml_place(where, layer->model->job, node);
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a list of at most %d whole numbers", word,
                       MOST_AXES - 1);
    }
    for (const struct yaml *entry = node->first; entry; entry = entry->next) {
        int64_t *dim = &arrange->row.dim[arrange->row.rank++];
        TRY(setting_value(dim, &entry_setting, layer->model->job, entry, error));
        TRY(option_extent(layer, word, *dim, error));
    }
    return PLIM_OK;
}

/* ---- Reshape ---- */

static const struct setting reshape_settings[] = {
    {"target_shape", SETTING_NODE, AT(shape_word), 0},
    LAYER_WORDS,
};

static plim_status reshape_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct arrange *arrange = layer->options;
    int open = 0;
    char where[256];
    TRY(layer_read(layer, reshape_settings, LENGTH(reshape_settings), yaml, error));
    if (!arrange->shape_word)
        return layer_missing(layer, "target_shape", "Reshape: {target_shape: [7, 7, -1]}", error);
    TRY(read_list(arrange, layer, "target_shape", -1, error));
    for (int i = 0; i < arrange->row.rank; i++)
        open += arrange->row.dim[i] == -1;
    if (open <= 1)
        return PLIM_OK;
    yaml_place(where, layer->model->job, arrange->shape_word);
    return fail_at(error, PLIM_BAD_JOB, where, "target_shape: only one -1 can be worked out, got %d", open);
}

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
    graph_fail(graph, PLIM_BAD_JOB, "%s: %s cannot become %s a sample", layer->name, texts[0], texts[1]);
    return NULL;
}

const struct layer_type layer_reshape = {
    .name = "Reshape",
    .snake = "reshape",
    .options_bytes = sizeof(struct arrange),
    .read = reshape_read,
    .build = reshape_build,
};

/* ---- Permute ---- */

static const struct setting permute_settings[] = {
    {"dims", SETTING_NODE, AT(shape_word), 0},
    LAYER_WORDS,
};

static plim_status permute_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct arrange *arrange = layer->options;
    unsigned seen = 0;
    char where[256];
    TRY(layer_read(layer, permute_settings, LENGTH(permute_settings), yaml, error));
    if (!arrange->shape_word)
        return layer_missing(layer, "dims", "Permute: {dims: [2, 1]}", error);
    TRY(read_list(arrange, layer, "dims", 1, error));
    for (int i = 0; i < arrange->row.rank; i++)
        if (arrange->row.dim[i] <= arrange->row.rank)
            seen |= 1u << arrange->row.dim[i];
    if (seen == (2u << arrange->row.rank) - 2)
        return PLIM_OK;
    yaml_place(where, layer->model->job, arrange->shape_word);
    return fail_at(error, PLIM_BAD_JOB, where, "dims: each of 1 to %d must stand there once", arrange->row.rank);
}

static struct tensor *permute_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct arrange *arrange = layer->options;
    int axes[MOST_AXES] = {0};
    bool same = true;
    char shape[96];
    if (!x)
        return NULL;
    if (x->shape.rank != arrange->row.rank + 1) {
        shape_text(shape, sizeof shape, &x->shape, true);
        graph_fail(graph, PLIM_BAD_JOB, "%s: %d dims for %s", layer->name, arrange->row.rank, shape);
        return NULL;
    }
    for (int i = 0; i < arrange->row.rank; i++) {
        axes[i + 1] = (int)arrange->row.dim[i];
        same &= axes[i + 1] == i + 1;
    }
    return same ? x : transpose(graph, x, axes);
}

const struct layer_type layer_permute = {
    .name = "Permute",
    .snake = "permute",
    .options_bytes = sizeof(struct arrange),
    .read = permute_read,
    .build = permute_build,
};

/* ---- RepeatVector: (features) -> (n, features) ---- */

static const struct setting repeat_settings[] = {
    {"n", SETTING_WHOLE, AT(number), 1},
    LAYER_WORDS,
};

static plim_status repeat_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct arrange *arrange = layer->options;
    TRY(layer_read(layer, repeat_settings, LENGTH(repeat_settings), yaml, error));
    if (!arrange->number)
        return layer_missing(layer, "n", "RepeatVector: 3", error);
    return option_extent(layer, "n", arrange->number, error);
}

static struct tensor *repeat_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct arrange *arrange = layer->options;
    if (!layer_needs_rank(layer, graph, x, 2))
        return NULL;
    x = reshape(graph, x, shape_of(2, (int64_t[]){1, x->shape.dim[1]}));
    return arrange->number == 1 ? x : tile_axis(graph, x, 1, arrange->number);
}

const struct layer_type layer_repeat_vector = {
    .name = "RepeatVector",
    .snake = "repeat_vector",
    .options_bytes = sizeof(struct arrange),
    .read = repeat_read,
    .build = repeat_build,
};

/* ---- Concatenate ---- */

#define MOST_JOINED 64 /* inputs with masks */

static const struct setting concatenate_settings[] = {
    {"axis", SETTING_WHOLE, AT(number), -MOST_AXES},
    LAYER_WORDS,
};

static plim_status concatenate_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct arrange *arrange = layer->options;
    arrange->number = -1;
    return layer_read(layer, concatenate_settings, LENGTH(concatenate_settings), yaml, error);
}

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
    .name = "Concatenate",
    .snake = "concatenate",
    .options_bytes = sizeof(struct arrange),
    .read = concatenate_read,
    .merge = concatenate_merge,
};
