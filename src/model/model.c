/* model.c - building graphs from a model's uses of layers.

   A model can be built many times (other batches, training, evaluation), each time into a build of its own; the
   weights keep their names and order, so what was built is matched by name. */
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
const int all_layers_count = COUNT(all_layers);

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
    if (spec->shape.rank >= MOST_AXES)
        return graph_fail(graph, PLIM_BAD_DATA, "%s: elements of rank %d; at most %d", name, spec->shape.rank,
                          MOST_AXES - 1);
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

static struct tensor *input_of(struct graph *graph, const struct use *use, int i)
{
    const struct build *build = graph->build;
    struct link link = use->input[i];
    if (link.from < 0) {
        struct feed_tensors *feed = &build->feed[FEED(link.from)];
        return layer_takes(graph, &feed->real, feed->tensor, use->layer);
    }
    struct use_output *made = use_made(build, &build->model->use[link.from], link.part);
    return layer_takes(graph, &made->real, made->output, use->layer);
}

bool layer_trainable(const struct layer *layer)
{
    for (; layer; layer = layer->outer)
        if (!((const struct layer_keys *)layer->options)->trainable)
            return false;
    return true;
}

/* ---- errors ---- */

/* "dense, fed with a (None, 3) and b (None, 4)". */
static void add_inputs(char *out, size_t capacity, const struct build *build, const struct use *use)
{
    const struct model *model = build->model;
    char shape[96], name[96];
    for (int i = 0; i < use->input_count && i < 4; i++) {
        struct link link = use->input[i];
        const struct tensor *x = link.from < 0 ? build->feed[FEED(link.from)].tensor
                                               : use_made(build, &model->use[link.from], link.part)->output;
        if (!x)
            continue;
        link_name(name, model, link);
        shape_text(shape, sizeof shape, &x->shape, true);
        size_t length = strlen(out);
        snprintf(out + length, capacity - length, "%s%s %s", i ? " and " : "", name, shape);
    }
}

/* Says in which line of the job file the layer stands; what ops call a model, people wrote into the job file. */
static plim_status failed_at(const struct graph *graph, const struct use *use, plim_error *error)
{
    char where[256], inputs[300] = "";
    plim_status status = graph_check(graph, error);
    layer_place(where, use->layer);
    if (status == PLIM_OK || status == PLIM_OVER_BUDGET || status == PLIM_NO_MEMORY)
        return status;
    if (status == PLIM_BAD_MODEL && error) {
        add_inputs(inputs, sizeof inputs, graph->build, use);
        reword(error, PLIM_BAD_JOB, "%.80s, fed with %s: %.110s", use->layer->name, inputs, error->message);
    }
    if (status == PLIM_BAD_MODEL)
        status = PLIM_BAD_JOB;
    return error_at(error, status, where);
}

/* The same of a loss or a metric: those that an override says are named with it. */
static plim_status failed_words(const struct graph *graph, plim_error *error)
{
    const struct model *model = graph->build->model;
    const char *origin = graph->build->training->origin;
    plim_status status = failed_at(graph, &model->use[model->output[0].from], error);
    if (status != PLIM_OK && origin && error && !strstr(error->where, origin)) {
        char where[256];
        snprintf(where, sizeof where, "%s", error->where);
        yaml_place_with(where, origin);
        error->where[0] = '\0';
        error_at(error, status, where);
    }
    return status;
}

/* ---- uses ---- */

struct tensor *layer_gives(struct graph *graph, const struct layer *layer, struct tensor *y)
{
    bool passes = !y || layer->type->hidden || layer->type->keeps_type || !type_is_float(y->type);
    return passes ? y : policy_cast(graph, y, layer_compute(layer));
}

