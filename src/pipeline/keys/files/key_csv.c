/* key_csv.c - comma-separated values: columns by name, several of them as a vector.

   csv: iris.csv                                   header, a column each, types found as make_csv_dataset finds them
   csv: {files: iris.csv, columns: {x: [sepal_length..petal_width], y: species}, types: {species: int64}}
   csv: {files: old.csv, header: false, column_names: [a, b, c], columns: [a, c], label: c, na_value: "?"} */
#include <string.h>

#include "pipeline/keys/files/csv_table.h"
#include "pipeline/keys/files/file_keys.h"

struct csv_keys {
    struct file_keys files;
    struct csv_table_keys table;
    bool header, quotes;
    const char *delimiter, *na_value;
};

static const struct setting csv_settings[] = {
    FILE_SETTINGS(struct csv_keys, files),
    {"header", SETTING_BOOL, offsetof(struct csv_keys, header), 0},
    {"delimiter", SETTING_WORD, offsetof(struct csv_keys, delimiter), 0},
    {"field_delim", SETTING_WORD, offsetof(struct csv_keys, delimiter), 0},
    {"use_quote_delim", SETTING_BOOL, offsetof(struct csv_keys, quotes), 0},
    {"na_value", SETTING_WORD, offsetof(struct csv_keys, na_value), 0},
    {"column_names", SETTING_NODE, offsetof(struct csv_keys, table.names), 0},
    {"columns", SETTING_NODE, offsetof(struct csv_keys, table.columns), 0},
    {"select_columns", SETTING_NODE, offsetof(struct csv_keys, table.columns), 0},
    {"label", SETTING_NODE, offsetof(struct csv_keys, table.label), 0},
    {"types", SETTING_NODE, offsetof(struct csv_keys, table.types), 0},
    {"column_defaults", SETTING_NODE, offsetof(struct csv_keys, table.defaults), 0},
    {"num_rows_for_inference", SETTING_WHOLE, offsetof(struct csv_keys, table.inference_rows), 0},
};

static plim_status read_keys(struct csv_keys *keys, struct csv_options *options, struct data_reader *reader,
                             const struct yaml *yaml, plim_error *error)
{
    if (yaml->kind == YAML_MAP) {
        keys->files.files = NULL;
        TRY(settings_read(keys, csv_settings, COUNT(csv_settings), reader->path, yaml, error));
    }
    if (keys->delimiter && strcmp(keys->delimiter, "\\t") == 0)
        keys->delimiter = "\t";
    if (keys->delimiter && strlen(keys->delimiter) != 1)
        return hint(error, reader_bad(reader, yaml, "csv: a delimiter is one character", error), "field_delim: \";\"");
    *options = (struct csv_options){.delimiter = keys->delimiter ? keys->delimiter[0] : 0,
                                    .no_quotes = !keys->quotes,
                                    .header = keys->header,
                                    .na_value = keys->na_value};
    return PLIM_OK;
}

static plim_status open_table(struct source **out, struct data_reader *reader, const struct csv_keys *keys,
                              struct csv_table *table, const struct file_choice *choice, plim_error *error)
{
    plim_status status = csv_table_read(table, reader, &keys->table, choice->files, error);
    if (status != PLIM_OK) {
        file_list_free(choice->files);
        return status;
    }
    const struct csv_layout layout = {
        .places = table->places, .outputs = table->outputs, .output_count = table->output_count};
    return csv_source_open(out, reader->budget, choice, &table->options, &layout, error);
}

static plim_status open_csv(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error)
{
    struct csv_keys keys = {
        .files = {.files = yaml}, .header = true, .quotes = true, .table = {.at = yaml, .inference_rows = 100}};
    struct csv_table table = {0};
    struct file_choice choice;
    struct source *source;
    TRY(read_keys(&keys, &table.options, reader, yaml, error));
    TRY(file_keys_read(&choice, reader, yaml, "csv", &keys.files, error));
    table.options.compression = choice.compression;
    table.options.buffer_bytes = choice.buffer_bytes;
    arena_init(&table.arena, reader->budget, TAG_PLANNER);
    plim_status status = open_table(&source, reader, &keys, &table, &choice, error);
    arena_release(&table.arena);
    if (status == PLIM_OK)
        *out = dataset_from_source(source);
    return status;
}

const struct source_key source_key_csv = {
    .word = "csv", .open = open_csv, .origin = OF_FILES, .suffixes = {".csv", ".csv.gz"}};
