/* lines.c - lines of text, from a buffer that is filled when no whole line is left in it.

   Invariant: buffer[next..end) is read and not yet given; the stream stands behind buffer[end). */
#include "formats/tables/lines.h"

#include <string.h>

struct lines {
    struct budget *budget;
    struct byte_stream *stream;
    char *buffer;
    size_t capacity, next, end;
    uint64_t base; /* position of buffer[0] */
    int64_t line;  /* number of the one at `next` */
    bool at_end;   /* the stream has no more */
};

plim_status lines_open(struct lines **out, struct budget *budget, const char *path, enum compression compression,
                       size_t buffer_bytes, plim_error *error)
{
    struct lines *lines = budget_take(budget, TAG_FORMATS, sizeof *lines);
    if (!lines)
        return budget_refused(budget, TAG_FORMATS, sizeof *lines, error);
    lines->budget = budget;
    lines->capacity = buffer_bytes ? buffer_bytes : LINES_BUFFER_BYTES;
    lines->buffer = budget_take(budget, TAG_FORMATS, lines->capacity);
    plim_status status = lines->buffer ? byte_stream_open(&lines->stream, budget, path, compression, error)
                                       : budget_refused(budget, TAG_FORMATS, lines->capacity, error);
    if (status == PLIM_OK)
        *out = lines;
    else
        lines_close(lines);
    return status;
}

void lines_close(struct lines *lines)
{
    if (!lines)
        return;
    byte_stream_close(lines->stream);
    budget_give(lines->budget, TAG_FORMATS, lines->buffer, lines->capacity);
    budget_give(lines->budget, TAG_FORMATS, lines, sizeof *lines);
}

uint64_t lines_cost(enum compression compression, size_t buffer_bytes)
{
    return budget_charge(sizeof(struct lines)) + budget_charge(buffer_bytes ? buffer_bytes : LINES_BUFFER_BYTES) +
           byte_stream_cost(compression);
}

/* What is left goes to the front, and as much as fits follows it. */
static plim_status refill(struct lines *lines, plim_error *error)
{
    size_t left = lines->end - lines->next, got;
    memmove(lines->buffer, lines->buffer + lines->next, left);
    lines->base += lines->next;
    lines->next = 0;
    lines->end = left;
    TRY(byte_stream_read_some(&got, lines->stream, lines->buffer + left, lines->capacity - left, error));
    lines->at_end = got == 0;
    lines->end += got;
    return PLIM_OK;
}

/* Behind data that do not unpack there is nothing. */
static plim_status give_up(struct lines *lines, plim_status status)
{
    if (status == PLIM_BAD_DATA) {
        lines->next = lines->end;
        lines->at_end = true;
    }
    return status;
}

/* The buffer is full and holds no end of a line: looks for it further on. */
static plim_status pass_long_line(struct lines *lines, plim_error *error)
{
    uint64_t start = lines->base;
    int64_t number = lines->line++;
    bool found = false;
    while (!found) {
        lines->next = lines->end;
        plim_status status = refill(lines, error);
        if (status != PLIM_OK)
            return give_up(lines, status);
        const char *newline = memchr(lines->buffer, '\n', lines->end);
        found = newline || lines->at_end; /* the last line ends with the file */
        lines->next = newline ? (size_t)(newline + 1 - lines->buffer) : lines->end;
    }
    byte_stream_fail(lines->stream, start, error,
                     "line %lld is %llu bytes long with its end: at most %zu are possible here", (long long)number,
                     (unsigned long long)(lines->base + lines->next - start), lines->capacity);
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

/* A line into the room, or cleaned in place. False: it does not fit. */
static bool give_line(struct string *out, char *line, size_t bytes, struct room *room)
{
    if (bytes && line[bytes - 1] == '\r')
        bytes--; /* CRLF: nothing has to move */
    bool returns = memchr(line, '\r', bytes) != NULL;
    if (!room) {
        *out = (struct string){(uint8_t *)line, returns ? without_returns(line, line, bytes) : bytes};
        return true;
    }
    char *to = room_take_bytes(room, bytes);
    if (!to)
        return false;
    if (returns) {
        size_t kept = without_returns(to, line, bytes);
        room->used -= bytes - kept;
        bytes = kept;
    } else {
        memcpy(to, line, bytes);
    }
    *out = (struct string){(uint8_t *)to, bytes};
    return true;
}

/* Whole lines of the buffer. True: no more can be had from it now (of the room, or of lines asked for). */
static bool take_lines(int64_t *done, struct lines *lines, struct string *out, int64_t most, struct room *room)
{
    while (*done < most) {
        char *line = lines->buffer + lines->next;
        char *newline = memchr(line, '\n', lines->end - lines->next);
        if (!newline)
            return false;
        if (!give_line(&out[*done], line, (size_t)(newline - line), room))
            return true;
        lines->next += (size_t)(newline - line) + 1;
        lines->line++;
        ++*done;
    }
    return true;
}

/* What stands behind the last LF of the file, if it is anything but CR. */
static void take_rest(int64_t *done, struct lines *lines, struct string *out, struct room *room)
{
    char *line = lines->buffer + lines->next;
    size_t bytes = lines->end - lines->next;
    while (bytes && line[bytes - 1] == '\r')
        bytes--;
    if (bytes && !give_line(&out[*done], line, bytes, room))
        return;
    lines->next = lines->end;
    lines->line += bytes > 0;
    *done += bytes > 0;
}

plim_status lines_read(int64_t *got, struct lines *lines, struct string *out, int64_t most, struct room *room,
                       plim_error *error)
{
    int64_t done = 0;
    if (room)
        room->wanted = 0;
    while (!take_lines(&done, lines, out, most, room)) {
        if (lines->at_end) {
            take_rest(&done, lines, out, room);
            break;
        }
        /* What could fail, or would move lines that were given in place, waits for the next call. */
        bool full = lines->next == 0 && lines->end == lines->capacity;
        if (done && (!room || full))
            break;
        if (full)
            return pass_long_line(lines, error);
        plim_status status = refill(lines, done ? NULL : error);
        if (status != PLIM_OK && !done)
            return give_up(lines, status);
        if (status != PLIM_OK)
            break;
    }
    *got = done;
    return PLIM_OK;
}

uint64_t lines_at(const struct lines *lines, int64_t *line)
{
    if (line)
        *line = lines->line;
    return lines->base + lines->next;
}

plim_status lines_seek(struct lines *lines, uint64_t position, int64_t line, plim_error *error)
{
    lines->next = lines->end = 0;
    lines->at_end = false;
    TRY(byte_stream_seek(lines->stream, position, error));
    lines->base = position;
    lines->line = line;
    return PLIM_OK;
}
