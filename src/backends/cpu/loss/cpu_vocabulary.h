/* cpu_vocabulary.h - what kernels of softmax cross-entropy over many classes share, whatever they multiply with.

   size[0]: features, size[1]: classes, size[2]: tokens a sample. */
#ifndef CPU_VOCABULARY_H
#define CPU_VOCABULARY_H

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "base/numbers/minmax.h"
#include "ops/ops.h"

#define CLASSES    (2 * VOCABULARY_CLASS_GRAIN) /* that are done together, backward in f32 and forward */
#define TOKEN_ROWS VOCABULARY_TOKEN_GRAIN
#define ROW_GAP    16 /* elements between rows that keep them out of one another's cache sets */

/* Tokens of a slice, their labels, and what is known of them so far. */
struct token_rows {
    float most[TOKEN_ROWS], sum[TOKEN_ROWS], right[TOKEN_ROWS];
    int64_t label[TOKEN_ROWS]; /* -1: none */
    int32_t best[TOKEN_ROWS];
    bool ignored[TOKEN_ROWS];
};

/* Forward, logits are made turned round, a class a row: what is done to those of a token is done to those of its
   neighbours at once. */
#define FORWARD_ROW (TOKEN_ROWS + ROW_GAP)

INLINE vector choose(whole_vector first, vector a, vector b)
{
    return (vector)((first & (whole_vector)a) | (~first & (whole_vector)b));
}

/* Logits (without their bias) of classes first..first + count join the sums of LANES tokens. */
INLINE void join_lanes(struct token_rows *tokens, int64_t at, const float *logits, const float *bias, int64_t first,
                       int64_t count)
{
    vector before = vector_load(tokens->most + at), most = before, sum = vector_load(tokens->sum + at), best;
    memcpy(&best, tokens->best + at, sizeof best);
    for (int64_t c = 0; c < count; c++) {
        vector x = vector_load(logits + c * FORWARD_ROW) + vector_all(bias ? bias[first + c] : 0);
        best = choose((whole_vector)(x > most), (vector)((whole_vector){0} + (int32_t)(first + c)), best);
        most = vector_max(x, most);
    }
    sum *= vector_exp(before - most);
    for (int64_t c = 0; c < count; c++)
        sum += vector_exp(vector_load(logits + c * FORWARD_ROW) + vector_all(bias ? bias[first + c] : 0) - most);
    vector_store(tokens->most + at, most);
    vector_store(tokens->sum + at, sum);
    memcpy(tokens->best + at, &best, sizeof best);
}

/* Of all tokens; logits behind `rows` are anything. */
INLINE void join_sums(struct token_rows *tokens, const float *logits, const float *bias, int64_t rows, int64_t first,
                      int64_t count)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t c = tokens->label[i] - first;
        if (tokens->label[i] >= 0 && c >= 0 && c < count)
            tokens->right[i] = logits[c * FORWARD_ROW + i] + (bias ? bias[first + c] : 0);
    }
    for (int64_t i = 0; i < rows; i += LANES)
        join_lanes(tokens, i, logits + i, bias, first, count);
}

INLINE int64_t all_tokens(const struct kernel *kernel, const struct call *call)
{
    return call->count * cpu_kernel_of(kernel)->size[2];
}

INLINE bool by_columns(const struct node *node)
{
    return ((const struct vocabulary_attributes *)node->attributes)->columns;
}

INLINE double label_of(const struct call *call, int64_t token)
{
    return element_get(call->input[2], call->node->input[2]->type, token);
}

INLINE bool is_ignored(const struct call *call, double label)
{
    const struct vocabulary_attributes *attributes = call->node->attributes;
    return attributes->ignores && label == attributes->ignored;
}

INLINE void take_labels(struct token_rows *tokens, const struct call *call, int64_t token, int64_t rows,
                        int64_t classes)
{
    for (int64_t i = 0; i < rows; i++) {
        double label = label_of(call, token + i);
        tokens->label[i] = label >= 0 && label < (double)classes ? (int64_t)label : -1;
        tokens->ignored[i] = is_ignored(call, label);
        tokens->best[i] = 0;
        tokens->most[i] = -3.0e38f;
        tokens->sum[i] = 0;
        tokens->right[i] = float_of(0x7fc00000); /* NaN until the label's block comes */
    }
}

/* When all classes have come. */
INLINE void give_losses(const struct token_rows *tokens, const struct call *call, int64_t token, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        float logsum = tokens->most[i] + log_of(tokens->sum[i]);
        ((float *)call->output[0])[token + i] = tokens->ignored[i] ? 0 : logsum - tokens->right[i];
        ((float *)call->output[1])[token + i] = logsum;
        ((float *)call->output[2])[token + i] = tokens->best[i] == tokens->label[i];
    }
}

/* All tokens of a slice, TOKEN_ROWS at a time. */
INLINE void run_token_blocks(const struct kernel *kernel, const struct call *call,
                             void (*run)(const struct kernel *, const struct call *, int64_t token, int64_t rows))
{
    int64_t end = min_i64(call->end, all_tokens(kernel, call));
    for (int64_t token = call->begin; token < end; token += TOKEN_ROWS)
        run(kernel, call, token, min_i64(end - token, TOKEN_ROWS));
}

/* False: not for such a kernel. `type`: of h and w. */
INLINE bool take_vocabulary_sizes(struct cpu_kernel *out, const struct node *node, enum type type)
{
    const struct shape *w = &node->input[1]->shape;
    bool columns = by_columns(node);
    out->size[0] = w->dim[columns ? 0 : 1];
    out->size[1] = w->dim[columns ? 1 : 0];
    out->size[2] = out->size[0] ? shape_row(&node->input[0]->shape) / out->size[0] : 0;
    return node->input[0]->type == type && out->size[1] <= INT32_MAX && out->size[0] > 0 && out->size[1] > 0 &&
           out->size[2] > 0;
}

#endif
