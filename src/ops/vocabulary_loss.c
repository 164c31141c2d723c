/* vocabulary_loss.c - softmax cross-entropy over many classes: rules, cuts, references. */
#include <math.h>

#include "ops/helpers.h"
#include "ops/vocabulary_loss.h"

#define CHUNK 64

/* Tokens of one sample. */
static int64_t sample_tokens(const struct node *node)
{
    const struct tensor *h = node->input[0];
    return last_dim(h) ? shape_row(&h->shape) / last_dim(h) : 0;
}

static plim_status need_tokens(const struct node *node, int input, plim_error *error)
{
    const struct shape *h = &node->input[0]->shape, *shape = &node->input[input]->shape;
    bool fits = node->input[input]->batched && shape->rank == h->rank - 1;
    for (int i = 0; fits && i < shape->rank; i++)
        fits = shape->dim[i] == h->dim[i];
    if (!fits)
        return misfit(node, error, "input %d does not have a value for each token", input);
    return PLIM_OK;
}

static plim_status need_operands(const struct node *node, plim_error *error)
{
    const struct tensor *h = node->input[0], *w = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_type(node, 1, h->type, error));
    TRY(need_rank(node, 1, 2, error));
    if (h->shape.rank < 2 || w->batched || w->shape.dim[1] != last_dim(h))
        return misfit(node, error, "tokens of %lld features and classes of %lld", (long long)last_dim(h),
                      (long long)w->shape.dim[1]);
    if (!is_label(node->input[2]->type))
        return misfit(node, error, "labels of type %s are not offered", type_name(node->input[2]->type));
    return need_tokens(node, 2, error);
}

static plim_status forward_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *h = node->input[0];
    TRY(need_operands(node, error));
    for (int k = 0; k < 2; k++)
        output_of(graph, node, k, h->type, shape_of(h->shape.rank - 1, h->shape.dim), true);
    return PLIM_OK;
}

static double product_work(const struct node *node)
{
    return (double)(node->input[0]->shape.dim[0] * sample_tokens(node)) * (double)shape_count(&node->input[1]->shape);
}

static void forward_cut(struct cut *cut, const struct node *node)
{
    *cut = (struct cut){.extent = node->input[0]->shape.dim[0] * sample_tokens(node),
                        .grain = VOCABULARY_TOKEN_GRAIN,
                        .work = product_work(node)};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = PART_WHOLE;
    cut->output[0] = cut->output[1] = PART_WHOLE;
}

/* h[token] . w[v]; w begins at class `first`. */
static double logit(const struct call *call, int64_t token, int64_t v, int64_t first)
{
    int64_t d = last_dim(call->node->input[0]);
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += get(call, 0, token * d + i) * get(call, 1, (v - first) * d + i);
    return sum;
}

static void forward_reference(const struct call *call)
{
    int64_t classes = call->node->input[1]->shape.dim[0], all = call->count * sample_tokens(call->node);
    for (int64_t token = call->begin; token < call->end && token < all; token++) {
        double most = -INFINITY, sum = 0, label = get(call, 2, token);
        for (int64_t v = 0; v < classes; v++)
            most = fmax(most, logit(call, token, v, 0));
        for (int64_t v = 0; v < classes; v++)
            sum += exp(logit(call, token, v, 0) - most);
        bool there = label >= 0 && label < (double)classes;
        double logsum = most + log(sum);
        set(call, 0, token, there ? logsum - logit(call, token, (int64_t)label, 0) : (double)NAN);
        set(call, 1, token, logsum);
    }
}

static void forward_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    if (d_output[1]) {
        graph_fail(graph, PLIM_UNSUPPORTED, "vocabulary_crossentropy: no gradient flows from the sums of scores");
        return;
    }
    struct tensor *inputs[] = {node->input[0], node->input[1], node->input[2], node->output[1], d_output[0]};
    struct tensor *dh = graph_add(graph, &op_vocabulary_crossentropy_gradient, inputs, 5, NULL, 0);
    for (int i = 0; i < 2 && dh; i++)
        d_input[i] = wanted[i] ? graph_output(dh, i) : NULL;
}

/* ---- examples ------------------------------------------------------------- */

static const struct {
    int64_t tokens, depth, classes; /* tokens 0: no axis between */
    enum type labels;
    const char *name;
} examples[] = {
    {0, 4, 7, TYPE_I64, "label:7"},    {3, 5, 11, TYPE_I32, "label:11"},   {6, 1, 1, TYPE_U8, "label:1"},
    {9, 17, 33, TYPE_I64, "label:33"}, {2, 3, 400, TYPE_I32, "label:400"}, {60, 2, 5, TYPE_I32, "label:5"},
};

