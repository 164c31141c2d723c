/* cpu_attention_gradient_tiles.c - attention of bf16, backward, by matrix tiles: cpu_attention_gradient.c's walk over
   blocks of keys and queries. p and ds are no bf16: they go through in two parts (cpu_split.h). dq of a head and dk and
   dv of a group are f32 until all is added, then rounded once. */
#define ATTENTION_BF16
#include "backends/cpu/attention/cpu_attention_pack.h"
#include "backends/cpu/cpu_split.h"
#include "base/numbers/count.h"

#if LANES == 16

#define QUERY_BLOCK 128
#define PART        (QUERY_BLOCK * SCORE_ROW)

/* Where a worker's arrays lie. */
struct backward_room {
    float *p, *ds;                        /* PART */
    uint16_t *p_parts, *ds_parts;         /* two of PART */
    float *keep;                          /* KEY_BLOCK */
    uint16_t *keys_right, *values_right;  /* packed: k^T [d, S] and v^T [e, S] */
    uint16_t *keys, *queries, *gradients; /* packed: blocks of k, q and dout as they are */
    float *mean;                          /* [T]: sum(dout * out) */
    float *dq, *dk, *dv;                  /* [T, d], [S, d], [S, e] */
    float *rows;                          /* two of e */
    char *gemm;
};

/* Returns the bytes; without a scratch there is nothing else to know. */
static size_t lay_room(struct backward_room *room, char *scratch, const struct attention_sizes *z)
{
    size_t at = 0;
    int64_t keys = tile_padded(z->keys), queries = tile_padded(z->queries);
    int64_t d = tile_padded(z->depth), e = tile_padded(z->value_depth);
    room->p = tile_room_at(scratch, &at, (size_t)(PART * 4));
    room->ds = tile_room_at(scratch, &at, (size_t)(PART * 4));
    room->p_parts = tile_room_at(scratch, &at, (size_t)(2 * PART * 2));
    room->ds_parts = tile_room_at(scratch, &at, (size_t)(2 * PART * 2));
    room->keep = tile_room_at(scratch, &at, (size_t)(KEY_BLOCK * 4));
    room->keys_right = tile_room_at(scratch, &at, (size_t)(keys * d * 2));
    room->values_right = tile_room_at(scratch, &at, (size_t)(keys * e * 2));
    room->keys = tile_room_at(scratch, &at, (size_t)(keys * d * 2));
    room->queries = tile_room_at(scratch, &at, (size_t)(queries * d * 2));
    room->gradients = tile_room_at(scratch, &at, (size_t)(queries * e * 2));
    room->mean = tile_room_at(scratch, &at, (size_t)(queries * 4));
    room->dq = tile_room_at(scratch, &at, (size_t)(z->queries * z->depth * 4));
    room->dk = tile_room_at(scratch, &at, (size_t)(z->keys * z->depth * 4));
    room->dv = tile_room_at(scratch, &at, (size_t)(z->keys * z->value_depth * 4));
    room->rows = tile_room_at(scratch, &at, (size_t)(2 * e * 4));
    room->gemm =
        tile_room_at(scratch, &at, (size_t)(tile_room_bytes(TILE_BLOCK, max_i64(KEY_BLOCK, max_i64(d, e)), true)));
    return at;
}

static void pack_group(const struct backward_head *b)
{
    const struct attention_sizes *z = &b->h.z;
    const struct backward_room *room = b->room;
    int64_t key_row = z->groups * z->depth, value_row = z->groups * z->value_depth;
    pack_turned(room->keys_right, b->k, z->keys, key_row, z->depth);
    pack_turned(room->values_right, b->v, z->keys, value_row, z->value_depth);
    pack_blocks(room->keys, b->k, z->keys, key_row, z->depth, KEY_BLOCK);
    memset(room->dk, 0, (size_t)(z->keys * z->depth) * sizeof(float));
    memset(room->dv, 0, (size_t)(z->keys * z->value_depth) * sizeof(float));
}

static void pack_head(const struct backward_head *b)
{
    const struct attention_sizes *z = &b->h.z;
    const struct backward_room *room = b->room;
    int64_t e = z->value_depth, row = z->heads * e;
    float *out = room->rows, *dout = out + tile_padded(e);
    pack_blocks(room->queries, b->q, z->queries, z->heads * z->depth, z->depth, QUERY_BLOCK);
    pack_blocks(room->gradients, b->dout, z->queries, row, e, QUERY_BLOCK);
    for (int64_t t = 0; t < z->queries; t++) {
        VARIANT(widen)(out, (const uint16_t *)b->out + t * row, TYPE_BF16, e);
        VARIANT(widen)(dout, (const uint16_t *)b->dout + t * row, TYPE_BF16, e);
        room->mean[t] = row_dot(out, dout, e);
    }
}

/* c (+)= a . packed, where a is in two parts, PART elements apart: as it lies, or turned round. sizes: m, n, k, and the
   steps of what is packed. */
