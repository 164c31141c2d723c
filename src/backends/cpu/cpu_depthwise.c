/* cpu_depthwise.c - depthwise convolutions, forward and the gradient of x; NHWC, lanes along the channels.

   Both are one walk: an output cell is a sum of input cells times weights, where along each axis output t reads the
   inputs t * stride + at + j * at_step with the weights weight + j * weight_step, j < taps. Forward is the walk with
   the stride of the convolution. The gradient of x is one walk of stride 1 over dy for each phase of the stride: cells
   of dx that are a stride apart meet the same kernel cells. Blocks of a few output columns share what they load;
   kernels of 3 and 5 (and the 2 and 1 that strides leave of them) have blocks of their own.
   A multiplier above 1 spreads x over the output's channels first (of the gradient: folds dx afterwards). */
#include "backends/cpu/cpu_depthwise.h"

#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define BLOCK 7 /* output columns; the planes of image models are multiples of it */

/* One axis of the walk. */
struct walk {
    int64_t count, out, out_step; /* outputs: out + t * out_step */
    int64_t extent;               /* of the inputs */
    int64_t stride, at, at_step;
    int64_t taps, weight, weight_step;
};

/* One block of output columns. */
struct block {
    const float *x; /* column 0 of the input row of the first tap */
    const float *k; /* its first weight */
    float *y;       /* the first output */
    const float *bias;
    int64_t x_row, k_row, rows; /* between the taps of the vertical axis; how many lie inside */
    int64_t column;             /* of the first output's first tap */
    int64_t channels;           /* floats between two columns */
    int64_t y_step, k_step;
    int64_t extent, stride, at_step, taps;
    int64_t from, to; /* channels: whole vectors */
    int part;         /* and so many behind them */
    bool relu;
};

INLINE vector block_load(const float *p, const struct block *b, const bool partial)
{
    return partial ? vector_load_part(p, b->part) : vector_load(p);
}

INLINE void block_store(float *y, vector sum, const struct block *b, const bool partial)
{
    sum = b->relu ? vector_max(vector_all(0), sum) : sum;
    if (partial)
        vector_store_part(y, sum, b->part);
    else
        vector_store(y, sum);
}

/* Taps next to each other. All but b and channel are constants where this is expanded: each input is loaded once a
   row. */
INLINE void fixed_vector(const struct block *b, int64_t channel, const int count, const int taps, const int stride,
                         const bool edge)
{
    vector sum[BLOCK], w[5], start = b->bias ? vector_load(b->bias + channel) : vector_all(0);
    const float *x = b->x + b->column * b->channels + channel, *k = b->k + channel;
    float *y = b->y + channel;
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        sum[i] = start;
    for (int64_t row = 0; row < b->rows; row++, x += b->x_row, k += b->k_row) {
        UNROLL_ALL
        for (int j = 0; j < taps; j++)
            w[j] = vector_load(k + j * b->k_step);
        UNROLL_ALL
        for (int at = 0; at < (count - 1) * stride + taps; at++) {
            if (edge && (uint64_t)(b->column + at) >= (uint64_t)b->extent)
                continue;
            vector v = vector_load(x + at * b->channels);
            UNROLL_ALL
            for (int i = 0; i < count; i++)
                if (at - i * stride >= 0 && at - i * stride < taps)
                    sum[i] = vector_madd(v, w[at - i * stride], sum[i]);
        }
    }
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        block_store(y + i * b->y_step, sum[i], b, false);
}

/* Any taps, any stride. */
INLINE void general_vector(const struct block *b, int64_t channel, const int count, const bool partial)
{
    vector sum[BLOCK], start = b->bias ? block_load(b->bias + channel, b, partial) : vector_all(0);
    const float *x = b->x + channel, *k = b->k + channel;
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        sum[i] = start;
    for (int64_t row = 0; row < b->rows; row++, x += b->x_row, k += b->k_row)
        for (int64_t j = 0; j < b->taps; j++) {
            vector w = block_load(k + j * b->k_step, b, partial);
            int64_t at = b->column + j * b->at_step;
            UNROLL_ALL
            for (int i = 0; i < count; i++)
                if ((uint64_t)(at + i * b->stride) < (uint64_t)b->extent)
                    sum[i] = vector_madd(block_load(x + (at + i * b->stride) * b->channels, b, partial), w, sum[i]);
        }
    UNROLL_ALL
    for (int i = 0; i < count; i++)
        block_store(b->y + channel + i * b->y_step, sum[i], b, partial);
}

typedef void block_function(const struct block *b);

