/* floats.h - one floating-point mode for all arithmetic of ours, whatever the
   host's is: round to nearest, no traps, denormals as zero. The host's rounding
   would change bits, its traps would kill it, and denormals cost a hundred times a
   normal operation. See doc/decisions/0008. */
#ifndef BASE_FLOATS_H
#define BASE_FLOATS_H

/* Sets our mode in this thread; returns the host's, to restore. */
unsigned floats_enter(void);
void floats_restore(unsigned mode);

#endif
