/* test_banned.c - calls that belong to one file are made in that file only.
   What banned.h can poison, it poisons; this is for words that are good names
   for members of our own, too. Looks at words followed by a parenthesis, with
   comments and strings blanked, that are not members of something. */
#include <ctype.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *calls; /* words between spaces */
    const char *homes; /* file names between spaces */
} rules[] = {
    {" open openat openat2 creat read pread readv preadv write pwrite writev pwritev lseek sendfile copy_file_range ",
     " file.c process.c usage.c "}, /* process_usage_now reads /proc inside a step and may take no memory */
    {" fsync fdatasync sync_file_range rename renameat unlink unlinkat mkdir rmdir truncate ftruncate fallocate flock ",
     " file.c file_names.c "},
    {" stat fstat lstat fstatat access statfs fstatfs opendir readdir mkostemp mkdtemp symlink link chdir ",
     " file.c file_names.c file_sample.c folder.c "},
    {" mmap munmap mremap madvise brk sbrk ", " budget.c blocks.c "},
    {" pthread_create clone fork vfork thrd_create ", " workers.c "},
    {" execv execve execvp execl posix_spawn system ", " process.c "},
    {" printf puts putchar perror vprintf ", " "},
    {" signal sigaction setlocale setenv putenv srand time localtime gmtime ", " "},
};

static bool holds(const char *words, const char *word, size_t length)
{
    for (const char *at = words; (at = strchr(at, ' ')) && at[1]; at++)
        if (strncmp(at + 1, word, length) == 0 && at[1 + length] == ' ')
            return true;
    return false;
}

/* Overwrites comments and literals with spaces. */
static void blank(char *text)
{
    for (char *p = text; *p;) {
        const char *end = NULL;
        char quote = *p;
        if (strncmp(p, "/*", 2) == 0)
            end = strstr(p + 2, "*/") ? strstr(p + 2, "*/") + 2 : p + strlen(p);
        else if (strncmp(p, "//", 2) == 0)
            end = p + strcspn(p, "\n");
        else if (quote == '"' || quote == '\'') {
            for (end = p + 1; *end && *end != quote; end++)
                end += *end == '\\' && end[1];
            end += *end != '\0';
        }
        if (!end)
            p++;
        for (; end && p < end; p++)
            if (*p != '\n')
                *p = ' ';
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The call that does not belong into `file`, or NULL. */
static const char *find_foreign_call(char *text, const char *file, size_t *length)
{
    blank(text);
    for (char *p = text, *end; *p; p = end) {
        end = p + 1;
        if (!is_word(*p))
            continue;
        while (is_word(*end))
            end++;
        bool member = p > text && (p[-1] == '.' || (p[-1] == '>' && p - 1 > text && p[-2] == '-'));
        if (member || end[strspn(end, " \n")] != '(')
            continue;
        *length = (size_t)(end - p);
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
            if (holds(rules[i].calls, p, *length) && !holds(rules[i].homes, file, strlen(file)))
                return p;
    }
    return NULL;
}

static int files, foreign;

static int visit(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    size_t path_length = strlen(path), length = 0;
    if (kind != FTW_F || path_length < 2 || path[path_length - 2] != '.' || !strchr("ch", path[path_length - 1]))
        return 0;
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return -1;
    char *text = calloc(1, (size_t)1 << 20);
    size_t bytes = fread(text, 1, ((size_t)1 << 20) - 1, stream);
    fclose(stream);
    const char *call = find_foreign_call(text, path + walk->base, &length);
    if (call) {
        int line = 1;
        for (const char *p = text; p < call; p++)
            line += *p == '\n';
        fprintf(stderr, "%s:%d: %.*s() belongs elsewhere\n", path, line, (int)length, call);
        foreign++;
    }
    files += bytes > 0;
    free(text);
    return 0;
}

static void calls_stay_at_home(void **state)
{
    (void)state;
    const char *folder = TESTS_FOLDER "/../src";
    if (nftw(folder, visit, 16, FTW_PHYS) != 0)
        fail_msg("%s cannot be read: run this where it was compiled", folder);
    assert_true(files > 20);
    assert_int_equal(foreign, 0);
}

static bool is_foreign(const char *code, const char *file)
{
    char text[256];
    size_t length;
    snprintf(text, sizeof text, "%s", code);
    return find_foreign_call(text, file, &length) != NULL;
}

static void the_search_finds(void **state)
{
    (void)state;
    assert_true(is_foreign("int f = open(path, 0);", "idx.c"));
    assert_true(is_foreign("x = '\"'; unlink (path);", "idx.c"));
    assert_true(is_foreign("a > write(1)", "idx.c"));
    assert_false(is_foreign("int f = open(path, 0);", "file.c"));
    assert_true(is_foreign("int f = open(path, 0);", "profile.c"));
    assert_false(is_foreign("source->open(x); table.read(y); file_open(z); reopen(w);", "idx.c"));
    assert_false(is_foreign("/* open(x) */ \"read(y) \\\" write(z)\" // unlink(a)", "idx.c"));
    assert_false(is_foreign("int read, write;", "idx.c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_search_finds),
        cmocka_unit_test(calls_stay_at_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
