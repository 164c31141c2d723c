/* test_map_text.c - texts, tokens and category numbers as maps: what Keras and TensorFlow give (golden/lookup.txt,
   vectorize.txt, strings.txt, bpe.txt), through pipelines with workers; words of job files; costs, resuming, faults. */
#include "golden_lines.h"
#include "stage_checks.h"

#include "pipeline/maps/text/map_text.h"

#define MOST_NUMBERS 4096
#define COPIES       5 /* of a golden row: elements of the data set */

/* ---- a data set of golden rows ---- */

struct rows {
    struct string values[COPIES * GOLDEN_WORDS]; /* of any type */
    int64_t ids[COPIES];
    int count; /* in a row */
};

/* Words of hex as rows of this type, each the same. */
static void make_rows(struct rows *rows, struct golden *golden, const char *hex, enum type type)
{
    struct string words[GOLDEN_WORDS];
    rows->count = golden_words(words, golden, hex);
    for (int i = 0; i < COPIES * rows->count; i++) {
        const struct string *word = &words[i % rows->count];
        if (type == TYPE_STRING)
            rows->values[i] = *word;
        else if (type == TYPE_I64)
            ((int64_t *)(void *)rows->values)[i] = strtoll((const char *)word->data, NULL, 10);
        else
            element_set(rows->values, type, i, strtod((const char *)word->data, NULL));
    }
    for (int i = 0; i < COPIES; i++)
        rows->ids[i] = i;
}

/* last: the extent of a row; 0: one value. */
static struct dataset *rows_open(struct budget *budget, const struct rows *rows, enum type type, int64_t last)
{
    struct spec spec = {.column_count = 2,
                        .column = {{"words", type, {last > 0, {last}}, 0, 0}, {"n", TYPE_I64, {0, {0}}, 0, 0}}};
    return dataset_from_tensor_slices(budget, &spec, (const void *[]){rows->values, rows->ids}, COPIES);
}

/* Every element's column is `want`, with and without workers; the data set is given up. */
static void expect_numbers(struct dataset *dataset, struct budget *budget, const int64_t *want, int64_t count,
                           const char *what)
{
    plim_error error = {0};
    if (dataset_error(dataset, &error) != PLIM_OK)
        fail_msg("%s: %s; %s", what, error.message, error.hint);
    const struct column *column = &dataset_spec(dataset)->column[0];
    for (int slots = 1; slots <= 2; slots++) {
        struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
        for (int64_t n = 0; n < COPIES; n++) {
            struct batch *batch = NULL;
            if (iterator_next(&batch, iterator, &error) != PLIM_OK)
                fail_msg("%s: %s", what, error.message);
            int64_t id;
            memcpy(&id, batch->column[1], sizeof id);
            assert_int_equal(id, n);
            const void *data = column_is_variable(column) ? ((struct cell *)batch->column[0])->data : batch->column[0];
            assert_int_equal(value_count(column, batch->column[0]), count);
            for (int64_t i = 0; i < count; i++)
                if (element_get(data, column->type, i) != (double)want[i])
                    fail_msg("%s: number %lld is %.0f, not %lld", what, (long long)i,
                             element_get(data, column->type, i), (long long)want[i]);
        }
        iterator_close(iterator);
    }
    dataset_unref(dataset);
}

static void read_salt(struct hash_salt *salt, const char *text)
{
    long long a, b;
    salt->given = sscanf(text, "%lld,%lld", &a, &b) == 2;
    if (salt->given)
        memcpy(salt->key, (uint64_t[]){(uint64_t)a, (uint64_t)b}, sizeof salt->key);
}

/* ---- Keras's layers ---- */

