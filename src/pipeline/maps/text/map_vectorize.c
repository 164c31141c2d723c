/* map_vectorize.c - text_vectorization and bpe: a text into the numbers of its tokens.

   text_vectorization: {vocabulary: words.txt, output_mode: multi_hot}
   bpe: {vocabulary: vocab.json, merges: merges.txt, length: 128} */
#include "base/text/settings.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/text/map_words.h"

#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* A text of MAP_SEQUENCE bytes: written anew by characters four times that; with BPE the numbers, and a long piece. */
#define VECTORIZE_ROOM (4 * MAP_SEQUENCE)
#define BPE_ROOM       (16 * MAP_SEQUENCE)

static int text_column(const struct spec *spec, const char *name, const char *function, plim_error *error)
{
    int c = map_first_column(spec, name);
    if (c < 0)
        map_no_column(spec, function, name, error);
    else if (map_need_text(&spec->column[c], function, error) != PLIM_OK)
        c = -1;
    return c;
}

/* ---- text_vectorization ---- */

static plim_status vectorize_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct vectorization_options *options = context;
    struct text_vectorizer *vectorizer = &options->vectorizer;
    (void)from;
    TRY(text_vectorizer_check(vectorizer, error));
    TRY(map_category_type(&options->type, options->dtype, TYPE_I64, vectorizer->output, error));
    struct vocabulary_options lookup = text_vocabulary_options(vectorizer);
    lookup.max_tokens = options->max_tokens;
    lookup.pad_to_max_tokens = options->pad_to_max_tokens;
    vectorizer->vocabulary = NULL;
    options->number = word_list_number(&options->words, vectorizer, sizeof *vectorizer);
    TRY(word_list_make(&options->vocabulary, &options->words, budget, &lookup, error));
    vectorizer->vocabulary = options->vocabulary;
    return PLIM_OK;
}

static int64_t vectorize_number(const void *context)
{
    return ((const struct vectorization_options *)context)->number;
}

static void vectorize_content(struct sha256 *sha, const void *context)
{
    vocabulary_content(sha, ((const struct vectorization_options *)context)->vocabulary);
}

static void vectorize_release(void *context)
{
    vocabulary_free(((struct vectorization_options *)context)->vocabulary);
}

static plim_status vectorize_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct vectorization_options *options = context;
    int c = text_column(spec, options->column, "text_vectorization", error);
    if (c < 0)
        return PLIM_BAD_JOB;
    bool fixed = text_vectorizer_shape(&spec->column[c].shape, &options->vectorizer);
    if (!fixed && options->type != TYPE_I64)
        return hint(error, fail(error, PLIM_BAD_JOB, "text_vectorization: rows of different lengths are int64"),
                    "set output_sequence_length");
    spec->column[c].type = options->type;
    return PLIM_OK;
}

static plim_status vectorize_run(const struct map_call *call, plim_error *error)
{
    const struct vectorization_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    bool fixed = !column_is_variable(&call->to_spec->column[c]);
    for (int64_t i = 0; i < call->count; i++) {
        void *to = (uint8_t *)call->to[c] + (uint64_t)i * call->to_stride[c];
        struct cell cell = {0};
        bool full = false;
        if (fixed) {
            text_vectorize_row(&full, to, options->type, &options->vectorizer, map_text(call, c, i), call->room);
        } else {
            int64_t *numbers = NULL;
            full = !text_vectorize(&numbers, &cell.dim[0], &options->vectorizer, map_text(call, c, i), call->room);
            cell.data = numbers;
            *(struct cell *)to = cell;
        }
        if (full)
            return map_full(call, error);
    }
    return PLIM_OK;
}

static uint64_t vectorize_room(const struct spec *from, const struct spec *to, const void *context)
{
    const struct vectorization_options *options = context;
    (void)from;
    return VECTORIZE_ROOM + map_values_room(&to->column[map_first_column(to, options->column)]);
}

struct vectorize_words {
    const struct yaml *vocabulary, *standardize, *split, *ngrams;
    const char *output, *dtype;
    int64_t length, max_tokens;
    bool pad;
};

static const struct setting vectorize_settings[] = {
    {"vocabulary", SETTING_NODE, offsetof(struct vectorize_words, vocabulary), 0},
    {"standardize", SETTING_NODE, offsetof(struct vectorize_words, standardize), 0},
    {"split", SETTING_NODE, offsetof(struct vectorize_words, split), 0},
    {"ngrams", SETTING_NODE, offsetof(struct vectorize_words, ngrams), 0},
    {"output_mode", SETTING_WORD, offsetof(struct vectorize_words, output), 0},
    {"output_sequence_length", SETTING_WHOLE, offsetof(struct vectorize_words, length), 1},
    {"max_tokens", SETTING_WHOLE, offsetof(struct vectorize_words, max_tokens), 2},
    {"pad_to_max_tokens", SETTING_BOOL, offsetof(struct vectorize_words, pad), 0},
    {"dtype", SETTING_WORD, offsetof(struct vectorize_words, dtype), 0},
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

static plim_status vectorize_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct vectorization_options *options = context;
    struct vectorize_words words = {.vocabulary = value};
    const char *name = NULL;
    if (value->kind == YAML_MAP) {
        words.vocabulary = NULL;
        TRY(settings_read(&words, vectorize_settings, COUNT(vectorize_settings), job, value, error));
    }
    if (!words.vocabulary)
        return hint(error, fail(error, PLIM_BAD_JOB, "its vocabulary is missing"), "vocabulary: words.txt");
    TRY(read_choice(&name, "standardize", job, words.standardize, error));
    TRY(text_standardize_from_name(&options->vectorizer, name, error));
    TRY(read_choice(&name, "split", job, words.split, error));
    TRY(text_split_from_name(&options->vectorizer, name, error));
    TRY(read_ngrams(&options->vectorizer, job, words.ngrams, error));
    if (words.output)
        TRY(category_output_from_name(&options->vectorizer.output, words.output, error));
    options->vectorizer.output_sequence_length = words.length;
    options->max_tokens = words.max_tokens;
    options->pad_to_max_tokens = words.pad;
    options->dtype = words.dtype;
    return word_list_read(&options->words, job, words.vocabulary, error);
}

