/* json_write.c - writes JSON into a text.

   1. What comes out is valid JSON whatever is given: bytes that are not UTF-8
      become U+FFFD, NaN and infinity null.
   2. Numbers do not depend on the locale of the host. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/numbers.h"
#include "base/text/json.h"

void json_init(struct json_writer *json, struct text *text)
{
    json->text = text;
    json->need_comma = false;
}

static void put_quoted(struct text *text, const char *value)
{
    const char *p = value;
    size_t bytes = strlen(value);
    text_add_bytes(text, "\"", 1);
    while (bytes > 0) {
        size_t length = json_utf8_length(p, bytes);
        if (*p == '"' || *p == '\\')
            text_add(text, "\\%c", *p);
        else if (*p == '\n')
            text_add_bytes(text, "\\n", 2);
        else if ((unsigned char)*p < 0x20 || *p == 0x7f)
            text_add(text, "\\u%04x", (unsigned)*p);
        else if (length == 0)
            text_add_bytes(text, "\\ufffd", 6);
        else
            text_add_bytes(text, p, length);
        length = length == 0 ? 1 : length;
        p += length;
        bytes -= length;
    }
    text_add_bytes(text, "\"", 1);
}

static void put_start(struct json_writer *json, const char *key)
{
    if (json->need_comma)
        text_add_bytes(json->text, ",", 1);
    json->need_comma = true;
    if (key != NULL) {
        put_quoted(json->text, key);
        text_add_bytes(json->text, ":", 1);
    }
}

static void put_bracket(struct json_writer *json, const char *bracket, bool end)
{
    text_add_bytes(json->text, bracket, 1);
    json->need_comma = end;
}

void json_object(struct json_writer *json, const char *key)
{
    put_start(json, key);
    put_bracket(json, "{", false);
}

void json_end_object(struct json_writer *json)
{
    put_bracket(json, "}", true);
}

void json_array(struct json_writer *json, const char *key)
{
    put_start(json, key);
    put_bracket(json, "[", false);
}

void json_end_array(struct json_writer *json)
{
    put_bracket(json, "]", true);
}

void json_string(struct json_writer *json, const char *key, const char *value)
{
    put_start(json, key);
    if (value == NULL)
        text_add_bytes(json->text, "null", 4);
    else
        put_quoted(json->text, value);
}

void json_int(struct json_writer *json, const char *key, int64_t value)
{
    put_start(json, key);
    text_add(json->text, "%lld", (long long)value);
}

void json_uint(struct json_writer *json, const char *key, uint64_t value)
{
    put_start(json, key);
    text_add(json->text, "%llu", (unsigned long long)value);
}

void json_bool(struct json_writer *json, const char *key, bool value)
{
    put_start(json, key);
    text_add(json->text, "%s", value ? "true" : "false");
}

/* Fifteen digits always survive the way through a normal double, so fewer
   need not be tried: %g drops their zeros. Subnormal ones hold fewer. */
static void shortest_double(char out[32], double value)
{
    int digits = fabs(value) < DBL_MIN ? 1 : 15;
    do {
        number_print(out, 32, "%.*g", digits, value);
    } while (number_parse(out, NULL) != value && ++digits <= 17);
}

void json_double(struct json_writer *json, const char *key, double value)
{
    char number[32] = "null";
    put_start(json, key);
    if (isfinite(value))
        shortest_double(number, value);
    text_add(json->text, "%s", number);
}
