/* api_graph.c - graphs for C programs: values, and ops by name. */
#include "api/api_graph.h"

#include <limits.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"
#include "transform/transform.h"

_Static_assert(PLIM_MOST_AXES == MOST_AXES, "shapes go out as they are");

/* ---- making and freeing ---- */

#define MOST_BATCH ((int64_t)1 << 40) /* far beyond any memory: products of extents stay in 64 bits */

static plim_status check_options(const plim_graph_options *options, plim_error *error)
{
    TRY(need_argument(options, "the options of the graph", error));
    if (options->batch < 1 || options->batch > MOST_BATCH)
        return fail(error, PLIM_USAGE, "a graph for batches of %lld samples", (long long)options->batch);
    return PLIM_OK;
}

plim_status plim_graph_make(plim_graph **out, plim_budget *budget, const plim_graph_options *options, plim_error *error)
{
    TRY(need_argument(out, "where the graph is to go", error));
    TRY(need_argument(budget, "the budget", error));
    TRY(check_options(options, error));
    plim_graph *graph;
    TRY(budget_alloc(&graph, budget->inner, TAG_PLANNER, sizeof *graph, error));
    atomic_init(&graph->references, 1);
    graph->budget = budget->inner;
    graph->training = options->training;
    graph->layer_training = (struct training){.seed = options->seed};
    graph->last_weight = &graph->weight;
    graph->last_layers = &graph->layers;
    graph_init(&graph->inner, budget->inner, options->batch);
    return OPENED(out, graph, api_graph_unref, graph_check(&graph->inner, error));
}

void api_graph_unref(plim_graph *graph)
{
    if (atomic_fetch_sub(&graph->references, 1) != 1)
        return;
    for (struct plim_layers *layers = graph->layers; layers; layers = layers->next)
        model_free(layers->model);
    graph_release(&graph->inner);
    budget_give(graph->budget, TAG_PLANNER, graph, sizeof *graph);
}

void plim_graph_free(plim_graph *graph)
{
    if (graph && busy_give_up(&graph->busy))
        api_graph_unref(graph);
}

bool graph_call_begin(struct graph_call *call, plim_graph *graph, bool builds)
{
    call->graph = NULL;
    if (!graph)
        return false;
    if (!busy_enter(&graph->busy)) {
        if (builds) /* what it was to add is missing */
            atomic_store(&graph->mixed, true);
        return false;
    }
    floats_begin(&call->host);
    call->graph = graph;
    return true;
}

void graph_call_end(struct graph_call *call)
{
    if (!call->graph)
        return;
    floats_end(&call->host);
    if (!busy_leave(&call->graph->busy))
        api_graph_unref(call->graph);
}

plim_status api_graph_error(const plim_graph *graph, plim_error *error)
{
    if (atomic_load(&graph->mixed))
        return hint(error,
                    fail(error, PLIM_USAGE, "two threads worked on this graph at once; one of the calls did nothing"),
                    "a graph belongs to one thread at a time");
    return graph_check(&graph->inner, error);
}

plim_status plim_graph_check(const plim_graph *graph, plim_error *error)
{
    TRY(need_argument(graph, "the graph", error));
    plim_graph *turn = (plim_graph *)(uintptr_t)graph; /* asking is const for the caller */
    struct graph_call call;
    if (!graph_call_begin(&call, turn, false))
        return fail(error, PLIM_USAGE, "the graph is at work already, for another call");
    plim_status status = api_graph_error(graph, error);
    graph_call_end(&call);
    return status;
}

/* ---- errors ---- */

plim_status api_keep_error(plim_graph *graph, plim_status status, const plim_error *error)
{
    if (status != PLIM_OK && !graph->inner.failed) {
        graph->inner.failed = status;
        graph->inner.error = *error;
    }
    return status;
}

bool api_open(plim_graph *graph, const char *who)
{
    if (graph->finished)
        graph_fail(&graph->inner, PLIM_USAGE, "%s: a program was made of this graph, nothing can be added", who);
    return !graph->inner.failed;
}

bool api_usable(plim_graph *graph, const char *who, const plim_value *value)
{
    const struct tensor *tensor = tensor_of(value);
    struct graph *inner = &graph->inner;
    if (!api_open(graph, who))
        return false;
    if (!tensor)
        graph_fail(inner, PLIM_USAGE, "%s: an input is NULL", who);
    else if (tensor->gone)
        graph_fail(inner, PLIM_USAGE,
                   "%s: %s was taken into another op when gradients were taken: use it, or make it a result, before",
                   who, tensor->name);
    else if (tensor->id >= inner->tensor_count || inner->tensor[tensor->id] != tensor)
        graph_fail(inner, PLIM_USAGE, "%s: %s is a value of another graph", who, tensor->name);
    return !inner->failed;
}

