/* expression_emit.c - builds the parts of an expression: values, operands, steps. */
#include "pipeline/expression/expression_emit.h"

#include <string.h>

#include "base/numbers/checked.h"

static plim_status no_memory(struct emitter *emitter, plim_error *error)
{
    return arena_refused(emitter->expression->arena, error);
}

static plim_status too_large(struct emitter *emitter, const char *what, int most, plim_error *error)
{
    expression_fail(emitter->expression, emitter->node->at, error, "more than %d %s", most, what);
    return hint(error, PLIM_BAD_JOB, "make two columns of it, one after the other");
}

enum type lane_type(enum lane lane)
{
    static const enum type types[LANE_COUNT] = {TYPE_BOOL, TYPE_I64, TYPE_F32, TYPE_F64, TYPE_STRING};
    return types[lane];
}

struct value value_whole(int64_t whole)
{
    return (struct value){.kind = VALUE_CONSTANT, .lane = LANE_INT, .type = TYPE_I64, .scalar.whole = whole};
}

static plim_status constant_operand(expression_operand *out, struct emitter *emitter, const struct value *value,
                                    plim_error *error)
{
    struct expression_part *part = emitter->part;
    size_t bytes = lane_bytes(value->lane);
    if (part->constant_count == MOST_CONSTANTS)
        return too_large(emitter, "numbers", MOST_CONSTANTS, error);
    uint8_t *block = arena_take(emitter->expression->arena, bytes * EXPRESSION_BLOCK);
    if (!block)
        return no_memory(emitter, error);
    for (size_t i = 0; i < EXPRESSION_BLOCK; i++)
        memcpy(block + i * bytes, &value->scalar, bytes);
    *out = (expression_operand)part->operand_count++;
    part->constant[part->constant_count++] = (struct constant){.to = *out, .block = block};
    return PLIM_OK;
}

/* The same part of a column is read once. */
static plim_status input_operand(expression_operand *out, struct emitter *emitter, const struct value *value,
                                 plim_error *error)
{
    struct expression_part *part = emitter->part;
    struct input input = {.column = value->column,
                          .type = value->source,
                          .lane = value->lane,
                          .load = expression_load_of(value->source, value->lane),
                          .offset = value->offset,
                          .size = value->size,
                          .shape = value->shape};
    for (int i = 0; i < part->input_count; i++) {
        const struct input *other = &part->input[i];
        if (other->column == input.column && other->load == input.load && other->offset == input.offset &&
            other->size == input.size && shape_equal(&other->shape, &input.shape)) {
            *out = other->to;
            return PLIM_OK;
        }
    }
    if (part->input_count == MOST_INPUTS)
        return too_large(emitter, "columns and reductions at once", MOST_INPUTS, error);
    *out = input.to = (expression_operand)part->operand_count++;
    part->input[part->input_count++] = input;
    return PLIM_OK;
}

plim_status emit_operand(expression_operand *out, struct emitter *emitter, const struct value *value, plim_error *error)
{
    if (value->kind == VALUE_TEMPORARY)
        *out = value->operand;
    else if (value->kind == VALUE_CONSTANT)
        return constant_operand(out, emitter, value, error);
    else
        return input_operand(out, emitter, value, error);
    return PLIM_OK;
}

static plim_status take_temporary(expression_operand *out, struct emitter *emitter, plim_error *error)
{
    struct expression_part *part = emitter->part;
    int i = 0;
    while (i < part->temporary_count && part->busy[i])
        i++;
    if (i == MOST_TEMPORARY)
        return too_large(emitter, "intermediate values at once", MOST_TEMPORARY, error);
    if (i == part->temporary_count) {
        part->temporary[i] = (expression_operand)part->operand_count++;
        part->temporary_count++;
    }
    part->busy[i] = true;
    *out = part->temporary[i];
    return PLIM_OK;
}

static void give_temporary(struct expression_part *part, expression_operand given)
{
    for (int i = 0; i < part->temporary_count; i++)
        if (part->temporary[i] == given)
            part->busy[i] = false;
}

static plim_status add_step(struct emitter *emitter, const struct expression_step *step, plim_error *error)
{
    struct expression_part *part = emitter->part;
    if (part->step_count == part->step_most) {
        int most = part->step_most ? 2 * part->step_most : 8;
        struct expression_step *more = arena_array(emitter->expression->arena, (size_t)most, sizeof *more);
        if (!more)
            return no_memory(emitter, error);
        if (part->step_count)
            memcpy(more, part->step, (size_t)part->step_count * sizeof *more);
        part->step = more;
        part->step_most = most;
    }
    part->step[part->step_count++] = *step;
    return PLIM_OK;
}

