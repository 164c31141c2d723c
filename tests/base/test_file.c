/* test_file.c - the file layer: every call, every fault, nothing left behind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "await.h"
#include "base/fault.h"
#include "base/files/file.h"
#include "base/numbers/count.h"

#define DATA_BYTES 100000

/* What a test starts with: an empty folder, entered, and a budget. */
struct room {
    char folder[32];
    struct budget *budget;
    uint64_t own;
    int descriptors;
    char data[DATA_BYTES];
};

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(dir);
    return count;
}

static int set_up(void **state)
{
    struct room *room = calloc(1, sizeof *room);
    strcpy(room->folder, "test_file_XXXXXX");
    if (!mkdtemp(room->folder) || chdir(room->folder) != 0 || budget_make(&room->budget, 1 << 20, NULL))
        return -1;
    room->own = budget_usage(room->budget).now;
    room->descriptors = count_entries("/proc/self/fd");
    for (int i = 0; i < DATA_BYTES; i++)
        room->data[i] = (char)(i * 31 + i / 251);
    *state = room;
    return 0;
}

static int tear_down(void **state)
{
    struct room *room = *state;
    bool clean = budget_usage(room->budget).now == room->own && count_entries("/proc/self/fd") == room->descriptors;
    bool removed = count_entries(".") == 0 && chdir("..") == 0 && rmdir(room->folder) == 0;
    budget_free(room->budget);
    free(room);
    return clean && removed ? 0 : -1;
}

static void write_file(struct room *room, const char *path, const void *data, size_t bytes)
{
    struct file *file = NULL;
    assert_int_equal(file_open(&file, room->budget, path, FILE_CREATE, NULL), PLIM_OK);
    assert_int_equal(file_write(file, 0, data, bytes, NULL), PLIM_OK);
    assert_int_equal(file_sync(file, NULL), PLIM_OK);
    file_close(file);
}

/* A link under the name that is to be written: what it leads to is not ours. */
static void writing_does_not_follow_links(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    uint64_t size = 0;
    write_file(room, "victim", room->data, DATA_BYTES);
    assert_int_equal(symlink("victim", "new"), 0);
    write_file(room, "new", "x", 1);
    assert_int_equal(file_open(&file, room->budget, "victim", FILE_READ, NULL), PLIM_OK);
    assert_int_equal(file_size(&size, file, NULL), PLIM_OK);
    assert_int_equal(size, DATA_BYTES);
    file_close(file);
    assert_int_equal(unlink("victim"), 0);
    assert_int_equal(unlink("new"), 0);
}

static void what_is_written_is_read(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    char back[DATA_BYTES];
    uint64_t size = 0;
    size_t got = 0;
    write_file(room, "a", room->data, DATA_BYTES);
    assert_int_equal(file_open(&file, room->budget, "a", FILE_READ, &error), PLIM_OK);
    assert_string_equal(file_path(file), "a");
    assert_int_equal(file_size(&size, file, &error), PLIM_OK);
    assert_int_equal(size, DATA_BYTES);
    file_expect_random(file);
    assert_int_equal(file_read(file, 1, back, DATA_BYTES - 1, &error), PLIM_OK);
    assert_memory_equal(back, room->data + 1, DATA_BYTES - 1);
    assert_int_equal(file_read_some(&got, file, DATA_BYTES - 7, back, 20, &error), PLIM_OK);
    assert_int_equal(got, 7);
    assert_int_equal(file_read_some(&got, file, UINT64_MAX - 3, back, 20, &error), PLIM_OK);
    assert_int_equal(got, 0);
    file_drop(file, 0, DATA_BYTES);
    assert_int_equal(file_read(file, 0, back, 10, &error), PLIM_OK);
    assert_int_equal(file_bytes_read(file), DATA_BYTES - 1 + 7 + 10);
    file_close(file);
    assert_int_equal(file_remove("a", &error), PLIM_OK);
}

static void the_end_of_the_file_is_named(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    char back[200];
    write_file(room, "short.npy", room->data, 9132);
    assert_int_equal(file_open(&file, room->budget, "short.npy", FILE_READ, &error), PLIM_OK);
    assert_int_equal(file_read(file, 9100, back, 100, &error), PLIM_BAD_DATA);
    assert_string_equal(error.where, "short.npy");
    assert_non_null(strstr(error.message, "ends at byte 9,132"));
    assert_int_equal(file_read(file, 1000000, back, 100, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "ends at byte 9,132"));
    assert_int_equal(file_read(file, INT64_MAX - 1, back, 100, &error), PLIM_BAD_DATA);
    assert_int_equal(file_read(file, UINT64_MAX, back, 100, &error), PLIM_BAD_DATA);
    assert_int_equal(file_read(file, 9132, back, 0, &error), PLIM_OK);
    file_close(file);
    assert_int_equal(file_remove("short.npy", &error), PLIM_OK);
}