/* h, w, labels; false after the last variant. */
static bool example_operands(struct tensor **inputs, struct graph *graph, int variant, enum type type)
{
    if (variant >= (int)(sizeof(examples) / sizeof(examples[0])))
        return false;
    int64_t tokens = examples[variant].tokens, depth = examples[variant].depth;
    inputs[0] =
        tokens ? example_input(graph, "h", type, ROW(tokens, depth)) : example_input(graph, "h", type, ROW(depth));
    inputs[1] = graph_weight(graph, "w", type, shape_2(examples[variant].classes, depth), true);
    inputs[2] = example_input(graph, examples[variant].name, examples[variant].labels, tokens ? 1 : 0, &tokens);
    return true;
}

static struct tensor *forward_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[3];
    return example_operands(inputs, graph, variant, type)
               ? graph_add(graph, &op_vocabulary_crossentropy, inputs, 3, NULL, 0)
               : NULL;
}

const struct op op_vocabulary_crossentropy = {
    .name = "vocabulary_crossentropy",
    .inputs = 3,
    .outputs = 2,
    .infer = forward_infer,
    .gradient = forward_back,
    .keeps_inputs = 1 << 0 | 1 << 1 | 1 << 2,
    .keeps_outputs = 1 << 1,
    .in_place = NO_INPUT,
    .cut = forward_cut,
    .reference = forward_reference,
    .example = forward_example,
};

/* ---- backward ------------------------------------------------------------- */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_operands(node, error));
    for (int i = 3; i < 5; i++) {
        TRY(need_type(node, i, node->input[0]->type, error));
        TRY(need_tokens(node, i, error));
    }
    output_like(graph, node, 0, node->input[0]);
    output_like(graph, node, 1, node->input[1]);
    return PLIM_OK;
}

static void gradient_cut(struct cut *cut, const struct node *node)
{
    *cut = (struct cut){
        .extent = node->input[1]->shape.dim[0], .grain = VOCABULARY_CLASS_GRAIN, .work = 3 * product_work(node)};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = i == 1 ? PART_CUT : PART_WHOLE;
    cut->output[0] = PART_SUM;
    cut->output[1] = PART_CUT;
}

/* d(loss)/d(logit) of (token, v). */
static double logit_gradient(const struct call *call, int64_t token, int64_t v)
{
    double p = exp(logit(call, token, v, call->begin) - get(call, 3, token));
    return (p - (get(call, 2, token) == (double)v ? 1 : 0)) * get(call, 4, token);
}

static void hidden_gradient(const struct call *call, int64_t token, int64_t d)
{
    for (int64_t first = 0; first < d; first += CHUNK) {
        int64_t count = d - first < CHUNK ? d - first : CHUNK;
        double sum[CHUNK] = {0};
        for (int64_t v = call->begin; v < call->end; v++) {
            double dy = logit_gradient(call, token, v);
            for (int64_t i = 0; i < count; i++)
                sum[i] += dy * get(call, 1, (v - call->begin) * d + first + i);
        }
        for (int64_t i = 0; i < count; i++)
            share(call, 0, token * d + first + i, sum[i]);
    }
}

static void class_gradient(const struct call *call, int64_t v, int64_t tokens, int64_t d)
{
    for (int64_t first = 0; first < d; first += CHUNK) {
        int64_t count = d - first < CHUNK ? d - first : CHUNK;
        double sum[CHUNK] = {0};
        for (int64_t token = 0; token < tokens; token++) {
            double dy = logit_gradient(call, token, v);
            for (int64_t i = 0; i < count; i++)
                sum[i] += dy * get(call, 0, token * d + first + i);
        }
        for (int64_t i = 0; i < count; i++)
            set(call, 1, (v - call->begin) * d + first + i, sum[i]);
    }
}

static void gradient_reference(const struct call *call)
{
    int64_t tokens = call->count * sample_tokens(call->node), d = last_dim(call->node->input[0]);
    for (int64_t token = 0; token < tokens; token++)
        hidden_gradient(call, token, d);
    for (int64_t v = call->begin; v < call->end; v++)
        class_gradient(call, v, tokens, d);
}

static struct tensor *gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[5];
    if (!example_operands(inputs, graph, variant, type))
        return NULL;
    int64_t tokens = examples[variant].tokens;
    inputs[3] = example_input(graph, "positive:sums", type, tokens ? 1 : 0, &tokens);
    inputs[4] = example_input(graph, "dloss", type, tokens ? 1 : 0, &tokens);
    return graph_add(graph, &op_vocabulary_crossentropy_gradient, inputs, 5, NULL, 0);
}

const struct op op_vocabulary_crossentropy_gradient = {
    .name = "vocabulary_crossentropy_gradient",
    .inputs = 5,
    .outputs = 2,
    .infer = gradient_infer,
    .no_gradient = NO_SECOND,
    .in_place = NO_INPUT,
    .cut = gradient_cut,
    .reference = gradient_reference,
    .example = gradient_example,
};
