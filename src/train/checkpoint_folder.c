/* checkpoint_folder.c - which file is which in a run's folder of checkpoints.

     checkpoint.safetensors           the newest of this run
     checkpoint.previous.safetensors  the one before
     checkpoint.older.safetensors     the last one of the run before this one
     checkpoint.kept-N.safetensors    one that was called `older`, of N steps: more than the run has that took its name;
                                      kept-N-2, kept-N-3 are others of as many steps
     checkpoint.kept-unknown-K.safetensors  one that was called `older`, whose steps could not be read
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
       the disk and there is room for all that it will keep;
    4. a checkpoint gives its place only to one of as many steps or more that is whole. KEPT_MOST kept-N of older runs
       stay: the one that was kept last, and those with the most steps. A kept-unknown-K always stays. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/folder.h"
#include "base/text/message.h"
#include "base/text/text.h"
#include "formats/weights/safetensors.h"
#include "train/trainer.h"

#define LOCK_NAME "lock"
#define KEPT_HEAD "checkpoint.kept-"
#define KEPT_TAIL ".safetensors"
#define KEPT_MOST 8

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

/* The header of a larger model may not fit the budget: ours begins with its notes. -1: it does not say. */
static int64_t peek_steps(const char *path, struct budget *budget)
{
    static const char key[] = "\"total_steps\":\"";
    char head[4096];
    size_t got = 0;
    struct file *file;
    if (file_open(&file, budget, path, FILE_READ, NULL) != PLIM_OK)
        return -1;
    plim_status status = file_read_some(&got, file, 8, head, sizeof head - 1, NULL);
    file_close(file);
    head[status == PLIM_OK ? got : 0] = '\0';
    const char *found = strstr(head, key);
    return found ? strtoll(found + strlen(key), NULL, 10) : -1;
}

/* How many steps are in an older run's checkpoint: 0 of what is not worth keeping (it is not there, or damaged, or what
   a run was before its first step), -1 when nobody knows: in doubt it is kept. */
static int64_t steps_in(const char *path, struct budget *budget)
{
    bool there;
    int64_t steps;
    if (file_exists(&there, path, NULL) == PLIM_OK && !there)
        return 0;
    plim_status status = checkpoint_steps(&steps, path, budget, NULL);
    if (status == PLIM_BAD_DATA)
        return 0;
    if (status != PLIM_OK)
        steps = peek_steps(path, budget);
    return steps < 0 ? -1 : steps;
}

/* Damaged behind its header. When nobody knows, because it cannot be read now, it counts as whole. */
static bool is_damaged(const char *path, struct budget *budget)
{
    return checkpoint_is_whole(path, budget, NULL) == PLIM_BAD_DATA;
}

/* What becomes of an older run's files. */
struct aside {
    const char *from;                 /* the one that is to be called `older`; NULL: there is none */
    bool keeps;                       /* the one that is called so now gets a name of its own: else it is replaced */
    int64_t steps;                    /* in that one; -1: nobody knows */
    char name[64];                    /* its new name */
    char path[CHECKPOINT_PATH_BYTES]; /* and path */
};

/* ---- what is kept of older runs ---- */

/* copy: from 1 on. */
static void kept_name(char out[64], int64_t steps, int copy)
{
    if (steps < 0)
        snprintf(out, 64, KEPT_HEAD "unknown-%d" KEPT_TAIL, copy);
    else if (copy == 1)
        snprintf(out, 64, KEPT_HEAD "%lld" KEPT_TAIL, (long long)steps);
    else
        snprintf(out, 64, KEPT_HEAD "%lld-%d" KEPT_TAIL, (long long)steps, copy);
}

/* A name that no file has. */
static plim_status name_kept(struct aside *aside, const struct checkpoint_folder *folder, plim_error *error)
{
    bool there = true;
    for (int copy = 1; there && copy < INT_MAX; copy++) {
        kept_name(aside->name, aside->steps, copy);
        TRY(join(aside->path, folder, aside->name, error));
        TRY(file_exists(&there, aside->path, error));
    }
    return PLIM_OK;
}

/* Headers may be whole where tensors are not: before another checkpoint goes for its sake, all of it is read. */
static plim_status find_older(struct aside *out, const struct checkpoint_folder *folder, const struct paths *paths,
                              struct budget *budget, plim_error *error)
{
    *out = (struct aside){0};
    int64_t newest = steps_in(paths->current, budget), previous = steps_in(paths->previous, budget);
    int64_t older = steps_in(paths->older, budget), steps = newest;
    out->from = newest ? paths->current : NULL;
    bool damaged = newest && (previous || older > 0) && is_damaged(paths->current, budget);
    if (previous && (!newest || (damaged && !is_damaged(paths->previous, budget)))) {
        out->from = paths->previous;
        steps = previous;
        damaged = !newest && older > 0 && is_damaged(paths->previous, budget);
    }
    if (damaged && older > 0 && older <= steps && !is_damaged(paths->older, budget))
        out->from = NULL;
    out->steps = older;
    out->keeps = out->from && (older < 0 || (older > 0 && older > steps));
    return out->keeps ? name_kept(out, folder, error) : PLIM_OK;
}

