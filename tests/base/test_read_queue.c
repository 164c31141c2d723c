/* test_read_queue.c - reads past the page cache: odd places, ends of files, refusals, faults. */
#include <errno.h>
#include <fcntl.h>

#include "base/files/file.h"
#include "base/files/read_queue.h"
#include "base/numbers/count.h"
#include "format_files.h"

#define FILE_BYTES 300001

static uint8_t bytes_of_file[FILE_BYTES];
static _Alignas(4096) uint8_t room[READ_QUEUE_DEPTH + 1][3 * 4096];
static _Alignas(4096) uint8_t all[FILE_BYTES + 2 * 4096];

/* Written, and gone from the page cache. */
static struct file *open_cold(struct budget *budget, const char *name)
{
    struct file *file;
    for (int i = 0; i < FILE_BYTES; i++)
        bytes_of_file[i] = (uint8_t)(i * 7 + i / 253);
    const char *path = write_file(name, bytes_of_file, FILE_BYTES);
    int descriptor = open(path, O_RDWR);
    assert_true(descriptor >= 0 && fsync(descriptor) == 0);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
    assert_int_equal(file_open(&file, budget, path, FILE_READ, NULL), PLIM_OK);
    return file;
}

static void close_file(struct file *file)
{
    unlink(file_path(file));
    file_close(file);
}

/* Every range of the file is where it was promised to be, the last byte included. */
static void odd_ranges(void **state)
{
    static const struct {
        uint64_t offset, bytes;
    } ranges[] = {{0, 1},
                  {0, 4096},
                  {1, 4095},
                  {4095, 2},
                  {4097, 8000},
                  {128, FILE_BYTES - 128},
                  {FILE_BYTES - 1, 1},
                  {299008, FILE_BYTES - 299008}};
    struct budget *budget = new_budget();
    (void)state;
    for (size_t r = 0; r < COUNT(ranges); r++) {
        struct read_queue queue;
        struct read_done done[READ_QUEUE_DEPTH];
        struct file *file = open_cold(budget, "cold");
        assert_false(file_in_memory(file)); /* the tests run on a disk */
        read_queue_init(&queue);
        read_queue_admit(&queue, file);
        memset(all, 0xee, sizeof all);
        assert_int_equal(read_queue_add(&queue, file, ranges[r].offset, all, ranges[r].bytes, r + 5), READ_TAKEN);
        assert_int_equal(read_queue_wait(done, &queue), 1);
        assert_true(done[0].whole && done[0].tag == r + 5);
        assert_memory_equal(all + ranges[r].offset % 4096, bytes_of_file + ranges[r].offset, ranges[r].bytes);
        uint64_t room_bytes = read_queue_room(ranges[r].bytes);
        assert_true(room_bytes >= sizeof all || all[room_bytes] == 0xee);
        assert_true(read_queue_bytes(&queue) >= ranges[r].bytes);
        read_queue_release(&queue);
        close_file(file);
    }
    end_budget(budget);
}

/* Behind the end there is nothing; a file that was cut meanwhile is not whole. */
static void ends_of_files(void **state)
{
    struct budget *budget = new_budget();
    struct file *file = open_cold(budget, "cut");
    struct read_queue queue;
    struct read_done done[READ_QUEUE_DEPTH];
    (void)state;
    read_queue_init(&queue);
    read_queue_admit(&queue, file);
    assert_int_equal(read_queue_add(&queue, file, FILE_BYTES - 10, room[0], 11, 1), READ_TAKEN);
    assert_int_equal(read_queue_wait(done, &queue), 1);
    assert_false(done[0].whole);
    assert_int_equal(truncate(file_path(file), 5000), 0);
    assert_int_equal(read_queue_add(&queue, file, 4090, room[0], 1000, 2), READ_TAKEN);
    assert_int_equal(read_queue_wait(done, &queue), 1);
    assert_false(done[0].whole);
    assert_int_equal(read_queue_add(&queue, file, INT64_MAX - 5, room[0], 10, 3), READ_DECLINED);
    read_queue_release(&queue);
    close_file(file);
    end_budget(budget);
}

