/* file_braces.c - {a,b} and {1..9} in names, written out. */
#include <stdio.h>
#include <string.h>

#include "formats/cursor.h"
#include "formats/file_list_inside.h"

#define NESTED_MOST 64

/* A pattern that is still to be written out, and what follows it. */
struct piece {
    const char *text;
    size_t bytes;
    const struct piece *next;
};

struct braces {
    struct file_list *list;
    const char *pattern; /* the whole, for errors */
    int depth;
    char path[FILE_PATH_MOST + 1];
};

static plim_status expand(struct braces *braces, size_t length, const struct piece *piece, plim_error *error);

static plim_status too_long(const struct braces *braces, plim_error *error)
{
    return fail(error, PLIM_BAD_JOB, "%.100s: gives paths of more than %d bytes", braces->pattern, FILE_PATH_MOST);
}

static bool escaped(const char *text, size_t at, size_t bytes)
{
    return text[at] == '\\' && at + 1 < bytes && strchr("{},", text[at + 1]) != NULL;
}

/* Where the brace at `at` is closed, and whether commas stand in it; bytes when it is not closed. */
static size_t closing(bool *commas, const char *text, size_t at, size_t bytes)
{
    int level = 0;
    *commas = false;
    for (; at < bytes; at++) {
        if (escaped(text, at, bytes)) {
            at++;
            continue;
        }
        level += (text[at] == '{') - (text[at] == '}');
        *commas = *commas || (text[at] == ',' && level == 1);
        if (level == 0)
            return at;
    }
    return bytes;
}

/* ---- ranges ------------------------------------------------------------------------- */

struct sequence {
    int64_t from, to, step;
    int width; /* digits, with zeros in front; 0: as they come */
    bool letters;
};

/* A number, its sign and its width. */
static bool whole(int64_t *out, size_t *bytes, bool *padded, struct cursor *cursor)
{
    size_t start = cursor->at;
    bool negative = cursor_literal(cursor, "-");
    size_t digits = cursor->at;
    if (!cursor_whole(out, cursor))
        return false;
    *padded = cursor->data[digits] == '0' && cursor->at - digits > 1;
    *bytes = cursor->at - start;
    *out = negative ? -*out : *out;
    return true;
}