const struct map_function map_text_vectorization = {
    .name = "text_vectorization",
    .options_make = vectorize_make,
    .options_number = vectorize_number,
    .options_content = vectorize_content,
    .infer = vectorize_infer,
    .run = vectorize_run,
    .options_bytes = sizeof(struct vectorization_options),
    .room_bytes = vectorize_room,
    .options_release = vectorize_release,
    .read = vectorize_read,
};

/* ---- bpe ---- */

static plim_status bpe_options_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct bpe_options *options = context;
    char vocabulary[MAP_PATH_BYTES], merges[MAP_PATH_BYTES];
    (void)from;
    TRY(map_category_type(&options->type, options->dtype, TYPE_I64, CATEGORY_INT, error));
    if (!options->vocabulary || !options->merges || !map_path(vocabulary, options->job, options->vocabulary) ||
        !map_path(merges, options->job, options->merges))
        return hint(error, fail(error, PLIM_BAD_JOB, "bpe: 'vocabulary' or 'merges' is missing"),
                    "bpe: {vocabulary: vocab.json, merges: merges.txt}");
    const int64_t said[] = {options->length, options->pad_value, options->type};
    const char *files[] = {options->vocabulary, options->merges};
    options->number = word_list_number(&(struct word_list){.tokens = files, .count = 2}, said, sizeof said);
    return bpe_make(&options->bpe, budget, vocabulary, merges, error);
}

static int64_t bpe_number(const void *context)
{
    return ((const struct bpe_options *)context)->number;
}

static void bpe_options_content(struct sha256 *sha, const void *context)
{
    bpe_content(sha, ((const struct bpe_options *)context)->bpe);
}

static void bpe_options_release(void *context)
{
    struct bpe_options *options = context;
    bpe_free(options->bpe);
}

static plim_status bpe_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct bpe_options *options = context;
    int c = text_column(spec, options->column, "bpe", error);
    if (c < 0)
        return PLIM_BAD_JOB;
    spec->column[c].type = options->type;
    spec->column[c].shape = (struct shape){.rank = 1, .dim = {options->length ? options->length : -1}};
    return PLIM_OK;
}

/* The numbers in a row of a fixed length: what is too long is cut. */
static void fill_row(void *to, const struct bpe_options *options, const void *numbers, int64_t count)
{
    size_t size = type_bytes(options->type);
    count = count < options->length ? count : options->length;
    memcpy(to, numbers, (size_t)count * size);
    for (int64_t i = count; i < options->length; i++)
        if (options->type == TYPE_I64)
            ((int64_t *)to)[i] = options->pad_value;
        else
            ((int32_t *)to)[i] = (int32_t)options->pad_value;
}

static plim_status bpe_run(const struct map_call *call, plim_error *error)
{
    const struct bpe_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    for (int64_t i = 0; i < call->count; i++) {
        void *to = (uint8_t *)call->to[c] + (uint64_t)i * call->to_stride[c], *numbers = NULL;
        uint64_t used = call->room->used;
        int64_t count = 0;
        bool full = false;
        TRY(map_bad(
            call, i,
            bpe_encode(&full, &numbers, &count, options->bpe, map_text(call, c, i), options->type, call->room, error),
            error));
        if (full)
            return map_full(call, error);
        if (!options->length) {
            *(struct cell *)to = (struct cell){.data = numbers, .dim = {count}};
            continue;
        }
        fill_row(to, options, numbers, count);
        call->room->used = used;
    }
    return PLIM_OK;
}

static uint64_t bpe_room(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from, (void)to, (void)options;
    return BPE_ROOM;
}

static plim_status bpe_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct bpe_options *options = context;
    struct words {
        const struct yaml *vocabulary, *merges;
        int64_t length, pad_value;
        const char *dtype;
    } words = {0};
    static const struct setting settings[] = {
        {"vocabulary", SETTING_NODE, offsetof(struct words, vocabulary), 0},
        {"merges", SETTING_NODE, offsetof(struct words, merges), 0},
        {"length", SETTING_WHOLE, offsetof(struct words, length), 1},
        {"pad_value", SETTING_WHOLE, offsetof(struct words, pad_value), INT32_MIN},
        {"dtype", SETTING_WORD, offsetof(struct words, dtype), 0},
    };
    TRY(settings_read(&words, settings, COUNT(settings), job, value, error));
    options->job = job;
    options->length = words.length;
    options->pad_value = words.pad_value;
    options->dtype = words.dtype;
    if (words.vocabulary)
        TRY(map_path_read(&options->vocabulary, job, words.vocabulary, "vocabulary", error));
    return words.merges ? map_path_read(&options->merges, job, words.merges, "merges", error) : PLIM_OK;
}

const struct map_function map_bpe = {
    .name = "bpe",
    .options_make = bpe_options_make,
    .options_number = bpe_number,
    .options_content = bpe_options_content,
    .infer = bpe_infer,
    .run = bpe_run,
    .options_bytes = sizeof(struct bpe_options),
    .room_bytes = bpe_room,
    .options_release = bpe_options_release,
    .heavy = true,
    .read = bpe_read,
};
