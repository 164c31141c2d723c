/* file_window.c - slides over a file: what was looked at goes, what follows comes in behind the rest. */
#include "base/files/file_window.h"
#include "base/text/message.h"

#include <stdio.h>
#include <string.h>

plim_status file_window_open(struct file_window *window, struct budget *budget, enum tag tag, struct file *file,
                             plim_error *error)
{
    char *data = budget_take(budget, tag, FILE_WINDOW_BYTES);
    if (!data)
        return budget_refused(budget, tag, FILE_WINDOW_BYTES, error);
    *window = (struct file_window){.budget = budget, .tag = tag, .file = file, .data = data};
    return PLIM_OK;
}

void file_window_close(struct file_window *window)
{
    budget_give(window->budget, window->tag, window->data, FILE_WINDOW_BYTES);
    window->data = NULL;
}

void file_window_set(struct file_window *window, uint64_t from, uint64_t end)
{
    window->bytes = window->at = 0;
    window->base = from;
    window->end = end;
}

bool file_window_more(const struct file_window *window)
{
    return window->base + window->bytes < window->end;
}

plim_status file_window_fill(struct file_window *window, plim_error *error)
{
    if (window->bytes - window->at >= FILE_WINDOW_ITEM || !file_window_more(window))
        return PLIM_OK;
    memmove(window->data, window->data + window->at, window->bytes - window->at);
    window->base += window->at;
    window->bytes -= window->at;
    window->at = 0;
    uint64_t next = window->base + window->bytes, left = window->end - next;
    size_t room = FILE_WINDOW_BYTES - window->bytes, bytes = left < room ? (size_t)left : room;
    TRY(file_read(window->file, next, window->data + window->bytes, bytes, error));
    window->bytes += bytes;
    return PLIM_OK;
}

static plim_status too_long(const struct file_window *window, plim_error *error)
{
    char where[256];
    message_print(where, sizeof where, "%.200s: byte %llu", file_path(window->file),
                  (unsigned long long)(window->base + window->at));
    return fail_at(error, PLIM_BAD_DATA, where, "a line of more than %zu bytes", FILE_WINDOW_ITEM);
}

plim_status file_window_line(char **line, size_t *bytes, uint64_t *at, struct file_window *window, plim_error *error)
{
    TRY(file_window_fill(window, error));
    char *start = window->data + window->at;
    size_t left = window->bytes - window->at, most = left < FILE_WINDOW_ITEM ? left : FILE_WINDOW_ITEM;
    *line = NULL;
    if (left == 0)
        return PLIM_OK;
    char *end = memchr(start, '\n', most < left ? most + 1 : most); /* the line feed is not one of its bytes */
    if (!end && (most < left || file_window_more(window)))
        return too_long(window, error);
    size_t length = end ? (size_t)(end - start) : left;
    *line = start;
    *at = window->base + window->at;
    *bytes = length && start[length - 1] == '\r' ? length - 1 : length;
    window->at += length + (end != NULL);
    return PLIM_OK;
}
