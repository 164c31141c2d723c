/* layer_embedding.c - Embedding, ReversibleEmbedding, and layers that make vectors or classes of numbers:
   CategoryEncoding, Discretization. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

/* ---- Embedding ---- */

struct embedding {
    struct layer_keys keys;
    int64_t input_dim, output_dim;
    struct initializer initializer;
    bool mask_zero;
    /* ReversibleEmbedding's: */
    bool tie_weights, reverse;
    double soft_cap; /* 0: none */
};

#define TO(field) .offset = offsetof(struct embedding, field)
static const struct model_option embedding_options[] = {
    {"input_dim", option_extent, TO(input_dim), .least = 1, .required = true},
    {"output_dim", option_extent, TO(output_dim), .least = 1, .required = true},
    {"embeddings_initializer", option_initializer, TO(initializer)},
    {.word = "embeddings_regularizer"},
    {.word = "embeddings_constraint"},
    {"mask_zero", option_flag, TO(mask_zero)},
    {"weights", option_only, .with = "null"},
    {"lora_rank", option_only, .with = "null"},
    {"tie_weights", option_flag, TO(tie_weights)},
    {"logit_soft_cap", option_number, TO(soft_cap)},
    {"reverse_dtype", option_only, .with = "float32"},
    {"reverse", option_flag, TO(reverse)},
};
#define OF_REVERSIBLE 4 /* the last so many */

static const struct embedding defaults = {.initializer = {.kind = INITIAL_UNIFORM, .value = 0.05}, .tie_weights = true};

/* [input_dim, output_dim] */
static struct tensor *embeddings_of(const struct layer *layer, struct graph *graph)
{
    const struct embedding *embedding = layer->options;
    struct shape shape = shape_of(2, (int64_t[]){embedding->input_dim, embedding->output_dim});
    return model_weight(layer, graph, "embeddings", shape, initializer_with_fans(embedding->initializer, &shape));
}

static struct tensor *embedding_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct embedding *embedding = layer->options;
    if (x && embedding->mask_zero && layer_needs_rank(layer, graph, x, 2)) {
        struct mask_of_attributes zero = {.value = 0};
        layer_set_mask(graph, graph_add(graph, &op_mask_of, &x, 1, &zero, sizeof zero));
    }
    return binary(graph, &op_embedding, x, embeddings_of(layer, graph));
}

const struct layer_type layer_embedding = {
    NAMES("Embedding", "embedding"),
    .any_type = true,
    .options_bytes = sizeof(struct embedding),
    .option = embedding_options,
    .option_count = COUNT(embedding_options) - OF_REVERSIBLE,
    .defaults = &defaults,
    .example = "{input_dim: 10000, output_dim: 64}",
    .build = embedding_build,
};

/* ---- ReversibleEmbedding: a second use with `reverse: true` leads back to a score for each entry ---- */

static plim_status reversible_check(struct layer *layer, plim_error *error)
{
    const struct embedding *embedding = layer->options;
    if (embedding->reverse)
        return hint(error, layer_fail(layer, error, PLIM_BAD_JOB, "its first use cannot be reverse"),
                    "- tokens: {inputs: x, reverse: true}, for a second use of layer 'tokens'");
    if (embedding->soft_cap < 0)
        return layer_fail(layer, error, PLIM_BAD_JOB, "logit_soft_cap must be above 0");
    return PLIM_OK;
}

/* Untied, the way back has a kernel of its own, with the initializer of the way there. */
static struct tensor *kernel_back(const struct layer *layer, struct graph *graph)
{
    const struct embedding *embedding = layer->options;
    struct shape shape = shape_of(2, (int64_t[]){embedding->output_dim, embedding->input_dim});
    return model_weight(layer, graph, "reverse_embeddings", shape,
                        initializer_with_fans(embedding->initializer, &shape));
}

static struct tensor *scaled(struct graph *graph, struct tensor *x, double factor)
{
    struct scale_attributes attributes = {.factor = factor};
    return graph_add(graph, &op_scale, &x, 1, &attributes, sizeof attributes);
}

