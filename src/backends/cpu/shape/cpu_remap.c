/* cpu_remap.c - slice, pad, tile, repeat, roll, resize_nearest and their gradient.

   The axes' places are tables, made once a kernel; axes at the end that stay as they are make one block. A gradient
   whose places are all different is a copy the other way round; else blocks are added up in the order of dy. */
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

struct remap {
    int last;                  /* axis above the block; 0: the whole row is one block */
    int64_t extent[MOST_AXES]; /* of the output (of dy where blocks are added up) */
    int64_t *place[MOST_AXES]; /* byte offset of each place in the other tensor, or -1: outside */
    int64_t *run;              /* of the last axis: so many places from here on lie one after another */
    bool scattered;            /* runs of the last axis are short: element by element */
    int64_t block;             /* bytes */
    int64_t in_row, out_row;   /* bytes */
    uint8_t value[8];          /* what is outside, as one element */
    int64_t element;           /* bytes of one */
};

/* ---- making ---------------------------------------------------------------- */

static bool same_everywhere(const struct axis_map *map, int64_t extent)
{
    if (map->extent != extent)
        return false;
    for (int64_t i = 0; i < extent; i++)
        if (axis_from(map, extent, i) != i)
            return false;
    return true;
}

/* Places of `inner` as seen from `outer`; false where two of `inner` go to one of `outer`. */
static bool invert(int64_t *place, const struct axis_map *map, int64_t extent)
{
    bool once = true;
    for (int64_t i = 0; i < extent; i++)
        place[i] = -1;
    for (int64_t i = 0; i < map->extent; i++) {
        int64_t at = axis_from(map, extent, i);
        once &= at < 0 || place[at] < 0;
        if (at >= 0)
            place[at] = i;
    }
    return once;
}

static bool fill_places(struct remap *remap, const struct remap_attributes *attributes, const struct shape *from,
                        int axis, bool inverse)
{
    const struct axis_map *map = &attributes->axis[axis];
    if (inverse)
        return invert(remap->place[axis], map, from->dim[axis]);
    for (int64_t i = 0; i < map->extent; i++)
        remap->place[axis][i] = axis_from(map, from->dim[axis], i);
    return true;
}

static void find_runs(struct remap *remap)
{
    int64_t extent = remap->extent[remap->last], runs = 1;
    const int64_t *place = remap->place[remap->last];
    remap->run[extent - 1] = 1;
    for (int64_t i = extent - 2; i >= 0; i--) {
        bool on = place[i] < 0 ? place[i + 1] < 0 : place[i + 1] == place[i] + remap->block;
        remap->run[i] = on ? remap->run[i + 1] + 1 : 1;
        runs += !on;
    }
    remap->scattered = remap->block == remap->element && extent < 8 * runs;
}

static struct remap *remap_take(struct arena *arena, const struct shape *to, int last)
{
    struct remap *remap = arena_take(arena, sizeof *remap);
    for (int axis = 1; remap && axis <= last; axis++) {
        remap->extent[axis] = to->dim[axis];
        remap->place[axis] = arena_array(arena, (size_t)to->dim[axis], sizeof(int64_t));
        if (!remap->place[axis])
            return NULL;
    }
    if (remap && last && !(remap->run = arena_array(arena, (size_t)to->dim[last], sizeof(int64_t))))
        return NULL;
    return remap;
}

/* to: whose places are gone through; from: whose are looked up; x: the input of the forward op (from, or to when
   inverse). NULL: no memory. *once: false when an inverse does not exist. */
static struct remap *remap_make(bool *once, struct arena *arena, const struct remap_attributes *attributes,
                                const struct shape *to, const struct shape *from, enum type type, bool inverse)
{
    const struct shape *x = inverse ? to : from;
    int64_t element = (int64_t)type_bytes(type), step = element;
    int last = to->rank - 1;
    while (last > 0 && same_everywhere(&attributes->axis[last], x->dim[last]))
        step *= to->dim[last--];
    struct remap *remap = remap_take(arena, to, last);
    if (!remap)
        return NULL;
    remap->last = last;
    remap->block = step;
    remap->element = element;
    for (int axis = last; axis > 0; step *= from->dim[axis--]) {
        if (!fill_places(remap, attributes, x, axis, inverse))
            *once = false;
        for (int64_t i = 0; i < to->dim[axis]; i++)
            if (remap->place[axis][i] >= 0)
                remap->place[axis][i] *= step;
    }
    if (last)
        find_runs(remap);
    remap->in_row = shape_row(from) * element;
    remap->out_row = shape_row(to) * element;
    element_set(remap->value, type, 0, inverse ? 0 : attributes->value);
    return remap;
}

/* ---- copying --------------------------------------------------------------- */

static void put_value(const struct remap *remap, uint8_t *y, int64_t bytes)
{
    static const uint8_t zeros[8] = {0};
    if (memcmp(remap->value, zeros, sizeof zeros) == 0) {
        memset(y, 0, (size_t)bytes);
        return;
    }
    for (int64_t i = 0; i < bytes; i += remap->element)
        memcpy(y + i, remap->value, (size_t)remap->element);
}

