/* tile_planes.c - filling the planes of tile_planes.h. */
#include "backends/cpu/gemm/tile_planes.h"

#if LANES == 16

#define PICTURE 3 /* channels of pictures: their cells are copied as words of four */

static uint16_t *put_zeros(uint16_t *to, int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
    return to + count;
}

/* Cells of one row of x, `step` apart, whose elements are padded. */
static uint16_t *put_cells(uint16_t *to, const struct planes *p, const uint16_t *x, int64_t step, int64_t count)
{
    if (step == 1 && p->padded == p->channels) {
        memcpy(to, x, (size_t)(count * p->channels) * sizeof *to);
        return to + count * p->channels;
    }
    if (p->channels == PICTURE && p->padded == PICTURE + 1)
        for (int64_t i = 0; i < count; i++, x += step * PICTURE) {
            uint64_t word = x[0] | (uint64_t)x[1] << 16 | (uint64_t)x[2] << 32;
            memcpy(to + i * (PICTURE + 1), &word, sizeof word);
        }
    else
        for (int64_t i = 0; i < count; i++, x += step * p->channels) {
            memcpy(to + i * p->padded, x, (size_t)p->channels * sizeof *to);
            put_zeros(to + i * p->padded + p->channels, p->padded - p->channels);
        }
    return to + count * p->padded;
}

/* One row of a plane: the cells column, column + step... of row x, zeros where there are none. */
static uint16_t *put_line(uint16_t *to, const struct planes *p, const uint16_t *x, int64_t column, int64_t step)
{
    int64_t line = plane_line(p), none = column < 0 ? (-column + step - 1) / step : 0;
    none = none > line ? line : none;
    column += none * step;
    int64_t some = column < p->source[1] ? (p->source[1] - column + step - 1) / step : 0;
    some = some > line - none ? line - none : some;
    to = put_zeros(to, none * p->padded);
    if (some)
        to = put_cells(to, p, x + column * p->channels, step, some);
    return put_zeros(to, (line - none - some) * p->padded);
}

static uint16_t *put_plane(uint16_t *to, const struct planes *p, const uint16_t *x, int64_t first, int64_t rows,
                           int64_t number)
{
    int64_t down = p->joined ? number : number / p->stride[1], across = p->joined ? 0 : number % p->stride[1];
    for (int64_t i = 0; i < rows + p->reach; i++) {
        int64_t row = (first + i) * p->stride[0] + down - p->before[0];
        if (row < 0 || row >= p->source[0])
            to = put_zeros(to, plane_line(p) * p->padded);
        else
            to = put_line(to, p, x + row * p->source[1] * p->channels, across - p->before[1],
                          p->joined ? 1 : p->stride[1]);
    }
    return to;
}

void planes_fill(uint16_t *to, const struct planes *p, const uint16_t *x, int64_t first, int64_t rows)
{
    for (int64_t number = 0; p->met >> number; number++)
        if (p->met >> number & 1)
            put_plane(to + plane_place(p, number) * plane_cells(p, rows) * p->padded, p, x, first, rows, number);
    if (!p->joined)
        put_zeros(to + planes_elements(p, rows), p->before[1] * p->padded);
}

#endif
