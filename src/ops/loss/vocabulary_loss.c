/* vocabulary_loss.c - softmax cross-entropy over many classes: rules, cuts, references. */
#include <math.h>

#include "ops/helpers.h"
#include "ops/loss/vocabulary_loss.h"

#define CHUNK 64
/* Where the bias is among the inputs. */
#define BIAS      3
#define BACK_BIAS 5

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

static const struct vocabulary_attributes *attributes_of(const struct node *node)
{
    return node->attributes;
}

static int64_t classes_of(const struct node *node)
{
    return node->input[1]->shape.dim[attributes_of(node)->columns ? 1 : 0];
}

static plim_status need_bias(const struct node *node, int input, plim_error *error)
{
    if (!node->input[input])
        return PLIM_OK;
    TRY(need_type_of(node, input, 0, error));
    if (shape_count(&node->input[input]->shape) != classes_of(node))
        return misfit(node, error, "a bias of %lld for %lld classes",
                      (long long)shape_count(&node->input[input]->shape), (long long)classes_of(node));
    return PLIM_OK;
}

static plim_status need_operands(const struct node *node, int bias, plim_error *error)
{
    const struct tensor *h = node->input[0], *w = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_type(node, 1, h->type, error));
    TRY(need_rank(node, 1, 2, error));
    int64_t features = w->shape.dim[attributes_of(node)->columns ? 0 : 1];
    if (h->shape.rank < 2 || w->batched || features != last_dim(h))
        return misfit(node, error, "tokens of %lld features and classes of %lld", (long long)last_dim(h),
                      (long long)features);
    if (!is_label(node->input[2]->type))
        return misfit(node, error, "labels of type %s are not offered", type_name(node->input[2]->type));
    TRY(need_bias(node, bias, error));
    return need_tokens(node, 2, error);
}

static plim_status forward_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *h = node->input[0];
    TRY(need_operands(node, BIAS, error));
    for (int k = 0; k < 2; k++)
        output_of(graph, node, k, wide_type(h->type), shape_of(h->shape.rank - 1, h->shape.dim), true);
    return output_of(graph, node, 2, TYPE_F32, shape_of(h->shape.rank - 1, h->shape.dim), true);
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
    cut->output[0] = cut->output[1] = cut->output[2] = PART_WHOLE;
}

/* w[v, i], where the slice sees classes from `first` on. */
static double weight_at(const struct call *call, int64_t v, int64_t i, int64_t first)
{
    int64_t d = last_dim(call->node->input[0]);
    return get(call, 1, attributes_of(call->node)->columns ? i * classes_of(call->node) + v : (v - first) * d + i);
}

/* h[token] . w[v] + bias[v]; the bias too begins at class `first`. */
static double logit(const struct call *call, int64_t token, int64_t v, int64_t first, int bias)
{
    int64_t d = last_dim(call->node->input[0]);
    double sum = call->input[bias] ? get(call, bias, v - first) : 0;
    for (int64_t i = 0; i < d; i++)
        sum += get(call, 0, token * d + i) * weight_at(call, v, i, first);
    return sum;
}

static bool is_ignored(const struct call *call, double label)
{
    const struct vocabulary_attributes *attributes = attributes_of(call->node);
    return attributes->ignores && label == attributes->ignored;
}

static void vocabulary_crossentropy_reference(const struct call *call)
{
    int64_t classes = classes_of(call->node), all = call->count * sample_tokens(call->node);
    for (int64_t token = call->begin; token < call->end && token < all; token++) {
        double most = -INFINITY, sum = 0, label = get(call, 2, token);
        int64_t best = 0;
        for (int64_t v = 0; v < classes; v++) {
            double z = logit(call, token, v, 0, BIAS);
            best = z > most ? v : best;
            most = fmax(most, z);
        }
        for (int64_t v = 0; v < classes; v++)
            sum += exp(logit(call, token, v, 0, BIAS) - most);
        double logsum = most + log(sum), loss = NAN;
        if (is_ignored(call, label))
            loss = 0;
        else if (label >= 0 && label < (double)classes)
            loss = logsum - logit(call, token, (int64_t)label, 0, BIAS);
        set(call, 0, token, loss);
        set(call, 1, token, logsum);
        set(call, 2, token, (double)best == label);
    }
}

static void forward_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    if (d_output[1] || d_output[2]) {
        graph_fail(graph, PLIM_UNSUPPORTED, "vocabulary_crossentropy: gradients flow from the loss alone");
        return;
    }
    struct tensor *inputs[] = {node->input[0],  node->input[1], node->input[2],
                               node->output[1], d_output[0],    node->input[BIAS]};
    struct vocabulary_attributes attributes = *attributes_of(node);
    attributes.rounds = node->input[0]->type == TYPE_BF16;
    struct tensor *dh =
        graph_add(graph, &op_vocabulary_crossentropy_gradient, inputs, 6, &attributes, sizeof attributes);
    static const int place[] = {0, 1, BIAS};
    for (int k = 0; k < 3 && dh; k++)
        if (wanted[place[k]])
            d_input[place[k]] = graph_output(dh, k);
}

