/* plan_verify.c - verifies a phase by symbolic replay before anything runs.

   The replay trusts the graph and the ops' cuts, and nothing that the planner computed. It moves no bytes: for each
   tensor it tracks where a whole copy lies until something overwrites it. It checks the invariants of plan.h by these
   rules:
    1. Every instance is aligned and inside its region. No two instances overlap in both time and space.
    2. Every access is inside a live instance, or inside the fixed place of a weight.
    3. Within one instruction, two accesses to the same bytes, one of them a write, must go by the same rows, because
       units run in any order. A sum has one partial per part, each part belongs to one unit, and a fold adds the
      partials.
    4. Every read finds its tensor at the offset that it reads. Updates keep program order.
    5. Every node runs once, every result exists at the end, and the memory totals add up. A chain that is several
       instructions runs each of its units once, in instructions without another one that computes between them.
    6. What a transfer writes or reads belongs to one instance until it was waited for, and nobody else writes there.
       The value that comes back is the one that went out, and nobody reads it before the wait.
    7. A piece of a paged tensor that comes in is as it was written last, and so is the file when the phase ends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/transfer_file.h"
#include "base/memory/budget_stop.h"
#include "base/memory/work.h"
#include "base/numbers/minmax.h"
#include "base/sets/names.h"
#include "plan/offset_set.h"
#include "plan/plan_builder.h"

/* Where a whole copy of a tensor lies at the current instruction. */
struct copy {
    enum space space; /* SPACE_NONE: there is no copy */
    uint64_t offset, bytes;
    bool rows_only; /* written as PART_CUT in this instruction: a slice may read its own rows only */
    int piece;      /* of a paged tensor: the rows that there are */
};

/* An access to one operand in the tensor arena, for rule 3. */
struct access {
    uint64_t offset, bytes, row_bytes;
    bool write;
    const struct node *node;
};

/* Where the value of a transfer is. */
enum whereabouts { IN_ARENA, GOING_OUT, ON_DISK, COMING_IN, IS_BACK };
struct moving {
    enum whereabouts where;
    int owner;   /* instance whose bytes are written or read */
    int version; /* of the tensor that went out */
};

struct replay {
    const struct program *program;
    const struct phase *phase;
    struct arena work;
    struct copy *copy;        /* by tensor id */
    struct offset_set held;   /* tensors with a copy in an instance of the tensor arena */
    struct offset_set slices; /* tensors in the worker's slice buffers during the current instruction */
    int *version;             /* by tensor id: number of updates so far */
    int *expected;            /* by node id * MOST_INPUTS + i: the version that the node reads in program order */
    bool *ran;                /* by node id */
    const struct instruction *begun; /* the first instruction of a chain of which units are left; NULL: there is none */
    int end_unit;                    /* that it has come to */
    const struct home **home;        /* by tensor id; NULL: nothing is paged */
    int *page;                       /* by tensor id: of a paged one its first piece in `written` */
    int *written;                    /* by piece of all paged tensors: the version that is in the file */
    struct access *access;           /* accesses of the current instruction */
    int access_count;
    const struct fold **fold; /* folds of the current instruction, sorted by the offset of their partial sums */
    struct moving *moving;    /* by transfer */
    /* Transfers that have begun and were not waited for: their bytes, and by piece of a paged tensor. */
    struct offset_set going_out, coming_in;
    int flying_count;
    bool *flying;
    struct offset_set alive; /* instances that are alive at the current instruction */
    uint64_t alive_bytes;
    /* Lists of instances by the instruction at which they begin and end. Entries are indices + 1; 0: the list's end. */
    int *begins, *ends;         /* by instruction: first of the list */
    int *next_begin, *next_end; /* by instance */
    int at;                     /* index of the current instruction */
    const struct instruction *instruction;
    uint64_t steps; /* number of operands, intervals and accesses examined */
    plim_error *error;
};

#define WRONG(replay, ...) fail((replay)->error, PLIM_INTERNAL, "plan: " __VA_ARGS__)

/* The message begins with the node's op and name. */
__attribute__((format(printf, 3, 4))) static plim_status wrong_at(const struct replay *r, const struct node *node,
                                                                  const char *format, ...)
{
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return WRONG(r, "%s %s%s", node->op->name, node->name, what);
}

