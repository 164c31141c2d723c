/* checkpoint_folder.c - which file is which in a run's folder of checkpoints.

     checkpoint.safetensors           the newest of this run
     checkpoint.previous.safetensors  the one before
     checkpoint.older.safetensors     the last one of the run before this one
     lock                             while a run is going on

   Saving:   write checkpoint.safetensors.partial, current -> previous,
             partial -> current.
   Loading:  current if its seal holds, else previous.
   Starting: the state before the first step is the run's first checkpoint, so
             that what --resume finds is always of the run started last.

   Invariants:
    1. at every moment one of the names is a whole checkpoint, once one was
       saved: a kill between two renames leaves the other;
    2. a file that loading passed over never takes the place of a whole one;
    3. nothing of an older run goes before this run's first checkpoint is on
       the disk and there is room for all that it will keep. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "formats/safetensors.h"
#include "train/trainer.h"

#define LOCK_NAME "lock"

/* The names of a folder, joined. */
struct paths {
    char current[CHECKPOINT_PATH_BYTES], previous[CHECKPOINT_PATH_BYTES], older[CHECKPOINT_PATH_BYTES];
};

static plim_status join(char out[CHECKPOINT_PATH_BYTES], const struct checkpoint_folder *folder, const char *name,
                        plim_error *error)
{
    int length = snprintf(out, CHECKPOINT_PATH_BYTES, "%s/%s", folder->path, name);
    return length < CHECKPOINT_PATH_BYTES ? PLIM_OK
                                          : fail(error, PLIM_IO, "the path of the checkpoint folder is too long");
}

static plim_status join_all(struct paths *out, const struct checkpoint_folder *folder, plim_error *error)
{
    TRY(join(out->current, folder, CHECKPOINT_NAME, error));
    TRY(join(out->previous, folder, CHECKPOINT_PREVIOUS_NAME, error));
    return join(out->older, folder, CHECKPOINT_OLDER_NAME, error);
}

/* ---- one run at a time ---- */

plim_status checkpoint_folder_open(struct checkpoint_folder *out, const char *path, struct budget *budget,
                                   plim_error *error)
{
    char lock[CHECKPOINT_PATH_BYTES];
    struct checkpoint_folder folder = {.path = path};
    bool exists;
    TRY(join(lock, &folder, LOCK_NAME, error));
    TRY(file_exists(&exists, path, error));
    TRY(file_make_folder(path, error));
    folder.made = !exists;
    plim_status status = file_open(&folder.lock, budget, lock, FILE_LOCK, error);
    if (status == PLIM_OK)
        *out = folder;
    else
        checkpoint_folder_discard(&folder);
    return status;
}

void checkpoint_folder_discard(struct checkpoint_folder *folder)
{
    struct paths paths;
    const char *path = folder->path;
    bool made = folder->made;
    if (made && folder->lock && join_all(&paths, folder, NULL) == PLIM_OK)
        (void)file_remove(paths.current, NULL);
    checkpoint_folder_close(folder);
    if (made)
        file_remove_folder(path);
}

void checkpoint_folder_close(struct checkpoint_folder *folder)
{
    file_close(folder->lock);
    *folder = (struct checkpoint_folder){0};
}

/* ---- saving ---- */

/* Puts the written file into place and keeps the one before. */
static plim_status rotate(struct safetensors_writer *writer, const struct paths *paths, bool newest_broken,
                          plim_error *error)
{
    bool exists, committed;
    TRY(file_exists(&exists, paths->current, error));
    exists = exists && !newest_broken;
    if (exists)
        TRY(file_rename(paths->current, paths->previous, error));
    plim_status status = safetensors_commit(writer, error);
    if (status != PLIM_OK && exists && file_exists(&committed, paths->current, NULL) == PLIM_OK && !committed)
        (void)file_rename(paths->previous, paths->current, NULL); /* failing that, loading finds it all the same */
    return status;
}

plim_status checkpoint_save(struct checkpoint_folder *folder, struct machine *machine, const struct position *position,
                            plim_error *error)
{
    struct paths paths;
    struct safetensors_writer *writer;
    TRY(join_all(&paths, folder, error));
    TRY(checkpoint_write(&writer, paths.current, machine, position, error));
    plim_status status = rotate(writer, &paths, folder->newest_broken, error);
    if (status == PLIM_OK)
        folder->newest_broken = false;
    safetensors_abandon(writer);
    return status;
}

/* ---- starting ---- */

/* Current, previous and partial file are there together when a checkpoint is
   saved. One of them was just written; `reused` bytes of the others are there
   already, or are freed before. */
static plim_status prove_room(const struct checkpoint_folder *folder, const struct machine *machine, uint64_t written,
                              uint64_t reused, plim_error *error)
{
    return file_prove_room(machine->budget, folder->path, 2 * written > reused ? 2 * written - reused : 0, error);
}

