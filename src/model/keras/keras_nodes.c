/* keras_nodes.c - making nodes of a job file's tree, and what layers of a graph are called with. */
#include "model/keras/keras_nodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/layers/layer_options.h"

/* ---- refusing ---- */

plim_status node_refuse(const struct translation *t, const struct yaml *at, plim_status code, const char *format, ...)
{
    char where[256], what[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    yaml_place(where, t->name, at);
    return fail_at(t->error, code, where, "%s", what);
}

/* ---- making nodes ---- */

plim_status node_make(struct yaml **out, const struct translation *t, enum yaml_kind kind, const struct yaml *at)
{
    struct yaml *node = arena_take(t->arena, sizeof *node);
    if (!node)
        return arena_refused(t->arena, t->error);
    node->kind = kind;
    node->line = node->key_line = at->line;
    node->column = node->key_column = at->column;
    *out = node;
    return PLIM_OK;
}

plim_status node_text(struct yaml **out, const struct translation *t, const char *text, const struct yaml *at)
{
    TRY(node_make(out, t, YAML_SCALAR, at));
    (*out)->text = arena_string(t->arena, text);
    return (*out)->text ? PLIM_OK : arena_refused(t->arena, t->error);
}

plim_status node_append(const struct translation *t, struct yaml *parent, const char *key, struct yaml *child)
{
    struct yaml **end = &parent->first;
    for (; *end; end = &(*end)->next)
        ++*t->steps;
    *end = child;
    parent->count++;
    child->key = arena_string(t->arena, key);
    return child->key ? PLIM_OK : arena_refused(t->arena, t->error);
}

void list_append(struct yaml *list, struct yaml ***end, struct yaml *child)
{
    **end = child;
    *end = &child->next;
    list->count++;
}

bool node_is_null(const struct yaml *node)
{
    return !node || (node->kind == YAML_SCALAR && node->is_null);
}

/* A text of the document: a class's, a layer's or a policy's name. */
const char *node_word(const struct yaml *node)
{
    return node && node->kind == YAML_SCALAR && node->quoted ? node->text : NULL;
}

/* ---- what a layer reads ---- */

/* Older versions count a use that a Functional model has of itself: the first use of ours is number 1 then. */
static bool counts_itself(const struct keras_index *index, const char *name)
{
    const struct keras_name *known = keras_index_find(index, name);
    const struct yaml *nodes = known && known->layer ? yaml_get(known->layer, "inbound_nodes") : NULL;
    const char *class = nodes ? node_word(yaml_get(known->layer, "class_name")) : NULL;
    return class && strcmp(class, "Functional") == 0 && known->last_use >= nodes->count;
}

/* [layer, node, tensor] as the name of a value. */
plim_status value_name(struct yaml **out, const struct translation *t, const struct yaml *history,
                       const struct keras_index *index)
{
    int64_t node = 0, tensor = 0;
    const struct yaml *first = history->first, *second = first ? first->next : NULL;
    const struct yaml *third = second ? second->next : NULL;
    const char *name = history->kind == YAML_LIST ? node_word(first) : NULL;
    if (!name || !third || !second->text || !third->text || !setting_whole(&node, second->text) ||
        !setting_whole(&tensor, third->text))
        return node_refuse(t, history, PLIM_BAD_MODEL, "expected [layer, node, tensor]");
    if (tensor < 0)
        return node_refuse(t, history, PLIM_BAD_MODEL, "output %lld of layer '%.100s'", (long long)tensor, name);
    if (node > 0 && counts_itself(index, name))
        node--;
    char value[300], use[32] = "", part[32] = "";
    if (node > 0)
        snprintf(use, sizeof use, ":%lld", (long long)node);
    if (tensor > 0)
        snprintf(part, sizeof part, "/%lld", (long long)tensor);
    snprintf(value, sizeof value, "%.200s%s%s", name, use, part);
    return node_text(out, t, value, history);
}

/* Tensors, and lists of them, in the order of the call. */
static plim_status add_tensors(const struct translation *t, struct keras_call *call, const struct yaml *node)
{
    const char *class = node->kind == YAML_MAP ? node_word(yaml_get(node, "class_name")) : NULL;
    struct yaml *name = NULL;
    if (class && strcmp(class, "__keras_tensor__") == 0) {
        const struct yaml *history = yaml_get(yaml_get(node, "config"), "keras_history");
        if (!history)
            return node_refuse(t, node, PLIM_BAD_MODEL, "a tensor without keras_history");
        TRY(value_name(&name, t, history, call->index));
        list_append(call->inputs, &call->end, name);
        return PLIM_OK;
    }
    if (node->kind != YAML_LIST)
        return node_refuse(t, node, PLIM_UNSUPPORTED,
                           "layer '%s' is called with something that is no tensor: not supported", call->layer);
    for (const struct yaml *child = node->first; child; child = child->next)
        TRY(add_tensors(t, call, child));
    return PLIM_OK;
}

/* Tensors of an op may stand among values: ops.subtract(1, x). */
static plim_status add_op_arguments(const struct translation *t, struct keras_call *call, const struct yaml *args)
{
    int place = 0;
    for (const struct yaml *child = args->kind == YAML_LIST ? args->first : NULL; child; child = child->next, place++) {
        const struct yaml *first = child->kind == YAML_LIST && child->first ? child->first : child;
        bool tensor = first->kind == YAML_MAP && yaml_get(yaml_get(first, "config"), "keras_history");
        TRY(tensor ? add_tensors(t, call, child) : add_op_value(t, call, child, place));
    }
    return PLIM_OK;
}

/* null, false, or a list of nulls: mask=[None, None]. */
static bool is_nothing(const struct yaml *node)
{
    if (node->kind == YAML_SCALAR)
        return node->is_null || strcmp(node->text, "false") == 0;
    for (const struct yaml *child = node->first; node->kind == YAML_LIST && child; child = child->next)
        if (!node_is_null(child))
            return false;
    return node->kind == YAML_LIST;
}

/* layer(query, value=..., use_causal_mask=True). Keras overrules training= with what fit() and evaluate() do. */
static plim_status add_named(const struct translation *t, struct keras_call *call, const struct yaml *kwargs)
{
    const struct yaml *mask = kwargs ? yaml_get(kwargs, "mask") : NULL;
    for (const struct yaml *word = kwargs ? kwargs->first : NULL; word; word = word->next) {
        struct yaml *value = NULL;
        bool tensor = word->kind == YAML_MAP && yaml_get(word, "class_name");
        bool states = strcmp(word->key, "initial_state") == 0;
        if (is_nothing(word) || (tensor && is_travelling_mask(call->index, word)) ||
            (!call->op && strcmp(word->key, "training") == 0))
            continue;
        if (tensor && !states && strcmp(word->key, "value") != 0 && strcmp(word->key, "key") != 0)
            return node_refuse(t, word, PLIM_UNSUPPORTED, "layer '%s' is called with %s=: not supported yet",
                               call->layer, word->key);
        if (states && mask && !is_nothing(mask)) /* then it is used; one that travels is not */
            return node_refuse(t, word, PLIM_UNSUPPORTED,
                               "layer '%s' is called with mask= and initial_state=: not supported yet", call->layer);
        if (tensor || states) {
            TRY(add_tensors(t, call, word));
            continue;
        }
        struct yaml *to = call->op ? call->arguments : call->options;
        if (yaml_get(to, word->key) || strcmp(word->key, "inputs") == 0 || strcmp(word->key, "layers") == 0)
            return node_refuse(t, word, PLIM_BAD_MODEL, "layer '%s' is called with %s=, which it has already",
                               call->layer, word->key);
        TRY(translate(&value, t, word));
        TRY(node_append(t, to, word->key, value));
    }
    return PLIM_OK;
}

/* {args, kwargs}, or the older [[layer, node, tensor, {}], ...]. */
plim_status call_add(const struct translation *t, struct keras_call *call, const struct yaml *node)
{
    if (node->kind == YAML_MAP) {
        const struct yaml *args = yaml_get(node, "args"), *kwargs = yaml_get(node, "kwargs");
        if (args)
            TRY(call->op ? add_op_arguments(t, call, args) : add_tensors(t, call, args));
        return kwargs && kwargs->kind == YAML_MAP ? add_named(t, call, kwargs) : PLIM_OK;
    }
    for (const struct yaml *history = node->kind == YAML_LIST ? node->first : NULL; history; history = history->next) {
        struct yaml *name = NULL;
        TRY(value_name(&name, t, history, call->index));
        list_append(call->inputs, &call->end, name);
    }
    return PLIM_OK;
}
