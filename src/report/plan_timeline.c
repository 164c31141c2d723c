/* plan_timeline.c - goes through the training step with the blocks that are alive, in the order of their offsets, so that
   an operand's block is found by bisection. */
#include "report/plan_timeline.h"

#include <string.h>

#include "transform/in_place.h"

/* Of one task: operands, partial sums and the pack are all that it can name. */
#define MOST_ACCESSES (2 * MOST_INPUTS + MOST_OUTPUTS + 1)

void timeline_blocks(const struct program *program, block_visitor *visit, void *context)
{
    const struct phase *phase = &program->phase[PHASE_TRAIN];
    int last = phase->instruction_count - 1;
    uint64_t workers = program->worker_bytes * (uint64_t)program->threads;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (!program_home(program, i))
            visit(context, &(struct instance){.name = tensor->name,
                                              .tag = tensor->kind == KIND_WEIGHT ? TAG_WEIGHTS : TAG_OPTIMIZER,
                                              .bytes = layout_bytes(tensor_bytes(tensor)),
                                              .offset = program->persistent_offset[i],
                                              .last = last});
    }
    for (int k = 0; k < phase->instance_count; k++)
        visit(context, &phase->instance[k]);
    if (workers)
        visit(context, &(struct instance){.name = "slice buffers of the workers",
                                          .tag = TAG_SCRATCH,
                                          .bytes = workers,
                                          .offset = program->workers_offset,
                                          .last = last});
}

static void add_block(void *timeline, const struct instance *block)
{
    struct timeline *t = timeline;
    t->block[t->block_count] = *block;
    t->next_block[t->block_count] = t->first_at[block->first];
    t->first_at[block->first] = t->block_count++;
}

/* The most accesses of one instruction. */
static size_t most_accesses(const struct phase *phase)
{
    size_t most = 1;
    for (int i = 0; i < phase->instruction_count; i++) {
        const struct instruction *instruction = &phase->instruction[i];
        size_t count = (size_t)instruction->task_count * MOST_ACCESSES + (size_t)instruction->fold_count * 2;
        most = count > most ? count : most;
    }
    return most;
}

plim_status timeline_begin(struct timeline *out, const struct program *program, struct arena *work, plim_error *error)
{
    const struct phase *phase = &program->phase[PHASE_TRAIN];
    size_t blocks = (size_t)program->persistent_count + (size_t)phase->instance_count + 1;
    size_t instructions = (size_t)phase->instruction_count;
    *out = (struct timeline){
        .program = program,
        .phase = phase,
        .at = -1,
        .block = arena_array(work, blocks, sizeof *out->block),
        .alive = arena_array(work, blocks, sizeof *out->alive),
        .access = arena_array(work, most_accesses(phase), sizeof *out->access),
        .first_at = arena_array(work, instructions, sizeof *out->first_at),
        .next_block = arena_array(work, blocks, sizeof *out->next_block),
        .read_at = arena_array(work, blocks, sizeof *out->read_at),
        .written_at = arena_array(work, blocks, sizeof *out->written_at),
    };
    if (!out->block || !out->alive || !out->access || !out->first_at || !out->next_block || !out->read_at ||
        !out->written_at)
        return arena_refused(work, error);
    memset(out->first_at, -1, instructions * sizeof *out->first_at);
    memset(out->read_at, -1, blocks * sizeof *out->read_at);
    memset(out->written_at, -1, blocks * sizeof *out->written_at);
    timeline_blocks(program, add_block, out);
    return PLIM_OK;
}

/* ---- what is alive ---- */

/* How many blocks that are alive begin at or before the offset. */
static int blocks_up_to(const struct timeline *t, uint64_t offset)
{
    int low = 0, high = t->alive_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (t->block[t->alive[middle]].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void end_blocks(struct timeline *t)
{
    int kept = 0;
    for (int i = 0; i < t->alive_count; i++)
        if (t->block[t->alive[i]].last >= t->at)
            t->alive[kept++] = t->alive[i];
    t->alive_count = kept;
}

static void begin_blocks(struct timeline *t)
{
    for (int b = t->first_at[t->at]; b >= 0; b = t->next_block[b]) {
        int at = blocks_up_to(t, t->block[b].offset);
        memmove(&t->alive[at + 1], &t->alive[at], (size_t)(t->alive_count - at) * sizeof *t->alive);
        t->alive[at] = b;
        t->alive_count++;
    }
}

/* ---- what the instruction reads and writes ---- */

static void note(struct timeline *t, uint64_t offset, bool writes)
{
    int i = blocks_up_to(t, offset) - 1;
    if (i < 0)
        return;
    int b = t->alive[i], *seen = writes ? &t->written_at[b] : &t->read_at[b];
    if (*seen == t->at || offset - t->block[b].offset >= t->block[b].bytes)
        return;
    *seen = t->at;
    t->access[t->access_count++] = (struct access){b, writes};
}

static void note_place(struct timeline *t, const struct place *place, bool writes)
{
    if (place->space == SPACE_TENSOR_ARENA || place->space == SPACE_PAGE)
        note(t, place->offset, writes);
}

static void note_task(struct timeline *t, const struct task *task)
{
    for (int i = 0; i < task->node->input_count; i++) {
        note_place(t, &task->input[i], false);
        if (task->node->op->updates >> i & 1)
            note_place(t, &task->input[i], true);
    }
    for (int k = 0; k < task->node->output_count; k++)
        note_place(t, &task->output[k], true);
    if (task->kernel->pack_bytes)
        note(t, task->pack, true);
}

static void note_transfer(struct timeline *t, const struct instruction *instruction)
{
    const struct transfer *transfer = &t->phase->transfer[instruction->transfer];
    if (instruction->kind == INSTRUCTION_OUT)
        note(t, transfer->from, false);
    if (instruction->kind == INSTRUCTION_IN)
        note(t, transfer->to, true);
}

bool timeline_next(struct timeline *t)
{
    if (t->at + 1 >= t->phase->instruction_count)
        return false;
    const struct instruction *instruction = &t->phase->instruction[++t->at];
    end_blocks(t);
    begin_blocks(t);
    t->access_count = 0;
    if (instruction->kind != INSTRUCTION_COMPUTE) {
        note_transfer(t, instruction);
        return true;
    }
    for (int i = 0; i < instruction->task_count; i++)
        note_task(t, &instruction->task[i]);
    for (int f = 0; f < instruction->fold_count; f++) {
        note(t, instruction->fold[f].from, false);
        note(t, instruction->fold[f].to, true);
    }
    return true;
}
