/* map_text.h - the options of the functions over texts, tokens and category numbers, and what these functions share.

   Files and lists are read when the dataset is built: the tables belong to it (tag pipeline), and all workers read
   them. Texts that options refer to need not live any longer than that. */
#ifndef PIPELINE_MAPS_TEXT_MAP_TEXT_H
#define PIPELINE_MAPS_TEXT_MAP_TEXT_H

#include "pipeline/maps/map_functions.h"
#include "pipeline/text/bpe.h"
#include "pipeline/text/text_vectorize.h"

/* Where tokens come from. */
struct token_list {
    const char *path; /* a token a line; NULL: the list */
    const char *job;  /* a relative path is one from this file's folder; NULL: as it is */
    const char *const *tokens;
    int64_t count;
    const struct yaml *list; /* instead of tokens: of a job file */
};

/* What the functions with a vocabulary have in common; their options begin with it. */
struct token_options {
    char column[64];
    struct token_list tokens;      /* not of bpe */
    const char *dtype;             /* NULL: int64; int32, and float32 unless output is int */
    enum type type;                /* the rest is made: the type named by dtype */
    struct vocabulary *vocabulary; /* not of bpe */
    struct bpe *bpe;               /* of bpe only */
    int64_t number;                /* stands for the tokens and the other options */
};

/* string_lookup, integer_lookup. */
struct lookup_options {
    struct token_options common;
    struct vocabulary_options lookup; /* zero but num_oov_indices, which is 1 in Keras */
};

/* dtype is int64 where rows differ in length. */
struct vectorization_options {
    struct token_options common;
    struct text_vectorizer vectorizer; /* its vocabulary is made */
    int64_t max_tokens;                /* 0: any number */
    bool pad_to_max_tokens;
};

/* dtype is int64 or int32. */
struct bpe_options {
    struct token_options common;
    const char *job, *vocabulary, *merges; /* vocab.json, merges.txt */
    int64_t length;                        /* of each row, cut or filled up; 0: as many as there are */
    int64_t pad_value;
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

/* ---- what they share ---- */

/* `path` as seen from the folder of the file `job` (NULL: as it is); false when it is too long. */
#define MAP_PATH_BYTES 4096
bool map_path(char out[MAP_PATH_BYTES], const char *job, const char *path);
/* A file that a job file names: reported at its line when it is not there. */
plim_status map_path_read(const char **out, const char *job, const struct yaml *value, const char *what,
                          plim_error *error);
/* `vocabulary:` - the name of a file, or a list. */
plim_status token_list_read(struct token_list *out, const char *job, const struct yaml *value, plim_error *error);
/* Stands for the tokens and for what is done with them: the bytes of `options`, which hold no addresses. */
int64_t token_list_number(const struct token_list *list, const void *options, size_t bytes);
plim_status token_list_make(struct vocabulary **out, const struct token_list *list, struct budget *budget,
                            const struct vocabulary_options *options, plim_error *error);
/* For map_function: options_number, options_content and options_release of struct token_options. */
int64_t token_options_number(const void *options);
void token_options_content(struct sha256 *sha, const void *options);
void token_options_release(void *options);
/* What `dtype:` may be. */
plim_status map_category_type(enum type *out, const char *dtype, enum type usual, enum category_output output,
                              plim_error *error);
/* salt: 7, or [7, 11]. */
plim_status map_salt_read(struct hash_salt *out, const char *job, const struct yaml *value, plim_error *error);
/* The column after an output mode. */
plim_status map_category_infer(struct column *column, const char *function, enum type type, enum category_output output,
                               int64_t depth, plim_error *error);

#endif
