/* json_count.c - commas, colons and braces outside of strings. */
#include "base/text/json_count.h"

#include <string.h>

#define PIECE_BYTES 4096

static void count_one(struct json_count *count, char c)
{
    if (c == '{' || c == '[') {
        count->values++;
        count->objects_in += c == '{' && count->depth == 1;
        count->depth++;
    } else if (c == '}' || c == ']') {
        count->depth--;
    } else if (c == ',') {
        count->values++;
    } else if (c == ':') {
        count->keys_in_those += count->depth == 2;
    }
}

/* Each value but the first of an object or array follows a comma; its first is counted with the bracket. */
void json_count_add(struct json_count *count, const char *data, size_t bytes)
{
    if (bytes && count->values == 0)
        count->values = 1;
    for (size_t i = 0; i < bytes; i++) {
        char c = data[i];
        if (!count->in_string) {
            count->in_string = c == '"';
            count_one(count, c);
        } else if (count->escaped) {
            count->escaped = false;
        } else {
            count->escaped = c == '\\';
            count->in_string = c != '"';
        }
    }
}

plim_status json_count_file(struct json_count *out, struct file *file, uint64_t from, uint64_t bytes, plim_error *error)
{
    char piece[PIECE_BYTES];
    *out = (struct json_count){0};
    for (uint64_t at = 0; at < bytes;) {
        size_t some = bytes - at < sizeof piece ? (size_t)(bytes - at) : sizeof piece;
        TRY(file_read(file, from + at, piece, some, error));
        json_count_add(out, piece, some);
        at += some;
    }
    return PLIM_OK;
}
