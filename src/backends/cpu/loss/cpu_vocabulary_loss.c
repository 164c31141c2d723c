/* cpu_vocabulary_loss.c - softmax cross-entropy over many classes, a block of logits at a time.

   Forward: TOKEN_ROWS tokens, packed, against one block of classes after another, which are read where they lie.
   Backward: all tokens against the classes of a slice; h is packed twice before: as the left side of h . w^T and as the
   right side of dy^T . h. */
#include "backends/cpu/cpu_bf16.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/loss/cpu_vocabulary.h"

/* size[3]: floats of h packed as a left side (forward: of one block of tokens, as a right side). */

#define LOGIT_ROW (CLASSES + ROW_GAP)

/* The weights of class `at` of those that the slice sees, as the right side of h . w. */
static void set_classes(struct gemm *g, const struct kernel *kernel, const struct call *call, int64_t at)
{
    int64_t d = cpu_kernel_of(kernel)->size[0], classes = cpu_kernel_of(kernel)->size[1];
    bool columns = by_columns(call->node);
    g->b = (const float *)call->input[1] + (columns ? at : at * d);
    g->b_step = columns ? classes : 1;
    g->b_column = columns ? 1 : d;
}

/* ---- forward -------------------------------------------------------------- */

struct forward_room {
    struct token_rows tokens;
    float logits[CLASSES * FORWARD_ROW];
    float packed[]; /* the tokens, as panels; then gemm's room, for classes that do not lie in rows */
};

static void run_tokens(const struct kernel *kernel, const struct call *call, int64_t token, int64_t rows)
{
    int64_t d = cpu_kernel_of(kernel)->size[0], classes = cpu_kernel_of(kernel)->size[1];
    struct forward_room *room = call->scratch;
    const float *w = call->input[1];
    bool columns = by_columns(call->node);
    struct gemm g = {.n = rows,
                     .k = d,
                     .a_row = columns ? 1 : d,
                     .a_step = columns ? classes : 1,
                     .a_in_place = !columns,
                     .b = (const float *)call->input[0] + token * d,
                     .b_step = 1,
                     .b_column = d,
                     .b_packed = room->packed,
                     .c = room->logits,
                     .c_row = FORWARD_ROW,
                     .room = room->packed + cpu_kernel_of(kernel)->size[3]};
    take_labels(&room->tokens, call, token, rows, classes);
    VARIANT(gemm_pack_b)(room->packed, &g, 0, 1);
    for (int64_t first = 0; first < classes; first += CLASSES) {
        g.m = min_i64(classes - first, CLASSES);
        g.a = w + first * g.a_row;
        VARIANT(gemm_packed)(&g);
        join_sums(&room->tokens, room->logits, call->input[3], rows, first, g.m);
    }
    give_losses(&room->tokens, call, token, rows);
}

static void run_forward(const struct kernel *kernel, const struct call *call)
{
    run_token_blocks(kernel, call, run_tokens);
}

MAKER(make_vocabulary_crossentropy)
{
    if (!take_vocabulary_sizes(out, node, TYPE_F32))
        return false;
    out->size[3] = gemm_b_floats(out->size[0], TOKEN_ROWS);
    int64_t room = by_columns(node) ? GEMM_ROWS_ROOM : 0;
    out->kernel.scratch_bytes = sizeof(struct forward_room) + (size_t)(out->size[3] + room) * sizeof(float);
    out->kernel.run = run_forward;
    return true;
}

/* ---- backward ------------------------------------------------------------- */

static struct gemm logits_of(const struct kernel *kernel, const struct call *call)
{
    int64_t d = cpu_kernel_of(kernel)->size[0];
    return (struct gemm){
        .m = all_tokens(kernel, call), .k = d, .a = call->input[0], .a_row = d, .a_step = 1, .c_row = LOGIT_ROW};
}

/* dw[classes, d] = dy^T . h: h on the right side, as panels; of w[d, V] dw[d, classes] = h^T . dy: on the left. */
static struct gemm weights_of(const struct kernel *kernel, const struct call *call)
{
    int64_t d = cpu_kernel_of(kernel)->size[0], tokens = all_tokens(kernel, call);
    if (by_columns(call->node))
        return (struct gemm){.m = d,
                             .k = tokens,
                             .a = call->input[0],
                             .a_row = 1,
                             .a_step = d,
                             .b_step = LOGIT_ROW,
                             .b_column = 1,
                             .c_row = cpu_kernel_of(kernel)->size[1]};
    return (struct gemm){.n = d,
                         .k = tokens,
                         .b = call->input[0],
                         .b_step = d,
                         .b_column = 1,
                         .c_row = d,
                         .a_row = 1,
                         .a_step = LOGIT_ROW,
                         .a_in_place = true};
}

PACKER(pack_hidden)
{
    const struct gemm left = logits_of(kernel, whole), other = weights_of(kernel, whole);
    float *behind = (float *)pack + cpu_kernel_of(kernel)->size[3];
    VARIANT(gemm_pack_a)(pack, &left, unit, kernel->pack_units);
    if (by_columns(whole->node))
        VARIANT(gemm_pack_a)(behind, &other, unit, kernel->pack_units);
    else
        VARIANT(gemm_pack_b)(behind, &other, unit, kernel->pack_units);
}

