/* step_model.c - lifetimes of a step in which some forward values are computed again.

   A node runs again right before the first backward instruction that needs one of its dropped outputs, directly or
   through others that run again. So the nodes are visited from the last to the first: each hands the slot before which
   it runs on to the nodes that make those of its inputs that are not there. */
#include "plan/search/step_model.h"

#include <string.h>

#include "base/numbers/minmax.h"
#include "plan/search/op_time.h"
#include "transform/in_place.h"
#include "transform/recompute_own.h"

/* ---- the program ---- */

static plim_status find_slots(int **out, struct step_model *model, const struct phase *phase, struct arena *work,
                              plim_error *error)
{
    int *slot = arena_array(work, (size_t)phase->graph->node_count, sizeof *slot);
    if (!slot)
        return arena_refused(work, error);
    for (int i = 0; i < phase->instruction_count; i++)
        for (int t = 0; t < phase->instruction[i].task_count; t++) {
            const struct node *node = phase->instruction[i].task[t].node;
            slot[node->id] = i;
            model->seconds += node_seconds(node);
        }
    *out = slot;
    return PLIM_OK;
}

static plim_status find_base(struct step_model *model, const struct phase *phase, struct arena *work, plim_error *error)
{
    model->slots = phase->instruction_count;
    model->base = arena_array(work, (size_t)model->slots, sizeof *model->base);
    model->live = arena_array(work, (size_t)model->slots + 1, sizeof *model->live);
    if (!model->base || !model->live)
        return arena_refused(work, error);
    layout_max_live(model->base, phase->instance, phase->instance_count, model->slots, NULL);
    return PLIM_OK;
}

/* ---- values that may be dropped ---- */

/* By tensor id. */
struct touches {
    int *forward_end; /* the slot of the last forward node that touches it */
    bool *apart;      /* backward nodes read it in several slots, or as a whole */
};

static void note_backward(struct touches *touches, const struct step_model *model, const struct node *node,
                          const int *slot)
{
    struct cut cut;
    node->op->cut(&cut, node);
    for (int i = 0; i < node->input_count; i++) {
        int t = node->input[i] ? node->input[i]->id : -1;
        if (t >= 0 &&
            (cut.input[i] != PART_CUT || !cut.by_sample || slot[model->retention.first_read[t]] != slot[node->id]))
            touches->apart[t] = true;
    }
}

static plim_status find_touches(struct touches *out, const struct step_model *model, const int *slot,
                                struct arena *work, plim_error *error)
{
    const struct graph *graph = model->graph;
    out->forward_end = arena_array(work, (size_t)graph->tensor_count, sizeof *out->forward_end);
    out->apart = arena_array(work, (size_t)graph->tensor_count, sizeof *out->apart);
    if (!out->forward_end || !out->apart)
        return arena_refused(work, error);
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int k = 0; k < node->output_count; k++)
            out->forward_end[node->output[k]->id] = slot[n];
        for (int i = 0; i < node->input_count && !node->backward; i++)
            if (node->input[i])
                out->forward_end[node->input[i]->id] = (int)max_i64(out->forward_end[node->input[i]->id], slot[n]);
        if (node->backward)
            note_backward(out, model, node, slot);
    }
    return PLIM_OK;
}

/* Whether a chain of slices can take the node that makes the value: it is cut by sample, and walks through few bytes as
   a whole. */
static bool joins_chains(const struct tensor *tensor)
{
    const struct node *node = tensor->producer;
    struct cut cut;
    uint64_t whole = 0;
    node->op->cut(&cut, node);
    for (int i = 0; i < node->input_count; i++)
        whole += node->input[i] && cut.input[i] != PART_CUT ? tensor_bytes(node->input[i]) : 0;
    return cut.by_sample && cut.output[0] == PART_CUT && whole <= (uint64_t)NOMINAL_L2_BYTES / 2;
}

static plim_status find_drops(struct step_model *model, const struct phase *phase, const int *slot, struct arena *work,
                              plim_error *error)
{
    const struct graph *graph = model->graph;
    struct touches touches;
    TRY(find_touches(&touches, model, slot, work, error));
    model->drop = arena_array(work, (size_t)graph->tensor_count, sizeof *model->drop);
    if (!model->drop)
        return arena_refused(work, error);
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = graph->tensor[t];
        if (!retention_may_drop(&model->retention, tensor) || phase->place[t].space != SPACE_TENSOR_ARENA)
            continue;
        struct droppable drop = {.tensor = t,
                                 .bytes = layout_bytes(tensor_bytes(tensor)),
                                 .begin = touches.forward_end[t] + 1,
                                 .read = slot[model->retention.first_read[t]],
                                 .local = !touches.apart[t] && joins_chains(tensor)};
        if (drop.begin < drop.read)
            model->drop[model->drop_count++] = drop;
    }
    return PLIM_OK;
}

/* ---- nodes that may run again ---- */

static uint64_t lost_bytes(const struct step_model *model, const struct phase *phase, const struct node *node)
{
    uint64_t bytes = 0;
    for (int k = 0; k < node->output_count; k++) {
        const struct tensor *y = node->output[k];
        if (model->retention.last_read[y->id] < 0 && phase->place[y->id].space == SPACE_TENSOR_ARENA)
            bytes += layout_bytes(tensor_bytes(y));
    }
    return bytes;
}

static void add_inputs(struct repeatable *repeat, const struct step_model *model, const struct node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *x = node->input[i];
        bool forward = x && x->kind == KIND_VALUE && x->producer && !x->producer->backward;
        if (!forward || model->repeat_of[x->producer->id] < 0)
            continue;
        repeat->input[repeat->count] = model->repeat_of[x->producer->id];
        repeat->tensor[repeat->count++] = x->id;
    }
}

