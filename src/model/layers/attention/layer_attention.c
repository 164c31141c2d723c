/* layer_attention.c - MultiHeadAttention, GroupQueryAttention; what they share with Attention.

   Inputs are Keras's call: query, value, key; one input is all three, two are query and value (which is the key too).
   The mask that came with the value (or the key) hides those keys. Rows of the output that the query's mask hides are
   whatever attention makes of them: their mask goes on with them. */
#include "model/layers/attention/layer_attention.h"

#include "ops/ops.h"

static const struct yaml *only_entry(const struct yaml *node)
{
    return node->kind == YAML_LIST && node->count == 1 ? node->first : node;
}

OPTION_READER(option_one_whole)
{
    return yaml_absent(node) ? PLIM_OK : option_whole(out, option, at, only_entry(node), error);
}

static OPTION_READER(option_one_extent)
{
    return yaml_absent(node) ? PLIM_OK : option_extent(out, option, at, only_entry(node), error);
}

#define TO(field) .offset = offsetof(struct attention, field)
#define COMMON                                                                                                         \
    {"dropout", option_rate, TO(dropout)}, {"use_bias", option_flag, TO(use_bias)},                                    \
        {"use_causal_mask", option_flag, TO(causal)}, {.word = "flash_attention"}, KERNEL_AND_BIAS,                    \
        {"seed", option_one_whole, TO(seed), .least = 1}, {"use_gate", option_only, .with = "false"},                  \
    {                                                                                                                  \
        "sliding_window", option_only, .with = "null"                                                                  \
    }

static const struct model_option multi_head_options[] = {
    {"num_heads", option_extent, TO(heads), .least = 1, .required = true},
    {"key_dim", option_extent, TO(key_dim), .least = 1, .required = true},
    {"value_dim", option_one_extent, TO(value_dim), .least = 1},
    {"output_shape", option_one_extent, TO(output), .least = 1},
    {"attention_axes", option_only, .with = "1"},
    COMMON,
};

static const struct model_option group_options[] = {
    {"head_dim", option_extent, TO(key_dim), .least = 1, .required = true},
    {"num_query_heads", option_extent, TO(heads), .least = 1, .required = true},
    {"num_key_value_heads", option_extent, TO(groups), .least = 1, .required = true},
    COMMON,
};

static const struct attention defaults = {.use_bias = true, .kernel = {.kind = INITIAL_GLOROT_UNIFORM}};

static plim_status multi_head_check(struct layer *layer, plim_error *error)
{
    struct attention *a = layer->options;
    (void)error;
    a->groups = a->heads;
    a->value_dim = a->value_dim ? a->value_dim : a->key_dim;
    return PLIM_OK;
}

static plim_status group_check(struct layer *layer, plim_error *error)
{
    struct attention *a = layer->options;
    a->value_dim = a->key_dim;
    if (a->heads % a->groups != 0)
        return layer_fail(layer, error, PLIM_BAD_JOB, "%lld query heads cannot share %lld key heads",
                          (long long)a->heads, (long long)a->groups);
    return PLIM_OK;
}

/* ---- building ---- */

/* query, value, key from 1 to 3 inputs; false: what does not fit has been said. */
bool attention_inputs(struct tensor *out[3], const struct layer *layer, struct graph *graph, struct tensor *const *x,
                      int count)
{
    char shapes[3][96];
    if (count < 1 || count > 3) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: takes query, value and key, got %d inputs", layer->name, count);
        return false;
    }
    out[0] = x[0];
    out[1] = count > 1 ? x[1] : x[0];
    out[2] = count > 2 ? x[2] : out[1];
    for (int i = 0; i < 3; i++) {
        if (!out[i])
            return false;
        shape_text(shapes[i], sizeof shapes[i], &out[i]->shape, true);
        if (out[i]->shape.rank != 3) {
            graph_fail(graph, PLIM_BAD_JOB, "%s: wants (batch, steps, features), got %s", layer->name, shapes[i]);
            return false;
        }
    }
    if (out[1]->shape.dim[1] != out[2]->shape.dim[1]) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: a value of shape %s and a key of shape %s differ in steps", layer->name,
                   shapes[1], shapes[2]);
        return false;
    }
    return true;
}

