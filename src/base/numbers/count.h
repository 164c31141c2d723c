/* count.h - how many elements an array has. */
#ifndef BASE_NUMBERS_COUNT_H
#define BASE_NUMBERS_COUNT_H

/* A constant; of an array, never of a pointer. */
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#endif