static void check_lookup(struct budget *budget, struct golden *golden, const int64_t *want, int64_t count)
{
    static struct rows rows;
    struct string words[GOLDEN_WORDS], mask[GOLDEN_WORDS];
    const char *tokens[GOLDEN_WORDS];
    enum type type;
    assert_true(type_of_column(&type, golden->field[1]));
    int token_count = golden_words(words, golden, golden->field[3]);
    if (strcmp(golden->field[2], "file") == 0)
        return; /* another reader of the same: test_vocabulary.c */
    for (int i = 0; i < token_count; i++)
        tokens[i] = (const char *)words[i].data;
    struct lookup_options options = {.common.tokens = {.tokens = tokens, .count = token_count},
                                     .lookup = {.num_oov_indices = strtoll(golden->field[4], NULL, 10),
                                                .hash_integers = strcmp(golden->field[6], "farmhash") == 0}};
    if (strcmp(golden->field[5], "-") != 0) {
        golden_words(mask, golden, golden->field[5]);
        options.lookup.mask_token = (const char *)mask[0].data;
    }
    read_salt(&options.lookup.salt, golden->field[7]);
    assert_int_equal(category_output_from_name(&options.lookup.output, golden->field[8], NULL), PLIM_OK);
    make_rows(&rows, golden, golden->field[10], type);
    struct dataset *dataset = rows_open(budget, &rows, type, strtoll(golden->field[9], NULL, 10));
    expect_numbers(dataset_map(dataset, type == TYPE_STRING ? &map_string_lookup : &map_integer_lookup, &options),
                   budget, want, count, golden->field[8]);
}

static void check_hashing(struct budget *budget, struct golden *golden, const int64_t *want, int64_t count)
{
    static struct rows rows;
    struct string mask[GOLDEN_WORDS];
    enum type type;
    assert_true(type_of_column(&type, golden->field[1]));
    struct hashing_options options = {.hashing = {.bins = strtoll(golden->field[2], NULL, 10)}};
    if (strcmp(golden->field[3], "-") != 0) {
        golden_words(mask, golden, golden->field[3]);
        options.hashing.masked = true;
        options.hashing.mask_number = strtod((const char *)mask[0].data, NULL);
        snprintf(options.mask, sizeof options.mask, "%s", (const char *)mask[0].data);
    }
    read_salt(&options.hashing.salt, golden->field[4]);
    assert_int_equal(category_output_from_name(&options.hashing.output, golden->field[5], NULL), PLIM_OK);
    make_rows(&rows, golden, golden->field[7], type);
    struct dataset *dataset = rows_open(budget, &rows, type, strtoll(golden->field[6], NULL, 10));
    expect_numbers(dataset_map(dataset, &map_hashing, &options), budget, want, count, "hashing");
}

static void looks_up_as_keras(void **state)
{
    (void)state;
    static struct golden golden;
    static int64_t want[MOST_NUMBERS];
    struct budget *budget = open_budget();
    int lines = 0;
    for (golden_open(&golden, "lookup.txt"); golden_next(&golden); lines++) {
        int64_t count = golden_numbers(want, MOST_NUMBERS, golden.field[golden.count - 1]);
        if (strcmp(golden.field[0], "lookup") == 0)
            check_lookup(budget, &golden, want, count);
        else
            check_hashing(budget, &golden, want, count);
    }
    fclose(golden.in);
    assert_true(lines > 60);
    close_budget(budget);
}