static void opening_says_what_is_wrong(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    assert_int_equal(file_open(&file, room->budget, "missing", FILE_READ, &error), PLIM_IO);
    assert_string_equal(error.where, "missing");
    assert_non_null(strstr(error.message, "No such file"));
    assert_int_equal(file_open(&file, room->budget, ".", FILE_READ, &error), PLIM_IO);
    assert_non_null(strstr(error.message, "folder"));
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(file_open(&file, room->budget, "pipe", FILE_READ, &error), PLIM_IO); /* and does not wait */
    assert_int_equal(file_remove("pipe", &error), PLIM_OK);
    assert_int_equal(file_open(&file, room->budget, "missing/x", FILE_CREATE, &error), PLIM_IO);
    assert_int_equal(file_open(&file, room->budget, "missing", FILE_SCRATCH, &error), PLIM_IO);
    assert_string_equal(error.where, "missing");
    assert_null(file);
}

static void scratch_has_no_name(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    char back[100];
    assert_int_equal(file_open(&file, room->budget, ".", FILE_SCRATCH, &error), PLIM_OK);
    assert_int_equal(count_entries("."), 0);
    assert_int_equal(file_write(file, 5000, room->data, DATA_BYTES, &error), PLIM_OK);
    file_drop(file, 0, 5000 + DATA_BYTES);
    assert_int_equal(file_read(file, 5100, back, 100, &error), PLIM_OK);
    assert_memory_equal(back, room->data + 100, 100);
    assert_int_equal(file_sync(file, &error), PLIM_OK);
    file_close(file);

    /* A file system without O_TMPFILE. */
    fault_arm(FAULT_OPEN, 1, false, EOPNOTSUPP);
    assert_int_equal(file_open(&file, room->budget, ".", FILE_SCRATCH, &error), PLIM_OK);
    assert_true(fault_disarm());
    assert_int_equal(count_entries("."), 0);
    assert_int_equal(file_write(file, 0, room->data, 10, &error), PLIM_OK);
    assert_int_equal(file_read(file, 0, back, 10, &error), PLIM_OK);
    file_close(file);
}

static void names_come_and_go(void **state)
{
    struct room *room = *state;
    plim_error error;
    bool there = true;
    assert_int_equal(file_exists(&there, "a", &error), PLIM_OK);
    assert_false(there);
    write_file(room, "a.tmp", "x", 1);
    assert_int_equal(file_rename("a.tmp", "a", &error), PLIM_OK);
    assert_int_equal(file_sync_folder(".", &error), PLIM_OK);
    assert_int_equal(file_exists(&there, "a", &error), PLIM_OK);
    assert_true(there);
    assert_int_equal(file_exists(&there, "a/b", &error), PLIM_OK);
    assert_false(there);
    assert_int_equal(file_rename("a.tmp", "b", &error), PLIM_IO);
    assert_string_equal(error.where, "b");
    assert_int_equal(file_make_folder("a/b", &error), PLIM_IO);
    assert_int_equal(file_make_folder("a", &error), PLIM_IO);
    assert_int_equal(file_remove("a", &error), PLIM_OK);
    assert_int_equal(file_remove("a", &error), PLIM_OK);
    assert_int_equal(file_sync_folder("a", &error), PLIM_IO);

    assert_int_equal(file_make_folder("x/y//z/", &error), PLIM_OK);
    assert_int_equal(file_make_folder("x/y/z", &error), PLIM_OK);
    assert_int_equal(file_make_folder("/", &error), PLIM_OK);
    assert_int_equal(file_make_folder("", &error), PLIM_IO);
    assert_int_equal(rmdir("x/y/z"), 0);
    assert_int_equal(rmdir("x/y"), 0);
    assert_int_equal(rmdir("x"), 0);
}

