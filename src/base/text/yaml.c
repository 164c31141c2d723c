/* yaml.c - a YAML file as a tree of ours.

   libfyaml gives events; the tree is made from them in the arena, so that no
   second tree exists.
   1. The text is checked for UTF-8 first: libfyaml takes a bad byte for the
      end of the file and would pass over the rest without a word.
   2. libfyaml prints nothing: its messages are collected, and the first one
      becomes our error.
   3. Its memory is its own, bounded while it is given the text (feed), and gone when the tree is made. */
#include "base/text/yaml.h"
#include "base/text/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfyaml.h>

#include "base/numbers/count.h"
#include "base/text/json.h"

#define YAML_MOST_DEPTH  60
#define MANY_KEYS        64
#define MOST_EMPTY_LINES 1000 /* in a row */
#define FEED_BYTES       ((size_t)4096)
#define MOST_OF_A_BYTE   ((uint64_t)512) /* of heap that libfyaml makes of a byte of text */
#define MOST_HEAP_BYTES  ((uint64_t)64 << 20)

struct builder {
    struct fy_parser *parser;
    struct fy_diag *diag;
    struct arena *arena;
    const char *name, *text; /* text: all of it */
    plim_error *error;
    size_t bytes, fed;    /* of the text: all, and what libfyaml was given so far */
    uint64_t heap_before; /* before there was a parser */
    plim_status refused;  /* why it was given no more, with `error` filled in; or PLIM_OK */
    int nodes, depth;
    int line, column; /* where we are: what has no place of its own gets this */
};

static plim_status place_fail(plim_error *error, const char *name, int line, int column, const char *what)
{
    char where[256];
    message_print(where, sizeof where, "%.200s:%d:%d", name, line, column);
    return fail_at(error, PLIM_BAD_JOB, where, "%s", what);
}

static plim_status wrong_here(struct builder *builder, const char *what)
{
    return place_fail(builder->error, builder->name, builder->line, builder->column, what);
}

/* ---- the bytes ------------------------------------------------------- */

/* libfyaml passes over a line that begins with % without a word, in the middle
   of a file too. */
static const char *bad_character(const char *text, size_t length, int column)
{
    unsigned char c = (unsigned char)text[0];
    if (length == 0)
        return "not UTF-8";
    if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r'))
        return "a control character";
    if (c == '%' && column == 1)
        return "directives (%) are not allowed here";
    return NULL;
}

static plim_status check_characters(const char *name, const char *text, size_t bytes, plim_error *error)
{
    int line = 1, column = 1;
    if (bytes > YAML_MOST_BYTES)
        return fail_at(error, PLIM_BAD_JOB, name, "%zu bytes; a YAML file may have %zu", bytes, YAML_MOST_BYTES);
    for (size_t at = 0, length; at < bytes; at += length) {
        length = json_utf8_length(text + at, bytes - at);
        const char *what = bad_character(text + at, length, column);
        if (what != NULL)
            return place_fail(error, name, line, column, what);
        column = text[at] == '\n' ? 1 : column + 1;
        line += text[at] == '\n';
    }
    return PLIM_OK;
}

/* libfyaml's time grows with the square of empty lines in a row: 20,000 of them in a block take seconds. */
static plim_status check_empty_lines(const char *name, const char *text, size_t bytes, plim_error *error)
{
    int line = 1, empty = 0;
    bool blank = true;
    for (size_t at = 0; at < bytes; at++) {
        blank = blank && strchr(" \t\r\n", text[at]) != NULL;
        if (text[at] != '\n')
            continue;
        line++;
        empty = blank ? empty + 1 : 0;
        blank = true;
        if (empty > MOST_EMPTY_LINES)
            return place_fail(error, name, line, 1, "too many empty lines");
    }
    return PLIM_OK;
}

/* ---- libfyaml -------------------------------------------------------- */

static void print_nothing(struct fy_diag *diag, void *user, const char *text, size_t bytes)
{
    (void)diag, (void)user, (void)text, (void)bytes;
}

/* Whether libfyaml may be given so much more of the text. */
static plim_status check_heap(const struct builder *builder, size_t part)
{
    uint64_t heap = budget_heap_bytes();
    TRY(budget_outside(builder->arena->budget, part * MOST_OF_A_BYTE, "the parser of job files", builder->error));
    if (heap <= builder->heap_before || heap - builder->heap_before <= MOST_HEAP_BYTES)
        return PLIM_OK;
    plim_status status =
        fail_at(builder->error, PLIM_BAD_JOB, builder->name,
                "too many values in one line: its parser takes more than %d MiB", (int)(MOST_HEAP_BYTES >> 20));
    return hint(builder->error, status, "break the line into several");
}

