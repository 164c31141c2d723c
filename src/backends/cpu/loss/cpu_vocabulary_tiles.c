/* cpu_vocabulary_tiles.c - softmax cross-entropy over many classes from bf16, by matrix tiles.

   Logits are made turned round, a class a row: w is then read where it lies, and what is done to the logits of a
   token is done to those of its neighbours at once. Gradients of logits are rounded to bf16 (vocabulary_loss.h).

   size[3]: elements of h packed for logits. */
#include "backends/cpu/cpu_bf16.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/gemm/gemm_tiles.h"
#include "backends/cpu/loss/cpu_vocabulary.h"

#if LANES == 16

/* The weights of class `at` of those that the slice sees, as the left side of w . h^T. */
static void set_classes(struct tile_gemm *g, const struct kernel *kernel, const struct call *call, int64_t at)
{
    int64_t d = cpu_kernel_of(kernel)->size[0], classes = cpu_kernel_of(kernel)->size[1];
    bool columns = by_columns(call->node);
    g->a = (const uint16_t *)call->input[1] + (columns ? at : at * d);
    g->a_row = columns ? 1 : d;
    g->a_step = columns ? classes : 1;
}

struct forward_room {
    struct token_rows tokens;
    float logits[CLASSES * FORWARD_ROW];
};

#define FORWARD_BYTES ((sizeof(struct forward_room) + 63) / 64 * 64)

static void run_tokens(const struct kernel *kernel, const struct call *call, int64_t token, int64_t rows)
{
    int64_t d = cpu_kernel_of(kernel)->size[0], classes = cpu_kernel_of(kernel)->size[1];
    struct forward_room *room = call->scratch;
    uint16_t *packed = (uint16_t *)((char *)call->scratch + FORWARD_BYTES);
    struct tile_gemm g = {.n = rows,
                          .k = d,
                          .b = (const uint16_t *)call->input[0] + token * d,
                          .b_step = 1,
                          .b_column = d,
                          .c = room->logits,
                          .c_row = FORWARD_ROW,
                          .c_wide = true,
                          .room = (char *)(packed + cpu_kernel_of(kernel)->size[3])};
    take_labels(&room->tokens, call, token, rows, classes);
    tile_pack_b(packed, &g);
    g.b_packed = packed;
    for (int64_t first = 0; first < classes; first += CLASSES) {
        g.m = min_i64(classes - first, CLASSES);
        set_classes(&g, kernel, call, first);
        gemm_tiles(&g);
        join_sums(&room->tokens, room->logits, call->input[3], rows, first, g.m);
    }
    give_losses(&room->tokens, call, token, rows);
}

static void run_forward(const struct kernel *kernel, const struct call *call)
{
    run_token_blocks(kernel, call, run_tokens);
}

static bool take_sizes(struct cpu_kernel *out, const struct node *node)
{
    const struct tensor *bias = node->op == &op_vocabulary_crossentropy ? node->input[3] : node->input[5];
    return take_vocabulary_sizes(out, node, TYPE_BF16) && (!bias || bias->type == TYPE_F32) && tiles_allowed();
}

MAKER(make_vocabulary_tiles)
{
    if (!take_sizes(out, node))
        return false;
    out->size[3] = tile_padded(out->size[0]) * TOKEN_ROWS;
    out->kernel.scratch_bytes = FORWARD_BYTES + (size_t)out->size[3] * sizeof(uint16_t) +
                                (size_t)tile_room_bytes(TOKEN_ROWS, out->size[0], true);
    out->kernel.implementation = tiles_name();
    out->kernel.run = run_forward;
    return true;
}

/* ---- backward ------------------------------------------------------------- */

/* Classes that are done together backward: dh is read and written once for all of them. */
#define MANY (2 * CLASSES)

/* A worker's bytes; each begins at a cache line. `row`: elements from one class to the next. */
struct backward_room {
    int64_t row;
    float *logits; /* [MANY, row] */
    uint16_t *dy;  /* [MANY, row] */
    uint16_t *w;   /* packed */
    float *d;      /* [row]: the loss's gradient, 0 where the label is ignored */
    char *gemm;
    size_t bytes;
};

