/* cpu_pooling.c - max-pooling and its gradient, NHWC, channels as vectors.

   Windows of 2x2 that neither overlap nor reach into padding have a path of
   their own; all others go window cell by window cell. */
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* The plane of one sample: x[height, width, channels], y[rows, columns, channels]. */
struct pool {
    int64_t height, width, rows, columns, channels;
    const struct max_pool_attributes *attributes;
};

static bool is_two_by_two(const struct max_pool_attributes *a)
{
    return a->window[0] == 2 && a->window[1] == 2 && a->stride[0] == 2 && a->stride[1] == 2 && !a->pad[0] &&
           !a->pad[1] && !a->pad[2] && !a->pad[3];
}

MAKER(make_max_pool)
{
    (void)error;
    if (request->node->input[0]->type == TYPE_F32)
        out->kernel.run = entry->run;
    return PLIM_OK;
}

/* x: the window's upper left cell; below: the row under it. */
static void best_of_four(float *restrict y, uint8_t *restrict index, const float *restrict x,
                         const float *restrict below, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        float a = x[c], b = x[channels + c], d = below[c], e = below[channels + c];
        int at = 0;
        at = b > a ? 1 : at;
        a = b > a ? b : a;
        at = d > a ? 2 : at;
        a = d > a ? d : a;
        at = e > a ? 3 : at;
        a = e > a ? e : a;
        y[c] = a;
        index[c] = (uint8_t)at;
    }
}

static void pool_two_by_two(float *y, uint8_t *index, const float *x, const struct pool *p)
{
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++) {
            const float *at = x + (2 * row * p->width + 2 * column) * p->channels;
            best_of_four(y, index, at, at + p->width * p->channels, p->channels);
            y += p->channels;
            index += p->channels;
        }
}

static void take_better(float *restrict y, uint8_t *restrict index, const float *restrict x, int64_t channels, int cell,
                        bool first)
{
    for (int64_t c = 0; c < channels; c++) {
        bool better = first || x[c] > y[c];
        y[c] = better ? x[c] : y[c];
        index[c] = better ? (uint8_t)cell : index[c];
    }
}

static void pool_window(float *y, uint8_t *index, const float *x, const struct pool *p, int64_t row, int64_t column)
{
    const struct max_pool_attributes *a = p->attributes;
    bool first = true;
    for (int64_t i = 0; i < a->window[0]; i++)
        for (int64_t j = 0; j < a->window[1]; j++) {
            int64_t v = row * a->stride[0] - a->pad[0] + i, u = column * a->stride[1] - a->pad[2] + j;
            if (v < 0 || v >= p->height || u < 0 || u >= p->width)
                continue;
            take_better(y, index, x + (v * p->width + u) * p->channels, p->channels, (int)(i * a->window[1] + j),
                        first);
            first = false;
        }
}

static void pool_windows(float *y, uint8_t *index, const float *x, const struct pool *p)
{
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++) {
            pool_window(y, index, x, p, row, column);
            y += p->channels;
            index += p->channels;
        }
}

RUNNER(run_max_pool)
{
    const int64_t *x_dim = call->node->input[0]->shape.dim, *y_dim = call->node->output[0]->shape.dim;
    const struct pool p = {x_dim[1], x_dim[2], y_dim[1], y_dim[2], x_dim[3], call->node->attributes};
    int64_t x_row = p.height * p.width * p.channels, y_row = p.rows * p.columns * p.channels;
    bool two_by_two = is_two_by_two(p.attributes);
    int64_t rows = cpu_rows(kernel, call);
    for (int64_t n = 0; n < rows; n++) {
        float *y = (float *)call->output[0] + n * y_row;
        uint8_t *index = (uint8_t *)call->output[1] + n * y_row;
        const float *x = (const float *)call->input[0] + n * x_row;
        if (two_by_two)
            pool_two_by_two(y, index, x, &p);
        else
            pool_windows(y, index, x, &p);
    }
}

