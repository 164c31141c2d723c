/* expression_check.c - the types and shapes of an expression over given columns, and the program for them.

   Nodes come operands first, so one pass from the first to the last is enough: no recursion. A reduction makes a part
   of its own out of what it reduces; a node belongs to the part of the innermost reduction around it. */
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/text/text.h"
#include "pipeline/expression/expression_emit.h"

struct checker {
    struct expression *expression;
    const struct spec *spec;
    struct value *value; /* of each node */
    int *part;           /* of each node */
};

#define WRONG(emitter, ...) expression_fail((emitter)->expression, (emitter)->node->at, error, __VA_ARGS__)

/* ---- which lane ---- */

/* The lane in which these meet. Numbers of the text do not widen what columns give. */
static enum lane common_lane(const struct value *values, int count, bool *constant)
{
    enum lane lane = LANE_BOOL;
    bool weak = false;
    *constant = true;
    for (int i = 0; i < count; i++) {
        *constant = *constant && values[i].kind == VALUE_CONSTANT;
        weak = weak || values[i].weak;
        if (!values[i].weak && values[i].lane > lane)
            lane = values[i].lane;
    }
    if (weak && lane < LANE_FLOAT)
        lane = *constant ? LANE_DOUBLE : LANE_FLOAT;
    return lane;
}

enum rule { RULE_NUMBER, RULE_FLOAT, RULE_COMPARE, RULE_EQUAL, RULE_LOGIC, RULE_ROUND, RULE_WHERE };

static const struct {
    const char *name;
    enum rule rule;
} facts[OPERATION_COUNT] = {
#define OPERATION(name, text, rule, kernels) {text, RULE_##rule},
#include "pipeline/expression/expression_operations.def"
#undef OPERATION
};

static enum lane lane_by_rule(enum rule rule, const struct value *values, int count)
{
    bool constant;
    enum lane lane = common_lane(values, count, &constant);
    if ((rule == RULE_NUMBER || rule == RULE_ROUND) && lane == LANE_BOOL)
        return LANE_INT;
    if (rule == RULE_FLOAT && lane < LANE_FLOAT)
        return constant ? LANE_DOUBLE : LANE_FLOAT;
    /* float32 holds no id above 2^24 */
    if ((rule == RULE_COMPARE || rule == RULE_EQUAL) && lane == LANE_FLOAT)
        for (int i = 0; i < count; i++)
            if (values[i].lane == LANE_INT)
                return LANE_DOUBLE;
    return lane;
}

/* ---- operations ---- */

/* Values that the operation does not take are named. */
static plim_status check_kinds(struct emitter *emitter, const struct value *values, int count, plim_error *error)
{
    enum operation operation = emitter->node->operation;
    enum rule rule = emitter->node->kind == NODE_OPERATION ? facts[operation].rule : RULE_NUMBER;
    const char *name = emitter->node->kind == NODE_OPERATION ? facts[operation].name : "clip";
    int strings = 0;
    for (int i = 0; i < count; i++)
        strings += values[i].lane == LANE_STRING;
    if (strings && rule == RULE_EQUAL)
        return strings == count ? PLIM_OK : WRONG(emitter, "a string and a number are compared");
    if (strings)
        return WRONG(emitter, "'%s' does not take strings", name);
    for (int i = 0; i < count; i++)
        if ((rule == RULE_LOGIC || (rule == RULE_WHERE && i == 0)) && values[i].lane != LANE_BOOL) {
            WRONG(emitter, "'%s' takes bools, not %s", name, type_name(values[i].type));
            return hint(error, PLIM_BAD_JOB, "compare first, as in 'x != 0'");
        }
    return PLIM_OK;
}

