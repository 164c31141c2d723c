/* floats.c - the mode of this thread's floating-point unit. */
#include "base/numbers/floats.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

#define ALL_MASKED_NEAREST 0x1f80u
#define FLUSH_TO_ZERO      0x8000u
#define DENORMALS_ARE_ZERO 0x0040u
#define X87_USUAL          0x037fu /* control word: all masked, to nearest, 64 bits of precision */
#define X87_FLAGS          0x003fu

static unsigned x87_control(void)
{
    uint16_t control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    return control;
}

static unsigned x87_flags(void)
{
    uint16_t status;
    __asm__ volatile("fnstsw %0" : "=m"(status));
    return status & X87_FLAGS;
}

/* Every event of a run passes here. The x87 unit is nearly always as C has it, and reading and setting all of it takes
   60 ns each: then the mode of the vector unit is all that is put aside. */
void floats_begin(struct host_floats *host)
{
    host->mode = _mm_getcsr();
    host->whole = x87_control() != X87_USUAL || x87_flags() != 0;
    if (host->whole) {
        fegetenv(&host->environment);
        fesetenv(FE_DFL_ENV);
    } else if (host->mode != ALL_MASKED_NEAREST) {
        _mm_setcsr(ALL_MASKED_NEAREST);
    }
}

void floats_end(struct host_floats *host)
{
    if (host->whole) {
        fesetenv(&host->environment);
        return;
    }
    if (x87_flags() != 0)
        __asm__ volatile("fnclex");
    if (_mm_getcsr() != host->mode)
        _mm_setcsr(host->mode);
}

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

void floats_begin(struct host_floats *host)
{
    fegetenv(&host->environment);
    fesetenv(FE_DFL_ENV);
}

void floats_end(struct host_floats *host)
{
    fesetenv(&host->environment);
}

/* NEEDSWORK: denormals are numbers on other processors (FPCR.FZ on aarch64 is not set); rounding and traps are
   floats_begin's there. */
unsigned floats_enter(void)
{
    return 0;
}

void floats_restore(unsigned mode)
{
    (void)mode;
}

#endif
