/* status.c - writes errors: one line each, whatever the text came from. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/count.h"
#include "base/text/json.h"
#include "base/text/message.h"

static const struct {
    const char *name;
    int exit_code;
} statuses[] = {
    [PLIM_OK] = {"OK", 0},
    [PLIM_USAGE] = {"USAGE", 2},
    [PLIM_BAD_JOB] = {"BAD_JOB", 2},
    [PLIM_BAD_DATA] = {"BAD_DATA", 3},
    [PLIM_BAD_MODEL] = {"BAD_MODEL", 3},
    [PLIM_OVER_BUDGET] = {"OVER_BUDGET", 4},
    [PLIM_OVER_DISK] = {"OVER_DISK", 4},
    [PLIM_NO_MEMORY] = {"NO_MEMORY", 5},
    [PLIM_IO] = {"IO", 6},
    [PLIM_INTERRUPTED] = {"INTERRUPTED", 7},
    [PLIM_UNSUPPORTED] = {"UNSUPPORTED", 2},
    [PLIM_INTERNAL] = {"INTERNAL", 1},
};

const char *plim_version(void)
{
    return PLIM_VERSION;
}

static size_t status_index(plim_status status)
{
    size_t index = (size_t)status;
    return index < COUNT(statuses) ? index : (size_t)PLIM_INTERNAL;
}

const char *plim_status_name(plim_status status)
{
    return statuses[status_index(status)].name;
}

int plim_status_exit(plim_status status)
{
    return statuses[status_index(status)].exit_code;
}

/* Characters that move the cursor, end the line or turn the direction of writing: C0 and C1 controls, DEL, the line
   and paragraph separators, and the bidirectional embeddings and isolates. */
static bool is_control(const char *text, size_t length)
{
    const unsigned char *c = (const unsigned char *)text;
    if (length == 1)
        return c[0] < 0x20 || c[0] == 0x7f;
    if (length == 2)
        return c[0] == 0xc2 && c[1] < 0xa0;
    return length == 3 && c[0] == 0xe2 &&
           ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

/* Copies `from` into a field of an error: printable UTF-8 as it is, any other byte as \xNN, because texts quote what
   files say. Cut between characters; `bytes` of from count, and a character that they cut is left out. */
static void copy_printable(char *to, size_t capacity, const char *from, size_t bytes)
{
    size_t at = 0, used = 0, length = strnlen(from, bytes);
    while (at < length) {
        char piece[20] = "";
        size_t taken = json_utf8_length(from + at, length - at), made = taken;
        if (length == bytes && length - at < 4 && taken == 0 && ((unsigned char)from[at] & 0xc0) == 0xc0)
            break;
        taken = taken ? taken : 1;
        if (made == 0 || is_control(from + at, taken)) {
            made = 0;
            for (size_t i = 0; i < taken; i++)
                made += (size_t)snprintf(piece + made, sizeof piece - made, "\\x%02x", (unsigned char)from[at + i]);
        } else {
            memcpy(piece, from + at, taken);
        }
        if (used + made >= capacity)
            break;
        memcpy(to + used, piece, made);
        used += made;
        at += taken;
    }
    to[used] = '\0';
}

/* Texts are made in a buffer of their own first: the arguments may be the old
   fields of the same error. */
enum { MESSAGE_BUFFER = sizeof((plim_error *)0)->message + 1, PLACE_BUFFER = sizeof((plim_error *)0)->where + 1 };

static plim_status set_error(plim_error *error, plim_status code, const char *where, const char *format, va_list list)
{
    char message[MESSAGE_BUFFER], spot[PLACE_BUFFER];
    if (!error)
        return code;
    message_print_list(message, sizeof message, format, list);
    snprintf(spot, sizeof spot, "%s", where ? where : "");
    error->code = code;
    copy_printable(error->where, sizeof error->where, spot, sizeof spot - 1);
    copy_printable(error->message, sizeof error->message, message, sizeof message - 1);
    error->hint[0] = '\0';
    return code;
}

plim_status(fail)(plim_error *error, plim_status code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    set_error(error, code, NULL, format, list);
    va_end(list);
    return code;
}

plim_status(fail_at)(plim_error *error, plim_status code, const char *where, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    set_error(error, code, where, format, list);
    va_end(list);
    return code;
}

plim_status hint(plim_error *error, plim_status code, const char *format, ...)
{
    char text[sizeof error->hint + 1];
    va_list list;
    if (!error)
        return code;
    va_start(list, format);
    message_print_list(text, sizeof text, format, list);
    va_end(list);
    copy_printable(error->hint, sizeof error->hint, text, sizeof text - 1);
    return error->code;
}

plim_status reword(plim_error *error, plim_status code, const char *format, ...)
{
    char text[MESSAGE_BUFFER];
    va_list list;
    if (!error)
        return code;
    va_start(list, format);
    message_print_list(text, sizeof text, format, list);
    va_end(list);
    copy_printable(error->message, sizeof error->message, text, sizeof text - 1);
    return error->code = code;
}

plim_status error_at(plim_error *error, plim_status code, const char *where)
{
    if (error && error->where[0] == '\0')
        copy_printable(error->where, sizeof error->where, where, sizeof error->where);
    return code;
}

plim_status need_argument(const void *argument, const char *what, plim_error *error)
{
    return argument ? PLIM_OK : fail(error, PLIM_USAGE, "%s is NULL", what);
}
