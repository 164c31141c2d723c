/* compile.c - losses, their weights and metrics of a model's outputs, as Keras's compile() takes them: one for all
   outputs, a list in the order of outputs, or a map by their names. */
#include <string.h>

#include "base/text/text.h"
#include "model/layers/layer_options.h"
#include "ops/loss/sample_sums.h"

struct reader {
    struct training *out;
    const struct model *model;
    struct arena *arena;
    const char *job;
    plim_error *error;
};

static bool is_null(const struct yaml *node)
{
    return node->kind == YAML_SCALAR && node->is_null;
}

static int output_named(const struct model *model, const char *name)
{
    for (int i = 0; i < model->output_count; i++)
        if (strcmp(output_name(model, i), name) == 0)
            return i;
    return -1;
}

static bool names_outputs(const struct model *model, const struct yaml *map)
{
    for (const struct yaml *entry = map->kind == YAML_MAP ? map->first : NULL; entry; entry = entry->next)
        if (output_named(model, entry->key) >= 0)
            return true;
    return false;
}

/* "loss: 3 of them for 2 outputs", with an example of a map. */
static plim_status bad_count(const struct reader *reader, const char *word, const struct yaml *list)
{
    char where[256];
    const struct model *model = reader->model;
    yaml_place(where, reader->job, list);
    plim_status status = fail_at(reader->error, PLIM_BAD_JOB, where, "%s: %d of them, the model has %d output%s", word,
                                 list->count, model->output_count, model->output_count == 1 ? "" : "s");
    return hint(reader->error, status, "one for each, or by name: %s: {%.60s: ...}", word, output_name(model, 0));
}

static plim_status no_output(const struct reader *reader, const char *word, const struct yaml *entry)
{
    char where[256];
    const char *names[MOST_MODEL_OUTPUTS];
    const struct model *model = reader->model;
    for (int i = 0; i < model->output_count; i++)
        names[i] = output_name(model, i);
    yaml_key_place(where, reader->job, entry);
    plim_status status =
        fail_at(reader->error, PLIM_BAD_JOB, where, "%s: the model has no output '%s'", word, entry->key);
    const char *near = text_nearest(entry->key, names, (size_t)model->output_count);
    return hint(reader->error, status, near ? "did you mean '%s'?" : "its first is '%s'", near ? near : names[0]);
}

/* What stands for each output in a list or a map; NULL: nothing. */
static plim_status by_output(const struct yaml *of[MOST_MODEL_OUTPUTS], const struct reader *reader, const char *word,
                             const struct yaml *node)
{
    int count = 0;
    for (int i = 0; i < MOST_MODEL_OUTPUTS; i++)
        of[i] = NULL;
    if (node->kind == YAML_LIST && node->count != reader->model->output_count)
        return bad_count(reader, word, node);
    for (const struct yaml *entry = node->first; entry; entry = entry->next, count++) {
        int output = node->kind == YAML_LIST ? count : output_named(reader->model, entry->key);
        if (output < 0)
            return no_output(reader, word, entry);
        of[output] = entry;
    }
    return PLIM_OK;
}

/* Every output has an entry, if only null: what was forgotten would not be trained without a word. */
static plim_status all_said(const struct reader *reader, const char *word, const char *nothing,
                            const struct yaml *const *of, const struct yaml *node)
{
    char where[256];
    for (int i = 0; i < reader->model->output_count; i++) {
        const char *name = output_name(reader->model, i);
        if (of[i])
            continue;
        yaml_place(where, reader->job, node);
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "%s: nothing is said of output '%s'", word, name),
                    "%s: %s", name, nothing);
    }
    return PLIM_OK;
}

/* ---- losses ---- */

static plim_status read_loss(struct output_loss *out, const struct reader *reader, const struct yaml *node)
{
    *out = (struct output_loss){.kind = LOSS_PLAIN, .weight = 1.0, .none = is_null(node)};
    return out->none ? PLIM_OK : loss_read(&out->loss, &out->kind, reader->job, node, reader->error);
}