static void check_vectorize(struct budget *budget, struct golden *golden, const char *const *tokens, int token_count)
{
    static struct rows rows;
    int64_t want[MOST_NUMBERS];
    struct vectorization_options options = {
        .common.tokens = {.tokens = tokens, .count = token_count},
        .vectorizer = {.output_sequence_length = strtoll(golden->field[5], NULL, 10)}};
    assert_int_equal(text_standardize_from_name(&options.vectorizer, golden->field[1], NULL), PLIM_OK);
    assert_int_equal(text_split_from_name(&options.vectorizer, golden->field[2], NULL), PLIM_OK);
    for (const char *at = golden->field[3]; *at && *at != '-'; at += strcspn(at, ",") + 1) {
        if (!strchr(golden->field[3], ','))
            assert_int_equal(text_ngrams_up_to(&options.vectorizer, strtoll(at, NULL, 10), NULL), PLIM_OK);
        else
            options.vectorizer.ngram[options.vectorizer.ngram_count++] = (int)strtol(at, NULL, 10);
        if (!strchr(at, ','))
            break;
    }
    assert_int_equal(category_output_from_name(&options.vectorizer.output, golden->field[4], NULL), PLIM_OK);
    int64_t count = golden_numbers(want, MOST_NUMBERS, golden->field[7]);
    make_rows(&rows, golden, golden->field[6], TYPE_STRING);
    struct dataset *dataset = rows_open(budget, &rows, TYPE_STRING, 0);
    expect_numbers(dataset_map(dataset, &map_text_vectorization, &options), budget, want, count, golden->field[3]);
}

/* The pieces of every element are these. */
static void expect_strings(struct dataset *dataset, struct budget *budget, const struct string *want, int64_t count)
{
    struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 0);
    const struct column *column = &dataset_spec(dataset)->column[0];
    for (int64_t n = 0; n < COPIES; n++) {
        struct batch *batch = NULL;
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        const struct string *got =
            column_is_variable(column) ? ((struct cell *)batch->column[0])->data : batch->column[0];
        assert_int_equal(value_count(column, batch->column[0]), count);
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(got[i].bytes, want[i].bytes);
            assert_memory_equal(got[i].data, want[i].data, want[i].bytes);
        }
    }
    iterator_close(iterator);
    dataset_unref(dataset);
}

static void check_split(struct budget *budget, struct golden *golden)
{
    static struct rows rows;
    struct string words[GOLDEN_WORDS];
    struct split_options options = {{0}, {0}};
    if (strcmp(golden->field[1], "-") != 0) {
        golden_words(words, golden, golden->field[1]);
        snprintf(options.separator, sizeof options.separator, "%s", (const char *)words[0].data);
    }
    make_rows(&rows, golden, golden->field[2], TYPE_STRING);
    int count = golden_words(words, golden, golden->field[3]);
    expect_strings(dataset_map(rows_open(budget, &rows, TYPE_STRING, 0), &map_split, &options), budget, words, count);
}

static void vectorizes_and_splits_as_keras(void **state)
{
    (void)state;
    static struct golden golden;
    static char kept[GOLDEN_LINE];
    static struct string words[GOLDEN_WORDS];
    const char *tokens[GOLDEN_WORDS];
    int token_count = 0, lines = 0;
    struct budget *budget = open_budget();
    for (golden_open(&golden, "vectorize.txt"); golden_next(&golden); lines++) {
        if (strcmp(golden.field[0], "tokens") == 0) {
            token_count = golden_words(words, &golden, golden.field[1]);
            memcpy(kept, golden.bytes, sizeof kept);
            for (int i = 0; i < token_count; i++)
                tokens[i] = kept + (words[i].data - golden.bytes);
        } else if (strcmp(golden.field[0], "vectorize") == 0) {
            check_vectorize(budget, &golden, tokens, token_count);
        } else {
            check_split(budget, &golden);
        }
    }
    fclose(golden.in);
    assert_true(lines > 200);
    close_budget(budget);
}

/* ---- tf.strings ---- */

static void check_number(struct budget *budget, struct golden *golden)
{
    static struct rows rows;
    struct to_number_options options = {{0}, TYPE_F32};
    assert_true(type_from_name(&options.type, golden->field[1]));
    make_rows(&rows, golden, golden->field[2], TYPE_STRING);
    struct dataset *dataset = dataset_map(rows_open(budget, &rows, TYPE_STRING, 0), &map_to_number, &options);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    struct batch *batch = NULL;
    uint64_t bits = 0;
    plim_status status = iterator_next(&batch, iterator, NULL);
    const char *text = (const char *)rows.values[0].data, *want = golden->field[3];
    if (strcmp(want, "-") == 0) {
        if (status != PLIM_BAD_DATA)
            fail_msg("'%s' as %s: %d, not an error", text, golden->field[1], status);
    } else {
        assert_int_equal(status, PLIM_OK);
        memcpy(&bits, batch->column[0], type_bytes(options.type));
        bool nan = strcmp(want, "nan") == 0;
        double value = element_get(batch->column[0], options.type, 0);
        if (nan ? value == value : bits != strtoull(want, NULL, 10))
            fail_msg("'%s' as %s: bits %llu, not %s", text, golden->field[1], (unsigned long long)bits, want);
    }
    iterator_close(iterator);
    dataset_unref(dataset);
}

