/* fuzz_json.c - any bytes through the JSON reader: each token is asked for
   everything that callers ask tokens for. */
#include <stdint.h>

#include "base/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void use_token(const struct json_token *token)
{
    char text[64];
    int64_t whole;
    if (token->key != NULL) {
        json_unescape(text, sizeof text, token->key, token->key_bytes);
        json_is(token->key, token->key_bytes, "dtype");
    }
    if (token->kind == JSON_STRING)
        json_unescape(text, sizeof text, token->text, token->text_bytes);
    json_whole(&whole, token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct json_reader reader;
    struct json_token token = {.kind = JSON_NULL};
    plim_error error;
    json_read_init(&reader, (const char *)data, bytes);
    while (token.kind != JSON_END) {
        if (json_next(&token, &reader, &error) != PLIM_OK)
            break;
        use_token(&token);
        if (token.key != NULL && json_is(token.key, token.key_bytes, "skip") &&
            json_skip(&reader, &token, &error) != PLIM_OK)
            break;
    }
    return 0;
}
