/* floats.h - one floating-point mode for all arithmetic of ours, whatever the
   host's is: round to nearest, no traps, denormals as zero. The host's rounding
   would change bits, its traps would kill it, and denormals cost a hundred times a
   normal operation. See doc/decisions/0008. */
#ifndef BASE_NUMBERS_FLOATS_H
#define BASE_NUMBERS_FLOATS_H

#include <fenv.h>
#include <stdbool.h>

/* Sets our mode in this thread; returns the one before, to restore. Cheap: for every step, batch and function of the
   host's that a worker calls. */
unsigned floats_enter(void);
void floats_restore(unsigned mode);

/* The host's whole environment: rounding, traps, sticky flags, denormals, the x87 unit's too. */
struct host_floats {
    fenv_t environment; /* where `whole` is set */
    unsigned mode;
    bool whole; /* the host's x87 unit is not as C has it */
};
/* Puts the host's environment aside and sets C's default one (denormals are numbers); and back, as it was. Around every
   public call that may compute; the other way round where it calls a function of the host's on the host's thread. */
void floats_begin(struct host_floats *host);
void floats_end(struct host_floats *host);

/* A declaration: from here to the end of the block. */
#define HOST_FLOATS                                                                                                    \
    __attribute__((cleanup(floats_end))) struct host_floats host_floats;                                               \
    floats_begin(&host_floats)

#endif
