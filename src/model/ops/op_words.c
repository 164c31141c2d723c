/* op_words.c - from a word and its arguments to nodes: the table, reading, and what is said when they do not fit. */
#include "model/ops/op_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/message.h"
#include "base/text/text.h"
#include "model/layers/layer_options.h"
#include "ops/ops.h"

/* ---- the table ---- */

#define AT(field) offsetof(struct op_arguments, field)
#define ARGUMENTS(...)                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
/* clang-format off */
#define FIRST(word)        {word, SETTING_NUMBER, AT(number[0]), 0}
#define SECOND(word)       {word, SETTING_NUMBER, AT(number[1]), 0}
#define THIRD(word)        {word, SETTING_NUMBER, AT(number[2]), 0}
#define AXIS               {"axis", SETTING_NODE, AT(axis), 0}
#define NODE(word, field)  {word, SETTING_NODE, AT(field), 0}
#define TRUTH(word, field) {word, SETTING_BOOL, AT(field), 0}
#define WHOLE(word, least) {word, SETTING_WHOLE, AT(whole), least}
#define WORD(text)         {text, SETTING_WORD, AT(word), 0}
#define OP_WORD(name_, alias_, least_, most_, op_, choice_, standard_, argument_, build_, inputs_, words_) \
    {.name = #name_, .alias = alias_, .least = least_, .most = most_, .op = op_, .choice = choice_,        \
     .standard = standard_, .argument = argument_, .build = word_##build_, .inputs = inputs_, .words = words_},
/* clang-format on */
const struct op_word op_words[] = {
#include "model/ops/op_words.def"
};
const int op_words_count = COUNT(op_words);

static const struct op_word *find_word(const char *name)
{
    for (int i = 0; i < op_words_count; i++)
        if (strcmp(name, op_words[i].name) == 0 || (op_words[i].alias && strcmp(name, op_words[i].alias) == 0))
            return &op_words[i];
    return NULL;
}

/* ---- errors ---- */

static struct tensor *keep(struct graph *graph, plim_status status, const plim_error *error)
{
    if (!graph->failed && status) {
        graph->failed = status;
        graph->error = *error;
    }
    return NULL;
}

/* "matmul of x (None, 4) and w (5, 3)". */
static void add_place(struct graph *graph, const char *name, struct tensor *const *x, int count)
{
    char where[sizeof graph->error.where], shape[96];
    size_t capacity = sizeof where;
    if (graph->error.where[0])
        return;
    message_print(where, capacity, "%.60s", name);
    for (int i = 0; i < count && i < 3; i++) {
        size_t length = strlen(where);
        if (!x[i])
            continue;
        shape_text(shape, sizeof shape, &x[i]->shape, x[i]->batched);
        message_print(where + length, capacity - length, "%s%.40s %s", i ? " and " : " of ", x[i]->name, shape);
    }
    error_at(&graph->error, graph->failed, where);
}

static plim_status unknown(const char *name, plim_error *error)
{
    const char *names[512];
    int count = 0;
    for (int i = 0; i < op_words_count && count < COUNT(names); i++)
        names[count++] = op_words[i].name;
    for (int i = 0; i < activations_count && count < COUNT(names); i++)
        names[count++] = activation_name(i);
    for (int i = 0; i < losses_count && count < COUNT(names); i++)
        names[count++] = loss_name(i);
    const char *near = text_nearest(name, names, (size_t)count);
    plim_status status = fail(error, PLIM_USAGE, "there is no op '%s'", name);
    return near ? hint(error, status, "did you mean '%s'?", near) : status;
}

/* ---- arguments ---- */

static plim_status read_arguments(struct op_arguments *out, const struct op_word *word, const char *job,
                                  const struct yaml *yaml, plim_error *error)
{
    int count = 0;
    while (count < COUNT(word->argument) && word->argument[count].word)
        count++;
    if (!yaml || (yaml->kind == YAML_SCALAR && yaml->is_null))
        return PLIM_OK;
    if (yaml->kind == YAML_MAP || !count)
        return settings_read(out, word->argument, count, job, yaml, error);
    return setting_value((char *)out + word->argument[0].offset, &word->argument[0], job, yaml, error);
}

static plim_status parse(struct yaml **out, struct graph *graph, const char *name, const char *text, plim_error *error)
{
    *out = NULL;
    return text && *text ? yaml_parse(out, &graph->arena, name, text, strlen(text), error) : PLIM_OK;
}

double word_number(const struct op_call *call, int i)
{
    double number = call->arguments.number[i];
    return isnan(number) ? call->word->standard[i] : number;
}

int word_wholes(int64_t *out, int most, const struct op_call *call, const char *word, const struct yaml *node)
{
    const struct setting whole = {word, SETTING_WHOLE, 0, INT64_MIN};
    plim_error error = {0};
    int count = 0;
    plim_status status = PLIM_OK;
    if (node->kind == YAML_SCALAR)
        status = setting_value(&out[count++], &whole, call->word->name, node, &error);
    else if (node->kind == YAML_MAP || node->count > most)
        status = fail(&error, PLIM_USAGE, "%s: expected at most %d whole numbers", word, most);
    for (const struct yaml *at = node->kind == YAML_LIST ? node->first : NULL; at && !status; at = at->next)
        status = setting_value(&out[count++], &whole, call->word->name, at, &error);
    keep(call->graph, status, &error);
    return status ? -1 : count;
}

bool word_whole(int64_t *out, const struct op_call *call, const char *word, const struct yaml *node)
{
    int count = word_wholes(out, 1, call, word, node);
    if (count == 0)
        graph_fail(call->graph, PLIM_USAGE, "%s: expected a whole number, got an empty list", word);
    return count == 1;
}

bool word_axis(int *out, const struct op_call *call, const struct yaml *node, int standard, int least, int extra)
{
    int rank = call->x[0]->shape.rank + extra;
    int64_t axis = standard;
    if (node && !word_whole(&axis, call, "axis", node))
        return false;
    int64_t from_start = axis < 0 ? axis + rank : axis;
    if (from_start < least || from_start >= rank) {
        graph_fail(call->graph, PLIM_BAD_MODEL, "%s: axis %lld: %s", call->word->name, (long long)axis,
                   from_start == 0 ? "that is the batch's, which stays as it is" : "there is none");
        return false;
    }
    *out = (int)from_start;
    return true;
}

/* ---- constants ---- */

struct tensor *op_number(struct graph *graph, enum type type, double value)
{
    char name[96];
    snprintf(name, sizeof name, "constant/%s/%.17g", type_name(type), value);
    struct tensor *there = graph->failed ? NULL : graph_named(graph, name);
    if (there || graph->failed)
        return there;
    struct tensor *state = graph_state(graph, name, type, shape_of(1, (int64_t[]){1}));
    if (state)
        state->initial = value;
    return state;
}

/* ---- losses ---- */

struct tensor *before_activation(bool *logits, const struct loss_type *loss, struct tensor *x)
{
    const struct op *op = loss->kind == LOSS_SOFTMAX ? &op_softmax : loss->kind == LOSS_BINARY ? &op_sigmoid : NULL;
    const struct axis_attributes *axis = op == &op_softmax && x->producer ? x->producer->attributes : NULL;
    *logits = op && x->producer && x->producer->op == op && !(axis && axis->from_end != 0);
    return *logits ? x->producer->input[0] : x;
}

static struct tensor *loss_values(struct graph *graph, const struct loss_type *type, struct tensor *const *x,
                                  const struct yaml *yaml)
{
    struct loss loss = {.type = type};
    plim_error error = {0};
    bool logits = false;
    loss_standards(&loss);
    plim_status status = yaml ? loss_read_arguments(&loss, type->name, yaml, &error) : PLIM_OK;
    if (status != PLIM_OK)
        return keep(graph, status, &error);
    struct tensor *before = loss.from_logits ? x[0] : before_activation(&logits, type, x[0]);
    if (!loss_fits(graph, NULL, type, x[0], x[1]))
        return NULL;
    return type->values(graph, &loss, before, x[1], loss.from_logits || logits);
}

/* ---- all of it ---- */

static bool count_fits(struct graph *graph, const char *name, int count, int least, int most)
{
    if (count >= least && count <= most)
        return true;
    if (least == most)
        graph_fail(graph, PLIM_USAGE, "%s takes %d inputs, %d are given", name, least, count);
    else
        graph_fail(graph, PLIM_USAGE, "%s takes %d to %d inputs, %d are given", name, least, most, count);
    return false;
}

static struct tensor *apply_word(struct graph *graph, const struct op_word *word, struct tensor *const *x, int count,
                                 const struct yaml *yaml)
{
    struct op_call call = {
        .graph = graph, .word = word, .x = x, .count = count, .arguments = {.number = {NAN, NAN, NAN}}};
    plim_error error = {0};
    if (!count_fits(graph, word->name, count, word->least, word->most))
        return NULL;
    plim_status status = read_arguments(&call.arguments, word, word->name, yaml, &error);
    return status ? keep(graph, status, &error) : word->build(&call);
}

static struct tensor *apply(struct graph *graph, const char *name, struct tensor *const *x, int count,
                            const struct yaml *yaml)
{
    const struct op_word *word = find_word(name);
    const struct activation_type *activation = word ? NULL : activation_named(name);
    const struct loss_type *loss = word || activation ? NULL : loss_named(name);
    plim_error error = {0};
    if (!word && !activation && !loss)
        return keep(graph, unknown(name, &error), &error);
    if (word)
        return apply_word(graph, word, x, count, yaml);
    if (loss)
        return count_fits(graph, name, count, 2, 2) ? loss_values(graph, loss, x, yaml) : NULL;
    if (yaml && (yaml->kind != YAML_MAP || yaml->count))
        graph_fail(graph, PLIM_USAGE, "%s takes no arguments", name);
    return count_fits(graph, name, count, 1, 1) && !graph->failed ? activation_add(graph, activation, x[0]) : NULL;
}

struct tensor *op_word_apply_tree(struct graph *graph, const char *name, struct tensor *const *x, int count,
                                  const struct yaml *arguments)
{
    if (graph->failed)
        return NULL;
    struct tensor *made = apply(graph, name, x, count, arguments);
    if (graph->failed)
        add_place(graph, name, x, count);
    return graph->failed ? NULL : made;
}

struct tensor *op_word_apply(struct graph *graph, const char *name, struct tensor *const *x, int count,
                             const char *text)
{
    struct yaml *arguments = NULL;
    plim_error error = {0};
    if (graph->failed)
        return NULL;
    plim_status status = parse(&arguments, graph, name, text, &error);
    if (status != PLIM_OK) {
        keep(graph, status, &error);
        add_place(graph, name, x, count);
    }
    return op_word_apply_tree(graph, name, x, count, arguments);
}
