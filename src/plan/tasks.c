/* tasks.c - instructions from chains: kernels, and where every operand of
   every task lies. */
#include "base/numbers/minmax.h"
#include "plan/plan_builder.h"

/* ---- kernels ----------------------------------------------------------- */

/* Lengths of the calls of one task. */
#define MOST_SHORTER 3
struct lengths {
    int64_t most, shorter[MOST_SHORTER];
    int count; /* of shorter */
};

static void add_length(struct lengths *lengths, int64_t length)
{
    for (int i = 0; i < lengths->count; i++)
        if (lengths->shorter[i] == length)
            return;
    if (length > 0 && length != lengths->most)
        lengths->shorter[lengths->count++] = length;
}

/* Rows of the piece that the last batch ends in: those that there are. */
static int64_t last_rows(const struct chain *chain, int64_t pieces, int64_t batch)
{
    int64_t first = 0, end = pieces; /* the batch ends in one of the pieces first..end - 1 */
    while (end - first > 1) {
        int64_t middle = first + (end - first) / 2;
        if (piece_begin(chain->extent, chain->grain, middle, pieces) < batch)
            first = middle;
        else
            end = middle;
    }
    return min_i64(batch, piece_begin(chain->extent, chain->grain, first + 1, pieces)) -
           piece_begin(chain->extent, chain->grain, first, pieces);
}

/* Pieces differ by a grain at most; the last one is the longest. */
static struct lengths lengths_of(const struct builder *builder, const struct chain *chain, int64_t pieces)
{
    int64_t grains = chain->extent / chain->grain;
    struct lengths lengths = {.most = piece_most(chain->extent, chain->grain, pieces)};
    if (pieces > 1) {
        add_length(&lengths, grains / pieces * chain->grain);
        if (grains % pieces)
            add_length(&lengths, (grains / pieces + 1) * chain->grain);
    }
    if (chain->by_sample && builder->input->last_batch == LAST_BATCH_ANY)
        add_length(&lengths, 1);
    else if (chain->by_sample)
        add_length(&lengths, last_rows(chain, pieces, builder->input->last_batch));
    return lengths;
}

/* A node with sums is called leaf by leaf, whatever the slices of its chain are. */
static plim_status prepare_task(struct builder *builder, struct task *task, const struct chain *chain,
                                plim_error *error)
{
    struct backend *backend = builder->program->backend;
    task->sums = sum_order(task->node, &builder->cut[task->node->id]);
    struct lengths lengths = lengths_of(builder, chain, task->sums.leaves ? task->sums.leaves : chain->slices);
    const struct kernel_request request = {
        .node = task->node, .slice = lengths.most, .short_rows = lengths.shorter, .short_count = lengths.count};
    return backend->type->prepare(&task->kernel, backend, &request, error);
}

/* "conv2d_1 backward": after the node with the most work; the last of equals. */
static const char *name_instruction(struct builder *builder, const struct instruction *instruction)
{
    const struct node *heaviest = instruction->task[0].node;
    for (int t = 1; t < instruction->task_count; t++) {
        const struct node *node = instruction->task[t].node;
        if (builder->cut[node->id].work >= builder->cut[heaviest->id].work)
            heaviest = node;
    }
    const char *name = heaviest->name && heaviest->name[0] ? heaviest->name : heaviest->op->name;
    return arena_format(&builder->program->arena, "%s %s", name, heaviest->backward ? "backward" : "forward");
}

static size_t operands_of(const struct node *node)
{
    return (size_t)node->input_count + (size_t)node->output_count;
}

/* One table for all tasks of an instruction. */
static plim_status take_places(struct builder *builder, struct instruction *instruction, const struct chain *chain,
                               plim_error *error)
{
    size_t count = 0;
    for (int t = 0; t < chain->count; t++)
        count += operands_of(builder->chains.order[chain->first + t]);
    struct place *place = arena_array(&builder->program->arena, count, sizeof(*place));
    if (!place)
        return program_refused(builder->program, error);
    for (int t = 0; t < chain->count; t++) {
        struct task *task = &instruction->task[t];
        task->node = builder->chains.order[chain->first + t];
        task->input = place;
        task->output = place + task->node->input_count;
        place += operands_of(task->node);
    }
    return PLIM_OK;
}

