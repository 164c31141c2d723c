/* api_program.c - programs for C: graphs planned over one tensor arena, run batch by batch.

   All that a step needs is taken when the program is made; running it takes nothing. */
#include <string.h>

#include "api/api_program.h"
#include "base/memory/budget_alloc.h"
#include "base/threads/workers.h"
#include "ops/sample_state.h"
#include "transform/in_place.h"

#define MOST_THREADS 256

static const int phases[MOST_GRAPHS] = {PHASE_TRAIN, PHASE_EVALUATE};

/* ---- making ---- */

static plim_status take_graphs(struct plim_program *program, plim_graph *const *graphs, int count, plim_error *error)
{
    for (int g = 0; g < count; g++)
        TRY(api_graph_finish(graphs[g], error));
    for (int g = 0; g < count; g++) {
        program->graph[g] = graphs[g];
        atomic_fetch_add(&graphs[g]->references, 1);
    }
    program->count = count;
    return PLIM_OK;
}

/* The number of a weight or state among those of the plan, which knows them by name; -1: it has none. *guess: where to
   look first, because they come in the order of the graph. */
static int persistent_index(const struct program *plan, const char *name, int *guess)
{
    for (int n = 0; n < plan->persistent_count; n++) {
        int i = (*guess + n) % plan->persistent_count;
        if (strcmp(plan->persistent[i]->name, name) == 0) {
            *guess = i + 1;
            return i;
        }
    }
    return -1;
}

static plim_status fill(struct plim_program *program, const struct tensor *tensor, const struct initializer *first,
                        uint64_t seed, int *guess, plim_error *error)
{
    int i = persistent_index(program->plan, tensor->name, guess);
    if (i < 0 || tensor_bytes(program->plan->persistent[i]) != tensor_bytes(tensor)) /* nothing needed it */
        return PLIM_OK;
    initializer_fill(state_piece(&program->machine, i, 0).data, tensor->type, shape_count(&tensor->shape), first, seed,
                     tensor->name);
    return state_store(&program->machine, i, 0, error);
}

static plim_status fill_graph(struct plim_program *program, const plim_graph *graph, plim_error *error)
{
    uint64_t seed = graph->layer_training.seed;
    int guess = 0;
    for (const struct api_weight *weight = graph->weight; weight; weight = weight->next)
        TRY(fill(program, weight->tensor, &weight->initializer, seed, &guess, error));
    for (const struct plim_layers *layers = graph->layers; layers; layers = layers->next)
        for (int i = 0; i < layers->build->weight_count; i++)
            TRY(fill(program, layers->build->weight[i].tensor, &layers->build->weight[i].initializer, seed, &guess,
                     error));
    return PLIM_OK;
}

static plim_status load_keras(struct plim_program *program, const plim_graph *graph, plim_error *error)
{
    struct scratch_disk scratch = {.folder = program->scratch.folder, .limit_bytes = API_DISK};
    for (const struct plim_layers *layers = graph->layers; layers; layers = layers->next)
        if (layers->weights && layers->build->weight_count)
            TRY(keras_weights_load(layers->weights, &program->machine, layers->build, &scratch, error));
    return PLIM_OK;
}

/* The first graph last: where both say how a weight begins, it does. */
static plim_status initialize(struct plim_program *program, plim_error *error)
{
    for (int i = 0; i < program->plan->persistent_count; i++)
        if (program->plan->persistent[i]->kind == KIND_STATE)
            TRY(state_initialize(&program->machine, i, error));
    for (int g = program->count - 1; g >= 0; g--)
        TRY(fill_graph(program, program->graph[g], error));
    for (int g = program->count - 1; g >= 0; g--)
        TRY(load_keras(program, program->graph[g], error));
    return PLIM_OK;
}

static plim_status build(struct plim_program *program, plim_graph *const *graphs, int count, plim_error *error)
{
    uint64_t before = budget_usage(program->budget).now;
    TRY(take_graphs(program, graphs, count, error));
    TRY(api_plan_make(program, error));
    plim_status status = machine_open(&program->machine, program->plan, program->budget, &program->scratch, error);
    if (status == PLIM_OVER_DISK || status == PLIM_IO)
        return hint(error, status, "options.scratch names another folder, options.in_memory does without");
    TRY(status);
    TRY(initialize(program, error));
    program->bytes = budget_usage(program->budget).now - before;
    return PLIM_OK;
}

