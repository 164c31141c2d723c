/* test_vocabulary.c - lookups and hashes as Keras has them (golden/lookup.txt, made by golden/make_words.py), and bad
   vocabularies. */
#include "golden_lines.h"

#include "base/numbers/count.h"
#include "pipeline/text/vocabulary.h"

#define MOST_NUMBERS 4096

static void read_salt(struct hash_salt *salt, const char *text)
{
    long long a, b;
    salt->given = sscanf(text, "%lld,%lld", &a, &b) == 2;
    if (salt->given)
        memcpy(salt->key, (uint64_t[]){(uint64_t)a, (uint64_t)b}, sizeof salt->key);
}

/* Inputs as a row of this type. */
static int read_row(void *row, struct golden *golden, const char *hex, enum type type)
{
    struct string words[GOLDEN_WORDS];
    int count = golden_words(words, golden, hex);
    for (int i = 0; i < count; i++) {
        if (type == TYPE_STRING)
            ((struct string *)row)[i] = words[i];
        else if (type == TYPE_I64)
            ((int64_t *)row)[i] = strtoll((const char *)words[i].data, NULL, 10);
        else
            element_set(row, type, i, strtod((const char *)words[i].data, NULL));
    }
    return count;
}

static void compare(const struct golden *golden, const char *want_text, enum type type, const void *got, int64_t count)
{
    static int64_t want[MOST_NUMBERS];
    if (golden_numbers(want, MOST_NUMBERS, want_text) != count)
        fail_msg("%s %s ...: %lld numbers", golden->field[0], golden->field[1], (long long)count);
    for (int64_t i = 0; i < count; i++)
        if ((double)want[i] != element_get(got, type, i))
            fail_msg("%s %s %s ... %s: number %lld is %.0f, Keras has %lld", golden->field[0], golden->field[1],
                     golden->field[2], golden->field[8], (long long)i, element_get(got, type, i), (long long)want[i]);
}

static const char *write_tokens(const struct string *tokens, int count)
{
    char text[GOLDEN_LINE];
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        memcpy(text + used, tokens[i].data, tokens[i].bytes);
        used += tokens[i].bytes;
        text[used++] = '\n';
    }
    return write_file("tokens", text, used);
}

static struct vocabulary *make(struct budget *budget, struct golden *golden, const struct vocabulary_options *options)
{
    struct string tokens[GOLDEN_WORDS];
    const char *list[GOLDEN_WORDS];
    int count = golden_words(tokens, golden, golden->field[3]);
    struct vocabulary *vocabulary = NULL;
    plim_error error = {0};
    for (int i = 0; i < count; i++)
        list[i] = (const char *)tokens[i].data;
    if (strcmp(golden->field[2], "list") == 0) {
        if (vocabulary_make_from_list(&vocabulary, budget, list, count, options, &error) != PLIM_OK)
            fail_msg("%s", error.message);
        return vocabulary;
    }
    const char *path = write_tokens(tokens, count);
    if (vocabulary_make_from_file(&vocabulary, budget, path, options, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    unlink(path);
    return vocabulary;
}

static void check_lookup(struct budget *budget, struct golden *golden)
{
    static int64_t out[MOST_NUMBERS];
    struct string row[GOLDEN_WORDS], mask[GOLDEN_WORDS];
    assert_int_equal(golden->count, 12);
    enum type type;
    assert_true(type_of_column(&type, golden->field[1]));
    struct vocabulary_options options = {.integers = type == TYPE_I64,
                                         .num_oov_indices = strtoll(golden->field[4], NULL, 10),
                                         .hash_integers = strcmp(golden->field[6], "farmhash") == 0};
    if (strcmp(golden->field[5], "-") != 0) {
        golden_words(mask, golden, golden->field[5]);
        options.mask_token = (const char *)mask[0].data;
    }
    read_salt(&options.salt, golden->field[7]);
    assert_int_equal(category_output_from_name(&options.output, golden->field[8], NULL), PLIM_OK);
    struct vocabulary *vocabulary = make(budget, golden, &options);
    int count = read_row(row, golden, golden->field[10], type);
    int64_t last = strtoll(golden->field[9], NULL, 10);
    struct shape shape = {.rank = last > 0, .dim = {last}}, out_shape;
    assert_true(category_shape(&out_shape, &shape, options.output, vocabulary_size(vocabulary)));
    assert_int_equal(count, shape_count(&shape));
    assert_true(shape_count(&out_shape) < MOST_NUMBERS);
    memset(out, 0x55, sizeof out);
    assert_int_equal(vocabulary_row(out, TYPE_I64, vocabulary, &(struct token_row){row, type, shape}, NULL), PLIM_OK);
    compare(golden, golden->field[11], TYPE_I64, out, shape_count(&out_shape));
    assert_true(out[shape_count(&out_shape)] == 0x5555555555555555);
    vocabulary_free(vocabulary);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE], 0);
}

