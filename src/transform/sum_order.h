/* sum_order.h - the order in which a node adds over its cut axis.

   Float sums depend on their order. Which nodes share a chain, how long the chain's slices are and how many workers run
   it may change with what is recomputed, so none of it may decide the order. Two numbers do, functions of the node's
   op, attributes and shapes alone:
     part  an equal piece of the axis with a partial sum of its own; the partial sums are added from first to last
     leaf  an equal piece of a part: the rows of one call of the kernel. A part adds its leaves from first to last

   All pieces are those of piece_begin, in powers of two: the pieces of a coarser division consist of whole pieces of a
   finer one. A chain therefore fits all its sums if its units are whole parts of each and its slices whole leaves. */
#ifndef TRANSFORM_SUM_ORDER_H
#define TRANSFORM_SUM_ORDER_H

#include "graph/op.h"

struct sum_order {
    int64_t leaves; /* of the whole axis; a multiple of parts. 0: the node has no sums */
    int parts;
};

struct sum_order sum_order(const struct node *node, const struct cut *cut);

/* Pieces of the axis of a node with sums begin at multiples of this. */
int64_t sum_grain(const struct cut *cut);

/* The row at which piece `index` of `pieces` begins; for index == pieces: where the axis ends. Pieces begin at multiples
   of `grain` and differ by one grain at most; the last one has the rest that is no whole grain besides. `pieces` is 1
   or at most extent / grain, and at most MOST_CUT_PIECES. */
#define MOST_CUT_PIECES ((int64_t)1 << 30)
static inline int64_t piece_begin(int64_t extent, int64_t grain, int64_t index, int64_t pieces)
{
    int64_t grains = extent / grain; /* grains * index / pieces, which does not overflow */
    return index == pieces ? extent : (grains / pieces * index + grains % pieces * index / pieces) * grain;
}

/* The longest piece: it is the last one. */
static inline int64_t piece_most(int64_t extent, int64_t grain, int64_t pieces)
{
    return extent - piece_begin(extent, grain, pieces - 1, pieces);
}

#endif