/* scratch NULL: for its bytes. slice: of the call, or more. */
static struct backward_room room_of(char *scratch, int64_t tokens, int64_t d, bool columns, int64_t slice)
{
    struct backward_room room = {.row = tile_padded(tokens) + ROW_GAP};
    int64_t classes = min_i64(MANY, tile_padded(slice));
    size_t row = (size_t)room.row, many = (size_t)classes;
    int64_t products = max_i64(tile_room_bytes(tokens, d, true), tile_room_bytes(d, classes, true));
    products = max_i64(products, tile_room_bytes(columns ? classes : d, tokens, !columns));
    room.logits = tile_room_at(scratch, &room.bytes, many * row * sizeof(float));
    room.dy = tile_room_at(scratch, &room.bytes, many * row * sizeof(uint16_t));
    room.w = tile_room_at(scratch, &room.bytes, many * (size_t)tile_padded(d) * sizeof(uint16_t));
    room.d = tile_room_at(scratch, &room.bytes, row * sizeof(float));
    room.gemm = tile_room_at(scratch, &room.bytes, (size_t)products);
    return room;
}

/* h as the right side of w . h^T (unit 0) and of dy^T . h (unit 1; where w is [d, V] h stays where it lies). */
static struct tile_gemm hidden_of(const struct kernel *kernel, const struct call *call, int unit)
{
    int64_t d = cpu_kernel_of(kernel)->size[0], tokens = all_tokens(kernel, call);
    if (unit == 0)
        return (struct tile_gemm){.n = tokens, .k = d, .b = call->input[0], .b_step = 1, .b_column = d};
    return (struct tile_gemm){.n = d, .k = tokens, .b = call->input[0], .b_step = d, .b_column = 1};
}

PACKER(pack_hidden)
{
    const struct tile_gemm g = hidden_of(kernel, whole, unit);
    tile_pack_b((uint16_t *)pack + (unit ? cpu_kernel_of(kernel)->size[3] : 0), &g);
}

/* Logits of one class -> d(loss)/d(logit) of every token, but for the tokens whose label it is. */
static void differ(float *x, const float *logsum, const float *d, float bias, int64_t tokens)
{
    INDEPENDENT
    for (int64_t i = 0; i < tokens; i++)
        x[i] = exp_of(x[i] + bias - logsum[i]) * d[i];
}

/* to = x, rounded; x gets what it was rounded to. */
static void round_row(uint16_t *restrict to, float *restrict x, int64_t count)
{
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        to[i] = bf16_rounded(x[i]);
        x[i] = bf16_widened(to[i]);
    }
}

/* Gradients of the logits of classes `at`.. of the slice; the bias's on the way. */
static void make_gradients(const struct backward_room *room, const struct kernel *kernel, const struct call *call,
                           int64_t at, int64_t count)
{
    int64_t tokens = all_tokens(kernel, call), first = call->begin + at;
    const float *bias = call->input[5], *d = room->d;
    float *dbias = (float *)call->output[2] + at;
    for (int64_t c = 0; c < count; c++)
        differ(room->logits + c * room->row, call->input[3], d, bias ? bias[at + c] : 0, tokens);
    for (int64_t i = 0; i < tokens; i++) {
        double label = label_of(call, i);
        if (label >= (double)first && label < (double)(first + count))
            room->logits[((int64_t)label - first) * room->row + i] -= d[i];
    }
    for (int64_t c = 0; c < count; c++) {
        round_row(room->dy + c * room->row, room->logits + c * room->row, tokens);
        dbias[c] = row_total(room->logits + c * room->row, tokens);
    }
}

