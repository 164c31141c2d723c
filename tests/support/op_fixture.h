/* op_fixture.h - one op's example with bytes behind it, for the tests that
   every op gets: gradients, cutting, parity of backends. */
#ifndef TESTS_OP_FIXTURE_H
#define TESTS_OP_FIXTURE_H

#include "graph/op.h"

#define FIXTURE_TENSORS 64

struct fixture {
    struct budget *budget;
    struct graph graph;
    struct node *node;           /* the op under test */
    struct tensor *output;       /* what its example returned */
    void *data[FIXTURE_TENSORS]; /* by tensor id, after fixture_fill */
    size_t bytes[FIXTURE_TENSORS];
};

/* Example number `variant` of an op, in `type`, with `batch` samples; false
   when there are no more. More nodes may be added before fixture_fill. */
bool fixture_init(struct fixture *fixture, const struct op *op, int variant, enum type type, int64_t batch);
void fixture_release(struct fixture *fixture);

/* Bytes for every tensor: inputs, weights and states get the values that
   their names ask for (op.h, example), exact in f32 and the same for each type and
   batch; the others get POISON (NaN in every float type). */
#define POISON 0xff
void fixture_fill(struct fixture *fixture, uint64_t seed);
/* The values of inputs, weights and states as another fixture of the same example has them, rounded to its types. */
void fixture_copy(struct fixture *to, const struct fixture *from);
/* Spoils the rows of batched inputs from `count` on: they must not be read. */
void fixture_spoil(struct fixture *fixture, int64_t count);

double fixture_get(const struct fixture *fixture, const struct tensor *tensor, int64_t i);

/* The call for rows [begin, end) of the cut axis. */
void fixture_call(struct call *call, const struct fixture *fixture, const struct node *node, int64_t begin, int64_t end,
                  int64_t count);
/* Runs a node with its reference in slices of `slice` grains (0: in one). */
void fixture_run(struct fixture *fixture, const struct node *node, int64_t slice, int64_t count);
/* The nodes before the one under test, where its example has any. */
void fixture_run_before(struct fixture *fixture, int64_t count);
/* All nodes, in one slice each; without the backward ones unless asked. */
void fixture_run_all(struct fixture *fixture, bool backward);

#endif
