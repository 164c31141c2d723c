/* model.c - reading the list of layers, and building graphs from it.

   A model can be built many times (other batches, training, evaluation); the
   weights keep their names and order, so what was built is matched by name. */
#include "model/model.h"

#include <string.h>

#include "model/layer_options.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define LAYER(name) &layer_##name,
const struct layer_type *const all_layers[] = {
#include "model/layers.def"
};
#undef LAYER
const int all_layers_count = LENGTH(all_layers);

/* Keras's other layers: refused by name. */
#define KERAS(name) #name,
static const char *const keras_layers[] = {
#include "model/keras_layers.def"
};
#undef KERAS

void layer_place(char out[256], const struct layer *layer)
{
    struct yaml at = {.line = layer->line, .column = layer->column};
    yaml_place(out, layer->model->job, &at);
}

/* An arena asks for whole blocks: that is what did not fit. */
static plim_status no_room(const struct arena *arena, size_t bytes, plim_error *error)
{
    return budget_refused(arena->budget, arena->tag, bytes > arena->block_bytes ? bytes : arena->block_bytes, error);
}

/* ---- reading ---- */

static plim_status find_type(const struct layer_type **out, const char *word, const char *where, plim_error *error)
{
    const char *names[LENGTH(all_layers)];
    for (int i = 0; i < all_layers_count; i++) {
        const struct layer_type *type = all_layers[i];
        names[i] = type->name;
        if (strcmp(word, type->name) == 0 || (type->alias && strcmp(word, type->alias) == 0)) {
            *out = type;
            return PLIM_OK;
        }
    }
    return option_unknown("layer", word, where, names, all_layers_count, keras_layers, LENGTH(keras_layers), error);
}

/* Names go into files and onto terminals: what a terminal would obey is none. */
static bool is_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return *name != 0;
}

/* Keras numbers by class: dense, dense_1, ...; layers with a name of their
   own are not counted. */
static plim_status name_layer(struct layer *layer, int same_before, plim_error *error)
{
    struct model *model = layer->model;
    const struct layer_words *words = layer->options;
    char where[256];
    layer_place(where, layer);
    if (words->name && !is_name(words->name))
        return fail_at(error, PLIM_BAD_JOB, where, "name: '%s' is empty, or has a '/' or a control character",
                       words->name);
    if (words->name)
        layer->name = arena_string(&model->arena, words->name);
    else if (same_before)
        layer->name = arena_format(&model->arena, "%s_%d", layer->type->snake, same_before);
    else
        layer->name = arena_string(&model->arena, layer->type->snake);
    if (!layer->name)
        return no_room(&model->arena, 64, error);
    for (const struct layer *other = model->layer; other < layer; other++)
        if (strcmp(other->name, layer->name) == 0)
            return fail_at(error, PLIM_BAD_JOB, where, "two layers are named '%s'", layer->name);
    return PLIM_OK;
}

static int count_unnamed(const struct layer *layer)
{
    int count = 0;
    for (const struct layer *other = layer->model->layer; other < layer; other++)
        count += other->type == layer->type && !((const struct layer_words *)other->options)->name;
    return count;
}

/* `Flatten`, or `Dense: {...}`. */
static plim_status read_layer(struct layer *layer, const struct yaml *entry, plim_error *error)
{
    struct model *model = layer->model;
    char where[256];
    bool map = entry->kind == YAML_MAP && entry->count == 1;
    layer->line = map ? entry->first->key_line : entry->line;
    layer->column = map ? entry->first->key_column : entry->column;
    layer_place(where, layer);
    if (!map && (entry->kind != YAML_SCALAR || entry->is_null))
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "expected one layer an entry"), "- Dense: {units: 10}");
    TRY(find_type(&layer->type, map ? entry->first->key : entry->text, where, error));
    layer->options = arena_take(&model->arena, layer->type->options_bytes);
    if (!layer->options)
        return no_room(&model->arena, layer->type->options_bytes, error);
    TRY(layer->type->read(layer, map ? entry->first : NULL, error));
    TRY(name_layer(layer, count_unnamed(layer), error));
    model->layer_count++;
    return PLIM_OK;
}

static plim_status check_list(const char *job, const struct yaml *list, plim_error *error)
{
    char where[256];
    yaml_place(where, job, list);
    if (list->kind == YAML_SCALAR && !list->is_null)
        return fail_at(error, PLIM_UNSUPPORTED, where,
                       "model: reading '%s' is not supported yet; give a list of layers", list->text);
    if (list->kind != YAML_LIST || list->count == 0)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "model: expected a list of layers"),
                    "- Dense: {units: 10}");
    return PLIM_OK;
}

