/* key_counter.c - start, start + step, ... without end, or `count` of them: counter: {start: 1, step: 2}. */
#include "pipeline/keys/source_key.h"

struct counter_words {
    int64_t start, step, count;
};

static const struct setting counter_settings[] = {
    {"start", SETTING_WHOLE, offsetof(struct counter_words, start), INT64_MIN},
    {"step", SETTING_WHOLE, offsetof(struct counter_words, step), INT64_MIN},
    {"count", SETTING_WHOLE, offsetof(struct counter_words, count), 1},
};

static plim_status open_counter(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                plim_error *error)
{
    struct counter_words words = {.step = 1, .count = CARDINALITY_INFINITE};
    if (!yaml->is_null)
        TRY(settings_read(&words, counter_settings, COUNT(counter_settings), reader->path, yaml, error));
    *out = dataset_counter(reader->budget, words.start, words.step, words.count);
    return PLIM_OK;
}

const struct source_key source_key_counter = {.word = "counter", .open = open_counter, .origin = OF_WORDS};
