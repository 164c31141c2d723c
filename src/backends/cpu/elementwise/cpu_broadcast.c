/* cpu_broadcast.c - operands that broadcast, walked by the widest runs they have in common. */
#include "backends/cpu/elementwise/cpu_broadcast.h"
#include "ops/broadcast.h"

#define BLOCK  512 /* elements laid out at once */
#define NARROW 64  /* shorter lines are laid out several at once */

struct axis {
    int64_t dim; /* of axis 0: elements a row of the slice */
    int64_t step[MOST_BROADCAST];
    int64_t below; /* elements of the output that lie behind one step along it */
};

struct broadcast_axes {
    int operands, count;
    struct axis axis[MOST_AXES];
    enum type in[MOST_BROADCAST], out; /* f32, a small float, or a truth value: a byte an element */
    bool straight;                     /* all of it is one line of f32, as it lies */
};

/* Axes that every operand walks alike are one. */
static void add_axis(struct broadcast_axes *out, int64_t dim, const struct broadcast *broadcast, int k)
{
    struct axis *above = out->count ? &out->axis[out->count - 1] : NULL;
    bool merges = above != NULL;
    for (int i = 0; merges && i < broadcast->count; i++)
        merges = above->step[i] == dim * broadcast->step[i][k];
    struct axis *axis = merges ? above : &out->axis[out->count++];
    axis->dim = merges ? axis->dim * dim : dim;
    for (int i = 0; i < broadcast->count; i++)
        axis->step[i] = broadcast->step[i][k];
}

/* Axis 0 begins with the slice's rows, which count 1 each. */
static void find_axes(struct broadcast_axes *out, const struct broadcast *broadcast)
{
    int64_t below = 1;
    add_axis(out, 1, broadcast, 0);
    for (int k = 1; k < broadcast->shape.rank; k++)
        if (broadcast->shape.dim[k] > 1)
            add_axis(out, broadcast->shape.dim[k], broadcast, k);
    for (int a = out->count - 1; a >= 0; a--) {
        out->axis[a].below = below;
        below *= out->axis[a].dim;
    }
}

static bool is_truth(enum type type)
{
    return type == TYPE_BOOL || type == TYPE_U8;
}

static bool broadcast_takes(const struct tensor *tensor, enum type *type)
{
    *type = tensor->type;
    return is_truth(*type) || *type == TYPE_F32 || cpu_small_type(*type);
}

MAKER(make_broadcast)
{
    struct broadcast broadcast;
    struct broadcast_axes axes = {.operands = node->input_count};
    bool fits = broadcast_takes(node->output[0], &axes.out) && node->output[0]->type != TYPE_U8;
    for (int i = 0; i < node->input_count; i++)
        fits = fits && broadcast_takes(node->input[i], &axes.in[i]);
    if (!fits || !broadcast_of(&broadcast, (const struct tensor *const *)node->input, node->input_count))
        return false;
    find_axes(&axes, &broadcast);
    axes.straight = axes.count == 1 && axes.out == TYPE_F32;
    for (int i = 0; i < axes.operands; i++)
        axes.straight = axes.straight && axes.in[i] == TYPE_F32 && axes.axis[0].step[i] == 1;
    struct broadcast_axes *own = arena_take(&request->backend->arena, sizeof *own);
    if (!own)
        return cpu_refused(request);
    *own = axes;
    out->own = own;
    out->kernel.scratch_bytes = axes.straight ? 0 : (MOST_BROADCAST + 1) * BLOCK * sizeof(float);
    return true;
}

static void from_truth(float *restrict to, const uint8_t *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
}

static void to_truth(uint8_t *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] != 0;
}

/* One line. */
static void lay_line(float *to, const void *from, enum type type, int64_t count, int64_t along)
{
    const float *real = from;
    const uint8_t *byte = from;
    if (cpu_small_type(type) && along == 1) {
        VARIANT(widen)(to, from, type, count);
    } else if (cpu_small_type(type)) {
        float one = 0;
        for (int64_t i = 0; i < count; i++) {
            if (i == 0 || along)
                VARIANT(widen)(&one, (const uint16_t *)from + i * along, type, 1);
            to[i] = one;
        }
    } else if (is_truth(type) && along == 1) {
        from_truth(to, byte, count);
    } else if (is_truth(type)) {
        for (int64_t i = 0; i < count; i++)
            to[i] = byte[i * along];
    } else if (along == 0) {
        for (int64_t i = 0; i < count; i++)
            to[i] = real[0];
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = real[i * along];
    }
}

/* `lines` of `count` elements, `down` and `along` apart, one after another. */
static void lay_out(float *to, const char *from, enum type type, int64_t lines, int64_t count, int64_t down,
                    int64_t along)
{
    if (along == 1 && down == count) { /* as they lie */
        count *= lines;
        lines = 1;
    }
    for (int64_t line = 0; line < lines; line++)
        lay_line(to + line * count, from + line * down * (int64_t)type_bytes(type), type, count, along);
}