const struct op op_vocabulary_crossentropy = {
    OP_HEAD(vocabulary_crossentropy, 4, 3, forward_infer, forward_cut),
    .optional = 1 << BIAS,
    .attributes_bytes = sizeof(struct vocabulary_attributes),
    .gradient = forward_back,
    .keeps_inputs = 1 << 0 | 1 << 1 | 1 << 2 | 1 << BIAS,
    .keeps_outputs = 1 << 1,
};

/* ---- backward ------------------------------------------------------------- */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_operands(node, BACK_BIAS, error));
    for (int i = 3; i < 5; i++) {
        TRY(need_type_of(node, i, 0, error));
        TRY(need_tokens(node, i, error));
    }
    output_of(graph, node, 0, wide_type(node->input[0]->type), node->input[0]->shape, true); /* a sum over classes */
    output_like(graph, node, 1, node->input[1]);
    return output_of(graph, node, 2, node->input[0]->type, shape_1(classes_of(node)), false);
}

static void gradient_cut(struct cut *cut, const struct node *node)
{
    enum part classes = attributes_of(node)->columns ? PART_WHOLE : PART_CUT;
    *cut = (struct cut){.extent = classes_of(node), .grain = VOCABULARY_CLASS_GRAIN, .work = 3 * product_work(node)};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = PART_WHOLE;
    cut->input[1] = cut->output[1] = classes;
    cut->input[BACK_BIAS] = cut->output[2] = PART_CUT;
    cut->output[0] = PART_SUM;
}

static double rounded(double x)
{
    uint16_t near;
    element_set(&near, TYPE_BF16, 0, x);
    return element_get(&near, TYPE_BF16, 0);
}

/* d(loss)/d(logit) of (token, v). */
static double logit_gradient(const struct call *call, int64_t token, int64_t v)
{
    double label = get(call, 2, token);
    if (is_ignored(call, label))
        return 0;
    double p = exp(logit(call, token, v, call->begin, BACK_BIAS) - get(call, 3, token));
    double d = (p - (label == (double)v ? 1 : 0)) * get(call, 4, token);
    return attributes_of(call->node)->rounds ? rounded(d) : d;
}

static void hidden_gradient(const struct call *call, int64_t token, int64_t d)
{
    for (int64_t first = 0; first < d; first += CHUNK) {
        int64_t count = d - first < CHUNK ? d - first : CHUNK;
        double sum[CHUNK] = {0};
        for (int64_t v = call->begin; v < call->end; v++) {
            double dy = logit_gradient(call, token, v);
            for (int64_t i = 0; i < count; i++)
                sum[i] += dy * weight_at(call, v, first + i, call->begin);
        }
        for (int64_t i = 0; i < count; i++)
            share(call, 0, token * d + first + i, sum[i]);
    }
}

static void class_gradient(const struct call *call, int64_t v, int64_t tokens, int64_t d)
{
    int64_t step = attributes_of(call->node)->columns ? classes_of(call->node) : 1;
    int64_t start = attributes_of(call->node)->columns ? v : (v - call->begin) * d;
    double bias = 0;
    for (int64_t token = 0; token < tokens; token++)
        bias += logit_gradient(call, token, v);
    set(call, 2, v - call->begin, bias);
    for (int64_t first = 0; first < d; first += CHUNK) {
        int64_t count = d - first < CHUNK ? d - first : CHUNK;
        double sum[CHUNK] = {0};
        for (int64_t token = 0; token < tokens; token++) {
            double dy = logit_gradient(call, token, v);
            for (int64_t i = 0; i < count; i++)
                sum[i] += dy * get(call, 0, token * d + first + i);
        }
        for (int64_t i = 0; i < count; i++)
            set(call, 1, start + (first + i) * step, sum[i]);
    }
}

static void vocabulary_crossentropy_gradient_reference(const struct call *call)
{
    int64_t tokens = call->count * sample_tokens(call->node), d = last_dim(call->node->input[0]);
    for (int64_t token = 0; token < tokens; token++)
        hidden_gradient(call, token, d);
    for (int64_t v = call->begin; v < call->end; v++)
        class_gradient(call, v, tokens, d);
}

const struct op op_vocabulary_crossentropy_gradient = {
    OP_HEAD(vocabulary_crossentropy_gradient, 6, 3, gradient_infer, gradient_cut),
    .optional = 1 << BACK_BIAS,
    .attributes_bytes = sizeof(struct vocabulary_attributes),
    .no_gradient = NO_SECOND,
};
