/* lifetime.c - from when to when every value lives, and who takes over
   whose bytes.

   An output takes over its input's bytes when the op allows it, nobody reads the
   input later, and both are walked row by row. Then both are one group with one
   place. A group that has one member outside of slices is outside as a whole: the
   bytes are there anyway, and a copy is saved. */
#include "plan/plan_builder.h"

static void measure_values(struct builder *builder)
{
    struct life *life = builder->life;
    for (int at = 0; at < builder->chains.node_count; at++) {
        const struct node *node = builder->chains.order[at];
        for (int k = 0; k < node->output_count; k++) {
            const struct tensor *tensor = node->output[k];
            life[tensor->id] = (struct life){
                .made = at,
                .last = at,
                .first = at,
                .whole_read = -1,
                .root = tensor->id,
                .in_tensor_arena = !builder->chains.local[tensor->id],
                .gradient = tensor->gradient,
                .result = tensor->kind == KIND_RESULT,
                .instance = NOWHERE,
                .move = NOWHERE,
            };
        }
        for (int i = 0; i < node->input_count; i++) {
            if (!node->input[i] || !is_value(node->input[i]))
                continue;
            struct life *read = &life[node->input[i]->id];
            read->last = at;
            if (builder->cut[node->id].input[i] != PART_CUT)
                read->whole_read = builder->chain_of[node->id];
        }
    }
}

/* The input that output 0 is written over at this position; or NULL. */
static const struct tensor *taken_over(const struct builder *builder, const struct node *node, int at)
{
    const struct tensor *from = in_place_input(node, &builder->cut[node->id]);
    if (!from)
        return NULL;
    const struct life *life = &builder->life[from->id];
    return life->last == at && life->whole_read != builder->chain_of[node->id] ? from : NULL;
}

static void take_over(struct life *life, const struct tensor *from, const struct tensor *to)
{
    struct life *root = &life[life[from->id].root], *joined = &life[to->id];
    joined->root = life[from->id].root;
    root->in_tensor_arena |= joined->in_tensor_arena;
    root->gradient |= joined->gradient;
    root->result |= joined->result;
}

void lifetime_find(struct builder *builder)
{
    struct life *life = builder->life;
    measure_values(builder);
    for (int at = 0; at < builder->chains.node_count; at++) {
        const struct node *node = builder->chains.order[at];
        const struct tensor *from = taken_over(builder, node, at);
        if (from)
            take_over(life, from, node->output[0]);
    }
    for (int t = 0; t < builder->graph->tensor_count; t++) {
        if (!is_value(builder->graph->tensor[t]))
            continue;
        struct life *root = &life[life[t].root];
        if (life[t].last > root->end)
            root->end = life[t].last;
    }
}
