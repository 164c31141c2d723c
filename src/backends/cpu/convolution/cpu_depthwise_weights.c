/* cpu_depthwise_weights.c - the gradient of a depthwise convolution's weights; NHWC, lanes along the channels.

   dk[j, i, c] = sum over cells of y of x[cell * stride - before + (j, i) * dilation, c] * dy[cell, c]. A block of
   columns of y meets some rows of the kernel: their sums start at 0 in registers and are added to dk afterwards, so no
   sum is a chain of all cells. Channels are the inner loop: one vector of channels at a time over many cells would
   fall into few sets of the cache. Sums of bf16 lie in scratch, the even channels of a pair of vectors before the odd
   ones, until all are there. */
#include "backends/cpu/convolution/cpu_conv_axis.h"
#include "backends/cpu/convolution/cpu_depthwise.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define ROWS_AT_ONCE  3
#define WIDEST_KERNEL 5
/* Columns of the widest block: as many as leave registers for the sums. */
#if LANES == 16
#define BLOCK 7
#else
#define BLOCK 4
#endif

/* One row of y against some rows of the kernel. */
struct row {
    const void *x;  /* column 0 of the input row of the first kernel row */
    const void *dy; /* column 0 */
    float *dk;
    int64_t x_row, k_row, channels; /* elements between rows of x that the kernel's rows meet, of dk, between columns */
    int64_t k_column;               /* of dk */
    int64_t columns, extent, stride, before, dilation, taps;
};

/* All but r, column, channel and its place in dk are constants where this is expanded; taps next to each other. */
INLINE void fixed_vector(const struct row *r, int64_t column, int64_t channel, int64_t place, const int rows,
                         const int taps, const int stride, const int count, const bool edge, const enum part_of part)
{
    vector sum[ROWS_AT_ONCE][WIDEST_KERNEL], dy[BLOCK];
    int64_t first = column * stride - r->before, x = first * r->channels + channel;
    UNROLL_ALL
    for (int j = 0; j < rows; j++) {
        UNROLL_ALL
        for (int i = 0; i < taps; i++)
            sum[j][i] = vector_all(0);
    }
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        dy[i] = load_part(r->dy, (column + i) * r->channels + channel, part, 0);
    UNROLL_ALL
    for (int at = 0; at < (count - 1) * stride + taps; at++) {
        if (edge && (uint64_t)(first + at) >= (uint64_t)r->extent)
            continue;
        UNROLL_ALL
        for (int j = 0; j < rows; j++) {
            vector v = load_part(r->x, x + j * r->x_row + at * r->channels, part, 0);
            UNROLL_ALL
            for (int i = 0; i < count; i++)
                if (at - i * stride >= 0 && at - i * stride < taps)
                    sum[j][at - i * stride] = vector_madd(v, dy[i], sum[j][at - i * stride]);
        }
    }
    UNROLL_ALL
    for (int j = 0; j < rows; j++) {
        UNROLL_ALL
        for (int i = 0; i < taps; i++) {
            float *to = r->dk + j * r->k_row + i * r->k_column + place;
            vector_store(to, vector_load(to) + sum[j][i]);
        }
    }
}

/* One kernel row, any taps; a row of y from end to end. */
INLINE void general_vector(const struct row *r, int64_t channel, int64_t place, const enum part_of part)
{
    int n = (int)(r->channels - channel); /* of REST */
    for (int64_t i = 0; i < r->taps; i++) {
        vector sum = vector_all(0);
        float *to = r->dk + i * r->k_column + place;
        for (int64_t column = 0; column < r->columns; column++) {
            int64_t at = column * r->stride - r->before + i * r->dilation;
            if ((uint64_t)at < (uint64_t)r->extent)
                sum = vector_madd(load_part(r->x, at * r->channels + channel, part, n),
                                  load_part(r->dy, column * r->channels + channel, part, n), sum);
        }
        enum part_of where = part == REST ? REST : SINGLE;
        store_part(to, 0, load_part(to, 0, where, n) + sum, where, n);
    }
}

/* Where the vectors of a pair that begins at place c lie: in x, dy; in dk they are at c and c + LANES. */
INLINE int64_t pair_at(const struct row *r, int64_t c)
{
    return c + 2 * LANES <= r->channels ? c : r->channels - 2 * LANES;
}

typedef void block_function(const struct row *r, int64_t column);