static bool letter(int64_t *out, struct cursor *cursor)
{
    uint8_t c;
    if (!cursor_u8(&c, cursor) || !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        return false;
    *out = c;
    return true;
}

/* a..b or a..b..step */
static bool parse_sequence(struct sequence *out, const char *text, size_t bytes)
{
    struct cursor cursor;
    size_t from_width = 0, to_width = 0, step_width;
    bool from_padded = false, to_padded = false, step_padded;
    *out = (struct sequence){.step = 1};
    cursor_init(&cursor, text, bytes, "", 0);
    if (!whole(&out->from, &from_width, &from_padded, &cursor)) {
        cursor.at = 0;
        out->letters = true;
        if (!letter(&out->from, &cursor))
            return false;
    }
    if (!cursor_literal(&cursor, ".."))
        return false;
    if (out->letters ? !letter(&out->to, &cursor) : !whole(&out->to, &to_width, &to_padded, &cursor))
        return false;
    if (cursor_literal(&cursor, "..") && !whole(&out->step, &step_width, &step_padded, &cursor))
        return false;
    if (from_padded || to_padded)
        out->width = (int)(from_width > to_width ? from_width : to_width);
    if (out->step < 0)
        out->step = -out->step;
    if (out->step == 0)
        out->step = 1;
    return cursor_left(&cursor) == 0 && out->width < 64;
}

static plim_status expand_sequence(struct braces *braces, size_t length, const struct sequence *sequence,
                                   const struct piece *rest, plim_error *error)
{
    bool down = sequence->from > sequence->to;
    /* Unsigned: the distance of two signed numbers always fits. */
    uint64_t count =
        down ? (uint64_t)sequence->from - (uint64_t)sequence->to : (uint64_t)sequence->to - (uint64_t)sequence->from;
    count /= (uint64_t)sequence->step;
    for (uint64_t i = 0; i <= count; i++) {
        uint64_t distance = i * (uint64_t)sequence->step;
        int64_t value = (int64_t)((uint64_t)sequence->from + (down ? 0 - distance : distance));
        char text[72];
        int bytes = sequence->letters ? snprintf(text, sizeof text, "%c", (char)value)
                                      : snprintf(text, sizeof text, "%0*lld", sequence->width, (long long)value);
        if ((size_t)bytes > FILE_PATH_MOST - length)
            return too_long(braces, error);
        memcpy(braces->path + length, text, (size_t)bytes);
        TRY(expand(braces, length + (size_t)bytes, rest, error));
        if (i == UINT64_MAX)
            break;
    }
    return PLIM_OK;
}

/* ---- the rest ---------------------------------------------------------------------- */

/* Each of a,b,c between `at` and `end`, followed by the rest. */
static plim_status expand_list(struct braces *braces, size_t length, const char *text, size_t bytes,
                               const struct piece *rest, plim_error *error)
{
    int level = 0;
    size_t start = 0;
    for (size_t at = 0; at <= bytes; at++) {
        if (at < bytes && escaped(text, at, bytes)) {
            at++;
            continue;
        }
        if (at < bytes)
            level += (text[at] == '{') - (text[at] == '}');
        if (at < bytes && (text[at] != ',' || level))
            continue;
        struct piece alternative = {text + start, at - start, rest};
        TRY(expand(braces, length, &alternative, error));
        start = at + 1;
    }
    return PLIM_OK;
}

static plim_status finish(struct braces *braces, size_t length, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    memcpy(path, braces->path, length);
    path[length] = 0;
    if (!has_wildcards(path))
        return file_list_add(braces->list, path, error);
    uint64_t first = braces->list->files.count;
    TRY(list_glob_one(braces->list, path, error));
    if (braces->list->files.count == first)
        return fail(error, PLIM_BAD_DATA, "no files match %.200s", path);
    return PLIM_OK;
}

/* What a brace stands for. A pair without comma or range is text. */
static plim_status expand_brace(bool *done, struct braces *braces, size_t length, const struct piece *piece, size_t at,
                                plim_error *error)
{
    bool commas;
    struct sequence sequence;
    size_t end = closing(&commas, piece->text, at, piece->bytes);
    if (end == piece->bytes)
        return fail(error, PLIM_BAD_JOB, "%.100s: a brace is not closed", braces->pattern);
    const char *inside = piece->text + at + 1;
    size_t bytes = end - at - 1;
    struct piece rest = {piece->text + end + 1, piece->bytes - end - 1, piece->next};
    *done = true;
    if (parse_sequence(&sequence, inside, bytes))
        return expand_sequence(braces, length, &sequence, &rest, error);
    if (commas)
        return expand_list(braces, length, inside, bytes, &rest, error);
    *done = false;
    return PLIM_OK;
}

/* Text up to the first brace goes into the path; then each of what the brace stands for, in turn. */
static plim_status expand_piece(struct braces *braces, size_t length, const struct piece *piece, plim_error *error)
{
    for (size_t at = 0; at < piece->bytes; at++) {
        bool done = false;
        at += escaped(piece->text, at, piece->bytes);
        bool brace = piece->text[at] == '{' && (at == 0 || !escaped(piece->text, at - 1, piece->bytes));
        if (brace)
            TRY(expand_brace(&done, braces, length, piece, at, error));
        if (done)
            return PLIM_OK;
        if (length == FILE_PATH_MOST)
            return too_long(braces, error);
        braces->path[length++] = piece->text[at];
    }
    return expand(braces, length, piece->next, error);
}

static plim_status expand(struct braces *braces, size_t length, const struct piece *piece, plim_error *error)
{
    if (!piece)
        return finish(braces, length, error);
    if (braces->depth == NESTED_MOST)
        return fail(error, PLIM_BAD_JOB, "%.100s: too many braces", braces->pattern);
    braces->depth++;
    plim_status status = expand_piece(braces, length, piece, error);
    braces->depth--;
    return status;
}

plim_status file_list_braces(struct file_list *list, const char *pattern, plim_error *error)
{
    struct braces braces = {.list = list, .pattern = pattern};
    struct piece piece = {pattern, strlen(pattern), NULL};
    return expand(&braces, 0, &piece, error);
}
