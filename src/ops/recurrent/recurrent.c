/* recurrent.c - what recurrent ops share: activations, checks, cut, the walk through steps. */
#include <math.h>

#include "ops/recurrent/recurrent_own.h"

/* Samples of a slice where there are enough of them to share out; more where the kernel is larger than a cache. */
#define SLICE_SAMPLES 16
#define KERNEL_CACHE  ((int64_t)1 << 20)

const int64_t recurrent_gates[RECURRENT_KINDS] = {1, 3, 3, 4};

struct recurrent_sizes recurrent_sizes(const struct node *node)
{
    const struct recurrent_attributes *attributes = node->attributes;
    const struct tensor *wide = node->input[node->input[1]->shape.rank == 3]; /* z; gates and dz are input 1 */
    struct recurrent_sizes z = {.gates = recurrent_gates[attributes->kind]};
    z.steps = wide->shape.dim[1];
    z.columns = wide->shape.dim[2];
    z.units = z.columns / z.gates;
    return z;
}

/* ---- activations ------------------------------------------------------- */

double recurrent_value(int64_t activation, double x)
{
    switch ((enum recurrent_activation)activation) {
    case RECURRENT_TANH:
        return tanh(x);
    case RECURRENT_SIGMOID:
        return 1 / (1 + exp(-x));
    case RECURRENT_RELU:
        return x < 0 ? 0 : x;
    case RECURRENT_HARD_SIGMOID:
        return fmin(fmax(x / 6 + 0.5, 0), 1);
    case RECURRENT_ELU:
        return x < 0 ? expm1(x) : x;
    case RECURRENT_SOFTSIGN:
        return x / (1 + fabs(x));
    default:
        return x;
    }
}

double recurrent_slope(int64_t activation, double y)
{
    switch ((enum recurrent_activation)activation) {
    case RECURRENT_TANH:
        return 1 - y * y;
    case RECURRENT_SIGMOID:
        return y * (1 - y);
    case RECURRENT_RELU:
        return y > 0;
    case RECURRENT_HARD_SIGMOID:
        return y > 0 && y < 1 ? 1.0 / 6 : 0;
    case RECURRENT_ELU:
        return y < 0 ? y + 1 : 1;
    case RECURRENT_SOFTSIGN:
        return (1 - fabs(y)) * (1 - fabs(y));
    default:
        return 1;
    }
}

/* ---- checks ------------------------------------------------------------ */

plim_status need_recurrence(const struct node *node, const struct tensor *gates, const struct tensor *kernel,
                            int iteration, plim_error *error)
{
    const struct recurrent_attributes *attributes = node->attributes;
    bool known = attributes->kind >= 0 && attributes->kind < RECURRENT_KINDS && attributes->activation >= 0 &&
                 attributes->activation < RECURRENT_ACTIVATIONS && attributes->recurrent_activation >= 0 &&
                 attributes->recurrent_activation < RECURRENT_ACTIVATIONS;
    if (!known)
        return misfit(node, error, "kind %lld is not offered", (long long)attributes->kind);
    if (!gates->batched || gates->shape.rank != 3 || !is_real(gates->type))
        return misfit(node, error, "steps must be [N, T, gates * units], float32 or float64");
    int64_t count = recurrent_gates[attributes->kind], columns = gates->shape.dim[2];
    if (columns < 1 || columns % count != 0 || gates->shape.dim[1] < 1)
        return misfit(node, error, "%lld steps of %lld columns do not make %lld gates", (long long)gates->shape.dim[1],
                      (long long)columns, (long long)count);
    struct shape square = shape_2(columns / count, columns);
    if (kernel && (kernel->batched || kernel->type != gates->type || !shape_equal(&kernel->shape, &square)))
        return misfit(node, error, "a kernel for %lld units must be [%lld, %lld]", (long long)square.dim[0],
                      (long long)square.dim[0], (long long)square.dim[1]);
    if (!(attributes->dropout >= 0 && attributes->dropout < 1))
        return misfit(node, error, "a dropout of %g is not possible", attributes->dropout);
    if (attributes->dropout > 0 && (iteration >= node->input_count || !node->input[iteration]))
        return misfit(node, error, "dropout needs the iteration");
    return PLIM_OK;
}

