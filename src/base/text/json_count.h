/* json_count.h - how much there is in a JSON document, counted piece by piece: what reading it will take is known
   before it is read. Nothing is checked: of a text that is not JSON the counts mean nothing. */
#ifndef BASE_TEXT_JSON_COUNT_H
#define BASE_TEXT_JSON_COUNT_H

#include "base/files/file.h"

struct json_count {
    uint64_t values;        /* at most so many: objects, arrays and scalars */
    uint64_t objects_in;    /* objects that are values of the outermost one */
    uint64_t keys_in_those; /* their keys */
    int depth;
    bool in_string, escaped;
};

/* Zeroed at first. */
void json_count_add(struct json_count *count, const char *data, size_t bytes);
/* Bytes [from, from + bytes) of a file. */
plim_status json_count_file(struct json_count *out, struct file *file, uint64_t from, uint64_t bytes,
                            plim_error *error);

#endif
