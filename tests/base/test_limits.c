/* test_limits.c - machines laid out in a folder: which limit is the least,
   and how much it leaves. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/memory/limits.h"
#include "base/numbers/count.h"

#include <cmocka.h> /* last: it has a macro fail() */

#define MIB       (1024ull * 1024)
#define NO_RLIMIT UINT64_MAX

/* A file of a machine. */
struct entry {
    const char *path, *text;
};

struct layout {
    const char *what;
    struct entry files[12];
    uint64_t rlimit_as;
    uint64_t headroom; /* before the margin; 0 with source NULL: nothing found */
    const char *source, *place;
};

#define MEMINFO(kib)                                                                                                   \
    {                                                                                                                  \
        "/proc/meminfo", "MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable:   " kib "\nSwapFree: 8388608 kB\n"       \
    }
#define GIB_8     "8388608 kB"
#define MOUNT_V2  "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1  "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
#define MOUNT_CPU "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
#define V1_NONE   "9223372036854771712\n"

static const struct layout layouts[] = {
    {"no cgroups: MemAvailable", {MEMINFO("1024 kB")}, NO_RLIMIT, 1 * MIB, "available", "/proc/meminfo: MemAvailable"},
    {"an old kernel: free and cached pages, less tmpfs; swap does not count",
     {{"/proc/meminfo", "MemTotal: 8000 kB\nMemFree: 2048 kB\nBuffers: 100 kB\nCached: 4096 kB\nSwapCached: 7 kB\n"
                        "Shmem: 1024 kB\nSwapFree: 8388608 kB\n"}},
     NO_RLIMIT,
     5 * MIB,
     "available",
     "/proc/meminfo: MemFree and Cached"},
    {"address space less what is mapped and not in use",
     {MEMINFO(GIB_8), {"/proc/self/status", "Name:\tplim\nVmPeak:\t 9999 kB\nVmSize:\t  2048 kB\nVmRSS: 1024 kB\n"}},
     100 * MIB,
     99 * MIB,
     "rlimit",
     "RLIMIT_AS"},
    {"MemAvailable and what we hold ourselves; our file pages are available already",
     {MEMINFO("1024 kB"),
      {"/proc/self/status", "VmRSS: 5120 kB\nRssAnon: 2048 kB\nRssFile: 2048 kB\nRssShmem: 1024 kB\n"}},
     NO_RLIMIT,
     4 * MIB,
     "available",
     "/proc/meminfo: MemAvailable"},
    {"version 2: what we hold is ours, what others hold is not",
     {MEMINFO(GIB_8),
      {"/proc/self/status", "VmRSS: 9216 kB\nRssAnon: 8192 kB\nRssFile: 1024 kB\n"},
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/a/memory.max", "67108864\n"},
      {"/sys/fs/cgroup/a/memory.current", "20971520\n"},
      {"/sys/fs/cgroup/a/memory.stat", "inactive_file 4194304\nactive_file 0\n"}},
     NO_RLIMIT,
     56 * MIB,
     "cgroup",
     "/sys/fs/cgroup/a/memory.max"},
    {"version 1: a usage that lags behind ours gives no more than the limit",
     {MEMINFO(GIB_8),
      {"/proc/self/status", "RssAnon: 8192 kB\n"},
      {"/proc/self/cgroup", "5:memory:/a\n"},
      {"/proc/self/mountinfo", MOUNT_V1},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n"},
      {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "4194304\n"}},
     NO_RLIMIT,
     64 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"},
    {"version 2 over its limit, but most of it is ours",
     {MEMINFO(GIB_8),
      {"/proc/self/status", "RssAnon: 4096 kB\n"},
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/a/memory.max", "4194304\n"},
      {"/sys/fs/cgroup/a/memory.current", "5242880\n"}},
     NO_RLIMIT,
     3 * MIB,
     "cgroup",
     "/sys/fs/cgroup/a/memory.max"},
    {"address space is used up",
     {MEMINFO(GIB_8), {"/proc/self/status", "VmSize:\t  2048 kB\n"}},
     1 * MIB,
     0,
     "rlimit",
     "RLIMIT_AS"},
    {"version 2: usage less file pages; shmem stays",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "0::/user.slice/a.scope\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/user.slice/a.scope/memory.max", "67108864\n"},
      {"/sys/fs/cgroup/user.slice/a.scope/memory.current", "41943040\n"},
      {"/sys/fs/cgroup/user.slice/a.scope/memory.swap.max", "max\n"},
      {"/sys/fs/cgroup/user.slice/a.scope/memory.stat",
       "anon 1000\nfile 33554432\nshmem 4194304\ninactive_anon 5\nactive_anon 6\n"
       "inactive_file 20971520\nactive_file 8388608\n"}},
     NO_RLIMIT,
     52 * MIB,
     "cgroup",
     "/sys/fs/cgroup/user.slice/a.scope/memory.max"},
    {"version 2: max all the way",
     {MEMINFO("4096 kB"),
      {"/proc/self/cgroup", "0::/a/b\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
      {"/sys/fs/cgroup/a/b/memory.current", "1048576\n"},
      {"/sys/fs/cgroup/a/memory.max", "max\n"}},
     NO_RLIMIT,
     4 * MIB,
     "available",
     "/proc/meminfo: MemAvailable"},
    {"version 2, nested: the parent has less left, though its limit is larger",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "0::/a/b/c\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/a/b/c/memory.max", "max\n"},
      {"/sys/fs/cgroup/a/b/memory.max", "104857600\n"},
      {"/sys/fs/cgroup/a/b/memory.current", "10485760\n"},
      {"/sys/fs/cgroup/a/memory.max", "209715200\n"},
      {"/sys/fs/cgroup/a/memory.current", "157286400\n"},
      {"/sys/fs/cgroup/a/memory.stat", "inactive_file 0\nactive_file 10485760\n"}},
     NO_RLIMIT,
     60 * MIB,
     "cgroup",
     "/sys/fs/cgroup/a/memory.max"},
    {"version 2 over its limit: nothing is left",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/a/memory.max", "1048576\n"},
      {"/sys/fs/cgroup/a/memory.current", "2097152\n"}},
     NO_RLIMIT,
     0,
     "cgroup",
     "/sys/fs/cgroup/a/memory.max"},
    {"a container with a cgroup namespace: the root of the mount is ours",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "0::/\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/memory.max", "134217728\n"},
      {"/sys/fs/cgroup/memory.current", "33554432\n"}},
     NO_RLIMIT,
     96 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory.max"},
    {"a container that sees the host's path but not the folder",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "0::/kubepods/pod1/c1\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/memory.max", "134217728\n"},
      {"/sys/fs/cgroup/memory.current", "1048576\n"}},
     NO_RLIMIT,
     127 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory.max"},
    {"a process that was moved out of its namespace",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "0::/../other\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/other/memory.max", "1\n"},
      {"/sys/fs/cgroup/memory.max", "2097152\n"}},
     NO_RLIMIT,
     2 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory.max"},
    {"version 1 on a plain machine: the huge number is no limit",
     {MEMINFO("8192 kB"),
      {"/proc/self/cgroup", "5:memory:/\n4:cpu:/\n"},
      {"/proc/self/mountinfo", MOUNT_CPU MOUNT_V1},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", V1_NONE},
      {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "999999999\n"},
      {"/sys/fs/cgroup/memory/memory.stat", "cache 5\nhierarchical_memory_limit 9223372036854771712\n"}},
     NO_RLIMIT,
     8 * MIB,
     "available",
     "/proc/meminfo: MemAvailable"},
    {"version 1: usage with children less their file pages; memsw does not count",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "9:cpu,cpuacct:/x\n5:hugetlb,memory:/job/7\n"},
      {"/proc/self/mountinfo", MOUNT_CPU MOUNT_V1},
      {"/sys/fs/cgroup/memory/job/7/memory.limit_in_bytes", "50331648\n"},
      {"/sys/fs/cgroup/memory/job/7/memory.memsw.limit_in_bytes", "500000000\n"},
      {"/sys/fs/cgroup/memory/job/7/memory.usage_in_bytes", "20971520\n"},
      {"/sys/fs/cgroup/memory/job/7/memory.stat", "inactive_file 1\nactive_file 1\nhierarchical_memory_limit 50331648\n"
                                                  "total_inactive_file 10485760\ntotal_active_file 2097152\n"},
      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", V1_NONE},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", V1_NONE}},
     NO_RLIMIT,
     40 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory/job/7/memory.limit_in_bytes"},
    {"version 1 in a container: the mount's root is our path",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "5:memory:/docker/abc\n0::/docker/abc\n"},
      {"/proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432\n"},
      {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n"}},
     NO_RLIMIT,
     31 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
    {"version 1: a limit above what we can see",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "5:memory:/\n"},
      {"/proc/self/mountinfo", MOUNT_V1},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", V1_NONE},
      {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "4194304\n"},
      {"/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 16777216\ntotal_inactive_file 1048576\n"}},
     NO_RLIMIT,
     13 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory/memory.stat"},
    {"both versions: memory is version 1's, the unified tree has no memory files",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "9:name=systemd:/\n4:memory:/api/09\n0::/api/09\n"},
      {"/proc/self/mountinfo",
       MOUNT_CPU MOUNT_V1 "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/unified/cgroup.procs", "1\n"},
      {"/sys/fs/cgroup/memory/api/09/memory.limit_in_bytes", "268435456\n"},
      {"/sys/fs/cgroup/memory/api/09/memory.usage_in_bytes", "0\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", V1_NONE}},
     NO_RLIMIT,
     256 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory/api/09/memory.limit_in_bytes"},
    {"several mounts of one tree: the one that shows our path; blanks in its name",
     {MEMINFO(GIB_8),
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", "29 23 0:26 /b /mnt/b rw - cgroup2 cgroup2 rw\n"
                               "30 23 0:26 / /sys/fs/c\\040g rw - cgroup2 cgroup2 rw\n"},
      {"/mnt/b/memory.max", "4096\n"},
      {"/sys/fs/c g/a/memory.max", "3145728\n"}},
     NO_RLIMIT,
     3 * MIB,
     "cgroup",
     "/sys/fs/c g/a/memory.max"},
    {"the least of three",
     {MEMINFO("6144 kB"),
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/proc/self/status", "VmSize: 1024 kB\n"},
      {"/sys/fs/cgroup/a/memory.max", "8388608\n"},
      {"/sys/fs/cgroup/a/memory.current", "1048576\n"}},
     6 * MIB,
     5 * MIB,
     "rlimit",
     "RLIMIT_AS"},
    {"files full of nonsense are no limits",
     {MEMINFO("1024 kB"),
      {"/proc/self/cgroup", "\n::\n0\n0:\n0::\n:memory:/a\nmemory\n0::/a"},
      {"/proc/self/mountinfo", "\n1 2 3\n30 23 0:26 / /sys/fs/cgroup rw - \n - - - - - - - -\n" MOUNT_V2},
      {"/sys/fs/cgroup/a/memory.max", "lots\n"},
      {"/sys/fs/cgroup/memory.max", ""},
      {"/sys/fs/cgroup/memory.current", "-5"}},
     NO_RLIMIT,
     1 * MIB,
     "available",
     "/proc/meminfo: MemAvailable"},
    {"numbers too large for anything",
     {{"/proc/meminfo", "MemAvailable: 99999999999999999999999999 kB\n"},
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/a/memory.max", "99999999999999999999999999999\n"},
      {"/sys/fs/cgroup/memory.max", "1048576\n"},
      {"/sys/fs/cgroup/memory.stat", "inactive_file 99999999999999999999\nactive_file 99999999999999999999\n"}},
     NO_RLIMIT,
     1 * MIB,
     "cgroup",
     "/sys/fs/cgroup/memory.max"},
    {"nothing at all", {{"/proc/version", "x"}}, NO_RLIMIT, 0, NULL, NULL},
};