#define MOST_REPEATED 1024 /* a value may be an input several times */

bool api_usable_all(plim_graph *graph, const char *who, plim_value *const *values, int count)
{
    bool good = api_open(graph, who);
    if (count < 0 || count > graph->inner.tensor_count + MOST_REPEATED || (count && !values)) {
        graph_fail(&graph->inner, PLIM_USAGE, "%s: %d inputs%s", who, count, values ? "" : ", and their list is NULL");
        return false;
    }
    for (int i = 0; i < count && good; i++)
        good = api_usable(graph, who, values[i]);
    return good;
}

/* ---- values that no op makes ---- */

static bool read_shape(struct shape *out, plim_graph *graph, const char *name, int batch, const int64_t *shape,
                       int rank)
{
    if (!name || !*name)
        graph_fail(&graph->inner, PLIM_USAGE, "a value needs a name");
    else if (rank < 0 || rank > MOST_AXES - batch)
        graph_fail(&graph->inner, PLIM_USAGE, "%s: %d axes; there are 0 to %d", name, rank, MOST_AXES - batch);
    else if (rank && !shape)
        graph_fail(&graph->inner, PLIM_USAGE, "%s: its shape is NULL", name);
    if (!api_open(graph, name ? name : ""))
        return false;
    *out = (struct shape){.rank = rank + batch, .dim = {graph->inner.batch}};
    for (int i = 0; i < rank; i++)
        out->dim[batch + i] = shape[i];
    if (out->rank == 0)
        *out = shape_of(1, (int64_t[]){1});
    return true;
}

static bool read_type(enum type *out, plim_graph *graph, const char *name, plim_type type)
{
    if (!api_type(out, type) || *out >= TYPE_COUNT) {
        graph_fail(&graph->inner, PLIM_USAGE, "%s: values of type %d are not computed with", name, (int)type);
        return false;
    }
    return true;
}

plim_value *plim_graph_input(plim_graph *graph, const char *name, plim_type type, const int64_t *shape, int rank)
{
    struct shape whole;
    enum type inner;
    GRAPH_CALL(graph, NULL);
    if (!read_shape(&whole, graph, name, 1, shape, rank) || !read_type(&inner, graph, name, type))
        return NULL;
    if (graph->columns == MOST_COLUMNS)
        return graph_fail(&graph->inner, PLIM_USAGE, "%s: at most %d inputs", name, MOST_COLUMNS);
    struct tensor *input = graph_input(&graph->inner, name, graph->columns, inner, whole);
    graph->input[graph->columns++] = input;
    return value_of(input);
}

/* Keras's: in and out of a matrix, times what a window covers. */
static void set_fans(struct initializer *out, const struct shape *shape)
{
    int64_t last = shape->dim[shape->rank - 1], before = shape->rank > 1 ? shape->dim[shape->rank - 2] : last;
    int64_t window = 1;
    for (int i = 0; i < shape->rank - 2; i++)
        window *= shape->dim[i];
    out->fan_in = before * window;
    out->fan_out = last * window;
    out->columns = (int32_t)last;
}

static plim_status read_initializer(struct initializer *out, plim_graph *graph, const char *name, const char *text,
                                    plim_error *error)
{
    struct yaml *yaml;
    if (!text)
        return PLIM_OK;
    TRY(yaml_parse(&yaml, &graph->inner.arena, name, text, strlen(text), error));
    return initializer_read(out, name, "initializer", yaml, error);
}

/* Names that the library gives itself. */
static bool is_taken(const char *name)
{
    return strncmp(name, "optimizer/", 10) == 0 || strncmp(name, "constant/", 9) == 0;
}

