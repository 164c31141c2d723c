/* formulas.h - what the formulas of unary.def and binary.def are made of, in double or in float.

   Who includes it has said what REAL is, how numbers are written (N), and EXP, EXPM1, LOG, LOG1P, SQRT, SIN, COS,
   TAN, TANH, ERF, ABS, FLOOR, ROUND, SIGMOID, SOFTPLUS, POWER, NORMAL_BELOW over it, and FLOOR_WIDE of doubles. */
#ifndef OPS_ELEMENTWISE_FORMULAS_H
#define OPS_ELEMENTWISE_FORMULAS_H

#define FORMULA static inline __attribute__((always_inline, unused)) REAL

#define SELU_SCALE N(1.0507009873554805)
#define SELU_ALPHA N(1.6732632423543772)

/* Python's, in double whatever REAL is: one rounding too many would be off by a whole step. */
FORMULA floor_quotient(double a, double b)
{
    return (REAL)FLOOR_WIDE(a / b);
}

FORMULA floor_rest(double a, double b)
{
    return (REAL)(a - b * FLOOR_WIDE(a / b));
}

/* Keras's relu: x above the threshold c, cut at b (then not below 0 either), below it falling with slope a. */
FORMULA rectified(REAL x, REAL a, REAL b, REAL c)
{
    REAL low = b - b == 0 && x < 0 ? 0 : x;
    REAL below = a == 0 ? 0 : a * (x - c);
    return x <= c ? below : low > b ? b : low;
}

FORMULA rectified_slope(REAL x, REAL a, REAL b, REAL c)
{
    REAL inside = b - b == 0 && x < 0 ? 0 : x > b ? 0 : 1;
    return x <= c ? a : inside;
}

/* The normal distribution: its density, and what lies below x. */
FORMULA normal_density(REAL x)
{
    return N(0.39894228040143268) * EXP(N(-0.5) * x * x);
}

FORMULA normal_below(REAL x)
{
    return NORMAL_BELOW(x);
}

/* 2 sqrt(2 / pi) (x + 0.044715 x^3): gelu_tanh is x sigmoid of it. */
FORMULA gelu_bend(REAL x)
{
    return N(1.5957691216057308) * (x + N(0.044715) * x * x * x);
}

FORMULA gelu_bend_slope(REAL x)
{
    return N(1.5957691216057308) * (1 + N(0.134145) * x * x);
}

/* Of x s(u(x)), where s is the sigmoid and `slope` is u's. */
FORMULA gate_slope(REAL x, REAL s, REAL slope)
{
    return s + x * s * (1 - s) * slope;
}

/* tanh(log(1 + e^x)), by e^-|x| so that nothing overflows. */
FORMULA mish_gate(REAL x)
{
    REAL e = EXP(-ABS(x));
    REAL top = x > 0 ? 1 + 2 * e : e * (e + 2);
    return top / (top + (x > 0 ? 2 * e * e : 2));
}

FORMULA mish_rise(REAL x, REAL gate)
{
    return gate + x * SIGMOID(x) * (1 - gate) * (1 + gate);
}

/* Of infinity: 1. */
FORMULA softsign_of(REAL x)
{
    return ABS(x) - ABS(x) == 0 ? x / (1 + ABS(x)) : x < 0 ? -1 : x > 0 ? 1 : x;
}

FORMULA hard_gate(REAL x)
{
    REAL up = x + 3;
    return (up < 0 ? 0 : up > 6 ? 6 : up) / 6;
}

/* (x + sqrt(x^2 + b)) / 2, without the difference of nearly equal numbers. */
FORMULA squareplus_of(REAL x, REAL b)
{
    REAL root = SQRT(x * x + b);
    return x < 0 ? b / (2 * (root - x)) : (x + root) / 2;
}

#endif
