/* keras_masks.c - masks in config.json: Keras writes the ops that make them beside the layers, and names what they made
   in each call. Here masks travel by themselves (model.h), so what only makes the same masks is left out; a mask that
   somebody made of his own is refused. */
#include <string.h>

#include "model/keras_nodes.h"
#include "model/layer_options.h"

static const char *class_word(const struct yaml *object)
{
    return object->kind == YAML_MAP ? node_word(yaml_get(object, "class_name")) : NULL;
}

/* What compute_mask of Keras's layers is made of. */
static bool is_mask_op(const struct yaml *object)
{
    static const char *const classes[] = {"NotEqual",   "Any",         "All",   "LogicalAnd", "LogicalOr",
                                          "ExpandDims", "Concatenate", "Stack", "Cast"};
    const char *class = class_word(object), *module = class ? node_word(yaml_get(object, "module")) : NULL;
    if (!module || strncmp(module, "keras.src.ops.", 14) != 0)
        return false;
    for (int i = 0; i < LENGTH(classes); i++)
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

static bool same_place(const struct yaml *a, const struct yaml *b)
{
    const struct yaml *x = a && a->kind == YAML_LIST ? a->first : NULL,
                      *y = b && b->kind == YAML_LIST ? b->first : NULL;
    for (; x && y; x = x->next, y = y->next)
        if (x->kind != YAML_SCALAR || y->kind != YAML_SCALAR || strcmp(x->text, y->text) != 0)
            return false;
    return a && b && !x && !y;
}

/* x != value: as a layer that reads the same x makes its mask, Embedding of 0 or Masking of its value. */
static bool is_made_by_layer(const struct yaml *layers, const struct yaml *not_equal)
{
    const struct yaml *args = first_call(not_equal), *value = args && args->first ? args->first->next : NULL;
    double number, wanted;
    if (!value || value->kind != YAML_SCALAR || !value->text || !setting_number(&number, value->text))
        return false;
    for (const struct yaml *layer = layers->first; layer; layer = layer->next) {
        const char *class = class_word(layer);
        const struct yaml *config = class ? yaml_get(layer, "config") : NULL;
        if (!config || config->kind != YAML_MAP || !same_place(first_history(layer), first_history(not_equal)))
            continue;
        const struct yaml *zero = yaml_get(config, "mask_zero"), *masked = yaml_get(config, "mask_value");
        if (strcmp(class, "Embedding") == 0 && zero && zero->text && strcmp(zero->text, "true") == 0 && number == 0)
            return true;
        if (strcmp(class, "Masking") == 0 && masked && masked->text && setting_number(&wanted, masked->text) &&
            wanted == number)
            return true;
    }
    return false;
}

/* Whether a layer is called with it as with any tensor. */
static bool is_read(const struct yaml *layers, const char *name)
{
    for (const struct yaml *layer = layers->first; layer; layer = layer->next) {
        const struct yaml *nodes =
            layer->kind == YAML_MAP && !is_mask_op(layer) ? yaml_get(layer, "inbound_nodes") : NULL;
        for (const struct yaml *node = nodes ? nodes->first : NULL; node; node = node->next) {
            const struct yaml *args = node->kind == YAML_MAP ? yaml_get(node, "args") : node;
            if (args && node_mentions(args, name, 0))
                return true;
        }
    }
    return false;
}

bool makes_masks_only(const struct yaml *layers, const struct yaml *object)
{
    const char *name = object->kind == YAML_MAP ? node_word(yaml_get(object, "name")) : NULL;
    if (!name || !is_mask_op(object) || is_read(layers, name))
        return false;
    return strcmp(class_word(object), "NotEqual") != 0 || is_made_by_layer(layers, object);
}

bool is_travelling_mask(const struct yaml *layers, const struct yaml *tensor)
{
    const struct yaml *history = yaml_get(yaml_get(tensor, "config"), "keras_history");
    const char *name = history && history->kind == YAML_LIST ? node_word(history->first) : NULL;
    for (const struct yaml *layer = name ? layers->first : NULL; layer; layer = layer->next) {
        const char *own = layer->kind == YAML_MAP ? node_word(yaml_get(layer, "name")) : NULL;
        if (own && strcmp(own, name) == 0)
            return makes_masks_only(layers, layer);
    }
    return false;
}
