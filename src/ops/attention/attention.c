/* attention.c - scaled dot-product attention and its gradient: rules, cuts, references.

   The references go over one query (or key) at a time and make scores again where they
   need them: nothing of the size of the score matrix is kept. */
#include <math.h>

#include "base/numbers/minmax.h"
#include "ops/elementwise/noise.h"
#include "ops/helpers.h"

#define CHUNK 64 /* elements of a head that are summed up at a time */

/* ---- shapes -------------------------------------------------------------- */

/* Strides of the mask: its last axis is the keys, those before it queries, heads and samples, from the right. */
static void mask_strides(struct attention_sizes *z, const struct tensor *mask)
{
    if (!mask)
        return;
    const struct shape *shape = &mask->shape;
    int rank = shape->rank - (mask->batched ? 1 : 0);
    int64_t queries = rank > 1 ? shape->dim[shape->rank - 2] : 1, heads = rank > 2 ? shape->dim[shape->rank - 3] : 1;
    z->mask_query = queries > 1 ? z->keys : 0;
    z->mask_head = heads > 1 ? queries * z->keys : 0;
    z->mask_sample = mask->batched ? heads * queries * z->keys : 0;
}

struct attention_sizes attention_sizes(const struct node *node)
{
    const struct attention_attributes *attributes = node->attributes;
    const struct shape *q = &node->input[0]->shape, *k = &node->input[1]->shape, *v = &node->input[2]->shape;
    struct attention_sizes z = {
        .samples = q->dim[0],
        .queries = q->dim[1],
        .keys = k->dim[1],
        .heads = q->dim[2],
        .groups = k->dim[2],
        .depth = q->dim[3],
        .value_depth = v->dim[3],
        .scale = attributes->scale,
    };
    z.noise_row = (z.keys + NOISE_CHUNK - 1) / NOISE_CHUNK * NOISE_CHUNK;
    if (z.scale == 0)
        z.scale = 1 / sqrt((double)z.depth);
    mask_strides(&z, node->input[3]);
    return z;
}

static plim_status need_mask(const struct node *node, const struct attention_sizes *z, plim_error *error)
{
    const struct tensor *mask = node->input[3];
    char text[160];
    if (!mask)
        return PLIM_OK;
    if (mask->type != TYPE_BOOL && mask->type != TYPE_U8 && mask->type != TYPE_F32)
        return misfit(node, error, "a mask of type %s; it must be bool, uint8 or float32", type_name(mask->type));
    int batch = mask->batched ? 1 : 0, rank = mask->shape.rank - batch;
    const int64_t *dim = mask->shape.dim + batch;
    const int64_t full[3] = {z->heads, z->queries, z->keys};
    bool fits = rank >= (batch ? 1 : 2) && rank <= 3 && dim[rank - 1] == z->keys;
    for (int i = 0; fits && i < rank - 1; i++)
        fits = dim[i] == full[3 - rank + i] || dim[i] == 1;
    shape_text(text, sizeof(text), &mask->shape, mask->batched);
    if (!fits)
        return misfit(node, error, "a mask of shape %s for %lld heads, %lld queries and %lld keys", text,
                      (long long)z->heads, (long long)z->queries, (long long)z->keys);
    return PLIM_OK;
}

static plim_status need_dropout(const struct node *node, const struct attention_sizes *z, plim_error *error)
{
    const struct attention_attributes *attributes = node->attributes;
    if (!(attributes->dropout >= 0 && attributes->dropout < 1))
        return misfit(node, error, "a dropout of %g; it must be in [0, 1)", attributes->dropout);
    if (attributes->dropout == 0)
        return PLIM_OK;
    if (!node->input[4])
        return misfit(node, error, "dropout needs the iteration");
    TRY(need_type(node, 4, TYPE_I64, error));
    if (z->samples * z->heads > UINT32_MAX || z->queries * z->noise_row > (int64_t)UINT32_MAX * 4)
        return misfit(node, error, "more scores than there are numbers");
    return PLIM_OK;
}

