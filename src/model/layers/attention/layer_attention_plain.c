/* layer_attention_plain.c - Attention and AdditiveAttention: one head without projections.

   Scores that are products never exist as a whole (ops/attention/attention.h). Those that are sums over tanh(query +
   key) are made of ops that are there, for all pairs of steps at once, a sample at a time. */
#include "model/layers/attention/layer_attention.h"
#include "ops/ops.h"

static const char *const modes[] = {"dot", "concat"}; /* as attention.concat counts */

#define TO(field) .offset = offsetof(struct attention, field)
#define COMMON                                                                                                         \
    {"use_scale", option_flag, TO(use_scale)}, {"dropout", option_rate, TO(dropout)},                                  \
        {"seed", option_one_whole, TO(seed), .least = 1},                                                              \
    {                                                                                                                  \
        "use_causal_mask", option_flag, TO(causal)                                                                     \
    }

static const struct model_option plain_options[] = {
    COMMON,
    {"score_mode", option_choice, TO(concat), .with = CHOICES(modes)},
};
static const struct model_option additive_options[] = {COMMON};

/* ---- building ---- */

static struct tensor *reshaped(struct graph *graph, struct tensor *x, int rank, const int64_t *row)
{
    struct unflatten_attributes attributes = {.row = shape_of(rank, row)};
    return graph_add(graph, &op_unflatten, &x, 1, &attributes, sizeof attributes);
}

/* ---- scores that are sums ---- */

/* tanh(query + key) of each query with each key: [N, T, S, d]. */
static struct tensor *pairs(struct graph *graph, struct tensor *q, struct tensor *k)
{
    const int64_t *from = q->shape.dim, *to = k->shape.dim;
    return unary(graph, &op_tanh,
                 binary(graph, &op_add, reshaped(graph, q, 3, (int64_t[]){from[1], 1, from[2]}),
                        reshaped(graph, k, 3, (int64_t[]){1, to[1], to[2]})));
}

/* A weight of one number. */
static struct tensor *factor(const struct layer *layer, struct graph *graph, const char *name)
{
    return model_weight(layer, graph, name, (struct shape){0}, (struct initializer){.kind = INITIAL_ONES});
}

/* [N, T, S]. AdditiveAttention weighs the features, Attention the query, the key and the sums. */
static struct tensor *summed_scores(const struct layer *layer, struct graph *graph, struct tensor *q, struct tensor *k)
{
    const struct attention *a = layer->options;
    const struct reduce_attributes last = {.axes = 1 << 3};
    bool additive = layer->type == &layer_additive_attention;
    int64_t depth = q->shape.dim[2];
    struct initializer initial = {.kind = INITIAL_GLOROT_UNIFORM, .fan_in = depth, .fan_out = depth};
    if (a->use_scale && !additive) {
        struct tensor *scale = factor(layer, graph, "scale");
        q = binary(graph, &op_multiply, q, scale);
        k = binary(graph, &op_multiply, k, scale);
    }
    struct tensor *x = q && k ? pairs(graph, q, k) : NULL;
    if (a->use_scale && additive)
        x = binary(graph, &op_multiply, x, model_weight(layer, graph, "scale", shape_of(1, &depth), initial));
    x = graph_add(graph, &op_reduce_sum, &x, 1, &last, sizeof last);
    return additive ? x : binary(graph, &op_multiply, x, factor(layer, graph, "concat_score_weight"));
}

/* Which scores take part: bool [N, 1 or T, S], or NULL for all. What lies behind the query is found by counting. */
static struct tensor *seen(const struct layer *layer, struct graph *graph, struct tensor *scores, struct tensor *mask)
{
    const struct attention *a = layer->options;
    const struct cast_attributes number = {.type = TYPE_F32};
    const struct cumulative_sum_attributes row = {.axis = 1}, column = {.axis = 2};
    if (mask)
        mask = reshaped(graph, mask, 2, (int64_t[]){1, mask->shape.dim[1]});
    if (!a->causal)
        return mask;
    struct tensor *one = binary(graph, &op_equal, scores, scores);
    one = graph_add(graph, &op_cast, &one, 1, &number, sizeof number);
    struct tensor *i = graph_add(graph, &op_cumulative_sum, &one, 1, &row, sizeof row);
    struct tensor *k = graph_add(graph, &op_cumulative_sum, &one, 1, &column, sizeof column);
    struct tensor *before = binary(graph, &op_greater_equal, i, k);
    return mask ? binary(graph, &op_logical_and, mask, before) : before;
}

