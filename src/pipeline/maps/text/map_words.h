/* map_words.h - the options of the functions over texts, tokens and category numbers, and what these share.

   Files and lists are read when the dataset is built: the tables belong to it (tag pipeline), and all workers read
   them. Texts that options refer to need not live any longer than that. */
#ifndef PIPELINE_MAPS_TEXT_MAP_WORDS_H
#define PIPELINE_MAPS_TEXT_MAP_WORDS_H

#include "pipeline/maps/map_functions.h"
#include "pipeline/text/bpe.h"
#include "pipeline/text/text_vectorize.h"

/* Where tokens come from. */
struct word_list {
    const char *path; /* a token a line; NULL: the list */
    const char *job;  /* a relative path is one from this file's folder; NULL: as it is */
    const char *const *tokens;
    int64_t count;
    const struct yaml *list; /* instead of tokens: of a job file */
};

/* string_lookup, integer_lookup. The column "" is the first. */
struct lookup_options {
    char column[64];
    struct word_list words;
    struct vocabulary_options lookup; /* zero but num_oov_indices, which is 1 in Keras */
    const char *dtype;                /* NULL: int64; int32, and float32 unless output is int */
    enum type type;                   /* made of it */
    struct vocabulary *vocabulary;    /* made */
    int64_t number;                   /* made: of the words */
};

struct vectorization_options {
    char column[64];
    struct word_list words;
    struct text_vectorizer vectorizer; /* its vocabulary is made */
    int64_t max_tokens;                /* 0: any number */
    bool pad_to_max_tokens;
    const char *dtype; /* as above; int64 where rows differ in length */
    enum type type;
    struct vocabulary *vocabulary; /* made */
    int64_t number;                /* made: of the words */
};

struct bpe_options {
    char column[64];
    const char *job, *vocabulary, *merges; /* vocab.json, merges.txt */
    int64_t length;                        /* of each row, cut or filled up; 0: as many as there are */
    int64_t pad_value;
    const char *dtype; /* NULL: int64; or int32 */
    enum type type;
    struct bpe *bpe; /* made */
    int64_t number;  /* made: of the files' names and the rest */
};

struct hashing_options {
    char column[64];
    struct hashing hashing; /* its mask is the text below */
    char mask[128];         /* of string columns */
    const char *dtype;      /* NULL: int64, or float32 unless output is int */
    enum type type;
};

/* tf.strings.split: white space where the separator is empty. */
struct split_options {
    char column[64];
    char separator[64];
};

struct to_number_options {
    char column[64];
    enum type type; /* float32, float64, int32, int64 */
};

/* Rows of other extents: filled up (longer ones are PLIM_BAD_DATA), cut, or both. */
enum fit_kind { FIT_PAD, FIT_TRUNCATE, FIT_DENSE };
struct fit_options {
    char column[64];
    struct shape shape; /* -1: this axis stays as it is */
    double value;
    char text[64]; /* the value of string columns */
};

struct shape_options {
    char column[64];
    struct shape shape;      /* reshape: one extent may be -1 */
    int axis_count;          /* squeeze: none is all */
    int64_t axis[MOST_AXES]; /* expand_dims: the first; from the end where negative */
};

/* ---- what they share ---- */

/* `path` as seen from the folder of the file `job` (NULL: as it is); false when it is too long. */
#define MAP_PATH_BYTES 4096
bool map_path(char out[MAP_PATH_BYTES], const char *job, const char *path);
/* A file that a job file names: told at its line when it is not there. */
plim_status map_path_read(const char **out, const char *job, const struct yaml *value, const char *what,
                          plim_error *error);
/* `vocabulary:` - the name of a file, or a list. */
plim_status word_list_read(struct word_list *out, const char *job, const struct yaml *value, plim_error *error);
/* Stands for the words and for what is done with them: the bytes of `options`, which hold no addresses. */
int64_t word_list_number(const struct word_list *words, const void *options, size_t bytes);
plim_status word_list_make(struct vocabulary **out, const struct word_list *words, struct budget *budget,
                           const struct vocabulary_options *options, plim_error *error);
/* What `dtype:` may be. */
plim_status map_category_type(enum type *out, const char *dtype, enum type usual, enum category_output output,
                              plim_error *error);
/* salt: 7, or [7, 11]. */
plim_status map_salt_read(struct hash_salt *out, const char *job, const struct yaml *value, plim_error *error);
/* The column's shape after an output mode. */
plim_status map_category_infer(struct column *column, const char *function, enum category_output output, int64_t depth,
                               plim_error *error);
/* Where the numbers of a row of this shape go: into the column, or, with its extents, into the room. NULL: it
   is full. */
/* map_function.room_bytes of such functions; their options begin with the column. */
uint64_t map_category_room(const struct spec *from, const struct spec *to, const void *options);
void *map_category_to(const struct map_call *call, int c, int64_t row, const struct shape *shape);
/* The text in a row of a column of single strings. */
const struct string *map_text(const struct map_call *call, int c, int64_t row);
plim_status map_need_text(const struct column *column, const char *function, plim_error *error);
/* Says which element is bad. */
plim_status map_bad(const struct map_call *call, int64_t row, plim_status status, plim_error *error);
/* [28, 28], or one number; extents of at least `least`, or -1. */
plim_status map_shape_read(struct shape *out, const char *what, const char *job, const struct yaml *value,
                           plim_error *error);

#endif
