/* json.h - JSON in and out, without a tree.

   The writer appends to a text: commas are its business. Floats are printed
   with the fewest digits that read back as the same double (NaN and infinity
   as null). The reader pulls tokens out of a buffer that it never copies. */
#ifndef BASE_TEXT_JSON_H
#define BASE_TEXT_JSON_H

#include "base/text/text.h"

struct json_writer {
    struct text *text;
    bool need_comma;
};

void json_init(struct json_writer *json, struct text *text);
/* key == NULL inside an array or at the top. */
void json_object(struct json_writer *json, const char *key);
void json_end_object(struct json_writer *json);
void json_array(struct json_writer *json, const char *key);
void json_end_array(struct json_writer *json);
void json_string(struct json_writer *json, const char *key, const char *value); /* NULL writes null */
void json_int(struct json_writer *json, const char *key, int64_t value);
void json_uint(struct json_writer *json, const char *key, uint64_t value);
void json_double(struct json_writer *json, const char *key, double value);
void json_bool(struct json_writer *json, const char *key, bool value);

enum json_kind {
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_END
};

/* A token. Inside an object a value carries its key. Strings are given raw:
   bytes between the quotes; json_unescape makes UTF-8 of them. */
struct json_token {
    enum json_kind kind;
    const char *key;
    size_t key_bytes;
    const char *text;
    size_t text_bytes;
    uint64_t at; /* byte offset in the document */
};

struct json_reader {
    const char *data;
    size_t bytes, at;
    uint64_t base; /* the buffer's place in its document: counts in the offsets that are reported */
    int depth;
    uint64_t in_object; /* one bit a level: at most JSON_DEPTH levels */
    bool started, after_value;
};
#define JSON_DEPTH 60

void json_read_init(struct json_reader *reader, const char *data, size_t bytes);
/* PLIM_BAD_DATA with the byte on anything that is not RFC 8259. After the
   top value only white space may follow; then JSON_END is given. */
plim_status json_next(struct json_token *token, struct json_reader *reader, plim_error *error);
/* Passes over the rest of the object or array whose start was just given. */
plim_status json_skip(struct json_reader *reader, const struct json_token *start, plim_error *error);
/* Into out (with NUL); false when it does not fit, an escape is bad or it
   holds a NUL itself. */
bool json_unescape(char *out, size_t capacity, const char *raw, size_t raw_bytes);
bool json_is(const char *raw, size_t raw_bytes, const char *text);
/* A number that is a whole number in [0, 2^63); false otherwise. */
bool json_whole(int64_t *out, const struct json_token *token);
/* Bytes of the well-formed UTF-8 character at text, or 0. */
size_t json_utf8_length(const char *text, size_t bytes);

#endif
