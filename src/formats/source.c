/* source.c - what all sources share: columns, checks, closing. */
#include "formats/source.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/files/file_list.h"
#include "formats/tables/rows.h"

bool column_is_variable(const struct column *column)
{
    for (int i = 0; i < column->shape.rank; i++)
        if (column->shape.dim[i] < 0)
            return true;
    return false;
}

bool column_has_values(const struct column *column)
{
    return column->type == TYPE_STRING || column_is_variable(column);
}

bool spec_has_values(const struct spec *spec)
{
    for (int c = 0; c < spec->column_count; c++)
        if (column_has_values(&spec->column[c]))
            return true;
    return false;
}

bool column_bytes(uint64_t *bytes, const struct column *column)
{
    if (!column_is_variable(column))
        return shape_bytes(bytes, &column->shape, column->type);
    *bytes = sizeof(struct cell);
    return true;
}

int spec_find(const struct spec *spec, const char *name)
{
    for (int c = 0; c < spec->column_count; c++)
        if (strcmp(spec->column[c].name, name) == 0)
            return c;
    return -1;
}

plim_status spec_add(struct spec *spec, const char *name, enum type type, const struct shape *shape, plim_error *error)
{
    if (spec->column_count >= MOST_COLUMNS)
        return fail(error, PLIM_BAD_JOB, "more than %d columns", MOST_COLUMNS);
    struct column *column = &spec->column[spec->column_count];
    uint64_t bytes, all;
    *column = (struct column){.type = type, .shape = *shape, .origin = spec->column_count};
    if (!column_bytes(&bytes, column) || !add_u64(&all, spec->element_bytes, bytes))
        return fail(error, PLIM_BAD_DATA, "an element does not fit any memory");
    if (name && strlen(name) >= sizeof column->name)
        return fail(error, PLIM_BAD_JOB, "column name of more than %zu bytes: %.40s...", sizeof column->name - 1, name);
    column->bytes = bytes;
    if (name)
        memcpy(column->name, name, strlen(name) + 1);
    else if (spec->column_count < 2)
        column->name[0] = "xy"[spec->column_count];
    else
        snprintf(column->name, sizeof column->name, "c%d", spec->column_count);
    spec->column_count++;
    spec->element_bytes = all;
    return PLIM_OK;
}

plim_status source_check(const struct source *source, const int64_t *index, int64_t count, plim_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (index[i] < 0 || index[i] >= source->count)
            return fail(error, PLIM_INTERNAL, "%s source: element %lld of %lld", source->type->name,
                        (long long)index[i], (long long)source->count);
    return PLIM_OK;
}

void source_count_read(struct source *source, uint64_t bytes)
{
    __atomic_fetch_add(&source->bytes_read, bytes, __ATOMIC_RELAXED);
}

const char *text_keep(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t bytes = strlen(text) + 1;
    char *kept = memcpy(*at, text, bytes);
    *at += bytes;
    return kept;
}

uint64_t target_put_strings(const struct row_target *target, const struct string *strings, int64_t count)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < count; i++) {
        memcpy((char *)target->to[0] + (uint64_t)i * target->stride[0], &strings[i], sizeof strings[i]);
        bytes += strings[i].bytes;
    }
    return bytes;
}

void source_place(char out[256], const char *path, int64_t record, uint64_t byte)
{
    size_t bytes = strlen(path), most = 180;
    const char *cut = bytes > most ? "..." : "", *end = bytes > most ? path + bytes - most : path;
    if (byte == SOURCE_BYTE_UNKNOWN)
        snprintf(out, 256, "%s%s: record %lld", cut, end, (long long)record);
    else
        snprintf(out, 256, "%s%s: record %lld at byte %llu", cut, end, (long long)record, (unsigned long long)byte);
}

plim_status source_make(void *out, size_t bytes, const struct source_type *type, struct budget *budget,
                        plim_error *error)
{
    struct source *source;
    TRY(budget_alloc(&source, budget, TAG_FORMATS, bytes, error));
    source->type = type;
    source->budget = budget;
    source->bytes = bytes;
    memcpy(out, &source, sizeof source);
    return PLIM_OK;
}

plim_status source_opened(struct source **out, struct source *source, plim_status status)
{
    return OPENED(out, source, source_close, status);
}

void source_close(struct source *source)
{
    if (!source)
        return;
    size_t bytes = source->bytes; /* 0: close() frees the struct itself */
    if (source->type->close)
        source->type->close(source);
    if (!bytes)
        return;
    file_list_free(source->files);
    budget_give(source->budget, TAG_FORMATS, source, bytes);
}

int64_t source_file_count(const struct source *source)
{
    return file_list_count(source->files);
}

void source_file_path(char out[4096], const struct source *source, int64_t file)
{
    file_list_path(out, source->files, file);
}

plim_status held_error_report(struct held_error *held, plim_error *error)
{
    plim_status status = held->status;
    held->status = PLIM_OK;
    if (status != PLIM_OK && error)
        *error = held->error;
    return status;
}
