/* machine.c - executes a plan: the one tensor arena, the team, and instructions.

   An instruction is: packs, then its units (each a run of slices, each slice all tasks in order), then folds. A task
   with sums runs leaf by leaf. Which worker runs a unit changes nothing: units write different rows or partial sums of
   their own, and folds add those from first to last. Bytes that wait on the disk are moved between instructions
   (base/files/transfer_file.h). Nothing is looked up or allocated in a run: a place plus a base is an address. */
#include <string.h>

#include "base/files/transfer_file.h"
#include "base/numbers/floats.h"
#include "base/numbers/minmax.h"
#include "base/threads/clock.h"
#include "formats/files/scratch_file.h"
#include "train/trainer.h"

/* Below these sizes waking the team costs more than it brings. */
#define SHARED_FOLD_ELEMENTS 32768
#define SHARED_PACK_BYTES    65536
#define FOLD_CHUNK           4096 /* elements; a chunk stays in L1 while all parts are added */
#define SHARED_ELEMENTS      65536
#define ELEMENTS_CHUNK       (32 * EACH_GRAIN)

/* What a run of one instruction knows. */
struct execution {
    const struct machine *machine;
    const struct instruction *instruction;
    const struct batch *batch;
    int64_t rows;            /* of the cut axis that exist in this batch */
    const struct task *task; /* whose pack is being made, or elements */
    int64_t elements;        /* of it */
    int64_t page;            /* the row at which the instruction begins */
    const struct fold *fold; /* that is being added up */
};

/* ---- addresses --------------------------------------------------------- */

static uint8_t *worker_base(const struct machine *machine, int worker)
{
    return machine->tensor_arena + machine->program->workers_offset + (uint64_t)worker * machine->program->worker_bytes;
}

/* By space; a batch's columns have no common one. */
static inline void set_bases(uintptr_t base[SPACE_BATCH], const struct machine *machine, int worker)
{
    memset(base, 0, SPACE_BATCH * sizeof *base);
    base[SPACE_TENSOR_ARENA] = base[SPACE_PAGE] = (uintptr_t)machine->tensor_arena;
    base[SPACE_WORKER] = (uintptr_t)worker_base(machine, worker);
}

/* Which rows, and which part of sums, a call is of. */
struct reach {
    int64_t begin; /* of the call */
    int64_t slice; /* where the slice begins, which slice buffers hold */
    int64_t page;  /* where the rows of the instruction begin, which pages hold */
    int part;
};

/* An absent operand has base, offset and steps of 0: NULL. */
static inline void *address(const struct place *place, const uintptr_t base[SPACE_BATCH], const struct batch *batch,
                            const struct reach *reach)
{
    uintptr_t start =
        place->space == SPACE_BATCH ? (uintptr_t)batch->column[place->offset] : base[place->space] + place->offset;
    int64_t row = reach->begin - (place->space == SPACE_WORKER ? reach->slice
                                  : place->space == SPACE_PAGE ? reach->page
                                                               : 0);
    return (void *)(start + (uint64_t)row * place->row_bytes + (uint64_t)reach->part * place->part_bytes);
}

/* Every operand of the node: kernels look at no others. */
static inline void set_addresses(struct call *call, const struct task *task, const uintptr_t base[SPACE_BATCH],
                                 const struct batch *batch, const struct reach *reach)
{
    const struct node *node = task->node;
    for (int i = 0; i < node->input_count; i++)
        call->input[i] = address(&task->input[i], base, batch, reach);
    for (int k = 0; k < node->output_count; k++)
        call->output[k] = address(&task->output[k], base, batch, reach);
    call->scratch = (void *)(base[SPACE_WORKER] + task->scratch);
}

/* ---- units, packs, folds ----------------------------------------------- */

/* A slice: its number, and its rows that exist. */
struct span {
    int64_t slice, begin, end;
    bool whole; /* all of its rows exist */
};