plim_value *plim_graph_weight(plim_graph *graph, const char *name, const int64_t *shape, int rank,
                              const char *initializer, bool trainable)
{
    struct initializer first = {.kind = INITIAL_ZEROS};
    plim_error error = {0};
    struct shape whole;
    GRAPH_CALL(graph, NULL);
    if (!read_shape(&whole, graph, name, 0, shape, rank))
        return NULL;
    if (is_taken(name))
        return graph_fail(&graph->inner, PLIM_USAGE, "%s: names under optimizer/ and constant/ are the library's",
                          name);
    if (api_keep_error(graph, read_initializer(&first, graph, name, initializer, &error), &error))
        return NULL;
    struct tensor *tensor = graph_weight(&graph->inner, name, TYPE_F32, whole, trainable);
    struct api_weight *weight = tensor ? arena_take(&graph->inner.arena, sizeof *weight) : NULL;
    if (!weight)
        return graph_refused(&graph->inner, sizeof *weight);
    set_fans(&first, &tensor->shape);
    *weight = (struct api_weight){.tensor = tensor, .initializer = first};
    *graph->last_weight = weight;
    graph->last_weight = &weight->next;
    return value_of(tensor);
}

plim_value *plim_graph_state(plim_graph *graph, const char *name, plim_type type, const int64_t *shape, int rank,
                             double initial)
{
    struct shape whole;
    enum type inner;
    GRAPH_CALL(graph, NULL);
    if (!read_shape(&whole, graph, name, 0, shape, rank) || !read_type(&inner, graph, name, type))
        return NULL;
    if (is_taken(name))
        return graph_fail(&graph->inner, PLIM_USAGE, "%s: names under optimizer/ and constant/ are the library's",
                          name);
    struct tensor *state = graph_state(&graph->inner, name, inner, whole);
    if (state)
        state->initial = initial;
    return value_of(state);
}

plim_value *plim_graph_constant(plim_graph *graph, plim_type type, double number)
{
    enum type inner;
    GRAPH_CALL(graph, NULL);
    if (!api_open(graph, "a constant") || !read_type(&inner, graph, "a constant", type))
        return NULL;
    return value_of(op_number(&graph->inner, inner, number));
}

plim_value *plim_graph_find(const plim_graph *graph, const char *name)
{
    GRAPH_ASKS((plim_graph *)(uintptr_t)graph, NULL);
    return name ? value_of(graph_named(&graph->inner, name)) : NULL;
}

/* The first `most` into weights; how many there are of them. */
static int list_weights(plim_value **weights, int most, const plim_graph *graph)
{
    int count = 0;
    for (int t = 0; t < graph->inner.tensor_count && count < most; t++) {
        struct tensor *tensor = graph->inner.tensor[t];
        if (tensor->kind != KIND_WEIGHT || !tensor->trainable)
            continue;
        if (weights)
            weights[count] = value_of(tensor);
        count++;
    }
    return count;
}

int plim_graph_weights(plim_value **weights, int most, const plim_graph *graph)
{
    GRAPH_ASKS((plim_graph *)(uintptr_t)graph, 0);
    return weights ? list_weights(weights, most, graph) : 0;
}

int plim_graph_weight_count(const plim_graph *graph)
{
    GRAPH_ASKS((plim_graph *)(uintptr_t)graph, 0);
    return list_weights(NULL, INT_MAX, graph);
}

/* ---- ops ---- */

plim_value *plim_op(plim_graph *graph, const char *name, plim_value *const *inputs, int count, const char *words)
{
    GRAPH_CALL(graph, NULL);
    if (!name)
        return graph_fail(&graph->inner, PLIM_USAGE, "the name of an op is NULL");
    if (count < 0 || count > MOST_WORD_INPUTS)
        return graph_fail(&graph->inner, PLIM_USAGE, "%s: %d inputs", name, count);
    if (!api_usable_all(graph, name, inputs, count))
        return NULL;
    graph->inner.layer = NULL;
    return value_of(op_word_apply(&graph->inner, name, (struct tensor *const *)inputs, count, words));
}

plim_value *plim_op_output(plim_graph *graph, plim_value *value, int k)
{
    GRAPH_CALL(graph, NULL);
    if (!api_usable(graph, "plim_op_output", value))
        return NULL;
    struct tensor *output = graph_output(tensor_of(value), k);
    if (!output)
        graph_fail(&graph->inner, PLIM_USAGE, "%s has no output %d", tensor_of(value)->name, k);
    return value_of(output);
}

#define MOST_PARTS 65536