static struct tensor *reversible_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct embedding *embedding = layer->options;
    struct tensor *there = embeddings_of(layer, graph); /* the first weight in Keras's files */
    struct tensor *back = embedding->tie_weights ? there : kernel_back(layer, graph);
    if (!layer_is_reversed(graph))
        return embedding_build(layer, graph, x);
    struct matmul_attributes attributes = {.transposed = embedding->tie_weights};
    enum type compute = layer_compute(layer);
    struct tensor *inputs[] = {policy_cast(graph, x, compute), policy_cast(graph, back, compute)};
    struct tensor *scores = graph_add(graph, &op_matmul, inputs, 2, &attributes, sizeof attributes);
    if (embedding->soft_cap > 0)
        scores =
            scaled(graph, unary(graph, &op_tanh, scaled(graph, scores, 1 / embedding->soft_cap)), embedding->soft_cap);
    return scores;
}

const struct layer_type layer_reversible_embedding = {
    NAMES("ReversibleEmbedding", "reversible_embedding"),
    .any_type = true,
    .reverses = true,
    OPTIONS(struct embedding, embedding_options),
    .defaults = &defaults,
    .example = "{input_dim: 10000, output_dim: 64}",
    .check = reversible_check,
    .build = reversible_build,
};

/* ---- CategoryEncoding ---- */

struct encoding {
    struct layer_keys keys;
    int64_t num_tokens;
    int mode; /* enum one_hot_mode */
};

static const char *const modes[] = {"int", "one_hot", "multi_hot", "count"}; /* after "int" as in enum one_hot_mode */

static const struct model_option encoding_options[] = {
    {"num_tokens", option_extent, .offset = offsetof(struct encoding, num_tokens), .least = 1, .required = true},
    {"output_mode", option_choice, .offset = offsetof(struct encoding, mode), .nullable = true,
     .with = &(const struct choices){modes + 1, COUNT(modes) - 1, NULL, 0}},
    {"sparse", option_only, .with = "false"},
};

/* one_hot of (batch, 1) is (batch, tokens), as Keras has it. */
static struct tensor *encode(struct graph *graph, struct tensor *x, int mode, int64_t tokens)
{
    struct one_hot_attributes attributes = {.depth = tokens, .mode = mode};
    if (x && mode == ONE_HOT && x->shape.rank > 1 && x->shape.dim[x->shape.rank - 1] == 1)
        x = reshape(graph, x, shape_of(x->shape.rank - 2, x->shape.dim + 1));
    return x ? graph_add(graph, &op_one_hot, &x, 1, &attributes, sizeof attributes) : NULL;
}

static struct tensor *encoding_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct encoding *encoding = layer->options;
    return encode(graph, x, encoding->mode, encoding->num_tokens);
}

const struct layer_type layer_category_encoding = {
    .name = "CategoryEncoding",
    .snake = "category_encoding",
    .any_type = true,
    OPTIONS(struct encoding, encoding_options),
    .defaults = &(const struct encoding){.mode = ONE_HOT_MULTI},
    .example = "CategoryEncoding: {num_tokens: 10}",
    .build = encoding_build,
};

/* ---- Discretization: with boundaries given; adapt() is the pipeline's ---- */

struct discretization {
    struct layer_keys keys;
    struct bucketize_attributes buckets;
    int mode; /* 0: int; 1..: enum one_hot_mode + 1 */
};

static OPTION_READER(read_boundaries)
{
    struct bucketize_attributes *buckets = out;
    if (node->kind != YAML_LIST || node->count > MOST_BOUNDARIES)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "bin_boundaries: expected a list of 1 to %d numbers",
                         MOST_BOUNDARIES);
    for (const struct yaml *entry = node->first; entry; entry = entry->next)
        TRY(option_number(&buckets->boundary[buckets->count++], option, at, entry, error));
    return PLIM_OK;
}

static const struct model_option discretization_options[] = {
    {"bin_boundaries", read_boundaries, .offset = offsetof(struct discretization, buckets), .required = true},
    {"num_bins", option_only, .with = "null"},
    {"epsilon", option_only, .with = "0.01"},
    {"output_mode", option_choice, .offset = offsetof(struct discretization, mode), .nullable = true,
     .with = CHOICES(modes)},
    {"sparse", option_only, .with = "false"},
};

static struct tensor *discretization_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct discretization *options = layer->options;
    x = graph_add(graph, &op_bucketize, &x, 1, &options->buckets, sizeof options->buckets);
    return options->mode == 0 ? x : encode(graph, x, options->mode - 1, options->buckets.count + 1);
}

const struct layer_type layer_discretization = {
    NAMES("Discretization", "discretization"),
    .any_type = true,
    OPTIONS(struct discretization, discretization_options),
    .example = "Discretization: {bin_boundaries: [0, 0.5, 1]}",
    .build = discretization_build,
};