/* [N, T, U]; recurrent_sizes has been checked. */
plim_status need_sequence(const struct node *node, int input, bool optional, plim_error *error)
{
    struct recurrent_sizes z = recurrent_sizes(node);
    const struct tensor *x = input < node->input_count ? node->input[input] : NULL;
    if (!x)
        return optional ? PLIM_OK : misfit(node, error, "input %d is missing", input);
    TRY(need_real(node, input, error));
    TRY(need_batched(node, input, error));
    TRY(need_rank(node, input, 3, error));
    if (x->shape.dim[1] != z.steps || x->shape.dim[2] != z.units)
        return misfit(node, error, "input %d must have %lld steps of %lld units", input, (long long)z.steps,
                      (long long)z.units);
    return PLIM_OK;
}

plim_status need_state(const struct node *node, int input, plim_error *error)
{
    struct recurrent_sizes z = recurrent_sizes(node);
    if (input >= node->input_count || !node->input[input])
        return PLIM_OK;
    TRY(need_real(node, input, error));
    TRY(need_batched(node, input, error));
    TRY(need_rank(node, input, 2, error));
    if (node->input[input]->shape.dim[1] != z.units)
        return misfit(node, error, "a state of %lld for %lld units", (long long)node->input[input]->shape.dim[1],
                      (long long)z.units);
    return PLIM_OK;
}

plim_status need_step_mask(const struct node *node, int input, plim_error *error)
{
    struct recurrent_sizes z = recurrent_sizes(node);
    if (input >= node->input_count || !node->input[input])
        return PLIM_OK;
    TRY(need_type(node, input, TYPE_BOOL, error));
    TRY(need_batched(node, input, error));
    TRY(need_rank(node, input, 2, error));
    if (node->input[input]->shape.dim[1] != z.steps)
        return misfit(node, error, "a mask of %lld steps for %lld", (long long)node->input[input]->shape.dim[1],
                      (long long)z.steps);
    return PLIM_OK;
}

/* A power of two: a quarter of the batch, at most a slice that fills the tiles of a product. */
static int64_t least_samples(int64_t samples, int64_t kernel_bytes)
{
    int64_t most = kernel_bytes > KERNEL_CACHE ? 2 * SLICE_SAMPLES : SLICE_SAMPLES, least = 1;
    while (least < most && 4 * 2 * least <= samples)
        least *= 2;
    return least;
}

void recurrent_cut(struct cut *cut, const struct node *node)
{
    struct recurrent_sizes z = recurrent_sizes(node);
    const struct tensor *rows = node->input[node->input[1]->shape.rank == 3];
    double samples = (double)rows->shape.dim[0], kernel = (double)z.units * (double)z.columns;
    cut_rows(cut, node, rows, samples * (double)z.steps * kernel);
    cut->least = least_samples(rows->shape.dim[0], z.units * z.columns * (int64_t)type_bytes(rows->type));
}

/* ---- the walk ---------------------------------------------------------- */

struct recurrence recurrence_of(const struct call *call, int iteration)
{
    return (struct recurrence){
        .call = call, .attributes = call->node->attributes, .z = recurrent_sizes(call->node), .iteration = iteration};
}

int64_t recurrence_at(const struct recurrence *r, int64_t t, int64_t width)
{
    return (r->n * r->z.steps + t) * width;
}

bool recurrence_is_there(const struct recurrence *r, int mask, int64_t t)
{
    return !r->call->input[mask] || get(r->call, mask, r->n * r->z.steps + t) != 0;
}

double recurrence_before(const struct recurrence *r, int64_t t, int64_t u, const void *of, enum type type, int initial)
{
    int64_t before = recurrent_before(r->attributes, t);
    if (before >= 0 && before < r->z.steps)
        return element_get(of, type, recurrence_at(r, before, r->z.units) + u);
    return r->call->input[initial] ? get(r->call, initial, r->n * r->z.units + u) : 0;
}

double recurrence_kept(const struct recurrence *r, int64_t gate, int64_t u)
{
    uint32_t bits[4];
    int64_t i = gate * r->z.units + u;
    if (!(r->attributes->dropout > 0))
        return 1;
    uint64_t iteration = (uint64_t) * (const int64_t *)r->call->input[r->iteration];
    noise_bits(bits, r->attributes->seed, iteration, r->call->begin + r->n, i);
    return bits[noise_word(i)] >= dropout_threshold(r->attributes->dropout) ? 1 / (1 - r->attributes->dropout) : 0;
}
