/* graph.h - what is to be computed: tensors, and the nodes that make them.

   Three nouns:
     tensor  a value with a type, a shape and a kind (who owns its bytes)
     node    one use of an op: inputs, outputs, attributes
     graph   an arena with both, nodes in an order in which they can run

   Built, then frozen. Gradients and updates are nodes like any other, appended
   after the forward ones. Axis 0 of a `batched` tensor is the batch: a step may
   run with fewer samples than the shape says (the last batch of an epoch), never
   with more. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/memory/arena.h"
#include "graph/tensor.h"

#define MOST_INPUTS  8
#define MOST_OUTPUTS 3

struct op;
struct build;

enum kind {
    KIND_INPUT,  /* a column of the batch; bytes belong to the pipeline's slot */
    KIND_WEIGHT, /* lives as long as the run; saved; trainable or not */
    KIND_STATE,  /* optimizer state: lives as long as the run; in checkpoints */
    KIND_VALUE,  /* made by a node, dead after its last reader */
    KIND_RESULT, /* a value that the trainer reads after the step (loss, metric) */
};

struct tensor {
    int id;
    const char *name; /* "dense/kernel"; unique among weights and states */
    enum type type;
    struct shape shape;
    enum kind kind;
    bool batched;
    bool trainable;        /* weights only */
    bool gradient;         /* a gradient of a weight: its bytes are booked under that tag */
    bool gone;             /* a rewrite took it away, or gave it another meaning: no new reader */
    bool of_update;        /* states only: what an optimizer keeps of a weight; nothing but its update reads it */
    double initial;        /* states only: what every element is before the first step */
    int column;            /* inputs only: which column of the batch */
    int32_t below;         /* who reads it takes whole numbers from 0 that are below this; 0: any values */
    struct node *producer; /* NULL for inputs, weights and states */
};

struct node {
    int id;
    const struct op *op;
    const char *name; /* "conv2d_1", the layer it came from */
    bool backward;    /* part of the backward pass or the update */
    bool again;       /* makes a second time what forward made: runs when its first reader could, not before */
    bool
        begins_chain; /* no chain goes on from the nodes before it; set by tests, because results are the same either way */
    int input_count, output_count;
    struct tensor *input[MOST_INPUTS];
    struct tensor *output[MOST_OUTPUTS];
    const void *attributes; /* the op's own struct, in the graph's arena */
    size_t attributes_bytes;
};

struct graph {
    struct arena arena;
    struct tensor **tensor; /* by id */
    int tensor_count, tensor_capacity;
    struct node **node; /* by id, in running order */
    int node_count, node_capacity;
    const char *layer;     /* name given to nodes added from now on */
    const char *node_name; /* the graph's own copy of the last one that was given */
    bool backward;         /* marks nodes added from now on */
    int64_t batch;         /* extent of axis 0 of batched tensors */
    struct tensor **names; /* weights and states, hashed by name */
    int name_count, name_capacity;
    struct build *build;      /* what makes it (model/build.h), or NULL; nothing here reads it */
    struct arena build_arena; /* the build's tables: they can be given back before the graph */
    plim_status failed;       /* builders chain: the first error is kept here */
    plim_error error;
};

void graph_init(struct graph *graph, struct budget *budget, int64_t batch);
void graph_release(struct graph *graph);

/* Builders return NULL after a failure, take NULL inputs without complaint,
   and graph_check() reports what went wrong first. An input is batched: axis 0
   of its shape is the batch. Names are copied. */
struct tensor *graph_input(struct graph *graph, const char *name, int column, enum type type, struct shape shape);
struct tensor *graph_weight(struct graph *graph, const char *name, enum type type, struct shape shape, bool trainable);
struct tensor *graph_state(struct graph *graph, const char *name, enum type type, struct shape shape);
/* Adds a node; its outputs are made by the op's infer. Returns output 0 (of
   an op with no outputs: input 0). attributes are copied; NULL: all zero.
   Optional inputs may be NULL, or left off at the end. */
struct tensor *graph_add(struct graph *graph, const struct op *op, struct tensor *const *inputs, int input_count,
                         const void *attributes, size_t attributes_bytes);
/* Output k of the node that made `tensor`. */
struct tensor *graph_output(struct tensor *tensor, int k);
/* The trainer will read this tensor after the step. */
void graph_result(struct graph *graph, struct tensor *tensor, const char *name);
/* The weight or state of that name, or NULL. */
struct tensor *graph_named(const struct graph *graph, const char *name);
plim_status graph_check(const struct graph *graph, plim_error *error);
/* Keeps the first failure. Returns NULL, so `return graph_fail(...)` works in a builder. */
__attribute__((format(printf, 3, 4))) void *graph_fail(struct graph *graph, plim_status code, const char *format, ...);
/* The same after the graph's arena said NULL. */
void *graph_refused(struct graph *graph, size_t bytes);

/* Whoever reads the tensor takes whole numbers from 0 that are below this. */
void tensor_ask_ids(struct tensor *tensor, int64_t below);
/* What is asked of outputs of nodes from `first` on is asked of the inputs that they hand on (op.h: hands_on). */
void graph_trace_ids(struct graph *graph, int first);

/* A new value tensor, for an op's infer. */
struct tensor *graph_value(struct graph *graph, enum type type, struct shape shape, bool batched);

/* One line a node, for golden files: "12 relu dense (32, 64) <- 11". Numbers
   are nodes ("7.1": output 1 of node 7), names are inputs, weights and states. */
struct text;
void graph_print(struct text *out, const struct graph *graph);

#endif
