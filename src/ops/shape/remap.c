/* remap.c - slice, pad, tile, repeat, roll, resize_nearest: places that are functions of an axis each. */
#include "ops/shape/remap.h"

#include <math.h>

#include "ops/helpers.h"

/* ---- rules of an axis ---------------------------------------------------- */

static int64_t from_keep(const struct axis_map *map, int64_t extent, int64_t i)
{
    (void)map, (void)extent;
    return i;
}

static int64_t from_slice(const struct axis_map *map, int64_t extent, int64_t i)
{
    (void)extent;
    return map->begin + i * map->step;
}

static int64_t from_pad(const struct axis_map *map, int64_t extent, int64_t i)
{
    i -= map->begin;
    return i < extent ? i : -1;
}

static int64_t from_reflect(const struct axis_map *map, int64_t extent, int64_t i)
{
    i -= map->begin;
    return i < 0 ? -i : i < extent ? i : 2 * extent - 2 - i;
}

static int64_t from_symmetric(const struct axis_map *map, int64_t extent, int64_t i)
{
    i -= map->begin;
    return i < 0 ? -i - 1 : i < extent ? i : 2 * extent - 1 - i;
}

static int64_t from_tile(const struct axis_map *map, int64_t extent, int64_t i)
{
    (void)map;
    return i % extent;
}

static int64_t from_repeat(const struct axis_map *map, int64_t extent, int64_t i)
{
    (void)extent;
    return i / map->step;
}

static int64_t from_roll(const struct axis_map *map, int64_t extent, int64_t i)
{
    int64_t at = (i - map->begin % extent) % extent;
    return at < 0 ? at + extent : at;
}

/* In float32, as TensorFlow reckons. */
static int64_t from_nearest(const struct axis_map *map, int64_t extent, int64_t i)
{
    int64_t at = (int64_t)floorf(((float)i + 0.5f) * ((float)extent / (float)map->extent));
    return at < extent ? at : extent - 1;
}

static bool fits_keep(const struct axis_map *map, int64_t extent)
{
    return map->extent == extent;
}

static bool inside(int64_t i, int64_t extent)
{
    return i >= 0 && i < extent;
}

#define MOST_STEP ((int64_t)1 << 40) /* products of steps and extents stay whole numbers */

static bool fits_slice(const struct axis_map *map, int64_t extent)
{
    return map->step != 0 && map->step > -MOST_STEP && map->step < MOST_STEP && map->extent <= extent &&
           inside(map->begin, extent) && inside(map->begin + (map->extent - 1) * map->step, extent);
}

static bool fits_pad(const struct axis_map *map, int64_t extent)
{
    return map->begin >= 0 && map->extent - map->begin >= extent;
}

static bool fits_reflect(const struct axis_map *map, int64_t extent)
{
    return fits_pad(map, extent) && map->begin < extent && map->extent - map->begin - extent < extent;
}

static bool fits_symmetric(const struct axis_map *map, int64_t extent)
{
    return fits_pad(map, extent) && map->begin <= extent && map->extent - map->begin - extent <= extent;
}

static bool fits_tile(const struct axis_map *map, int64_t extent)
{
    return map->extent % extent == 0;
}

static bool fits_repeat(const struct axis_map *map, int64_t extent)
{
    return map->step > 0 && map->extent / map->step == extent && map->extent % map->step == 0;
}

static bool fits_always(const struct axis_map *map, int64_t extent)
{
    return map->extent < 1 << 24 && extent < 1 << 24;
}

static const struct {
    int64_t (*from)(const struct axis_map *map, int64_t extent, int64_t i);
    bool (*fits)(const struct axis_map *map, int64_t extent);
} rules[AXIS_RULES] = {
    [AXIS_KEEP] = {from_keep, fits_keep},
    [AXIS_SLICE] = {from_slice, fits_slice},
    [AXIS_PAD] = {from_pad, fits_pad},
    [AXIS_REFLECT] = {from_reflect, fits_reflect},
    [AXIS_SYMMETRIC] = {from_symmetric, fits_symmetric},
    [AXIS_TILE] = {from_tile, fits_tile},
    [AXIS_REPEAT] = {from_repeat, fits_repeat},
    [AXIS_ROLL] = {from_roll, fits_keep},
    [AXIS_NEAREST] = {from_nearest, fits_always},
};

