/* cpu_sum_to.c - sums over what an operand was broadcast along, of x or of x times a factor.

   Axes of x are kept or summed; neighbours of a kind are one axis. The last two
   are a plane: either columns are summed (the last is kept), or lines. Sums go in blocks of
   CHUNK rows, so that long ones do not lose digits; the order is a function of the shape and the slice. */
#include "backends/cpu/cpu_own.h"
#include "ops/broadcast.h"

#define CHUNK  256
#define NARROW 256 /* shorter rows are summed several at once */

struct axis {
    int64_t dim; /* of axis 0: elements a row of the slice */
    bool kept;
    int64_t below, made; /* elements of x and of the output that lie behind one step along it */
};

struct sums {
    int axes;
    struct axis axis[MOST_AXES + 1];
    bool adds; /* a SUM output: call->add */
};

static void add_axis(struct sums *out, int64_t dim, bool kept)
{
    if (out->axes && out->axis[out->axes - 1].kept == kept)
        out->axis[out->axes - 1].dim *= dim;
    else
        out->axis[out->axes++] = (struct axis){.dim = dim, .kept = kept};
}

/* Axis 0 begins with the slice's rows, which count 1 each. */
static void find_axes(struct sums *out, const struct node *node)
{
    const struct tensor *x = node->input[0], *y = node->output[0];
    struct broadcast broadcast;
    int64_t below = 1, made = 1;
    broadcast_of(&broadcast, (const struct tensor *[]){x, y}, 2);
    for (int k = 0; k < x->shape.rank; k++) {
        bool kept = broadcast.step[1][k] != 0;
        if (k == 0)
            add_axis(out, 1, kept);
        else if (x->shape.dim[k] > 1)
            add_axis(out, x->shape.dim[k], kept);
    }
    /* A plane has two axes of different kinds. */
    if (out->axes == 1)
        out->axis[out->axes++] = (struct axis){.dim = 1, .kept = !out->axis[0].kept};
    for (int a = out->axes - 1; a >= 0; a--) {
        struct axis *axis = &out->axis[a];
        axis->below = below;
        axis->made = made;
        below *= axis->dim;
        made *= axis->kept ? axis->dim : 1;
    }
}

MAKER(make_sum_to)
{
    const struct tensor *x = node->input[0], *y = node->output[0];
    if (x->type != TYPE_F32 || x->shape.rank < 1)
        return false;
    struct sums *own = arena_take(&request->backend->arena, sizeof *own);
    if (!own)
        return cpu_refused(request);
    *own = (struct sums){.adds = x->batched && !y->batched};
    find_axes(own, node);
    out->own = own;
    out->kernel.scratch_bytes = NARROW * sizeof(float);
    return true;
}

INLINE vector load_product(const float *x, const float *factor, int64_t at)
{
    vector v = vector_load(x + at);
    if (factor)
        v *= vector_load(factor + at);
    return v;
}

INLINE vector load_product_part(const float *x, const float *factor, int64_t at, int n)
{
    vector v = vector_load_part(x + at, n);
    if (factor)
        v *= vector_load_part(factor + at, n);
    return v;
}

/* One vector of columns over some rows. */
INLINE vector sum_column(const float *x, const float *factor, int64_t rows, int64_t step, int part)
{
    vector sum = vector_all(0);
    for (int64_t first = 0; first < rows; first += CHUNK) {
        int64_t end = first + CHUNK < rows ? first + CHUNK : rows;
        vector some = vector_all(0);
        for (int64_t row = first; row < end; row++)
            some +=
                part == LANES ? load_product(x, factor, row * step) : load_product_part(x, factor, row * step, part);
        sum += some;
    }
    return sum;
}

#define WIDE 4

/* to[count] = (add ? to : 0) + sum over rows of x[rows, count]; WIDE vectors at once. */
INLINE void sum_columns_of(float *to, const float *x, const float *factor, int64_t rows, int64_t count, bool add)
{
    int64_t i = 0;
    for (; i + WIDE * LANES <= count; i += WIDE * LANES) {
        vector sum[WIDE], some[WIDE];
        UNROLL
        for (int k = 0; k < WIDE; k++)
            sum[k] = add ? vector_load(to + i + k * LANES) : vector_all(0);
        for (int64_t first = 0; first < rows; first += CHUNK) {
            int64_t end = first + CHUNK < rows ? first + CHUNK : rows;
            UNROLL
            for (int k = 0; k < WIDE; k++)
                some[k] = vector_all(0);
            for (int64_t row = first; row < end; row++)
                UNROLL
            for (int k = 0; k < WIDE; k++)
                some[k] += load_product(x, factor, row * count + i + k * LANES);
            UNROLL
            for (int k = 0; k < WIDE; k++)
                sum[k] += some[k];
        }
        UNROLL
        for (int k = 0; k < WIDE; k++)
            vector_store(to + i + k * LANES, sum[k]);
    }
    for (; i + LANES <= count; i += LANES) {
        vector sum = sum_column(x + i, factor ? factor + i : NULL, rows, count, LANES);
        if (add)
            sum += vector_load(to + i);
        vector_store(to + i, sum);
    }
    if (i < count) {
        int part = (int)(count - i);
        vector sum = sum_column(x + i, factor ? factor + i : NULL, rows, count, part);
        if (add)
            sum += vector_load_part(to + i, part);
        vector_store_part(to + i, sum, part);
    }
}

