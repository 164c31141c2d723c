/* transfers.c - values that lie in the scratch file between two uses.

   A value leaves the arena in the longest gap between two instructions that touch it: the last readers of the forward pass
   and the first of the backward pass, usually. Writing begins behind the instruction before the gap, reading early enough
   to be done before the one behind it. How long both take is a matter of a nominal disk (op_time.h), so that plans repeat;
   on a slower one the waits last longer, and the bytes stay as planned.

   The disk is one queue. Writes are taken in the order in which they begin. Reads are laid out from the last to the
   first, each as late as the one behind it allows. A value stays where it is if this leaves nothing between its last
   write and its first read. Where a value `waits`, the step does: its bytes are free for the whole gap. */
#include <stdlib.h>

#include "base/files/transfer_file.h"
#include "base/memory/work.h"
#include "base/numbers/checked.h"
#include "plan/plan_builder.h"
#include "plan/search/op_time.h"

uint64_t transfer_instance_bytes(uint64_t bytes)
{
    return round_up(bytes, TRANSFER_ALIGNMENT) + TRANSFER_ALIGNMENT; /* offsets are multiples of less */
}

uint64_t transfer_offset(uint64_t instance_offset)
{
    return round_up(instance_offset, TRANSFER_ALIGNMENT);
}

static uint64_t moved_bytes(const struct builder *b, const struct move *move)
{
    return round_up(tensor_bytes(b->graph->tensor[move->root]), TRANSFER_ALIGNMENT);
}

/* ---- gaps -------------------------------------------------------------- */

/* Of a group, by the tensor id of its root. Chains; NOWHERE: none yet. */
struct gap {
    int touched; /* the last chain that touched the group so far */
    int before, behind;
    int holds;  /* tensor id: the member that was written last */
    int tensor; /* the same, at the gap */
    bool wanted, waits;
};

struct scheduling {
    struct builder *builder;
    double *start; /* by chain: seconds from the begin of the step; one more, for the end */
    struct gap *gap;
};

static plim_status take_tables(struct scheduling *s, struct builder *b, plim_error *error)
{
    size_t chains = (size_t)b->chains.chain_count + 1, tensors = (size_t)b->graph->tensor_count;
    *s = (struct scheduling){.builder = b,
                             .start = arena_array(&b->work, chains, sizeof *s->start),
                             .gap = arena_array(&b->work, tensors, sizeof *s->gap)};
    b->move = arena_array(&b->work, tensors, sizeof *b->move);
    return s->start && s->gap && b->move ? PLIM_OK : program_refused(b->program, error);
}

static void find_times(struct scheduling *s)
{
    const struct chains *chains = &s->builder->chains;
    for (int c = 0; c < chains->chain_count; c++) {
        s->start[c + 1] = s->start[c];
        for (int at = chains->chain[c].first; at < chains->chain[c].first + chains->chain[c].count; at++)
            s->start[c + 1] += node_seconds(chains->order[at]);
    }
}

static void touch(struct scheduling *s, const struct tensor *tensor, int chain, bool writes)
{
    if (!tensor || !is_value(tensor))
        return;
    struct gap *gap = &s->gap[s->builder->life[tensor->id].root];
    double longest = gap->before == NOWHERE ? 0 : s->start[gap->behind] - s->start[gap->before + 1];
    if (gap->touched != NOWHERE && s->start[chain] - s->start[gap->touched + 1] > longest) {
        gap->before = gap->touched;
        gap->behind = chain;
        gap->tensor = gap->holds;
    }
    gap->touched = chain;
    gap->holds = writes ? tensor->id : gap->holds;
}

static void find_gaps(struct scheduling *s)
{
    const struct builder *b = s->builder;
    for (int t = 0; t < b->graph->tensor_count; t++)
        s->gap[t] = (struct gap){.touched = NOWHERE, .before = NOWHERE, .holds = t};
    for (int k = 0; k < b->input->spilled_count; k++) {
        struct gap *gap = &s->gap[b->life[b->input->spilled[k].tensor].root];
        gap->wanted = true;
        gap->waits |= b->input->spilled[k].waits;
    }
    for (int at = 0; at < b->chains.node_count; at++) {
        const struct node *node = b->chains.order[at];
        for (int i = 0; i < node->input_count; i++)
            touch(s, node->input[i], b->instruction_of[node->id], node->op->updates >> i & 1);
        for (int k = 0; k < node->output_count; k++)
            touch(s, node->output[k], b->instruction_of[node->id], true);
    }
}

