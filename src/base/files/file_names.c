/* file_names.c - what a path names: asking, renaming, removing; folders. */
#include "base/files/file_own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/numbers/checked.h"

static plim_status look_at(struct stat *out, bool *there, const char *path, plim_error *error)
{
    *there = !file_faulted(FAULT_STAT) && stat(path, out) == 0;
    if (!*there && errno != ENOENT && errno != ENOTDIR)
        return file_io_error(error, path, "look at it", errno);
    return PLIM_OK;
}

bool file_refused(int error_number)
{
    return error_number == EACCES || error_number == EPERM;
}

plim_status file_try_exists(bool *out, bool *refused, const char *path, plim_error *error)
{
    struct stat status;
    *out = !file_faulted(FAULT_STAT) && stat(path, &status) == 0;
    int error_number = *out ? 0 : errno;
    *refused = file_refused(error_number);
    if (*out || error_number == ENOENT || error_number == ENOTDIR)
        return PLIM_OK;
    plim_status failed = file_io_error(error, path, "look at it", error_number);
    return *refused ? PLIM_OK : failed;
}

plim_status file_exists(bool *out, const char *path, plim_error *error)
{
    struct stat status;
    bool there;
    TRY(look_at(&status, &there, path, error));
    *out = there;
    return PLIM_OK;
}

plim_status file_size_at(uint64_t *bytes, const char *path, plim_error *error)
{
    struct stat status;
    bool there;
    TRY(look_at(&status, &there, path, error));
    *bytes = there ? (uint64_t)status.st_size : 0;
    return PLIM_OK;
}

plim_status file_same(bool *out, const char *a, const char *b, plim_error *error)
{
    struct stat of_a, of_b;
    bool has_a, has_b;
    TRY(look_at(&of_a, &has_a, a, error));
    TRY(look_at(&of_b, &has_b, b, error));
    *out = has_a && has_b && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
    return PLIM_OK;
}

plim_status file_check_target(const char *path, plim_error *error)
{
    struct stat status;
    bool there;
    TRY(look_at(&status, &there, path, error));
    if (there && S_ISDIR(status.st_mode))
        return fail_at(error, PLIM_IO, path, "cannot write: it is a folder");
    if (there && !S_ISREG(status.st_mode))
        return fail_at(error, PLIM_IO, path, "cannot write: it is a device, a pipe or a socket");
    return PLIM_OK;
}

plim_status file_probe_scratch(const char **why, struct budget *budget, const char *folder, plim_error *error)
{
    struct file *file;
    plim_status status = file_open(&file, budget, folder, FILE_SCRATCH, error);
    *why = status == PLIM_IO ? "no scratch file can be made there" : NULL;
    if (status != PLIM_OK)
        return status == PLIM_IO ? PLIM_OK : status;
    *why = file_in_memory(file) ? "it is in memory" : NULL;
    file_close(file);
    return PLIM_OK;
}

plim_status file_rename(const char *from, const char *to, plim_error *error)
{
    if (file_faulted(FAULT_RENAME) || rename(from, to) != 0)
        return file_io_error(error, to, "rename the temporary file to this", errno);
    return PLIM_OK;
}

plim_status file_remove(const char *path, plim_error *error)
{
    if (!file_faulted(FAULT_RENAME) && unlink(path) == 0)
        return PLIM_OK;
    return errno == ENOENT ? PLIM_OK : file_io_error(error, path, "remove", errno);
}

/* ---- folders --------------------------------------------------------- */

bool file_system_in_memory(const struct statfs *system)
{
    return system->f_type == TMPFS_MAGIC || system->f_type == RAMFS_MAGIC;
}

bool file_folder_in_memory(const char *folder)
{
    struct statfs system;
    return statfs(folder, &system) == 0 && file_system_in_memory(&system);
}

uint64_t file_room(const char *folder)
{
    struct statvfs system;
    struct rlimit limit;
    uint64_t room = UINT64_MAX;
    if (statvfs(folder, &system) == 0 && !mul_u64(&room, system.f_bavail, system.f_frsize))
        room = UINT64_MAX;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < room)
        room = limit.rlim_cur;
    return room;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static plim_status make_one_folder(const char *path, plim_error *error)
{
    if (!file_faulted(FAULT_RENAME) && mkdir(path, 0777) == 0)
        return PLIM_OK;
    if (errno != EEXIST)
        return file_io_error(error, path, "make this folder", errno);
    return is_folder(path) ? PLIM_OK : fail_at(error, PLIM_IO, path, "cannot make this folder: a file has its name");
}

plim_status file_make_folder(const char *path, plim_error *error)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof part)
        return file_io_error(error, path, "make this folder", ENAMETOOLONG);
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && path[i] == '/') {
            part[i] = '\0';
            TRY(make_one_folder(part, error));
        }
        part[i] = path[i];
    }
    return make_one_folder(memcpy(part, path, length + 1), error);
}

void file_remove_folder(const char *path)
{
    if (!file_faulted(FAULT_RENAME))
        (void)rmdir(path);
}

plim_status file_sync_folder(const char *path, plim_error *error)
{
    int descriptor = file_open_path(path, O_RDONLY | O_DIRECTORY, 0);
    if (descriptor < 0)
        return file_io_error(error, path, "open this folder", errno);
    bool synced = !file_faulted(FAULT_SYNC) && fsync(descriptor) == 0;
    int error_number = errno;
    close(descriptor);
    /* EINVAL: a file system whose folders are always up to date. */
    return synced || error_number == EINVAL ? PLIM_OK : file_io_error(error, path, "write to the disk", error_number);
}
