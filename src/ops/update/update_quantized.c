/* update_quantized.c - Adam with its states in a byte an element (quantize.h). */
#include "ops/update/quantize.h"

#include "ops/update/update_own.h"

/* inputs w, g, control, m (int8), v (uint8), scales f32 [rows, blocks of a row, 2] */
static plim_status adam_8bit_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct shape *w = &node->input[0]->shape, *scales = &node->input[5]->shape;
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_alike(node, 0, 1, error));
    TRY(need_control(node, 2, error));
    TRY(need_type(node, 3, TYPE_I8, error));
    TRY(need_type(node, 4, TYPE_U8, error));
    TRY(need_type(node, 5, TYPE_F32, error));
    struct shape wanted = quantized_scales(w);
    if (!shape_equal(w, &node->input[3]->shape) || !shape_equal(w, &node->input[4]->shape) ||
        !shape_equal(scales, &wanted))
        return misfit(node, error, "states do not fit the weight");
    return PLIM_OK;
}

struct shape quantized_scales(const struct shape *w)
{
    int64_t rows = w->rank ? w->dim[0] : 1, row = shape_row(w);
    return (struct shape){3, {rows, (row + QUANTIZED_BLOCK - 1) / QUANTIZED_BLOCK, 2}};
}

void quantized_numbers(struct quantized_step *out, const struct node *node, const double *control)
{
    double k[UPDATE_NUMBERS];
    update_numbers(k, node, control, 0);
    *out = (struct quantized_step){(float)k[0],
                                   (float)k[1],
                                   (float)k[2],
                                   (float)k[3],
                                   (float)k[UPDATE_NUMBERS - 1],
                                   (uint32_t)(int64_t)control[CONTROL_STEP] * 0x85ebca6bu};
}

/* In float32 whatever the weight's type: codes are part of the result. */
static void adam_8bit_reference(const struct call *call)
{
    const double *control = call->input[2];
    int64_t row = shape_row(&call->node->input[0]->shape), rows = call->end - call->begin;
    float w[QUANTIZED_BLOCK], g[QUANTIZED_BLOCK], *scale = call->input[5];
    struct quantized_step k;
    if (control[CONTROL_APPLIES] == 0)
        return;
    quantized_numbers(&k, call->node, control);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t first = 0; first < row; first += QUANTIZED_BLOCK, scale += 2) {
            int64_t at = r * row + first, left = row - first, count = left < QUANTIZED_BLOCK ? left : QUANTIZED_BLOCK;
            for (int64_t i = 0; i < count; i++) {
                w[i] = (float)get(call, 0, at + i);
                g[i] = (float)get(call, 1, at + i);
            }
            const struct quantized_states states = {
                .m = (int8_t *)call->input[3] + at, .v = (uint8_t *)call->input[4] + at, .scale = scale};
            quantized_adam(w, g, &states, count, (uint32_t)(call->begin * row + at), &k);
            for (int64_t i = 0; i < count; i++)
                put(call, 0, at + i, (double)w[i]);
        }
}

UPDATE_OP(adam_8bit, 6, struct update_attributes, adam_8bit_infer, 1 << 0 | 1 << 3 | 1 << 4 | 1 << 5, cut_control_2);
