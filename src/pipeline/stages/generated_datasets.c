/* generated_datasets.c - data sets that need no format: of the caller's arrays or function, numbers, names of files. */
#include "formats/files/file_list.h"
#include "pipeline/core/stage.h"

static struct dataset *from(struct budget *budget, plim_status status, struct source *source, const plim_error *error)
{
    return status == PLIM_OK ? dataset_from_source(source) : dataset_failed(budget, error);
}

struct dataset *dataset_from_tensors(struct budget *budget, const struct spec *spec, const void *const *columns)
{
    return dataset_from_tensor_slices(budget, spec, columns, 1);
}

struct dataset *dataset_from_tensor_slices(struct budget *budget, const struct spec *spec, const void *const *columns,
                                           int64_t count)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = memory_open(&source, budget, spec, columns, count, &error);
    return from(budget, status, source, &error);
}

struct dataset *dataset_from_generator(struct budget *budget, const struct spec *spec,
                                       const struct generator *generator)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = generator_open(&source, budget, spec, generator, &error);
    return from(budget, status, source, &error);
}

struct dataset *dataset_counter(struct budget *budget, int64_t start, int64_t step, int64_t count)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = counter_open(&source, budget, start, step, count, &error);
    return from(budget, status, source, &error);
}

static plim_status list_open(struct source **out, struct budget *budget, const char *const *patterns, int count,
                             plim_error *error)
{
    struct file_list *list;
    TRY(file_list_make(&list, budget, error));
    plim_status status = file_list_glob(list, patterns, count, error);
    if (status == PLIM_OK)
        return file_names_open(out, budget, list, error);
    file_list_free(list);
    return status;
}

struct dataset *dataset_list_files(struct budget *budget, const char *const *patterns, int count, bool shuffle,
                                   uint64_t seed)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = list_open(&source, budget, patterns, count, &error);
    struct dataset *dataset = from(budget, status, source, &error);
    return shuffle ? dataset_shuffle(dataset, seed) : dataset;
}
