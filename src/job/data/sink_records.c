/* sink_records.c - elements into a TFRecord file: records as they are, or Examples of named columns. */
#include <string.h>

#include "base/numbers/checked.h"
#include "formats/records/example.h"
#include "formats/records/record_writer.h"
#include "job/data/data_sink.h"
#include "pipeline/core/chunk.h"

struct sink {
    struct budget *budget;
    size_t bytes;
    struct record_writer *writer;
    bool raw; /* one column of strings named "record": TFRecord's own */
    struct spec spec;
    struct value_buffer values;
};

#define VARINT_BYTES ((uint64_t)10) /* of one value at most */

/* The largest Example: every value as the longest varint, names and heads of fields besides. */
static uint64_t room_for(const struct sink_plan *plan)
{
    uint64_t bytes = 4096;
    bool cells = false;
    for (int c = 0; c < plan->spec->column_count; c++) {
        const struct column *column = &plan->spec->column[c];
        cells |= column_is_variable(column);
        uint64_t values = column_is_variable(column) ? 0 : (uint64_t)shape_count(&column->shape), longest;
        bytes = add_most(bytes, mul_u64(&longest, values, VARINT_BYTES + 2) ? longest : UINT64_MAX);
        bytes = add_most(bytes, 192);
    }
    uint64_t values = plan->value_bytes, most;
    return add_most(bytes, !cells ? values : mul_u64(&most, values, VARINT_BYTES) ? most : UINT64_MAX);
}

static enum record_packing packing_of(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0 ? RECORDS_GZIP : RECORDS_RAW;
}

static uint64_t records_cost(const struct sink_plan *plan)
{
    return add_most(record_writer_cost(RECORDS_GZIP), add_most(sizeof(struct sink) + 8192, room_for(plan)));
}

static void records_close(struct sink *sink)
{
    record_writer_close(sink->writer);
    budget_give(sink->budget, TAG_FORMATS, sink, sink->bytes);
}

static plim_status records_open(struct sink **out, struct budget *budget, const char *path,
                                const struct sink_plan *plan, plim_error *error)
{
    uint64_t head = round_up(sizeof(struct sink), 64), values = room_for(plan), bytes = add_most(head, values);
    struct sink *sink = bytes == UINT64_MAX ? NULL : budget_take(budget, TAG_FORMATS, bytes);
    if (!sink)
        return budget_refused(budget, TAG_FORMATS, bytes, error);
    sink->budget = budget;
    sink->bytes = bytes;
    sink->spec = *plan->spec;
    const struct column *first = &sink->spec.column[0];
    sink->raw = sink->spec.column_count == 1 && strcmp(first->name, "record") == 0 && first->type == TYPE_STRING &&
                first->shape.rank == 0;
    value_buffer_init(&sink->values, (uint8_t *)sink + head, values);
    return OPENED(out, sink, records_close, record_writer_open(&sink->writer, budget, path, packing_of(path), error));
}

static plim_status add_example(struct sink *sink, void *const *row, plim_error *error)
{
    struct example_column columns[MOST_COLUMNS];
    struct string record = {0};
    for (int c = 0; c < sink->spec.column_count; c++) {
        const struct column *column = &sink->spec.column[c];
        columns[c] = (struct example_column){
            .name = column->name,
            .type = column->type,
            .data = column_is_variable(column) ? ((const struct cell *)row[c])->data : row[c],
            .count = value_count(column, row[c]),
        };
    }
    value_buffer_empty(&sink->values);
    TRY(example_write(&record, columns, sink->spec.column_count, &sink->values, error));
    if (!record.data)
        return fail(error, PLIM_OVER_BUDGET, "element %lld needs %llu bytes as an Example, there are %llu",
                    (long long)record_writer_count(sink->writer), (unsigned long long)sink->values.wanted,
                    (unsigned long long)sink->values.capacity);
    return record_writer_add(sink->writer, record.data, record.bytes, error);
}

static plim_status records_add(struct sink *sink, void *const *row, plim_error *error)
{
    if (!sink->raw)
        return add_example(sink, row, error);
    const struct string *record = row[0];
    return record_writer_add(sink->writer, record->data, record->bytes, error);
}

static plim_status records_finish(struct sink *sink, plim_error *error)
{
    return record_writer_finish(sink->writer, error);
}

const struct sink_type sink_records = {
    .suffixes = {".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"},
    .cost = records_cost,
    .open = records_open,
    .add = records_add,
    .finish = records_finish,
    .close = records_close,
};
