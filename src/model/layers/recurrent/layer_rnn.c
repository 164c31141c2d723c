/* layer_rnn.c - RNN: a recurrent layer of a cell, or of StackedRNNCells, each of which takes what the one before makes.

   `RNN: {cell: {LSTMCell: 64}}`, `RNN: {cell: [{LSTMCell: 64}, {GRUCell: 32}]}`. Cells of one's own are refused. */
#include <string.h>

#include "model/layers/recurrent/layer_recurrent.h"

#define TO(field) .offset = offsetof(struct recurrent, field)

static const struct model_option rnn_options[] = {
    {"cell", option_node, TO(cell_word), .required = true},
    SEQUENCE_OPTIONS,
    {.word = "activity_regularizer"},
};

static const struct model_option stack_options[] = {{"cells", option_node, TO(cell_word)}};

static bool is_cell(const struct layer *layer)
{
    return layer->type == &layer_lstm_cell || layer->type == &layer_gru_cell || layer->type == &layer_simple_rnn_cell;
}

static plim_status no_cell(const struct layer *layer, const struct layer *inner, const struct yaml *word,
                           plim_error *error)
{
    return yaml_fail(error, PLIM_BAD_JOB, layer->model->job, word,
                     "%s: %s is no cell; there are LSTMCell, GRUCell, SimpleRNNCell", layer->type->name,
                     inner->type->name);
}

/* The cells of a list, as layers inside `stack`. */
static plim_status read_cells(struct layer *stack, const struct yaml *list, plim_error *error)
{
    struct recurrent *options = stack->options;
    if (list->kind != YAML_LIST || list->count < 1 || list->count > MOST_CELLS)
        return hint(error,
                    yaml_fail(error, PLIM_BAD_JOB, stack->model->job, list, "%s: expected a list of 1 to %d cells",
                              stack->type->name, MOST_CELLS),
                    "cell: [{LSTMCell: 64}, {LSTMCell: 64}]");
    options->cell = arena_array(&stack->model->arena, (size_t)list->count, sizeof(struct layer *));
    if (!options->cell)
        return arena_refused(&stack->model->arena, error);
    for (const struct yaml *word = list->first; word; word = word->next) {
        struct layer *cell = NULL;
        TRY(layer_read_inner(&cell, stack, word, error));
        if (!is_cell(cell))
            return no_cell(stack, cell, word, error);
        TRY(layer_name_inner(cell, options->cell, options->cell_count, "cells/", error));
        options->cell[options->cell_count++] = cell;
    }
    return PLIM_OK;
}

static plim_status stack_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    const struct recurrent *options = layer->options;
    bool list = yaml && yaml->kind == YAML_LIST;
    TRY(layer_read(layer, list ? NULL : yaml, error));
    if (!list && !options->cell_word)
        return layer_missing(layer, "cells", error);
    return read_cells(layer, list ? yaml : options->cell_word, error);
}

/* A list of cells is a StackedRNNCells of them, as in Keras. */
static plim_status read_stack(struct layer **out, struct layer *layer, const struct yaml *word, plim_error *error)
{
    struct arena *arena = &layer->model->arena;
    struct yaml *entry = arena_take(arena, sizeof *entry), *cells = arena_take(arena, sizeof *cells);
    if (!entry || !cells || !(cells->key = arena_string(arena, layer_stacked_rnn_cells.name)))
        return arena_refused(arena, error);
    *entry = (struct yaml){.kind = YAML_MAP, .first = cells, .count = 1, .line = word->line, .column = word->column};
    struct yaml list = *word;
    list.key = cells->key;
    list.next = NULL;
    *cells = list;
    return layer_read_inner(out, layer, entry, error);
}

static plim_status rnn_check(struct layer *layer, plim_error *error)
{
    struct recurrent *options = layer->options;
    struct layer *inner = NULL;
    const struct yaml *word = options->cell_word;
    TRY(word->kind == YAML_LIST ? read_stack(&inner, layer, word, error)
                                : layer_read_inner(&inner, layer, word, error));
    inner->saved_part = "cell";
    if (!is_cell(inner) && inner->type != &layer_stacked_rnn_cells)
        return no_cell(layer, inner, word, error);
    const struct recurrent *stack = inner->options;
    options->self = inner;
    options->cell = is_cell(inner) ? &options->self : stack->cell;
    options->cell_count = is_cell(inner) ? 1 : stack->cell_count;
    recurrent_count_outputs(layer);
    return PLIM_OK;
}

static struct tensor *stack_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    (void)x;
    return graph_fail(graph, PLIM_BAD_JOB, "%s: StackedRNNCells is no layer by itself: `RNN: {cell: [...]}`",
                      layer->name);
}

const struct layer_type layer_rnn = {
    NAMES("RNN", "rnn"),
    .wide = true,
    .keeps_mask = true,
    OPTIONS(struct recurrent, rnn_options),
    .example = "RNN: {cell: {LSTMCell: 64}}",
    .check = rnn_check,
    .merge = recurrent_build,
};

const struct layer_type layer_stacked_rnn_cells = {
    NAMES("StackedRNNCells", "stacked_rnn_cells"),
    .wide = true,
    OPTIONS(struct recurrent, stack_options),
    .example = "StackedRNNCells: {cells: [{LSTMCell: 64}, {LSTMCell: 64}]}",
    .read = stack_read,
    .build = stack_build,
};
