/* layer_normalize.c - normalising each row of the last axes: by mean and
   deviation, by root mean square, to length one. */
#include <math.h>

#include "ops/helpers.h"

/* What a call needs to know of its rows. */
struct rows {
    const struct layer_normalize_attributes *attributes;
    int64_t width, count; /* elements of a row; rows of this slice */
    int figures;          /* a row, in statistics */
};

static int figures_of(const struct layer_normalize_attributes *attributes)
{
    return attributes->kind == NORMAL_LAYER ? 2 : 1;
}

static int64_t width_of(const struct layer_normalize_attributes *attributes, const struct tensor *x)
{
    int64_t width = 1;
    for (int64_t i = 0; i < attributes->axes; i++)
        width *= x->shape.dim[x->shape.rank - 1 - i];
    return width;
}

struct shape layer_normalize_axes(const struct layer_normalize_attributes *attributes, const struct tensor *x)
{
    return shape_of((int)attributes->axes, x->shape.dim + x->shape.rank - attributes->axes);
}

struct shape layer_normalize_statistics(const struct layer_normalize_attributes *attributes, const struct tensor *x)
{
    int64_t rows = shape_row(&x->shape) / width_of(attributes, x);
    return shape_of(3, (int64_t[]){x->shape.dim[0], rows, figures_of(attributes)});
}

static struct rows rows_of(const struct call *call, const struct layer_normalize_attributes *attributes,
                           const struct tensor *x)
{
    struct rows rows = {attributes, width_of(attributes, x), 0, figures_of(attributes)};
    rows.count = call_rows(call, x) * (shape_row(&x->shape) / rows.width);
    return rows;
}

static plim_status need_rows(const struct node *node, const struct layer_normalize_attributes *attributes,
                             plim_error *error)
{
    const struct tensor *x = node->input[0];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (attributes->kind < 0 || attributes->kind >= NORMALS || !(attributes->epsilon > 0))
        return misfit(node, error, "kind %lld with an epsilon of %g is not possible", (long long)attributes->kind,
                      attributes->epsilon);
    if (attributes->axes < 1 || attributes->axes >= x->shape.rank)
        return misfit(node, error, "the last %lld axes of %d, without the batch, cannot be taken",
                      (long long)attributes->axes, x->shape.rank);
    if (width_of(attributes, x) < 1)
        return misfit(node, error, "rows of no elements cannot be normalised");
    return PLIM_OK;
}

/* gamma or beta. */
static plim_status need_factors(const struct node *node, int at, const struct layer_normalize_attributes *attributes,
                                plim_error *error)
{
    const struct tensor *given = node->input[at];
    struct shape shape = layer_normalize_axes(attributes, node->input[0]);
    if (!given)
        return PLIM_OK;
    TRY(need_real(node, at, error));
    if (given->batched || !shape_equal(&given->shape, &shape))
        return misfit(node, error, "input %d must have the shape of the last %lld axes", at,
                      (long long)attributes->axes);
    return PLIM_OK;
}

static plim_status layer_normalize_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct layer_normalize_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    TRY(need_rows(node, attributes, error));
    TRY(need_factors(node, 1, attributes, error));
    TRY(need_factors(node, 2, attributes, error));
    output_like(graph, node, 0, x);
    return output_of(graph, node, 1, wide_type(x->type), layer_normalize_statistics(attributes, x), true);
}

/* ---- forward ------------------------------------------------------------- */

static double mean_of(const struct call *call, const struct rows *rows, int64_t first)
{
    double sum = 0;
    if (rows->attributes->kind != NORMAL_LAYER)
        return 0;
    for (int64_t i = first; i < first + rows->width; i++)
        sum += get(call, 0, i);
    return sum / (double)rows->width;
}

static double rate_of(const struct call *call, const struct rows *rows, int64_t first, double mean)
{
    double squares = 0;
    for (int64_t i = first; i < first + rows->width; i++)
        squares += (get(call, 0, i) - mean) * (get(call, 0, i) - mean);
    if (rows->attributes->kind == NORMAL_UNIT)
        return fmin(1 / sqrt(squares), 1 / rows->attributes->epsilon);
    return 1 / sqrt(squares / (double)rows->width + rows->attributes->epsilon);
}

static void layer_normalize_reference(const struct call *call)
{
    struct rows rows = rows_of(call, call->node->attributes, call->node->input[0]);
    for (int64_t row = 0; row < rows.count; row++) {
        int64_t first = row * rows.width;
        double mean = mean_of(call, &rows, first), rate = rate_of(call, &rows, first, mean);
        for (int64_t i = 0; i < rows.width; i++) {
            double gamma = call->input[1] ? get(call, 1, i) : 1, beta = call->input[2] ? get(call, 2, i) : 0;
            set(call, 0, first + i, (get(call, 0, first + i) - mean) * rate * gamma + beta);
        }
        if (rows.figures == 2)
            set(call, 1, row * 2, mean);
        set(call, 1, row * rows.figures + rows.figures - 1, rate);
    }
}

