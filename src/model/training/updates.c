/* updates.c - from gradients to weights: what every optimizer shares.

   The order is Keras's: unscale, accumulate, clip, decay, update, average; the
   step is counted last. Weights are read and written in program order, which the
   plan keeps. */
#include "model/build.h"
#include "ops/ops.h"

struct tensor *optimizer_add_state(const struct update_step *step, struct graph *graph, const struct tensor *w,
                                   const char *name, struct shape shape, double initial)
{
    if (graph->failed || !w)
        return NULL;
    const char *full = arena_format(&graph->arena, "%s/%s/%s", step->prefix, w->name, name);
    if (!full)
        return graph_refused(graph, 0);
    struct tensor *state = graph_state(graph, full, w->type, shape);
    if (!state)
        return NULL;
    state->initial = initial;
    state->of_update = true;
    return state;
}

struct tensor *optimizer_number(const char *prefix, struct graph *graph, const char *name, enum type type,
                                double initial)
{
    if (graph->failed)
        return NULL;
    const char *full = arena_format(&graph->arena, "%s/%s", prefix, name);
    if (!full)
        return graph_refused(graph, 0);
    struct tensor *state = graph_state(graph, full, type, shape_of(1, (int64_t[]){1}));
    if (state)
        state->initial = initial;
    return state;
}

struct tensor *updates_scale(struct graph *graph, const struct optimizer *optimizer)
{
    return optimizer->scales_loss
               ? optimizer_number("optimizer", graph, "dynamic_scale", TYPE_F32, optimizer->initial_scale)
               : NULL;
}

/* The sum over all gradients of what `op` makes of each. */
static struct tensor *over_all(struct graph *graph, const struct op *op, struct tensor *const *gradients, int count)
{
    struct tensor *sum = NULL;
    for (int i = 0; i < count; i++) {
        struct tensor *one = gradients[i] ? unary(graph, op, gradients[i]) : NULL;
        sum = sum && one ? binary(graph, &op_add, sum, one) : one ? one : sum;
    }
    return sum;
}

static struct tensor *clipped(const struct optimizer *optimizer, struct graph *graph, struct tensor *g,
                              struct tensor *global)
{
    struct clip_attributes clip = {.global = global != NULL};
    clip.limit = global                      ? optimizer->global_clipnorm
                 : optimizer->clipnorm > 0.0 ? optimizer->clipnorm
                                             : optimizer->clipvalue;
    if (!global && optimizer->clipnorm <= 0.0)
        return clip.limit > 0.0 ? graph_add(graph, &op_clip_value, &g, 1, &clip, sizeof clip) : g;
    struct tensor *inputs[2] = {g, global ? global : unary(graph, &op_square_sum, g)};
    return graph_add(graph, &op_clip_norm, inputs, 2, &clip, sizeof clip);
}

static void element_update(const struct update_step *step, struct graph *graph, struct tensor *w, struct tensor *g)
{
    const struct optimizer *optimizer = step->optimizer;
    const struct optimizer_type *type = optimizer->type;
    struct tensor *inputs[3 + MOST_OPTIMIZER_STATES] = {w, g, step->control};
    int count = 3;
    for (int i = 0; i < MOST_OPTIMIZER_STATES && type->state[i].name; i++) {
        const struct optimizer_state *state = &type->state[i];
        if (state->wanted && !state->wanted(optimizer))
            continue;
        inputs[3 + i] =
            optimizer_add_state(step, graph, w, state->name, w->shape, state->filled ? optimizer->accumulator : 0.0);
        count = 4 + i;
    }
    graph_add(graph, type->op, inputs, count, &optimizer->rule, sizeof optimizer->rule);
}

static void average(const struct update_step *step, struct graph *graph, struct tensor *w)
{
    const struct optimizer *optimizer = step->optimizer;
    struct average_attributes attributes = {optimizer->ema_momentum, optimizer->ema_overwrite_frequency};
    struct tensor *inputs[3] = {w, optimizer_add_state(step, graph, w, "average", w->shape, 0.0), step->control};
    graph_add(graph, &op_moving_average, inputs, 3, &attributes, sizeof attributes);
}