static void call_task(const struct execution *execution, const struct task *task, struct call *call,
                      const uintptr_t base[SPACE_BATCH], const struct reach *reach)
{
    call->node = task->node;
    call->pack = task->kernel->pack_bytes ? execution->machine->tensor_arena + task->pack : NULL;
    set_addresses(call, task, base, execution->batch, reach);
    task->kernel->run(task->kernel, call);
}

/* Leaf by leaf: the first leaf of a part begins its sum. */
static void run_sums(const struct execution *execution, const struct task *task, struct call *call,
                     const uintptr_t base[SPACE_BATCH], const struct span *span)
{
    const struct chain *chain = &execution->instruction->chain;
    int64_t each = task->sums.leaves / chain->slices, leaves = task->sums.leaves / task->sums.parts;
    int64_t begin = span->begin, next;
    for (int64_t leaf = span->slice * each; begin < span->end; leaf++, begin = next) {
        next = piece_begin(chain->extent, chain->grain, leaf + 1, task->sums.leaves);
        int64_t step = next > span->end && execution->instruction->single_tail ? 1 : next - begin;
        struct reach reach = {.slice = span->begin, .page = execution->page, .part = (int)(leaf / leaves)};
        call->add = leaf % leaves != 0;
        for (call->begin = begin; call->begin < next && call->begin < span->end; call->begin = call->end) {
            call->end = min_i64(call->begin + step, span->end);
            reach.begin = call->begin;
            call_task(execution, task, call, base, &reach);
            call->add = true;
        }
    }
}

static void run_task(const struct execution *execution, const struct task *task, struct call *call,
                     const uintptr_t base[SPACE_BATCH], const struct span *span)
{
    if (task->sums.leaves) {
        run_sums(execution, task, call, base, span);
        return;
    }
    int64_t step = span->whole || !execution->instruction->single_tail ? span->end - span->begin : 1;
    call->add = false;
    for (call->begin = span->begin; call->begin < span->end; call->begin = call->end) {
        call->end = call->begin + step;
        struct reach reach = {.begin = call->begin, .slice = span->begin, .page = execution->page};
        call_task(execution, task, call, base, &reach);
    }
}

static struct span span_of(const struct execution *execution, int64_t slice)
{
    const struct chain *chain = &execution->instruction->chain;
    int64_t end = chain_row(chain, slice + 1);
    return (struct span){.slice = slice,
                         .begin = chain_row(chain, slice),
                         .end = min_i64(end, execution->rows),
                         .whole = end <= execution->rows};
}

/* `index` counts from the instruction's first unit. */
static void run_unit(void *context, int index, int worker)
{
    const struct execution *execution = context;
    const struct instruction *instruction = execution->instruction;
    int unit = instruction->first_unit + index;
    int64_t each = instruction->chain.slices / instruction->chain.units;
    uintptr_t base[SPACE_BATCH];
    struct call call = {.count = execution->batch->count};
    set_bases(base, execution->machine, worker);
    for (int64_t slice = unit * each; slice < (unit + 1) * each; slice++) {
        struct span span = span_of(execution, slice);
        if (span.begin >= span.end)
            return;
        for (const struct task *task = instruction->task, *last = task + instruction->task_count; task < last; task++)
            run_task(execution, task, &call, base, &span);
    }
}

/* Elements chunk * ELEMENTS_CHUNK and on of a task whose slice is worker 0's. */
static void run_elements(void *context, int chunk, int worker)
{
    const struct execution *execution = context;
    const struct task *task = execution->task;
    const struct node *node = task->node;
    uintptr_t base[SPACE_BATCH];
    int64_t first = (int64_t)chunk * ELEMENTS_CHUNK, left = execution->elements - first;
    struct call call = {.node = node, .count = execution->batch->count};
    set_bases(base, execution->machine, 0);
    set_addresses(&call, task, base, execution->batch, &(struct reach){0});
    for (int i = 0; i < node->input_count; i++)
        if (call.input[i])
            call.input[i] = (uint8_t *)call.input[i] + first * (int64_t)type_bytes(node->input[i]->type);
    for (int k = 0; k < node->output_count; k++)
        call.output[k] = (uint8_t *)call.output[k] + first * (int64_t)type_bytes(node->output[k]->type);
    call.scratch = worker_base(execution->machine, worker) + task->scratch;
    call.end = left < ELEMENTS_CHUNK ? left : ELEMENTS_CHUNK;
    task->kernel->each->run(task->kernel->each, &call);
}

