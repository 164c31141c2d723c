/* weight_options.c - regularisers and constraints with Keras's words. They are
   found by the ends of their names, so that no layer has to know of them. */
#include "model/layers/weight_options.h"

#include <string.h>

#include "model/layers/layer_options.h"
#include "ops/ops.h"

static const char regularizer_end[] = "_regularizer", constraint_end[] = "_constraint";

static bool ends(const char *word, const char *end)
{
    size_t length = strlen(word), tail = strlen(end);
    return length > tail && strcmp(word + length - tail, end) == 0;
}

static bool is_weight_option(const char *word)
{
    return ends(word, regularizer_end) || ends(word, constraint_end);
}

/* ---- reading ------------------------------------------------------------ */

/* As named_node, and as files have it `{class_name: L2, config: {...}}`. */
static bool name_of(const char **name, const struct yaml **arguments, const struct yaml *node)
{
    const struct yaml *class = node->kind == YAML_MAP ? yaml_get(node, "class_name") : NULL;
    if (!class || class->kind != YAML_SCALAR)
        return named_node(name, arguments, node);
    *arguments = yaml_get(node, "config");
    *name = class->text;
    return true;
}

/* One axis, or several that follow one another. */
static OPTION_READER(read_axis)
{
    struct weight_option *weight = out;
    bool list = node->kind != YAML_SCALAR;
    int64_t axis = 0;
    if (list && !node->first)
        return hint(error, yaml_fail(error, PLIM_BAD_JOB, at->job, node, "axis: there is none in it"), "axis: 0");
    const struct yaml *first = list ? node->first : node;
    for (const struct yaml *entry = first; entry; entry = list ? entry->next : NULL) {
        TRY(option_whole(&axis, option, at, entry, error));
        if (entry != first && axis - 1 != weight->axis_last)
            return yaml_fail(error, PLIM_UNSUPPORTED, at->job, entry,
                             "axis: only axes that follow one another are offered");
        weight->axis_first = entry == first ? axis : weight->axis_first;
        weight->axis_last = axis;
    }
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct weight_option, field)
#define L1                                                                                                             \
    {                                                                                                                  \
        "l1", option_number, TO(penalty.l1)                                                                            \
    }
#define L2                                                                                                             \
    {                                                                                                                  \
        "l2", option_number, TO(penalty.l2)                                                                            \
    }
#define MAX_VALUE                                                                                                      \
    {                                                                                                                  \
        "max_value", option_number, TO(most)                                                                           \
    }
#define AXIS                                                                                                           \
    {                                                                                                                  \
        "axis", read_axis, TO(weight)                                                                                  \
    }

static const struct option_word {
    const char *name, *alias;
    struct weight_option standard;
    struct model_option option[4]; /* the first is what stands alone */
} regularizers[] =
    {
        {"l1", NULL, {.penalty = {.l1 = 0.01}}, {L1}},
        {"l2", NULL, {.penalty = {.l2 = 0.01}}, {L2}},
        {"l1_l2", "l1l2", {.penalty = {0}}, {L1, L2}},
},
  constraints[] = {
      {"max_norm", NULL, {.constraint = CONSTRAINT_MAX_NORM, .most = 2}, {MAX_VALUE, AXIS}},
      {"non_neg", "non_negative", {.constraint = CONSTRAINT_NON_NEG}, {{0}}},
      {"unit_norm", NULL, {.constraint = CONSTRAINT_UNIT_NORM}, {AXIS}},
      {"min_max_norm",
       NULL,
       {.constraint = CONSTRAINT_MIN_MAX_NORM, .most = 1, .rate = 1},
       {{"min_value", option_number, TO(least)}, MAX_VALUE, {"rate", option_number, TO(rate)}, AXIS}},
};

static plim_status read_word(struct weight_option *out, const struct option_word *word, const char *job,
                             const struct yaml *arguments, plim_error *error)
{
    const struct option_place at = {word->name, job, arguments, NULL};
    int count = 0;
    while (count < COUNT(word->option) && word->option[count].word)
        count++;
    *out = word->standard;
    if (arguments && arguments->kind == YAML_SCALAR && !arguments->is_null && count)
        return word->option[0].read((char *)out + word->option[0].offset, &word->option[0], &at, arguments, error);
    return arguments && arguments->kind == YAML_MAP ? options_read(out, word->option, count, &at, error) : PLIM_OK;
}

static plim_status read_option(struct weight_option *out, const char *job, const struct yaml *node,
                               const struct option_word *words, int count, const char *what, plim_error *error)
{
    static const char *const keras[] = {"orthogonal_regularizer", "orthogonal"};
    const struct yaml *arguments;
    const char *names[8], *name;
    char where[256];
    if (!name_of(&name, &arguments, node))
        return yaml_fail(error, PLIM_BAD_JOB, job, node, "%s: expected a %s's name, or one with its arguments",
                         node->key, what);
    for (int i = 0; i < count; i++) {
        names[i] = words[i].name;
        if (same_word(name, words[i].name) || (words[i].alias && same_word(name, words[i].alias)))
            return read_word(out, &words[i], job, arguments, error);
    }
    yaml_place(where, job, node);
    const struct choices choices = {.words = names, .count = count, .keras = keras, .keras_count = COUNT(keras)};
    return option_unknown(what, name, where, &choices, error);
}

