/* cpu_depthwise.c - depthwise convolutions, forward and the gradient of x; NHWC, lanes along the channels.

   Both are one form: an output cell is a sum of input cells times weights, where along each axis output t reads the
   inputs t * stride + at + j * at_step with the weights weight + j * weight_step, j < taps. Forward is the form with
   the stride of the convolution. The gradient of x is that form with stride 1 over dy for each residue of the stride:
   cells of dx that are a stride apart meet the same kernel cells. Blocks of a few output columns share what they load;
   kernels of 3 and 5 (and the 2 and 1 that strides leave of them) have blocks of their own.
   A multiplier above 1 repeats x for the output's channels first (of the gradient: folds dx afterwards). */
#include "backends/cpu/convolution/cpu_depthwise.h"

#include "backends/cpu/convolution/cpu_conv_axis.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define BLOCK 7 /* output columns; the planes of image models are multiples of it */

/* One block of output columns. */
struct block {
    const void *x; /* column 0 of the input row of the first tap */
    const void *k; /* its first weight */
    void *y;       /* the first output */
    const float *bias;
    int64_t x_row, k_row, rows; /* between the taps of the vertical axis; how many lie inside */
    int64_t column;             /* of the first output's first tap */
    int64_t channels;           /* elements between two columns */
    int64_t y_step, k_step;
    int64_t extent, stride, at_step, taps;
    int64_t from, to; /* channels: whole vectors */
    int part;         /* and so many behind them */
    bool relu;
};

INLINE vector block_act(vector sum, const struct block *b)
{
    return b->relu ? vector_max(vector_all(0), sum) : sum;
}

/* Taps next to each other. All but b and channel are constants where this is expanded: each input is loaded once a
   row. */
INLINE void fixed_vector(const struct block *b, int64_t channel, const int count, const int taps, const int stride,
                         const bool edge, const enum part_of part)
{
    vector sum[BLOCK], w[5], start = b->bias ? load_floats(b->bias + channel, part, b->part) : vector_all(0);
    int64_t x = b->column * b->channels + channel, k = channel;
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        sum[i] = start;
    for (int64_t row = 0; row < b->rows; row++, x += b->x_row, k += b->k_row) {
        UNROLL_ALL
        for (int j = 0; j < taps; j++)
            w[j] = load_part(b->k, k + j * b->k_step, part, b->part);
        UNROLL_ALL
        for (int at = 0; at < (count - 1) * stride + taps; at++) {
            if (edge && (uint64_t)(b->column + at) >= (uint64_t)b->extent)
                continue;
            vector v = load_part(b->x, x + at * b->channels, part, b->part);
            UNROLL_ALL
            for (int i = 0; i < count; i++)
                if (at - i * stride >= 0 && at - i * stride < taps)
                    sum[i] = vector_madd(v, w[at - i * stride], sum[i]);
        }
    }
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        store_part(b->y, channel + i * b->y_step, block_act(sum[i], b), part, b->part);
}

/* Any taps, any stride. */
INLINE void general_vector(const struct block *b, int64_t channel, const int count, const enum part_of part)
{
    vector sum[BLOCK], start = b->bias ? load_floats(b->bias + channel, part, b->part) : vector_all(0);
    int64_t x = channel, k = channel;
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        sum[i] = start;
    for (int64_t row = 0; row < b->rows; row++, x += b->x_row, k += b->k_row)
        for (int64_t j = 0; j < b->taps; j++) {
            vector w = load_part(b->k, k + j * b->k_step, part, b->part);
            int64_t at = b->column + j * b->at_step;
            UNROLL_ALL
            for (int i = 0; i < count; i++)
                if ((uint64_t)(at + i * b->stride) < (uint64_t)b->extent)
                    sum[i] =
                        vector_madd(load_part(b->x, x + (at + i * b->stride) * b->channels, part, b->part), w, sum[i]);
        }
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        store_part(b->y, channel + i * b->y_step, block_act(sum[i], b), part, b->part);
}

typedef void block_function(const struct block *b);

/* Blocks of BLOCK columns, of 4 and of 1; of each, one for blocks that reach over the rim. */
enum { SEVEN, FOUR, ONE, WIDTHS };
static const int widths[WIDTHS] = {BLOCK, 4, 1};
struct blocks {
    int taps, stride;
    block_function *inside[WIDTHS], *edge[WIDTHS];
};

