/* key_sample.c - elements of several data sets by chance: sample: {from: [...], weights: [0.5, 0.5]}. */
#include "pipeline/keys/source_key.h"

struct sample_keys {
    const struct yaml *from, *weights;
    int64_t seed;
    bool stop_on_empty;
};

static const struct setting sample_settings[] = {
    {"from", SETTING_NODE, offsetof(struct sample_keys, from), 0},
    {"weights", SETTING_NODE, offsetof(struct sample_keys, weights), 0},
    {"seed", SETTING_WHOLE, offsetof(struct sample_keys, seed), 0},
    {"stop_on_empty_dataset", SETTING_BOOL, offsetof(struct sample_keys, stop_on_empty), 0},
};

static plim_status read_weights(double *weights, int count, struct data_reader *reader, const struct yaml *list,
                                plim_error *error)
{
    const struct setting each = {"weights", SETTING_NUMBER, 0, 0};
    if (list->kind != YAML_LIST || list->count != count)
        return reader_bad(reader, list, "weights: expected a list, one for each data set", error);
    for (const struct yaml *item = list->first; item; item = item->next)
        TRY(setting_value(weights++, &each, reader->path, item, error));
    return PLIM_OK;
}

static plim_status open_sample(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                               plim_error *error)
{
    struct sample_keys keys = {.seed = (int64_t)(reader->seed & INT64_MAX)};
    struct dataset *all[MOST_FILES];
    double weights[MOST_FILES];
    int count;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&keys, sample_settings, COUNT(sample_settings), reader->path, yaml, error));
    if (!keys.from)
        return hint(error, reader_bad(reader, yaml, "sample: 'from:' is missing", error),
                    "sample: {from: [{npy: a.npy}, {npy: b.npy}], weights: [0.5, 0.5]}");
    if (keys.weights && keys.from->count <= MOST_FILES)
        TRY(read_weights(weights, keys.from->count, reader, keys.weights, error));
    TRY(reader_inputs(all, &count, MOST_FILES, reader, keys.from, error));
    *out = dataset_sample_from_datasets(all, count, keys.weights ? weights : NULL, (uint64_t)keys.seed,
                                        keys.stop_on_empty);
    return PLIM_OK;
}

const struct source_key source_key_sample = {.word = "sample", .open = open_sample, .origin = OF_SOURCES};
