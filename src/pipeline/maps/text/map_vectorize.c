/* map_vectorize.c - text_vectorization and bpe: a text into the numbers of its tokens.

   text_vectorization: {vocabulary: words.txt, output_mode: multi_hot}
   bpe: {vocabulary: vocab.json, merges: merges.txt, length: 128} */
#include <string.h>

#include "base/numbers/count.h"
#include "pipeline/maps/text/map_text.h"

/* A text of MAP_SEQUENCE bytes: written anew by characters four times that; with BPE the numbers, and a long piece. */
#define VECTORIZE_BYTES (4 * MAP_SEQUENCE)
#define BPE_BYTES       (16 * MAP_SEQUENCE)

/* ---- text_vectorization ---- */

static plim_status vectorize_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct vectorization_options *options = context;
    struct text_vectorizer *vectorizer = &options->vectorizer;
    struct token_options *common = &options->common;
    (void)from;
    TRY(text_vectorizer_check(vectorizer, error));
    TRY(map_category_type(&common->type, common->dtype, TYPE_I64, vectorizer->output, error));
    struct vocabulary_options lookup = text_vocabulary_options(vectorizer);
    lookup.max_tokens = options->max_tokens;
    lookup.pad_to_max_tokens = options->pad_to_max_tokens;
    vectorizer->vocabulary = NULL;
    common->number = token_list_number(&common->tokens, vectorizer, sizeof *vectorizer);
    TRY(token_list_make(&common->vocabulary, &common->tokens, budget, &lookup, error));
    vectorizer->vocabulary = common->vocabulary;
    return PLIM_OK;
}

static plim_status vectorize_infer(struct column *column, const struct map_function *self, const void *context,
                                   plim_error *error)
{
    const struct vectorization_options *options = context;
    TRY(map_need_text(column, self->name, error));
    bool fixed = text_vectorizer_shape(&column->shape, &options->vectorizer);
    if (!fixed && options->common.type != TYPE_I64)
        return hint(error, fail(error, PLIM_BAD_JOB, "text_vectorization: rows of different lengths are int64"),
                    "set output_sequence_length");
    column->type = options->common.type;
    return PLIM_OK;
}

static plim_status vectorize_row(const struct map_row *row, plim_error *error)
{
    const struct vectorization_options *options = row->options;
    struct value_buffer *buffer = row->call->values;
    bool full = false;
    if (column_is_variable(row->to)) {
        struct cell cell = {0};
        int64_t *numbers = NULL;
        full = !text_vectorize(&numbers, &cell.dim[0], &options->vectorizer, row->values, buffer);
        cell.data = numbers;
        *(struct cell *)(void *)row->to_row = cell;
    } else {
        text_vectorize_row(&full, row->to_row, options->common.type, &options->vectorizer, row->values, buffer);
    }
    return full ? map_full(row->call, error) : PLIM_OK;
}

static uint64_t vectorize_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    return VECTORIZE_BYTES + map_value_bytes(from, to, options);
}

struct vectorize_settings {
    const struct yaml *vocabulary, *standardize, *split, *ngrams;
    const char *output, *dtype;
    int64_t length, max_tokens;
    bool pad;
};

static const struct setting vectorize_settings[] = {
    {"vocabulary", SETTING_NODE, offsetof(struct vectorize_settings, vocabulary), 0},
    {"standardize", SETTING_NODE, offsetof(struct vectorize_settings, standardize), 0},
    {"split", SETTING_NODE, offsetof(struct vectorize_settings, split), 0},
    {"ngrams", SETTING_NODE, offsetof(struct vectorize_settings, ngrams), 0},
    {"output_mode", SETTING_WORD, offsetof(struct vectorize_settings, output), 0},
    {"output_sequence_length", SETTING_WHOLE, offsetof(struct vectorize_settings, length), 1},
    {"max_tokens", SETTING_WHOLE, offsetof(struct vectorize_settings, max_tokens), 2},
    {"pad_to_max_tokens", SETTING_BOOL, offsetof(struct vectorize_settings, pad), 0},
    {"dtype", SETTING_WORD, offsetof(struct vectorize_settings, dtype), 0},
};

