/* helpers.h - what the families of ops share: checks, cuts, element access. */
#ifndef OPS_HELPERS_H
#define OPS_HELPERS_H

#include "base/status.h"
#include "ops/ops.h"

/* `return misfit(node, error, "...")` from an infer: "matmul: ...". */
#define misfit(node, error, ...) misfit_at((node)->op->name, (error), __VA_ARGS__)
__attribute__((format(printf, 3, 4))) plim_status misfit_at(const char *op, plim_error *error, const char *format, ...);

bool is_real(enum type type); /* what is computed with: any type of floats */
/* What sums of it are kept in, and figures of rows: f32 of the small floats (f16, bf16), else the type itself. */
enum type wide_type(enum type type);
bool is_label(enum type type); /* what labels may come as */

struct shape shape_1(int64_t a);
struct shape shape_2(int64_t a, int64_t b);
struct shape shape_4(int64_t a, int64_t b, int64_t c, int64_t d);
int64_t last_dim(const struct tensor *tensor);
struct shape without_last(const struct tensor *tensor); /* its shape but for the last axis */

bool hands_on_always(const struct node *node); /* for op.hands_on */

/* What a `struct op` begins with: its name, how many inputs and outputs it has, and the functions that none may lack.
   Its reference is called after it: matmul_reference. Ops that share one state these fields themselves. */
#define OP_HEAD(word, in, out, infer_, cut_)                                                                           \
    .name = #word, .inputs = (in), .outputs = (out), .infer = (infer_), .cut = (cut_), .reference = word##_reference

/* Checks for infer. */
plim_status need_real(const struct node *node, int input, plim_error *error);
plim_status need_rank(const struct node *node, int input, int rank, plim_error *error);
plim_status need_batched(const struct node *node, int input, plim_error *error);
/* Inputs a and b: the same type, shape and axis 0. */
plim_status need_alike(const struct node *node, int a, int b, plim_error *error);
plim_status need_type(const struct node *node, int input, enum type type, plim_error *error);
/* The type of input `like`, or that in which sums of it are kept: a bias, factors, gradients that were sums. */
plim_status need_type_of(const struct node *node, int input, int like, plim_error *error);

/* Scores [N, ..., c] and whole labels [N, ...] or [N, ..., 1]; scores and targets [N, c]
   (or [N] when c is 1). For losses and metrics. */
plim_status need_labels(const struct node *node, int scores, int labels, plim_error *error);
plim_status need_targets(const struct node *node, int scores, int targets, plim_error *error);
/* Scores [N, ..., c] and as many targets. */
plim_status need_alike_targets(const struct node *node, plim_error *error);
/* Input `at`, where it is there, is one number for each channel of input `x`. */
plim_status need_channels(const struct node *node, int at, int x, plim_error *error);
/* Input 2 is the gradient of a value for each row of scores (input 0). */
plim_status need_row_gradients(const struct node *node, plim_error *error);

/* Output k like tensor `like`. Always PLIM_OK, for an infer to end with: the graph carries what fails. */
plim_status output_like(struct graph *graph, struct node *node, int k, const struct tensor *like);
/* What sums up samples (it is not batched, an input is) comes in the wide type: gradients of weights are
   never small. */
plim_status output_of(struct graph *graph, struct node *node, int k, enum type type, struct shape shape, bool batched);

/* infer of ops whose real inputs and one output are all alike. */
plim_status infer_alike(struct graph *graph, struct node *node, plim_error *error);

/* Cut along axis 0 of `rows`: operands that are batched as it is are CUT,
   other inputs WHOLE, other outputs SUM. */
void cut_rows(struct cut *cut, const struct node *node, const struct tensor *rows, double work);
/* The same for ops that touch each element of output 0 (input 0 if none) a
   few times. */
void cut_elementwise(struct cut *cut, const struct node *node);
/* The same along input 0. */
void cut_input_rows(struct cut *cut, const struct node *node);

/* Rows of this slice that exist: a short batch ends early. */
int64_t call_rows(const struct call *call, const struct tensor *tensor);

/* Elements of output 0 in this slice. */
int64_t output_elements(const struct call *call);

static inline double get(const struct call *call, int input, int64_t i)
{
    return element_get(call->input[input], call->node->input[input]->type, i);
}
static inline void set(const struct call *call, int output, int64_t i, double value)
{
    element_set(call->output[output], call->node->output[output]->type, i, value);
}
/* For SUM outputs: this slice's share of element i. */
static inline void share(const struct call *call, int output, int64_t i, double value)
{
    enum type type = call->node->output[output]->type;
    double before = call->add ? element_get(call->output[output], type, i) : 0;
    element_set(call->output[output], type, i, before + value);
}

/* Output 0 as sums that come from here and there, each element rounded once: `pass` says all that is added, by
   scatter_add. Of the small floats it is run again for each part of the output. */
struct scatter {
    const struct call *call;
    int64_t first; /* of the part */
    double *part;  /* NULL: what is added goes into the output itself */
};
#define SCATTER_PART 1024
/* The elements begin as start says; NULL: with 0. */
void scatter_sums(const struct call *call, double (*start)(const struct call *call, int64_t i),
                  void (*pass)(const struct scatter *scatter));
static inline void scatter_add(const struct scatter *scatter, int64_t at, double value)
{
    const struct call *call = scatter->call;
    if (!scatter->part)
        set(call, 0, at, element_get(call->output[0], call->node->output[0]->type, at) + value);
    else if (at >= scatter->first && at < scatter->first + SCATTER_PART)
        scatter->part[at - scatter->first] += value;
}

#define NO_SECOND "second derivatives are not offered"

#endif
