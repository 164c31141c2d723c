/* model.c - building graphs from a model's uses of layers.

   A model can be built many times (other batches, training, evaluation); the
   weights keep their names and order, so what was built is matched by name. */
#include "model/model.h"
#include "base/text/message.h"

#include <stdio.h>
#include <string.h>

#include "model/layers/layer_options.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define LAYER(name) &layer_##name,
const struct layer_type *const all_layers[] = {
#include "model/layers/layers.def"
};
#undef LAYER
const int all_layers_count = LENGTH(all_layers);

void layer_place(char out[256], const struct layer *layer)
{
    struct yaml at = {.line = layer->line, .column = layer->column};
    if (layer->line > 0)
        yaml_place(out, layer->model->job, &at);
    else
        message_print(out, 256, "%.220s", layer->model->job);
    if (layer->origin)
        yaml_place_with(out, layer->origin);
}

/* ---- building ---- */

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

/* ---- what a use reads ---- */

struct tensor *layer_takes(struct graph *graph, struct tensor **real, struct tensor *x, const struct layer *reader)
{
    struct rescale_attributes same = {.scale = 1.0, .single = 1};
    const struct layer_type *type = reader->type;
    enum type compute = layer_compute(reader);
    if (!x || x->type == compute || ((type->any_type || reader->any_type) && (x->type != TYPE_F64 || type->hidden)))
        return x;
    const char *layer = graph->layer;
    bool small = x->type == TYPE_F16 || x->type == TYPE_BF16; /* rescale has no gradient to them */
    if (!*real || (*real)->type != compute) {
        graph->layer = "input";
        *real = compute == TYPE_F32 && !small ? graph_add(graph, &op_rescale, &x, 1, &same, sizeof same)
                                              : policy_cast(graph, x, compute);
        graph->layer = layer;
    }
    return *real;
}

static struct tensor *input_of(struct graph *graph, struct model *model, const struct use *use, int i)
{
    struct link link = use->input[i];
    if (link.from < 0) {
        struct feed *feed = &model->feed[FEED(link.from)];
        return layer_takes(graph, &feed->real, feed->tensor, use->layer);
    }
    struct use_output *made = use_made(&model->use[link.from], link.part);
    return layer_takes(graph, &made->real, made->output, use->layer);
}

bool layer_is_last(const struct layer *layer)
{
    const struct model *model = layer->model;
    return model->now && model->now->layer == layer && model->now->output_index >= 0 && !model->now->read;
}

/* The use that is being built, inside another or not; or NULL. */
static struct use *use_now(const struct model *model)
{
    return model->inner_now ? model->inner_now->now : model->now;
}

bool layer_is_reversed(const struct layer *layer)
{
    const struct use *now = use_now(layer->model);
    return now && now->reverse;
}

bool layer_trainable(const struct layer *layer)
{
    for (; layer; layer = layer->outer)
        if (!((const struct layer_words *)layer->options)->trainable)
            return false;
    return true;
}

struct tensor *layer_mask(const struct layer *layer, int i)
{
    const struct model *model = layer->model;
    const struct use *now = use_now(model);
    struct use *all = model->inner_now ? model->inner_now->use : model->use;
    if (!now || i >= now->input_count || now->input[i].from < 0)
        return NULL;
    return use_made(&all[now->input[i].from], now->input[i].part)->mask;
}

void layer_set_mask(struct layer *layer, struct tensor *mask)
{
    struct use *now = use_now(layer->model);
    if (now)
        now->made.mask = mask;
}

plim_status layer_several_outputs(struct layer *layer, int outputs, plim_error *error)
{
    layer->outputs = outputs;
    layer->further = arena_array(&layer->model->arena, (size_t)outputs, sizeof *layer->further);
    return layer->further ? PLIM_OK : arena_refused(&layer->model->arena, error);
}

void layer_set_output(struct layer *layer, int part, struct tensor *y, struct tensor *mask)
{
    struct use *now = use_now(layer->model);
    if (now && part < layer->outputs)
        now->further[part - 1] = (struct use_output){.output = y, .mask = mask};
}

/* ---- errors ---- */