/* The next part of the text. libfyaml keeps every token of a line from a bracket on that may turn out to be a key
   ("[a, b]: c"): 1 MiB of "[[[[" takes 361 MiB, outside the budget. It grows with what it was given, so it is given
   little at a time, and no more when the process has no room or its heap has grown beyond reason. */
static ssize_t feed(void *user, void *to, size_t most)
{
    struct builder *builder = user;
    size_t left = builder->bytes - builder->fed, part = most < FEED_BYTES ? most : FEED_BYTES;
    part = part < left ? part : left;
    if (builder->refused == PLIM_OK)
        builder->refused = check_heap(builder, part);
    if (builder->refused != PLIM_OK)
        return 0; /* as if the text ended here: libfyaml would ask again for ever after -1 */
    memcpy(to, builder->text + builder->fed, part);
    builder->fed += part;
    return (ssize_t)part;
}

static bool parser_open(struct builder *builder)
{
    struct fy_diag_cfg quiet;
    fy_diag_cfg_default(&quiet);
    quiet.fp = NULL;
    quiet.output_fn = print_nothing;
    quiet.colorize = false;
    builder->diag = fy_diag_create(&quiet);
    if (builder->diag == NULL)
        return false;
    fy_diag_set_collect_errors(builder->diag, true);
    struct fy_parse_cfg parse = {
        .search_path = "",
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
        .diag = builder->diag,
    };
    builder->heap_before = budget_heap_bytes();
    builder->parser = fy_parser_create(&parse);
    return builder->parser != NULL && fy_parser_set_input_callback(builder->parser, builder, feed) == 0;
}

static void parser_close(struct builder *builder)
{
    if (builder->parser != NULL)
        fy_parser_destroy(builder->parser);
    if (builder->diag != NULL)
        fy_diag_destroy(builder->diag);
}

/* The first error is the cause, later ones follow from it. */
static plim_status parser_error(struct builder *builder)
{
    if (builder->refused != PLIM_OK)
        return error_at(builder->error, builder->refused, builder->name);
    void *at = NULL;
    struct fy_diag_error *first = fy_diag_errors_iterate(builder->diag, &at);
    while (first != NULL && first->type < FYET_ERROR)
        first = fy_diag_errors_iterate(builder->diag, &at);
    if (first == NULL || first->msg == NULL)
        return wrong_here(builder, "not YAML");
    if (first->line > 0)
        builder->line = first->line;
    if (first->column > 0)
        builder->column = first->column;
    char what[200];
    snprintf(what, sizeof what, "%.*s", (int)strcspn(first->msg, "\r\n"), first->msg);
    return wrong_here(builder, what);
}

static void move_to(struct builder *builder, struct fy_token *token, int before)
{
    const struct fy_mark *mark = token != NULL ? fy_token_start_mark(token) : NULL;
    if (mark == NULL)
        return;
    builder->line = mark->line + 1;
    builder->column = mark->column + 1 - (mark->column >= before ? before : 0);
}

/* Quotes stand before the text that libfyaml gives a place to. */
static bool is_quoted(struct fy_token *scalar)
{
    enum fy_scalar_style style = fy_token_scalar_style(scalar);
    return style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
}

/* The next event, and what no event of ours may have. */
static plim_status next_event(struct fy_event **out, struct builder *builder)
{
    struct fy_event *event = builder->refused == PLIM_OK ? fy_parser_parse(builder->parser) : NULL;
    const char *refused = NULL;
    if (event != NULL && builder->refused != PLIM_OK) { /* of a text that feed cut short: not what the file says */
        fy_parser_event_free(builder->parser, event);
        event = NULL;
    }
    if (event == NULL)
        return parser_error(builder);
    if (fy_event_get_tag_token(event) != NULL) {
        move_to(builder, fy_event_get_tag_token(event), 0);
        refused = "tags (!name) are not allowed here";
    } else if (fy_event_get_anchor_token(event) != NULL) {
        move_to(builder, fy_event_get_anchor_token(event), 1);
        refused = "anchors (&name) are not allowed here";
    } else if (event->type == FYET_ALIAS) {
        move_to(builder, fy_event_get_token(event), 1);
        refused = "aliases (*name) are not allowed here; text that begins with * needs quotes";
    }
    if (refused != NULL) {
        fy_parser_event_free(builder->parser, event);
        return wrong_here(builder, refused);
    }
    struct fy_token *token = fy_event_get_token(event);
    move_to(builder, token, event->type == FYET_SCALAR && token != NULL && is_quoted(token));
    *out = event;
    return PLIM_OK;
}

