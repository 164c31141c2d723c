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
#include "plan/pages.h"
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
            model->time[i + 1] += node_seconds(model->costs, phase->instruction[i].task[t].node);
    }
    model->seconds = model->time[phase->instruction_count];
    return PLIM_OK;
}

static plim_status find_base(struct step_model *model, const struct program *program, struct arena *work,
                             plim_error *error)
{
    const struct phase *phase = &program->phase[PHASE_TRAIN];
    model->slots = phase->instruction_count;
    model->base = arena_array(work, (size_t)model->slots, sizeof *model->base);
    model->live = arena_array(work, (size_t)model->slots + 1, sizeof *model->live);
    if (!model->base || !model->live)
        return arena_refused(work, error);
    layout_max_live(model->base, phase->instance, phase->instance_count, model->slots, NULL);
    for (int i = 0; i < model->slots; i++)
        model->base[i] += program->persistent_bytes;
    for (int p = 0; p < PHASE_COUNT; p++)
        if (p != PHASE_TRAIN && program->phase[p].name)
            model->other_bytes = max_u64(model->other_bytes, program->persistent_bytes + program->phase[p].top);
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
    return model->freedom.may_spill && model->freedom.disk_bytes && tensor->kind == KIND_VALUE && tensor->producer &&
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
                               .moved_bytes = 2 * tensor_bytes(tensor),
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

/* ---- weights and states ---- */

#define LEAST_PAGED_BYTES (1 << 18) /* less is not worth its transfers */

/* Averages take their weights' places in the end, both at once (trainer.c): neither is paged. */
static bool has_averages(const struct graph *graph)
{
    for (int t = 0; t < graph->tensor_count; t++) {
        const char *name = graph->tensor[t]->name;
        size_t length = strlen(name), last = strlen("/average");
        if (graph->tensor[t]->kind == KIND_STATE && length > last && strcmp(name + length - last, "/average") == 0)
            return true;
    }
    return false;
}

/* States of layers and metrics are small, or the trainer reads them. */
static bool may_page(const struct step_model *model, const struct tensor *tensor, bool averages)
{
    bool weight = tensor->kind == KIND_WEIGHT;
    bool state = tensor->kind == KIND_STATE && tensor->of_update;
    if (!(weight || state) || averages || !model->freedom.disk_bytes || tensor_bytes(tensor) < LEAST_PAGED_BYTES)
        return false;
    return model->freedom.may_page[weight ? PAGE_WEIGHTS : PAGE_STATES];
}

/* Whether the disk can use the time between two slots: to write, and to read again. As transfers.c sees it. */
static bool may_leave(const struct step_model *model, const struct releasable *value, const struct page_visit *visit,
                      int slot)
{
    double way = transfer_seconds(model->costs, value->bytes), gap = model->time[slot] - model->time[visit->last + 1];
    return slot > visit->last + 1 && gap > (visit->writes ? 2 * way : way);
}

static bool is_lasting(const struct tensor *tensor)
{
    return tensor->kind == KIND_WEIGHT || tensor->kind == KIND_STATE;
}

/* Visits of one tensor follow one another in the table: lists by tensor are made of them first. */
struct touch {
    int slot, next;
    bool writes;
};

static plim_status list_touches(struct touch **touches, int **first, const struct step_model *model,
                                const struct phase *phase, struct arena *work, plim_error *error)
{
    size_t count = 0, tensors = (size_t)model->graph->tensor_count;
    int at = 0;
    for (int n = 0; n < model->graph->node_count; n++)
        count += (size_t)model->graph->node[n]->input_count;
    *touches = arena_array(work, count + 1, sizeof **touches);
    *first = arena_array(work, tensors, sizeof **first);
    if (!*touches || !*first)
        return arena_refused(work, error);
    for (int i = phase->instruction_count - 1; i >= 0; i--) /* from the last, so that lists begin with the first */
        for (int t = phase->instruction[i].task_count - 1; t >= 0; t--) {
            const struct node *node = phase->instruction[i].task[t].node;
            for (int k = 0; k < node->input_count; k++) {
                if (!node->input[k] || !is_lasting(node->input[k]))
                    continue;
                (*touches)[++at] = (struct touch){i, (*first)[node->input[k]->id], node->op->updates >> k & 1};
                (*first)[node->input[k]->id] = at;
            }
        }
    return PLIM_OK;
}

static bool has_sums(const struct instruction *instruction)
{
    for (int t = 0; t < instruction->task_count; t++)
        if (instruction->task[t].sums.leaves)
            return true;
    return false;
}

/* Whether the state passes through the arena piece by piece, and how much of it is there then: three pieces are. An
   update has two states, usually. */
static void find_row(struct releasable *value, const struct phase *phase, const struct tensor *tensor,
                     const struct page_visit *visit)
{
    const struct instruction *instruction = &phase->instruction[visit->first];
    int pieces = 1;
    if (tensor->kind == KIND_STATE && value->visit_count == 1 && visit->first == visit->last)
        pieces = page_pieces(&instruction->chain, 2 * value->bytes, has_sums(instruction));
    value->in_row = pieces > 1;
    value->row_bytes = min_u64(value->bytes, 3 * value->bytes / (uint64_t)pieces);
}

static void add_page(struct step_model *model, const struct phase *phase, const struct tensor *tensor,
                     const struct touch *touches, int first)
{
    int t = tensor->id;
    struct releasable value = {.tensor = t,
                               .bytes = layout_bytes(tensor_bytes(tensor)),
                               .disk_bytes = tensor_bytes(tensor) + (MOST_HOME_PIECES + 1) * TRANSFER_ALIGNMENT,
                               .visit = model->visit_count,
                               .may_spill = true,
                               .pages = true,
                               .stated =
                                   model->freedom.pages[tensor->kind == KIND_WEIGHT ? PAGE_WEIGHTS : PAGE_STATES]};
    struct page_visit *visit = NULL;
    for (int at = first; at; at = touches[at].next) {
        if (!visit || may_leave(model, &value, visit, touches[at].slot)) {
            visit = &model->visit[model->visit_count++];
            *visit = (struct page_visit){.first = touches[at].slot};
        }
        visit->last = touches[at].slot;
        visit->writes |= touches[at].writes;
    }
    value.visit_count = model->visit_count - value.visit;
    for (int k = value.visit; k < model->visit_count; k++)
        value.moved_bytes += tensor_bytes(tensor) * (model->visit[k].writes ? 2 : 1);
    find_row(&value, phase, tensor, visit);
    model->value_of[t] = model->value_count;
    model->value[model->value_count++] = value;
}

static plim_status find_pages(struct step_model *model, const struct phase *phase, struct arena *work,
                              plim_error *error)
{
    const struct graph *graph = model->graph;
    bool averages = has_averages(graph);
    struct touch *touches;
    int *first;
    if (!model->freedom.disk_bytes || !(model->freedom.may_page[PAGE_WEIGHTS] || model->freedom.may_page[PAGE_STATES]))
        return PLIM_OK;
    TRY(list_touches(&touches, &first, model, phase, work, error));
    size_t most = 0;
    for (int t = 0; t < graph->tensor_count; t++)
        for (int at = may_page(model, graph->tensor[t], averages) ? first[t] : 0; at; at = touches[at].next)
            most++;
    model->visit = arena_array(work, most, sizeof *model->visit);
    if (!model->visit)
        return arena_refused(work, error);
    for (int t = 0; t < graph->tensor_count; t++)
        if (first[t] && may_page(model, graph->tensor[t], averages))
            add_page(model, phase, graph->tensor[t], touches, first[t]);
    return PLIM_OK;
}

uint64_t step_model_pageable(const struct step_model *model)
{
    uint64_t bytes = 0;
    for (int v = 0; v < model->value_count; v++)
        bytes += model->value[v].pages ? model->value[v].bytes : 0;
    return bytes;
}

uint64_t step_model_room(const struct step_model *model)
{
    uint64_t room = model->freedom.disk_bytes;
    for (int v = 0; v < model->value_count; v++)
        if (model->value[v].stated && model->value[v].pages)
            room -= min_u64(room, model->value[v].disk_bytes);
    return room;
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
    return find_pages(model, phase, work, error);
}

/* ---- the ways to the disk and back ---- */

struct order {
    int key;
    struct way way;
};

static int by_key(const void *left, const void *right)
{
    const struct order *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->way.value != b->way.value ? a->way.value - b->way.value : a->way.visit - b->way.visit;
}

static void sort_ways(struct way *out, struct order *order, int count)
{
    if (count)
        qsort(order, (size_t)count, sizeof *order, by_key);
    for (int k = 0; k < count; k++)
        out[k] = order[k].way;
}

static int list_out(struct order *order, const struct step_model *model)
{
    int count = 0;
    for (int v = 0; v < model->value_count; v++) {
        const struct releasable *value = &model->value[v];
        if (!value->pages)
            order[count++] = (struct order){value->begin, {v, -1}};
        for (int k = value->visit; k < value->visit + value->visit_count; k++)
            if (model->visit[k].writes)
                order[count++] = (struct order){model->visit[k].last + 1, {v, k}};
    }
    return count;
}

static int list_in(struct order *order, const struct step_model *model)
{
    int count = 0;
    for (int v = 0; v < model->value_count; v++) {
        const struct releasable *value = &model->value[v];
        if (!value->pages)
            order[count++] = (struct order){-value->read, {v, -1}};
        for (int k = value->visit; k < value->visit + value->visit_count; k++)
            order[count++] = (struct order){-model->visit[k].first, {v, k}};
    }
    return count;
}

static plim_status find_ways(struct step_model *model, struct arena *work, plim_error *error)
{
    size_t values = (size_t)model->value_count, count = values + (size_t)model->visit_count;
    struct order *order = arena_array(work, count, sizeof *order);
    model->out_way = arena_array(work, count, sizeof *model->out_way);
    model->in_way = arena_array(work, count, sizeof *model->in_way);
    model->use = arena_array(work, values, sizeof *model->use);
    model->away = arena_array(work, values, sizeof *model->away);
    if (!order || !model->out_way || !model->in_way || !model->use || !model->away)
        return arena_refused(work, error);
    model->out_count = list_out(order, model);
    sort_ways(model->out_way, order, model->out_count);
    model->in_count = list_in(order, model);
    sort_ways(model->in_way, order, model->in_count);
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
                                      .seconds = node_seconds(model->costs, node),
                                      .lost_bytes = lost_bytes(model, phase, node),
                                      .cheap = is_cheap_again(node)};
        add_inputs(repeat, model, node);
        model->repeat_of[n] = model->repeat_count++;
    }
    return PLIM_OK;
}

