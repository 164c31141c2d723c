/* layer_bidirectional.c - Bidirectional: a recurrent layer forwards, another one backwards, and both outputs made one,
   or with merge_mode null two outputs. With return_state the states of the first, then of the second follow.

   As in Keras the layer itself is read twice, the second time the other way round, unless backward_layer says which one
   that is; outputs of masked steps are 0 where sequences are returned. */
#include <string.h>

#include "model/layers/recurrent/layer_recurrent.h"
#include "ops/ops.h"

enum merge_mode { MERGE_CONCAT, MERGE_SUM, MERGE_MUL, MERGE_AVE, MERGE_NONE };

struct bidirectional {
    struct layer_words words;
    const struct yaml *layer_word, *backward_word, *mode_word, *weights;
    struct layer *forward, *backward;
    int mode;
};

#define AT(field) offsetof(struct bidirectional, field)
static const struct setting settings[] = {
    {"layer", SETTING_NODE, AT(layer_word), 0},        {"merge_mode", SETTING_NODE, AT(mode_word), 0},
    {"weights", SETTING_NODE, AT(weights), 0},         {"backward_layer", SETTING_NODE, AT(backward_word), 0},
    {"activity_regularizer", SETTING_ELSEWHERE, 0, 0}, LAYER_WORDS,
};

static plim_status read_mode(struct layer *layer, plim_error *error)
{
    static const char *const modes[] = {"concat", "sum", "mul", "ave"};
    struct bidirectional *options = layer->options;
    const struct yaml *node = options->mode_word;
    char where[256];
    if (!node)
        return PLIM_OK;
    yaml_place(where, layer->model->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "merge_mode: expected a word, or null");
    if (node->is_null)
        options->mode = MERGE_NONE;
    if (node->is_null)
        return PLIM_OK;
    for (int i = 0; i < LENGTH(modes); i++)
        if (strcmp(node->text, modes[i]) == 0) {
            options->mode = i;
            return PLIM_OK;
        }
    return option_unknown("merge_mode", node->text, where, modes, LENGTH(modes), NULL, 0, error);
}

/* "lstm" -> "forward_lstm", once. */
static plim_status name_inner(struct layer *inner, const char *prefix, plim_error *error)
{
    struct layer_words *words = inner->options;
    const char *own = words->name ? words->name : inner->type->snake;
    if (strncmp(own, prefix, strlen(prefix)) == 0)
        return PLIM_OK;
    words->name = arena_format(&inner->model->arena, "%s%s", prefix, own);
    return words->name ? PLIM_OK : arena_refused(&inner->model->arena, error);
}

/* The name of a layer that was read the other way round before it was written: "forward_lstm" -> "lstm". */
static void unname(struct layer *inner)
{
    static const char prefix[] = "forward_";
    struct layer_words *words = inner->options;
    if (words->name && strncmp(words->name, prefix, sizeof prefix - 1) == 0)
        words->name += sizeof prefix - 1;
}

static plim_status check_inner(const struct layer *layer, const struct layer *inner, plim_error *error)
{
    char where[256];
    layer_place(where, layer);
    if (layer_is_recurrent(inner))
        return PLIM_OK;
    return fail_at(error, PLIM_BAD_JOB, where,
                   "Bidirectional: %s is no recurrent layer; there are LSTM, GRU, SimpleRNN", inner->type->name);
}

/* What Keras has both agree on. */
static plim_status check_pair(const struct layer *layer, plim_error *error)
{
    const struct bidirectional *options = layer->options;
    const struct recurrent *a = options->forward->options, *b = options->backward->options;
    char where[256];
    layer_place(where, layer);
    if (a->go_backwards == b->go_backwards)
        return fail_at(error, PLIM_BAD_JOB, where,
                       "Bidirectional: layer and backward_layer go the same way; "
                       "one of them needs go_backwards: true");
    if (a->return_sequences != b->return_sequences)
        return fail_at(error, PLIM_BAD_JOB, where,
                       "Bidirectional: layer and backward_layer differ in return_sequences");
    if (a->return_state != b->return_state)
        return fail_at(error, PLIM_BAD_JOB, where, "Bidirectional: layer and backward_layer differ in return_state");
    return PLIM_OK;
}

static void count_outputs(struct layer *layer)
{
    const struct bidirectional *options = layer->options;
    const struct recurrent *forward = options->forward->options;
    int outputs = options->mode == MERGE_NONE ? 2 : 1;
    if (forward->return_state)
        outputs += recurrent_states(options->forward) + recurrent_states(options->backward);
    layer->outputs = outputs > 1 ? outputs : 0;
}

