/* floats.c - the mode of this thread's floating-point unit. */
#include "base/floats.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define ALL_MASKED_NEAREST 0x1f80u
#define FLUSH_TO_ZERO      0x8000u
#define DENORMALS_ARE_ZERO 0x0040u

unsigned floats_enter(void)
{
    unsigned mode = _mm_getcsr();
    _mm_setcsr(ALL_MASKED_NEAREST | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return mode;
}

void floats_restore(unsigned mode)
{
    _mm_setcsr(mode);
}

#else

/* NEEDSWORK: other processors (FPCR on aarch64); until then the host's mode is what we compute in. */
unsigned floats_enter(void)
{
    return 0;
}

void floats_restore(unsigned mode)
{
    (void)mode;
}

#endif
