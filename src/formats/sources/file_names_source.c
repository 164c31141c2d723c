/* file_names_source.c - the paths of a list of files, as strings. */
#include <string.h>

#include "formats/files/file_list.h"
#include "formats/tables/rows.h"

struct names_source {
    struct source base;
    struct file_list *list;
};

#define NAMES_ROOM ((uint64_t)64 * 1024)

static plim_status names_read(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                              const struct row_target *target, plim_error *error)
{
    const struct names_source *self = (const struct names_source *)source;
    char path[FILE_PATH_MOST + 1];
    TRY(source_check(source, index, count, error));
    for (*done = 0; *done < count; ++*done) {
        file_list_path(path, self->list, index[*done]);
        struct string name = {.bytes = strlen(path)};
        uint8_t *data = room_take_bytes(target->room, name.bytes);
        if (!data)
            break;
        name.data = memcpy(data, path, name.bytes);
        memcpy((uint8_t *)target->to[0] + (uint64_t)*done * target->stride[0], &name, sizeof name);
    }
    return PLIM_OK;
}

static int64_t names_file_count(const struct source *source)
{
    return file_list_count(((const struct names_source *)source)->list);
}

static void names_file_path(char out[4096], const struct source *source, int64_t file)
{
    file_list_path(out, ((const struct names_source *)source)->list, file);
}

static void names_close(struct source *source)
{
    struct names_source *self = (struct names_source *)source;
    file_list_free(self->list);
    budget_give(source->budget, TAG_FORMATS, self, sizeof *self);
}

static const struct source_type names_type = {.name = "list_files",
                                              .read_values = names_read,
                                              .file_count = names_file_count,
                                              .file_path = names_file_path,
                                              .close = names_close};

plim_status file_names_open(struct source **out, struct budget *budget, struct file_list *list, plim_error *error)
{
    struct names_source *self = budget_take(budget, TAG_FORMATS, sizeof *self);
    if (!self) {
        plim_status status = budget_refused(budget, TAG_FORMATS, sizeof *self, error);
        file_list_free(list);
        return status;
    }
    self->list = list;
    self->base.type = &names_type;
    self->base.budget = budget;
    self->base.count = file_list_count(list);
    self->base.room_bytes = NAMES_ROOM;
    plim_status status = spec_add(&self->base.spec, "file", TYPE_STRING, &(struct shape){0}, error);
    if (status != PLIM_OK) {
        source_close(&self->base);
        return status;
    }
    *out = &self->base;
    return PLIM_OK;
}
