/* layer_embedding.c - Embedding, ReversibleEmbedding, and layers that make vectors or classes of numbers:
   CategoryEncoding, Discretization. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

/* ---- Embedding ---- */

struct embedding {
    struct layer_words words;
    int64_t input_dim, output_dim;
    struct initializer initializer;
    bool mask_zero;
    const struct yaml *initializer_word, *weights, *lora_rank;
    /* ReversibleEmbedding's: */
    bool tie_weights, reverse;
    double soft_cap; /* 0: none */
    const struct yaml *reverse_dtype;
};

#define AT(field) offsetof(struct embedding, field)

static const struct setting embedding_settings[] = {
    {"input_dim", SETTING_WHOLE, AT(input_dim), 1},
    {"output_dim", SETTING_WHOLE, AT(output_dim), 1},
    {"embeddings_initializer", SETTING_NODE, AT(initializer_word), 0},
    {"embeddings_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"embeddings_constraint", SETTING_ELSEWHERE, 0, 0},
    {"mask_zero", SETTING_BOOL, AT(mask_zero), 0},
    {"weights", SETTING_NODE, AT(weights), 0},
    {"lora_rank", SETTING_NODE, AT(lora_rank), 0},
    LAYER_WORDS,
    {"tie_weights", SETTING_BOOL, AT(tie_weights), 0},
    {"logit_soft_cap", SETTING_NUMBER, AT(soft_cap), 0},
    {"reverse_dtype", SETTING_NODE, AT(reverse_dtype), 0},
    {"reverse", SETTING_BOOL, AT(reverse), 0},
};
#define OF_REVERSIBLE 4 /* the last so many */

static plim_status read_embedding(struct layer *layer, int settings, const struct yaml *yaml, plim_error *error)
{
    struct embedding *embedding = layer->options;
    const char *job = layer->model->job;
    embedding->initializer = (struct initializer){.kind = INITIAL_UNIFORM, .value = 0.05};
    TRY(layer_read(layer, embedding_settings, settings, yaml, error));
    if (!embedding->input_dim || !embedding->output_dim)
        return layer_missing(layer, embedding->input_dim ? "output_dim" : "input_dim",
                             "{input_dim: 10000, output_dim: 64}", error);
    TRY(option_extent(layer, "input_dim", embedding->input_dim, error));
    TRY(option_extent(layer, "output_dim", embedding->output_dim, error));
    TRY(option_initializer(&embedding->initializer, layer, "embeddings_initializer", embedding->initializer_word,
                           error));
    TRY(option_default("Embedding", job, "weights", "null", embedding->weights, error));
    return option_default("Embedding", job, "lora_rank", "null", embedding->lora_rank, error);
}

static plim_status embedding_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_embedding(layer, LENGTH(embedding_settings) - OF_REVERSIBLE, yaml, error);
}

static struct tensor *embeddings_of(const struct layer *layer, struct graph *graph)
{
    const struct embedding *embedding = layer->options;
    struct initializer initializer = embedding->initializer;
    struct shape shape = shape_of(2, (int64_t[]){embedding->input_dim, embedding->output_dim});
    initializer.fan_in = embedding->input_dim;
    initializer.fan_out = embedding->output_dim;
    return model_weight(layer, graph, "embeddings", shape, initializer);
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
    .name = "Embedding",
    .snake = "embedding",
    .any_type = true,
    .options_bytes = sizeof(struct embedding),
    .read = embedding_read,
    .build = embedding_build,
};

/* ---- ReversibleEmbedding: a second use with `reverse: true` leads back to a score for each entry ---- */

static plim_status reversible_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct embedding *embedding = layer->options;
    char where[256];
    embedding->tie_weights = true;
    TRY(read_embedding(layer, LENGTH(embedding_settings), yaml, error));
    layer_place(where, layer);
    if (embedding->reverse)
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where, "%s: its first use cannot be reverse", layer->type->name),
                    "- tokens: {inputs: x, reverse: true}, for a second use of layer 'tokens'");
    if (embedding->soft_cap < 0)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: logit_soft_cap must be above 0", layer->type->name);
    return option_default(layer->type->name, layer->model->job, "reverse_dtype", "float32", embedding->reverse_dtype,
                          error);
}

/* Untied, the way back has a kernel of its own, with the initializer of the way there. */
static struct tensor *kernel_back(const struct layer *layer, struct graph *graph)
{
    const struct embedding *embedding = layer->options;
    struct initializer initializer = embedding->initializer;
    struct shape shape = shape_of(2, (int64_t[]){embedding->output_dim, embedding->input_dim});
    initializer.fan_in = embedding->output_dim;
    initializer.fan_out = embedding->input_dim;
    return model_weight(layer, graph, "reverse_embeddings", shape, initializer);
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
    .name = "ReversibleEmbedding",
    .snake = "reversible_embedding",
    .any_type = true,
    .reverses = true,
    .options_bytes = sizeof(struct embedding),
    .read = reversible_read,
    .build = reversible_build,
};

