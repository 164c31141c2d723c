/* cpu_depthwise_weights.c - the gradient of a depthwise convolution's weights; NHWC, lanes along the channels.

   dk[j, i, c] = sum over cells of y of x[cell * stride - before + (j, i) * dilation, c] * dy[cell, c]. The sums of some
   rows of the kernel stay in registers over a row of y; each row's sums start at 0 and are added to dk, so no sum is
   a chain of all cells. */
#include "backends/cpu/cpu_depthwise.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* One row of y against `rows` rows of the kernel, for one vector of channels. */
struct row {
    const float *x;  /* column 0 of the input row of the first kernel row */
    const float *dy; /* column 0 */
    float *dk;
    int64_t x_row, k_row, channels; /* floats between rows of x that the kernel's rows meet, of k, between columns */
    int64_t columns, extent, stride, before, dilation, taps;
    int64_t inside, outside; /* columns of y from and to which all taps lie inside */
    int part;
};

INLINE vector row_load(const float *p, const struct row *r, const bool partial)
{
    return partial ? vector_load_part(p, r->part) : vector_load(p);
}

INLINE void row_add(float *to, vector sum, const struct row *r, const bool partial)
{
    vector y = row_load(to, r, partial) + sum;
    if (partial)
        vector_store_part(to, y, r->part);
    else
        vector_store(to, y);
}

#define MOST_ROWS 3
#define MOST_TAPS 5

INLINE void fixed_column(vector sum[MOST_ROWS][MOST_TAPS], const struct row *r, int64_t column, const int rows,
                         const int taps, const bool edge)
{
    int64_t at = column * r->stride - r->before;
    vector dy = vector_load(r->dy + column * r->channels);
    const float *x = r->x + at * r->channels;
    UNROLL_ALL
    for (int i = 0; i < taps; i++) {
        if (edge && (uint64_t)(at + i) >= (uint64_t)r->extent)
            continue;
        UNROLL_ALL
        for (int j = 0; j < rows; j++)
            sum[j][i] = vector_madd(vector_load(x + j * r->x_row + i * r->channels), dy, sum[j][i]);
    }
}

/* rows and taps are constants where this is expanded; taps next to each other. */
INLINE void fixed_row(const struct row *r, const int rows, const int taps)
{
    vector sum[MOST_ROWS][MOST_TAPS];
    UNROLL_ALL
    for (int j = 0; j < rows; j++) {
        UNROLL_ALL
        for (int i = 0; i < taps; i++)
            sum[j][i] = vector_all(0);
    }
    int64_t column = 0;
    for (; column < r->inside; column++)
        fixed_column(sum, r, column, rows, taps, true);
    for (; column < r->outside; column++)
        fixed_column(sum, r, column, rows, taps, false);
    for (; column < r->columns; column++)
        fixed_column(sum, r, column, rows, taps, true);
    UNROLL_ALL
    for (int j = 0; j < rows; j++) {
        UNROLL_ALL
        for (int i = 0; i < taps; i++)
            row_add(r->dk + j * r->k_row + i * r->channels, sum[j][i], r, false);
    }
}

/* One kernel row, tap by tap; four sums, for a multiply-add takes as many cycles. */
INLINE void general_row(const struct row *r, const bool partial)
{
    for (int64_t i = 0; i < r->taps; i++) {
        vector sum[4] = {vector_all(0), vector_all(0), vector_all(0), vector_all(0)};
        for (int64_t column = 0; column < r->columns; column++) {
            int64_t at = column * r->stride - r->before + i * r->dilation;
            if ((uint64_t)at >= (uint64_t)r->extent)
                continue;
            sum[column & 3] = vector_madd(row_load(r->x + at * r->channels, r, partial),
                                          row_load(r->dy + column * r->channels, r, partial), sum[column & 3]);
        }
        row_add(r->dk + i * r->channels, (sum[0] + sum[1]) + (sum[2] + sum[3]), r, partial);
    }
}

typedef void row_function(const struct row *r);

#define FIXED(rows, taps)                                                                                              \
    static void fixed_##rows##_##taps(const struct row *r)                                                             \
    {                                                                                                                  \
        fixed_row(r, rows, taps);                                                                                      \
    }
FIXED(1, 3)
FIXED(2, 3)
FIXED(3, 3)
FIXED(1, 5)
FIXED(2, 5)

static void general_whole(const struct row *r)
{
    general_row(r, false);
}

