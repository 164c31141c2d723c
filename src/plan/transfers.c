/* transfers.c - values that lie in the scratch file between two uses, and paged tensors that lie there but for their
   uses.

   A value leaves the arena in the longest gap between two instructions that touch it of which the second belongs to the
   backward pass, as the search assumes (search/step_model.h). Writing begins behind the instruction before the gap,
   reading early enough to be done before the one behind it. How long both take is a matter of a nominal disk
   (op_time.h), so that plans repeat; on a slower one the waits last longer, and the bytes stay as planned.

   The disk is one queue. Writes are taken in the order in which they begin. Reads are laid out from the last to the
   first, each as late as the one behind it allows. A value stays where it is if this leaves nothing between its last
   write and its first read. Where a value `waits`, the step does: its bytes are free for the whole gap.

   A paged tensor visits the arena for the chains that touch it: one visit for several, if the disk could not use the
   time between them. A visit that writes ends on the disk, before the phase does. Of pieces (pages.c) the one behind
   comes in while one is computed with, and goes out while the next one is: there the disk sets the pace. */
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
    const struct tensor *tensor = b->graph->tensor[move->root];
    uint64_t bytes = move->piece == NOT_PAGED ? tensor_bytes(tensor) : home_bytes(home_of(b, tensor), move->piece);
    return round_up(bytes, TRANSFER_ALIGNMENT);
}

static int slots(const struct builder *b)
{
    return b->first_slot[b->chains.chain_count];
}

static int last_slot(const struct builder *b, int chain)
{
    return b->first_slot[chain + 1] - 1;
}

/* ---- gaps -------------------------------------------------------------- */

/* Of a group, by the tensor id of its root. Slots; NOWHERE: none yet. */
struct gap {
    int touched; /* the last slot that touched the group so far */
    int before, behind;
    int holds;  /* tensor id: the member that was written last */
    int tensor; /* the same, at the gap */
    bool wanted, waits;
};

/* Of a paged tensor, by id: the visit that is under way. Slots; first NOWHERE: none is. */
struct visit {
    int first, last;
    bool writes;
};

struct scheduling {
    struct builder *builder;
    double *start; /* by slot: seconds from the begin of the step; one more, for the end */
    struct gap *gap;
    struct visit *visit;
};

/* Values once, paged tensors as often as they are touched or have pieces. */
static size_t most_moves(const struct builder *b)
{
    size_t count = (size_t)b->graph->tensor_count;
    if (!b->program->paged_count)
        return count;
    for (int n = 0; n < b->graph->node_count; n++)
        for (int i = 0; i < b->graph->node[n]->input_count; i++) {
            const struct tensor *tensor = b->graph->node[n]->input[i];
            const struct home *home = tensor ? home_of(b, tensor) : NULL;
            count += home ? (size_t)home->pieces : 0;
        }
    return count;
}

static plim_status take_tables(struct scheduling *s, struct builder *b, plim_error *error)
{
    size_t tensors = (size_t)b->graph->tensor_count;
    *s = (struct scheduling){.builder = b,
                             .start = arena_array(&b->work, (size_t)slots(b) + 1, sizeof *s->start),
                             .gap = arena_array(&b->work, tensors, sizeof *s->gap),
                             .visit = arena_array(&b->work, tensors, sizeof *s->visit)};
    b->move = arena_array(&b->work, most_moves(b), sizeof *b->move);
    b->visit = arena_array(&b->work, tensors, sizeof *b->visit);
    return s->start && s->gap && s->visit && b->move && b->visit ? PLIM_OK : program_refused(b->program, error);
}

static double chain_seconds(const struct builder *b, int chain)
{
    const struct chain *nodes = &b->chains.chain[chain];
    double seconds = 0;
    for (int at = nodes->first; at < nodes->first + nodes->count; at++)
        seconds += node_seconds(NULL, b->chains.order[at]);
    return seconds;
}

static void find_times(struct scheduling *s)
{
    const struct builder *b = s->builder;
    for (int c = 0; c < b->chains.chain_count; c++) {
        double each = chain_seconds(b, c) / b->pieces[c];
        for (int slot = b->first_slot[c]; slot <= last_slot(b, c); slot++)
            s->start[slot + 1] = s->start[slot] + each;
    }
}

static void touch_value(struct scheduling *s, const struct tensor *tensor, const struct node *node, bool writes)
{
    const struct builder *b = s->builder;
    struct gap *gap = &s->gap[b->life[tensor->id].root];
    int chain = b->chain_of[node->id], first = b->first_slot[chain], last = last_slot(b, chain);
    double longest = gap->before == NOWHERE ? 0 : s->start[gap->behind] - s->start[gap->before + 1];
    if (node->backward && gap->touched != NOWHERE && s->start[first] - s->start[gap->touched + 1] > longest) {
        gap->before = gap->touched;
        gap->behind = first;
        gap->tensor = gap->holds;
    }
    gap->touched = last;
    gap->holds = writes ? tensor->id : gap->holds;
}

