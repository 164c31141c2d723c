/* test_file_list.c - lists of files against TensorFlow's list_files and Keras's folders of classes. */
#include "golden_files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>

#include "base/files/folder.h"
#include "base/numbers/count.h"
#include "formats/files/file_list.h"

/* All paths, "a|b|c"; "none" without any. With labels: "0:a|1:b". */
static void show(char *out, size_t capacity, const struct file_list *list, bool labels)
{
    char path[FILE_PATH_MOST + 1];
    out[0] = 0;
    for (int64_t i = 0; i < file_list_count(list); i++) {
        size_t length = strlen(out);
        file_list_path(path, list, i);
        if (labels)
            snprintf(out + length, capacity - length, "%s%d:%.900s", i ? "|" : "", file_list_label(list, i), path);
        else
            snprintf(out + length, capacity - length, "%s%.900s", i ? "|" : "", path);
    }
    if (!out[0])
        snprintf(out, capacity, "none");
}

static void make_file(const char *path)
{
    char folders[512];
    snprintf(folders, sizeof folders, "%s", path);
    for (char *slash = folders; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(folders, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void check_glob(char *line)
{
    char *patterns = strsep(&line, " "), got[4096];
    const char *pattern[4];
    int count = 0;
    plim_error error = {0};
    struct file_list *list;
    struct budget *budget = new_budget();
    while (patterns)
        pattern[count++] = strsep(&patterns, ",");
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    plim_status status = file_list_glob(list, pattern, count, &error);
    show(got, sizeof got, list, false);
    if (strcmp(got, line) != 0)
        print_error("%s: got %s, want %s\n", pattern[0], got, line);
    assert_string_equal(got, line);
    assert_int_equal(status, strcmp(line, "none") == 0 ? PLIM_BAD_DATA : PLIM_OK);
    file_list_free(list);
    end_budget(budget);
}

static void check_classes(char *line)
{
    static const char *const two[] = {"dog", "cat", NULL}, *const text[] = {".txt", NULL};
    char *names = strsep(&line, " "), got[4096], classes[256] = "";
    struct file_list *list;
    struct budget *budget = new_budget();
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    assert_int_equal(file_list_classes(list, "k", NULL, NULL, NULL), PLIM_OK);
    show(got, sizeof got, list, true);
    assert_string_equal(got, line);
    for (int64_t i = 0; i < file_list_class_count(list); i++)
        snprintf(classes + strlen(classes), sizeof classes - strlen(classes), "%s%s", i ? "," : "",
                 file_list_class(list, i));
    assert_string_equal(classes, names);
    file_list_free(list);
    /* Classes in an order of one's own, other files. */
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    assert_int_equal(file_list_classes(list, "k//", two, text, NULL), PLIM_OK);
    show(got, sizeof got, list, true);
    assert_string_equal(got, "1:k/cat/readme.txt|1:k/cat/x.jpg.txt");
    file_list_free(list);
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    assert_int_equal(file_list_classes(list, "k/empty", NULL, NULL, NULL), PLIM_BAD_DATA);
    assert_int_equal(file_list_classes(list, "k/none", NULL, NULL, NULL), PLIM_IO);
    file_list_free(list);
    end_budget(budget);
}

/* The golden file says which files there are, then what is found among them. */
static void lists_of_tensorflow_and_keras(void **state)
{
    (void)state;
    size_t bytes;
    char *text = load_golden("file_lists.txt", &bytes), *line, *rest = text;
    int globs = 0, classes = 0, home = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(folder), 0);
    while ((line = strsep(&rest, "\n")) && *line) {
        char *word = strsep(&line, " ");
        if (strcmp(word, "file") == 0) {
            make_file(line);
        } else if (strcmp(word, "glob") == 0) {
            check_glob(line);
            globs++;
        } else {
            check_classes(line);
            classes++;
        }
    }
    assert_true(globs > 20 && classes == 1);
    assert_int_equal(nftw("g", remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(nftw("k", remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(fchdir(home), 0);
    close(home);
    free(text);
}

static void braces_written_out(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *want; /* NULL: refused */
    } rows[] = {
        {"s-{000000..000003}.tar", "s-000000.tar|s-000001.tar|s-000002.tar|s-000003.tar"},
        {"s-{8..11}", "s-8|s-9|s-10|s-11"},
        {"s-{08..11}", "s-08|s-09|s-10|s-11"},
        {"s-{8..011}", "s-008|s-009|s-010|s-011"},
        {"{3..1}", "3|2|1"},
        {"{0..10..4}", "0|4|8"},
        {"{10..0..5}", "10|5|0"},
        {"{-2..1}", "-2|-1|0|1"},
        {"{a..e..2}", "a|c|e"},
        {"{c..a}", "c|b|a"},
        {"{train,test}/x.csv", "train/x.csv|test/x.csv"},
        {"{a,b{1,2}}{x,y}", "ax|ay|b1x|b1y|b2x|b2y"},
        {"{a,}b", "ab|b"},
        {"x{1..2}{,.gz}", "x1|x1.gz|x2|x2.gz"},
        {"plain", "plain"},
        {"{one}", "{one}"},
        {"a\\{b,c\\}", "a{b,c}"},
        {"{a\\,b,c}", "a,b|c"},
        {"{a,b", NULL},
        {"{1..2", NULL},
    };
    for (size_t r = 0; r < COUNT(rows); r++) {
        char got[1024];
        plim_error error = {0};
        struct file_list *list;
        struct budget *budget = new_budget();
        assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
        plim_status status = file_list_braces(list, rows[r].pattern, &error);
        show(got, sizeof got, list, false);
        if (rows[r].want && strcmp(got, rows[r].want) != 0)
            print_error("%s: %s, %s\n", rows[r].pattern, got, error.message);
        assert_int_equal(status, rows[r].want ? PLIM_OK : PLIM_BAD_JOB);
        if (rows[r].want)
            assert_string_equal(got, rows[r].want);
        file_list_free(list);
        end_budget(budget);
    }
}

/* Names are stored once, folders shared: the cost that the header states. And a bomb is refused. */
static void cost_of_a_list(void **state)
{
    (void)state;
    struct file_list *list;
    struct budget *budget = new_budget();
    char path[FILE_PATH_MOST + 1];
    uint64_t before = budget_usage(budget).now;
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    assert_int_equal(file_list_braces(list, "a/rather/long/folder/of/a/class/{000000..099999}.JPEG", NULL), PLIM_OK);
    assert_int_equal(file_list_count(list), 100000);
    assert_true(file_list_bytes(list) < 100000 * (11 + 9) * 11 / 10 + 4 * 32768);
    assert_true(budget_usage(budget).now - before <= file_list_bytes(list) + 8192);
    file_list_path(path, list, 54321);
    assert_string_equal(path, "a/rather/long/folder/of/a/class/054321.JPEG");
    file_list_free(list);
    end_budget(budget);
    assert_int_equal(budget_make(&budget, (uint64_t)1 << 20, NULL), PLIM_OK);
    assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
    plim_error error = {0};
    assert_int_equal(file_list_braces(list, "{0..9999999999}", &error), PLIM_OVER_BUDGET);
    assert_string_equal(error.where, "{0..9999999999}");
    assert_non_null(strstr(error.message, "its 10,000,000,000 files take 93.1 GiB"));
    assert_true(budget_usage(budget).peak < 65536);
    assert_int_equal(file_list_braces(list, "{0..9}{0..9223372036854775807}{0..9223372036854775807}", &error),
                     PLIM_OVER_BUDGET);
    assert_int_equal(file_list_braces(list, "d/{x,{a..c}}/{1..4..2}", NULL), PLIM_OK);
    assert_int_equal(file_list_count(list), 8);
    file_list_free(list);
    end_budget(budget);
}

static void links_are_told(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct folder *open_folder;
    struct folder_entry entry;
    bool more;
    int seen = 0;
    const char *base = path_of("links");
    char path[256];
    assert_int_equal(mkdir(base, 0777), 0);
    snprintf(path, sizeof path, "%s/file", base);
    make_file(path);
    snprintf(path, sizeof path, "%s/to_folder", base);
    assert_int_equal(symlink(".", path), 0);
    snprintf(path, sizeof path, "%s/to_file", base);
    assert_int_equal(symlink("file", path), 0);
    snprintf(path, sizeof path, "%s/to_nothing", base);
    assert_int_equal(symlink("nothing", path), 0);
    assert_int_equal(folder_open(&open_folder, budget, base, NULL), PLIM_OK);
    while (folder_next(&more, &entry, open_folder, NULL) == PLIM_OK && more) {
        enum folder_kind want = strcmp(entry.name, "to_folder") == 0    ? FOLDER_FOLDER
                                : strcmp(entry.name, "to_nothing") == 0 ? FOLDER_OTHER
                                                                        : FOLDER_FILE;
        assert_int_equal(entry.kind, want);
        assert_true(entry.link == (strcmp(entry.name, "file") != 0));
        seen++;
    }
    assert_int_equal(seen, 4);
    folder_close(open_folder);
    assert_int_equal(folder_open(&open_folder, budget, path, NULL), PLIM_IO);
    end_budget(budget);
    assert_int_equal(nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void faults_come_through(void **state)
{
    (void)state;
    static const unsigned sites[] = {FAULT_OPEN, FAULT_READ, FAULT_STAT, FAULT_ALLOCATE};
    const char *base = path_of("faults");
    char path[256], pattern[256];
    const char *patterns = pattern;
    snprintf(path, sizeof path, "%s/a/b.jpg", base);
    make_file(path);
    snprintf(path, sizeof path, "%s/a/link.jpg", base);
    assert_int_equal(symlink("b.jpg", path), 0);
    snprintf(pattern, sizeof pattern, "%s/*/b*", base);
    for (size_t s = 0; s < COUNT(sites); s++)
        for (int nth = 1;; nth++) {
            struct budget *budget = new_budget();
            struct file_list *list;
            fault_arm(sites[s], nth, true, sites[s] == FAULT_ALLOCATE ? ENOMEM : EIO);
            plim_status status = file_list_make(&list, budget, NULL);
            if (status == PLIM_OK) {
                status = file_list_glob(list, &patterns, 1, NULL);
                if (status == PLIM_OK)
                    status = file_list_classes(list, base, NULL, NULL, NULL);
                file_list_free(list);
            }
            bool reached = fault_disarm();
            assert_int_equal(status, !reached ? PLIM_OK : sites[s] == FAULT_ALLOCATE ? PLIM_NO_MEMORY : PLIM_IO);
            end_budget(budget);
            if (!reached)
                break;
        }
    assert_int_equal(nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A folder that may not be read (a fault: root may read all) hides its own files and no others; where nothing is left
   it is named. */
static void unreadable_folders_are_passed_over(void **state)
{
    (void)state;
    const char *base = path_of("unread");
    char path[256], pattern[256], got[1024];
    const char *patterns = pattern;
    static const char *const ends[] = {"*/x.txt", "*/x*"};
    snprintf(path, sizeof path, "%s/a/x.txt", base);
    make_file(path);
    snprintf(path, sizeof path, "%s/b/x.txt", base);
    make_file(path);
    for (int e = 0; e < 2; e++)
        for (int nth = 1; nth <= 3; nth++) { /* the folder above, a or b, both */
            struct budget *budget = new_budget();
            struct file_list *list;
            plim_error error = {0};
            unsigned site = e == 0 && nth > 1 ? FAULT_STAT : FAULT_OPEN;
            int first = nth == 1 ? 1 : site == FAULT_STAT ? 1 : 2;
            snprintf(pattern, sizeof pattern, "%s/%s", base, ends[e]);
            assert_int_equal(file_list_make(&list, budget, NULL), PLIM_OK);
            fault_arm(site, first, nth == 3, EACCES);
            plim_status status = file_list_glob(list, &patterns, 1, &error);
            assert_true(fault_disarm());
            show(got, sizeof got, list, false);
            assert_int_equal(status, nth == 2 ? PLIM_OK : PLIM_IO);
            assert_int_equal(file_list_count(list), nth == 2);
            if (nth != 2) {
                assert_non_null(strstr(error.where, base));
                assert_non_null(strstr(error.message, "Permission denied"));
                assert_non_null(strstr(error.message, "no files match"));
            }
            file_list_free(list);
            end_budget(budget);
        }
    assert_int_equal(nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void patterns_without_end(void **state)
{
    (void)state;
    char text[201], pattern[64];
    memset(text, 'a', 200);
    text[200] = 0;
    snprintf(pattern, sizeof pattern, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b");
    assert_false(file_matches(pattern, strlen(pattern), text)); /* at once: nothing is tried twice over */
    assert_true(file_matches("*", 1, ""));
    assert_true(file_matches("", 0, ""));
    assert_false(file_matches("", 0, "a"));
    assert_false(file_matches("[a", 2, "a"));
    assert_true(file_matches("[a", 2, "[a"));
    assert_true(file_matches("[a-", 3, "[a-"));
    assert_true(file_matches("\\", 1, "\\"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_tensorflow_and_keras),
        cmocka_unit_test(braces_written_out),
        cmocka_unit_test(cost_of_a_list),
        cmocka_unit_test(links_are_told),
        cmocka_unit_test(faults_come_through),
        cmocka_unit_test(unreadable_folders_are_passed_over),
        cmocka_unit_test(patterns_without_end),
    };
    return cmocka_run_group_tests_name("file_list", tests, make_folder, remove_folder);
}
