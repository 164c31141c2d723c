/* source_key.h - the sources of a job file's data: a key (`npy:`), a file (key_NAME.c) and a line in sources.def
   each. */
#ifndef PIPELINE_KEYS_SOURCE_KEY_H
#define PIPELINE_KEYS_SOURCE_KEY_H

#include "base/text/settings.h"
#include "formats/files/file_list.h"
#include "pipeline/core/dataset.h"

#define MOST_FILES    64
#define MOST_SUFFIXES 6
#define FILE_HEAD     512 /* bytes of a file that is_file looks at */

/* What opening data needs of the job that names it. */
struct data_reader {
    struct budget *budget;
    struct arena *arena;       /* for trees and strings: lives as long as the data sets */
    const char *path, *folder; /* of the job file: where errors are, and what paths are relative to */
    uint64_t seed;
    int nesting; /* data sets inside others that are being opened */
};

/* Where its elements come from: what of its values makes two jobs one run (job_digest.c). */
enum origin {
    OF_FILES,  /* which may have moved: all values but paths count */
    OF_WORDS,  /* nothing but its values */
    OF_SOURCES /* other sources, each by its own rule */
};

struct file_head {
    uint8_t bytes[FILE_HEAD];
    size_t count; /* all of a file that is shorter */
};

struct source_key {
    const char *word;
    /* From what stands behind the key to a data set of elements. Paths are relative to the job file. */
    plim_status (*open)(struct dataset **out, struct data_reader *reader, const struct yaml *yaml, plim_error *error);
    enum origin origin;
    /* How a file without a job file is recognised (`plim data inspect FILE`): by its first bytes, or, where no source
       knows them, by the end of its name. NULL, {0}: not at all. */
    bool (*is_file)(const struct file_head *head);
    const char *suffixes[MOST_SUFFIXES];
};

#define SOURCE(name) extern const struct source_key source_key_##name;
#include "pipeline/keys/sources.def"
#undef SOURCE

/* Those of sources.def. */
extern const struct source_key *const all_sources[];
extern const int all_sources_count;
/* NULL when there is none. */
const struct source_key *source_key_find(const char *key);
/* The error for a key that is none, with the nearest right one. */
plim_status source_key_unknown(struct data_reader *reader, const struct yaml *entry, plim_error *error);
/* probe.c: the source that reads this file or folder. */
plim_status source_key_probe(const struct source_key **out, struct budget *budget, const char *path, plim_error *error);
bool file_head_starts(const struct file_head *head, const char *magic, size_t bytes);

/* PLIM_BAD_JOB at a place of the job file. */
plim_status reader_bad(struct data_reader *reader, const struct yaml *at, const char *what, plim_error *error);
/* How most keys end: where opening *source succeeded (status) *out is a data set of it. */
plim_status key_opened(struct dataset **out, struct source **source, plim_status status);
/* A path of the job file: relative to the file's folder. NULL: the arena is refused. */
const char *reader_path(struct data_reader *reader, const char *path);
/* A file name, or a list of them; each must be there. */
plim_status reader_paths(const char **paths, int *count, struct data_reader *reader, const struct yaml *yaml,
                         plim_error *error);
/* A pattern, or a list of them: names, wildcards, brace ranges. Sorted within a pattern; at least one file. */
plim_status reader_file_list(struct file_list **out, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error);
/* A list of splits, each opened; all yours to unref, none on failure. */
plim_status reader_inputs(struct dataset **all, int *count, int most, struct data_reader *reader,
                          const struct yaml *list, plim_error *error);
void inputs_unref(struct dataset *const *all, int count);
/* What records are made of: `features:` of an Example, or the other two of a SequenceExample; all may be NULL. */
plim_status reader_features(struct dataset **dataset, struct data_reader *reader, const struct yaml *features,
                            const struct yaml *context, const struct yaml *lists, plim_error *error);
/* [64, 64, 3]. */
plim_status reader_shape(struct shape *shape, struct data_reader *reader, const struct yaml *list, plim_error *error);

#endif
