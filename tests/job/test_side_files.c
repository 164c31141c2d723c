/* test_side_files.c - files beside the data are counted through a window, and refused with the figure before anything
   is taken for them. */
#include "format_files.h"

#include <sys/stat.h>

#include "base/memory/budget_need.h"
#include "base/text/json_count.h"
#include "base/text/json_file.h"
#include "base/text/yaml.h"
#include "formats/files/file_list.h"
#include "formats/weights/safetensors.h"
#include "pipeline/text/bpe.h"
#include "pipeline/text/vocabulary.h"

static struct budget *small_budget(uint64_t bytes)
{
    struct budget *budget;
    assert_int_equal(budget_make(&budget, bytes, NULL), PLIM_OK);
    return budget;
}

/* `count` times the line, its number put in. */
static const char *write_many(const char *name, const char *begin, const char *format, int count, const char *end)
{
    static char path[256];
    snprintf(path, sizeof path, "%s", write_file(name, "", 0));
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(begin, out);
    for (int i = 0; i < count; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        fprintf(out, format, i, i);
#pragma GCC diagnostic pop
    }
    fputs(end, out);
    assert_int_equal(fclose(out), 0);
    return path;
}

static void needs_are_told(void **state)
{
    (void)state;
    plim_error error = {0};
    struct budget *budget = small_budget((uint64_t)1 << 20);
    uint64_t room = budget_room(budget);
    assert_int_equal(room, ((uint64_t)1 << 20) - budget_usage(budget).now);
    assert_true(budget_has_room(budget, room));
    assert_false(budget_has_room(budget, room + 1));
    assert_int_equal(budget_need(budget, room, "a.txt", 7, "words", &error), PLIM_OK);
    assert_int_equal(budget_need(budget, room + 1, "a.txt", 1234567, "words", &error), PLIM_OVER_BUDGET);
    assert_string_equal(error.where, "a.txt");
    assert_non_null(strstr(error.message, "its 1,234,567 words take "));
    assert_non_null(strstr(error.hint, "it needs a budget of "));
    assert_int_equal(budget_need(budget, UINT64_MAX, NULL, UINT64_MAX, "words", NULL), PLIM_OVER_BUDGET);
    budget_free(budget);
}

/* Lines of all lengths, on both sides of the window's edges. */
static void lines_slide(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    const char *path = write_file("lines", "", 0);
    FILE *out = fopen(path, "w");
    enum { MANY = 3000 };
    for (int i = 0; i < MANY; i++)
        fprintf(out, "%0*d%s", i % 97 + 5, i, i % 3 ? "\n" : "\r\n");
    fputs("last", out);
    assert_int_equal(fclose(out), 0);
    struct file *file;
    struct file_window window;
    uint64_t size, at, expected = 0;
    assert_int_equal(file_open(&file, budget, path, FILE_READ, NULL), PLIM_OK);
    assert_int_equal(file_size(&size, file, NULL), PLIM_OK);
    assert_true(size > 2 * FILE_WINDOW_BYTES);
    assert_int_equal(file_window_open(&window, budget, TAG_FORMATS, file, NULL), PLIM_OK);
    file_window_set(&window, 0, size);
    char *line;
    size_t bytes;
    for (int i = 0; i < MANY; i++) {
        char want[128];
        assert_int_equal(file_window_line(&line, &bytes, &at, &window, NULL), PLIM_OK);
        assert_int_equal(bytes, snprintf(want, sizeof want, "%0*d", i % 97 + 5, i));
        assert_memory_equal(line, want, bytes);
        assert_int_equal(at, expected);
        expected += bytes + (i % 3 ? 1 : 2);
    }
    assert_int_equal(file_window_line(&line, &bytes, &at, &window, NULL), PLIM_OK);
    assert_int_equal(bytes, 4);
    assert_int_equal(file_window_line(&line, &bytes, &at, &window, NULL), PLIM_OK);
    assert_null(line);
    file_window_close(&window);
    file_close(file);
    end_budget(budget);
    unlink(path);
}

static void long_lines_are_refused(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    plim_error error = {0};
    static char text[3 * FILE_WINDOW_BYTES];
    struct vocabulary *vocabulary;
    struct vocabulary_options options = {.num_oov_indices = 1};
    memset(text, 'x', sizeof text);
    text[0] = '\n';
    const char *path = write_file("long", text + 1, sizeof text - 1);
    assert_int_equal(vocabulary_make_from_file(&vocabulary, budget, path, &options, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "a line of more than 32768 bytes"));
    text[FILE_WINDOW_ITEM - 1] = '\n';
    path = write_file("long", text + 1, FILE_WINDOW_ITEM);
    assert_int_equal(vocabulary_make_from_file(&vocabulary, budget, path, &options, &error), PLIM_OK);
    assert_int_equal(vocabulary_find(vocabulary, text + 1, FILE_WINDOW_ITEM - 2), 1);
    vocabulary_free(vocabulary);
    end_budget(budget);
    unlink(path);
}

