/* convolution_own.h - what the files of the convolutions share: checks, the index space, the functions of the ops. */
#ifndef OPS_PRODUCTS_CONVOLUTION_OWN_H
#define OPS_PRODUCTS_CONVOLUTION_OWN_H

#include "ops/helpers.h"

/* Attributes and sizes of x, k and y as the operands say them; y is 0 while the forward op has no output yet. */
const struct conv_attributes *conv_attributes_of(const struct node *node);
plim_status conv_check_data(const struct node *node, int input, plim_error *error);
plim_status conv_check_kernel(const struct node *node, int data, plim_error *error);
plim_status conv_check_bias(const struct node *node, int64_t channels, plim_error *error);
/* Extents of y from those of x and k. */
plim_status conv_output_sizes(int64_t y[MOST_SPACE], const struct conv_sizes *s, const struct node *node,
                              plim_error *error);
/* [N, extents of the family's axes, channels]. */
struct shape conv_data_shape(const struct node *node, int64_t samples, const int64_t extents[MOST_SPACE],
                             int64_t channels);
struct shape conv_kernel_shape(const struct conv_family *family, const struct conv_sizes *s);

/* One output cell and one kernel cell, by their numbers within a sample and a kernel. */
int64_t conv_cells(const int64_t extents[MOST_SPACE]);
/* The first element of the input cell's channels in sample n; -1: padding. */
int64_t conv_x_at(const struct conv_sizes *s, int64_t n, int64_t y_cell, int64_t k_cell);

plim_status conv_infer(struct graph *graph, struct node *node, plim_error *error);
plim_status conv_input_gradient_infer(struct graph *graph, struct node *node, plim_error *error);
plim_status conv_weight_gradient_infer(struct graph *graph, struct node *node, plim_error *error);
void conv_gradient(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                   struct tensor **d_input);
void conv_input_gradient_gradient(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                  const bool *wanted, struct tensor **d_input);
void conv_cut(struct cut *cut, const struct node *node);
void conv_reference(const struct call *call);
void conv_input_gradient_reference(const struct call *call);
void conv_weight_gradient_reference(const struct call *call);

#endif
