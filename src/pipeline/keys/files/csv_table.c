/* csv_table.c - which columns of a CSV file become which columns of the elements, and of what types.

   Names come from the header or from the job file; types from the job file, or from the first rows as
   make_csv_dataset finds them: what is missing is 0 or "" then. A stated type makes a value required, as in tf.data,
   unless it has a default. */
#include "pipeline/keys/files/csv_table.h"

#include <stdio.h>
#include <string.h>

#include "base/text/message.h"
#include "base/text/text.h"
#include "pipeline/keys/files/file_keys.h"

#define NAMES_ROOM     ((uint64_t)256 * 1024)
#define FEW_COLUMNS    2048
#define FILES_INFERRED 8 /* the first ones are looked at */

struct csv_field {
    bool used, typed, vector;
    struct csv_column column;
    struct csv_place place;
};

/* ---- names ---- */

static plim_status take_fields(struct csv_table *table, int64_t count, plim_error *error)
{
    table->field_count = count;
    table->names = arena_take(&table->arena, (size_t)count * sizeof *table->names);
    table->fields = arena_take(&table->arena, (size_t)count * sizeof *table->fields);
    if (!table->names || !table->fields)
        return arena_refused(&table->arena, error);
    memset(table->fields, 0, (size_t)count * sizeof *table->fields);
    return PLIM_OK;
}

static plim_status listed_names(struct csv_table *table, struct data_reader *reader, const struct yaml *list,
                                plim_error *error)
{
    int64_t i = 0;
    if (list->kind != YAML_LIST || !list->first)
        return reader_bad(reader, list, "column_names: expected a list of names", error);
    TRY(take_fields(table, list->count, error));
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || !*item->text)
            return reader_bad(reader, item, "column_names: expected a list of names", error);
        table->names[i++] = item->text;
    }
    return PLIM_OK;
}

/* The first record's fields of a file. */
static plim_status read_names(struct string **out, int64_t *count, struct csv_table *table, struct data_reader *reader,
                              const char *path, plim_error *error)
{
    const struct csv_probe file = {.budget = reader->budget, .path = path, .options = &table->options};
    struct value_buffer values;
    plim_status status = PLIM_BAD_DATA;
    void *bytes = arena_take(&table->arena, NAMES_ROOM);
    value_buffer_init(&values, bytes, NAMES_ROOM);
    /* Few files have more than the first says: only they are given place for more. */
    for (int64_t most = FEW_COLUMNS; most <= CSV_MOST_COLUMNS && status == PLIM_BAD_DATA; most *= 32) {
        *out = arena_take(&table->arena, (size_t)most * sizeof **out);
        if (!bytes || !*out)
            return arena_refused(&table->arena, error);
        status = csv_names(*out, count, most, &file, &values, error);
    }
    return status;
}

/* Some programs put a mark of UTF-8 in front of everything. */
static struct string without_mark(struct string name)
{
    if (name.bytes >= 3 && memcmp(name.data, "\xef\xbb\xbf", 3) == 0)
        return (struct string){name.data + 3, name.bytes - 3};
    return name;
}

static const char *name_text(struct csv_table *table, struct string name)
{
    char *text = arena_take(&table->arena, name.bytes + 1);
    if (text) {
        memcpy(text, name.data, name.bytes);
        text[name.bytes] = 0;
    }
    return text;
}

/* From the header; without one, c0, c1, ... */
static plim_status found_names(struct csv_table *table, struct data_reader *reader, const char *path, plim_error *error)
{
    struct string *names;
    int64_t count;
    TRY(read_names(&names, &count, table, reader, path, error));
    TRY(take_fields(table, count, error));
    for (int64_t i = 0; i < count; i++) {
        char made[24];
        struct string name = i ? names[i] : without_mark(names[i]);
        if (!table->options.header) {
            int bytes = snprintf(made, sizeof made, "c%lld", (long long)i);
            name = (struct string){(const uint8_t *)made, (uint64_t)bytes};
        }
        table->names[i] = name_text(table, name);
        if (!table->names[i])
            return arena_refused(&table->arena, error);
    }
    return PLIM_OK;
}

