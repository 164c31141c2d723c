/* test_text_vectorize.c - texts to numbers, and to pieces, as Keras and TensorFlow have them (golden/vectorize.txt,
   made by golden/make_words.py). */
#include "golden_lines.h"

#include "pipeline/text/text_split.h"
#include "pipeline/text/text_vectorize.h"

#define MOST_NUMBERS 1024
#define ROOM_BYTES   8192

static _Alignas(64) uint8_t block[ROOM_BYTES];

static void read_ngrams(struct text_vectorizer *vectorizer, const char *text)
{
    if (strcmp(text, "-") == 0)
        return;
    if (!strchr(text, ',')) {
        assert_int_equal(text_ngrams_up_to(vectorizer, strtoll(text, NULL, 10), NULL), PLIM_OK);
        return;
    }
    for (char *end; *text; text = end + 1)
        vectorizer->ngram[vectorizer->ngram_count++] = (int)strtol(text, &end, 10);
}

static struct vocabulary *make_vocabulary(struct budget *budget, const char *const *tokens, int count,
                                          const struct text_vectorizer *vectorizer)
{
    struct vocabulary *vocabulary = NULL;
    struct vocabulary_options options = text_vocabulary_options(vectorizer);
    plim_error error;
    if (vocabulary_make_from_list(&vocabulary, budget, tokens, count, &options, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    return vocabulary;
}

/* The row, in a value buffer that grows until it is large enough. */
static int64_t make_row(int64_t *out, const struct text_vectorizer *vectorizer, const struct string *text)
{
    struct shape shape;
    struct value_buffer values;
    bool fixed = text_vectorizer_shape(&shape, vectorizer), full = true;
    for (uint64_t capacity = 0; full; capacity += 16) {
        int64_t *numbers, count;
        assert_true(capacity < ROOM_BYTES);
        value_buffer_init(&values, block, capacity);
        if (fixed) {
            text_vectorize_row(&full, out, TYPE_I64, vectorizer, text, &values);
            assert_true(full || values.used == 0);
        } else {
            full = !text_vectorize(&numbers, &count, vectorizer, text, &values);
            if (!full) {
                memcpy(out, numbers, (size_t)count * 8);
                return count;
            }
        }
        assert_true(!full || values.wanted > capacity);
    }
    return shape_count(&shape);
}

static void check_vectorize(struct budget *budget, struct golden *golden, const char *const *tokens, int token_count)
{
    int64_t want[MOST_NUMBERS], got[MOST_NUMBERS];
    struct text_vectorizer vectorizer = {.output_sequence_length = strtoll(golden->field[5], NULL, 10)};
    struct string text[GOLDEN_WORDS];
    assert_int_equal(golden->count, 8);
    assert_int_equal(text_standardize_from_name(&vectorizer, golden->field[1], NULL), PLIM_OK);
    assert_int_equal(text_split_from_name(&vectorizer, golden->field[2], NULL), PLIM_OK);
    read_ngrams(&vectorizer, golden->field[3]);
    assert_int_equal(category_output_from_name(&vectorizer.output, golden->field[4], NULL), PLIM_OK);
    assert_int_equal(text_vectorizer_check(&vectorizer, NULL), PLIM_OK);
    golden_words(text, golden, golden->field[6]);
    struct vocabulary *vocabulary = make_vocabulary(budget, tokens, token_count, &vectorizer);
    vectorizer.vocabulary = vocabulary;
    int64_t want_count = golden_numbers(want, MOST_NUMBERS, golden->field[7]);
    int64_t count = make_row(got, &vectorizer, text);
    if (count != want_count || memcmp(got, want, (size_t)count * 8) != 0)
        fail_msg("'%s' by %s, %s, ngrams %s, %s: %lld numbers, Keras has %lld: %s", (const char *)text[0].data,
                 golden->field[1], golden->field[2], golden->field[3], golden->field[4], (long long)count,
                 (long long)want_count, golden->field[7]);
    vocabulary_free(vocabulary);
}

static void check_split(struct golden *golden)
{
    struct string separator[GOLDEN_WORDS] = {{0}}, text[GOLDEN_WORDS], want[GOLDEN_WORDS], *got;
    int64_t count;
    struct value_buffer values;
    assert_int_equal(golden->count, 4);
    if (strcmp(golden->field[1], "-") != 0)
        golden_words(separator, golden, golden->field[1]);
    golden_words(text, golden, golden->field[2]);
    int want_count = golden_words(want, golden, golden->field[3]);
    value_buffer_init(&values, block, sizeof block);
    assert_true(text_split(&got, &count, text, (const char *)separator[0].data, &values));
    assert_int_equal(count, want_count);
    for (int i = 0; i < want_count; i++) {
        assert_int_equal(got[i].bytes, want[i].bytes);
        assert_memory_equal(got[i].data, want[i].data, want[i].bytes);
    }
    value_buffer_init(&values, block, count > 0 ? (uint64_t)count * sizeof *got - 1 : 0);
    assert_true(text_split(&got, &count, text, (const char *)separator[0].data, &values) == (want_count == 0));
}

static void numbers_as_keras(void **state)
{
    (void)state;
    static struct golden golden;
    static char kept[GOLDEN_LINE];
    const char *tokens[GOLDEN_WORDS];
    struct budget *budget = new_budget();
    int token_count = 0, texts = 0, splits = 0;
    golden_open(&golden, "vectorize.txt");
    while (golden_next(&golden)) {
        if (strcmp(golden.field[0], "tokens") == 0) {
            struct string words[GOLDEN_WORDS];
            token_count = golden_words(words, &golden, golden.field[1]);
            memcpy(kept, golden.bytes, golden.used);
            for (int i = 0; i < token_count; i++)
                tokens[i] = kept + (words[i].data - golden.bytes);
        } else if (strcmp(golden.field[0], "vectorize") == 0) {
            check_vectorize(budget, &golden, tokens, token_count);
            texts++;
        } else {
            assert_string_equal(golden.field[0], "split");
            check_split(&golden);
            splits++;
        }
    }
    fclose(golden.in);
    assert_true(texts > 200 && splits > 40);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE], 0);
    end_budget(budget);
}

static void refuses_by_name(void **state)
{
    (void)state;
    struct text_vectorizer vectorizer = {.output = CATEGORY_ONE_HOT};
    plim_error error;
    assert_int_equal(text_vectorizer_check(&vectorizer, &error), PLIM_UNSUPPORTED);
    vectorizer = (struct text_vectorizer){.output = CATEGORY_COUNT, .output_sequence_length = 3};
    assert_int_equal(text_vectorizer_check(&vectorizer, &error), PLIM_BAD_JOB);
    vectorizer = (struct text_vectorizer){.split = SPLIT_NONE, .ngram_count = 1, .ngram = {1}};
    assert_int_equal(text_vectorizer_check(&vectorizer, &error), PLIM_UNSUPPORTED);
    assert_int_equal(text_ngrams_up_to(&vectorizer, 0, &error), PLIM_BAD_JOB);
    assert_int_equal(text_split_from_name(&vectorizer, "whitespaces", &error), PLIM_BAD_JOB);
    assert_string_equal(error.hint, "did you mean 'whitespace'?");
    assert_int_equal(text_standardize_from_name(&vectorizer, "upper", &error), PLIM_BAD_JOB);
    assert_string_equal(error.message, "unknown standardize 'upper'");
    assert_int_equal(text_standardize_from_name(&vectorizer, NULL, NULL), PLIM_OK);
    assert_true(vectorizer.lower && vectorizer.strip_punctuation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_as_keras),
        cmocka_unit_test(refuses_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
