/* model_graph.c - entries into uses: who reads what, in which order, and models inside models laid out flat.

   Nothing here calls itself once a layer: a chain of 5,000 layers, however it is written, takes no more stack than
   one of five. Only models inside models do, and those are counted. */
#include <stdio.h>
#include <string.h>

#include "base/memory/work.h"
#include "base/text/message.h"
#include "base/text/text.h"
#include "model/model_scope.h"

/* ---- inputs by name ---- */

static plim_status unknown_name(const struct model_reader *reader, const struct scope *scope, const char *word,
                                const struct yaml *at, const char *name)
{
    char where[256];
    const char *names[256];
    size_t count = 0;
    for (int i = 0; i < scope->count && count < 256; i++)
        names[count++] = scope->entry[i].name;
    yaml_place(where, reader->model->job, at);
    plim_status status = fail_at(reader->error, PLIM_BAD_JOB, where, "%s: there is no layer named '%s'", word, name);
    const char *near = text_nearest(name, names, count);
    return near ? hint(reader->error, status, "did you mean '%s'?", near) : status;
}

static int outputs_of(const struct entry *entry)
{
    if (entry->inside)
        return entry->inside->output_count;
    return entry->layer->outputs ? entry->layer->outputs : 1;
}

/* `encoder`, or `encoder/2`: the output of that number, from 0. Names have no '/'. */
static plim_status find_input(struct link *out, const struct model_reader *reader, const struct scope *scope,
                              const char *word, const struct yaml *node)
{
    char where[256], name[512];
    int64_t part = 0;
    yaml_place(where, reader->model->job, node);
    if (node->kind != YAML_SCALAR || node->is_null)
        return fail_at(reader->error, PLIM_BAD_JOB, where, "%s: expected the names of layers", word);
    const char *slash = strrchr(node->text, '/');
    if (slash && !setting_whole(&part, slash + 1))
        slash = NULL;
    size_t length = slash ? (size_t)(slash - node->text) : strlen(node->text);
    snprintf(name, sizeof name, "%.*s", (int)length, node->text);
    out->from = length < sizeof name ? scope_find(scope, name) : -1;
    if (out->from < 0)
        return unknown_name(reader, scope, word, node, name);
    int outputs = outputs_of(&scope->entry[out->from]);
    out->part = (int)part;
    if (part >= 0 && part < outputs)
        return PLIM_OK;
    plim_status status = fail_at(reader->error, PLIM_BAD_JOB, where, "%s: layer '%s' has %d output%s, no '%s'", word,
                                 name, outputs, outputs > 1 ? "s" : "", node->text);
    return outputs > 1 ? hint(reader->error, status, "the last one is %s/%d", name, outputs - 1) : status;
}

static plim_status take_inputs(struct model_reader *reader, const struct scope *scope, struct entry *entry, int count)
{
    entry->input = arena_array(&reader->model->arena, (size_t)count, sizeof *entry->input);
    entry->input_count = count;
    if (!entry->input)
        return reader_no_room(reader);
    if (!entry->inputs)
        return PLIM_OK;
    if (entry->inputs->kind != YAML_LIST)
        return find_input(entry->input, reader, scope, "inputs", entry->inputs);
    int i = 0;
    for (const struct yaml *node = entry->inputs->first; node; node = node->next)
        TRY(find_input(&entry->input[i++], reader, scope, "inputs", node));
    return PLIM_OK;
}

static bool is_input(const struct entry *entry)
{
    return entry->layer && entry->layer->type == &layer_input;
}

/* What an Input layer, or a first layer without one, is fed with. */
static plim_status take_feed(struct model_reader *reader, struct scope *scope, struct entry *entry)
{
    char where[256];
    bool first = entry == scope->entry;
    entry_place(where, reader, entry);
    if (is_input(entry) && !first && scope->feed_count && !is_input(scope->entry))
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "%s: Input can only be the first layer", entry->name),
                    "give '%s' its `inputs:`, when there are several", scope->entry[0].name);
    if (is_input(entry) && entry->inputs)
        return fail_at(reader->error, PLIM_BAD_JOB, where, "%s: an Input reads the data, not another layer",
                       entry->name);
    TRY(take_inputs(reader, scope, entry, 1));
    entry->input[0].from = FEED(scope->feed_count);
    scope->feed_count++;
    return PLIM_OK;
}

