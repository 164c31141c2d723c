/* memory_source.c - arrays of the caller's, never copied whole. */
#include <string.h>

#include "base/numbers/checked.h"
#include "formats/tables/rows.h"

struct memory_source {
    struct source base;
    const void *column[MOST_COLUMNS]; /* count rows each, packed */
};

/* Rows index[0..count) of packed `from` to `to`: runs are one copy. */
static void copy_rows(char *to, uint64_t stride, const char *from, uint64_t bytes, const int64_t *index, int64_t count)
{
    for (int64_t i = 0; i < count;) {
        int64_t run = stride == bytes ? run_length(index + i, count - i) : 1;
        memcpy(to + (uint64_t)i * stride, from + (uint64_t)index[i] * bytes, (uint64_t)run * bytes);
        i += run;
    }
}

static plim_status memory_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                               const uint64_t *stride, plim_error *error)
{
    struct memory_source *memory = (struct memory_source *)source;
    TRY(source_check(source, index, count, error));
    for (int c = 0; c < source->spec.column_count; c++)
        copy_rows(to[c], stride[c], memory->column[c], source->spec.column[c].bytes, index, count);
    source_count_read(source, (uint64_t)count * source->spec.element_bytes);
    return PLIM_OK;
}

static const struct source_type memory_type = {.name = "memory", .read = memory_read};

#define ROOM_LEAST ((uint64_t)64 * 1024)
#define ROOM_MOST  ((uint64_t)1024 * 1024)
#define ROOM_ROWS  256

/* Strings stay where they are until a batch holds them: room for many of the largest, or for all there are. */
static uint64_t room_for_strings(const struct string *string, int64_t count)
{
    uint64_t largest = 0, all = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = string[i].bytes > largest ? string[i].bytes : largest;
        all = add_most(all, string[i].bytes);
    }
    uint64_t many = largest > ROOM_MOST / ROOM_ROWS ? ROOM_MOST : largest * ROOM_ROWS;
    many = many < ROOM_LEAST ? ROOM_LEAST : many;
    many = many < largest ? largest : many;
    return all < many ? all : many;
}

static plim_status memory_fill(struct memory_source *memory, const struct spec *spec, const void *const *columns,
                               plim_error *error)
{
    if (spec->column_count < 1)
        return fail(error, PLIM_BAD_JOB, "memory: no columns");
    for (int c = 0; c < spec->column_count; c++) {
        const struct column *column = &spec->column[c];
        TRY(spec_add(&memory->base.spec, column->name[0] ? column->name : NULL, column->type, &column->shape, error));
        memory->column[c] = columns[c];
        if (column_is_variable(column))
            return fail(error, PLIM_UNSUPPORTED, "memory: column '%s': arrays have one shape", column->name);
        if (column->type == TYPE_STRING)
            memory->base.value_bytes =
                add_most(memory->base.value_bytes,
                         room_for_strings(columns[c], memory->base.count * shape_count(&column->shape)));
    }
    return PLIM_OK;
}

plim_status memory_open(struct source **out, struct budget *budget, const struct spec *spec, const void *const *columns,
                        int64_t count, plim_error *error)
{
    if (count < 1)
        return fail(error, PLIM_BAD_JOB, "memory: %lld elements: at least 1 is needed", (long long)count);
    struct memory_source *memory;
    TRY(source_make(&memory, sizeof *memory, &memory_type, budget, error));
    memory->base.count = count;
    return source_opened(out, &memory->base, memory_fill(memory, spec, columns, error));
}
