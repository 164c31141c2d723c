/* vocabulary.c - tokens to numbers.

   1. Tokens lie one after another in `bytes`; token t is bytes[start[t] .. start[t + 1]). Whole numbers are tokens of
      eight bytes, so that there is one table for both.
   2. The table finds t by the hash of a token's bytes.
   3. A file is read twice through a window: tokens and bytes are counted, then what they take is taken, once. A token
      costs its bytes and 10 more. */
#include "pipeline/text/vocabulary.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file_window.h"
#include "base/memory/budget_alloc.h"
#include "base/memory/budget_need.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/numbers/digest.h"
#include "base/sets/index_table.h"
#include "formats/files/cursor.h"
#include "pipeline/text/text_split.h"

struct vocabulary {
    struct budget *budget;
    uint8_t *bytes;
    uint32_t *start; /* count + 1 */
    struct index_table table;
    uint64_t block_bytes, start_bytes;
    uint32_t count;
    bool integers, hash_integers, masked;
    uint8_t *mask; /* the mask token's key: in `bytes`, behind the tokens */
    uint32_t mask_bytes;
    int64_t oov_first, oov_count, token_first, size;
    struct hash_salt salt;
    enum category_output output;
};

/* A list or a file; errors go to a place of theirs. */
struct tokens {
    const char *path; /* NULL: a list */
    const char *const *list;
    int64_t count;
};

/* ---- memory ---- */

/* What tokens of so many bytes take together. */
static uint64_t cost(uint64_t tokens, uint64_t bytes)
{
    uint64_t blocks = add_most(budget_charge(bytes), budget_charge(4 * (tokens + 1)));
    return add_most(blocks, budget_charge(4 * table_entries(tokens)));
}

void vocabulary_content(struct sha256 *sha, const struct vocabulary *v)
{
    if (!v)
        return;
    sha256_add(sha, v->start, 4 * ((uint64_t)v->count + 1));
    sha256_add(sha, v->bytes, v->start[v->count]);
}

void vocabulary_free(struct vocabulary *vocabulary)
{
    if (!vocabulary)
        return;
    struct budget *budget = vocabulary->budget;
    budget_give(budget, TAG_PIPELINE, vocabulary->table.entry, 4 * vocabulary->table.count);
    budget_give(budget, TAG_PIPELINE, vocabulary->start, vocabulary->start_bytes);
    budget_give(budget, TAG_PIPELINE, vocabulary->bytes, vocabulary->block_bytes);
    budget_give(budget, TAG_PIPELINE, vocabulary, sizeof *vocabulary);
}

/* All that so many tokens take: their bytes, the mask token's behind them, and the table. `where` is for errors. */
static plim_status take_all(struct vocabulary *vocabulary, uint64_t tokens, uint64_t bytes, const char *where,
                            plim_error *error)
{
    struct budget *budget = vocabulary->budget;
    if (tokens > TABLE_MOST || bytes > UINT32_MAX)
        return error_at(error, fail(error, PLIM_UNSUPPORTED, "a vocabulary of more than 4 GB"), where ? where : "");
    TRY(budget_need(budget, cost(tokens, bytes), where, tokens, "words", error));
    uint64_t entries = table_entries(tokens);
    vocabulary->block_bytes = bytes;
    vocabulary->bytes = budget_take(budget, TAG_PIPELINE, bytes);
    vocabulary->start_bytes = 4 * (tokens + 1);
    vocabulary->start = vocabulary->bytes ? budget_take(budget, TAG_PIPELINE, vocabulary->start_bytes) : NULL;
    uint32_t *entry = vocabulary->start ? budget_take(budget, TAG_PIPELINE, 4 * entries) : NULL;
    if (!entry)
        return budget_refused(budget, TAG_PIPELINE, cost(tokens, bytes), error);
    table_init(&vocabulary->table, entry, entries, tokens);
    return PLIM_OK;
}

/* ---- the table ---- */

static bool is_token(const struct vocabulary *v, uint32_t t, const void *token, uint64_t bytes)
{
    return v->start[t + 1] - v->start[t] == bytes && (bytes == 0 || memcmp(v->bytes + v->start[t], token, bytes) == 0);
}

/* The entry of the token, or the free one where it would be. */
static uint64_t find_entry(const struct vocabulary *v, const void *token, uint64_t bytes, uint64_t hash)
{
    for (uint64_t at = table_first(&v->table, hash);; at = table_next(&v->table, at)) {
        uint32_t entry = v->table.entry[at];
        if (entry == 0)
            return at;
        if (table_may_be(&v->table, entry, hash) && is_token(v, table_number(&v->table, entry), token, bytes))
            return at;
    }
}