/* ---- the tree -------------------------------------------------------- */

/* The bytes between single quotes, if they hold '' twice in a row: libfyaml
   0.7 makes wrong text of that (and loses 4 KiB). NULL otherwise. */
static const char *doubled_quotes(size_t *bytes, const struct builder *builder, struct fy_token *token)
{
    if (token == NULL || fy_token_scalar_style(token) != FYSS_SINGLE_QUOTED)
        return NULL;
    const struct fy_mark *from = fy_token_start_mark(token), *to = fy_token_end_mark(token);
    if (from == NULL || to == NULL || to->input_pos <= from->input_pos)
        return NULL;
    *bytes = to->input_pos - from->input_pos;
    const char *raw = builder->text + from->input_pos;
    return memmem(raw, *bytes, "''''", 4) != NULL ? raw : NULL;
}

/* '' stands for '. */
static plim_status copy_doubled(const char **out, struct builder *builder, const char *raw, size_t bytes)
{
    if (memchr(raw, '\n', bytes) != NULL || memchr(raw, '\r', bytes) != NULL)
        return wrong_here(builder, "too many single quotes in a text of several lines; use double quotes");
    char *copy = arena_take(builder->arena, bytes + 1), *to = copy;
    if (copy == NULL)
        return arena_refused(builder->arena, builder->error);
    for (size_t i = 0; i < bytes; i++) {
        *to++ = raw[i];
        i += raw[i] == '\'';
    }
    *out = copy;
    return PLIM_OK;
}

static plim_status copy_text(const char **out, struct builder *builder, struct fy_token *token)
{
    size_t bytes = 0;
    const char *text = doubled_quotes(&bytes, builder, token);
    if (text != NULL)
        return copy_doubled(out, builder, text, bytes);
    text = token != NULL ? fy_token_get_text(token, &bytes) : "";
    if (text == NULL)
        return fail_at(builder->error, PLIM_NO_MEMORY, builder->name, "no memory for the text of a value");
    if (memchr(text, 0, bytes) != NULL)
        return wrong_here(builder, "a value may not hold the character 0");
    char *copy = arena_take(builder->arena, bytes + 1);
    if (copy == NULL)
        return arena_refused(builder->arena, builder->error);
    memcpy(copy, text, bytes);
    *out = copy;
    return PLIM_OK;
}

static plim_status make_node(struct yaml **out, struct builder *builder, enum yaml_kind kind)
{
    if (++builder->nodes > YAML_MOST_NODES)
        return wrong_here(builder, "too many values in one file");
    struct yaml *node = arena_take(builder->arena, sizeof *node);
    if (node == NULL)
        return arena_refused(builder->arena, builder->error);
    node->kind = kind;
    node->line = builder->line;
    node->column = builder->column;
    *out = node;
    return PLIM_OK;
}