static void sum_columns(float *to, const float *x, const float *factor, int64_t rows, int64_t count, bool add,
                        float *scratch)
{
    int64_t together = NARROW / count;
    if (together < 2 || rows < 2 * together) {
        if (factor)
            sum_columns_of(to, x, factor, rows, count, add);
        else
            sum_columns_of(to, x, NULL, rows, count, add);
        return;
    }
    /* As rows of `together` rows, then those under one another. */
    int64_t wide = together * count, full = rows / together, left = rows - full * together, done = full * wide;
    if (factor)
        sum_columns_of(scratch, x, factor, full, wide, false);
    else
        sum_columns_of(scratch, x, NULL, full, wide, false);
    sum_columns_of(to, scratch, NULL, together, count, add);
    if (left)
        sum_columns_of(to, x + done, factor ? factor + done : NULL, left, count, true);
}

/* LANES x WIDE partial sums, then their sum. */
INLINE float sum_line(const float *x, const float *factor, int64_t count)
{
    float total = 0;
    for (int64_t first = 0; first < count; first += CHUNK * LANES) {
        int64_t end = first + CHUNK * LANES < count ? first + CHUNK * LANES : count, i = first;
        vector sum[WIDE];
        UNROLL
        for (int k = 0; k < WIDE; k++)
            sum[k] = vector_all(0);
        for (; i + WIDE * LANES <= end; i += WIDE * LANES)
            UNROLL
        for (int k = 0; k < WIDE; k++)
            sum[k] += load_product(x, factor, i + k * LANES);
        for (; i + LANES <= end; i += LANES)
            sum[0] += load_product(x, factor, i);
        if (i < end)
            sum[1] += load_product_part(x, factor, i, (int)(end - i));
        total += vector_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    return total;
}

static void sum_lines(float *to, const float *x, const float *factor, int64_t lines, int64_t count, bool add)
{
    for (int64_t line = 0; line < lines; line++) {
        int64_t at = line * count;
        float sum = factor ? sum_line(x + at, factor + at, count) : sum_line(x + at, NULL, count);
        to[line] = add ? to[line] + sum : sum;
    }
}

/* Where y, x and the factor are at the indices of the axes gone through so far. */
struct operands {
    float *to;
    const float *x, *factor;
    bool add;
};

/* Axis `axis` is `extent` long; `add` is by value: a kept axis above starts anew. */
static void run_axes(const struct sums *sums, int axis, int64_t extent, struct operands operands, float *scratch)
{
    const struct axis *here = &sums->axis[axis], *next = here + 1;
    if (axis == sums->axes - 2 && next->kept) {
        sum_columns(operands.to, operands.x, operands.factor, extent, next->dim, operands.add, scratch);
        return;
    }
    if (axis == sums->axes - 2) {
        sum_lines(operands.to, operands.x, operands.factor, extent, next->dim, operands.add);
        return;
    }
    for (int64_t i = 0; i < extent; i++) {
        run_axes(sums, axis + 1, next->dim, operands, scratch);
        operands.x += here->below;
        operands.factor = operands.factor ? operands.factor + here->below : NULL;
        operands.to += here->kept ? here->made : 0;
        operands.add |= !here->kept;
    }
}

RUNNER(run_sum_to)
{
    const struct sums *sums = cpu_kernel_of(kernel)->own;
    const struct tensor *x = call->node->input[0];
    struct cut cut;
    call->node->op->cut(&cut, call->node);
    /* Without a batch and with axis 0 summed there is one slice, of all rows. */
    int64_t rows = cut.input[0] == PART_CUT ? cpu_rows(kernel, call) : x->shape.dim[0];
    struct operands operands = {call->output[0], call->input[0], call->input[1], sums->adds && call->add};
    if (rows > 0)
        run_axes(sums, 0, rows * sums->axis[0].dim, operands, call->scratch);
}
