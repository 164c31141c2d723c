/* lines.c - lines of text, from a buffer that is filled when no whole line is left in it. */
#include "formats/tables/lines.h"

#include <string.h>

#include "base/memory/budget_alloc.h"

struct lines {
    struct budget *budget;
    struct read_buffer in;
    int64_t line; /* number of the one that comes next */
};

plim_status lines_open(struct lines **out, struct budget *budget, const char *path, enum compression compression,
                       size_t buffer_bytes, plim_error *error)
{
    struct lines *lines;
    TRY(budget_alloc(&lines, budget, TAG_FORMATS, sizeof *lines, error));
    lines->budget = budget;
    lines->in.capacity = buffer_bytes ? buffer_bytes : LINES_BUFFER_BYTES;
    lines->in.bytes = budget_take(budget, TAG_FORMATS, lines->in.capacity);
    return OPENED(out, lines, lines_close,
                  lines->in.bytes ? byte_stream_open(&lines->in.stream, budget, path, compression, error)
                                  : budget_refused(budget, TAG_FORMATS, lines->in.capacity, error));
}

void lines_close(struct lines *lines)
{
    if (!lines)
        return;
    byte_stream_close(lines->in.stream);
    budget_give(lines->budget, TAG_FORMATS, lines->in.bytes, lines->in.capacity);
    budget_give(lines->budget, TAG_FORMATS, lines, sizeof *lines);
}

uint64_t lines_cost(enum compression compression, size_t buffer_bytes)
{
    return budget_charge(sizeof(struct lines)) + budget_charge(buffer_bytes ? buffer_bytes : LINES_BUFFER_BYTES) +
           byte_stream_cost(compression);
}

/* The buffer is full and holds no end of a line: looks for it further on. */
static plim_status pass_long_line(struct lines *lines, plim_error *error)
{
    uint64_t start = lines->in.base;
    int64_t number = lines->line++;
    bool found = false;
    while (!found) {
        lines->in.next = lines->in.end;
        plim_status status = read_buffer_fill(&lines->in, error);
        if (status != PLIM_OK)
            return read_buffer_give_up(&lines->in, status);
        const char *newline = memchr(lines->in.bytes, '\n', lines->in.end);
        found = newline || lines->in.at_end; /* the last line ends with the file */
        lines->in.next = newline ? (size_t)(newline + 1 - lines->in.bytes) : lines->in.end;
    }
    byte_stream_fail(lines->in.stream, start, error,
                     "line %lld is %llu bytes long with its end: at most %zu are possible here", (long long)number,
                     (unsigned long long)(lines->in.base + lines->in.next - start), lines->in.capacity);
    return hint(error, PLIM_BAD_DATA, "give the reader a buffer of that size");
}

/* The bytes of a line without any CR; `to` may be `from`. Returns how many. */
static size_t without_returns(char *to, const char *from, size_t bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < bytes; i++)
        if (from[i] != '\r')
            to[kept++] = from[i];
    return kept;
}

/* A line into the value buffer, or cleaned in place. False: it does not fit. */
static bool give_line(struct string *out, char *line, size_t bytes, struct value_buffer *values)
{
    if (bytes && line[bytes - 1] == '\r')
        bytes--; /* CRLF: nothing has to move */
    bool returns = memchr(line, '\r', bytes) != NULL;
    if (!values) {
        *out = (struct string){(uint8_t *)line, returns ? without_returns(line, line, bytes) : bytes};
        return true;
    }
    char *to = value_buffer_take_bytes(values, bytes);
    if (!to)
        return false;
    if (returns) {
        size_t kept = without_returns(to, line, bytes);
        values->used -= bytes - kept;
        bytes = kept;
    } else {
        memcpy(to, line, bytes);
    }
    *out = (struct string){(uint8_t *)to, bytes};
    return true;
}

/* Whole lines of the buffer. True: no more can be had from it now (of the value buffer, or of lines asked for). */
static bool take_lines(int64_t *done, struct lines *lines, struct string *out, int64_t most,
                       struct value_buffer *values)
{
    while (*done < most) {
        char *line = lines->in.bytes + lines->in.next;
        char *newline = memchr(line, '\n', lines->in.end - lines->in.next);
        if (!newline)
            return false;
        if (!give_line(&out[*done], line, (size_t)(newline - line), values))
            return true;
        lines->in.next += (size_t)(newline - line) + 1;
        lines->line++;
        ++*done;
    }
    return true;
}

/* What stands behind the last LF of the file, if it is anything but CR. */
static void take_rest(int64_t *done, struct lines *lines, struct string *out, struct value_buffer *values)
{
    char *line = lines->in.bytes + lines->in.next;
    size_t bytes = lines->in.end - lines->in.next;
    while (bytes && line[bytes - 1] == '\r')
        bytes--;
    if (bytes && !give_line(&out[*done], line, bytes, values))
        return;
    lines->in.next = lines->in.end;
    lines->line += bytes > 0;
    *done += bytes > 0;
}

plim_status lines_read(int64_t *got, struct lines *lines, struct string *out, int64_t most, struct value_buffer *values,
                       plim_error *error)
{
    int64_t done = 0;
    if (values)
        values->wanted = 0;
    while (!take_lines(&done, lines, out, most, values)) {
        if (lines->in.at_end) {
            take_rest(&done, lines, out, values);
            break;
        }
        /* What could fail, or would move lines that were given in place, waits for the next call. */
        bool full = lines->in.next == 0 && lines->in.end == lines->in.capacity;
        if (done && (!values || full))
            break;
        if (full)
            return pass_long_line(lines, error);
        plim_status status = read_buffer_fill(&lines->in, done ? NULL : error);
        if (status != PLIM_OK && !done)
            return read_buffer_give_up(&lines->in, status);
        if (status != PLIM_OK)
            break;
    }
    *got = done;
    return PLIM_OK;
}