static void whole_files_are_loaded_up_to_a_cap(void **state)
{
    struct room *room = *state;
    plim_error error;
    struct file_content loaded = {0};
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 20000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        write_file(room, "a", room->data, sizes[i]);
        assert_int_equal(file_load(&loaded, room->budget, TAG_FORMATS, "a", sizes[i], &error), PLIM_OK);
        assert_int_equal(loaded.bytes, sizes[i]);
        assert_memory_equal(loaded.text, room->data, loaded.bytes);
        assert_int_equal(loaded.text[loaded.bytes], '\0');
        budget_give(room->budget, TAG_FORMATS, loaded.text, loaded.bytes + 1);
        loaded.text = NULL;
        if (sizes[i] > 0)
            assert_int_equal(file_load(&loaded, room->budget, TAG_FORMATS, "a", sizes[i] - 1, &error), PLIM_BAD_DATA);
        assert_null(loaded.text);
    }
    assert_int_equal(file_remove("a", &error), PLIM_OK);

    /* /proc announces 0 bytes and has some. */
    assert_int_equal(file_load(&loaded, room->budget, TAG_FORMATS, "/proc/self/status", 100000, &error), PLIM_OK);
    assert_non_null(strstr(loaded.text, "VmRSS"));
    assert_int_equal(strlen(loaded.text), loaded.bytes);
    budget_give(room->budget, TAG_FORMATS, loaded.text, loaded.bytes + 1);
    assert_int_equal(file_load(&loaded, room->budget, TAG_FORMATS, "/proc/self/status", 100, &error), PLIM_BAD_DATA);
    assert_int_equal(file_load(&loaded, room->budget, TAG_FORMATS, "missing", 100, &error), PLIM_IO);
}

static void short_transfers_are_continued(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    char back[DATA_BYTES];
    fault_arm(FAULT_READ | FAULT_WRITE, 1, true, 0);
    write_file(room, "a", room->data, DATA_BYTES);
    assert_int_equal(file_open(&file, room->budget, "a", FILE_READ, &error), PLIM_OK);
    assert_int_equal(file_read(file, 0, back, DATA_BYTES, &error), PLIM_OK);
    assert_true(fault_calls() > 20);
    assert_true(fault_disarm());
    assert_memory_equal(back, room->data, DATA_BYTES);
    file_close(file);
    assert_int_equal(file_remove("a", &error), PLIM_OK);
}

