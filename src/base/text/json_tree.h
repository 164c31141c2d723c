/* json_tree.h - a JSON document as the tree that YAML files are read into, so that one reader of words serves both.

   Keys are unique, as in YAML. Lines and columns are counted; true, false and numbers are their text, null
   is is_null. */
#ifndef BASE_TEXT_JSON_TREE_H
#define BASE_TEXT_JSON_TREE_H

#include "base/text/yaml.h"

#define JSON_TREE_MOST_NODES 2000000

/* Errors are PLIM_BAD_DATA with the place "name:line:column". `text` is not needed afterwards. */
plim_status json_tree(struct yaml **root, struct arena *arena, const char *name, const char *text, size_t bytes,
                      plim_error *error);

#endif