/* The token's number, or -1. */
static int64_t find_token(const struct vocabulary *v, const void *token, uint64_t bytes)
{
    uint32_t entry = v->table.entry[find_entry(v, token, bytes, hash_farm(token, bytes))];
    return entry ? (int64_t)table_number(&v->table, entry) : -1;
}

/* The token that was put at the end of bytes; false when it is there already. */
static bool add_token(struct vocabulary *v, uint32_t bytes)
{
    const uint8_t *token = v->bytes + v->start[v->count];
    uint64_t hash = hash_farm(token, bytes), at = find_entry(v, token, bytes, hash);
    if (v->table.entry[at])
        return false;
    table_put(&v->table, at, hash, v->count);
    v->start[v->count + 1] = v->start[v->count] + bytes;
    v->count++;
    return true;
}

/* ---- from text to table ---- */

/* The key of a token: its bytes, or those of its number. */
static bool put_key(uint32_t *key_bytes, uint8_t *to, bool integers, const char *text, uint64_t bytes)
{
    int64_t value;
    if (!integers) {
        if (bytes)
            memcpy(to, text, bytes);
        *key_bytes = (uint32_t)bytes;
        return true;
    }
    struct string number = text_stripped(&(struct string){(const uint8_t *)text, bytes});
    if (!text_whole_number(&value, &number, INT64_MAX)) /* as TensorFlow reads them */
        return false;
    memcpy(to, &value, sizeof value);
    *key_bytes = sizeof value;
    return true;
}

static void take_options(struct vocabulary *v, const struct vocabulary_options *options)
{
    v->integers = options->integers;
    v->hash_integers = options->hash_integers;
    v->masked = options->mask_token != NULL;
    v->salt = options->salt;
    v->output = options->output;
    v->oov_first = v->masked && options->output == CATEGORY_INT;
    v->oov_count = options->num_oov_indices;
    v->token_first = v->oov_first + v->oov_count;
}

static plim_status check_options(const struct vocabulary_options *options, plim_error *error)
{
    if (options->num_oov_indices < 0 || options->num_oov_indices > INT32_MAX)
        return fail(error, PLIM_BAD_JOB, "num_oov_indices must be 0 or more");
    if (options->max_tokens < 0 || options->max_tokens == 1)
        return fail(error, PLIM_BAD_JOB, "max_tokens must be more than 1");
    if (options->pad_to_max_tokens && options->max_tokens == 0)
        return fail(error, PLIM_BAD_JOB, "pad_to_max_tokens needs max_tokens");
    if (options->salt.given && options->integers && !options->hash_integers)
        return fail(error, PLIM_BAD_JOB, "a salt needs oov_method: farmhash");
    return PLIM_OK;
}

/* The mask token behind the others, and how many numbers there are. */
static plim_status finish(struct vocabulary *v, const struct vocabulary_options *options, plim_error *error)
{
    v->size = v->token_first + v->count;
    if (options->max_tokens && v->size > options->max_tokens)
        return fail(error, PLIM_BAD_JOB, "a vocabulary of %lld with its special tokens; max_tokens is %lld",
                    (long long)v->size, (long long)options->max_tokens);
    if (options->pad_to_max_tokens && v->output != CATEGORY_INT)
        v->size = options->max_tokens;
    v->mask = v->bytes + v->start[v->count];
    if (v->masked && !put_key(&v->mask_bytes, v->mask, v->integers, options->mask_token, strlen(options->mask_token)))
        return fail(error, PLIM_BAD_JOB, "the mask token '%s' is not an int64", options->mask_token);
    return PLIM_OK;
}

static uint64_t mask_room(const struct vocabulary_options *options)
{
    uint64_t bytes = options->mask_token ? strlen(options->mask_token) : 0;
    return bytes > 8 ? bytes : 8;
}

/* ---- files ---- */

/* How many tokens there are, and the bytes of their keys. */
static plim_status count_lines(uint64_t *count, uint64_t *bytes, const struct vocabulary *v, struct file_window *window,
                               plim_error *error)
{
    for (;;) {
        char *line;
        size_t length;
        uint64_t at;
        TRY(file_window_line(&line, &length, &at, window, error));
        if (!line)
            return PLIM_OK;
        if (length == 0)
            return fail_byte(error, PLIM_BAD_DATA, file_path(window->file), at, "an empty line");
        ++*count;
        *bytes += v->integers ? 8 : length;
    }
}

