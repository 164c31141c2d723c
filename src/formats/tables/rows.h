/* rows.h - rows of equal size in a file, read by number straight into place. */
#ifndef FORMATS_TABLES_ROWS_H
#define FORMATS_TABLES_ROWS_H

#include "formats/source.h"

struct rows {
    struct file *file;
    uint64_t at; /* byte of the file where row 0 begins */
    uint64_t row_bytes;
    uint32_t swap; /* bytes of an element to be turned round; 1: none */
};

/* A piece of each row that goes to a place of its own. */
struct row_part {
    uint64_t offset, bytes;
};

/* Rows that are not in memory are asked for all at once before the first is waited for: a disk works on as many at
   a time as a call has rows. */

/* Rows index[0..count) to `to` + i * stride. Neighbours in index that are
   neighbours in the file, and packed in `to`, are one read. */
plim_status rows_read(const struct rows *rows, const int64_t *index, int64_t count, void *to, uint64_t stride,
                      plim_error *error);
/* Rows cut into parts. */
struct cut_rows {
    const struct rows *rows;
    const struct row_part *part;
    int part_count;
};
/* The same for them: part p to to[p] + i * stride[p]. Allocates nothing. */
plim_status rows_read_parts(const struct cut_rows *cut, const int64_t *index, int64_t count, void *const *to,
                            const uint64_t *stride, plim_error *error);
/* These rows will be read soon: the disk may begin. */
void rows_expect(const struct rows *rows, int64_t first, int64_t count);
/* For a source's layout. */
struct layout_part rows_layout(const struct rows *rows);
/* Turns round `bytes` / `size` elements of `size` bytes: 1 (nothing), 2, 4 or 8. */
void swap_elements(void *data, uint64_t bytes, uint32_t size);

/* How many of index[0..count) follow one another. */
int64_t run_length(const int64_t *index, int64_t count);

/* ---- what every source needs ---------------------------------------- */

/* A new last column; `name` NULL gives x, y, c2, c3... Fails when there are
   too many, the name is too long or the bytes do not fit. */
plim_status spec_add(struct spec *spec, const char *name, enum type type, const struct shape *shape, plim_error *error);
/* All of index[0..count) are elements of the source, or PLIM_INTERNAL. */
plim_status source_check(const struct source *source, const int64_t *index, int64_t count, plim_error *error);
void source_count_read(struct source *source, uint64_t bytes);
/* A copy of the text at *at, which moves behind its NUL; NULL of NULL. */
const char *text_keep(char **at, const char *text);
/* Strings as rows 0..count of the first column; returns their bytes. */
uint64_t target_put_strings(const struct row_target *target, const struct string *strings, int64_t count);

#endif