static plim_status take_tasks(struct builder *builder, struct instruction *instruction, const struct chain *chain,
                              plim_error *error)
{
    instruction->task = arena_array(&builder->program->arena, (size_t)chain->count, sizeof(*instruction->task));
    return instruction->task ? take_places(builder, instruction, chain, error)
                             : program_refused(builder->program, error);
}

static plim_status prepare_instruction(struct builder *builder, struct instruction *instruction,
                                       const struct chain *chain, plim_error *error)
{
    instruction->chain = *chain;
    instruction->single_tail = chain->by_sample && builder->input->last_batch == LAST_BATCH_ANY;
    TRY(take_tasks(builder, instruction, chain, error));
    for (int t = 0; t < chain->count; t++) {
        TRY(prepare_task(builder, &instruction->task[t], chain, error));
        instruction->task_count++;
    }
    instruction->name = name_instruction(builder, instruction);
    return instruction->name ? PLIM_OK : program_refused(builder->program, error);
}

/* The same kernels for other units. */
static plim_status repeat_instruction(struct builder *builder, struct instruction *to, const struct instruction *from,
                                      plim_error *error)
{
    *to = *from;
    TRY(take_tasks(builder, to, &from->chain, error));
    for (int t = 0; t < from->task_count; t++) {
        to->task[t].kernel = from->task[t].kernel;
        to->task[t].sums = from->task[t].sums;
    }
    return PLIM_OK;
}

plim_status tasks_prepare(struct builder *builder, plim_error *error)
{
    for (int c = 0; c < builder->chains.chain_count; c++) {
        const struct chain *chain = &builder->chains.chain[c];
        const int *at = &builder->slot_at[builder->first_slot[c]];
        struct instruction *first = &builder->phase->instruction[at[0]];
        int pieces = builder->pieces[c], each = chain->units / pieces;
        TRY(prepare_instruction(builder, first, chain, error));
        for (int piece = 0; piece < pieces; piece++) {
            struct instruction *instruction = &builder->phase->instruction[at[piece]];
            if (piece > 0)
                TRY(repeat_instruction(builder, instruction, first, error));
            instruction->first_unit = piece * each;
            instruction->end_unit = (piece + 1) * each;
        }
    }
    return PLIM_OK;
}

/* ---- places ------------------------------------------------------------ */

/* Of a paged tensor, for the visit that instruction `at` belongs to. */
static struct place place_visited(const struct builder *builder, const struct tensor *tensor, int at)
{
    int *m = &builder->visit[tensor->id]; /* instructions are placed in order: it never goes back */
    if (*m == NOWHERE)
        return (struct place){.space = SPACE_NONE};
    while (*m + 1 < builder->move_count && builder->move[*m + 1].root == tensor->id && builder->move[*m].last < at)
        ++*m;
    uint64_t offset = transfer_offset(builder->phase->instance[builder->move[*m].returned].offset);
    bool pieces = home_of(builder, tensor)->pieces > 1;
    return (struct place){.space = pieces ? SPACE_PAGE : SPACE_TENSOR_ARENA, .offset = offset};
}

/* Where instruction `at` finds the tensor. */
static struct place place_of(const struct builder *builder, const struct tensor *tensor, int at)
{
    if (tensor->kind == KIND_INPUT)
        return (struct place){.space = SPACE_BATCH, .offset = (uint64_t)tensor->column};
    if (home_of(builder, tensor))
        return place_visited(builder, tensor, at);
    if (!is_value(tensor))
        return (struct place){.space = SPACE_TENSOR_ARENA,
                              .offset = builder->program->persistent_offset[builder->persistent[tensor->id]]};
    const struct life *life = &builder->life[builder->life[tensor->id].root];
    if (life->move != NOWHERE) {
        const struct move *move = &builder->move[life->move];
        int instance = at < move->step[MOVE_IN_DONE] ? life->instance : move->returned;
        return (struct place){.space = SPACE_TENSOR_ARENA,
                              .offset = transfer_offset(builder->phase->instance[instance].offset)};
    }
    if (life->instance != NOWHERE)
        return (struct place){.space = SPACE_TENSOR_ARENA, .offset = builder->phase->instance[life->instance].offset};
    return (struct place){.space = SPACE_WORKER, .offset = life->offset};
}