static bool means_null(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static plim_status build_scalar(struct yaml **out, struct builder *builder, struct fy_event *event)
{
    struct fy_token *token = event->scalar.value;
    struct yaml *node;
    TRY(make_node(&node, builder, YAML_SCALAR));
    TRY(copy_text(&node->text, builder, token));
    node->quoted = token != NULL && fy_token_scalar_style(token) != FYSS_PLAIN;
    node->is_null = !node->quoted && means_null(node->text);
    if (node->is_null)
        node->text = "";
    *out = node;
    return PLIM_OK;
}

static plim_status build_value(struct yaml **out, struct builder *builder, struct fy_event *event);

static plim_status build_list(struct yaml *list, struct builder *builder)
{
    for (struct yaml **end = &list->first;; end = &(*end)->next) {
        struct fy_event *event;
        TRY(next_event(&event, builder));
        bool ended = event->type == FYET_SEQUENCE_END;
        plim_status status = ended ? PLIM_OK : build_value(end, builder, event);
        fy_parser_event_free(builder->parser, event);
        if (ended || status != PLIM_OK)
            return status;
        list->count++;
    }
}

static plim_status second_time(struct builder *builder, const struct yaml *first)
{
    char what[160];
    message_print(what, sizeof what, "the key '%.80s' is here for the second time; the first is in line %d", first->key,
                  first->key_line);
    return wrong_here(builder, what);
}

static int by_key(const void *left, const void *right)
{
    const struct yaml *a = *(const struct yaml *const *)left, *b = *(const struct yaml *const *)right;
    int order = strcmp(a->key, b->key);
    if (order == 0)
        order = a->key_line != b->key_line ? a->key_line - b->key_line : a->key_column - b->key_column;
    return order;
}

/* Beyond MANY_KEYS to compare each with all before it would take too long: sorted, equal ones are neighbours. */
static plim_status check_many(struct builder *builder, const struct yaml *map)
{
    size_t count = 0;
    if (map->count <= MANY_KEYS)
        return PLIM_OK;
    const struct yaml **entry = arena_array(builder->arena, (size_t)map->count, sizeof *entry);
    if (entry == NULL)
        return arena_refused(builder->arena, builder->error);
    for (const struct yaml *child = map->first; child != NULL; child = child->next)
        entry[count++] = child;
    qsort(entry, count, sizeof *entry, by_key);
    for (size_t i = 1; i < count; i++)
        if (strcmp(entry[i - 1]->key, entry[i]->key) == 0) {
            builder->line = entry[i]->key_line;
            builder->column = entry[i]->key_column;
            return second_time(builder, entry[i - 1]);
        }
    return PLIM_OK;
}

/* The key of the next entry; NULL at the end of the map. */
static plim_status build_key(const char **key, struct builder *builder, const struct yaml *map)
{
    struct fy_event *event;
    TRY(next_event(&event, builder));
    plim_status status = PLIM_OK;
    *key = NULL;
    if (event->type == FYET_SCALAR)
        status = copy_text(key, builder, event->scalar.value);
    else if (event->type != FYET_MAPPING_END)
        status = wrong_here(builder, "a key must be plain text");
    fy_parser_event_free(builder->parser, event);
    if (status != PLIM_OK || *key == NULL)
        return status;
    if (**key == 0)
        return wrong_here(builder, "a key is missing before ':'");
    if (strcmp(*key, "<<") == 0)
        return wrong_here(builder, "merge keys (<<) are not allowed here");
    const struct yaml *same = map->count < MANY_KEYS ? yaml_get(map, *key) : NULL;
    return same != NULL ? second_time(builder, same) : PLIM_OK;
}

static plim_status build_map(struct yaml *map, struct builder *builder)
{
    for (struct yaml **end = &map->first;; end = &(*end)->next) {
        struct fy_event *event;
        const char *key;
        struct yaml *value;
        TRY(build_key(&key, builder, map));
        if (key == NULL)
            return check_many(builder, map);
        int line = builder->line, column = builder->column;
        TRY(next_event(&event, builder));
        plim_status status = build_value(&value, builder, event);
        fy_parser_event_free(builder->parser, event);
        TRY(status);
        value->key = key;
        value->key_line = line;
        value->key_column = column;
        *end = value;
        map->count++;
    }
}

/* libfyaml puts [a: 1]'s inner map at the colon; people look at the key. */
static void place_at_first_key(struct yaml *map)
{
    const struct yaml *first = map->first;
    if (first == NULL || first->key_line > map->line)
        return;
    if (first->key_line == map->line && first->key_column > map->column)
        return;
    map->line = first->key_line;
    map->column = first->key_column;
}

static plim_status build_value(struct yaml **out, struct builder *builder, struct fy_event *event)
{
    struct yaml *node;
    if (event->type == FYET_SCALAR)
        return build_scalar(out, builder, event);
    if (event->type != FYET_MAPPING_START && event->type != FYET_SEQUENCE_START)
        return wrong_here(builder, "a value was expected");
    bool is_map = event->type == FYET_MAPPING_START;
    if (++builder->depth > YAML_MOST_DEPTH)
        return wrong_here(builder, "values inside values: too deep");
    TRY(make_node(&node, builder, is_map ? YAML_MAP : YAML_LIST));
    TRY(is_map ? build_map(node, builder) : build_list(node, builder));
    builder->depth--;
    if (is_map)
        place_at_first_key(node);
    *out = node;
    return PLIM_OK;
}

/* The one document of the stream. */
static plim_status build_document(struct yaml **out, struct builder *builder)
{
    struct yaml *root = NULL;
    for (int documents = 0;;) {
        struct fy_event *event;
        TRY(next_event(&event, builder));
        enum fy_event_type type = event->type;
        plim_status status = PLIM_OK;
        if (type == FYET_DOCUMENT_START && ++documents > 1)
            status = wrong_here(builder, "a second document begins here; only one is allowed");
        else if (type == FYET_SCALAR || type == FYET_MAPPING_START || type == FYET_SEQUENCE_START)
            status = build_value(&root, builder, event);
        fy_parser_event_free(builder->parser, event);
        TRY(status);
        if (type == FYET_STREAM_END)
            break;
    }
    if (root == NULL)
        TRY(make_node(&root, builder, YAML_SCALAR));
    if (root->text == NULL && root->kind == YAML_SCALAR) {
        root->text = "";
        root->is_null = true;
    }
    *out = root;
    return PLIM_OK;
}

plim_status yaml_parse(struct yaml **root, struct arena *arena, const char *name, const char *text, size_t bytes,
                       plim_error *error)
{
    struct builder builder = {.arena = arena, .name = name, .error = error, .line = 1, .column = 1};
    struct yaml *found = NULL;
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        bytes -= 3;
    }
    builder.text = text;
    builder.bytes = bytes;
    TRY(check_characters(name, text, bytes, error));
    TRY(check_empty_lines(name, text, bytes, error));
    plim_status status;
    if (!parser_open(&builder))
        status = fail_at(error, PLIM_NO_MEMORY, name, "no memory for the YAML parser");
    else
        status = build_document(&found, &builder);
    parser_close(&builder);
    if (status == PLIM_OK)
        *root = found;
    return status;
}

