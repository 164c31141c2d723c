/* api_layers.c - layers in the words of a job file, or of a file that Keras wrote, over values of a graph. */
#include "api/api_graph.h"

#include <string.h>

#include "model/keras/model_file.h"
#include "ops/ops.h"

static bool is_path(const char *text)
{
    const char *dot = strrchr(text, '.');
    return dot && (strcmp(dot, ".keras") == 0 || strcmp(dot, ".json") == 0);
}

/* The text is kept with the graph: what is read from it refers to it. */
static plim_status read_model(struct plim_layers *out, plim_graph *graph, const char *text, plim_error *error)
{
    struct arena *arena = &graph->inner.arena;
    struct yaml *yaml;
    bool keras;
    if (is_path(text)) {
        const char *path = arena_string(arena, text);
        if (!path)
            return arena_refused(arena, error);
        TRY(model_file_read(&out->model, &yaml, &keras, arena, path, error));
        out->weights = keras ? path : NULL;
        return PLIM_OK;
    }
    if (!graph->unnamed && !(graph->unnamed = arena_array(arena, (size_t)MODEL_NUMBERS, sizeof *graph->unnamed)))
        return arena_refused(arena, error);
    TRY(yaml_parse(&yaml, arena, "layers", text, strlen(text), error));
    return model_read_numbered(&out->model, graph->unnamed, graph->budget, "layers", yaml, error);
}

plim_layers *plim_layers_read(plim_graph *graph, const char *text)
{
    plim_error error = {0};
    GRAPH_CALL(graph, NULL);
    if (!api_open(graph, "layers"))
        return NULL;
    if (!text)
        return graph_fail(&graph->inner, PLIM_USAGE, "the text of the layers is NULL");
    struct plim_layers *layers = arena_take(&graph->inner.arena, sizeof *layers);
    if (!layers)
        return graph_refused(&graph->inner, sizeof *layers);
    if (api_keep_error(graph, read_model(layers, graph, text, &error), &error))
        return NULL;
    plim_status status = build_make(&layers->build, layers->model, &graph->inner, &error);
    if (api_keep_error(graph, status, &error)) {
        model_free(layers->model);
        return NULL;
    }
    layers->owner = graph;
    *graph->last_layers = layers;
    graph->last_layers = &layers->next;
    return layers;
}

static plim_status apply(struct tensor **out, plim_graph *graph, struct plim_layers *layers, plim_value *const *inputs,
                         int count, plim_error *error)
{
    struct build *build = layers->build;
    for (int i = 0; graph->written && i < build->weight_count; i++)
        build->weight[i].cast = NULL; /* of what it was before */
    build->iteration = graph->iteration;
    build->training = &graph->layer_training;
    build->fitting = graph->training;
    TRY(model_apply(out, &graph->inner, build, (struct tensor *const *)inputs, count, error));
    graph->iteration = build->iteration;
    return PLIM_OK;
}

static bool can_apply(plim_graph *graph, const plim_layers *layers)
{
    if (!layers)
        graph_fail(&graph->inner, PLIM_USAGE, "there are no layers to apply");
    else if (layers->owner != graph)
        graph_fail(&graph->inner, PLIM_USAGE,
                   "these layers are of another graph; read them into this one too, with the same "
                   "names");
    return !graph->inner.failed;
}

int plim_layers_outputs(const plim_layers *layers)
{
    return layers ? layers->model->output_count : 0;
}

static void apply_all(plim_value **outputs, int output_count, plim_graph *graph, plim_layers *layers,
                      plim_value *const *inputs, int count)
{
    struct tensor *made[MOST_MODEL_OUTPUTS] = {0};
    plim_error error = {0};
    if (!api_usable_all(graph, "layers", inputs, count) || !can_apply(graph, layers))
        return;
    if (output_count != layers->model->output_count) {
        graph_fail(&graph->inner, PLIM_USAGE, "%s has %d outputs, there is room for %d; plim_layers_outputs says it",
                   layers->model->name, layers->model->output_count, output_count);
        return;
    }
    api_keep_error(graph, apply(made, graph, layers, inputs, count, &error), &error);
    for (int i = 0; !graph->inner.failed && i < output_count; i++)
        outputs[i] = value_of(made[i]);
}

void plim_layers_apply_all(plim_value **outputs, int output_count, plim_graph *graph, plim_layers *layers,
                           plim_value *const *inputs, int count)
{
    bool there = outputs && output_count > 0 && output_count <= MOST_MODEL_OUTPUTS;
    for (int i = 0; there && i < output_count; i++)
        outputs[i] = NULL;
    GRAPH_CALL(graph, );
    if (there)
        apply_all(outputs, output_count, graph, layers, inputs, count);
    else
        graph_fail(&graph->inner, PLIM_USAGE, "layers: there is no room for their outputs");
}

plim_value *plim_layers_apply(plim_graph *graph, plim_layers *layers, plim_value *const *inputs, int count)
{
    plim_value *output = NULL;
    GRAPH_CALL(graph, NULL);
    apply_all(&output, 1, graph, layers, inputs, count);
    return output;
}

plim_value *plim_layers_penalties(plim_graph *graph, plim_value *loss)
{
    struct tensor *sum = tensor_of(loss);
    GRAPH_CALL(graph, NULL);
    if (!api_usable(graph, "penalties", loss))
        return NULL;
    graph->inner.layer = "loss";
    for (const struct plim_layers *layers = graph->layers; layers; layers = layers->next)
        sum = penalties_add(&graph->inner, layers->build, sum);
    return value_of(graph->inner.failed ? NULL : sum);
}