/* emit_operation, with the shapes in the message when they do not go together. */
static plim_status apply(struct value *out, struct emitter *emitter, enum operation operation, enum lane lane,
                         const struct value *values, int count, plim_error *error)
{
    bool compares = facts[operation].rule == RULE_COMPARE || facts[operation].rule == RULE_EQUAL;
    struct shape shape = values[0].shape;
    for (int i = 1; i < count; i++) {
        char a[64], b[64];
        shape_text(a, sizeof a, &shape, false);
        shape_text(b, sizeof b, &values[i].shape, false);
        if (!shapes_broadcast(&shape, &values[i].shape))
            return WRONG(emitter, "'%s': shapes %s and %s do not broadcast", facts[operation].name, a, b);
    }
    bool weak = false, constant;
    common_lane(values, count, &constant);
    for (int i = 0; i < count; i++)
        weak = weak || values[i].weak;
    TRY(emit_operation(out, emitter, expression_kernel_of(operation, lane), compares ? LANE_BOOL : lane, values, count,
                       error));
    out->weak = constant && lane == LANE_DOUBLE && weak && !compares;
    return PLIM_OK;
}

/* Whole powers of whole numbers stay whole where the exponent is written down. */
static plim_status apply_power(struct value *out, struct emitter *emitter, struct value *values, plim_error *error)
{
    const struct value *exponent = &values[1];
    bool written = exponent->kind == VALUE_CONSTANT && exponent->lane == LANE_INT;
    enum lane lane = lane_by_rule(RULE_FLOAT, values, 2);
    if (values[0].lane <= LANE_INT && written && exponent->scalar.whole >= 0)
        lane = LANE_INT;
    bool square = written && exponent->scalar.whole == 2;
    TRY(emit_convert(&values[0], emitter, lane, error));
    TRY(emit_convert(&values[1], emitter, lane, error));
    values[0].weak = values[1].weak =
        lane == LANE_DOUBLE && exponent->kind == VALUE_CONSTANT && values[0].kind == VALUE_CONSTANT;
    if (square)
        return apply(out, emitter, OPERATION_MULTIPLY, lane, (struct value[]){values[0], values[0]}, 2, error);
    return apply(out, emitter, OPERATION_POWER, lane, values, 2, error);
}

static plim_status apply_operation(struct value *out, struct emitter *emitter, struct value *values, plim_error *error)
{
    const struct expression_node *node = emitter->node;
    enum operation operation = node->operation;
    int count = node->operand_count, first = operation == OPERATION_WHERE;
    enum rule rule = facts[operation].rule;
    TRY(check_kinds(emitter, values, count, error));
    if (operation == OPERATION_POWER)
        return apply_power(out, emitter, values, error);
    if (operation == OPERATION_ISNAN) { /* NaN alone differs from itself */
        values[1] = values[0];
        count = 2;
        operation = OPERATION_UNEQUAL;
    }
    enum lane lane = lane_by_rule(rule, values + first, count - first);
    for (int i = first; i < count; i++) {
        bool made_weak = values[i].kind == VALUE_CONSTANT && lane == LANE_DOUBLE && rule == RULE_FLOAT;
        TRY(emit_convert(&values[i], emitter, lane, error));
        values[i].weak = values[i].weak || made_weak;
    }
    if (rule == RULE_ROUND && lane == LANE_INT) {
        *out = values[0];
        return PLIM_OK;
    }
    if (node->swapped) {
        struct value kept = values[0];
        values[0] = values[1];
        values[1] = kept;
    }
    return apply(out, emitter, operation, lane, values, count, error);
}

static plim_status apply_clip(struct value *out, struct emitter *emitter, struct value *values, plim_error *error)
{
    struct value raised;
    TRY(check_kinds(emitter, values, 3, error));
    enum lane lane = lane_by_rule(RULE_NUMBER, values, 3);
    for (int i = 0; i < 3; i++)
        TRY(emit_convert(&values[i], emitter, lane, error));
    TRY(apply(&raised, emitter, OPERATION_MAXIMUM, lane, values, 2, error));
    return apply(out, emitter, OPERATION_MINIMUM, lane, (struct value[]){raised, values[2]}, 2, error);
}

