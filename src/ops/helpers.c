/* helpers.c - what the families of ops share: checks, cuts, builders. */
#include "ops/helpers.h"

#include <stdarg.h>
#include <stdio.h>

plim_status misfit_at(const char *op, plim_error *error, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return fail(error, PLIM_BAD_MODEL, "%s: %s", op, message);
}

bool is_real(enum type type)
{
    return type_is_float(type);
}

enum type wide_type(enum type type)
{
    return type == TYPE_F16 || type == TYPE_BF16 ? TYPE_F32 : type;
}

bool hands_on_always(const struct node *node)
{
    (void)node;
    return true;
}

bool is_label(enum type type)
{
    return is_real(type) || type == TYPE_U8 || type == TYPE_I8 || type == TYPE_I16 || type == TYPE_I32 ||
           type == TYPE_I64;
}

struct shape shape_1(int64_t a)
{
    return (struct shape){1, {a}};
}

struct shape shape_2(int64_t a, int64_t b)
{
    return (struct shape){2, {a, b}};
}

struct shape shape_4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){4, {a, b, c, d}};
}

int64_t last_dim(const struct tensor *tensor)
{
    return tensor->shape.rank ? tensor->shape.dim[tensor->shape.rank - 1] : 1;
}

struct shape without_last(const struct tensor *tensor)
{
    return shape_of(tensor->shape.rank - 1, tensor->shape.dim);
}

plim_status need_real(const struct node *node, int input, plim_error *error)
{
    enum type type = node->input[input]->type;
    if (!is_real(type))
        return misfit(node, error, "input %d is %s; it must be float32, float64, float16 or bfloat16", input,
                      type_name(type));
    return PLIM_OK;
}

plim_status need_type(const struct node *node, int input, enum type type, plim_error *error)
{
    enum type is = node->input[input]->type;
    if (is != type)
        return misfit(node, error, "input %d is %s; it must be %s", input, type_name(is), type_name(type));
    return PLIM_OK;
}

plim_status need_type_of(const struct node *node, int input, int like, plim_error *error)
{
    enum type type = node->input[like]->type;
    if (node->input[input]->type == wide_type(type))
        return PLIM_OK;
    return need_type(node, input, type, error);
}

plim_status need_rank(const struct node *node, int input, int rank, plim_error *error)
{
    const struct shape *shape = &node->input[input]->shape;
    char text[160];
    shape_text(text, sizeof(text), shape, false);
    if (shape->rank != rank)
        return misfit(node, error, "input %d of shape %s has %d axes, not %d", input, text, shape->rank, rank);
    return PLIM_OK;
}

plim_status need_batched(const struct node *node, int input, plim_error *error)
{
    if (!node->input[input]->batched)
        return misfit(node, error, "input %d has no batch axis", input);
    return PLIM_OK;
}

plim_status need_alike(const struct node *node, int a, int b, plim_error *error)
{
    const struct tensor *first = node->input[a], *second = node->input[b];
    char texts[2][160];
    shape_text(texts[0], sizeof(texts[0]), &first->shape, false);
    shape_text(texts[1], sizeof(texts[1]), &second->shape, false);
    if (first->type != second->type)
        return misfit(node, error, "types %s and %s differ", type_name(first->type), type_name(second->type));
    if (!shape_equal(&first->shape, &second->shape))
        return misfit(node, error, "shapes %s and %s differ", texts[0], texts[1]);
    if (first->batched != second->batched)
        return misfit(node, error, "only one of the inputs has a batch axis");
    return PLIM_OK;
}

static plim_status need_scores(const struct node *node, int scores, int labels, plim_error *error)
{
    TRY(need_real(node, scores, error));
    TRY(need_batched(node, scores, error));
    TRY(need_batched(node, labels, error));
    if (!is_label(node->input[labels]->type))
        return misfit(node, error, "labels of type %s are not offered", type_name(node->input[labels]->type));
    return PLIM_OK;
}

plim_status need_labels(const struct node *node, int scores, int labels, plim_error *error)
{
    const struct shape *shape = &node->input[labels]->shape;
    char text[160];
    TRY(need_scores(node, scores, labels, error));
    shape_text(text, sizeof(text), shape, true);
    const struct tensor *x = node->input[scores];
    if (x->shape.rank < 2)
        return need_rank(node, scores, 2, error);
    if (shape->rank > x->shape.rank || shape_row(shape) * last_dim(x) != shape_row(&x->shape))
        return misfit(node, error, "labels of shape %s; one class number a sample is needed", text);
    return PLIM_OK;
}

