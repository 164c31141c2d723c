/* op.h - an op as one table entry. All that anybody wants to know of an op
   is a field here; nobody switches on ops.

   How an op is cut. Work runs in slices along one axis ("the cut axis") of
   extent cut.extent: samples for most, rows of the output for weight gradients of
   heavy layers, elements for updates. For each operand the op says:
     PART_CUT    axis 0 is the cut axis: a slice sees its own rows only
     PART_WHOLE  a slice sees all of it
     PART_SUM    outputs only: each slice adds its share (never CUT and SUM of
                 the same output); partial sums are added in a fixed order
   Only PART_CUT operands can stay inside a chain of slices. The cut is a
   function of op, attributes and shapes alone, never of threads or budget. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "graph/graph.h"

enum part { PART_CUT, PART_WHOLE, PART_SUM };

struct cut {
    int64_t extent; /* of the cut axis */
    bool by_sample; /* the cut axis is the batch: a short batch ends early */
    int64_t grain;  /* slices are multiples of this (but the last); 1 if free */
    double work;    /* multiply-adds (or elements touched) of the whole op */
    enum part input[MOST_INPUTS];
    enum part output[MOST_OUTPUTS];
};

/* One slice of one node. Pointers of CUT operands point at row `begin`;
   those of WHOLE and SUM operands at their first element. */
struct call {
    const struct node *node;
    void *input[MOST_INPUTS];
    void *output[MOST_OUTPUTS];
    int64_t begin, end; /* rows of the cut axis: this slice */
    int64_t count;      /* samples in this batch (<= graph->batch) */
    bool add;           /* SUM outputs: add to what is there; else overwrite */
    void *scratch;      /* the worker's own bytes for this kernel */
    const void *pack;   /* what the kernel's prologue made, or NULL */
};

#define NO_INPUT (-1)

/* What a node could read in place of an input of which it needs a few bits an element: what `encode` makes of that
   input (one input, one output by sample, the attributes below). `reader`, with the same attributes, then takes the
   node's place: the same inputs and outputs, the bits where that input was; its results have the same bits. */
#define MOST_ENCODING_BYTES 64
struct encoded_input {
    int input;
    const struct op *encode, *reader;
    size_t attributes_bytes;
    unsigned char attributes[MOST_ENCODING_BYTES];
};

struct op {
    const char *name;
    int inputs, outputs;
    unsigned optional; /* inputs (bit mask) that may be absent: NULL */
    size_t attributes_bytes;

    /* Checks inputs and makes output tensors (graph_value); says what does
       not fit: "matmul: inner sizes 100 and 64 differ". */
    plim_status (*infer)(struct graph *graph, struct node *node, plim_error *error);

    /* Appends nodes that compute d(input[i]) for each i with wanted[i] and
       stores them in d_input. d_output[k] may be NULL (no gradient flows).
       NULL when the op has none; then no_gradient says why. */
    void (*gradient)(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                     struct tensor **d_input);
    const char *no_gradient;
    /* Without a gradient, on purpose: what is behind it counts as constant. Of others it is an error to ask for one. */
    bool stops_gradient;
    /* Why it takes no operand of the small floats (f16, bf16); NULL: it takes them. */
    const char *wide_only;

    unsigned keeps_inputs;  /* what backward reads again, bit masks: */
    unsigned keeps_outputs; /* the planner's question */
    unsigned updates;       /* inputs that are written in place (updates) */
    /* Output 0 may take over the bytes of this input, when no later node reads
       it, the two have equally many bytes and the input is a value; or NO_INPUT. */
    int in_place;

    /* Optional: whether output 0 has every element of all inputs, in another order, type or several times, and no others. */
    bool (*hands_on)(const struct node *node);

    /* Of gradients, optional: whether the node could do with less than one of its inputs, and how (transform/encode.c). */
    bool (*encoding)(struct encoded_input *out, const struct node *node);

    void (*cut)(struct cut *cut, const struct node *node);

    /* Plain C over element_get/element_set: the specification. Honours begin,
       end, count and add, for f32 and f64 alike. */
    void (*reference)(const struct call *call);
};

/* Every op, from ops.def; op_by_name returns NULL for an unknown one. */
extern const struct op *const all_ops[];
extern const int all_ops_count;
const struct op *op_by_name(const char *name);

#endif
