/* cpu_arrange.c - transpose by square tiles, concatenate by blocks. Any type: bytes are moved. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/gemm/gemm.h"
#include "ops/ops.h"

#define TILE 16

/* ---- transpose ------------------------------------------------------------- */

/* Output axes after the batch, neighbours that stay neighbours in one; steps are in elements. */
struct turn {
    int axes;
    int64_t extent[MOST_AXES], from[MOST_AXES], to[MOST_AXES];
    int across; /* the axis that is the input's last; axes - 1: it stays the last */
    int64_t row, element;
};

static void turn_fill(struct turn *turn, const struct transpose_attributes *attributes, const struct shape *x,
                      const struct shape *y)
{
    int64_t step[MOST_AXES], size = 1, before = -1;
    for (int axis = x->rank - 1; axis > 0; size *= x->dim[axis--])
        step[axis] = size;
    turn->row = size;
    for (int axis = 1; axis < y->rank; axis++) {
        int64_t from = attributes->axes[axis];
        if (y->dim[axis] == 1)
            continue;
        bool neighbour = turn->axes && step[before] == step[from] * y->dim[axis];
        if (!neighbour)
            turn->extent[turn->axes++] = 1;
        turn->extent[turn->axes - 1] *= y->dim[axis];
        turn->from[turn->axes - 1] = step[from];
        before = from;
    }
    size = 1;
    for (int axis = turn->axes - 1; axis >= 0; size *= turn->extent[axis--])
        turn->to[axis] = size;
    for (turn->across = turn->axes - 1; turn->across > 0 && turn->from[turn->across] != 1;)
        turn->across--;
}

/* y[a, b] = x[b, a], tile by tile. */
#define TURN_TILES(type)                                                                                               \
    do {                                                                                                               \
        const type *x = from;                                                                                          \
        type *y = to;                                                                                                  \
        for (int64_t a = 0; a < rows; a += TILE)                                                                       \
            for (int64_t b = 0; b < columns; b += TILE)                                                                \
                for (int64_t i = a; i < a + TILE && i < rows; i++)                                                     \
                    for (int64_t k = b; k < b + TILE && k < columns; k++)                                              \
                        y[i * y_step + k] = x[k * x_step + i];                                                         \
    } while (0)

static void turn_words(uint32_t *y, int64_t y_step, const uint32_t *x, int64_t x_step, int64_t rows, int64_t columns)
{
    int64_t whole_rows = rows - rows % LANES, whole_columns = columns - columns % LANES;
    for (int64_t a = 0; a < whole_rows; a += LANES)
        for (int64_t b = 0; b < whole_columns; b += LANES)
            transpose_lanes((float *)(void *)(y + a * y_step + b), y_step,
                            (const float *)(const void *)(x + b * x_step + a), x_step, LANES);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = i < whole_rows ? whole_columns : 0; k < columns; k++)
            y[i * y_step + k] = x[k * x_step + i];
}

static void turn_plane(const struct turn *turn, void *to, const void *from)
{
    int last = turn->axes - 1;
    int64_t rows = turn->extent[turn->across], columns = turn->extent[last];
    int64_t y_step = turn->to[turn->across], x_step = turn->from[last];
    if (turn->element == 4)
        turn_words(to, y_step, from, x_step, rows, columns);
    else if (turn->element == 8)
        TURN_TILES(uint64_t);
    else if (turn->element == 2)
        TURN_TILES(uint16_t);
    else
        TURN_TILES(uint8_t);
}

static void turn_axis(const struct turn *turn, int axis, uint8_t *y, const uint8_t *x)
{
    int last = turn->axes - 1;
    if (axis == last && turn->across == last)
        memcpy(y, x, (size_t)(turn->extent[last] * turn->element));
    else if (axis == last)
        turn_plane(turn, y, x);
    else if (axis == turn->across)
        turn_axis(turn, axis + 1, y, x);
    else
        for (int64_t i = 0; i < turn->extent[axis]; i++)
            turn_axis(turn, axis + 1, y + i * turn->to[axis] * turn->element, x + i * turn->from[axis] * turn->element);
}

RUNNER(run_transpose)
{
    const struct turn *turn = cpu_kernel_of(kernel)->own;
    int64_t rows = cpu_rows(kernel, call), row = turn->row * turn->element;
    const uint8_t *x = call->input[0];
    uint8_t *y = call->output[0];
    if (turn->axes < 2)
        memcpy(y, x, (size_t)(rows * row));
    else
        for (int64_t n = 0; n < rows; n++)
            turn_axis(turn, 0, y + n * row, x + n * row);
}

MAKER(make_transpose)
{
    struct turn *turn = arena_take(&request->backend->arena, sizeof *turn);
    if (!turn)
        return cpu_refused(request);
    turn->element = (int64_t)type_bytes(node->output[0]->type);
    turn_fill(turn, node->attributes, &node->input[0]->shape, &node->output[0]->shape);
    out->own = turn;
    return true;
}

/* ---- concatenate ----------------------------------------------------------- */

/* size[0]: elements of a row of y, size[1]: of y from the axis on, size[2]: bytes of an element. */
RUNNER(run_concatenate)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    const struct node *node = call->node;
    const struct concatenate_attributes *attributes = node->attributes;
    int64_t groups = cpu_rows(kernel, call) * (own->size[0] / own->size[1]), block[MOST_INPUTS], count = 0;
    const uint8_t *x[MOST_INPUTS];
    uint8_t *y = call->output[0];
    for (; count < node->input_count && node->input[count]; count++) {
        const struct tensor *from = node->input[count];
        int64_t extent = from->shape.dim[attributes->axis], whole = node->output[0]->shape.dim[attributes->axis];
        block[count] = own->size[1] / whole * extent * own->size[2];
        x[count] = call->input[count];
    }
    for (int64_t group = 0; group < groups; group++) {
        for (int64_t i = 0; i < count; i++) {
            memcpy(y, x[i], (size_t)block[i]);
            y += block[i];
            x[i] += block[i];
        }
    }
}

MAKER(make_concatenate)
{
    const struct concatenate_attributes *attributes = node->attributes;
    const struct tensor *y = node->output[0];
    out->size[0] = shape_row(&y->shape);
    out->size[1] = 1;
    for (int64_t axis = attributes->axis; axis < y->shape.rank; axis++)
        out->size[1] *= y->shape.dim[axis];
    out->size[2] = (int64_t)type_bytes(y->type);
    return true;
}
