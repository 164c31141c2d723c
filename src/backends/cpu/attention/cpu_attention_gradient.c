/* cpu_attention_gradient.c - attention, backward: scores are made again, block by block.

   For a group of heads k and v are packed once, for a head q and dout; then each block of keys meets each block
   of queries that sees it:
     p = exp(q . k^T - logsumexp), dp = dout . v^T, ds = p * (dp - sum(dout * out)),
     dv += p^T . dout, dk += ds^T . q, dq += ds . k.
   Sums run over queries, then heads of the group, in this order always. */
#include "backends/cpu/attention/cpu_attention_pack.h"

#define QUERY_BLOCK (8 * GEMM_TALL)

struct backward_room {
    float *keys_right, *values_right;  /* panels of k^T [d, S] and v^T [e, S] */
    float *keys, *queries, *gradients; /* panels of blocks of k, q and dout as they are */
    float *mean;                       /* [T]: sum(dout * out) */
    float p[QUERY_BLOCK * SCORE_ROW], ds[QUERY_BLOCK * SCORE_ROW];
    float keep[KEY_BLOCK];
};

/* Floats of each array, in the order of backward_room. */
static void array_floats(int64_t floats[6], const struct attention_sizes *z)
{
    floats[0] = gemm_b_floats(z->depth, z->keys);
    floats[1] = gemm_b_floats(z->value_depth, z->keys);
    floats[2] = PACKED_ROW(z->depth) * z->keys;
    floats[3] = PACKED_ROW(z->depth) * z->queries;
    floats[4] = PACKED_ROW(z->value_depth) * z->queries;
    floats[5] = PACKED_ROW(z->queries);
}

#define HEAD_BYTES ((sizeof(struct backward_room) + 63) / 64 * 64)

static struct backward_room *room_of(void *scratch, const struct attention_sizes *z)
{
    struct backward_room *room = scratch;
    float **array[] = {&room->keys_right, &room->values_right, &room->keys,
                       &room->queries,    &room->gradients,    &room->mean};
    int64_t floats[6];
    float *at = (float *)((char *)scratch + HEAD_BYTES);
    array_floats(floats, z);
    for (int i = 0; i < 6; i++) {
        *array[i] = at;
        at += floats[i];
    }
    return room;
}

static void pack_group(const struct backward_head *b)
{
    const struct attention_sizes *z = &b->h.z;
    const struct backward_room *room = b->room;
    int64_t key_row = z->groups * z->depth, value_row = z->groups * z->value_depth;
    pack_turned(room->keys_right, b->k, z->keys, key_row, z->depth);
    pack_turned(room->values_right, b->v, z->keys, value_row, z->value_depth);
    pack_blocks(room->keys, b->k, z->keys, key_row, z->depth, KEY_BLOCK);
}

static void pack_head(const struct backward_head *b)
{
    const struct attention_sizes *z = &b->h.z;
    const struct backward_room *room = b->room;
    const float *out = b->out, *dout = b->dout;
    int64_t row = z->heads * z->value_depth;
    pack_blocks(room->queries, b->q, z->queries, z->heads * z->depth, z->depth, QUERY_BLOCK);
    pack_blocks(room->gradients, dout, z->queries, row, z->value_depth, QUERY_BLOCK);
    for (int64_t t = 0; t < z->queries; t++)
        room->mean[t] = row_dot(out + t * row, dout + t * row, z->value_depth);
}

/* c[m, n] (+)= a . packed, with A where it lies; sizes: m, n, k, and the steps of what is packed. */
static void multiply(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_step, const float *packed,
                     const int64_t sizes[4], bool add)
{
    const struct gemm g = {.m = sizes[0],
                           .n = sizes[1],
                           .k = sizes[2],
                           .a = a,
                           .a_row = a_row,
                           .a_step = a_step,
                           .a_in_place = true,
                           .b_packed = packed,
                           .packed_steps = sizes[3],
                           .c = c,
                           .c_row = c_row,
                           .add = add};
    VARIANT(gemm_packed)(&g);
}