/* `end` is where the keys that were counted end. */
static plim_status add_line(struct vocabulary *v, struct string line, uint64_t end, uint64_t at,
                            const struct file_window *window, plim_error *error)
{
    uint32_t key_bytes;
    const char *path = file_path(window->file);
    uint8_t *key = v->bytes + v->start[v->count];
    if (4 * ((uint64_t)v->count + 2) > v->start_bytes || (v->integers ? 8 : line.bytes) > end - v->start[v->count])
        return fail_byte(error, PLIM_BAD_DATA, path, at, "the file is being written to while it is read");
    if (!put_key(&key_bytes, key, v->integers, (const char *)line.data, line.bytes))
        return fail_byte(error, PLIM_BAD_DATA, path, at, "not an int64");
    if (add_token(v, key_bytes))
        return PLIM_OK;
    return fail_byte(error, PLIM_BAD_DATA, path, at, "the token of line %lld stands here again",
                     (long long)find_token(v, key, key_bytes) + 1);
}

static plim_status read_lines(struct vocabulary *v, struct file_window *window, uint64_t bytes,
                              const struct vocabulary_options *options, plim_error *error)
{
    uint64_t count = 0, key_bytes = 0, at = 0;
    file_window_set(window, 0, bytes);
    TRY(count_lines(&count, &key_bytes, v, window, error));
    TRY(take_all(v, count, add_most(key_bytes, mask_room(options)), file_path(window->file), error));
    file_window_set(window, 0, bytes);
    for (;;) {
        char *line;
        size_t length;
        TRY(file_window_line(&line, &length, &at, window, error));
        if (!line)
            return finish(v, options, error);
        TRY(add_line(v, (struct string){(const uint8_t *)line, length}, key_bytes, at, window, error));
    }
}

static plim_status read_file(struct vocabulary *v, const char *path, const struct vocabulary_options *options,
                             plim_error *error)
{
    struct file *file;
    struct file_window window = {0};
    uint64_t bytes = 0;
    TRY(file_open(&file, v->budget, path, FILE_READ, error));
    plim_status status = file_size(&bytes, file, error);
    if (status == PLIM_OK && bytes == 0)
        status = fail_byte(error, PLIM_BAD_DATA, path, 0, "the vocabulary is empty");
    if (status == PLIM_OK)
        status = file_window_open(&window, v->budget, TAG_PIPELINE, file, error);
    if (status == PLIM_OK) {
        status = read_lines(v, &window, bytes, options, error);
        file_window_close(&window);
    }
    file_close(file);
    return status;
}

/* ---- lists ---- */

/* As many tokens at the head of the list as Keras takes for its own. */
static int64_t special_tokens(const struct vocabulary *v, const char *const *tokens, int64_t count,
                              const struct vocabulary_options *options)
{
    const char *oov = options->oov_token ? options->oov_token : v->integers ? "-1" : "[UNK]";
    if (count < v->token_first)
        return 0;
    for (int64_t i = 0; i < v->token_first; i++)
        if (strcmp(tokens[i], i < v->oov_first ? options->mask_token : oov) != 0)
            return 0;
    return v->token_first;
}

static plim_status add_list(struct vocabulary *v, const char *const *tokens, int64_t count,
                            const struct vocabulary_options *options, plim_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bytes;
        TRY(budget_go_on(v->budget, error));
        if (!put_key(&bytes, v->bytes + v->start[v->count], v->integers, tokens[i], strlen(tokens[i])))
            return fail(error, PLIM_BAD_JOB, "token %lld of the vocabulary, '%s', is not an int64", (long long)i + 1,
                        tokens[i]);
        if (!add_token(v, bytes))
            return fail(error, PLIM_BAD_JOB, "token %lld of the vocabulary, '%s', is there twice", (long long)i + 1,
                        tokens[i]);
        if (options->mask_token && strcmp(tokens[i], options->mask_token) == 0)
            return fail(error, PLIM_BAD_JOB, "token %lld of the vocabulary is the mask token '%s'", (long long)i + 1,
                        tokens[i]);
    }
    return PLIM_OK;
}

static plim_status read_list(struct vocabulary *v, const char *const *tokens, int64_t count,
                             const struct vocabulary_options *options, plim_error *error)
{
    uint64_t bytes = mask_room(options);
    int64_t special = special_tokens(v, tokens, count, options);
    if (count == 0)
        return fail(error, PLIM_BAD_JOB, "the vocabulary is empty");
    for (int64_t i = special; i < count; i++)
        bytes = add_most(bytes, v->integers ? 8 : strlen(tokens[i]));
    TRY(take_all(v, (uint64_t)(count - special), bytes, NULL, error));
    TRY(add_list(v, tokens + special, count - special, options, error));
    return finish(v, options, error);
}