#define FIXED(rows, taps, stride, count, name, edge)                                                                   \
    static void fixed_##rows##_##taps##_##stride##_##name(const struct row *r, int64_t column)                         \
    {                                                                                                                  \
        const struct row own = *r;                                                                                     \
        for (int64_t c = 0; c + LANES <= own.channels; c += LANES)                                                     \
            fixed_vector(&own, column, c, c, rows, taps, stride, count, edge, SINGLE);                                 \
    }                                                                                                                  \
    static void halves_##rows##_##taps##_##stride##_##name(const struct row *r, int64_t column)                        \
    {                                                                                                                  \
        const struct row own = *r;                                                                                     \
        for (int64_t c = 0; c < own.channels; c += 2 * LANES) {                                                        \
            fixed_vector(&own, column, pair_at(&own, c), c, rows, taps, stride, count, edge, EVEN);                    \
            fixed_vector(&own, column, pair_at(&own, c), c + LANES, rows, taps, stride, count, edge, ODD);             \
        }                                                                                                              \
    }
#define FIXED_ALL(rows, taps, stride)                                                                                  \
    FIXED(rows, taps, stride, BLOCK, inside, false)                                                                    \
    FIXED(rows, taps, stride, BLOCK, edge, true)                                                                       \
    FIXED(rows, taps, stride, 3, three, true)                                                                          \
    FIXED(rows, taps, stride, 1, one, true)
#define FIXED_NAMES(how, rows, taps, stride)                                                                           \
    {                                                                                                                  \
        how##_##rows##_##taps##_##stride##_inside, how##_##rows##_##taps##_##stride##_edge,                            \
            how##_##rows##_##taps##_##stride##_three, how##_##rows##_##taps##_##stride##_one                           \
    }

FIXED_ALL(1, 3, 1)
FIXED_ALL(2, 3, 1)
FIXED_ALL(3, 3, 1)
FIXED_ALL(1, 5, 1)
FIXED_ALL(2, 5, 1)
FIXED_ALL(1, 3, 2)
FIXED_ALL(2, 3, 2)
FIXED_ALL(3, 3, 2)
FIXED_ALL(1, 5, 2)
FIXED_ALL(2, 5, 2)

/* Kernels of so many taps, by [bf16]: how to run one, two, three rows of them at once; blocks inside, blocks that reach
   over the rim, blocks of three columns and of one. */
