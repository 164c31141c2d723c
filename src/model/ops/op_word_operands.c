/* op_word_operands.c - op words of several operands: tensors, numbers and lists of numbers, made one type first, as
   keras.backend.result_type has it. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "model/ops/op_array.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

/* ---- types ---- */

/* A type of floats wins over whole numbers, whole numbers over truth values. Two of floats, where neither has all
   numbers of the other, become float32; uint8 beside numbers with a sign is int16, which has all of its numbers. */
enum type promoted_type(enum type a, enum type b)
{
    if (a == b || b == TYPE_BOOL)
        return a;
    if (a == TYPE_BOOL || type_is_float(a) != type_is_float(b))
        return a == TYPE_BOOL || type_is_float(b) ? b : a;
    if (type_is_float(a))
        return a == TYPE_F64 || b == TYPE_F64 ? TYPE_F64 : TYPE_F32;
    a = a == TYPE_U8 ? TYPE_I16 : a;
    b = b == TYPE_U8 ? TYPE_I16 : b;
    return type_bytes(a) > type_bytes(b) ? a : b;
}

/* ---- numbers ---- */

/* Of Python's: True, 2 or 2.5. */
struct number {
    double value;
    enum type type; /* bool, int32 or float32 */
};

static bool read_number(struct number *out, const struct op_call *call, const struct yaml *word)
{
    const struct setting setting = {"number", SETTING_NUMBER, 0, 0};
    plim_error error = {0};
    int64_t whole;
    out->type = TYPE_BOOL;
    if (truth_of(&out->value, word))
        return true;
    out->type = word->text && setting_whole(&whole, word->text) ? TYPE_I32 : TYPE_F32;
    if (setting_value(&out->value, &setting, call->word->name, word, &error) == PLIM_OK)
        return true;
    graph_fail(call->graph, PLIM_USAGE, "%s: %.200s", call->word->name, error.message);
    return false;
}

/* A number gives way: beside tensors it only says that they are floats, or no truth values. */
static enum type beside_number(enum type type, enum type number)
{
    return type_is_float(type) || (number != TYPE_F32 && type != TYPE_BOOL) ? type : promoted_type(type, number);
}

/* 300 beside uint8 is no number of its. */
static struct tensor *constant(const struct op_call *call, enum type type, double value)
{
    double stored[1];
    element_set(stored, type, 0, value);
    if (!type_is_float(type) && type != TYPE_BOOL && element_get(stored, type, 0) != value)
        return graph_fail(call->graph, PLIM_USAGE, "%s: %.17g is no %s, which the other operand is", call->word->name,
                          value, type_name(type));
    return op_number(call->graph, type, value);
}

/* ---- operands ---- */

/* A list is a tensor as others are. It has no batch: no axis of its own may come to lie before or on the batch's. */
static struct tensor *read_array(const struct op_call *call, const struct yaml *word)
{
    struct array array;
    plim_error error = {0};
    int rank = 0;
    for (int i = 0; i < call->count; i++)
        rank = call->x[i]->shape.rank > rank ? call->x[i]->shape.rank : rank;
    plim_status status = array_read(&array, &call->graph->arena, call->word->name, word, &error);
    if (status != PLIM_OK)
        return graph_fail(call->graph, status == PLIM_BAD_JOB ? PLIM_USAGE : status, "%s: %.300s", call->word->name,
                          error.message);
    if (array.shape.rank > rank)
        return graph_fail(call->graph, PLIM_USAGE, "%s: a constant of %d axes beside values of %d", call->word->name,
                          array.shape.rank, rank);
    struct constant_attributes attributes = {array.data, array.type, array.shape};
    return graph_add(call->graph, &op_constant, NULL, 0, &attributes, sizeof attributes);
}

/* Lists become tensors, numbers are read. */
static bool read_operands(struct number *number, struct operand *operand, const struct op_call *call, int count)
{
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        if (operand[i].word && is_array(operand[i].word))
            good = (operand[i].x = read_array(call, operand[i].word)) != NULL;
        else if (!operand[i].x)
            good = operand[i].word && read_number(&number[i], call, operand[i].word);
    }
    return good;
}

