/* recurrent_own.h - what the files of recurrent ops share. */
#ifndef OPS_RECURRENT_RECURRENT_OWN_H
#define OPS_RECURRENT_RECURRENT_OWN_H

#include "ops/helpers.h"

/* NEEDSWORK: small states, with sums in f32 inside: Keras has them. */
#define RECURRENT_WIDE "a state that is rounded at each step drifts"

extern const int64_t recurrent_gates[RECURRENT_KINDS];

/* One call, and the sample it is at. */
struct recurrence {
    const struct call *call;
    const struct recurrent_attributes *attributes;
    struct recurrent_sizes z;
    int iteration; /* which input */
    int64_t n;
};

struct recurrence recurrence_of(const struct call *call, int iteration);
/* Element of [N, T, width] for this sample. */
int64_t recurrence_at(const struct recurrence *r, int64_t t, int64_t width);
bool recurrence_is_there(const struct recurrence *r, int mask, int64_t t);
/* The state before step t: input or output `of` [N, T, U], or `initial` [N, U] before the first step, or 0. */
double recurrence_before(const struct recurrence *r, int64_t t, int64_t u, const void *of, enum type type, int initial);
/* What dropout multiplies h'[u] with for a gate. */
double recurrence_kept(const struct recurrence *r, int64_t gate, int64_t u);

double recurrent_value(int64_t activation, double x);
/* The slope, from the value. */
double recurrent_slope(int64_t activation, double y);

/* Checks that the ops share. */
plim_status need_recurrence(const struct node *node, const struct tensor *gates, const struct tensor *kernel,
                            int iteration, plim_error *error);
plim_status need_sequence(const struct node *node, int input, bool optional, plim_error *error);
plim_status need_state(const struct node *node, int input, plim_error *error);
plim_status need_step_mask(const struct node *node, int input, plim_error *error);
/* `work` is of a multiply-add of the kernel with each step. */
void recurrent_cut(struct cut *cut, const struct node *node);

#endif