/* How many inputs what is used takes; 0: any number. */
static int wanted_inputs(const struct entry *entry)
{
    if (entry->inside)
        return entry->inside->feed_count;
    return entry->layer->type->merge ? 0 : 1;
}

static plim_status connect(struct model_reader *reader, struct scope *scope, struct entry *entry)
{
    char where[256];
    int here = (int)(entry - scope->entry);
    bool feed = is_input(entry) || (here == 0 && !entry->inputs);
    bool list = entry->inputs && entry->inputs->kind == YAML_LIST && !feed;
    int count = list ? entry->inputs->count : 1, wanted = wanted_inputs(entry);
    entry_place(where, reader, entry);
    if ((wanted && count != wanted) || count == 0)
        return fail_at(reader->error, PLIM_BAD_JOB, where, "%s: takes %s%.0d input%s, got %d", entry->name,
                       wanted ? "" : "at least one", wanted, wanted == 1 || !wanted ? "" : "s", count);
    if (feed)
        return take_feed(reader, scope, entry);
    TRY(take_inputs(reader, scope, entry, count));
    if (!entry->inputs)
        entry->input[0].from = here - 1;
    return PLIM_OK;
}

/* ---- order ---- */

/* "a reads c, which reads b, which reads a": from the top of the stack down to the entry that was met again. */
static plim_status in_a_circle(const struct model_reader *reader, const struct scope *scope, const int *stack, int top,
                               int again)
{
    char where[256], circle[300] = "";
    entry_place(where, reader, &scope->entry[again]);
    int bottom = top;
    while (stack[bottom] != again)
        bottom--;
    message_print(circle, sizeof circle, "'%.60s'", scope->entry[again].name);
    for (int i = bottom + 1; i <= top + 1 && i < bottom + 5; i++) {
        size_t length = strlen(circle);
        message_print(circle + length, sizeof circle - length, "%s reads '%.60s'", i > bottom + 1 ? ", which" : "",
                      scope->entry[i > top ? again : stack[i]].name);
    }
    return fail_at(reader->error, PLIM_BAD_JOB, where, "layers in a circle: %s%s", circle,
                   top - bottom > 3 ? ", ..." : "");
}

/* A depth-first search through what entries read. */
struct depth_first {
    int *stack, *next; /* entries on the way, and which input of each comes next */
    char *state;       /* 0: new, 1: on the stack, 2: in order */
};

/* Entry `from` and everything it reads that has no place yet: inputs first. */
static plim_status place_entry(const struct model_reader *reader, struct scope *scope, struct depth_first *search,
                               int from, int *placed)
{
    int top = 0;
    search->stack[0] = from;
    search->next[0] = 0;
    search->state[from] = 1;
    while (top >= 0) {
        const struct entry *entry = &scope->entry[search->stack[top]];
        if (search->next[top] == entry->input_count) {
            scope->order[(*placed)++] = search->stack[top];
            search->state[search->stack[top--]] = 2;
            continue;
        }
        int input = entry->input[search->next[top]++].from;
        if (input < 0 || search->state[input] == 2)
            continue;
        if (search->state[input] == 1)
            return in_a_circle(reader, scope, search->stack, top, input);
        search->state[input] = 1;
        search->stack[++top] = input;
        search->next[top] = 0;
    }
    return PLIM_OK;
}

static plim_status put_in_order(const struct model_reader *reader, struct scope *scope, struct arena *work)
{
    struct depth_first search = {
        .stack = arena_array(work, (size_t)scope->count, sizeof(int)),
        .next = arena_array(work, (size_t)scope->count, sizeof(int)),
        .state = arena_array(work, (size_t)scope->count, 1),
    };
    int placed = 0;
    if (!search.stack || !search.next || !search.state)
        return arena_refused(work, reader->error);
    for (int i = 0; i < scope->count; i++)
        if (!search.state[i])
            TRY(place_entry(reader, scope, &search, i, &placed));
    return PLIM_OK;
}

