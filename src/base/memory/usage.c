/* usage.c - how much memory this process uses, as the system counts it.

   It may be asked inside of a training step, so it allocates nothing: /proc is
   read here with open and read and a buffer on the stack. This is the one
   exception to "all I/O is in file.c", whose files are taken from the budget.
   Nothing here can fail a run, so there is no fault to inject either. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory/limits.h"

/* Up to capacity - 1 bytes and a NUL; false when it cannot be read. */
static bool read_proc(char *buffer, size_t capacity, const char *path)
{
    size_t length = 0;
    ssize_t got = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    while (length < capacity - 1 && (got = read(file, buffer + length, capacity - 1 - length)) > 0)
        length += (size_t)got;
    close(file);
    buffer[length] = 0;
    return got >= 0 && length > 0;
}

/* "Rss:   1700 kB" into bytes; 0 when the line is missing. */
static uint64_t find_kib(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    return line != NULL ? strtoull(line + strlen(key), NULL, 10) * 1024 : 0;
}

/* The second number of statm is resident pages: not exact, as the system
   counts them by thread and adds up now and then. */
static uint64_t resident_from_statm(char *buffer, size_t capacity)
{
    char *end;
    if (!read_proc(buffer, capacity, "/proc/self/statm"))
        return 0;
    strtoull(buffer, &end, 10);
    return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What the system's counters may be behind: a batch of pages for each processor. */
#define BEHIND_PAGES ((uint64_t)64)

uint64_t process_usage_at_most(void)
{
    char buffer[256];
    uint64_t resident = resident_from_statm(buffer, sizeof buffer);
    long processors = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
    if (resident == 0 || processors < 1 || page < 1)
        return 0;
    uint64_t batch = (uint64_t)processors * 2 > BEHIND_PAGES ? (uint64_t)processors * 2 : BEHIND_PAGES;
    return resident + resident / 256 + (uint64_t)processors * batch * (uint64_t)page; /* 1/256: page tables */
}

bool process_usage_now(struct process_usage *out)
{
    char buffer[16384]; /* the list of groups stands before what we look for */
    struct process_usage usage = {0};
    struct rusage resources;
    if (usage_exact_file && read_proc(buffer, sizeof buffer, usage_exact_file))
        usage.rss = find_kib(buffer, "\nRss:");
    if (usage.rss == 0)
        usage.rss = resident_from_statm(buffer, sizeof buffer);
    if (read_proc(buffer, sizeof buffer, "/proc/self/status")) {
        usage.peak_rss = find_kib(buffer, "\nVmHWM:");
        usage.page_tables = find_kib(buffer, "\nVmPTE:");
        usage.mapped = find_kib(buffer, "\nVmSize:");
    }
    if (usage.peak_rss == 0 && getrusage(RUSAGE_SELF, &resources) == 0)
        usage.peak_rss = (uint64_t)resources.ru_maxrss * 1024;
    if (usage.rss == 0)
        return false;
    if (usage.peak_rss < usage.rss)
        usage.peak_rss = usage.rss;
    *out = usage;
    return true;
}