static plim_status check_arguments(plim_graph *const *graphs, int count, int threads, plim_error *error)
{
    if (count < 1 || count > MOST_GRAPHS)
        return fail(error, PLIM_USAGE, "%d graphs: a program has one or two", count);
    TRY(need_argument(graphs, "the list of graphs", error));
    for (int g = 0; g < count; g++)
        TRY(need_argument(graphs[g], "a graph", error));
    if (count == 2 && (graphs[0] == graphs[1] || graphs[0]->budget != graphs[1]->budget))
        return fail(error, PLIM_USAGE, "the graphs of a program are two, of one budget");
    if (threads < 0 || threads > MOST_THREADS)
        return fail(error, PLIM_USAGE, "%d threads: there are 1 to %d", threads, MOST_THREADS);
    return PLIM_OK;
}

static void release(struct plim_program *program)
{
    machine_close(&program->machine);
    program_free(program->plan);
    if (program->backend)
        program->backend->type->close(program->backend);
    for (int g = 0; g < program->count; g++)
        api_graph_unref(program->graph[g]);
    budget_give(program->budget, TAG_PLANNER, program, program->own_bytes);
}

/* The folder's name stays the caller's: what is needed of it later is copied behind the program. */
static plim_status make(plim_program **out, plim_graph *const *graphs, int count, const plim_program_options *options,
                        plim_error *error)
{
    struct budget *budget = graphs[0]->budget;
    struct plim_program *program;
    const char *folder = options->scratch ? options->scratch : API_SCRATCH;
    size_t bytes = sizeof *program + strlen(folder) + 1;
    TRY(budget_alloc(&program, budget, TAG_PLANNER, bytes, error));
    program->own_bytes = bytes;
    program->budget = budget;
    program->last = -1;
    program->threads = options->threads ? options->threads : cpu_count();
    program->scratch = (struct scratch_disk){.folder = memcpy(program + 1, folder, strlen(folder) + 1),
                                             .limit_bytes = options->disk_bytes ? options->disk_bytes : API_DISK};
    if (options->in_memory)
        program->scratch.limit_bytes = 0;
    return OPENED(out, program, release, build(program, graphs, count, error));
}

plim_status plim_program_make(plim_program **out, plim_graph *const *graphs, int count,
                              const plim_program_options *options, plim_error *error)
{
    struct graph_call call[MOST_GRAPHS];
    const plim_program_options usual = {0};
    int begun = 0;
    options = options ? options : &usual;
    TRY(need_argument(out, "where the program is to go", error));
    TRY(check_arguments(graphs, count, options->threads, error));
    while (begun < count && graph_call_begin(&call[begun], graphs[begun], false))
        begun++;
    plim_status status = begun == count ? make(out, graphs, count, options, error)
                                        : fail(error, PLIM_USAGE, "a graph is at work already, for another call");
    while (begun > 0)
        graph_call_end(&call[--begun]);
    return status;
}

/* ---- one call at a time ---- */

struct program_call {
    struct plim_program *program;
    struct host_floats host;
};

static plim_status begin(struct program_call *call, const plim_program *program, plim_error *error)
{
    TRY(need_argument(program, "the program", error));
    call->program = (plim_program *)(uintptr_t)program; /* reading is const for the caller, and takes its turn */
    if (!busy_enter(&call->program->busy))
        return hint(error, fail(error, PLIM_USAGE, "the program is at work already, for another call"),
                    "wait until that call returns, or make a second program of the same graphs");
    floats_begin(&call->host);
    return PLIM_OK;
}

static plim_status end(struct program_call *call, plim_status status)
{
    floats_end(&call->host);
    if (!busy_leave(&call->program->busy))
        release(call->program);
    return status;
}

void plim_program_free(plim_program *program)
{
    if (program && busy_give_up(&program->busy))
        release(program);
}

uint64_t plim_program_bytes(const plim_program *program)
{
    return program ? program->bytes : 0;
}