static bool overlaps(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* ---- instances --------------------------------------------------------- */

static plim_status check_instance(const struct replay *r, const struct instance *instance)
{
    const struct program *program = r->program;
    int end = r->phase->instruction_count ? r->phase->instruction_count : 1;
    if (instance->offset % LAYOUT_ALIGNMENT)
        return WRONG(r, "%s is not aligned", instance->name);
    if (instance->first < 0 || instance->last < instance->first || instance->last >= end)
        return WRONG(r, "%s lives from %d to %d of %d", instance->name, instance->first, instance->last, end);
    if (instance->offset < program->persistent_bytes || instance->bytes > program->workers_offset ||
        instance->offset > program->workers_offset - instance->bytes)
        return WRONG(r, "%s lies outside of the phases' region", instance->name);
    return PLIM_OK;
}

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

/* Updates the set of live instances for instruction `at`. A new instance must not overlap a live one. The instructions
   are visited in order. */
static plim_status enter_instruction(struct replay *r, int at)
{
    r->at = at;
    for (int k = at ? r->ends[at - 1] : 0; k; k = r->next_end[k - 1])
        remove_alive(r, &r->phase->instance[k - 1]);
    for (int k = r->begins[at]; k; k = r->next_begin[k - 1])
        TRY(add_alive(r, &r->phase->instance[k - 1]));
    return PLIM_OK;
}

/* Whether the bytes lie inside one live instance. */
static bool inside_alive(const struct replay *r, uint64_t offset, uint64_t bytes)
{
    const struct interval *met = offset_set_overlap(&r->alive, offset, bytes);
    return met && met->offset <= offset && offset + bytes <= met->offset + met->bytes;
}

/* ---- weights and states ------------------------------------------------ */

static plim_status check_persistent(const struct replay *r)
{
    const struct program *program = r->program;
    uint64_t end = 0;
    for (int i = 0; i < program->persistent_count; i++) {
        if (program_home(program, i))
            continue;
        if (program->persistent_offset[i] < end || program->persistent_offset[i] % LAYOUT_ALIGNMENT)
            return WRONG(r, "%s shares bytes with the weight before it", program->persistent[i]->name);
        end = program->persistent_offset[i] + tensor_bytes(program->persistent[i]);
    }
    if (end > program->persistent_bytes)
        return WRONG(r, "weights pass the end of their region");
    if (program->window_offset + program->window_bytes > program->workers_offset ||
        (program->paged_count && program->window_offset < program->persistent_bytes))
        return WRONG(r, "the window passes the end of the phases' region");
    if (program->workers_offset + program->worker_bytes * (uint64_t)program->threads > program->tensor_arena_bytes)
        return WRONG(r, "workers' buffers pass the end of the arena");
    return PLIM_OK;
}

static bool updates(const struct node *node, int input)
{
    return node->op->updates >> input & 1;
}

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

/* NULL: the tensor is not paged. */
static const struct home *page_home(const struct replay *r, const struct tensor *tensor)
{
    return r->home ? r->home[tensor->id] : NULL;
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
        if (i >= 0 && !page_home(r, tensor))
            r->copy[t] = (struct copy){
                .space = SPACE_TENSOR_ARENA, .offset = program->persistent_offset[i], .bytes = tensor_bytes(tensor)};
    }
    r->steps += names.steps + (uint64_t)graph->tensor_count;
    return r->home ? start_pages(r) : PLIM_OK;
}

/* ---- copies of values -------------------------------------------------- */

/* Invalidates every copy that shares a byte with this range. The range cannot overlap a weight, because values lie
   inside instances and instances lie outside the region of the weights. */
static void forget_copies(struct replay *r, enum space space, uint64_t offset, uint64_t bytes)
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

static void record_copy(struct replay *r, const struct tensor *tensor, struct copy copy)
{
    forget_copies(r, copy.space, copy.offset, copy.bytes);
    r->copy[tensor->id] = copy;
    if (copy.space == SPACE_WORKER || copy.space == SPACE_TENSOR_ARENA || copy.space == SPACE_PAGE)
        offset_set_add(copy.space == SPACE_WORKER ? &r->slices : &r->held, copy.offset, copy.bytes, tensor->id);
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
    return met ? wrong_at(r, access->node, " touches %s at instruction %d, which is on its way",
                          r->phase->transfer[met->owner].tensor->name, r->at)
               : PLIM_OK;
}

