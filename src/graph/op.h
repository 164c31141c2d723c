/* op.h - an op as one table entry. Everything that other code needs to know about an op is a field here; no code
   switches on ops.

   How an op is cut. An op runs in slices along one axis ("the cut axis") of extent cut.extent: samples for most ops,
   rows of the output for weight gradients of heavy layers, elements for optimizer updates. For each operand the op
   states one of:
     PART_CUT    axis 0 is the cut axis: a slice sees only its own rows
     PART_WHOLE  a slice sees the whole operand
     PART_SUM    outputs only: each slice adds its partial sum (an output is never both CUT and SUM); partial sums are
                 added in a fixed order (transform/sum_order.h)
   Only PART_CUT operands can stay inside a chain of slices. The cut depends on the op, its attributes and its shapes
   alone, never on the number of threads or the budget. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "graph/graph.h"

enum part { PART_CUT, PART_WHOLE, PART_SUM };

struct cut {
    int64_t extent; /* extent of the cut axis */
    bool by_sample; /* the cut axis is the batch: a batch with fewer samples ends early */
    int64_t grain;  /* slices begin at multiples of this; 1: anywhere */
    int64_t least;  /* rows that a slice should have, because kernels are slow on fewer; 0: any */
    double work;    /* multiply-adds (or elements touched) of the whole op */
    enum part input[MOST_INPUTS];
    enum part output[MOST_OUTPUTS];
};

/* One slice of one node. Pointers of CUT operands point to row `begin`, those of WHOLE and SUM operands to their first
   element. */
struct call {
    const struct node *node;
    void *input[MOST_INPUTS];
    void *output[MOST_OUTPUTS];
    int64_t begin, end; /* rows of the cut axis that this slice covers */
    int64_t count;      /* samples in this batch (<= graph->batch) */
    bool add;           /* SUM outputs: true: add to the stored value; false: overwrite it */
    void *scratch;      /* the worker's own scratch buffer for this kernel */
    const void *pack;   /* the data that the kernel's prologue prepared, or NULL */
};

/* An encoding that a node can read instead of an input of which it needs only a few bits per element. `encode` computes
   the encoding from that input (it has one input, one output cut by sample and the attributes below). `reader`, with
   the same attributes, then replaces the node's op. It has the same inputs and outputs, except that the encoding
   replaces that input, and its results are bitwise identical. */
#define MOST_ENCODING_BYTES 64
struct encoded_input {
    int input;
    const struct op *encode, *reader;
    size_t attributes_bytes;
    unsigned char attributes[MOST_ENCODING_BYTES];
};

/* What a gradient node reads of the node that it belongs to: the gradient of output 0, an input, an output. */
enum read_again { READ_NO_MORE, READ_D, READ_X0, READ_X1, READ_X2, READ_Y0, READ_Y1 };
#define MOST_READ_AGAIN 4

struct op {
    const char *name;
    int inputs, outputs;
    unsigned optional; /* bit mask of the inputs that may be absent (NULL) */
    size_t attributes_bytes;

    /* Checks the inputs and creates the output tensors (graph_value). The error states what does not fit: "matmul:
       inner sizes 100 and 64 differ". */
    plim_status (*infer)(struct graph *graph, struct node *node, plim_error *error);

    /* Appends nodes that compute d(input[i]) for each i with wanted[i] and stores their outputs in d_input. d_output[k]
       may be NULL (no gradient flows). */
    void (*gradient)(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                     struct tensor **d_input);
    /* Instead, where the gradient is one node of another op with the same attributes: that op and its inputs. Its
       output k is d(input[k]). */
    const struct op *gradient_op;
    enum read_again gradient_reads[MOST_READ_AGAIN];
    /* Why the op has neither. */
    const char *no_gradient;
    /* The op has no gradient on purpose: its output counts as a constant. Asking any other op without a gradient for
       one is an error. */
    bool stops_gradient;
    /* Why the op accepts no operand of a 16-bit float type (f16, bf16); NULL: it accepts them. */
    const char *wide_only;

    unsigned keeps_inputs;  /* bit mask of the inputs that the backward pass reads again */
    unsigned keeps_outputs; /* bit mask of the outputs that the backward pass reads again */
    unsigned updates;       /* bit mask of the inputs that are written in place (optimizer updates) */
    /* The bit of one input, or 0: output 0 may reuse its buffer when no later node reads the input, both have the same
       number of bytes and the input is a value (KIND_VALUE). */
    unsigned in_place;

    /* Optional: whether output 0 contains every element of all inputs, possibly reordered, repeated or in another type,
       and no other elements. */
    bool (*hands_on)(const struct node *node);

    /* Optional, for gradient ops: whether the node can read an encoding instead of one of its inputs, and which one
       (transform/encode.c). */
    bool (*encoding)(struct encoded_input *out, const struct node *node);

    void (*cut)(struct cut *cut, const struct node *node);

    /* Plain C over element_get/element_set: the specification of the op. It honours begin, end, count and add, for f32
       and f64 alike. */
    void (*reference)(const struct call *call);
};

/* The input whose buffer output 0 may reuse, or -1. */
static inline int op_in_place(const struct op *op)
{
    return op->in_place ? __builtin_ctz(op->in_place) : -1;
}

static inline bool op_has_gradient(const struct op *op)
{
    return op->gradient || op->gradient_op;
}

/* Every op, from ops.def; op_by_name returns NULL for an unknown name. */
extern const struct op *const all_ops[];
extern const int all_ops_count;
const struct op *op_by_name(const char *name);

#endif
