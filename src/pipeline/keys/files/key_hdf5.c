/* key_hdf5.c - data sets of an HDF5 file side by side.

   hdf5: data.h5                                          all of the root group, under their names
   hdf5: {file: data.h5, x: /train/images, y: /train/labels} */
#include <string.h>

#include "formats/source.h"
#include "pipeline/keys/source_key.h"

static plim_status open_hdf5(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error)
{
    const struct yaml *file = yaml->kind == YAML_MAP ? yaml_get(yaml, "file") : yaml;
    struct array_column columns[MOST_COLUMNS];
    const char *paths[MOST_FILES];
    struct source *source;
    int path_count, count = 0;
    if (!file)
        return hint(error, reader_bad(reader, yaml, "hdf5: 'file:' is missing", error),
                    "hdf5: {file: data.h5, x: /images, y: /labels}");
    for (const struct yaml *entry = yaml->kind == YAML_MAP ? yaml->first : NULL; entry; entry = entry->next) {
        if (entry == file)
            continue;
        if (count == MOST_COLUMNS)
            return reader_bad(reader, entry, "hdf5: too many columns", error);
        if (entry->kind != YAML_SCALAR || !*entry->text)
            return reader_bad(reader, entry, "expected the path of a data set in the file", error);
        columns[count++] = (struct array_column){.array = entry->text, .name = entry->key};
    }
    TRY(reader_paths(paths, &path_count, reader, file, error));
    if (path_count != 1)
        return hint(error, reader_bad(reader, file, "hdf5: one file", error), "zip: and concatenate: join several");
    return key_opened(out, &source, hdf5_source_open(&source, reader->budget, paths[0], columns, count, error));
}

static bool is_hdf5(const struct file_head *head)
{
    return file_head_starts(head, "\x89HDF\r\n\x1a\n", 8);
}

const struct source_key source_key_hdf5 = {
    .word = "hdf5", .open = open_hdf5, .origin = OF_FILES, .is_file = is_hdf5, .suffixes = {".h5", ".hdf5"}};