/* One slice that is all there is, as of a batch of one: task by task, and the team shares what makes elements alone. */
static void run_single(struct execution *execution)
{
    const struct instruction *instruction = execution->instruction;
    uintptr_t base[SPACE_BATCH];
    struct call call = {.count = execution->batch->count};
    struct span span = span_of(execution, 0);
    set_bases(base, execution->machine, 0);
    for (int t = 0; t < instruction->task_count; t++) {
        const struct task *task = execution->task = &instruction->task[t];
        const struct tensor *rows = task->node->output_count ? task->node->output[0] : task->node->input[0];
        execution->elements = execution->rows * shape_row(&rows->shape);
        if (!task->kernel->each || execution->elements < SHARED_ELEMENTS) {
            run_task(execution, task, &call, base, &span);
            continue;
        }
        int chunks = (int)((execution->elements + ELEMENTS_CHUNK - 1) / ELEMENTS_CHUNK);
        team_run(execution->machine->team, chunks, run_elements, execution);
    }
}

static void run_pack(void *context, int unit, int worker)
{
    const struct execution *execution = context;
    const struct task *task = execution->task;
    struct call whole = {.node = task->node, .end = execution->rows, .count = execution->batch->count};
    uintptr_t base[SPACE_BATCH];
    set_bases(base, execution->machine, worker);
    set_addresses(&whole, task, base, execution->batch, &(struct reach){0});
    task->kernel->pack(task->kernel, &whole, unit, execution->machine->tensor_arena + task->pack);
}

static void run_packs(struct execution *execution)
{
    for (int t = 0; t < execution->instruction->task_count; t++) {
        const struct task *task = execution->task = &execution->instruction->task[t];
        if (task->kernel->pack_bytes == 0)
            continue;
        if (task->kernel->pack_bytes >= SHARED_PACK_BYTES) {
            team_run(execution->machine->team, task->kernel->pack_units, run_pack, execution);
            continue;
        }
        for (int unit = 0; unit < task->kernel->pack_units; unit++)
            run_pack(execution, unit, 0);
    }
}

static void add_floats(float *to, const uint8_t *from, uint64_t stride, int parts, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof(*to));
    for (int p = 1; p < parts; p++) {
        const float *part = (const float *)(from + (uint64_t)p * stride);
        for (int64_t i = 0; i < count; i++)
            to[i] += part[i];
    }
}

static void add_doubles(double *to, const uint8_t *from, uint64_t stride, int parts, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof(*to));
    for (int p = 1; p < parts; p++) {
        const double *part = (const double *)(from + (uint64_t)p * stride);
        for (int64_t i = 0; i < count; i++)
            to[i] += part[i];
    }
}

/* How many of so many pieces of the axis have rows in this batch; one at least. */
static int with_rows(const struct execution *execution, int pieces)
{
    const struct chain *chain = &execution->instruction->chain;
    int count = pieces;
    while (count > 1 && piece_begin(chain->extent, chain->grain, count - 1, pieces) >= execution->rows)
        count--;
    return count;
}