static void check_hashing(struct golden *golden)
{
    static uint8_t out[MOST_NUMBERS * 8];
    struct string row[GOLDEN_WORDS], mask[GOLDEN_WORDS];
    assert_int_equal(golden->count, 9);
    enum type type;
    assert_true(type_of_column(&type, golden->field[1]));
    struct hashing hashing = {.bins = strtoll(golden->field[2], NULL, 10),
                              .masked = strcmp(golden->field[3], "-") != 0};
    if (hashing.masked) {
        golden_words(mask, golden, golden->field[3]);
        hashing.mask = mask[0];
        hashing.mask_number = strtod((const char *)mask[0].data, NULL);
    }
    read_salt(&hashing.salt, golden->field[4]);
    assert_int_equal(category_output_from_name(&hashing.output, golden->field[5], NULL), PLIM_OK);
    int64_t last = strtoll(golden->field[6], NULL, 10);
    struct shape shape = {.rank = last > 0, .dim = {last}}, out_shape;
    read_row(row, golden, golden->field[7], type);
    assert_true(category_shape(&out_shape, &shape, hashing.output, hashing.bins));
    enum type out_type = hashing.output == CATEGORY_INT ? TYPE_I64 : TYPE_F32;
    hashing_row(out, out_type, &hashing, row, type, &shape);
    compare(golden, golden->field[8], out_type, out, shape_count(&out_shape));
}

static void finds_as_keras(void **state)
{
    (void)state;
    static struct golden golden;
    struct budget *budget = new_budget();
    int lookups = 0, hashes = 0;
    golden_open(&golden, "lookup.txt");
    while (golden_next(&golden)) {
        bool lookup = strcmp(golden.field[0], "lookup") == 0;
        if (lookup)
            check_lookup(budget, &golden);
        else
            check_hashing(&golden);
        lookups += lookup;
        hashes += !lookup;
    }
    fclose(golden.in);
    assert_true(lookups > 45 && hashes > 15);
    end_budget(budget);
}

/* Many tokens, each found, and nothing else. */
static void finds_all(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    static char text[MANY * 12];
    size_t used = 0;
    for (int i = 0; i < MANY; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "w%d\n", i * 7);
    struct budget *budget = new_budget();
    struct vocabulary *vocabulary;
    const char *path = write_file("tokens", text, used);
    struct vocabulary_options options = {.num_oov_indices = 1};
    assert_int_equal(vocabulary_make_from_file(&vocabulary, budget, path, &options, NULL), PLIM_OK);
    assert_int_equal(vocabulary_size(vocabulary), MANY + 1);
    for (int i = 0; i < 7 * MANY; i++) {
        char token[16];
        int bytes = snprintf(token, sizeof token, "w%d", i);
        assert_int_equal(vocabulary_find(vocabulary, token, (uint64_t)bytes), i % 7 ? 0 : i / 7 + 1);
    }
    vocabulary_free(vocabulary);
    end_budget(budget);
    unlink(path);
}

static plim_status try_tokens(struct budget *budget, const char *path, bool integers, plim_error *error)
{
    struct vocabulary *vocabulary;
    struct vocabulary_options options = {.integers = integers, .num_oov_indices = 1, .mask_token = integers ? "0" : ""};
    plim_status status = vocabulary_make_from_file(&vocabulary, budget, path, &options, error);
    if (status == PLIM_OK)
        vocabulary_free(vocabulary);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE], 0);
    return status;
}

static plim_status try_strings(struct budget *budget, const char *path, plim_error *error)
{
    return try_tokens(budget, path, false, error);
}

static plim_status try_integers(struct budget *budget, const char *path, plim_error *error)
{
    return try_tokens(budget, path, true, error);
}