static plim_status check_distinct(const struct csv_table *table, const char *path, plim_error *error)
{
    if (table->field_count > 4096)
        return PLIM_OK; /* who looks for a name takes the first */
    for (int64_t i = 0; i < table->field_count; i++)
        for (int64_t k = 0; k < i; k++)
            if (strcmp(table->names[i], table->names[k]) == 0)
                return fail_at(error, PLIM_BAD_DATA, path, "two columns have the name '%.64s'", table->names[i]);
    return PLIM_OK;
}

/* All files have the header of the first one. */
static plim_status check_headers(struct csv_table *table, struct data_reader *reader, const struct file_list *files,
                                 plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    plim_status status = PLIM_OK;
    struct arena arena = table->arena; /* what the comparison takes is given back */
    for (int64_t i = 1; i < file_list_count(files) && status == PLIM_OK; i++) {
        struct string *names;
        int64_t count = 0;
        file_list_path(path, files, i);
        arena_init(&table->arena, reader->budget, TAG_PLANNER);
        status = read_names(&names, &count, table, reader, path, error);
        if (status == PLIM_OK && count != table->field_count)
            status = fail_at(error, PLIM_BAD_DATA, path, "its header has %lld columns, that of the first file %lld",
                             (long long)count, (long long)table->field_count);
        for (int64_t c = 0; c < count && status == PLIM_OK; c++) {
            struct string name = c ? names[c] : without_mark(names[c]);
            if (name.bytes != strlen(table->names[c]) || memcmp(name.data, table->names[c], name.bytes) != 0)
                status =
                    fail_at(error, PLIM_BAD_DATA, path, "column %lld of its header is not '%.64s' as in the first file",
                            (long long)c, table->names[c]);
        }
        arena_release(&table->arena);
    }
    table->arena = arena;
    return status;
}

static plim_status find_field(int64_t *out, const struct csv_table *table, struct data_reader *reader,
                              const struct yaml *at, const char *name, plim_error *error)
{
    for (int64_t i = 0; i < table->field_count; i++)
        if (strcmp(table->names[i], name) == 0) {
            *out = i;
            return PLIM_OK;
        }
    if (setting_whole(out, name) && *out >= 0 && *out < table->field_count)
        return PLIM_OK; /* by number, as tf.data has it */
    char what[160];
    message_print(what, sizeof what, "there is no column '%.64s' in the file", name);
    plim_status status = reader_bad(reader, at, what, error);
    const char *near = text_nearest(name, table->names, (size_t)table->field_count);
    return near ? hint(error, status, "did you mean '%s'?", near) : status;
}

/* ---- columns of the elements ---- */

static plim_status use_field(struct csv_table *table, struct data_reader *reader, const struct yaml *at, int64_t field,
                             bool vector, plim_error *error)
{
    struct csv_field *used = &table->fields[field];
    struct csv_output *output = &table->outputs[table->output_count - 1];
    if (used->used) {
        char what[128];
        message_print(what, sizeof what, "column '%.64s' is taken twice", table->names[field]);
        return reader_bad(reader, at, what, error);
    }
    used->used = true;
    used->vector = vector;
    used->place = (struct csv_place){.output = table->output_count - 1, .at = vector ? output->width++ : 0};
    return PLIM_OK;
}

static plim_status new_output(struct csv_table *table, struct data_reader *reader, const struct yaml *at,
                              const char *name, plim_error *error)
{
    if (table->output_count == MOST_COLUMNS)
        return hint(error, reader_bad(reader, at, "more than 64 columns", error),
                    "gather them: columns: {x: [first..last], y: label}");
    table->outputs[table->output_count++] = (struct csv_output){.name = name};
    return PLIM_OK;
}