static void check_texts(struct budget *budget, struct golden *golden, const struct map_function *function)
{
    static struct rows rows;
    struct string want[GOLDEN_WORDS];
    char options[64] = {0};
    make_rows(&rows, golden, golden->field[1], TYPE_STRING);
    int count = golden_words(want, golden, golden->field[2]);
    expect_strings(dataset_map(rows_open(budget, &rows, TYPE_STRING, rows.count), function, options), budget, want,
                   count);
}

static void check_dense(struct budget *budget, struct golden *golden)
{
    static struct rows rows;
    int64_t given[MOST_NUMBERS], want[MOST_NUMBERS], length = strtoll(golden->field[1], NULL, 10);
    char text[256] = "";
    int64_t count = golden_numbers(given, MOST_NUMBERS, golden->field[3]);
    golden_numbers(want, MOST_NUMBERS, golden->field[4]);
    for (int64_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%lld ", (long long)given[i]);
    for (int i = 0; i < COPIES; i++) {
        rows.values[i] = (struct string){(const uint8_t *)text, strlen(text)};
        rows.ids[i] = i;
    }
    struct dataset *dataset =
        dataset_map(rows_open(budget, &rows, TYPE_STRING, 0), &map_split, &(struct split_options){0});
    dataset = dataset_map(dataset, &map_to_number, &(struct to_number_options){.type = TYPE_I64});
    dataset = dataset_map(dataset, &map_to_dense,
                          &(struct fit_options){.shape = {1, {length}}, .value = strtod(golden->field[2], NULL)});
    expect_numbers(dataset, budget, want, length, "to_dense");
}

static void strings_as_tensorflow(void **state)
{
    (void)state;
    static struct golden golden;
    struct budget *budget = open_budget();
    int lines = 0;
    for (golden_open(&golden, "strings.txt"); golden_next(&golden); lines++) {
        if (strcmp(golden.field[0], "to_number") == 0)
            check_number(budget, &golden);
        else if (strcmp(golden.field[0], "to_dense") == 0)
            check_dense(budget, &golden);
        else
            check_texts(budget, &golden, map_function_by_name(golden.field[0]));
    }
    fclose(golden.in);
    assert_true(lines > 150);
    close_budget(budget);
}

/* ---- bpe ---- */

/* "HEX<tab>NUMBERS" as golden/bpe.txt has it, with rows as long as they are and of one length. */
static void check_bpe(struct budget *budget, const char *line, const char *vocabulary, const char *merges)
{
    static struct rows rows;
    static uint8_t bytes[GOLDEN_LINE];
    static int64_t want[MOST_NUMBERS];
    uint64_t length = 0;
    for (unsigned byte; *line != '\t' && sscanf(line, "%2x", &byte) == 1; line += 2)
        bytes[length++] = (uint8_t)byte;
    int64_t count = golden_numbers(want, MOST_NUMBERS, line);
    for (int i = 0; i < COPIES; i++) {
        rows.values[i] = (struct string){bytes, length};
        rows.ids[i] = i;
    }
    struct bpe_options options = {.vocabulary = vocabulary, .merges = merges};
    expect_numbers(dataset_map(rows_open(budget, &rows, TYPE_STRING, 0), &map_bpe, &options), budget, want, count,
                   "bpe");
    options.length = 9;
    options.pad_value = -1;
    options.common.dtype = "int32";
    for (int64_t i = count; i < 9; i++)
        want[i] = -1;
    expect_numbers(dataset_map(rows_open(budget, &rows, TYPE_STRING, 0), &map_bpe, &options), budget, want, 9, "bpe");
}

static void find_golden(char out[512], const char *name)
{
    snprintf(out, 512, TESTS_FOLDER "/golden/%s", name);
}

static void encodes_by_bpe(void **state)
{
    (void)state;
    char path[512], vocabulary[512], merges[512];
    static char line[GOLDEN_LINE];
    find_golden(path, "bpe.txt");
    find_golden(vocabulary, "bpe_vocab.json");
    find_golden(merges, "bpe_merges.txt");
    struct budget *budget = open_budget();
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    for (int lines = 0; fgets(line, sizeof line, in); lines++)
        if (lines % 8 == 0) /* all of them: test_bpe.c */
            check_bpe(budget, line, vocabulary, merges);
    fclose(in);
    close_budget(budget);
}

/* ---- job files ---- */

static plim_status read_job(struct studio *room, struct dataset *source, struct budget *budget, const char *job,
                            const char *text)
{
    struct yaml *list;
    *room = (struct studio){.budget = budget, .dataset = source};
    arena_init(&room->arena, budget, TAG_PLANNER);
    plim_status status = yaml_parse(&list, &room->arena, job, text, strlen(text), &room->error);
    for (struct yaml *entry = status == PLIM_OK ? list->first : NULL; entry && status == PLIM_OK; entry = entry->next)
        status = stage_read(&room->dataset, job, entry, SEED, &room->error);
    arena_release(&room->arena); /* nothing of it is needed any more */
    return status;
}

static const char *const ships[] = {"The ship sails", "a Line, a ship!", "", "ship ship SHIP", "unknown words"};

static struct dataset *ships_open(struct budget *budget, struct rows *rows)
{
    for (int i = 0; i < COPIES; i++) {
        rows->values[i] = (struct string){(const uint8_t *)ships[i], strlen(ships[i])};
        rows->ids[i] = i;
    }
    return rows_open(budget, rows, TYPE_STRING, 0);
}

/* The rows of all five, one after another. */
static void expect_job(const char *text, enum type type, const char *shape, const double *want)
{
    static struct rows rows;
    struct studio room;
    char found[64];
    struct budget *budget = open_budget();
    if (read_job(&room, ships_open(budget, &rows), budget, path_of("job.yaml"), text) != PLIM_OK)
        fail_msg("%s: %s: %s; %s", text, room.error.where, room.error.message, room.error.hint);
    const struct column *column = &dataset_spec(room.dataset)->column[0];
    assert_int_equal(column->type, type);
    shape_text(found, sizeof found, &column->shape, false);
    assert_string_equal(found, shape);
    int64_t each = shape_count(&column->shape);
    for (int slots = 1; slots <= 2; slots++) {
        struct iterator *iterator = open_iterator(room.dataset, budget, slots, 0, 0);
        struct batch *batch;
        int64_t n = 0;
        for (assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK); batch;
             assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK))
            for (int64_t i = 0; i < batch->count * each; i++, n++)
                if (element_get(batch->column[0], type, i) != want[n])
                    fail_msg("%s: value %lld is %g, not %g", text, (long long)n, element_get(batch->column[0], type, i),
                             want[n]);
        assert_int_equal(n, COPIES * each);
        iterator_close(iterator);
    }
    check_stage(room.dataset, budget, "n");
    dataset_unref(room.dataset);
    close_budget(budget);
}

