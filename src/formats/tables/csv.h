/* csv.h - records of comma-separated values, by the rules of tf.data.experimental.CsvDataset.

   A record ends with LF, CR, CRLF or the file. A field that begins with a quote ends with one: delimiters and line
   ends inside are text, two quotes are one. Blanks around a number are left out, around text they stay. An empty
   field, or one equal to the NA value, takes the column's default, and is an error where the column has none.
   An empty line is a record of one empty field. The file may be gzip or zlib. */
#ifndef FORMATS_TABLES_CSV_H
#define FORMATS_TABLES_CSV_H

#include "formats/containers/byte_stream.h"
#include "formats/source.h"

struct csv;

#define CSV_BUFFER_BYTES ((size_t)128 * 1024)
#define CSV_MOST_COLUMNS 65536

struct csv_column {
    enum type type; /* TYPE_I32, I64, F32, F64 or STRING */
    bool required;  /* a missing value is an error; otherwise it is: */
    int64_t whole;  /* for whole numbers */
    double real;    /* for floats */
    const char *text;
};

struct csv_options {
    const struct csv_column *columns; /* those that are read, in their order */
    int64_t column_count;
    const int64_t *select; /* which fields they are, increasing; NULL: all there are, and no more */
    char delimiter;        /* 0: a comma */
    bool no_quotes;        /* quotes are letters like others */
    bool header;           /* the first record is passed over */
    const char *na_value;  /* NULL: the empty text */
    enum compression compression;
    size_t buffer_bytes; /* a record must fit; 0: CSV_BUFFER_BYTES */
};

/* Columns, selection and texts of the options are borrowed until csv_close. */
plim_status csv_open(struct csv **out, struct budget *budget, const char *path, const struct csv_options *options,
                     plim_error *error);
void csv_close(struct csv *csv);
/* What opening takes from the budget at most (tag formats). */
uint64_t csv_cost(const struct csv_options *options);
/* Up to `most` records: column c of record i goes to to[c] + i * stride[c]; of texts the bytes go into `values` (which
   may be NULL when there are no columns of text). *got == 0 is the end of the file, unless values->wanted says that the
   next record did not fit: it comes again. A bad record is PLIM_BAD_DATA, names file, byte, record and column, and is
   passed over: reading can go on behind it. Allocates nothing. */
plim_status csv_read(int64_t *got, struct csv *csv, int64_t most, const struct row_target *target, plim_error *error);
/* The position, in the unpacked data, of the next record. */
uint64_t csv_at(const struct csv *csv);

/* ---- what is in a file nobody has described ------------------------------ */

/* Of the options only how fields are told apart is looked at. */
struct csv_probe {
    struct budget *budget;
    const char *path;
    const struct csv_options *options;
};
/* The fields of the first record, their bytes in the buffer, at most `most`; *count says how many there are. */
plim_status csv_names(struct string *out, int64_t *count, int64_t most, const struct csv_probe *file,
                      struct value_buffer *values, plim_error *error);
/* types[c] for each field of the file, as make_csv_dataset finds them: the narrowest of int32, int64, float32, float64
   and text that holds the first `rows` records (0: all); text where nothing but missing values was seen. Every record
   must have `column_count` fields. */
plim_status csv_infer(enum type *types, int64_t column_count, int64_t rows, const struct csv_probe *file,
                      plim_error *error);

#endif