/* ---- running ---- */

/* An iterator's rows are read as the graph says: they have to hold as many elements of that type. */
static plim_status check_column(const struct tensor *input, const struct iterator *iterator, plim_error *error)
{
    char wanted[96], given[96];
    const struct spec *spec = iterator_spec(iterator);
    if (input->column >= spec->column_count)
        return fail(error, PLIM_USAGE, "%s: column %d of the batch, which has %d", input->name, input->column,
                    spec->column_count);
    const struct column *column = &spec->column[input->column];
    struct shape shape = iterator_shape(iterator, input->column);
    bool packed = true; /* numbers, not cells of any extent */
    for (int axis = 0; axis < shape.rank; axis++)
        packed &= shape.dim[axis] >= 0;
    if (column->type == input->type && packed && shape_row(&shape) == shape_row(&input->shape))
        return PLIM_OK;
    shape_text(wanted, sizeof wanted, &input->shape, true);
    shape_text(given, sizeof given, &shape, true);
    fail(error, PLIM_USAGE, "%s: the graph takes %s %s, column %d ('%s') of the batch is %s %s", input->name,
         type_name(input->type), wanted, input->column, column->name,
         column->type == TYPE_STRING ? "string" : type_name(column->type), given);
    return hint(error, PLIM_USAGE, "plim_dataset_spec tells what the columns are");
}

static plim_status run(struct plim_program *program, int graph, const plim_batch *batch, plim_error *error)
{
    if (graph < 0 || graph >= program->count)
        return fail(error, PLIM_USAGE, "there is no graph %d, the program has %d", graph, program->count);
    const plim_graph *runs = program->graph[graph];
    if (batch->count < 1 || batch->count > runs->inner.batch)
        return fail(error, PLIM_USAGE, "a batch of %lld samples, the graph takes 1 to %lld", (long long)batch->count,
                    (long long)runs->inner.batch);
    if (batch->count < runs->inner.batch && graph_find_sample_state(&runs->inner))
        return fail(error, PLIM_USAGE, "a batch of %lld samples, a graph with a stateful layer takes %lld",
                    (long long)batch->count, (long long)runs->inner.batch);
    for (int c = 0; c < runs->columns; c++)
        if (!batch->column[c])
            return fail(error, PLIM_USAGE, "column %d of the batch is NULL, the graph has %d", c, runs->columns);
    for (int c = 0; batch->origin && c < runs->columns; c++)
        TRY(check_column(runs->input[c], batch->origin, error));
    program->last = graph;
    return machine_run(&program->machine, phases[graph], (const struct batch *)batch, error);
}

plim_status plim_program_run(plim_program *program, int graph, const plim_batch *batch, plim_error *error)
{
    struct program_call call;
    TRY(need_argument(batch, "the batch", error));
    TRY(begin(&call, program, error));
    return end(&call, run(program, graph, batch, error));
}

/* ---- reading and writing ---- */

/* The number of a weight or state that lies on the disk; -1: it does not. */
static int find_paged(const plim_program *program, const struct tensor *tensor)
{
    int guess = 0, i = program->plan->paged_count ? persistent_index(program->plan, tensor->name, &guess) : -1;
    return i >= 0 && program_home(program->plan, i) ? i : -1;
}

/* Where a value lies now, and how many bytes it has. *data NULL: on the disk. */
static plim_status find(uint8_t **data, size_t *bytes, const plim_program *program, const struct tensor *tensor,
                        plim_error *error)
{
    int g = 0;
    while (tensor && g < program->count &&
           (tensor->gone || tensor->id >= program->graph[g]->inner.tensor_count ||
            program->graph[g]->inner.tensor[tensor->id] != tensor))
        g++;
    if (!tensor || g == program->count)
        return fail(error, PLIM_USAGE, "that is no value of this program's graphs, or nothing there needed it");
    bool lasts = tensor->kind == KIND_WEIGHT || tensor->kind == KIND_STATE;
    *data = lasts || tensor->kind == KIND_RESULT ? machine_data(&program->machine, phases[g], tensor) : NULL;
    *bytes = (size_t)shape_count(&tensor->shape) * type_bytes(tensor->type);
    if (!*data && lasts && find_paged(program, tensor) >= 0)
        return PLIM_OK;
    if (!*data)
        return hint(error, fail(error, PLIM_USAGE, "%s does not outlive its step", tensor->name),
                    "plim_graph_result(graph, value, name) keeps it");
    if (!lasts && program->last != g)
        return fail(error, PLIM_USAGE, "%s: its graph was not the last one to run", tensor->name);
    return PLIM_OK;
}

