/* expression_parse.c - the text of an expression into nodes, operands first.

   Precedence climbing. Depth is counted where the text can nest (brackets, signs, not, **), so the recursion is bounded
   by MOST_DEPTH; long chains of operators do not recurse. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/count.h"
#include "base/numbers/numbers.h"
#include "base/text/text.h"
#include "pipeline/expression/expression_tree.h"

enum token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_WORD, TOKEN_QUOTED_WORD, TOKEN_TEXT, TOKEN_SIGN };

struct token {
    enum token_kind kind;
    int at, bytes; /* in the text; TOKEN_TEXT and TOKEN_QUOTED_WORD with their quotes */
};

struct parser {
    struct expression *expression;
    const char *text;
    int depth;
    struct token token; /* the next one */
};

plim_status expression_fail(const struct expression *expression, int at, plim_error *error, const char *format, ...)
{
    char what[256];
    va_list list;
    va_start(list, format);
    number_print_list(what, sizeof what, format, list);
    va_end(list);
    return fail_at(error, PLIM_BAD_JOB, expression->where, "expression '%.100s%s': character %d: %s", expression->text,
                   strlen(expression->text) > 100 ? "..." : "", at + 1, what);
}

#define WRONG(parser, ...) expression_fail((parser)->expression, (parser)->token.at, error, __VA_ARGS__)

/* ---- tokens ---- */

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Bytes of the number at text; 0 when there is none. */
static int number_bytes(const char *text)
{
    int digits = (int)strspn(text, "0123456789"), bytes = digits;
    if (text[bytes] == '.') {
        int fraction = (int)strspn(text + bytes + 1, "0123456789");
        digits += fraction;
        bytes += 1 + fraction;
    }
    if (digits == 0)
        return 0;
    if (text[bytes] == 'e' || text[bytes] == 'E') {
        int sign = text[bytes + 1] == '-' || text[bytes + 1] == '+';
        int exponent = (int)strspn(text + bytes + 1 + sign, "0123456789");
        bytes += exponent ? 1 + sign + exponent : 0;
    }
    return bytes;
}

static plim_status quoted_bytes(struct parser *parser, const char *text, plim_error *error)
{
    int bytes = 1;
    for (; text[bytes] && text[bytes] != text[0]; bytes++)
        bytes += text[bytes] == '\\' && text[0] != '`' && text[bytes + 1];
    if (!text[bytes])
        return WRONG(parser, "the quote that begins here has no end");
    parser->token.bytes = bytes + 1;
    return PLIM_OK;
}

static plim_status next_token(struct parser *parser, plim_error *error)
{
    static const char *const doubles[] = {"**", "//", "==", "!=", "<=", ">="};
    int at = parser->token.at + parser->token.bytes;
    at += (int)strspn(parser->text + at, " \t\r\n");
    const char *text = parser->text + at;
    parser->token = (struct token){.kind = TOKEN_SIGN, .at = at, .bytes = 1};
    if (!*text) {
        parser->token = (struct token){.kind = TOKEN_END, .at = at};
    } else if (number_bytes(text)) {
        parser->token.kind = TOKEN_NUMBER;
        parser->token.bytes = number_bytes(text);
        if (is_word_byte(text[parser->token.bytes]))
            return WRONG(parser, "a number runs into a word");
    } else if (is_word_byte(*text)) {
        parser->token.kind = TOKEN_WORD;
        while (is_word_byte(text[parser->token.bytes]))
            parser->token.bytes++;
    } else if (*text == '\'' || *text == '"' || *text == '`') {
        parser->token.kind = *text == '`' ? TOKEN_QUOTED_WORD : TOKEN_TEXT;
        return quoted_bytes(parser, text, error);
    }
    for (size_t i = 0; parser->token.kind == TOKEN_SIGN && i < COUNT(doubles); i++)
        if (strncmp(text, doubles[i], 2) == 0)
            parser->token.bytes = 2;
    return PLIM_OK;
}

static bool next_is(const struct parser *parser, const char *text)
{
    const struct token *token = &parser->token;
    return (token->kind == TOKEN_SIGN || token->kind == TOKEN_WORD) && strlen(text) == (size_t)token->bytes &&
           strncmp(parser->text + token->at, text, (size_t)token->bytes) == 0;
}

