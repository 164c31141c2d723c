/* update_norm.c - what needs a norm: clipping, Lamb, Adafactor. A norm is a
   sum of squares over slices first, so these are rules of several nodes. */
#include <math.h>

#include "ops/update/update_own.h"

/* ---- square_sum --------------------------------------------------------- */

static plim_status square_sum_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    return output_of(graph, node, 0, TYPE_F64, shape_1(1), false);
}

static void square_sum_reference(const struct call *call)
{
    int64_t count = update_elements(call);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += get(call, 0, i) * get(call, 0, i);
    share(call, 0, 0, sum);
}

const struct op op_square_sum = {
    OP_HEAD(square_sum, 1, 1, square_sum_infer, cut_to_sum),
    .no_gradient = "it measures gradients, and " NO_SECOND,
};

/* ---- clip_value, clip_norm ---------------------------------------------- */

static plim_status clip_value_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    return output_like(graph, node, 0, node->input[0]);
}

/* NaN stays. */
static void clip_value_reference(const struct call *call)
{
    const struct clip_attributes *a = call->node->attributes;
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double g = get(call, 0, i);
        set(call, 0, i, g > a->limit ? a->limit : g < -a->limit ? -a->limit : g);
    }
}

const struct op op_clip_value = {
    OP_HEAD(clip_value, 1, 1, clip_value_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct clip_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};

static plim_status clip_norm_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_one(node, 1, TYPE_F64, error));
    return output_like(graph, node, 0, node->input[0]);
}

double clip_norm_factor(const struct clip_attributes *a, double squares)
{
    double norm = sqrt(squares);
    if (a->global)
        return a->limit * fmin(1 / norm, 1 / a->limit) + (norm - norm);
    return a->limit / (norm > a->limit ? norm : norm == norm ? a->limit : norm);
}

static void clip_norm_reference(const struct call *call)
{
    double factor = clip_norm_factor(call->node->attributes, get(call, 1, 0));
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i) * factor);
}

const struct op op_clip_norm = {
    OP_HEAD(clip_norm, 2, 1, clip_norm_infer, cut_control_1),
    .attributes_bytes = sizeof(struct clip_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};

/* ---- lamb --------------------------------------------------------------- */

static void lamb_direction_reference(const struct call *call)
{
    const double *control = call->input[1];
    int64_t count = update_elements(call);
    bool applies = control[CONTROL_APPLIES] != 0;
    double k[UPDATE_NUMBERS];
    update_numbers(k, call->node, control, 0);
    for (int64_t i = 0; i < count; i++) {
        double g = get(call, 0, i), m = get(call, 2, i), v = get(call, 3, i);
        m += applies ? (g - m) * k[0] : 0;
        v += applies ? (g * g - v) * k[1] : 0;
        put(call, 2, i, m);
        put(call, 3, i, v);
        set(call, 0, i, m * k[2] / (sqrt(v * k[3]) + k[4]));
    }
}

const struct op op_lamb_direction = {
    OP_HEAD(lamb_direction, 4, 1, infer_direction, cut_control_1),
    .attributes_bytes = sizeof(struct update_attributes),
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 2 | 1 << 3,
    .in_place = 1 << 0,
};

static plim_status squares_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_alike(node, 0, 1, error));
    TRY(need_control(node, 2, error));
    TRY(need_one(node, 3, TYPE_F64, error));
    return need_one(node, 4, TYPE_F64, error);
}

double lamb_factor(const struct node *node, const double *control, double weight_squares, double step_squares)
{
    double w = sqrt(weight_squares), u = sqrt(step_squares);
    (void)node;
    return control[CONTROL_RATE] * (w > 0 && u > 0 ? w / u : 1);
}

double adafactor_factor(const struct node *node, const double *control, double weight_squares, double step_squares)
{
    const struct update_attributes *a = node->attributes;
    double count = (double)shape_count(&node->input[0]->shape);
    double rate = fmin(control[CONTROL_RATE], 1 / sqrt(control[CONTROL_STEP]));
    double step = fmax(1, sqrt(step_squares / count) / a->threshold);
    return fmax(a->epsilon_2, sqrt(weight_squares / count)) * rate / step;
}

/* w -= factor * u */
static void squares_reference(const struct call *call, double factor)
{
    const double *control = call->input[2];
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count && control[CONTROL_APPLIES] != 0; i++)
        put(call, 0, i, get(call, 0, i) - factor * get(call, 1, i));
}

static void lamb_reference(const struct call *call)
{
    squares_reference(call, lamb_factor(call->node, call->input[2], get(call, 3, 0), get(call, 4, 0)));
}

static void adafactor_reference(const struct call *call)
{
    squares_reference(call, adafactor_factor(call->node, call->input[2], get(call, 3, 0), get(call, 4, 0)));
}

UPDATE_OP(lamb, 5, struct update_attributes, squares_infer, 1 << 0, cut_squares);

UPDATE_OP(adafactor, 5, struct update_attributes, squares_infer, 1 << 0, cut_squares);

/* ---- adafactor: means of squares over the last axis, and the one before - */

static plim_status means_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct shape shape = node->input[0]->shape;
    TRY(need_real(node, 0, error));
    if (shape.rank < 2)
        return misfit(node, error, "a tensor of rank %d has no rows and columns", shape.rank);
    shape.rank--;
    if (node->op == &op_square_columns)
        shape.dim[shape.rank - 1] = shape.dim[shape.rank];
    return output_of(graph, node, 0, node->input[0]->type, shape, false);
}

