/* layer_bidirectional.c - Bidirectional: a recurrent layer forwards, another one backwards, and both outputs made one,
   or with merge_mode null two outputs. With return_state the states of the first, then of the second follow.

   As in Keras the layer itself is read twice, the second time the other way round, unless backward_layer says which one
   that is; outputs of masked steps are 0 where sequences are returned. */
#include <string.h>

#include "model/layers/recurrent/layer_recurrent.h"
#include "ops/ops.h"

enum merge_mode { MERGE_CONCAT, MERGE_SUM, MERGE_MUL, MERGE_AVE, MERGE_NONE };

struct bidirectional {
    struct layer_keys keys;
    const struct yaml *layer_word, *backward_word;
    struct layer *forward, *backward;
    int mode;
};

/* null: both outputs. */
static OPTION_READER(read_mode)
{
    static const char *const modes[] = {"concat", "sum", "mul", "ave"};
    int *mode = out;
    char where[256];
    yaml_place(where, at->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "merge_mode: expected a word, or null");
    *mode = MERGE_NONE;
    return node->is_null ? PLIM_OK : choose_word(mode, option->word, node->text, CHOICES(modes), where, error);
}

#define TO(field) .offset = offsetof(struct bidirectional, field)
static const struct model_option bidirectional_options[] = {
    {"layer", option_node, TO(layer_word), .required = true},
    {"merge_mode", read_mode, TO(mode)},
    {"weights", option_only, .with = "null"},
    {"backward_layer", option_node, TO(backward_word), .nullable = true},
    {.word = "activity_regularizer"},
};

/* "lstm" -> "forward_lstm", once. */
static plim_status name_inner(struct layer *inner, const char *prefix, plim_error *error)
{
    struct layer_keys *keys = inner->options;
    const char *own = keys->name ? keys->name : inner->type->snake;
    if (strncmp(own, prefix, strlen(prefix)) == 0)
        return PLIM_OK;
    keys->name = arena_format(&inner->model->arena, "%s%s", prefix, own);
    return keys->name ? PLIM_OK : arena_refused(&inner->model->arena, error);
}

/* The name of a layer that was read the other way round before it was written: "forward_lstm" -> "lstm". */
static void unname(struct layer *inner)
{
    static const char prefix[] = "forward_";
    struct layer_keys *keys = inner->options;
    if (keys->name && strncmp(keys->name, prefix, sizeof prefix - 1) == 0)
        keys->name += sizeof prefix - 1;
}

static plim_status check_inner(const struct layer *layer, const struct layer *inner, plim_error *error)
{
    if (layer_is_recurrent(inner))
        return PLIM_OK;
    return layer_fail(layer, error, PLIM_BAD_JOB, "%s is no recurrent layer; there are LSTM, GRU, SimpleRNN",
                      inner->type->name);
}

/* What Keras has both agree on. */
static plim_status check_pair(const struct layer *layer, plim_error *error)
{
    const struct bidirectional *options = layer->options;
    const struct recurrent *a = options->forward->options, *b = options->backward->options;
    if (a->go_backwards == b->go_backwards)
        return layer_fail(layer, error, PLIM_BAD_JOB,
                          "layer and backward_layer go the same way; one of them needs go_backwards: true");
    if (a->return_sequences != b->return_sequences)
        return layer_fail(layer, error, PLIM_BAD_JOB, "layer and backward_layer differ in return_sequences");
    if (a->return_state != b->return_state)
        return layer_fail(layer, error, PLIM_BAD_JOB, "layer and backward_layer differ in return_state");
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
static plim_status bidirectional_check(struct layer *layer, plim_error *error)
{
    struct bidirectional *options = layer->options;
    const struct yaml *second = options->backward_word ? options->backward_word : options->layer_word;
    TRY(read_inner(&options->forward, layer, options->layer_word, "forward_layer", error));
    TRY(read_inner(&options->backward, layer, second, "backward_layer", error));
    struct recurrent *backward = options->backward->options;
    if (!options->backward_word) {
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
    if (count % 2 == 0 || half > 2)
        return graph_fail(graph, PLIM_BAD_JOB,
                          "%s: takes a sequence and as many states for each direction, got %d inputs", layer->name,
                          count);
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
    NAMES("Bidirectional", "bidirectional"),
    .wide = true,
    .keeps_mask = true,
    OPTIONS(struct bidirectional, bidirectional_options),
    .example = "Bidirectional: {layer: {LSTM: 64}}",
    .check = bidirectional_check,
    .merge = bidirectional_merge,
};