static void interrupted_calls_are_repeated(void **state)
{
    struct room *room = *state;
    plim_error error;
    struct file_content loaded = {0};
    write_file(room, "a", "text", 4);
    for (int64_t nth = 1; nth <= 2; nth++) {
        fault_arm(FAULT_OPEN | FAULT_READ, nth, false, EINTR);
        assert_int_equal(file_load(&loaded, room->budget, TAG_FORMATS, "a", 100, &error), PLIM_OK);
        assert_true(fault_disarm());
        assert_string_equal(loaded.text, "text");
        budget_give(room->budget, TAG_FORMATS, loaded.text, loaded.bytes + 1);
    }
    fault_arm(FAULT_READ, 1, true, EINTR); /* ends all the same */
    assert_int_equal(file_load(&loaded, room->budget, TAG_FORMATS, "a", 100, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_int_equal(file_remove("a", &error), PLIM_OK);
}

static void a_full_disk_has_a_hint(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    assert_int_equal(file_open(&file, room->budget, ".", FILE_SCRATCH, &error), PLIM_OK);
    fault_arm(FAULT_WRITE, 1, false, ENOSPC);
    assert_int_equal(file_write(file, 0, "x", 1, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_non_null(strstr(error.message, "No space left"));
    assert_non_null(strstr(error.hint, "space"));
    assert_int_equal(file_write(file, (uint64_t)INT64_MAX, "xy", 2, &error), PLIM_IO);
    file_close(file);
}

static void lines_go_to_a_descriptor_of_the_host(void **state)
{
    (void)state;
    int ends[2];
    char back[16] = "";
    assert_int_equal(pipe(ends), 0);
    fault_arm(FAULT_WRITE, 1, false, EINTR);
    assert_true(file_send_until(NULL, ends[1], "a line", 6));
    assert_true(fault_disarm());
    assert_int_equal(read(ends[0], back, sizeof back), 6);
    assert_string_equal(back, "a line");
    fault_arm(FAULT_WRITE, 1, false, EPIPE);
    assert_false(file_send_until(NULL, ends[1], "a line", 6));
    assert_true(fault_disarm());
    close(ends[0]);
    close(ends[1]);
    assert_false(file_send_until(NULL, ends[1], "a line", 6));
}

/* The signals that wait for this process or thread. */
static bool waits(int number)
{
    sigset_t waiting;
    sigpending(&waiting);
    return sigismember(&waiting, number);
}

/* With the usual action, which ends the process, nothing happens; and no signal is left for later. */
static void a_reader_that_is_gone_ends_nobody(void **state)
{
    (void)state;
    int ends[2];
    sigset_t before, after;
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    void (*action)(int) = signal(SIGPIPE, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_false(file_send_until(NULL, ends[1], "a line", 6));
    assert_int_equal(errno, EPIPE);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
    assert_false(waits(SIGPIPE));
    /* One that the host has blocked and not looked at yet is the host's. */
    sigset_t pipe_alone;
    sigemptyset(&pipe_alone);
    sigaddset(&pipe_alone, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_alone, NULL);
    raise(SIGPIPE);
    assert_false(file_send_until(NULL, ends[1], "a line", 6));
    assert_true(waits(SIGPIPE));
    signal(SIGPIPE, SIG_IGN); /* takes it away */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, action);
    close(ends[1]);
}

static void a_limit_on_sizes_ends_nobody(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    assert_int_equal(file_open(&file, room->budget, ".", FILE_SCRATCH, &error), PLIM_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    plim_status status = file_write(file, 0, room->data, DATA_BYTES, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, PLIM_IO);
    assert_false(waits(SIGXFSZ));
    file_close(file);
}

static void a_descriptor_that_does_not_wait_is_waited_for(void **state)
{
    (void)state;
    int ends[2];
    char block[4096] = "";
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], block, sizeof block) > 0)
        continue;
    pid_t reader = fork();
    if (reader == 0) {
        pid_t writer = getppid();
        await(process_sleeps, &writer);
        while (read(ends[0], block, sizeof block) == sizeof block)
            continue;
        _exit(memcmp(block, "a line", 6) == 0 ? 0 : 1);
    }
    assert_true(file_send_until(NULL, ends[1], "a line", 6));
    close(ends[1]);
    int status = -1;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    close(ends[0]);
}

/* Lines for a standard output that is closed must not go into a file. */
static void files_are_above_the_standard_streams(void **state)
{
    struct room *room = *state;
    struct file *file[3] = {0};
    plim_error error;
    int saved[3];
    write_file(room, "a", "text", 4);
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD, 10);
        close(i);
    }
    plim_status status[3] = {file_open(&file[0], room->budget, "a", FILE_READ, &error),
                             file_open(&file[1], room->budget, "b", FILE_CREATE, &error),
                             file_open(&file[2], room->budget, ".", FILE_SCRATCH, &error)};
    fault_arm(FAULT_OPEN, 1, false, EOPNOTSUPP); /* a scratch file with a name, for a moment */
    struct file *named = NULL;
    plim_status named_status = file_open(&named, room->budget, ".", FILE_SCRATCH, &error);
    fault_disarm();
    bool sent =
        file_send_until(NULL, 1, "a line", 6) || file_send_until(NULL, 2, "a line", 6) || write(0, "a line", 6) > 0;
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
        assert_int_equal(status[i], PLIM_OK);
        file_close(file[i]);
    }
    assert_int_equal(named_status, PLIM_OK);
    file_close(named);
    assert_false(sent);
    assert_int_equal(file_remove("a", &error), PLIM_OK);
    assert_int_equal(file_remove("b", &error), PLIM_OK);
}

static void a_lock_keeps_others_out(void **state)
{
    struct room *room = *state;
    struct file *first = NULL, *second = NULL;
    plim_error error;
    bool there = true;
    assert_int_equal(file_open(&first, room->budget, "lock", FILE_LOCK, &error), PLIM_OK);
    assert_int_equal(file_open(&second, room->budget, "lock", FILE_LOCK, &error), PLIM_IO);
    assert_non_null(strstr(error.message, "in use"));
    /* Another one has removed the file and locked one of the same name: ours is worth nothing, theirs is. */
    assert_int_equal(unlink("lock"), 0);
    assert_int_equal(file_open(&second, room->budget, "lock", FILE_LOCK, &error), PLIM_OK);
    file_close(second);
    file_close(first);
    assert_int_equal(file_exists(&there, "lock", &error), PLIM_OK);
    assert_false(there);
    assert_int_equal(file_open(&first, room->budget, "none/lock", FILE_LOCK, &error), PLIM_IO);
    for (int nth = 1; nth <= 3; nth++) { /* open, lock, look */
        fault_arm(FAULT_OPEN | FAULT_STAT, nth, false, EIO);
        assert_int_equal(file_open(&first, room->budget, "lock", FILE_LOCK, &error), PLIM_IO);
        assert_true(fault_disarm());
    }
    fault_arm(FAULT_OPEN, 2, false, EINTR);
    assert_int_equal(file_open(&first, room->budget, "lock", FILE_LOCK, &error), PLIM_OK);
    assert_true(fault_disarm());
    file_close(first);
    fault_arm(FAULT_OPEN, 2, false, ENOLCK); /* a file system without locks */
    assert_int_equal(file_open(&first, room->budget, "lock", FILE_LOCK, &error), PLIM_OK);
    assert_true(fault_disarm());
    file_close(first);
}

