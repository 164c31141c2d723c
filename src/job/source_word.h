/* source_word.h - a source of a job file: one word, one file (word_NAME.c), one line in source_words.def. */
#ifndef JOB_SOURCE_WORD_H
#define JOB_SOURCE_WORD_H

#include "formats/files/file_list.h"
#include "job/job.h"

#define MOST_FILES 64

/* Where its elements come from: what of its words makes two jobs one run (job_digest.c). */
enum origin {
    OF_FILES,  /* which may have moved: all words but their places count */
    OF_WORDS,  /* nothing but its words */
    OF_SOURCES /* other sources, each by its own rule */
};

struct source_word {
    const char *word;
    /* From what stands behind the word to a data set of elements. Paths are relative to the job file. */
    plim_status (*open)(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error);
    enum origin origin;
};

#define SOURCE_WORD(name) extern const struct source_word source_word_##name;
#include "job/source_words.def"
#undef SOURCE_WORD

/* NULL when there is none. */
const struct source_word *source_word_find(const char *key);
/* The error for a key that is none, with the nearest right one. */
plim_status source_word_unknown(struct plim_job *job, const struct yaml *entry, plim_error *error);

/* PLIM_BAD_JOB at a place of the job file. */
plim_status job_bad(struct plim_job *job, const struct yaml *at, const char *what, plim_error *error);
/* A file name, or a list of them; each must be there. */
plim_status job_paths(const char **paths, int *count, struct plim_job *job, const struct yaml *yaml, plim_error *error);
/* A pattern, or a list of them: names, wildcards, brace ranges. Sorted within a pattern; at least one file. */
plim_status job_file_list(struct file_list **out, struct plim_job *job, const struct yaml *yaml, plim_error *error);
/* A list of splits, each opened; all yours to unref, none on failure. */
plim_status job_inputs(struct dataset **all, int *count, int most, struct plim_job *job, const struct yaml *list,
                       plim_error *error);
void job_inputs_unref(struct dataset *const *all, int count);
/* What records are made of: `features:` of an Example, or the other two of a SequenceExample; all may be NULL. */
plim_status job_features(struct dataset **dataset, struct plim_job *job, const struct yaml *features,
                         const struct yaml *context, const struct yaml *lists, plim_error *error);
/* [64, 64, 3]. */
plim_status job_shape(struct shape *shape, struct plim_job *job, const struct yaml *list, plim_error *error);

#endif