/* Elements chunk * FOLD_CHUNK and on: to = p0 + p1 + ..., over the parts that have rows. */
static void run_fold(void *context, int chunk, int worker)
{
    const struct execution *execution = context;
    const struct fold *fold = execution->fold;
    int64_t first = (int64_t)chunk * FOLD_CHUNK, left = fold->count - first;
    int64_t count = left < FOLD_CHUNK ? left : FOLD_CHUNK;
    uint64_t skip = (uint64_t)first * type_bytes(fold->type);
    int parts = with_rows(execution, fold->parts);
    uint8_t *to = execution->machine->tensor_arena + fold->to + skip;
    const uint8_t *from = execution->machine->tensor_arena + fold->from + skip;
    (void)worker;
    if (fold->type == TYPE_F64)
        add_doubles((double *)to, from, fold->stride, parts, count);
    else
        add_floats((float *)to, from, fold->stride, parts, count);
}

static void run_folds(struct execution *execution)
{
    for (int f = 0; f < execution->instruction->fold_count; f++) {
        const struct fold *fold = execution->fold = &execution->instruction->fold[f];
        int chunks = (int)((fold->count + FOLD_CHUNK - 1) / FOLD_CHUNK);
        if (fold->count * fold->parts >= SHARED_FOLD_ELEMENTS) {
            team_run(execution->machine->team, chunks, run_fold, execution);
            continue;
        }
        for (int chunk = 0; chunk < chunks; chunk++)
            run_fold(execution, chunk, 0);
    }
}

/* ---- phases ------------------------------------------------------------ */

#define POISON 0xff /* as a float or double: NaN */

static void poison_all(const struct machine *machine)
{
    uint64_t kept = machine->program->persistent_bytes;
    memset(machine->tensor_arena + kept, POISON, machine->program->tensor_arena_bytes - kept);
}

/* What died with this instruction, and the slice buffers. */
static void poison_dead(const struct machine *machine, const struct phase *phase, int at)
{
    const struct program *program = machine->program;
    memset(machine->tensor_arena + program->workers_offset, POISON, program->worker_bytes * (uint64_t)program->threads);
    for (int k = 0; k < phase->instance_count; k++)
        if (phase->instance[k].last == at && at + 1 < phase->instruction_count)
            memset(machine->tensor_arena + phase->instance[k].offset, POISON, phase->instance[k].bytes);
}

static void compute(struct machine *machine, const struct instruction *instruction, const struct batch *batch)
{
    struct execution execution = {.machine = machine, .instruction = instruction, .batch = batch};
    const struct chain *chain = &instruction->chain;
    execution.rows = chain->by_sample ? batch->count : chain->extent;
    int end = with_rows(&execution, chain->units),
        units = (end < instruction->end_unit ? end : instruction->end_unit) - instruction->first_unit;
    execution.page = chain_row(chain, instruction->first_unit * (chain->slices / chain->units));
    if (instruction->first_unit == 0)
        run_packs(&execution);
    if (chain->slices == 1 && execution.rows > 0)
        run_single(&execution);
    else if (units == 1)
        run_unit(&execution, 0, 0);
    else
        team_run(machine->team, units, run_unit, &execution);
    if (instruction->end_unit == chain->units)
        run_folds(&execution);
}

static plim_status move_bytes(struct machine *machine, const struct phase *phase, const struct instruction *instruction,
                              plim_error *error)
{
    int id = instruction->transfer;
    const struct transfer *transfer = &phase->transfer[id];
    uint8_t *arena = machine->tensor_arena;
    if (instruction->kind == INSTRUCTION_OUT)
        return transfer_out(machine->scratch, id, transfer->file_offset, arena + transfer->from, transfer->bytes,
                            error);
    if (instruction->kind == INSTRUCTION_IN)
        return transfer_in(machine->scratch, id, transfer->file_offset, arena + transfer->to, transfer->bytes, error);
    return transfer_wait(machine->scratch, id, error);
}

/* After a failure: what is still under way would write into the next step. */
static plim_status settle(struct machine *machine, const struct phase *phase, plim_status status)
{
    for (int k = 0; k < phase->transfer_count; k++)
        (void)transfer_wait(machine->scratch, k, NULL);
    return status;
}

#define UNTIMED_STEPS 2  /* pages and code are touched first */
#define TIMED_STEPS   20 /* later ones would say no more */

