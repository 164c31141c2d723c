/* expression_tree.h - an expression as it was read, and the program that it becomes. For the expression files only. */
#ifndef PIPELINE_EXPRESSION_EXPRESSION_TREE_H
#define PIPELINE_EXPRESSION_EXPRESSION_TREE_H

#include "pipeline/expression/expression.h"
#include "pipeline/expression/expression_kernels.h"

#define MOST_NODES         512
#define MOST_DEPTH         32
#define MOST_OPERANDS      3
#define MOST_INPUTS        16
#define MOST_TEMPORARY     12 /* buffers of a part beside its inputs */
#define MOST_CONSTANTS     48
#define MOST_REDUCTIONS    8
#define MOST_PART_OPERANDS (MOST_INPUTS + MOST_CONSTANTS + MOST_TEMPORARY + 1)

enum node_kind {
    NODE_WHOLE,
    NODE_REAL,
    NODE_TRUTH,
    NODE_TEXT,
    NODE_COLUMN,
    NODE_OPERATION,
    NODE_CLIP,
    NODE_CAST,
    NODE_LEN,
    NODE_REDUCE
};

/* Operands come before the node that uses them. */
struct expression_node {
    enum node_kind kind;
    int at; /* character of the text, from 0 */
    int operand_count, operand[MOST_OPERANDS];
    enum operation operation;
    bool swapped; /* a > b is b < a */
    enum reduce reduce;
    enum type type;     /* of cast */
    int64_t whole;      /* NODE_WHOLE, NODE_TRUTH */
    double real;        /* NODE_REAL */
    struct string text; /* NODE_TEXT; NODE_COLUMN: its name, with a NUL behind it */
    int index_count;    /* x[1, 2] */
    int64_t index[MOST_AXES];
};

/* An operand of a part's steps, by number: an input, a constant, or a temporary buffer. */
typedef uint8_t expression_operand;

/* One operation of a compiled expression: a kernel, its result and its operands. */
struct expression_step {
    expression_kernel *kernel;
    expression_operand to, operand[MOST_OPERANDS];
};

/* A column, or what an earlier part made of the rows, seen from the shape of a part. */
struct input {
    expression_operand to;
    int column; /* -1 - p: the result of part p */
    enum type type;
    enum lane lane;
    expression_load *load;
    uint64_t offset, size; /* bytes to the first element of the row, and from one element to the next */
    struct shape shape;    /* of what is read */
    int rank;              /* axes of the part, those that run on together as one; at least 1 */
    int64_t dim[MOST_AXES];
    uint64_t stride[MOST_AXES]; /* bytes; 0 where the input is repeated */
};

struct constant {
    expression_operand to;
    void *block; /* the value, EXPRESSION_BLOCK times */
};

/* Values of one shape a row: the row's part of the result, or what is reduced to one value a row. */
struct expression_part {
    bool used;
    struct shape shape;
    int64_t count; /* of shape */
    int operand_count, input_count, constant_count, temporary_count, step_count, step_most;
    struct input input[MOST_INPUTS];
    struct constant constant[MOST_CONSTANTS];
    struct expression_step *step;
    expression_operand temporary[MOST_TEMPORARY], result;
    bool busy[MOST_TEMPORARY];
    bool own_result;    /* the result has an operand of its own, which only the last step writes */
    enum lane lane;     /* of result */
    enum type type;     /* of what comes out */
    enum reduce reduce; /* all but the last part */
};

struct expression {
    struct arena *arena;
    const char *text, *where;
    int node_count;
    struct expression_node *node;
    int part_count; /* the last one gives the result */
    struct expression_part *part;
    int column_count;
    bool *in_place;
};

/* "WHERE: expression 'TEXT': character N: ..."; PLIM_BAD_JOB. */
__attribute__((format(printf, 4, 5))) plim_status expression_fail(const struct expression *expression, int at,
                                                                  plim_error *error, const char *format, ...);

#endif