/* ---- outputs ---- */

static plim_status count_outputs(const struct model_reader *reader, const struct yaml *outputs)
{
    char where[256];
    int count = outputs->kind == YAML_LIST ? outputs->count : 1;
    if (count <= MOST_MODEL_OUTPUTS)
        return PLIM_OK;
    yaml_place(where, reader->model->job, outputs);
    return fail_at(reader->error, PLIM_UNSUPPORTED, where, "outputs: %d of them; at most %d", count,
                   MOST_MODEL_OUTPUTS);
}

static plim_status add_output(const struct model_reader *reader, struct scope *scope, const struct yaml *node)
{
    char where[256];
    struct link output = {0};
    TRY(find_input(&output, reader, scope, "outputs", node));
    yaml_place(where, reader->model->job, node);
    for (int i = 0; i < scope->output_count; i++)
        if (scope->output[i].from == output.from && scope->output[i].part == output.part)
            return hint(reader->error,
                        fail_at(reader->error, PLIM_UNSUPPORTED, where, "outputs: '%s' twice", node->text),
                        "name it once");
    scope->output[scope->output_count++] = output;
    return PLIM_OK;
}

static plim_status find_outputs(const struct model_reader *reader, struct scope *scope)
{
    const struct yaml *outputs = scope->outputs;
    if (!outputs) {
        scope->output[scope->output_count++].from = scope->count - 1;
        return PLIM_OK;
    }
    TRY(count_outputs(reader, outputs));
    if (outputs->kind != YAML_LIST || !outputs->first)
        return add_output(reader, scope, outputs);
    for (const struct yaml *node = outputs->first; node; node = node->next)
        TRY(add_output(reader, scope, node));
    return PLIM_OK;
}

/* Every entry leads to an output: what does not was written for nothing. */
static plim_status all_are_used(const struct model_reader *reader, const struct scope *scope, struct arena *work)
{
    char where[256];
    bool *used = arena_array(work, (size_t)scope->count, sizeof *used);
    if (!used)
        return arena_refused(work, reader->error);
    for (int i = 0; i < scope->output_count; i++)
        used[scope->output[i].from] = true;
    for (int i = scope->count; i-- > 0;) {
        const struct entry *entry = &scope->entry[scope->order[i]];
        for (int k = 0; used[scope->order[i]] && k < entry->input_count; k++)
            if (entry->input[k].from >= 0)
                used[entry->input[k].from] = true;
    }
    for (int i = 0; i < scope->count; i++) {
        if (used[i])
            continue;
        entry_place(where, reader, &scope->entry[i]);
        plim_status status =
            fail_at(reader->error, PLIM_BAD_JOB, where, "nothing that leads to the output '%s'%s reads layer '%s'",
                    scope->entry[scope->output[0].from].name, scope->output_count > 1 ? " or another" : "",
                    scope->entry[i].name);
        return hint(reader->error, status, "take it out, or name it in `inputs:` of another or in `outputs:`");
    }
    return PLIM_OK;
}

/* Before anything is laid out: sixteen models, one inside the other and each used twice, are 65,536 of the innermost.
   Those inside were counted before, and none has more than MOST_USES: the sum does not overflow. */
static plim_status count_entries(const struct model_reader *reader, struct scope *scope)
{
    for (int i = 0; i < scope->count; i++)
        scope->entries += 1 + (scope->entry[i].inside ? scope->entry[i].inside->entries : 0);
    work_count(reader->model->arena.budget, (uint64_t)scope->count);
    if (scope->entries <= MOST_USES)
        return PLIM_OK;
    return fail_at(reader->error, PLIM_BAD_JOB, reader->model->job,
                   "%lld layers, counting those that are used again; at most %d", (long long)scope->entries, MOST_USES);
}