/* Vectors of whole channels, and of halves of words. */
#define EACH_SINGLE(b, function, ...)                                                                                  \
    for (int64_t c = (b)->from; c < (b)->to; c += LANES)                                                               \
    function(b, c, __VA_ARGS__, SINGLE)
#define EACH_HALF(b, function, ...)                                                                                    \
    for (int64_t c = (b)->from, at; c < (b)->to; c += 2 * LANES) {                                                     \
        at = c + 2 * LANES <= (b)->channels ? c : (b)->channels - 2 * LANES;                                           \
        function(b, at, __VA_ARGS__, EVEN);                                                                            \
        function(b, at, __VA_ARGS__, ODD);                                                                             \
    }
#define FIXED(taps, stride, count, name, edge)                                                                         \
    static void fixed_##taps##_##stride##_##count##_##name(const struct block *b)                                      \
    {                                                                                                                  \
        struct block own = *b;                                                                                         \
        EACH_SINGLE(&own, fixed_vector, count, taps, stride, edge);                                                    \
    }                                                                                                                  \
    static void halves_##taps##_##stride##_##count##_##name(const struct block *b)                                     \
    {                                                                                                                  \
        struct block own = *b;                                                                                         \
        EACH_HALF(&own, fixed_vector, count, taps, stride, edge)                                                       \
    }
#define FIXED_ALL(taps, stride)                                                                                        \
    FIXED(taps, stride, 7, inside, false)                                                                              \
    FIXED(taps, stride, 4, inside, false)                                                                              \
    FIXED(taps, stride, 7, edge, true)                                                                                 \
    FIXED(taps, stride, 4, edge, true)                                                                                 \
    FIXED(taps, stride, 1, edge, true)