/* ---- times on the disk ------------------------------------------------- */

static int by_begin(const void *left, const void *right)
{
    const struct move *a = left, *b = right;
    int first = a->step[MOVE_OUT], second = b->step[MOVE_OUT];
    return first != second ? first - second : a->root - b->root;
}

static int by_return(const void *left, const void *right)
{
    const struct move *a = left, *b = right;
    int first = a->step[MOVE_IN_DONE], second = b->step[MOVE_IN_DONE];
    return first != second ? second - first : a->root - b->root;
}

static void find_moves(struct scheduling *s)
{
    struct builder *b = s->builder;
    for (int t = 0; t < b->graph->tensor_count; t++) {
        const struct gap *gap = &s->gap[t];
        const struct life *life = &b->life[t];
        if (gap->wanted && gap->before != NOWHERE && life->root == t && life->in_tensor_arena && !life->result)
            b->move[b->move_count++] =
                (struct move){.root = t,
                              .tensor = gap->tensor,
                              .waits = gap->waits,
                              .step = {[MOVE_OUT] = gap->before + 1, [MOVE_IN_DONE] = gap->behind}};
    }
}

/* The first chain that begins at this time or later; chains, and one for the end, are in order. */
static int chain_from(const struct scheduling *s, double time)
{
    int low = 0, high = s->builder->chains.chain_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->start[middle] >= time)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The last chain that begins at this time or before. */
static int chain_until(const struct scheduling *s, double time)
{
    int next = chain_from(s, time);
    return next > 0 && s->start[next] > time ? next - 1 : next;
}

static void schedule_writes(struct scheduling *s)
{
    struct builder *b = s->builder;
    double idle = 0; /* the disk is, from then on */
    qsort(b->move, (size_t)b->move_count, sizeof *b->move, by_begin);
    for (int m = 0; m < b->move_count; m++) {
        struct move *move = &b->move[m];
        double begin = s->start[move->step[MOVE_OUT]];
        idle = (begin > idle ? begin : idle) + transfer_seconds(moved_bytes(b, move));
        idle = move->waits ? begin : idle; /* while the step waits, its time stands still */
        int done = chain_from(s, idle);    /* a chain of no work begins when the one behind it does */
        move->step[MOVE_OUT_DONE] = done > move->step[MOVE_OUT] ? done : move->step[MOVE_OUT];
    }
}

static void schedule_reads(struct scheduling *s)
{
    struct builder *b = s->builder;
    double busy = s->start[b->chains.chain_count]; /* the disk is, from then on */
    qsort(b->move, (size_t)b->move_count, sizeof *b->move, by_return);
    for (int m = 0; m < b->move_count; m++) {
        struct move *move = &b->move[m];
        double end = s->start[move->step[MOVE_IN_DONE]];
        busy = end < busy ? end : busy;
        busy = move->waits ? end : busy - transfer_seconds(moved_bytes(b, move));
        move->step[MOVE_IN] = chain_until(s, busy);
    }
}

/* Only those stay that free their bytes for a while. */
static void drop_short(struct builder *b)
{
    int kept = 0;
    for (int m = 0; m < b->move_count; m++)
        if (b->move[m].step[MOVE_OUT_DONE] < b->move[m].step[MOVE_IN])
            b->move[kept++] = b->move[m];
    b->move_count = kept;
    for (int m = 0; m < kept; m++)
        b->life[b->move[m].root].move = m;
}

/* ---- instructions ------------------------------------------------------ */

/* A step of a move stands before its chain. What frees bytes comes first, the wait for what the chain reads last. */
struct event {
    int chain, order, move, step;
};

static int by_chain(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->chain != b->chain)
        return a->chain - b->chain;
    return a->order != b->order ? a->order - b->order : a->move - b->move;
}

