/* tfds_info.h - what a folder of TensorFlow Datasets says of itself: dataset_info.json and features.json. */
#ifndef FORMATS_RECORDS_TFDS_INFO_H
#define FORMATS_RECORDS_TFDS_INFO_H

#include "base/memory/arena.h"
#include "formats/source.h"

#define TFDS_NAME_BYTES  128
#define TFDS_PATH_BYTES  512
#define TFDS_MOST_SPLITS 64
#define TFDS_MOST_SHARDS 1048576
#define TFDS_ANY         (-1) /* an extent that differs from example to example */

enum tfds_kind {
    TFDS_TENSOR, /* numbers or strings, as they are */
    TFDS_RAW,    /* numbers, as the bytes of one string */
    TFDS_IMAGE,  /* an encoded image */
    TFDS_OTHER,  /* something that is not read here; `what` names it */
};

struct tfds_feature {
    char name[64]; /* the key in the examples; parts of nested ones are joined by slashes */
    char what[64];
    enum tfds_kind kind;
    enum type type;     /* of its values */
    struct shape shape; /* TFDS_ANY where it differs; of an image (height, width, channels) */
    int64_t classes;    /* of a class label; 0: it is none */
};

struct tfds_split {
    char name[TFDS_NAME_BYTES];
    char file_template[TFDS_PATH_BYTES]; /* "": the usual one */
    int64_t shard_count, count;          /* count: examples */
    const int64_t *shard_length;
};

struct tfds_info {
    struct arena arena; /* what follows lies in it */
    char name[TFDS_NAME_BYTES], file_format[32];
    char input[64], label[64]; /* supervised keys, or "" */
    int split_count, feature_count;
    struct tfds_split split[TFDS_MOST_SPLITS];
    struct tfds_feature feature[MOST_COLUMNS];
};

/* Both files of the folder. Yours to free. */
plim_status tfds_info_load(struct tfds_info **out, struct budget *budget, const char *folder, plim_error *error);
void tfds_info_free(struct tfds_info *info);

/* The same from texts; the paths are for errors. */
plim_status tfds_parse_info(struct tfds_info *info, const char *text, size_t bytes, const char *path,
                            plim_error *error);
plim_status tfds_parse_features(struct tfds_info *info, const char *text, size_t bytes, const char *path,
                                plim_error *error);

/* The name of a shard's file: mnist-train.tfrecord-00000-of-00001. False when it does not fit, or leaves the folder. */
bool tfds_file_name(char *out, size_t capacity, const struct tfds_info *info, const struct tfds_split *split,
                    int64_t shard);

/* A part of a split: examples [begin, end), from "train[:80%]", "test[100:-50]". */
struct tfds_slice {
    const struct tfds_split *split;
    int64_t begin, end;
};
/* One of the parts that a plus joins. *after is behind it. */
plim_status tfds_read_slice(struct tfds_slice *out, const char **after, const struct tfds_info *info, const char *text,
                            plim_error *error);

#endif
