/* inner_layers.c - layers inside a layer: read into uses, put in order, and built one after another.

   NEEDSWORK: names, inputs and order are read here as model_read.c and model_graph.c read them; a scope of theirs would
   do, and bring models inside it. Ids that an Embedding inside reads are not held against its table before they are
   used; layers with several outputs, several inputs or outputs of it. */
#include "model/inner_layers.h"

#include <string.h>

#include "model/model_scope.h"

#define MOST_INNER        4096
#define MOST_INNER_INPUTS (4 * MOST_INNER) /* each is looked for among all names */

struct inner_reader {
    struct inner_layers *out;
    struct layer *outer;
    const char *prefix;
    bool frozen;
    int inputs; /* of all uses */
    plim_error *error;
};

static struct arena *arena_of(const struct inner_reader *r)
{
    return &r->outer->model->arena;
}

static plim_status refuse(const struct inner_reader *r, plim_status status, const struct yaml *at, const char *what,
                          const char *name)
{
    char where[256];
    yaml_place(where, r->outer->model->job, at);
    return fail_at(r->error, status, where, "%s: %s%s%s%s", r->outer->type->name, what, name ? " '" : "",
                   name ? name : "", name ? "'" : "");
}

/* ---- names ---- */

/* Below INNER_FEED: there is none. */
static int find_use(const struct inner_reader *r, const char *name)
{
    for (int i = r->out->use_count; i-- > 0;)
        if (strcmp(r->out->use[i].name, name) == 0)
            return i;
    return INNER_FEED - 1;
}

static const char *word_of(const struct yaml *node)
{
    return node && node->kind == YAML_SCALAR && !node->is_null ? node->text : NULL;
}

static plim_status find_input(int *out, const struct inner_reader *r, const char *feed, const struct yaml *node)
{
    const char *name = word_of(node);
    if (!name)
        return refuse(r, PLIM_BAD_JOB, node, "inputs: expected the names of layers", NULL);
    *out = feed && strcmp(name, feed) == 0 ? INNER_FEED : find_use(r, name);
    return *out >= INNER_FEED ? PLIM_OK : refuse(r, PLIM_BAD_JOB, node, "no layer is named", name);
}

/* Those it names, or the one above. */
static plim_status connect(struct inner_use *use, struct inner_reader *r, const char *feed)
{
    const struct yaml *inputs = use->inputs;
    bool list = inputs && inputs->kind == YAML_LIST;
    int count = list ? inputs->count : 1, *input = arena_array(arena_of(r), (size_t)count + 1, sizeof *input), i = 0;
    if (!input)
        return arena_refused(arena_of(r), r->error);
    if ((r->inputs += count) > MOST_INNER_INPUTS)
        return refuse(r, PLIM_BAD_JOB, inputs, "its layers have too many inputs", NULL);
    use->input = input;
    use->input_count = count;
    input[0] = (int)(use - r->out->use) - 1;
    for (const struct yaml *at = list ? inputs->first : inputs; at; at = list ? at->next : NULL)
        TRY(find_input(&input[i++], r, feed, at));
    const struct layer_type *type = use->layer->type;
    if (count > 0 && (type->merge || count == 1))
        return PLIM_OK;
    char where[256];
    yaml_place(where, r->outer->model->job, inputs);
    return fail_at(r->error, PLIM_BAD_JOB, where, "%s: %s takes %s, got %d", r->outer->type->name, type->name,
                   type->merge ? "at least one input" : "1 input", count);
}

/* ---- layers ---- */

static bool is_model(const char *word)
{
    return strcmp(word, "Sequential") == 0 || strcmp(word, "Functional") == 0 || strcmp(word, "Model") == 0;
}

static bool is_input(const char *word)
{
    return strcmp(word, "Input") == 0 || strcmp(word, "InputLayer") == 0;
}

static plim_status read_layer(struct layer **out, struct inner_reader *r, const struct yaml *entry)
{
    struct inner_layers *inner = r->out;
    TRY(layer_read_inner(out, r->outer, entry, r->error));
    if ((*out)->type == &layer_input)
        return refuse(r, PLIM_BAD_JOB, entry, "Input is no layer of one input", NULL);
    if ((*out)->outputs > 1)
        return refuse(r, PLIM_UNSUPPORTED, entry,
                      "a layer of several outputs inside is not supported yet:", (*out)->type->name);
    inner->layer[inner->layer_count++] = *out;
    inner->by_last_axis = inner->by_last_axis && (*out)->type->by_last_axis;
    return PLIM_OK;
}

