/* cpu_attention.h - what the files of attention share: one head's operands, rows of scores, the walk of blocks.

   A head's work goes in blocks of queries and keys. Scores of a block live in scratch, rows SCORE_ROW floats apart
   (which keeps the rows of a tile out of one another's cache sets). */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_philox.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/gemm/gemm.h"
#include "base/numbers/minmax.h"
#include "ops/ops.h"

#define KEY_BLOCK   224 /* whole panels, whole tiles */
#define SCORE_ROW   (KEY_BLOCK + 16)
#define KEY_GRAIN   32 /* whole panels of gemm_packed in any instruction set, whole tiles */
#define LEAST_SCORE (-3.0e38f)
#define MOST_DEPTH  GEMM_MOST_STEPS /* one block of steps: panels of keys lie one behind another */

/* What a call has for one sample and head. */
struct attention_head {
    struct attention_sizes z;
    const uint8_t *mask_bytes; /* either, or none: row 0, key 0 */
    const float *mask_floats;
    bool causal;
    float scale;
    /* Dropout: */
    uint32_t threshold; /* numbers below it drop; 0: none */
    float factor;       /* 1 / (1 - rate) */
    uint64_t seed, step;
    int64_t number; /* sample * heads + head */
};

/* n counts from the first sample that the operands hold, `base` of the batch. */
INLINE struct attention_head attention_head_of(const struct call *call, int64_t base, int64_t n, int64_t head)
{
    const struct attention_attributes *attributes = call->node->attributes;
    struct attention_head h = {.z = attention_sizes(call->node), .causal = attributes->causal, .factor = 1};
    const struct tensor *mask = call->node->input[3];
    int64_t at = n * h.z.mask_sample + head * h.z.mask_head;
    if (mask && mask->type == TYPE_F32)
        h.mask_floats = (const float *)call->input[3] + at;
    else if (mask)
        h.mask_bytes = (const uint8_t *)call->input[3] + at;
    h.scale = (float)h.z.scale;
    if (attributes->dropout > 0) {
        h.threshold = (uint32_t)dropout_threshold(attributes->dropout);
        h.factor = (float)(1 / (1 - attributes->dropout));
        h.seed = attributes->seed;
        h.step = (uint64_t) * (const int64_t *)call->input[4];
        h.number = (base + n) * h.z.heads + head;
    }
    return h;
}

/* Keys key..key + width that query t sees: the first so many. */
INLINE int64_t seen_keys(const struct attention_head *h, int64_t t, int64_t key, int64_t width)
{
    if (!h->causal)
        return width;
    return t < key ? 0 : min_i64(t - key + 1, width);
}

/* Keys that any of queries query..query + rows sees, of those from key on: whole panels of what is packed, for others
   lie behind them. */
INLINE int64_t met_keys(const struct attention_head *h, int64_t query, int64_t rows, int64_t key)
{
    int64_t width = min_i64(h->z.keys - key, KEY_BLOCK),
            seen = (query + rows - key + KEY_GRAIN - 1) / KEY_GRAIN * KEY_GRAIN;
    return h->causal ? min_i64(seen, width) : width;
}

/* x: products of query t with keys key..key + count -> scores. What is left to do with them: a scale to multiply by. */
INLINE float make_scores(float *x, const struct attention_head *h, int64_t t, int64_t key, int64_t count)
{
    const float scale = h->scale, none = (float)ATTENTION_HIDDEN;
    int64_t at = t * h->z.mask_query + key;
    if (h->mask_bytes) {
        const uint8_t *mask = h->mask_bytes + at;
        INDEPENDENT
        for (int64_t i = 0; i < count; i++) {
            float y = x[i] * scale;
            x[i] = mask[i] ? y : none;
        }
    } else if (h->mask_floats) {
        const float *mask = h->mask_floats + at;
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            x[i] = madd(x[i], scale, mask[i]);
    } else if (scale > 0) {
        return scale;
    } else {
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            x[i] *= scale;
    }
    return 1;
}

/* x = exp(x * scale - most); the sum, as row_total has it. */
INLINE float exponents(float *x, int64_t count, float scale, float most)
{
    const vector by = vector_all(scale), less = vector_all(most);
    vector sum = vector_all(0);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vector y = vector_exp(vector_load(x + i) * by - less);
        vector_store(x + i, y);
        sum += y;
    }
    if (i < count) {
        int part = (int)(count - i);
        vector_store_part(x + i, vector_exp(vector_load_part(x + i, part) * by - less), part);
        sum += vector_load_part(x + i, part);
    }
    return vector_sum(sum);
}

/* keep[i]: what dropout multiplies p of (t, key + i) with. key is a multiple of LANES, not of a chunk. */
INLINE void draw_kept(float *keep, const struct attention_head *h, int64_t t, int64_t key, int64_t count)
{
    uint32_t bits[NOISE_CHUNK];
    int64_t first = t * h->z.noise_row + key, end = first + count;
    for (int64_t at = first; at < end;) {
        int64_t chunk = at / NOISE_CHUNK, to = min_i64((chunk + 1) * NOISE_CHUNK, end);
        philox_chunk(bits, h->seed, h->step, h->number, chunk);
        const uint32_t *from = bits - chunk * NOISE_CHUNK;
        for (; at < to; at++)
            keep[at - first] = from[at] >= h->threshold ? h->factor : 0;
    }
}

