/* fuse_vocabulary.c - a dense layer over many classes and its softmax cross-entropy become one op, whose logits are
   made a block at a time and never exist as a whole: at 1,024 tokens of 50,257 classes they and their gradient are 400
   MiB.

   The price is that backward makes them again (a third more work in that layer), so few tokens or few classes keep
   their logits; and so do those whose logits somebody else reads, but for the accuracy, which the op tells too. Logits
   of small floats are taken through the cast that a loss reads them by: those that never exist are not
   rounded either. */
#include "transform/fuse_own.h"

#define LEAST_CLASSES 8192
#define LEAST_TOKENS  256

/* Between the two nothing writes what the matmul reads: it will read it later. */
static bool reads_the_same(const struct graph *graph, const struct node *dense, const struct node *loss)
{
    for (int n = dense->id + 1; n < loss->id; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; node && i < node->input_count; i++)
            if (node->op->updates >> i & 1 && (node->input[i] == dense->input[1] || node->input[i] == dense->input[2]))
                return false;
    }
    return true;
}

/* The accuracy of the same scores and labels, behind the loss; or NULL. */
static struct node *accuracy_beside(const struct fusion *fusion, const struct node *loss)
{
    for (int n = loss->id + 1; n < fusion->graph->node_count; n++) {
        struct node *node = fusion->graph->node[n];
        if (node && node->op == &op_sparse_accuracy && node->input[0] == loss->input[0] &&
            node->input[1] == loss->input[1])
            return node;
    }
    return NULL;
}

/* What the loss reads is read by nobody else, but for that accuracy. */
static bool read_here_only(const struct fusion *fusion, const struct node *loss)
{
    const struct tensor *logits = loss->input[0];
    int readers = accuracy_beside(fusion, loss) ? 2 : 1;
    return logits->kind == KIND_VALUE && fusion->readers[logits->id] == readers;
}

/* The cast that makes logits of small floats what a loss reads (f32); or NULL. */
static struct node *cast_before(const struct node *loss)
{
    struct node *cast = loss->input[0]->producer;
    bool goes = cast && cast->op == &op_cast && loss->input[0]->type == TYPE_F32;
    enum type from = goes ? cast->input[0]->type : TYPE_F32;
    return from == TYPE_F16 || from == TYPE_BF16 ? cast : NULL;
}

/* The matmul whose output these logits are, if it may go. */
static struct node *dense_before(const struct fusion *fusion, const struct node *loss)
{
    const struct node *cast = cast_before(loss);
    const struct tensor *logits = cast ? cast->input[0] : loss->input[0], *label = loss->input[1];
    struct node *dense = logits->producer;
    if (!dense || dense->op != &op_matmul || !read_here_only(fusion, loss) || (cast && !read_once(fusion, logits)))
        return NULL;
    const struct matmul_attributes *attributes = dense->attributes;
    const struct tensor *h = dense->input[0], *w = dense->input[1];
    if (attributes->activation != ACTIVATION_NONE || w->shape.rank != 2 || label->shape.rank != logits->shape.rank - 1)
        return NULL;
    int64_t classes = logits->shape.dim[logits->shape.rank - 1];
    int64_t tokens = classes ? shape_count(&logits->shape) / classes : 0;
    bool large = classes >= LEAST_CLASSES && tokens >= LEAST_TOKENS;
    bool fits = h->shape.rank == logits->shape.rank && h->type == logits->type;
    return large && fits && reads_the_same(fusion->graph, dense, loss) ? dense : NULL;
}

/* The new node stands where the loss stood, and makes the tensors that others hold. */
static plim_status take_place(struct fusion *fusion, struct node *loss, const struct node *dense,
                              const struct node *accuracy)
{
    struct graph *graph = fusion->graph;
    const struct matmul_attributes *product = dense->attributes;
    const struct crossentropy_attributes *ignored = loss->attributes;
    struct vocabulary_attributes attributes = {
        .columns = !product->transposed, .ignores = ignored->ignores, .ignored = ignored->ignored};
    struct tensor *inputs[] = {dense->input[0], dense->input[1], loss->input[1], dense->input[2]};
    const char *layer = graph->layer;
    graph->layer = loss->name;
    struct tensor *made = graph_add(graph, &op_vocabulary_crossentropy, inputs, 4, &attributes, sizeof attributes);
    graph->layer = layer;
    if (!made)
        return graph_check(graph, fusion->error);
    struct node *node = made->producer;
    made->producer = NULL;
    node->output[0] = loss->output[0];
    node->output[0]->producer = node;
    node->id = loss->id;
    graph->node[node->id] = node;
    graph->node_count--;
    if (accuracy) {
        node->output[2]->producer = NULL;
        node->output[2] = accuracy->output[0];
        node->output[2]->producer = node;
        graph->node[accuracy->id] = NULL;
    }
    return PLIM_OK;
}

static void take_away(struct graph *graph, const struct node *node)
{
    node->output[0]->producer = NULL;
    node->output[0]->gone = true;
    graph->node[node->id] = NULL;
}

plim_status fuse_vocabulary(struct fusion *fusion)
{
    struct graph *graph = fusion->graph;
    bool gone = false;
    for (int n = 0; n < graph->node_count; n++) {
        struct node *loss = graph->node[n];
        struct node *dense = loss && loss->op == &op_softmax_crossentropy ? dense_before(fusion, loss) : NULL;
        if (!dense)
            continue;
        const struct node *cast = cast_before(loss);
        TRY(take_place(fusion, loss, dense, accuracy_beside(fusion, loss)));
        take_away(graph, dense);
        if (cast)
            take_away(graph, cast);
        gone = true;
    }
    int kept = 0;
    for (int n = 0; gone && n < graph->node_count; n++)
        if (graph->node[n]) {
            graph->node[n]->id = kept;
            graph->node[kept++] = graph->node[n];
        }
    graph->node_count = gone ? kept : graph->node_count;
    return PLIM_OK;
}
