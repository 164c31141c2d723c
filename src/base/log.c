/* log.c - formats a line and hands it on. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_line(const struct log *log, const char *format, ...)
{
    char line[LOG_LINE_BYTES];
    if (!log || !log->sink)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    log->sink(log->context, line);
}