/* Floats become the nearest whole number that the type holds; whole numbers wrap. */
static plim_status apply_cast(struct value *out, struct emitter *emitter, struct value *value, plim_error *error)
{
    enum type type = emitter->node->type;
    enum lane lane = lane_of(type), from = value->lane;
    if (from == LANE_STRING)
        return WRONG(emitter, "a string cannot be cast to %s", type_name(type));
    TRY(emit_convert(value, emitter, lane, error));
    if (lane == LANE_INT && (from == LANE_FLOAT || from == LANE_DOUBLE) && type != TYPE_I64) {
        int bits = 8 * (int)type_bytes(type) - (type != TYPE_U8);
        struct value low = value_whole(type == TYPE_U8 ? 0 : -((int64_t)1 << bits));
        struct value high = value_whole(((int64_t)1 << bits) - 1);
        TRY(apply(value, emitter, OPERATION_MAXIMUM, lane, (struct value[]){*value, low}, 2, error));
        TRY(apply(value, emitter, OPERATION_MINIMUM, lane, (struct value[]){*value, high}, 2, error));
    } else if (expression_narrow(type) && value->type != type) {
        struct value wide = *value;
        TRY(emit_operation(value, emitter, expression_narrow(type), lane, &wide, 1, error));
    }
    *out = *value;
    out->type = type;
    out->weak = false;
    return PLIM_OK;
}

/* ---- columns ---- */

static plim_status unknown_column(struct checker *checker, const struct expression_node *node, plim_error *error)
{
    const char *name = (const char *)node->text.data, *names[MOST_COLUMNS];
    int count = checker->spec->column_count;
    for (int i = 0; i < count; i++)
        names[i] = checker->spec->column[i].name;
    expression_fail(checker->expression, node->at, error, "unknown column '%.60s'", name);
    const char *near = text_nearest(name, names, (size_t)count);
    if (near)
        return hint(error, PLIM_BAD_JOB, "did you mean '%s'?", near);
    return count ? hint(error, PLIM_BAD_JOB, "the first column is '%s'", names[0]) : PLIM_BAD_JOB;
}

/* x[i, j]: the offset grows, the axes go. */
static plim_status index_column(struct value *value, struct emitter *emitter, plim_error *error)
{
    const struct expression_node *node = emitter->node;
    struct shape rest = {.rank = value->shape.rank - node->index_count};
    if (rest.rank < 0)
        return WRONG(emitter, "%d indices for %d ax%s", node->index_count, value->shape.rank,
                     value->shape.rank == 1 ? "is" : "es");
    int64_t element = 0;
    for (int i = 0; i < value->shape.rank; i++) {
        int64_t dim = value->shape.dim[i], index = i < node->index_count ? node->index[i] : 0;
        if (i < node->index_count && (index >= dim || index < -dim))
            return WRONG(emitter, "index %lld is outside an axis of %lld", (long long)index, (long long)dim);
        element = element * dim + (index < 0 ? index + dim : index);
        if (i >= node->index_count)
            rest.dim[i - node->index_count] = dim;
    }
    value->offset = (uint64_t)element * type_bytes(value->type);
    value->shape = rest;
    return PLIM_OK;
}

static plim_status find_column(struct value *out, struct checker *checker, struct emitter *emitter, plim_error *error)
{
    const struct expression_node *node = emitter->node;
    int c = 0;
    while (c < checker->spec->column_count && strcmp(checker->spec->column[c].name, (const char *)node->text.data) != 0)
        c++;
    if (c == checker->spec->column_count)
        return unknown_column(checker, node, error);
    const struct column *column = &checker->spec->column[c];
    struct value value = {.kind = VALUE_COLUMN,
                          .column = c,
                          .type = column->type,
                          .source = column->type,
                          .lane = lane_of(column->type),
                          .shape = column->shape,
                          .ragged = column_is_variable(column),
                          .size = type_bytes(column->type)};
    if (value.ragged && node->index_count)
        return WRONG(emitter, "column '%s' is ragged: only len() can read it", column->name);
    if (node->index_count)
        TRY(index_column(&value, emitter, error));
    *out = value;
    return PLIM_OK;
}

