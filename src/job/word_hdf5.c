/* word_hdf5.c - data sets of an HDF5 file side by side.

   hdf5: data.h5                                          all of the root group, under their names
   hdf5: {file: data.h5, x: /train/images, y: /train/labels} */
#include <string.h>

#include "formats/sources/hdf5_source.h"
#include "job/source_word.h"

static plim_status open_hdf5(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    const struct yaml *file = yaml->kind == YAML_MAP ? yaml_get(yaml, "file") : yaml;
    struct hdf5_column columns[MOST_COLUMNS];
    const char *paths[MOST_FILES];
    struct source *source;
    int path_count, count = 0;
    if (!file)
        return hint(error, job_bad(job, yaml, "hdf5: 'file:' is missing", error),
                    "hdf5: {file: data.h5, x: /images, y: /labels}");
    for (const struct yaml *entry = yaml->kind == YAML_MAP ? yaml->first : NULL; entry; entry = entry->next) {
        if (entry == file)
            continue;
        if (count == MOST_COLUMNS)
            return job_bad(job, entry, "hdf5: too many columns", error);
        if (entry->kind != YAML_SCALAR || !*entry->text)
            return job_bad(job, entry, "expected the path of a data set in the file", error);
        columns[count++] = (struct hdf5_column){.path = entry->text, .name = entry->key};
    }
    TRY(job_paths(paths, &path_count, job, file, error));
    if (path_count != 1)
        return hint(error, job_bad(job, file, "hdf5: one file", error), "zip: and concatenate: join several");
    TRY(hdf5_source_open(&source, job->budget, paths[0], columns, count, error));
    *out = dataset_from_source(source);
    return PLIM_OK;
}

const struct source_word source_word_hdf5 = {"hdf5", open_hdf5, OF_FILES};