/* "a..b": all columns from a to b; "*": all that have no other place; else a name. */
static plim_status use_part(struct csv_table *table, struct data_reader *reader, const struct yaml *item,
                            plim_error *error)
{
    char first_name[256];
    int64_t first, last;
    if (item->kind != YAML_SCALAR || !*item->text)
        return reader_bad(reader, item, "expected the name of a column", error);
    const char *dots = strstr(item->text, "..");
    if (dots && (size_t)(dots - item->text) < sizeof first_name) {
        memcpy(first_name, item->text, (size_t)(dots - item->text));
        first_name[dots - item->text] = 0;
        TRY(find_field(&first, table, reader, item, first_name, error));
        TRY(find_field(&last, table, reader, item, dots + 2, error));
    } else {
        TRY(find_field(&first, table, reader, item, item->text, error));
        last = first;
    }
    for (int64_t field = first; field <= last; field++)
        TRY(use_field(table, reader, item, field, true, error));
    return PLIM_OK;
}

static bool is_rest(const struct yaml *item)
{
    return item->kind == YAML_SCALAR && strcmp(item->text, "*") == 0;
}

/* x: [a, b..d], y: label; `x: "*"` is filled when all others have their place. */
static plim_status mapped_columns(struct csv_table *table, struct data_reader *reader, const struct yaml *map,
                                  int64_t label, plim_error *error)
{
    int rest = -1;
    for (const struct yaml *entry = map->first; entry; entry = entry->next) {
        int64_t field;
        TRY(new_output(table, reader, entry, entry->key, error));
        if (entry->kind == YAML_MAP || (entry->kind == YAML_LIST && !entry->first))
            return reader_bad(reader, entry, "expected a column, or a list of them", error);
        if (is_rest(entry)) {
            rest = table->output_count - 1;
            continue;
        }
        if (entry->kind == YAML_SCALAR) {
            TRY(find_field(&field, table, reader, entry, entry->text, error));
            TRY(use_field(table, reader, entry, field, false, error));
        }
        for (const struct yaml *item = entry->first; item; item = item->next)
            TRY(use_part(table, reader, item, error));
    }
    for (int64_t i = 0; rest >= 0 && i < table->field_count; i++)
        if (!table->fields[i].used && i != label) {
            table->fields[i].used = table->fields[i].vector = true;
            table->fields[i].place = (struct csv_place){.output = rest, .at = table->outputs[rest].width++};
        }
    return rest >= 0 && !table->outputs[rest].width ? reader_bad(reader, map, "\"*\": no column is left over", error)
                                                    : PLIM_OK;
}

static plim_status single(struct csv_table *table, struct data_reader *reader, const struct yaml *at, int64_t field,
                          plim_error *error)
{
    TRY(new_output(table, reader, at, table->names[field], error));
    return use_field(table, reader, at, field, false, error);
}

/* A column each, the label the last. */
static plim_status listed_columns(struct csv_table *table, struct data_reader *reader,
                                  const struct csv_table_keys *keys, int64_t label, plim_error *error)
{
    for (int64_t i = 0; !keys->columns && i < table->field_count; i++)
        if (i != label)
            TRY(single(table, reader, keys->at, i, error));
    for (const struct yaml *item = keys->columns ? keys->columns->first : NULL; item; item = item->next) {
        int64_t field;
        if (item->kind != YAML_SCALAR)
            return reader_bad(reader, item, "expected the name of a column", error);
        TRY(find_field(&field, table, reader, item, item->text, error));
        if (field != label)
            TRY(single(table, reader, item, field, error));
    }
    return PLIM_OK;
}

static plim_status choose_columns(struct csv_table *table, struct data_reader *reader,
                                  const struct csv_table_keys *keys, plim_error *error)
{
    int64_t label = -1;
    const struct yaml *columns = keys->columns;
    if (columns && (columns->kind == YAML_SCALAR || !columns->first))
        return hint(error,
                    reader_bad(reader, columns, "columns: expected a list of names, or {x: [a, b], y: c}", error),
                    "columns: {x: [a..d], y: label}");
    if (keys->label) {
        if (keys->label->kind != YAML_SCALAR)
            return reader_bad(reader, keys->label, "label: expected the name of a column", error);
        TRY(find_field(&label, table, reader, keys->label, keys->label->text, error));
    }
    if (columns && columns->kind == YAML_MAP)
        TRY(mapped_columns(table, reader, columns, label, error));
    else
        TRY(listed_columns(table, reader, keys, label, error));
    return label >= 0 ? single(table, reader, keys->label, label, error) : PLIM_OK;
}

