/* folder.c - the entries of a folder. The C library's opendir takes memory of its own: the system call does not. */
#include "base/files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/file_own.h"
#include "base/memory/budget_stop.h"

#define BUFFER_BYTES 8192

/* As the system writes them. */
struct kernel_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes; /* of this entry */
    uint8_t type;
    char name[];
};

struct folder {
    struct budget *budget;
    size_t struct_bytes;
    int descriptor;
    size_t at, end; /* in the buffer */
    _Alignas(8) char buffer[BUFFER_BYTES];
    char path[];
};

/* *error_number: of opening it, where that failed. */
static plim_status open_folder(struct folder **out, int *error_number, struct budget *budget, const char *path,
                               plim_error *error)
{
    size_t path_bytes = strlen(path) + 1, struct_bytes = sizeof(struct folder) + path_bytes;
    struct folder *folder = budget_take(budget, TAG_FORMATS, struct_bytes);
    if (!folder)
        return budget_refused(budget, TAG_FORMATS, struct_bytes, error);
    folder->budget = budget;
    folder->struct_bytes = struct_bytes;
    memcpy(folder->path, path, path_bytes);
    folder->descriptor = file_open_path(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
    if (folder->descriptor < 0) {
        *error_number = errno;
        plim_status status = file_io_error(error, path, "list the folder", errno);
        folder_close(folder);
        return status;
    }
    *out = folder;
    return PLIM_OK;
}

plim_status folder_open(struct folder **out, struct budget *budget, const char *path, plim_error *error)
{
    int error_number;
    return open_folder(out, &error_number, budget, path, error);
}

plim_status folder_try_open(struct folder **out, bool *refused, struct budget *budget, const char *path,
                            plim_error *error)
{
    int error_number = 0;
    plim_status status = open_folder(out, &error_number, budget, path, error);
    *refused = file_refused(error_number);
    if (!*refused && error_number != ENOENT && error_number != ENOTDIR)
        return status;
    *out = NULL;
    return PLIM_OK;
}

void folder_close(struct folder *folder)
{
    if (!folder)
        return;
    if (folder->descriptor >= 0)
        close(folder->descriptor);
    budget_give(folder->budget, TAG_FORMATS, folder, folder->struct_bytes);
}

static plim_status fill(struct folder *folder, plim_error *error)
{
    long got;
    int times = 0;
    TRY(budget_may_transfer(folder->budget, error));
    do
        got = file_faulted(FAULT_READ) ? -1 : syscall(SYS_getdents64, folder->descriptor, folder->buffer, BUFFER_BYTES);
    while (got < 0 && errno == EINTR && ++times < INTERRUPTS_MOST);
    if (got < 0)
        return file_io_error(error, folder->path, "list the folder", errno);
    folder->at = 0;
    folder->end = (size_t)got;
    return PLIM_OK;
}

static enum folder_kind kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? FOLDER_FOLDER : S_ISREG(mode) ? FOLDER_FILE : FOLDER_OTHER;
}

/* Links, and where the file system does not say: asked for one by one. An entry that has gone is of no kind. */
static plim_status stat_entry(struct folder_entry *entry, uint8_t type, const struct folder *folder, plim_error *error)
{
    struct stat status;
    entry->link = type == DT_LNK;
    entry->kind = type == DT_DIR ? FOLDER_FOLDER : type == DT_REG ? FOLDER_FILE : FOLDER_OTHER;
    if (type != DT_LNK && type != DT_UNKNOWN)
        return PLIM_OK;
    if (type == DT_UNKNOWN) {
        if (!file_faulted(FAULT_STAT) && fstatat(folder->descriptor, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            entry->link = S_ISLNK(status.st_mode);
        else if (errno != ENOENT)
            return file_io_error(error, folder->path, "look at what is in it", errno);
    }
    if (!file_faulted(FAULT_STAT) && fstatat(folder->descriptor, entry->name, &status, 0) == 0)
        entry->kind = kind_of(status.st_mode);
    else if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR && errno != EACCES)
        return file_io_error(error, folder->path, "look at what is in it", errno);
    return PLIM_OK;
}

plim_status folder_next(bool *more, struct folder_entry *out, struct folder *folder, plim_error *error)
{
    for (;;) {
        if (folder->at == folder->end)
            TRY(fill(folder, error));
        *more = folder->end > 0;
        if (!*more)
            return PLIM_OK;
        const struct kernel_entry *entry = (const struct kernel_entry *)(folder->buffer + folder->at);
        folder->at += entry->bytes;
        if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
            continue;
        struct folder_entry found = {.name = entry->name};
        TRY(stat_entry(&found, entry->type, folder, error));
        *out = found;
        return PLIM_OK;
    }
}