/* Gradients as they come become gradients as updates want them. */
static void prepare_gradients(struct tensor **g, const struct update_step *step, struct graph *graph,
                              struct tensor *const *w, int count, struct tensor *scale)
{
    const struct optimizer *optimizer = step->optimizer;
    struct accumulate_attributes accumulate = {optimizer->accumulation};
    for (int i = 0; i < count; i++) {
        if (g[i] && scale)
            g[i] = binary(graph, &op_unscale_gradient, g[i], scale);
        if (g[i] && optimizer->accumulation > 1) {
            struct tensor *sum = optimizer_add_state(step, graph, w[i], "gradient_accumulator", w[i]->shape, 0.0);
            struct tensor *inputs[3] = {g[i], step->control, sum};
            g[i] = graph_add(graph, &op_accumulate_gradient, inputs, 3, &accumulate, sizeof accumulate);
        }
    }
    struct tensor *global = optimizer->global_clipnorm > 0.0 ? over_all(graph, &op_square_sum, g, count) : NULL;
    for (int i = 0; i < count; i++)
        if (g[i] && (g[i] = clipped(optimizer, graph, g[i], global)))
            g[i]->gradient = true; /* its bytes are booked as such */
}

static struct tensor *make_control(struct graph *graph, const struct update_list *list, struct tensor *learning_rate,
                                   struct tensor *nonfinite)
{
    struct step_control_attributes attributes = {.schedule = list->optimizer->schedule,
                                                 .accumulation = list->optimizer->accumulation};
    struct tensor *inputs[3] = {learning_rate, list->iteration, nonfinite};
    return graph_add(graph, &op_step_control, inputs, nonfinite ? 3 : 2, &attributes, sizeof attributes);
}

static void end_step(const struct update_list *list, const struct update_step *step, struct graph *graph)
{
    struct loss_scale_attributes attributes = {step->optimizer->growth_steps};
    graph->layer = list->prefix;
    if (list->scale) {
        struct tensor *inputs[4] = {list->scale, optimizer_number(list->prefix, graph, "step_counter", TYPE_I64, 0.0),
                                    optimizer_number(list->prefix, graph, "skipped_steps", TYPE_I64, 0.0),
                                    step->control};
        graph_add(graph, &op_loss_scale, inputs, 4, &attributes, sizeof attributes);
    }
    binary(graph, &op_count_step, list->iteration, list->scale ? step->control : NULL);
}

static void update_one(const struct update_step *step, struct graph *graph, const struct weight_update *update,
                       struct tensor *gradient)
{
    const struct optimizer *optimizer = step->optimizer;
    graph->layer = update->of ? update->of->layer->name : update->weight->name;
    if (!optimizer->small_states || !optimizer->type->small(step, graph, update->weight, gradient))
        (optimizer->type->update ? optimizer->type->update : element_update)(step, graph, update->weight, gradient);
    if (optimizer->use_ema)
        average(step, graph, update->weight);
    if (update->of)
        constraint_add(graph, update->of);
}

struct tensor *updates_append(struct graph *graph, const struct update_list *list)
{
    struct update_step step = {.optimizer = list->optimizer, .prefix = list->prefix};
    size_t most = (size_t)(list->count ? list->count : 1);
    struct tensor **w = arena_array(&graph->arena, most, sizeof *w);
    struct tensor **g = arena_array(&graph->arena, most, sizeof *g);
    if (!w || !g)
        return graph_refused(graph, most * sizeof *w);
    for (int i = 0; i < list->count; i++) {
        w[i] = list->update[i].weight;
        g[i] = list->update[i].gradient;
    }
    graph->layer = list->prefix;
    struct tensor *learning_rate =
        optimizer_number(list->prefix, graph, "learning_rate", TYPE_F32, list->optimizer->learning_rate);
    step.control = make_control(graph, list, learning_rate,
                                list->scale ? over_all(graph, &op_count_nonfinite, g, list->count) : NULL);
    if (list->optimizer->type->begin)
        list->optimizer->type->begin(&step, graph);
    prepare_gradients(g, &step, graph, w, list->count, list->scale);
    for (int i = 0; i < list->count && !graph->failed; i++)
        if (g[i])
            update_one(&step, graph, &list->update[i], g[i]);
    end_step(list, &step, graph);
    return learning_rate;
}

void updates_add(struct model_tensors *out, struct graph *graph, struct tensor *const *gradients, struct tensor *scale)
{
    const struct build *build = graph->build;
    struct update_list list = {.optimizer = &build->training->optimizer, .prefix = "optimizer", .scale = scale};
    size_t most = (size_t)(build->weight_count ? build->weight_count : 1);
    list.update = arena_array(&graph->arena, most, sizeof *list.update);
    if (!list.update) {
        graph_refused(graph, most * sizeof *list.update);
        return;
    }
    for (int i = 0; i < build->weight_count; i++)
        if (build->weight[i].trainable) {
            list.update[list.count] = (struct weight_update){
                .weight = build->weight[i].tensor, .gradient = gradients[list.count], .of = &build->weight[i]};
            list.count++;
        }
    graph->layer = list.prefix;
    out->iteration = list.iteration = model_iteration(graph);
    out->learning_rate = updates_append(graph, &list);
}