static plim_status make_model(struct model **out, struct budget *budget, const char *job, int layers, plim_error *error)
{
    struct arena arena;
    arena_init(&arena, budget, TAG_PLANNER);
    struct model *model = arena_take(&arena, sizeof *model);
    if (!model) {
        arena_release(&arena);
        return no_room(&arena, sizeof *model, error);
    }
    model->arena = arena;
    model->name = "sequential";
    model->job = arena_string(&model->arena, job);
    model->layer = arena_array(&model->arena, (size_t)layers, sizeof *model->layer);
    model->weight = arena_array(&model->arena, (size_t)layers * MOST_LAYER_WEIGHTS, sizeof *model->weight);
    if (!model->job || !model->layer || !model->weight) {
        plim_status status = no_room(&model->arena, (size_t)layers * sizeof *model->layer, error);
        model_free(model);
        return status;
    }
    *out = model;
    return PLIM_OK;
}

plim_status model_read(struct model **out, struct budget *budget, const char *job, const struct yaml *list,
                       plim_error *error)
{
    struct model *model = NULL;
    TRY(check_list(job, list, error));
    TRY(make_model(&model, budget, job, list->count, error));
    for (const struct yaml *entry = list->first; entry; entry = entry->next) {
        struct layer *layer = &model->layer[model->layer_count];
        layer->model = model;
        plim_status status = read_layer(layer, entry, error);
        if (status != PLIM_OK) {
            model_free(model);
            return status;
        }
    }
    *out = model;
    return PLIM_OK;
}

void model_free(struct model *model)
{
    if (!model)
        return;
    struct arena arena = model->arena; /* the model lies in it */
    arena_release(&arena);
}

/* ---- building ---- */

/* The name of weight number `i`: the same in every build. */
static const char *weight_name(struct model *model, int i, const struct layer *layer, const char *suffix)
{
    size_t length = strlen(layer->name);
    const char *old = model->weight[i].name;
    if (old && strncmp(old, layer->name, length) == 0 && old[length] == '/' && strcmp(old + length + 1, suffix) == 0)
        return old;
    return arena_format(&model->arena, "%s/%s", layer->name, suffix);
}

static struct tensor *add_weight(struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                                 struct initializer initializer, bool trainable)
{
    struct model *model = layer->model;
    if (graph->failed)
        return NULL;
    const char *name = weight_name(model, model->weight_count, layer, suffix);
    if (!name) {
        graph->failed = no_room(&model->arena, 64, &graph->error);
        return NULL;
    }
    struct tensor *tensor = graph_weight(graph, name, TYPE_F32, shape, trainable);
    if (!tensor)
        return NULL;
    model->weight[model->weight_count++] = (struct weight){
        .name = name, .layer = layer, .tensor = tensor, .initializer = initializer, .trainable = trainable};
    layer->parameters += shape_count(&shape);
    layer->trainable_parameters += trainable ? shape_count(&shape) : 0;
    return tensor;
}

struct tensor *model_weight(struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                            struct initializer initializer)
{
    const struct layer_words *words = layer->options;
    return add_weight(layer, graph, suffix, shape, initializer, words->trainable);
}

struct tensor *model_fixed_weight(struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                                  struct initializer initializer)
{
    return add_weight(layer, graph, suffix, shape, initializer, false);
}

struct tensor *model_iteration(struct model *model, struct graph *graph)
{
    const struct shape one = {.rank = 1, .dim = {1}};
    if (!model->iteration)
        model->iteration = graph_state(graph, "optimizer/iteration", TYPE_I64, one);
    return model->iteration;
}

static struct tensor *column_input(struct graph *graph, const char *name, int column, const struct column_spec *spec)
{
    struct shape shape = {.rank = 1, .dim = {graph->batch}};
    if (spec->shape.rank >= MOST_AXES) {
        graph_fail(graph, PLIM_BAD_DATA, "%s: elements of rank %d; at most %d", name, spec->shape.rank, MOST_AXES - 1);
        return NULL;
    }
    for (int i = 0; i < spec->shape.rank; i++)
        shape.dim[shape.rank++] = spec->shape.dim[i];
    return graph_input(graph, name, column, spec->type, shape);
}

/* What is not float32 becomes it, unless a Rescaling does that anyway. */
static struct tensor *cast_input(struct graph *graph, const struct model *model, struct tensor *x)
{
    struct rescale_attributes same = {.scale = 1.0, .single = 1};
    int first = 0;
    while (first < model->layer_count - 1 && model->layer[first].type->hidden)
        first++;
    if (!x || x->type == TYPE_F32)
        return x;
    if (x->type != TYPE_F64 && model->layer[first].type == &layer_rescaling)
        return x;
    graph->layer = "input";
    return graph_add(graph, &op_rescale, &x, 1, &same, sizeof same);
}