static void words_of_job_files(void **state)
{
    (void)state;
    write_file("words.txt", "ship\nline\nthe\n", 14); /* 1 is out of vocabulary, 2 the first */
    const double vectors[] = {4, 2, 1, 0, 1, 3, 1, 2, 0, 0, 0, 0, 2, 2, 2, 0, 1, 1, 0, 0};
    expect_job("[map: {words: [text_vectorization: {vocabulary: words.txt, output_sequence_length: 4}]}, batch: 2]",
               TYPE_I64, "(4,)", vectors);
    const double hot[] = {1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0};
    expect_job("[map: [text_vectorization: {vocabulary: words.txt, output_mode: multi_hot, dtype: float32}], batch: 3]",
               TYPE_F32, "(4,)", hot);
    expect_job("[map: {words: [lower, split, string_lookup: {vocabulary: [ship, line, the], mask_token: \"\"}, "
               "to_dense: 2, cast: float32]}, batch: 2]",
               TYPE_F32, "(2,)", (double[]){4, 2, 1, 1, 0, 0, 2, 2, 1, 1});
    expect_job("[map: {words: [split: \" \", string_lookup: {vocabulary: [ship, The], output_mode: count}]}, batch: 2]",
               TYPE_I64, "(3,)", (double[]){1, 1, 1, 4, 0, 0, 1, 0, 0, 1, 2, 0, 2, 0, 0});
    expect_job("[map: {words: [hashing: 1]}, batch: 2]", TYPE_I64, "()", (double[]){0, 0, 0, 0, 0});
    expect_job("[map: {words: \"len(words)\"}, batch: 2]", TYPE_I64, "()", (double[]){14, 15, 0, 14, 13});
    expect_job("[map: {words: [split, string_lookup: words.txt, pad: {shape: [4], value: 9}, one_hot: 10]}, "
               "map: {words: \"sum(words)\"}, batch: 2]",
               TYPE_F32, "()", (double[]){4, 4, 4, 4, 4});
    expect_job("[map: {words: [split, string_lookup: [ship, The], one_hot: 3, to_dense: [2, 3]]}, batch: 2]", TYPE_F32,
               "(2, 3)",
               (double[]){0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0});
    unlink(path_of("words.txt"));
}