/* What was found instead, for messages. */
static plim_status unexpected(struct parser *parser, const char *wanted, plim_error *error)
{
    if (parser->token.kind == TOKEN_END)
        return WRONG(parser, "%s is missing at the end", wanted);
    const char *text = parser->text + parser->token.at;
    if (next_is(parser, "="))
        return hint(error, WRONG(parser, "'=' does not compare"), "'==' does");
    if (next_is(parser, "&") || next_is(parser, "|") || next_is(parser, "!"))
        return hint(error, WRONG(parser, "'%c' is not known here", *text), "write '%s'",
                    *text == '&'   ? "and"
                    : *text == '|' ? "or"
                                   : "not");
    return WRONG(parser, "%s was expected, not '%.*s'", wanted, parser->token.bytes > 40 ? 40 : parser->token.bytes,
                 text);
}

static plim_status expect(struct parser *parser, const char *sign, plim_error *error)
{
    char wanted[8];
    snprintf(wanted, sizeof wanted, "'%s'", sign);
    return next_is(parser, sign) ? next_token(parser, error) : unexpected(parser, wanted, error);
}

/* ---- nodes ---- */

static plim_status add_node(int *out, struct parser *parser, const struct expression_node *node, plim_error *error)
{
    struct expression *expression = parser->expression;
    if (expression->node_count == MOST_NODES)
        return expression_fail(expression, node->at, error, "more than %d values and operations", MOST_NODES);
    expression->node[expression->node_count] = *node;
    *out = expression->node_count++;
    return PLIM_OK;
}

/* The word or text of the token, its escapes undone, with a NUL. */
static plim_status token_text(struct string *out, struct parser *parser, plim_error *error)
{
    const char *from = parser->text + parser->token.at, *end = from + parser->token.bytes;
    char *to = arena_take(parser->expression->arena, (size_t)parser->token.bytes + 1), *start = to;
    if (!to)
        return arena_refused(parser->expression->arena, error);
    bool quoted = parser->token.kind != TOKEN_WORD, escapes = parser->token.kind == TOKEN_TEXT;
    for (from += quoted, end -= quoted; from < end; from++) {
        char c = *from;
        if (escapes && c == '\\' && from + 1 < end) {
            c = *++from;
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        *to++ = c;
    }
    *out = (struct string){.data = (const uint8_t *)start, .bytes = (uint64_t)(to - start)};
    return PLIM_OK;
}

static plim_status parse_number(int *out, struct parser *parser, plim_error *error)
{
    char text[64];
    struct expression_node node = {.kind = NODE_WHOLE, .at = parser->token.at};
    if (parser->token.bytes >= (int)sizeof text)
        return WRONG(parser, "a number of more than %d digits", (int)sizeof text - 1);
    memcpy(text, parser->text + parser->token.at, (size_t)parser->token.bytes);
    text[parser->token.bytes] = '\0';
    if (strspn(text, "0123456789") == (size_t)parser->token.bytes) {
        errno = 0;
        node.whole = strtoll(text, NULL, 10);
        if (errno)
            return WRONG(parser, "%s does not fit an int64", text);
    } else {
        node.kind = NODE_REAL;
        node.real = number_parse(text, NULL);
    }
    TRY(add_node(out, parser, &node, error));
    return next_token(parser, error);
}

/* A whole number inside [ ]. */
static plim_status parse_index(struct expression_node *node, struct parser *parser, plim_error *error)
{
    bool negative = next_is(parser, "-");
    if (negative)
        TRY(next_token(parser, error));
    if (parser->token.kind != TOKEN_NUMBER || parser->token.bytes > 18 ||
        (int)strspn(parser->text + parser->token.at, "0123456789") < parser->token.bytes)
        return unexpected(parser, "a whole number", error);
    if (node->index_count == MOST_AXES)
        return WRONG(parser, "more than %d axes", MOST_AXES);
    int64_t value = strtoll(parser->text + parser->token.at, NULL, 10);
    node->index[node->index_count++] = negative ? -value : value;
    return next_token(parser, error);
}

static plim_status parse_column(int *out, struct parser *parser, plim_error *error)
{
    struct expression_node node = {.kind = NODE_COLUMN, .at = parser->token.at};
    TRY(token_text(&node.text, parser, error));
    TRY(next_token(parser, error));
    while (next_is(parser, "[")) {
        do {
            TRY(next_token(parser, error));
            TRY(parse_index(&node, parser, error));
        } while (next_is(parser, ","));
        TRY(expect(parser, "]", error));
    }
    return add_node(out, parser, &node, error);
}

/* ---- functions ---- */

static const struct function {
    const char *name;
    int least, most;
    struct expression_node node;
} functions[] = {
    {"abs", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_ABS}},
    {"ceil", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_CEIL}},
    {"clip", 3, 3, {.kind = NODE_CLIP}},
    {"cos", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_COS}},
    {"exp", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_EXP}},
    {"floor", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_FLOOR}},
    {"isnan", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_ISNAN}},
    {"len", 1, 1, {.kind = NODE_LEN}},
    {"log", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_LOG}},
    {"log1p", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_LOG1P}},
    {"max", 1, 2, {.kind = NODE_REDUCE, .reduce = REDUCE_MAX, .operation = OPERATION_MAXIMUM}},
    {"mean", 1, 1, {.kind = NODE_REDUCE, .reduce = REDUCE_MEAN}},
    {"min", 1, 2, {.kind = NODE_REDUCE, .reduce = REDUCE_MIN, .operation = OPERATION_MINIMUM}},
    {"pow", 2, 2, {.kind = NODE_OPERATION, .operation = OPERATION_POWER}},
    {"round", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_ROUND}},
    {"sign", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_SIGN}},
    {"sin", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_SIN}},
    {"sqrt", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_SQRT}},
    {"sum", 1, 1, {.kind = NODE_REDUCE, .reduce = REDUCE_SUM}},
    {"tanh", 1, 1, {.kind = NODE_OPERATION, .operation = OPERATION_TANH}},
    {"where", 3, 3, {.kind = NODE_OPERATION, .operation = OPERATION_WHERE}},
};