/* null is Keras's None. */
static plim_status read_choice(const char **out, const char *what, const char *job, const struct yaml *value,
                               plim_error *error)
{
    const struct setting setting = {what, SETTING_WORD, 0, 0};
    *out = value && value->is_null ? "none" : NULL;
    return value && !value->is_null ? setting_value(out, &setting, job, value, error) : PLIM_OK;
}

/* 2 is (1, 2); [2, 3] these alone. */
static plim_status read_ngrams(struct text_vectorizer *out, const char *job, const struct yaml *value,
                               plim_error *error)
{
    const struct setting setting = {"ngrams", SETTING_WHOLE, 0, 1};
    int64_t width = 0;
    if (!value || value->is_null)
        return PLIM_OK;
    if (value->kind != YAML_LIST) {
        TRY(setting_value(&width, &setting, job, value, error));
        return text_ngrams_up_to(out, width, error);
    }
    for (const struct yaml *item = value->first; item; item = item->next) {
        TRY(setting_value(&width, &setting, job, item, error));
        if (out->ngram_count == MOST_NGRAMS || width > MOST_NGRAM_WIDTH)
            return fail(error, PLIM_BAD_JOB, "ngrams: at most %d widths, of at most %d tokens", MOST_NGRAMS,
                        MOST_NGRAM_WIDTH);
        out->ngram[out->ngram_count++] = (int)width;
    }
    return PLIM_OK;
}

static plim_status vectorize_read(void *context, const struct map_function *self, const char *job,
                                  const struct yaml *value, plim_error *error)
{
    struct vectorization_options *options = context;
    struct vectorize_settings read = {0};
    const char *name = NULL;
    TRY(map_settings_read(&read, &(struct map_settings){vectorize_settings, COUNT(vectorize_settings), self->name}, job,
                          value, error));
    if (!read.vocabulary)
        return hint(error, fail(error, PLIM_BAD_JOB, "its vocabulary is missing"), "vocabulary: words.txt");
    TRY(read_choice(&name, "standardize", job, read.standardize, error));
    TRY(text_standardize_from_name(&options->vectorizer, name, error));
    TRY(read_choice(&name, "split", job, read.split, error));
    TRY(text_split_from_name(&options->vectorizer, name, error));
    TRY(read_ngrams(&options->vectorizer, job, read.ngrams, error));
    if (read.output)
        TRY(category_output_from_name(&options->vectorizer.output, read.output, error));
    options->vectorizer.output_sequence_length = read.length;
    options->max_tokens = read.max_tokens;
    options->pad_to_max_tokens = read.pad;
    options->common.dtype = read.dtype;
    return token_list_read(&options->common.tokens, job, read.vocabulary, error);
}

const struct map_function map_text_vectorization = {
    .name = "text_vectorization",
    .options_make = vectorize_make,
    .options_number = token_options_number,
    .options_content = token_options_content,
    .infer_column = vectorize_infer,
    .run_row = vectorize_row,
    .options_bytes = sizeof(struct vectorization_options),
    .value_bytes = vectorize_value_bytes,
    .options_release = token_options_release,
    .read = vectorize_read,
};

/* ---- bpe ---- */

static plim_status bpe_options_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct bpe_options *options = context;
    struct token_options *common = &options->common;
    char vocabulary[MAP_PATH_BYTES], merges[MAP_PATH_BYTES];
    (void)from;
    TRY(map_category_type(&common->type, common->dtype, TYPE_I64, CATEGORY_INT, error));
    if (!options->vocabulary || !options->merges || !map_path(vocabulary, options->job, options->vocabulary) ||
        !map_path(merges, options->job, options->merges))
        return hint(error, fail(error, PLIM_BAD_JOB, "bpe: 'vocabulary' or 'merges' is missing"),
                    "bpe: {vocabulary: vocab.json, merges: merges.txt}");
    const int64_t said[] = {options->length, options->pad_value, common->type};
    const char *files[] = {options->vocabulary, options->merges};
    common->number = token_list_number(&(struct token_list){.tokens = files, .count = 2}, said, sizeof said);
    return bpe_make(&common->bpe, budget, vocabulary, merges, error);
}

