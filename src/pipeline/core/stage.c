/* stage.c - one entry of a job file's `pipeline:` into a stage. */
#include "pipeline/core/stage.h"

#include <string.h>

#include "base/numbers/count.h"
#include "base/text/aliases.h"

static const struct stage *const stages[] = {
#define STAGE(name) &stage_##name,
#include "pipeline/stages/stages.def"
#undef STAGE
};

/* In the order of `stages`: for the nearest word. */
static const char *const words[] = {
#define STAGE(name) #name,
#include "pipeline/stages/stages.def"
#undef STAGE
};

/* tf.data's words, and our own of the next issues, that are known and refused by name. */
static const char *const later[] = {
    "ragged_batch", "save", "load", "scan", "reduce", "apply",
};

static const struct word_choices stage_choices = {
    .what = "stage", .names = words, .count = COUNT(words), .later = later, .later_count = COUNT(later)};

plim_status stage_unknown(const struct word_choices *choices, const char *word, const char *where, plim_error *error)
{
    for (size_t i = 0; i < choices->later_count; i++)
        if (strcmp(word, choices->later[i]) == 0)
            return fail_at(error, PLIM_UNSUPPORTED, where, "%s '%s' is not offered yet", choices->what, word);
    const char *near = habit_word(word, choices->names, choices->count);
    fail_at(error, PLIM_BAD_JOB, where, "unknown %s '%s'", choices->what, word);
    return near ? hint(error, PLIM_BAD_JOB, "did you mean '%s'?", near) : PLIM_BAD_JOB;
}

plim_status stage_word(const char **word, const struct yaml **value, const char *job, const struct yaml *entry,
                       plim_error *error)
{
    if (entry->kind == YAML_SCALAR && !entry->is_null) {
        *word = entry->text;
        *value = NULL;
        return PLIM_OK;
    }
    if (entry->kind == YAML_MAP && entry->first) {
        *word = entry->first->key;
        *value = entry->first;
        return PLIM_OK;
    }
    return hint(error, yaml_fail(error, PLIM_BAD_JOB, job, entry, "expected a word or 'word: value'"), "- batch: 32");
}

/* Words of tf.data that have another place in a job file. */
static plim_status check_place(const char *word, const char *where, plim_error *error)
{
    static const char *const places[][2] = {
        {"zip", "zip: [{npy: x.npy}, {npy: y.npy}] as the source"},
        {"concatenate", "concatenate: [{npy: a.npy}, {npy: b.npy}] as the source"},
        {"sample_from_datasets", "sample: {from: [...], weights: [0.5, 0.5]} as the source"},
        {"choose_from_datasets", "choose: {from: [...], choices: {npy: order.npy}} as the source"},
        {"interleave", "tfrecord: {files: ..., interleave: {cycle_length: 4}} as the source"},
        {"flat_map", "files after each other need none; a callback is for C programs"},
    };
    for (size_t i = 0; i < COUNT(places); i++)
        if (strcmp(word, places[i][0]) == 0)
            return hint(error, fail_at(error, PLIM_UNSUPPORTED, where, "'%s' is no stage of a pipeline", word), "%s",
                        places[i][1]);
    return PLIM_OK;
}

static const struct stage *stage_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT(stages); i++)
        if (strcmp(stages[i]->name, name) == 0 || (stages[i]->partner && strcmp(stages[i]->partner, name) == 0))
            return stages[i];
    return NULL;
}

static bool has_value(const struct stage_entry *entry)
{
    return entry->value && !entry->value->is_null;
}

plim_status stage_settings(void *out, const struct setting *settings, int count, const char *alone,
                           const struct stage_entry *entry, plim_error *error)
{
    if (!has_value(entry))
        return PLIM_OK;
    if (entry->value->kind != YAML_SCALAR)
        return settings_read(out, settings, count, entry->job, entry->value, error);
    struct setting first = settings[0];
    first.word = alone ? alone : first.word;
    return setting_value((char *)out + first.offset, &first, entry->job, entry->value, error);
}

plim_status stage_bad(const struct stage_entry *entry, const char *what, const char *instead, plim_error *error)
{
    plim_status status = fail_at(error, PLIM_BAD_JOB, entry->where, "%s: %s", entry->stage->name, what);
    return hint(error, status, "%s: %s", entry->stage->name, instead);
}

static plim_status read_number(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    int64_t number = -1;
    const struct setting setting = {entry->stage->name, SETTING_WHOLE, 0, entry->stage->least};
    if (has_value(entry))
        TRY(setting_value(&number, &setting, entry->job, entry->value, error));
    *dataset = dataset_add(*dataset, entry->stage, (struct stage_arguments){.number = number});
    return PLIM_OK;
}

plim_status stage_read(struct dataset **dataset, const char *job, const struct yaml *entry, uint64_t seed,
                       plim_error *error)
{
    const char *word = NULL;
    const struct yaml *value = NULL;
    char where[256];
    TRY(stage_word(&word, &value, job, entry, error));
    yaml_key_place(where, job, value ? value : entry);
    const struct stage *stage = stage_by_name(word);
    if (!stage)
        TRY(check_place(word, where, error));
    if (!stage)
        return stage_unknown(&stage_choices, word, where, error);
    if (stage->partner && value) {
        value = entry;
    } else if (entry->kind == YAML_MAP && entry->count != 1) {
        yaml_key_place(where, job, entry->first->next);
        return hint(error,
                    fail_at(error, PLIM_BAD_JOB, where, "one stage an entry: '%s' and '%s' stand together", word,
                            entry->first->next->key),
                    "begin each stage with '- '");
    }
    if (!stage->bare && (!value || value->is_null))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: its value is missing", word);
    struct stage_entry self = {.stage = stage, .job = job, .value = value, .seed = seed};
    if (value)
        yaml_place(self.where, job, value);
    plim_status status = (stage->read ? stage->read : read_number)(dataset, &self, error);
    if (status == PLIM_OK)
        status = dataset_error(*dataset, error);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, where);
}