static void general_part(const struct row *r)
{
    general_row(r, true);
}

/* Kernels of so many taps: how to run one, two, three rows at once. */
static const struct rows_table {
    int64_t taps;
    int most;
    row_function *run[MOST_ROWS];
} tables[] = {{3, 3, {fixed_1_3, fixed_2_3, fixed_3_3}}, {5, 2, {fixed_1_5, fixed_2_5}}};
static const struct rows_table one_by_one = {0, 1, {general_whole}}, one_by_one_part = {0, 1, {general_part}};

static const struct rows_table *table_of(const struct conv_sizes *s)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables && s->gap[2] == 0; i++)
        if (tables[i].taps == s->k[2])
            return &tables[i];
    return &one_by_one;
}

/* Kernel rows from..to against one row of y, for the channels at `r`. */
static void run_kernel_rows(struct row r, const struct rows_table *table, int64_t from, int64_t to)
{
    while (from < to) {
        int64_t rows = to - from < table->most ? to - from : table->most;
        table->run[rows - 1](&r);
        r.x += rows * r.x_row;
        r.dk += rows * r.k_row;
        from += rows;
    }
}

struct plane {
    const struct conv_sizes *s;
    const float *x, *dy;
    float *dk;
};

static struct row row_of(const struct conv_sizes *s)
{
    struct row r = {
        .x_row = (s->gap[1] + 1) * s->x[2] * s->out,
        .k_row = s->k[2] * s->out,
        .channels = s->out,
        .columns = s->y[2],
        .extent = s->x[2],
        .stride = s->stride[2],
        .before = s->before[2],
        .dilation = s->gap[2] + 1,
        .taps = s->k[2],
    };
    int64_t reach = (r.taps - 1) * r.dilation, last = r.extent - 1 - reach + r.before;
    r.inside = (r.before + r.stride - 1) / r.stride;
    r.inside = r.inside < r.columns ? r.inside : r.columns;
    r.outside = last < 0 ? 0 : last / r.stride + 1;
    r.outside = r.outside < r.columns ? r.outside : r.columns;
    return r;
}

/* Row t of y, all channels. */
static void run_row(const struct plane *p, int64_t t)
{
    const struct conv_sizes *s = p->s;
    const struct rows_table *table = table_of(s);
    int64_t dilation = s->gap[1] + 1, first = t * s->stride[1] - s->before[1], from = 0, to = s->k[1];
    while (from < to && first + from * dilation < 0)
        from++;
    while (from < to && first + (to - 1) * dilation >= s->x[1])
        to--;
    struct row r = row_of(s);
    r.x = p->x + (first + from * dilation) * s->x[2] * s->out;
    r.dy = p->dy + t * s->y[2] * s->out;
    r.dk = p->dk + from * r.k_row;
    int64_t c = 0;
    for (; c + LANES <= s->out; c += LANES) {
        run_kernel_rows(r, table, from, to);
        r.x += LANES;
        r.dy += LANES;
        r.dk += LANES;
    }
    r.part = (int)(s->out - c);
    if (r.part)
        run_kernel_rows(r, &one_by_one_part, from, to);
}

static void add_bias(float *restrict bias, const float *restrict dy, int64_t cells, int64_t channels)
{
    for (int64_t i = 0; i < cells; i++)
        for (int64_t c = 0; c < channels; c++)
            bias[c] += dy[i * channels + c];
}

RUNNER(run_depthwise_weight_gradient)
{
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    int64_t x_row = s.x[1] * s.x[2] * s.in, cells = s.y[1] * s.y[2], rows = cpu_rows(kernel, call);
    struct plane p = {.s = &s, .dk = call->output[0]};
    if (!call->add) {
        memset(call->output[0], 0, (size_t)(s.k[1] * s.k[2] * s.out) * sizeof(float));
        memset(call->output[1], 0, (size_t)s.out * sizeof(float));
    }
    for (int64_t n = 0; n < rows; n++) {
        p.x = (const float *)call->input[0] + n * x_row;
        p.dy = (const float *)call->input[1] + n * cells * s.out;
        if (s.out != s.in) {
            VARIANT(depthwise_spread)(call->scratch, p.x, x_row, s.out / s.in);
            p.x = call->scratch;
        }
        for (int64_t t = 0; t < s.y[1]; t++)
            run_row(&p, t);
        if (attributes->bias)
            add_bias(call->output[1], p.dy, cells, s.out);
    }
}