static plim_status note_access(struct replay *r, struct access access)
{
    if (access.offset >= r->program->persistent_bytes && !inside_alive(r, access.offset, access.bytes))
        return wrong_at(r, access.node, " reaches bytes at %llu that nobody owns at instruction %d",
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
        return wrong_at(r, node, ": %s has no place that fits its cut", tensor->name);
    if (place->space == SPACE_WORKER &&
        (place->offset % LAYOUT_ALIGNMENT || place->offset + slice_bytes(r, tensor, part) > r->program->worker_bytes))
        return wrong_at(r, node, ": %s passes the end of the worker's buffers", tensor->name);
    return PLIM_OK;
}

/* Of a tensor of several pieces the one that is there has the rows of the instruction, no more and no less. */
static plim_status check_piece(const struct replay *r, const struct node *node, const struct tensor *tensor,
                               const struct place *place, enum part part)
{
    const struct home *home = page_home(r, tensor);
    const struct instruction *instruction = r->instruction;
    const struct chain *chain = &instruction->chain;
    int64_t each = chain->slices / chain->units, piece = r->copy[tensor->id].piece;
    if (!home || home->pieces == 1)
        return place->space == SPACE_PAGE ? wrong_at(r, node, " reads %s by pieces", tensor->name) : PLIM_OK;
    bool same = place->space == SPACE_PAGE && part == PART_CUT && home->row_bytes == tensor_row_bytes(tensor) &&
                home->extent == chain->extent &&
                piece_begin(home->extent, home->grain, piece, home->pieces) ==
                    chain_row(chain, instruction->first_unit * each) &&
                piece_begin(home->extent, home->grain, piece + 1, home->pieces) ==
                    chain_row(chain, instruction->end_unit * each);
    return same ? PLIM_OK : wrong_at(r, node, " works on other rows of %s than are there", tensor->name);
}

static plim_status check_read(struct replay *r, const struct task *task, int i, const struct cut *cut)
{
    const struct node *node = task->node;
    const struct tensor *tensor = node->input[i];
    const struct place *place = &task->input[i];
    if (!tensor)
        return place->space == SPACE_NONE ? PLIM_OK : wrong_at(r, node, ": an absent input has a place");
    const struct copy *copy = &r->copy[tensor->id];
    TRY(check_place(r, node, place, tensor, cut->input[i]));
    TRY(check_piece(r, node, tensor, place, cut->input[i]));
    if (copy->space != place->space || copy->offset != place->offset)
        return wrong_at(r, node, " at instruction %d does not find %s where it looks", r->at, tensor->name);
    if (copy->rows_only && cut->input[i] != PART_CUT)
        return wrong_at(r, node, " reads all of %s while it is being made", tensor->name);
    if (place->part_bytes)
        return wrong_at(r, node, ": an input moves by parts");
    if (r->version[tensor->id] != r->expected[node->id * MOST_INPUTS + i])
        return wrong_at(r, node, " sees version %d of %s, not %d", r->version[tensor->id], tensor->name,
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
        return partial ? wrong_at(r, node, ": partial sums in a worker's buffers") : PLIM_OK;
    if (place->space != SPACE_TENSOR_ARENA || partial != (parts > 1))
        return wrong_at(r, node, ": %d parts add to one %s", parts, tensor->name);
    uint64_t bytes = partial ? place->part_bytes * (uint64_t)parts : tensor_bytes(tensor);
    const struct fold *fold = find_fold(r, place);
    if (partial && (!fold || place->part_bytes < tensor_bytes(tensor) || fold->stride != place->part_bytes ||
                    fold->count != shape_count(&tensor->shape) || fold->type != tensor->type || fold->parts != parts))
        return wrong_at(r, node, ": no fold adds up the partial sums of %s", tensor->name);
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
        return wrong_at(r, node, " writes over a batch or a weight");
    if (part == PART_SUM)
        return write_sum(r, task, k);
    if (place->part_bytes || (part == PART_WHOLE && place->space != SPACE_TENSOR_ARENA))
        return wrong_at(r, node, ": %s has no place of its own", tensor->name);
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
            record_copy(r, task->node->output[k], (struct copy){place->space, place->offset, bytes, true, 0});
        } else {
            forget_copies(r, place->space, place->offset,
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
        return wrong_at(r, node, ": its scratch is not its own");
    forget_copies(r, SPACE_WORKER, task->scratch, bytes);
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
                return wrong_at(r, node, ": two outputs share bytes");
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
    forget_copies(r, SPACE_TENSOR_ARENA, task->pack, task->kernel->pack_bytes);
    return PLIM_OK;
}

static plim_status replay_task(struct replay *r, const struct task *task)
{
    const struct node *node = task->node;
    const struct chain *chain = &r->instruction->chain;
    struct cut cut;
    node->op->cut(&cut, node);
    if (r->ran[node->id])
        return wrong_at(r, node, " runs twice");
    r->ran[node->id] = true;
    if (cut.extent != chain->extent || cut.by_sample != chain->by_sample || chain->grain % cut.grain ||
        !sums_fit(task, &cut, chain))
        return wrong_at(r, node, " does not fit its chain");
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
        return wrong_at(r, node, " is not as it was for the units before");
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
        if (to < r->program->persistent_bytes || !inside_alive(r, to, bytes))
            return wrong_at(r, node, ": the sum %s goes where nobody owns it", tensor->name);
        TRY(check_flying(r, &(struct access){to, bytes, 0, true, node}));
        if (fold && overlaps(to, bytes, fold->from, fold->stride * (uint64_t)fold->parts))
            return wrong_at(r, node, ": a fold writes over its own parts");
        record_copy(r, tensor, (struct copy){SPACE_TENSOR_ARENA, to, bytes, false, 0});
    }
    return PLIM_OK;
}

/* The slice buffers are dead when the instruction ends, and an output that was written row by row is whole. If units of
   the chain are left, it is not, and what was updated is still the version before. */
static void leave_instruction(struct replay *r)
{
    forget_copies(r, SPACE_WORKER, 0, UINT64_MAX / 2);
    for (int t = 0; t < r->instruction->task_count; t++) {
        const struct node *node = r->instruction->task[t].node;
        for (int k = 0; k < node->output_count && ends_chain(r); k++)
            r->copy[node->output[k]->id].rows_only = false;
        for (int i = 0; i < node->input_count && !ends_chain(r); i++)
            if (node->input[i] && updates(node, i))
                r->version[node->input[i]->id]--;
    }
}

static plim_status replay_tasks(struct replay *r)
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

/* ---- transfers --------------------------------------------------------- */

static plim_status wrong_transfer(const struct replay *r, const struct transfer *transfer, const char *what)
{
    return WRONG(r, "%s: the transfer at instruction %d %s", transfer->tensor->name, r->at, what);
}

static bool is_copy_at(const struct replay *r, const struct transfer *transfer, uint64_t offset)
{
    const struct copy *copy = &r->copy[transfer->tensor->id];
    return copy->space == SPACE_TENSOR_ARENA && copy->offset == offset && !copy->rows_only;
}

/* Regions of values are in the order of the transfers, behind those of paged tensors. Each piece has its own. */
static plim_status check_region(const struct replay *r, const struct transfer *transfer, uint64_t *end)
{
    uint64_t odd = (transfer->from | transfer->to | transfer->bytes | transfer->file_offset) % TRANSFER_ALIGNMENT;
    const struct home *home = page_home(r, transfer->tensor);
    bool page = transfer->piece != NOT_PAGED;
    if (odd || page != (home != NULL))
        return WRONG(r, "%s: a transfer is not aligned, or of another kind", transfer->tensor->name);
    if (!page && (transfer->bytes < tensor_bytes(transfer->tensor) || transfer->file_offset < *end))
        return WRONG(r, "%s shares bytes of the scratch file", transfer->tensor->name);
    if (page && (transfer->piece < 0 || transfer->piece >= home->pieces || transfer->from != transfer->to ||
                 transfer->bytes != round_up(home_bytes(home, transfer->piece), TRANSFER_ALIGNMENT) ||
                 transfer->file_offset != home_offset(home, transfer->piece)))
        return WRONG(r, "%s: a transfer does not reach its piece", transfer->tensor->name);
    *end = page ? *end : transfer->file_offset + transfer->bytes;
    return PLIM_OK;
}

static plim_status check_transfers(const struct replay *r)
{
    const struct phase *phase = r->phase;
    uint64_t end = r->program->homes_bytes;
    for (int k = 0; k < phase->transfer_count; k++)
        TRY(check_region(r, &phase->transfer[k], &end));
    if (phase->transfer_count &&
        (end > phase->scratch_file_bytes || phase->scratch_file_bytes > r->program->scratch_file_bytes ||
         phase->transfer_count > r->program->transfer_count))
        return WRONG(r, "transfers pass the end of the scratch file");
    return PLIM_OK;
}

/* Homes are apart, in the order of the tensors. */
static plim_status check_homes(const struct replay *r)
{
    const struct program *program = r->program;
    uint64_t end = 0;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct home *home = program_home(program, i);
        const struct tensor *tensor = program->persistent[i];
        if (!home)
            continue;
        bool whole = home->pieces > 0 && home->grain > 0 && home->extent / home->grain >= home->pieces &&
                     home_first(home, home->pieces) == tensor_bytes(tensor);
        uint64_t longest = round_up(home_bytes(home, home->pieces - 1), TRANSFER_ALIGNMENT);
        if (!whole || home->file_offset < end || home->file_offset % TRANSFER_ALIGNMENT ||
            longest > program->window_bytes)
            return WRONG(r, "%s has no home of its own", tensor->name);
        end = home_offset(home, home->pieces - 1) + longest;
    }
    return end <= program->homes_bytes && end <= program->scratch_file_bytes
               ? PLIM_OK
               : WRONG(r, "paged tensors pass the end of the scratch file");
}

/* The bytes get the one owner that they have until the wait. */
static plim_status begin_transfer(struct replay *r, const struct transfer *transfer, struct moving *moving,
                                  uint64_t offset)
{
    const struct interval *met = offset_set_overlap(&r->alive, offset, transfer->bytes);
    if (!inside_alive(r, offset, transfer->bytes))
        return wrong_transfer(r, transfer, "reaches bytes that nobody owns");
    moving->owner = met->owner;
    offset_set_add(moving->where == GOING_OUT ? &r->going_out : &r->coming_in, offset, transfer->bytes,
                   r->instruction->transfer);
    if (transfer->piece != NOT_PAGED)
        r->flying[r->page[transfer->tensor->id] + transfer->piece] = true;
    r->flying_count++;
    return PLIM_OK;
}

static int *version_in_file(const struct replay *r, const struct transfer *transfer)
{
    return &r->written[r->page[transfer->tensor->id] + transfer->piece];
}

/* How often the chain that was begun updates the tensor: pieces that passed through it have that behind them, the
   tensor as a whole has not. */
static int updates_begun(const struct replay *r, const struct tensor *tensor)
{
    int count = 0;
    for (int t = 0; r->begun && t < r->begun->task_count; t++) {
        const struct node *node = r->begun->task[t].node;
        for (int i = 0; i < node->input_count; i++)
            count += node->input[i] == tensor && updates(node, i);
    }
    return count;
}

/* From here on the piece may not be touched in the arena. */
static plim_status replay_page_out(struct replay *r, const struct transfer *transfer, struct moving *moving)
{
    const struct copy *copy = &r->copy[transfer->tensor->id];
    if (moving->where != IS_BACK || copy->piece != transfer->piece || copy->offset != transfer->from ||
        (copy->space != SPACE_PAGE && copy->space != SPACE_TENSOR_ARENA))
        return wrong_transfer(r, transfer, "does not find its piece");
    moving->where = GOING_OUT;
    moving->version = r->version[transfer->tensor->id] + updates_begun(r, transfer->tensor);
    forget_copies(r, SPACE_TENSOR_ARENA, transfer->from, transfer->bytes);
    return begin_transfer(r, transfer, moving, transfer->from);
}

static plim_status replay_out(struct replay *r, const struct transfer *transfer, struct moving *moving)
{
    if (transfer->piece != NOT_PAGED)
        return replay_page_out(r, transfer, moving);
    if (moving->where != IN_ARENA || !is_copy_at(r, transfer, transfer->from))
        return wrong_transfer(r, transfer, "does not find its value");
    moving->where = GOING_OUT;
    moving->version = r->version[transfer->tensor->id];
    return begin_transfer(r, transfer, moving, transfer->from);
}

/* Whether the file has the piece as it was written last: nobody is moving it, or has changed it in the arena. */
static bool is_current(const struct replay *r, const struct transfer *transfer)
{
    return !r->flying[r->page[transfer->tensor->id] + transfer->piece] &&
           *version_in_file(r, transfer) == r->version[transfer->tensor->id];
}

static plim_status replay_in(struct replay *r, const struct transfer *transfer, struct moving *moving)
{
    bool page = transfer->piece != NOT_PAGED;
    if (moving->where != (page ? IN_ARENA : ON_DISK) || (page && !is_current(r, transfer)))
        return wrong_transfer(r, transfer, "reads what is not on the disk");
    forget_copies(r, SPACE_TENSOR_ARENA, transfer->to, transfer->bytes);
    moving->where = COMING_IN;
    moving->version = page ? r->version[transfer->tensor->id] : moving->version;
    return begin_transfer(r, transfer, moving, transfer->to);
}

static void land(struct replay *r, const struct transfer *transfer, bool out)
{
    struct offset_set *set = out ? &r->going_out : &r->coming_in;
    offset_set_remove(set, offset_set_overlap(set, out ? transfer->from : transfer->to, transfer->bytes));
    if (transfer->piece != NOT_PAGED)
        r->flying[r->page[transfer->tensor->id] + transfer->piece] = false;
    r->flying_count--;
}

static void arrive(struct replay *r, const struct transfer *transfer)
{
    const struct tensor *tensor = transfer->tensor;
    const struct home *home = page_home(r, tensor);
    struct copy copy = {SPACE_TENSOR_ARENA, transfer->to, tensor_bytes(tensor), false, 0};
    if (home) {
        struct copy *before = &r->copy[tensor->id];
        if (before->space != SPACE_NONE) /* an earlier visit: its bytes may be another's by now */
            forget_copies(r, SPACE_TENSOR_ARENA, before->offset, before->bytes);
        copy.space = home->pieces > 1 ? SPACE_PAGE : SPACE_TENSOR_ARENA;
        copy.bytes = home_bytes(home, transfer->piece);
        copy.piece = transfer->piece;
    }
    record_copy(r, tensor, copy);
}

static plim_status replay_wait(struct replay *r, const struct transfer *transfer, struct moving *moving)
{
    bool out = moving->where == GOING_OUT, page = transfer->piece != NOT_PAGED;
    if (!out && moving->where != COMING_IN)
        return wrong_transfer(r, transfer, "was not begun");
    if (r->phase->instance[moving->owner].last < r->at)
        return wrong_transfer(r, transfer, "ends behind the instance that owns the bytes");
    if ((!(page && out) && r->version[transfer->tensor->id] != moving->version) ||
        (out && !page && !is_copy_at(r, transfer, transfer->from)) ||
        (!out && offset_set_overlap(&r->held, transfer->to, transfer->bytes)))
        return wrong_transfer(r, transfer, "does not have its bytes for itself");
    land(r, transfer, out);
    moving->where = out ? ON_DISK : IS_BACK;
    if (page && out)
        *version_in_file(r, transfer) = moving->version;
    else if (out)
        forget_copies(r, SPACE_TENSOR_ARENA, transfer->from, transfer->bytes);
    else
        arrive(r, transfer);
    return PLIM_OK;
}

static plim_status replay_transfer(struct replay *r)
{
    int k = r->instruction->transfer;
    if (k < 0 || k >= r->phase->transfer_count || r->instruction->task_count || r->instruction->fold_count)
        return WRONG(r, "instruction %d moves nothing that is known", r->at);
    r->steps++;
    const struct transfer *transfer = &r->phase->transfer[k];
    switch (r->instruction->kind) {
    case INSTRUCTION_OUT:
        return replay_out(r, transfer, &r->moving[k]);
    case INSTRUCTION_IN:
        return replay_in(r, transfer, &r->moving[k]);
    default:
        return replay_wait(r, transfer, &r->moving[k]);
    }
}

static plim_status replay_instruction(struct replay *r, int at)
{
    const struct instruction *instruction = r->instruction = &r->phase->instruction[at];
    uint64_t live = r->program->persistent_bytes + r->program->worker_bytes * (uint64_t)r->program->threads;
    TRY(budget_go_on(r->work.budget, r->error)); /* large plans take a while */
    TRY(enter_instruction(r, at));
    TRY(instruction->kind == INSTRUCTION_COMPUTE ? replay_tasks(r) : replay_transfer(r));
    live += r->alive_bytes;
    if (instruction->live_bytes != live || live > r->program->tensor_arena_bytes)
        return WRONG(r, "instruction %d holds %llu bytes, the plan says %llu", at, (unsigned long long)live,
                     (unsigned long long)instruction->live_bytes);
    return PLIM_OK;
}

static plim_status check_end(const struct replay *r)
{
    const struct graph *graph = r->phase->graph;
    for (int n = 0; n < graph->node_count; n++)
        if (!r->ran[n])
            return wrong_at(r, graph->node[n], " never runs");
    if (r->begun || r->flying_count)
        return WRONG(r, "the phase ends before all is done");
    for (int k = 0; k < r->phase->transfer_count; k++)
        if (r->phase->transfer[k].piece == NOT_PAGED && r->moving[k].where != IS_BACK)
            return WRONG(r, "%s does not come back", r->phase->transfer[k].tensor->name);
    for (int t = 0; r->home && t < graph->tensor_count; t++)
        for (int piece = 0; r->home[t] && piece < r->home[t]->pieces; piece++)
            if (r->written[r->page[t] + piece] != r->version[t])
                return WRONG(r, "%s is not on the disk as it was written last", graph->tensor[t]->name);
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct place *place = &r->phase->place[t];
        if (graph->tensor[t]->kind == KIND_RESULT &&
            (r->copy[t].space != SPACE_TENSOR_ARENA || place->space != SPACE_TENSOR_ARENA ||
             r->copy[t].offset != place->offset))
            return WRONG(r, "the result %s is not there in the end", graph->tensor[t]->name);
    }
    return PLIM_OK;
}

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