/* Of a string its bytes, of an array its first axis, of a ragged row its elements. */
static plim_status apply_len(struct value *out, struct emitter *emitter, const struct value *value, plim_error *error)
{
    if (value->kind == VALUE_CONSTANT && value->lane == LANE_STRING) {
        *out = value_whole((int64_t)value->scalar.text->bytes);
    } else if (value->kind == VALUE_COLUMN && (value->ragged || (value->lane == LANE_STRING && !value->shape.rank))) {
        *out = *value; /* the count lies in the row */
        out->offset += value->ragged ? offsetof(struct cell, dim) : offsetof(struct string, bytes);
        out->type = out->source = TYPE_I64;
        out->lane = LANE_INT;
        out->ragged = false;
        out->shape = (struct shape){.rank = 0};
    } else if (value->kind == VALUE_COLUMN && value->shape.rank > 0) {
        *out = value_whole(value->shape.dim[0]);
    } else {
        return WRONG(emitter, "'len' takes a column of strings, of arrays or a ragged one");
    }
    return PLIM_OK;
}

/* ---- reductions ---- */

static plim_status apply_reduce(struct value *out, struct checker *checker, struct emitter *emitter, int inner,
                                struct value *value, plim_error *error)
{
    struct emitter inside = *emitter;
    enum reduce reduce = emitter->node->reduce;
    inside.part = &checker->expression->part[inner];
    if (value->lane == LANE_STRING)
        return WRONG(emitter, "strings cannot be reduced");
    enum type type = lane_type(value->lane);
    if (reduce == REDUCE_MEAN && value->lane <= LANE_INT)
        type = TYPE_F32;
    else if (reduce == REDUCE_SUM && value->lane == LANE_BOOL)
        type = TYPE_I64;
    bool constant = value->kind == VALUE_CONSTANT, whole = value->lane <= LANE_INT && reduce != REDUCE_MEAN;
    if (constant && !whole)
        value->weak = value->weak || value->lane <= LANE_INT;
    TRY(emit_convert(value, &inside, whole ? LANE_INT : LANE_DOUBLE, error));
    if (constant) {
        *out = *value;
        return PLIM_OK;
    }
    TRY(emit_result(&inside, value, error));
    if (inside.part->count == 0 && (reduce == REDUCE_MIN || reduce == REDUCE_MAX))
        return WRONG(emitter, "an empty array has neither min nor max");
    inside.part->reduce = reduce;
    inside.part->type = type;
    *out = (struct value){.kind = VALUE_ROWS,
                          .column = -1 - inner,
                          .type = type,
                          .source = type,
                          .lane = lane_of(type),
                          .size = type_bytes(type)};
    return PLIM_OK;
}

/* ---- nodes ---- */

static plim_status check_node(struct checker *checker, int n, plim_error *error)
{
    const struct expression_node *node = &checker->expression->node[n];
    struct emitter emitter = {checker->expression, &checker->expression->part[checker->part[n]], node};
    struct value *out = &checker->value[n], operand[MOST_OPERANDS] = {{0}};
    for (int i = 0; i < node->operand_count; i++) {
        operand[i] = checker->value[node->operand[i]];
        if (operand[i].ragged && node->kind != NODE_LEN)
            return expression_fail(checker->expression, checker->expression->node[node->operand[i]].at, error,
                                   "a ragged column: only len() can read it");
    }
    switch (node->kind) {
    case NODE_WHOLE:
        *out = value_whole(node->whole);
        return PLIM_OK;
    case NODE_REAL:
        *out = (struct value){.lane = LANE_DOUBLE, .type = TYPE_F64, .weak = true, .scalar.real = node->real};
        return PLIM_OK;
    case NODE_TRUTH:
        *out = (struct value){.lane = LANE_BOOL, .type = TYPE_BOOL, .scalar.truth = node->whole != 0};
        return PLIM_OK;
    case NODE_TEXT:
        *out = (struct value){.lane = LANE_STRING, .type = TYPE_STRING, .scalar.text = &node->text};
        return PLIM_OK;
    case NODE_COLUMN:
        return find_column(out, checker, &emitter, error);
    case NODE_OPERATION:
        return apply_operation(out, &emitter, operand, error);
    case NODE_CLIP:
        return apply_clip(out, &emitter, operand, error);
    case NODE_CAST:
        return apply_cast(out, &emitter, operand, error);
    case NODE_LEN:
        return apply_len(out, &emitter, operand, error);
    case NODE_REDUCE:
        return apply_reduce(out, checker, &emitter, checker->part[node->operand[0]], operand, error);
    }
    return PLIM_INTERNAL;
}