static plim_status partial_bytes(uint64_t *bytes, const struct checkpoint_folder *folder, plim_error *error)
{
    char partial[CHECKPOINT_PATH_BYTES];
    TRY(join(partial, folder, CHECKPOINT_NAME ".partial", error));
    return file_size_at(bytes, partial, error);
}

static plim_status rehearse(const struct checkpoint_folder *folder, const struct paths *paths, struct machine *machine,
                            plim_error *error)
{
    uint64_t written, current, previous;
    TRY(partial_bytes(&written, folder, error));
    TRY(file_size_at(&current, paths->current, error));
    TRY(file_size_at(&previous, paths->previous, error));
    return prove_room(folder, machine, written, current + previous, error);
}

plim_status checkpoint_rehearse(const struct checkpoint_folder *folder, struct machine *machine,
                                const struct position *position, plim_error *error)
{
    struct paths paths;
    struct safetensors_writer *writer;
    TRY(join_all(&paths, folder, error));
    TRY(checkpoint_write(&writer, paths.current, machine, position, error));
    plim_status status = rehearse(folder, &paths, machine, error);
    safetensors_abandon(writer);
    return status;
}

/* Not what a run was before its first step, and not what is damaged; in doubt yes. */
static bool is_worth_keeping(const char *path, struct budget *budget)
{
    bool there;
    int64_t steps;
    if (file_exists(&there, path, NULL) == PLIM_OK && !there)
        return false;
    plim_status status = checkpoint_steps(&steps, path, budget, NULL);
    return status == PLIM_OK ? steps != 0 : status != PLIM_BAD_DATA;
}

/* The file of an older run that is to be set aside, or NULL. */
static const char *find_older(const struct paths *paths, struct budget *budget)
{
    if (is_worth_keeping(paths->current, budget))
        return paths->current;
    return is_worth_keeping(paths->previous, budget) ? paths->previous : NULL;
}

static plim_status prove_room_to_begin(const struct checkpoint_folder *folder, const struct paths *paths,
                                       const char *older, struct machine *machine, plim_error *error)
{
    uint64_t written, previous, replaced;
    TRY(partial_bytes(&written, folder, error));
    TRY(file_size_at(&previous, paths->previous, error));
    TRY(file_size_at(&replaced, older == paths->current ? paths->older : paths->current, error));
    return prove_room(folder, machine, written, replaced + (older == paths->previous ? 0 : previous), error);
}

/* `previous` goes first: alone under its name it would be taken for this run's. */
static plim_status replace_older(struct safetensors_writer *writer, const struct paths *paths, const char *older,
                                 plim_error *error)
{
    bool committed;
    if (older != paths->previous)
        TRY(file_remove(paths->previous, error));
    if (older)
        TRY(file_rename(older, paths->older, error));
    plim_status status = safetensors_commit(writer, error);
    if (status != PLIM_OK && older && file_exists(&committed, paths->current, NULL) == PLIM_OK && !committed)
        (void)file_rename(paths->older, older, NULL);
    return status;
}

plim_status checkpoint_begin(bool *set_aside, struct checkpoint_folder *folder, struct machine *machine,
                             const struct position *position, plim_error *error)
{
    struct paths paths;
    struct safetensors_writer *writer;
    TRY(join_all(&paths, folder, error));
    TRY(checkpoint_write(&writer, paths.current, machine, position, error));
    const char *older = find_older(&paths, machine->budget);
    plim_status status = prove_room_to_begin(folder, &paths, older, machine, error);
    if (status == PLIM_OK)
        status = replace_older(writer, &paths, older, error);
    safetensors_abandon(writer);
    if (status == PLIM_OK)
        *set_aside = older != NULL;
    return status;
}

/* ---- loading ---- */

static bool passes_over(plim_status status, bool whole)
{
    return !whole && (status == PLIM_BAD_DATA || status == PLIM_IO);
}

plim_status checkpoint_load(bool *found, struct position *position, char said[256], struct checkpoint_folder *folder,
                            struct machine *machine, plim_error *error)
{
    struct paths paths;
    bool has_current, has_previous, whole = false;
    plim_error newest = {0};
    said[0] = '\0';
    TRY(join_all(&paths, folder, error));
    TRY(file_exists(&has_current, paths.current, error));
    TRY(file_exists(&has_previous, paths.previous, error));
    *found = folder->newest_broken = false;
    if (!has_current && !has_previous)
        return PLIM_OK;
    plim_status status = has_current ? checkpoint_read(&whole, position, paths.current, machine, &newest)
                                     : fail_at(&newest, PLIM_BAD_DATA, paths.current, "is missing");
    if (status == PLIM_OK || !has_previous || !passes_over(status, whole)) {
        *found = status == PLIM_OK;
        if (status != PLIM_OK && error)
            *error = newest;
        return status;
    }
    TRY(checkpoint_read(&whole, position, paths.previous, machine, error));
    snprintf(said, 256, "%.100s: %.80s; went on from the checkpoint before it", paths.current, newest.message);
    *found = folder->newest_broken = true;
    return PLIM_OK;
}