static void multiply(const struct backward_head *b, float *c, const uint16_t *parts, bool turned,
                     const uint16_t *packed, const int64_t sizes[4], bool add)
{
    struct tile_gemm g = {.m = sizes[0],
                          .n = sizes[1],
                          .k = sizes[2],
                          .a_row = turned ? 1 : SCORE_ROW,
                          .a_step = turned ? SCORE_ROW : 1,
                          .b_packed = packed,
                          .packed_steps = sizes[3],
                          .c = c,
                          .c_row = sizes[1],
                          .c_wide = true,
                          .room = ((const struct backward_room *)b->room)->gemm};
    for (int part = 0; part < 2; part++) {
        g.a = parts + part * PART;
        g.add = add || part > 0;
        gemm_tiles(&g);
    }
}

/* Products of queries (or dout) with keys (or values) key..key + width. */
static void products(const struct backward_head *b, float *to, const uint16_t *a, int64_t depth, const uint16_t *packed,
                     int64_t rows, int64_t width)
{
    const struct tile_gemm g = {.m = rows,
                                .n = width,
                                .k = depth,
                                .a = a,
                                .a_row = b->h.z.heads * depth,
                                .a_step = 1,
                                .b_packed = packed,
                                .c = to,
                                .c_row = SCORE_ROW,
                                .c_wide = true,
                                .room = ((const struct backward_room *)b->room)->gemm};
    gemm_tiles(&g);
}

static void add_gradients_by_tiles(const struct backward_head *b, int64_t query, int64_t rows, int64_t key,
                                   int64_t width)
{
    const struct attention_sizes *z = &b->h.z;
    const struct backward_room *room = b->room;
    int64_t d = z->depth, e = z->value_depth, packed_d = tile_padded(d), packed_e = tile_padded(e);
    products(b, room->p, (const uint16_t *)b->q + query * z->heads * d, d, room->keys_right + key * packed_d, rows,
             width);
    products(b, room->ds, (const uint16_t *)b->dout + query * z->heads * e, e, room->values_right + key * packed_e,
             rows, width);
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = row * SCORE_ROW;
        differ_scores(room->p + at, room->ds + at, room->keep, &b->h, query + row, key, width, b->logsum[query + row],
                      room->mean[query + row]);
        split_in_two(room->p_parts + at, room->p_parts + PART + at, room->p + at, width);
        split_in_two(room->ds_parts + at, room->ds_parts + PART + at, room->ds + at, width);
    }
    multiply(b, room->dv + key * e, room->p_parts, true, room->gradients + query * packed_e,
             (int64_t[]){width, e, rows, rows}, true);
    multiply(b, room->dk + key * d, room->ds_parts, true, room->queries + query * packed_d,
             (int64_t[]){width, d, rows, rows}, true);
    multiply(b, room->dq + query * d, room->ds_parts, false, room->keys + key * packed_d,
             (int64_t[]){rows, d, width, min_i64(z->keys - key, KEY_BLOCK)}, key > 0);
}

static void round_rows(uint16_t *to, int64_t row, const float *from, int64_t rows, int64_t depth)
{
    for (int64_t i = 0; i < rows; i++)
        VARIANT(narrow)(to + i * row, from + i * depth, TYPE_BF16, depth);
}

static void run_head(const struct backward_head *b)
{
    const struct attention_sizes *z = &b->h.z;
    const struct backward_room *room = b->room;
    pack_head(b);
    for (int64_t key = 0; key < z->keys; key += KEY_BLOCK)
        for (int64_t query = 0; query < z->queries; query += QUERY_BLOCK) {
            int64_t rows = min_i64(z->queries - query, QUERY_BLOCK);
            if (!b->h.causal || query + rows > key)
                add_gradients_by_tiles(b, query, rows, key, met_keys(&b->h, query, rows, key));
        }
    round_rows(b->dq, z->heads * z->depth, room->dq, z->queries, z->depth);
    if (!b->last)
        return;
    round_rows(b->dk, z->groups * z->depth, room->dk, z->keys, z->depth);
    round_rows(b->dv, z->groups * z->value_depth, room->dv, z->keys, z->value_depth);
}

static void run_attention_gradient_tiles(const struct kernel *kernel, const struct call *call)
{
    const struct attention_sizes z = attention_sizes(call->node);
    struct backward_room room;
    lay_room(&room, call->scratch, &z);
    run_backward_heads(kernel, call, sizeof(uint16_t), &room, pack_group, run_head);
}

MAKER(make_attention_gradient_tiles)
{
    const struct attention_sizes z = attention_sizes(node);
    static const int small[] = {0, 1, 2, OUT, DOUT};
    bool fits = node->input[LOGSUM]->type == TYPE_F32 && !attention_is_empty(&z);
    for (size_t i = 0; i < COUNT(small); i++)
        fits = fits && node->input[small[i]]->type == TYPE_BF16;
    if (!fits || !tiles_allowed())
        return false;
    struct backward_room room;
    out->kernel.scratch_bytes = lay_room(&room, NULL, &z);
    out->kernel.implementation = tiles_name();
    out->kernel.run = run_attention_gradient_tiles;
    return true;
}

#endif
