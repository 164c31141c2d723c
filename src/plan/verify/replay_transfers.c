/* replay_transfers.c - what moves between the arena and the scratch file: nobody else touches it meanwhile, and what
   comes back is what went out. */
#include "plan/verify/replay.h"

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
    const struct home *home = replay_home(r, transfer->tensor);
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

plim_status replay_check_transfers(const struct replay *r)
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
plim_status replay_check_homes(const struct replay *r)
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
    if (!replay_owns(r, offset, transfer->bytes))
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
    replay_forget(r, SPACE_TENSOR_ARENA, transfer->from, transfer->bytes);
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
    replay_forget(r, SPACE_TENSOR_ARENA, transfer->to, transfer->bytes);
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
    const struct home *home = replay_home(r, tensor);
    struct copy copy = {SPACE_TENSOR_ARENA, transfer->to, tensor_bytes(tensor), false, 0};
    if (home) {
        struct copy *before = &r->copy[tensor->id];
        if (before->space != SPACE_NONE) /* an earlier visit: its bytes may be another's by now */
            replay_forget(r, SPACE_TENSOR_ARENA, before->offset, before->bytes);
        copy.space = home->pieces > 1 ? SPACE_PAGE : SPACE_TENSOR_ARENA;
        copy.bytes = home_bytes(home, transfer->piece);
        copy.piece = transfer->piece;
    }
    replay_record(r, tensor, copy);
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
        replay_forget(r, SPACE_TENSOR_ARENA, transfer->from, transfer->bytes);
    else
        arrive(r, transfer);
    return PLIM_OK;
}

plim_status replay_transfer(struct replay *r)
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