static plim_status parse_binary(int *out, struct parser *parser, int least, plim_error *error);

/* The nearest of the words, as a hint. */
static plim_status did_you_mean(const char *word, const char *const *words, size_t count, plim_error *error)
{
    const char *near = text_nearest(word, words, count);
    return near ? hint(error, PLIM_BAD_JOB, "did you mean '%s'?", near) : PLIM_BAD_JOB;
}

static plim_status find_function(const struct function **out, struct parser *parser, const struct token *name,
                                 plim_error *error)
{
    const char *names[COUNT(functions) + 1];
    char word[49];
    snprintf(word, sizeof word, "%.*s", name->bytes, parser->text + name->at);
    for (size_t i = 0; i < COUNT(functions); i++) {
        names[i] = functions[i].name;
        if (strcmp(word, names[i]) == 0) {
            *out = &functions[i];
            return PLIM_OK;
        }
    }
    names[COUNT(functions)] = "cast";
    expression_fail(parser->expression, name->at, error, "unknown function '%s'", word);
    return did_you_mean(word, names, COUNT(names), error);
}

/* cast(x, 'float32'), the parenthesis passed. */
static plim_status parse_cast(int *out, struct parser *parser, int at, plim_error *error)
{
    struct expression_node node = {.kind = NODE_CAST, .at = at, .operand_count = 1};
    struct string name;
    TRY(parse_binary(&node.operand[0], parser, 1, error));
    TRY(expect(parser, ",", error));
    if (parser->token.kind != TOKEN_TEXT)
        return unexpected(parser, "a type such as 'float32'", error);
    TRY(token_text(&name, parser, error));
    if (!type_from_name(&node.type, (const char *)name.data)) {
        const char *types[TYPE_COUNT];
        for (int i = 0; i < TYPE_COUNT; i++)
            types[i] = type_name((enum type)i);
        WRONG(parser, "unknown type '%.40s'", (const char *)name.data);
        return did_you_mean((const char *)name.data, types, TYPE_COUNT, error);
    }
    TRY(next_token(parser, error));
    TRY(expect(parser, ")", error));
    return add_node(out, parser, &node, error);
}

