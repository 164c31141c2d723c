/* hashing.h - keras.layers.Hashing: any value into one of so many bins, the same bin everywhere and always.

   Without a salt it is FarmHash's 64-bit fingerprint, with one SipHash-2-4, modulo the bins. Numbers are hashed as
   their decimal text, floats cut to int64 first, bools as "true" and "false": all as TensorFlow does it. */
#ifndef PIPELINE_TEXT_HASHING_H
#define PIPELINE_TEXT_HASHING_H

#include "pipeline/text/categories.h"

uint64_t hash_farm(const void *data, uint64_t bytes);
uint64_t hash_sip(const uint64_t key[2], const void *data, uint64_t bytes);

struct hash_salt {
    bool given;
    uint64_t key[2];
};
/* Which of `bins` bins. */
int64_t hash_bin(const struct hash_salt *salt, int64_t bins, const void *data, uint64_t bytes);
int64_t hash_bin_of_whole(const struct hash_salt *salt, int64_t bins, int64_t value);

struct hashing {
    int64_t bins;
    struct hash_salt salt;
    bool masked;        /* with more than one bin, bin 0 is the mask value's alone */
    struct string mask; /* of string columns */
    double mask_number; /* of others */
    enum category_output output;
};

/* A row of this shape into its output (category_shape), elements of `to_type`: int64 with CATEGORY_INT,
   else float32. */
void hashing_row(void *to, enum type to_type, const struct hashing *hashing, const void *row, enum type type,
                 const struct shape *shape);

#endif