static plim_status bpe_infer(struct column *column, const struct map_function *self, const void *context,
                             plim_error *error)
{
    const struct bpe_options *options = context;
    TRY(map_need_text(column, self->name, error));
    column->type = options->common.type;
    column->shape = (struct shape){.rank = 1, .dim = {options->length ? options->length : -1}};
    return PLIM_OK;
}

/* The numbers in a row of a fixed length: what is too long is cut. */
static void fill_row(void *to, const struct bpe_options *options, const void *numbers, int64_t count)
{
    enum type type = options->common.type;
    count = count < options->length ? count : options->length;
    memcpy(to, numbers, (size_t)count * type_bytes(type));
    for (int64_t i = count; i < options->length; i++)
        if (type == TYPE_I64)
            ((int64_t *)to)[i] = options->pad_value;
        else
            ((int32_t *)to)[i] = (int32_t)options->pad_value;
}

static plim_status bpe_row(const struct map_row *row, plim_error *error)
{
    const struct bpe_options *options = row->options;
    const struct token_options *common = &options->common;
    struct value_buffer *buffer = row->call->values;
    uint64_t used = buffer->used;
    struct bpe_tokens tokens;
    plim_status status = bpe_encode(&tokens, common->bpe, row->values, common->type, buffer, error);
    if (status != PLIM_OK)
        return map_bad(row->call, row->index, status, error);
    if (tokens.full)
        return map_full(row->call, error);
    if (!options->length) {
        *(struct cell *)(void *)row->to_row = (struct cell){.data = tokens.numbers, .dim = {tokens.count}};
        return PLIM_OK;
    }
    fill_row(row->to_row, options, tokens.numbers, tokens.count);
    buffer->used = used;
    return PLIM_OK;
}

static uint64_t bpe_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from, (void)to, (void)options;
    return BPE_BYTES;
}

struct bpe_settings {
    const struct yaml *vocabulary, *merges;
    int64_t length, pad_value;
    const char *dtype;
};

static plim_status bpe_read(void *context, const struct map_function *self, const char *job, const struct yaml *value,
                            plim_error *error)
{
    static const struct setting settings[] = {
        {"vocabulary", SETTING_NODE, offsetof(struct bpe_settings, vocabulary), 0},
        {"merges", SETTING_NODE, offsetof(struct bpe_settings, merges), 0},
        {"length", SETTING_WHOLE, offsetof(struct bpe_settings, length), 1},
        {"pad_value", SETTING_WHOLE, offsetof(struct bpe_settings, pad_value), INT32_MIN},
        {"dtype", SETTING_WORD, offsetof(struct bpe_settings, dtype), 0},
    };
    struct bpe_options *options = context;
    struct bpe_settings read = {0};
    (void)self;
    TRY(settings_read(&read, settings, COUNT(settings), job, value, error));
    options->job = job;
    options->length = read.length;
    options->pad_value = read.pad_value;
    options->common.dtype = read.dtype;
    if (read.vocabulary)
        TRY(map_path_read(&options->vocabulary, job, read.vocabulary, "vocabulary", error));
    return read.merges ? map_path_read(&options->merges, job, read.merges, "merges", error) : PLIM_OK;
}

const struct map_function map_bpe = {
    .name = "bpe",
    .options_make = bpe_options_make,
    .options_number = token_options_number,
    .options_content = token_options_content,
    .infer_column = bpe_infer,
    .run_row = bpe_row,
    .options_bytes = sizeof(struct bpe_options),
    .value_bytes = bpe_value_bytes,
    .options_release = token_options_release,
    .heavy = true,
    .read = bpe_read,
};
