/* examples.h - an example of every op: what its tests of gradient, cutting and parity, and its line of the speed table,
   are made of.

   NAME_example is that of op_NAME: it builds instance number `variant` of the op on small random inputs and returns the
   output to differentiate; NULL when there are no more variants. `type` is TYPE_F64 for gradient checks. The op under
   test is the last node. Whoever runs it makes the values; the beginning of a tensor's name says which:
     "label:<n>", "index:<n>"  whole numbers in [0, n)
     "positive"                in (0.1, 0.9)
     "wide"                    in [-4, 4]
     "iteration"               a small whole number
     others                    in [-1, 1]; whole types in [0, 100) */
#ifndef TESTS_OPS_EXAMPLES_EXAMPLES_H
#define TESTS_OPS_EXAMPLES_EXAMPLES_H

#include "ops/helpers.h"

#define OP(name) struct tensor *name##_example(struct graph *graph, int variant, enum type type);
#include "ops/ops.def"
#undef OP

/* That of an op. */
struct tensor *example_add(struct graph *graph, const struct op *op, int variant, enum type type);

/* ---- the speed table -------------------------------------------------------- */

/* One line of the speed table (bench/kernels.c), of ops that say which sizes models have. */
struct speed {
    char name[80]; /* "resnet50 3x3/1 64 -> 64, 56" */
    double share;  /* of cut.work that has to be done: 0.5 of causal attention; 1 unless said */
    bool near;     /* its slices lie in the cache, as those inside a chain do: all of them get the same bytes */
};

/* Whether there are sizes of models for the op; without them the table stretches the largest example. */
bool speed_is_given(const struct op *op);
/* Adds size number `variant` to an empty graph, whose batch it sets; NULL when there are no more. */
struct tensor *speed_add(struct graph *graph, struct speed *line, const struct op *op, int variant, enum type type);

/* ---- what examples are made of ---------------------------------------------- */

struct tensor *trinary(struct graph *graph, const struct op *op, struct tensor *a, struct tensor *b, struct tensor *c);
/* A batched input; `row` is the shape of one sample. */
struct tensor *example_input(struct graph *graph, const char *name, enum type type, int rank, const int64_t *row);
/* For ops of single elements: rows of 7, 1 and 3x2x37 of them; NULL after the last variant. */
struct tensor *example_plain(struct graph *graph, int variant, enum type type, const char *name);
/* Pairs for losses and metrics; NULL after the last variant. */
struct tensor *example_labels(struct tensor **scores, struct graph *graph, int variant, enum type type);
struct tensor *example_targets(struct tensor **scores, struct graph *graph, int variant, enum type type,
                               const char *name);
/* Of weights that are updated. */
extern const struct shape update_shapes[];
extern const int update_shapes_count;

#define ROW(...)                                                                                                       \
    (int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1, (const int64_t[])                                \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#endif