/* As deep as the document, which is bounded. */
plim_status yaml_copy(struct yaml **out, struct arena *arena, const struct yaml *node, plim_error *error)
{
    struct yaml *copy = arena_take(arena, sizeof *copy);
    if (!copy)
        return arena_refused(arena, error);
    *copy = *node;
    copy->key = node->key ? arena_string(arena, node->key) : NULL;
    copy->text = node->text ? arena_string(arena, node->text) : NULL;
    copy->origin = node->origin ? arena_string(arena, node->origin) : NULL;
    copy->first = copy->next = NULL;
    if ((node->key && !copy->key) || (node->text && !copy->text) || (node->origin && !copy->origin))
        return arena_refused(arena, error);
    struct yaml **end = &copy->first;
    for (const struct yaml *child = node->first; child; child = child->next, end = &(*end)->next)
        TRY(yaml_copy(end, arena, child, error));
    *out = copy;
    return PLIM_OK;
}

void yaml_forget_places(struct yaml *node)
{
    node->line = node->column = node->key_line = node->key_column = 0;
    for (struct yaml *child = node->first; child; child = child->next)
        yaml_forget_places(child);
}

struct yaml *yaml_get(const struct yaml *map, const char *key)
{
    if (map == NULL || map->kind != YAML_MAP)
        return NULL;
    for (struct yaml *child = map->first; child != NULL; child = child->next)
        if (strcmp(child->key, key) == 0)
            return child;
    return NULL;
}

static void write_place(char out[256], const char *name, const char *origin, int line, int column)
{
    if (origin != NULL)
        snprintf(out, 256, "%s", origin);
    else if (line == 0)
        message_print(out, 256, "%.220s", name);
    else
        message_print(out, 256, "%.220s:%d:%d", name, line, column);
}

const char *yaml_origin(const struct yaml *node)
{
    const char *origin = node->origin;
    for (const struct yaml *child = node->first; child && !origin; child = child->next)
        origin = yaml_origin(child);
    return origin;
}

void yaml_place(char out[256], const char *name, const struct yaml *node)
{
    const char *inside = yaml_origin(node);
    write_place(out, name, node->origin, node->line, node->column);
    if (inside && !node->origin)
        yaml_place_with(out, inside);
}

void yaml_place_with(char out[256], const char *origin)
{
    size_t length = strlen(out);
    snprintf(out + length, 256 - length, " with %s", origin);
}

void yaml_key_place(char out[256], const char *name, const struct yaml *node)
{
    bool has_key = node->key_line > 0;
    write_place(out, name, node->origin, has_key ? node->key_line : node->line,
                has_key ? node->key_column : node->column);
}

plim_status(yaml_fail)(plim_error *error, plim_status code, const char *name, const struct yaml *node,
                       const char *format, ...)
{
    char where[256], message[sizeof error->message + 1];
    va_list list;
    va_start(list, format);
    message_print_list(message, sizeof message, format, list);
    va_end(list);
    yaml_place(where, name, node);
    return fail_at(error, code, where, "%s", message);
}