/* As `inputs:` call it: "encoder/1". */
static void link_name(char out[96], const struct model *model, struct link link)
{
    const char *name = link.from < 0 ? model->feed[FEED(link.from)].name : model->use[link.from].name;
    message_print(out, 96, "%.60s%s%.0d", name ? name : "the data", link.part ? "/" : "", link.part);
}

void input_name(char out[96], const struct layer *layer, int i)
{
    const struct use *now = layer->model->now;
    snprintf(out, 96, "input %d", i);
    if (now && i < now->input_count && !layer->model->inner_now)
        link_name(out, layer->model, now->input[i]);
}

/* "dense, fed with a (None, 3) and b (None, 4)". */
static void add_inputs(char *out, size_t capacity, const struct model *model, const struct use *use)
{
    char shape[96], name[96];
    for (int i = 0; i < use->input_count && i < 4; i++) {
        struct link link = use->input[i];
        const struct tensor *x =
            link.from < 0 ? model->feed[FEED(link.from)].tensor : use_made(&model->use[link.from], link.part)->output;
        if (!x)
            continue;
        link_name(name, model, link);
        shape_text(shape, sizeof shape, &x->shape, true);
        size_t length = strlen(out);
        snprintf(out + length, capacity - length, "%s%s %s", i ? " and " : "", name, shape);
    }
}

/* Says in which line of the job file the layer stands; what ops call a model, people wrote into the job file. */
static plim_status failed_at(const struct graph *graph, const struct model *model, const struct use *use,
                             plim_error *error)
{
    char where[256], inputs[300] = "";
    plim_status status = graph_check(graph, error);
    layer_place(where, use->layer);
    if (status == PLIM_OK || status == PLIM_OVER_BUDGET || status == PLIM_NO_MEMORY)
        return status;
    if (status == PLIM_BAD_MODEL && error) {
        add_inputs(inputs, sizeof inputs, model, use);
        reword(error, PLIM_BAD_JOB, "%.80s, fed with %s: %.110s", use->layer->name, inputs, error->message);
    }
    if (status == PLIM_BAD_MODEL)
        status = PLIM_BAD_JOB;
    return place(error, status, where);
}

/* The same of a loss or a metric: those that an override says are named with it. */
static plim_status failed_words(const struct graph *graph, const struct model *model, plim_error *error)
{
    plim_status status = failed_at(graph, model, &model->use[model->output[0].from], error);
    if (status != PLIM_OK && model->training->origin && error && !strstr(error->where, model->training->origin)) {
        char where[256];
        snprintf(where, sizeof where, "%s", error->where);
        yaml_place_with(where, model->training->origin);
        error->where[0] = '\0';
        place(error, status, where);
    }
    return status;
}

/* ---- uses ---- */

struct tensor *layer_gives(struct graph *graph, const struct layer *layer, struct tensor *y)
{
    bool passes = !y || layer->type->hidden || layer->type->keeps_type || !type_is_float(y->type);
    return passes ? y : policy_cast(graph, y, layer_compute(layer));
}

static struct tensor *build_use(struct graph *graph, struct model *model, struct use *use)
{
    struct layer *layer = use->layer;
    if (!layer->type->merge)
        return layer->type->build(layer, graph, input_of(graph, model, use, 0));
    struct tensor **x = arena_array(&graph->arena, (size_t)use->input_count, sizeof(struct tensor *));
    if (!x) {
        graph_refused(graph, 0);
        return NULL;
    }
    for (int i = 0; i < use->input_count; i++)
        x[i] = input_of(graph, model, use, i);
    return graph->failed ? NULL : layer->type->merge(layer, graph, x, use->input_count);
}

static void forget_values(struct model *model)
{
    for (int i = 0; i < model->use_count; i++) {
        for (int k = 0; k == 0 || k < model->use[i].layer->outputs; k++)
            *use_made(&model->use[i], k) = (struct use_output){0};
        model->use[i].logits = false;
    }
    for (int i = 0; i < model->feed_count; i++)
        model->feed[i].tensor = model->feed[i].real = NULL;
}

