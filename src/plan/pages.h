/* pages.h - into how many pieces states are cut that pass through the arena piece by piece. */
#ifndef PLAN_PAGES_H
#define PLAN_PAGES_H

#include <stdbool.h>

#include "transform/transform.h"

#define MOST_HOME_PIECES 256

/* For a chain that walks through so many bytes of paged states; 1: they are there as a whole. sums: the chain has some,
   and keeps its units. */
int page_pieces(const struct chain *chain, uint64_t bytes, bool sums);

#endif