#define PICK(type)                                                                                                     \
    do {                                                                                                               \
        type outside;                                                                                                  \
        memcpy(&outside, remap->value, sizeof outside);                                                                \
        for (int64_t i = 0; i < extent; i++)                                                                           \
            ((type *)(void *)y)[i] = place[i] < 0 ? outside : *(const type *)(const void *)(x + place[i]);             \
    } while (0)

static void pick(const struct remap *remap, uint8_t *y, const uint8_t *x)
{
    int64_t extent = remap->extent[remap->last];
    const int64_t *place = remap->place[remap->last];
    if (remap->element == 4)
        PICK(uint32_t);
    else if (remap->element == 8)
        PICK(uint64_t);
    else if (remap->element == 2)
        PICK(uint16_t);
    else
        PICK(uint8_t);
}

static void copy_runs(const struct remap *remap, uint8_t *y, const uint8_t *x)
{
    const int64_t *place = remap->place[remap->last];
    for (int64_t i = 0; i < remap->extent[remap->last]; i += remap->run[i]) {
        int64_t bytes = remap->run[i] * remap->block;
        if (place[i] < 0)
            put_value(remap, y + i * remap->block, bytes);
        else
            memcpy(y + i * remap->block, x + place[i], (size_t)bytes);
    }
}

static void copy_axis(const struct remap *remap, int axis, uint8_t *y, int64_t bytes, const uint8_t *x)
{
    if (axis == remap->last) {
        if (remap->scattered)
            pick(remap, y, x);
        else
            copy_runs(remap, y, x);
        return;
    }
    bytes /= remap->extent[axis];
    for (int64_t i = 0; i < remap->extent[axis]; i++, y += bytes) {
        if (remap->place[axis][i] < 0)
            put_value(remap, y, bytes);
        else
            copy_axis(remap, axis + 1, y, bytes, x + remap->place[axis][i]);
    }
}

static void run_remap(const struct kernel *kernel, const struct call *call)
{
    const struct remap *remap = cpu_kernel_of(kernel)->own;
    const uint8_t *x = call->input[0];
    uint8_t *y = call->output[0];
    int64_t rows = cpu_rows(kernel, call);
    if (!remap->last) {
        memcpy(y, x, (size_t)(rows * remap->out_row));
        return;
    }
    for (int64_t n = 0; n < rows; n++)
        copy_axis(remap, 1, y + n * remap->out_row, remap->out_row, x + n * remap->in_row);
}

MAKER(make_remap)
{
    struct arena *arena = &request->backend->arena;
    bool once = true;
    out->own = remap_make(&once, arena, node->attributes, &node->output[0]->shape, &node->input[0]->shape,
                          node->output[0]->type, false);
    out->kernel.run = run_remap;
    return out->own || cpu_refused(request);
}

/* ---- adding up ------------------------------------------------------------- */

static void add_block(float *restrict to, const float *restrict d, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += d[i];
}

/* Here the places are those of dx, and what is gone through is dy. */
static void add_axis(const struct remap *remap, int axis, const uint8_t *dy, int64_t bytes, uint8_t *dx)
{
    if (axis >= MOST_AXES) /* never; the compiler unrolls the recursion and wants to see an end */
        return;
    bytes /= remap->extent[axis];
    for (int64_t i = 0; i < remap->extent[axis]; i++, dy += bytes) {
        int64_t place = remap->place[axis][i];
        if (place < 0)
            continue;
        if (axis < remap->last)
            add_axis(remap, axis + 1, dy, bytes, dx + place);
        else if (bytes == sizeof(float))
            *(float *)(void *)(dx + place) += *(const float *)(const void *)dy;
        else
            add_block((void *)(dx + place), (const void *)dy, bytes / (int64_t)sizeof(float));
    }
}

static void run_add_up(const struct kernel *kernel, const struct call *call)
{
    const struct remap *remap = cpu_kernel_of(kernel)->own;
    const uint8_t *dy = call->input[0];
    uint8_t *dx = call->output[0];
    int64_t rows = cpu_rows(kernel, call);
    for (int64_t n = 0; n < rows; n++, dx += remap->in_row, dy += remap->out_row) {
        memset(dx, 0, (size_t)remap->in_row);
        add_axis(remap, 1, dy, remap->out_row, dx);
    }
}

MAKER(make_remap_gradient)
{
    const struct remap_gradient_attributes *attributes = node->attributes;
    const struct shape *dy = &node->input[0]->shape, *dx = &node->output[0]->shape;
    struct arena *arena = &request->backend->arena;
    bool once = true;
    if (node->input[0]->type != TYPE_F32)
        return false;
    struct remap *remap = remap_make(&once, arena, &attributes->forward, dx, dy, TYPE_F32, true);
    out->kernel.run = run_remap;
    if (remap && !once) {
        remap = remap_make(&once, arena, &attributes->forward, dy, dx, TYPE_F32, false);
        out->kernel.run = run_add_up;
    }
    out->own = remap;
    return remap || cpu_refused(request);
}
