/* replay.c - the state of a replay: which instances are alive, where copies of tensors lie, which version they are. */
#include "plan/verify/replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/sets/names.h"

plim_status replay_wrong(const struct replay *r, const struct node *node, const char *format, ...)
{
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return WRONG(r, "%s %s%s", node->op->name, node->name, what);
}

/* ---- instances --------------------------------------------------------- */

static plim_status add_alive(struct replay *r, const struct instance *instance)
{
    const struct interval *met = offset_set_overlap(&r->alive, instance->offset, instance->bytes);
    if (instance->bytes == 0)
        return PLIM_OK;
    if (met)
        return WRONG(r, "%s and %s share bytes at instruction %d", r->phase->instance[met->owner].name, instance->name,
                     r->at);
    offset_set_add(&r->alive, instance->offset, instance->bytes, (int)(instance - r->phase->instance));
    r->alive_bytes += instance->bytes;
    return PLIM_OK;
}

static void remove_alive(struct replay *r, const struct instance *instance)
{
    if (instance->bytes == 0)
        return;
    offset_set_remove(&r->alive, offset_set_overlap(&r->alive, instance->offset, instance->bytes));
    r->alive_bytes -= instance->bytes;
}

plim_status replay_enter(struct replay *r, int at)
{
    r->at = at;
    for (int k = at ? r->ends[at - 1] : 0; k; k = r->next_end[k - 1])
        remove_alive(r, &r->phase->instance[k - 1]);
    for (int k = r->begins[at]; k; k = r->next_begin[k - 1])
        TRY(add_alive(r, &r->phase->instance[k - 1]));
    return PLIM_OK;
}

bool replay_owns(const struct replay *r, uint64_t offset, uint64_t bytes)
{
    const struct interval *met = offset_set_overlap(&r->alive, offset, bytes);
    return met && met->offset <= offset && offset + bytes <= met->offset + met->bytes;
}

/* ---- copies of values -------------------------------------------------- */

void replay_forget(struct replay *r, enum space space, uint64_t offset, uint64_t bytes)
{
    struct offset_set *set = space == SPACE_WORKER ? &r->slices : &r->held;
    if (space != SPACE_WORKER && space != SPACE_TENSOR_ARENA && space != SPACE_PAGE)
        return;
    for (const struct interval *met; (met = offset_set_overlap(set, offset, bytes));) {
        r->steps++;
        r->copy[met->owner].space = SPACE_NONE;
        offset_set_remove(set, met);
    }
}

void replay_record(struct replay *r, const struct tensor *tensor, struct copy copy)
{
    replay_forget(r, copy.space, copy.offset, copy.bytes);
    r->copy[tensor->id] = copy;
    if (copy.space == SPACE_WORKER || copy.space == SPACE_TENSOR_ARENA || copy.space == SPACE_PAGE)
        offset_set_add(copy.space == SPACE_WORKER ? &r->slices : &r->held, copy.offset, copy.bytes, tensor->id);
}

/* ---- weights and states ------------------------------------------------ */

/* Computes which version of each input a node reads in program order. */
static void expect_versions(struct replay *r)
{
    const struct graph *graph = r->phase->graph;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; i < node->input_count; i++)
            if (node->input[i])
                r->expected[n * MOST_INPUTS + i] = r->version[node->input[i]->id];
        for (int i = 0; i < node->input_count; i++)
            if (node->input[i] && updates(node, i))
                r->version[node->input[i]->id]++;
    }
    memset(r->version, 0, (size_t)graph->tensor_count * sizeof(*r->version));
}

/* Every piece is in the file, as version 0. */
static plim_status start_pages(struct replay *r)
{
    int count = 0;
    for (int t = 0; t < r->phase->graph->tensor_count; t++) {
        r->page[t] = count;
        count += r->home[t] ? r->home[t]->pieces : 0;
    }
    r->written = arena_array(&r->work, (size_t)count, sizeof *r->written);
    r->flying = arena_array(&r->work, (size_t)count, sizeof *r->flying);
    return r->written && r->flying ? PLIM_OK : program_refused(r->program, r->error);
}

static plim_status start_copies(struct replay *r)
{
    const struct graph *graph = r->phase->graph;
    const struct program *program = r->program;
    struct names names;
    names_init(&names, &r->work);
    for (int i = 0; i < program->persistent_count; i++)
        if (!names_add(&names, program->persistent[i]->name, i))
            return program_refused(program, r->error);
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = graph->tensor[t];
        bool lasts = tensor->kind == KIND_WEIGHT || tensor->kind == KIND_STATE;
        int i = lasts ? names_find(&names, tensor->name) : -1;
        if (tensor->kind == KIND_INPUT)
            r->copy[t] =
                (struct copy){.space = SPACE_BATCH, .offset = (uint64_t)tensor->column, .bytes = tensor_bytes(tensor)};
        if (r->home)
            r->home[t] = i >= 0 ? program_home(program, i) : NULL;
        if (i >= 0 && !replay_home(r, tensor))
            r->copy[t] = (struct copy){
                .space = SPACE_TENSOR_ARENA, .offset = program->persistent_offset[i], .bytes = tensor_bytes(tensor)};
    }
    r->steps += names.steps + (uint64_t)graph->tensor_count;
    return r->home ? start_pages(r) : PLIM_OK;
}

/* ---- tables ------------------------------------------------------------ */