/* Tokens as the reader over the whole text gives them. */
static void json_slides(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    const char *path = write_many("json", "  {\"first\": [1, 2, {\"a\\u0041\": null}]",
                                  ",\n \"key%d\": [%d, true, \"x\"]", 20000, "} \n");
    struct file_content loaded;
    struct file *file;
    struct json_file json;
    struct json_reader reader;
    struct json_token want, token;
    struct json_count count = {0};
    uint64_t values = 0;
    assert_int_equal(file_load(&loaded, budget, TAG_FORMATS, path, (size_t)1 << 30, NULL), PLIM_OK);
    assert_true(loaded.bytes > 5 * FILE_WINDOW_BYTES);
    assert_int_equal(file_open(&file, budget, path, FILE_READ, NULL), PLIM_OK);
    assert_int_equal(json_file_open(&json, budget, TAG_FORMATS, file, NULL), PLIM_OK);
    json_file_set(&json, 0, loaded.bytes);
    json_read_init(&reader, loaded.text, loaded.bytes);
    do {
        assert_int_equal(json_next(&want, &reader, NULL), PLIM_OK);
        assert_int_equal(json_file_next(&token, &json, NULL), PLIM_OK);
        assert_int_equal(token.kind, want.kind);
        assert_int_equal(token.at, want.at);
        assert_int_equal(token.key_bytes, want.key_bytes);
        assert_int_equal(token.text_bytes, want.text_bytes);
        if (want.key_bytes)
            assert_memory_equal(token.key, want.key, want.key_bytes);
        if (want.text_bytes)
            assert_memory_equal(token.text, want.text, want.text_bytes);
        values += want.kind != JSON_OBJECT_END && want.kind != JSON_ARRAY_END && want.kind != JSON_END;
    } while (want.kind != JSON_END);
    assert_int_equal(json_count_file(&count, file, 0, loaded.bytes, NULL), PLIM_OK);
    assert_true(count.values >= values && count.values <= values + 1);
    json_file_close(&json);
    file_close(file);
    budget_give(budget, TAG_FORMATS, loaded.text, loaded.bytes + 1);
    end_budget(budget);
    unlink(path);
}

static void long_values_are_refused(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    plim_error error = {0};
    static char text[3 * FILE_WINDOW_BYTES];
    struct bpe *bpe;
    memset(text, 'x', sizeof text);
    memcpy(text, "{\"", 2);
    const char *merges = write_file("none", "", 0);
    char kept[256];
    snprintf(kept, sizeof kept, "%s", merges);
    const char *path = write_file("long", text, sizeof text);
    assert_int_equal(bpe_make(&bpe, budget, path, kept, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "a value of more than 32768 bytes"));
    end_budget(budget);
    unlink(path);
    unlink(kept);
}

#define LIMIT ((uint64_t)2 << 20)

static void check_refusal(struct budget *budget, plim_status status, const plim_error *error, const char *path,
                          const char *what)
{
    assert_int_equal(status, PLIM_OVER_BUDGET);
    assert_string_equal(error->where, path);
    if (!strstr(error->message, what) || !strstr(error->hint, "it needs a budget of"))
        fail_msg("'%s' is not in '%s'; try: %s", what, error->message, error->hint);
    /* Nothing of the size of the file was taken. */
    assert_true(budget_usage(budget).peak < 256 * 1024);
    budget_free(budget);
    unlink(path);
}

static void vocabularies_are_refused(void **state)
{
    (void)state;
    struct budget *budget = small_budget(LIMIT);
    plim_error error = {0};
    struct vocabulary *vocabulary;
    struct vocabulary_options options = {.num_oov_indices = 1};
    const char *path = write_many("words", "", "w%d\n", 200000, "");
    plim_status status = vocabulary_make_from_file(&vocabulary, budget, path, &options, &error);
    check_refusal(budget, status, &error, path, "its 200,000 words take 3.1 MiB");
}

/* As much as the refusal said is enough, but for the window. */
static void a_word_costs_little(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct vocabulary *vocabulary;
    struct vocabulary_options options = {.num_oov_indices = 1};
    const char *path = write_many("words", "", "w%06d\n", 100000, "");
    assert_int_equal(vocabulary_make_from_file(&vocabulary, budget, path, &options, NULL), PLIM_OK);
    uint64_t held = budget_usage(budget).now_by_tag[TAG_PIPELINE];
    assert_true(held <= 100000 * (7 + 10) + 4 * 4096);
    assert_true(budget_usage(budget).peak <= held + FILE_WINDOW_BYTES + 8192);
    vocabulary_free(vocabulary);
    end_budget(budget);
    unlink(path);
}

static void tokens_are_refused(void **state)
{
    (void)state;
    struct budget *budget = small_budget(LIMIT);
    plim_error error = {0};
    struct bpe *bpe;
    const char *path = write_many("vocab", "{\"!\": 200000", ", \"t%d\": %d", 200000, "}");
    plim_status status = bpe_make(&bpe, budget, path, path, &error);
    check_refusal(budget, status, &error, path, "its 200,001 tokens take 3.4 MiB");
}

