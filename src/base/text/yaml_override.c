/* yaml_override.c - sets one value of a tree: "train.epochs=1".

   A path goes through maps by key and through lists by number or by the name
   of an entry ("batch" in [shuffle: exact, batch: 32], "Flatten" in
   [Flatten]). What is missing in a map is made; a part on the way that looks
   like a slip of a key that is there is refused, and so is any name that a
   list does not have. */
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "base/text/yaml.h"

#define NAMES_MOST 64

struct override {
    struct arena *arena;
    const char *origin; /* "--set train.epochs=1": the place of all errors */
    const char *part;   /* of the path */
    bool last;          /* the part is the path's last */
    plim_error *error;
};

static plim_status refused(const struct override *set)
{
    return arena_refused(set->arena, set->error);
}

/* ---- the value ------------------------------------------------------- */

static void mark_origin(struct yaml *node, const char *origin)
{
    node->origin = origin;
    for (struct yaml *child = node->first; child != NULL; child = child->next)
        mark_origin(child, origin);
}

static plim_status parse_value(struct yaml **out, const struct override *set, const char *text)
{
    plim_error inner = {0};
    plim_status status = yaml_parse(out, set->arena, "value", text, strlen(text), &inner);
    if (status == PLIM_OK) {
        mark_origin(*out, set->origin);
        return PLIM_OK;
    }
    status = status == PLIM_BAD_JOB ? PLIM_USAGE : status;
    return fail_at(set->error, status, set->origin, "%s: %s", inner.where, inner.message);
}

/* ---- the path -------------------------------------------------------- */

/* Names that a part of the path could have meant; at most NAMES_MOST. */
static size_t collect_names(const char *names[NAMES_MOST], const struct yaml *node)
{
    size_t count = 0;
    for (const struct yaml *child = node->first; child != NULL && count < NAMES_MOST; child = child->next) {
        if (child->key != NULL)
            names[count++] = child->key;
        else if (child->kind == YAML_MAP && child->first != NULL)
            names[count++] = child->first->key;
        else if (child->kind == YAML_SCALAR)
            names[count++] = child->text;
    }
    return count;
}

static const char *nearest_name(const struct yaml *node, const char *part)
{
    const char *names[NAMES_MOST];
    return text_nearest(part, names, collect_names(names, node));
}

static plim_status unknown_part(const struct override *set, const struct yaml *node)
{
    const char *nearest = nearest_name(node, set->part);
    plim_status status = fail_at(set->error, PLIM_USAGE, set->origin, "there is no '%s'", set->part);
    return nearest != NULL ? hint(set->error, status, "did you mean '%s'?", nearest) : status;
}

static plim_status add_key(struct yaml **out, struct yaml *map, const struct override *set, const char *key)
{
    struct yaml *child = arena_take(set->arena, sizeof *child);
    if (child == NULL)
        return refused(set);
    struct yaml **end = &map->first;
    while (*end != NULL)
        end = &(*end)->next;
    *child = (struct yaml){.kind = YAML_SCALAR, .key = key, .text = "", .is_null = true, .origin = set->origin};
    *end = child;
    map->count++;
    *out = child;
    return PLIM_OK;
}

static void become_map(struct yaml *node)
{
    node->kind = YAML_MAP;
    node->text = NULL;
    node->quoted = node->is_null = false;
}

static plim_status step_map(struct yaml **out, struct yaml *map, const struct override *set)
{
    struct yaml *child = yaml_get(map, set->part);
    if (child != NULL) {
        *out = child;
        return PLIM_OK;
    }
    if (!set->last && nearest_name(map, set->part) != NULL)
        return unknown_part(set, map);
    return add_key(out, map, set, set->part);
}

/* "12" as a number; false when it is none. */
static bool parse_index(int *out, const char *part)
{
    int value = 0;
    for (const char *p = part; *p != 0; p++) {
        if (*p < '0' || *p > '9' || value > YAML_MOST_NODES)
            return false;
        value = value * 10 + (*p - '0');
    }
    *out = value;
    return *part != 0;
}

static plim_status step_index(struct yaml **out, struct yaml *list, const struct override *set, int index)
{
    if (index >= list->count)
        return fail_at(set->error, PLIM_USAGE, set->origin, "there is no entry %d in a list of %d (they count from 0)",
                       index, list->count);
    struct yaml *entry = list->first;
    for (; index > 0; index--)
        entry = entry->next;
    *out = entry;
    return PLIM_OK;
}

static plim_status step_list(struct yaml **out, struct yaml *list, const struct override *set)
{
    int index;
    if (parse_index(&index, set->part))
        return step_index(out, list, set, index);
    for (struct yaml *entry = list->first; entry != NULL; entry = entry->next) {
        struct yaml *value = yaml_get(entry, set->part);
        if (value != NULL) {
            *out = value;
            return PLIM_OK;
        }
        if (entry->kind == YAML_SCALAR && strcmp(entry->text, set->part) == 0) {
            become_map(entry); /* Flatten becomes Flatten: with a value */
            return add_key(out, entry, set, set->part);
        }
    }
    return unknown_part(set, list);
}

static plim_status step(struct yaml **out, struct yaml *node, const struct override *set)
{
    if (*set->part == 0)
        return fail_at(set->error, PLIM_USAGE, set->origin, "a part of the path is empty");
    if (node->kind == YAML_SCALAR && node->is_null)
        become_map(node);
    if (node->kind == YAML_MAP)
        return step_map(out, node, set);
    if (node->kind == YAML_LIST)
        return step_list(out, node, set);
    return fail_at(set->error, PLIM_USAGE, set->origin, "there is nothing inside of '%s'", node->text);
}

/* The value in the place of the old one, which keeps its key and neighbours. */
static void replace(struct yaml *node, const struct yaml *value)
{
    struct yaml *next = node->next;
    const char *key = node->key;
    int line = node->key_line, column = node->key_column;
    *node = *value;
    node->next = next;
    node->key = key;
    node->key_line = line;
    node->key_column = column;
}

plim_status yaml_override(struct yaml *root, struct arena *arena, const char *assignment, plim_error *error)
{
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment) {
        plim_status status = fail(error, PLIM_USAGE, "--set %s: expected PATH=VALUE", assignment);
        return hint(error, status, "for example: --set train.epochs=1");
    }
    struct override set = {.arena = arena, .error = error, .origin = arena_format(arena, "--set %s", assignment)};
    char *path = arena_format(arena, "%.*s", (int)(equals - assignment), assignment);
    if (set.origin == NULL || path == NULL)
        return refused(&set);
    struct yaml *value, *node = root;
    TRY(parse_value(&value, &set, equals + 1));
    for (char *part = path; part != NULL;) {
        char *dot = strchr(part, '.');
        set.part = part;
        set.last = dot == NULL;
        if (dot != NULL)
            *dot++ = 0;
        part = dot;
        TRY(step(&node, node, &set));
    }
    replace(node, value);
    return PLIM_OK;
}