/* The name is behind us, its parenthesis comes. */
static plim_status parse_call(int *out, struct parser *parser, const struct token *name, plim_error *error)
{
    const struct function *function = NULL;
    TRY(next_token(parser, error));
    if (name->bytes == 4 && strncmp(parser->text + name->at, "cast", 4) == 0)
        return parse_cast(out, parser, name->at, error);
    TRY(find_function(&function, parser, name, error));
    struct expression_node node = function->node;
    node.at = name->at;
    while (!next_is(parser, ")")) {
        if (node.operand_count > 0)
            TRY(expect(parser, ",", error));
        if (node.operand_count == function->most)
            return WRONG(parser, "%s takes %d argument%s", function->name, function->most,
                         function->most == 1 ? "" : "s");
        TRY(parse_binary(&node.operand[node.operand_count++], parser, 1, error));
    }
    if (node.operand_count < function->least)
        return WRONG(parser, "%s takes %d argument%s", function->name, function->least,
                     function->least == 1 ? "" : "s");
    if (node.kind == NODE_REDUCE && node.operand_count == 2)
        node.kind = NODE_OPERATION; /* min and max of two: value by value */
    TRY(next_token(parser, error));
    return add_node(out, parser, &node, error);
}

/* ---- operators ---- */

static const struct binary {
    const char *sign;
    int precedence;
    enum operation operation;
    bool swapped;
} binaries[] = {
    {"or", 1, OPERATION_OR, false},           {"and", 2, OPERATION_AND, false},
    {"==", 4, OPERATION_EQUAL, false},        {"!=", 4, OPERATION_UNEQUAL, false},
    {"<", 4, OPERATION_LESS, false},          {"<=", 4, OPERATION_LESS_EQUAL, false},
    {">", 4, OPERATION_LESS, true},           {">=", 4, OPERATION_LESS_EQUAL, true},
    {"+", 5, OPERATION_ADD, false},           {"-", 5, OPERATION_SUBTRACT, false},
    {"*", 6, OPERATION_MULTIPLY, false},      {"/", 6, OPERATION_DIVIDE, false},
    {"//", 6, OPERATION_FLOOR_DIVIDE, false}, {"%", 6, OPERATION_MODULO, false},
    {"**", 8, OPERATION_POWER, false},
};
enum { PRECEDENCE_NOT = 3, PRECEDENCE_COMPARE = 4, PRECEDENCE_SIGN = 7, PRECEDENCE_POWER = 8 };

static plim_status enter_nested(struct parser *parser, plim_error *error)
{
    if (parser->depth == MOST_DEPTH)
        return WRONG(parser, "more than %d levels", MOST_DEPTH);
    parser->depth++;
    return PLIM_OK;
}

static plim_status parse_word(int *out, struct parser *parser, plim_error *error)
{
    struct token name = parser->token;
    struct expression_node truth = {.kind = NODE_TRUTH, .at = name.at};
    if (next_is(parser, "and") || next_is(parser, "or"))
        return unexpected(parser, "a value", error);
    truth.whole = next_is(parser, "true") || next_is(parser, "True");
    if (truth.whole || next_is(parser, "false") || next_is(parser, "False")) {
        TRY(add_node(out, parser, &truth, error));
        return next_token(parser, error);
    }
    if (parser->text[name.at + name.bytes + (int)strspn(parser->text + name.at + name.bytes, " \t\r\n")] != '(')
        return parse_column(out, parser, error);
    TRY(next_token(parser, error));
    TRY(enter_nested(parser, error));
    TRY(parse_call(out, parser, &name, error));
    parser->depth--;
    return PLIM_OK;
}