MAKER(make_max_pool_gradient)
{
    (void)error;
    if (request->node->input[0]->type == TYPE_F32)
        out->kernel.run = entry->run;
    return PLIM_OK;
}

/* One window: dy goes where the index says, 0 to the other three. */
static void spread_to_four(float *dx, float *below, const float *dy, const uint8_t *index, int64_t channels)
{
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES) {
        vector d = vector_load(dy + c);
        vector_whole at = vector_load_bytes(index + c);
        vector_store(dx + c, vector_where(d, at, 0));
        vector_store(dx + channels + c, vector_where(d, at, 1));
        vector_store(below + c, vector_where(d, at, 2));
        vector_store(below + channels + c, vector_where(d, at, 3));
    }
    for (; c < channels; c++) {
        dx[c] = index[c] == 0 ? dy[c] : 0;
        dx[channels + c] = index[c] == 1 ? dy[c] : 0;
        below[c] = index[c] == 2 ? dy[c] : 0;
        below[channels + c] = index[c] == 3 ? dy[c] : 0;
    }
}

/* Every cell of dx is written once: those outside all windows get 0. */
static void spread_two_by_two(float *dx, const float *dy, const uint8_t *index, const struct pool *p)
{
    int64_t line = p->width * p->channels, rest = (p->width - 2 * p->columns) * p->channels;
    for (int64_t row = 0; row < p->rows; row++) {
        float *at = dx + 2 * row * line;
        for (int64_t column = 0; column < p->columns; column++) {
            spread_to_four(at, at + line, dy, index, p->channels);
            at += 2 * p->channels;
            dy += p->channels;
            index += p->channels;
        }
        memset(at, 0, (size_t)rest * sizeof *at);
        memset(at + line, 0, (size_t)rest * sizeof *at);
    }
    memset(dx + 2 * p->rows * line, 0, (size_t)((p->height - 2 * p->rows) * line) * sizeof *dx);
}

static void spread_cell(float *dx, const float *dy, const uint8_t *index, const struct pool *p, int64_t row,
                        int64_t column)
{
    const struct max_pool_attributes *a = p->attributes;
    int64_t top = row * a->stride[0] - a->pad[0], left = column * a->stride[1] - a->pad[2];
    for (int64_t c = 0; c < p->channels; c++) {
        int64_t v = top + index[c] / a->window[1], u = left + index[c] % a->window[1];
        if (v >= 0 && v < p->height && u >= 0 && u < p->width)
            dx[(v * p->width + u) * p->channels + c] += dy[c];
    }
}

static void spread_windows(float *dx, const float *dy, const uint8_t *index, const struct pool *p)
{
    memset(dx, 0, (size_t)(p->height * p->width * p->channels) * sizeof *dx);
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++) {
            spread_cell(dx, dy, index, p, row, column);
            dy += p->channels;
            index += p->channels;
        }
}

RUNNER(run_max_pool_gradient)
{
    const struct max_pool_gradient_attributes *attributes = call->node->attributes;
    const int64_t *x_dim = call->node->output[0]->shape.dim, *y_dim = call->node->input[0]->shape.dim;
    const struct pool p = {x_dim[1], x_dim[2], y_dim[1], y_dim[2], x_dim[3], &attributes->pool};
    int64_t x_row = p.height * p.width * p.channels, y_row = p.rows * p.columns * p.channels;
    bool two_by_two = is_two_by_two(p.attributes);
    int64_t rows = cpu_rows(kernel, call);
    for (int64_t n = 0; n < rows; n++) {
        float *dx = (float *)call->output[0] + n * x_row;
        const float *dy = (const float *)call->input[0] + n * y_row;
        const uint8_t *index = (const uint8_t *)call->input[1] + n * y_row;
        if (two_by_two)
            spread_two_by_two(dx, dy, index, &p);
        else
            spread_windows(dx, dy, index, &p);
    }
}
