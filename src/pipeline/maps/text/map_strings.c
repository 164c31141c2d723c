/* map_strings.c - tf.strings: split, lower, upper, strip, to_number. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/decimal.h"
#include "pipeline/maps/text/map_text.h"
#include "pipeline/text/text_split.h"

/* ---- split ---- */

static plim_status split_infer(struct column *column, const struct map_function *self, const void *options,
                               plim_error *error)
{
    (void)options;
    TRY(map_need_text(column, self->name, error));
    column->shape = (struct shape){.rank = 1, .dim = {-1}};
    return PLIM_OK;
}

static plim_status split_row(const struct map_row *row, plim_error *error)
{
    const struct split_options *options = row->options;
    struct cell cell = {0};
    struct string *pieces;
    if (!text_split(&pieces, &cell.dim[0], row->values, options->separator, row->call->values))
        return map_full(row->call, error);
    cell.data = pieces;
    *(struct cell *)(void *)row->to_row = cell;
    return PLIM_OK;
}

static plim_status split_read(void *context, const struct map_function *self, const char *job, const struct yaml *value,
                              plim_error *error)
{
    static const struct setting setting = {"sep", SETTING_WORD, 0, 0};
    struct split_options *options = context;
    const char *separator = "";
    (void)self;
    if (value)
        TRY(map_settings_read(&separator, &(struct map_settings){&setting, 1, "sep"}, job, value, error));
    if (strlen(separator) >= sizeof options->separator)
        return fail(error, PLIM_BAD_JOB, "split: a separator of more than %d bytes",
                    (int)sizeof options->separator - 1);
    snprintf(options->separator, sizeof options->separator, "%s", separator);
    return PLIM_OK;
}

const struct map_function map_split = {
    .name = "split",
    .infer_column = split_infer,
    .run_row = split_row,
    .options_bytes = sizeof(struct split_options),
    .value_bytes = map_value_bytes,
    .bare = true,
    .read = split_read,
};

/* ---- lower, upper, strip ---- */

enum text_kind { TEXT_LOWER, TEXT_UPPER, TEXT_STRIP };

static plim_status need_strings(const struct column *column, const char *function, plim_error *error)
{
    if (column->type == TYPE_STRING)
        return PLIM_OK;
    return fail(error, PLIM_BAD_JOB, "%s: column '%s' holds %s, not strings", function, column->name,
                type_name(column->type));
}

static plim_status text_infer(struct column *column, const struct map_function *self, const void *options,
                              plim_error *error)
{
    (void)options;
    return need_strings(column, self->name, error);
}

/* Letters from `first` on, of the alphabet's 26, in the other case; other bytes as they are, as TensorFlow does it.
   False: the buffer is full. */
static bool change_case(struct string *text, struct value_buffer *buffer, uint8_t first)
{
    uint8_t *to = value_buffer_take_bytes(buffer, text->bytes);
    for (uint64_t i = 0; to && i < text->bytes; i++)
        to[i] = (uint8_t)(text->data[i] - first) < 26 ? text->data[i] ^ 0x20 : text->data[i];
    if (to)
        text->data = to;
    return to != NULL;
}

/* The strings of cells are written anew, because what rows refer to belongs to somebody else. */
static plim_status text_row(const struct map_row *row, plim_error *error)
{
    const struct string *from = row->values;
    int kind = row->call->function->kind;
    struct string *to = map_result(row, &row->shape);
    if (!to)
        return map_full(row->call, error);
    for (int64_t k = 0; k < row->count; k++) {
        struct string text = from[k];
        if (kind == TEXT_STRIP)
            text = text_stripped(&text);
        else if (!change_case(&text, row->call->values, kind == TEXT_LOWER ? 'A' : 'a'))
            return map_full(row->call, error);
        to[k] = text;
    }
    return PLIM_OK;
}

static uint64_t case_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    return 4 * MAP_SEQUENCE + map_value_bytes(from, to, options);
}

#define TEXT_FUNCTION(word, which, bytes)                                                                              \
    const struct map_function map_##word = {.name = #word,                                                             \
                                            .kind = which,                                                             \
                                            .infer_column = text_infer,                                                \
                                            .run_row = text_row,                                                       \
                                            .options_bytes = sizeof(char[64]),                                         \
                                            .value_bytes = bytes,                                                      \
                                            .bare = true};
TEXT_FUNCTION(lower, TEXT_LOWER, case_value_bytes)
TEXT_FUNCTION(upper, TEXT_UPPER, case_value_bytes)
TEXT_FUNCTION(strip, TEXT_STRIP, map_value_bytes)

/* ---- to_number ---- */

static plim_status to_number_infer(struct column *column, const struct map_function *self, const void *context,
                                   plim_error *error)
{
    const struct to_number_options *options = context;
    TRY(need_strings(column, self->name, error));
    column->type = options->type;
    return PLIM_OK;
}

/* tf.strings.to_number's rule: with blanks around it. */
static bool parse_number(void *to, enum type type, int64_t k, const struct string *given)
{
    struct string text = text_stripped(given);
    int64_t whole = 0;
    if (type == TYPE_F32)
        return decimal_float((float *)to + k, (const char *)text.data, text.bytes);
    if (type == TYPE_F64)
        return decimal_double((double *)to + k, (const char *)text.data, text.bytes);
    if (!text_whole_number(&whole, &text, type == TYPE_I32 ? INT32_MAX : INT64_MAX))
        return false;
    if (type == TYPE_I64)
        ((int64_t *)to)[k] = whole;
    else
        ((int32_t *)to)[k] = (int32_t)whole;
    return true;
}

static plim_status to_number_row(const struct map_row *row, plim_error *error)
{
    const struct string *text = row->values;
    enum type type = row->to->type;
    void *to = map_result(row, &row->shape);
    if (!to)
        return map_full(row->call, error);
    for (int64_t k = 0; k < row->count; k++)
        if (!parse_number(to, type, k, &text[k]))
            return fail(error, PLIM_BAD_DATA, "element %lld: '%.*s' in column '%s' is no %s",
                        map_element(row->call, row->index), text[k].bytes > 60 ? 60 : (int)text[k].bytes,
                        text[k].bytes ? (const char *)text[k].data : "", row->from->name, type_name(type));
    return PLIM_OK;
}

static plim_status to_number_read(void *context, const struct map_function *self, const char *job,
                                  const struct yaml *value, plim_error *error)
{
    static const struct setting setting = {"out_type", SETTING_WORD, 0, 0};
    struct to_number_options *options = context;
    const char *word = "float32";
    (void)self;
    if (value)
        TRY(map_settings_read(&word, &(struct map_settings){&setting, 1, "out_type"}, job, value, error));
    if (!type_from_name(&options->type, word) || (options->type != TYPE_F32 && options->type != TYPE_F64 &&
                                                  options->type != TYPE_I32 && options->type != TYPE_I64))
        return hint(error, fail(error, PLIM_BAD_JOB, "to_number: '%s' is not offered", word),
                    "float32, float64, int32 or int64");
    return PLIM_OK;
}

const struct map_function map_to_number = {
    .name = "to_number",
    .infer_column = to_number_infer,
    .run_row = to_number_row,
    .options_bytes = sizeof(struct to_number_options),
    .value_bytes = map_value_bytes,
    .bare = true,
    .read = to_number_read,
};