plim_status scope_connect(struct model_reader *reader, struct scope *scope)
{
    struct arena work;
    TRY(count_entries(reader, scope));
    for (int i = 0; i < scope->count; i++)
        TRY(connect(reader, scope, &scope->entry[i]));
    TRY(find_outputs(reader, scope));
    arena_init(&work, reader->model->arena.budget, TAG_PLANNER);
    plim_status status = put_in_order(reader, scope, &work);
    if (status == PLIM_OK)
        status = all_are_used(reader, scope, &work);
    arena_release(&work);
    return status;
}

/* ---- uses ---- */

#define FEW_USES 8 /* of a model inside a layer, at first */

static plim_status use_room(const struct model_reader *reader, struct use_table *table)
{
    struct model *model = reader->model;
    if (table->count < table->capacity)
        return PLIM_OK;
    int larger = table->capacity ? 2 * table->capacity : table->inside ? FEW_USES : model->layer_count;
    struct use *copy = arena_array(&model->arena, (size_t)larger, sizeof *copy);
    if (!copy)
        return reader_no_room(reader);
    if (table->count)
        memcpy(copy, table->use, (size_t)table->count * sizeof *copy);
    table->use = copy;
    table->capacity = larger;
    return PLIM_OK;
}

/* What an entry made, once it is laid out, as an output of a use. */
static struct link value_of(const struct scope *scope, struct link link, const struct link *feeds)
{
    if (link.from < 0)
        return feeds[FEED(link.from)];
    const struct entry *entry = &scope->entry[link.from];
    return entry->made ? entry->made[link.part] : (struct link){entry->use, link.part};
}

/* An entry's inputs as uses. */
static struct link *inputs_of(struct model_reader *reader, const struct scope *scope, const struct entry *entry,
                              const struct link *feeds)
{
    struct link *input = arena_array(&reader->model->arena, (size_t)entry->input_count, sizeof *input);
    for (int i = 0; input && i < entry->input_count; i++)
        input[i] = value_of(scope, entry->input[i], feeds);
    return input;
}

static plim_status lay_out(struct model_reader *reader, struct use_table *table, struct scope *scope,
                           const struct link *feeds);

static plim_status lay_out_nested(struct model_reader *reader, struct use_table *table, struct entry *entry,
                                  const struct link *feeds)
{
    const struct scope *inside = entry->inside;
    TRY(lay_out(reader, table, entry->inside, feeds));
    if (!entry->made)
        entry->made = arena_array(&reader->model->arena, (size_t)inside->output_count, sizeof *entry->made);
    if (!entry->made)
        return reader_no_room(reader);
    for (int i = 0; i < inside->output_count; i++)
        entry->made[i] = value_of(inside, inside->output[i], feeds);
    return PLIM_OK;
}

static plim_status lay_out_use(const struct model_reader *reader, struct use_table *table, struct entry *entry,
                               const struct link *input)
{
    struct layer *layer = entry->layer;
    TRY(use_room(reader, table));
    entry->use = table->count++;
    if (!layer->used && !table->inside)
        layer->first_use = entry->use;
    layer->used = true;
    struct use *use = &table->use[entry->use];
    *use = (struct use){.layer = layer,
                        .name = entry->name,
                        .input = input,
                        .input_count = entry->input_count,
                        .reverse = entry->reverse,
                        .output_index = -1,
                        .first_output = reader->model->made_count};
    reader->model->made_count += layer->outputs ? layer->outputs : 1;
    for (int k = 0; k < entry->input_count; k++)
        if (input[k].from >= 0)
            table->use[input[k].from].read = true;
    return PLIM_OK;
}

/* Of a model inside a layer: hands on what it is given, and is no use. */
static plim_status keep_input(const struct model_reader *reader, struct use_table *table, struct entry *entry,
                              struct link *input)
{
    struct inside_input *kept = arena_take(&reader->model->arena, sizeof *kept);
    if (!kept)
        return reader_no_room(reader);
    *kept = (struct inside_input){.layer = entry->layer, .from = input[0], .next = table->input};
    table->input = kept;
    entry->made = input;
    return PLIM_OK;
}

