/* json_file.c - json.h's reader over a window that slides: between two tokens its state does not point anywhere. */
#include "base/text/json_file.h"

plim_status json_file_open(struct json_file *out, struct budget *budget, enum tag tag, struct file *file,
                           plim_error *error)
{
    TRY(file_window_open(&out->window, budget, tag, file, error));
    json_file_set(out, 0, 0);
    return PLIM_OK;
}

void json_file_close(struct json_file *json)
{
    file_window_close(&json->window);
}

void json_file_set(struct json_file *json, uint64_t from, uint64_t end)
{
    file_window_set(&json->window, from, end);
    json_read_init(&json->reader, json->window.data, 0);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* White space in front goes first, however much it is: then a whole token is in the window, if it is not too long. */
static plim_status fill(struct json_file *json, plim_error *error)
{
    struct file_window *window = &json->window;
    for (;;) {
        TRY(file_window_fill(window, error));
        size_t at = window->at;
        while (window->at < window->bytes && is_space(window->data[window->at]))
            window->at++;
        if (at == window->at || !file_window_more(window) || window->bytes - window->at >= FILE_WINDOW_ITEM)
            break;
    }
    json->reader.data = window->data;
    json->reader.bytes = window->bytes;
    json->reader.at = window->at;
    json->reader.base = window->base;
    return PLIM_OK;
}

plim_status json_file_next(struct json_token *token, struct json_file *json, plim_error *error)
{
    TRY(fill(json, error));
    size_t from = json->window.at;
    plim_status status = json_next(token, &json->reader, error);
    /* What ends with the window may go on behind it. */
    if (file_window_more(&json->window) && json->reader.bytes - json->reader.at < 8)
        return fail(error, PLIM_BAD_DATA, "byte %llu: a value of more than %zu bytes",
                    (unsigned long long)(json->window.base + from), FILE_WINDOW_ITEM);
    json->window.at = json->reader.at;
    return status;
}

bool json_file_unescape(char **text, struct json_file *json, const char *raw, size_t raw_bytes)
{
    *text = json->window.data + (raw - json->window.data);
    return json_unescape(*text, raw_bytes + 1, raw, raw_bytes);
}
