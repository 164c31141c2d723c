/* map.c - a function over the rows of a chunk, and how a job file names it.

   map: [cast: float32, random_flip: horizontal]     one after the other, on the function's usual column
   map: {x: [rescale: 1/255], y: [one_hot: 10]}      by column */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "pipeline/map_functions.h"
#include "pipeline/stage.h"

/* infer changes types and shapes; bytes follow from them. */
static plim_status measure(struct spec *spec, const char *name, int64_t rows, plim_error *error)
{
    uint64_t bytes = 0;
    bool fits = true;
    for (int c = 0; c < spec->column_count && fits; c++) {
        struct column *column = &spec->column[c];
        fits = shape_bytes(&column->bytes, &column->shape, column->type) && add_u64(&bytes, bytes, column->bytes);
    }
    spec->element_bytes = bytes;
    if (!fits || !mul_u64(&bytes, bytes, rows ? (uint64_t)rows : 1) || bytes > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "%s: makes more bytes than an address can say", name);
    return PLIM_OK;
}

static plim_status map_build(struct dataset *dataset, plim_error *error)
{
    struct spec *spec = (struct spec *)dataset->spec; /* our own copy of the input's, in our block */
    TRY(dataset->function->infer(spec, dataset->options, error));
    return measure(spec, dataset->function->name, dataset->batch_size, error);
}

struct dataset *dataset_map(struct dataset *dataset, const struct map_function *function, const void *options)
{
    void *room;
    size_t spec_bytes = round_up(sizeof(struct spec), 64);
    struct dataset *node = dataset_stage(&dataset, &stage_map, spec_bytes + function->options_bytes, &room);
    if (!node)
        return dataset;
    node->spec = memcpy(room, dataset->spec, sizeof(struct spec));
    if (function->options_bytes)
        node->options = memcpy((char *)room + spec_bytes, options, function->options_bytes);
    node->function = function;
    return dataset_built(node);
}

/* ---- job files ---- */

/* `cast: float32`: an entry of the list, on `column` ("" for the function's usual one). */
static plim_status read_function(struct dataset **dataset, const char *column, const char *job, const char *word,
                                 const struct yaml *value, const struct yaml *at, plim_error *error)
{
    char where[256];
    union map_options options;
    yaml_key_place(where, job, at);
    const struct map_function *function = map_function_by_name(word);
    if (!function)
        return map_function_unknown(word, where, error);
    plim_status status = map_function_read(&options, function, job, value, error);
    if (status == PLIM_OK) {
        snprintf(options.column, sizeof options.column, "%s", column);
        *dataset = dataset_map(*dataset, function, &options);
        status = dataset_error(*dataset, error);
    }
    return status == PLIM_OK ? PLIM_OK : place(error, status, where);
}

static plim_status read_list(struct dataset **dataset, const char *column, const char *job, const struct yaml *list,
                             plim_error *error)
{
    for (const struct yaml *entry = list->first; entry; entry = entry->next) {
        const char *word;
        const struct yaml *value;
        TRY(stage_word(&word, &value, job, entry, error));
        for (; value && value->next; value = value->next) /* {cast: float32, rescale: 2}: in the order written */
            TRY(read_function(dataset, column, job, value->key, value, value, error));
        TRY(read_function(dataset, column, job, value ? value->key : word, value, value ? value : entry, error));
    }
    return PLIM_OK;
}

static bool has_column(const struct dataset *dataset, const char *name)
{
    for (int c = 0; c < dataset->spec->column_count; c++)
        if (strcmp(dataset->spec->column[c].name, name) == 0)
            return true;
    return false;
}

static plim_status read_column(struct dataset **dataset, const char *job, const struct yaml *entry, plim_error *error)
{
    char where[256];
    if (entry->kind == YAML_LIST)
        return read_list(dataset, entry->key, job, entry, error);
    yaml_place(where, job, entry);
    fail_at(error, PLIM_UNSUPPORTED, where, "map: expressions over columns are not offered yet");
    return hint(error, PLIM_UNSUPPORTED, "%s: [cast: float32], a list of functions", entry->key);
}

static plim_status map_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                            plim_error *error)
{
    char where[256];
    (void)seed;
    yaml_place(where, job, value);
    if (value->count == 0)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "map: expected a list of functions"),
                    "map: [cast: float32]");
    if (value->kind == YAML_LIST)
        return read_list(dataset, "", job, value, error);
    for (const struct yaml *entry = value->first; entry; entry = entry->next) {
        if (has_column(*dataset, entry->key) || (entry->kind == YAML_LIST && !map_function_by_name(entry->key)))
            TRY(read_column(dataset, job, entry, error));
        else
            TRY(read_function(dataset, "", job, entry->key, entry, entry, error));
    }
    return PLIM_OK;
}

const struct stage stage_map = {
    .name = "map",
    .after_batch = true,
    .build = map_build,
    .read = map_read,
};
