/* model_read.c - a list of layers, or a map with one, into entries with layers: words and names.

   Names are Keras's: layers without one of their own are numbered by class over the whole model, dense, dense_1, ...;
   weights are matched by name, so the numbers must not depend on anything but the text. */
#include <string.h>

#include "base/numbers/hash.h"
#include "model/model_scope.h"

/* Keras's other layers: refused by name. */
#define KERAS(name) #name,
static const char *const keras_layers[] = {
#include "model/keras/keras_layers.def"
};
#undef KERAS

/* The words for nested models. */
static const struct {
    const char *word, *snake;
} model_words[] = {{"Sequential", "sequential"}, {"Functional", "functional"}, {"Model", "functional"}};
#define FUNCTIONAL 1

plim_status reader_no_room(const struct model_reader *reader)
{
    return arena_refused(&reader->model->arena, reader->error);
}

void entry_place(char out[256], const struct model_reader *reader, const struct entry *entry)
{
    struct yaml at = {.line = entry->line, .column = entry->column, .origin = entry->origin};
    yaml_place(out, reader->model->job, &at);
}

/* ---- names ---- */

static int name_place(const struct scope *scope, const char *name)
{
    int at = (int)(fnv1a_text(name) & (uint64_t)(scope->name_table_size - 1));
    while (scope->name_table[at] && strcmp(scope->entry[scope->name_table[at] - 1].name, name) != 0)
        at = (at + 1) & (scope->name_table_size - 1);
    return at;
}

int scope_find(const struct scope *scope, const char *name)
{
    return scope->name_table[name_place(scope, name)] - 1;
}

bool scope_add_name(struct scope *scope, int entry)
{
    int at = name_place(scope, scope->entry[entry].name);
    if (scope->name_table[at])
        return false;
    scope->name_table[at] = entry + 1;
    return true;
}

/* Names go into files and onto terminals: what a terminal would obey is none. */
bool is_layer_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return *name != 0;
}

/* A name of its own, or the class's with a number. */
static plim_status name_entry(struct model_reader *reader, struct scope *scope, struct entry *entry, const char *own,
                              const char *snake, int *unnamed)
{
    struct model *model = reader->model;
    char where[256];
    entry_place(where, reader, entry);
    if (own && !is_layer_name(own))
        return fail_at(reader->error, PLIM_BAD_JOB, where, "name: '%s' is empty, or has a '/' or a control character",
                       own);
    int number = own ? 0 : (*unnamed)++;
    if (own || !number)
        entry->name = arena_string(&model->arena, own ? own : snake);
    else
        entry->name = arena_format(&model->arena, "%s_%d", snake, number);
    if (!entry->name)
        return reader_no_room(reader);
    if (!scope_add_name(scope, (int)(entry - scope->entry)))
        return fail_at(reader->error, PLIM_BAD_JOB, where, "two layers are named '%s'", entry->name);
    return PLIM_OK;
}

/* ---- layers ---- */

static int type_of(const char *word)
{
    for (int i = 0; i < all_layers_count; i++)
        if (strcmp(word, all_layers[i]->name) == 0 || (all_layers[i]->alias && strcmp(word, all_layers[i]->alias) == 0))
            return i;
    return -1;
}

static int model_word(const char *word)
{
    for (int i = 0; i < COUNT(model_words); i++)
        if (strcmp(word, model_words[i].word) == 0)
            return i;
    return -1;
}

bool is_model_word(const char *word)
{
    return model_word(word) >= 0;
}

#define MOST_OFFERED 512

/* Whatever its capitals. */
static bool is_layer(const char *word)
{
    for (int i = 0; i < all_layers_count; i++)
        if (same_word(word, all_layers[i]->name))
            return true;
    return false;
}

static plim_status unknown_layer(const struct model_reader *reader, const struct scope *scope, const char *word,
                                 const char *where)
{
    const char *names[MOST_OFFERED];
    int count = 0;
    const struct activation_type *activation = activation_named(word);
    if (activation && activation->op && !is_layer(word)) /* no slip: GELU is near ReLU, and means gelu */
        return hint(reader->error, fail_at(reader->error, PLIM_BAD_JOB, where, "unknown layer '%s'", word),
                    "Activation: %s", activation->name);
    for (int i = 0; i < all_layers_count && count < MOST_OFFERED; i++)
        names[count++] = all_layers[i]->name;
    for (int i = 0; scope && i < scope->count && count < MOST_OFFERED; i++)
        if (scope->entry[i].name)
            names[count++] = scope->entry[i].name;
    const struct choices choices = {
        .words = names, .count = count, .keras = keras_layers, .keras_count = COUNT(keras_layers)};
    return option_unknown("layer", word, where, &choices, reader->error);
}

