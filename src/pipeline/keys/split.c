/* split.c - a split of a job file's data into a data set: one source key, then the pipeline's stages in their order. */
#include "pipeline/keys/split.h"

#include <string.h>

#include "base/text/text.h"
#include "pipeline/core/stage.h"

#define MOST_NESTING 16

static plim_status read_size(uint64_t *bytes, struct data_reader *reader, const struct yaml *yaml, plim_error *error)
{
    if (yaml->kind == YAML_SCALAR && !yaml->is_null && text_parse_size(bytes, yaml->text) && *bytes)
        return PLIM_OK;
    return hint(error, reader_bad(reader, yaml, "largest_element: expected a size", error), "largest_element: 4MiB");
}

static plim_status read_keys(struct split *out, struct data_reader *reader, const struct yaml *yaml, plim_error *error)
{
    for (const struct yaml *entry = yaml->first; entry; entry = entry->next) {
        if (strcmp(entry->key, "pipeline") == 0)
            out->pipeline = entry;
        else if (strcmp(entry->key, "largest_element") == 0)
            TRY(read_size(&out->largest_element, reader, entry, error));
        else if (!source_key_find(entry->key))
            return source_key_unknown(reader, entry, error);
        else if (out->source)
            return reader_bad(reader, entry, "a second source: one split has one", error);
        else
            out->source = entry;
    }
    return PLIM_OK;
}

plim_status split_read(struct split *out, struct data_reader *reader, const struct yaml *yaml, plim_error *error)
{
    *out = (struct split){0};
    if (yaml->kind != YAML_MAP)
        return reader_bad(reader, yaml,
                          "expected a source and a pipeline, as in {npy: [x.npy, y.npy], pipeline: [batch: 32]}",
                          error);
    TRY(read_keys(out, reader, yaml, error));
    if (!out->source)
        return hint(error, reader_bad(reader, yaml, "no source", error), "npy: [x.npy, y.npy]");
    if (out->pipeline && out->pipeline->kind != YAML_LIST)
        return reader_bad(reader, out->pipeline, "'pipeline:' must be a list of stages, as in [batch: 32]", error);
    return PLIM_OK;
}

static plim_status open_source(struct dataset **out, struct data_reader *reader, const struct split *split,
                               plim_error *error)
{
    char where[256];
    yaml_place(where, reader->path, split->source);
    plim_status status = source_key_find(split->source->key)->open(out, reader, split->source, error);
    if (status == PLIM_OK)
        status = dataset_error(*out, error);
    if (status != PLIM_OK)
        return error_at(error, status, where);
    if (split->largest_element)
        dataset_set_value_bytes(*out, split->largest_element);
    return PLIM_OK;
}

plim_status split_open(struct dataset **out, struct data_reader *reader, const struct split *split, plim_error *error)
{
    TRY(open_source(out, reader, split, error));
    for (const struct yaml *stage = split->pipeline ? split->pipeline->first : NULL; stage; stage = stage->next)
        TRY(stage_read(out, reader->path, stage, reader->seed, error));
    return PLIM_OK;
}

plim_status split_open_nested(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                              plim_error *error)
{
    struct dataset *dataset = NULL;
    struct split split;
    if (reader->nesting >= MOST_NESTING)
        return reader_bad(reader, yaml, "data sets inside data sets: too deep", error);
    reader->nesting++;
    plim_status status = split_read(&split, reader, yaml, error);
    if (status == PLIM_OK)
        status = split_open(&dataset, reader, &split, error);
    reader->nesting--;
    return OPENED(out, dataset, dataset_unref, status);
}