/* Blocks of BLOCK columns, of 4 and of 1; of each, one for blocks that reach over the rim. */
enum { SEVEN, FOUR, ONE, WIDTHS };
static const int widths[WIDTHS] = {BLOCK, 4, 1};
struct blocks {
    int taps, stride;
    block_function *inside[WIDTHS], *edge[WIDTHS];
};

#define FIXED(taps, stride, count, name, edge)                                                                         \
    static void fixed_##taps##_##stride##_##count##_##name(const struct block *b)                                      \
    {                                                                                                                  \
        struct block own = *b;                                                                                         \
        for (int64_t c = own.from; c < own.to; c += LANES)                                                             \
            fixed_vector(&own, c, count, taps, stride, edge);                                                          \
    }
#define FIXED_ALL(taps, stride)                                                                                        \
    FIXED(taps, stride, 7, inside, false)                                                                              \
    FIXED(taps, stride, 4, inside, false)                                                                              \
    FIXED(taps, stride, 7, edge, true)                                                                                 \
    FIXED(taps, stride, 4, edge, true)                                                                                 \
    FIXED(taps, stride, 1, edge, true)
#define FIXED_NAMES(taps, stride)                                                                                      \
    {                                                                                                                  \
        taps, stride,                                                                                                  \
            {fixed_##taps##_##stride##_7_inside, fixed_##taps##_##stride##_4_inside,                                   \
             fixed_##taps##_##stride##_1_edge},                                                                        \
        {                                                                                                              \
            fixed_##taps##_##stride##_7_edge, fixed_##taps##_##stride##_4_edge, fixed_##taps##_##stride##_1_edge       \
        }                                                                                                              \
    }
#define GENERAL(count, name, partial)                                                                                  \
    static void general_##count##_##name(const struct block *b)                                                        \
    {                                                                                                                  \
        for (int64_t c = partial ? b->to : b->from; c < (partial ? b->to + 1 : b->to); c += LANES)                     \
            general_vector(b, c, count, partial);                                                                      \
    }

FIXED_ALL(3, 1)
FIXED_ALL(3, 2)
FIXED_ALL(5, 1)
FIXED_ALL(5, 2)
FIXED_ALL(2, 1)
FIXED_ALL(1, 1)
GENERAL(7, whole, false)
GENERAL(4, whole, false)
GENERAL(1, whole, false)
GENERAL(7, part, true)
GENERAL(4, part, true)
GENERAL(1, part, true)

static const struct blocks fixed[] = {FIXED_NAMES(3, 1), FIXED_NAMES(3, 2), FIXED_NAMES(5, 1),
                                      FIXED_NAMES(5, 2), FIXED_NAMES(2, 1), FIXED_NAMES(1, 1)};
static const struct blocks general = {
    0, 0, {general_7_whole, general_4_whole, general_1_whole}, {general_7_whole, general_4_whole, general_1_whole}};
static const struct blocks general_part = {
    0, 0, {general_7_part, general_4_part, general_1_part}, {general_7_part, general_4_part, general_1_part}};

/* ---- a plane ------------------------------------------------------------ */

struct plane {
    const float *x, *k, *bias;
    float *y;
    int64_t channels, x_line, y_line, k_line; /* floats of a row */
    int64_t from, to;                         /* the channels that are done now: whole vectors, */
    int part;                                 /* and so many behind them */
    bool relu;
};

static const struct blocks *blocks_of(const struct walk *across)
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed && across->at_step == 1; i++)
        if (fixed[i].taps == across->taps && fixed[i].stride == across->stride)
            return &fixed[i];
    return &general;
}

/* Columns t... of one output row, all channels. */
static void run_block(const struct block *b, const struct blocks *blocks, int width)
{
    int64_t last = b->column + (widths[width] - 1) * b->stride + (b->taps - 1) * b->at_step;
    bool edge = b->column < 0 || last >= b->extent;
    block_function *run = edge ? blocks->edge[width] : blocks->inside[width];
    run(b);
    if (b->part)
        general_part.edge[width](b);
}

