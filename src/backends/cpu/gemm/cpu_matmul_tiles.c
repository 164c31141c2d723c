/* cpu_matmul_tiles.c - matmul of bf16 and its weight gradient over gemm_tiles.c, where there are tiles.
   Sizes are those of cpu_matmul.h. */
#include "backends/cpu/gemm/cpu_matmul.h"
#include "backends/cpu/gemm/gemm_tiles.h"

#if LANES == 16

#define PACK_UNITS 8

static struct tile_gemm matmul_of(const struct kernel *kernel, const struct call *call)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    int64_t k = own->size[0], n = own->size[1];
    return (struct tile_gemm){
        .m = (own->size[2] ? call->count : cpu_rows(kernel, call)) * own->size[3],
        .n = n,
        .k = k,
        .a = call->input[0],
        .a_row = k,
        .a_step = 1,
        .b = call->input[1],
        .b_step = attributes->transposed ? 1 : n,
        .b_column = attributes->transposed ? k : 1,
        .c = call->output[0],
        .c_row = n,
        .bias = call->input[2],
        .relu = attributes->activation == ACTIVATION_RELU,
        .room = call->scratch,
    };
}

PACKER(pack_weights)
{
    const struct tile_gemm g = matmul_of(kernel, whole);
    tile_pack_b(pack, &g);
}

static void run_rows(const struct kernel *kernel, const struct call *call)
{
    struct tile_gemm g = matmul_of(kernel, call);
    g.b_packed = call->pack;
    gemm_tiles(&g);
}

static void run_columns(const struct kernel *kernel, const struct call *call)
{
    struct tile_gemm g = matmul_of(kernel, call);
    g.n = call->end - call->begin;
    g.b += call->begin * g.b_column;
    g.c = (uint16_t *)g.c + call->begin;
    g.bias = g.bias ? g.bias + call->begin : NULL;
    gemm_tiles(&g);
}

static bool matmul_takes(const struct node *node, enum type result)
{
    bool bias = node->input_count < 3 || !node->input[2] || node->input[2]->type == TYPE_F32;
    return node->input[0]->type == TYPE_BF16 && node->input[1]->type == TYPE_BF16 && bias &&
           node->output[0]->type == result && shape_count(&node->input[0]->shape) > 0 && tiles_allowed();
}

MAKER(make_matmul_tiles)
{
    if (!matmul_takes(node, TYPE_BF16))
        return false;
    matmul_take_sizes(out, node);
    out->kernel.implementation = tiles_name();
    out->kernel.run = out->size[2] ? run_columns : run_rows;
    out->kernel.scratch_bytes =
        (size_t)tile_room_bytes(out->size[2] ? request->asked->slice : out->size[1], out->size[0], !out->size[2]);
    if (!out->size[2])
        cpu_set_pack(out, pack_weights, 1,
                     (size_t)(tile_padded(out->size[0]) * tile_padded(out->size[1])) * sizeof(uint16_t));
    return true;
}

/* dw[in, out] (+)= x[rows, in]^T . dy[rows, out] */
static struct tile_gemm gradient_of(const struct kernel *kernel, const struct call *call, int64_t samples)
{
    int64_t in = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    return (struct tile_gemm){
        .m = in,
        .n = n,
        .k = samples * cpu_kernel_of(kernel)->size[3],
        .a = call->input[0],
        .a_row = 1,
        .a_step = in,
        .b = call->input[1],
        .b_step = n,
        .b_column = 1,
        .c = call->output[0],
        .c_row = n,
        .c_wide = true,
        .room = call->scratch,
    };
}

static void run_share(const struct kernel *kernel, const struct call *call)
{
    struct tile_gemm g = gradient_of(kernel, call, cpu_rows(kernel, call));
    g.add = call->add;
    gemm_tiles(&g);
}

/* dy, of which every slice reads all: units take columns. */
PACKER(pack_gradient)
{
    struct tile_gemm g = gradient_of(kernel, whole, whole->count);
    int64_t blocks = tile_padded(g.n) / TILE_BLOCK, all = g.n;
    int64_t first = blocks * unit / kernel->pack_units * TILE_BLOCK;
    int64_t end = blocks * (unit + 1) / kernel->pack_units * TILE_BLOCK;
    g.n = (end < all ? end : all) - first;
    g.b += first;
    if (g.n > 0)
        tile_pack_b((uint16_t *)pack + first * tile_padded(g.k), &g);
}

static void run_gradient_rows(const struct kernel *kernel, const struct call *call)
{
    struct tile_gemm g = gradient_of(kernel, call, call->count);
    g.b_packed = call->pack;
    int64_t each = cpu_kernel_of(kernel)->size[2];
    g.m = (call->end - call->begin) * each;
    g.a += call->begin * each;
    gemm_tiles(&g);
}

MAKER(make_matmul_weight_gradient_tiles)
{
    if (!matmul_takes(node, TYPE_F32))
        return false;
    bool shares = matmul_take_gradient_sizes(out, node);
    int64_t samples = shares ? request->asked->slice : node->input[0]->shape.dim[0];
    out->kernel.implementation = tiles_name();
    out->kernel.run = shares ? run_share : run_gradient_rows;
    out->kernel.scratch_bytes = (size_t)tile_room_bytes(out->size[1], samples * out->size[3], !shares);
    if (!shares)
        cpu_set_pack(out, pack_gradient, PACK_UNITS,
                     (size_t)(tile_padded(samples * out->size[3]) * tile_padded(out->size[1])) * sizeof(uint16_t));
    return true;
}

#endif
