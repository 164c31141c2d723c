/* layer_attention.c - MultiHeadAttention, GroupQueryAttention; what they share with Attention.

   Inputs are Keras's call: query, value, key; one input is all three, two are query and value (which is the key too).
   The mask that came with the value (or the key) hides those keys. Rows of the output that the query's mask hides are
   whatever attention makes of them: their mask goes on with them. */
#include "model/layers/attention/layer_attention.h"

#include "ops/ops.h"

#define AT(field) offsetof(struct attention, field)
#define COMMON_WORDS                                                                                                   \
    {"dropout", SETTING_NUMBER, AT(dropout), 0}, {"use_bias", SETTING_BOOL, AT(use_bias), 0},                          \
        {"use_causal_mask", SETTING_BOOL, AT(causal), 0}, {"flash_attention", SETTING_NODE, AT(flash), 0},             \
        KERNEL_AND_BIAS_WORDS, {"seed", SETTING_NODE, AT(seed_word), 0}, {"use_gate", SETTING_NODE, AT(gate), 0},      \
        {"sliding_window", SETTING_NODE, AT(window), 0}, LAYER_WORDS

static const struct setting multi_head_settings[] = {
    {"num_heads", SETTING_WHOLE, AT(heads), 1},         {"key_dim", SETTING_WHOLE, AT(key_dim), 1},
    {"value_dim", SETTING_NODE, AT(value_word), 0},     {"output_shape", SETTING_NODE, AT(output_word), 0},
    {"attention_axes", SETTING_NODE, AT(axes_word), 0}, COMMON_WORDS,
};

static const struct setting group_settings[] = {
    {"head_dim", SETTING_WHOLE, AT(key_dim), 1},
    {"num_query_heads", SETTING_WHOLE, AT(heads), 1},
    {"num_key_value_heads", SETTING_WHOLE, AT(groups), 1},
    COMMON_WORDS,
};

/* ---- reading ---- */

/* A whole number that may be null, or a list of one. */
static plim_status read_whole(int64_t *out, const struct layer *layer, const char *word, const struct yaml *node,
                              plim_error *error)
{
    const struct setting setting = {word, SETTING_WHOLE, 0, 1};
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    if (node->kind == YAML_LIST && node->count == 1)
        node = node->first;
    return setting_value(out, &setting, layer->model->job, node, error);
}

static plim_status read_unsupported(const struct attention *a, const struct layer *layer, plim_error *error)
{
    const char *owner = layer->type->name, *job = layer->model->job;
    TRY(option_default(owner, job, "attention_axes", "1", a->axes_word, error));
    TRY(option_default(owner, job, "use_gate", "false", a->gate, error));
    return option_default(owner, job, "sliding_window", "null", a->window, error);
}

plim_status attention_read(struct layer *layer, const struct setting *settings, int count, const struct yaml *yaml,
                           plim_error *error)
{
    struct attention *a = layer->options;
    char where[256];
    a->use_bias = true;
    a->kernel.kind = INITIAL_GLOROT_UNIFORM;
    TRY(layer_read(layer, settings, count, yaml, error));
    TRY(option_initializer(&a->kernel, layer, "kernel_initializer", a->kernel_word, error));
    TRY(option_initializer(&a->bias, layer, "bias_initializer", a->bias_word, error));
    TRY(read_whole(&a->seed, layer, "seed", a->seed_word, error));
    TRY(read_unsupported(a, layer, error));
    layer_place(where, layer);
    if (!(a->dropout >= 0 && a->dropout < 1))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: dropout must be in [0, 1), got %g", layer->type->name,
                       a->dropout);
    return PLIM_OK;
}

static plim_status check_extents(const struct layer *layer, plim_error *error)
{
    const struct attention *a = layer->options;
    TRY(option_extent(layer, "heads", a->heads, error));
    TRY(option_extent(layer, "key_dim", a->key_dim, error));
    TRY(option_extent(layer, "value_dim", a->value_dim, error));
    return option_extent(layer, "output_shape", a->output, error);
}

static plim_status multi_head_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct attention *a = layer->options;
    const char *example = "MultiHeadAttention: {num_heads: 8, key_dim: 64}";
    TRY(attention_read(layer, multi_head_settings, LENGTH(multi_head_settings), yaml, error));
    if (!a->heads || !a->key_dim)
        return layer_missing(layer, a->heads ? "key_dim" : "num_heads", example, error);
    a->groups = a->heads;
    a->value_dim = a->key_dim;
    TRY(read_whole(&a->value_dim, layer, "value_dim", a->value_word, error));
    TRY(read_whole(&a->output, layer, "output_shape", a->output_word, error));
    return check_extents(layer, error);
}

static plim_status group_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct attention *a = layer->options;
    char where[256];
    const char *example = "GroupQueryAttention: {head_dim: 64, num_query_heads: 8, num_key_value_heads: 2}";
    TRY(attention_read(layer, group_settings, LENGTH(group_settings), yaml, error));
    if (!a->heads || !a->key_dim || !a->groups)
        return layer_missing(layer,
                             !a->key_dim ? "head_dim"
                             : a->heads  ? "num_key_value_heads"
                                         : "num_query_heads",
                             example, error);
    a->value_dim = a->key_dim;
    layer_place(where, layer);
    if (a->heads % a->groups != 0)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: %lld query heads cannot share %lld key heads",
                       layer->type->name, (long long)a->heads, (long long)a->groups);
    return check_extents(layer, error);
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

/* Keras's fans of a kernel of three axes: the first counts as a field of view. */
static struct initializer kernel_of(const struct attention *a, const struct shape *shape)
{
    struct initializer kernel = a->kernel;
    kernel.fan_in = shape->dim[0] * shape->dim[1];
    kernel.fan_out = shape->dim[0] * shape->dim[2];
    return kernel;
}

/* y = x . kernel + bias, the kernel summed over its first `inner` axes. */
static struct tensor *project(const struct layer *layer, struct graph *graph, struct tensor *x, const char *kernel_name,
                              const char *bias_name, const int64_t dim[3], int inner)
{
    const struct attention *a = layer->options;
    struct shape shape = shape_of(3, dim), rest = shape_of(3 - inner, dim + inner);
    struct matmul_attributes attributes = {.inner_axes = inner};
    struct tensor *inputs[3] = {x, model_compute_weight(layer, graph, kernel_name, shape, kernel_of(a, &shape)), NULL};
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
    .name = "MultiHeadAttention",
    .snake = "multi_head_attention",
    .saved_groups = saved_heads,
    .keeps_mask = true,
    .options_bytes = sizeof(struct attention),
    .read = multi_head_read,
    .merge = heads_merge,
};

const struct layer_type layer_group_query_attention = {
    .name = "GroupQueryAttention",
    .alias = "GroupedQueryAttention",
    .snake = "grouped_query_attention",
    .saved_groups = saved_group_heads,
    .keeps_mask = true,
    .options_bytes = sizeof(struct attention),
    .read = group_read,
    .merge = heads_merge,
};