/* ---- visits ------------------------------------------------------------ */

static void add_visit(struct builder *b, const struct tensor *tensor, int piece, const struct visit *visit)
{
    bool pieces = home_of(b, tensor)->pieces > 1;
    int first = pieces ? visit->first + piece : visit->first, last = pieces ? first : visit->last;
    int out = visit->writes ? last + 1 : NOWHERE;
    b->move[b->move_count++] =
        (struct move){.root = tensor->id,
                      .tensor = tensor->id,
                      .piece = piece,
                      .first = first,
                      .last = last,
                      .step = {[MOVE_OUT] = out, [MOVE_OUT_DONE] = out, [MOVE_IN] = first, [MOVE_IN_DONE] = first}};
}

static void end_visit(struct scheduling *s, const struct tensor *tensor)
{
    struct visit *visit = &s->visit[tensor->id];
    for (int piece = 0; visit->first != NOWHERE && piece < home_of(s->builder, tensor)->pieces; piece++)
        add_visit(s->builder, tensor, piece, visit);
    visit->first = NOWHERE;
    visit->writes = false;
}

/* Whether the disk can use the time from the end of the visit to this slot: to write, and to read again. */
static bool may_leave(const struct scheduling *s, const struct tensor *tensor, int slot)
{
    const struct visit *visit = &s->visit[tensor->id];
    double gap = s->start[slot] - s->start[visit->last + 1], way = transfer_seconds(NULL, tensor_bytes(tensor));
    return slot > visit->last + 1 && (s->gap[tensor->id].waits || gap > (visit->writes ? 2 * way : way));
}

static void touch_page(struct scheduling *s, const struct tensor *tensor, int chain, bool writes)
{
    const struct builder *b = s->builder;
    struct visit *visit = &s->visit[tensor->id];
    if (visit->first != NOWHERE && may_leave(s, tensor, b->first_slot[chain]))
        end_visit(s, tensor);
    visit->first = visit->first == NOWHERE ? b->first_slot[chain] : visit->first;
    visit->last = last_slot(b, chain);
    visit->writes |= writes;
}

static void touch(struct scheduling *s, const struct tensor *tensor, const struct node *node, bool writes)
{
    if (tensor && is_value(tensor))
        touch_value(s, tensor, node, writes);
    else if (tensor && home_of(s->builder, tensor))
        touch_page(s, tensor, s->builder->chain_of[node->id], writes);
}

static void find_gaps(struct scheduling *s)
{
    const struct builder *b = s->builder;
    for (int t = 0; t < b->graph->tensor_count; t++) {
        s->gap[t] = (struct gap){.touched = NOWHERE, .before = NOWHERE, .holds = t};
        s->visit[t] = (struct visit){.first = NOWHERE};
        b->visit[t] = NOWHERE;
    }
    for (int k = 0; k < b->input->spilled_count; k++) {
        const struct tensor *tensor = b->graph->tensor[b->input->spilled[k].tensor];
        struct gap *gap = &s->gap[is_value(tensor) ? b->life[tensor->id].root : tensor->id];
        gap->wanted = true;
        gap->waits |= b->input->spilled[k].waits;
    }
    for (int at = 0; at < b->chains.node_count; at++) {
        const struct node *node = b->chains.order[at];
        for (int i = 0; i < node->input_count; i++)
            touch(s, node->input[i], node, node->op->updates >> i & 1);
        for (int k = 0; k < node->output_count; k++)
            touch(s, node->output[k], node, true);
    }
    for (int t = 0; t < b->graph->tensor_count; t++)
        if (s->visit[t].first != NOWHERE)
            end_visit(s, b->graph->tensor[t]);
}

/* ---- times on the disk ------------------------------------------------- */

static int by_step(const struct move *a, const struct move *b, int step)
{
    if (a->step[step] != b->step[step])
        return a->step[step] < b->step[step] ? -1 : 1;
    return a->root != b->root ? a->root - b->root : a->piece - b->piece;
}

static int by_begin(const void *left, const void *right)
{
    return by_step(left, right, MOVE_OUT);
}

static int by_return(const void *left, const void *right)
{
    return by_step(right, left, MOVE_IN_DONE);
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
                              .piece = NOT_PAGED,
                              .waits = gap->waits,
                              .step = {[MOVE_OUT] = gap->before + 1, [MOVE_IN_DONE] = gap->behind}};
    }
    for (int m = 0; m < b->move_count; m++)
        b->move[m].waits |= s->gap[b->move[m].root].waits;
}