static void refused_job(const char *text, plim_status code, const char *where, const char *message, const char *tip)
{
    static struct rows rows;
    struct studio room;
    struct budget *budget = open_budget();
    assert_int_equal(read_job(&room, ships_open(budget, &rows), budget, "job.yaml", text), code);
    if (strcmp(room.error.where, where) != 0 || !strstr(room.error.message, message) || !strstr(room.error.hint, tip))
        fail_msg("%s: '%s: %s; %s' does not say '%s: %s; %s'", text, room.error.where, room.error.message,
                 room.error.hint, where, message, tip);
    dataset_unref(room.dataset);
    close_budget(budget);
}

static void wrong_words_have_a_place(void **state)
{
    (void)state;
    refused_job("- map: [string_lookup: nowhere.txt]\n", PLIM_BAD_DATA, "job.yaml:1:24", "no file 'nowhere.txt'",
                "relative");
    refused_job("- map: [string_lookup: {vocab: [a]}]\n", PLIM_BAD_JOB, "job.yaml:1:25", "'vocab'", "");
    refused_job("- map: [string_lookup: {vocabulary: [a], output_mode: multihot}]\n", PLIM_BAD_JOB, "job.yaml:1:9",
                "'multihot'", "'multi_hot'");
    refused_job("- map: [string_lookup: [a, b, a]]\n", PLIM_BAD_JOB, "job.yaml:1:9", "twice", "");
    refused_job("- map: [string_lookup: {vocabulary: [a], dtype: float32}]\n", PLIM_BAD_JOB, "job.yaml:1:9", "dtype",
                "");
    refused_job("- map: [string_lookup: {vocabulary: [a], oov_method: farmhash}]\n", PLIM_BAD_JOB, "job.yaml:1:42",
                "'oov_method'", "");
    refused_job("- map: {n: [string_lookup: [a]]}\n", PLIM_BAD_JOB, "job.yaml:1:13", "holds int64", "integer_lookup");
    refused_job("- map: [integer_lookup: [1, x]]\n", PLIM_BAD_JOB, "job.yaml:1:9", "not an int64", "");
    refused_job("- map: [string_lokup: [a]]\n", PLIM_BAD_JOB, "job.yaml:1:9", "'string_lokup'", "'string_lookup'");
    refused_job("- map: [hashing: {salt: 3}]\n", PLIM_BAD_JOB, "job.yaml:1:9", "num_bins", "");
    refused_job("- map: [text_vectorization: {vocabulary: [a], standardize: up}]\n", PLIM_BAD_JOB, "job.yaml:1:9",
                "'up'", "");
    refused_job("- map: [bpe: {vocabulary: x.json}]\n", PLIM_BAD_DATA, "job.yaml:1:27", "no file", "relative");
    refused_job("- map: {n: [split]}\n", PLIM_BAD_JOB, "job.yaml:1:13", "not one text", "");
    refused_job("- map: {n: [lower]}\n", PLIM_BAD_JOB, "job.yaml:1:13", "not strings", "");
    refused_job("- map: [lower: 3]\n", PLIM_BAD_JOB, "job.yaml:1:9", "takes no value", "");
    refused_job("- map: [to_number: uint8]\n", PLIM_BAD_JOB, "job.yaml:1:9", "'uint8'", "int64");
    refused_job("- map: [pad: [3]]\n", PLIM_BAD_JOB, "job.yaml:1:9", "axes", "");
}

