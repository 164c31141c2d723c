/* mappings.c - the process's own bytes, as an upper bound that does not
   wobble. Reads smaps a line at a time through a small buffer. */
#include "base/memory/mappings.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"

#define KIB  ((uint64_t)1024)
#define PAGE (4 * KIB)

/* A file's mappings follow one another: they are added up until another file begins. */
struct smaps_totals {
    struct mappings sum;
    unsigned long long inode;
    uint64_t size, resident, anonymous; /* of the file so far */
    uint64_t grown;                     /* size of the mapping, where it is libc's heap or the main stack; else 0 */
    const struct code_range *unused;
    int unused_count;
};

/* The system maps pages in groups of 64 KiB around each fault: those of a neighbour reach so far. */
#define FAULT_AROUND (64 * KIB)

/* NEEDSWORK: what an earlier job of this process has run is resident and counted only as far as `clean` below says.
   Asking /proc/self/pagemap which pages are there made the smallest budget differ from run to run. */
static uint64_t unused_within(const struct smaps_totals *totals, uint64_t from, uint64_t to)
{
    uint64_t bytes = 0;
    for (int i = 0; i < totals->unused_count; i++) {
        uint64_t begin = totals->unused[i].begin + FAULT_AROUND, end = totals->unused[i].end;
        end = end > FAULT_AROUND ? end - FAULT_AROUND : 0;
        begin = begin > from ? begin : from;
        end = end < to ? end : to;
        bytes += end > begin ? (end - begin) / PAGE * PAGE : 0;
    }
    return bytes;
}

/* A heap and a stack of a host may have been large: what it no longer touches is not counted for us. */
#define MOST_UNTOUCHED (160 * KIB)

static void count_untouched(struct smaps_totals *totals)
{
    uint64_t most = totals->anonymous + MOST_UNTOUCHED;
    if (totals->grown > totals->anonymous)
        totals->anonymous = totals->grown < most ? totals->grown : most;
}

static void finish_file(struct smaps_totals *totals)
{
    count_untouched(totals);
    uint64_t clean = totals->resident > totals->anonymous ? totals->resident - totals->anonymous : 0;
    uint64_t whole = totals->size > totals->anonymous ? totals->size - totals->anonymous : 0;
    if (totals->inode && totals->size <= MAPPINGS_LARGE_FILE)
        totals->sum.small_files += whole > clean ? whole : clean; /* a host may have locked all of its pages */
    else if (totals->inode)
        totals->sum.large_files += clean;
    totals->sum.anonymous += totals->anonymous;
    totals->inode = totals->size = totals->resident = totals->anonymous = totals->grown = 0;
}

/* "55d0-55d8 r-xp 00001000 fe:00 1234  /usr/lib/x.so". The system writes these numbers: none is out of range. */
/* NOLINTBEGIN(cert-err34-c) */
static bool read_header(struct smaps_totals *totals, const char *line)
{
    unsigned long long from, to, inode;
    char mode[8];
    if (sscanf(line, "%llx-%llx %7s %*x %*x:%*x %llu", &from, &to, mode, &inode) != 4)
        return false;
    if (inode != totals->inode || inode == 0)
        finish_file(totals);
    totals->inode = inode;
    if (inode && mode[0] == 'r') /* what cannot be read is never resident */
        totals->size += to - from - unused_within(totals, from, to);
    if (inode == 0 && (strstr(line, " [heap]") || strstr(line, " [stack]")))
        totals->grown = to - from;
    return true;
}

static void read_line(struct smaps_totals *totals, const char *line)
{
    unsigned long long kib;
    if (read_header(totals, line))
        return;
    if (sscanf(line, "Rss: %llu kB", &kib) == 1)
        totals->resident += kib * KIB;
    else if (sscanf(line, "Anonymous: %llu kB", &kib) == 1)
        totals->anonymous += kib * KIB;
}
/* NOLINTEND(cert-err34-c) */

/* Calls read_line for every whole line; keeps the rest for the next part. */
static size_t read_lines(struct smaps_totals *totals, char *buffer, size_t length)
{
    char *begin = buffer, *end;
    while ((end = memchr(begin, '\n', length - (size_t)(begin - buffer)))) {
        *end = 0;
        read_line(totals, begin);
        begin = end + 1;
    }
    size_t rest = length - (size_t)(begin - buffer);
    memmove(buffer, begin, rest);
    return rest;
}

plim_status mappings_read_from(struct mappings *out, struct budget *budget, const char *path,
                               const struct code_range *unused, int count, plim_error *error)
{
    struct smaps_totals totals = {.unused = unused, .unused_count = count};
    struct file *file;
    char buffer[4096];
    size_t kept = 0, got;
    uint64_t offset = 0;
    TRY(file_open(&file, budget, path, FILE_READ, error));
    plim_status status;
    while ((status = file_read_some(&got, file, offset, buffer + kept, sizeof buffer - kept, error)) == PLIM_OK &&
           got) {
        offset += got;
        kept = read_lines(&totals, buffer, kept + got);
        if (kept == sizeof buffer)
            kept = 0; /* a line of 4 KiB is a path that we do not need whole */
    }
    finish_file(&totals);
    file_close(file);
    if (status == PLIM_OK)
        *out = totals.sum;
    return status;
}

plim_status mappings_read(struct mappings *out, struct budget *budget, const struct code_range *unused, int count,
                          plim_error *error)
{
    return mappings_read_from(out, budget, "/proc/self/smaps", unused, count, error);
}