/* ---- types ---- */

static plim_status state_type(struct csv_table *table, struct data_reader *reader, const struct yaml *at, int64_t field,
                              const char *word, plim_error *error)
{
    struct csv_field *stated = &table->fields[field];
    enum type *type = &stated->column.type;
    TRY(reader_type(type, reader, at, word, false, error));
    if (*type != TYPE_I32 && *type != TYPE_I64 && *type != TYPE_F32 && *type != TYPE_F64 && *type != TYPE_STRING)
        return hint(error, reader_bad(reader, at, "not a type of CSV's", error),
                    "int32, int64, float32, float64 and string are; `map:` casts to others");
    if (stated->vector && *type == TYPE_STRING)
        return reader_bad(reader, at, "a vector is made of numbers", error);
    stated->typed = stated->column.required = true;
    return PLIM_OK;
}

/* The type that a default's own form has, in tf.data: 0 is int32, 0.0 float32, anything else a string. */
static enum type literal_type(const struct yaml *value)
{
    int64_t whole;
    double real;
    if (!value->quoted && setting_whole(&whole, value->text))
        return whole == (int32_t)whole ? TYPE_I32 : TYPE_I64;
    return !value->quoted && setting_number(&real, value->text) ? TYPE_F32 : TYPE_STRING;
}

/* A default; or the name of a type: the value is required then. */
static plim_status state_default(struct csv_table *table, struct data_reader *reader, const struct yaml *value,
                                 int64_t field, plim_error *error)
{
    struct csv_field *stated = &table->fields[field];
    struct csv_column *column = &stated->column;
    enum type type;
    if (value->kind != YAML_SCALAR)
        return reader_bad(reader, value, "a default is one value", error);
    if (!value->quoted && type_of_column(&type, value->text))
        return state_type(table, reader, value, field, value->text, error);
    if (!stated->typed)
        column->type = literal_type(value);
    stated->typed = true;
    column->required = false;
    bool text = column->type == TYPE_STRING, whole = column->type == TYPE_I32 || column->type == TYPE_I64;
    if (text)
        column->text = value->text;
    else if (whole ? !setting_whole(&column->whole, value->text) : !setting_number(&column->real, value->text))
        return reader_bad(reader, value, "the default is not of the column's type", error);
    column->real = whole ? (double)column->whole : column->real; /* in a vector it becomes float32 */
    return text && stated->vector ? reader_bad(reader, value, "a vector is made of numbers", error) : PLIM_OK;
}

typedef plim_status state_function(struct csv_table *table, struct data_reader *reader, const struct yaml *value,
                                   int64_t field, plim_error *error);

static plim_status state_word(struct csv_table *table, struct data_reader *reader, const struct yaml *value,
                              int64_t field, plim_error *error)
{
    return state_type(table, reader, value, field, value->kind == YAML_SCALAR ? value->text : NULL, error);
}

/* {name: ...}, or a list of as many as are read, in the order of the file. */
static plim_status state_each(struct csv_table *table, struct data_reader *reader, const struct yaml *yaml,
                              state_function *state, plim_error *error)
{
    int64_t field = 0, used = 0;
    if (!yaml)
        return PLIM_OK;
    for (int64_t i = 0; i < table->field_count; i++)
        used += table->fields[i].used;
    if (yaml->kind == YAML_SCALAR || (yaml->kind == YAML_LIST && yaml->count != (int)used))
        return reader_bad(reader, yaml, "expected {name: ...}, or a list of as many as there are columns", error);
    for (const struct yaml *entry = yaml->first; entry; entry = entry->next) {
        if (yaml->kind == YAML_MAP)
            TRY(find_field(&field, table, reader, entry, entry->key, error));
        else
            while (!table->fields[field].used)
                field++;
        TRY(state(table, reader, entry, field, error));
        field += yaml->kind == YAML_LIST;
    }
    return PLIM_OK;
}