static plim_status find_repeats(struct step_model *model, const struct phase *phase, struct arena *work,
                                plim_error *error)
{
    const struct graph *graph = model->graph;
    size_t nodes = (size_t)graph->node_count;
    model->repeat_of = arena_array(work, nodes, sizeof *model->repeat_of);
    model->repeat = arena_array(work, nodes, sizeof *model->repeat);
    model->need = arena_array(work, nodes, sizeof *model->need);
    model->last = arena_array(work, nodes, sizeof *model->last);
    model->runs = arena_array(work, nodes, sizeof *model->runs);
    if (!model->repeat_of || !model->repeat || !model->need || !model->last || !model->runs)
        return arena_refused(work, error);
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        model->repeat_of[n] = -1;
        if (!model->retention.repeatable[n])
            continue;
        struct repeatable *repeat = &model->repeat[model->repeat_count];
        *repeat = (struct repeatable){.node = n,
                                      .seconds = node_seconds(node),
                                      .lost_bytes = lost_bytes(model, phase, node),
                                      .cheap = is_cheap_again(node)};
        add_inputs(repeat, model, node);
        model->repeat_of[n] = model->repeat_count++;
    }
    return PLIM_OK;
}

plim_status step_model_make(struct step_model *out, const struct phase *phase, struct arena *work, plim_error *error)
{
    struct step_model model = {.graph = phase->graph};
    int *slot = NULL;
    TRY(retention_find(&model.retention, phase->graph, work, error));
    TRY(find_slots(&slot, &model, phase, work, error));
    TRY(find_base(&model, phase, work, error));
    TRY(find_drops(&model, phase, slot, work, error));
    TRY(find_repeats(&model, phase, work, error));
    *out = model;
    return PLIM_OK;
}

/* ---- one choice ---- */

/* `live` is a difference array until `sum_up`: bytes that begin at `first` and end before `end`. */
static void add_bytes(struct step_model *model, int first, int end, int64_t bytes)
{
    if (first >= end)
        return;
    model->live[first] += bytes;
    model->live[end] -= bytes;
}

/* A backward instruction, or a node that runs before it, needs an output of the node. */
static void ask(struct step_model *model, int repeat, int slot)
{
    model->runs[repeat] += model->need[repeat] == NEVER || model->last[repeat] != slot;
    model->need[repeat] = (int)min_i64(model->need[repeat], slot);
    model->last[repeat] = (int)max_i64(model->last[repeat], slot);
}

static void start(struct step_model *model, const bool *dropped)
{
    memset(model->live, 0, ((size_t)model->slots + 1) * sizeof *model->live);
    for (int r = 0; r < model->repeat_count; r++) {
        model->need[r] = NEVER;
        model->last[r] = -1;
        model->runs[r] = 0;
    }
    for (int d = 0; d < model->drop_count; d++)
        if (dropped[model->drop[d].tensor])
            ask(model, model->repeat_of[model->graph->tensor[model->drop[d].tensor]->producer->id],
                model->drop[d].read);
}

/* What a node that runs again makes besides dropped values: it is there from the first slot that asks to the last; in
   slice buffers, where that is one slot and the node is cheap. */
static void hold_lost(struct step_model *model, int r)
{
    const struct repeatable *repeat = &model->repeat[r];
    if (repeat->lost_bytes && (model->need[r] != model->last[r] || !repeat->cheap))
        add_bytes(model, model->need[r], model->last[r] + 1, (int64_t)repeat->lost_bytes);
}

static bool has_dropped(const struct step_model *model, int repeat, const bool *dropped)
{
    const struct node *node = model->graph->node[model->repeat[repeat].node];
    for (int k = 0; k < node->output_count; k++)
        if (dropped[node->output[k]->id])
            return true;
    return false;
}

/* Returns the seconds of all second computations. A node that has its inputs and is cheap runs for each slot that asks;
   others run once. */
static double repeat_nodes(struct step_model *model, const bool *dropped)
{
    double seconds = 0;
    for (int r = model->repeat_count - 1; r >= 0; r--) {
        const struct repeatable *repeat = &model->repeat[r];
        if (model->need[r] == NEVER)
            continue;
        bool passes = repeat->cheap && !has_dropped(model, r, dropped);
        for (int i = 0; i < repeat->count; i++)
            if (!retention_has(&model->retention, dropped, model->graph->tensor[repeat->tensor[i]])) {
                ask(model, repeat->input[i], model->need[r]);
                passes = false;
            }
        seconds += repeat->seconds * (passes ? model->runs[r] : 1);
        if (!passes)
            hold_lost(model, r);
    }
    return seconds;
}

static uint64_t sum_up(struct step_model *model)
{
    int64_t sum = 0, peak = 0;
    for (int s = 0; s < model->slots; s++) {
        sum += model->live[s];
        model->live[s] = sum + (int64_t)model->base[s];
        peak = max_i64(peak, model->live[s]);
    }
    return (uint64_t)peak;
}

struct step_cost step_model_try(struct step_model *model, const bool *dropped)
{
    struct step_cost cost = {.seconds = model->seconds};
    start(model, dropped);
    cost.seconds += repeat_nodes(model, dropped);
    for (int d = 0; d < model->drop_count; d++) {
        const struct droppable *drop = &model->drop[d];
        if (!dropped[drop->tensor])
            continue;
        int repeat = model->repeat_of[model->graph->tensor[drop->tensor]->producer->id];
        int end = model->need[repeat] + (drop->local && model->need[repeat] == drop->read);
        add_bytes(model, drop->begin, end, -(int64_t)drop->bytes);
    }
    cost.peak = sum_up(model);
    return cost;
}