static struct place place_operand(const struct builder *builder, const struct tensor *tensor, enum part part, int at)
{
    struct place place = {.space = SPACE_NONE};
    if (tensor)
        place = place_of(builder, tensor, at);
    if (part == PART_CUT && place.space != SPACE_NONE)
        place.row_bytes = tensor_row_bytes(tensor);
    return place;
}

static void place_sum(const struct builder *builder, struct instruction *instruction, struct task *task, int k)
{
    const struct tensor *tensor = task->node->output[k];
    int partial = builder->partial[task->node->id * MOST_OUTPUTS + k];
    if (partial == NOWHERE)
        return;
    struct fold fold = {
        .from = builder->phase->instance[partial].offset,
        .stride = layout_bytes(tensor_bytes(tensor)),
        .to = task->output[k].offset,
        .count = shape_count(&tensor->shape),
        .parts = task->sums.parts,
        .type = tensor->type,
    };
    task->output[k].offset = fold.from;
    task->output[k].part_bytes = fold.stride;
    instruction->fold[instruction->fold_count++] = fold;
}

static void place_task(const struct builder *builder, struct instruction *instruction, struct task *task)
{
    const struct node *node = task->node;
    const struct cut *cut = &builder->cut[node->id];
    int at = (int)(instruction - builder->phase->instruction);
    for (int i = 0; i < node->input_count; i++)
        task->input[i] = place_operand(builder, node->input[i], cut->input[i], at);
    for (int k = 0; k < node->output_count; k++) {
        task->output[k] = place_operand(builder, node->output[k], cut->output[k], at);
        place_sum(builder, instruction, task, k);
    }
    if (builder->pack[node->id] != NOWHERE)
        task->pack = builder->phase->instance[builder->pack[node->id]].offset;
}

static int count_folds(const struct builder *builder, const struct instruction *instruction)
{
    int count = 0;
    for (int t = 0; t < instruction->task_count; t++)
        for (int k = 0; k < instruction->task[t].node->output_count; k++)
            count += builder->partial[instruction->task[t].node->id * MOST_OUTPUTS + k] != NOWHERE;
    return count;
}

/* Local values have no place here: they are gone when a slice is done. Nor have paged tensors: they come and go. */
static plim_status place_tensors(struct builder *builder, plim_error *error)
{
    struct graph *graph = builder->graph;
    struct phase *phase = builder->phase;
    phase->place = arena_array(&builder->program->arena, (size_t)graph->tensor_count, sizeof(*phase->place));
    if (!phase->place)
        return program_refused(builder->program, error);
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = graph->tensor[t];
        bool absent = (is_value(tensor) && !tensor->producer) || home_of(builder, tensor);
        struct place place = absent ? (struct place){.space = SPACE_NONE} : place_of(builder, tensor, 0);
        phase->place[t] = place.space == SPACE_WORKER ? (struct place){.space = SPACE_NONE} : place;
    }
    return PLIM_OK;
}

plim_status tasks_place(struct builder *builder, plim_error *error)
{
    for (int i = 0; i < builder->phase->instruction_count; i++) {
        struct instruction *instruction = &builder->phase->instruction[i];
        int folds = count_folds(builder, instruction);
        instruction->fold =
            folds ? arena_array(&builder->program->arena, (size_t)folds, sizeof(*instruction->fold)) : NULL;
        if (folds && !instruction->fold)
            return program_refused(builder->program, error);
        for (int t = 0; t < instruction->task_count; t++)
            place_task(builder, instruction, &instruction->task[t]);
    }
    return place_tensors(builder, error);
}
