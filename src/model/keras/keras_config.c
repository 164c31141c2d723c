/* keras_config.c - Keras's config.json in the words of a job file.

   Two trees: the document's, in an arena of its own that is gone at the end, and the one that is made of it. Calls
   go as deep as the document, which is bounded by its reader. */
#include "model/keras/keras_config.h"

#include <stdio.h>
#include <string.h>

#include "base/text/json_tree.h"
#include "model/keras/keras_nodes.h"
#include "model/layers/layer_options.h"

/* ---- values ---- */

/* What newer versions write and older ones do not know, where it says what was always so. */
static bool says_nothing(const struct yaml *node)
{
    static const struct {
        const char *word, *value;
    } keys[] = {{"renorm", "false"}, {"synchronized", "false"}, {"sparse", "false"},
                {"ragged", "false"}, {"optional", "false"},     {"autocast", "true"}};
    if (node_is_null(node))
        return strcmp(node->key, "merge_mode") != 0; /* its null is no default */
    for (int i = 0; i < COUNT(keys); i++)
        if (node->kind == YAML_SCALAR && strcmp(node->key, keys[i].word) == 0 && strcmp(node->text, keys[i].value) == 0)
            return true;
    return false;
}

static plim_status translate_layer(struct yaml **out, const struct translation *t, const struct yaml *object);

/* Words of a config; what is null is what it is by default. */
static plim_status add_arguments(const struct translation *t, struct yaml *map, const struct yaml *config)
{
    struct yaml **end = &map->first;
    while (*end)
        end = &(*end)->next;
    for (const struct yaml *word = config->first; word; word = word->next) {
        if (says_nothing(word))
            continue;
        TRY(translate(end, t, word));
        map->count++;
        if (!((*end)->key = arena_string(t->arena, word->key)))
            return arena_refused(t->arena, t->error);
        end = &(*end)->next;
    }
    return PLIM_OK;
}

/* {class_name: X, config: {...}}: an initializer, a policy, a layer or a model inside another. */
static plim_status translate_object(struct yaml **out, const struct translation *t, const struct yaml *object,
                                    const char *class)
{
    const struct yaml *config = yaml_get(object, "config");
    const char *policy = config && config->kind == YAML_MAP ? node_word(yaml_get(config, "name")) : NULL;
    const char *module = node_word(yaml_get(object, "module"));
    if (strcmp(class, "DTypePolicy") == 0 && policy)
        return node_text(out, t, policy, object);
    if (is_model_word(class) || (module && strncmp(module, "keras.layers", 12) == 0))
        return translate_layer(out, t, object);
    const struct yaml *numbers = config && config->kind == YAML_MAP ? yaml_get(config, "value") : NULL;
    if (numbers && (strcmp(class, "__tensor__") == 0 || strcmp(class, "__numpy__") == 0))
        return translate(out, t, numbers);
    if (config && config->kind == YAML_SCALAR && !config->is_null) /* a function by its name */
        return translate(out, t, config);
    struct yaml *arguments = NULL;
    TRY(node_make(&arguments, t, YAML_MAP, object));
    if (config && config->kind == YAML_MAP)
        TRY(add_arguments(t, arguments, config));
    if (arguments->count == 0)
        return node_text(out, t, class, object);
    TRY(node_make(out, t, YAML_MAP, object));
    return node_append(t, *out, class, arguments);
}

plim_status translate(struct yaml **out, const struct translation *t, const struct yaml *node)
{
    const char *class = node->kind == YAML_MAP ? node_word(yaml_get(node, "class_name")) : NULL;
    if (class)
        return translate_object(out, t, node, class);
    if (node->kind == YAML_SCALAR) {
        TRY(node_text(out, t, node->text, node));
        (*out)->is_null = node->is_null;
        (*out)->quoted = node->quoted;
        return PLIM_OK;
    }
    TRY(node_make(out, t, node->kind, node));
    if (node->kind == YAML_MAP)
        return add_arguments(t, *out, node);
    struct yaml **end = &(*out)->first;
    for (const struct yaml *child = node->first; child; child = child->next) {
        TRY(translate(end, t, child));
        end = &(*end)->next;
        (*out)->count++;
    }
    return PLIM_OK;
}

/* ---- layers ---- */

/* Layers that Keras's own models bring along. */
static const struct {
    const char *module, *class;
} brought[] = {
    {"keras.src.applications.convnext", "LayerScale"},
    {"keras.src.applications.convnext", "StochasticDepth"},
    {"keras.src.applications.inception_resnet_v2", "CustomScaleLayer"},
};

