/* file_list_inside.h - what the files that fill a list share. */
#ifndef FORMATS_FILES_FILE_LIST_INSIDE_H
#define FORMATS_FILES_FILE_LIST_INSIDE_H

#include "formats/files/file_list.h"

#define PILE_BLOCK_BYTES ((size_t)32 * 1024)

/* Items of one size in blocks that never move. */
struct pile {
    uint8_t **block;
    size_t blocks, table, item;
    uint64_t count;
};

struct listed_file {
    uint32_t folder, name;
};

/* What a file costs beside the bytes of its name. */
#define FILE_LISTED_BYTES (sizeof(struct listed_file) + 1)

struct listed_folder {
    uint32_t path; /* with its slash at the end; empty for the current folder */
    int32_t label;
};

struct file_list {
    struct budget *budget;
    struct pile texts, files, folders, classes;
    /* Once the budget has no room for more, files are only counted: the refusal tells how many there are. */
    bool full;
    uint64_t beyond_files, beyond_bytes;
};

/* The folder with its slash at the end. A file more than the budget has room for is counted: whoever adds files asks
   list_finish in the end. */
plim_status list_add(struct file_list *list, const char *folder, size_t folder_bytes, const char *name, int32_t label,
                     plim_error *error);
plim_status list_add_class(struct file_list *list, const char *name, plim_error *error);
/* Appends to a path that is searched; false when it becomes too long. */
bool path_append(char path[FILE_PATH_MOST + 1], size_t *length, const char *text, size_t bytes);
/* The name of a folder, and a slash. */
bool path_enter(char path[FILE_PATH_MOST + 1], size_t *length, const char *name, size_t bytes);
/* Files from `first` on. */
plim_status list_sort(struct file_list *list, uint64_t first, plim_error *error);
plim_status list_sort_by_folder(struct file_list *list, uint64_t first, plim_error *error);
plim_status list_sort_classes(struct file_list *list, plim_error *error);
/* Adds what matches one pattern, sorted. *unread: about the first folder that may not be read and was passed over. */
plim_status list_glob_one(struct file_list *list, const char *pattern, plim_error *unread, plim_error *error);
/* Nothing matches the first of `count` patterns, nor the others. */
plim_status list_no_match(const char *pattern, int count, const plim_error *unread, plim_error *error);
bool has_wildcards(const char *pattern);
/* OVER_BUDGET, with the number of all files and what they would take, when the list is full. */
plim_status list_finish(struct file_list *list, const char *where, plim_error *error);

#endif