/* Row t of the outputs of the walk. */
static void run_row(const struct plane *p, const struct walk *down, const struct walk *across, int64_t t)
{
    const struct blocks *blocks = blocks_of(across);
    int64_t first = t * down->stride + down->at, skipped = 0, rows = down->taps;
    while (rows && first < 0) {
        first += down->at_step;
        skipped++;
        rows--;
    }
    while (rows && first + (rows - 1) * down->at_step >= down->extent)
        rows--;
    struct block b = {
        .x = p->x + first * p->x_line,
        .k = p->k + (down->weight + skipped * down->weight_step) * p->k_line + across->weight * p->channels,
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
    float *y = p->y + (down->out + t * down->out_step) * p->y_line + across->out * p->channels;
    for (int64_t u = 0, width = 0; u < across->count; u += widths[width]) {
        while (widths[width] > across->count - u)
            width++;
        b.y = y + u * b.y_step;
        b.column = u * across->stride + across->at;
        run_block(&b, blocks, (int)width);
    }
}

/* ---- the two walks ------------------------------------------------------ */

static struct walk forward_walk(const struct conv_sizes *s, int axis)
{
    return (struct walk){
        .count = s->y[axis],
        .out_step = 1,
        .extent = s->x[axis],
        .stride = s->stride[axis],
        .at = -s->before[axis],
        .at_step = s->gap[axis] + 1,
        .taps = s->k[axis],
        .weight_step = 1,
    };
}

/* The cells phase, phase + stride... of dx. Kernel cell j meets them where phase + before - j * dilation is a
   multiple of the stride; from the last such j down, dy's cells go up. */
static struct walk backward_walk(const struct conv_sizes *s, int axis, int64_t phase)
{
    int64_t stride = s->stride[axis], dilation = s->gap[axis] + 1, from = phase + s->before[axis];
    struct walk walk = {
        .count = (s->x[axis] - phase + stride - 1) / stride,
        .out = phase,
        .out_step = stride,
        .extent = s->y[axis],
        .stride = 1,
        .at_step = 1,
    };
    int64_t last = -1;
    for (int64_t j = s->k[axis] - 1; j >= 0; j--) {
        if ((from - j * dilation) % stride != 0)
            continue;
        int64_t at = (from - j * dilation) / stride;
        if (walk.taps == 0) {
            walk.at = at;
            walk.weight = j;
        } else if (walk.taps == 1) {
            walk.at_step = at - walk.at;
            walk.weight_step = j - last;
        }
        last = j;
        walk.taps++;
    }
    return walk;
}

static void run_forward_plane(const struct plane *p, const struct conv_sizes *s)
{
    struct walk down = forward_walk(s, 1), across = forward_walk(s, 2);
    for (int64_t t = 0; t < down.count; t++)
        run_row(p, &down, &across, t);
}

static void run_backward_plane(const struct plane *p, const struct conv_sizes *s)
{
    for (int64_t row = 0; row < s->x[1]; row++) {
        struct walk down = backward_walk(s, 1, row % s->stride[1]);
        for (int64_t phase = 0; phase < s->stride[2] && phase < s->x[2]; phase++) {
            struct walk across = backward_walk(s, 2, phase);
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
    int64_t floats = ROWS_BYTES / (int64_t)sizeof(float) / (s->k[1] * columns) / LEAST_CHUNK * LEAST_CHUNK;
    return floats >= LEAST_CHUNK ? floats : p->channels;
}

/* All channels, chunk by chunk; columns: of the rows that are read. */
static void run_plane(struct plane *p, const struct conv_sizes *s, int64_t columns,
                      void (*run)(const struct plane *p, const struct conv_sizes *s))
{
    int64_t chunk = chunk_of(p, s, columns), whole = p->channels / LANES * LANES;
    p->from = 0;
    do {
        p->to = p->from + chunk < whole ? p->from + chunk : whole;
        p->part = p->to == whole ? (int)(p->channels - whole) : 0;
        run(p, s);
        p->from = p->to;
    } while (p->from < whole);
}

/* ---- a multiplier ------------------------------------------------------- */

void VARIANT(depthwise_spread)(float *restrict to, const float *restrict x, int64_t count, int64_t multiplier)
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

MAKER(make_depthwise)
{
    (void)error;
    const struct node *node = request->node;
    struct conv_sizes s;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != TYPE_F32)
            return PLIM_OK;
    conv_sizes_of(&s, node);
    if (s.out != s.in)
        out->kernel.scratch_bytes = (size_t)(s.x[1] * s.x[2] * s.out) * sizeof(float);
    out->kernel.run = entry->run;
    return PLIM_OK;
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
    };
    for (int64_t n = 0; n < rows; n++) {
        p.x = (const float *)call->input[0] + n * x_row;
        p.y = (float *)call->output[0] + n * y_row;
        if (s.out != s.in) {
            VARIANT(depthwise_spread)(call->scratch, p.x, x_row, s.out / s.in);
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
    };
    for (int64_t n = 0; n < rows; n++) {
        float *dx = (float *)call->output[0] + n * x_row;
        p.x = (const float *)call->input[0] + n * y_row;
        p.y = folds ? call->scratch : dx;
        run_plane(&p, &s, s.y[2], run_backward_plane);
        if (folds)
            fold(dx, p.y, call->input[2], &s);
    }
}
