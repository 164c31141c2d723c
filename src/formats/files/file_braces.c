/* file_braces.c - {a,b} and {1..9} in names, written out.

   How many names a pattern gives, and what a list of them takes, is computed before the first one is written. */
#include <stdio.h>
#include <string.h>

#include "base/memory/budget_need.h"
#include "base/numbers/checked.h"
#include "formats/files/cursor.h"
#include "formats/files/file_list_inside.h"

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

/* The first byte from `at` on that no backslash precedes; bytes when there is none. */
static size_t unescaped(const char *text, size_t at, size_t bytes)
{
    while (at < bytes && escaped(text, at, bytes))
        at += 2;
    return at;
}

/* Where the alternative that begins at `start` ends: at a comma or closing brace outside of inner braces, or behind
   the last byte. */
static size_t alternative_end(const char *text, size_t start, size_t bytes)
{
    int level = 0;
    for (size_t at = unescaped(text, start, bytes); at < bytes; at = unescaped(text, at + 1, bytes)) {
        if (!level && (text[at] == ',' || text[at] == '}'))
            return at;
        level += (text[at] == '{') - (text[at] == '}');
    }
    return bytes;
}

/* Where the brace at `at` is closed, and whether commas stand in it; bytes when it is not closed. */
static size_t closing(bool *commas, const char *text, size_t at, size_t bytes)
{
    *commas = false;
    for (at = alternative_end(text, at + 1, bytes); at < bytes && text[at] == ','; *commas = true)
        at = alternative_end(text, at + 1, bytes);
    return at;
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

/* How many steps lead from the first to the last. Unsigned: the distance of two signed numbers always fits. */
static uint64_t sequence_steps(const struct sequence *sequence)
{
    uint64_t from = (uint64_t)sequence->from, to = (uint64_t)sequence->to;
    return (sequence->from > sequence->to ? from - to : to - from) / (uint64_t)sequence->step;
}

static plim_status expand_sequence(struct braces *braces, size_t length, const struct sequence *sequence,
                                   const struct piece *rest, plim_error *error)
{
    bool down = sequence->from > sequence->to;
    uint64_t count = sequence_steps(sequence);
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

/* Each of a,b,c in the text, followed by the rest. */
static plim_status expand_list(struct braces *braces, size_t length, const char *text, size_t bytes,
                               const struct piece *rest, plim_error *error)
{
    for (size_t start = 0, end; start <= bytes; start = end + 1) {
        end = alternative_end(text, start, bytes);
        struct piece alternative = {text + start, end - start, rest};
        TRY(expand(braces, length, &alternative, error));
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
    plim_error unread = {0};
    TRY(list_glob_one(braces->list, path, &unread, error));
    TRY(list_finish(braces->list, braces->pattern, error));
    if (braces->list->files.count == first)
        return list_no_match(path, 1, &unread, error);
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

/* ---- how many there will be ---------------------------------------------------------- */

/* Names, and their bytes together; both saturate. */
struct amount {
    uint64_t count, bytes;
};

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return mul_u64(&product, a, b) ? product : UINT64_MAX;
}

/* Each of the one followed by each of the other. */
static struct amount both(struct amount a, struct amount b)
{
    return (struct amount){times(a.count, b.count), add_most(times(a.bytes, b.count), times(b.bytes, a.count))};
}

/* Bytes: at least, where numbers are not padded. */
static struct amount count_sequence(const struct sequence *sequence)
{
    uint64_t count = add_most(sequence_steps(sequence), 1);
    return (struct amount){count, times(count, sequence->width > 1 ? (uint64_t)sequence->width : 1)};
}

static struct amount count_text(const char *text, size_t bytes, int depth);

static struct amount count_list(const char *text, size_t bytes, int depth)
{
    struct amount sum = {0, 0};
    for (size_t start = 0, end; start <= bytes; start = end + 1) {
        end = alternative_end(text, start, bytes);
        struct amount one = count_text(text + start, end - start, depth + 1);
        sum = (struct amount){add_most(sum.count, one.count), add_most(sum.bytes, one.bytes)};
    }
    return sum;
}

/* Patterns that expand() refuses (a brace that is not closed, too many of them) count as little as they may. */
static struct amount count_text(const char *text, size_t bytes, int depth)
{
    struct amount all = {1, 0};
    for (size_t at = 0; at < bytes; at++) {
        struct sequence sequence;
        bool commas = false;
        bool text_only = escaped(text, at, bytes) || text[at] != '{' || depth == NESTED_MOST;
        size_t end = text_only ? bytes : closing(&commas, text, at, bytes);
        at += escaped(text, at, bytes);
        bool range = end < bytes && parse_sequence(&sequence, text + at + 1, end - at - 1);
        if (!range && !(end < bytes && commas)) {
            all = both(all, (struct amount){1, 1});
            continue;
        }
        all = both(all, range ? count_sequence(&sequence) : count_list(text + at + 1, end - at - 1, depth));
        at = end;
    }
    return all;
}

/* Whether a wildcard is left when the braces are written out; a backslash in front of a brace or a comma is gone then.
 */
static bool finds_files(const char *pattern, size_t bytes)
{
    for (size_t at = unescaped(pattern, 0, bytes); at < bytes; at = unescaped(pattern, at + 1, bytes))
        if (strchr("*?[\\", pattern[at]))
            return true;
    return false;
}

/* A file costs the bytes of its name: what stands behind the last slash outside of braces, if there is none inside of
   the braces behind it. Patterns with wildcards cost what is found. */
static plim_status check_room(struct file_list *list, const char *pattern, plim_error *error)
{
    size_t bytes = strlen(pattern), name = 0;
    bool commas;
    for (size_t at = 0; at < bytes; at++) {
        size_t end =
            pattern[at] == '{' && !(at && escaped(pattern, at - 1, bytes)) ? closing(&commas, pattern, at, bytes) : at;
        bool inside = end < bytes && memchr(pattern + at, '/', end - at + 1) != NULL;
        at = end;
        name = inside ? end + 1 : name;
    }
    if (finds_files(pattern, bytes))
        return PLIM_OK;
    struct amount folders = count_text(pattern, name < bytes ? name : bytes, 0);
    struct amount names = name < bytes ? count_text(pattern + name, bytes - name, 0) : (struct amount){1, 0};
    uint64_t count = times(folders.count, names.count);
    uint64_t cost = add_most(times(count, FILE_LISTED_BYTES), times(names.bytes, folders.count));
    return budget_need(list->budget, cost, pattern, count, "files", error);
}

/* Braces that are not closed, or more of them inside one another than expand() follows: counting them all would take
   the square of the pattern's length. */
static plim_status check_depth(const char *pattern, plim_error *error)
{
    size_t bytes = strlen(pattern);
    int level = 0;
    for (size_t at = unescaped(pattern, 0, bytes); at < bytes; at = unescaped(pattern, at + 1, bytes)) {
        level += (pattern[at] == '{') - (pattern[at] == '}' && level > 0);
        if (level > NESTED_MOST)
            return fail(error, PLIM_BAD_JOB, "%.100s: too many braces inside one another", pattern);
    }
    return PLIM_OK;
}

plim_status file_list_braces(struct file_list *list, const char *pattern, plim_error *error)
{
    TRY(check_depth(pattern, error));
    TRY(check_room(list, pattern, error));
    struct braces braces = {.list = list, .pattern = pattern};
    struct piece piece = {pattern, strlen(pattern), NULL};
    return expand(&braces, 0, &piece, error);
}