/* What is in the page cache is not read past it; a queue takes so many and no more, and waits for them at the end. */
static void what_is_declined(void **state)
{
    struct budget *budget = new_budget();
    struct file *file = open_cold(budget, "cached"), *stranger = open_cold(budget, "stranger");
    struct read_queue queue;
    (void)state;
    read_queue_init(&queue);
    read_queue_admit(&queue, file);
    for (int i = 0; i < READ_QUEUE_DEPTH; i++)
        assert_int_equal(read_queue_add(&queue, file, (uint64_t)i * 4096 + 3, room[i], 5000, (uint64_t)i), READ_TAKEN);
    assert_int_equal(read_queue_add(&queue, file, 5, room[READ_QUEUE_DEPTH], 5, 0), READ_DECLINED);
    assert_int_equal(read_queue_add(&queue, stranger, 5, room[READ_QUEUE_DEPTH], 5, 0), READ_DECLINED);
    assert_int_equal(file_read(file, 0, all, FILE_BYTES, NULL), PLIM_OK);
    assert_int_equal(read_queue_add(&queue, file, 5, room[READ_QUEUE_DEPTH], 5, 0), READ_CACHED);
    read_queue_release(&queue);
    for (int i = 0; i < READ_QUEUE_DEPTH; i++)
        assert_memory_equal(room[i] + 3, bytes_of_file + i * 4096 + 3, 5000);
    close_file(file);
    close_file(stranger);
    end_budget(budget);
}

/* A file system in memory, a queue that cannot be had, a file that cannot be opened twice. */
static void what_is_refused(void **state)
{
    struct budget *budget = new_budget();
    struct file *file = open_cold(budget, "refused"), *memory;
    struct read_queue queue;
    char path[] = "/dev/shm/test_read_queue_XXXXXX";
    (void)state;
    for (int nth = 1; nth <= 2; nth++) {
        fault_arm(FAULT_OPEN, nth, false, EMFILE);
        read_queue_init(&queue);
        read_queue_admit(&queue, file);
        assert_true(fault_disarm());
        assert_int_equal(read_queue_add(&queue, file, 5, room[0], 5, 0), READ_DECLINED);
        read_queue_release(&queue);
    }
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0 && write(descriptor, bytes_of_file, 5000) == 5000);
    close(descriptor);
    assert_int_equal(file_open(&memory, budget, path, FILE_READ, NULL), PLIM_OK);
    read_queue_init(&queue);
    read_queue_admit(&queue, memory);
    assert_int_equal(read_queue_add(&queue, memory, 5, room[0], 5, 0), READ_DECLINED);
    read_queue_release(&queue);
    close_file(memory);
    close_file(file);
    end_budget(budget);
}

/* A read that fails is declined, one that is cut short is not whole: file_read is the one to say why. */
static void faults(void **state)
{
    struct budget *budget = new_budget();
    struct file *file = open_cold(budget, "faults");
    struct read_queue queue;
    struct read_done done[READ_QUEUE_DEPTH];
    (void)state;
    read_queue_init(&queue);
    read_queue_admit(&queue, file);
    fault_arm(FAULT_READ, 1, true, EIO);
    assert_int_equal(read_queue_add(&queue, file, 5, room[0], 9000, 0), READ_DECLINED);
    assert_true(fault_disarm());
    fault_arm(FAULT_READ, 1, false, 0);
    assert_int_equal(read_queue_add(&queue, file, 5, room[0], 9000, 0), READ_TAKEN);
    assert_true(fault_disarm());
    assert_int_equal(read_queue_wait(done, &queue), 1);
    assert_false(done[0].whole);
    assert_int_equal(read_queue_add(&queue, file, 5, room[0], 9000, 0), READ_TAKEN);
    assert_int_equal(read_queue_wait(done, &queue), 1);
    assert_true(done[0].whole);
    read_queue_release(&queue);
    close_file(file);
    end_budget(budget);
}

/* A disk that is slow again and again is left to the page cache, for good; one that is slow now and then is not. */
static void slow_disks(void **state)
{
    int slow = 0;
    (void)state;
    for (int i = 0; i < 1000; i++)
        slow = read_queue_judge(slow, 1 << 20, i % 2 ? 1000000000 : 100000);
    assert_true(slow < READ_QUEUE_SLOW);
    for (int i = 0; i < READ_QUEUE_SLOW; i++)
        slow = read_queue_judge(slow, 1 << 20, 100000000);
    assert_true(slow >= READ_QUEUE_SLOW);
    for (int i = 0; i < 1000; i++)
        slow = read_queue_judge(slow, 1 << 30, 1000);
    assert_true(slow >= READ_QUEUE_SLOW);
    assert_int_equal(read_queue_judge(0, (uint64_t)1 << 30, 500000000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_ranges),      cmocka_unit_test(ends_of_files), cmocka_unit_test(what_is_declined),
        cmocka_unit_test(what_is_refused), cmocka_unit_test(faults),        cmocka_unit_test(slow_disks),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