int64_t axis_from(const struct axis_map *map, int64_t extent, int64_t i)
{
    int64_t at = rules[map->rule].from(map, extent, i);
    return at < 0 ? -1 : at;
}

/* ---- what the ops share -------------------------------------------------- */

static plim_status check_axes(const struct node *node, const struct remap_attributes *attributes,
                              const struct shape *shape, plim_error *error)
{
    for (int axis = 0; axis < shape->rank; axis++) {
        const struct axis_map *map = &attributes->axis[axis];
        bool known = map->rule >= 0 && map->rule < AXIS_RULES && map->extent > 0 && (axis || map->rule == AXIS_KEEP);
        if (!known || !rules[map->rule].fits(map, shape->dim[axis]))
            return misfit(node, error, "axis %d of %lld cannot become one of %lld (from %lld by %lld)", axis,
                          (long long)shape->dim[axis], (long long)map->extent, (long long)map->begin,
                          (long long)map->step);
    }
    return PLIM_OK;
}

static plim_status remap_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct remap_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    struct shape shape = x->shape;
    TRY(check_axes(node, attributes, &shape, error));
    for (int axis = 0; axis < shape.rank; axis++)
        shape.dim[axis] = attributes->axis[axis].extent;
    return output_of(graph, node, 0, x->type, shape, x->batched);
}

/* Where element i of a row of the output comes from in a row of the input; -1: from outside. */
static int64_t place_from(const struct remap_attributes *attributes, const struct shape *to, const struct shape *from,
                          int64_t i)
{
    int64_t place = 0, step = 1;
    for (int axis = to->rank - 1; axis > 0; axis--) {
        int64_t at = axis_from(&attributes->axis[axis], from->dim[axis], i % to->dim[axis]);
        if (at < 0)
            return -1;
        place += at * step;
        step *= from->dim[axis];
        i /= to->dim[axis];
    }
    return place;
}

static void remap_reference(const struct call *call)
{
    const struct remap_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0], *y = call->node->output[0];
    int64_t rows = call_rows(call, y), from = shape_row(&x->shape), to = shape_row(&y->shape);
    for (int64_t n = 0; n < rows; n++) {
        for (int64_t i = 0; i < to; i++) {
            int64_t place = place_from(attributes, &y->shape, &x->shape, i);
            set(call, 0, n * to + i, place < 0 ? attributes->value : get(call, 0, n * from + place));
        }
    }
}

static void remap_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                       struct tensor **d_input)
{
    const struct remap_attributes *attributes = node->attributes;
    struct remap_gradient_attributes back = {.forward = *attributes, .input = node->input[0]->shape};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_remap_gradient, d_output, 1, &back, sizeof(back));
}

#define REMAP_OP(word, whole)                                                                                          \
    const struct op op_##word = {                                                                                      \
        .name = #word,                                                                                                 \
        .inputs = 1,                                                                                                   \
        .outputs = 1,                                                                                                  \
        .attributes_bytes = sizeof(struct remap_attributes),                                                           \
        .infer = remap_infer,                                                                                          \
        .gradient = remap_back,                                                                                        \
        .hands_on = whole,                                                                                             \
        .cut = cut_elementwise,                                                                                        \
        .reference = remap_reference,                                                                                  \
    }

REMAP_OP(slice, NULL);
REMAP_OP(pad, NULL);
REMAP_OP(tile, hands_on_always);
REMAP_OP(repeat, hands_on_always);
REMAP_OP(roll, hands_on_always);
REMAP_OP(resize_nearest, NULL);

/* ---- remap_gradient: dx[from(i)] += dy[i] -------------------------------- */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct remap_gradient_attributes *attributes = node->attributes;
    const struct tensor *dy = node->input[0];
    TRY(need_real(node, 0, error));
    TRY(check_axes(node, &attributes->forward, &attributes->input, error));
    bool fits = dy->shape.rank == attributes->input.rank;
    for (int axis = 0; fits && axis < dy->shape.rank; axis++)
        fits = attributes->forward.axis[axis].extent == dy->shape.dim[axis];
    if (!fits)
        return misfit(node, error, "the gradient has another shape than the output had");
    return output_of(graph, node, 0, dy->type, attributes->input, dy->batched);
}

