/* cpu_vocabulary.h - what kernels of softmax cross-entropy over many classes share, whatever they multiply with.

   size[0]: features, size[1]: classes, size[2]: tokens a sample. */
#ifndef CPU_VOCABULARY_H
#define CPU_VOCABULARY_H

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define CLASSES    VOCABULARY_CLASS_GRAIN
#define TOKEN_ROWS VOCABULARY_TOKEN_GRAIN
#define SPREAD     16 /* elements between rows that keep them out of one another's cache sets */

/* Tokens of a slice, their labels, and what is known of them so far. */
struct token_rows {
    float most[TOKEN_ROWS], sum[TOKEN_ROWS], right[TOKEN_ROWS];
    int64_t label[TOKEN_ROWS]; /* -1: none */
    int32_t best[TOKEN_ROWS];
    bool ignored[TOKEN_ROWS];
};

INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
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
