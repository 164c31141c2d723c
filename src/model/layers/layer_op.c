/* layer_op.c - Op: any op by the name that users of keras.ops know, as a layer without weights. What Python's operators
   and functions on tensors are saved as in .keras files is read as this: x[:, 0], x * 0.5, ops.mean(x, axis=1).

   As in Keras, a mask does not go through. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "model/ops/op_array.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

struct op_layer {
    struct layer_keys keys;
    const char *op;
    const struct yaml *arguments;
};

static const struct model_option op_options[] = {
    {"op", option_text, .offset = offsetof(struct op_layer, op), .required = true},
    {"arguments", option_node, .offset = offsetof(struct op_layer, arguments)},
};

#define MOST_PARTS 64

static bool splits(const struct op_layer *options)
{
    return strcmp(options->op, "split") == 0;
}

static const struct yaml *parts_of(const struct op_layer *options)
{
    const struct yaml *arguments = options->arguments;
    return arguments && arguments->kind == YAML_MAP ? yaml_get(arguments, "indices_or_sections") : arguments;
}

/* The arguments are read here, and not where those of other ops are. */
static plim_status check_keys(const struct layer *layer, plim_error *error)
{
    static const char *const words[] = {"indices_or_sections", "axis"};
    const struct op_layer *options = layer->options;
    const struct yaml *map = options->arguments;
    char where[256];
    layer_place(where, layer);
    for (const struct yaml *at = map && map->kind == YAML_MAP ? map->first : NULL; at; at = at->next)
        if (strcmp(at->key, words[0]) != 0 && strcmp(at->key, words[1]) != 0)
            return option_unknown("argument of split", at->key, where, CHOICES(words), error);
    return PLIM_OK;
}

/* split: {indices_or_sections: 3} makes three outputs, [2, 5] those between these places: three too. */
static plim_status read_parts(struct layer *layer, plim_error *error)
{
    const struct op_layer *options = layer->options;
    const struct yaml *node = parts_of(options);
    int64_t parts = 0;
    TRY(check_keys(layer, error));
    if (node && node->kind == YAML_LIST)
        parts = node->count + 1;
    else if (!node || !node->text || !setting_whole(&parts, node->text))
        parts = 0;
    if (parts < 1 || parts > MOST_PARTS)
        return hint(error,
                    layer_fail(layer, error, PLIM_BAD_JOB, "split: indices_or_sections is 1 to %d parts", MOST_PARTS),
                    "Op: {op: split, arguments: {indices_or_sections: 2, axis: -1}}");
    layer->outputs = parts > 1 ? (int)parts : 0;
    return PLIM_OK;
}

/* Lists of numbers are read when the graph is built; what is wrong with them is reported here. */
static plim_status check_arrays(const struct layer *layer, plim_error *error)
{
    const struct op_layer *options = layer->options;
    const struct yaml *map = options->arguments;
    struct array array;
    struct arena work;
    plim_status status = PLIM_OK;
    for (int i = 0; map && map->kind == YAML_MAP && i < 2 && status == PLIM_OK; i++) {
        const struct yaml *word = yaml_get(map, i ? "b" : "a");
        if (!word || !is_array(word))
            continue;
        arena_init(&work, layer->model->arena.budget, TAG_PLANNER);
        status = array_read(&array, &work, layer->model->job, word, error);
        arena_release(&work);
    }
    return status;
}

static plim_status op_check(struct layer *layer, plim_error *error)
{
    struct op_layer *options = layer->options;
    struct arena *arena = &layer->model->arena;
    struct yaml *copy = NULL;
    if (!(options->op = arena_string(arena, options->op)))
        return arena_refused(arena, error);
    if (options->arguments)
        TRY(yaml_copy(&copy, arena, options->arguments, error));
    options->arguments = copy;
    TRY(check_arrays(layer, error));
    return splits(options) ? read_parts(layer, error) : PLIM_OK;
}

/* Extents of the parts: even ones, or those between the places that a list says. */
static bool part_sizes(int64_t *sizes, int parts, const struct yaml *node, int64_t extent)
{
    int64_t begin = 0, end = 0;
    const struct yaml *at = node->first;
    if (node->kind == YAML_SCALAR) {
        for (int i = 0; i < parts; i++)
            sizes[i] = extent / parts;
        return extent % parts == 0;
    }
    for (int i = 0; i < parts; i++, at = at ? at->next : NULL, begin = end) {
        if (at && (!at->text || !setting_whole(&end, at->text)))
            return false;
        end = at ? end : extent;
        if (end <= begin || end > extent)
            return false;
        sizes[i] = end - begin;
    }
    return true;
}

static struct tensor *make_parts(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct op_layer *options = layer->options;
    const struct yaml *node = parts_of(options),
                      *said = node == options->arguments ? NULL : yaml_get(options->arguments, "axis");
    int64_t axis = -1, sizes[MOST_PARTS];
    int parts = layer->outputs ? layer->outputs : 1;
    struct tensor *made[MOST_PARTS];
    if (said && (!said->text || !setting_whole(&axis, said->text)))
        axis = 0;
    axis = axis < 0 ? axis + x->shape.rank : axis;
    if (axis < 1 || axis >= x->shape.rank || !part_sizes(sizes, parts, node, x->shape.dim[axis])) {
        char shape[96];
        shape_text(shape, sizeof shape, &x->shape, x->batched);
        return graph_fail(graph, PLIM_BAD_MODEL,
                          "%s: split: %s cannot be cut so: even parts, or places that rise, of an axis behind "
                          "the batch's",
                          layer->name, shape);
    }
    split(made, graph, x, (int)axis, sizes, parts);
    for (int part = 1; part < parts && !graph->failed; part++)
        layer_set_output(graph, part, made[part], NULL);
    return graph->failed ? NULL : made[0];
}

/* The place of an error is the layer's in the job file, which those above say. */
static struct tensor *apply(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct op_layer *options = layer->options;
    struct tensor *made = op_word_apply_tree(graph, options->op, x, count, options->arguments);
    if (graph->failed == PLIM_USAGE)
        graph->failed = graph->error.code = PLIM_BAD_JOB;
    if (graph->failed)
        graph->error.where[0] = 0;
    return made;
}

static struct tensor *op_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    if (!splits(layer->options))
        return apply(layer, graph, x, count);
    if (count == 1)
        return make_parts(layer, graph, x[0]);
    return graph_fail(graph, PLIM_BAD_JOB, "%s: split takes one input, %d are given", layer->name, count);
}

const struct layer_type layer_op = {
    NAMES("Op", "op"),
    .any_type = true,
    .keeps_type = true,
    OPTIONS(struct op_layer, op_options),
    .example = "Op: {op: mean, arguments: {axis: 1}}",
    .check = op_check,
    .merge = op_merge,
};
