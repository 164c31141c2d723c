/* record_writer.h - writes a TFRecord file: PATH.partial, then one rename. */
#ifndef FORMATS_RECORDS_RECORD_WRITER_H
#define FORMATS_RECORDS_RECORD_WRITER_H

#include "base/files/file.h"

enum record_packing { RECORDS_RAW, RECORDS_GZIP, RECORDS_ZLIB };

struct record_writer;

plim_status record_writer_open(struct record_writer **out, struct budget *budget, const char *path,
                               enum record_packing packing, plim_error *error);
/* What opening takes from the budget at most (tag formats). */
uint64_t record_writer_cost(enum record_packing packing);
/* After a failure every later call fails, and nothing is left of the file. */
plim_status record_writer_add(struct record_writer *writer, const void *data, uint64_t bytes, plim_error *error);
/* On the disk under its name. */
plim_status record_writer_finish(struct record_writer *writer, plim_error *error);
/* Without record_writer_finish the file is taken away, and PATH is what it was. */
void record_writer_close(struct record_writer *writer);

int64_t record_writer_count(const struct record_writer *writer);

#endif