static enum type one_type(const struct operand *operand, const struct number *number, int count, enum type_rule rule)
{
    enum type type = TYPE_BOOL;
    if (rule == TYPES_TRUTH)
        return type;
    for (int i = 0; i < count; i++)
        if (operand[i].x)
            type = promoted_type(type, operand[i].x->type);
    for (int i = 0; i < count; i++)
        if (!operand[i].x)
            type = rule == TYPES_VALUES ? promoted_type(type, number[i].type) : beside_number(type, number[i].type);
    return rule == TYPES_REAL && !type_is_float(type) ? TYPE_F32 : type;
}

bool word_operands(struct tensor **out, const struct op_call *call, struct operand *operand, int count,
                   enum type_rule rule)
{
    struct number number[MOST_WORD_INPUTS] = {0};
    if (count > MOST_WORD_INPUTS || !read_operands(number, operand, call, count))
        return false;
    enum type type = one_type(operand, number, count, rule);
    for (int i = 0; i < count; i++)
        if (!(out[i] =
                  operand[i].x ? policy_cast(call->graph, operand[i].x, type) : constant(call, type, number[i].value)))
            return false;
    return true;
}

bool word_alike(struct tensor **out, const struct op_call *call, enum type_rule rule)
{
    struct operand operand[MOST_WORD_INPUTS] = {0};
    for (int i = 0; i < call->count && i < MOST_WORD_INPUTS; i++)
        operand[i].x = call->x[i];
    return word_operands(out, call, operand, call->count, rule);
}

/* ---- the words ---- */

/* Two inputs, or one and a word. */
static bool find_pair(struct operand out[2], const struct op_call *call)
{
    const struct yaml *a = call->arguments.a, *b = call->arguments.b;
    if (call->count == 2 ? a || b : !a == !b) {
        graph_fail(call->graph, PLIM_USAGE, "%s takes two inputs, or one and a number or a list: {b: 2} or {a: [1, 2]}",
                   call->word->name);
        return false;
    }
    out[0] = (struct operand){a ? NULL : call->x[0], a};
    out[1] = (struct operand){b ? NULL : call->x[call->count - 1], b};
    return true;
}

bool word_pair(struct tensor *out[2], const struct op_call *call)
{
    struct operand operand[2];
    if (!find_pair(operand, call))
        return false;
    for (int i = 0; i < 2; i++)
        out[i] = operand[i].x ? operand[i].x : read_array(call, operand[i].word);
    return out[0] && out[1];
}

struct tensor *word_binary(const struct op_call *call)
{
    struct operand operand[2];
    struct tensor *x[2];
    return find_pair(operand, call) && word_operands(x, call, operand, 2, (enum type_rule)call->word->choice)
               ? binary(call->graph, call->word->op, x[0], x[1])
               : NULL;
}

struct tensor *word_where(const struct op_call *call)
{
    const struct yaml *a = call->arguments.a, *b = call->arguments.b;
    struct tensor *x[3] = {call->x[0]};
    if (call->count + !!a + !!b != 3)
        return graph_fail(call->graph, PLIM_USAGE,
                          "where takes a condition and two values, of which {a: 1} and {b: 0} may say one or both");
    struct operand operand[2] = {{a ? NULL : call->x[1], a}, {b ? NULL : call->x[call->count - 1], b}};
    return word_operands(&x[1], call, operand, 2, TYPES_WIDEST) ? graph_add(call->graph, call->word->op, x, 3, NULL, 0)
                                                                : NULL;
}

/* Keras multiplies whole numbers as floats, and makes them whole again. */
static enum type product_type(struct tensor *const *x, int count)
{
    enum type type = promoted_type(x[0]->type, x[count - 1]->type);
    return count == 2 && x[0]->type == TYPE_I8 && x[1]->type == TYPE_I8 ? TYPE_I32 : type;
}

struct tensor *word_product(const struct op_call *call, struct tensor *(*multiply)(const struct op_call *call))
{
    struct tensor *x[2];
    struct op_call real = *call;
    real.x = x;
    struct tensor *y = word_alike(x, call, TYPES_REAL) ? multiply(&real) : NULL;
    return y ? policy_cast(call->graph, y, product_type(call->x, call->count)) : NULL;
}