/* Says in which line of the job file the layer stands. */
static plim_status failed_at(const struct graph *graph, const struct layer *layer, plim_error *error)
{
    char where[256];
    plim_status status = graph_check(graph, error);
    layer_place(where, layer);
    if (status == PLIM_OK || status == PLIM_OVER_BUDGET || status == PLIM_NO_MEMORY)
        return status;
    if (status == PLIM_BAD_MODEL) { /* what ops call a model, people wrote into the job file */
        status = PLIM_BAD_JOB;
        if (error)
            error->code = status;
    }
    return place(error, status, where);
}

static plim_status build_layers(struct tensor **out, struct graph *graph, struct model *model, struct tensor *x,
                                plim_error *error)
{
    for (int i = 0; i < model->layer_count; i++) {
        struct layer *layer = &model->layer[i];
        layer->parameters = layer->trainable_parameters = 0;
        graph->layer = layer->name;
        x = layer->type->merge ? layer->type->merge(layer, graph, &x, 1) : layer->type->build(layer, graph, x);
        TRY(failed_at(graph, layer, error));
        if (!x)
            return fail(error, PLIM_INTERNAL, "%s: made nothing", layer->name);
        layer->output = x->shape;
        layer->output_bytes = (uint64_t)shape_count(&x->shape) * type_bytes(x->type);
    }
    *out = x;
    return PLIM_OK;
}

static plim_status take_gradients(struct tensor ***out, struct graph *graph, struct model *model, struct tensor *loss,
                                  plim_error *error)
{
    size_t bytes = (size_t)(model->weight_count ? model->weight_count : 1) * sizeof(struct tensor *);
    struct tensor **of = arena_take(&graph->arena, bytes), **gradients = arena_take(&graph->arena, bytes);
    int count = 0;
    if (!of || !gradients)
        return no_room(&graph->arena, bytes, error);
    for (int i = 0; i < model->weight_count; i++)
        if (model->weight[i].trainable)
            of[count++] = model->weight[i].tensor;
    if (count == 0)
        return fail_at(error, PLIM_BAD_JOB, model->job, "the model has no weights to train");
    TRY(gradient_append(graph, loss, of, count, gradients, error));
    *out = gradients;
    return PLIM_OK;
}

/* Gradients, an update for each weight, and one step counted. */
static plim_status build_backward(struct model_tensors *out, struct graph *graph, struct model *model,
                                  plim_error *error)
{
    const struct optimizer *optimizer = &model->training->optimizer;
    const struct shape one = {.rank = 1, .dim = {1}};
    struct tensor **gradients = NULL;
    graph->backward = true;
    TRY(take_gradients(&gradients, graph, model, out->loss, error));
    graph->backward = true;
    out->iteration = model_iteration(model, graph);
    out->learning_rate = graph_state(graph, "optimizer/learning_rate", TYPE_F32, one);
    for (int i = 0, k = 0; i < model->weight_count; i++) {
        const struct weight *weight = &model->weight[i];
        struct tensor *gradient = weight->trainable ? gradients[k++] : NULL;
        graph->layer = weight->layer->name;
        if (gradient)
            optimizer->type->update(optimizer, graph, weight->tensor, gradient, out->learning_rate, out->iteration);
    }
    graph->layer = "optimizer";
    unary(graph, &op_count_step, out->iteration);
    graph->backward = false;
    return graph_check(graph, error);
}

static plim_status build(struct model_tensors *out, struct graph *graph, struct model *model,
                         const struct column_spec *input, const struct column_spec *label, bool backward,
                         plim_error *error)
{
    struct model_tensors tensors = {0};
    struct tensor *y = column_input(graph, "label", 1, label);
    struct tensor *x = cast_input(graph, model, column_input(graph, "input", 0, input));
    TRY(failed_at(graph, &model->layer[0], error));
    TRY(build_layers(&tensors.output, graph, model, x, error));
    losses_add(&tensors, graph, model, tensors.output, y);
    TRY(failed_at(graph, &model->layer[model->layer_count - 1], error));
    TRY(fuse(graph, error));
    if (backward)
        TRY(build_backward(&tensors, graph, model, error));
    *out = tensors;
    return PLIM_OK;
}

plim_status model_build(struct model_tensors *out, struct graph *graph, struct model *model,
                        const struct column_spec *input, const struct column_spec *label,
                        const struct training *training, bool backward, plim_error *error)
{
    model->weight_count = 0;
    model->from_logits = false;
    model->iteration = NULL;
    model->fitting = backward;
    model->training = training;
    plim_status status = build(out, graph, model, input, label, backward, error);
    model->training = NULL; /* the caller's */
    graph->layer = NULL;
    return status;
}