static bool is_brought(const char *module, const char *class)
{
    for (int i = 0; i < COUNT(brought); i++)
        if (strcmp(module, brought[i].module) == 0 && strcmp(class, brought[i].class) == 0)
            return true;
    return false;
}

/* The layer's class in our words; what is not Keras's own, or carries code, is refused. */
static plim_status class_of(const char **out, const struct translation *t, const struct yaml *object)
{
    const char *class = node_word(yaml_get(object, "class_name")), *module = node_word(yaml_get(object, "module"));
    const char *registered = node_word(yaml_get(object, "registered_name"));
    if (!class)
        return node_refuse(t, object, PLIM_BAD_MODEL, "expected a layer with its class_name");
    if (strcmp(class, "Lambda") == 0 || strcmp(class, "TFOpLambda") == 0)
        return node_refuse(t, object, PLIM_UNSUPPORTED, "a %s carries code, which is not run; replace it by layers",
                           class);
    if (module && (is_op(object) || is_brought(module, class))) {
        *out = is_op(object) ? "Op" : class;
        return PLIM_OK;
    }
    bool own = registered && strcmp(registered, class) != 0;
    bool keras = !module || strcmp(module, "keras") == 0 || strcmp(module, "keras.layers") == 0 ||
                 strncmp(module, "keras.src.models.", 17) == 0;
    if (own || !keras)
        return node_refuse(t, object, PLIM_UNSUPPORTED, "class '%.100s' of %.100s is not one of Keras's layers",
                           own ? registered : class, module ? module : "the file");
    *out = class;
    return PLIM_OK;
}

static plim_status translate_model(struct yaml **out, const struct translation *t, const struct yaml *config,
                                   bool functional);

/* batch_shape without the batch. */
static plim_status add_input_shape(const struct translation *t, struct yaml *options, const struct yaml *config)
{
    const struct yaml *batch = yaml_get(config, "batch_shape");
    struct yaml *shape = NULL, *extent = NULL, *name = NULL;
    if (node_is_null(batch))
        batch = yaml_get(config, "batch_input_shape");
    if (node_is_null(batch) || batch->kind != YAML_LIST)
        return node_refuse(t, config, PLIM_BAD_MODEL, "an InputLayer without its batch_shape");
    TRY(node_make(&shape, t, YAML_LIST, batch));
    struct yaml **end = &shape->first;
    for (const struct yaml *dim = batch->first ? batch->first->next : NULL; dim; dim = dim->next) {
        TRY(translate(&extent, t, dim));
        list_append(shape, &end, extent);
    }
    TRY(node_append(t, options, "shape", shape));
    if (node_word(yaml_get(config, "dtype"))) {
        TRY(translate(&name, t, yaml_get(config, "dtype")));
        TRY(node_append(t, options, "dtype", name));
    }
    if (!node_word(yaml_get(config, "name")))
        return PLIM_OK;
    TRY(translate(&name, t, yaml_get(config, "name")));
    return node_append(t, options, "name", name);
}

/* Without a mean its figures are weights. */
static plim_status note_adapted(const struct translation *t, struct yaml *options, const struct yaml *config)
{
    struct yaml *adapted = NULL;
    if (!node_is_null(yaml_get(config, "mean")))
        return PLIM_OK;
    TRY(node_text(&adapted, t, "true", config));
    return node_append(t, options, "adapted", adapted);
}

static plim_status layer_options(struct yaml **out, const struct translation *t, const struct yaml *object,
                                 const char *class)
{
    const struct yaml *config = yaml_get(object, "config");
    if (!config || config->kind != YAML_MAP)
        return node_refuse(t, object, PLIM_BAD_MODEL, "%s: a layer without its config", class);
    if (is_model_word(class))
        return translate_model(out, t, config, strcmp(class, "Sequential") != 0);
    TRY(node_make(out, t, YAML_MAP, object));
    if (strcmp(class, "InputLayer") == 0)
        return add_input_shape(t, *out, config);
    if (is_op(object))
        return add_op_keys(t, *out, object);
    TRY(add_arguments(t, *out, config));
    return strcmp(class, "Normalization") == 0 ? note_adapted(t, *out, config) : PLIM_OK;
}

/* {Class: options} */
static plim_status wrap(struct yaml **out, const struct translation *t, const char *key, struct yaml *value)
{
    TRY(node_make(out, t, YAML_MAP, value));
    return node_append(t, *out, key, value);
}

static plim_status translate_layer(struct yaml **out, const struct translation *t, const struct yaml *object)
{
    const char *class;
    struct yaml *options = NULL;
    if (object->kind != YAML_MAP)
        return node_refuse(t, object, PLIM_BAD_MODEL, "expected a layer");
    TRY(class_of(&class, t, object));
    TRY(layer_options(&options, t, object, class));
    return wrap(out, t, class, options);
}

