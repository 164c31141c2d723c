/* key_csv.c - comma-separated values: columns by name, several of them as a vector.

   csv: iris.csv                                   header, a column each, types found as make_csv_dataset finds them
   csv: {files: iris.csv, columns: {x: [sepal_length..petal_width], y: species}, types: {species: int64}}
   csv: {files: old.csv, header: false, column_names: [a, b, c], columns: [a, c], label: c, na_value: "?"} */
#include <string.h>

#include "pipeline/keys/files/csv_table.h"
#include "pipeline/keys/files/file_keys.h"

struct csv_words {
    struct file_keys files;
    struct csv_table_words table;
    bool header, quotes;
    const char *delimiter, *na_value;
};

static const struct setting csv_settings[] = {
    FILE_SETTINGS(struct csv_words, files),
    {"header", SETTING_BOOL, offsetof(struct csv_words, header), 0},
    {"delimiter", SETTING_WORD, offsetof(struct csv_words, delimiter), 0},
    {"field_delim", SETTING_WORD, offsetof(struct csv_words, delimiter), 0},
    {"use_quote_delim", SETTING_BOOL, offsetof(struct csv_words, quotes), 0},
    {"na_value", SETTING_WORD, offsetof(struct csv_words, na_value), 0},
    {"column_names", SETTING_NODE, offsetof(struct csv_words, table.names), 0},
    {"columns", SETTING_NODE, offsetof(struct csv_words, table.columns), 0},
    {"select_columns", SETTING_NODE, offsetof(struct csv_words, table.columns), 0},
    {"label", SETTING_NODE, offsetof(struct csv_words, table.label), 0},
    {"types", SETTING_NODE, offsetof(struct csv_words, table.types), 0},
    {"column_defaults", SETTING_NODE, offsetof(struct csv_words, table.defaults), 0},
    {"num_rows_for_inference", SETTING_WHOLE, offsetof(struct csv_words, table.inference_rows), 0},
};

static plim_status read_words(struct csv_words *words, struct csv_options *options, struct data_reader *reader,
                              const struct yaml *yaml, plim_error *error)
{
    if (yaml->kind == YAML_MAP) {
        words->files.files = NULL;
        TRY(settings_read(words, csv_settings, COUNT(csv_settings), reader->path, yaml, error));
    }
    if (words->delimiter && strcmp(words->delimiter, "\\t") == 0)
        words->delimiter = "\t";
    if (words->delimiter && strlen(words->delimiter) != 1)
        return hint(error, reader_bad(reader, yaml, "csv: a delimiter is one character", error), "field_delim: \";\"");
    *options = (struct csv_options){.delimiter = words->delimiter ? words->delimiter[0] : 0,
                                    .no_quotes = !words->quotes,
                                    .header = words->header,
                                    .na_value = words->na_value};
    return PLIM_OK;
}

static plim_status open_table(struct source **out, struct data_reader *reader, const struct csv_words *words,
                              struct csv_table *table, const struct file_choice *choice, plim_error *error)
{
    plim_status status = csv_table_read(table, reader, &words->table, choice->files, error);
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
    struct csv_words words = {
        .files = {.files = yaml}, .header = true, .quotes = true, .table = {.at = yaml, .inference_rows = 100}};
    struct csv_table table = {0};
    struct file_choice choice;
    struct source *source;
    TRY(read_words(&words, &table.options, reader, yaml, error));
    TRY(file_keys_read(&choice, reader, yaml, "csv", &words.files, error));
    table.options.compression = choice.compression;
    table.options.buffer_bytes = choice.buffer_bytes;
    arena_init(&table.arena, reader->budget, TAG_PLANNER);
    plim_status status = open_table(&source, reader, &words, &table, &choice, error);
    arena_release(&table.arena);
    if (status == PLIM_OK)
        *out = dataset_from_source(source);
    return status;
}

const struct source_key source_key_csv = {
    .word = "csv", .open = open_csv, .origin = OF_FILES, .suffixes = {".csv", ".csv.gz"}};