static void layer_normalize_back(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                 const bool *wanted, struct tensor **d_input)
{
    const struct layer_normalize_attributes *attributes = node->attributes;
    struct layer_normalize_gradient_attributes back = {*attributes, wanted[1] || wanted[2]};
    struct tensor *inputs[] = {d_output[0], node->input[0], node->output[1], node->input[1]};
    if (!d_output[0])
        return; /* statistics are for backward alone */
    struct tensor *dx = graph_add(graph, &op_layer_normalize_gradient, inputs, 4, &back, sizeof(back));
    d_input[0] = wanted[0] ? dx : NULL;
    d_input[1] = wanted[1] ? graph_output(dx, 1) : NULL;
    d_input[2] = wanted[2] ? graph_output(dx, 2) : NULL;
}

const struct op op_layer_normalize = {
    OP_HEAD(layer_normalize, 3, 2, layer_normalize_infer, cut_elementwise),
    .optional = 1 << 1 | 1 << 2,
    .attributes_bytes = sizeof(struct layer_normalize_attributes),
    .gradient = layer_normalize_back,
    .keeps_inputs = 1 << 0 | 1 << 1,
    .keeps_outputs = 1 << 1,
};

/* ---- backward: dy, x, statistics, gamma -> dx, dgamma, dbeta ------------- */

static plim_status layer_normalize_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct layer_normalize_gradient_attributes *attributes = node->attributes;
    TRY(need_rows(node, &attributes->layer, error));
    TRY(need_alike(node, 0, 1, error));
    TRY(need_batched(node, 2, error));
    TRY(need_factors(node, 3, &attributes->layer, error));
    struct shape statistics = layer_normalize_statistics(&attributes->layer, node->input[1]);
    if (!is_real(node->input[2]->type) || !shape_equal(&node->input[2]->shape, &statistics))
        return misfit(node, error, "input 2 is not what layer_normalize made");
    output_like(graph, node, 0, node->input[0]);
    for (int k = 1; k < 3; k++)
        output_of(graph, node, k, wide_type(node->input[1]->type),
                  layer_normalize_axes(&attributes->layer, node->input[1]), false);
    return PLIM_OK;
}

static void layer_normalize_gradient_cut(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[0], 4 * (double)shape_count(&node->input[0]->shape));
}

struct row {
    double mean, rate;
    int64_t first; /* element */
};

static struct row row_of(const struct call *call, const struct rows *rows, int64_t row)
{
    double mean = rows->figures == 2 ? get(call, 2, row * 2) : 0;
    return (struct row){mean, get(call, 2, row * rows->figures + rows->figures - 1), row * rows->width};
}

static double normal_of(const struct call *call, const struct row *row, int64_t i)
{
    return (get(call, 1, row->first + i) - row->mean) * row->rate;
}

static double g_of(const struct call *call, const struct row *row, int64_t i)
{
    return get(call, 0, row->first + i) * (call->input[3] ? get(call, 3, i) : 1);
}

static void row_back(const struct call *call, const struct rows *rows, const struct row *row)
{
    double direct = 0, normal = 0, width = (double)rows->width;
    for (int64_t i = 0; i < rows->width; i++) {
        direct += g_of(call, row, i);
        normal += g_of(call, row, i) * normal_of(call, row, i);
    }
    direct = rows->attributes->kind == NORMAL_LAYER ? direct / width : 0;
    if (rows->attributes->kind != NORMAL_UNIT)
        normal /= width;
    else if (row->rate * rows->attributes->epsilon >= 1)
        normal = 0; /* the rate was the bound */
    for (int64_t i = 0; i < rows->width; i++)
        set(call, 0, row->first + i, row->rate * (g_of(call, row, i) - direct - normal_of(call, row, i) * normal));
}

/* The sums first: dx may take the place of dy. */
static void layer_normalize_gradient_reference(const struct call *call)
{
    const struct layer_normalize_gradient_attributes *attributes = call->node->attributes;
    struct rows rows = rows_of(call, &attributes->layer, call->node->input[1]);
    for (int64_t i = 0; i < rows.width; i++) {
        double dgamma = 0, dbeta = 0;
        for (int64_t k = 0; k < rows.count && attributes->sums; k++) {
            struct row row = row_of(call, &rows, k);
            dgamma += get(call, 0, row.first + i) * normal_of(call, &row, i);
            dbeta += get(call, 0, row.first + i);
        }
        share(call, 1, i, dgamma);
        share(call, 2, i, dbeta);
    }
    for (int64_t k = 0; k < rows.count; k++) {
        struct row row = row_of(call, &rows, k);
        row_back(call, &rows, &row);
    }
}

const struct op op_layer_normalize_gradient = {
    OP_HEAD(layer_normalize_gradient, 4, 3, layer_normalize_gradient_infer, layer_normalize_gradient_cut),
    .optional = 1 << 3,
    .attributes_bytes = sizeof(struct layer_normalize_gradient_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};