/* ---- models ---- */

/* Use: {layer: name}; a layer may be named as a class is. */
static plim_status make_use(struct yaml **entry, struct yaml **options, const struct translation *t, const char *name,
                            const struct yaml *object)
{
    struct yaml *layer = NULL;
    TRY(node_make(options, t, YAML_MAP, object));
    TRY(node_text(&layer, t, name, object));
    TRY(node_append(t, *options, "layer", layer));
    return wrap(entry, t, "Use", *options);
}

/* A layer of a graph: an entry for its first use, and one for each use after it. *end is the end of the list. */
static plim_status add_uses(const struct translation *t, struct yaml *list, struct yaml ***end,
                            const struct yaml *object, const struct keras_index *index)
{
    const struct yaml *nodes = yaml_get(object, "inbound_nodes");
    const struct yaml *node = nodes && nodes->kind == YAML_LIST ? nodes->first : NULL;
    const char *name = node_word(yaml_get(object, "name"));
    struct yaml *entry = NULL, *options = NULL, *inputs = NULL;
    TRY(translate_layer(&entry, t, object));
    if (!name)
        return node_refuse(t, object, PLIM_BAD_MODEL, "a layer of a graph without its name");
    bool input = strcmp(entry->first->key, "InputLayer") == 0;
    options = entry->first;
    for (int use = 0; use == 0 || node; use++) {
        if (use > 0)
            TRY(make_use(&entry, &options, t, name, object));
        TRY(node_make(&inputs, t, YAML_LIST, node ? node : object));
        struct keras_call call = {inputs, &inputs->first, options, index, name, NULL, NULL};
        if (use == 0 && is_op(object)) {
            call.op = yaml_get(options, "op")->text;
            call.arguments = yaml_get(options, "arguments");
        }
        if (node)
            TRY(call_add(t, &call, node));
        if (!input)
            TRY(node_append(t, options, "inputs", inputs));
        list_append(list, end, entry);
        node = node ? node->next : NULL;
    }
    return PLIM_OK;
}

static bool is_input_layer(const struct yaml *object)
{
    const char *class = object && object->kind == YAML_MAP ? node_word(yaml_get(object, "class_name")) : NULL;
    return class && strcmp(class, "InputLayer") == 0;
}

/* "a", ["a", 0, 0] or [["a", 0, 0], ...]: the first of them, and the one after it. */
static bool has_several(const struct yaml *places)
{
    return places->first && places->first->kind == YAML_LIST;
}

static const struct yaml *first_place(const struct yaml *places)
{
    return !places || places->kind != YAML_LIST ? NULL : has_several(places) ? places->first : places;
}

static const struct yaml *next_place(const struct yaml *places, const struct yaml *place)
{
    return has_several(places) ? place->next : NULL;
}

/* The inputs first, in the order in which the model is fed. */
static plim_status add_graph(const struct translation *t, struct yaml *list, const struct yaml *config,
                             const struct keras_index *index)
{
    const struct yaml *layers = yaml_get(config, "layers"), *places = yaml_get(config, "input_layers");
    struct yaml **end = &list->first;
    for (const struct yaml *at = first_place(places); at; at = next_place(places, at)) {
        const char *name = at->kind == YAML_LIST ? node_word(at->first) : NULL;
        const struct keras_name *known = name ? keras_index_find(index, name) : NULL;
        if (!known || !is_input_layer(known->layer))
            return node_refuse(t, places, PLIM_BAD_MODEL, "input_layers: '%.100s' is no InputLayer", name ? name : "?");
        TRY(add_uses(t, list, &end, known->layer, index));
    }
    for (const struct yaml *layer = layers->first; layer; layer = layer->next) {
        if (layer->kind != YAML_MAP)
            return node_refuse(t, layer, PLIM_BAD_MODEL, "expected a layer");
        if (!is_input_layer(layer) && !makes_masks_only(index, layer))
            TRY(add_uses(t, list, &end, layer, index));
    }
    return PLIM_OK;
}

