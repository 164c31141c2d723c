/* text.c - growing text, sizes and counts for people, the nearest word. */
#include "base/text/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/numbers/checked.h"
#include "base/numbers/numbers.h"

void text_init(struct text *text, struct budget *budget, enum tag tag)
{
    *text = (struct text){.budget = budget, .tag = tag};
}

void text_release(struct text *text)
{
    budget_give(text->budget, text->tag, text->data, text->capacity);
    text_init(text, text->budget, text->tag);
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->failed = false;
    if (text->data)
        text->data[0] = '\0';
}

static bool grow(struct text *text, size_t capacity)
{
    char *data = budget_grow(text->budget, text->tag, text->data, text->capacity, capacity);
    text->failed = !data;
    if (!data)
        return false;
    text->data = data;
    text->capacity = capacity;
    return true;
}

/* Room for `more` bytes and the NUL. */
static bool make_room(struct text *text, size_t more)
{
    uint64_t needed;
    if (text->failed)
        return false;
    if (!add_u64(&needed, text->length, more) || needed >= SIZE_MAX / 2) {
        text->failed = true;
        return false;
    }
    if (needed < text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity <= needed)
        capacity *= 2;
    return grow(text, capacity);
}

void text_reserve(struct text *text, size_t bytes)
{
    if (text->failed || bytes < text->capacity)
        return;
    if (grow(text, bytes + 1))
        text->data[text->length] = '\0';
}

void text_add(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = number_print_list(NULL, 0, format, list);
    va_end(list);
    if (length < 0)
        text->failed = true;
    if (!make_room(text, length < 0 ? 0 : (size_t)length))
        return;
    va_start(list, format);
    number_print_list(text->data + text->length, (size_t)length + 1, format, list);
    va_end(list);
    text->length += (size_t)length;
}

void text_add_bytes(struct text *text, const char *bytes, size_t count)
{
    if (!make_room(text, count))
        return;
    if (count > 0)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

int text_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

void text_add_cut(struct text *text, const char *words, int columns)
{
    bool cut = text_columns(words) > columns;
    size_t bytes = 0;
    for (int i = 0; words[bytes] && i < columns - cut; i++)
        for (bytes++; ((unsigned char)words[bytes] & 0xc0) == 0x80;)
            bytes++;
    text_add_bytes(text, words, bytes);
    if (cut)
        text_add(text, "\xe2\x80\xa6");
}

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

void text_end(char *out, size_t room, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes < room) {
        memcpy(out, text, bytes + 1);
        return;
    }
    const char *from = text + bytes - (room - 4);
    while (continues(*from))
        from++;
    snprintf(out, room, "...%s", from);
}

size_t text_whole(const char *text, size_t bytes)
{
    size_t from = bytes;
    while (from && bytes - from < 3 && continues(text[from - 1]))
        from--;
    if (!from)
        return bytes;
    unsigned char first = (unsigned char)text[from - 1];
    size_t wanted = first >= 0xf8 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return bytes - from + 1 < wanted ? from - 1 : bytes;
}

void text_size(char out[16], uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(out, 16, "%u bytes", (unsigned)bytes);
        return;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.95 && units[unit + 1]) { /* would be printed as 1024.0 */
        value /= 1024;
        unit++;
    }
    number_print(out, 16, "%.1f %ciB", value, units[unit]);
}

void text_count(char out[32], int64_t value)
{
    char digits[24];
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)magnitude);
    char *to = out;
    if (value < 0)
        *to++ = '-';
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

/* Bytes in a unit; 0 when there is no such unit. No bare K, M or G: people
   do not agree on what they mean. */
static uint64_t unit_bytes(const char *name)
{
    static const char letters[] = "KMGTPE";
    if (strcasecmp(name, "B") == 0)
        return 1;
    char *letter = name[0] ? strchr(letters, toupper((unsigned char)name[0])) : NULL;
    if (!letter)
        return 0;
    bool binary = strcasecmp(name + 1, "iB") == 0;
    if (!binary && strcasecmp(name + 1, "B") != 0)
        return 0;
    uint64_t bytes = 1;
    for (const char *p = letters; p <= letter; p++)
        bytes *= binary ? 1024 : 1000;
    return bytes;
}