/* dw[classes, d] = dy^T . h, or dw[d, classes] = h^T . dy. */
static void weight_gradient(const struct backward_room *room, const struct kernel *kernel, const struct call *call,
                            int64_t at, int64_t count)
{
    int64_t d = cpu_kernel_of(kernel)->size[0], classes = cpu_kernel_of(kernel)->size[1];
    struct tile_gemm g = {.k = all_tokens(kernel, call), .c_wide = true, .room = room->gemm};
    if (by_columns(call->node)) {
        g.m = d, g.a = call->input[0], g.a_row = 1, g.a_step = d;
        g.n = count, g.b = room->dy, g.b_step = 1, g.b_column = room->row;
        g.c = (float *)call->output[1] + call->begin + at, g.c_row = classes;
    } else {
        g.m = count, g.a = room->dy, g.a_row = room->row, g.a_step = 1;
        g.n = d, g.b_packed = (const uint16_t *)call->pack + cpu_kernel_of(kernel)->size[3];
        g.c = (float *)call->output[1] + at * d, g.c_row = d;
    }
    gemm_tiles(&g);
}

/* dh gets the share of classes `at`.. of the slice. */
static void hidden_gradient(const struct backward_room *room, const struct kernel *kernel, const struct call *call,
                            int64_t at, int64_t count)
{
    int64_t d = cpu_kernel_of(kernel)->size[0];
    struct tile_gemm w = {0};
    set_classes(&w, kernel, call, at + (by_columns(call->node) ? call->begin : 0));
    const struct tile_gemm right = {.n = d, .k = count, .b = w.a, .b_step = w.a_row, .b_column = w.a_step};
    tile_pack_b(room->w, &right);
    const struct tile_gemm g = {.m = all_tokens(kernel, call),
                                .n = d,
                                .k = count,
                                .a = room->dy,
                                .a_row = 1,
                                .a_step = room->row,
                                .b_packed = room->w,
                                .c = call->output[0],
                                .c_row = d,
                                .c_wide = true,
                                .add = call->add || at > 0,
                                .room = room->gemm};
    gemm_tiles(&g);
}

static void run_classes(const struct backward_room *room, const struct kernel *kernel, const struct call *call,
                        int64_t at, int64_t count)
{
    struct tile_gemm logits = hidden_of(kernel, call, 0);
    set_classes(&logits, kernel, call, at + (by_columns(call->node) ? call->begin : 0));
    logits.m = count;
    logits.b_packed = call->pack;
    logits.c = room->logits;
    logits.c_row = room->row;
    logits.c_wide = true;
    logits.room = room->gemm;
    gemm_tiles(&logits);
    make_gradients(room, kernel, call, at, count);
    weight_gradient(room, kernel, call, at, count);
    hidden_gradient(room, kernel, call, at, count);
}

static void run_backward(const struct kernel *kernel, const struct call *call)
{
    int64_t tokens = all_tokens(kernel, call);
    const struct backward_room room =
        room_of(call->scratch, tokens, cpu_kernel_of(kernel)->size[0], by_columns(call->node), call->end - call->begin);
    for (int64_t i = 0; i < tokens; i++) {
        room.d[i] = is_ignored(call, label_of(call, i)) ? 0 : ((const float *)call->input[4])[i];
    }
    for (int64_t at = 0; at < call->end - call->begin; at += MANY)
        run_classes(&room, kernel, call, at, min_i64(call->end - call->begin - at, MANY));
}

MAKER(make_vocabulary_gradient_tiles)
{
    bool wide = node->input[3]->type == TYPE_F32 && node->input[4]->type == TYPE_F32;
    bool rounds = ((const struct vocabulary_attributes *)node->attributes)->rounds;
    if (!wide || !rounds || !take_sizes(out, node))
        return false;
    bool columns = by_columns(node);
    int64_t tokens = node->input[0]->shape.dim[0] * out->size[2], d = out->size[0];
    out->size[3] = tile_padded(tokens) * tile_padded(d);
    int units = columns ? 1 : 2;
    cpu_set_pack(out, pack_hidden, units, (size_t)(out->size[3] * units) * sizeof(uint16_t));
    out->kernel.scratch_bytes = room_of(NULL, tokens, d, columns, request->asked->slice).bytes;
    out->kernel.implementation = tiles_name();
    out->kernel.run = run_backward;
    return true;
}

#endif