static plim_status define(struct inner_use *use, struct inner_reader *r, const struct yaml *entry)
{
    struct inner_layers *inner = r->out;
    TRY(read_layer(&use->layer, r, entry));
    TRY(layer_name_inner(use->layer, inner->layer, inner->layer_count - 1, r->prefix, "layer/layers/", r->error));
    struct layer_words *words = use->layer->options;
    words->trainable = words->trainable && !r->frozen;
    use->name = words->name + strlen(r->prefix);
    use->inputs = words->inputs;
    return PLIM_OK;
}

/* `- dense: {inputs: b, name: again}` or `- Use: {layer: dense, ...}`. */
struct again_words {
    const char *name, *layer;
    const struct yaml *inputs;
};

static const struct setting again_settings[] = {
    {"inputs", SETTING_NODE, offsetof(struct again_words, inputs), 0},
    {"name", SETTING_WORD, offsetof(struct again_words, name), 0},
    {"layer", SETTING_WORD, offsetof(struct again_words, layer), 0},
};

/* A layer above, once more: its name is "dense:1", or said. */
static plim_status use_again(struct inner_use *use, const struct inner_reader *r, const char *word,
                             const struct yaml *entry, const struct yaml *options)
{
    struct again_words words = {.layer = word};
    bool map = options && options->kind == YAML_MAP;
    if (map)
        TRY(settings_read(&words, again_settings, word ? 2 : 3, r->outer->model->job, options, r->error));
    int first = words.layer ? find_use(r, words.layer) : INNER_FEED - 1, again = 1;
    if (first < 0)
        return refuse(r, PLIM_BAD_JOB, entry, "no layer above is named", words.layer ? words.layer : "");
    use->layer = r->out->use[first].layer;
    use->inputs = map ? words.inputs : word_of(options) || (options && options->kind == YAML_LIST) ? options : NULL;
    for (int i = first + 1; i < r->out->use_count; i++)
        again += r->out->use[i].layer == use->layer;
    use->name = words.name ? words.name : arena_format(arena_of(r), "%s:%d", words.layer, again);
    return use->name ? PLIM_OK : arena_refused(arena_of(r), r->error);
}

static plim_status add_feed(const struct inner_reader *r, const struct yaml *entry, const char **feed)
{
    const struct yaml *options = entry->kind == YAML_MAP ? entry->first : NULL;
    const char *name = options && options->kind == YAML_MAP ? word_of(yaml_get(options, "name")) : NULL;
    if (*feed || r->out->use_count)
        return refuse(r, PLIM_UNSUPPORTED, entry, "its model has one Input, first of all", NULL);
    *feed = name ? name : "input_layer";
    return PLIM_OK;
}

static plim_status add_entry(struct inner_reader *r, const struct yaml *entry, const char **feed)
{
    bool map = entry->kind == YAML_MAP && entry->count == 1;
    const struct yaml *options = map ? entry->first : NULL;
    const char *word = map ? options->key : word_of(entry);
    if (!word)
        return refuse(r, PLIM_BAD_JOB, entry, "expected one layer an entry", NULL);
    if (is_model(word))
        return refuse(r, PLIM_UNSUPPORTED, entry, "a model inside its model is not supported yet:", word);
    if (is_input(word))
        return add_feed(r, entry, feed);
    struct inner_use *use = &r->out->use[r->out->use_count];
    bool named = strcmp(word, "Use") == 0, again = named || (!is_layer_class(word) && find_use(r, word) >= 0);
    TRY(again ? use_again(use, r, named ? NULL : word, entry, options) : define(use, r, entry));
    if (find_use(r, use->name) >= 0 || (*feed && strcmp(use->name, *feed) == 0))
        return refuse(r, PLIM_BAD_JOB, entry, "two layers are named", use->name);
    r->out->use_count++;
    return PLIM_OK;
}

/* ---- a model ---- */

