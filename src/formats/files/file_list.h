/* file_list.h - lists of files: by patterns, by brace ranges, by folders of classes.

   A list is memory that grows with the number of files, so it is kept small: a name's bytes and 9 more for a file,
   a path's bytes and 9 more for a folder, in blocks of 32 KiB under the tag formats; 4 bytes a file while it is
   sorted. 1.3 million files with names of 20 bytes take 36 MiB. Names together: at most 4 GiB. */
#ifndef FORMATS_FILES_FILE_LIST_H
#define FORMATS_FILES_FILE_LIST_H

#include "base/memory/budget.h"

#define FILE_PATH_MOST 4095

struct file_list;

plim_status file_list_make(struct file_list **out, struct budget *budget, plim_error *error);
void file_list_free(struct file_list *list);

int64_t file_list_count(const struct file_list *list);
/* The path of a file, NUL-terminated. */
void file_list_path(char out[FILE_PATH_MOST + 1], const struct file_list *list, int64_t file);
/* Which class it belongs to; -1 in lists without. */
int32_t file_list_label(const struct file_list *list, int64_t file);
int64_t file_list_class_count(const struct file_list *list);
const char *file_list_class(const struct file_list *list, int64_t label);
/* What the list holds of the budget. */
uint64_t file_list_bytes(const struct file_list *list);

/* Adds one file, whether it is there or not. */
plim_status file_list_add(struct file_list *list, const char *path, plim_error *error);

/* Adds what tf.data.Dataset.list_files(patterns, shuffle=False) gives: paths that match one of them, sorted by bytes.
   * and ? match any byte but a slash (a dot in front, too), [a-z] and [!a-z] one of a set, \ takes the next byte for
   itself. Folders match as files do. No match at all is PLIM_BAD_DATA. */
plim_status file_list_glob(struct file_list *list, const char *const *patterns, int count, plim_error *error);
/* Adds shard-{000000..000146}.tar, {train,test}.csv, {a..e}, {0..10..2}, nested and in that order, as WebDataset has
   it. What has wildcards besides is looked for; the rest need not be there. */
plim_status file_list_braces(struct file_list *list, const char *pattern, plim_error *error);
/* True when the bytes of text match the pattern; neither has slashes. */
bool file_matches(const char *pattern, size_t pattern_bytes, const char *text);

/* Adds a folder's sub-folders as classes, and all files in them and below whose names end with one of the suffixes
   (NULL at the end; small letters; NULL: bmp gif jpeg jpg png), in keras.utils.image_dataset_from_directory's order
   without shuffling. Classes are the sorted names, or `names` in their order (NULL at the end). Once for a list. */
plim_status file_list_classes(struct file_list *list, const char *folder, const char *const *names,
                              const char *const *suffixes, plim_error *error);

#endif
