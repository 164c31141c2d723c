/* yaml.h - a YAML file as a tree of ours, each node with its line and column.

   libfyaml parses; its tree is copied into an arena and freed at once. Keys
   are unique. Aliases and tags are refused, and so are files of more than
   YAML_MOST_BYTES or YAML_MOST_NODES. */
#ifndef BASE_TEXT_YAML_H
#define BASE_TEXT_YAML_H

#include "base/memory/arena.h"

#define YAML_MOST_BYTES ((size_t)1024 * 1024)
#define YAML_MOST_NODES 20000

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml {
    enum yaml_kind kind;
    const char *key;  /* in a map, else NULL */
    const char *text; /* scalar: as written, unquoted; null and ~ are "" with is_null */
    bool quoted, is_null;
    int line, column; /* from 1; of the value; 0: it is in no text */
    int key_line, key_column;
    struct yaml *first, *next; /* children, and the next sibling */
    int count;                 /* children */
    const char *origin;        /* NULL: the file; else the override that set it, "--set train.epochs=1" */
};

/* Errors are PLIM_BAD_JOB with the place "name:line:column". An empty text is
   a scalar with is_null. `text` is not needed afterwards. */
plim_status yaml_parse(struct yaml **root, struct arena *arena, const char *name, const char *text, size_t bytes,
                       plim_error *error);
/* Of a text that nobody has written: places in the tree are the name alone. */
void yaml_forget_places(struct yaml *node);
/* The child of a map with that key, or NULL. */
struct yaml *yaml_get(const struct yaml *map, const char *key);
/* The tree below a node, in another arena: for those who need it when the document is gone. */
plim_status yaml_copy(struct yaml **out, struct arena *arena, const struct yaml *node, plim_error *error);
/* "train.epochs=1": sets a value (its text is YAML: "a=[1, 2]"), making maps
   on the way, except for a part that is a near miss of a key that is there
   (PLIM_USAGE with that key). A number enters a list by place, from 0. A list
   of one-key maps (a pipeline) is entered by the name of its entry: the first
   entry with that name; a missing one is PLIM_USAGE. */
plim_status yaml_override(struct yaml *root, struct arena *arena, const char *assignment, plim_error *error);
/* "job.yaml:3:7" for an error's place: of the value, and of its key (of the
   value where it has none). What an override set has the override as place;
   a value in which it set something "job.yaml:3:7 with --set train.epochs=1". */
void yaml_place(char out[256], const char *name, const struct yaml *node);
void yaml_key_place(char out[256], const char *name, const struct yaml *node);
void yaml_place_with(char out[256], const char *origin);
/* The override that set the node or something inside of it, or NULL. */
const char *yaml_origin(const struct yaml *node);

/* There is no node, or it is null: an option keeps its default. */
static inline bool yaml_absent(const struct yaml *node)
{
    return !node || (node->kind == YAML_SCALAR && node->is_null);
}
/* "list" or "map", for errors about nodes that are no scalars. */
static inline const char *yaml_kind_name(const struct yaml *node)
{
    return node->kind == YAML_LIST ? "list" : "map";
}
/* fail_at (base/status.h) with the place of a value. */
__attribute__((format(printf, 5, 6))) plim_status(yaml_fail)(plim_error *error, plim_status code, const char *name,
                                                             const struct yaml *node, const char *format, ...);
#define yaml_fail(error, code, ...) KNOWN_CODE((yaml_fail)(error, code, __VA_ARGS__), code)

#endif