static void scatter_back(const struct scatter *scatter)
{
    const struct call *call = scatter->call;
    const struct remap_gradient_attributes *attributes = call->node->attributes;
    const struct tensor *dy = call->node->input[0], *dx = call->node->output[0];
    int64_t rows = call_rows(call, dx), from = shape_row(&dy->shape), to = shape_row(&dx->shape);
    for (int64_t n = 0; n < rows; n++) {
        for (int64_t i = 0; i < from; i++) {
            int64_t place = place_from(&attributes->forward, &dy->shape, &dx->shape, i);
            if (place >= 0)
                scatter_add(scatter, n * to + place, get(call, 0, n * from + i));
        }
    }
}

static void remap_gradient_reference(const struct call *call)
{
    scatter_sums(call, NULL, scatter_back);
}

const struct op op_remap_gradient = {
    OP_HEAD(remap_gradient, 1, 1, gradient_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct remap_gradient_attributes),
    .no_gradient = NO_SECOND,
};

/* ---- builders ------------------------------------------------------------ */

struct tensor *remap(struct graph *graph, const struct op *op, struct tensor *x, const struct axis_map *axis, int count,
                     double value)
{
    struct remap_attributes attributes = {.value = value};
    if (!x)
        return NULL;
    for (int i = 0; i < x->shape.rank; i++) {
        if (i < count && axis[i].rule != AXIS_KEEP)
            attributes.axis[i] = axis[i];
        else
            attributes.axis[i].extent = x->shape.dim[i];
    }
    return graph_add(graph, op, &x, 1, &attributes, sizeof(attributes));
}

static struct tensor *remap_one(struct graph *graph, const struct op *op, struct tensor *x, int axis,
                                struct axis_map map, double value)
{
    struct axis_map maps[MOST_AXES] = {{0}};
    if (!x)
        return NULL;
    if (axis < 1 || axis >= x->shape.rank) {
        graph_fail(graph, PLIM_BAD_MODEL, "%s: there is no axis %d that could change", op->name, axis);
        return NULL;
    }
    maps[axis] = map;
    return remap(graph, op, x, maps, MOST_AXES, value);
}

struct tensor *slice_axis(struct graph *graph, struct tensor *x, int axis, int64_t begin, int64_t size, int64_t step)
{
    return remap_one(graph, &op_slice, x, axis, (struct axis_map){AXIS_SLICE, size, begin, step}, 0);
}

/* Of the axis as x has it; an impossible axis is refused below. */
static int64_t extent_of(const struct tensor *x, int axis)
{
    return x && axis >= 0 && axis < x->shape.rank ? x->shape.dim[axis] : 1;
}

struct tensor *reverse_axis(struct graph *graph, struct tensor *x, int axis)
{
    int64_t extent = extent_of(x, axis);
    return slice_axis(graph, x, axis, extent - 1, extent, -1);
}

struct tensor *roll_axis(struct graph *graph, struct tensor *x, int axis, int64_t by)
{
    return remap_one(graph, &op_roll, x, axis, (struct axis_map){AXIS_ROLL, extent_of(x, axis), by, 0}, 0);
}

struct tensor *tile_axis(struct graph *graph, struct tensor *x, int axis, int64_t times)
{
    return remap_one(graph, &op_tile, x, axis, (struct axis_map){AXIS_TILE, extent_of(x, axis) * times, 0, 0}, 0);
}

struct tensor *repeat_axis(struct graph *graph, struct tensor *x, int axis, int64_t times)
{
    return remap_one(graph, &op_repeat, x, axis, (struct axis_map){AXIS_REPEAT, extent_of(x, axis) * times, 0, times},
                     0);
}

struct tensor *pad_axis(struct graph *graph, struct tensor *x, int axis, const int64_t width[2], enum axis_rule rule,
                        double value)
{
    struct axis_map map = {rule, width[0] + extent_of(x, axis) + width[1], width[0], 0};
    return remap_one(graph, &op_pad, x, axis, map, value);
}
