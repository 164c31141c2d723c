/* cpu_batch_matmul.c - products of stacks of matrices over gemm.c and gemm_packed.c. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/gemm/gemm.h"
#include "ops/ops.h"

/* Fewer rows than this are not worth a copy of b. */
#define FEW_ROWS (2 * GEMM_TALL)

/* c[m, n] (+)= matrix (n, x) of a . that of b. */
static void run_matrix(const struct call *call, const struct batch_matmul_sizes *z, int64_t sample, int64_t matrix,
                       float *c, bool add)
{
    struct gemm g = {
        .m = z->m,
        .n = z->n,
        .k = z->k,
        .a = (const float *)call->input[0] + sample * z->a_sample + matrix * z->a_matrix,
        .a_row = z->a_row,
        .a_step = z->a_step,
        .b = (const float *)call->input[1] + sample * z->b_sample + matrix * z->b_matrix,
        .b_step = z->b_step,
        .b_column = z->b_column,
        .c = c,
        .c_row = z->n,
        .add = add,
        .room = call->scratch,
    };
    if (z->m < FEW_ROWS && z->b_column == 1) {
        VARIANT(gemm)(&g);
        return;
    }
    if (gemm_b_floats(z->k, z->n) <= GEMM_ROOM) { /* all of b at once; then a needs no copy */
        VARIANT(gemm_pack_b)(call->scratch, &g, 0, 1);
        g.b_packed = call->scratch;
        g.a_in_place = true;
    }
    VARIANT(gemm_packed)(&g);
}

static void run_batch_matmul(const struct kernel *kernel, const struct call *call)
{
    const struct batch_matmul_sizes z = batch_matmul_sizes(call->node);
    int64_t first = 0, end = cpu_rows(kernel, call) * z.inner;
    if (!cpu_kernel_of(kernel)->by_sample) {
        first = call->begin;
        end = call->end < call->count * z.inner ? call->end : call->count * z.inner;
    }
    for (int64_t x = first; x < end; x++)
        run_matrix(call, &z, x / z.inner, x % z.inner, (float *)call->output[0] + x * z.m * z.n, false);
}

static void run_sum(const struct kernel *kernel, const struct call *call)
{
    const struct batch_matmul_attributes *attributes = call->node->attributes;
    const struct batch_matmul_sizes z = batch_matmul_sizes(call->node);
    int64_t samples = cpu_rows(kernel, call);
    for (int64_t n = 0; n < samples; n++)
        for (int64_t x = 0; x < z.inner; x++) {
            bool add = call->add || n > 0 || (attributes->shared && x > 0);
            run_matrix(call, &z, n, x, (float *)call->output[0] + (attributes->shared ? 0 : x * z.m * z.n), add);
        }
}

MAKER(make_batch_matmul)
{
    struct batch_matmul_sizes z = batch_matmul_sizes(node);
    if (node->input[0]->type != TYPE_F32 || z.m < 1 || z.n < 1 || z.k < 1)
        return false;
    out->kernel.scratch_bytes = GEMM_ROOM * sizeof(float);
    out->kernel.run = node->output[0]->batched ? run_batch_matmul : run_sum;
    return true;
}
