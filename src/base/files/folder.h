/* folder.h - the entries of a folder, one after another, in no order. Memory from the budget, whatever their number. */
#ifndef BASE_FILES_FOLDER_H
#define BASE_FILES_FOLDER_H

#include "base/memory/budget.h"

struct folder;

enum folder_kind { FOLDER_FILE, FOLDER_FOLDER, FOLDER_OTHER };

struct folder_entry {
    const char *name; /* until the next call */
    enum folder_kind kind;
    bool link; /* a link to something of that kind; one that leads nowhere is FOLDER_OTHER */
};

plim_status folder_open(struct folder **out, struct budget *budget, const char *path, plim_error *error);
/* For searches: *out is NULL where there is no such folder, and where it may not be read: *refused, and error has why.
 */
plim_status folder_try_open(struct folder **out, bool *refused, struct budget *budget, const char *path,
                            plim_error *error);
void folder_close(struct folder *folder);
/* Without "." and "..". *more false: that was all. */
plim_status folder_next(bool *more, struct folder_entry *out, struct folder *folder, plim_error *error);

#endif
