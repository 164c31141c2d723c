/* api_updates.c - gradients of a C program's graph, and what is done with them. */
#include "api/api_graph.h"

#include <string.h>

#include "ops/ops.h"
#include "transform/transform.h"

/* ---- gradients ---- */

static plim_status take_gradients(plim_value **gradients, plim_graph *graph, struct tensor *loss, plim_value *const *of,
                                  int count, plim_error *error)
{
    if (!loss->producer || loss->batched || shape_count(&loss->shape) != 1)
        return hint(error, fail(error, PLIM_USAGE, "gradients are taken of one number, and %s is none", loss->name),
                    "take its mean first: plim_op(graph, \"mean\", &loss, 1, NULL)");
    if (graph->written)
        return fail(error, PLIM_USAGE, "gradients are taken before the first update or assign of a graph");
    if (!graph->fused)
        TRY(fuse(&graph->inner, error));
    graph->fused = true;
    return gradient_append(&graph->inner, loss, (struct tensor *const *)of, count, (struct tensor **)gradients, error);
}

plim_status plim_graph_gradients(plim_value **gradients, plim_graph *graph, plim_value *loss, plim_value *const *of,
                                 int count, plim_error *error)
{
    plim_error own = {0};
    TRY(need_argument(graph, "the graph", error));
    TRY(need_argument(gradients || !count ? graph : NULL, "where the gradients are to go", error));
    GRAPH_CALL(graph, fail(error, PLIM_USAGE, "the graph is at work already, for another call"));
    if (!api_usable(graph, "gradients", loss) || !api_usable_all(graph, "gradients", of, count))
        return graph_check(&graph->inner, error);
    /* What fuse() could take into another op stays, where its gradient is asked for. */
    for (int i = 0; i < count; i++)
        if (tensor_of(of[i])->kind == KIND_VALUE)
            graph_result(&graph->inner, tensor_of(of[i]), tensor_of(of[i])->name);
    api_keep_error(graph, take_gradients(gradients, graph, tensor_of(loss), of, count, &own), &own);
    return graph_check(&graph->inner, error);
}

/* ---- updates ---- */

struct tensor *api_iteration(plim_graph *graph)
{
    if (!graph->iteration)
        graph->iteration = optimizer_number("optimizer", &graph->inner, "iteration", TYPE_I64, 0);
    return graph->iteration;
}

static plim_status read_optimizer(struct optimizer *out, plim_graph *graph, const char *words, plim_error *error)
{
    struct yaml *yaml;
    TRY(need_argument(words, "the name of the optimizer", error));
    TRY(yaml_parse(&yaml, &graph->inner.arena, "optimizer", words, strlen(words), error));
    TRY(optimizer_read(out, "optimizer", yaml, error));
    if (out->scales_loss)
        return fail_at(error, PLIM_UNSUPPORTED, "optimizer",
                       "scaling the loss is for jobs; gradients here are as given");
    return PLIM_OK;
}

/* The model's own record of a weight, for its constraint. */
static const struct weight *record_of(const plim_graph *graph, const struct tensor *tensor)
{
    for (const struct plim_layers *layers = graph->layers; layers; layers = layers->next)
        for (int i = 0; i < layers->build->weight_count; i++)
            if (layers->build->weight[i].tensor == tensor)
                return &layers->build->weight[i];
    return NULL;
}

static bool list_updates(struct weight_update *out, plim_graph *graph, plim_value *const *weights,
                         plim_value *const *gradients, int count)
{
    for (int i = 0; i < count; i++) {
        struct tensor *w = tensor_of(weights[i]), *g = tensor_of(gradients[i]);
        if (!api_usable(graph, "update", weights[i]) || (g && !api_usable(graph, "update", gradients[i])))
            return false;
        if (w->kind != KIND_WEIGHT && w->kind != KIND_STATE)
            graph_fail(&graph->inner, PLIM_USAGE, "update: %s is no weight", w->name);
        out[i] = (struct weight_update){.weight = w, .gradient = g, .of = record_of(graph, w)};
    }
    return !graph->inner.failed;
}

plim_value *plim_graph_update(plim_graph *graph, const char *optimizer, const char *name, plim_value *const *weights,
                              plim_value *const *gradients, int count)
{
    plim_error error = {0};
    struct optimizer *rule = NULL; /* nodes refer to its numbers */
    struct update_list list = {.count = count};
    GRAPH_CALL(graph, NULL);
    struct graph *inner = &graph->inner;
    if (!api_usable_all(graph, "update", weights, count))
        return NULL;
    if (count && !gradients)
        return graph_fail(inner, PLIM_USAGE, "update: the list of gradients is NULL");
    list.update = arena_array(&inner->arena, (size_t)(count > 0 ? count : 1), sizeof *list.update);
    list.prefix = arena_string(&inner->arena, name ? name : "optimizer");
    rule = arena_take(&inner->arena, sizeof *rule);
    if (!list.update || !list.prefix || !rule)
        return graph_refused(inner, 0);
    if (api_keep_error(graph, read_optimizer(rule, graph, optimizer, &error), &error) ||
        !list_updates(list.update, graph, weights, gradients, count))
        return NULL;
    bool main = strcmp(list.prefix, "optimizer") == 0;
    list.optimizer = rule;
    list.iteration = main ? api_iteration(graph) : optimizer_number(list.prefix, inner, "iteration", TYPE_I64, 0);
    graph->counts |= main;
    graph->written = true;
    inner->backward = true;
    struct tensor *learning_rate = updates_append(inner, &list);
    inner->backward = false;
    inner->layer = NULL;
    return value_of(inner->failed ? NULL : learning_rate);
}

static plim_value *assign(plim_graph *graph, plim_value *state, plim_value *value, bool adds)
{
    struct assign_attributes attributes = {adds};
    struct tensor *inputs[2] = {tensor_of(state), tensor_of(value)};
    GRAPH_CALL(graph, NULL);
    if (!api_usable_all(graph, "assign", (plim_value *[]){state, value}, 2))
        return NULL;
    if (strncmp(inputs[0]->name, "constant/", 9) == 0)
        return graph_fail(&graph->inner, PLIM_USAGE, "assign: a constant stays what it is; take a state");
    graph->written = true;
    graph->inner.backward = true;
    graph->inner.layer = NULL;
    struct tensor *made = graph_add(&graph->inner, &op_assign, inputs, 2, &attributes, sizeof attributes);
    graph->inner.backward = false;
    return value_of(made);
}

plim_value *plim_graph_assign(plim_graph *graph, plim_value *state, plim_value *value)
{
    return assign(graph, state, value, false);
}

plim_value *plim_graph_assign_add(plim_graph *graph, plim_value *state, plim_value *value)
{
    return assign(graph, state, value, true);
}
