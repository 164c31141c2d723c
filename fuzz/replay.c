/* replay.c - runs a fuzz target over every file of a folder: the seeds, and
   what fuzzing once found, are tests of every build.

   replay FOLDER; prints how many files it ran. An empty folder is a failure. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"

#define INPUT_MOST (1 << 20)

static int run_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "rb");
    uint8_t *buffer = malloc(INPUT_MOST);
    if (!in || !buffer) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    size_t bytes = fread(buffer, 1, INPUT_MOST, in);
    fclose(in);
    /* An exact copy, so that a sanitizer sees a read past its end. */
    uint8_t *exact = malloc(bytes ? bytes : 1);
    if (!exact)
        exit(1);
    memcpy(exact, buffer, bytes);
    free(buffer);
    LLVMFuzzerTestOneInput(exact, bytes);
    free(exact);
    return 1;
}

int main(int count, char **arguments)
{
    int ran = 0;
    DIR *folder = count == 2 ? opendir(arguments[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            ran += run_file(arguments[1], entry->d_name);
    closedir(folder);
    printf("%d inputs replayed\n", ran);
    return ran ? 0 : 1;
}
