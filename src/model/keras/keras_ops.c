/* keras_ops.c - what Python's operators and functions on tensors are saved as, x[:, 0] or ops.mean(x, axis=1): the
   layer Op, whose words are Keras's own but for a few. */
#include <stdio.h>
#include <string.h>

#include "model/keras/keras_nodes.h"
#include "model/layers/layer_options.h"
#include "model/ops/op_array.h"

#define MODULE "keras.src.ops."

bool is_op(const struct yaml *object)
{
    const char *module = node_word(yaml_get(object, "module"));
    return module && strncmp(module, MODULE, strlen(MODULE)) == 0;
}

/* TrueDivide: true_divide */
static void snake_of(char *out, size_t capacity, const char *class)
{
    size_t length = 0;
    for (const char *at = class; *at && length + 2 < capacity; at++) {
        bool capital = *at >= 'A' && *at <= 'Z';
        if (capital && at != class)
            out[length++] = '_';
        out[length++] = capital ? (char)(*at - 'A' + 'a') : *at;
    }
    out[length] = 0;
}

/* Words that say what is always so here. */
static bool is_usual(const char *op, const struct yaml *word)
{
    static const struct {
        const char *op, *word, *value;
    } usual[] = {
        {"normalize", "order", "2"},
        {"normalize", "axis", "-1"},
        {"one_hot", "axis", "-1"},
        {"one_hot", "sparse", "false"},
        {"one_hot", "dtype", NULL},
        {"top_k", "sorted", "true"},
        {"round", "decimals", "0"},
        {"resize", "antialias", "false"},
        {"resize", "data_format", "channels_last"},
        {"resize", "pad_to_aspect_ratio", "false"},
        {"resize", "fill_mode", NULL},
        {"resize", "fill_value", NULL},
    };
    for (int i = 0; i < COUNT(usual); i++)
        if (strcmp(op, usual[i].op) == 0 && strcmp(word->key, usual[i].word) == 0 &&
            (!usual[i].value || (word->text && strcmp(word->text, usual[i].value) == 0)))
            return true;
    return strcmp(word->key, "name") == 0 || (strcmp(word->key, "dtype") == 0 && strcmp(op, "cast") != 0);
}

/* Ops that take all axes as one where none is said, the batch's too; sums and means do so here as well. */
static bool takes_all_axes(const char *op, const struct yaml *word)
{
    static const char *const ops[] = {"argmax", "argmin", "cumsum",          "flip",     "repeat", "roll",
                                      "take",   "gather", "take_along_axis", "transpose"};
    for (int i = 0; i < COUNT(ops); i++)
        if (strcmp(op, ops[i]) == 0)
            return strcmp(word->key, "axis") == 0 || strcmp(word->key, "axes") == 0;
    return false;
}

/* newshape with the batch's extent, which is null or -1; ours is that of a sample. */
static plim_status add_new_shape(const struct translation *t, struct yaml *arguments, const struct yaml *shape)
{
    struct yaml *row = NULL, *extent = NULL;
    const struct yaml *batch = shape->kind == YAML_LIST ? shape->first : NULL;
    if (!batch || !(node_is_null(batch) || (batch->text && strcmp(batch->text, "-1") == 0)))
        return node_refuse(t, shape, PLIM_UNSUPPORTED, "reshape: the batch stays the first axis: (-1, 4, 3)");
    TRY(node_make(&row, t, YAML_LIST, shape));
    struct yaml **end = &row->first;
    for (const struct yaml *at = batch->next; at; at = at->next) {
        TRY(translate(&extent, t, at));
        list_append(row, &end, extent);
    }
    return node_append(t, arguments, "target_shape", row);
}

plim_status add_op_keys(const struct translation *t, struct yaml *options, const struct yaml *object)
{
    const struct yaml *config = yaml_get(object, "config");
    const char *name = node_word(yaml_get(config, "name"));
    struct yaml *op = NULL, *arguments = NULL, *value = NULL;
    char snake[128];
    snake_of(snake, sizeof snake, node_word(yaml_get(object, "class_name")));
    TRY(node_text(&op, t, snake, object));
    TRY(node_append(t, options, "op", op));
    TRY(node_make(&arguments, t, YAML_MAP, object));
    for (const struct yaml *word = config->first; word; word = word->next) {
        if (node_is_null(word) && takes_all_axes(snake, word))
            return node_refuse(t, object, PLIM_UNSUPPORTED, "%s without %s goes through the batch too; say which",
                               snake, word->key);
        if (node_is_null(word) || is_usual(snake, word))
            continue;
        if (strcmp(word->key, "newshape") == 0) {
            TRY(add_new_shape(t, arguments, word));
            continue;
        }
        TRY(translate(&value, t, word));
        TRY(node_append(t, arguments, word->key, value));
    }
    TRY(node_append(t, options, "arguments", arguments));
    if (!name)
        return PLIM_OK;
    TRY(node_text(&value, t, name, object));
    return node_append(t, options, "name", value);
}

