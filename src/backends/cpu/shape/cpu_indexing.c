/* cpu_indexing.c - embedding, gather, scatter_add, one_hot, bucketize. Indices are read as int32 in small batches,
   -1 for what is no place. */
#include <math.h>

#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define INDICES 256 /* read at once */

/* Numbers first.. of an index tensor: those in [0, most) as they are, others as -1. */
static void read_indices(int32_t *out, const void *data, enum type type, int64_t first, int64_t count, int64_t most)
{
    switch (type) {
    case TYPE_I64: {
        const int64_t *from = (const int64_t *)data + first;
        for (int64_t i = 0; i < count; i++)
            out[i] = (uint64_t)from[i] < (uint64_t)most ? (int32_t)from[i] : -1;
        break;
    }
    case TYPE_I32: {
        const int32_t *from = (const int32_t *)data + first;
        for (int64_t i = 0; i < count; i++)
            out[i] = from[i] < most ? from[i] : -1;
        break;
    }
    case TYPE_F32: {
        const float *from = (const float *)data + first;
        for (int64_t i = 0; i < count; i++)
            out[i] = from[i] >= 0 && (double)from[i] < (double)most ? (int32_t)from[i] : -1;
        break;
    }
    default:
        for (int64_t i = 0; i < count; i++) {
            double index = element_get(data, type, first + i);
            out[i] = index >= 0 && index < (double)most ? (int32_t)index : -1;
        }
    }
}

/* Input `index` has places in an axis of `most`; the others are f32. */
static bool indexing_takes(const struct node *node, int index, int64_t most)
{
    for (int i = 0; i < node->input_count; i++)
        if (i != index && node->input[i]->type != TYPE_F32)
            return false;
    return node->output[0]->type == TYPE_F32 && most <= INT32_MAX;
}

static void put_nan(float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = NAN;
}

static void add_to(float *restrict to, const float *restrict d, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += d[i];
}

/* ---- embedding ------------------------------------------------------------- */

/* size[0]: ids of a sample, size[1]: elements of a row of the table, size[2]: its rows. */
RUNNER(run_embedding)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    int64_t count = cpu_rows(kernel, call) * own->size[0], width = own->size[1];
    const float *w = call->input[1];
    float *y = call->output[0];
    int32_t ids[INDICES];
    for (int64_t first = 0; first < count; first += INDICES) {
        int64_t some = count - first < INDICES ? count - first : INDICES;
        read_indices(ids, call->input[0], call->node->input[0]->type, first, some, own->size[2]);
        for (int64_t i = 0; i < some; i++, y += width) {
            if (ids[i] >= 0)
                memcpy(y, w + ids[i] * width, (size_t)width * sizeof(float));
            else
                put_nan(y, width);
        }
    }
}

MAKER(make_embedding)
{
    const struct tensor *w = node->input[1];
    out->size[0] = shape_row(&node->input[0]->shape);
    out->size[1] = w->shape.dim[1];
    out->size[2] = w->shape.dim[0];
    return indexing_takes(node, 0, w->shape.dim[0]);
}

/* Every slice goes through the ids: they are read once for all. */
PACKER(pack_ids)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    read_indices(pack, whole->input[0], whole->node->input[0]->type, 0, whole->count * own->size[0], own->size[2]);
}

RUNNER(run_embedding_gradient)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    int64_t count = call->count * own->size[0], width = own->size[1];
    uint32_t begin = (uint32_t)call->begin, rows = (uint32_t)(call->end - call->begin);
    const int32_t *ids = call->pack;
    const float *dy = call->input[1];
    float *dw = call->output[0];
    memset(dw, 0, (size_t)(rows * width) * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        uint32_t row = (uint32_t)ids[i] - begin; /* -1 is far outside */
        if (row < rows)
            add_to(dw + (int64_t)row * width, dy + i * width, width);
    }
}

MAKER(make_embedding_gradient)
{
    const struct tensor *dw = node->output[0];
    if (!indexing_takes(node, 0, dw->shape.dim[0]))
        return false;
    out->size[0] = shape_row(&node->input[0]->shape);
    out->size[1] = dw->shape.dim[1];
    out->size[2] = dw->shape.dim[0];
    cpu_set_pack(out, pack_ids, 1, (size_t)shape_count(&node->input[0]->shape) * sizeof(int32_t));
    return true;
}

/* ---- gather, scatter_add ---------------------------------------------------- */

/* size[0]: elements before the axis, size[1]: after it, size[2]: places of the index, size[3]: of what is looked in. */
static void make_lookup(struct cpu_kernel *out, const struct shape *indexed, int64_t axis, int64_t extent)
{
    out->size[0] = out->size[1] = 1;
    for (int i = 1; i < indexed->rank; i++)
        out->size[i < axis ? 0 : 1] *= i == axis ? 1 : indexed->dim[i];
    out->size[2] = indexed->dim[axis];
    out->size[3] = extent;
}

