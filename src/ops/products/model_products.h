/* model_products.h - the matrix products and the attention of models, for the speed table (op.h, speed). */
#ifndef OPS_PRODUCTS_MODEL_PRODUCTS_H
#define OPS_PRODUCTS_MODEL_PRODUCTS_H

#include "graph/op.h"

#define SPEED(name) struct tensor *name##_speed(struct graph *graph, struct speed *line, int variant, enum type type)
SPEED(matmul);
SPEED(matmul_weight_gradient);
SPEED(batch_matmul);
SPEED(batch_matmul_sum);
SPEED(attention);
SPEED(attention_gradient);
SPEED(vocabulary_crossentropy);
SPEED(vocabulary_crossentropy_gradient);
#undef SPEED

#endif