#define FIXED_NAMES(how, taps, stride)                                                                                 \
    {                                                                                                                  \
        taps, stride,                                                                                                  \
            {how##_##taps##_##stride##_7_inside, how##_##taps##_##stride##_4_inside,                                   \
             how##_##taps##_##stride##_1_edge},                                                                        \
        {                                                                                                              \
            how##_##taps##_##stride##_7_edge, how##_##taps##_##stride##_4_edge, how##_##taps##_##stride##_1_edge       \
        }                                                                                                              \
    }
#define GENERAL(count)                                                                                                 \
    static void general_##count(const struct block *b)                                                                 \
    {                                                                                                                  \
        EACH_SINGLE(b, general_vector, count);                                                                         \
    }                                                                                                                  \
    static void general_halves_##count(const struct block *b)                                                          \
    {                                                                                                                  \
        EACH_HALF(b, general_vector, count)                                                                            \
    }                                                                                                                  \
    static void last_##count(const struct block *b)                                                                    \
    {                                                                                                                  \
        general_vector(b, b->to, count, REST);                                                                         \
    }

FIXED_ALL(3, 1)
FIXED_ALL(3, 2)
FIXED_ALL(5, 1)
FIXED_ALL(5, 2)
FIXED_ALL(2, 1)
FIXED_ALL(1, 1)
GENERAL(7)
GENERAL(4)
GENERAL(1)

/* By [bf16]. */
#define KERNELS 6
static const struct blocks fixed[2][KERNELS] = {
    {FIXED_NAMES(fixed, 3, 1), FIXED_NAMES(fixed, 3, 2), FIXED_NAMES(fixed, 5, 1), FIXED_NAMES(fixed, 5, 2),
     FIXED_NAMES(fixed, 2, 1), FIXED_NAMES(fixed, 1, 1)},
    {FIXED_NAMES(halves, 3, 1), FIXED_NAMES(halves, 3, 2), FIXED_NAMES(halves, 5, 1), FIXED_NAMES(halves, 5, 2),
     FIXED_NAMES(halves, 2, 1), FIXED_NAMES(halves, 1, 1)},
};
static const struct blocks general[2] = {
    {0, 0, {general_7, general_4, general_1}, {general_7, general_4, general_1}},
    {0,
     0,
     {general_halves_7, general_halves_4, general_halves_1},
     {general_halves_7, general_halves_4, general_halves_1}},
};
static block_function *const last_blocks[WIDTHS] = {last_7, last_4, last_1};

/* ---- a plane ------------------------------------------------------------ */

struct plane {
    const void *x, *k;
    const float *bias;
    void *y;
    bool small;                               /* x, k and y are bf16 */
    int64_t channels, x_line, y_line, k_line; /* elements of a row */
    int64_t from, to;                         /* the channels that are done now: whole vectors, */
    int part;                                 /* and so many behind them */
    bool relu;
};

static const struct blocks *blocks_of(const struct conv_axis *across, bool small)
{
    for (int i = 0; i < KERNELS && across->at_step == 1; i++)
        if (fixed[small][i].taps == across->taps && fixed[small][i].stride == across->stride)
            return &fixed[small][i];
    return &general[small];
}

/* Columns t... of one output row, all channels. */
static void run_block(const struct block *b, const struct blocks *blocks, int width)
{
    int64_t last = b->column + (widths[width] - 1) * b->stride + (b->taps - 1) * b->at_step;
    bool edge = b->column < 0 || last >= b->extent;
    block_function *run = edge ? blocks->edge[width] : blocks->inside[width];
    run(b);
    if (b->part)
        last_blocks[width](b);
}

/* Row t of the outputs. */
static void run_row(const struct plane *p, const struct conv_axis *down, const struct conv_axis *across, int64_t t)
{
    const struct blocks *blocks = blocks_of(across, p->small);
    int64_t first = t * down->stride + down->at, skipped = 0, rows = down->taps;
    while (rows && first < 0) {
        first += down->at_step;
        skipped++;
        rows--;
    }
    while (rows && first + (rows - 1) * down->at_step >= down->extent)
        rows--;
    struct block b = {
        .x = element_of(p->x, first * p->x_line, p->small),
        .k = element_of(p->k, (down->weight + skipped * down->weight_step) * p->k_line + across->weight * p->channels,
                        p->small),
        .bias = p->bias,
        .x_row = down->at_step * p->x_line,
        .k_row = down->weight_step * p->k_line,
        .rows = rows,
        .channels = p->channels,
        .y_step = across->out_step * p->channels,
        .k_step = across->weight_step * p->channels,
        .extent = across->extent,
        .stride = across->stride,
        .at_step = across->at_step,
        .taps = across->taps,
        .from = p->from,
        .to = p->to,
        .part = p->part,
        .relu = p->relu,
    };
    int64_t y = (down->out + t * down->out_step) * p->y_line + across->out * p->channels;
    for (int64_t u = 0, width = 0; u < across->count; u += widths[width]) {
        while (widths[width] > across->count - u)
            width++;
        b.y = (void *)element_of(p->y, y + u * b.y_step, p->small);
        b.column = u * across->stride + across->at;
        run_block(&b, blocks, (int)width);
    }
}

/* ---- forward and the gradient of x -------------------------------------- */

static void run_forward_plane(const struct plane *p, const struct conv_sizes *s)
{
    struct conv_axis down = forward_axis(s, 1), across = forward_axis(s, 2);
    for (int64_t t = 0; t < down.count; t++)
        run_row(p, &down, &across, t);
}

static void run_backward_plane(const struct plane *p, const struct conv_sizes *s)
{
    for (int64_t row = 0; row < s->x[1]; row++) {
        struct conv_axis down = backward_axis(s, 1, row % s->stride[1]);
        for (int64_t residue = 0; residue < s->stride[2] && residue < s->x[2]; residue++) {
            struct conv_axis across = backward_axis(s, 2, residue);
            run_row(p, &down, &across, row / s->stride[1]);
        }
    }
}

/* Channels at a time, so that the rows that a kernel meets stay in the first-level cache from one output row to the
   next. Of wide pictures that would be so few that lines are no longer read one after another: then all. */
#define ROWS_BYTES  (24 * 1024)
#define LEAST_CHUNK 128
static int64_t chunk_of(const struct plane *p, const struct conv_sizes *s, int64_t columns)
{
    int64_t bytes = p->small ? 2 : 4, some = ROWS_BYTES / bytes / (s->k[1] * columns) / LEAST_CHUNK * LEAST_CHUNK;
    return some >= LEAST_CHUNK ? some : p->channels;
}

/* All channels, chunk by chunk; columns: of the rows that are read. */
static void run_plane(struct plane *p, const struct conv_sizes *s, int64_t columns,
                      void (*run)(const struct plane *p, const struct conv_sizes *s))
{
    int64_t chunk = chunk_of(p, s, columns), whole = p->channels / LANES * LANES;
    if (p->small) /* the last vector begins earlier */
        whole = p->channels;
    p->from = 0;
    do {
        p->to = p->from + chunk < whole ? p->from + chunk : whole;
        p->part = p->to == whole ? (int)(p->channels - whole) : 0;
        run(p, s);
        p->from = p->to;
    } while (p->from < whole);
}

/* ---- a multiplier ------------------------------------------------------- */

void VARIANT(depthwise_repeat)(float *restrict to, const float *restrict x, int64_t count, int64_t multiplier)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t m = 0; m < multiplier; m++)
            to[i * multiplier + m] = x[i];
}

