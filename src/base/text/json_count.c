/* json_count.c - commas, colons and braces outside of strings. */
#include "base/text/json_count.h"

#include "base/text/json.h"

#define PIECE_BYTES 4096

static void begin_object(struct json_count *count)
{
    bool whole = count->key_bytes <= sizeof count->key;
    if (count->depth != 1)
        return;
    count->named = count->name && whole && json_is(count->key, count->key_bytes, count->name);
    count->objects += !count->named;
}

static void count_one(struct json_count *count, char c)
{
    if (c == '{' || c == '[') {
        count->values++;
        if (c == '{')
            begin_object(count);
        count->depth++;
    } else if (c == '}' || c == ']') {
        count->depth--;
    } else if (c == ',') {
        count->values++;
    } else if (c == ':') {
        count->keys_of_named += count->depth == 2 && count->named;
    }
}

static void keep_key(struct json_count *count, char c)
{
    if (count->depth != 1 || count->key_bytes > sizeof count->key)
        return;
    if (count->key_bytes < sizeof count->key)
        count->key[count->key_bytes] = c;
    count->key_bytes++;
}

static void count_in_string(struct json_count *count, char c)
{
    bool ends = c == '"' && !count->escaped;
    count->escaped = c == '\\' && !count->escaped;
    count->in_string = !ends;
    if (!ends)
        keep_key(count, c);
}

/* Each value but the first of an object or array follows a comma; its first is counted with the bracket. */
void json_count_add(struct json_count *count, const char *data, size_t bytes)
{
    if (bytes && count->values == 0)
        count->values = 1;
    for (size_t i = 0; i < bytes; i++) {
        char c = data[i];
        if (count->in_string) {
            count_in_string(count, c);
        } else if (c == '"') {
            count->in_string = true;
            count->key_bytes = count->depth == 1 ? 0 : count->key_bytes;
        } else {
            count_one(count, c);
        }
    }
}

plim_status json_count_file(struct json_count *out, struct file *file, uint64_t from, uint64_t bytes, plim_error *error)
{
    char piece[PIECE_BYTES];
    for (uint64_t at = 0; at < bytes;) {
        size_t some = bytes - at < sizeof piece ? (size_t)(bytes - at) : sizeof piece;
        TRY(file_read(file, from + at, piece, some, error));
        json_count_add(out, piece, some);
        at += some;
    }
    return PLIM_OK;
}