static bool parse_digits(uint64_t *value, int *count, const char **text)
{
    *value = 0;
    *count = 0;
    for (; **text >= '0' && **text <= '9'; (*text)++, (*count)++)
        if (!mul_u64(value, *value, 10) || !add_u64(value, *value, (uint64_t)(**text - '0')))
            return false;
    return *count > 0;
}

/* whole.fraction units; at most 6 digits of fraction, so that unit times
   fraction fits whenever the result could. */
bool text_parse_size(uint64_t *bytes, const char *text)
{
    uint64_t whole, fraction = 0, scale = 1, total, part;
    int digits, fraction_digits = 0;
    if (!parse_digits(&whole, &digits, &text))
        return false;
    if (*text == '.') {
        text++;
        if (!parse_digits(&fraction, &fraction_digits, &text) || fraction_digits > 6)
            return false;
    }
    for (int i = 0; i < fraction_digits; i++)
        scale *= 10;
    while (*text == ' ')
        text++;
    uint64_t unit = *text ? unit_bytes(text) : fraction_digits == 0;
    if (unit == 0 || !mul_u64(&total, whole, unit))
        return false;
    part = (uint64_t)((unsigned __int128)unit * fraction / scale);
    return add_u64(bytes, total, part);
}

bool text_lacks_unit(const char *text)
{
    uint64_t bytes;
    return text[strspn(text, "0123456789 ")] == 0 && text_parse_size(&bytes, text) && bytes > 0 && bytes < 64 * 1024;
}

enum { WORD_MOST = 48 };

static int least(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Letters to add, drop, change or swap with their neighbour to get from a to
   b; capitals do not matter. row[i][j]: of a's first i and b's first j. */
static int distance(const char *a, int a_length, const char *b, int b_length)
{
    int row[3][WORD_MOST + 1];
    for (int j = 0; j <= b_length; j++)
        row[0][j] = j;
    for (int i = 1; i <= a_length; i++) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *before_that = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int change = before[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            now[j] = least(before[j] + 1, now[j - 1] + 1, change);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                now[j] = least(now[j], before_that[j - 2] + 1, now[j]);
        }
    }
    return row[a_length % 3][b_length];
}

/* How many letters may be wrong for the word still to be meant. */
static int most_slips(int length)
{
    return length <= 5 ? 1 : length <= 9 ? 2 : 3;
}

/* Of "random_hue", "random"; of "RandomHue", "Random". */
static int part_length(const char *word)
{
    int i = word[0] != '\0';
    while (word[i] && word[i] != '_' && !(isupper((unsigned char)word[i]) && islower((unsigned char)word[i - 1])))
        i++;
    return i;
}

/* Slips, or more than a word has: of words of as many parts each part is near by itself, because random_hue is no
   random_flip with slips, nor input_dim output_dim. */
static int slips(const char *a, int a_length, const char *b, int b_length)
{
    int whole = distance(a, a_length, b, b_length), far = WORD_MOST + 1;
    bool near = whole <= most_slips(a_length);
    if (whole == 0)
        return 0; /* capitals alone differ, and parts are told apart by them */
    while (near && *a && *b) {
        int a_part = part_length(a), b_part = part_length(b);
        bool last = !a[a_part], other_last = !b[b_part];
        if (last != other_last)
            return whole <= (a_length < 9 ? 1 : 2) ? whole : far;
        near = distance(a, a_part, b, b_part) <= most_slips(a_part);
        a += a_part + (a[a_part] == '_');
        b += b_part + (b[b_part] == '_');
    }
    return near ? whole : far;
}

const char *text_nearest(const char *word, const char *const *words, size_t count)
{
    size_t length = strnlen(word, WORD_MOST + 1);
    if (length == 0 || length > WORD_MOST)
        return NULL;
    const char *nearest = NULL;
    int least_slips = WORD_MOST + 1;
    for (size_t i = 0; i < count; i++) {
        size_t other = strnlen(words[i], WORD_MOST + 1);
        int found = other > WORD_MOST ? WORD_MOST + 1 : slips(word, (int)length, words[i], (int)other);
        if (found < least_slips) {
            nearest = words[i];
            least_slips = found;
        } else if (nearest && found == least_slips && found > 0 && strcasecmp(nearest, words[i]) != 0) {
            nearest = NULL; /* as near: which was meant, nobody knows */
        }
    }
    return nearest;
}
