/* floats.h - denormal numbers as zero, in this thread, for a while.
   Denormals cost a hundred times a normal operation; moments of an optimizer
   decay into them. See doc/decisions/0008. */
#ifndef BASE_FLOATS_H
#define BASE_FLOATS_H

/* Returns the mode to restore. */
unsigned floats_flush(void);
void floats_restore(unsigned mode);

#endif
