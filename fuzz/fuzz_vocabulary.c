/* fuzz_vocabulary.c - any bytes as a vocabulary file, of strings and of whole numbers; each line is looked up. */
#include <string.h>

#include "fuzz_file.h"
#include "pipeline/text/text_vectorize.h"

static plim_status read_it(struct budget *budget, const char *path, bool integers, const uint8_t *data, size_t bytes)
{
    static _Alignas(64) uint8_t block[1 << 16];
    struct vocabulary_options options = {.integers = integers, .num_oov_indices = 3, .mask_token = integers ? "0" : ""};
    struct vocabulary *vocabulary;
    TRY(vocabulary_make_from_file(&vocabulary, budget, path, &options, NULL));
    for (size_t at = 0; at < bytes; at++) {
        int64_t number = vocabulary_find(vocabulary, data + at, bytes - at);
        if (number < 0 || number >= vocabulary_size(vocabulary))
            abort();
    }
    struct text_vectorizer vectorizer = {
        .vocabulary = vocabulary, .lower = true, .strip_punctuation = true, .ngram_count = 2, .ngram = {1, 2}};
    struct string text = {data, bytes};
    struct value_buffer values;
    for (int split = SPLIT_WHITESPACE; split <= SPLIT_CHARACTER; split++) {
        int64_t *numbers, count;
        vectorizer.split = (enum text_split_by)split;
        value_buffer_init(&values, block, sizeof block);
        text_vectorize(&numbers, &count, &vectorizer, &text, &values);
    }
    vocabulary_free(vocabulary);
    return PLIM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct fuzz_file file;
    if (!fuzz_file_open(&file, data, bytes))
        return 0;
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK) {
        plim_status strings = read_it(budget, file.path, false, data, bytes);
        plim_status integers = read_it(budget, file.path, true, data, bytes);
        fuzz_budget_free(budget, 16 * bytes, integers == PLIM_OVER_BUDGET ? integers : strings);
    }
    fuzz_file_close(&file);
    return 0;
}
