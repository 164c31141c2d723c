/* formulas_double.h - the formulas of unary.def and binary.def in double: what the ops mean. */
#ifndef OPS_ELEMENTWISE_FORMULAS_DOUBLE_H
#define OPS_ELEMENTWISE_FORMULAS_DOUBLE_H

#include <math.h>

#define REAL            double
#define N(number)       number
#define EXP             exp
#define EXPM1           expm1
#define LOG             log
#define LOG1P           log1p
#define SQRT            sqrt
#define SIN             sin
#define COS             cos
#define TAN             tan
#define TANH            tanh
#define ERF             erf
#define ABS             fabs
#define FLOOR           floor
#define FLOOR_WIDE      floor
#define ROUND           rint
#define POWER           pow
#define SIGMOID(x)      (1 / (1 + exp(-(x))))
#define SOFTPLUS(x)     (((x) > 0 ? (x) : 0) + log1p(exp(-fabs(x))))
#define NORMAL_BELOW(x) (0.5 * erfc(-0.70710678118654752 * (x)))

#include "ops/elementwise/formulas.h"

#endif