static struct tensor *build_use(struct graph *graph, const struct use *use)
{
    const struct layer *layer = use->layer;
    if (!layer->type->merge)
        return layer->type->build(layer, graph, input_of(graph, use, 0));
    struct tensor **x = arena_array(&graph->arena, (size_t)use->input_count, sizeof(struct tensor *));
    if (!x)
        return graph_refused(graph, 0);
    for (int i = 0; i < use->input_count; i++)
        x[i] = input_of(graph, use, i);
    return graph->failed ? NULL : layer->type->merge(layer, graph, x, use->input_count);
}

static const struct use_output *output_made(const struct build *build, int output)
{
    struct link link = build->model->output[output];
    return use_made(build, &build->model->use[link.from], link.part);
}

/* What losses and metrics read, and people, is float32. */
static void take_outputs(struct tensor **out, struct graph *graph)
{
    const struct model *model = graph->build->model;
    graph->layer = "output";
    for (int i = 0; i < model->output_count; i++) {
        struct tensor *made = output_made(graph->build, i)->output;
        out[i] = made->type == TYPE_F16 || made->type == TYPE_BF16 ? policy_cast(graph, made, TYPE_F32) : made;
    }
}

/* What the summary says of a layer is what its first use made. */
static plim_status note_outputs(struct graph *graph, const struct use *use, plim_error *error)
{
    const struct build *build = graph->build;
    struct layer_figures *figures = figures_of(build, use->layer);
    if (figures->output.rank)
        return PLIM_OK;
    if (use->layer->outputs > 1 &&
        !(figures->further = arena_array(&graph->build_arena, (size_t)use->layer->outputs, sizeof *figures->further)))
        return arena_refused(&graph->build_arena, error);
    figures->output = use_made(build, use, 0)->output->shape;
    figures->output_bytes = 0;
    for (int k = 0; k == 0 || k < use->layer->outputs; k++) {
        const struct tensor *y = use_made(build, use, k)->output;
        figures->output_bytes += (uint64_t)shape_count(&y->shape) * type_bytes(y->type);
        if (k)
            figures->further[k - 1] = y->shape;
    }
    return PLIM_OK;
}

/* out has room for all outputs. */
static plim_status build_layers(struct tensor **out, struct graph *graph, plim_error *error)
{
    struct build *build = graph->build;
    const struct model *model = build->model;
    for (int i = 0; i < model->use_count; i++) {
        const struct use *use = build->now = &model->use[i];
        const struct layer *layer = use->layer;
        graph->layer = layer->name;
        use_made(build, use, 0)->mask = layer->type->keeps_mask ? layer_mask(graph, 0) : NULL;
        use_made(build, use, 0)->output = build_use(graph, use);
        for (int k = 0; k == 0 || k < layer->outputs; k++) {
            struct use_output *made = use_made(build, use, k);
            made->output = layer_gives(graph, layer, made->output);
            TRY(failed_at(graph, use, error));
            if (!made->output)
                return fail(error, PLIM_INTERNAL, "%s: made nothing", layer->name);
        }
        TRY(note_outputs(graph, use, error));
    }
    graph_trace_ids(graph, 0);
    take_outputs(out, graph);
    return failed_at(graph, &model->use[model->output[0].from], error);
}

static plim_status take_gradients(struct tensor ***out, struct graph *graph, struct tensor *loss, struct tensor *scale,
                                  plim_error *error)
{
    const struct build *build = graph->build;
    size_t bytes = (size_t)(build->weight_count ? build->weight_count : 1) * sizeof(struct tensor *);
    struct tensor **of = arena_take(&graph->arena, bytes), **gradients = arena_take(&graph->arena, bytes);
    int count = 0;
    if (!of || !gradients)
        return arena_refused(&graph->arena, error);
    for (int i = 0; i < build->weight_count; i++)
        if (build->weight[i].trainable)
            of[count++] = build->weight[i].tensor;
    if (count == 0)
        return fail_at(error, PLIM_BAD_JOB, build->model->job, "the model has no weights to train");
    TRY(gradient_append_from(graph, &(struct scaled_loss){.loss = loss, .scale = scale}, of, count, gradients, error));
    *out = gradients;
    for (int i = 0; i < count; i++)
        if (gradients[i])
            return PLIM_OK;
    return fail_at(
        error, PLIM_BAD_JOB, build->model->job,
        "no weight gets a gradient: stop_gradient, or ops that have none, lie between all of them and the loss");
}