static void fold(float *restrict dx, const float *restrict from, const float *bias, const struct conv_sizes *s)
{
    int64_t multiplier = s->out / s->in;
    for (int64_t i = 0; i < s->x[1] * s->x[2] * s->in; i++) {
        float sum = bias ? bias[i % s->in] : 0;
        for (int64_t m = 0; m < multiplier; m++)
            sum += from[i * multiplier + m];
        dx[i] = sum;
    }
}

/* ---- kernels ------------------------------------------------------------ */

/* size[0]: x and y, or their gradients, and weights that are read are bf16; then there are two vectors of channels at
   least. */
MAKER(make_depthwise)
{
    enum type type = node->input[0]->type;
    enum conv_role role;
    struct conv_sizes s;
    if (node->input[1]->type != type || (node->input_count > 2 && node->input[2] && node->input[2]->type != TYPE_F32))
        return false;
    conv_sizes_of(&s, node);
    out->size[0] = type == TYPE_BF16;
    if (type != TYPE_F32 && (type != TYPE_BF16 || s.out != s.in || s.out < 2 * LANES))
        return false;
    if (s.out != s.in)
        out->kernel.scratch_bytes = (size_t)(s.x[1] * s.x[2] * s.out) * sizeof(float);
    conv_family_of(&role, node->op);
    if (role == CONV_WEIGHT_GRADIENT && type == TYPE_BF16)
        out->kernel.scratch_bytes = (size_t)(s.k[1] * s.k[2] * depthwise_padded(s.out)) * sizeof(float);
    return true;
}

RUNNER(run_depthwise)
{
    const struct conv_attributes *conv = call->node->attributes;
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    int64_t x_row = s.x[1] * s.x[2] * s.in, y_row = s.y[1] * s.y[2] * s.out, rows = cpu_rows(kernel, call);
    struct plane p = {
        .k = call->input[1],
        .bias = call->input[2],
        .channels = s.out,
        .x_line = s.x[2] * s.out,
        .y_line = s.y[2] * s.out,
        .k_line = s.k[2] * s.out,
        .relu = conv->activation == ACTIVATION_RELU,
        .small = cpu_kernel_of(kernel)->size[0] != 0,
    };
    for (int64_t n = 0; n < rows; n++) {
        p.x = element_of(call->input[0], n * x_row, p.small);
        p.y = (void *)element_of(call->output[0], n * y_row, p.small);
        if (s.out != s.in) {
            VARIANT(depthwise_repeat)(call->scratch, p.x, x_row, s.out / s.in);
            p.x = call->scratch;
        }
        run_plane(&p, &s, s.x[2], run_forward_plane);
    }
}

RUNNER(run_depthwise_input_gradient)
{
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    int64_t x_row = s.x[1] * s.x[2] * s.in, y_row = s.y[1] * s.y[2] * s.out, rows = cpu_rows(kernel, call);
    bool folds = s.out != s.in;
    struct plane p = {
        .k = call->input[1],
        .bias = folds ? NULL : call->input[2],
        .channels = s.out,
        .x_line = s.y[2] * s.out,
        .y_line = s.x[2] * s.out,
        .k_line = s.k[2] * s.out,
        .small = cpu_kernel_of(kernel)->size[0] != 0,
    };
    for (int64_t n = 0; n < rows; n++) {
        void *dx = (void *)element_of(call->output[0], n * x_row, p.small);
        p.x = element_of(call->input[0], n * y_row, p.small);
        p.y = folds ? call->scratch : dx;
        run_plane(&p, &s, s.y[2], run_backward_plane);
        if (folds)
            fold(dx, p.y, call->input[2], &s);
    }
}
