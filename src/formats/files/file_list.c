/* file_list.c - how a list of files is kept: blocks that never move, names stored once, folders shared. */
#include "formats/files/file_list.h"

#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/memory/budget_need.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "formats/files/file_list_inside.h"
#include "formats/files/heapsort.h"

/* ---- piles: arrays in blocks ------------------------------------------------- */

static void *pile_at(const struct pile *pile, uint64_t i)
{
    uint64_t each = PILE_BLOCK_BYTES / pile->item;
    return pile->block[i / each] + i % each * pile->item;
}

/* One block more; the table of blocks doubles when it is full. */
static bool pile_extend(struct pile *pile, struct budget *budget)
{
    if (pile->blocks == pile->table) {
        size_t old = pile->table * sizeof *pile->block, table = pile->table ? 2 * pile->table : 8;
        uint8_t **grown = pile->block ? budget_grow(budget, TAG_FORMATS, pile->block, old, table * sizeof *grown)
                                      : budget_take(budget, TAG_FORMATS, table * sizeof *grown);
        if (!grown)
            return false;
        pile->block = grown;
        pile->table = table;
    }
    uint8_t *block = budget_take(budget, TAG_FORMATS, PILE_BLOCK_BYTES);
    if (block)
        pile->block[pile->blocks++] = block;
    return block != NULL;
}

/* `count` new items, side by side; *out is a pointer to the first of them. */
static plim_status pile_add(void *out, struct pile *pile, uint64_t count, struct budget *budget, plim_error *error)
{
    uint64_t each = PILE_BLOCK_BYTES / pile->item;
    if (pile->count % each + count > each)
        pile->count += each - pile->count % each; /* never for single items */
    if (pile->count / each == pile->blocks && !pile_extend(pile, budget))
        return budget_refused(budget, TAG_FORMATS, PILE_BLOCK_BYTES, error);
    void *added = pile_at(pile, pile->count);
    pile->count += count;
    memcpy(out, &added, sizeof added);
    return PLIM_OK;
}

static void pile_release(struct pile *pile, struct budget *budget)
{
    for (size_t i = 0; i < pile->blocks; i++)
        budget_give(budget, TAG_FORMATS, pile->block[i], PILE_BLOCK_BYTES);
    budget_give(budget, TAG_FORMATS, pile->block, pile->table * sizeof *pile->block);
    *pile = (struct pile){.item = pile->item};
}

static uint64_t pile_bytes(const struct pile *pile)
{
    return pile->blocks * PILE_BLOCK_BYTES + pile->table * sizeof *pile->block;
}

/* ---- the list -------------------------------------------------------------------- */

plim_status file_list_make(struct file_list **out, struct budget *budget, plim_error *error)
{
    struct file_list *list;
    TRY(budget_alloc(&list, budget, TAG_FORMATS, sizeof *list, error));
    list->budget = budget;
    list->texts.item = 1;
    list->files.item = sizeof(struct listed_file);
    list->folders.item = sizeof(struct listed_folder);
    list->classes.item = sizeof(uint32_t);
    *out = list;
    return PLIM_OK;
}

static void release_piles(struct file_list *list)
{
    pile_release(&list->texts, list->budget);
    pile_release(&list->files, list->budget);
    pile_release(&list->folders, list->budget);
    pile_release(&list->classes, list->budget);
}

void file_list_free(struct file_list *list)
{
    if (!list)
        return;
    release_piles(list);
    budget_give(list->budget, TAG_FORMATS, list, sizeof *list);
}

int64_t file_list_count(const struct file_list *list)
{
    return (int64_t)list->files.count;
}

uint64_t file_list_bytes(const struct file_list *list)
{
    return sizeof *list + pile_bytes(&list->texts) + pile_bytes(&list->files) + pile_bytes(&list->folders) +
           pile_bytes(&list->classes);
}

static const char *list_text(const struct file_list *list, uint32_t at)
{
    return pile_at(&list->texts, at);
}

static void list_parts(const char **folder, const char **name, const struct file_list *list, uint64_t file)
{
    const struct listed_file *listed = pile_at(&list->files, file);
    const struct listed_folder *in = pile_at(&list->folders, listed->folder);
    *folder = list_text(list, in->path);
    *name = list_text(list, listed->name);
}

void file_list_path(char out[FILE_PATH_MOST + 1], const struct file_list *list, int64_t file)
{
    const char *folder, *name;
    list_parts(&folder, &name, list, (uint64_t)file);
    size_t bytes = strlen(folder);
    memcpy(out, folder, bytes);
    memcpy(out + bytes, name, strlen(name) + 1);
}