/* The layer's own keys, without its name. */
static plim_status read_options(struct layer *layer, struct model *model, int type, const struct yaml *options,
                                plim_error *error)
{
    layer->model = model;
    layer->number = model->number_count++;
    layer->type = all_layers[type];
    layer->options = arena_take(&model->arena, layer->type->options_bytes);
    if (!layer->options)
        return arena_refused(&model->arena, error);
    return layer->type->read ? layer->type->read(layer, options, error) : layer_read(layer, options, error);
}

/* "dense_1": the second of its class in a model inside a layer; number: of the class. NULL: no room. */
static const char *class_inside(struct model_reader *reader, struct scope *scope, const char *snake, int number)
{
    int same = scope->classes[number]++;
    return same ? arena_format(&reader->model->arena, "%s_%d", snake, same) : snake;
}

/* The layer's name is known when the outer one's is. */
static plim_status name_inside(struct model_reader *reader, struct scope *scope, const struct entry *entry, int type)
{
    struct layer *layer = entry->layer;
    struct layer_keys *keys = layer->options;
    struct arena *arena = &reader->model->arena;
    const char *class = class_inside(reader, scope, layer->type->snake, type);
    layer->saved_part = class ? arena_format(arena, "%s%s", scope->group, class) : NULL;
    keys->name = arena_format(arena, "%s%s", scope->prefix, entry->name);
    if (!layer->saved_part || !keys->name)
        return reader_no_room(reader);
    layer->outer = reader->outer;
    layer->next_inner = reader->model->inner;
    reader->model->inner = layer;
    return PLIM_OK;
}

static plim_status define_layer(struct model_reader *reader, struct scope *scope, struct entry *entry, int type,
                                const struct yaml *options)
{
    struct model *model = reader->model;
    struct layer *layer = &model->layer[model->layer_count];
    if (reader->outer && !(layer = arena_take(&model->arena, sizeof *layer)))
        return reader_no_room(reader);
    entry->layer = layer;
    layer->line = entry->origin ? 0 : entry->line;
    layer->column = entry->column;
    layer->origin = entry->origin || !options ? entry->origin : yaml_origin(options);
    TRY(read_options(layer, model, type, options, reader->error));
    struct layer_keys *keys = layer->options;
    entry->inputs = keys->inputs;
    keys->trainable = keys->trainable && !scope->frozen;
    TRY(name_entry(reader, scope, entry, keys->name, layer->type->snake, &reader->unnamed[type]));
    if (reader->outer)
        return name_inside(reader, scope, entry, type);
    layer->name =
        *scope->prefix ? arena_format(&model->arena, "%s%s", scope->prefix, entry->name) : (char *)entry->name;
    if (!layer->name)
        return reader_no_room(reader);
    model->layer_count++;
    return PLIM_OK;
}

plim_status layer_read_inner(struct layer **out, struct layer *outer, const struct yaml *entry, plim_error *error)
{
    struct model *model = outer->model;
    struct model_reader reader = {.model = model, .error = error};
    char where[256];
    bool map = entry->kind == YAML_MAP && entry->count == 1;
    yaml_place(where, model->job, entry);
    if (!map && (entry->kind != YAML_SCALAR || entry->is_null))
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "%s: expected one layer", outer->type->name),
                    "layer: {Dense: 10}");
    const char *word = map ? entry->first->key : entry->text;
    int type = type_of(word);
    if (type < 0)
        return unknown_layer(&reader, NULL, word, where);
    struct layer *inner = arena_take(&model->arena, sizeof *inner);
    if (!inner)
        return arena_refused(&model->arena, error);
    inner->outer = outer;
    inner->line = entry->origin ? 0 : entry->line;
    inner->column = entry->column;
    inner->origin = yaml_origin(entry);
    TRY(read_options(inner, model, type, map ? entry->first : NULL, error));
    struct layer_keys *keys = inner->options;
    if (keys->name && !is_layer_name(keys->name))
        return fail_at(error, PLIM_BAD_JOB, where, "name: '%s' is empty, or has a '/' or a control character",
                       keys->name);
    inner->next_inner = model->inner;
    *out = model->inner = inner;
    return PLIM_OK;
}

