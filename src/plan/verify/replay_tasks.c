/* replay_tasks.c - the tasks of an instruction: what they read and write, and whether that may happen in any order of
   units. */
#include "plan/verify/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers/minmax.h"

static bool overlaps(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* ---- operands ---------------------------------------------------------- */

static uint64_t slice_bytes(const struct replay *r, const struct tensor *tensor, enum part part)
{
    return part == PART_CUT ? tensor_row_bytes(tensor) * (uint64_t)chain_slice(&r->instruction->chain)
                            : tensor_bytes(tensor);
}

/* What goes out may still be read; what comes in may not be touched at all. */
static plim_status check_flying(struct replay *r, const struct access *access)
{
    const struct interval *met =
        r->flying_count ? offset_set_overlap(&r->coming_in, access->offset, access->bytes) : NULL;
    if (!met && r->flying_count && access->write)
        met = offset_set_overlap(&r->going_out, access->offset, access->bytes);
    r->steps++;
    return met ? replay_wrong(r, access->node, " touches %s at instruction %d, which is on its way",
                              r->phase->transfer[met->owner].tensor->name, r->at)
               : PLIM_OK;
}

static plim_status note_access(struct replay *r, struct access access)
{
    if (access.offset >= r->program->persistent_bytes && !replay_owns(r, access.offset, access.bytes))
        return replay_wrong(r, access.node, " reaches bytes at %llu that nobody owns at instruction %d",
                            (unsigned long long)access.offset, r->at);
    TRY(check_flying(r, &access));
    r->access[r->access_count++] = access;
    return PLIM_OK;
}

/* Checks that the place of an operand fits the op's cut. */
static plim_status check_place(const struct replay *r, const struct node *node, const struct place *place,
                               const struct tensor *tensor, enum part part)
{
    if (place->space == SPACE_NONE || place->row_bytes != (part == PART_CUT ? tensor_row_bytes(tensor) : 0))
        return replay_wrong(r, node, ": %s has no place that fits its cut", tensor->name);
    if (place->space == SPACE_WORKER &&
        (place->offset % LAYOUT_ALIGNMENT || place->offset + slice_bytes(r, tensor, part) > r->program->worker_bytes))
        return replay_wrong(r, node, ": %s passes the end of the worker's buffers", tensor->name);
    return PLIM_OK;
}

/* Of a tensor of several pieces the one that is there has the rows of the instruction, no more and no less. */
static plim_status check_piece(const struct replay *r, const struct node *node, const struct tensor *tensor,
                               const struct place *place, enum part part)
{
    const struct home *home = replay_home(r, tensor);
    const struct instruction *instruction = r->instruction;
    const struct chain *chain = &instruction->chain;
    int64_t each = chain->slices / chain->units, piece = r->copy[tensor->id].piece;
    if (!home || home->pieces == 1)
        return place->space == SPACE_PAGE ? replay_wrong(r, node, " reads %s by pieces", tensor->name) : PLIM_OK;
    bool same = place->space == SPACE_PAGE && part == PART_CUT && home->row_bytes == tensor_row_bytes(tensor) &&
                home->extent == chain->extent &&
                piece_begin(home->extent, home->grain, piece, home->pieces) ==
                    chain_row(chain, instruction->first_unit * each) &&
                piece_begin(home->extent, home->grain, piece + 1, home->pieces) ==
                    chain_row(chain, instruction->end_unit * each);
    return same ? PLIM_OK : replay_wrong(r, node, " works on other rows of %s than are there", tensor->name);
}

static plim_status check_read(struct replay *r, const struct task *task, int i, const struct cut *cut)
{
    const struct node *node = task->node;
    const struct tensor *tensor = node->input[i];
    const struct place *place = &task->input[i];
    if (!tensor)
        return place->space == SPACE_NONE ? PLIM_OK : replay_wrong(r, node, ": an absent input has a place");
    const struct copy *copy = &r->copy[tensor->id];
    TRY(check_place(r, node, place, tensor, cut->input[i]));
    TRY(check_piece(r, node, tensor, place, cut->input[i]));
    if (copy->space != place->space || copy->offset != place->offset)
        return replay_wrong(r, node, " at instruction %d does not find %s where it looks", r->at, tensor->name);
    if (copy->rows_only && cut->input[i] != PART_CUT)
        return replay_wrong(r, node, " reads all of %s while it is being made", tensor->name);
    if (place->part_bytes)
        return replay_wrong(r, node, ": an input moves by parts");
    if (r->version[tensor->id] != r->expected[node->id * MOST_INPUTS + i])
        return replay_wrong(r, node, " sees version %d of %s, not %d", r->version[tensor->id], tensor->name,
                            r->expected[node->id * MOST_INPUTS + i]);
    if (place->space == SPACE_TENSOR_ARENA || place->space == SPACE_PAGE)
        return note_access(r, (struct access){place->offset, copy->bytes, place->row_bytes, updates(node, i), node});
    return PLIM_OK;
}

static int fold_order(const void *left, const void *right)
{
    const struct fold *a = *(const struct fold *const *)left, *b = *(const struct fold *const *)right;
    return a->from < b->from ? -1 : a->from > b->from;
}

static void order_folds(struct replay *r)
{
    for (int f = 0; f < r->instruction->fold_count; f++)
        r->fold[f] = &r->instruction->fold[f];
    if (r->instruction->fold_count)
        qsort(r->fold, (size_t)r->instruction->fold_count, sizeof(*r->fold), fold_order);
}

/* The fold that adds the partial sums at this place; NULL: there is none. */
static const struct fold *find_fold(const struct replay *r, const struct place *place)
{
    const struct fold like = {.from = place->offset}, *key = &like;
    size_t count = (size_t)r->instruction->fold_count;
    const struct fold **found = count ? bsearch(&key, r->fold, count, sizeof(*r->fold), fold_order) : NULL;
    return found ? *found : NULL;
}

static plim_status write_sum(struct replay *r, const struct task *task, int k)
{
    const struct node *node = task->node;
    const struct place *place = &task->output[k];
    const struct tensor *tensor = node->output[k];
    int parts = task->sums.parts;
    bool partial = place->part_bytes != 0;
    if (place->space == SPACE_WORKER) /* no copy is recorded, so a later read of this sum fails the check */
        return partial ? replay_wrong(r, node, ": partial sums in a worker's buffers") : PLIM_OK;
    if (place->space != SPACE_TENSOR_ARENA || partial != (parts > 1))
        return replay_wrong(r, node, ": %d parts add to one %s", parts, tensor->name);
    uint64_t bytes = partial ? place->part_bytes * (uint64_t)parts : tensor_bytes(tensor);
    const struct fold *fold = find_fold(r, place);
    if (partial && (!fold || place->part_bytes < tensor_bytes(tensor) || fold->stride != place->part_bytes ||
                    fold->count != shape_count(&tensor->shape) || fold->type != tensor->type || fold->parts != parts))
        return replay_wrong(r, node, ": no fold adds up the partial sums of %s", tensor->name);
    return note_access(r, (struct access){place->offset, bytes, 0, true, node});
}

static plim_status check_write(struct replay *r, const struct task *task, int k, const struct cut *cut)
{
    const struct node *node = task->node;
    const struct tensor *tensor = node->output[k];
    const struct place *place = &task->output[k];
    enum part part = cut->output[k];
    TRY(check_place(r, node, place, tensor, part));
    if (place->space == SPACE_BATCH ||
        (place->space == SPACE_TENSOR_ARENA && place->offset < r->program->persistent_bytes))
        return replay_wrong(r, node, " writes over a batch or a weight");
    if (part == PART_SUM)
        return write_sum(r, task, k);
    if (place->part_bytes || (part == PART_WHOLE && place->space != SPACE_TENSOR_ARENA))
        return replay_wrong(r, node, ": %s has no place of its own", tensor->name);
    if (place->space == SPACE_TENSOR_ARENA)
        return note_access(r, (struct access){place->offset, tensor_bytes(tensor), place->row_bytes, true, node});
    return PLIM_OK;
}

/* Records the copies that exist after the task. SUM and WHOLE outputs are complete only when the instruction ends, and
   only then may they be read. */
static void write_copies(struct replay *r, const struct task *task, const struct cut *cut)
{
    for (int k = 0; k < task->node->output_count; k++) {
        const struct place *place = &task->output[k];
        uint64_t bytes = slice_bytes(r, task->node->output[k], cut->output[k]);
        if (cut->output[k] == PART_CUT) {
            if (place->space == SPACE_TENSOR_ARENA)
                bytes = tensor_bytes(task->node->output[k]);
            replay_record(r, task->node->output[k], (struct copy){place->space, place->offset, bytes, true, 0});
        } else {
            replay_forget(r, place->space, place->offset,
                          place->part_bytes ? place->part_bytes * (uint64_t)task->sums.parts : bytes);
        }
    }
}

/* Scratch may overwrite values that are no longer needed, but not the operands of its own task. */
static plim_status check_scratch(struct replay *r, const struct task *task, const struct cut *cut)
{
    uint64_t bytes = task->kernel->scratch_bytes;
    const struct node *node = task->node;
    if (bytes == 0)
        return PLIM_OK;
    bool bad = task->scratch % LAYOUT_ALIGNMENT || task->scratch + bytes > r->program->worker_bytes;
    for (int i = 0; i < node->input_count; i++)
        bad |= task->input[i].space == SPACE_WORKER &&
               overlaps(task->scratch, bytes, task->input[i].offset, slice_bytes(r, node->input[i], cut->input[i]));
    for (int k = 0; k < node->output_count; k++)
        bad |= task->output[k].space == SPACE_WORKER &&
               overlaps(task->scratch, bytes, task->output[k].offset, slice_bytes(r, node->output[k], cut->output[k]));
    if (bad)
        return replay_wrong(r, node, ": its scratch is not its own");
    replay_forget(r, SPACE_WORKER, task->scratch, bytes);
    return PLIM_OK;
}

/* Two outputs of one task must not share bytes of the worker's buffers. No other check detects that. */
static plim_status check_outputs_apart(const struct replay *r, const struct task *task, const struct cut *cut)
{
    const struct node *node = task->node;
    for (int k = 0; k < node->output_count; k++)
        for (int j = 0; j < k; j++)
            if (task->output[k].space == SPACE_WORKER && task->output[j].space == SPACE_WORKER &&
                overlaps(task->output[k].offset, slice_bytes(r, node->output[k], cut->output[k]),
                         task->output[j].offset, slice_bytes(r, node->output[j], cut->output[j])))
                return replay_wrong(r, node, ": two outputs share bytes");
    return PLIM_OK;
}

/* The sums are in the order of their node, in parts of which each belongs to one unit, in leaves of which each belongs
   to one slice. */
static bool sums_fit(const struct task *task, const struct cut *cut, const struct chain *chain)
{
    struct sum_order order = sum_order(task->node, cut);
    bool same = order.leaves == task->sums.leaves && order.parts == task->sums.parts;
    return same && (!order.leaves || (sum_grain(cut) == chain->grain && order.parts % chain->units == 0 &&
                                      order.leaves % chain->slices == 0));
}

/* Whether the instruction computes the last units of its chain. */
static bool ends_chain(const struct replay *r)
{
    return r->instruction->end_unit == r->instruction->chain.units;
}

static void count_updates(struct replay *r, const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && updates(node, i))
            r->version[node->input[i]->id]++;
}

