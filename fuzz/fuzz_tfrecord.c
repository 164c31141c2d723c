/* fuzz_tfrecord.c - any bytes as a TFRecord file: read on over damage, copied, skipped through. */
#include <stdlib.h>

#include "formats/records/tfrecord_reader.h"
#include "fuzz_file.h"

static uint8_t space[1 << 16];

/* Every call gets further: there cannot be more of them than the data have bytes. */
static plim_status read_on(struct tfrecord_reader *reader, uint64_t most_calls, bool copy)
{
    struct string records[4];
    struct value_buffer values;
    uint64_t skipped, sum = 0;
    int64_t count;
    value_buffer_init(&values, space, sizeof space);
    for (uint64_t calls = 0;; calls++) {
        if (calls > most_calls)
            abort();
        value_buffer_empty(&values);
        plim_status status = copy ? tfrecord_reader_copy(&count, records, reader, 4, &values, NULL)
                                  : tfrecord_reader_read(&count, records, reader, 4, &values, NULL);
        if (status != PLIM_OK) {
            if (status != PLIM_BAD_DATA)
                return status;
            TRY(tfrecord_reader_resync(&skipped, reader, NULL));
            continue;
        }
        if (count == 0)
            return PLIM_OK; /* the end, or a record that is too large */
        for (int64_t i = 0; i < count; i++)
            for (uint64_t b = 0; b < records[i].bytes; b++)
                sum += records[i].data[b];
    }
    return sum ? PLIM_OK : PLIM_INTERNAL;
}

enum way { IN_PLACE, COPIED, SKIPPED, WAYS };

static plim_status read_all(struct budget *budget, const char *path, uint64_t most_calls)
{
    plim_status status = PLIM_OK;
    for (int way = IN_PLACE; way < WAYS && status == PLIM_OK; way++) {
        struct tfrecord_reader *reader;
        int64_t skipped;
        TRY(tfrecord_reader_open(&reader, budget, path, 4096, NULL));
        status = way == SKIPPED ? tfrecord_reader_skip(&skipped, reader, INT64_MAX, NULL)
                                : read_on(reader, most_calls, way == COPIED);
        tfrecord_reader_close(reader);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct fuzz_file file;
    if (!fuzz_file_open(&file, data, bytes))
        return 0;
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK)
        fuzz_budget_free(budget, bytes, read_all(budget, file.path, 2000 * (uint64_t)bytes + 16));
    fuzz_file_close(&file);
    return 0;
}
