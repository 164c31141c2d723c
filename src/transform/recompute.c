/* recompute.c - recomputation: cheap forward values are recomputed in the backward pass instead of being kept.

   A value that the backward pass reads is recomputed right before its first read there, if its op does little work per
   element and the op's inputs are kept in any case. Examples are normalized activations from the normalization's input,
   GELU from its input, a float image from the bytes of the batch, a weight in a small type from the weight. The forward
   pass then does not keep the value: within a chain it never gets a place in the tensor arena. The same op on the same
   inputs computes the same bits.

   A value is recomputed from weights only while no update has written them. */
#include <limits.h>

#include "transform/recompute_own.h"
#include "transform/repetition.h"

#define MOST_WORK 4 /* multiply-adds per element of the output */

struct recomputation {
    bool *kept;          /* by tensor id: lives until the backward pass whatever is done here */
    int *read, *written; /* by tensor id: the first backward node that reads it, the first node that updates it */
};

static bool lasts(const struct tensor *tensor)
{
    return tensor->kind != KIND_VALUE;
}

static void find_reads_and_updates(struct recomputation *r, const struct graph *graph)
{
    for (int t = 0; t < graph->tensor_count; t++) {
        r->read[t] = r->written[t] = INT_MAX;
        r->kept[t] = lasts(graph->tensor[t]);
    }
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; i < node->input_count; i++) {
            const struct tensor *tensor = node->input[i];
            if (!tensor)
                continue;
            if (node->backward && r->read[tensor->id] == INT_MAX)
                r->read[tensor->id] = n;
            if (node->op->updates >> i & 1 && r->written[tensor->id] == INT_MAX)
                r->written[tensor->id] = n;
            r->kept[tensor->id] |= node->backward;
        }
    }
}

static bool made_of_weights(const struct node *node)
{
    bool weights = true;
    for (int i = 0; i < node->input_count; i++)
        weights = weights && (!node->input[i] || node->input[i]->kind == KIND_WEIGHT);
    return weights;
}

bool is_cheap_again(const struct node *node)
{
    const struct tensor *y = node->output[0];
    struct cut cut;
    node->op->cut(&cut, node);
    int64_t count = shape_count(&y->shape);
    return (cut.by_sample || made_of_weights(node)) && cut.output[0] == PART_CUT &&
           cut.work <= MOST_WORK * (double)count && count * (int64_t)type_bytes(y->type) >= LEAST_KEPT_BYTES;
}

/* Whether output 0 can be recomputed right before its first read in the backward pass: its inputs must still exist and
   be unchanged then. */
static bool can_be_made_again(const struct recomputation *r, const struct node *node)
{
    if (node->backward || node->op->updates || node->output_count == 0)
        return false;
    const struct tensor *y = node->output[0];
    int first = r->read[y->id];
    if (y->kind != KIND_VALUE || first == INT_MAX)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *x = node->input[i];
        if (x && (!r->kept[x->id] || r->written[x->id] < first))
            return false;
    }
    return is_cheap_again(node);
}

/* Output 0 of a node that can be computed again. */
static bool is_missing(const struct repeat *repeat, const struct tensor *tensor)
{
    return repeat_may_miss(repeat, tensor) && tensor == tensor->producer->output[0] &&
           can_be_made_again(repeat->rules, tensor->producer);
}

static plim_status take_tables(struct recomputation *r, const struct graph *graph, struct arena *work,
                               plim_error *error)
{
    size_t tensors = (size_t)graph->tensor_count;
    r->kept = arena_array(work, tensors, sizeof *r->kept);
    r->read = arena_array(work, tensors, sizeof *r->read);
    r->written = arena_array(work, tensors, sizeof *r->written);
    return r->kept && r->read && r->written ? PLIM_OK : arena_refused(work, error);
}

plim_status recompute(struct graph *graph, plim_error *error)
{
    struct arena work;
    struct recomputation r;
    struct repeat repeat = {.graph = graph, .missing = is_missing, .rules = &r};
    TRY(graph_check(graph, error));
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    plim_status status = take_tables(&r, graph, &work, error);
    if (status == PLIM_OK) {
        find_reads_and_updates(&r, graph);
        status = repeat_rewrite(&repeat, &work, error);
    }
    arena_release(&work);
    return status;
}
