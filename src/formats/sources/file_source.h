/* file_source.h - a source over many files of one format: one after another, or several in turns.

   A format says how one of its files is opened and gives elements; whose turn it is, what happens at the end of a file
   and behind a damaged element, and the order of the files are the same for all of them. The order of turns is
   tf.data's interleave (interleave_order.h). */
#ifndef FORMATS_SOURCES_FILE_SOURCE_H
#define FORMATS_SOURCES_FILE_SOURCE_H

#include "formats/containers/byte_stream.h"
#include "formats/files/file_list.h"
#include "formats/source.h"

struct turn_options {
    int64_t cycle_length; /* files in turns, as tf.data's interleave; 1: one after another; CYCLE_AUTO: up to 8 */
    int64_t block_length; /* elements in a turn */
    bool shuffle_files;   /* another order of files each epoch */
    uint64_t seed;        /* of that order */
};
#define CYCLE_AUTO (-1)
/* One file after another, in their order. */
#define TURNS_NONE ((struct turn_options){.cycle_length = 1, .block_length = 1})

/* Which files are read, and how. */
struct file_choice {
    struct file_list *files;
    struct turn_options turns;
    enum compression compression; /* of all of them; COMPRESSION_AUTO: as the first one has it */
    size_t buffer_bytes;          /* 0: not said */
};

struct file_source;

struct file_format {
    size_t source_bytes; /* of the format's source, which begins with a struct file_source */
    /* May take source->file_bytes from the budget (tag formats). PLIM_BAD_DATA: the file is passed over. */
    plim_status (*open)(void **out, struct file_source *source, struct budget *budget, const char *path,
                        plim_error *error);
    void (*close)(void *file);
    /* The next 1..most elements, as source_type.reader_next has them; *got == 0 without values->wanted is the end of
       the file. Where files take turns (source->turns > 1) what rows refer to must lie in the value buffer. */
    plim_status (*next)(int64_t *got, struct file_source *source, void *file, int64_t most,
                        const struct row_target *target, plim_error *error);
    /* Passes over up to `count`; *passed, which is set on failure too, < count: the file is over. NULL: cannot. */
    plim_status (*skip)(int64_t *passed, void *file, int64_t count, plim_error *error);
    /* After PLIM_BAD_DATA: steps behind the bad element; false: the file is over. NULL: next() has done so. */
    bool (*pass)(void *file);
    /* The byte at which a record of a file begins, for errors; false: it cannot tell. Any thread. May be NULL. */
    bool (*find)(uint64_t *byte, struct file_source *source, const char *path, int64_t record);
};

struct file_source {
    struct source base;
    const struct file_format *format;
    struct turn_options options;
    int turns;                    /* files that are open at once */
    uint64_t file_bytes;          /* what an open file takes at most */
    enum compression compression; /* of all files, where the format looks at it */
    bool compression_stated;
};

/* For the source_type of a format; .reader_skip = file_source_skip where the format has a skip. */
#define FILE_SOURCE_READER                                                                                             \
    .reader_open = file_source_reader_open, .reader_close = file_source_reader_close,                                  \
    .reader_rewind = file_source_rewind, .reader_next = file_source_next, .reader_describe = file_source_describe,     \
    SOURCE_FILES

/* Takes the list over, on failure too. Reads nothing. */
plim_status file_source_make(struct file_source **out, const struct source_type *type, const struct file_format *format,
                             struct budget *budget, const struct file_choice *choice, plim_error *error);
/* What an open file takes; sets base.reader_bytes too. */
void file_source_cost(struct file_source *source, uint64_t file_bytes);
/* Sets source->compression: as stated, or (COMPRESSION_AUTO) as the first file has it. */
plim_status file_source_find_compression(struct file_source *source, enum compression stated, plim_error *error);
/* That the file begins as one packed like the source's others: PLIM_BAD_DATA. A gzip file among raw ones would be read
   as if its bytes were data. */
plim_status file_source_check_packing(const struct file_source *source, struct budget *budget, const char *path,
                                      plim_error *error);

/* For sources by index: which of `files` files has record `number` of them all; first[i] is the number of the first
   record of file i. */
int64_t file_source_file_of(const int64_t *first, int64_t files, int64_t number);
/* source_place for a record of one of the files. */
void file_source_place(char out[256], const struct file_source *source, int64_t file, int64_t record, uint64_t byte);
plim_status file_source_reader_open(struct reader **out, struct source *source, struct budget *budget,
                                    plim_error *error);
void file_source_reader_close(struct reader *reader);
/* Of an element that was given lately; false: too many files, or turns of files, ago. */
bool file_source_describe(char out[256], struct reader *reader, uint64_t epoch, int64_t number);
plim_status file_source_rewind(struct reader *reader, uint64_t epoch, plim_error *error);
plim_status file_source_next(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                             plim_error *error);
plim_status file_source_skip(int64_t *passed, struct reader *reader, int64_t count, plim_error *error);

#endif