/* Whether this run of the phase is one that tells what its instructions take. */
static bool is_timed(struct machine *machine, const struct phase *phase, const struct batch *batch)
{
    bool whole = phase == &machine->program->phase[PHASE_TRAIN] && batch->count == phase->graph->batch;
    if (!machine->times || !whole || machine->timed_steps == TIMED_STEPS)
        return false;
    return ++machine->runs > UNTIMED_STEPS;
}

static void note_time(const struct phase *phase, int i, uint64_t begin_ns)
{
    float seconds = (float)(clock_ns() - begin_ns) * 1e-9f;
    if (phase->seconds[i] == 0 || seconds < phase->seconds[i])
        phase->seconds[i] = seconds;
}

plim_status machine_run_instructions(struct machine *machine, const struct phase *phase, const struct batch *batch,
                                     plim_error *error)
{
    bool timed = is_timed(machine, phase, batch);
    for (int i = 0; i < phase->instruction_count; i++) {
        uint64_t begin_ns = timed ? clock_ns() : 0;
        const struct instruction *instruction = &phase->instruction[i];
        plim_status status = PLIM_OK;
        if (instruction->kind == INSTRUCTION_COMPUTE)
            compute(machine, instruction, batch);
        else
            status = move_bytes(machine, phase, instruction, error);
        if (status != PLIM_OK)
            return settle(machine, phase, status);
        if (timed)
            note_time(phase, i, begin_ns);
        if (machine->poison)
            poison_dead(machine, phase, i);
    }
    machine->timed_steps += timed;
    return PLIM_OK;
}

plim_status machine_run(struct machine *machine, int phase_index, const struct batch *batch, plim_error *error)
{
    const struct phase *phase = &machine->program->phase[phase_index];
    struct backend *backend = machine->program->backend;
    unsigned mode = floats_enter(); /* the caller's thread is the host's: its mode comes back below */
    if (machine->poison)
        poison_all(machine);
    plim_status status = backend->type->run_phase ? backend->type->run_phase(backend, machine, phase, batch, error)
                                                  : machine_run_instructions(machine, phase, batch, error);
    floats_restore(mode);
    return status == PLIM_OK ? backend_check(backend, error) : status;
}

/* ---- opening and closing ----------------------------------------------- */

/* The tensor arena is one block under one tag; the ledger is to show what is in it. */
static plim_status book(struct machine *machine, plim_error *error)
{
    uint64_t by_tag[TAG_COUNT];
    const char *peak_at;
    program_tensor_arena_tags(by_tag, &peak_at, machine->program);
    for (int tag = 0; tag < TAG_COUNT; tag++) {
        if (tag == TAG_ACTIVATIONS || by_tag[tag] == 0)
            continue;
        budget_release(machine->budget, TAG_ACTIVATIONS, by_tag[tag]);
        plim_status status = budget_reserve(machine->budget, (enum tag)tag, by_tag[tag], error);
        if (status != PLIM_OK) {
            budget_reserve(machine->budget, TAG_ACTIVATIONS, by_tag[tag], NULL);
            return status;
        }
        machine->booked[tag] = by_tag[tag];
    }
    return PLIM_OK;
}

static void unbook(struct machine *machine)
{
    for (int tag = 0; tag < TAG_COUNT; tag++) {
        budget_release(machine->budget, (enum tag)tag, machine->booked[tag]);
        budget_reserve(machine->budget, TAG_ACTIVATIONS, machine->booked[tag], NULL);
        machine->booked[tag] = 0;
    }
}

static plim_status open_scratch(struct machine *machine, struct scratch_disk *disk, plim_error *error)
{
    const struct program *program = machine->program;
    uint64_t bytes = program->scratch_file_bytes;
    if (!program->transfer_count)
        return PLIM_OK;
    if (!scratch_disk_take(disk, bytes))
        return fail(error, PLIM_OVER_DISK, "spilling and paging take %llu bytes of disk; %llu are left",
                    (unsigned long long)bytes, (unsigned long long)scratch_disk_left(disk));
    machine->disk = disk;
    return transfer_file_open(&machine->scratch, machine->budget, disk->folder, bytes, program->transfer_count, error);
}