/* The first slot that begins at this time or later; slots, and one for the end, are in order. */
static int slot_from(const struct scheduling *s, double time)
{
    int low = 0, high = slots(s->builder);
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->start[middle] >= time)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The last slot that begins at this time or before. */
static int slot_until(const struct scheduling *s, double time)
{
    int next = slot_from(s, time);
    return next > 0 && s->start[next] > time ? next - 1 : next;
}

/* One of the pieces that take turns. */
static bool is_in_row(const struct builder *b, const struct move *move)
{
    return move->piece != NOT_PAGED && home_of(b, b->graph->tensor[move->root])->pieces > 1;
}

static void schedule_writes(struct scheduling *s)
{
    struct builder *b = s->builder;
    double idle = 0; /* the disk is, from then on */
    if (b->move_count)
        qsort(b->move, (size_t)b->move_count, sizeof *b->move, by_begin);
    for (int m = 0; m < b->move_count; m++) {
        struct move *move = &b->move[m];
        int *out = &move->step[MOVE_OUT], *done = &move->step[MOVE_OUT_DONE];
        if (*out == NOWHERE)
            continue;
        if (is_in_row(b, move)) {
            *done = *out < slots(b) ? *out + 1 : *out;
            continue;
        }
        double begin = s->start[*out];
        idle = (begin > idle ? begin : idle) + transfer_seconds(NULL, moved_bytes(b, move));
        idle = move->waits ? begin : idle; /* while the step waits, its time stands still */
        int until = slot_from(s, idle);    /* a slot of no work begins when the one behind it does */
        *done = until > *out ? until : *out;
    }
}

static void schedule_reads(struct scheduling *s)
{
    struct builder *b = s->builder;
    double busy = s->start[slots(b)]; /* the disk is, from then on */
    if (b->move_count)
        qsort(b->move, (size_t)b->move_count, sizeof *b->move, by_return);
    for (int m = 0; m < b->move_count; m++) {
        struct move *move = &b->move[m];
        if (move->piece > 0) { /* while the one before is computed with */
            move->step[MOVE_IN] = move->first - 1;
            continue;
        }
        double end = s->start[move->step[MOVE_IN_DONE]];
        busy = end < busy ? end : busy;
        busy = move->waits ? end : busy - transfer_seconds(NULL, moved_bytes(b, move));
        move->step[MOVE_IN] = busy > 0 ? slot_until(s, busy) : 0;
    }
}

/* Values first, then visits in the order of their tensors, and of one tensor in the order of their times. */
static int by_tensor(const void *left, const void *right)
{
    const struct move *a = left, *b = right;
    bool value_a = a->piece == NOT_PAGED, value_b = b->piece == NOT_PAGED;
    if (value_a != value_b)
        return value_a ? -1 : 1;
    return a->root != b->root ? a->root - b->root : a->first - b->first;
}

/* Of the values only those stay that free their bytes for a while. */
static void drop_short(struct builder *b)
{
    int kept = 0;
    if (b->move_count)
        qsort(b->move, (size_t)b->move_count, sizeof *b->move, by_tensor);
    for (int m = 0; m < b->move_count; m++)
        if (b->move[m].piece != NOT_PAGED || b->move[m].step[MOVE_OUT_DONE] < b->move[m].step[MOVE_IN])
            b->move[kept++] = b->move[m];
    b->move_count = kept;
}

/* A visit begins behind the one before it of the same tensor, and behind its way out. */
static void part_visits(struct move *before, struct move *behind)
{
    int *done = &before->step[MOVE_OUT_DONE], *in = &behind->step[MOVE_IN];
    if (before->piece == NOT_PAGED || before->root != behind->root || before->piece != behind->piece)
        return;
    *done = *done > behind->first ? behind->first : *done;
    int end = *done == NOWHERE ? before->last + 1 : *done;
    *in = *in > end ? *in : end;
}

static void link_moves(struct builder *b)
{
    for (int m = 0; m < b->move_count; m++) {
        struct move *move = &b->move[m];
        if (m > 0)
            part_visits(move - 1, move);
        if (move->piece == NOT_PAGED)
            b->life[move->root].move = m;
        else if (b->visit[move->root] == NOWHERE)
            b->visit[move->root] = m;
    }
}

/* ---- instructions ------------------------------------------------------ */

/* A step of a move stands before its slot. What frees bytes comes first, the wait for what the slot reads last. */
struct event {
    int slot, order, move, step;
};

