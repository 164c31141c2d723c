/* print_facts.c - what the tables of ops and layers say, a line each, for test_documents.py:
     op <tab> name <tab> why it has no gradient, or nothing <tab> what the planner may do
     layer <tab> name <tab> other name <tab> what is known of it
   Lines "Layer word" on standard input are answered: word <tab> Layer <tab> word <tab> known or unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "examples.h"
#include "model/layers/layer_options.h"

struct facts {
    bool samples, rows, sums;
};

/* Of all examples: shapes may decide. */
static struct facts facts_of(const struct op *op, struct budget *budget)
{
    struct facts facts = {0};
    for (int variant = 0;; variant++) {
        struct graph graph;
        struct cut cut;
        graph_init(&graph, budget, 5);
        if (!example_add(&graph, op, variant, TYPE_F32)) {
            graph_release(&graph);
            return facts;
        }
        const struct node *node = graph.node[graph.node_count - 1];
        op->cut(&cut, node);
        facts.samples |= cut.by_sample;
        facts.rows |= !cut.by_sample;
        for (int k = 0; k < node->output_count; k++)
            facts.sums |= cut.output[k] == PART_SUM;
        graph_release(&graph);
    }
}

static void print_bits(const char *before, char letter, unsigned bits)
{
    const char *comma = before;
    for (int i = 0; i < MOST_INPUTS; i++)
        if (bits & 1u << i) {
            printf("%s%c%d", comma, letter, i);
            comma = ", ";
        }
}

static void print_op(const struct op *op, struct budget *budget)
{
    struct facts facts = facts_of(op, budget);
    printf("op\t%s\t%s\t%s%s%s", op->name, op_has_gradient(op) ? "" : op->no_gradient, facts.samples ? "by sample" : "",
           facts.samples && facts.rows ? " or " : "", facts.rows ? "by rows" : "");
    printf("%s", facts.sums ? "; sums" : "");
    if (op->in_place)
        printf("; in place of %d", op_in_place(op));
    const char *comma = "; updates ";
    for (int i = 0; i < MOST_INPUTS; i++)
        if (op->updates & 1u << i) {
            printf("%s%d", comma, i);
            comma = ", ";
        }
    print_bits("; keeps ", 'x', op->keeps_inputs);
    print_bits(op->keeps_inputs ? ", " : "; keeps ", 'y', op->keeps_outputs);
    printf("\n");
}

static void print_layer(const struct layer_type *type)
{
    const char *facts[] = {type->merge ? "merges" : NULL, type->keeps_mask ? "keeps the mask" : NULL,
                           type->any_type ? "any type" : NULL};
    const char *comma = "";
    printf("layer\t%s\t%s\t", type->name, type->alias ? type->alias : "");
    for (int i = 0; i < COUNT(facts); i++)
        if (facts[i]) {
            printf("%s%s", comma, facts[i]);
            comma = ", ";
        }
    printf("\n");
}

/* A word that a layer does not take is refused before anything else of it. */
static void answer(const char *layer, const char *word, struct budget *budget)
{
    char text[256];
    struct arena arena;
    struct yaml *yaml = NULL;
    struct model *model;
    plim_error error = {0};
    arena_init(&arena, budget, TAG_PLANNER);
    snprintf(text, sizeof text, "- %s: {%s: ~}\n", layer, word);
    bool unknown = yaml_parse(&yaml, &arena, "job", text, strlen(text), &error) != PLIM_OK;
    if (!unknown && model_read(&model, budget, "job", yaml, &error) == PLIM_OK)
        model_free(model);
    unknown = unknown || strstr(error.message, "unknown key");
    printf("word\t%s\t%s\t%s\n", layer, word, unknown ? "unknown" : "known");
    arena_release(&arena);
}

int main(void)
{
    struct budget *budget;
    char layer[64], word[64];
    if (budget_make(&budget, BUDGET_UNLIMITED, NULL) != PLIM_OK)
        return 1;
    for (int i = 0; i < all_ops_count; i++)
        print_op(all_ops[i], budget);
    for (int i = 0; i < all_layers_count; i++)
        print_layer(all_layers[i]);
    while (scanf("%63s %63s", layer, word) == 2)
        answer(layer, word, budget);
    budget_free(budget);
    return 0;
}
