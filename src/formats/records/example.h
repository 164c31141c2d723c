/* example.h - tf.train.Example and tf.train.SequenceExample: serialized records into rows of columns, and back.

   tf.io's rules. A feature that is absent, or that has no kind of list, takes its default, or is an error when it is
   required; a list of another kind is an error; FixedLen wants exactly as many values as its shape has; features
   that nobody declared are passed over; of a key that comes twice the last one counts (and of a list that
   comes twice in a feature). Lists may be packed or not. Unknown fields are passed over, groups refused. */
#ifndef FORMATS_RECORDS_EXAMPLE_H
#define FORMATS_RECORDS_EXAMPLE_H

#include "formats/source.h"

#define MOST_FEATURES MOST_COLUMNS

enum feature_kind {
    FEATURE_FIXED,    /* FixedLenFeature: a row holds the values */
    FEATURE_VARIABLE, /* VarLenFeature: a row is a cell, (values); in a list (steps, longest), filled up with 0 or "" */
    FEATURE_SEQUENCE, /* FixedLenSequenceFeature: a row is a cell, (steps, shape...) */
};

struct feature {
    const char *name; /* the key */
    enum feature_kind kind;
    enum type type;       /* TYPE_F32, TYPE_I64 or TYPE_STRING: there are no others */
    struct shape shape;   /* of FEATURE_FIXED the whole; of FEATURE_SEQUENCE a step; else empty */
    bool in_list;         /* of a SequenceExample's feature_lists; else of the context, or of an Example */
    bool may_miss;        /* FEATURE_SEQUENCE: allow_missing */
    const void *fallback; /* FEATURE_FIXED: the default, as many values as the shape has; NULL: required */
};

/* The shape of the column that it makes: -1 where rows differ. */
struct shape feature_shape(const struct feature *feature);

struct example_parser;

/* Everything is copied, strings of defaults too. sequence: records are SequenceExamples. */
plim_status example_parser_make(struct example_parser **out, struct budget *budget, const struct feature *features,
                                int count, bool sequence, plim_error *error);
void example_parser_free(struct example_parser *parser);

/* Row i of feature f at target->to[f] + i * target->stride[f] (struct string and struct cell as in source.h). Strings
   refer to the record's own bytes; what cells hold lies in the target's value buffer.
   *done, which is set on failure too: how many records are parsed. After PLIM_BAD_DATA record *done is the bad one
   (the message names its feature; who knows the file adds a place). PLIM_OK with *done < count: the buffer is full.
   Thread-safe: nothing of the parser changes. */
plim_status example_parse(int64_t *done, const struct example_parser *parser, const struct string *records,
                          int64_t count, const struct row_target *target, plim_error *error);

/* ---- writing ------------------------------------------------------------ */

struct example_column {
    const char *name;
    enum type type; /* floating types become floats, the others int64, strings bytes */
    const void *data;
    int64_t count; /* values */
};

/* A serialized Example with these features, in this order, lists packed, into the buffer; out->data == NULL: it does
   not fit (values->wanted). */
plim_status example_write(struct string *out, const struct example_column *columns, int count,
                          struct value_buffer *values, plim_error *error);

#endif