/* Gradients, an update for each weight, and one step counted. */
static plim_status build_backward(struct model_tensors *out, struct graph *graph, plim_error *error)
{
    struct tensor **gradients = NULL, *scale = updates_scale(graph, &graph->build->training->optimizer);
    graph->backward = true;
    TRY(take_gradients(&gradients, graph, out->loss, scale, error));
    graph->backward = true;
    updates_add(out, graph, gradients, scale);
    graph->backward = false;
    TRY(encode_kept(graph, error));
    return recompute(graph, error);
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

static plim_status feed_model(struct model_tensors *out, struct graph *graph, const struct step_spec *step,
                              plim_error *error)
{
    const struct model *model = graph->build->model;
    const struct column_spec *columns = step->column;
    int *feed = arena_array(&graph->arena, (size_t)model->feed_count, sizeof *feed);
    struct label_columns labels;
    if (!feed)
        return arena_refused(&graph->arena, error);
    for (int i = 0; !step->training && i < model->feed_count; i++)
        feed[i] = i;
    if (step->training) {
        TRY(model_columns(feed, &labels, model, step, error));
        for (int i = 0; i < model->output_count; i++)
            if (labels.label[i] >= 0)
                out->output[i].label = label_input(graph, model, i, labels.label[i], &columns[labels.label[i]]);
        feed_weights(out, graph, model, &labels, columns);
    }
    for (int i = 0; i < model->feed_count; i++)
        graph->build->feed[i].tensor =
            column_input(graph, model->feed[i].name && model->feed_count > 1 ? model->feed[i].name : "input", feed[i],
                         &columns[feed[i]]);
    return failed_at(graph, &model->use[0], error);
}

static plim_status build_all(struct model_tensors *out, struct graph *graph, const struct step_spec *step,
                             plim_error *error)
{
    struct model_tensors tensors = {0};
    struct tensor *made[MOST_MODEL_OUTPUTS];
    TRY(feed_model(&tensors, graph, step, error));
    TRY(build_layers(made, graph, error));
    for (int i = 0; i < graph->build->model->output_count; i++) {
        tensors.output[i].value = made[i];
        tensors.output[i].mask = output_made(graph->build, i)->mask;
    }
    *out = tensors;
    if (!step->training)
        return PLIM_OK;
    losses_add(&tensors, graph);
    TRY(failed_words(graph, error));
    TRY(fuse(graph, error));
    if (step->backward)
        TRY(build_backward(&tensors, graph, error));
    *out = tensors;
    return PLIM_OK;
}

static void end_build(struct graph *graph)
{
    graph->build->training = NULL; /* the caller's */
    graph->build->now = NULL;
    graph->layer = NULL;
}

plim_status model_build(struct model_tensors *out, struct graph *graph, const struct model *model,
                        const struct step_spec *step, plim_error *error)
{
    TRY(build_make(&graph->build, model, graph, error));
    graph->build->fitting = step->backward;
    graph->build->training = step->training;
    plim_status status = build_all(out, graph, step, error);
    end_build(graph);
    return status;
}

plim_status model_apply(struct tensor **out, struct graph *graph, struct build *build, struct tensor *const *x,
                        int count, plim_error *error)
{
    if (count != build->model->feed_count)
        return fail(error, PLIM_BAD_MODEL, "%s takes %d inputs, %d are given", build->model->name,
                    build->model->feed_count, count);
    build_clear(build);
    for (int i = 0; i < count; i++)
        build->feed[i].tensor = x[i];
    struct build *before = graph->build;
    graph->build = build;
    plim_status status = build_layers(out, graph, error);
    end_build(graph);
    graph->build = before;
    return status;
}