static plim_status find_output(const struct inner_reader *r, const struct yaml *outputs)
{
    const struct yaml *one = outputs && outputs->kind == YAML_LIST ? outputs->first : outputs;
    r->out->output = r->out->use_count - 1;
    if (!outputs)
        return PLIM_OK;
    if (outputs->kind == YAML_LIST && outputs->count != 1)
        return refuse(r, PLIM_UNSUPPORTED, outputs, "a model of one output", NULL);
    const char *name = word_of(one);
    r->out->output = name ? find_use(r, name) : -1;
    return r->out->output >= 0 ? PLIM_OK : refuse(r, PLIM_BAD_JOB, one, "outputs: no layer is named", name ? name : "");
}

/* Whether all that it reads is there. */
static bool is_ready(const struct inner_use *use, const bool *placed)
{
    for (int i = 0; i < use->input_count; i++)
        if (use->input[i] != INNER_FEED && !placed[use->input[i]])
            return false;
    return true;
}

/* Once over the list where each reads what is above it; files that Keras wrote have a second use beside the first. */
static plim_status put_in_order(struct inner_reader *r, const struct yaml *list)
{
    struct inner_layers *out = r->out;
    bool *placed = arena_array(arena_of(r), (size_t)out->use_count, sizeof *placed);
    int count = 0, before = -1;
    out->order = arena_array(arena_of(r), (size_t)out->use_count, sizeof *out->order);
    if (!placed || !out->order)
        return arena_refused(arena_of(r), r->error);
    while (count < out->use_count && before < count) {
        before = count;
        for (int i = 0; i < out->use_count; i++)
            if (!placed[i] && is_ready(&out->use[i], placed)) {
                placed[i] = true;
                out->order[count++] = i;
            }
    }
    return count == out->use_count ? PLIM_OK : refuse(r, PLIM_BAD_JOB, list, "layers in a circle", NULL);
}

static plim_status read_list(struct inner_reader *r, const struct yaml *list)
{
    struct inner_layers *out = r->out;
    const char *feed = NULL;
    out->layer = arena_array(arena_of(r), (size_t)list->count, sizeof *out->layer);
    out->use = arena_array(arena_of(r), (size_t)list->count, sizeof *out->use);
    if (!out->layer || !out->use)
        return arena_refused(arena_of(r), r->error);
    for (const struct yaml *entry = list->first; entry; entry = entry->next)
        TRY(add_entry(r, entry, &feed));
    if (out->use_count == 0)
        return refuse(r, PLIM_BAD_JOB, list, "its model has no layer", NULL);
    for (int i = 0; i < out->use_count; i++)
        TRY(connect(&out->use[i], r, feed));
    return put_in_order(r, list);
}

struct inner_model_words {
    const char *name;
    const struct yaml *layers, *outputs;
    bool trainable;
};

static const struct setting model_settings[] = {
    {"layers", SETTING_NODE, offsetof(struct inner_model_words, layers), 0},
    {"name", SETTING_WORD, offsetof(struct inner_model_words, name), 0},
    {"outputs", SETTING_NODE, offsetof(struct inner_model_words, outputs), 0},
    {"trainable", SETTING_BOOL, offsetof(struct inner_model_words, trainable), 0},
};

/* {Sequential: [...]} or {Functional: {layers: [...], ...}}; what it says of its input is seen from what comes. */
static plim_status read_model(struct inner_reader *r, const struct yaml *model, const char *snake)
{
    struct inner_model_words words = {.layers = model, .trainable = true};
    char where[256];
    if (model->kind == YAML_MAP) {
        words.layers = NULL;
        TRY(settings_read(&words, model_settings, LENGTH(model_settings), r->outer->model->job, model, r->error));
    }
    const struct yaml *list = words.layers;
    yaml_place(where, r->outer->model->job, model);
    if (words.name && !is_layer_name(words.name))
        return refuse(r, PLIM_BAD_JOB, model, "the model's name is empty, or has a '/' or a control character", NULL);
    if (!list || list->kind != YAML_LIST || list->count < 1 || list->count > MOST_INNER)
        return fail_at(r->error, PLIM_BAD_JOB, where, "%s: expected a list of 1 to %d layers", r->outer->type->name,
                       MOST_INNER);
    r->prefix = arena_format(arena_of(r), "%s/", words.name ? words.name : snake);
    r->frozen = !words.trainable;
    if (!r->prefix)
        return arena_refused(arena_of(r), r->error);
    TRY(read_list(r, list));
    return find_output(r, words.outputs);
}

