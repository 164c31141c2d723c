/* fuzz_idx.c - any bytes as an IDX file, plain or gzip. Unpacks into the current
   folder, which must be on a disk. */
#include "fuzz_source.h"

static plim_status read_it(struct budget *budget, const char *path)
{
    struct source *source;
    struct scratch_disk scratch = {.folder = ".", .limit_bytes = ELEMENT_MOST};
    TRY(idx_open(&source, budget, &path, 1, NULL));
    plim_status status = source->type->start(source, &scratch, NULL);
    if (status == PLIM_OK)
        status = fuzz_source_read(source);
    source_close(source);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_as_file(data, bytes, read_it);
}