struct fixture {
    struct budget *budget;
    char root[64];
};

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    if (budget_make(&fixture.budget, BUDGET_UNLIMITED, NULL) != PLIM_OK)
        return -1;
    snprintf(fixture.root, sizeof fixture.root, "/tmp/plim-limits-XXXXXX");
    *state = &fixture;
    return mkdtemp(fixture.root) == NULL;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    budget_free(fixture->budget);
    return nftw(fixture->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void write_entry(const char *root, const struct entry *entry)
{
    char path[512];
    int length = snprintf(path, sizeof path, "%s%s", root, entry->path);
    assert_true(length < (int)sizeof path);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(entry->text, file);
    assert_int_equal(fclose(file), 0);
}

static void lay_out(struct fixture *fixture, const struct layout *layout, char root[80], int number)
{
    snprintf(root, 80, "%s/%d", fixture->root, number);
    assert_int_equal(mkdir(root, 0777), 0);
    for (const struct entry *entry = layout->files; entry->path; entry++)
        write_entry(root, entry);
}

static void every_layout(void **state)
{
    struct fixture *fixture = *state;
    uint64_t held = budget_usage(fixture->budget).now;
    for (size_t i = 0; i < COUNT(layouts); i++) {
        const struct layout *layout = &layouts[i];
        char root[80];
        struct limits limits = {.bytes = 77};
        plim_error error = {0};
        lay_out(fixture, layout, root, (int)i);
        const struct limits_input input = {.root = root, .rlimit_as = layout->rlimit_as};
        plim_status status = limits_find(&limits, &input, fixture->budget, &error);
        if (status != (layout->source ? PLIM_OK : PLIM_IO))
            fail_msg("%s: %s %s", layout->what, plim_status_name(status), error.message);
        if (status != PLIM_OK) {
            assert_int_equal(limits.bytes, 77);
            assert_true(error.hint[0] != 0);
            continue;
        }
        if (limits.bytes != layout->headroom - layout->headroom / 16 || strcmp(limits.source, layout->source) != 0 ||
            strcmp(limits.place, layout->place) != 0)
            fail_msg("%s: %llu, %s, %s", layout->what, (unsigned long long)limits.bytes, limits.source, limits.place);
    }
    assert_int_equal(budget_usage(fixture->budget).now, held);
    print_message("%zu layouts\n", sizeof layouts / sizeof *layouts);
}

/* Every allocation and file call fails once: an error, or nothing overlooked. */
static void faults_are_errors(void **state)
{
    struct fixture *fixture = *state;
    const struct layout *layout = &layouts[6];
    char root[80];
    lay_out(fixture, layout, root, 1000);
    const struct limits_input input = {.root = root, .rlimit_as = layout->rlimit_as};
    uint64_t held = budget_usage(fixture->budget).now;
    for (int64_t nth = 1; nth < 1000; nth++) {
        struct limits limits;
        fault_arm(FAULT_ANY, nth, false, EIO);
        plim_status status = limits_find(&limits, &input, fixture->budget, NULL);
        bool reached = fault_disarm();
        assert_int_equal(budget_usage(fixture->budget).now, held);
        if (status == PLIM_OK)
            assert_int_equal(limits.bytes, layout->headroom - layout->headroom / 16);
        if (!reached) {
            assert_int_equal(status, PLIM_OK);
            assert_true(nth > 20);
            return;
        }
    }
    fail_msg("the sweep did not end");
}

static void this_machine_has_memory(void **state)
{
    struct fixture *fixture = *state;
    struct limits limits;
    plim_error error = {0};
    if (limits_here(&limits, fixture->budget, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    assert_true(limits.bytes > MIB);
    print_message("auto here: %llu MiB, %s, %s\n", (unsigned long long)(limits.bytes / MIB), limits.source,
                  limits.place);
}

static void amounts_are_parsed(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes, automatic, most;
    const char *source;
    char place[256];
    assert_int_equal(limits_parse(&bytes, &source, place, "48MiB", fixture->budget, NULL), PLIM_OK);
    assert_int_equal(bytes, 48 * MIB);
    assert_string_equal(source, "stated");
    assert_int_equal(limits_parse(&bytes, &source, place, "65536", fixture->budget, NULL), PLIM_OK);
    assert_int_equal(limits_parse(&bytes, &source, place, "16B", fixture->budget, NULL), PLIM_OK);
    assert_int_equal(limits_parse(&automatic, &source, place, NULL, fixture->budget, NULL), PLIM_OK);
    assert_string_not_equal(source, "stated");
    assert_true(place[0] != 0);
    assert_int_equal(limits_parse(&bytes, &source, place, "auto", fixture->budget, NULL), PLIM_OK);
    assert_int_equal(limits_parse(&most, &source, place, "100%", fixture->budget, NULL), PLIM_OK);
    assert_int_equal(limits_parse(&bytes, &source, place, "50%", fixture->budget, NULL), PLIM_OK);
    /* the machine's figure moves while the test runs */
    assert_true(bytes > most / 2 - most / 10 && bytes < most / 2 + most / 10);
    assert_true(automatic > bytes && automatic < most + most / 10);
    static const char *const bad[] = {"",     "0",  "0%",   "101%", "80 %",  "%",  "80%x",
                                      "lots", "-1", "AUTO", "0MiB", "48XiB", "16", "65535"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        plim_error error = {0};
        if (limits_parse(&bytes, &source, place, bad[i], fixture->budget, &error) != PLIM_USAGE)
            fail_msg("accepted: '%s'", bad[i]);
        assert_true(error.hint[0] != 0);
    }
}

/* 32 MiB that are touched are seen, and their peak stays. */
static void usage_follows_the_kernel(void **state)
{
    (void)state;
    struct process_usage before, with, after;
    const size_t bytes = 32 * MIB;
    assert_true(process_usage_now(&before));
    assert_true(before.rss > 0 && before.peak_rss >= before.rss && before.page_tables > 0);
    /* Touched by the kernel: where a sanitizer watches, our own writes would touch its shadow too. */
    char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_true(block != MAP_FAILED);
    assert_true(process_usage_now(&with));
    munmap(block, bytes);
    assert_true(process_usage_now(&after));
    assert_true(with.rss >= before.rss + bytes - MIB && with.rss <= before.rss + bytes + 8 * MIB);
    assert_true(after.rss < before.rss + 8 * MIB);
    assert_true(after.peak_rss >= with.rss - MIB);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_layout),
        TEST(faults_are_errors),
        TEST(this_machine_has_memory),
        TEST(amounts_are_parsed),
        cmocka_unit_test(usage_follows_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
