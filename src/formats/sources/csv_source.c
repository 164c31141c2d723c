/* csv_source.c - files of comma-separated values as a source: columns by name, several of them as a vector.

   The reader writes each value straight to its place, those of a vector too: nothing is gathered afterwards. */
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/sources/line_source.h"
#include "formats/tables/rows.h"

struct csv_source {
    struct file_source files;
    struct csv_options options; /* its arrays and texts lie in `table` */
    struct csv_place *places;
    uint8_t *table;
    size_t table_bytes;
    bool texts; /* some column is text */
};

struct csv_file {
    struct budget *budget;
    struct csv *csv;
    size_t bytes;
    void **to; /* a column of the file each */
    uint64_t *stride;
};

static size_t csv_file_bytes(int64_t columns)
{
    return sizeof(struct csv_file) + (size_t)columns * (sizeof(void *) + sizeof(uint64_t));
}

static void close_csv(void *closed)
{
    struct csv_file *file = closed;
    csv_close(file->csv);
    budget_give(file->budget, TAG_FORMATS, file, file->bytes);
}

static plim_status open_csv(void **out, struct file_source *base, struct budget *budget, const char *path,
                            plim_error *error)
{
    const struct csv_source *source = (const struct csv_source *)base;
    int64_t columns = source->options.column_count;
    struct csv_file *file;
    TRY(budget_alloc(&file, budget, TAG_FORMATS, csv_file_bytes(columns), error));
    file->budget = budget;
    file->bytes = csv_file_bytes(columns);
    file->to = (void **)(file + 1);
    file->stride = (uint64_t *)(file->to + columns);
    return OPENED(out, file, close_csv, csv_open(&file->csv, budget, path, &source->options, error));
}

static plim_status next_csv(int64_t *got, struct file_source *base, void *opened, int64_t most,
                            const struct row_target *target, plim_error *error)
{
    struct csv_source *source = (struct csv_source *)base;
    struct csv_file *file = opened;
    uint64_t before = csv_at(file->csv);
    for (int64_t c = 0; c < source->options.column_count; c++) {
        const struct csv_place *place = &source->places[c];
        file->to[c] = (float *)target->to[place->output] + place->at; /* at > 0 in vectors of float32 only */
        file->stride[c] = target->stride[place->output];
    }
    const struct row_target fields = {
        .to = file->to, .stride = file->stride, .values = source->texts ? target->values : NULL};
    TRY(csv_read(got, file->csv, most, &fields, error));
    source_count_read(&base->base, csv_at(file->csv) - before);
    return PLIM_OK;
}

static const struct file_format csv_format = {
    .source_bytes = sizeof(struct csv_source), .open = open_csv, .close = close_csv, .next = next_csv};

/* ---- the source ---- */

static void free_csv(struct source *base)
{
    struct csv_source *source = (struct csv_source *)base;
    budget_give(base->budget, TAG_FORMATS, source->table, source->table_bytes);
}

#define CSV_ADVICE "`plim data convert JOB.yaml --output X.npy` once"

static const struct source_type csv_type = {
    .name = "csv", .index_advice = CSV_ADVICE, FILE_SOURCE_READER, .close = free_csv};

static size_t text_size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Columns, their places, which fields they are, and the texts: one block. */
static plim_status copy_table(struct csv_source *source, const struct csv_options *options,
                              const struct csv_place *places, plim_error *error)
{
    struct budget *budget = source->files.base.budget;
    size_t count = (size_t)options->column_count, texts = text_size_of(options->na_value);
    for (size_t c = 0; c < count; c++)
        texts += text_size_of(options->columns[c].text);
    size_t select = options->select ? count * sizeof *options->select : 0;
    source->table_bytes = count * (sizeof *options->columns + sizeof *places) + select + texts;
    TRY(budget_alloc(&source->table, budget, TAG_FORMATS, source->table_bytes, error));
    struct csv_column *columns = (struct csv_column *)(void *)source->table;
    source->places = (struct csv_place *)(columns + count);
    int64_t *fields = (int64_t *)(source->places + count);
    char *text = (char *)fields + select;
    memcpy(columns, options->columns, count * sizeof *columns);
    memcpy(source->places, places, count * sizeof *places);
    if (options->select)
        memcpy(fields, options->select, select);
    source->options = *options;
    source->options.columns = columns;
    source->options.select = options->select ? fields : NULL;
    source->options.na_value = text_keep(&text, options->na_value);
    for (size_t c = 0; c < count; c++) {
        columns[c].text = text_keep(&text, columns[c].text);
        source->texts = source->texts || columns[c].type == TYPE_STRING;
    }
    return PLIM_OK;
}

static plim_status fill(struct csv_source *source, const struct csv_options *options, const struct csv_layout *layout,
                        plim_error *error)
{
    struct file_source *files = &source->files;
    const struct csv_place *places = layout->places;
    const struct csv_output *outputs = layout->outputs;
    for (int i = 0; i < layout->output_count; i++) {
        struct shape shape = {.rank = outputs[i].width > 0, .dim = {outputs[i].width}};
        TRY(spec_add(&files->base.spec, outputs[i].name, outputs[i].type, &shape, error));
    }
    for (int64_t c = 0; c < options->column_count; c++) {
        bool known = places[c].output >= 0 && places[c].output < layout->output_count;
        const struct csv_output *output = &outputs[known ? places[c].output : 0];
        bool inside = output->width ? output->type == TYPE_F32 && places[c].at < output->width : places[c].at == 0;
        if (!known || !inside || options->columns[c].type != output->type)
            return fail(error, PLIM_INTERNAL, "csv: column %lld has no place", (long long)c);
    }
    TRY(copy_table(source, options, places, error));
    TRY(file_source_find_compression(files, options->compression, error));
    source->options.compression = files->compression;
    file_source_cost(files, budget_charge(csv_file_bytes(options->column_count)) + csv_cost(&source->options));
    if (source->texts)
        files->base.value_bytes = 2 * (options->buffer_bytes ? options->buffer_bytes : CSV_BUFFER_BYTES);
    return PLIM_OK;
}

plim_status csv_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                            const struct csv_options *options, const struct csv_layout *layout, plim_error *error)
{
    struct file_source *base;
    TRY(file_source_make(&base, &csv_type, &csv_format, budget, choice, error));
    return source_opened(out, &base->base, fill((struct csv_source *)base, options, layout, error));
}