static plim_status note_pack(struct replay *r, const struct task *task)
{
    if (!task->kernel->pack_bytes)
        return PLIM_OK;
    TRY(note_access(r, (struct access){task->pack, task->kernel->pack_bytes, 0, true, task->node}));
    replay_forget(r, SPACE_TENSOR_ARENA, task->pack, task->kernel->pack_bytes);
    return PLIM_OK;
}

static plim_status replay_task(struct replay *r, const struct task *task)
{
    const struct node *node = task->node;
    const struct chain *chain = &r->instruction->chain;
    struct cut cut;
    node->op->cut(&cut, node);
    if (r->ran[node->id])
        return replay_wrong(r, node, " runs twice");
    r->ran[node->id] = true;
    if (cut.extent != chain->extent || cut.by_sample != chain->by_sample || chain->grain % cut.grain ||
        !sums_fit(task, &cut, chain))
        return replay_wrong(r, node, " does not fit its chain");
    for (int i = 0; i < node->input_count; i++)
        TRY(check_read(r, task, i, &cut));
    for (int k = 0; k < node->output_count; k++)
        TRY(check_write(r, task, k, &cut));
    TRY(check_scratch(r, task, &cut));
    TRY(check_outputs_apart(r, task, &cut));
    write_copies(r, task, &cut);
    TRY(note_pack(r, task));
    count_updates(r, node);
    return PLIM_OK;
}