/* ---- CategoryEncoding ---- */

struct encoding {
    struct layer_words words;
    int64_t num_tokens;
    int mode;
    const struct yaml *mode_word, *sparse;
};

static const struct setting encoding_settings[] = {
    {"num_tokens", SETTING_WHOLE, offsetof(struct encoding, num_tokens), 1},
    {"output_mode", SETTING_NODE, offsetof(struct encoding, mode_word), 0},
    {"sparse", SETTING_NODE, offsetof(struct encoding, sparse), 0},
    LAYER_WORDS,
};

/* In the order of enum one_hot_mode. */
static const char *const modes[] = {"one_hot", "multi_hot", "count"};

static plim_status encoding_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct encoding *encoding = layer->options;
    encoding->mode = ONE_HOT_MULTI;
    TRY(layer_read(layer, encoding_settings, LENGTH(encoding_settings), yaml, error));
    if (!encoding->num_tokens)
        return layer_missing(layer, "num_tokens", "CategoryEncoding: {num_tokens: 10}", error);
    TRY(option_extent(layer, "num_tokens", encoding->num_tokens, error));
    TRY(option_word(&encoding->mode, layer, "output_mode", encoding->mode_word, modes, LENGTH(modes), NULL, 0, error));
    return option_default(layer->type->name, layer->model->job, "sparse", "false", encoding->sparse, error);
}

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
    .options_bytes = sizeof(struct encoding),
    .read = encoding_read,
    .build = encoding_build,
};

/* ---- Discretization: with boundaries given; adapt() is the pipeline's ---- */

struct discretization {
    struct layer_words words;
    struct bucketize_attributes buckets;
    int mode; /* 0: int; 1..: enum one_hot_mode + 1 */
    const struct yaml *boundaries, *mode_word, *num_bins, *epsilon, *sparse;
};

#define OF(field) offsetof(struct discretization, field)
static const struct setting discretization_settings[] = {
    {"bin_boundaries", SETTING_NODE, OF(boundaries), 0},
    {"num_bins", SETTING_NODE, OF(num_bins), 0},
    {"epsilon", SETTING_NODE, OF(epsilon), 0},
    {"output_mode", SETTING_NODE, OF(mode_word), 0},
    {"sparse", SETTING_NODE, OF(sparse), 0},
    LAYER_WORDS,
};

static plim_status discretization_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    static const char *const words[] = {"int", "one_hot", "multi_hot", "count"};
    struct discretization *options = layer->options;
    const struct setting boundary = {"bin_boundaries", SETTING_NUMBER, 0, 0};
    const char *job = layer->model->job;
    char where[256];
    TRY(layer_read(layer, discretization_settings, LENGTH(discretization_settings), yaml, error));
    TRY(option_default(layer->type->name, job, "num_bins", "null", options->num_bins, error));
    TRY(option_default(layer->type->name, job, "epsilon", "0.01", options->epsilon, error));
    TRY(option_default(layer->type->name, job, "sparse", "false", options->sparse, error));
    if (!options->boundaries)
        return layer_missing(layer, "bin_boundaries", "Discretization: {bin_boundaries: [0, 0.5, 1]}", error);
    if (options->boundaries->kind != YAML_LIST || options->boundaries->count > MOST_BOUNDARIES) {
        yaml_place(where, job, options->boundaries);
        return fail_at(error, PLIM_BAD_JOB, where, "bin_boundaries: expected a list of 1 to %d numbers",
                       MOST_BOUNDARIES);
    }
    for (const struct yaml *entry = options->boundaries->first; entry; entry = entry->next)
        TRY(setting_value(&options->buckets.boundary[options->buckets.count++], &boundary, job, entry, error));
    return option_word(&options->mode, layer, "output_mode", options->mode_word, words, LENGTH(words), NULL, 0, error);
}

static struct tensor *discretization_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct discretization *options = layer->options;
    x = graph_add(graph, &op_bucketize, &x, 1, &options->buckets, sizeof options->buckets);
    return options->mode == 0 ? x : encode(graph, x, options->mode - 1, options->buckets.count + 1);
}

const struct layer_type layer_discretization = {
    .name = "Discretization",
    .snake = "discretization",
    .any_type = true,
    .options_bytes = sizeof(struct discretization),
    .read = discretization_read,
    .build = discretization_build,
};