/* q, k, v, mask and iteration: inputs 0 to 4 of both ops. */
static plim_status need_operands(const struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    for (int i = 0; i < 3; i++) {
        TRY(need_type(node, i, node->input[0]->type, error));
        TRY(need_batched(node, i, error));
        TRY(need_rank(node, i, 4, error));
    }
    const struct shape *k = &node->input[1]->shape, *v = &node->input[2]->shape;
    struct attention_sizes z = attention_sizes(node);
    if (k->dim[3] != z.depth)
        return misfit(node, error, "queries of %lld and keys of %lld elements", (long long)z.depth,
                      (long long)k->dim[3]);
    if (v->dim[1] != z.keys || v->dim[2] != z.groups)
        return misfit(node, error, "%lld keys of %lld heads, %lld values of %lld", (long long)z.keys,
                      (long long)z.groups, (long long)v->dim[1], (long long)v->dim[2]);
    if (z.groups < 1 || z.heads % z.groups != 0)
        return misfit(node, error, "%lld heads cannot share %lld groups of keys", (long long)z.heads,
                      (long long)z.groups);
    TRY(need_mask(node, &z, error));
    return need_dropout(node, &z, error);
}

static plim_status attention_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_operands(node, error));
    struct attention_sizes z = attention_sizes(node);
    enum type type = node->input[0]->type;
    output_of(graph, node, 0, type, shape_4(z.samples, z.queries, z.heads, z.value_depth), true);
    return output_of(graph, node, 1, wide_type(type), (struct shape){3, {z.samples, z.heads, z.queries}}, true);
}

/* rows: heads or groups a sample. */
static void cut_heads(struct cut *cut, const struct node *node, int64_t rows, double products)
{
    struct attention_sizes z = attention_sizes(node);
    double work = (double)(z.samples * z.heads * z.queries) * (double)z.keys * (double)(z.depth + z.value_depth);
    cut_rows(cut, node, node->input[0], work * products);
    if (z.samples >= ATTENTION_FEW_SAMPLES || rows == 1)
        return;
    *cut = (struct cut){.extent = z.samples * rows, .grain = 1, .work = work * products};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = PART_WHOLE;
    for (int k = 0; k < node->output_count; k++)
        cut->output[k] = PART_WHOLE;
}

static void attention_cut(struct cut *cut, const struct node *node)
{
    cut_heads(cut, node, node->input[0]->shape.dim[2], 1);
}

/* ---- one score ------------------------------------------------------------ */

/* Heads (or groups) first.. of this call; operands begin at the sample `base`. */
struct span {
    int64_t first, end, base;
};

static struct span span_of(const struct call *call, int64_t rows)
{
    struct cut cut;
    call->node->op->cut(&cut, call->node);
    if (cut.by_sample)
        return (struct span){0, call_rows(call, call->node->input[0]) * rows, call->begin};
    int64_t most = call->count * rows;
    return (struct span){call->begin, call->end < most ? call->end : most, 0};
}

/* Score of (n, h, t, s); *hidden: nothing of q and k is in it. -INFINITY: takes no part. */
static double score(const struct call *call, const struct attention_sizes *z, const int64_t at[4], bool *hidden)
{
    const struct attention_attributes *attributes = call->node->attributes;
    int64_t n = at[0], h = at[1], t = at[2], s = at[3], g = h / (z->heads / z->groups);
    *hidden = true;
    if (attributes->causal && s > t)
        return -INFINITY;
    double mask = 0;
    if (call->node->input[3])
        mask = get(call, 3, n * z->mask_sample + h * z->mask_head + t * z->mask_query + s);
    bool added = call->node->input[3] && call->node->input[3]->type == TYPE_F32;
    if (call->node->input[3] && !added && mask == 0)
        return ATTENTION_HIDDEN;
    double sum = 0;
    for (int64_t i = 0; i < z->depth; i++)
        sum += get(call, 0, ((n * z->queries + t) * z->heads + h) * z->depth + i) *
               get(call, 1, ((n * z->keys + s) * z->groups + g) * z->depth + i);
    *hidden = false;
    return sum * z->scale + (added ? mask : 0);
}

/* What dropout multiplies p of (n, h, t, s) with. */
static double kept(const struct call *call, const struct attention_sizes *z, int64_t base, const int64_t at[4])
{
    const struct attention_attributes *attributes = call->node->attributes;
    uint32_t bits[4];
    if (attributes->dropout == 0)
        return 1;
    int64_t i = at[2] * z->noise_row + at[3];
    uint64_t iteration = (uint64_t) * (const int64_t *)call->input[4];
    noise_bits(bits, attributes->seed, iteration, (base + at[0]) * z->heads + at[1], i);
    return bits[noise_word(i)] >= dropout_threshold(attributes->dropout) ? 1 / (1 - attributes->dropout) : 0;
}

/* ---- forward -------------------------------------------------------------- */

