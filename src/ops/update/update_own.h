/* update_own.h - what the files of updates share. */
#ifndef OPS_UPDATE_UPDATE_OWN_H
#define OPS_UPDATE_UPDATE_OWN_H

#include "ops/helpers.h"

#define NO_GRADIENT "an update ends the step"

/* Input `at` holds one number of that type. */
plim_status need_one(const struct node *node, int at, enum type type, plim_error *error);
plim_status need_control(const struct node *node, int at, plim_error *error);
/* Input 0 is a weight (or a state). */
plim_status need_weight(const struct node *node, plim_error *error);

/* Along axis 0 of input 0; the inputs of the mask are WHOLE. */
void cut_update(struct cut *cut, const struct node *node, unsigned whole);
/* The control is input 1, or 2. */
void cut_control_1(struct cut *cut, const struct node *node);
void cut_control_2(struct cut *cut, const struct node *node);
/* Inputs 2 (control), 3 and 4 (squares) are WHOLE. */
void cut_squares(struct cut *cut, const struct node *node);
/* Along axis 0 of input 0, which is summed up. */
void cut_to_sum(struct cut *cut, const struct node *node);
/* Inputs w, something alike, control. */
plim_status infer_average(struct graph *graph, struct node *node, plim_error *error);
/* Inputs g, control and states alike; the output is like g. */
plim_status infer_direction(struct graph *graph, struct node *node, plim_error *error);
/* Elements of this slice of input 0. */
int64_t update_elements(const struct call *call);
static inline void put(const struct call *call, int input, int64_t i, double value)
{
    element_set(call->input[input], call->node->input[input]->type, i, value);
}

/* An op without outputs that writes the inputs of the mask `written`. */
#define UPDATE_OP(word, all, attributes, infer_, written, cut_)                                                        \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, all, 0, infer_, cut_),                                                                           \
        .attributes_bytes = sizeof(attributes),                                                                        \
        .no_gradient = NO_GRADIENT,                                                                                    \
        .updates = written,                                                                                            \
    }

#endif