/* Keras's: softmax of the scores, 1e9 less where they are hidden, times the values. */
static struct tensor *weigh_values(const struct layer *layer, struct graph *graph, struct tensor *scores,
                                   struct tensor *values, struct tensor *mask)
{
    const struct attention *a = layer->options;
    const struct rescale_attributes hidden = {.scale = 1, .offset = -1e9};
    const struct axis_attributes last = {0};
    const struct batch_matmul_attributes plain = {0};
    struct tensor *sees = seen(layer, graph, scores, mask);
    if (sees) {
        struct tensor *less = graph_add(graph, &op_rescale, &scores, 1, &hidden, sizeof hidden);
        scores = graph_add(graph, &op_where, (struct tensor *[]){sees, scores, less}, 3, NULL, 0);
    }
    struct tensor *p = graph_add(graph, &op_softmax, &scores, 1, &last, sizeof last);
    if (graph->build->fitting && a->dropout > 0) {
        struct dropout_attributes drop = {.rate = a->dropout, .scale = 1 / (1 - a->dropout)};
        drop.seed = layer_seed(layer, graph, a->seed);
        p = graph_add(graph, &op_dropout, (struct tensor *[]){p, model_iteration(graph)}, 2, &drop, sizeof drop);
    }
    return graph_add(graph, &op_batch_matmul, (struct tensor *[]){p, values}, 2, &plain, sizeof plain);
}

/* In float32, whatever the policy: sums of many terms. */
static struct tensor *by_sums(const struct layer *layer, struct graph *graph, struct tensor *const in[3], int count)
{
    struct tensor *wide[3];
    for (int i = 0; i < 3; i++)
        wide[i] = policy_cast(graph, in[i], TYPE_F32);
    struct tensor *scores = summed_scores(layer, graph, wide[0], wide[2]);
    return graph->failed ? NULL : weigh_values(layer, graph, scores, wide[1], attention_key_mask(graph, count));
}

/* ---- Attention, AdditiveAttention ---- */

static bool features_fit(const struct layer *layer, struct graph *graph, struct tensor *const in[3], int count)
{
    char names[2][96], shapes[2][96];
    if (in[0]->shape.dim[2] == in[2]->shape.dim[2])
        return true;
    input_name(names[0], graph, 0);
    input_name(names[1], graph, count - 1);
    shape_text(shapes[0], sizeof shapes[0], &in[0]->shape, true);
    shape_text(shapes[1], sizeof shapes[1], &in[2]->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: the query %s %s and the key %s %s differ in features", layer->name, names[0],
               shapes[0], names[1], shapes[1]);
    return false;
}

/* One head, scores as they are, or times a number that is learned. */
static struct tensor *by_products(const struct layer *layer, struct graph *graph, struct tensor *const in[3], int count)
{
    const struct attention *a = layer->options;
    struct tensor *heads[3];
    static const int order[3] = {0, 2, 1}; /* query, key, value */
    for (int i = 0; i < 3; i++) {
        struct tensor *x = in[order[i]];
        if (i == 0 && a->use_scale)
            x = binary(graph, &op_multiply, x, policy_cast(graph, factor(layer, graph, "scale"), x->type));
        heads[i] = reshaped(graph, x, 3, (int64_t[]){in[order[i]]->shape.dim[1], 1, in[order[i]]->shape.dim[2]});
    }
    struct tensor *y = attention_attend(layer, graph, heads, attention_key_mask(graph, count));
    return reshaped(graph, y, 2, (int64_t[]){in[0]->shape.dim[1], in[1]->shape.dim[2]});
}

/* The query's mask, where there is one, zeroes rows of the output as Keras does. */
static struct tensor *plain_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct attention *a = layer->options;
    struct tensor *in[3], *mask = layer_mask(graph, 0);
    if (!attention_inputs(in, layer, graph, x, count) || !features_fit(layer, graph, in, count))
        return NULL;
    struct tensor *y = a->concat ? by_sums(layer, graph, in, count) : by_products(layer, graph, in, count);
    return mask ? binary(graph, &op_mask_rows, y, mask) : y;
}

const struct layer_type layer_attention = {
    NAMES("Attention", "attention"),
    .keeps_mask = true,
    OPTIONS(struct attention, plain_options),
    .defaults = &(const struct attention){.scale = 1},
    .merge = plain_merge,
};

const struct layer_type layer_additive_attention = {
    NAMES("AdditiveAttention", "additive_attention"),
    .keeps_mask = true,
    OPTIONS(struct attention, additive_options),
    .defaults = &(const struct attention){.use_scale = true, .concat = true},
    .merge = plain_merge,
};