struct plane {
    const struct broadcast_axes *axes;
    const struct call *call;
    broadcast_loop *loop;
    int64_t at[MOST_BROADCAST + 1]; /* first element of each operand, then of the output */
    int64_t lines, count;           /* lines of so many elements */
    int64_t down[MOST_BROADCAST], along[MOST_BROADCAST];
    int64_t laid[MOST_BROADCAST]; /* lines that lie ready, of those that every line shares */
};

/* Lines [line, line + lines) from column on, `count` of each. */
static void run_block(struct plane *plane, int64_t line, int64_t lines, int64_t column, int64_t count)
{
    const struct broadcast_axes *axes = plane->axes;
    float *scratch = plane->call->scratch;
    const float *in[MOST_BROADCAST] = {0};
    for (int i = 0; i < axes->operands; i++) {
        int64_t down = plane->down[i], along = plane->along[i];
        int64_t first = plane->at[i] + line * down + column * along;
        const char *from = (const char *)plane->call->input[i] + first * (int64_t)type_bytes(axes->in[i]);
        float *room = scratch + i * BLOCK;
        bool lies = axes->in[i] == TYPE_F32 && along == 1 && (lines == 1 || down == count);
        in[i] = lies ? (const float *)from : room;
        if (lies || plane->laid[i] >= lines)
            continue;
        lay_out(room, from, axes->in[i], lines, count, down, along);
        /* The same for every line, and for every column. */
        if (down == 0 && (along == 0 || count == plane->count))
            plane->laid[i] = lines;
    }
    int64_t to = plane->at[MOST_BROADCAST] + line * plane->count + column;
    char *out = (char *)plane->call->output[0] + to * (int64_t)type_bytes(axes->out);
    float *made = axes->out == TYPE_F32 ? (float *)out : scratch + MOST_BROADCAST * BLOCK;
    plane->loop(made, in[0], in[1], in[2], lines * count, plane->call->node->attributes);
    if (cpu_small_type(axes->out))
        VARIANT(narrow)(out, made, axes->out, lines * count);
    else if (axes->out != TYPE_F32)
        to_truth((uint8_t *)out, made, lines * count);
}

static bool lies_straight(const struct plane *plane)
{
    bool straight = plane->axes->out == TYPE_F32;
    for (int i = 0; i < plane->axes->operands; i++)
        straight = straight && plane->axes->in[i] == TYPE_F32 && plane->along[i] == 1;
    return straight;
}

static void run_plane(struct plane *plane)
{
    int64_t together = plane->count < NARROW ? BLOCK / plane->count : 1;
    int64_t wide = lies_straight(plane) ? plane->count : BLOCK;
    for (int i = 0; i < plane->axes->operands; i++)
        plane->laid[i] = 0;
    if (plane->count < NARROW)
        for (int64_t line = 0; line < plane->lines; line += together)
            run_block(plane, line, line + together < plane->lines ? together : plane->lines - line, 0, plane->count);
    else
        for (int64_t line = 0; line < plane->lines; line++)
            for (int64_t column = 0; column < plane->count; column += wide)
                run_block(plane, line, 1, column, column + wide < plane->count ? wide : plane->count - column);
}

/* `above` axes lie above the plane; the first of them is `extent` long. */
static void run_axes(struct plane plane, const struct axis *here, int above, int64_t extent)
{
    if (above <= 0) {
        run_plane(&plane);
        return;
    }
    for (int64_t i = 0; i < extent; i++) {
        run_axes(plane, here + 1, above - 1, here[1].dim);
        for (int k = 0; k < plane.axes->operands; k++)
            plane.at[k] += here->step[k];
        plane.at[MOST_BROADCAST] += here->below;
    }
}

void VARIANT(broadcast_walk)(const struct kernel *kernel, const struct call *call, broadcast_loop *loop)
{
    const struct broadcast_axes *axes = cpu_kernel_of(kernel)->own;
    int64_t rows = cpu_rows(kernel, call) * axes->axis[0].dim;
    struct plane plane = {.axes = axes, .call = call, .loop = loop};
    int last = axes->count - 1;
    if (axes->straight || rows == 0) {
        loop(call->output[0], call->input[0], call->input[1], call->input[2], rows, call->node->attributes);
        return;
    }
    plane.count = last ? axes->axis[last].dim : rows;
    plane.lines = last < 1 ? 1 : last == 1 ? rows : axes->axis[last - 1].dim;
    for (int i = 0; i < axes->operands; i++) {
        plane.along[i] = axes->axis[last].step[i];
        plane.down[i] = last ? axes->axis[last - 1].step[i] : 0;
    }
    run_axes(plane, axes->axis, axes->count - 2, rows);
}
