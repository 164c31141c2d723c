/* cpu_attention.c - attention, forward: blocks of queries against blocks of keys, softmax on the way.

   For a group of heads, keys are packed as the right side of q . k^T and values as that of p . v.
   A block of queries meets one block of keys after another; the sum so far is scaled
   down when a larger score comes. out itself holds the sum. */
#include "backends/cpu/attention/cpu_attention_pack.h"

#define QUERY_BLOCK (4 * GEMM_TALL)

/* A worker's bytes, for one group of heads. */
struct forward_room {
    float *keys, *values; /* panels of k^T [d, S]; of blocks of v [KEY_BLOCK, e] */
    float scores[QUERY_BLOCK * SCORE_ROW];
    struct met met[QUERY_BLOCK];
    float keep[KEY_BLOCK];
};

static size_t room_bytes(const struct attention_sizes *z)
{
    size_t keys = (size_t)gemm_b_floats(z->depth, z->keys),
           values = (size_t)PACKED_ROW(z->value_depth) * (size_t)z->keys;
    return (sizeof(struct forward_room) + 63) / 64 * 64 + (keys + values) * sizeof(float);
}

static void pack_keys(const struct forward_head *f)
{
    const struct attention_sizes *z = &f->h.z;
    const struct forward_room *room = f->room;
    pack_turned(room->keys, f->k, z->keys, z->groups * z->depth, z->depth);
    pack_blocks(room->values, f->v, z->keys, z->groups * z->value_depth, z->value_depth, KEY_BLOCK);
}

/* Queries query..query + rows against keys key..key + width. */
static void add_keys(const struct forward_head *f, int64_t query, int64_t rows, int64_t key, int64_t width)
{
    const struct attention_sizes *z = &f->h.z;
    struct forward_room *room = f->room;
    float *out = (float *)f->out + query * z->heads * z->value_depth;
    struct gemm scores = {.m = rows,
                          .n = width,
                          .k = z->depth,
                          .a = (const float *)f->q + query * z->heads * z->depth,
                          .a_row = z->heads * z->depth,
                          .a_step = 1,
                          .a_in_place = true,
                          .b_packed = room->keys + key * z->depth,
                          .c = room->scores,
                          .c_row = SCORE_ROW};
    VARIANT(gemm_packed)(&scores);
    for (int64_t row = 0; row < rows; row++)
        soften(room->scores + row * SCORE_ROW, out + row * z->heads * z->value_depth, room->met + row, room->keep,
               &f->h, query + row, key, width);
    struct gemm sums = {.m = rows,
                        .n = z->value_depth,
                        .k = width,
                        .a = room->scores,
                        .a_row = SCORE_ROW,
                        .a_step = 1,
                        .a_in_place = true,
                        .b_packed = room->values + key * PACKED_ROW(z->value_depth),
                        .packed_steps = min_i64(z->keys - key, KEY_BLOCK),
                        .c = out,
                        .c_row = z->heads * z->value_depth,
                        .add = key > 0};
    VARIANT(gemm_packed)(&sums);
}

/* out /= sum; logsumexp = most + log(sum). */
static void finish(const struct forward_head *f, int64_t query, int64_t rows)
{
    const struct attention_sizes *z = &f->h.z;
    const struct met *met = ((const struct forward_room *)f->room)->met;
    for (int64_t row = 0; row < rows; row++) {
        float *out = (float *)f->out + (query + row) * z->heads * z->value_depth, scale = 1 / met[row].sum;
        INDEPENDENT
        for (int64_t i = 0; i < z->value_depth; i++)
            out[i] *= scale;
        f->logsum[query + row] = met[row].most + log_of(met[row].sum);
    }
}

static void run_attention(const struct kernel *kernel, const struct call *call)
{
    static const struct forward_steps steps = {QUERY_BLOCK, sizeof(float), pack_keys, add_keys, finish};
    const struct attention_sizes z = attention_sizes(call->node);
    struct forward_room *room = call->scratch;
    room->keys = (float *)((char *)call->scratch + (sizeof *room + 63) / 64 * 64);
    room->values = room->keys + gemm_b_floats(z.depth, z.keys);
    run_forward_heads(kernel, call, &steps, room, room->met);
}

MAKER(make_attention)
{
    if (!attention_takes(node))
        return false;
    const struct attention_sizes z = attention_sizes(node);
    out->kernel.scratch_bytes = room_bytes(&z);
    out->kernel.run = run_attention;
    return true;
}