struct table {
    int64_t taps, stride, most;
    block_function *run[ROWS_AT_ONCE][4];
};
#define TABLES(how)                                                                                                    \
    {                                                                                                                  \
        {3, 1, 3, {FIXED_NAMES(how, 1, 3, 1), FIXED_NAMES(how, 2, 3, 1), FIXED_NAMES(how, 3, 3, 1)}},                  \
            {3, 2, 3, {FIXED_NAMES(how, 1, 3, 2), FIXED_NAMES(how, 2, 3, 2), FIXED_NAMES(how, 3, 3, 2)}},              \
            {5, 1, 2, {FIXED_NAMES(how, 1, 5, 1), FIXED_NAMES(how, 2, 5, 1)}},                                         \
        {                                                                                                              \
            5, 2, 2,                                                                                                   \
            {                                                                                                          \
                FIXED_NAMES(how, 1, 5, 2), FIXED_NAMES(how, 2, 5, 2)                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }
#define KERNELS 4
static const struct table tables[2][KERNELS] = {TABLES(fixed), TABLES(halves)};

static const struct table *table_of(const struct conv_sizes *s, bool small)
{
    for (int i = 0; i < KERNELS && s->gap[2] == 0; i++)
        if (tables[small][i].taps == s->k[2] && tables[small][i].stride == s->stride[2])
            return &tables[small][i];
    return NULL;
}

static void run_fixed(const struct row *r, block_function *const run[4])
{
    int64_t column = 0, width;
    for (; column < r->columns; column += width) {
        int64_t left = r->columns - column, first = column * r->stride - r->before;
        bool inside = first >= 0 && first + (BLOCK - 1) * r->stride + r->taps <= r->extent;
        width = left >= BLOCK ? BLOCK : left >= 3 ? 3 : 1;
        run[width == BLOCK ? (inside ? 0 : 1) : width == 3 ? 2 : 3](r, column);
    }
}

/* The vectors of channels that no fixed block took. */
static void run_general(const struct row *r, bool all, bool small)
{
    int64_t c = all ? 0 : r->channels / LANES * LANES;
    for (; all && small && c < r->channels; c += 2 * LANES) {
        general_vector(r, pair_at(r, c), c, EVEN);
        general_vector(r, pair_at(r, c), c + LANES, ODD);
    }
    for (; !small && c + LANES <= r->channels; c += LANES)
        general_vector(r, c, c, SINGLE);
    if (!small && c < r->channels)
        general_vector(r, c, c, REST);
}

struct plane {
    const struct conv_sizes *s;
    const void *x, *dy;
    float *dk;
    bool small;       /* x and dy are bf16 */
    int64_t k_column; /* floats of dk between two columns */
};

/* Row t of y. */
static void run_row(const struct plane *p, const struct table *table, int64_t t)
{
    const struct conv_sizes *s = p->s;
    int64_t dilation = s->gap[1] + 1, first = t * s->stride[1] - s->before[1], from = 0, to = s->k[1], rows;
    struct row r = {
        .dy = element_of(p->dy, t * s->y[2] * s->out, p->small),
        .x_row = dilation * s->x[2] * s->out,
        .k_row = s->k[2] * p->k_column,
        .k_column = p->k_column,
        .channels = s->out,
        .columns = s->y[2],
        .extent = s->x[2],
        .stride = s->stride[2],
        .before = s->before[2],
        .dilation = s->gap[2] + 1,
        .taps = s->k[2],
    };
    while (from < to && first + from * dilation < 0)
        from++;
    while (from < to && first + (to - 1) * dilation >= s->x[1])
        to--;
    for (; from < to; from += rows) {
        r.x = element_of(p->x, (first + from * dilation) * s->x[2] * s->out, p->small);
        r.dk = p->dk + from * r.k_row;
        rows = !table || r.channels < LANES ? 1 : to - from < table->most ? to - from : table->most;
        if (table)
            run_fixed(&r, table->run[rows - 1]);
        for (int64_t j = 0; j < rows; j++, r.x = element_of(r.x, r.x_row, p->small), r.dk += r.k_row)
            run_general(&r, !table, p->small);
    }
}

INLINE void add_bias(float *restrict bias, const void *restrict dy, int64_t cells, int64_t channels, const bool small)
{
    for (int64_t i = 0; i < cells; i++)
        for (int64_t c = 0; c < channels; c++)
            bias[c] += element_at(dy, i * channels + c, small);
}

/* Sums of pairs of vectors to where they belong. */
static void add_pairs(float *dk, const float *sums, int64_t taps, int64_t channels)
{
    int64_t padded = depthwise_padded(channels);
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t begin = c / (2 * LANES) * (2 * LANES);
            int64_t i = c - (begin + 2 * LANES <= channels ? begin : channels - 2 * LANES);
            dk[tap * channels + c] += sums[tap * padded + begin + i % 2 * LANES + i / 2];
        }
}

RUNNER(run_depthwise_weight_gradient)
{
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    bool small = cpu_kernel_of(kernel)->size[0] != 0;
    int64_t x_row = s.x[1] * s.x[2] * s.in, cells = s.y[1] * s.y[2], rows = cpu_rows(kernel, call);
    int64_t taps = s.k[1] * s.k[2], k_column = small ? depthwise_padded(s.out) : s.out;
    struct plane p = {&s, NULL, NULL, small ? call->scratch : call->output[0], small, k_column};
    begin_weight_sums(call, taps * s.out, s.out);
    if (small)
        memset(call->scratch, 0, (size_t)(taps * k_column) * sizeof(float));
    for (int64_t n = 0; n < rows; n++) {
        p.x = element_of(call->input[0], n * x_row, small);
        p.dy = element_of(call->input[1], n * cells * s.out, small);
        if (s.out != s.in) {
            VARIANT(depthwise_repeat)(call->scratch, p.x, x_row, s.out / s.in);
            p.x = call->scratch;
        }
        for (int64_t t = 0; t < s.y[1]; t++)
            run_row(&p, table_of(&s, small), t);
        if (attributes->bias && small)
            add_bias(call->output[1], p.dy, cells, s.out, true);
        else if (attributes->bias)
            add_bias(call->output[1], p.dy, cells, s.out, false);
    }
    if (small)
        add_pairs(call->output[0], call->scratch, taps, s.out);
}
