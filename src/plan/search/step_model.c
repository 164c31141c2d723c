/* step_model.c - lifetimes of a step in which some forward values are computed again or lie on the disk.

   A node runs again right before the first backward instruction that needs one of its dropped outputs, directly or
   through others that run again. So the nodes are visited from the last to the first: each hands the slot before which
   it runs on to the nodes that make those of its inputs that are not there. */
#include "plan/search/step_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/transfer_file.h"
#include "base/numbers/checked.h"
#include "base/numbers/minmax.h"
#include "plan/search/op_time.h"
#include "transform/in_place.h"
#include "transform/recompute_own.h"

/* ---- the program ---- */

static plim_status find_slots(int **out, const struct phase *phase, struct arena *work, plim_error *error)
{
    int *slot = arena_array(work, (size_t)phase->graph->node_count, sizeof *slot);
    if (!slot)
        return arena_refused(work, error);
    for (int i = 0; i < phase->instruction_count; i++)
        for (int t = 0; t < phase->instruction[i].task_count; t++)
            slot[phase->instruction[i].task[t].node->id] = i;
    *out = slot;
    return PLIM_OK;
}

static plim_status find_times(struct step_model *model, const struct phase *phase, struct arena *work,
                              plim_error *error)
{
    model->time = arena_array(work, (size_t)phase->instruction_count + 1, sizeof *model->time);
    if (!model->time)
        return arena_refused(work, error);
    for (int i = 0; i < phase->instruction_count; i++) {
        model->time[i + 1] = model->time[i];
        for (int t = 0; t < phase->instruction[i].task_count; t++)
            model->time[i + 1] += node_seconds(phase->instruction[i].task[t].node);
    }
    model->seconds = model->time[phase->instruction_count];
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

/* ---- values that need not stay ---- */

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

static bool may_drop(const struct step_model *model, const struct tensor *tensor)
{
    return model->freedom.may_drop && retention_may_drop(&model->retention, tensor);
}

/* Values of which another takes over the bytes in the forward pass have no backward readers. */
static bool may_spill(const struct step_model *model, const struct tensor *tensor)
{
    return model->freedom.spill_bytes && tensor->kind == KIND_VALUE && tensor->producer &&
           !tensor->producer->backward && model->retention.last_read[tensor->id] >= 0 &&
           tensor_bytes(tensor) >= LEAST_KEPT_BYTES;
}

static void add_value(struct step_model *model, const struct tensor *tensor, const struct touches *touches,
                      const int *slot)
{
    int t = tensor->id;
    struct releasable value = {.tensor = t,
                               .bytes = layout_bytes(tensor_bytes(tensor)),
                               .disk_bytes = round_up(tensor_bytes(tensor), TRANSFER_ALIGNMENT),
                               .begin = touches->forward_end[t] + 1,
                               .read = slot[model->retention.first_read[t]],
                               .local = !touches->apart[t] && joins_chains(tensor),
                               .may_drop = may_drop(model, tensor),
                               .may_spill = may_spill(model, tensor)};
    if (value.begin >= value.read)
        return;
    model->value_of[t] = model->value_count;
    model->value[model->value_count++] = value;
}

static plim_status find_values(struct step_model *model, const struct phase *phase, const int *slot, struct arena *work,
                               plim_error *error)
{
    const struct graph *graph = model->graph;
    size_t tensors = (size_t)graph->tensor_count;
    struct touches touches;
    TRY(find_touches(&touches, model, slot, work, error));
    model->value = arena_array(work, tensors, sizeof *model->value);
    model->value_of = arena_array(work, tensors, sizeof *model->value_of);
    if (!model->value || !model->value_of)
        return arena_refused(work, error);
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = graph->tensor[t];
        model->value_of[t] = -1;
        if ((may_drop(model, tensor) || may_spill(model, tensor)) && phase->place[t].space == SPACE_TENSOR_ARENA)
            add_value(model, tensor, &touches, slot);
    }
    return PLIM_OK;
}

/* ---- the ways to the disk and back ---- */

struct order {
    int key, value;
};

static int by_key(const void *left, const void *right)
{
    const struct order *a = left, *b = right;
    return a->key != b->key ? (a->key < b->key ? -1 : 1) : (a->value > b->value) - (a->value < b->value);
}

static void sort_values(int *out, struct order *order, int count)
{
    if (count)
        qsort(order, (size_t)count, sizeof *order, by_key);
    for (int k = 0; k < count; k++)
        out[k] = order[k].value;
}

