/* file_window.h - a file of any size, read in order through a window of fixed size.

   A line, and whatever else is looked at in one piece, may have FILE_WINDOW_ITEM bytes. */
#ifndef BASE_FILES_FILE_WINDOW_H
#define BASE_FILES_FILE_WINDOW_H

#include "base/files/file.h"

#define FILE_WINDOW_BYTES ((size_t)64 * 1024)
#define FILE_WINDOW_ITEM  (FILE_WINDOW_BYTES / 2)

struct file_window {
    struct budget *budget;
    enum tag tag;
    struct file *file;
    char *data;         /* FILE_WINDOW_BYTES */
    size_t bytes, at;   /* there are in it; have been looked at */
    uint64_t base, end; /* byte of the file that data[0] is; where reading ends */
};

/* The file stays the caller's. */
plim_status file_window_open(struct file_window *window, struct budget *budget, enum tag tag, struct file *file,
                             plim_error *error);
void file_window_close(struct file_window *window);
/* Begins, or begins again: bytes [from, end) of the file. */
void file_window_set(struct file_window *window, uint64_t from, uint64_t end);
/* Afterwards FILE_WINDOW_ITEM bytes at least are there from data + at on, or all that are left. Moves them: what was
   given before is void. A file that became shorter is PLIM_BAD_DATA. */
plim_status file_window_fill(struct file_window *window, plim_error *error);
/* Whether the file goes on behind the window. */
bool file_window_more(const struct file_window *window);
/* The next line without its LF, or CR LF, and the byte of the file where it begins; NULL at the end. A line that is too
   long is PLIM_BAD_DATA. The bytes may be written to; they are good until the next call. */
plim_status file_window_line(char **line, size_t *bytes, uint64_t *at, struct file_window *window, plim_error *error);

#endif