static plim_status read_losses(const struct reader *reader, const struct yaml *node)
{
    const struct yaml *of[MOST_MODEL_OUTPUTS];
    const struct model *model = reader->model;
    struct output_loss *loss = reader->out->output_loss;
    char where[256];
    int trained = 0;
    bool each = node->kind == YAML_LIST || names_outputs(model, node) || (node->kind == YAML_MAP && node->count > 1);
    if (each) {
        TRY(by_output(of, reader, "loss", node));
        TRY(all_said(reader, "loss", "null", of, node));
    }
    for (int i = 0; i < model->output_count; i++) {
        TRY(read_loss(&loss[i], reader, each ? of[i] : node));
        trained += !loss[i].none;
    }
    yaml_place(where, reader->job, node);
    if (!trained)
        return hint(reader->error, fail_at(reader->error, PLIM_BAD_JOB, where, "loss: no output has one"),
                    "loss: sparse_categorical_crossentropy");
    return PLIM_OK;
}

static plim_status read_weights(const struct reader *reader, const struct yaml *node)
{
    static const struct setting number = {"loss_weights", SETTING_NUMBER, 0, 0};
    const struct yaml *of[MOST_MODEL_OUTPUTS] = {node};
    struct output_loss *loss = reader->out->output_loss;
    char where[256];
    yaml_place(where, reader->job, node);
    if (node->kind != YAML_SCALAR) {
        TRY(by_output(of, reader, "loss_weights", node));
        TRY(all_said(reader, "loss_weights", "1.0", of, node));
    } else if (reader->model->output_count > 1) {
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "loss_weights: the model has %d outputs",
                            reader->model->output_count),
                    "loss_weights: {%.60s: %.40s, ...}", output_name(reader->model, 0), node->text);
    }
    for (int i = 0; i < reader->model->output_count; i++)
        if (!is_null(of[i]))
            TRY(setting_value(&loss[i].weight, &number, reader->job, of[i], reader->error));
    return PLIM_OK;
}

/* ---- metrics ---- */

static plim_status read_metrics(const struct reader *reader, const struct yaml *node, bool weighted)
{
    const char *word = weighted ? "weighted_metrics" : "metrics";
    struct metric_place place = {.weighted = weighted};
    const struct yaml *of[MOST_MODEL_OUTPUTS];
    const struct model *model = reader->model;
    char where[256];
    bool named = names_outputs(model, node);
    yaml_place(where, reader->job, node);
    if (model->output_count == 1 && !named && node->kind == YAML_MAP)
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "%s: expected a list of names, got '%s'", word,
                            node->first ? node->first->key : ""),
                    "%s: [accuracy]", word);
    if (model->output_count == 1 && !named)
        return metrics_read(reader->out, &place, reader->arena, reader->job, node, reader->error);
    if (node->kind == YAML_SCALAR)
        return hint(
            reader->error,
            fail_at(reader->error, PLIM_BAD_JOB, where, "%s: the model has %d outputs", word, model->output_count),
            "%s: {%.60s: [%.40s]}", word, output_name(model, 0), node->text);
    TRY(by_output(of, reader, word, node));
    for (int i = 0; i < model->output_count; i++) {
        place.output = i;
        place.prefix = model->output_count > 1 ? output_name(model, i) : NULL;
        if (of[i] && !is_null(of[i]))
            TRY(metrics_read(reader->out, &place, reader->arena, reader->job, of[i], reader->error));
    }
    return PLIM_OK;
}

/* ---- weights of classes ---- */

#define MOST_CLASSES 65536

/* The class that an entry speaks of. */
static plim_status class_of(int64_t *out, const struct reader *reader, const struct yaml *entry)
{
    char where[256];
    if (setting_whole(out, entry->key) && *out >= 0 && *out < MOST_CLASSES)
        return PLIM_OK;
    yaml_key_place(where, reader->job, entry);
    return hint(reader->error,
                fail_at(reader->error, PLIM_BAD_JOB, where, "class_weight: '%s' is no class from 0 to %d", entry->key,
                        MOST_CLASSES - 1),
                "class_weight: {0: 1.0, 1: 2.5}");
}