/* The steps and the copy in the name of a kept checkpoint; false: it is none that kept_name has made. */
static bool is_kept(int64_t *steps, int *copy, const char *name)
{
    size_t head = strlen(KEPT_HEAD);
    char *end, again[64];
    if (strncmp(name, KEPT_HEAD, head) != 0)
        return false;
    *steps = strtoll(name + head, &end, 10);
    long long number = *end == '-' ? strtoll(end + 1, NULL, 10) : 1;
    if (*steps < 1 || number < 1 || number > INT_MAX)
        return false;
    *copy = (int)number;
    kept_name(again, *steps, *copy);
    return strcmp(again, name) == 0;
}

/* *least: the name of the one to go first: of the fewest steps, of equal ones the first copy, and never `spared`. */
static plim_status count_kept(int *count, char least[64], const struct checkpoint_folder *folder, const char *spared,
                              struct budget *budget)
{
    struct folder *entries;
    struct folder_entry entry;
    int64_t steps, least_steps = -1;
    int copy, least_copy = 0;
    bool more = true;
    *count = 0;
    TRY(folder_open(&entries, budget, folder->path, NULL));
    plim_status status = folder_next(&more, &entry, entries, NULL);
    for (; status == PLIM_OK && more; status = folder_next(&more, &entry, entries, NULL)) {
        if (entry.kind != FOLDER_FILE || !is_kept(&steps, &copy, entry.name))
            continue;
        (*count)++;
        bool first = least_steps < 0 || steps < least_steps || (steps == least_steps && copy < least_copy);
        if (strcmp(entry.name, spared) == 0 || !first)
            continue;
        least_steps = steps;
        least_copy = copy;
        snprintf(least, 64, "%s", entry.name);
    }
    folder_close(entries);
    return status;
}

/* Tidying up: a failure leaves one file too many, and the next start tries again. Each turn must find fewer: a file
   that cannot be removed is no reason to try for ever. */
static void limit_kept(const struct checkpoint_folder *folder, const char *spared, struct budget *budget)
{
    char path[CHECKPOINT_PATH_BYTES], least[64] = "";
    int count, before = INT_MAX;
    while (count_kept(&count, least, folder, spared, budget) == PLIM_OK && count > KEPT_MOST && count < before) {
        before = count;
        if (join(path, folder, least, NULL) != PLIM_OK || file_remove(path, NULL) != PLIM_OK)
            return;
    }
}

static plim_status prove_room_to_begin(const struct checkpoint_folder *folder, const struct paths *paths,
                                       const struct aside *aside, struct machine *machine, plim_error *error)
{
    uint64_t written, previous, replaced = 0;
    bool newest = aside->from == paths->current;
    TRY(partial_bytes(&written, folder, error));
    TRY(file_size_at(&previous, paths->previous, error));
    if (!newest || !aside->keeps)
        TRY(file_size_at(&replaced, newest ? paths->older : paths->current, error));
    return prove_room(folder, machine, written, replaced + (aside->from == paths->previous ? 0 : previous), error);
}

/* `previous` goes first: alone under its name it would be taken for this run's. */
static plim_status replace_older(struct safetensors_writer *writer, const struct paths *paths,
                                 const struct aside *aside, plim_error *error)
{
    bool committed;
    if (aside->from != paths->previous)
        TRY(file_remove(paths->previous, error));
    if (aside->keeps)
        TRY(file_rename(paths->older, aside->path, error));
    if (aside->from)
        TRY(file_rename(aside->from, paths->older, error));
    plim_status status = safetensors_commit(writer, error);
    if (status != PLIM_OK && aside->from && file_exists(&committed, paths->current, NULL) == PLIM_OK && !committed)
        (void)file_rename(paths->older, aside->from, NULL);
    return status;
}

plim_status checkpoint_begin(bool *set_aside, struct checkpoint_folder *folder, struct machine *machine,
                             const struct position *position, plim_error *error)
{
    struct paths paths;
    struct aside aside;
    struct safetensors_writer *writer;
    TRY(join_all(&paths, folder, error));
    TRY(checkpoint_write(&writer, paths.current, machine, position, error));
    plim_status status = find_older(&aside, folder, &paths, machine->budget, error);
    if (status == PLIM_OK)
        status = prove_room_to_begin(folder, &paths, &aside, machine, error);
    if (status == PLIM_OK)
        status = replace_older(writer, &paths, &aside, error);
    safetensors_abandon(writer);
    if (status != PLIM_OK)
        return status;
    if (aside.keeps)
        limit_kept(folder, aside.name, machine->budget);
    folder->kept = aside.keeps;
    folder->kept_steps = aside.steps;
    snprintf(folder->kept_name, sizeof folder->kept_name, "%s", aside.name);
    *set_aside = aside.from != NULL;
    return PLIM_OK;
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
    char place[104];
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
    text_end(place, sizeof place, paths.current);
    message_print(said, 256, "%s: %.80s; went on from the checkpoint before it", place, newest.message);
    *found = folder->newest_broken = true;
    return PLIM_OK;
}
