/* csv_reader.h - what csv.c (parsing), csv_open.c and csv_infer.c share. */
#ifndef FORMATS_TABLES_CSV_READER_H
#define FORMATS_TABLES_CSV_READER_H

#include "formats/tables/csv.h"

#define CSV_PAD_BYTES 16 /* line ends behind the data: more than DECIMAL_PAD */

struct column_rule {
    enum type type;
    bool required;
    union {
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } missing;
    struct string text; /* what is missing, for texts */
};

struct csv {
    struct budget *budget;
    struct byte_stream *stream;
    char *buffer;
    size_t capacity, next, end;
    uint64_t base; /* position of buffer[0] */
    int64_t lines; /* line ends before buffer[0]; -1: not known */
    int64_t record;
    bool at_end;
    char delimiter;
    bool quotes, plain; /* plain: numbers may be parsed before it is known where the field ends */
    struct string na;
    int64_t column_count;
    struct column_rule *rule;
    int64_t *select; /* NULL: all */
    size_t texts_bytes;
    char *texts;       /* the NA value and the defaults */
    bool special[256]; /* bytes that end an unquoted field, or must not be in it */
};

/* Passes over one record; *fields is how many it has, 0 at the end of the file. For readers without columns. */
plim_status csv_pass(int64_t *fields, struct csv *csv, plim_error *error);

/* Without the blanks around it. */
struct string csv_trim(struct string field);
/* The whole text as a whole number that fits. */
bool csv_whole(int64_t *out, struct string text);

#endif