static void forget_last_build(struct model *model)
{
    model->builds++;
    for (int i = 0; i < model->layer_count; i++) {
        struct layer *layer = &model->layer[i];
        layer->parameters = layer->trainable_parameters = 0;
        layer->weight_count = 0;
        layer->build = model->builds;
        layer->output.rank = 0;
    }
    forget_values(model);
}

/* What losses and metrics read, and people, is float32. */
static void take_outputs(struct tensor **out, struct graph *graph, const struct model *model)
{
    graph->layer = "output";
    for (int i = 0; i < model->output_count; i++) {
        struct tensor *made = use_made(&model->use[model->output[i].from], model->output[i].part)->output;
        out[i] = made->type == TYPE_F16 || made->type == TYPE_BF16 ? policy_cast(graph, made, TYPE_F32) : made;
    }
}

/* What the summary says of a layer is what its first use made. */
static void note_outputs(struct layer *layer, struct use *use)
{
    if (layer->output.rank)
        return;
    layer->output = use->made.output->shape;
    layer->output_bytes = 0;
    for (int k = 0; k == 0 || k < layer->outputs; k++) {
        const struct tensor *y = use_made(use, k)->output;
        layer->output_bytes += (uint64_t)shape_count(&y->shape) * type_bytes(y->type);
        if (k)
            layer->further[k - 1] = y->shape;
    }
}

/* out has room for all outputs. */
static plim_status build_layers(struct tensor **out, struct graph *graph, struct model *model, plim_error *error)
{
    for (int i = 0; i < model->use_count; i++) {
        struct use *use = model->now = &model->use[i];
        struct layer *layer = use->layer;
        graph->layer = layer->name;
        use->made.mask = layer->type->keeps_mask ? layer_mask(layer, 0) : NULL;
        use->made.output = build_use(graph, model, use);
        for (int k = 0; k == 0 || k < layer->outputs; k++) {
            struct use_output *made = use_made(use, k);
            made->output = layer_gives(graph, layer, made->output);
            TRY(failed_at(graph, model, use, error));
            if (!made->output)
                return fail(error, PLIM_INTERNAL, "%s: made nothing", layer->name);
        }
        note_outputs(layer, use);
    }
    graph_trace_ids(graph, 0);
    take_outputs(out, graph, model);
    return failed_at(graph, model, &model->use[model->output[0].from], error);
}

static plim_status take_gradients(struct tensor ***out, struct graph *graph, struct model *model, struct tensor *loss,
                                  struct tensor *scale, plim_error *error)
{
    size_t bytes = (size_t)(model->weight_count ? model->weight_count : 1) * sizeof(struct tensor *);
    struct tensor **of = arena_take(&graph->arena, bytes), **gradients = arena_take(&graph->arena, bytes);
    int count = 0;
    if (!of || !gradients)
        return arena_refused(&graph->arena, error);
    for (int i = 0; i < model->weight_count; i++)
        if (model->weight[i].trainable)
            of[count++] = model->weight[i].tensor;
    if (count == 0)
        return fail_at(error, PLIM_BAD_JOB, model->job, "the model has no weights to train");
    TRY(gradient_append_from(graph, loss, scale, of, count, gradients, error));
    *out = gradients;
    for (int i = 0; i < count; i++)
        if (gradients[i])
            return PLIM_OK;
    return fail_at(
        error, PLIM_BAD_JOB, model->job,
        "no weight gets a gradient: stop_gradient, or ops that have none, lie between all of them and the loss");
}

/* Gradients, an update for each weight, and one step counted. */
static plim_status build_backward(struct model_tensors *out, struct graph *graph, struct model *model,
                                  plim_error *error)
{
    struct tensor **gradients = NULL, *scale = updates_scale(graph, &model->training->optimizer);
    graph->backward = true;
    TRY(take_gradients(&gradients, graph, model, out->loss, scale, error));
    graph->backward = true;
    updates_add(out, graph, model, gradients, scale);
    graph->backward = false;
    TRY(encode_kept(graph, error));
    return rederive(graph, error);
}

