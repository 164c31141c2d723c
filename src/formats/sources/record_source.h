/* record_source.h - TFRecord files as a source: a column "record" of strings. */
#ifndef FORMATS_SOURCES_RECORD_SOURCE_H
#define FORMATS_SOURCES_RECORD_SOURCE_H

#include "formats/sources/file_source.h"

struct record_options {
    struct turn_options turns;
    bool indexed; /* every file has its index beside it: records by number, for an exact shuffle */
};

/* Takes the list over, on failure too. Opening looks at no record. */
plim_status records_source_open(struct source **out, struct budget *budget, struct file_list *files,
                                const struct record_options *options, plim_error *error);

#endif
