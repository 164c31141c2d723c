/* map_strings.c - tf.strings: split, lower, upper, strip, to_number. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/decimal.h"
#include "base/text/settings.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/text/map_words.h"
#include "pipeline/text/text_split.h"

static plim_status string_column(int *out, const struct spec *spec, const char *name, const char *function,
                                 plim_error *error)
{
    int c = map_first_column(spec, name);
    if (c < 0)
        return map_no_column(spec, function, name, error);
    if (spec->column[c].type != TYPE_STRING)
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' holds %s, not strings", function, spec->column[c].name,
                    type_name(spec->column[c].type));
    *out = c;
    return PLIM_OK;
}

/* ---- split ---- */

static plim_status split_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct split_options *options = context;
    int c = map_first_column(spec, options->column);
    if (c < 0)
        return map_no_column(spec, "split", options->column, error);
    TRY(map_need_text(&spec->column[c], "split", error));
    spec->column[c].shape = (struct shape){.rank = 1, .dim = {-1}};
    return PLIM_OK;
}

static plim_status split_run(const struct map_call *call, plim_error *error)
{
    const struct split_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    for (int64_t i = 0; i < call->count; i++) {
        struct cell cell = {0};
        struct string *pieces;
        if (!text_split(&pieces, &cell.dim[0], map_text(call, c, i), options->separator, call->room))
            return map_full(call, error);
        cell.data = pieces;
        *(struct cell *)(void *)((uint8_t *)call->to[c] + (uint64_t)i * call->to_stride[c]) = cell;
    }
    return PLIM_OK;
}

static uint64_t split_room(const struct spec *from, const struct spec *to, const void *context)
{
    const struct split_options *options = context;
    (void)from;
    return map_values_room(&to->column[map_first_column(to, options->column)]);
}

static plim_status split_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct split_options *options = context;
    const char *separator = "";
    static const struct setting setting = {"sep", SETTING_WORD, 0, 0};
    if (!value)
        return PLIM_OK;
    if (value->kind == YAML_SCALAR)
        TRY(setting_value(&separator, &setting, job, value, error));
    else
        TRY(settings_read(&separator, &setting, 1, job, value, error));
    if (strlen(separator) >= sizeof options->separator)
        return fail(error, PLIM_BAD_JOB, "split: a separator of more than %d bytes",
                    (int)sizeof options->separator - 1);
    snprintf(options->separator, sizeof options->separator, "%s", separator);
    return PLIM_OK;
}

const struct map_function map_split = {
    .name = "split",
    .infer = split_infer,
    .run = split_run,
    .options_bytes = sizeof(struct split_options),
    .room_bytes = split_room,
    .bare = true,
    .read = split_read,
};

/* ---- lower, upper, strip ---- */

typedef bool change_text(struct string *text, struct room *room); /* false: the room is full */

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Letters from `first` on, of the alphabet's 26, in the other case; other bytes as they are, as TensorFlow does it. */
static bool change_case(struct string *text, struct room *room, uint8_t first)
{
    uint8_t *to = room_take_bytes(room, text->bytes);
    for (uint64_t i = 0; to && i < text->bytes; i++)
        to[i] = (uint8_t)(text->data[i] - first) < 26 ? text->data[i] ^ 0x20 : text->data[i];
    if (to)
        text->data = to;
    return to != NULL;
}

static bool lower_text(struct string *text, struct room *room)
{
    return change_case(text, room, 'A');
}

static bool upper_text(struct string *text, struct room *room)
{
    return change_case(text, room, 'a');
}

static bool strip_text(struct string *text, struct room *room)
{
    (void)room;
    while (text->bytes && is_blank(text->data[text->bytes - 1]))
        text->bytes--;
    while (text->bytes && is_blank(text->data[0]))
        text->data++, text->bytes--;
    return true;
}

struct text_options {
    char column[64];
};

/* The strings of all rows, each changed. Those of cells are written anew: what rows refer to is not ours. */
static plim_status change_texts(const struct map_call *call, change_text *change, plim_error *error)
{
    const struct text_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    for (int64_t i = 0; i < call->count; i++) {
        int64_t count;
        const struct string *from = map_values(&count, call, c, i);
        struct string *to = map_values_to(call, c, i);
        for (int64_t k = 0; to && k < count; k++) {
            struct string text = from[k];
            if (!change(&text, call->room))
                return map_full(call, error);
            to[k] = text;
        }
        if (!to)
            return map_full(call, error);
    }
    return PLIM_OK;
}

static uint64_t text_room(const struct spec *to, const void *context, uint64_t bytes)
{
    const struct text_options *options = context;
    return bytes + map_values_room(&to->column[map_first_column(to, options->column)]);
}