/* What a query has met so far. */
struct met {
    float most, sum; /* the largest score; the sum of exp(score - most) */
};

/* Products x with keys key..key + width -> p, for query t; out, summed up before, is scaled to the new largest score.
   keep: room for a row. */
INLINE void soften(float *x, float *out, struct met *met, float *keep, const struct attention_head *h, int64_t t,
                   int64_t key, int64_t width)
{
    int64_t seen = seen_keys(h, t, key, width);
    memset(x + seen, 0, (size_t)(width - seen) * sizeof *x);
    if (seen == 0)
        return;
    float scale = make_scores(x, h, t, key, seen), here = row_largest(x, seen) * scale;
    float before = met->most, most = here > before ? here : before;
    float sum = exponents(x, seen, scale, most);
    if (key > 0 && most > before) {
        float less = exp_of(before - most);
        met->sum *= less;
        INDEPENDENT
        for (int64_t i = 0; i < h->z.value_depth; i++)
            out[i] *= less;
    }
    met->most = most;
    met->sum = key > 0 ? met->sum + sum : sum;
    if (h->threshold) {
        draw_kept(keep, h, t, key, seen);
        INDEPENDENT
        for (int64_t i = 0; i < seen; i++)
            x[i] *= keep[i];
    }
}

/* Where a head's elements begin in q, k, v, out (and their gradients), logsumexp. */
struct attention_places {
    int64_t q, k, v, out, logsum;
};

INLINE struct attention_places attention_places_of(const struct attention_sizes *z, int64_t n, int64_t head)
{
    int64_t group = head / (z->heads / z->groups), query = n * z->queries * z->heads + head;
    int64_t key = n * z->keys * z->groups + group;
    return (struct attention_places){.q = query * z->depth,
                                     .k = key * z->depth,
                                     .v = key * z->value_depth,
                                     .out = query * z->value_depth,
                                     .logsum = (n * z->heads + head) * z->queries};
}

/* How a call's heads (or groups) run: first..end; operands begin at the sample `base` of the batch. */
struct attention_span {
    int64_t first, end, base;
};

INLINE struct attention_span attention_span_of(const struct kernel *kernel, const struct call *call, int64_t rows)
{
    if (cpu_kernel_of(kernel)->by_sample)
        return (struct attention_span){0, cpu_rows(kernel, call) * rows, call->begin};
    return (struct attention_span){call->begin, min_i64(call->end, call->count * rows), 0};
}

/* ds = p * scale * (ds * keep - mean), p = p * keep, where p = exp(p * by - logsum); keep: NULL is 1. */
INLINE void differ(float *p, float *ds, const float *keep, int64_t count, const float constants[4])
{
    const vector by = vector_all(constants[0]), logsum = vector_all(constants[1]);
    const vector scale = vector_all(constants[2]), mean = vector_all(constants[3]);
    for (int64_t i = 0; i < count; i += LANES) {
        int part = (int)min_i64(count - i, LANES);
        bool whole = part == LANES;
        vector x = whole ? vector_load(p + i) : vector_load_part(p + i, part);
        vector dp = whole ? vector_load(ds + i) : vector_load_part(ds + i, part);
        vector made = vector_exp(x * by - logsum), kept = made;
        if (keep) {
            vector k = whole ? vector_load(keep + i) : vector_load_part(keep + i, part);
            dp *= k;
            kept *= k;
        }
        dp = made * scale * (dp - mean);
        if (whole) {
            vector_store(p + i, kept);
            vector_store(ds + i, dp);
        } else {
            vector_store_part(p + i, kept, part);
            vector_store_part(ds + i, dp, part);
        }
    }
}

/* ds of one query, from products dout . v in ds and products q . k in p, which becomes p after dropout; keep: room for
   a row. */
INLINE void differ_scores(float *p, float *ds, float *keep, const struct attention_head *h, int64_t t, int64_t key,
                          int64_t width, float logsum, float mean)
{
    int64_t seen = seen_keys(h, t, key, width);
    memset(p + seen, 0, (size_t)(width - seen) * sizeof *p);
    memset(ds + seen, 0, (size_t)(width - seen) * sizeof *ds);
    float by = make_scores(p, h, t, key, seen);
    if (logsum <= (float)(ATTENTION_HIDDEN / 2)) { /* it sees nothing: a float has no digits left for the mean */
        float even = -log_of((float)seen_keys(h, t, 0, h->z.keys));
        for (int64_t i = 0; i < seen; i++)
            p[i] = even;
        logsum = 0;
        by = 1;
    }
    if (h->threshold)
        draw_kept(keep, h, t, key, seen);
    differ(p, ds, h->threshold ? keep : NULL, seen, (float[4]){by, logsum, h->scale, mean});
    const uint8_t *mask = h->mask_bytes ? h->mask_bytes + t * h->z.mask_query + key : NULL;
    for (int64_t i = 0; mask && i < seen; i++)
        ds[i] = mask[i] ? ds[i] : 0;
}

