/* csv_reader.h - what csv.c (parsing), csv_open.c and csv_infer.c share. */
#ifndef FORMATS_TABLES_CSV_READER_H
#define FORMATS_TABLES_CSV_READER_H

#include "formats/tables/csv.h"

#define CSV_PAD_BYTES 16 /* line ends behind the data: more than DECIMAL_PAD */

struct csv {
    struct budget *budget;
    struct read_buffer in;
    int64_t lines; /* line ends before the buffer */
    int64_t record;
    char delimiter;
    bool quotes, plain; /* plain: numbers may be parsed before it is known where the field ends */
    struct string na;
    int64_t column_count;
    const struct csv_column *column;
    const int64_t *select; /* NULL: all */
    bool special[256];     /* bytes that end an unquoted field, or must not be in it */
};

/* Passes over one record; *fields is how many it has, 0 at the end of the file. For readers without columns. */
plim_status csv_pass(int64_t *fields, struct csv *csv, plim_error *error);

/* Without the blanks around it. */
struct string csv_trim(struct string field);
/* The whole text as a whole number that fits. */
bool csv_whole(int64_t *out, struct string text);

#endif
