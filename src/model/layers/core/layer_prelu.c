/* layer_prelu.c - PReLU: alpha * x below 0, alpha learned; one for each element of a sample, or shared along axes. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct prelu {
    struct layer_words words;
    struct initializer alpha;
    int64_t shared[MOST_AXES];
    int shared_count;
    const struct yaml *alpha_word, *shared_word; /* of the job file */
};

#define AT(field) offsetof(struct prelu, field)
static const struct setting settings[] = {
    {"alpha_initializer", SETTING_NODE, AT(alpha_word), 0},
    {"alpha_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"alpha_constraint", SETTING_ELSEWHERE, 0, 0},
    {"shared_axes", SETTING_NODE, AT(shared_word), 0},
    LAYER_WORDS,
};

/* A whole number or a list of them, from 1: the batch is none. */
static plim_status read_shared(struct prelu *prelu, const struct layer *layer, plim_error *error)
{
    const struct setting whole = {"shared_axes", SETTING_WHOLE, 0, 1};
    const struct yaml *word = prelu->shared_word;
    char where[256];
    if (!word || (word->kind == YAML_SCALAR && word->is_null))
        return PLIM_OK;
    bool list = word->kind == YAML_LIST;
    for (const struct yaml *entry = list ? word->first : word; entry; entry = list ? entry->next : NULL) {
        if (prelu->shared_count == MOST_AXES) {
            yaml_place(where, layer->model->job, word);
            return fail_at(error, PLIM_BAD_JOB, where, "shared_axes: more than %d axes", MOST_AXES);
        }
        TRY(setting_value(&prelu->shared[prelu->shared_count++], &whole, layer->model->job, entry, error));
    }
    return PLIM_OK;
}

static plim_status prelu_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct prelu *prelu = layer->options;
    prelu->alpha.kind = INITIAL_ZEROS;
    TRY(layer_read(layer, settings, LENGTH(settings), yaml, error));
    TRY(option_initializer(&prelu->alpha, layer, "alpha_initializer", prelu->alpha_word, error));
    return read_shared(prelu, layer, error);
}

static struct tensor *prelu_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct prelu *prelu = layer->options;
    struct initializer initializer = prelu->alpha;
    struct shape shape = {.rank = 0};
    char text[96];
    if (!x)
        return NULL;
    shape_text(text, sizeof text, &x->shape, true);
    for (int k = 1; k < x->shape.rank; k++)
        shape.dim[shape.rank++] = x->shape.dim[k];
    for (int i = 0; i < prelu->shared_count; i++) {
        if (prelu->shared[i] > shape.rank) {
            graph_fail(graph, PLIM_BAD_JOB, "%s: shared_axes: there is no axis %lld in %s", layer->name,
                       (long long)prelu->shared[i], text);
            return NULL;
        }
        shape.dim[prelu->shared[i] - 1] = 1;
    }
    if (shape.rank == 0) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: wants an axis beside the batch, got %s", layer->name, text);
        return NULL;
    }
    initializer.fan_in = initializer.fan_out = shape.dim[shape.rank - 1];
    return binary(graph, &op_prelu, x, model_compute_weight(layer, graph, "alpha", shape, initializer));
}

const struct layer_type layer_prelu = {
    .name = "PReLU",
    .snake = "p_re_lu",
    .keeps_mask = true,
    .options_bytes = sizeof(struct prelu),
    .read = prelu_read,
    .build = prelu_build,
};