int32_t file_list_label(const struct file_list *list, int64_t file)
{
    const struct listed_file *listed = pile_at(&list->files, (uint64_t)file);
    return ((const struct listed_folder *)pile_at(&list->folders, listed->folder))->label;
}

int64_t file_list_class_count(const struct file_list *list)
{
    return (int64_t)list->classes.count;
}

const char *file_list_class(const struct file_list *list, int64_t label)
{
    return list_text(list, *(const uint32_t *)pile_at(&list->classes, (uint64_t)label));
}

/* ---- adding ------------------------------------------------------------------------ */

static plim_status list_keep_text(uint32_t *at, struct file_list *list, const char *text, size_t bytes,
                                  plim_error *error)
{
    if (list->texts.count > UINT32_MAX - 2 * PILE_BLOCK_BYTES)
        return fail(error, PLIM_UNSUPPORTED, "a list of files with more than 4 GiB of names");
    char *kept;
    TRY(pile_add(&kept, &list->texts, bytes + 1, list->budget, error));
    memcpy(kept, text, bytes);
    kept[bytes] = 0;
    *at = (uint32_t)(list->texts.count - bytes - 1);
    return PLIM_OK;
}

/* Files of one folder come one after another: only the last folder is looked at. */
static plim_status keep_folder(uint32_t *out, struct file_list *list, const char *path, size_t bytes, int32_t label,
                               plim_error *error)
{
    uint64_t count = list->folders.count;
    if (count) {
        const struct listed_folder *last = pile_at(&list->folders, count - 1);
        const char *text = list_text(list, last->path);
        *out = (uint32_t)(count - 1);
        if (last->label == label && strncmp(text, path, bytes) == 0 && text[bytes] == 0)
            return PLIM_OK;
    }
    uint32_t at = 0;
    TRY(list_keep_text(&at, list, path, bytes, error));
    struct listed_folder *folder;
    TRY(pile_add(&folder, &list->folders, 1, list->budget, error));
    *folder = (struct listed_folder){.path = at, .label = label};
    *out = (uint32_t)count;
    return PLIM_OK;
}

static plim_status keep_file(struct file_list *list, const char *folder, size_t folder_bytes, const char *name,
                             int32_t label, plim_error *error)
{
    uint32_t in = 0, at = 0;
    size_t bytes = strlen(name);
    TRY(keep_folder(&in, list, folder, folder_bytes, label, error));
    TRY(list_keep_text(&at, list, name, bytes, error));
    struct listed_file *file;
    TRY(pile_add(&file, &list->files, 1, list->budget, error));
    *file = (struct listed_file){.folder = in, .name = at};
    return PLIM_OK;
}

plim_status list_add(struct file_list *list, const char *folder, size_t folder_bytes, const char *name, int32_t label,
                     plim_error *error)
{
    plim_error inner = {0};
    size_t bytes = strlen(name);
    if (bytes > FILE_PATH_MOST || folder_bytes > FILE_PATH_MOST - bytes)
        return fail(error, PLIM_BAD_DATA, "a path of more than %d bytes: ...%.100s", FILE_PATH_MOST, name);
    if (list->files.count >= UINT32_MAX)
        return fail(error, PLIM_UNSUPPORTED, "a list of more than %u files", UINT32_MAX);
    if (!list->full) {
        plim_status status = keep_file(list, folder, folder_bytes, name, label, &inner);
        list->full = status == PLIM_OVER_BUDGET;
        if (status != PLIM_OK && !list->full && error)
            *error = inner;
        if (!list->full)
            return status;
    }
    list->beyond_files++;
    list->beyond_bytes += FILE_LISTED_BYTES + bytes;
    return PLIM_OK;
}

/* With the four bytes a file that sorting takes. What the list holds is given back first: it counts as left. */
plim_status list_finish(struct file_list *list, const char *where, plim_error *error)
{
    if (!list->full)
        return PLIM_OK;
    uint64_t count = list->files.count + list->beyond_files, bytes = file_list_bytes(list) + list->beyond_bytes;
    release_piles(list);
    uint64_t cost = add_most(bytes, count * sizeof(uint32_t)), room = budget_room(list->budget);
    TRY(budget_need(list->budget, cost > room ? cost : room + 1, where, count, "files", error));
    /* Somebody gave memory back meanwhile: the list is incomplete all the same. */
    return budget_refused(list->budget, TAG_FORMATS, cost, error);
}