static plim_status add_outputs(const struct translation *t, struct yaml *model, const struct yaml *config,
                               const struct keras_index *index)
{
    const struct yaml *places = yaml_get(config, "output_layers"), *at = first_place(places);
    struct yaml *outputs = NULL, *name = NULL;
    if (!at)
        return node_refuse(t, config, PLIM_BAD_MODEL, "a model without output_layers");
    TRY(node_make(&outputs, t, YAML_LIST, places));
    struct yaml **end = &outputs->first;
    for (; at; at = next_place(places, at)) {
        if (at->kind != YAML_LIST)
            return node_refuse(t, at, PLIM_BAD_MODEL, "output_layers: expected [layer, node, tensor]");
        TRY(value_name(&name, t, at, index));
        list_append(outputs, &end, name);
    }
    return node_append(t, model, "outputs", outputs);
}

/* name and trainable, where they are said. */
static plim_status add_model_keys(const struct translation *t, struct yaml *model, const struct yaml *config)
{
    static const char *const keys[] = {"name", "trainable"};
    struct yaml *value = NULL;
    for (int i = 0; i < COUNT(keys); i++) {
        const struct yaml *word = yaml_get(config, keys[i]);
        if (node_is_null(word))
            continue;
        TRY(translate(&value, t, word));
        TRY(node_append(t, model, keys[i], value));
    }
    return PLIM_OK;
}

static plim_status translate_model(struct yaml **out, const struct translation *t, const struct yaml *config,
                                   bool functional)
{
    const struct yaml *layers = yaml_get(config, "layers");
    struct yaml *list = NULL, *entry = NULL;
    struct keras_index index;
    if (!layers || layers->kind != YAML_LIST)
        return node_refuse(t, config, PLIM_BAD_MODEL, "a model without its layers");
    TRY(node_make(out, t, YAML_MAP, config));
    TRY(add_model_keys(t, *out, config));
    TRY(node_make(&list, t, YAML_LIST, layers));
    TRY(node_append(t, *out, "layers", list));
    if (functional) {
        TRY(keras_index_init(&index, t, config));
        TRY(add_graph(t, list, config, &index));
        return add_outputs(t, *out, config, &index);
    }
    struct yaml **end = &list->first;
    for (const struct yaml *layer = layers->first; layer; layer = layer->next) {
        TRY(translate_layer(&entry, t, layer));
        list_append(list, &end, entry);
    }
    return PLIM_OK;
}

static plim_status translate_root(struct yaml **out, const struct translation *t, const struct yaml *root)
{
    const char *class;
    if (root->kind != YAML_MAP)
        return node_refuse(t, root, PLIM_BAD_MODEL, "not a model as Keras writes it");
    TRY(class_of(&class, t, root));
    if (!is_model_word(class))
        return node_refuse(t, root, PLIM_UNSUPPORTED, "'%.100s' is no model: Sequential and Functional ones are read",
                           class);
    return layer_options(out, t, root, class);
}

/* Keys of compile(). A loss of null says that the output has none. */
static plim_status translate_compiled(struct yaml **out, const struct translation *t, const struct yaml *root)
{
    static const char *const keys[] = {"optimizer", "loss", "loss_weights", "metrics", "weighted_metrics"};
    const struct yaml *config = root->kind == YAML_MAP ? yaml_get(root, "compile_config") : NULL;
    struct yaml *value = NULL;
    if (!config || config->kind != YAML_MAP)
        return PLIM_OK;
    TRY(node_make(out, t, YAML_MAP, config));
    for (int i = 0; i < COUNT(keys); i++) {
        const struct yaml *word = yaml_get(config, keys[i]);
        if (node_is_null(word))
            continue;
        TRY(translate(&value, t, word));
        TRY(node_append(t, *out, keys[i], value));
        bool map = strcmp(keys[i], "loss") == 0 && word->kind == YAML_MAP && !yaml_get(word, "class_name");
        for (const struct yaml *entry = map ? word->first : NULL; entry; entry = entry->next) {
            struct yaml *null = NULL;
            if (!node_is_null(entry))
                continue;
            TRY(node_text(&null, t, "", entry));
            null->is_null = true;
            TRY(node_append(t, value, entry->key, null));
        }
    }
    return PLIM_OK;
}

plim_status keras_config_read(struct keras_config *out, struct arena *arena, const char *name, const char *text,
                              size_t bytes, plim_error *error)
{
    struct arena work;
    struct keras_config config = {0};
    const struct translation t = {.arena = arena, .work = &work, .steps = &config.steps, .name = name, .error = error};
    struct yaml *root = NULL;
    arena_init(&work, arena->budget, TAG_PLANNER);
    plim_status status = json_tree(&root, &work, name, text, bytes, error);
    if (status == PLIM_OK)
        status = translate_root(&config.yaml, &t, root);
    if (status == PLIM_OK)
        status = translate_compiled(&config.compiled, &t, root);
    arena_release(&work);
    if (status == PLIM_OK)
        *out = config;
    return status;
}