static void refuses_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *message;
        bool integers;
    } rows[] = {
        {"", "byte 0", "empty", false},
        {"a\n\nb\n", "byte 2", "an empty line", false},
        {"\na", "byte 0", "an empty line", false},
        {"a\nb\na\n", "byte 4", "line 1", false},
        {"1\nx\n", "byte 2", "not an int64", true},
        {"1\n1.0\n", "byte 2", "not an int64", true},
        {"7\n 7\n", "byte 2", "line 1", true},
        {"9223372036854775808\n", "byte 0", "not an int64", true},
        {"-\n", "byte 0", "not an int64", true},
    };
    struct budget *budget = new_budget();
    for (size_t r = 0; r < COUNT(rows); r++) {
        plim_error error = {0};
        const char *path = write_file("tokens", rows[r].text, strlen(rows[r].text));
        assert_int_equal(try_tokens(budget, path, rows[r].integers, &error), PLIM_BAD_DATA);
        if (!strstr(error.where, rows[r].where) || !strstr(error.message, rows[r].message))
            fail_msg("%s: %s", error.where, error.message);
        unlink(path);
    }
    const char *fine = write_file("tokens", "a\r\nb\r", 5);
    assert_int_equal(try_tokens(budget, fine, false, NULL), PLIM_OK);
    unlink(fine);
    end_budget(budget);
    /* Any end of a list is an end: bits are turned, and bytes cut off, for the sanitizers' sake. */
    static const char text[] = "1\n22\n-3\n444\n5";
    char copy[sizeof text];
    for (size_t bit = 0; bit < 8 * (sizeof text - 1); bit++) {
        memcpy(copy, text, sizeof copy);
        copy[bit / 8] ^= (char)(1 << bit % 8);
        try_damaged(try_strings, copy, sizeof text - 1);
        try_damaged(try_integers, copy, sizeof text - 1);
        try_damaged(try_integers, copy, bit / 8);
    }
}

static void refuses_bad_lists(void **state)
{
    (void)state;
    static const struct {
        const char *tokens[4], *message;
        struct vocabulary_options options;
    } rows[] = {
        {{NULL}, "empty", {.num_oov_indices = 1}},
        {{"a", "a"}, "'a', is there twice", {.num_oov_indices = 1}},
        {{"a", ""}, "token 2 of the vocabulary is the mask token", {.num_oov_indices = 1, .mask_token = ""}},
        {{"1", "x"}, "'x', is not an int64", {.integers = true, .num_oov_indices = 1}},
        {{"a", "b"}, "max_tokens is 2", {.num_oov_indices = 1, .max_tokens = 2}},
        {{"a"}, "num_oov_indices", {.num_oov_indices = -1}},
        {{"a"}, "needs max_tokens", {.num_oov_indices = 1, .pad_to_max_tokens = true}},
        {{"1"}, "salt", {.integers = true, .num_oov_indices = 2, .salt.given = true}},
        {{"1"}, "the mask token 'x'", {.integers = true, .num_oov_indices = 2, .mask_token = "x"}},
    };
    struct budget *budget = new_budget();
    struct vocabulary *vocabulary;
    plim_error error;
    for (size_t r = 0; r < COUNT(rows); r++) {
        int count = 0;
        while (rows[r].tokens[count])
            count++;
        assert_int_equal(
            vocabulary_make_from_list(&vocabulary, budget, rows[r].tokens, count, &rows[r].options, &error),
            PLIM_BAD_JOB);
        if (!strstr(error.message, rows[r].message))
            fail_msg("%s", error.message);
    }
    struct vocabulary_options none = {.num_oov_indices = 0};
    assert_int_equal(vocabulary_make_from_list(&vocabulary, budget, (const char *[]){"a"}, 1, &none, NULL), PLIM_OK);
    struct string q = {(const uint8_t *)"q", 1};
    int64_t number;
    assert_int_equal(
        vocabulary_row(&number, TYPE_I64, vocabulary, &(struct token_row){.values = &q, .type = TYPE_STRING}, &error),
        PLIM_BAD_DATA);
    assert_string_equal(error.message, "'q' is not in the vocabulary");
    vocabulary_free(vocabulary);
    assert_int_equal(category_output_from_name(&none.output, "tf_idf", &error), PLIM_UNSUPPORTED);
    assert_int_equal(category_output_from_name(&none.output, "multihot", &error), PLIM_BAD_JOB);
    assert_string_equal(error.hint, "did you mean 'multi_hot'?");
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE], 0);
    end_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_as_keras),
        cmocka_unit_test(finds_all),
        cmocka_unit_test(refuses_bad_files),
        cmocka_unit_test(refuses_bad_lists),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