/* Calls itself for models inside, at most MOST_NESTED_MODELS deep. */
static plim_status lay_out(struct model_reader *reader, struct use_table *table, struct scope *scope,
                           const struct link *feeds)
{
    for (int i = 0; i < scope->count; i++) {
        struct entry *entry = &scope->entry[scope->order[i]];
        struct link *input = inputs_of(reader, scope, entry, feeds);
        if (!input)
            return reader_no_room(reader);
        if (table->inside && is_input(entry))
            TRY(keep_input(reader, table, entry, input));
        else
            TRY(entry->inside ? lay_out_nested(reader, table, entry, input) : lay_out_use(reader, table, entry, input));
    }
    return PLIM_OK;
}

/* Outputs are called as their entries are; the use that makes one is called so, too. */
static plim_status add_model_output(struct model_reader *reader, const struct entry *entry, struct link link,
                                    struct link value)
{
    struct model *model = reader->model;
    struct use *use = &model->use[value.from];
    char where[256];
    entry_place(where, reader, entry);
    for (int i = 0; i < model->output_count; i++) /* a model inside passes on what another layer makes */
        if (model->output[i].from == value.from && model->output[i].part == value.part)
            return fail_at(reader->error, PLIM_UNSUPPORTED, where, "outputs: '%s' is another output too", entry->name);
    const char *name = link.part ? arena_format(&model->arena, "%s/%d", entry->name, link.part) : entry->name;
    if (!name)
        return reader_no_room(reader);
    if (value.part == 0) {
        use->output_index = model->output_count;
        use->name = name;
    }
    model->output[model->output_count] = value;
    model->output_name[model->output_count++] = name;
    return PLIM_OK;
}

static plim_status set_outputs(struct model_reader *reader, const struct scope *scope, const struct link *feeds)
{
    for (int i = 0; i < scope->output_count; i++)
        TRY(add_model_output(reader, &scope->entry[scope->output[i].from], scope->output[i],
                             value_of(scope, scope->output[i], feeds)));
    return PLIM_OK;
}

plim_status model_lay_out(struct model_reader *reader, struct scope *scope)
{
    struct model *model = reader->model;
    struct use_table table = {0};
    model->feed_count = scope->feed_count;
    model->feed = arena_array(&model->arena, (size_t)scope->feed_count, sizeof *model->feed);
    struct link *feeds = arena_array(&model->arena, (size_t)scope->feed_count, sizeof *feeds);
    if (!model->feed || !feeds)
        return reader_no_room(reader);
    for (int i = 0; i < scope->feed_count; i++)
        feeds[i].from = FEED(i);
    for (int i = 0; i < scope->count; i++)
        if (is_input(&scope->entry[i]))
            model->feed[FEED(scope->entry[i].input[0].from)].name = scope->entry[i].name;
    TRY(lay_out(reader, &table, scope, feeds));
    model->use = table.use;
    model->use_count = table.count;
    return set_outputs(reader, scope, feeds);
}

plim_status scope_lay_out_inside(struct use_table *out, struct link *output, struct layer *outer, struct scope *scope,
                                 plim_error *error)
{
    struct model_reader reader = {.model = outer->model, .outer = outer, .error = error};
    const struct link feed = {.from = FEED(0)};
    char where[256];
    layer_place(where, outer);
    if (scope->feed_count != 1 || scope->output_count != 1)
        return fail_at(error, PLIM_UNSUPPORTED, where, "%s: a model of one Input and one output, not of %d and %d",
                       outer->type->name, scope->feed_count, scope->output_count);
    *out = (struct use_table){.inside = true};
    TRY(lay_out(&reader, out, scope, &feed));
    *output = value_of(scope, scope->output[0], &feed);
    if (output->from < 0)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: its model hands on what comes, and does nothing",
                       outer->type->name);
    return PLIM_OK;
}
