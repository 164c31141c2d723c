/* key_choose.c - elements of several data sets in a stated order: choose: {from: [...], choices: {npy: order.npy}}. */
#include "pipeline/keys/split.h"

struct choose_keys {
    const struct yaml *from, *choices;
    bool stop_on_empty;
};

static const struct setting choose_settings[] = {
    {"from", SETTING_NODE, offsetof(struct choose_keys, from), 0},
    {"choices", SETTING_NODE, offsetof(struct choose_keys, choices), 0},
    {"stop_on_empty_dataset", SETTING_BOOL, offsetof(struct choose_keys, stop_on_empty), 0},
};

static plim_status open_choose(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                               plim_error *error)
{
    struct choose_keys keys = {.stop_on_empty = true};
    struct dataset *all[MOST_FILES], *choices;
    int count;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&keys, choose_settings, COUNT(choose_settings), reader->path, yaml, error));
    if (!keys.from || !keys.choices)
        return hint(error, reader_bad(reader, yaml, "choose: needs 'from:' and 'choices:'", error),
                    "choose: {from: [{npy: a.npy}, {npy: b.npy}], choices: {range: 2, pipeline: [repeat]}}");
    TRY(reader_inputs(all, &count, MOST_FILES, reader, keys.from, error));
    plim_status status = split_open_nested(&choices, reader, keys.choices, error);
    if (status != PLIM_OK) {
        inputs_unref(all, count);
        return status;
    }
    *out = dataset_choose_from_datasets(all, count, choices, keys.stop_on_empty);
    return PLIM_OK;
}

const struct source_key source_key_choose = {.word = "choose", .open = open_choose, .origin = OF_SOURCES};
