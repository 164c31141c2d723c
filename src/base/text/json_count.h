/* json_count.h - how much there is in a JSON document, counted piece by piece: what reading it will take is known
   before it is read. Nothing is checked: of a text that is not JSON the counts mean nothing. */
#ifndef BASE_TEXT_JSON_COUNT_H
#define BASE_TEXT_JSON_COUNT_H

#include "base/files/file.h"

struct json_count {
    uint64_t values;        /* at most so many: objects, arrays and scalars */
    const char *name;       /* of at most 21 bytes: an object of the outermost one; NULL: none is looked for */
    uint64_t objects;       /* those of the outermost one that have another name */
    uint64_t keys_of_named; /* keys of those that have the name */
    char key[128];          /* the newest string of the outermost object, as written: at most 6 bytes a character */
    size_t key_bytes;       /* > sizeof key: longer */
    int depth;
    bool named, in_string, escaped;
};

/* Zeroed at first, but for the name. */
void json_count_add(struct json_count *count, const char *data, size_t bytes);
/* The same for bytes [from, from + bytes) of a file. */
plim_status json_count_file(struct json_count *out, struct file *file, uint64_t from, uint64_t bytes,
                            plim_error *error);

#endif