/* An element out of vocabulary, and a text too large for its room: told, with the element; what lies behind
   it comes. */
static void bad_elements_are_named(void **state)
{
    (void)state;
    static struct rows rows;
    struct studio room;
    plim_error error = {0};
    struct batch *batch;
    struct budget *budget = open_budget();
    assert_int_equal(read_job(&room, ships_open(budget, &rows), budget, "job.yaml",
                              "[map: [split, string_lookup: {vocabulary: [The, ship, sails], num_oov_indices: 0}]]"),
                     PLIM_OK);
    struct iterator *iterator = open_iterator(room.dataset, budget, 1, 0, 0);
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "element 1: 'a' is not in the vocabulary"));
    iterator_close(iterator);
    dataset_unref(room.dataset);
    struct dataset *source = ships_open(budget, &rows);
    dataset_set_value_bytes(source, 40);
    assert_int_equal(read_job(&room, source, budget, "job.yaml", "[map: [split]]"), PLIM_OK);
    iterator = open_iterator(room.dataset, budget, 1, 0, 0);
    for (error = (plim_error){0}; error.code == PLIM_OK;)
        iterator_next(&batch, iterator, &error);
    assert_int_equal(error.code, PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.hint, "largest_element"));
    iterator_close(iterator);
    dataset_unref(room.dataset);
    close_budget(budget);
}

/* Tables belong to the data set, and go with it, whatever fails on the way. */
static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    static struct rows rows;
    static const char text[] = "[map: {words: [split, string_lookup: {vocabulary: [a, b], output_mode: count}]}, "
                               "map: {n: [integer_lookup: [1, 2]]}, batch: 2]";
    bool reached = true;
    for (int64_t n = 1; reached; n++) {
        struct studio room;
        struct budget *budget = open_budget();
        struct dataset *source = ships_open(budget, &rows);
        fault_arm(FAULT_ALLOCATE, n, n % 2, ENOMEM);
        plim_status status = read_job(&room, source, budget, "job.yaml", text);
        reached = fault_disarm();
        assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
        dataset_unref(room.dataset);
        close_budget(budget);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_up_as_keras),      cmocka_unit_test(vectorizes_and_splits_as_keras),
        cmocka_unit_test(strings_as_tensorflow),  cmocka_unit_test(encodes_by_bpe),
        cmocka_unit_test(words_of_job_files),     cmocka_unit_test(wrong_words_have_a_place),
        cmocka_unit_test(bad_elements_are_named), cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
