/* one_hot.c - one_hot and bucketize: classes from numbers, and numbers of classes as vectors. */
#include "ops/helpers.h"

#define WHOLE_NUMBERS "classes are whole numbers: a small step changes nothing"

/* ---- one_hot --------------------------------------------------------------- */

/* How many indices make one vector. */
static int64_t taken_together(const struct node *node)
{
    const struct one_hot_attributes *attributes = node->attributes;
    return attributes->mode == ONE_HOT || node->input[0]->shape.rank == 1 ? 1 : last_dim(node->input[0]);
}

static plim_status one_hot_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct one_hot_attributes *attributes = node->attributes;
    const struct tensor *index = node->input[0];
    struct shape shape = index->shape;
    TRY(need_batched(node, 0, error));
    if (!is_label(index->type))
        return misfit(node, error, "indices of type %s are not offered", type_name(index->type));
    if (attributes->mode == ONE_HOT || shape.rank == 1)
        shape.rank++;
    if (shape.rank > MOST_AXES || attributes->depth < 1)
        return misfit(node, error, "a depth of %lld for %d axes", (long long)attributes->depth, index->shape.rank);
    shape.dim[shape.rank - 1] = attributes->depth;
    output_of(graph, node, 0, TYPE_F32, shape, true);
    return PLIM_OK;
}

static void one_hot_reference(const struct call *call)
{
    const struct one_hot_attributes *attributes = call->node->attributes;
    const struct tensor *y = call->node->output[0];
    int64_t groups = call_rows(call, y) * (shape_row(&y->shape) / attributes->depth);
    int64_t together = taken_together(call->node);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t k = 0; k < attributes->depth; k++) {
            int64_t hits = 0;
            for (int64_t i = 0; i < together; i++)
                hits += get(call, 0, g * together + i) == (double)k;
            set(call, 0, g * attributes->depth + k, (double)(attributes->mode == ONE_HOT_COUNT ? hits : hits > 0));
        }
    }
}

static struct tensor *one_hot_example(struct graph *graph, int variant, enum type type)
{
    static const struct {
        struct one_hot_attributes attributes;
        struct shape row;
        enum type type;
        const char *name;
    } cases[] = {
        {{5, ONE_HOT}, {1, {3}}, TYPE_I32, "index:5"},       {{3, ONE_HOT}, {0, {0}}, TYPE_U8, "index:4"},
        {{6, ONE_HOT_MULTI}, {1, {4}}, TYPE_I64, "index:6"}, {{7, ONE_HOT_COUNT}, {2, {2, 9}}, TYPE_F32, "index:7"},
        {{4, ONE_HOT_COUNT}, {0, {0}}, TYPE_I16, "index:4"},
    };
    (void)type;
    if (variant >= (int)(sizeof(cases) / sizeof(cases[0])))
        return NULL;
    struct tensor *index =
        example_input(graph, cases[variant].name, cases[variant].type, cases[variant].row.rank, cases[variant].row.dim);
    return graph_add(graph, &op_one_hot, &index, 1, &cases[variant].attributes, sizeof(cases[variant].attributes));
}

const struct op op_one_hot = {
    .name = "one_hot",
    .inputs = 1,
    .outputs = 1,
    .attributes_bytes = sizeof(struct one_hot_attributes),
    .infer = one_hot_infer,
    .no_gradient = WHOLE_NUMBERS,
    .in_place = NO_INPUT,
    .cut = cut_elementwise,
    .reference = one_hot_reference,
    .example = one_hot_example,
};

/* ---- bucketize -------------------------------------------------------------- */

static plim_status bucketize_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct bucketize_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    if (!is_label(x->type))
        return misfit(node, error, "numbers of type %s are not offered", type_name(x->type));
    if (attributes->count < 1 || attributes->count > MOST_BOUNDARIES)
        return misfit(node, error, "%lld boundaries; from 1 to %d", (long long)attributes->count, MOST_BOUNDARIES);
    for (int64_t i = 1; i < attributes->count; i++)
        if (!(attributes->boundary[i - 1] <= attributes->boundary[i]))
            return misfit(node, error, "boundaries must rise: %g, %g", attributes->boundary[i - 1],
                          attributes->boundary[i]);
    output_of(graph, node, 0, TYPE_I64, x->shape, x->batched);
    return PLIM_OK;
}

/* In float32, as TensorFlow compares. */
static void bucketize_reference(const struct call *call)
{
    const struct bucketize_attributes *attributes = call->node->attributes;
    const struct tensor *y = call->node->output[0];
    int64_t count = call_rows(call, y) * shape_row(&y->shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t below = 0;
        for (int64_t k = 0; k < attributes->count; k++)
            below += (float)attributes->boundary[k] <= (float)get(call, 0, i);
        set(call, 0, i, (double)below);
    }
}

static struct tensor *bucketize_example(struct graph *graph, int variant, enum type type)
{
    struct bucketize_attributes attributes = {3, {-0.5, 0, 0.25}};
    if (variant > 2)
        return NULL;
    if (variant == 1)
        attributes = (struct bucketize_attributes){1, {50}};
    struct tensor *x = example_input(graph, "x", variant == 1 ? TYPE_I32 : type, ROW(4, 5));
    return graph_add(graph, &op_bucketize, &x, 1, &attributes, sizeof(attributes));
}

const struct op op_bucketize = {
    .name = "bucketize",
    .inputs = 1,
    .outputs = 1,
    .attributes_bytes = sizeof(struct bucketize_attributes),
    .infer = bucketize_infer,
    .no_gradient = WHOLE_NUMBERS,
    .in_place = NO_INPUT,
    .cut = cut_elementwise,
    .reference = bucketize_reference,
    .example = bucketize_example,
};
