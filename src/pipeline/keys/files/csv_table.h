/* csv_table.h - which columns of a CSV file become which columns of the elements, and of what types. */
#ifndef PIPELINE_KEYS_FILES_CSV_TABLE_H
#define PIPELINE_KEYS_FILES_CSV_TABLE_H

#include "formats/sources/line_source.h"
#include "pipeline/keys/source_key.h"

/* As the job file says it; NULL: it does not. */
struct csv_table_keys {
    const struct yaml *at; /* for errors about the whole */
    const struct yaml *names, *columns, *label, *types, *defaults;
    int64_t inference_rows;
};

/* Of all that lies in the arena nothing is needed once the source is open. */
struct csv_table {
    struct arena arena;
    struct csv_options options; /* how fields are told apart: given; columns, select: found */
    struct csv_place *places;
    struct csv_output outputs[MOST_COLUMNS];
    int output_count;
    /* By field of the file: */
    int64_t field_count;
    const char **names;
    struct csv_field *fields;
};

plim_status csv_table_read(struct csv_table *table, struct data_reader *reader, const struct csv_table_keys *keys,
                           const struct file_list *files, plim_error *error);

#endif
