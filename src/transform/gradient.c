/* gradient.c - reverse-mode differentiation: appends the backward nodes.

   From the loss back to the first node, each node's rule adds the nodes for
   its inputs' gradients. Several readers of a tensor each contribute; they
   are added in the order in which they come, last reader first, so the bits of
   a sum are settled here. Only what leads to the wanted tensors is made, and
   nothing leads through an op that stops gradients. */
#include "base/status.h"
#include "ops/ops.h"
#include "transform/transform.h"

struct backward {
    struct graph *graph;
    int tensors;       /* that existed before */
    bool *needed;      /* by tensor id: a wanted tensor lies at or behind it */
    struct tensor **d; /* by tensor id: d(loss)/d(tensor), or NULL */
};

static bool differentiable(const struct tensor *tensor)
{
    return type_is_float(tensor->type);
}

static void find_needed(struct backward *backward, struct tensor *const *of, int count)
{
    struct graph *graph = backward->graph;
    for (int i = 0; i < count; i++)
        backward->needed[of[i]->id] = true;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        bool needed = false;
        for (int i = 0; i < node->input_count; i++)
            needed |= node->input[i] && backward->needed[node->input[i]->id];
        for (int k = 0; k < node->output_count && !node->op->stops_gradient; k++)
            backward->needed[node->output[k]->id] |= needed && differentiable(node->output[k]);
    }
}

/* The same in another type. */
static struct tensor *in_type(struct graph *graph, struct tensor *d, enum type type)
{
    struct cast_attributes to = {type};
    return !d || d->type == type ? d : graph_add(graph, &op_cast, &d, 1, &to, sizeof(to));
}

/* Sums over samples come in f32 though what they are gradients of is smaller: then the sum of all is f32. */
static void contribute(struct backward *backward, const struct tensor *to, struct tensor *d)
{
    struct tensor **sum = &backward->d[to->id];
    if (*sum && (*sum)->type != d->type) {
        enum type type = (*sum)->type == to->type ? d->type : (*sum)->type;
        *sum = in_type(backward->graph, *sum, type);
        d = in_type(backward->graph, d, type);
    }
    *sum = *sum ? binary(backward->graph, &op_add, *sum, d) : d;
}

static struct tensor *read_again(const struct node *node, enum read_again what, struct tensor *d)
{
    return what == READ_D ? d : what >= READ_Y0 ? node->output[what - READ_Y0] : node->input[what - READ_X0];
}

/* One node of op->gradient_op. Without d, which the op may leave out where it stands for 1, there is none: then
   another output has a gradient, of which this op knows nothing. */
static void add_gradient_node(struct graph *graph, const struct node *node, struct tensor *d, const bool *wanted,
                              struct tensor **d_input)
{
    const struct op *op = node->op->gradient_op;
    struct tensor *inputs[MOST_READ_AGAIN] = {0};
    bool leads = false;
    int count = 0;
    for (int k = 0; k < op->outputs; k++)
        leads |= wanted[k];
    for (; count < MOST_READ_AGAIN && node->op->gradient_reads[count]; count++) {
        enum read_again what = node->op->gradient_reads[count];
        inputs[count] = read_again(node, what, d);
        leads &= what != READ_D || d || op->optional >> count & 1;
    }
    if (!leads)
        return;
    struct tensor *first = graph_add(graph, op, inputs, count, node->attributes, node->attributes_bytes);
    for (int k = 0; k < op->outputs; k++)
        d_input[k] = wanted[k] ? graph_output(first, k) : NULL;
}