/* One layer, whose names are the outer one's. */
static plim_status read_one(struct inner_reader *r, const struct yaml *word)
{
    struct inner_layers *out = r->out;
    out->layer = arena_array(arena_of(r), 1, sizeof *out->layer);
    out->use = arena_array(arena_of(r), 1, sizeof *out->use);
    if (!out->layer || !out->use)
        return arena_refused(arena_of(r), r->error);
    TRY(read_layer(&out->use->layer, r, word));
    out->use->name = "";
    out->use_count = 1;
    TRY(connect(out->use, r, NULL));
    return put_in_order(r, word);
}

static bool takes_any_type(const struct layer *layer)
{
    return layer->type->any_type || layer->any_type;
}

/* Whole numbers come as they are where everybody who reads what comes takes them so. */
static bool feeds_any_type(const struct inner_layers *inner)
{
    for (int i = 0; i < inner->use_count; i++)
        for (int k = 0; k < inner->use[i].input_count; k++)
            if (inner->use[i].input[k] == INNER_FEED && !takes_any_type(inner->use[i].layer))
                return false;
    return true;
}

plim_status inner_layers_read(struct inner_layers *out, struct layer *outer, const struct yaml *word, plim_error *error)
{
    struct inner_reader r = {.out = out, .outer = outer, .prefix = "", .error = error};
    const char *key = word->kind == YAML_MAP && word->count == 1 ? word->first->key : "";
    *out = (struct inner_layers){.by_last_axis = true};
    if (is_model(key))
        TRY(read_model(&r, word->first, strcmp(key, "Sequential") == 0 ? "sequential" : "functional"));
    else
        TRY(read_one(&r, word));
    outer->any_type = feeds_any_type(out);
    return PLIM_OK;
}

/* ---- building ---- */

struct inner_value {
    struct tensor *y, *mask;
};

/* Layers read and make what they compute in, but for those that take and keep any type. */
static struct tensor *cast(struct graph *graph, const struct layer *layer, struct tensor *x, bool any)
{
    return !x || any ? x : policy_cast(graph, x, layer_compute(layer));
}

static struct inner_value build_use(const struct inner_use *use, struct graph *graph, struct tensor *x,
                                    const struct inner_value *made, uint64_t number)
{
    size_t room = (size_t)use->input_count * sizeof(struct tensor *);
    struct tensor **in = arena_take(&graph->arena, room), **mask = arena_take(&graph->arena, room);
    struct layer *layer = use->layer;
    if (!in || !mask || !layer_full_name(layer)) {
        graph_refused(graph, 0);
        return (struct inner_value){0};
    }
    for (int i = 0; i < use->input_count; i++) {
        int from = use->input[i];
        in[i] = cast(graph, layer, from == INNER_FEED ? x : made[from].y, takes_any_type(layer));
        mask[i] = from == INNER_FEED ? NULL : made[from].mask;
    }
    if (graph->failed)
        return (struct inner_value){0};
    struct inner_now *around = layer->model->inner_now; /* where the outer layer lies inside another itself */
    uint64_t before = around ? around->number : 14695981039346656037u; /* FNV-1a, of words */
    struct inner_now now = {mask, use->input_count, layer->type->keeps_mask ? mask[0] : NULL,
                            (before ^ number) * 1099511628211u};
    layer->model->inner_now = &now;
    struct tensor *y = layer->type->merge ? layer->type->merge(layer, graph, in, use->input_count)
                                          : layer->type->build(layer, graph, in[0]);
    layer->model->inner_now = around;
    bool keeps = y && (layer->type->keeps_type || !type_is_float(y->type));
    return (struct inner_value){cast(graph, layer, y, keeps), now.made_mask};
}

struct tensor *inner_layers_build(const struct inner_layers *inner, struct graph *graph, struct tensor *x, int64_t step)
{
    struct inner_value *made = arena_array(&graph->arena, (size_t)inner->use_count, sizeof *made);
    if (!made) {
        graph_refused(graph, 0);
        return NULL;
    }
    for (int k = 0; k < inner->use_count && !graph->failed; k++) {
        int i = inner->order[k];
        made[i] = build_use(&inner->use[i], graph, x, made, (uint64_t)(step * inner->use_count + i));
    }
    return graph->failed ? NULL : made[inner->output].y;
}
