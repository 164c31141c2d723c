/* floats.c - the mode of this thread's floating-point unit. */
#include "base/floats.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define FLUSH_TO_ZERO      0x8000u
#define DENORMALS_ARE_ZERO 0x0040u

unsigned floats_flush(void)
{
    unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return mode;
}

void floats_restore(unsigned mode)
{
    _mm_setcsr(mode);
}

#else

/* NEEDSWORK: other processors (FPCR.FZ on aarch64); without it steps are slower, not wrong. */
unsigned floats_flush(void)
{
    return 0;
}

void floats_restore(unsigned mode)
{
    (void)mode;
}

#endif