/* Nodes for one forward node; d of the loss itself is absent, which is 1. */
static void step_back(struct backward *backward, struct node *node, bool is_loss)
{
    struct graph *graph = backward->graph;
    struct tensor *d_output[MOST_OUTPUTS] = {0}, *d_input[MOST_INPUTS] = {0};
    bool wanted[MOST_INPUTS] = {0}, flows = is_loss, leads = false;
    for (int k = 0; k < node->output_count; k++) {
        d_output[k] = backward->d[node->output[k]->id];
        flows |= d_output[k] != NULL;
    }
    for (int i = 0; i < node->input_count; i++) {
        wanted[i] = node->input[i] && differentiable(node->input[i]) && backward->needed[node->input[i]->id];
        leads |= wanted[i];
    }
    if (!flows || !leads || node->op->stops_gradient)
        return;
    if (!op_has_gradient(node->op)) {
        graph_fail(graph, PLIM_UNSUPPORTED, "%s has no gradient: %s", node->op->name, node->op->no_gradient);
        return;
    }
    graph->layer = node->name;
    for (int k = 0; k < node->output_count && node->op != &op_cast; k++) /* a cast's goes from any to its input's */
        d_output[k] = in_type(graph, d_output[k], node->output[k]->type);
    if (node->op->gradient)
        node->op->gradient(graph, node, d_output, wanted, d_input);
    else
        add_gradient_node(graph, node, d_output[0], wanted, d_input);
    for (int i = 0; i < node->input_count; i++) {
        if (wanted[i] && d_input[i])
            contribute(backward, node->input[i], d_input[i]);
    }
}

/* A weight's gradient is booked as one, and named after the weight. */
static void mark(struct graph *graph, const struct tensor *of, struct tensor *d)
{
    if (!d || of->kind != KIND_WEIGHT)
        return;
    const char *name = arena_format(&graph->arena, "%s gradient", of->name);
    if (!name) {
        graph_refused(graph, 0);
        return;
    }
    d->gradient = true;
    d->name = name;
}

/* A mean over the batch takes an absent gradient as 1; other losses, and scaled ones, begin with a seed. */
static void plant(struct backward *backward, const struct scaled_loss *scaled)
{
    struct tensor *loss = scaled->loss, *scale = scaled->scale;
    struct seed_attributes seed = {loss->type};
    if (scale || loss->producer->op != &op_batch_mean)
        backward->d[loss->id] = graph_add(backward->graph, &op_gradient_seed, &scale, 1, &seed, sizeof(seed));
}

static plim_status prepare(struct backward *backward, struct tensor *loss, plim_error *error)
{
    struct graph *graph = backward->graph;
    size_t count = (size_t)backward->tensors;
    if (!loss->producer || loss->batched || shape_count(&loss->shape) != 1)
        return fail(error, PLIM_UNSUPPORTED, "gradients are taken of one number, and %s is none", loss->name);
    backward->needed = arena_array(&graph->arena, count, sizeof(*backward->needed));
    backward->d = arena_array(&graph->arena, count, sizeof(*backward->d));
    if (!backward->needed || !backward->d)
        graph_refused(graph, count * sizeof(*backward->d));
    return graph_check(graph, error);
}

plim_status gradient_append(struct graph *graph, struct tensor *loss, struct tensor *const *of, int count,
                            struct tensor **gradients, plim_error *error)
{
    return gradient_append_from(graph, &(struct scaled_loss){.loss = loss}, of, count, gradients, error);
}

plim_status gradient_append_from(struct graph *graph, const struct scaled_loss *scaled, struct tensor *const *of,
                                 int count, struct tensor **gradients, plim_error *error)
{
    struct tensor *loss = scaled->loss;
    struct backward backward = {.graph = graph, .tensors = graph->tensor_count};
    const char *layer = graph->layer;
    bool was_backward = graph->backward;
    TRY(graph_check(graph, error));
    TRY(prepare(&backward, loss, error));
    find_needed(&backward, of, count);
    graph->backward = true;
    plant(&backward, scaled);
    for (int n = loss->producer->id; n >= 0 && !graph->failed; n--)
        step_back(&backward, graph->node[n], n == loss->producer->id);
    graph->layer = layer;
    graph->backward = was_backward;
    for (int i = 0; i < count; i++)
        mark(graph, of[i], backward.d[of[i]->id]);
    TRY(graph_check(graph, error));
    for (int i = 0; i < count; i++)
        gradients[i] = backward.d[of[i]->id];
    return PLIM_OK;
}
