/* key_random.c - made-up data, a pure function of seed and index: for trying and measuring. */
#include "pipeline/keys/source_key.h"

struct random_keys {
    int64_t elements, classes, seed;
    const struct yaml *shape;
    bool learnable;
};

static const struct setting random_settings[] = {
    {"elements", SETTING_WHOLE, offsetof(struct random_keys, elements), 1},
    {"classes", SETTING_WHOLE, offsetof(struct random_keys, classes), 1},
    {"seed", SETTING_WHOLE, offsetof(struct random_keys, seed), 0},
    {"shape", SETTING_NODE, offsetof(struct random_keys, shape), 0},
    {"learnable", SETTING_BOOL, offsetof(struct random_keys, learnable), 0},
};

static plim_status open_random(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                               plim_error *error)
{
    struct random_keys keys = {.elements = 0, .classes = 2};
    struct random_options options = {0};
    TRY(settings_read(&keys, random_settings, COUNT(random_settings), reader->path, yaml, error));
    if (!keys.elements || !keys.shape)
        return reader_bad(reader, yaml, "random: needs 'elements:' and 'shape:'", error);
    TRY(reader_shape(&options.shape, reader, keys.shape, error));
    options.elements = keys.elements;
    options.classes = keys.classes;
    options.seed = (uint64_t)keys.seed;
    options.learnable = keys.learnable;
    struct source *source;
    return key_opened(out, &source, random_open(&source, reader->budget, &options, error));
}

const struct source_key source_key_random = {.word = "random", .open = open_random, .origin = OF_WORDS};