plim_status need_targets(const struct node *node, int scores, int targets, plim_error *error)
{
    const struct shape *shape = &node->input[targets]->shape, *like = &node->input[scores]->shape;
    char texts[2][160];
    TRY(need_scores(node, scores, targets, error));
    TRY(need_rank(node, scores, 2, error));
    shape_text(texts[0], sizeof(texts[0]), shape, true);
    shape_text(texts[1], sizeof(texts[1]), like, true);
    if (!shape_equal(shape, like) && !(shape->rank == 1 && like->dim[1] == 1))
        return misfit(node, error, "targets of shape %s for outputs of shape %s", texts[0], texts[1]);
    return PLIM_OK;
}

plim_status need_alike_targets(const struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0], *t = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_batched(node, 1, error));
    if (x->shape.rank < 2 || !is_label(t->type) || shape_count(&x->shape) != shape_count(&t->shape))
        return misfit(node, error, "targets do not fit the outputs");
    return PLIM_OK;
}

plim_status need_channels(const struct node *node, int at, int x, plim_error *error)
{
    const struct tensor *given = node->input[at];
    if (!given)
        return PLIM_OK;
    TRY(need_real(node, at, error));
    if (given->batched || given->shape.rank != 1 || given->shape.dim[0] != last_dim(node->input[x]))
        return misfit(node, error, "input %d must hold one value for each of %lld channels", at,
                      (long long)last_dim(node->input[x]));
    return PLIM_OK;
}

plim_status need_row_gradients(const struct node *node, plim_error *error)
{
    struct shape shape = without_last(node->input[0]);
    TRY(need_type(node, 2, node->input[0]->type, error));
    TRY(need_batched(node, 2, error));
    if (!shape_equal(&node->input[2]->shape, &shape))
        return misfit(node, error, "the gradient does not fit the outputs");
    return PLIM_OK;
}

plim_status output_of(struct graph *graph, struct node *node, int k, enum type type, struct shape shape, bool batched)
{
    bool sums = false;
    for (int i = 0; i < node->input_count && !batched; i++)
        sums |= node->input[i] && node->input[i]->batched;
    node->output[k] = graph_value(graph, sums ? wide_type(type) : type, shape, batched);
    return PLIM_OK;
}

plim_status output_like(struct graph *graph, struct node *node, int k, const struct tensor *like)
{
    return output_of(graph, node, k, like->type, like->shape, like->batched);
}

plim_status infer_alike(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    for (int i = 1; i < node->input_count; i++)
        TRY(need_alike(node, 0, i, error));
    return output_like(graph, node, 0, node->input[0]);
}

void cut_rows(struct cut *cut, const struct node *node, const struct tensor *rows, double work)
{
    *cut = (struct cut){.grain = 1, .by_sample = rows->batched, .work = work};
    cut->extent = rows->shape.rank ? rows->shape.dim[0] : 1;
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = node->input[i] && node->input[i]->batched == rows->batched ? PART_CUT : PART_WHOLE;
    for (int k = 0; k < node->output_count; k++)
        cut->output[k] = node->output[k]->batched == rows->batched ? PART_CUT : PART_SUM;
}

void cut_elementwise(struct cut *cut, const struct node *node)
{
    const struct tensor *rows = node->output_count ? node->output[0] : node->input[0];
    cut_rows(cut, node, rows, (double)shape_count(&rows->shape));
}

void cut_input_rows(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[0], (double)shape_count(&node->input[0]->shape));
}

int64_t call_rows(const struct call *call, const struct tensor *tensor)
{
    int64_t end = tensor->batched && call->end > call->count ? call->count : call->end;
    return end > call->begin ? end - call->begin : 0;
}

int64_t output_elements(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    return call_rows(call, y) * shape_row(&y->shape);
}

void scatter_sums(const struct call *call, double (*start)(const struct call *call, int64_t i),
                  void (*pass)(const struct scatter *scatter))
{
    double part[SCATTER_PART];
    struct scatter scatter = {.call = call};
    enum type type = call->node->output[0]->type;
    int64_t count = output_elements(call);
    if (type == wide_type(type)) {
        for (int64_t i = 0; i < count; i++)
            set(call, 0, i, start ? start(call, i) : 0);
        pass(&scatter);
        return;
    }
    scatter.part = part;
    for (; scatter.first < count; scatter.first += SCATTER_PART) {
        for (int64_t i = 0; i < SCATTER_PART; i++)
            part[i] = start && scatter.first + i < count ? start(call, scatter.first + i) : 0;
        pass(&scatter);
        for (int64_t i = 0; i < SCATTER_PART && scatter.first + i < count; i++)
            set(call, 0, scatter.first + i, part[i]);
    }
}

struct tensor *unary(struct graph *graph, const struct op *op, struct tensor *x)
{
    return graph_add(graph, op, (struct tensor *[]){x}, 1, NULL, 0);
}

struct tensor *binary(struct graph *graph, const struct op *op, struct tensor *a, struct tensor *b)
{
    return graph_add(graph, op, (struct tensor *[]){a, b}, 2, NULL, 0);
}
