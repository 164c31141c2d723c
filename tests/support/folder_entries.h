/* folder_entries.h - how many entries a folder has: files that are left over, or descriptors that are open. */
#ifndef TESTS_FOLDER_ENTRIES_H
#define TESTS_FOLDER_ENTRIES_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* "." and ".." among them. */
static inline int entries(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

#endif
