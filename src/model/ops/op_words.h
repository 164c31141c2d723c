/* op_words.h - ops by the names that users of keras.ops and numpy know, with their arguments as words.

   A word is one line of op_words.def: its name, how many inputs it takes, its arguments, its builder, and an example
   that the tests run. Axis 0 of what comes from the batch is the batch; axes count from the end when they are below 0.
   Activations (layer_activation.c) and losses (losses.c: a value for each row) are ops by their own words. */
#ifndef MODEL_OPS_OP_WORDS_H
#define MODEL_OPS_OP_WORDS_H

#include "base/text/settings.h"
#include "graph/op.h"

#define MOST_WORD_INPUTS 64

/* The arguments of all of them; what is absent is NULL, NAN, or 0. */
struct op_arguments {
    const struct yaml *axis, *axes, *shape, *start, *stop, *pads, *repeats, *a, *b;
    double number[3];
    int64_t whole;    /* k, num_classes, shift, step */
    const char *word; /* dtype, mode */
    bool keepdims, transpose_a, transpose_b, reverse;
};

struct op_word;
struct op_call {
    struct graph *graph;
    const struct op_word *word;
    struct tensor *const *x;
    int count;
    struct op_arguments arguments;
};

struct op_word {
    const char *name, *alias;
    int least, most; /* inputs */
    const struct op *op;
    int64_t choice;             /* of ops that are two in one: max and min; of two operands: enum type_rule */
    double standard[3];         /* of numbers that are absent */
    struct setting argument[4]; /* in struct op_arguments; the first may stand alone */
    struct tensor *(*build)(const struct op_call *call);
    /* For the tests: an input a token ("x43": a batch of (4, 3); "w43": a weight; "i4": whole numbers 0..2; "p4":
       numbers above 0; "b4": truth values), and arguments. */
    const char *inputs, *words;
};

extern const struct op_word op_words[];
extern const int op_words_count;

/* Adds what the word stands for; `text` are its arguments in YAML ("{axis: -1}"), or NULL. NULL when the graph has
   failed: its error then names the op and the shapes of its inputs. */
struct tensor *op_word_apply(struct graph *graph, const char *name, struct tensor *const *x, int count,
                             const char *text);

/* The same of arguments that are read already, or NULL. */
struct yaml;
struct tensor *op_word_apply_tree(struct graph *graph, const char *name, struct tensor *const *x, int count,
                                  const struct yaml *arguments);

/* A number of that type that broadcasts to any shape: a state that nobody writes. */
struct tensor *op_number(struct graph *graph, enum type type, double value);

/* What x was before a softmax or sigmoid, where `loss` takes logits and they made x; *logits tells. */
struct loss_type;
struct tensor *before_activation(bool *logits, const struct loss_type *loss, struct tensor *x);

/* The builders: op_word_compute.c, op_word_operands.c, op_word_reduce.c, op_word_arrange.c, op_word_einsum.c. */
/* clang-format off */
#define OP_BUILDERS(X)                                                                                                 \
    X(plain)                                                                                                           \
    X(unary)                                                                                                           \
    X(numbers) X(relu) X(binary) X(where) X(cast) X(matmul) X(einsum) X(along) X(gelu) X(normalize) X(penalty)         \
        X(reduce) X(deviation) X(place) X(cumulate) X(top_k) X(one_hot) X(take) X(embedding) X(scatter) X(reshape)     \
            X(expand_dims) X(squeeze) X(transpose) X(concatenate) X(stack) X(slice) X(get_item) X(swap_axes)           \
                X(move_axis) X(pad) X(tile) X(repeat) X(flip) X(roll) X(resize)
/* clang-format on */
#define X(name) struct tensor *word_##name(const struct op_call *call);
OP_BUILDERS(X)
#undef X

/* For builders. An axis of x, from `least` on; `extra` more than x has. False: the graph has failed. */
bool word_axis(int *out, const struct op_call *call, const struct yaml *node, int standard, int least, int extra);
/* A whole number or a list of them; how many, or -1 when the graph has failed. */
int word_wholes(int64_t *out, int most, const struct op_call *call, const char *word, const struct yaml *node);
/* One of them, alone or in a list. False: the graph has failed. */
bool word_whole(int64_t *out, const struct op_call *call, const char *word, const struct yaml *node);
double word_number(const struct op_call *call, int i);

/* op_word_operands.c: how the one type is found that operands are made. */
enum type_rule {
    TYPES_WIDEST, /* promoted_type of the tensors; numbers give way to them: 2 beside uint8 is one */
    TYPES_REAL,   /* the same, and float32 where that is no type of floats */
    TYPES_VALUES, /* numbers are int32 or float32: what is compared */
    TYPES_TRUTH,  /* bool */
};
/* keras.backend.result_type of two. */
enum type promoted_type(enum type a, enum type b);
struct operand {
    struct tensor *x;        /* or */
    const struct yaml *word; /* a number, or a list of them, which becomes a tensor (op_array.h) */
};
/* Tensors of one type. False: the graph has failed. */
bool word_operands(struct tensor **out, const struct op_call *call, struct operand *operand, int count,
                   enum type_rule rule);
/* Two inputs, or one and a list among the words, of whatever types. */
bool word_pair(struct tensor *out[2], const struct op_call *call);
/* The same of all inputs. */
bool word_alike(struct tensor **out, const struct op_call *call, enum type_rule rule);
/* What `multiply` makes of the inputs as floats, in the type that Keras has products in. */
struct tensor *word_product(const struct op_call *call, struct tensor *(*multiply)(const struct op_call *call));

#endif