static bool same_place(const struct place *a, const struct place *b)
{
    return a->space == b->space && a->offset == b->offset && a->row_bytes == b->row_bytes &&
           a->part_bytes == b->part_bytes;
}

/* Whether the task is the one that ran for the first units of the chain, in the same places but for pages. */
static bool is_again(const struct task *task, const struct task *first)
{
    bool same = task->node == first->node && task->kernel == first->kernel && task->scratch == first->scratch &&
                task->pack == first->pack && task->sums.leaves == first->sums.leaves &&
                task->sums.parts == first->sums.parts;
    for (int i = 0; same && i < task->node->input_count; i++)
        same = same_place(&task->input[i], &first->input[i]) ||
               (task->input[i].space == SPACE_PAGE && first->input[i].space == SPACE_PAGE);
    for (int k = 0; same && k < task->node->output_count; k++)
        same = same_place(&task->output[k], &first->output[k]);
    return same;
}

/* For other units of the chain. What was found for the first ones holds for them: each row is read before it is written
   over, and no other instruction has computed since. What may differ are the pages, and what is on its way. */
static plim_status repeat_task(struct replay *r, const struct task *task, const struct task *first)
{
    const struct node *node = task->node;
    struct cut cut;
    node->op->cut(&cut, node);
    if (!is_again(task, first))
        return replay_wrong(r, node, " is not as it was for the units before");
    for (int i = 0; i < node->input_count; i++) {
        const struct place *place = &task->input[i];
        if (place->space == SPACE_PAGE)
            TRY(check_read(r, task, i, &cut));
        else if (place->space == SPACE_TENSOR_ARENA)
            TRY(note_access(r, (struct access){place->offset, tensor_bytes(node->input[i]), place->row_bytes,
                                               updates(node, i), node}));
    }
    for (int k = 0; k < node->output_count; k++) {
        const struct place *place = &task->output[k];
        uint64_t bytes =
            place->part_bytes ? place->part_bytes * (uint64_t)task->sums.parts : tensor_bytes(node->output[k]);
        if (place->space == SPACE_TENSOR_ARENA)
            TRY(note_access(r, (struct access){place->offset, bytes, place->row_bytes, true, node}));
    }
    TRY(note_pack(r, task));
    count_updates(r, node);
    return PLIM_OK;
}