static void merges_are_refused(void **state)
{
    (void)state;
    struct budget *budget = small_budget(LIMIT);
    plim_error error = {0};
    struct bpe *bpe;
    char vocab[256];
    snprintf(vocab, sizeof vocab, "%s", write_file("vocab", "{\"a\": 0}", 8));
    const char *path = write_many("merges", "", "a%d b%d\n", 200000, "");
    plim_status status = bpe_make(&bpe, budget, vocab, path, &error);
    unlink(vocab);
    check_refusal(budget, status, &error, path, "its 200,000 merges take 3.4 MiB");
}

static void headers_are_refused(void **state)
{
    (void)state;
    struct budget *budget = small_budget(LIMIT);
    plim_error error = {0};
    struct safetensors *file;
    const char *path = write_many("weights", "00000000{\"__metadata__\":{\"a\":\"b\"}",
                                  ",\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}", 30000, "}");
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    FILE *patch = fopen(path, "r+");
    assert_int_equal(fwrite(&(uint64_t){(uint64_t)found.st_size - 8}, 8, 1, patch), 1);
    assert_int_equal(fclose(patch), 0);
    plim_status status = safetensors_open(&file, budget, path, &error);
    check_refusal(budget, status, &error, path, "its 30,000 tensors take 4.");
}

/* More files than there is room for: all are counted, and told. */
static void folders_are_refused(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    struct budget *budget = small_budget(128 * 1024);
    plim_error error = {0};
    struct file_list *list;
    char many[256], path[512];
    snprintf(many, sizeof many, "%s", write_file("many", "", 0));
    unlink(many);
    assert_int_equal(mkdir(many, 0777), 0);
    snprintf(path, sizeof path, "%s/class", many);
    assert_int_equal(mkdir(path, 0777), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "%s/class/a_name_that_is_a_little_longer_%d.png", many, i);
        FILE *out = fopen(path, "w");
        assert_int_equal(fclose(out), 0);
    }
    snprintf(path, sizeof path, "%s/class/*.png", many);
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    assert_int_equal(file_list_glob(list, (const char *const[]){path}, 1, &error), PLIM_OVER_BUDGET);
    assert_string_equal(error.where, path);
    assert_non_null(strstr(error.message, "its 3,000 files take "));
    file_list_free(list);
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    error = (plim_error){0};
    assert_int_equal(file_list_classes(list, many, NULL, NULL, &error), PLIM_OVER_BUDGET);
    assert_string_equal(error.where, many);
    assert_non_null(strstr(error.message, "its 3,000 files take "));
    file_list_free(list);
    budget_free(budget);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "%s/class/a_name_that_is_a_little_longer_%d.png", many, i);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/class", many);
    rmdir(path);
    rmdir(many);
}

/* A YAML text of these pieces, `count` of the middle one. */
static plim_status parse_of(const char *begin, const char *piece, int count, const char *end)
{
    static char text[1 << 20];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", begin), bytes = strlen(piece);
    for (int i = 0; i < count; i++, used += bytes)
        memcpy(text + used, piece, bytes);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", end);
    struct budget *budget = NULL;
    struct arena arena;
    struct yaml *root;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    arena_init(&arena, budget, TAG_PLANNER);
    plim_status status = yaml_parse(&root, &arena, "job.yaml", text, used, NULL);
    arena_release(&arena);
    budget_free(budget);
    return status;
}

static void job_files_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(parse_of("x: |\n", " \n", 2000, "  a\n"), PLIM_BAD_JOB);
    assert_int_equal(parse_of("x: 1\n", "\n", 2000, "y: 2\n"), PLIM_BAD_JOB);
    assert_int_equal(parse_of("", "[", 400000, ""), PLIM_BAD_JOB); /* libfyaml would take more than 64 MiB */
}

static void job_files_are_left_alone(void **state)
{
    (void)state;
    assert_int_equal(parse_of("x: [", "a, ", 15000, "a]"), PLIM_OK);
    assert_int_equal(parse_of("[", "'it''s', ", 15000, "a]"), PLIM_OK);
    assert_int_equal(parse_of("[", "a,\n", 15000, "a]"), PLIM_OK);
    assert_int_equal(parse_of("", "- {a: [1, 2], 'b': \"c\"} # [[[ '\n", 3000, ""), PLIM_OK);
    assert_int_equal(parse_of("{\"model\": [", "{\"Dense\": {\"units\": 8}}, ", 3000, "{\"Dense\": 1}]}"), PLIM_OK);
    assert_int_equal(parse_of("", "- 1\n\n\n", 5000, ""), PLIM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_are_told),           cmocka_unit_test(lines_slide),
        cmocka_unit_test(long_lines_are_refused),   cmocka_unit_test(json_slides),
        cmocka_unit_test(long_values_are_refused),  cmocka_unit_test(vocabularies_are_refused),
        cmocka_unit_test(a_word_costs_little),      cmocka_unit_test(tokens_are_refused),
        cmocka_unit_test(merges_are_refused),       cmocka_unit_test(headers_are_refused),
        cmocka_unit_test(folders_are_refused),      cmocka_unit_test(job_files_are_bounded),
        cmocka_unit_test(job_files_are_left_alone),
    };
    return cmocka_run_group_tests_name("side_files", tests, make_folder, remove_folder);
}
