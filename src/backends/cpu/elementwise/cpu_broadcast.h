/* cpu_broadcast.h - operands that broadcast, walked by the widest runs they have in common.

   Axes that all operands walk alike are one axis. The last two are a plane of
   lines: a line goes to the op's loop as it lies; what is broadcast along it, or has
   another type, is laid out in the worker's scratch first, several short lines at once. */
#ifndef CPU_BROADCAST_H
#define CPU_BROADCAST_H

#include "backends/cpu/cpu_own.h"

/* y[i] from a[i], b[i], c[i]; those that the op has. y may be one of them. */
typedef void broadcast_loop(float *y, const float *a, const float *b, const float *c, int64_t count,
                            const void *attributes);

/* Operands are f32, small floats or truth values. */
MAKER(make_broadcast);
void VARIANT(broadcast_walk)(const struct kernel *kernel, const struct call *call, broadcast_loop *loop);

#endif