static plim_status parse_value(int *out, struct parser *parser, plim_error *error)
{
    struct expression_node text = {.kind = NODE_TEXT, .at = parser->token.at};
    switch (parser->token.kind) {
    case TOKEN_NUMBER:
        return parse_number(out, parser, error);
    case TOKEN_WORD:
        return parse_word(out, parser, error);
    case TOKEN_QUOTED_WORD:
        return parse_column(out, parser, error);
    case TOKEN_TEXT:
        TRY(token_text(&text.text, parser, error));
        TRY(add_node(out, parser, &text, error));
        return next_token(parser, error);
    case TOKEN_SIGN:
        if (next_is(parser, "(")) {
            TRY(enter_nested(parser, error));
            TRY(next_token(parser, error));
            TRY(parse_binary(out, parser, 1, error));
            parser->depth--;
            return expect(parser, ")", error);
        }
        break;
    case TOKEN_END:
        break;
    }
    return unexpected(parser, "a value", error);
}

static plim_status parse_unary(int *out, struct parser *parser, plim_error *error)
{
    bool is_not = next_is(parser, "not"), minus = next_is(parser, "-");
    if (!is_not && !minus && !next_is(parser, "+"))
        return parse_value(out, parser, error);
    struct expression_node node = {.kind = NODE_OPERATION, .at = parser->token.at, .operand_count = 1};
    node.operation = is_not ? OPERATION_NOT : OPERATION_NEGATE;
    TRY(enter_nested(parser, error));
    TRY(next_token(parser, error));
    TRY(parse_binary(&node.operand[0], parser, is_not ? PRECEDENCE_NOT : PRECEDENCE_SIGN, error));
    parser->depth--;
    *out = node.operand[0];
    return is_not || minus ? add_node(out, parser, &node, error) : PLIM_OK;
}

static const struct binary *next_binary(const struct parser *parser)
{
    for (size_t i = 0; i < COUNT(binaries); i++)
        if (next_is(parser, binaries[i].sign))
            return &binaries[i];
    return NULL;
}

/* Operators that bind at least this much. */
static plim_status parse_binary(int *out, struct parser *parser, int least, plim_error *error)
{
    int left, compared = 0;
    const struct binary *binary;
    TRY(parse_unary(&left, parser, error));
    while ((binary = next_binary(parser)) && binary->precedence >= least) {
        bool power = binary->precedence == PRECEDENCE_POWER;
        if (binary->precedence == PRECEDENCE_COMPARE && compared++)
            return hint(error, WRONG(parser, "comparisons do not chain"), "write 'a < b and b < c'");
        if (binary->precedence < PRECEDENCE_COMPARE)
            compared = 0;
        struct expression_node node = {.kind = NODE_OPERATION,
                                       .at = parser->token.at,
                                       .operand_count = 2,
                                       .operand = {left},
                                       .operation = binary->operation,
                                       .swapped = binary->swapped};
        TRY(enter_nested(parser, error));
        TRY(next_token(parser, error));
        TRY(parse_binary(&node.operand[1], parser, binary->precedence + !power, error));
        parser->depth--;
        TRY(add_node(&left, parser, &node, error));
    }
    *out = left;
    return PLIM_OK;
}

plim_status expression_parse(struct expression **out, struct arena *arena, const char *text, const char *where,
                             plim_error *error)
{
    int root;
    size_t bytes = strnlen(text, EXPRESSION_MOST_BYTES + 1);
    if (bytes > EXPRESSION_MOST_BYTES)
        return fail_at(error, PLIM_BAD_JOB, where, "an expression of more than %d bytes", EXPRESSION_MOST_BYTES);
    struct expression *expression = arena_take(arena, sizeof *expression);
    /* A node has a character of its own. */
    struct expression_node *nodes = arena_array(arena, bytes < MOST_NODES ? bytes : MOST_NODES, sizeof *nodes);
    char *copy = arena_string(arena, text), *spot = arena_string(arena, where ? where : "");
    if (!expression || !nodes || !copy || !spot)
        return arena_refused(arena, error);
    *expression = (struct expression){.arena = arena, .text = copy, .where = spot, .node = nodes};
    struct parser parser = {.expression = expression, .text = copy};
    TRY(next_token(&parser, error));
    TRY(parse_binary(&root, &parser, 1, error));
    if (parser.token.kind != TOKEN_END)
        return unexpected(&parser, "an operator", error);
    *out = expression;
    return PLIM_OK;
}
