/* program.c - the phases of a job over one tensor arena. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/minmax.h"
#include "plan/plan_builder.h"

/* A worker's buffers begin on a page of their own: no line is shared. */
#define PAGE_BYTES ((uint64_t)4096)

plim_status program_refused(const struct program *program, plim_error *error)
{
    return budget_refused(program->arena.budget, program->arena.tag, program->arena.block_bytes, error);
}

static plim_status too_large(plim_error *error)
{
    return fail(error, PLIM_OVER_BUDGET, "the model and its step need more bytes than 64 bits can count");
}

/* In one piece at first (pages.c). */
static void add_paged(struct program *program, const struct tensor *tensor, const struct graph *other)
{
    program->home[program->persistent_count++] = (struct home){.pieces = 1,
                                                               .shared = other && graph_named(other, tensor->name),
                                                               .extent = 1,
                                                               .grain = 1,
                                                               .row_bytes = tensor_bytes(tensor)};
    program->paged_count++;
}

static plim_status add_resident(struct program *program, const struct tensor *tensor, plim_error *error)
{
    program->persistent_offset[program->persistent_count++] = program->persistent_bytes;
    return add_u64(&program->persistent_bytes, program->persistent_bytes, layout_bytes(tensor_bytes(tensor)))
               ? PLIM_OK
               : too_large(error);
}

/* The graphs of a program, and what of it is paged: by tensor id of the graph that owns weights and states. */
struct owners {
    const struct graph *graph, *other;
    bool *paged;
};

static plim_status add_owned(struct program *program, const struct owners *owners, enum kind kind, plim_error *error)
{
    for (int t = 0; t < owners->graph->tensor_count; t++) {
        struct tensor *tensor = owners->graph->tensor[t];
        if (tensor->kind != kind)
            continue;
        program->persistent[program->persistent_count] = tensor;
        if (owners->paged[t])
            add_paged(program, tensor, owners->other);
        else
            TRY(add_resident(program, tensor, error));
    }
    return PLIM_OK;
}

/* What the owner does not have. */
static plim_status add_others(struct program *program, const struct owners *owners, enum kind kind, plim_error *error)
{
    for (int t = 0; owners->other && t < owners->other->tensor_count; t++) {
        struct tensor *tensor = owners->other->tensor[t];
        if (tensor->kind != kind || graph_named(owners->graph, tensor->name))
            continue;
        program->persistent[program->persistent_count] = tensor;
        TRY(add_resident(program, tensor, error));
    }
    return PLIM_OK;
}

static size_t lasting_count(const struct graph *graph)
{
    size_t count = 0;
    for (int t = 0; graph && t < graph->tensor_count; t++)
        count += graph->tensor[t]->kind == KIND_WEIGHT || graph->tensor[t]->kind == KIND_STATE;
    return count;
}

static plim_status find_paged(struct owners *owners, const struct program_input *input, struct arena *work,
                              plim_error *error)
{
    owners->paged = arena_array(work, (size_t)owners->graph->tensor_count, sizeof *owners->paged);
    if (!owners->paged)
        return arena_refused(work, error);
    for (int k = 0; k < input->spilled_count && owners->graph == input->train; k++)
        owners->paged[input->spilled[k].tensor] = true;
    return PLIM_OK;
}

static plim_status place_kinds(struct program *program, const struct owners *owners, plim_error *error)
{
    for (int kind = KIND_WEIGHT; kind <= KIND_STATE; kind++) {
        TRY(add_owned(program, owners, (enum kind)kind, error));
        TRY(add_others(program, owners, (enum kind)kind, error));
    }
    return PLIM_OK;
}

static bool has_paged(const struct program_input *input)
{
    for (int k = 0; k < input->spilled_count; k++)
        if (!is_value(input->train->tensor[input->spilled[k].tensor]))
            return true;
    return false;
}

static plim_status take_homes(struct program *program, size_t count, plim_error *error)
{
    program->home = arena_array(&program->arena, count, sizeof(*program->home));
    return program->home ? PLIM_OK : program_refused(program, error);
}

/* Weights first, then states: those of the graph that trains, and what the other one has besides. */
static plim_status persistent_place(struct program *program, const struct program_input *input, plim_error *error)
{
    struct owners owners = {.graph = input->train ? input->train : input->evaluate,
                            .other = input->train ? input->evaluate : NULL};
    size_t count = lasting_count(owners.graph) + lasting_count(owners.other);
    struct arena work;
    program->persistent = arena_array(&program->arena, count, sizeof(*program->persistent));
    program->persistent_offset = arena_array(&program->arena, count, sizeof(*program->persistent_offset));
    if (!program->persistent || !program->persistent_offset)
        return program_refused(program, error);
    if (has_paged(input))
        TRY(take_homes(program, count, error));
    arena_init(&work, program->arena.budget, TAG_PLANNER);
    plim_status status = find_paged(&owners, input, &work, error);
    if (status == PLIM_OK)
        status = place_kinds(program, &owners, error);
    arena_release(&work);
    return status;
}

/* Workers beyond the units of the widest instruction would only hold a stack and buffers. */
static void limit_threads(struct program *program)
{
    int most = 1;
    for (int p = 0; p < PHASE_COUNT; p++)
        for (int i = 0; i < program->phase[p].instruction_count; i++) {
            const struct instruction *instruction = &program->phase[p].instruction[i];
            most = (int)max_i64(most, instruction->end_unit - instruction->first_unit);
            for (int t = 0; t < instruction->task_count; t++)
                if (instruction->task[t].kernel->pack_units > most)
                    most = instruction->task[t].kernel->pack_units;
        }
    program->threads = program->threads < most ? program->threads : most;
}

