/* tile_planes.h - cells of bf16 in the order in which tiles want them.

   Of a sample's cells some rows are copied with zeros around them, so that the cells which one kernel cell meets, as
   the output goes from cell to cell and from row to row, lie one behind the other: a run of `across` cells for each row
   of outputs, of which the last few are nobody's. Where they can, a row's zeros are those of its neighbour too. With a
   stride, cells that are a stride apart lie together in planes of their own. */
#ifndef CPU_TILE_PLANES_H
#define CPU_TILE_PLANES_H

#include "backends/cpu/convolution/cpu_conv_axis.h"
#include "backends/cpu/gemm/gemm_tiles.h"

#define MOST_STRIDE 4

struct planes {
    int64_t source[2], channels; /* what is copied: rows, columns, elements a cell */
    int64_t padded;              /* elements of a cell in planes */
    int64_t before[2];           /* rows and columns of zeros */
    int64_t stride[2];           /* planes down and across */
    int64_t across;              /* cells of a plane from one row of outputs to the next, */
    int64_t outputs;             /* and how many of them are outputs, at most */
    int64_t reach;               /* rows behind the first that an output meets */
    bool joined;                 /* planes are apart by rows only; in a row cells lie as they do in x */
    uint64_t met;                /* bits: the planes that some tap meets; only they are there */
};

/* Kernels of one cell, which meet each cell once. */
INLINE bool planes_are_flat(const struct conv_sizes *s)
{
    bool flat = true;
    for (int i = 1; i < 3; i++)
        flat &= s->k[i] == 1 && s->stride[i] == 1 && s->before[i] == 0 && s->x[i] == s->y[i];
    return flat;
}

/* Convolutions over one and two axes whose two inputs are bf16. */
INLINE bool planes_take(const struct node *node)
{
    struct conv_sizes s;
    if (node->input[0]->type != TYPE_BF16 || node->input[1]->type != TYPE_BF16 ||
        shape_count(&node->input[0]->shape) < 1)
        return false;
    conv_sizes_of(&s, node);
    return s.groups == 1 && s.x[0] == 1 && s.k[0] == 1 && s.y[0] == 1 && s.stride[1] <= MOST_STRIDE &&
           s.stride[2] <= MOST_STRIDE && tiles_allowed();
}

/* The cell that output 0 meets with this tap, counted along the axis from the first of the zeros. */
INLINE int64_t tap_at(const struct conv_axis *along, int64_t before, int64_t tap)
{
    return along->at + before + tap * along->at_step;
}

/* Cells of a row of a plane, of a plane of `rows` rows of outputs, elements of all planes. */
INLINE int64_t plane_line(const struct planes *p)
{
    return p->across * (p->joined ? p->stride[1] : 1);
}
INLINE int64_t plane_cells(const struct planes *p, int64_t rows)
{
    return (rows + p->reach) * plane_line(p);
}
INLINE int64_t planes_elements(const struct planes *p, int64_t rows)
{
    return plane_cells(p, rows) * __builtin_popcountll(p->met) * p->padded;
}
/* Where tap cells begin, `down` rows and `across` columns behind the zeros' first: the place of their plane among those
   that are there, and the cell in it. */
INLINE int64_t plane_number(const struct planes *p, int64_t down, int64_t across)
{
    int64_t plane = down % p->stride[0];
    return p->joined ? plane : plane * p->stride[1] + across % p->stride[1];
}
INLINE int64_t plane_place(const struct planes *p, int64_t number)
{
    return __builtin_popcountll(p->met & (((uint64_t)1 << number) - 1));
}
INLINE int64_t plane_cell(const struct planes *p, int64_t down, int64_t across)
{
    return down / p->stride[0] * plane_line(p) + (p->joined ? across : across / p->stride[1]);
}

/* Makes room in p for what the outputs of one sum meet along one axis (0: down, 1: across). */
INLINE void planes_reach(struct planes *p, int axis, const struct conv_axis *along)
{
    int64_t last = along->taps ? tap_at(along, p->before[axis], along->taps - 1) / along->stride : 0;
    if (axis == 0)
        p->reach = last > p->reach ? last : p->reach;
    else {
        p->across = last + along->count > p->across ? last + along->count : p->across;
        p->outputs = along->count > p->outputs ? along->count : p->outputs;
    }
}

/* When room has been made for all sums: zeros behind a row are those in front of the next, as many as there are. */
INLINE void planes_share_zeros(struct planes *p)
{
    int64_t behind = p->across - p->before[1] - p->source[1];
    int64_t shared = behind < p->before[1] ? behind : p->before[1], least = p->across - shared;
    if (p->stride[1] == 1 && !p->joined && shared > 0)
        p->across = least > p->outputs ? least : p->outputs;
}

/* Adds the planes that the taps of one sum meet. */
INLINE void planes_meet(struct planes *p, const struct conv_axis *down, const struct conv_axis *across)
{
    for (int64_t j = 0; j < down->taps; j++)
        for (int64_t i = 0; i < across->taps; i++)
            p->met |= (uint64_t)1 << plane_number(p, tap_at(down, p->before[0], j), tap_at(across, p->before[1], i));
}

/* Copies what output rows first..first + rows meet of x, one sample, into planes; behind the last, unless they are
   joined, as many cells of zeros as there are in front of a row. */
void planes_fill(uint16_t *to, const struct planes *p, const uint16_t *x, int64_t first, int64_t rows);

#endif
