/* key_counter.c - start, start + step, ... without end, or `count` of them: counter: {start: 1, step: 2}. */
#include "pipeline/keys/source_key.h"

struct counter_keys {
    int64_t start, step, count;
};

static const struct setting counter_settings[] = {
    {"start", SETTING_WHOLE, offsetof(struct counter_keys, start), INT64_MIN},
    {"step", SETTING_WHOLE, offsetof(struct counter_keys, step), INT64_MIN},
    {"count", SETTING_WHOLE, offsetof(struct counter_keys, count), 1},
};

static plim_status open_counter(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                plim_error *error)
{
    struct counter_keys keys = {.step = 1, .count = CARDINALITY_INFINITE};
    if (!yaml->is_null)
        TRY(settings_read(&keys, counter_settings, COUNT(counter_settings), reader->path, yaml, error));
    *out = dataset_counter(reader->budget, keys.start, keys.step, keys.count);
    return PLIM_OK;
}

const struct source_key source_key_counter = {.word = "counter", .open = open_counter, .origin = OF_WORDS};