static plim_status list_events(struct event **out, const struct builder *b, struct arena *work, plim_error *error)
{
    static const int orders[MOVE_STEPS] = {[MOVE_OUT] = 0, [MOVE_OUT_DONE] = 1, [MOVE_IN] = 2, [MOVE_IN_DONE] = 3};
    size_t count = (size_t)b->move_count * MOVE_STEPS;
    struct event *event = arena_array(work, count, sizeof *event);
    if (!event)
        return program_refused(b->program, error);
    for (int m = 0; m < b->move_count; m++)
        for (int k = 0; k < MOVE_STEPS; k++)
            event[m * MOVE_STEPS + k] = (struct event){b->move[m].step[k], orders[k], m, k};
    if (count)
        qsort(event, count, sizeof *event, by_chain);
    *out = event;
    return PLIM_OK;
}

static plim_status add_transfer(struct builder *b, int at, const struct event *event, plim_error *error)
{
    static const struct {
        enum instruction_kind kind;
        const char *verb;
    } steps[MOVE_STEPS] = {[MOVE_OUT] = {INSTRUCTION_OUT, "out"},
                           [MOVE_OUT_DONE] = {INSTRUCTION_WAIT, "out is done"},
                           [MOVE_IN] = {INSTRUCTION_IN, "in"},
                           [MOVE_IN_DONE] = {INSTRUCTION_WAIT, "in is done"}};
    struct instruction *instruction = &b->phase->instruction[at];
    struct move *move = &b->move[event->move];
    *instruction = (struct instruction){.kind = steps[event->step].kind, .transfer = event->move};
    instruction->name =
        arena_format(&b->program->arena, "%s %s", b->graph->tensor[move->tensor]->name, steps[event->step].verb);
    move->step[event->step] = at;
    return instruction->name ? PLIM_OK : program_refused(b->program, error);
}

/* From chains to instructions. */
static plim_status number(struct builder *b, const struct event *event, plim_error *error)
{
    int at = 0, next = 0, events = b->move_count * MOVE_STEPS;
    for (int c = 0; c < b->chains.chain_count; c++, at++) {
        const struct chain *chain = &b->chains.chain[c];
        for (; next < events && event[next].chain == c; next++)
            TRY(add_transfer(b, at++, &event[next], error));
        for (int k = chain->first; k < chain->first + chain->count; k++)
            b->instruction_of[b->chains.order[k]->id] = at;
    }
    return PLIM_OK;
}

static plim_status find(struct builder *b, plim_error *error)
{
    struct scheduling s;
    TRY(take_tables(&s, b, error));
    find_times(&s);
    find_gaps(&s);
    find_moves(&s);
    schedule_writes(&s);
    schedule_reads(&s);
    drop_short(b);
    work_count(b->work.budget, (uint64_t)b->graph->tensor_count + (uint64_t)b->chains.node_count);
    return PLIM_OK;
}

plim_status transfers_schedule(struct builder *b, plim_error *error)
{
    struct phase *phase = b->phase;
    struct event *event = NULL;
    if (b->input->spilled_count)
        TRY(find(b, error));
    phase->instruction_count = b->chains.chain_count + b->move_count * MOVE_STEPS;
    phase->instruction = arena_array(&b->program->arena, (size_t)phase->instruction_count, sizeof(*phase->instruction));
    if (!phase->instruction)
        return program_refused(b->program, error);
    TRY(list_events(&event, b, &b->work, error));
    return number(b, event, error);
}

/* ---- offsets ----------------------------------------------------------- */

plim_status transfers_place(struct builder *b, plim_error *error)
{
    struct phase *phase = b->phase;
    if (!b->move_count)
        return PLIM_OK;
    phase->transfer = arena_array(&b->program->arena, (size_t)b->move_count, sizeof(*phase->transfer));
    if (!phase->transfer)
        return program_refused(b->program, error);
    for (int m = 0; m < b->move_count; m++) {
        const struct move *move = &b->move[m];
        const struct instance *from = &phase->instance[b->life[move->root].instance];
        phase->transfer[m] = (struct transfer){.tensor = b->graph->tensor[move->tensor],
                                               .from = transfer_offset(from->offset),
                                               .to = transfer_offset(phase->instance[move->returned].offset),
                                               .file_offset = phase->scratch_file_bytes,
                                               .bytes = moved_bytes(b, move)};
        phase->scratch_file_bytes += phase->transfer[m].bytes;
    }
    phase->transfer_count = b->move_count;
    return PLIM_OK;
}