static plim_status read_inner(struct layer **out, struct layer *layer, const struct yaml *word, const char *part,
                              plim_error *error)
{
    TRY(layer_read_inner(out, layer, word, error));
    TRY(check_inner(layer, *out, error));
    (*out)->saved_part = part;
    struct recurrent *options = (*out)->options;
    options->zero_output_for_mask = options->return_sequences;
    return PLIM_OK;
}

/* `Bidirectional: {layer: {LSTM: 64}}` */
static plim_status bidirectional_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct bidirectional *options = layer->options;
    bool given;
    TRY(layer_read(layer, settings, LENGTH(settings), yaml, error));
    if (!options->layer_word)
        return layer_missing(layer, "layer", "Bidirectional: {layer: {LSTM: 64}}", error);
    TRY(option_default("Bidirectional", layer->model->job, "weights", "null", options->weights, error));
    TRY(read_mode(layer, error));
    given = options->backward_word && !(options->backward_word->kind == YAML_SCALAR && options->backward_word->is_null);
    TRY(read_inner(&options->forward, layer, options->layer_word, "forward_layer", error));
    TRY(read_inner(&options->backward, layer, given ? options->backward_word : options->layer_word, "backward_layer",
                   error));
    struct recurrent *backward = options->backward->options;
    if (!given) {
        backward->go_backwards = !backward->go_backwards;
        unname(options->backward);
        TRY(name_inner(options->backward, "backward_", error));
    }
    TRY(name_inner(options->forward, "forward_", error));
    TRY(check_pair(layer, error));
    count_outputs(layer);
    return PLIM_OK;
}

static struct tensor *merge_pair(const struct layer *layer, struct graph *graph, struct tensor *a, struct tensor *b)
{
    const struct bidirectional *options = layer->options;
    struct scale_attributes half = {0.5};
    if (!a || !b || options->mode == MERGE_NONE)
        return b ? a : NULL;
    if (options->mode == MERGE_CONCAT)
        return concatenate(graph, (struct tensor *[]){a, b}, 2, a->shape.rank - 1);
    struct tensor *y = binary(graph, options->mode == MERGE_MUL ? &op_multiply : &op_add, a, b);
    return options->mode == MERGE_AVE ? graph_add(graph, &op_scale, &y, 1, &half, sizeof half) : y;
}

/* Those behind the first. */
static void set_outputs(const struct layer *layer, struct graph *graph, struct tensor *second,
                        struct tensor *const states[2][MOST_STATES])
{
    const struct bidirectional *options = layer->options;
    const struct recurrent *forward = options->forward->options;
    int next = 1, of_first = recurrent_states(options->forward);
    if (options->mode == MERGE_NONE)
        layer_set_output(graph, next++, second, forward->return_sequences ? layer_mask(graph, 0) : NULL);
    for (int i = 0; next < layer->outputs; i++)
        layer_set_output(graph, next++, i < of_first ? states[0][i] : states[1][i - of_first], NULL);
}

/* x: the sequence, and states of both layers where they begin with some: half of them each. Both sequences lie in time,
   as Keras has them after turning the second one over; a first layer that goes backwards is left turned over. */
static struct tensor *bidirectional_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x,
                                          int count)
{
    const struct bidirectional *options = layer->options;
    const struct recurrent *forward = options->forward->options;
    int half = (count - 1) / 2;
    struct tensor *first[3] = {x[0]}, *second[3] = {x[0]};
    if (count % 2 == 0 || half > 2) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: takes a sequence and as many states for each direction, got %d inputs",
                   layer->name, count);
        return NULL;
    }
    for (int i = 0; i < half; i++) {
        first[1 + i] = x[1 + i];
        second[1 + i] = x[1 + half + i];
    }
    struct tensor *states[2][MOST_STATES] = {{NULL}};
    struct tensor *a = recurrent_run(states[0], options->forward, graph, first, 1 + half, !forward->go_backwards);
    struct tensor *b = recurrent_run(states[1], options->backward, graph, second, 1 + half, !forward->go_backwards);
    if (b && forward->go_backwards && forward->return_sequences)
        b = reverse_axis(graph, b, 1);
    if (!forward->return_sequences)
        layer_set_mask(graph, NULL);
    set_outputs(layer, graph, b, states);
    return merge_pair(layer, graph, a, b);
}

const struct layer_type layer_bidirectional = {
    .name = "Bidirectional",
    .snake = "bidirectional",
    .wide = true,
    .keeps_mask = true,
    .options_bytes = sizeof(struct bidirectional),
    .read = bidirectional_read,
    .merge = bidirectional_merge,
};