static plim_status make(struct vocabulary **out, struct budget *budget, const struct tokens *tokens,
                        const struct vocabulary_options *options, plim_error *error)
{
    TRY(check_options(options, error));
    struct vocabulary *v;
    TRY(budget_alloc(&v, budget, TAG_PIPELINE, sizeof *v, error));
    v->budget = budget;
    take_options(v, options);
    return OPENED(out, v, vocabulary_free,
                  tokens->path ? read_file(v, tokens->path, options, error)
                               : read_list(v, tokens->list, tokens->count, options, error));
}

plim_status vocabulary_make_from_file(struct vocabulary **out, struct budget *budget, const char *path,
                                      const struct vocabulary_options *options, plim_error *error)
{
    return make(out, budget, &(struct tokens){.path = path}, options, error);
}

plim_status vocabulary_make_from_list(struct vocabulary **out, struct budget *budget, const char *const *tokens,
                                      int64_t count, const struct vocabulary_options *options, plim_error *error)
{
    return make(out, budget, &(struct tokens){.list = tokens, .count = count}, options, error);
}

/* ---- looking up ---- */

int64_t vocabulary_size(const struct vocabulary *vocabulary)
{
    return vocabulary->size;
}

static bool is_mask(const struct vocabulary *v, const void *key, uint64_t bytes)
{
    return v->masked && bytes == v->mask_bytes && (bytes == 0 || memcmp(key, v->mask, bytes) == 0);
}

/* The number, or -1 when it must be looked for among those out of vocabulary. */
static int64_t look_up(const struct vocabulary *v, const void *key, uint64_t bytes)
{
    if (is_mask(v, key, bytes))
        return v->output == CATEGORY_INT ? 0 : CATEGORY_NONE;
    int64_t token = find_token(v, key, bytes);
    return token < 0 ? -1 : v->token_first + token;
}

int64_t vocabulary_find(const struct vocabulary *v, const void *token, uint64_t bytes)
{
    int64_t number = look_up(v, token, bytes);
    if (number >= 0 || v->oov_count == 0)
        return number;
    return v->oov_first + (v->oov_count == 1 ? 0 : hash_bin(&v->salt, v->oov_count, token, bytes));
}

static int64_t find_whole(const struct vocabulary *v, int64_t value)
{
    int64_t number = look_up(v, &value, sizeof value);
    if (number >= 0 || v->oov_count == 0)
        return number;
    if (v->hash_integers && v->oov_count > 1)
        return v->oov_first + hash_bin_of_whole(&v->salt, v->oov_count, value);
    int64_t rest = value % v->oov_count;
    return v->oov_first + (rest < 0 ? rest + v->oov_count : rest);
}

/* The numbers of `count` elements, strings or any whole numbers. */
static plim_status find_numbers(int64_t *numbers, const struct vocabulary *v, const void *row, enum type type,
                                int64_t count, plim_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        const struct string *text = (const struct string *)row + i;
        numbers[i] = type == TYPE_STRING ? vocabulary_find(v, text->data, text->bytes)
                                         : find_whole(v, category_element(row, type, i));
        if (numbers[i] >= 0)
            continue;
        if (type == TYPE_STRING)
            fail(error, PLIM_BAD_DATA, "'%.*s' is not in the vocabulary", text->bytes > 60 ? 60 : (int)text->bytes,
                 text->bytes ? (const char *)text->data : "");
        else
            fail(error, PLIM_BAD_DATA, "%.0f is not in the vocabulary", element_get(row, type, i));
        return hint(error, PLIM_BAD_DATA, "num_oov_indices: 1 gives such a number of its own");
    }
    return PLIM_OK;
}

plim_status vocabulary_row(void *to, enum type to_type, const struct vocabulary *v, const struct token_row *tokens,
                           plim_error *error)
{
    enum type type = tokens->type;
    struct category_row out = {.to = to, .type = to_type, .output = v->output, .depth = v->size};
    int64_t numbers[CATEGORY_BLOCK], count = shape_count(&tokens->shape);
    category_begin(&out, &tokens->shape);
    for (int64_t i = 0; i < count; i += CATEGORY_BLOCK) {
        int64_t n = count - i < CATEGORY_BLOCK ? count - i : CATEGORY_BLOCK;
        TRY(find_numbers(numbers, v, (const uint8_t *)tokens->values + (size_t)i * type_bytes(type), type, n, error));
        category_put(&out, i, numbers, n);
    }
    return PLIM_OK;
}
