/* select.c - columns by name: chosen, put in order, renamed. Pure changes of the spec: no byte moves for them.

   select: [image, age]                these alone, in this order
   rename: {old: new}
   inputs: [image]                     what the model is fed, and
   label: kind                         what the loss gets: behind them; of several outputs a list, or {output:
   column} */
#include <stdio.h>
#include <string.h>

#include "pipeline/core/stage.h"
#include "pipeline/maps/map_functions.h"

struct choice {
    char column[64], name[64]; /* as it comes in, and as it goes on */
};

struct select_options {
    char word[8]; /* the job file's, for errors */
    int count;
    struct choice choice[MOST_COLUMNS];
};

static plim_status add_choice(struct spec *spec, const struct spec *before, const struct select_options *options,
                              const struct choice *choice, plim_error *error)
{
    int c = spec_find(before, choice->column);
    if (c < 0)
        return map_no_column(before, options->word, choice->column, error);
    for (int i = 0; i < spec->column_count; i++) {
        if (spec->column[i].origin == c)
            return hint(error,
                        fail(error, PLIM_BAD_JOB, "%s: column '%s' is there twice", options->word, choice->column),
                        "map: {copy: \"%s\"} makes another of it", choice->column);
        if (strcmp(spec->column[i].name, choice->name) == 0)
            return fail(error, PLIM_BAD_JOB, "%s: a second column '%s'", options->word, choice->name);
    }
    struct column *column = &spec->column[spec->column_count++];
    *column = before->column[c];
    column->origin = c;
    memcpy(column->name, choice->name, sizeof column->name);
    return PLIM_OK;
}

static plim_status select_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct select_options *options = context;
    const struct spec before = *spec;
    spec->column_count = 0;
    for (int i = 0; i < options->count; i++)
        TRY(add_choice(spec, &before, options, &options->choice[i], error));
    return PLIM_OK;
}

static const struct map_function select_function = {
    .name = "select",
    .infer = select_infer,
    .options_bytes = sizeof(struct select_options),
};

/* ---- building ---- */

static plim_status set_name(char out[64], const struct select_options *options, const char *name, plim_error *error)
{
    if (!*name || strlen(name) > 63)
        return fail(error, PLIM_BAD_JOB, "%s: the name of a column has 1 to 63 bytes", options->word);
    snprintf(out, 64, "%s", name);
    return PLIM_OK;
}

static plim_status choose(struct select_options *options, const char *column, const char *name, plim_error *error)
{
    if (options->count == MOST_COLUMNS)
        return fail(error, PLIM_BAD_JOB, "%s: more than %d columns", options->word, MOST_COLUMNS);
    struct choice *choice = &options->choice[options->count++];
    TRY(set_name(choice->column, options, column, error));
    return set_name(choice->name, options, name, error);
}

struct dataset *dataset_select(struct dataset *dataset, const char *const *columns, int count)
{
    struct select_options options = {.word = "select"};
    plim_error error = {0};
    plim_status status = PLIM_OK;
    for (int i = 0; i < count && status == PLIM_OK; i++)
        status = choose(&options, columns[i], columns[i], &error);
    if (status == PLIM_OK && count < 1)
        status = fail(&error, PLIM_BAD_JOB, "select: no column is left");
    if (status != PLIM_OK && !dataset->error)
        return dataset_refuse(dataset, &error);
    return dataset_map(dataset, &select_function, &options);
}

/* All columns, with what each is called now. */
static plim_status choose_all(struct select_options *options, const struct spec *spec, plim_error *error)
{
    for (int c = 0; c < spec->column_count; c++)
        TRY(choose(options, spec->column[c].name, spec->column[c].name, error));
    return PLIM_OK;
}

static plim_status rename_one(struct select_options *options, const struct spec *spec, const char *from, const char *to,
                              plim_error *error)
{
    int c = spec_find(spec, from);
    if (c < 0)
        return map_no_column(spec, options->word, from, error);
    return set_name(options->choice[c].name, options, to, error);
}

