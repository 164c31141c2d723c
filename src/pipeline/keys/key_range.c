/* key_range.c - the numbers 0, 1, ... n - 1. */
#include "pipeline/keys/source_key.h"

static plim_status open_range(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                              plim_error *error)
{
    const struct setting setting = {"range", SETTING_WHOLE, 0, 1};
    int64_t n;
    TRY(setting_value(&n, &setting, reader->path, yaml, error));
    struct source *source;
    return key_opened(out, &source, range_open(&source, reader->budget, n, error));
}

const struct source_key source_key_range = {.word = "range", .open = open_range, .origin = OF_WORDS};