MAKER(make_gather)
{
    const struct gather_attributes *attributes = node->attributes;
    int64_t extent = node->input[0]->shape.dim[attributes->axis];
    make_lookup(out, &node->output[0]->shape, attributes->axis, extent);
    return indexing_takes(node, 1, extent);
}

MAKER(make_scatter_add)
{
    const struct scatter_attributes *attributes = node->attributes;
    make_lookup(out, &node->input[0]->shape, attributes->gather.axis, attributes->extent);
    return indexing_takes(node, 1, attributes->extent);
}

/* One index a run of `inner` elements. */
INLINE void look_up(float *x, float *y, const int32_t *index, int64_t count, int64_t inner, bool add)
{
    for (int64_t k = 0; k < count; k++, y += inner) {
        if (index[k] >= 0 && add)
            add_to(x + index[k] * inner, y, inner);
        else if (index[k] >= 0)
            memcpy(y, x + index[k] * inner, (size_t)inner * sizeof(float));
        else if (!add)
            put_nan(y, inner);
    }
}

/* One index an element: `count` of them from element `first` of the (axis, inner) plane on. */
INLINE void look_along(float *x, float *y, const int32_t *index, int64_t first, int64_t count, int64_t inner, bool add)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t place = index[i] * inner + (first + i) % inner;
        if (index[i] >= 0 && add)
            x[place] += y[i];
        else if (!add)
            y[i] = index[i] >= 0 ? x[place] : NAN;
    }
}

/* x: [rows, outer, extent, inner], y: [rows, outer, count, inner]; add: from y to x, else from x to y. */
INLINE void gather_or_scatter(const struct kernel *kernel, const struct call *call, float *x, float *y, bool along,
                              bool add)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    int64_t outer = own->size[0], inner = own->size[1], count = own->size[2], extent = own->size[3];
    int64_t rows = cpu_rows(kernel, call), plane = along ? count * inner : count;
    int32_t index[INDICES];
    enum type type = call->node->input[1]->type;
    for (int64_t n = 0; n < rows * outer; n++, x += extent * inner, y += count * inner) {
        for (int64_t first = 0; first < plane; first += INDICES) {
            int64_t some = plane - first < INDICES ? plane - first : INDICES;
            read_indices(index, call->input[1], type, (along ? n : n / outer) * plane + first, some, extent);
            if (along)
                look_along(x, y + first, index, first, some, inner, add);
            else
                look_up(x, y + first * inner, index, some, inner, add);
        }
    }
}

RUNNER(run_gather)
{
    const struct gather_attributes *attributes = call->node->attributes;
    gather_or_scatter(kernel, call, call->input[0], call->output[0], attributes->along, false);
}

RUNNER(run_scatter_add)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    const struct scatter_attributes *attributes = call->node->attributes;
    int64_t count = cpu_rows(kernel, call) * own->size[0] * own->size[1] * own->size[3];
    memset(call->output[0], 0, (size_t)count * sizeof(float));
    gather_or_scatter(kernel, call, call->output[0], call->input[0], attributes->gather.along, true);
}

/* ---- one_hot, bucketize ------------------------------------------------------ */

/* size[0]: vectors a sample, size[1]: indices a vector. */
RUNNER(run_one_hot)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    const struct one_hot_attributes *attributes = call->node->attributes;
    int64_t vectors = cpu_rows(kernel, call) * own->size[0], count = vectors * own->size[1], depth = attributes->depth;
    bool add = attributes->mode == ONE_HOT_COUNT;
    float *y = call->output[0];
    int32_t index[INDICES];
    memset(y, 0, (size_t)(vectors * depth) * sizeof(float));
    for (int64_t first = 0; first < count; first += INDICES) {
        int64_t some = count - first < INDICES ? count - first : INDICES;
        read_indices(index, call->input[0], call->node->input[0]->type, first, some, depth);
        for (int64_t i = 0; i < some; i++) {
            float *at = y + (first + i) / own->size[1] * depth + index[i];
            if (index[i] >= 0)
                *at = add ? *at + 1 : 1;
        }
    }
}

MAKER(make_one_hot)
{
    const struct one_hot_attributes *attributes = node->attributes;
    if (attributes->depth > INT32_MAX)
        return false;
    out->size[0] = shape_row(&node->output[0]->shape) / attributes->depth;
    out->size[1] = shape_row(&node->input[0]->shape) / out->size[0];
    return true;
}

/* By halves; a number that is none is in the first bucket, where no boundary is below it. */
RUNNER(run_bucketize)
{
    const struct bucketize_attributes *attributes = call->node->attributes;
    int64_t count = cpu_elements(kernel, call);
    const float *x = call->input[0];
    int64_t *y = call->output[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t low = 0, high = attributes->count;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if ((float)attributes->boundary[middle] <= x[i])
                low = middle + 1;
            else
                high = middle;
        }
        y[i] = low;
    }
}
