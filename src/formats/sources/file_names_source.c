/* file_names_source.c - the paths of a list of files, as strings. */
#include <string.h>

#include "formats/files/file_list.h"
#include "formats/tables/rows.h"

#define NAMES_ROOM ((uint64_t)64 * 1024)

static plim_status names_read(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                              const struct row_target *target, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    TRY(source_check(source, index, count, error));
    for (*done = 0; *done < count; ++*done) {
        file_list_path(path, source->files, index[*done]);
        struct string name = {.bytes = strlen(path)};
        uint8_t *data = value_buffer_take_bytes(target->values, name.bytes);
        if (!data)
            break;
        name.data = memcpy(data, path, name.bytes);
        memcpy((uint8_t *)target->to[0] + (uint64_t)*done * target->stride[0], &name, sizeof name);
    }
    return PLIM_OK;
}

static const struct source_type names_type = {.name = "list_files", .read_values = names_read, SOURCE_FILES};

plim_status file_names_open(struct source **out, struct budget *budget, struct file_list *list, plim_error *error)
{
    struct source *source;
    plim_status status = source_make(&source, sizeof *source, &names_type, budget, error);
    if (status != PLIM_OK) {
        file_list_free(list);
        return status;
    }
    source->files = list;
    source->count = file_list_count(list);
    source->value_bytes = NAMES_ROOM;
    return source_opened(out, source, spec_add(&source->spec, "file", TYPE_STRING, &(struct shape){0}, error));
}