static double log_sum(const struct call *call, const struct attention_sizes *z, int64_t n, int64_t h, int64_t t)
{
    double most = -INFINITY, sum = 0;
    bool hidden;
    for (int64_t s = 0; s < z->keys; s++)
        most = fmax(most, score(call, z, (int64_t[]){n, h, t, s}, &hidden));
    for (int64_t s = 0; s < z->keys; s++)
        sum += exp(score(call, z, (int64_t[]){n, h, t, s}, &hidden) - most);
    return most + log(sum);
}

static void attend(const struct call *call, const struct attention_sizes *z, int64_t base, const int64_t query[3])
{
    int64_t n = query[0], h = query[1], t = query[2], g = h / (z->heads / z->groups);
    double sum = log_sum(call, z, n, h, t), out[CHUNK];
    bool hidden;
    set(call, 1, (n * z->heads + h) * z->queries + t, sum);
    for (int64_t first = 0; first < z->value_depth; first += CHUNK) {
        int64_t count = z->value_depth - first < CHUNK ? z->value_depth - first : CHUNK;
        for (int64_t i = 0; i < count; i++)
            out[i] = 0;
        for (int64_t s = 0; s < z->keys; s++) {
            const int64_t at[4] = {n, h, t, s};
            double p = exp(score(call, z, at, &hidden) - sum) * kept(call, z, base, at);
            for (int64_t i = 0; i < count; i++)
                out[i] += p * get(call, 2, ((n * z->keys + s) * z->groups + g) * z->value_depth + first + i);
        }
        for (int64_t i = 0; i < count; i++)
            set(call, 0, ((n * z->queries + t) * z->heads + h) * z->value_depth + first + i, out[i]);
    }
}

static void attention_reference(const struct call *call)
{
    struct attention_sizes z = attention_sizes(call->node);
    struct span span = span_of(call, z.heads);
    for (int64_t i = span.first; i < span.end; i++)
        for (int64_t t = 0; t < z.queries; t++)
            attend(call, &z, span.base, (int64_t[]){i / z.heads, i % z.heads, t});
}

static void attention_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                           struct tensor **d_input)
{
    if (wanted[3] || d_output[1]) {
        graph_fail(graph, PLIM_UNSUPPORTED, "attention: no gradient flows to a mask, or from the sums of scores");
        return;
    }
    struct tensor *inputs[] = {node->input[0], node->input[1],  node->input[2],  node->input[3],
                               node->input[4], node->output[0], node->output[1], d_output[0]};
    struct tensor *dq =
        graph_add(graph, &op_attention_gradient, inputs, 8, node->attributes, sizeof(struct attention_attributes));
    for (int i = 0; i < 3 && dq; i++)
        d_input[i] = wanted[i] ? graph_output(dq, i) : NULL;
}

const struct op op_attention = {
    OP_HEAD(attention, 5, 2, attention_infer, attention_cut),
    .attributes_bytes = sizeof(struct attention_attributes),
    .optional = 1 << 3 | 1 << 4,
    .gradient = attention_back,
    .keeps_inputs = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4,
    .keeps_outputs = 1 << 0 | 1 << 1,
};

/* ---- backward ------------------------------------------------------------- */

enum { OUT = 5, LOGSUM, DOUT };

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_operands(node, error));
    struct attention_sizes z = attention_sizes(node);
    struct shape out = shape_4(z.samples, z.queries, z.heads, z.value_depth);
    struct shape sums = {3, {z.samples, z.heads, z.queries}};
    for (int i = OUT; i <= DOUT; i++) {
        TRY(i == LOGSUM ? need_type_of(node, i, 0, error) : need_type(node, i, node->input[0]->type, error));
        TRY(need_batched(node, i, error));
        if (!shape_equal(&node->input[i]->shape, i == LOGSUM ? &sums : &out))
            return misfit(node, error, "input %d is not shaped like the output of attention", i);
    }
    for (int k = 0; k < 3; k++)
        output_like(graph, node, k, node->input[k]);
    return PLIM_OK;
}

static void gradient_cut(struct cut *cut, const struct node *node)
{
    cut_heads(cut, node, node->input[1]->shape.dim[2], 2.5);
}