plim_status layer_name_inner(struct layer *inner, struct layer *const *before, int count, const char *group,
                             plim_error *error)
{
    struct layer_keys *keys = inner->options;
    struct arena *arena = &inner->model->arena;
    char where[256];
    int same = 0;
    for (int i = 0; i < count; i++)
        same += before[i]->type == inner->type;
    const char *class = same ? arena_format(arena, "%s_%d", inner->type->snake, same) : inner->type->snake;
    inner->saved_part = class ? arena_format(arena, "%s%s", group, class) : NULL;
    const char *name = keys->name ? keys->name : class;
    if (!inner->saved_part || !name)
        return arena_refused(arena, error);
    keys->name = name;
    layer_place(where, inner);
    for (int i = 0; i < count; i++)
        if (strcmp(((const struct layer_keys *)before[i]->options)->name, name) == 0)
            return fail_at(error, PLIM_BAD_JOB, where, "%s: two layers are named '%s'", inner->outer->type->name, name);
    return PLIM_OK;
}

/* ---- entries ---- */

static plim_status read_scope(struct model_reader *reader, struct scope *scope, const struct yaml *yaml);

/* How many there are at most, with those of models inside. */
static int count_layers(const struct yaml *yaml)
{
    const struct yaml *list = yaml->kind == YAML_MAP ? yaml_get(yaml, "layers") : yaml;
    int count = 0;
    for (const struct yaml *at = list && list->kind == YAML_LIST ? list->first : NULL; at; at = at->next) {
        bool nested = at->kind == YAML_MAP && at->first && model_word(at->first->key) >= 0;
        count += nested ? count_layers(at->first) : 1;
    }
    return count;
}

static int word_number(int word)
{
    return all_layers_count + (word == 0 ? 0 : FUNCTIONAL);
}

/* A model inside a model inside a layer. */
static plim_status group_inside(struct model_reader *reader, struct scope *inside, struct scope *scope, int word)
{
    const char *class = class_inside(reader, scope, model_words[word].snake, word_number(word));
    inside->group = class ? arena_format(&reader->model->arena, "%s%s/layers/", scope->group, class) : NULL;
    return inside->group ? PLIM_OK : reader_no_room(reader);
}

/* Sequential: [...], or Functional: {layers: [...], outputs: ..., name: ..., inputs: ...}. */
static plim_status define_model(struct model_reader *reader, struct scope *scope, struct entry *entry, int word,
                                const struct yaml *yaml)
{
    struct model *model = reader->model;
    char where[256];
    entry_place(where, reader, entry);
    if (++reader->depth > MOST_NESTED_MODELS)
        return fail_at(reader->error, PLIM_BAD_JOB, where, "more than %d models one inside the other",
                       MOST_NESTED_MODELS);
    struct scope *inside = arena_take(&model->arena, sizeof *inside);
    if (!inside)
        return reader_no_room(reader);
    inside->type_name = model_words[word].word;
    inside->frozen = scope->frozen;
    entry->inside = inside;
    if (!yaml || (yaml->kind == YAML_SCALAR && yaml->is_null))
        return hint(
            reader->error,
            fail_at(reader->error, PLIM_BAD_JOB, where, "%s: expected a list of layers", model_words[word].word),
            "- %s: {layers: [Dense: 10]}", model_words[word].word);
    const struct yaml *name = yaml->kind == YAML_MAP ? yaml_get(yaml, "name") : NULL;
    entry->inputs = yaml->kind == YAML_MAP ? yaml_get(yaml, "inputs") : NULL;
    const char *own = name && name->kind == YAML_SCALAR && !name->is_null ? name->text : NULL;
    TRY(name_entry(reader, scope, entry, own, model_words[word].snake, &reader->unnamed[word_number(word)]));
    inside->name = entry->name;
    inside->prefix = arena_format(&model->arena, "%s%s/", scope->prefix, entry->name);
    if (!inside->prefix)
        return reader_no_room(reader);
    if (reader->outer)
        TRY(group_inside(reader, inside, scope, word));
    TRY(read_scope(reader, inside, yaml));
    reader->depth--;
    return PLIM_OK;
}