static struct weight_option *option_of(struct layer *layer, const char *word, size_t length)
{
    struct model *model = layer->model;
    for (struct weight_option *option = layer->weight_option; option; option = option->next)
        if (strlen(option->weight) == length && strncmp(option->weight, word, length) == 0)
            return option;
    struct weight_option *option = arena_take(&model->arena, sizeof *option);
    if (!option || !(option->weight = arena_format(&model->arena, "%.*s", (int)length, word)))
        return NULL;
    option->next = layer->weight_option;
    return layer->weight_option = option;
}

plim_status weight_options_read(struct layer *layer, const struct yaml *map, plim_error *error)
{
    const char *job = layer->model->job;
    for (const struct yaml *node = map->kind == YAML_MAP ? map->first : NULL; node; node = node->next) {
        bool penalty = ends(node->key, regularizer_end);
        struct weight_option read = {0};
        if (!is_weight_option(node->key) || (node->kind == YAML_SCALAR && node->is_null))
            continue;
        if (penalty)
            TRY(read_option(&read, job, node, regularizers, COUNT(regularizers), "regularizer", error));
        else
            TRY(read_option(&read, job, node, constraints, COUNT(constraints), "constraint", error));
        size_t length = strlen(node->key) - strlen(penalty ? regularizer_end : constraint_end);
        struct weight_option *option = option_of(layer, node->key, length);
        if (!option)
            return arena_refused(&layer->model->arena, error);
        if (penalty) {
            option->penalty = read.penalty;
            continue;
        }
        read.weight = option->weight;
        read.next = option->next;
        read.penalty = option->penalty;
        *option = read;
    }
    return PLIM_OK;
}

/* ---- into the graph ----------------------------------------------------- */

/* "kernel" is for the weight "kernel"; "recurrent" for "recurrent_kernel". */
static const struct weight_option *option_for(const struct weight *weight)
{
    const char *suffix = strrchr(weight->name, '/');
    suffix = suffix ? suffix + 1 : weight->name;
    for (const struct weight_option *option = weight->layer->weight_option; option; option = option->next) {
        size_t length = strlen(option->weight);
        if (strncmp(suffix, option->weight, length) == 0 &&
            (!suffix[length] || strcmp(suffix + length, "_kernel") == 0))
            return option;
    }
    return NULL;
}

static struct tensor *add_penalty(struct graph *graph, struct tensor *loss, struct tensor *x,
                                  const struct penalty_attributes *penalty)
{
    struct tensor *value = graph_add(graph, &op_penalty, &x, 1, penalty, sizeof *penalty);
    return binary(graph, &op_add, loss, value);
}

static bool is_penalty(const struct weight_option *option)
{
    return option && (option->penalty.l1 != 0.0 || option->penalty.l2 != 0.0);
}

static bool is_activity_penalty(const struct weight_option *option)
{
    return is_penalty(option) && strcmp(option->weight, "activity") == 0;
}

bool layer_has_activity_penalty(const struct layer *layer)
{
    const struct weight_option *option = layer->weight_option;
    while (option && !is_activity_penalty(option))
        option = option->next;
    return option != NULL;
}

struct tensor *penalties_add(struct graph *graph, const struct build *build, struct tensor *loss)
{
    const struct model *model = build->model;
    for (int i = 0; i < build->weight_count; i++) {
        const struct weight_option *option = option_for(&build->weight[i]);
        if (is_penalty(option))
            loss = add_penalty(graph, loss, build->weight[i].tensor, &option->penalty);
    }
    for (int i = 0; i < model->use_count; i++) {
        const struct use *use = &model->use[i];
        for (const struct weight_option *option = use->layer->weight_option; option; option = option->next)
            for (int k = 0; is_activity_penalty(option) && (k == 0 || k < use->layer->outputs); k++)
                loss = add_penalty(graph, loss, use_made(build, use, k)->output, &option->penalty);
    }
    return loss;
}

void constraint_add(struct graph *graph, const struct weight *weight)
{
    const struct weight_option *option = option_for(weight);
    struct tensor *w = weight->tensor;
    if (!option || option->constraint == CONSTRAINT_NONE || !w)
        return;
    struct constrain_attributes attributes = {.kind = option->constraint,
                                              .least = option->least,
                                              .most = option->most,
                                              .rate = option->rate,
                                              .outer = 1,
                                              .reduced = 1,
                                              .inner = 1};
    if (option->axis_last >= w->shape.rank) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: a constraint over axis %lld of a weight of rank %d", w->name,
                   (long long)option->axis_last, w->shape.rank);
        return;
    }
    for (int axis = 0; axis < w->shape.rank; axis++)
        *(axis < option->axis_first   ? &attributes.outer
          : axis <= option->axis_last ? &attributes.reduced
                                      : &attributes.inner) *= w->shape.dim[axis];
    graph_add(graph, &op_constrain, &w, 1, &attributes, sizeof attributes);
}