plim_status machine_open(struct machine *machine, struct program *program, struct budget *budget,
                         struct scratch_disk *disk, plim_error *error)
{
    const struct backend_type *backend = program->backend->type;
    struct machine opened = {.program = program, .budget = budget};
    opened.tensor_arena = budget_take(budget, TAG_ACTIVATIONS, program->tensor_arena_bytes);
    if (!opened.tensor_arena)
        return budget_refused(budget, TAG_ACTIVATIONS, program->tensor_arena_bytes, error);
    plim_status status = book(&opened, error);
    if (status == PLIM_OK)
        status = open_scratch(&opened, disk, error);
    if (status == PLIM_OK)
        status = team_make(&opened.team, budget, program->threads, backend->thread_start, error);
    if (status != PLIM_OK) {
        machine_close(&opened);
        return status;
    }
    if (backend->thread_start)
        backend->thread_start(); /* the caller is worker 0 */
    *machine = opened;
    return PLIM_OK;
}

/* One way of the probe, as transfer 0. */
static plim_status probe_once(struct machine *machine, bool out, uint64_t bytes, plim_error *error)
{
    uint8_t *arena = (uint8_t *)round_up((uintptr_t)machine->tensor_arena, TRANSFER_ALIGNMENT);
    TRY(out ? transfer_out(machine->scratch, 0, 0, arena, bytes, error)
            : transfer_in(machine->scratch, 0, 0, arena, bytes, error));
    return transfer_wait(machine->scratch, 0, error);
}

#define PROBE_BYTES ((uint64_t)8 << 20)

/* The first write finds blocks that the file system has allocated only, which takes longer. */
plim_status machine_probe_disk(struct machine *machine, plim_error *error)
{
    if (!machine->scratch)
        return PLIM_OK;
    uint64_t bytes = min_u64(min_u64(PROBE_BYTES, machine->program->scratch_file_bytes),
                             machine->program->tensor_arena_bytes - TRANSFER_ALIGNMENT);
    bytes -= bytes % TRANSFER_ALIGNMENT;
    TRY(probe_once(machine, true, bytes, error));
    uint64_t begin_ns = clock_ns();
    TRY(probe_once(machine, true, bytes, error));
    TRY(probe_once(machine, false, bytes, error));
    machine->disk_bytes = 2 * (double)bytes / ((double)(clock_ns() - begin_ns + 1) * 1e-9);
    return PLIM_OK;
}

void machine_close(struct machine *machine)
{
    if (!machine->tensor_arena)
        return;
    transfer_file_close(machine->scratch);
    if (machine->disk)
        scratch_disk_give(machine->disk, machine->program->scratch_file_bytes);
    team_free(machine->team);
    unbook(machine);
    budget_give(machine->budget, TAG_ACTIVATIONS, machine->tensor_arena, machine->program->tensor_arena_bytes);
    *machine = (struct machine){0};
}

void *machine_data(const struct machine *machine, int phase_index, const struct tensor *tensor)
{
    const struct phase *phase = &machine->program->phase[phase_index];
    const struct graph *graph = phase->graph;
    if (!graph || tensor->id < 0 || tensor->id >= graph->tensor_count || graph->tensor[tensor->id] != tensor)
        return NULL;
    const struct place *place = &phase->place[tensor->id];
    return place->space == SPACE_TENSOR_ARENA ? machine->tensor_arena + place->offset : NULL;
}

void *machine_buffer(uint64_t *bytes, const struct machine *machine, int phase_index)
{
    const struct phase *phase = &machine->program->phase[phase_index];
    bool there = phase->name && !phase->graph && phase->instance_count == 1;
    *bytes = there ? phase->instance[0].bytes : 0;
    return there ? machine->tensor_arena + phase->instance[0].offset : NULL;
}
