/* formulas_float.h - the formulas of unary.def and binary.def in float, without branches: what the kernels compute.
   `far` is a constant of the loop: whether values lie where only libm's functions hold. */
#ifndef CPU_FORMULAS_FLOAT_H
#define CPU_FORMULAS_FLOAT_H

#include <math.h>

#include "backends/cpu/cpu_math.h"

#define REAL         float
#define N(number)    number##f
#define EXP          exp_full_of
#define EXPM1        expm1_of
#define LOG          log_full_of
#define LOG1P        log1p_full_of
#define SQRT         sqrtf
#define SIN(x)       (far ? (float)sin(x) : wave_of(x, 0))
#define COS(x)       (far ? (float)cos(x) : wave_of(x, 1))
#define TAN(x)       (far ? (float)tan(x) : tan_of(x))
#define POWER(a, b)  (far ? (float)pow(a, b) : power_of(a, b))
#define TANH         tanh_of
#define ERF          erf_of
#define ABS          abs_of
#define FLOOR        floor_of
#define FLOOR_WIDE   floor_wide_of
#define ROUND        round_of
#define SIGMOID      sigmoid_full_of
#define SOFTPLUS     softplus_of
#define NORMAL_BELOW normal_below_of

#include "ops/elementwise/formulas.h"

#endif