/* `- encoder`, `- encoder: b`, `- encoder: {inputs: b, name: second}`: a layer above, once more;
   `- Use: {layer: encoder, inputs: b}`: the same for one that is named as a class is.
   `- tokens: {inputs: x, reverse: true}`: a ReversibleEmbedding back to its vocabulary. */
struct use_keys {
    const char *layer, *name;
    const struct yaml *inputs;
    bool reverse;
};

static const struct setting use_settings[] = {
    {"inputs", SETTING_NODE, offsetof(struct use_keys, inputs), 0},
    {"name", SETTING_WORD, offsetof(struct use_keys, name), 0},
    {"reverse", SETTING_BOOL, offsetof(struct use_keys, reverse), 0},
    {"layer", SETTING_WORD, offsetof(struct use_keys, layer), 0},
};
#define WITHOUT_LAYER 3 /* the first so many of them: the layer was the entry's word */

static plim_status add_use(struct model_reader *reader, struct scope *scope, struct entry *entry, int defined,
                           const struct use_keys *keys)
{
    struct entry *first = &scope->entry[scope->entry[defined].definition];
    char where[256];
    entry_place(where, reader, entry);
    if (keys->reverse && !(first->layer && first->layer->type->reverses))
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "reverse: layer '%s' has none", first->name),
                    "a ReversibleEmbedding has");
    entry->reverse = keys->reverse;
    entry->definition = first->definition;
    entry->node = ++first->again;
    entry->layer = first->layer;
    entry->inside = first->inside;
    entry->inputs = keys->inputs;
    const char *name = keys->name;
    if (!name && !(name = arena_format(&reader->model->arena, "%s:%d", first->name, entry->node)))
        return reader_no_room(reader);
    return name_entry(reader, scope, entry, name, "", NULL);
}

static plim_status use_again(struct model_reader *reader, struct scope *scope, struct entry *entry, int defined,
                             const struct yaml *yaml)
{
    struct use_keys keys = {0};
    if (yaml && yaml->kind == YAML_MAP)
        TRY(settings_read(&keys, use_settings, WITHOUT_LAYER, reader->model->job, yaml, reader->error));
    else if (yaml && !(yaml->kind == YAML_SCALAR && yaml->is_null))
        keys.inputs = yaml;
    return add_use(reader, scope, entry, defined, &keys);
}

static plim_status use_named(struct model_reader *reader, struct scope *scope, struct entry *entry,
                             const struct yaml *yaml)
{
    struct use_keys keys = {0};
    char where[256];
    entry_place(where, reader, entry);
    if (yaml && yaml->kind == YAML_MAP)
        TRY(settings_read(&keys, use_settings, COUNT(use_settings), reader->model->job, yaml, reader->error));
    if (!keys.layer)
        return hint(reader->error, fail_at(reader->error, PLIM_BAD_JOB, where, "Use: which layer? 'layer' is missing"),
                    "- Use: {layer: encoder, inputs: b}");
    int defined = scope_find(scope, keys.layer);
    if (defined < 0)
        return fail_at(reader->error, PLIM_BAD_JOB, where, "Use: no layer above is named '%s'", keys.layer);
    return add_use(reader, scope, entry, defined, &keys);
}

static plim_status read_entry(struct model_reader *reader, struct scope *scope, struct entry *entry,
                              const struct yaml *yaml)
{
    char where[256];
    bool map = yaml->kind == YAML_MAP && yaml->count == 1;
    entry->definition = (int)(entry - scope->entry);
    entry->line = map ? yaml->first->key_line : yaml->line;
    entry->column = map ? yaml->first->key_column : yaml->column;
    entry->origin = (map ? yaml->first : yaml)->origin;
    entry_place(where, reader, entry);
    if (!map && yaml->kind == YAML_MAP && yaml->count > 1) {
        yaml_key_place(where, reader->model->job, yaml->first->next);
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "expected one layer an entry: '%s' stands beside '%s'",
                            yaml->first->next->key, yaml->first->key),
                    "begin each layer with '- '; an option stands inside: - %s: {...}", yaml->first->key);
    }
    if (!map && (yaml->kind != YAML_SCALAR || yaml->is_null))
        return hint(reader->error, fail_at(reader->error, PLIM_BAD_JOB, where, "expected one layer an entry"),
                    "- Dense: {units: 10}");
    const char *word = map ? yaml->first->key : yaml->text;
    const struct yaml *options = map ? yaml->first : NULL;
    int type = type_of(word), nested = model_word(word), defined = scope_find(scope, word);
    bool use = strcmp(word, "Use") == 0 && (defined < 0 || (options && yaml_get(options, "layer")));
    if (type >= 0)
        return define_layer(reader, scope, entry, type, options);
    if (nested >= 0)
        return define_model(reader, scope, entry, nested, options);
    if (use)
        return use_named(reader, scope, entry, options);
    if (defined >= 0)
        return use_again(reader, scope, entry, defined, options);
    return unknown_layer(reader, scope, word, where);
}

