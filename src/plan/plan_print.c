/* plan_print.c - a program as text: every instruction, task, fold, instance
   and offset. Golden files hold this; figures are plain, so that a difference
   can be read off. */
#include "plan/plan.h"

static void print_place(struct text *out, const struct place *place)
{
    static const char *const spaces[] = {[SPACE_NONE] = "-",
                                         [SPACE_TENSOR_ARENA] = "arena",
                                         [SPACE_WORKER] = "worker",
                                         [SPACE_PAGE] = "page",
                                         [SPACE_BATCH] = "batch"};
    text_add(out, " %s", spaces[place->space]);
    if (place->space == SPACE_NONE)
        return;
    text_add(out, ":%llu", (unsigned long long)place->offset);
    if (place->row_bytes)
        text_add(out, "+%llu/row", (unsigned long long)place->row_bytes);
    if (place->part_bytes)
        text_add(out, "+%llu/part", (unsigned long long)place->part_bytes);
}

static void print_task(struct text *out, const struct task *task)
{
    const struct node *node = task->node;
    text_add(out, "    %d %s %s:", node->id, node->op->name, node->name);
    for (int i = 0; i < node->input_count; i++)
        print_place(out, &task->input[i]);
    if (node->output_count)
        text_add(out, " ->");
    for (int k = 0; k < node->output_count; k++)
        print_place(out, &task->output[k]);
    if (task->kernel->scratch_bytes)
        text_add(out, " scratch %llu at %llu", (unsigned long long)task->kernel->scratch_bytes,
                 (unsigned long long)task->scratch);
    if (task->kernel->pack_bytes)
        text_add(out, " pack %llu at %llu", (unsigned long long)task->kernel->pack_bytes,
                 (unsigned long long)task->pack);
    if (task->sums.leaves)
        text_add(out, " %d parts %lld leaves", task->sums.parts, (long long)task->sums.leaves);
    text_add(out, " (%s)\n", task->kernel->implementation);
}

static void print_instruction(struct text *out, const struct instruction *instruction, int index)
{
    const struct chain *chain = &instruction->chain;
    if (instruction->kind != INSTRUCTION_COMPUTE) {
        text_add(out, "  %d %s: transfer %d, %llu bytes live\n", index, instruction->name, instruction->transfer,
                 (unsigned long long)instruction->live_bytes);
        return;
    }
    text_add(out, "  %d %s: %lld %s, %d units, %lld slices of %lld, %llu bytes live\n", index, instruction->name,
             (long long)chain->extent, chain->by_sample ? "samples" : "rows", chain->units, (long long)chain->slices,
             (long long)chain_slice(chain), (unsigned long long)instruction->live_bytes);
    if (instruction->end_unit - instruction->first_unit < chain->units)
        text_add(out, "    units %d to %d\n", instruction->first_unit, instruction->end_unit - 1);
    for (int t = 0; t < instruction->task_count; t++)
        print_task(out, &instruction->task[t]);
    for (int f = 0; f < instruction->fold_count; f++) {
        const struct fold *fold = &instruction->fold[f];
        text_add(out, "    fold %lld x %d: arena:%llu+%llu/part -> arena:%llu\n", (long long)fold->count, fold->parts,
                 (unsigned long long)fold->from, (unsigned long long)fold->stride, (unsigned long long)fold->to);
    }
}

static void print_phase(struct text *out, const struct phase *phase)
{
    text_add(out, "phase %s: %d instructions, %d instances, live %llu, packed %llu, a worker %llu\n", phase->name,
             phase->instruction_count, phase->instance_count, (unsigned long long)phase->max_live,
             (unsigned long long)phase->top, (unsigned long long)phase->worker_bytes);
    for (int i = 0; i < phase->instruction_count; i++)
        print_instruction(out, &phase->instruction[i], i);
    for (int k = 0; k < phase->instance_count; k++) {
        const struct instance *instance = &phase->instance[k];
        text_add(out, "  [%d, %d] at %llu: %llu bytes, %s, %s\n", instance->first, instance->last,
                 (unsigned long long)instance->offset, (unsigned long long)instance->bytes, tag_name(instance->tag),
                 instance->name);
    }
}

void program_print(struct text *out, const struct program *program)
{
    text_add(out, "arena: %llu bytes, persistent %llu, %d workers of %llu at %llu\n",
             (unsigned long long)program->tensor_arena_bytes, (unsigned long long)program->persistent_bytes,
             program->threads, (unsigned long long)program->worker_bytes, (unsigned long long)program->workers_offset);
    for (int i = 0; i < program->persistent_count; i++)
        if (program_home(program, i))
            text_add(out, "  in the file at %llu, %d pieces: %s\n",
                     (unsigned long long)program_home(program, i)->file_offset, program_home(program, i)->pieces,
                     program->persistent[i]->name);
        else
            text_add(out, "  at %llu: %s\n", (unsigned long long)program->persistent_offset[i],
                     program->persistent[i]->name);
    for (int p = 0; p < PHASE_COUNT; p++)
        if (program->phase[p].name)
            print_phase(out, &program->phase[p]);
}
