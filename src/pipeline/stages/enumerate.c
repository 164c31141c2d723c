/* enumerate.c - the number of each element in front of it, as a column of its own. */
#include <stdio.h>
#include <string.h>

#include "pipeline/core/stage.h"

struct enumerate_options {
    char name[64];
};

static plim_status enumerate_build(struct dataset *dataset, plim_error *error)
{
    const struct enumerate_options *options = dataset->options;
    struct spec *spec = dataset_own_spec(dataset);
    if (spec->column_count >= MOST_COLUMNS)
        return fail(error, PLIM_UNSUPPORTED, "enumerate: there are %d columns already", MOST_COLUMNS);
    if (spec_find(spec, options->name) >= 0)
        return hint(error, fail(error, PLIM_BAD_JOB, "enumerate: there is a column '%s' already", options->name),
                    "enumerate: {name: number}");
    memmove(spec->column + 1, spec->column, (size_t)spec->column_count++ * sizeof spec->column[0]);
    spec->column[0] = (struct column){.type = TYPE_I64, .bytes = sizeof(int64_t), .origin = -1};
    snprintf(spec->column[0].name, sizeof spec->column[0].name, "%s", options->name);
    spec->element_bytes += sizeof(int64_t);
    dataset->stacked = 0; /* a number for a whole batch is no column of its samples */
    return PLIM_OK;
}

/* ---- running ---- */

struct enumerate_stream {
    struct stream stream;
    int64_t next;
};

static plim_status enumerate_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    ((struct enumerate_stream *)stream)->next = stream->dataset->number;
    return stream_rewind_inputs(stream, epoch, error);
}

/* The chunk without its first column: what the input fills. */
static struct chunk without_first(const struct chunk *chunk, const struct spec *spec)
{
    struct chunk rest = *chunk;
    rest.spec = spec;
    memmove(rest.column, rest.column + 1, (size_t)spec->column_count * sizeof rest.column[0]);
    return rest;
}

static plim_status enumerate_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct enumerate_stream *self = (struct enumerate_stream *)stream;
    struct chunk rest = without_first(to, stream->dataset->input->spec);
    plim_status status = stream_pull(stream->input, &rest, most, error);
    self->next = (int64_t)((uint64_t)self->next + (status == PLIM_BAD_DATA)); /* its number is used up */
    TRY(status);
    to->count = rest.count;
    to->values = rest.values;
    int64_t *numbers = (int64_t *)to->column[0];
    for (int64_t i = 0; i < to->count; i++)
        numbers[i] = (int64_t)((uint64_t)self->next + (uint64_t)i);
    self->next = (int64_t)((uint64_t)self->next + (uint64_t)to->count);
    return PLIM_OK;
}

static plim_status enumerate_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                                  plim_error *error)
{
    struct enumerate_stream *self = (struct enumerate_stream *)stream;
    struct chunk rest = without_first(by, stream->dataset->input->spec);
    TRY(stream_skip(passed, stream->input, count, &rest, error));
    self->next = (int64_t)((uint64_t)self->next + (uint64_t)*passed);
    return PLIM_OK;
}

static const struct stream_type enumerate_stream = {.state_bytes = sizeof(struct enumerate_stream),
                                                    .rewind = enumerate_rewind,
                                                    .pull = enumerate_pull,
                                                    .skip = enumerate_skip};

/* ---- building ---- */

struct dataset *dataset_enumerate(struct dataset *dataset, int64_t start, const char *name)
{
    struct enumerate_options options;
    snprintf(options.name, sizeof options.name, "%s", name ? name : "index");
    return dataset_add(dataset, &stage_enumerate,
                       (struct stage_arguments){.options = &options, .options_bytes = sizeof options, .number = start});
}

static plim_status enumerate_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct keys {
        int64_t start;
        const char *name;
    } keys = {0};
    static const struct setting settings[] = {
        {"start", SETTING_WHOLE, offsetof(struct keys, start), INT64_MIN},
        {"name", SETTING_WORD, offsetof(struct keys, name), 0},
    };
    TRY(stage_settings(&keys, settings, 2, NULL, entry, error));
    *dataset = dataset_enumerate(*dataset, keys.start, keys.name);
    return PLIM_OK;
}

const struct stage stage_enumerate = {
    .name = "enumerate",
    .bare = true,
    .build = enumerate_build,
    .stream = &enumerate_stream,
    .keeps_elements = true,
    .changes_spec = true,
    .sequential = true,
    .read = enumerate_read,
};