plim_status step_model_make(struct step_model *out, const struct program *program, struct step_freedom freedom,
                            struct arena *work, plim_error *error)
{
    const struct phase *phase = &program->phase[PHASE_TRAIN];
    struct step_model model = {.graph = phase->graph, .costs = freedom.costs, .freedom = freedom};
    int *slot = NULL;
    TRY(retention_find(&model.retention, phase->graph, work, error));
    TRY(find_slots(&slot, phase, work, error));
    TRY(find_times(&model, phase, work, error));
    TRY(find_base(&model, program, work, error));
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

double move_seconds(uint64_t bytes)
{
    return (double)bytes * SECONDS_A_BYTE;
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

/* What a choice puts on the disk. */
struct disk_load {
    uint64_t bytes, moved_bytes, paged_bytes;
};

static struct disk_load disk_load(const struct step_model *model, const struct step_choice *choice)
{
    struct disk_load load = {0};
    for (int v = 0; v < model->value_count; v++) {
        const struct releasable *value = &model->value[v];
        if (!choice->spilled[value->tensor])
            continue;
        load.bytes += value->disk_bytes;
        load.moved_bytes += value->moved_bytes;
        load.paged_bytes += value->pages ? value->bytes : 0;
    }
    return load;
}

/* As transfers.c lays them out: writes one behind the other. Returns the seconds that the step waits for them. */
static double write_values(struct step_model *model, const struct step_choice *choice)
{
    double idle = 0, waits = 0;
    for (int k = 0; k < model->out_count; k++) {
        struct way way = model->out_way[k];
        const struct releasable *value = &model->value[way.value];
        if (!choice->spilled[value->tensor])
            continue;
        bool at_once = choice->waits[value->tensor] || value->in_row;
        double begin = model->time[way.visit < 0 ? value->begin : model->visit[way.visit].last + 1];
        idle = (begin > idle ? begin : idle) + transfer_seconds(model->costs, value->bytes);
        waits += at_once ? idle - begin : 0;
        idle = at_once ? begin : idle;
        *(way.visit < 0 ? &model->away[way.value] : &model->visit[way.visit].out) = slot_from(model, idle);
    }
    return waits;
}

/* Reads are as late as those behind them allow. */
static double read_values(struct step_model *model, const struct step_choice *choice)
{
    double busy = model->time[model->slots], waits = 0;
    for (int k = 0; k < model->in_count; k++) {
        struct way way = model->in_way[k];
        const struct releasable *value = &model->value[way.value];
        if (!choice->spilled[value->tensor])
            continue;
        bool at_once = choice->waits[value->tensor] || value->in_row;
        double end = model->time[way.visit < 0 ? model->use[way.value] : model->visit[way.visit].first];
        double seconds = transfer_seconds(model->costs, value->bytes);
        waits += at_once ? seconds : 0;
        busy = at_once ? end : (end < busy ? end : busy) - seconds;
        int back = slot_from(model, busy);
        back = model->time[back] > busy ? back - 1 : back;
        if (way.visit < 0)
            add_bytes(model, model->away[way.value], back, -(int64_t)value->bytes);
        else
            model->visit[way.visit].in = back > 0 ? back : 0;
    }
    return waits;
}

static void page_value(struct step_model *model, const struct releasable *value)
{
    int from = 0;
    for (int k = value->visit; k < value->visit + value->visit_count; k++) {
        struct page_visit *visit = &model->visit[k];
        add_bytes(model, from, visit->in, -(int64_t)value->bytes);
        from = visit->writes ? visit->out : visit->last + 1;
        add_bytes(model, visit->first, from, (int64_t)value->row_bytes - (int64_t)value->bytes);
    }
    add_bytes(model, from, model->slots, -(int64_t)value->bytes);
}

/* Returns the seconds that the disk makes the step longer. */
static double move_values(struct step_model *model, const struct step_choice *choice, const struct disk_load *load,
                          double seconds)
{
    if (!load->bytes)
        return 0;
    double waits = write_values(model, choice) + read_values(model, choice);
    for (int v = 0; load->paged_bytes && v < model->value_count; v++)
        if (model->value[v].pages && choice->spilled[model->value[v].tensor])
            page_value(model, &model->value[v]);
    double busy = transfer_seconds(model->costs, load->moved_bytes) - waits - HIDDEN_PART * seconds;
    return move_seconds(load->moved_bytes) + waits + (busy > 0 ? busy : 0);
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
    struct disk_load load = disk_load(model, choice);
    start(model, choice);
    cost.seconds += repeat_nodes(model, choice->dropped);
    cost.seconds += move_values(model, choice, &load, cost.seconds);
    for (int v = 0; v < model->value_count; v++) {
        const struct releasable *value = &model->value[v];
        if (!choice->dropped[value->tensor])
            continue;
        int repeat = model->repeat_of[model->graph->tensor[value->tensor]->producer->id];
        int end = model->need[repeat] + (value->local && model->need[repeat] == value->read);
        add_bytes(model, value->begin, end, -(int64_t)value->bytes);
    }
    uint64_t peak = sum_up(model), others = model->other_bytes;
    cost.peak = max_u64(peak, others > load.paged_bytes ? others - load.paged_bytes : 0);
    if (load.bytes > model->freedom.disk_bytes)
        cost.peak = UINT64_MAX;
    return cost;
}
