/* key_idx.c - IDX files, plain or gzip, side by side. */
#include "pipeline/keys/source_key.h"

static plim_status open_idx(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error)
{
    const char *paths[MOST_FILES];
    int count;
    TRY(reader_paths(paths, &count, reader, yaml, error));
    struct source *source;
    return key_opened(out, &source, idx_open(&source, reader->budget, paths, count, error));
}

/* Two zeros, a type, a number of axes. */
static bool is_idx(const struct file_head *head)
{
    const uint8_t *b = head->bytes;
    bool type = b[2] == 8 || b[2] == 9 || (b[2] >= 11 && b[2] <= 14);
    return head->count >= 8 && b[0] == 0 && b[1] == 0 && type && b[3] >= 1 && b[3] <= 8;
}

const struct source_key source_key_idx = {
    "idx", open_idx, OF_FILES, is_idx, {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}};