/* p after dropout, and d(loss)/d(score) before the scale. */
static double score_gradient(double *p, const struct call *call, const struct attention_sizes *z, int64_t base,
                             const int64_t at[4])
{
    int64_t n = at[0], h = at[1], t = at[2], s = at[3], g = h / (z->heads / z->groups);
    int64_t out = ((n * z->queries + t) * z->heads + h) * z->value_depth;
    int64_t value = ((n * z->keys + s) * z->groups + g) * z->value_depth;
    double dp = 0, mean = 0, factor = kept(call, z, base, at);
    bool hidden;
    double logsum = get(call, LOGSUM, (n * z->heads + h) * z->queries + t), own = score(call, z, at, &hidden);
    double made = exp(own - logsum);
    if (logsum <= ATTENTION_HIDDEN / 2 &&
        own > -INFINITY) /* it sees nothing: a float has no digits left for the mean */
        made = 1.0 / (double)(((const struct attention_attributes *)call->node->attributes)->causal
                                  ? min_i64(t + 1, z->keys)
                                  : z->keys);
    for (int64_t i = 0; i < z->value_depth; i++) {
        dp += get(call, DOUT, out + i) * get(call, 2, value + i);
        mean += get(call, DOUT, out + i) * get(call, OUT, out + i);
    }
    *p = made * factor;
    return hidden ? 0 : made * (dp * factor - mean);
}

/* Where (t or s, head or group) of operand i begins; which 0: q and dq, 1: k and dk, 2: v and dv. */
static int64_t row_of(const struct attention_sizes *z, int which, int64_t n, int64_t at, int64_t head)
{
    int64_t rows = which == 0 ? z->queries : z->keys, heads = which == 0 ? z->heads : z->groups;
    return ((n * rows + at) * heads + head) * (which == 2 ? z->value_depth : z->depth);
}

/* One row of dq: a sum over keys. */
static void query_gradient(const struct call *call, const struct attention_sizes *z, int64_t base, int64_t n, int64_t h,
                           int64_t t)
{
    int64_t g = h / (z->heads / z->groups), to = row_of(z, 0, n, t, h);
    for (int64_t first = 0; first < z->depth; first += CHUNK) {
        int64_t count = z->depth - first < CHUNK ? z->depth - first : CHUNK;
        double sum[CHUNK] = {0}, p;
        for (int64_t s = 0; s < z->keys; s++) {
            double ds = score_gradient(&p, call, z, base, (int64_t[]){n, h, t, s});
            for (int64_t i = 0; i < count; i++)
                sum[i] += ds * get(call, 1, row_of(z, 1, n, s, g) + first + i);
        }
        for (int64_t i = 0; i < count; i++)
            set(call, 0, to + first + i, sum[i] * z->scale);
    }
}

/* One row of dk (which 1) or dv (2): a sum over the queries of the heads that share it. */
static void key_gradient(const struct call *call, const struct attention_sizes *z, int64_t base, int which, int64_t n,
                         int64_t g, int64_t s)
{
    int64_t share = z->heads / z->groups, width = which == 1 ? z->depth : z->value_depth;
    for (int64_t first = 0; first < width; first += CHUNK) {
        int64_t count = width - first < CHUNK ? width - first : CHUNK;
        double sum[CHUNK] = {0}, p;
        for (int64_t i = 0; i < share * z->queries; i++) {
            int64_t h = g * share + i / z->queries, t = i % z->queries;
            double ds = score_gradient(&p, call, z, base, (int64_t[]){n, h, t, s});
            double factor = which == 1 ? ds * z->scale : p;
            int64_t from = ((n * z->queries + t) * z->heads + h) * width + first;
            for (int64_t c = 0; c < count; c++)
                sum[c] += factor * get(call, which == 1 ? 0 : DOUT, from + c);
        }
        for (int64_t c = 0; c < count; c++)
            set(call, which, row_of(z, which, n, s, g) + first + c, sum[c]);
    }
}

static void attention_gradient_reference(const struct call *call)
{
    struct attention_sizes z = attention_sizes(call->node);
    struct span span = span_of(call, z.groups);
    int64_t share = z.heads / z.groups;
    for (int64_t i = span.first; i < span.end; i++) {
        int64_t n = i / z.groups, g = i % z.groups;
        for (int64_t h = g * share; h < (g + 1) * share; h++)
            for (int64_t t = 0; t < z.queries; t++)
                query_gradient(call, &z, span.base, n, h, t);
        for (int64_t s = 0; s < z.keys; s++) {
            key_gradient(call, &z, span.base, 1, n, g, s);
            key_gradient(call, &z, span.base, 2, n, g, s);
        }
    }
}

const struct op op_attention_gradient = {
    OP_HEAD(attention_gradient, 8, 3, gradient_infer, gradient_cut),
    .optional = 1 << 3 | 1 << 4,
    .attributes_bytes = sizeof(struct attention_attributes),
    .no_gradient = NO_SECOND,
};
