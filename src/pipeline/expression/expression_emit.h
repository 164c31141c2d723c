/* expression_emit.h - builds the parts of an expression: values, operands, steps. For expression_check.c. */
#ifndef PIPELINE_EXPRESSION_EXPRESSION_EMIT_H
#define PIPELINE_EXPRESSION_EXPRESSION_EMIT_H

#include "pipeline/expression/expression_tree.h"

enum value_kind { VALUE_CONSTANT, VALUE_COLUMN, VALUE_ROWS, VALUE_TEMPORARY };

/* What a node gives. Columns and constants become operands of a part only when a step reads them. */
struct value {
    enum value_kind kind;
    enum lane lane;
    enum type type;
    bool weak, ragged; /* weak: made of numbers in the text, float64 until something else decides */
    struct shape shape;
    int column;
    enum type source;           /* what lies in memory: cast changes type alone */
    uint64_t offset, size;      /* as in struct input */
    expression_operand operand; /* VALUE_TEMPORARY */
    union scalar {
        uint8_t truth;
        int64_t whole;
        float single;
        double real;
        const struct string *text;
    } scalar; /* VALUE_CONSTANT */
};

/* The builder of one part; `node` is who errors are about. */
struct emitter {
    struct expression *expression;
    struct expression_part *part;
    const struct expression_node *node;
};

struct value value_whole(int64_t whole);
/* The type that computing in a lane gives. */
enum type lane_type(enum lane lane);
plim_status emit_operand(expression_operand *out, struct emitter *emitter, const struct value *value,
                         plim_error *error);
plim_status emit_convert(struct value *value, struct emitter *emitter, enum lane lane, plim_error *error);
/* Constants alone are computed now. `lane` is that of the result, whose shape is the caller's. */
plim_status emit_operation(struct value *out, struct emitter *emitter, expression_kernel *kernel, enum lane lane,
                           const struct value *operands, int count, plim_error *error);
/* false when they do not broadcast. */
bool shapes_broadcast(struct shape *shape, const struct shape *other);
/* The part is complete: `value` comes out of it. */
plim_status emit_result(struct emitter *emitter, const struct value *value, plim_error *error);

#endif