INLINE bool attention_is_empty(const struct attention_sizes *z)
{
    return z->queries < 1 || z->keys < 1 || z->depth < 1 || z->value_depth < 1;
}

/* All f32 but mask and iteration, and depths that one block of steps holds. */
INLINE bool attention_takes(const struct node *node)
{
    struct attention_sizes z = attention_sizes(node);
    for (int i = 0; i < node->input_count; i++)
        if (i != 3 && i != 4 && node->input[i]->type != TYPE_F32)
            return false;
    return z.depth <= MOST_DEPTH && z.value_depth <= MOST_DEPTH && !attention_is_empty(&z);
}

/* ---- forward: a call's heads, one after another ------------------------------ */

/* q, k, v and out: f32 or bf16, as the kernel has them. */
struct forward_head {
    struct attention_head h;
    const void *q, *k, *v;
    void *out;
    float *logsum;
    void *room; /* the kernel's own struct */
};

/* How a kernel does a head, in blocks of `block` queries. */
struct forward_steps {
    int64_t block, element; /* element: bytes of one of q, k, v and out */
    void (*pack_keys)(const struct forward_head *f);
    /* Queries query..query + rows: against keys key..key + width; when they have met all that they see. */
    void (*add_keys)(const struct forward_head *f, int64_t query, int64_t rows, int64_t key, int64_t width);
    void (*finish)(const struct forward_head *f, int64_t query, int64_t rows);
};

/* met: of each query of a block. */
INLINE void run_forward_head(const struct forward_head *f, const struct forward_steps *steps, struct met *met)
{
    const struct attention_head *h = &f->h;
    for (int64_t query = 0; query < h->z.queries; query += steps->block) {
        int64_t rows = min_i64(h->z.queries - query, steps->block);
        for (int64_t row = 0; row < rows; row++)
            met[row].most = LEAST_SCORE;
        for (int64_t key = 0; key < h->z.keys && !(h->causal && key >= query + rows); key += KEY_BLOCK)
            steps->add_keys(f, query, rows, key, met_keys(h, query, rows, key));
        steps->finish(f, query, rows);
    }
}

INLINE void run_forward_heads(const struct kernel *kernel, const struct call *call, const struct forward_steps *steps,
                              void *room, struct met *met)
{
    const struct attention_sizes z = attention_sizes(call->node);
    struct attention_span span = attention_span_of(kernel, call, z.heads);
    for (int64_t i = span.first; i < span.end; i++) {
        int64_t n = i / z.heads, head = i % z.heads, bytes = steps->element;
        const struct attention_places at = attention_places_of(&z, n, head);
        const struct forward_head f = {
            .h = attention_head_of(call, span.base, n, head),
            .q = (const char *)call->input[0] + at.q * bytes,
            .k = (const char *)call->input[1] + at.k * bytes,
            .v = (const char *)call->input[2] + at.v * bytes,
            .out = (char *)call->output[0] + at.out * bytes,
            .logsum = (float *)call->output[1] + at.logsum,
            .room = room,
        };
        if (i == span.first || head % (z.heads / z.groups) == 0)
            steps->pack_keys(&f);
        run_forward_head(&f, steps, met);
    }
}

/* ---- backward ---------------------------------------------------------------- */

/* Inputs behind q, k, v, mask and iteration. */
enum { OUT = 5, LOGSUM, DOUT };

struct backward_head {
    struct attention_head h;
    const void *q, *k, *v, *out, *dout;
    const float *logsum;
    void *dq, *dk, *dv;
    void *room;       /* the kernel's own struct */
    bool first, last; /* of its group */
};

/* Group by group; element: bytes of one of the operands. */
INLINE void run_backward_heads(const struct kernel *kernel, const struct call *call, int64_t element, void *room,
                               void (*pack_group)(const struct backward_head *b),
                               void (*run_head)(const struct backward_head *b))
{
    const struct attention_sizes z = attention_sizes(call->node);
    struct attention_span span = attention_span_of(kernel, call, z.groups);
    int64_t share = z.heads / z.groups;
    for (int64_t i = span.first * share; i < span.end * share; i++) {
        int64_t n = i / z.heads, head = i % z.heads;
        const struct attention_places at = attention_places_of(&z, n, head);
        const struct backward_head b = {
            .h = attention_head_of(call, span.base, n, head),
            .q = (const char *)call->input[0] + at.q * element,
            .k = (const char *)call->input[1] + at.k * element,
            .v = (const char *)call->input[2] + at.v * element,
            .out = (const char *)call->input[OUT] + at.out * element,
            .dout = (const char *)call->input[DOUT] + at.out * element,
            .logsum = (const float *)call->input[LOGSUM] + at.logsum,
            .dq = (char *)call->output[0] + at.q * element,
            .dk = (char *)call->output[1] + at.k * element,
            .dv = (char *)call->output[2] + at.v * element,
            .room = room,
            .first = head % share == 0,
            .last = head % share == share - 1,
        };
        if (b.first)
            pack_group(&b);
        run_head(&b);
    }
}

#endif
