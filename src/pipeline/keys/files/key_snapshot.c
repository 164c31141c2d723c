/* key_snapshot.c - a folder that a pipeline was saved to: read by index, as any data with one. */
#include "formats/records/snapshot.h"
#include "pipeline/keys/source_key.h"

static plim_status open_snapshot(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                 plim_error *error)
{
    const char *paths[MOST_FILES];
    struct source *source;
    int count;
    TRY(reader_paths(paths, &count, reader, yaml, error));
    if (count != 1)
        return reader_bad(reader, yaml, "snapshot: expected one folder", error);
    return key_opened(out, &source, snapshot_source_open(&source, reader->budget, paths[0], error));
}

const struct source_key source_key_snapshot = {.word = "snapshot", .open = open_snapshot, .origin = OF_FILES};