static plim_status read_class(struct class_weight_attributes *parts, const struct reader *reader,
                              const struct yaml *entry)
{
    static const struct setting number = {"class_weight", SETTING_NUMBER, 0, 0};
    int64_t class;
    double factor = 1.0;
    TRY(class_of(&class, reader, entry));
    TRY(setting_value(&factor, &number, reader->job, entry, reader->error));
    struct class_weight_attributes *part = &parts[class / MOST_CLASS_WEIGHTS];
    for (part->first = class / MOST_CLASS_WEIGHTS * MOST_CLASS_WEIGHTS; part->first + part->count <= class;
         part->count++)
        part->factor[part->count] = 1.0F;
    part->factor[class - part->first] = (float)factor;
    return PLIM_OK;
}

/* As Keras: of one output. */
static plim_status read_classes(const struct reader *reader, const struct yaml *node)
{
    char where[256];
    yaml_place(where, reader->job, node);
    if (node->kind != YAML_MAP || !node->first)
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "class_weight: expected factors by class"),
                    "class_weight: {0: 1.0, 1: 2.5}");
    if (reader->model->output_count > 1)
        return hint(reader->error,
                    fail_at(reader->error, PLIM_BAD_JOB, where, "class_weight: the model has %d outputs; it is for one",
                            reader->model->output_count),
                    "give the data a column `sample_weight`");
    int64_t class, most = 0;
    for (const struct yaml *entry = node->first; entry; entry = entry->next) {
        TRY(class_of(&class, reader, entry));
        most = class > most ? class : most;
    }
    int64_t parts = most / MOST_CLASS_WEIGHTS + 1;
    struct class_weight_attributes *part = arena_array(reader->arena, (size_t)parts, sizeof *part);
    if (!part)
        return arena_refused(reader->arena, reader->error);
    memset(part, 0, (size_t)parts * sizeof *part);
    for (const struct yaml *entry = node->first; entry; entry = entry->next)
        TRY(read_class(part, reader, entry));
    reader->out->class_weight = part;
    reader->out->class_weight_parts = 0;
    for (int64_t i = 0; i < parts; i++) /* those that say something */
        if (part[i].count)
            part[reader->out->class_weight_parts++] = part[i];
    return PLIM_OK;
}

plim_status compile_read(struct training *out, const struct model *model, struct arena *arena,
                         const struct compile_keys *keys, plim_error *error)
{
    struct reader reader = {out, model, arena, keys->loss.job, error};
    const struct yaml *all[] = {keys->loss.node, keys->metrics.node, keys->weighted_metrics.node,
                                keys->loss_weights.node, keys->class_weight.node};
    for (int i = 0; i < COUNT(all) && !out->origin; i++)
        out->origin = all[i] ? yaml_origin(all[i]) : NULL;
    TRY(read_losses(&reader, keys->loss.node));
    reader.job = keys->loss_weights.job;
    if (keys->loss_weights.node && !is_null(keys->loss_weights.node))
        TRY(read_weights(&reader, keys->loss_weights.node));
    reader.job = keys->class_weight.job;
    if (keys->class_weight.node && !is_null(keys->class_weight.node))
        TRY(read_classes(&reader, keys->class_weight.node));
    reader.job = keys->metrics.job;
    if (keys->metrics.node && !is_null(keys->metrics.node))
        TRY(read_metrics(&reader, keys->metrics.node, false));
    reader.job = keys->weighted_metrics.job;
    if (keys->weighted_metrics.node && !is_null(keys->weighted_metrics.node))
        TRY(read_metrics(&reader, keys->weighted_metrics.node, true));
    return PLIM_OK;
}
