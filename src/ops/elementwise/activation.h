/* activation.h - activations that an op of another kind takes in. */
#ifndef OPS_ELEMENTWISE_ACTIVATION_H
#define OPS_ELEMENTWISE_ACTIVATION_H

enum activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_RELU6 };

#endif
