/* keras_masks.c - masks in config.json: Keras writes the ops that make them beside the layers, and names what they made
   in each call. Here masks travel by themselves (model.h), so what only makes the same masks is left out; a mask that
   somebody made of his own is refused. */
#include <string.h>

#include "model/keras/keras_nodes.h"
#include "model/layers/layer_options.h"

static const char *class_word(const struct yaml *object)
{
    return object->kind == YAML_MAP ? node_word(yaml_get(object, "class_name")) : NULL;
}

/* What compute_mask of Keras's layers is made of. */
bool is_mask_op(const struct yaml *object)
{
    static const char *const classes[] = {"NotEqual",   "Any",         "All",   "LogicalAnd", "LogicalOr",
                                          "ExpandDims", "Concatenate", "Stack", "Cast"};
    const char *class = class_word(object), *module = class ? node_word(yaml_get(object, "module")) : NULL;
    if (!module || strncmp(module, "keras.src.ops.", 14) != 0)
        return false;
    for (int i = 0; i < COUNT(classes); i++)
        if (strcmp(class, classes[i]) == 0)
            return true;
    return false;
}

static const struct yaml *first_call(const struct yaml *object)
{
    const struct yaml *nodes = yaml_get(object, "inbound_nodes");
    const struct yaml *node = nodes && nodes->kind == YAML_LIST ? nodes->first : NULL;
    return node && node->kind == YAML_MAP ? yaml_get(node, "args") : NULL;
}

/* The tensor that a call begins with: [layer, node, tensor]. */
static const struct yaml *first_history(const struct yaml *object)
{
    const struct yaml *args = first_call(object), *tensor = args ? args->first : NULL;
    return tensor && tensor->kind == YAML_MAP ? yaml_get(yaml_get(tensor, "config"), "keras_history") : NULL;
}

static bool is_place(const struct yaml *history)
{
    const struct yaml *layer = history && history->kind == YAML_LIST && history->count >= 3 ? history->first : NULL;
    return node_word(layer) && layer->next->kind == YAML_SCALAR && layer->next->next->kind == YAML_SCALAR;
}

/* A tensor and a value in one text, for the index; NULL: no room. */
static const char *mask_key(struct arena *arena, const struct yaml *history, double value)
{
    const struct yaml *layer = history->first, *node = layer->next;
    return arena_format(arena, "%s\n%s\n%s\n%.17g", layer->text, node->text, node->next->text, value);
}

/* Embedding masks 0, Masking its value. */
static bool masked_value(double *out, const struct yaml *layer)
{
    const char *class = class_word(layer);
    const struct yaml *config = class ? yaml_get(layer, "config") : NULL;
    if (!config || config->kind != YAML_MAP || !is_place(first_history(layer)))
        return false;
    const struct yaml *zero = yaml_get(config, "mask_zero"), *value = yaml_get(config, "mask_value");
    *out = 0;
    if (strcmp(class, "Embedding") == 0)
        return zero && zero->text && strcmp(zero->text, "true") == 0;
    return strcmp(class, "Masking") == 0 && value && value->text && setting_number(out, value->text);
}

bool add_masks(struct keras_index *index, const struct yaml *layer)
{
    double value;
    if (!masked_value(&value, layer))
        return true;
    const char *key = mask_key(index->arena, first_history(layer), value);
    struct keras_name *name = key ? keras_index_add(index, key) : NULL;
    if (name)
        name->masked = true;
    return name != NULL;
}

/* x != value: as a layer that reads the same x makes its mask. */
static bool is_made_by_layer(bool *out, const struct keras_index *index, const struct yaml *not_equal)
{
    const struct yaml *args = first_call(not_equal), *value = args && args->first ? args->first->next : NULL;
    double number;
    *out = false;
    if (!value || value->kind != YAML_SCALAR || !value->text || !setting_number(&number, value->text) ||
        !is_place(first_history(not_equal)))
        return true;
    const char *key = mask_key(index->arena, first_history(not_equal), number);
    const struct keras_name *known = key ? keras_index_find(index, key) : NULL;
    *out = known && known->masked;
    return key != NULL;
}

bool find_masks_only(struct keras_index *index, const struct yaml *object)
{
    bool made = true;
    const char *own = is_mask_op(object) ? node_word(yaml_get(object, "name")) : NULL;
    struct keras_name *name = own ? keras_index_add(index, own) : NULL;
    if (!own || (name && (name->read || name->layer != object)))
        return true;
    if (!name || (strcmp(class_word(object), "NotEqual") == 0 && !is_made_by_layer(&made, index, object)))
        return false;
    name->masks_only = made;
    return true;
}

bool makes_masks_only(const struct keras_index *index, const struct yaml *object)
{
    const char *name = is_mask_op(object) ? node_word(yaml_get(object, "name")) : NULL;
    const struct keras_name *known = name ? keras_index_find(index, name) : NULL;
    return known && known->masks_only;
}

bool is_travelling_mask(const struct keras_index *index, const struct yaml *tensor)
{
    const struct yaml *history = yaml_get(yaml_get(tensor, "config"), "keras_history");
    const char *name = history && history->kind == YAML_LIST ? node_word(history->first) : NULL;
    const struct keras_name *known = name ? keras_index_find(index, name) : NULL;
    return known && known->masks_only;
}