#define TEXT_FUNCTION(word, made_bytes)                                                                                \
    static plim_status word##_infer(struct spec *spec, const void *options, plim_error *error)                         \
    {                                                                                                                  \
        int c;                                                                                                         \
        return string_column(&c, spec, ((const struct text_options *)options)->column, #word, error);                  \
    }                                                                                                                  \
    static plim_status word##_run(const struct map_call *call, plim_error *error)                                      \
    {                                                                                                                  \
        return change_texts(call, word##_text, error);                                                                 \
    }                                                                                                                  \
    static uint64_t word##_room(const struct spec *from, const struct spec *to, const void *options)                   \
    {                                                                                                                  \
        (void)from;                                                                                                    \
        return text_room(to, options, made_bytes);                                                                     \
    }                                                                                                                  \
    static plim_status word##_read(void *options, const char *job, const struct yaml *value, plim_error *error)        \
    {                                                                                                                  \
        (void)options, (void)job;                                                                                      \
        return value ? fail(error, PLIM_BAD_JOB, #word ": takes no value") : PLIM_OK;                                  \
    }                                                                                                                  \
    const struct map_function map_##word = {.name = #word,                                                             \
                                            .infer = word##_infer,                                                     \
                                            .run = word##_run,                                                         \
                                            .options_bytes = sizeof(struct text_options),                              \
                                            .room_bytes = word##_room,                                                 \
                                            .bare = true,                                                              \
                                            .read = word##_read};
TEXT_FUNCTION(lower, 4 * MAP_SEQUENCE)
TEXT_FUNCTION(upper, 4 * MAP_SEQUENCE)
TEXT_FUNCTION(strip, 0)

/* ---- to_number ---- */

static plim_status to_number_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct to_number_options *options = context;
    int c = 0;
    TRY(string_column(&c, spec, options->column, "to_number", error));
    spec->column[c].type = options->type;
    return PLIM_OK;
}

static bool parse_whole(int64_t *out, const struct string *text, enum type type)
{
    bool negative = text->bytes && text->data[0] == '-', sign = negative || (text->bytes && text->data[0] == '+');
    uint64_t value = 0, most = (type == TYPE_I32 ? (uint64_t)INT32_MAX : (uint64_t)INT64_MAX) + negative;
    for (uint64_t i = sign; i < text->bytes; i++) {
        unsigned digit = text->data[i] - '0';
        if (digit > 9 || !mul_u64(&value, value, 10) || !add_u64(&value, value, digit) || value > most)
            return false;
    }
    *out = (int64_t)(negative ? 0 - value : value);
    return text->bytes > (uint64_t)sign;
}

/* tf.strings.to_number's rule: with blanks around it. */
static bool parse_number(void *to, enum type type, int64_t k, const struct string *given)
{
    struct string text = *given;
    int64_t whole = 0;
    strip_text(&text, NULL);
    if (type == TYPE_F32)
        return decimal_float((float *)to + k, (const char *)text.data, text.bytes);
    if (type == TYPE_F64)
        return decimal_double((double *)to + k, (const char *)text.data, text.bytes);
    if (!parse_whole(&whole, &text, type))
        return false;
    if (type == TYPE_I64)
        ((int64_t *)to)[k] = whole;
    else
        ((int32_t *)to)[k] = (int32_t)whole;
    return true;
}

static plim_status to_number_run(const struct map_call *call, plim_error *error)
{
    const struct to_number_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    for (int64_t i = 0; i < call->count; i++) {
        int64_t count;
        const struct string *text = map_values(&count, call, c, i);
        void *to = map_values_to(call, c, i);
        if (!to)
            return map_full(call, error);
        for (int64_t k = 0; k < count; k++)
            if (!parse_number(to, options->type, k, &text[k]))
                return fail(error, PLIM_BAD_DATA, "element %lld: '%.*s' in column '%s' is no %s", map_element(call, i),
                            text[k].bytes > 60 ? 60 : (int)text[k].bytes,
                            text[k].bytes ? (const char *)text[k].data : "", call->from_spec->column[c].name,
                            type_name(options->type));
    }
    return PLIM_OK;
}

static uint64_t to_number_room(const struct spec *from, const struct spec *to, const void *context)
{
    const struct to_number_options *options = context;
    (void)from;
    return map_values_room(&to->column[map_first_column(to, options->column)]);
}

static plim_status to_number_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct to_number_options *options = context;
    static const struct setting setting = {"out_type", SETTING_WORD, 0, 0};
    const char *word = "float32";
    if (value && value->kind == YAML_SCALAR)
        TRY(setting_value(&word, &setting, job, value, error));
    else if (value)
        TRY(settings_read(&word, &setting, 1, job, value, error));
    if (!type_from_name(&options->type, word) || (options->type != TYPE_F32 && options->type != TYPE_F64 &&
                                                  options->type != TYPE_I32 && options->type != TYPE_I64))
        return hint(error, fail(error, PLIM_BAD_JOB, "to_number: '%s' is not offered", word),
                    "float32, float64, int32 or int64");
    return PLIM_OK;
}

const struct map_function map_to_number = {
    .name = "to_number",
    .infer = to_number_infer,
    .run = to_number_run,
    .options_bytes = sizeof(struct to_number_options),
    .room_bytes = to_number_room,
    .bare = true,
    .read = to_number_read,
};
