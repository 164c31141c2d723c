/* interleave_order.h - whose turn it is when several files (or data sets) are read by turns: exactly tf.data's order.

   cycle_length of them are open at a time; each gives block_length elements, then it is the next one's turn. Where one
   ends, it is the next one's turn at once; its place in the cycle is taken by the next file when its turn comes again.

   Use: for (;;) { place = interleave_turn(&opens, order); if (place < 0) over; if (opens >= 0) open file `opens` there;
   give up to interleave_left(order) elements of it: interleave_gave, or interleave_ended when there are none. } */
#ifndef FORMATS_FILES_INTERLEAVE_ORDER_H
#define FORMATS_FILES_INTERLEAVE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#define INTERLEAVE_UNKNOWN INT64_MAX /* how many files there are */

struct interleave_order {
    int64_t files, cycle_length, block_length;
    int64_t next;  /* the file to be opened next */
    int64_t place; /* whose turn it is */
    int64_t given; /* elements of its block */
    int64_t open_count;
    int64_t *open; /* cycle_length: the file that each place has open, or -1; the caller's memory */
};

/* Both lengths are at least 1. */
void interleave_begin(struct interleave_order *order, int64_t files, int64_t cycle_length, int64_t block_length,
                      int64_t *open);
/* The place whose turn it is, or -1 when everything has ended. *opens: the file to be opened there, counted as open
   from now on; -1: one is open already. */
int64_t interleave_turn(int64_t *opens, struct interleave_order *order);
/* The file that was to be opened was not: it is asked for again at the next turn. last: there are no more. */
void interleave_not_opened(struct interleave_order *order, bool last);
/* How many elements may be given before it is another's turn: at least 1. */
int64_t interleave_left(const struct interleave_order *order);
void interleave_gave(struct interleave_order *order, int64_t elements);
/* The file whose turn it is has ended. */
void interleave_ended(struct interleave_order *order);

#endif