void plim_op_split(plim_value **parts, plim_graph *graph, plim_value *value, int axis, const int64_t *sizes, int count)
{
    struct tensor *x = tensor_of(value);
    int64_t sum = 0;
    bool there = parts && count > 0 && count <= MOST_PARTS;
    for (int i = 0; there && i < count; i++)
        parts[i] = NULL;
    GRAPH_CALL(graph, );
    if (!api_usable(graph, "split", value))
        return;
    if (!there || !sizes) {
        graph_fail(&graph->inner, PLIM_USAGE, "split: 1 to %d parts, with a list of their sizes", MOST_PARTS);
        return;
    }
    int from_start = axis < 0 ? axis + x->shape.rank : axis; /* below 0 for what is far out */
    for (int i = 0; i < count && sizes[i] > 0 && sum >= 0; i++)
        sum = sizes[i] > INT64_MAX - sum ? -1 : sum + sizes[i];
    if (from_start < 1 || from_start >= x->shape.rank || sum != x->shape.dim[from_start]) {
        char shape[96];
        shape_text(shape, sizeof shape, &x->shape, x->batched);
        graph_fail(&graph->inner, PLIM_BAD_MODEL, "split: %d sizes do not add up to axis %d of %s", count, axis, shape);
        return;
    }
    split((struct tensor **)parts, &graph->inner, x, from_start, sizes, count);
}

static plim_status read_loss(struct loss *out, plim_graph *graph, const char *words, plim_error *error)
{
    enum loss_kind kind;
    struct yaml *yaml;
    TRY(need_argument(words, "the name of the loss", error));
    TRY(yaml_parse(&yaml, &graph->inner.arena, "loss", words, strlen(words), error));
    return loss_read(out, &kind, "loss", yaml, error);
}

plim_value *plim_loss(plim_graph *graph, const char *words, plim_value *output, plim_value *label)
{
    struct loss loss;
    plim_error error = {0};
    GRAPH_CALL(graph, NULL);
    if (!api_usable_all(graph, "loss", (plim_value *[]){output, label}, 2) ||
        api_keep_error(graph, read_loss(&loss, graph, words, &error), &error))
        return NULL;
    struct loss_operands operands = {.output = tensor_of(output), .label = tensor_of(label)};
    if (!loss.from_logits)
        operands.output = before_activation(&operands.logits, loss.type, operands.output);
    graph->inner.layer = "loss";
    return value_of(loss_add(&graph->inner, &loss, &operands));
}

/* ---- results, asking ---- */

void plim_graph_result(plim_graph *graph, plim_value *value, const char *name)
{
    GRAPH_CALL(graph, );
    if (!api_usable(graph, name ? name : "a result", value))
        return;
    if (!name || !*name) {
        graph_fail(&graph->inner, PLIM_USAGE, "a result needs a name");
        return;
    }
    if (tensor_of(value)->producer)
        graph_result(&graph->inner, tensor_of(value), name);
    else if (tensor_of(value)->kind == KIND_INPUT)
        graph_fail(&graph->inner, PLIM_USAGE, "%s: an input is no result; weights and states are read as they are",
                   name);
}

int plim_value_shape(int64_t shape[PLIM_MOST_AXES], const plim_value *value)
{
    const struct tensor *tensor = tensor_of(value);
    for (int i = 0; tensor && shape && i < tensor->shape.rank; i++)
        shape[i] = tensor->shape.dim[i];
    return tensor ? tensor->shape.rank : 0;
}

plim_type plim_value_type(const plim_value *value)
{
    return value ? api_type_outside(tensor_of(value)->type) : PLIM_OTHER;
}

/* Somebody will read something of it, or it writes something. */
static bool has_purpose(const struct graph *graph)
{
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensor[t]->kind == KIND_RESULT)
            return true;
    for (int n = 0; n < graph->node_count; n++)
        if (graph->node[n]->op->updates)
            return true;
    return false;
}

plim_status api_graph_finish(plim_graph *graph, plim_error *error)
{
    struct graph *inner = &graph->inner;
    TRY(api_graph_error(graph, error));
    if (graph->finished)
        return PLIM_OK;
    if (!has_purpose(inner))
        return fail(error, PLIM_USAGE, "the graph computes nothing: it has no result and no update");
    inner->layer = NULL;
    if (!graph->fused)
        TRY(fuse(inner, error));
    graph->fused = true;
    if (graph->iteration && !graph->counts)
        binary(inner, &op_count_step, graph->iteration, NULL);
    graph->counts = true;
    TRY(prune(inner, error));
    TRY(encode_kept(inner, error));
    TRY(recompute(inner, error));
    graph->finished = true;
    return PLIM_OK;
}
