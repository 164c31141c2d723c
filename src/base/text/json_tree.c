/* json_tree.c - JSON into the tree of yaml.h, without calling itself: the levels are kept in a table. */
#include "base/text/json_tree.h"
#include "base/text/message.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/budget_need.h"
#include "base/text/json.h"
#include "base/text/json_count.h"

#define MANY_KEYS 256

struct tree_builder {
    struct arena *arena;
    const char *name, *text;
    size_t counted; /* bytes of text whose lines are counted */
    int line, column;
    int64_t nodes;
    struct yaml *open[JSON_DEPTH + 2], *last[JSON_DEPTH + 2]; /* lists and maps on the way, and their last children */
    int depth;
    plim_error *error;
};

static plim_status tree_fail(struct tree_builder *builder, const char *what)
{
    char where[256];
    message_print(where, sizeof where, "%.200s:%d:%d", builder->name, builder->line, builder->column);
    return fail_at(builder->error, PLIM_BAD_DATA, where, "%s", what);
}

static void count_to(struct tree_builder *builder, size_t at)
{
    for (; builder->counted < at; builder->counted++) {
        bool end = builder->text[builder->counted] == '\n';
        builder->line += end;
        builder->column = end ? 1 : builder->column + 1;
    }
}

static plim_status copy(const char **out, struct tree_builder *builder, const char *raw, size_t bytes, bool escaped)
{
    char *text = arena_take(builder->arena, bytes + 1);
    if (!text)
        return arena_refused(builder->arena, builder->error);
    if (!escaped)
        memcpy(text, raw, bytes);
    else if (!json_unescape(text, bytes + 1, raw, bytes))
        return tree_fail(builder, "a text that holds the character 0, or is no text");
    *out = text;
    return PLIM_OK;
}

static plim_status fill_scalar(struct yaml *node, struct tree_builder *builder, const struct json_token *token)
{
    node->text = "";
    if (token->kind == JSON_STRING) {
        node->quoted = true;
        return copy(&node->text, builder, token->text, token->text_bytes, true);
    }
    if (token->kind == JSON_NUMBER)
        return copy(&node->text, builder, token->text, token->text_bytes, false);
    node->is_null = token->kind == JSON_NULL;
    if (!node->is_null)
        node->text = token->kind == JSON_TRUE ? "true" : "false";
    return PLIM_OK;
}

/* Maps of models have a few dozen keys: each is compared with those before it. */
static plim_status check_key(struct tree_builder *builder, const struct yaml *map, const struct yaml *node)
{
    if (map->count > MANY_KEYS)
        return tree_fail(builder, "more keys in one object than a model has");
    for (const struct yaml *other = map->first; other && other != node; other = other->next)
        if (strcmp(other->key, node->key) == 0)
            return tree_fail(builder, "a key that is there twice");
    return PLIM_OK;
}

static plim_status add_node(struct tree_builder *builder, const struct json_token *token, struct yaml **root)
{
    if (++builder->nodes > JSON_TREE_MOST_NODES)
        return tree_fail(builder, "too many values in one file");
    struct yaml *node = arena_take(builder->arena, sizeof *node);
    if (!node)
        return arena_refused(builder->arena, builder->error);
    count_to(builder, token->at);
    node->line = node->key_line = builder->line;
    node->column = node->key_column = builder->column;
    node->kind = token->kind == JSON_OBJECT ? YAML_MAP : token->kind == JSON_ARRAY ? YAML_LIST : YAML_SCALAR;
    struct yaml *parent = builder->depth ? builder->open[builder->depth - 1] : NULL;
    struct yaml **last = builder->depth ? &builder->last[builder->depth - 1] : NULL;
    if (!parent)
        *root = node;
    else if (*last)
        (*last)->next = node;
    else
        parent->first = node;
    if (parent) {
        *last = node;
        parent->count++;
    }
    if (parent && parent->kind == YAML_MAP) {
        TRY(copy(&node->key, builder, token->key, token->key_bytes, true));
        TRY(check_key(builder, parent, node));
    }
    if (node->kind == YAML_SCALAR)
        return fill_scalar(node, builder, token);
    builder->open[builder->depth] = node;
    builder->last[builder->depth++] = NULL;
    return PLIM_OK;
}

/* A value takes its node, and its key and text in blocks of 16 bytes; the texts together are no longer than the
   document. */
static plim_status check_room(struct arena *arena, const char *name, const char *text, size_t bytes, plim_error *error)
{
    struct json_count count = {0};
    json_count_add(&count, text, bytes);
    uint64_t most = count.values > JSON_TREE_MOST_NODES ? JSON_TREE_MOST_NODES : count.values;
    uint64_t node_bytes = (sizeof(struct yaml) + 15) / 16 * 16 + 16;
    return budget_need(arena->budget, most * node_bytes + bytes, name, count.values, "values", error);
}

plim_status json_tree(struct yaml **root, struct arena *arena, const char *name, const char *text, size_t bytes,
                      plim_error *error)
{
    struct tree_builder builder = {.arena = arena, .name = name, .text = text, .line = 1, .column = 1, .error = error};
    struct json_reader reader;
    struct json_token token;
    TRY(check_room(arena, name, text, bytes, error));
    json_read_init(&reader, text, bytes);
    for (;;) {
        plim_status status = json_next(&token, &reader, error);
        if (status != PLIM_OK)
            return error_at(error, status, name);
        if (token.kind == JSON_END)
            return PLIM_OK;
        if (token.kind == JSON_OBJECT_END || token.kind == JSON_ARRAY_END)
            builder.depth--;
        else
            TRY(add_node(&builder, &token, root));
    }
}
