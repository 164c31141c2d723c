/* cpu_attention.c - attention, forward: blocks of queries against blocks of keys, softmax on the way.

   For a group of heads, keys are packed as the right side of q . k^T and values as that of p . v.
   A block of queries meets one block of keys after another; the sum so far is scaled
   down when a larger score comes. out itself holds the sum. */
#include "backends/cpu/attention/cpu_attention.h"

#define QUERY_BLOCK (4 * GEMM_TALL)

/* A worker's bytes, for one group of heads. */
struct forward_room {
    float *keys, *values; /* panels of k^T [d, S]; of blocks of v [KEY_BLOCK, e] */
    float scores[QUERY_BLOCK * SCORE_ROW];
    struct met met[QUERY_BLOCK];
    float keep[KEY_BLOCK];
};

static size_t padded_depth(int64_t depth)
{
    return (size_t)((depth + LANES - 1) / LANES * LANES);
}

static size_t room_bytes(const struct attention_sizes *z)
{
    size_t keys = (size_t)gemm_b_floats(z->depth, z->keys), values = padded_depth(z->value_depth) * (size_t)z->keys;
    return (sizeof(struct forward_room) + 63) / 64 * 64 + (keys + values) * sizeof(float);
}

struct forward_head {
    struct attention_head h;
    const float *q, *k, *v;
    float *out, *logsum;
    struct forward_room *room;
};

static void pack_keys(const struct forward_head *f)
{
    const struct attention_sizes *z = &f->h.z;
    struct gemm g = {.n = z->keys, .k = z->depth, .b = f->k, .b_step = 1, .b_column = z->groups * z->depth};
    VARIANT(gemm_pack_b)(f->room->keys, &g, 0, 1);
    for (int64_t key = 0; key < z->keys; key += KEY_BLOCK) {
        g = (struct gemm){.n = z->value_depth,
                          .k = smaller_of(z->keys - key, KEY_BLOCK),
                          .b = f->v + key * z->groups * z->value_depth,
                          .b_step = z->groups * z->value_depth,
                          .b_column = 1};
        VARIANT(gemm_pack_b)(f->room->values + (size_t)key * padded_depth(z->value_depth), &g, 0, 1);
    }
}

/* Queries query..query + rows against keys key..key + width. */
static void meet(const struct forward_head *f, int64_t query, int64_t rows, int64_t key, int64_t width)
{
    const struct attention_sizes *z = &f->h.z;
    struct gemm scores = {.m = rows,
                          .n = width,
                          .k = z->depth,
                          .a = f->q + query * z->heads * z->depth,
                          .a_row = z->heads * z->depth,
                          .a_step = 1,
                          .a_in_place = true,
                          .b_packed = f->room->keys + key * z->depth,
                          .c = f->room->scores,
                          .c_row = SCORE_ROW};
    VARIANT(gemm_packed)(&scores);
    for (int64_t row = 0; row < rows; row++)
        soften(f->room->scores + row * SCORE_ROW, f->out + (query + row) * z->heads * z->value_depth,
               f->room->met + row, f->room->keep, &f->h, query + row, key, width);
    struct gemm sums = {.m = rows,
                        .n = z->value_depth,
                        .k = width,
                        .a = f->room->scores,
                        .a_row = SCORE_ROW,
                        .a_step = 1,
                        .a_in_place = true,
                        .b_packed = f->room->values + (size_t)key * padded_depth(z->value_depth),
                        .packed_steps = smaller_of(z->keys - key, KEY_BLOCK),
                        .c = f->out + query * z->heads * z->value_depth,
                        .c_row = z->heads * z->value_depth,
                        .add = key > 0};
    VARIANT(gemm_packed)(&sums);
}

/* out /= sum; logsumexp = most + log(sum). */
static void finish(const struct forward_head *f, int64_t query, int64_t rows)
{
    const struct attention_sizes *z = &f->h.z;
    for (int64_t row = 0; row < rows; row++) {
        float *out = f->out + (query + row) * z->heads * z->value_depth, scale = 1 / f->room->met[row].sum;
        INDEPENDENT
        for (int64_t i = 0; i < z->value_depth; i++)
            out[i] *= scale;
        f->logsum[query + row] = f->room->met[row].most + log_of(f->room->met[row].sum);
    }
}

static void run_attention(const struct kernel *kernel, const struct call *call)
{
    const struct attention_sizes z = attention_sizes(call->node);
    struct attention_span span = attention_span_of(kernel, call, z.heads);
    struct forward_room *room = call->scratch;
    room->keys = (float *)((char *)call->scratch + (sizeof *room + 63) / 64 * 64);
    room->values = room->keys + gemm_b_floats(z.depth, z.keys);
    for (int64_t i = span.first; i < span.end; i++) {
        int64_t n = i / z.heads, head = i % z.heads;
        const struct attention_places at = attention_places_of(&z, n, head);
        const struct forward_head f = {
            .h = attention_head_of(call, span.base, n, head),
            .q = (const float *)call->input[0] + at.q,
            .k = (const float *)call->input[1] + at.k,
            .v = (const float *)call->input[2] + at.v,
            .out = (float *)call->output[0] + at.out,
            .logsum = (float *)call->output[1] + at.logsum,
            .room = room,
        };
        if (i == span.first || head % (z.heads / z.groups) == 0)
            pack_keys(&f);
        walk_forward(&f, &f.h, QUERY_BLOCK, room->met, meet, finish);
    }
}

MAKER(make_attention)
{
    (void)entry, (void)error;
    if (!attention_takes(request->node))
        return PLIM_OK;
    const struct attention_sizes z = attention_sizes(request->node);
    out->kernel.scratch_bytes = room_bytes(&z);
    out->kernel.run = run_attention;
    return PLIM_OK;
}