/* Behind the last result of a phase. */
static uint64_t results_end(const struct phase *phase)
{
    uint64_t end = 0;
    for (int t = 0; phase->graph && t < phase->graph->tensor_count; t++) {
        const struct tensor *tensor = phase->graph->tensor[t];
        const struct place *place = &phase->place[t];
        if (tensor->kind == KIND_RESULT && place->space == SPACE_TENSOR_ARENA)
            end = max_u64(end, place->offset + layout_bytes(tensor_bytes(tensor)));
    }
    return end;
}

/* Where pieces lie while no phase runs, but that one which saves or resumes. */
static void place_window(struct program *program, const struct program_input *input)
{
    uint64_t before = program->persistent_bytes + layout_bytes(input->save_buffer_bytes);
    for (int p = 0; p < PHASE_COUNT && input->keeps_results; p++)
        before = max_u64(before, results_end(&program->phase[p]));
    program->window_offset = program->paged_count ? round_up(before, PAGE_BYTES) : 0;
    program->transfer_count = program->paged_count > 0; /* of the window */
    program->scratch_file_bytes = program->homes_bytes;
}

static plim_status place_regions(struct program *program, const struct program_input *input, plim_error *error)
{
    uint64_t top = 0, workers;
    limit_threads(program);
    place_window(program, input);
    if (program->paged_count)
        top = program->window_offset + program->window_bytes - program->persistent_bytes;
    for (int p = 0; p < PHASE_COUNT; p++) {
        const struct phase *phase = &program->phase[p];
        top = max_u64(top, phase->top);
        program->scratch_file_bytes = max_u64(program->scratch_file_bytes, phase->scratch_file_bytes);
        program->transfer_count = (int)max_i64(program->transfer_count, phase->transfer_count);
        program->worker_bytes = max_u64(program->worker_bytes, phase->worker_bytes);
    }
    program->worker_bytes = round_up(program->worker_bytes, PAGE_BYTES);
    if (!add_u64(&program->workers_offset, program->persistent_bytes, top))
        return too_large(error);
    if (program->worker_bytes)
        program->workers_offset = round_up(program->workers_offset, PAGE_BYTES);
    if (!mul_u64(&workers, program->worker_bytes, (uint64_t)program->threads) ||
        !add_u64(&program->tensor_arena_bytes, program->workers_offset, workers) ||
        program->tensor_arena_bytes > SIZE_MAX / 2)
        return too_large(error);
    program->tensor_arena_bytes = round_up(program->tensor_arena_bytes, PAGE_BYTES); /* as the budget charges it */
    return PLIM_OK;
}

static plim_status build(struct program *program, const struct program_input *input, plim_error *error)
{
    struct graph *owner = input->train ? input->train : input->evaluate;
    if (!owner || input->threads < 1)
        return fail(error, PLIM_INTERNAL, "plan: no graph, or no threads");
    TRY(graph_check(owner, error));
    TRY(persistent_place(program, input, error));
    if (input->train)
        TRY(phase_make(program, PHASE_TRAIN,
                       &(struct phase_input){"train", input->train, input->last_batch_train, input->spilled,
                                             input->spilled_count, true},
                       error));
    if (input->evaluate)
        TRY(phase_make(program, PHASE_EVALUATE,
                       &(struct phase_input){"evaluate", input->evaluate, input->last_batch_evaluate, NULL, 0, false},
                       error));
    if (input->save_buffer_bytes) {
        TRY(phase_make_buffer(program, PHASE_SAVE, "save", input->save_buffer_bytes, error));
        TRY(phase_make_buffer(program, PHASE_RESUME, "resume", input->save_buffer_bytes, error));
    }
    TRY(place_regions(program, input, error));
    for (int p = 0; p < PHASE_COUNT; p++) {
        if (!program->phase[p].name)
            continue;
        phase_measure(program, &program->phase[p]);
        if (!input->size_only)
            TRY(plan_verify(program, &program->phase[p], error));
    }
    return PLIM_OK;
}

plim_status program_make(struct program **out, const struct program_input *input, plim_error *error)
{
    struct program *program = budget_take(input->budget, TAG_PLANNER, sizeof(*program));
    if (!program)
        return budget_refused(input->budget, TAG_PLANNER, sizeof(*program), error);
    *program =
        (struct program){.backend = input->backend, .threads = input->threads, .scratch_folder = input->scratch_folder};
    arena_init(&program->arena, input->budget, TAG_PLANNER);
    plim_status status = build(program, input, error);
    if (status != PLIM_OK) {
        program_free(program);
        return status;
    }
    *out = program;
    return PLIM_OK;
}

void program_free(struct program *program)
{
    if (!program)
        return;
    struct budget *budget = program->arena.budget;
    arena_release(&program->arena);
    budget_give(budget, TAG_PLANNER, program, sizeof(*program));
}

int program_kernels(const struct program *program, const char *word)
{
    int count = 0;
    for (int p = 0; p < PHASE_COUNT; p++)
        for (int i = 0; i < program->phase[p].instruction_count; i++) {
            const struct instruction *instruction = &program->phase[p].instruction[i];
            for (int t = 0; t < instruction->task_count && instruction->first_unit == 0; t++)
                count += strncmp(instruction->task[t].kernel->implementation, word, strlen(word)) == 0;
        }
    return count;
}