/* Logits -> d(loss)/d(logits), for classes first..first + count of one token. */
static void differ(float *x, const struct call *call, int64_t token, int64_t first, int64_t count)
{
    float logsum = ((const float *)call->input[3])[token], d = ((const float *)call->input[4])[token];
    double label = label_of(call, token);
    if (is_ignored(call, label)) {
        memset(x, 0, (size_t)count * sizeof *x);
        return;
    }
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        x[i] = exp_of(x[i] - logsum) * d;
    if (label >= (double)first && label < (double)(first + count))
        x[(int64_t)label - first] -= d;
    const struct vocabulary_attributes *attributes = call->node->attributes;
    for (int64_t i = 0; attributes->rounds && i < count; i++)
        x[i] = bf16_widened(bf16_rounded(x[i]));
}

static void bias_gradient(float *to, const float *dy, int64_t tokens, int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
    for (int64_t token = 0; token < tokens; token++) {
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            to[i] += dy[token * LOGIT_ROW + i];
    }
}

/* dw of classes `at`.. of the slice. */
static void weight_gradient(const struct kernel *kernel, const struct call *call, float *dy, int64_t at, int64_t count)
{
    struct gemm dw = weights_of(kernel, call);
    const float *packed = (const float *)call->pack + cpu_kernel_of(kernel)->size[3];
    if (by_columns(call->node)) {
        dw.n = count;
        dw.b = dy;
        dw.a_packed = packed;
        dw.room = call->scratch;
        dw.c = (float *)call->output[1] + call->begin + at;
    } else {
        dw.m = count;
        dw.a = dy;
        dw.b_packed = packed;
        dw.c = (float *)call->output[1] + at * cpu_kernel_of(kernel)->size[0];
    }
    VARIANT(gemm_packed)(&dw);
}

/* dh gets the share of classes `at`.. of the slice. */
static void hidden_gradient(const struct kernel *kernel, const struct call *call, float *dy, float *panels, int64_t at,
                            int64_t count)
{
    int64_t d = cpu_kernel_of(kernel)->size[0];
    struct gemm classes = {0},
                dh = {.m = all_tokens(kernel, call), .n = d, .k = count, .c = call->output[0], .c_row = d};
    set_classes(&classes, kernel, call, at + (by_columns(call->node) ? call->begin : 0));
    dh.b = classes.b;
    dh.b_step = classes.b_column;
    dh.b_column = classes.b_step;
    VARIANT(gemm_pack_b)(panels, &dh, 0, 1);
    dh.a = dy;
    dh.a_row = LOGIT_ROW;
    dh.a_step = 1;
    dh.a_in_place = true;
    dh.b_packed = panels;
    dh.add = call->add || at > 0;
    VARIANT(gemm_packed)(&dh);
}

/* Classes first..first + count, `at` of the slice: dw of them is whole, dh gets their share. */
static void run_classes(const struct kernel *kernel, const struct call *call, int64_t at, int64_t count)
{
    int64_t tokens = all_tokens(kernel, call);
    float *room = call->scratch, *dy = room + GEMM_ROOM, *panels = dy + tokens * LOGIT_ROW;
    const float *bias = call->input[5];
    struct gemm logits = logits_of(kernel, call);
    set_classes(&logits, kernel, call, at + (by_columns(call->node) ? call->begin : 0));
    logits.n = count;
    logits.bias = bias ? bias + at : NULL;
    logits.c = dy;
    logits.room = room;
    logits.a_packed = call->pack;
    VARIANT(gemm_packed)(&logits);
    for (int64_t token = 0; token < tokens; token++)
        differ(dy + token * LOGIT_ROW, call, token, call->begin + at, count);
    bias_gradient((float *)call->output[2] + at, dy, tokens, count);
    weight_gradient(kernel, call, dy, at, count);
    hidden_gradient(kernel, call, dy, panels, at, count);
}

static void run_backward(const struct kernel *kernel, const struct call *call)
{
    for (int64_t at = 0; at < call->end - call->begin; at += CLASSES)
        run_classes(kernel, call, at, min_i64(call->end - call->begin - at, CLASSES));
}

MAKER(make_vocabulary_crossentropy_gradient)
{
    if (!take_vocabulary_sizes(out, node, TYPE_F32))
        return false;
    int64_t tokens = node->input[0]->shape.dim[0] * out->size[2], d = out->size[0];
    out->size[3] = gemm_a_floats(tokens, d);
    int64_t behind = by_columns(node) ? gemm_a_floats(d, tokens) : gemm_b_floats(tokens, d);
    cpu_set_pack(out, pack_hidden, 16, (size_t)(out->size[3] + behind) * sizeof(float));
    out->kernel.scratch_bytes = (size_t)(GEMM_ROOM + tokens * LOGIT_ROW + gemm_b_floats(CLASSES, d)) * sizeof(float);
    out->kernel.run = run_backward;
    return true;
}