/* All of a weight or state that lies on the disk. */
static plim_status pages_out(uint8_t *out, struct plim_program *program, const struct tensor *tensor, plim_error *error)
{
    int i = find_paged(program, tensor);
    for (int piece = 0; piece < state_pieces(&program->machine, i); piece++) {
        struct state_bytes bytes;
        TRY(state_load(&bytes, &program->machine, i, piece, error));
        memcpy(out + bytes.first, bytes.data, bytes.bytes);
    }
    return PLIM_OK;
}

static plim_status pages_in(struct plim_program *program, const struct tensor *tensor, const uint8_t *from,
                            plim_error *error)
{
    int i = find_paged(program, tensor);
    for (int piece = 0; piece < state_pieces(&program->machine, i); piece++) {
        struct state_bytes bytes = state_piece(&program->machine, i, piece);
        memcpy(bytes.data, from + bytes.first, bytes.bytes);
        TRY(state_store(&program->machine, i, piece, error));
    }
    return PLIM_OK;
}

static plim_status copy_out(void *out, size_t bytes, struct plim_program *program, const struct tensor *tensor,
                            plim_error *error)
{
    uint8_t *data;
    size_t whole;
    TRY(find(&data, &whole, program, tensor, error));
    size_t row = tensor->batched ? whole / (size_t)tensor->shape.dim[0] : whole;
    if (bytes == 0 || bytes > whole || bytes % row)
        return fail(error, PLIM_USAGE, "%s has %zu bytes%s, %zu are asked for", tensor->name, whole,
                    tensor->batched ? " in rows" : "", bytes);
    if (!data)
        return pages_out(out, program, tensor, error);
    memcpy(out, data, bytes);
    return PLIM_OK;
}

plim_status plim_program_read(void *out, size_t bytes, const plim_program *program, const plim_value *value,
                              plim_error *error)
{
    struct program_call call;
    TRY(need_argument(out, "where the value is to go", error));
    TRY(begin(&call, program, error));
    return end(&call, copy_out(out, bytes, call.program, tensor_of(value), error));
}

static plim_status copy_in(struct plim_program *program, const struct tensor *tensor, const void *from, size_t bytes,
                           plim_error *error)
{
    uint8_t *data;
    size_t whole;
    TRY(find(&data, &whole, program, tensor, error));
    if (tensor->kind == KIND_RESULT)
        return fail(error, PLIM_USAGE, "%s is a result: only weights and states are written", tensor->name);
    if (bytes != whole)
        return fail(error, PLIM_USAGE, "%s has %zu bytes, %zu are given", tensor->name, whole, bytes);
    if (!data)
        return pages_in(program, tensor, from, error);
    memcpy(data, from, bytes);
    return PLIM_OK;
}

plim_status plim_program_write(plim_program *program, const plim_value *value, const void *from, size_t bytes,
                               plim_error *error)
{
    struct program_call call;
    TRY(need_argument(from, "what is to be written", error));
    TRY(begin(&call, program, error));
    return end(&call, copy_in(call.program, tensor_of(value), from, bytes, error));
}

/* Saving writes from a buffer that lies over the results. */
plim_status plim_program_save(plim_program *program, const char *path, plim_error *error)
{
    struct program_call call;
    TRY(need_argument(path, "the path", error));
    TRY(begin(&call, program, error));
    program->last = -1;
    return end(&call, weights_save(path, &program->machine, error));
}

plim_status plim_program_load(plim_program *program, const char *path, plim_error *error)
{
    struct program_call call;
    TRY(need_argument(path, "the path", error));
    TRY(begin(&call, program, error));
    return end(&call, weights_load(path, &program->machine, error));
}