/* "label", or with the output's name where there are several. */
static struct tensor *label_input(struct graph *graph, const struct model *model, int output, int column,
                                  const struct column_spec *spec)
{
    const char *name =
        model->output_count == 1 ? "label" : arena_format(&graph->arena, "%s_label", output_name(model, output));
    if (!name)
        graph_refused(graph, 0);
    return name ? column_input(graph, name, column, spec) : NULL;
}

/* A column of weights is one input, whoever counts by it. */
static void feed_weights(struct model_tensors *out, struct graph *graph, const struct model *model,
                         const struct label_columns *labels, const struct column_spec *columns)
{
    for (int i = 0; i < model->output_count && !graph->failed; i++) {
        int column = labels->weight[i], same = 0;
        while (labels->weight[same] != column)
            same++;
        if (column >= 0 && same < i)
            out->output[i].weight = out->output[same].weight;
        else if (column >= 0)
            out->output[i].weight = column_input(graph, columns[column].name ? columns[column].name : "sample_weight",
                                                 column, &columns[column]);
    }
}

static plim_status feed_model(struct model_tensors *out, struct graph *graph, struct model *model,
                              const struct column_spec *columns, int count, plim_error *error)
{
    int *feed = arena_array(&graph->arena, (size_t)model->feed_count, sizeof *feed);
    struct label_columns labels;
    if (!feed)
        return arena_refused(&graph->arena, error);
    for (int i = 0; !model->training && i < model->feed_count; i++)
        feed[i] = i;
    if (model->training) {
        TRY(model_columns(feed, &labels, model, model->training, columns, count, error));
        for (int i = 0; i < model->output_count; i++)
            if (labels.label[i] >= 0)
                out->output[i].label = label_input(graph, model, i, labels.label[i], &columns[labels.label[i]]);
        feed_weights(out, graph, model, &labels, columns);
    }
    for (int i = 0; i < model->feed_count; i++)
        model->feed[i].tensor =
            column_input(graph, model->feed[i].name && model->feed_count > 1 ? model->feed[i].name : "input", feed[i],
                         &columns[feed[i]]);
    return failed_at(graph, model, &model->use[0], error);
}

static plim_status build(struct model_tensors *out, struct graph *graph, struct model *model,
                         const struct column_spec *columns, int count, bool backward, plim_error *error)
{
    struct model_tensors tensors = {0};
    struct tensor *made[MOST_MODEL_OUTPUTS];
    TRY(feed_model(&tensors, graph, model, columns, count, error));
    TRY(build_layers(made, graph, model, error));
    for (int i = 0; i < model->output_count; i++) {
        tensors.output[i].value = made[i];
        tensors.output[i].mask = use_made(&model->use[model->output[i].from], model->output[i].part)->mask;
    }
    *out = tensors;
    if (!model->training)
        return PLIM_OK;
    losses_add(&tensors, graph, model);
    TRY(failed_words(graph, model, error));
    TRY(fuse(graph, error));
    if (backward)
        TRY(build_backward(&tensors, graph, model, error));
    *out = tensors;
    return PLIM_OK;
}

plim_status model_build(struct model_tensors *out, struct graph *graph, struct model *model,
                        const struct column_spec *columns, int count, const struct training *training, bool backward,
                        plim_error *error)
{
    model->weight_count = 0;
    model->iteration = NULL;
    model->fitting = backward;
    model->training = training;
    forget_last_build(model);
    plim_status status = build(out, graph, model, columns, count, backward, error);
    model->training = NULL; /* the caller's */
    model->now = NULL;
    graph->layer = NULL;
    return status;
}

plim_status model_apply(struct tensor **out, struct graph *graph, struct model *model, struct tensor *const *x,
                        int count, const struct training *training, bool fitting, plim_error *error)
{
    if (count != model->feed_count)
        return fail(error, PLIM_BAD_MODEL, "%s takes %d inputs, %d are given", model->name, model->feed_count, count);
    if (!model->builds)
        forget_last_build(model);
    forget_values(model);
    model->fitting = fitting;
    model->training = training;
    for (int i = 0; i < count; i++)
        model->feed[i].tensor = x[i];
    plim_status status = build_layers(out, graph, model, error);
    model->training = NULL; /* the caller's */
    model->now = NULL;
    graph->layer = NULL;
    return status;
}