/* ---- a list, or a map with one ---- */

struct scope_keys {
    const char *name;
    const struct yaml *layers, *outputs, *inputs, *dtype;
    bool trainable;
};

static const struct setting scope_settings[] = {
    {"name", SETTING_WORD, offsetof(struct scope_keys, name), 0},
    {"layers", SETTING_NODE, offsetof(struct scope_keys, layers), 0},
    {"outputs", SETTING_NODE, offsetof(struct scope_keys, outputs), 0},
    {"inputs", SETTING_NODE, offsetof(struct scope_keys, inputs), 0},
    {"dtype", SETTING_NODE, offsetof(struct scope_keys, dtype), 0},
    {"trainable", SETTING_BOOL, offsetof(struct scope_keys, trainable), 0},
};

static plim_status scope_keys(struct scope_keys *keys, struct model_reader *reader, const struct yaml *yaml)
{
    const char *job = reader->model->job;
    char where[256];
    *keys = (struct scope_keys){.trainable = true, .layers = yaml};
    if (yaml->kind == YAML_MAP) {
        keys->layers = NULL;
        TRY(settings_read(keys, scope_settings, COUNT(scope_settings), job, yaml, reader->error));
        TRY(policy_read_node(&(enum type){0}, &(bool){false}, "model", job, keys->dtype, reader->error));
    }
    yaml_place(where, job, keys->layers ? keys->layers : yaml);
    if (!keys->layers || keys->layers->kind != YAML_LIST || keys->layers->count == 0)
        return hint(reader->error, fail_at(reader->error, PLIM_BAD_JOB, where, "model: expected a list of layers"),
                    "- Dense: {units: 10}");
    return PLIM_OK;
}

static bool make_tables(struct model_reader *reader, struct scope *scope, int count)
{
    struct arena *arena = &reader->model->arena;
    for (scope->name_table_size = 16; scope->name_table_size < 2 * count + 2;)
        scope->name_table_size *= 2;
    scope->entry = arena_array(arena, (size_t)count, sizeof *scope->entry);
    scope->order = arena_array(arena, (size_t)count, sizeof *scope->order);
    scope->name_table = arena_array(arena, (size_t)scope->name_table_size, sizeof *scope->name_table);
    if (reader->outer)
        scope->classes = arena_array(arena, (size_t)MODEL_NUMBERS, sizeof *scope->classes);
    return scope->entry && scope->order && scope->name_table && (scope->classes || !reader->outer);
}

static plim_status read_scope(struct model_reader *reader, struct scope *scope, const struct yaml *yaml)
{
    struct scope_keys keys;
    TRY(scope_keys(&keys, reader, yaml));
    if (!make_tables(reader, scope, keys.layers->count))
        return reader_no_room(reader);
    if (!scope->name && keys.name && !(scope->name = arena_string(&reader->model->arena, keys.name)))
        return reader_no_room(reader);
    scope->frozen = scope->frozen || !keys.trainable;
    scope->outputs = keys.outputs;
    scope->first_layer = reader->model->layer_count;
    for (const struct yaml *entry = keys.layers->first; entry; entry = entry->next)
        TRY(read_entry(reader, scope, &scope->entry[scope->count++], entry));
    scope->layer_count = reader->model->layer_count - scope->first_layer;
    return scope_connect(reader, scope);
}

