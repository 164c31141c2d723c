/* status.c - writes errors: one line each, whatever the text came from. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"

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
    return index < sizeof statuses / sizeof *statuses ? index : (size_t)PLIM_INTERNAL;
}

const char *plim_status_name(plim_status status)
{
    return statuses[status_index(status)].name;
}

int plim_status_exit(plim_status status)
{
    return statuses[status_index(status)].exit_code;
}

/* Copies `from` into a field of an error: cut between characters, not inside
   one, and without line breaks or terminal codes that a file smuggled in. */
static void put(char *to, size_t capacity, const char *from)
{
    size_t length = strnlen(from, capacity);
    if (length == capacity) {
        length = capacity - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80)
            length--;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)from[i];
        to[i] = c < 0x20 || c == 0x7f ? '?' : from[i];
    }
    to[length] = '\0';
}

/* Texts are made in a buffer of their own first: the arguments may be the old
   fields of the same error. One more byte than a field, so that put() sees
   that something was cut. */
enum { MESSAGE_BUFFER = sizeof((plim_error *)0)->message + 1, PLACE_BUFFER = sizeof((plim_error *)0)->where + 1 };

static plim_status set_error(plim_error *error, plim_status code, const char *where, const char *format, va_list list)
{
    char message[MESSAGE_BUFFER], spot[PLACE_BUFFER];
    if (!error)
        return code;
    number_print_list(message, sizeof message, format, list);
    snprintf(spot, sizeof spot, "%s", where ? where : "");
    error->code = code;
    put(error->where, sizeof error->where, spot);
    put(error->message, sizeof error->message, message);
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
    number_print_list(text, sizeof text, format, list);
    va_end(list);
    put(error->hint, sizeof error->hint, text);
    return error->code;
}

plim_status place(plim_error *error, plim_status code, const char *where)
{
    if (error && error->where[0] == '\0')
        put(error->where, sizeof error->where, where);
    return code;
}
