/* word_choose.c - elements of several data sets in a stated order: choose: {from: [...], choices: {npy: order.npy}}. */
#include "job/source_word.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct choose_words {
    const struct yaml *from, *choices;
    bool stop_on_empty;
};

static const struct setting choose_settings[] = {
    {"from", SETTING_NODE, offsetof(struct choose_words, from), 0},
    {"choices", SETTING_NODE, offsetof(struct choose_words, choices), 0},
    {"stop_on_empty_dataset", SETTING_BOOL, offsetof(struct choose_words, stop_on_empty), 0},
};

static plim_status open_choose(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    struct choose_words words = {.stop_on_empty = true};
    struct dataset *all[MOST_FILES], *choices;
    int count;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&words, choose_settings, COUNT(choose_settings), job->path, yaml, error));
    if (!words.from || !words.choices)
        return hint(error, job_bad(job, yaml, "choose: needs 'from:' and 'choices:'", error),
                    "choose: {from: [{npy: a.npy}, {npy: b.npy}], choices: {range: 2, pipeline: [repeat]}}");
    TRY(job_inputs(all, &count, MOST_FILES, job, words.from, error));
    plim_status status = job_nested_open(&choices, job, words.choices, error);
    if (status != PLIM_OK) {
        job_inputs_unref(all, count);
        return status;
    }
    *out = dataset_choose_from_datasets(all, count, choices, words.stop_on_empty);
    return PLIM_OK;
}

const struct source_word source_word_choose = {"choose", open_choose, OF_SOURCES};