struct dataset *dataset_rename(struct dataset *dataset, const char *const *from, const char *const *to, int count)
{
    struct select_options options = {.word = "rename"};
    plim_error error = {0};
    if (dataset->error)
        return dataset;
    plim_status status = choose_all(&options, dataset->spec, &error);
    for (int i = 0; i < count && status == PLIM_OK; i++)
        status = rename_one(&options, dataset->spec, from[i], to[i], &error);
    return status == PLIM_OK ? dataset_map(dataset, &select_function, &options) : dataset_refuse(dataset, &error);
}

/* ---- job files ---- */

/* One name, or a list of them. */
static plim_status read_names(struct select_options *options, const char *job, const struct yaml *value,
                              plim_error *error)
{
    const struct setting setting = {options->word, SETTING_WORD, 0, 0};
    const char *name = NULL;
    if (value->kind == YAML_SCALAR) {
        TRY(setting_value(&name, &setting, job, value, error));
        return choose(options, name, name, error);
    }
    for (const struct yaml *item = value->kind == YAML_LIST ? value->first : NULL; item; item = item->next) {
        TRY(setting_value(&name, &setting, job, item, error));
        TRY(choose(options, name, name, error));
    }
    if (options->count)
        return PLIM_OK;
    return hint(error, yaml_fail(error, PLIM_BAD_JOB, job, value, "%s: expected a list of columns", options->word),
                "%s: [x]", options->word);
}

static plim_status select_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct select_options options = {.word = "select"};
    TRY(read_names(&options, entry->job, entry->value, error));
    *dataset = dataset_map(*dataset, &select_function, &options);
    return PLIM_OK;
}

static plim_status rename_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct select_options options = {.word = "rename"};
    const struct setting setting = {"rename", SETTING_WORD, 0, 0};
    char where[256];
    if (entry->value->kind != YAML_MAP)
        return stage_bad(entry, "expected {old: new}", "{x: image}", error);
    TRY(choose_all(&options, (*dataset)->spec, error));
    for (const struct yaml *pair = entry->value->first; pair; pair = pair->next) {
        const char *name = NULL;
        TRY(setting_value(&name, &setting, entry->job, pair, error));
        plim_status status = rename_one(&options, (*dataset)->spec, pair->key, name, error);
        yaml_key_place(where, entry->job, pair);
        if (status != PLIM_OK)
            return error_at(error, status, where);
    }
    *dataset = dataset_map(*dataset, &select_function, &options);
    return PLIM_OK;
}

/* A column, a list of them in the order of the model's outputs, or {output: column}. */
static plim_status read_labels(struct select_options *options, const char *job, const struct yaml *value,
                               plim_error *error)
{
    const struct setting setting = {"label", SETTING_WORD, 0, 0};
    const char *name = NULL;
    if (value->kind != YAML_MAP)
        return read_names(options, job, value, error);
    for (const struct yaml *entry = value->first; entry; entry = entry->next) {
        TRY(setting_value(&name, &setting, job, entry, error));
        TRY(choose(options, name, entry->key, error));
    }
    return PLIM_OK;
}

/* The whole entry: `inputs:` and, mostly, `label:`. */
static plim_status inputs_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct {
        const struct yaml *inputs, *label;
    } keys = {0};
    static const struct setting settings[] = {{"inputs", SETTING_NODE, 0, 0},
                                              {"label", SETTING_NODE, sizeof(void *), 0}};
    struct select_options options = {.word = "inputs"};
    TRY(settings_read(&keys, settings, COUNT(settings), entry->job, entry->value, error));
    if (!keys.inputs)
        return hint(error,
                    yaml_fail(error, PLIM_BAD_JOB, entry->job, keys.inputs ? keys.inputs : entry->value,
                              "'inputs:' is missing"),
                    "inputs: [x]");
    TRY(read_names(&options, entry->job, keys.inputs, error));
    if (keys.label)
        TRY(read_labels(&options, entry->job, keys.label, error));
    *dataset = dataset_map(*dataset, &select_function, &options);
    return PLIM_OK;
}

const struct stage stage_select = {.name = "select", .after_batch = true, .read = select_read};
const struct stage stage_rename = {.name = "rename", .after_batch = true, .read = rename_read};
const struct stage stage_inputs = {.name = "inputs", .after_batch = true, .partner = "label", .read = inputs_read};