/* Which keys are there: the value's mask, or the key's. */
struct tensor *attention_key_mask(const struct graph *graph, int count)
{
    struct tensor *mask = layer_mask(graph, count > 1 ? 1 : 0);
    return mask || count < 3 ? mask : layer_mask(graph, 2);
}

struct tensor *attention_attend(const struct layer *layer, struct graph *graph, struct tensor *const heads[3],
                                struct tensor *mask)
{
    const struct attention *a = layer->options;
    struct attention_attributes attributes = {.scale = a->scale, .causal = a->causal};
    struct tensor *inputs[5] = {heads[0], heads[1], heads[2], mask, NULL};
    if (graph->build->fitting && a->dropout > 0) {
        attributes.dropout = a->dropout;
        attributes.seed = layer_seed(layer, graph, a->seed);
        inputs[4] = model_iteration(graph);
    }
    return graph_add(graph, &op_attention, inputs, 5, &attributes, sizeof attributes);
}

/* y = x . kernel + bias, the kernel summed over its first `inner` axes. */
static struct tensor *project(const struct layer *layer, struct graph *graph, struct tensor *x, const char *kernel_name,
                              const char *bias_name, const int64_t dim[3], int inner)
{
    const struct attention *a = layer->options;
    struct shape shape = shape_of(3, dim), rest = shape_of(3 - inner, dim + inner);
    struct matmul_attributes attributes = {.inner_axes = inner};
    struct tensor *inputs[3] = {x, model_kernel(layer, graph, kernel_name, shape, a->kernel), NULL};
    if (a->use_bias)
        inputs[2] = model_weight(layer, graph, bias_name, rest, a->bias);
    return graph_add(graph, &op_matmul, inputs, 3, &attributes, sizeof attributes);
}

static struct tensor *heads_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct attention *a = layer->options;
    struct tensor *in[3];
    if (!attention_inputs(in, layer, graph, x, count))
        return NULL;
    int64_t output = a->output ? a->output : in[0]->shape.dim[2];
    struct tensor *q = project(layer, graph, in[0], "query/kernel", "query/bias",
                               (int64_t[]){in[0]->shape.dim[2], a->heads, a->key_dim}, 1);
    struct tensor *k = project(layer, graph, in[2], "key/kernel", "key/bias",
                               (int64_t[]){in[2]->shape.dim[2], a->groups, a->key_dim}, 1);
    struct tensor *v = project(layer, graph, in[1], "value/kernel", "value/bias",
                               (int64_t[]){in[1]->shape.dim[2], a->groups, a->value_dim}, 1);
    struct tensor *y = attention_attend(layer, graph, (struct tensor *[]){q, k, v}, attention_key_mask(graph, count));
    return project(layer, graph, y, "attention_output/kernel", "attention_output/bias",
                   (int64_t[]){a->heads, a->value_dim, output}, 2);
}

/* Layers of their own in Keras, and groups in its files: named as the attributes that hold them, without their
   underscore only where the class has a property of that name. */
static const char *const saved_heads[] = {"query",       "query_dense",      "key",          "key_dense", "value",
                                          "value_dense", "attention_output", "output_dense", NULL};
static const char *const saved_group_heads[] = {
    "query", "_query_dense", "key", "_key_dense", "value", "_value_dense", "attention_output", "_output_dense", NULL};

const struct layer_type layer_multi_head_attention = {
    NAMES("MultiHeadAttention", "multi_head_attention"),
    .saved_groups = saved_heads,
    .keeps_mask = true,
    OPTIONS(struct attention, multi_head_options),
    .defaults = &defaults,
    .example = "MultiHeadAttention: {num_heads: 8, key_dim: 64}",
    .check = multi_head_check,
    .merge = heads_merge,
};

const struct layer_type layer_group_query_attention = {
    NAMES("GroupQueryAttention", "grouped_query_attention"),
    .alias = "GroupedQueryAttention",
    .saved_groups = saved_group_heads,
    .keeps_mask = true,
    OPTIONS(struct attention, group_options),
    .defaults = &defaults,
    .example = "GroupQueryAttention: {head_dim: 64, num_query_heads: 8, num_key_value_heads: 2}",
    .check = group_check,
    .merge = heads_merge,
};