static plim_status replay_graph(struct replay *r)
{
    if (!take_tables(r))
        return program_refused(r->program, r->error);
    list_instances(r);
    expect_versions(r);
    TRY(start_copies(r));
    TRY(check_transfers(r));
    for (int i = 0; i < r->phase->instruction_count; i++)
        TRY(replay_instruction(r, i));
    work_count(r->work.budget, r->steps);
    return check_end(r);
}

static plim_status check_figures(const struct replay *r)
{
    uint64_t sum = 0, workers = r->program->worker_bytes * (uint64_t)r->program->threads;
    for (int tag = 0; tag < TAG_COUNT; tag++)
        sum += r->phase->by_tag[tag];
    if (sum != r->program->persistent_bytes + r->phase->max_live + workers || sum > r->program->tensor_arena_bytes)
        return WRONG(r, "phase %s: the tags of its peak sum to %llu", r->phase->name, (unsigned long long)sum);
    return PLIM_OK;
}

plim_status plan_verify(const struct program *program, const struct phase *phase, plim_error *error)
{
    struct replay r = {.program = program, .phase = phase, .error = error};
    arena_init(&r.work, program->arena.budget, TAG_PLANNER);
    plim_status status = check_persistent(&r);
    if (status == PLIM_OK)
        status = check_homes(&r);
    for (int k = 0; k < phase->instance_count && status == PLIM_OK; k++)
        status = check_instance(&r, &phase->instance[k]);
    if (status == PLIM_OK && phase->graph)
        status = replay_graph(&r);
    if (status == PLIM_OK)
        status = check_figures(&r);
    arena_release(&r.work);
    return status;
}