static void square_rows_reference(const struct call *call)
{
    const struct update_attributes *a = call->node->attributes;
    int64_t width = last_dim(call->node->input[0]), rows = update_elements(call) / width;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++)
            sum += get(call, 0, i) * get(call, 0, i) + a->epsilon;
        set(call, 0, row, sum / (double)width);
    }
}

/* Of a matrix the rows are slices: a sum. Of more axes each matrix lies in one slice. */
static void cut_columns(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, 0);
    if (node->input[0]->shape.rank == 2)
        cut->output[0] = PART_SUM;
}

static void square_columns_reference(const struct call *call)
{
    const struct update_attributes *a = call->node->attributes;
    const struct shape *shape = &call->node->input[0]->shape;
    int64_t width = shape->dim[shape->rank - 1], all = shape->dim[shape->rank - 2];
    int64_t rows = shape->rank == 2 ? call->end - call->begin : all;
    int64_t matrices = rows ? update_elements(call) / (rows * width) : 0;
    for (int64_t m = 0; m < matrices; m++)
        for (int64_t c = 0; c < width; c++) {
            double sum = 0;
            for (int64_t r = 0; r < rows; r++) {
                double g = get(call, 0, (m * rows + r) * width + c);
                sum += g * g + a->epsilon;
            }
            if (shape->rank == 2)
                share(call, 0, c, sum / (double)all);
            else
                set(call, 0, m * width + c, sum / (double)all);
        }
}

const struct op op_square_rows = {
    OP_HEAD(square_rows, 1, 1, means_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct update_attributes),
    .no_gradient = NO_SECOND,
};

const struct op op_square_columns = {
    OP_HEAD(square_columns, 1, 1, means_infer, cut_columns),
    .attributes_bytes = sizeof(struct update_attributes),
    .no_gradient = NO_SECOND,
};

/* ---- adafactor_average: state = b state + (1 - b) mean ------------------ */

double adafactor_keep(const struct node *node, const double *control)
{
    const struct update_attributes *a = node->attributes;
    return 1 - pow(control[CONTROL_STEP], a->decay);
}

static void adafactor_average_reference(const struct call *call)
{
    const double *control = call->input[2];
    double keep = adafactor_keep(call->node, control);
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count && control[CONTROL_APPLIES] != 0; i++)
        put(call, 0, i, keep * get(call, 0, i) + (1 - keep) * get(call, 1, i));
}

UPDATE_OP(adafactor_average, 3, struct update_attributes, infer_average, 1 << 0, cut_control_2);

/* ---- adafactor_factored: u = g / sqrt(rows / mean(rows) * columns) ------ */

static plim_status adafactor_factored_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct shape *g = &node->input[0]->shape;
    TRY(need_real(node, 0, error));
    TRY(need_type(node, 1, node->input[0]->type, error));
    TRY(need_type(node, 2, node->input[0]->type, error));
    int64_t matrices = g->rank < 2 ? 0 : shape_count(g) / (g->dim[g->rank - 1] * g->dim[g->rank - 2]);
    if (g->rank < 2 || shape_count(&node->input[1]->shape) != matrices * g->dim[g->rank - 2] ||
        shape_count(&node->input[2]->shape) != matrices * g->dim[g->rank - 1])
        return misfit(node, error, "means of rows and columns do not fit the gradient");
    return output_like(graph, node, 0, node->input[0]);
}

static void cut_factored(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, 1 << 1 | 1 << 2);
}

static void adafactor_factored_reference(const struct call *call)
{
    const struct shape *shape = &call->node->input[0]->shape;
    int64_t width = shape->dim[shape->rank - 1], rows = shape->dim[shape->rank - 2];
    int64_t count = update_elements(call) / width, first = call->begin * shape_row(shape) / width;
    for (int64_t row = 0; row < count; row++) {
        int64_t at = first + row, matrix = at / rows;
        double mean = 0;
        for (int64_t r = 0; r < rows; r++)
            mean += get(call, 1, matrix * rows + r) / (double)rows;
        for (int64_t c = 0; c < width; c++) {
            double v = get(call, 1, at) / mean * get(call, 2, matrix * width + c);
            set(call, 0, row * width + c, get(call, 0, row * width + c) / sqrt(v));
        }
    }
}

const struct op op_adafactor_factored = {
    OP_HEAD(adafactor_factored, 3, 1, adafactor_factored_infer, cut_factored),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};

/* ---- adafactor_direction: vectors keep all of their squares ------------- */

static void adafactor_direction_reference(const struct call *call)
{
    const struct update_attributes *a = call->node->attributes;
    const double *control = call->input[1];
    double keep = control[CONTROL_APPLIES] != 0 ? adafactor_keep(call->node, control) : 1;
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double g = get(call, 0, i), v = keep * get(call, 2, i) + (1 - keep) * (g * g + a->epsilon);
        put(call, 2, i, v);
        set(call, 0, i, g / sqrt(v));
    }
}

const struct op op_adafactor_direction = {
    OP_HEAD(adafactor_direction, 3, 1, infer_direction, cut_control_1),
    .attributes_bytes = sizeof(struct update_attributes),
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 2,
    .in_place = 1 << 0,
};
