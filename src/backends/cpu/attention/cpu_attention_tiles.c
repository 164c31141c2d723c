/* cpu_attention_tiles.c - attention of bf16, forward, by matrix tiles: cpu_attention.c's walk over blocks of queries
   and keys. p is no bf16: it goes through in two parts (cpu_split.h). The sum of a block of queries is f32 until its
   last key, then rounded once. */
#define ATTENTION_BF16
#include "backends/cpu/attention/cpu_attention_pack.h"
#include "backends/cpu/cpu_split.h"

#if LANES == 16

#define QUERY_BLOCK 64

struct forward_room {
    float scores[QUERY_BLOCK * SCORE_ROW];
    uint16_t parts[2 * QUERY_BLOCK * SCORE_ROW]; /* of p: the first of all rows, then the second */
    struct met met[QUERY_BLOCK];
    float keep[KEY_BLOCK];
    float *out;              /* [QUERY_BLOCK, e] */
    uint16_t *keys, *values; /* packed: k^T [d, S]; blocks of v [KEY_BLOCK, e] */
    char *gemm;
};

#define HEAD_BYTES ((sizeof(struct forward_room) + 63) / 64 * 64)

static int64_t gemm_bytes(const struct attention_sizes *z)
{
    int64_t steps = z->depth > KEY_BLOCK ? z->depth : KEY_BLOCK;
    return tile_room_bytes(TILE_BLOCK, steps, true);
}

static size_t room_bytes(const struct attention_sizes *z)
{
    int64_t keys = tile_padded(z->keys), packed = keys * (tile_padded(z->depth) + tile_padded(z->value_depth));
    return HEAD_BYTES + (size_t)packed * 2 + (size_t)(QUERY_BLOCK * tile_padded(z->value_depth)) * sizeof(float) +
           (size_t)gemm_bytes(z);
}

static struct forward_room *room_of(void *scratch, const struct attention_sizes *z)
{
    struct forward_room *room = scratch;
    room->keys = (uint16_t *)((char *)scratch + HEAD_BYTES);
    room->values = room->keys + tile_padded(z->keys) * tile_padded(z->depth);
    room->out = (float *)(room->values + tile_padded(z->keys) * tile_padded(z->value_depth));
    room->gemm = (char *)(room->out + QUERY_BLOCK * tile_padded(z->value_depth));
    return room;
}

static void pack_keys(const struct forward_head *f)
{
    const struct attention_sizes *z = &f->h.z;
    const struct forward_room *room = f->room;
    pack_turned(room->keys, f->k, z->keys, z->groups * z->depth, z->depth);
    pack_blocks(room->values, f->v, z->keys, z->groups * z->value_depth, z->value_depth, KEY_BLOCK);
}

/* Queries query..query + rows against keys key..key + width. */
static void add_keys_by_tiles(const struct forward_head *f, int64_t query, int64_t rows, int64_t key, int64_t width)
{
    const struct attention_sizes *z = &f->h.z;
    struct forward_room *room = f->room;
    struct tile_gemm g = {.m = rows,
                          .n = width,
                          .k = z->depth,
                          .a = (const uint16_t *)f->q + query * z->heads * z->depth,
                          .a_row = z->heads * z->depth,
                          .a_step = 1,
                          .b_packed = room->keys + key * tile_padded(z->depth),
                          .c = room->scores,
                          .c_row = SCORE_ROW,
                          .c_wide = true,
                          .room = room->gemm};
    gemm_tiles(&g);
    for (int64_t row = 0; row < rows; row++) {
        uint16_t *part = room->parts + row * SCORE_ROW;
        soften(room->scores + row * SCORE_ROW, room->out + row * z->value_depth, room->met + row, room->keep, &f->h,
               query + row, key, width);
        split_in_two(part, part + QUERY_BLOCK * SCORE_ROW, room->scores + row * SCORE_ROW, width);
    }
    g.n = z->value_depth;
    g.k = width;
    g.a_row = SCORE_ROW;
    g.b_packed = room->values + key * tile_padded(z->value_depth);
    g.packed_steps = min_i64(z->keys - key, KEY_BLOCK);
    g.c = room->out;
    g.c_row = z->value_depth;
    for (int part = 0; part < 2; part++) {
        g.a = room->parts + part * QUERY_BLOCK * SCORE_ROW;
        g.add = key > 0 || part > 0;
        gemm_tiles(&g);
    }
}

/* out = sum / sum of p, rounded; logsumexp = most + log(sum). */
static void finish(const struct forward_head *f, int64_t query, int64_t rows)
{
    const struct attention_sizes *z = &f->h.z;
    const struct forward_room *room = f->room;
    for (int64_t row = 0; row < rows; row++) {
        float *out = room->out + row * z->value_depth, scale = 1 / room->met[row].sum;
        INDEPENDENT
        for (int64_t i = 0; i < z->value_depth; i++)
            out[i] *= scale;
        VARIANT(narrow)((uint16_t *)f->out + (query + row) * z->heads * z->value_depth, out, TYPE_BF16, z->value_depth);
        f->logsum[query + row] = room->met[row].most + log_of(room->met[row].sum);
    }
}

static void run_attention_tiles(const struct kernel *kernel, const struct call *call)
{
    static const struct forward_steps steps = {QUERY_BLOCK, sizeof(uint16_t), pack_keys, add_keys_by_tiles, finish};
    const struct attention_sizes z = attention_sizes(call->node);
    struct forward_room *room = room_of(call->scratch, &z);
    run_forward_heads(kernel, call, &steps, room, room->met);
}

MAKER(make_attention_tiles)
{
    const struct attention_sizes z = attention_sizes(node);
    bool small = node->output[1]->type == TYPE_F32 && !attention_is_empty(&z);
    for (int i = 0; i < 3; i++)
        small = small && node->input[i]->type == TYPE_BF16;
    if (!small || !tiles_allowed())
        return false;
    out->kernel.scratch_bytes = room_bytes(&z);
    out->kernel.implementation = tiles_name();
    out->kernel.run = run_attention_tiles;
    return true;
}

#endif