static bool fold(struct value *out, expression_kernel *kernel, const struct value *operands, int count)
{
    const void *scalar[MOST_OPERANDS] = {NULL};
    for (int i = 0; i < count; i++) {
        if (operands[i].kind != VALUE_CONSTANT)
            return false;
        out->weak |= operands[i].weak;
        scalar[i] = &operands[i].scalar;
    }
    out->kind = VALUE_CONSTANT;
    kernel(&out->scalar, scalar[0], scalar[1], scalar[2], 1);
    return true;
}

plim_status emit_operation(struct value *out, struct emitter *emitter, expression_kernel *kernel, enum lane lane,
                           const struct value *operands, int count, plim_error *error)
{
    struct value value = {.kind = VALUE_TEMPORARY, .lane = lane, .type = lane_type(lane)};
    struct expression_step step = {.kernel = kernel};
    for (int i = 0; i < count; i++)
        if (!shapes_broadcast(&value.shape, &operands[i].shape))
            return expression_fail(emitter->expression, emitter->node->at, error, "shapes that do not broadcast");
    if (fold(&value, kernel, operands, count)) {
        *out = value;
        return PLIM_OK;
    }
    for (int i = 0; i < count; i++)
        TRY(emit_operand(&step.operand[i], emitter, &operands[i], error));
    for (int i = count; i < MOST_OPERANDS; i++)
        step.operand[i] = step.operand[0];
    TRY(take_temporary(&value.operand, emitter, error));
    for (int i = 0; i < count; i++)
        if (operands[i].kind == VALUE_TEMPORARY)
            give_temporary(emitter->part, operands[i].operand);
    step.to = value.operand;
    *out = value;
    return add_step(emitter, &step, error);
}

plim_status emit_convert(struct value *value, struct emitter *emitter, enum lane lane, plim_error *error)
{
    if (value->lane == lane)
        return PLIM_OK;
    struct value from = *value;
    if (from.kind == VALUE_COLUMN && from.type == from.source && expression_load_of(from.source, lane)) {
        value->lane = lane;
        value->type = lane_type(lane);
        return PLIM_OK;
    }
    TRY(emit_operation(value, emitter, expression_convert(lane, from.lane), lane, &from, 1, error));
    value->weak = from.weak && lane == LANE_DOUBLE;
    return PLIM_OK;
}

/* numpy's rule: axes from the last; equal, or one of them 1. */
bool shapes_broadcast(struct shape *shape, const struct shape *other)
{
    struct shape joined = {.rank = shape->rank > other->rank ? shape->rank : other->rank};
    for (int i = 1; i <= joined.rank; i++) {
        int64_t a = i <= shape->rank ? shape->dim[shape->rank - i] : 1;
        int64_t b = i <= other->rank ? other->dim[other->rank - i] : 1;
        if (a != b && a != 1 && b != 1)
            return false;
        joined.dim[joined.rank - i] = a == 1 ? b : a;
    }
    *shape = joined;
    return true;
}

/* Strides along the part's axes; axes that run on without a gap become one. */
static void lay_out(struct input *input, const struct shape *shape)
{
    uint64_t stride = input->size, strides[MOST_AXES] = {0};
    for (int i = 1; i <= input->shape.rank; i++) {
        int64_t dim = input->shape.dim[input->shape.rank - i];
        strides[shape->rank - i] = dim == 1 ? 0 : stride;
        stride *= (uint64_t)dim;
    }
    input->rank = 0;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == 1)
            continue;
        int last = input->rank - 1;
        if (last >= 0 && input->stride[last] == (uint64_t)shape->dim[i] * strides[i]) {
            input->dim[last] *= shape->dim[i];
            input->stride[last] = strides[i];
        } else {
            input->dim[input->rank] = shape->dim[i];
            input->stride[input->rank++] = strides[i];
        }
    }
    if (input->rank == 0) {
        input->dim[0] = 1;
        input->rank = 1;
    }
}

plim_status emit_result(struct emitter *emitter, const struct value *value, plim_error *error)
{
    struct expression_part *part = emitter->part;
    uint64_t bytes;
    part->used = true;
    part->lane = value->lane;
    part->shape = value->shape;
    if (!shape_bytes(&bytes, &value->shape, value->type))
        return expression_fail(emitter->expression, emitter->node->at, error, "more values than an address can say");
    part->count = shape_count(&value->shape);
    TRY(emit_operand(&part->result, emitter, value, error));
    part->own_result = value->kind == VALUE_TEMPORARY;
    if (part->own_result) /* an operand of its own: earlier values may not lie where the result goes */
        part->step[part->step_count - 1].to = part->result = (expression_operand)part->operand_count++;
    for (int i = 0; i < part->input_count; i++)
        lay_out(&part->input[i], &part->shape);
    return PLIM_OK;
}
