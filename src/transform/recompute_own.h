/* recompute_own.h - what recompute() tells of its rule to others who decide what is kept. */
#ifndef TRANSFORM_RECOMPUTE_OWN_H
#define TRANSFORM_RECOMPUTE_OWN_H

#include "transform/transform.h"

#define LEAST_KEPT_BYTES (1 << 18) /* of a value; less is not worth a node */

/* Output 0 is large, and made of the inputs with a few multiply-adds an element: if they are kept, it need not be. */
bool is_cheap_again(const struct node *node);

#endif