plim_status file_list_add(struct file_list *list, const char *path, plim_error *error)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    TRY(list_add(list, path, (size_t)(name - path), name, -1, error));
    return list_finish(list, path, error);
}

/* ---- sorting ------------------------------------------------------------------------- */

struct range {
    const struct file_list *list;
    uint64_t first;
};

/* By the bytes of the whole paths, which lie in two pieces each. */
static bool path_before(const void *context, uint32_t a, uint32_t b)
{
    const struct range *range = context;
    const char *one, *two, *one_name, *two_name;
    list_parts(&one, &one_name, range->list, range->first + a);
    list_parts(&two, &two_name, range->list, range->first + b);
    if (one == two)
        return strcmp(one_name, two_name) < 0;
    bool one_in_name = false, two_in_name = false;
    for (;; one++, two++) {
        if (!*one && !one_in_name) {
            one = one_name;
            one_in_name = true;
        }
        if (!*two && !two_in_name) {
            two = two_name;
            two_in_name = true;
        }
        if (*one != *two || !*one)
            return (unsigned char)*one < (unsigned char)*two;
    }
}

/* By the folders' paths, without the slash at their end, then by name: Keras's order. */
static bool folder_before(const void *context, uint32_t a, uint32_t b)
{
    const struct range *range = context;
    const char *one, *two, *one_name, *two_name;
    list_parts(&one, &one_name, range->list, range->first + a);
    list_parts(&two, &two_name, range->list, range->first + b);
    if (one == two)
        return strcmp(one_name, two_name) < 0;
    size_t one_bytes = strlen(one) - 1, two_bytes = strlen(two) - 1;
    int order = memcmp(one, two, one_bytes < two_bytes ? one_bytes : two_bytes);
    return order ? order < 0 : one_bytes < two_bytes;
}

static bool class_before(const void *context, uint32_t a, uint32_t b)
{
    const struct range *range = context;
    return strcmp(file_list_class(range->list, a), file_list_class(range->list, b)) < 0;
}

/* item[i] becomes the old item[order[i]], a cycle at a time; order is used up. */
static void permute(struct pile *pile, uint64_t first, uint32_t *order, uint32_t count)
{
    uint8_t kept[16];
    for (uint32_t start = 0; start < count; start++) {
        uint32_t i = start;
        memcpy(kept, pile_at(pile, first + start), pile->item);
        for (uint32_t from; (from = order[i]) != start; i = from) {
            memcpy(pile_at(pile, first + i), pile_at(pile, first + from), pile->item);
            order[i] = i;
        }
        memcpy(pile_at(pile, first + i), kept, pile->item);
        order[i] = i;
    }
}

static plim_status sort_pile(struct file_list *list, struct pile *pile, uint64_t first, index_before *before,
                             plim_error *error)
{
    uint32_t count = (uint32_t)(pile->count - first);
    size_t bytes = (size_t)count * sizeof(uint32_t);
    if (count < 2 || list->full)
        return PLIM_OK;
    uint32_t *order = budget_take(list->budget, TAG_FORMATS, bytes);
    if (!order) {
        plim_status status = budget_refused(list->budget, TAG_FORMATS, bytes, error);
        list->full = status == PLIM_OVER_BUDGET;
        return list->full ? PLIM_OK : status;
    }
    struct range range = {list, first};
    sort_indices(order, count, before, &range, list->budget);
    permute(pile, first, order, count);
    budget_give(list->budget, TAG_FORMATS, order, bytes);
    return budget_may_transfer(list->budget, error);
}

plim_status list_sort(struct file_list *list, uint64_t first, plim_error *error)
{
    return sort_pile(list, &list->files, first, path_before, error);
}

plim_status list_sort_by_folder(struct file_list *list, uint64_t first, plim_error *error)
{
    return sort_pile(list, &list->files, first, folder_before, error);
}

plim_status list_add_class(struct file_list *list, const char *name, plim_error *error)
{
    uint32_t at = 0;
    TRY(list_keep_text(&at, list, name, strlen(name), error));
    uint32_t *kept;
    TRY(pile_add(&kept, &list->classes, 1, list->budget, error));
    *kept = at;
    return PLIM_OK;
}

plim_status list_sort_classes(struct file_list *list, plim_error *error)
{
    return sort_pile(list, &list->classes, 0, class_before, error);
}