/* ---- instructions ------------------------------------------------------ */

static int access_order(const void *left, const void *right)
{
    const struct access *a = left, *b = right;
    return a->offset != b->offset ? (a->offset < b->offset ? -1 : 1) : 0;
}

static plim_status access_conflict(const struct replay *r, const struct access *a, const struct access *b)
{
    return WRONG(r, "%s %s and %s %s meet in bytes at %llu while units run", a->node->op->name, a->node->name,
                 b->node->op->name, b->node->name, (unsigned long long)b->offset);
}

static const struct access *further(const struct access *a, const struct access *b)
{
    return !a || a->offset + a->bytes < b->offset + b->bytes ? b : a;
}

static bool reaches(const struct access *a, uint64_t offset)
{
    return a && a->offset + a->bytes > offset;
}

/* Accesses begin..end - 1 start at the same offset. If one of them writes, all must go by the same rows. */
static plim_status check_together(struct replay *r, int begin, int end)
{
    const struct access *write = NULL;
    for (int i = begin; i < end; i++)
        write = r->access[i].write ? &r->access[i] : write;
    r->steps += (uint64_t)(end - begin);
    for (int i = begin; write && i < end; i++)
        if (&r->access[i] != write && (!write->row_bytes || r->access[i].row_bytes != write->row_bytes))
            return access_conflict(r, write, &r->access[i]);
    return PLIM_OK;
}

/* Rule 3. The accesses are sorted by offset, so an access overlaps an earlier one exactly if the earlier access with
   the highest end reaches it. A write must not overlap any earlier access, and a read must not overlap an earlier
   write. */
static plim_status check_accesses(struct replay *r)
{
    const struct access *furthest = NULL, *written = NULL; /* highest end among earlier accesses, writes */
    if (r->access_count)
        qsort(r->access, (size_t)r->access_count, sizeof(*r->access), access_order);
    for (int begin = 0, end; begin < r->access_count; begin = end) {
        uint64_t offset = r->access[begin].offset;
        for (end = begin; end < r->access_count && r->access[end].offset == offset; end++)
            if (reaches(r->access[end].write ? furthest : written, offset))
                return access_conflict(r, r->access[end].write ? furthest : written, &r->access[end]);
        TRY(check_together(r, begin, end));
        for (int i = begin; i < end; i++) {
            furthest = further(furthest, &r->access[i]);
            written = r->access[i].write ? further(written, &r->access[i]) : written;
        }
    }
    return PLIM_OK;
}

