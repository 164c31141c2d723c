/* categories.h - category numbers as Keras's output modes lay them out: int, one_hot, multi_hot, count. */
#ifndef PIPELINE_TEXT_CATEGORIES_H
#define PIPELINE_TEXT_CATEGORIES_H

#include "base/status.h"
#include "graph/tensor.h"

enum category_output { CATEGORY_INT, CATEGORY_ONE_HOT, CATEGORY_MULTI_HOT, CATEGORY_COUNT };

/* A number that leaves no trace but with CATEGORY_INT: that of the mask token. */
#define CATEGORY_NONE INT64_MAX

/* "int", "one_hot", "multi_hot", "count"; tf_idf is refused by name. PLIM_BAD_JOB without a place. */
plim_status category_output_from_name(enum category_output *out, const char *name, plim_error *error);
/* What becomes of a row of this shape: one_hot puts `depth` in place of a last axis of 1, or behind the others;
   multi_hot and count put it in place of the last axis. false when there are too many axes. */
bool category_shape(struct shape *out, const struct shape *row, enum category_output output, int64_t depth);
/* A row's output is made piece by piece: begin once, then put the numbers of the row's elements from `first` on.
   Elements are TYPE_I64, TYPE_I32 or TYPE_F32. Numbers outside [0, depth) are dropped, but with CATEGORY_INT. */
struct category_row {
    void *to;
    enum type type;
    enum category_output output;
    int64_t depth;
    int64_t each; /* elements that share a line of `depth`: set by category_begin */
};
void category_begin(struct category_row *row, const struct shape *shape);
void category_put(const struct category_row *row, int64_t first, const int64_t *numbers, int64_t count);
/* Element i of a row of numbers, cut to a whole number. */
int64_t category_element(const void *row, enum type type, int64_t i);
/* How many numbers callers make at a time, on their stacks. */
#define CATEGORY_BLOCK 256

#endif
