/* enumerate.c - the number of each element in front of it, as a column of its own. */
#include <stdio.h>
#include <string.h>

#include "base/text/settings.h"
#include "pipeline/core/stage.h"

/* The node's room: the new spec first. */
struct enumerate_options {
    struct spec spec;
    char name[64];
};

static plim_status enumerate_build(struct dataset *dataset, plim_error *error)
{
    struct enumerate_options *options = (struct enumerate_options *)(uintptr_t)dataset->options;
    const struct spec *input = dataset->spec;
    if (input->column_count >= MOST_COLUMNS)
        return fail(error, PLIM_UNSUPPORTED, "enumerate: there are %d columns already", MOST_COLUMNS);
    if (spec_find(input, options->name) >= 0) {
        fail(error, PLIM_BAD_JOB, "enumerate: there is a column '%s' already", options->name);
        return hint(error, PLIM_BAD_JOB, "enumerate: {name: number}");
    }
    struct spec *spec = &options->spec;
    *spec = *input;
    memmove(spec->column + 1, spec->column, (size_t)spec->column_count++ * sizeof spec->column[0]);
    spec->column[0] = (struct column){.type = TYPE_I64, .bytes = sizeof(int64_t), .origin = -1};
    snprintf(spec->column[0].name, sizeof spec->column[0].name, "%s", options->name);
    spec->element_bytes += sizeof(int64_t);
    dataset->spec = spec;
    dataset->stacked = 0; /* a number for a whole batch is no column of its samples */
    return PLIM_OK;
}

/* ---- running ---- */

struct enumerate_stream {
    struct stream stream;
    int64_t next;
};

static uint64_t enumerate_bytes(const struct dataset *dataset)
{
    (void)dataset;
    return sizeof(struct enumerate_stream);
}

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
    to->room = rest.room;
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

static const struct stream_type enumerate_stream = {
    .bytes = enumerate_bytes, .rewind = enumerate_rewind, .pull = enumerate_pull, .skip = enumerate_skip};

/* ---- building ---- */

struct dataset *dataset_enumerate(struct dataset *dataset, int64_t start, const char *name)
{
    void *room;
    struct dataset *node = dataset_stage(&dataset, &stage_enumerate, sizeof(struct enumerate_options), &room);
    if (!node)
        return dataset;
    struct enumerate_options *options = room;
    snprintf(options->name, sizeof options->name, "%s", name ? name : "index");
    node->options = options;
    node->number = start;
    return dataset_built(node);
}

static plim_status enumerate_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                                  plim_error *error)
{
    struct words {
        int64_t start;
        const char *name;
    } words = {0};
    static const struct setting settings[] = {
        {"start", SETTING_WHOLE, offsetof(struct words, start), INT64_MIN},
        {"name", SETTING_WORD, offsetof(struct words, name), 0},
    };
    (void)seed;
    if (value && value->kind == YAML_SCALAR && !value->is_null)
        TRY(setting_value(&words.start, &settings[0], job, value, error));
    else if (value && !value->is_null)
        TRY(settings_read(&words, settings, 2, job, value, error));
    *dataset = dataset_enumerate(*dataset, words.start, words.name);
    return PLIM_OK;
}

const struct stage stage_enumerate = {
    .name = "enumerate",
    .bare = true,
    .build = enumerate_build,
    .stream = &enumerate_stream,
    .keeps_elements = true,
    .sequential = true,
    .read = enumerate_read,
};