static plim_status find_ways(struct step_model *model, struct arena *work, plim_error *error)
{
    size_t count = (size_t)model->value_count;
    struct order *order = arena_array(work, count, sizeof *order);
    model->by_begin = arena_array(work, count, sizeof *model->by_begin);
    model->by_read = arena_array(work, count, sizeof *model->by_read);
    model->use = arena_array(work, count, sizeof *model->use);
    model->away = arena_array(work, count, sizeof *model->away);
    if (!order || !model->by_begin || !model->by_read || !model->use || !model->away)
        return arena_refused(work, error);
    for (int v = 0; v < model->value_count; v++)
        order[v] = (struct order){model->value[v].begin, v};
    sort_values(model->by_begin, order, model->value_count);
    for (int v = 0; v < model->value_count; v++)
        order[v] = (struct order){-model->value[v].read, v};
    sort_values(model->by_read, order, model->value_count);
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
        if (!forward)
            continue;
        int maker = model->repeat_of[x->producer->id];
        repeat->input[repeat->count] = maker < 0 ? NEVER : maker;
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

plim_status step_model_make(struct step_model *out, const struct phase *phase, struct step_freedom freedom,
                            struct arena *work, plim_error *error)
{
    struct step_model model = {.graph = phase->graph, .freedom = freedom};
    int *slot = NULL;
    TRY(retention_find(&model.retention, phase->graph, work, error));
    TRY(find_slots(&slot, phase, work, error));
    TRY(find_times(&model, phase, work, error));
    TRY(find_base(&model, phase, work, error));
    TRY(find_values(&model, phase, slot, work, error));
    TRY(find_ways(&model, work, error));
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

static void start(struct step_model *model, const struct step_choice *choice)
{
    memset(model->live, 0, ((size_t)model->slots + 1) * sizeof *model->live);
    for (int r = 0; r < model->repeat_count; r++) {
        model->need[r] = NEVER;
        model->last[r] = -1;
        model->runs[r] = 0;
    }
    for (int v = 0; v < model->value_count; v++) {
        const struct releasable *value = &model->value[v];
        model->use[v] = value->read;
        if (choice->dropped[value->tensor])
            ask(model, model->repeat_of[model->graph->tensor[value->tensor]->producer->id], value->read);
    }
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

/* Asks for the inputs of a node that runs again. Returns whether all are there. */
static bool ask_inputs(struct step_model *model, int r, const bool *dropped)
{
    const struct repeatable *repeat = &model->repeat[r];
    bool there = true;
    for (int i = 0; i < repeat->count; i++) {
        int tensor = repeat->tensor[i], value = model->value_of[tensor];
        if (!retention_has(&model->retention, dropped, model->graph->tensor[tensor])) {
            ask(model, repeat->input[i], model->need[r]);
            there = false;
        } else if (value >= 0) {
            model->use[value] = (int)min_i64(model->use[value], model->need[r]);
        }
    }
    return there;
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
        bool there = ask_inputs(model, r, dropped);
        bool passes = there && repeat->cheap && !has_dropped(model, r, dropped);
        seconds += repeat->seconds * (passes ? model->runs[r] : 1);
        if (!passes)
            hold_lost(model, r);
    }
    return seconds;
}

/* ---- the disk ---- */

/* Moving bytes takes processor time from those that compute: 0.05 to 0.09 s a GB was measured. */
#define SECONDS_A_BYTE 0.07e-9
#define HIDDEN_PART    0.9 /* of the step's time: so much the disk may work beside it */

double spill_seconds(uint64_t bytes)
{
    return 2 * (double)bytes * SECONDS_A_BYTE;
}

/* The first slot that begins at this time or later. */
static int slot_from(const struct step_model *model, double time)
{
    int low = 0, high = model->slots;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (model->time[middle] >= time)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint64_t spilled_bytes(const struct step_model *model, const struct step_choice *choice)
{
    uint64_t bytes = 0;
    for (int v = 0; v < model->value_count; v++)
        bytes += choice->spilled[model->value[v].tensor] ? model->value[v].disk_bytes : 0;
    return bytes;
}

/* As transfers.c lays them out: writes one behind the other. Returns the seconds that the step waits for them. */
static double write_values(struct step_model *model, const struct step_choice *choice)
{
    double idle = 0, waits = 0;
    for (int k = 0; k < model->value_count; k++) {
        int v = model->by_begin[k];
        const struct releasable *value = &model->value[v];
        if (!choice->spilled[value->tensor])
            continue;
        double begin = model->time[value->begin];
        idle = (begin > idle ? begin : idle) + transfer_seconds(value->bytes);
        waits += choice->waits[value->tensor] ? idle - begin : 0;
        idle = choice->waits[value->tensor] ? begin : idle;
        model->away[v] = slot_from(model, idle);
    }
    return waits;
}

/* Reads are as late as those behind them allow. */
static double read_values(struct step_model *model, const struct step_choice *choice)
{
    double busy = model->time[model->slots], waits = 0;
    for (int k = 0; k < model->value_count; k++) {
        int v = model->by_read[k];
        const struct releasable *value = &model->value[v];
        if (!choice->spilled[value->tensor])
            continue;
        double end = model->time[model->use[v]], way = transfer_seconds(value->bytes);
        waits += choice->waits[value->tensor] ? way : 0;
        busy = choice->waits[value->tensor] ? end : (end < busy ? end : busy) - way;
        int back = slot_from(model, busy);
        add_bytes(model, model->away[v], model->time[back] > busy ? back - 1 : back, -(int64_t)value->bytes);
    }
    return waits;
}

/* Returns the seconds that the disk makes the step longer. */
static double spill_values(struct step_model *model, const struct step_choice *choice, uint64_t bytes, double seconds)
{
    if (!bytes)
        return 0;
    double waits = write_values(model, choice) + read_values(model, choice);
    double busy = 2 * transfer_seconds(bytes) - waits - HIDDEN_PART * seconds;
    return spill_seconds(bytes) + waits + (busy > 0 ? busy : 0);
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

struct step_cost step_model_try(struct step_model *model, const struct step_choice *choice)
{
    struct step_cost cost = {.seconds = model->seconds};
    uint64_t bytes = spilled_bytes(model, choice);
    start(model, choice);
    cost.seconds += repeat_nodes(model, choice->dropped);
    cost.seconds += spill_values(model, choice, bytes, cost.seconds);
    for (int v = 0; v < model->value_count; v++) {
        const struct releasable *value = &model->value[v];
        if (!choice->dropped[value->tensor])
            continue;
        int repeat = model->repeat_of[model->graph->tensor[value->tensor]->producer->id];
        int end = model->need[repeat] + (value->local && model->need[repeat] == value->read);
        add_bytes(model, value->begin, end, -(int64_t)value->bytes);
    }
    cost.peak = sum_up(model);
    if (bytes > model->freedom.spill_bytes)
        cost.peak = UINT64_MAX;
    return cost;
}