static plim_status check_chain(const struct replay *r, const struct chain *chain)
{
    bool ok = chain->grain >= 1 && chain->units >= 1 && chain->slices >= chain->units;
    ok = ok && chain->slices % chain->units == 0 &&
         (chain->slices == 1 || chain->slices <= min_i64(chain->extent / chain->grain, MOST_CUT_PIECES));
    return ok ? PLIM_OK : WRONG(r, "the slices of instruction %d do not divide it", r->at);
}

/* Nothing else computes before a chain that was begun is done. */
static plim_status check_units(struct replay *r)
{
    const struct instruction *now = r->instruction, *begun = r->begun;
    const struct chain *chain = &now->chain;
    bool ok = now->first_unit >= 0 && now->end_unit > now->first_unit && now->end_unit <= chain->units;
    if (begun)
        ok = ok && now->first_unit == r->end_unit && now->task_count == begun->task_count &&
             chain->units == begun->chain.units && chain->slices == begun->chain.slices &&
             chain->grain == begun->chain.grain && chain->extent == begun->chain.extent;
    else
        ok = ok && now->first_unit == 0;
    r->end_unit = now->end_unit;
    return ok ? PLIM_OK : WRONG(r, "instruction %d has other units of its chain than are left", r->at);
}

/* Records the SUM and WHOLE outputs, which are complete now. A fold writes its sum to fold->to. */
static plim_status finish_task(struct replay *r, const struct task *task)
{
    const struct node *node = task->node;
    struct cut cut;
    node->op->cut(&cut, node);
    for (int k = 0; k < node->output_count; k++) {
        const struct tensor *tensor = node->output[k];
        const struct place *place = &task->output[k];
        const struct fold *fold = place->part_bytes ? find_fold(r, place) : NULL;
        uint64_t bytes = tensor_bytes(tensor), to = fold ? fold->to : place->offset;
        if (cut.output[k] == PART_CUT || place->space != SPACE_TENSOR_ARENA)
            continue;
        if (to < r->program->persistent_bytes || !replay_owns(r, to, bytes))
            return replay_wrong(r, node, ": the sum %s goes where nobody owns it", tensor->name);
        TRY(check_flying(r, &(struct access){to, bytes, 0, true, node}));
        if (fold && overlaps(to, bytes, fold->from, fold->stride * (uint64_t)fold->parts))
            return replay_wrong(r, node, ": a fold writes over its own parts");
        replay_record(r, tensor, (struct copy){SPACE_TENSOR_ARENA, to, bytes, false, 0});
    }
    return PLIM_OK;
}

/* The slice buffers are dead when the instruction ends, and an output that was written row by row is whole. If units of
   the chain are left, it is not, and what was updated is still the version before. */
static void leave_instruction(struct replay *r)
{
    replay_forget(r, SPACE_WORKER, 0, UINT64_MAX / 2);
    for (int t = 0; t < r->instruction->task_count; t++) {
        const struct node *node = r->instruction->task[t].node;
        for (int k = 0; k < node->output_count && ends_chain(r); k++)
            r->copy[node->output[k]->id].rows_only = false;
        for (int i = 0; i < node->input_count && !ends_chain(r); i++)
            if (node->input[i] && updates(node, i))
                r->version[node->input[i]->id]--;
    }
}

plim_status replay_tasks(struct replay *r)
{
    const struct instruction *instruction = r->instruction;
    r->access_count = 0;
    r->steps += (uint64_t)instruction->task_count + (uint64_t)instruction->fold_count;
    order_folds(r);
    TRY(check_chain(r, &instruction->chain));
    TRY(check_units(r));
    for (int t = 0; t < instruction->task_count; t++)
        TRY(r->begun ? repeat_task(r, &instruction->task[t], &r->begun->task[t])
                     : replay_task(r, &instruction->task[t]));
    r->begun = ends_chain(r) ? NULL : r->begun ? r->begun : instruction;
    TRY(check_accesses(r));
    leave_instruction(r);
    for (int t = 0; t < instruction->task_count && ends_chain(r); t++)
        TRY(finish_task(r, &instruction->task[t]));
    return PLIM_OK;
}