/* ---- values of a call ---- */

static const char *text_of(const struct yaml *node)
{
    return node_is_null(node) || node->kind != YAML_SCALAR ? "" : node->text;
}

static bool is_number_or_null(const struct yaml *node)
{
    return node_is_null(node) || node->kind == YAML_SCALAR;
}

/* slice(1, 3), Ellipsis, None or a place, as get_item has them. */
static plim_status make_key(struct yaml **out, const struct translation *t, const struct yaml *key)
{
    const char *class = key->kind == YAML_MAP ? node_word(yaml_get(key, "class_name")) : NULL;
    const struct yaml *config = class ? yaml_get(key, "config") : NULL;
    char text[80];
    if (class && strcmp(class, "__ellipsis__") == 0)
        return node_text(out, t, "...", key);
    if (!class || strcmp(class, "__slice__") != 0 || !config || config->kind != YAML_MAP)
        return translate(out, t, key);
    for (const struct yaml *word = config->first; word; word = word->next)
        if (!is_number_or_null(word))
            return node_refuse(t, key, PLIM_UNSUPPORTED, "a slice whose %s is no number is not supported", word->key);
    snprintf(text, sizeof text, "%.24s:%.24s:%.24s", text_of(yaml_get(config, "start")),
             text_of(yaml_get(config, "stop")), text_of(yaml_get(config, "step")));
    return node_text(out, t, text, key);
}

static plim_status make_keys(struct yaml **out, const struct translation *t, const struct yaml *keys)
{
    struct yaml *key = NULL;
    TRY(node_make(out, t, YAML_LIST, keys));
    struct yaml **end = &(*out)->first;
    if (keys->kind != YAML_LIST) { /* x[...] */
        TRY(make_key(&key, t, keys));
        list_append(*out, &end, key);
    }
    for (const struct yaml *at = keys->kind == YAML_LIST ? keys->first : NULL; at; at = at->next) {
        TRY(make_key(&key, t, at));
        list_append(*out, &end, key);
    }
    return PLIM_OK;
}

/* {class_name: __tensor__ or __numpy__, config: {value, dtype}}, or a list of Python's: with its elements in one text,
   which takes a tenth of what a node for each would. */
static plim_status make_array(struct yaml **out, const struct translation *t, const struct yaml *value)
{
    const struct yaml *content = value->kind == YAML_MAP ? yaml_get(value, "config") : value;
    struct array array;
    struct yaml *shape = NULL, *extent = NULL, *text = NULL;
    char number[32];
    plim_status status = array_read(&array, t->work, t->name, content, t->error);
    if (status != PLIM_OK) {
        if (status == PLIM_BAD_JOB && t->error)
            t->error->code = PLIM_BAD_MODEL;
        return status == PLIM_BAD_JOB ? PLIM_BAD_MODEL : status;
    }
    TRY(node_make(out, t, YAML_MAP, value));
    TRY(node_make(&text, t, YAML_SCALAR, value));
    if (!(text->text = array_text(t->arena, &array)))
        return arena_refused(t->arena, t->error);
    TRY(node_append(t, *out, "value", text));
    TRY(node_text(&text, t, type_name(array.type), value));
    TRY(node_append(t, *out, "dtype", text));
    TRY(node_make(&shape, t, YAML_LIST, value));
    struct yaml **end = &shape->first;
    for (int i = 0; i < array.shape.rank; i++) {
        snprintf(number, sizeof number, "%lld", (long long)array.shape.dim[i]);
        TRY(node_text(&extent, t, number, value));
        list_append(shape, &end, extent);
    }
    return node_append(t, *out, "shape", shape);
}

static bool holds_array(const struct yaml *value)
{
    const char *class = value->kind == YAML_MAP ? node_word(yaml_get(value, "class_name")) : NULL;
    const struct yaml *config = class ? yaml_get(value, "config") : NULL;
    bool object = class && (strcmp(class, "__tensor__") == 0 || strcmp(class, "__numpy__") == 0);
    return value->kind == YAML_LIST || (object && config && config->kind == YAML_MAP && yaml_get(config, "value"));
}

plim_status add_op_value(const struct translation *t, struct keras_call *call, const struct yaml *value, int place)
{
    bool item = strcmp(call->op, "get_item") == 0, where = strcmp(call->op, "where") == 0;
    const char *word = item ? "key" : place == (where ? 1 : 0) ? "a" : "b";
    bool array = !item && holds_array(value);
    struct yaml *made = NULL;
    if ((!item && !array && value->kind != YAML_SCALAR) || place > (where ? 2 : 1) || yaml_get(call->arguments, word))
        return node_refuse(t, value, PLIM_UNSUPPORTED,
                           "layer '%s' is called with something that is no tensor: not supported", call->layer);
    TRY(item ? make_keys(&made, t, value) : array ? make_array(&made, t, value) : translate(&made, t, value));
    return node_append(t, call->arguments, word, made);
}
