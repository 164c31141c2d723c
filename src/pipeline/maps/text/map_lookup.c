/* map_lookup.c - string_lookup and integer_lookup: tokens into their numbers.

   string_lookup: words.txt
   string_lookup: {vocabulary: [a, b], num_oov_indices: 2, mask_token: "", output_mode: multi_hot} */
#include <string.h>

#include "base/numbers/count.h"
#include "pipeline/core/pipeline_digest.h"
#include "pipeline/maps/text/map_text.h"

enum lookup_kind { LOOKUP_STRINGS, LOOKUP_INTEGERS };

static plim_status lookup_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct lookup_options *options = context;
    struct token_options *common = &options->common;
    (void)from;
    TRY(map_category_type(&common->type, common->dtype, TYPE_I64, options->lookup.output, error));
    const struct vocabulary_options *lookup = &options->lookup;
    const char *mask = lookup->mask_token;
    const int64_t said[] = {lookup->integers,
                            lookup->num_oov_indices,
                            lookup->hash_integers,
                            (int64_t)lookup->output,
                            lookup->salt.given,
                            (int64_t)lookup->salt.key[0],
                            (int64_t)lookup->salt.key[1],
                            lookup->max_tokens,
                            lookup->pad_to_max_tokens,
                            mask ? digest_number(mask, strlen(mask)) : 0};
    common->number = token_list_number(&common->tokens, said, sizeof said);
    return token_list_make(&common->vocabulary, &common->tokens, budget, lookup, error);
}

static plim_status integer_lookup_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    ((struct lookup_options *)context)->lookup.integers = true;
    return lookup_make(context, budget, from, error);
}

static plim_status lookup_infer(struct column *column, const struct map_function *self, const void *context,
                                plim_error *error)
{
    const struct lookup_options *options = context;
    const struct token_options *common = &options->common;
    bool whole = column->type != TYPE_STRING && !type_is_float(column->type);
    if (self->kind == LOOKUP_INTEGERS ? !whole : column->type != TYPE_STRING) {
        fail(error, PLIM_BAD_JOB, "%s: column '%s' holds %s", self->name, column->name, type_name(column->type));
        return whole ? hint(error, PLIM_BAD_JOB, "integer_lookup is for whole numbers") : PLIM_BAD_JOB;
    }
    return map_category_infer(column, self->name, common->type, options->lookup.output,
                              vocabulary_size(common->vocabulary), error);
}

static plim_status lookup_row(const struct map_row *row, plim_error *error)
{
    const struct token_options *common = row->options;
    void *to = map_result(row, &row->shape);
    if (!to)
        return map_full(row->call, error);
    const struct token_row tokens = {.values = row->values, .type = row->from->type, .shape = row->shape};
    plim_status status = vocabulary_row(to, common->type, common->vocabulary, &tokens, error);
    return map_bad(row->call, row->index, status, error);
}

/* ---- job files ---- */

struct lookup_settings {
    const struct yaml *vocabulary, *mask, *salt;
    int64_t oov, max_tokens;
    const char *oov_token, *output, *dtype, *method;
    bool pad;
};

static const struct setting lookup_settings[] = {
    {"vocabulary", SETTING_NODE, offsetof(struct lookup_settings, vocabulary), 0},
    {"num_oov_indices", SETTING_WHOLE, offsetof(struct lookup_settings, oov), 0},
    {"mask_token", SETTING_NODE, offsetof(struct lookup_settings, mask), 0},
    {"oov_token", SETTING_WORD, offsetof(struct lookup_settings, oov_token), 0},
    {"output_mode", SETTING_WORD, offsetof(struct lookup_settings, output), 0},
    {"max_tokens", SETTING_WHOLE, offsetof(struct lookup_settings, max_tokens), 2},
    {"pad_to_max_tokens", SETTING_BOOL, offsetof(struct lookup_settings, pad), 0},
    {"salt", SETTING_NODE, offsetof(struct lookup_settings, salt), 0},
    {"dtype", SETTING_WORD, offsetof(struct lookup_settings, dtype), 0},
    {"oov_method", SETTING_WORD, offsetof(struct lookup_settings, method), 0}, /* of integers only: the last */
};

static plim_status lookup_read(void *context, const struct map_function *self, const char *job,
                               const struct yaml *value, plim_error *error)
{
    struct lookup_options *options = context;
    struct lookup_settings read = {.oov = 1};
    struct vocabulary_options *lookup = &options->lookup;
    int count = COUNT(lookup_settings) - (self->kind == LOOKUP_STRINGS);
    TRY(map_settings_read(&read, &(struct map_settings){lookup_settings, count, self->name}, job, value, error));
    if (!read.vocabulary)
        return hint(error, fail(error, PLIM_BAD_JOB, "its vocabulary is missing"), "vocabulary: words.txt");
    if (read.mask && !read.mask->is_null)
        TRY(setting_value(&lookup->mask_token, &lookup_settings[3], job, read.mask, error));
    if (read.salt)
        TRY(map_salt_read(&lookup->salt, job, read.salt, error));
    if (read.output)
        TRY(category_output_from_name(&lookup->output, read.output, error));
    if (read.method && strcmp(read.method, "floormod") != 0 && strcmp(read.method, "farmhash") != 0)
        return hint(error, fail(error, PLIM_BAD_JOB, "unknown oov_method '%s'", read.method), "floormod or farmhash");
    lookup->hash_integers = read.method && strcmp(read.method, "farmhash") == 0;
    lookup->num_oov_indices = read.oov;
    lookup->oov_token = read.oov_token;
    lookup->max_tokens = read.max_tokens;
    lookup->pad_to_max_tokens = read.pad;
    options->common.dtype = read.dtype;
    return token_list_read(&options->common.tokens, job, read.vocabulary, error);
}

#define LOOKUP(word, which, make)                                                                                      \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .kind = which,                                                                                                 \
        .options_make = make,                                                                                          \
        .options_number = token_options_number,                                                                        \
        .options_content = token_options_content,                                                                      \
        .infer_column = lookup_infer,                                                                                  \
        .run_row = lookup_row,                                                                                         \
        .options_bytes = sizeof(struct lookup_options),                                                                \
        .value_bytes = map_value_bytes,                                                                                \
        .options_release = token_options_release,                                                                      \
        .read = lookup_read,                                                                                           \
    };

LOOKUP(string_lookup, LOOKUP_STRINGS, lookup_make)
LOOKUP(integer_lookup, LOOKUP_INTEGERS, integer_lookup_make)
