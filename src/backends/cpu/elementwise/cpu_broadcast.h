/* cpu_spread.h - operands that spread, walked by the widest runs they have in common.

   Axes that all operands walk alike are one axis. The last two are a plane of
   lines: a line goes to the op's loop as it lies; what is spread along it, or has
   another type, is laid out in the worker's scratch first, several short lines at once. */
#ifndef CPU_SPREAD_H
#define CPU_SPREAD_H

#include "backends/cpu/cpu_own.h"

/* y[i] from a[i], b[i], c[i]; those that the op has. y may be one of them. */
typedef void spread_loop(float *y, const float *a, const float *b, const float *c, int64_t count,
                         const void *attributes);

/* Operands are f32, small floats or truth values. */
MAKER(make_spread);
void VARIANT(spread_walk)(const struct kernel *kernel, const struct call *call, spread_loop *loop);

#endif
