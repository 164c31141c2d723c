/* map_lookup.c - string_lookup and integer_lookup: tokens into their numbers.

   string_lookup: words.txt
   string_lookup: {vocabulary: [a, b], num_oov_indices: 2, mask_token: "", output_mode: multi_hot} */
#include "base/text/settings.h"
#include "pipeline/core/chain_digest.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/text/map_words.h"

#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static plim_status lookup_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct lookup_options *options = context;
    (void)from;
    TRY(map_category_type(&options->type, options->dtype, TYPE_I64, options->lookup.output, error));
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
    options->number = word_list_number(&options->words, said, sizeof said);
    return word_list_make(&options->vocabulary, &options->words, budget, lookup, error);
}

/* What a cache behind this must not mix up. */
static int64_t lookup_number(const void *context)
{
    return ((const struct lookup_options *)context)->number;
}

static plim_status integer_lookup_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    ((struct lookup_options *)context)->lookup.integers = true;
    return lookup_make(context, budget, from, error);
}

static void lookup_content(struct sha256 *sha, const void *context)
{
    vocabulary_content(sha, ((const struct lookup_options *)context)->vocabulary);
}

static void lookup_release(void *context)
{
    struct lookup_options *options = context;
    vocabulary_free(options->vocabulary);
}

static plim_status lookup_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct lookup_options *options = context;
    const char *name = options->lookup.integers ? "integer_lookup" : "string_lookup";
    int c = map_first_column(spec, options->column);
    if (c < 0)
        return map_no_column(spec, name, options->column, error);
    struct column *column = &spec->column[c];
    bool whole = column->type != TYPE_STRING && !type_is_float(column->type);
    if (options->lookup.integers ? !whole : column->type != TYPE_STRING) {
        fail(error, PLIM_BAD_JOB, "%s: column '%s' holds %s", name, column->name, type_name(column->type));
        return whole ? hint(error, PLIM_BAD_JOB, "integer_lookup is for whole numbers") : PLIM_BAD_JOB;
    }
    TRY(map_category_infer(column, name, options->lookup.output, vocabulary_size(options->vocabulary), error));
    column->type = options->type;
    if (options->lookup.output != CATEGORY_INT) /* rows of zeros first: never over what is read */
        column->origin = -1;
    return PLIM_OK;
}

static plim_status lookup_run(const struct map_call *call, plim_error *error)
{
    const struct lookup_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    const struct column *from = &call->from_spec->column[c];
    for (int64_t i = 0; i < call->count; i++) {
        int64_t count;
        const void *values = map_values(&count, call, c, i);
        struct shape shape = value_shape(from, (const uint8_t *)call->from[c] + (uint64_t)i * call->from_stride[c]);
        void *to = map_category_to(call, c, i, &shape);
        if (!to)
            return map_full(call, error);
        TRY(map_bad(call, i, vocabulary_row(to, options->type, options->vocabulary, values, from->type, &shape, error),
                    error));
    }
    return PLIM_OK;
}

/* ---- job files ---- */

struct lookup_words {
    const struct yaml *vocabulary, *mask, *salt;
    int64_t oov, max_tokens;
    const char *oov_token, *output, *dtype, *method;
    bool pad;
};

static const struct setting lookup_settings[] = {
    {"vocabulary", SETTING_NODE, offsetof(struct lookup_words, vocabulary), 0},
    {"num_oov_indices", SETTING_WHOLE, offsetof(struct lookup_words, oov), 0},
    {"mask_token", SETTING_NODE, offsetof(struct lookup_words, mask), 0},
    {"oov_token", SETTING_WORD, offsetof(struct lookup_words, oov_token), 0},
    {"output_mode", SETTING_WORD, offsetof(struct lookup_words, output), 0},
    {"max_tokens", SETTING_WHOLE, offsetof(struct lookup_words, max_tokens), 2},
    {"pad_to_max_tokens", SETTING_BOOL, offsetof(struct lookup_words, pad), 0},
    {"salt", SETTING_NODE, offsetof(struct lookup_words, salt), 0},
    {"dtype", SETTING_WORD, offsetof(struct lookup_words, dtype), 0},
    {"oov_method", SETTING_WORD, offsetof(struct lookup_words, method), 0}, /* of integers only: the last */
};

static plim_status read_words(struct lookup_options *options, const char *job, const struct yaml *value, bool integers,
                              plim_error *error)
{
    struct lookup_words words = {.vocabulary = value, .oov = 1};
    struct vocabulary_options *lookup = &options->lookup;
    if (value->kind == YAML_MAP) {
        words.vocabulary = NULL;
        TRY(settings_read(&words, lookup_settings, COUNT(lookup_settings) - !integers, job, value, error));
    }
    if (!words.vocabulary)
        return hint(error, fail(error, PLIM_BAD_JOB, "its vocabulary is missing"), "vocabulary: words.txt");
    if (words.mask && !words.mask->is_null)
        TRY(setting_value(&lookup->mask_token, &lookup_settings[3], job, words.mask, error));
    if (words.salt)
        TRY(map_salt_read(&lookup->salt, job, words.salt, error));
    if (words.output)
        TRY(category_output_from_name(&lookup->output, words.output, error));
    if (words.method && strcmp(words.method, "floormod") != 0 && strcmp(words.method, "farmhash") != 0)
        return hint(error, fail(error, PLIM_BAD_JOB, "unknown oov_method '%s'", words.method), "floormod or farmhash");
    lookup->hash_integers = words.method && strcmp(words.method, "farmhash") == 0;
    lookup->num_oov_indices = words.oov;
    lookup->oov_token = words.oov_token;
    lookup->max_tokens = words.max_tokens;
    lookup->pad_to_max_tokens = words.pad;
    options->dtype = words.dtype;
    return word_list_read(&options->words, job, words.vocabulary, error);
}

static plim_status string_lookup_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    return read_words(options, job, value, false, error);
}

static plim_status integer_lookup_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    return read_words(options, job, value, true, error);
}

const struct map_function map_string_lookup = {
    .name = "string_lookup",
    .options_make = lookup_make,
    .options_number = lookup_number,
    .options_content = lookup_content,
    .infer = lookup_infer,
    .run = lookup_run,
    .options_bytes = sizeof(struct lookup_options),
    .room_bytes = map_category_room,
    .options_release = lookup_release,
    .read = string_lookup_read,
};

const struct map_function map_integer_lookup = {
    .name = "integer_lookup",
    .options_make = integer_lookup_make,
    .options_number = lookup_number,
    .options_content = lookup_content,
    .infer = lookup_infer,
    .run = lookup_run,
    .options_bytes = sizeof(struct lookup_options),
    .room_bytes = map_category_room,
    .options_release = lookup_release,
    .read = integer_lookup_read,
};