/* add: this block of keys has met queries before. */
static void add_gradients(const struct backward_head *b, int64_t query, int64_t rows, int64_t key, int64_t width,
                          bool add)
{
    const struct attention_sizes *z = &b->h.z;
    struct backward_room *room = b->room;
    int64_t d = z->depth, e = z->value_depth, q_row = z->heads * d, out_row = z->heads * e;
    int64_t k_row = z->groups * d, v_row = z->groups * e;
    multiply(room->p, SCORE_ROW, (const float *)b->q + query * q_row, q_row, 1, room->keys_right + key * d,
             (int64_t[]){rows, width, d, d}, false);
    multiply(room->ds, SCORE_ROW, (const float *)b->dout + query * out_row, out_row, 1, room->values_right + key * e,
             (int64_t[]){rows, width, e, e}, false);
    for (int64_t row = 0; row < rows; row++)
        differ_scores(room->p + row * SCORE_ROW, room->ds + row * SCORE_ROW, room->keep, &b->h, query + row, key, width,
                      b->logsum[query + row], room->mean[query + row]);
    multiply((float *)b->dv + key * v_row, v_row, room->p, 1, SCORE_ROW, room->gradients + query * PACKED_ROW(e),
             (int64_t[]){width, e, rows, rows}, add);
    multiply((float *)b->dk + key * k_row, k_row, room->ds, 1, SCORE_ROW, room->queries + query * PACKED_ROW(d),
             (int64_t[]){width, d, rows, rows}, add);
    multiply((float *)b->dq + query * q_row, q_row, room->ds, SCORE_ROW, 1, room->keys + key * PACKED_ROW(d),
             (int64_t[]){rows, d, width, min_i64(z->keys - key, KEY_BLOCK)}, key > 0);
}

static void clear_rows(float *x, int64_t rows, int64_t row, int64_t depth)
{
    for (int64_t i = 0; i < rows; i++)
        memset(x + i * row, 0, (size_t)depth * sizeof *x);
}

/* Keys first..end, of which nothing is summed up yet. */
static void clear_keys(const struct backward_head *b, int64_t first, int64_t end)
{
    const struct attention_sizes *z = &b->h.z;
    int64_t k_row = z->groups * z->depth, v_row = z->groups * z->value_depth;
    clear_rows((float *)b->dk + first * k_row, end - first, k_row, z->depth);
    clear_rows((float *)b->dv + first * v_row, end - first, v_row, z->value_depth);
}

static void run_head(const struct backward_head *b)
{
    const struct attention_sizes *z = &b->h.z;
    pack_head(b);
    for (int64_t key = 0; key < z->keys; key += KEY_BLOCK) {
        int64_t end = key + min_i64(z->keys - key, KEY_BLOCK);
        bool met = !b->first;
        for (int64_t query = 0; query < z->queries; query += QUERY_BLOCK) {
            int64_t rows = min_i64(z->queries - query, QUERY_BLOCK);
            if (b->h.causal && query + rows <= key)
                continue;
            int64_t width = met_keys(&b->h, query, rows, key);
            add_gradients(b, query, rows, key, width, met);
            if (!met) /* the others meet a later query, or none */
                clear_keys(b, key + width, end);
            met = true;
        }
        if (!met)
            clear_keys(b, key, end);
    }
}

static void run_attention_gradient(const struct kernel *kernel, const struct call *call)
{
    const struct attention_sizes z = attention_sizes(call->node);
    run_backward_heads(kernel, call, sizeof(float), room_of(call->scratch, &z), pack_group, run_head);
}

MAKER(make_attention_gradient)
{
    if (!attention_takes(node))
        return false;
    const struct attention_sizes z = attention_sizes(node);
    int64_t floats[6], all = 0;
    array_floats(floats, &z);
    for (int i = 0; i < 6; i++)
        all += floats[i];
    out->kernel.scratch_bytes = HEAD_BYTES + (size_t)all * sizeof(float);
    out->kernel.run = run_attention_gradient;
    return true;
}