plim_status scope_read_inside(struct scope **out, struct layer *outer, const char *word, const struct yaml *yaml,
                              plim_error *error)
{
    struct model *model = outer->model;
    struct arena *arena = &model->arena;
    struct model_reader reader = {.model = model, .outer = outer, .error = error};
    const struct yaml *name = yaml->kind == YAML_MAP ? yaml_get(yaml, "name") : NULL;
    const char *own = name && name->kind == YAML_SCALAR && !name->is_null ? name->text : NULL;
    const char *snake = model_words[model_word(word)].snake;
    if (own && !is_layer_name(own))
        return yaml_fail(error, PLIM_BAD_JOB, model->job, yaml,
                         "name: '%s' is empty, or has a '/' or a control character", own);
    struct scope *scope = *out = arena_take(arena, sizeof *scope);
    reader.unnamed = arena_array(arena, (size_t)MODEL_NUMBERS, sizeof *reader.unnamed);
    if (!scope || !reader.unnamed || !(scope->prefix = arena_format(arena, "%s/", own ? own : snake)))
        return reader_no_room(&reader);
    scope->type_name = word;
    scope->group = "layer/layers/";
    return read_scope(&reader, scope, yaml);
}

/* ---- the model ---- */

/* A layer inside another has its name behind the other's, which is known when all is read. NULL: no room. */
static const char *full_name(struct layer *layer)
{
    if (layer->name)
        return layer->name;
    const struct layer_keys *keys = layer->options;
    const char *outer = full_name(layer->outer);
    if (outer)
        layer->name = arena_format(&layer->model->arena, "%s/%s", outer, keys->name ? keys->name : layer->type->snake);
    return layer->name;
}

static plim_status make_model(struct model **out, struct budget *budget, const char *job, int layers, plim_error *error)
{
    struct arena arena;
    arena_init(&arena, budget, TAG_PLANNER);
    struct model *model = arena_take(&arena, sizeof *model);
    if (!model) {
        plim_status status = arena_refused(&arena, error);
        arena_release(&arena);
        return status;
    }
    model->arena = arena;
    model->job = arena_string(&model->arena, job);
    model->layer = arena_array(&model->arena, (size_t)layers, sizeof *model->layer);
    model->scope = arena_take(&model->arena, sizeof *model->scope);
    if (!model->job || !model->layer || !model->scope) {
        plim_status status = arena_refused(&model->arena, error);
        model_free(model);
        return status;
    }
    *out = model;
    return PLIM_OK;
}

/* A list in which each layer reads the one before it is Keras's Sequential. */
static bool is_list(const struct scope *scope)
{
    if (scope->output_count > 1)
        return false;
    for (int i = 0; i < scope->count; i++) {
        const struct entry *entry = &scope->entry[i];
        if (entry->definition != i || entry->input_count != 1 || entry->input[0].from != (i ? i - 1 : FEED(0)) ||
            entry->input[0].part)
            return false;
    }
    return true;
}

static plim_status read_model(struct model_reader *reader, const struct yaml *yaml)
{
    struct model *model = reader->model;
    struct scope *scope = model->scope;
    if (!reader->unnamed)
        reader->unnamed = arena_array(&model->arena, (size_t)MODEL_NUMBERS, sizeof *reader->unnamed);
    if (!reader->unnamed)
        return reader_no_room(reader);
    scope->prefix = "";
    TRY(read_scope(reader, scope, yaml));
    for (struct layer *inner = model->inner; inner; inner = inner->next_inner)
        if (!full_name(inner))
            return reader_no_room(reader);
    model->listed = is_list(scope);
    scope->type_name = model_words[model->listed ? 0 : FUNCTIONAL].word;
    if (!scope->name)
        scope->name = model_words[model->listed ? 0 : FUNCTIONAL].snake;
    model->name = scope->name;
    return model_lay_out(reader, scope);
}

plim_status model_read(struct model **out, struct budget *budget, const char *job, const struct yaml *yaml,
                       plim_error *error)
{
    return model_read_numbered(out, NULL, budget, job, yaml, error);
}

plim_status model_read_numbered(struct model **out, int *unnamed, struct budget *budget, const char *job,
                                const struct yaml *yaml, plim_error *error)
{
    struct model *model = NULL;
    TRY(make_model(&model, budget, job, 1 + count_layers(yaml), error));
    struct model_reader reader = {.model = model, .unnamed = unnamed, .error = error};
    plim_status status = read_model(&reader, yaml);
    if (status == PLIM_OK && yaml->kind == YAML_MAP)
        status = policy_read_node(&model->compute, &(bool){false}, "model", job, yaml_get(yaml, "dtype"), error);
    return OPENED(out, model, model_free, status);
}

void model_free(struct model *model)
{
    if (!model)
        return;
    struct arena arena = model->arena; /* the model lies in it */
    arena_release(&arena);
}
