/* disk.c - what a disk gives by itself: disk FILE DEPTH SECONDS reads the file past the page cache from DEPTH threads
   4 KiB at random places, then from one 1 MiB after the other. Prints one line of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "base/threads/clock.h"

#define RANDOM_BYTES     ((size_t)4096)
#define SEQUENTIAL_BYTES ((size_t)1024 * 1024)
#define SEQUENTIAL_DEPTH 1 /* as dd would */
#define MOST_DEPTH       1024

struct test {
    int file;
    size_t block;
    uint64_t blocks;
    bool random;
    uint64_t end_ns;
    atomic_ullong next, done;
};

static void die(const char *what)
{
    fprintf(stderr, "disk: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The numbers of blocks are handed out in order; where they are to jump, each is mixed into a place. */
static void *read_blocks(void *context)
{
    struct test *test = context;
    void *to;
    if (posix_memalign(&to, RANDOM_BYTES, test->block) != 0)
        die("memory");
    while (clock_ns() < test->end_ns) {
        uint64_t number = atomic_fetch_add(&test->next, 1), place = number;
        uint32_t mixed[4];
        if (test->random) {
            random_block(mixed, 7, number, 0);
            place = ((uint64_t)mixed[0] << 32 | mixed[1]) % test->blocks;
        }
        if (place >= test->blocks)
            break;
        if (pread(test->file, to, test->block, (off_t)(place * test->block)) != (ssize_t)test->block)
            die("read");
        atomic_fetch_add(&test->done, 1);
    }
    free(to);
    return NULL;
}

/* Reads a second. */
static double measure(int file, size_t block, bool random, int depth, double seconds)
{
    pthread_t thread[MOST_DEPTH];
    uint64_t begin = clock_ns();
    struct test test = {.file = file, .block = block, .random = random, .end_ns = begin + (uint64_t)(seconds * 1e9)};
    test.blocks = (uint64_t)lseek(file, 0, SEEK_END) / block;
    for (int i = 0; i < depth; i++)
        if (pthread_create(&thread[i], NULL, read_blocks, &test) != 0)
            die("thread");
    for (int i = 0; i < depth; i++)
        pthread_join(thread[i], NULL);
    return (double)test.done / ((double)(clock_ns() - begin) * 1e-9);
}

int main(int count, char **words)
{
    if (count != 4 || atoi(words[2]) < 1 || atoi(words[2]) > MOST_DEPTH) {
        fprintf(stderr, "usage: disk FILE DEPTH SECONDS\n");
        return 2;
    }
    int file = open(words[1], O_RDONLY | O_DIRECT), depth = atoi(words[2]);
    if (file < 0)
        die(words[1]);
    double seconds = atof(words[3]);
    double random = measure(file, RANDOM_BYTES, true, depth, seconds);
    double sequential = measure(file, SEQUENTIAL_BYTES, false, SEQUENTIAL_DEPTH, seconds);
    printf("{\"event\":\"disk\",\"depth\":%d,\"random_reads_per_s\":%.1f,\"sequential_bytes_per_s\":%.1f}\n", depth,
           random, sequential * (double)SEQUENTIAL_BYTES);
    close(file);
    return 0;
}