/* What a link leads to is somebody else's: it is neither opened nor made nor locked, and the link stays. */
static void a_lock_is_no_link(void **state)
{
    struct room *room = *state;
    struct file *lock = NULL;
    struct stat facts;
    plim_error error = {0};
    write_file(room, "other", "text", 4);
    static const char *const targets[] = {"other", "none"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(symlink(targets[i], "lock"), 0);
        assert_int_equal(file_open(&lock, room->budget, "lock", FILE_LOCK, &error), PLIM_IO);
        assert_non_null(strstr(error.message, "symbolic link"));
        assert_non_null(strstr(error.hint, "remove it"));
        assert_int_equal(lstat("lock", &facts), 0);
        assert_true(S_ISLNK(facts.st_mode));
        assert_int_equal(unlink("lock"), 0);
    }
    assert_int_not_equal(stat("none", &facts), 0);
    assert_int_equal(unlink("other"), 0);
}

/* The same of every other file that is made: a link at its name is replaced, what it leads to stays as it is. */
static void no_file_is_made_through_a_link(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    struct stat facts;
    write_file(room, "other", "text", 4);
    assert_int_equal(symlink("other", "made"), 0);
    assert_int_equal(file_open(&file, room->budget, "made", FILE_CREATE, NULL), PLIM_OK);
    assert_int_equal(file_write(file, 0, "longer text", 11, NULL), PLIM_OK);
    file_close(file);
    assert_int_equal(stat("other", &facts), 0);
    assert_int_equal(facts.st_size, 4);
    assert_int_equal(lstat("made", &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
    assert_int_equal(unlink("made"), 0);
    assert_int_equal(unlink("other"), 0);
}

static void room_is_proved(void **state)
{
    struct room *room = *state;
    plim_error error;
    uint64_t bytes = 1;
    assert_int_equal(file_prove_room(room->budget, ".", 0, &error), PLIM_OK);
    assert_int_equal(file_prove_room(room->budget, ".", 100000, &error), PLIM_OK);
    assert_int_equal(file_prove_room(room->budget, "none", 1, &error), PLIM_IO);
    assert_int_equal(file_prove_room(room->budget, ".", UINT64_MAX, &error), PLIM_IO);
    fault_arm(FAULT_WRITE, 1, false, ENOSPC);
    assert_int_equal(file_prove_room(room->budget, ".", 3 << 20, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_non_null(strstr(error.message, "3.0 MiB"));
    assert_non_null(strstr(error.hint, "space"));
    assert_int_equal(count_entries("."), 0);
    assert_int_equal(file_size_at(&bytes, "none", &error), PLIM_OK);
    assert_int_equal(bytes, 0);
    write_file(room, "a", "text", 4);
    assert_int_equal(file_size_at(&bytes, "a", &error), PLIM_OK);
    assert_int_equal(bytes, 4);
    assert_int_equal(file_check_target("a", &error), PLIM_OK);
    assert_int_equal(file_check_target("none", &error), PLIM_OK);
    assert_int_equal(file_check_target(".", &error), PLIM_IO);
    assert_int_equal(file_remove("a", &error), PLIM_OK);
}

/* A later fsync may say yes to data that is gone: ours must not. */
static void a_failed_sync_is_never_taken_back(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    assert_int_equal(file_open(&file, room->budget, ".", FILE_SCRATCH, &error), PLIM_OK);
    assert_int_equal(file_write(file, 0, "x", 1, &error), PLIM_OK);
    fault_arm(FAULT_SYNC, 1, false, EIO);
    assert_int_equal(file_sync(file, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_int_equal(file_sync(file, &error), PLIM_IO);
    assert_non_null(strstr(error.message, "Input/output error"));
    file_close(file);
}

static void memory_is_told_from_disk(void **state)
{
    struct room *room = *state;
    struct file *file = NULL;
    plim_error error;
    assert_int_equal(file_open(&file, room->budget, "/proc/self/status", FILE_READ, &error), PLIM_OK);
    assert_false(file_in_memory(file));
    file_close(file);
    if (access("/dev/shm", W_OK) != 0)
        return;
    assert_int_equal(file_open(&file, room->budget, "/dev/shm", FILE_SCRATCH, &error), PLIM_OK);
    assert_true(file_in_memory(file));
    file_close(file);
}

/* Saves a file the way a checkpoint is saved, and loads it again. */
static plim_status save_and_load(struct room *room, plim_error *error)
{
    struct file *file = NULL;
    struct file_content loaded = {0};
    bool there = false;
    TRY(file_make_folder("c", error));
    TRY(file_open(&file, room->budget, "c/a.tmp", FILE_CREATE, error));
    plim_status status = file_write(file, 0, room->data, 5000, error);
    if (!status)
        status = file_sync(file, error);
    file_close(file);
    TRY(status);
    TRY(file_rename("c/a.tmp", "c/a", error));
    TRY(file_sync_folder("c", error));
    TRY(file_exists(&there, "c/a", error));
    assert_true(there);
    TRY(file_load(&loaded, room->budget, TAG_CHECKPOINT, "c/a", 5000, error));
    assert_int_equal(loaded.bytes, 5000);
    assert_memory_equal(loaded.text, room->data, loaded.bytes);
    budget_give(room->budget, TAG_CHECKPOINT, loaded.text, loaded.bytes + 1);
    return file_remove("c/a", error);
}

/* Fails call 1, 2, ... of all sites until a run has no call left to fail. */
static int sweep(struct room *room, unsigned sites, bool forever, int error_number)
{
    for (int nth = 1;; nth++) {
        plim_error error = {0};
        fault_arm(sites, nth, forever, error_number);
        plim_status status = save_and_load(room, &error);
        bool reached = fault_disarm();
        assert_int_equal(status != PLIM_OK, reached);
        assert_int_equal(status, error.code);
        if (reached)
            assert_true(status == PLIM_IO || status == PLIM_NO_MEMORY);
        assert_int_equal(budget_usage(room->budget).now, room->own);
        assert_int_equal(count_entries("/proc/self/fd"), room->descriptors);
        unlink("c/a");
        unlink("c/a.tmp");
        rmdir("c");
        if (!reached)
            return nth - 1;
    }
}

static void every_call_may_fail(void **state)
{
    struct room *room = *state;
    static const unsigned sites[] = {FAULT_ALLOCATE, FAULT_OPEN,   FAULT_READ, FAULT_WRITE,
                                     FAULT_SYNC,     FAULT_RENAME, FAULT_STAT};
    int total = 0;
    for (size_t i = 0; i < COUNT(sites); i++) {
        int once = sweep(room, sites[i], false, EIO);
        assert_true(once >= 1);
        assert_int_equal(sweep(room, sites[i], true, EIO), once);
        total += once;
    }
    assert_int_equal(sweep(room, FAULT_ANY, false, ENOSPC), total);
    assert_int_equal(sweep(room, FAULT_ANY, true, EMFILE), total);
}

int main(void)
{
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        FILE_TEST(writing_does_not_follow_links),
        FILE_TEST(what_is_written_is_read),
        FILE_TEST(the_end_of_the_file_is_named),
        FILE_TEST(opening_says_what_is_wrong),
        FILE_TEST(scratch_has_no_name),
        FILE_TEST(names_come_and_go),
        FILE_TEST(whole_files_are_loaded_up_to_a_cap),
        FILE_TEST(short_transfers_are_continued),
        FILE_TEST(interrupted_calls_are_repeated),
        FILE_TEST(a_full_disk_has_a_hint),
        FILE_TEST(lines_go_to_a_descriptor_of_the_host),
        FILE_TEST(a_reader_that_is_gone_ends_nobody),
        FILE_TEST(a_limit_on_sizes_ends_nobody),
        FILE_TEST(a_descriptor_that_does_not_wait_is_waited_for),
        FILE_TEST(files_are_above_the_standard_streams),
        FILE_TEST(a_lock_keeps_others_out),
        FILE_TEST(a_lock_is_no_link),
        FILE_TEST(no_file_is_made_through_a_link),
        FILE_TEST(room_is_proved),
        FILE_TEST(a_failed_sync_is_never_taken_back),
        FILE_TEST(memory_is_told_from_disk),
        FILE_TEST(every_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