/* From the root down: what a reduction reduces is a part of its own. Inner ones run first: parts are numbered from
   the end. */
static plim_status assign_parts(struct checker *checker, plim_error *error)
{
    struct expression *expression = checker->expression;
    int count = 1, next = 0;
    for (int n = 0; n < expression->node_count; n++)
        count += expression->node[n].kind == NODE_REDUCE;
    if (count > MOST_REDUCTIONS + 1)
        return expression_fail(expression, 0, error, "more than %d reductions", MOST_REDUCTIONS);
    expression->part_count = count;
    expression->part = arena_array(expression->arena, (size_t)count, sizeof *expression->part);
    if (!expression->part)
        return arena_refused(expression->arena, error);
    checker->part[expression->node_count - 1] = next = count - 1;
    for (int n = expression->node_count - 1; n >= 0; n--) {
        const struct expression_node *node = &expression->node[n];
        int inner = node->kind == NODE_REDUCE ? --next : checker->part[n];
        for (int i = 0; i < node->operand_count; i++)
            checker->part[node->operand[i]] = inner;
    }
    return PLIM_OK;
}

/* Column c can be overwritten when the last part reads it value for value. */
static plim_status find_in_place(struct checker *checker, plim_error *error)
{
    struct expression *expression = checker->expression;
    const struct expression_part *last = &expression->part[expression->part_count - 1];
    size_t count = (size_t)checker->spec->column_count;
    expression->column_count = checker->spec->column_count;
    expression->in_place = arena_array(expression->arena, count + 1, sizeof *expression->in_place);
    if (!expression->in_place)
        return arena_refused(expression->arena, error);
    for (size_t c = 0; c < count; c++) {
        const struct column *column = &checker->spec->column[c];
        bool fits = column->type == last->type && shape_equal(&column->shape, &last->shape) &&
                    !column_is_variable(column) && last->type != TYPE_STRING;
        for (int i = 0; fits && i < last->input_count; i++) {
            const struct input *input = &last->input[i];
            if (input->column == (int)c)
                fits = input->offset == 0 && input->rank == 1 && (input->stride[0] == input->size || last->count == 1);
        }
        expression->in_place[c] = fits;
    }
    return PLIM_OK;
}

static plim_status check_all(struct checker *checker, plim_error *error)
{
    struct expression *expression = checker->expression;
    int root = expression->node_count - 1;
    TRY(assign_parts(checker, error));
    for (int n = 0; n < expression->node_count; n++)
        TRY(check_node(checker, n, error));
    struct emitter emitter = {expression, &expression->part[expression->part_count - 1], &expression->node[root]};
    struct value *value = &checker->value[root];
    if (value->ragged)
        return WRONG(&emitter, "a ragged column: only len() can read it");
    if (value->kind == VALUE_CONSTANT && value->lane == LANE_STRING)
        return WRONG(&emitter, "a text alone is no value");
    if (value->weak)
        TRY(emit_convert(value, &emitter, LANE_FLOAT, error));
    TRY(emit_result(&emitter, value, error));
    emitter.part->type = value->type;
    return find_in_place(checker, error);
}

plim_status expression_check(enum type *type, struct shape *shape, struct expression *expression,
                             const struct spec *spec, plim_error *error)
{
    struct budget *budget = expression->arena->budget;
    size_t nodes = (size_t)expression->node_count, bytes = nodes * (sizeof(struct value) + sizeof(int));
    struct value *values;
    TRY(budget_alloc(&values, budget, expression->arena->tag, bytes, error));
    struct checker checker = {expression, spec, values, (int *)(void *)(values + nodes)};
    plim_status status = check_all(&checker, error);
    budget_give(budget, expression->arena->tag, values, bytes);
    if (status == PLIM_OK) {
        const struct expression_part *last = &expression->part[expression->part_count - 1];
        *type = last->type;
        *shape = last->shape;
    }
    return status;
}