static size_t longest_instruction(const struct phase *phase, size_t *folds)
{
    int most = 0;
    *folds = 0;
    for (int i = 0; i < phase->instruction_count; i++) {
        const struct instruction *instruction = &phase->instruction[i];
        most = instruction->task_count > most ? instruction->task_count : most;
        *folds = (size_t)instruction->fold_count > *folds ? (size_t)instruction->fold_count : *folds;
    }
    return (size_t)most;
}

/* Collects the offsets in `space` at which a copy will be recorded: task outputs, results of folds, what comes back.
   Returns their number; out NULL: they are only counted. */
static int find_offsets(uint64_t *out, const struct phase *phase, enum space space)
{
    int count = 0;
    for (int i = 0; i < phase->instruction_count; i++) {
        const struct instruction *instruction = &phase->instruction[i];
        for (int t = 0; t < instruction->task_count; t++)
            for (int k = 0; k < instruction->task[t].node->output_count; k++) {
                const struct place *place = &instruction->task[t].output[k];
                if (place->space == space && out)
                    out[count] = place->offset;
                count += place->space == space;
            }
        for (int f = 0; f < instruction->fold_count && space == SPACE_TENSOR_ARENA; f++, count++)
            if (out)
                out[count] = instruction->fold[f].to;
    }
    for (int k = 0; k < phase->transfer_count && space == SPACE_TENSOR_ARENA; k++, count++)
        if (out)
            out[count] = phase->transfer[k].to;
    return count;
}

static bool take_offsets(struct replay *r, struct offset_set *set, enum space space)
{
    int count = find_offsets(NULL, r->phase, space);
    uint64_t *offset = arena_array(&r->work, (size_t)count, sizeof(*offset));
    if (!offset)
        return false;
    find_offsets(offset, r->phase, space);
    return offset_set_init(set, &r->work, offset, count);
}

static bool take_alive(struct replay *r)
{
    uint64_t *offset = arena_array(&r->work, (size_t)r->phase->instance_count, sizeof(*offset));
    for (int k = 0; offset && k < r->phase->instance_count; k++)
        offset[k] = r->phase->instance[k].offset;
    return offset && offset_set_init(&r->alive, &r->work, offset, r->phase->instance_count);
}

static bool take_ways(struct replay *r)
{
    const struct phase *phase = r->phase;
    size_t count = (size_t)phase->transfer_count;
    uint64_t *from = arena_array(&r->work, count, sizeof *from), *to = arena_array(&r->work, count, sizeof *to);
    for (int k = 0; from && to && k < phase->transfer_count; k++) {
        from[k] = phase->transfer[k].from;
        to[k] = phase->transfer[k].to;
    }
    return from && to && offset_set_init(&r->going_out, &r->work, from, phase->transfer_count) &&
           offset_set_init(&r->coming_in, &r->work, to, phase->transfer_count);
}

static bool take_pages(struct replay *r, size_t tensors)
{
    r->page = arena_array(&r->work, tensors, sizeof(*r->page));
    r->home = arena_array(&r->work, tensors, sizeof(*r->home));
    return r->page && r->home;
}

static bool take_tables(struct replay *r)
{
    const struct graph *graph = r->phase->graph;
    size_t tensors = (size_t)graph->tensor_count, nodes = (size_t)graph->node_count, folds;
    size_t instances = (size_t)r->phase->instance_count, instructions = (size_t)r->phase->instruction_count;
    size_t tasks = longest_instruction(r->phase, &folds);
    r->copy = arena_array(&r->work, tensors, sizeof(*r->copy));
    r->version = arena_array(&r->work, tensors, sizeof(*r->version));
    r->expected = arena_array(&r->work, nodes * MOST_INPUTS, sizeof(*r->expected));
    r->ran = arena_array(&r->work, nodes, sizeof(*r->ran));
    if (r->program->paged_count && !take_pages(r, tensors))
        return false;
    r->access = arena_array(&r->work, tasks * (MOST_INPUTS + MOST_OUTPUTS + 1), sizeof(*r->access));
    r->fold = arena_array(&r->work, folds, sizeof(*r->fold));
    r->begins = arena_array(&r->work, instructions, sizeof(*r->begins));
    r->ends = arena_array(&r->work, instructions, sizeof(*r->ends));
    r->next_begin = arena_array(&r->work, instances, sizeof(*r->next_begin));
    r->next_end = arena_array(&r->work, instances, sizeof(*r->next_end));
    r->moving = arena_array(&r->work, (size_t)r->phase->transfer_count, sizeof(*r->moving));
    return r->moving && r->copy && r->version && r->expected && r->ran && r->access && r->fold && r->begins &&
           r->ends && r->next_begin && r->next_end && take_alive(r) && take_ways(r) &&
           take_offsets(r, &r->held, SPACE_TENSOR_ARENA) && take_offsets(r, &r->slices, SPACE_WORKER);
}

/* Each list is in the order of the instances. */
static void list_instances(struct replay *r)
{
    for (int k = r->phase->instance_count - 1; k >= 0; k--) {
        const struct instance *instance = &r->phase->instance[k];
        r->next_begin[k] = r->begins[instance->first];
        r->next_end[k] = r->ends[instance->last];
        r->begins[instance->first] = r->ends[instance->last] = k + 1;
    }
}

plim_status replay_begin(struct replay *r)
{
    if (!take_tables(r))
        return program_refused(r->program, r->error);
    list_instances(r);
    expect_versions(r);
    return start_copies(r);
}
