/* json_file.h - the tokens of a JSON document of any size, from a file, through a window of fixed size.

   A key and its value, or a value alone, may have FILE_WINDOW_ITEM bytes. */
#ifndef BASE_TEXT_JSON_FILE_H
#define BASE_TEXT_JSON_FILE_H

#include "base/files/file_window.h"
#include "base/text/json.h"

struct json_file {
    struct json_reader reader;
    struct file_window window;
};

/* The file stays the caller's. */
plim_status json_file_open(struct json_file *out, struct budget *budget, enum tag tag, struct file *file,
                           plim_error *error);
void json_file_close(struct json_file *json);
/* Begins, or begins again: bytes [from, end) are the document. Offsets of tokens are bytes of the file. */
void json_file_set(struct json_file *json, uint64_t from, uint64_t end);
/* As json_next. The token's texts may be written to; they are good until the next call. */
plim_status json_file_next(struct json_token *token, struct json_file *json, plim_error *error);
/* The bytes of a raw text of the token's, unescaped where they lie; false when an escape is bad. */
bool json_file_unescape(char **text, struct json_file *json, const char *raw, size_t raw_bytes);

#endif