static int by_slot(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->slot != b->slot)
        return a->slot - b->slot;
    return a->order != b->order ? a->order - b->order : a->move - b->move;
}

struct events {
    struct event *event;
    int count;
};

static plim_status list_events(struct events *out, const struct builder *b, struct arena *work, plim_error *error)
{
    static const int orders[MOVE_STEPS] = {[MOVE_OUT] = 0, [MOVE_OUT_DONE] = 1, [MOVE_IN] = 2, [MOVE_IN_DONE] = 3};
    *out = (struct events){.event = arena_array(work, (size_t)b->move_count * MOVE_STEPS, sizeof *out->event)};
    if (!out->event)
        return program_refused(b->program, error);
    for (int m = 0; m < b->move_count; m++)
        for (int k = 0; k < MOVE_STEPS; k++)
            if (b->move[m].step[k] != NOWHERE)
                out->event[out->count++] = (struct event){b->move[m].step[k], orders[k], m, k};
    if (out->count)
        qsort(out->event, (size_t)out->count, sizeof *out->event, by_slot);
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

/* From slots to instructions. */
static plim_status number(struct builder *b, const struct events *events, plim_error *error)
{
    int at = 0, next = 0;
    for (int slot = 0; slot <= slots(b); slot++) {
        for (; next < events->count && events->event[next].slot == slot; next++)
            TRY(add_transfer(b, at++, &events->event[next], error));
        if (slot < slots(b))
            b->slot_at[slot] = at++;
    }
    for (int m = 0; m < b->move_count; m++)
        if (b->move[m].piece != NOT_PAGED) {
            b->move[m].first = b->slot_at[b->move[m].first];
            b->move[m].last = b->slot_at[b->move[m].last];
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
    link_moves(b);
    work_count(b->work.budget, (uint64_t)b->graph->tensor_count + (uint64_t)b->chains.node_count);
    return PLIM_OK;
}

plim_status transfers_schedule(struct builder *b, plim_error *error)
{
    struct phase *phase = b->phase;
    struct events events;
    if (b->input->spilled_count || b->program->paged_count)
        TRY(find(b, error));
    TRY(list_events(&events, b, &b->work, error));
    phase->instruction_count = slots(b) + events.count;
    phase->instruction = arena_array(&b->program->arena, (size_t)phase->instruction_count, sizeof(*phase->instruction));
    phase->seconds = arena_array(&b->program->arena, (size_t)phase->instruction_count, sizeof *phase->seconds);
    b->slot_at = arena_array(&b->work, (size_t)slots(b), sizeof *b->slot_at);
    if (!phase->instruction || !phase->seconds || !b->slot_at)
        return program_refused(b->program, error);
    return number(b, &events, error);
}

/* ---- offsets ----------------------------------------------------------- */

static void place_value(struct builder *b, struct transfer *transfer, const struct move *move)
{
    struct phase *phase = b->phase;
    const struct instance *from = &phase->instance[b->life[move->root].instance];
    transfer->from = transfer_offset(from->offset);
    transfer->to = transfer_offset(phase->instance[move->returned].offset);
    transfer->file_offset = phase->scratch_file_bytes;
    phase->scratch_file_bytes += transfer->bytes;
    phase->spilled_bytes += transfer->bytes;
    phase->spilled_count++;
}

static void place_visit(struct builder *b, struct transfer *transfer, const struct move *move)
{
    const struct home *home = home_of(b, transfer->tensor);
    transfer->from = transfer->to = transfer_offset(b->phase->instance[move->returned].offset);
    transfer->file_offset = home_offset(home, move->piece);
    b->phase->paged_bytes += move->step[MOVE_OUT] == NOWHERE ? transfer->bytes : 2 * transfer->bytes;
}

plim_status transfers_place(struct builder *b, plim_error *error)
{
    struct phase *phase = b->phase;
    if (!b->move_count)
        return PLIM_OK;
    phase->transfer = arena_array(&b->program->arena, (size_t)b->move_count, sizeof(*phase->transfer));
    if (!phase->transfer)
        return program_refused(b->program, error);
    phase->scratch_file_bytes = b->program->homes_bytes;
    for (int m = 0; m < b->move_count; m++) {
        const struct move *move = &b->move[m];
        struct transfer *transfer = &phase->transfer[m];
        *transfer = (struct transfer){
            .tensor = b->graph->tensor[move->tensor], .piece = move->piece, .bytes = moved_bytes(b, move)};
        if (move->piece == NOT_PAGED)
            place_value(b, transfer, move);
        else
            place_visit(b, transfer, move);
    }
    phase->transfer_count = b->move_count;
    return PLIM_OK;
}
