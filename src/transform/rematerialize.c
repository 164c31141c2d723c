/* rematerialize.c - forward values that a plan has dropped are computed again in the backward pass.

   The second computation of a value runs right before the first backward node that reads it. It reads what is kept; what
   is not is computed again first. All of it is over before the first update, so weights and states are still what the
   forward pass saw: a node that reads what the forward pass itself updates is never repeated. */
#include "transform/rematerialize.h"

#include <limits.h>

#include "transform/in_place.h"
#include "transform/recompute_own.h"
#include "transform/repetition.h"

/* ---- what the backward pass reads ---- */

static void find_reads(struct retention *r, const struct graph *graph)
{
    for (int t = 0; t < graph->tensor_count; t++) {
        r->first_read[t] = INT_MAX;
        r->last_read[t] = -1;
    }
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; i < node->input_count && node->backward; i++) {
            int t = node->input[i] ? node->input[i]->id : 0;
            if (!node->input[i])
                continue;
            r->first_read[t] = r->first_read[t] == INT_MAX ? n : r->first_read[t];
            r->last_read[t] = n;
        }
    }
}

/* The last node before which a second computation is placed. */
static int last_place(const struct retention *r, const struct graph *graph)
{
    int last = 0;
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct node *maker = graph->tensor[t]->producer;
        if (maker && !maker->backward && r->first_read[t] != INT_MAX && r->first_read[t] > last)
            last = r->first_read[t];
    }
    return last;
}

/* By tensor id: the first node that updates it; INT_MAX: none. */
static void find_updates(int *written, const struct graph *graph)
{
    for (int t = 0; t < graph->tensor_count; t++)
        written[t] = INT_MAX;
    for (int n = 0; n < graph->node_count; n++)
        for (int i = 0; i < graph->node[n]->input_count; i++) {
            const struct tensor *x = graph->node[n]->input[i];
            if (x && graph->node[n]->op->updates >> i & 1 && written[x->id] == INT_MAX)
                written[x->id] = n;
        }
}

static bool is_repeatable(const struct retention *r, const struct node *node, const int *written, int last)
{
    if (node->backward || node->op->updates || node->output_count == 0)
        return false;
    for (int k = 0; k < node->output_count; k++)
        if (node->output[k]->kind != KIND_VALUE)
            return false;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *x = node->input[i];
        bool lost = x && x->kind == KIND_VALUE && r->last_read[x->id] < 0;
        if (x && (written[x->id] <= last || (lost && !r->repeatable[x->producer->id])))
            return false;
    }
    return true;
}

plim_status retention_find(struct retention *out, const struct graph *graph, struct arena *work, plim_error *error)
{
    size_t tensors = (size_t)graph->tensor_count;
    struct retention r = {
        .first_read = arena_array(work, tensors, sizeof *r.first_read),
        .last_read = arena_array(work, tensors, sizeof *r.last_read),
        .repeatable = arena_array(work, (size_t)graph->node_count, sizeof *r.repeatable),
    };
    int *written = arena_array(work, tensors, sizeof *written);
    if (!r.first_read || !r.last_read || !r.repeatable || !written)
        return arena_refused(work, error);
    find_reads(&r, graph);
    find_updates(written, graph);
    for (int n = 0, last = last_place(&r, graph); n < graph->node_count; n++)
        r.repeatable[n] = is_repeatable(&r, graph->node[n], written, last);
    *out = r;
    return PLIM_OK;
}

bool retention_may_drop(const struct retention *retention, const struct tensor *tensor)
{
    return tensor->kind == KIND_VALUE && tensor->producer && retention->repeatable[tensor->producer->id] &&
           retention->last_read[tensor->id] >= 0 && tensor_bytes(tensor) >= LEAST_KEPT_BYTES;
}

bool retention_passes(const struct retention *retention, const bool *dropped, const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && !retention_has(retention, dropped, node->input[i]))
            return false;
    return is_cheap_again(node);
}

/* ---- the rewrite ---- */

struct rules {
    struct retention retention;
    const bool *dropped;
};

static bool is_missing(const struct repeat *repeat, const struct tensor *tensor)
{
    const struct rules *rules = repeat->rules;
    return repeat_may_miss(repeat, tensor) && !retention_has(&rules->retention, rules->dropped, tensor);
}

static bool is_passing(const struct repeat *repeat, const struct tensor *tensor)
{
    const struct rules *rules = repeat->rules;
    return !rules->dropped[tensor->id] && retention_passes(&rules->retention, rules->dropped, tensor->producer);
}

plim_status rematerialize(struct graph *graph, const bool *dropped, plim_error *error)
{
    struct arena work;
    struct rules rules = {.dropped = dropped};
    struct repeat repeat = {.graph = graph, .missing = is_missing, .passing = is_passing, .rules = &rules};
    TRY(graph_check(graph, error));
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    plim_status status = retention_find(&rules.retention, graph, &work, error);
    if (status == PLIM_OK)
        status = repeat_rewrite(&repeat, &work, error);
    arena_release(&work);
    return status;
}