/* How far up the ladder of types: a column is of the widest that any file has. */
static int rung(enum type type)
{
    static const enum type ladder[] = {TYPE_I32, TYPE_I64, TYPE_F32, TYPE_F64};
    for (int i = 0; i < 4; i++)
        if (ladder[i] == type)
            return i;
    return 4;
}

static plim_status infer_types(struct csv_table *table, struct data_reader *reader, const struct file_list *files,
                               int64_t rows, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    const struct csv_probe file = {.budget = reader->budget, .path = path, .options = &table->options};
    enum type *types = arena_take(&table->arena, (size_t)table->field_count * sizeof *types);
    if (!types)
        return arena_refused(&table->arena, error);
    for (int64_t f = 0; f < file_list_count(files) && f < FILES_INFERRED; f++) {
        file_list_path(path, files, f);
        TRY(csv_infer(types, table->field_count, rows, &file, error));
        for (int64_t i = 0; i < table->field_count; i++)
            if (!table->fields[i].typed && (f == 0 || rung(types[i]) > rung(table->fields[i].column.type)))
                table->fields[i].column.type = types[i];
    }
    return PLIM_OK;
}

/* Vectors are of float32, whatever their columns are. */
static plim_status settle_types(struct csv_table *table, const char *path, plim_error *error)
{
    for (int64_t i = 0; i < table->field_count; i++) {
        struct csv_field *field = &table->fields[i];
        if (!field->used)
            continue;
        if (field->vector && field->column.type == TYPE_STRING) {
            fail_at(error, PLIM_BAD_DATA, path, "column '%.64s' holds text: a vector is made of numbers",
                    table->names[i]);
            return hint(error, PLIM_BAD_DATA, "name the columns that are numbers, or set na_value:");
        }
        if (field->vector)
            field->column.type = TYPE_F32;
        table->outputs[field->place.output].type = field->column.type;
    }
    return PLIM_OK;
}

/* ---- the whole ---- */

static plim_status finish(struct csv_table *table, plim_error *error)
{
    size_t count = (size_t)table->field_count;
    int64_t used = 0;
    struct csv_column *columns = arena_take(&table->arena, count * sizeof *columns);
    int64_t *select = arena_take(&table->arena, count * sizeof *select);
    table->places = arena_take(&table->arena, count * sizeof *table->places);
    if (!columns || !select || !table->places)
        return arena_refused(&table->arena, error);
    for (int64_t i = 0; i < table->field_count; i++)
        if (table->fields[i].used) {
            columns[used] = table->fields[i].column;
            table->places[used] = table->fields[i].place;
            select[used++] = i;
        }
    table->options.columns = columns;
    table->options.column_count = used;
    table->options.select = used == table->field_count ? NULL : select;
    return PLIM_OK;
}

plim_status csv_table_read(struct csv_table *table, struct data_reader *reader, const struct csv_table_keys *keys,
                           const struct file_list *files, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    bool missing = false;
    file_list_path(path, files, 0);
    if (keys->names)
        TRY(listed_names(table, reader, keys->names, error));
    else
        TRY(found_names(table, reader, path, error));
    TRY(check_distinct(table, path, error));
    if (table->options.header && !keys->names)
        TRY(check_headers(table, reader, files, error));
    TRY(choose_columns(table, reader, keys, error));
    TRY(state_each(table, reader, keys->types, state_word, error));
    TRY(state_each(table, reader, keys->defaults, state_default, error));
    for (int64_t i = 0; i < table->field_count; i++)
        missing = missing || (table->fields[i].used && !table->fields[i].typed);
    if (missing)
        TRY(infer_types(table, reader, files, keys->inference_rows, error));
    TRY(settle_types(table, path, error));
    return finish(table, error);
}
