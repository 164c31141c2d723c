/* fuzz_tfrecord.c - any bytes as a TFRecord file: read on over damage, copied, skipped through. */
#include <stdlib.h>

#include "formats/records/record_file.h"
#include "fuzz_file.h"

static uint8_t space[1 << 16];

/* Every call gets further: there cannot be more of them than the data have bytes. */
static plim_status read_on(struct record_file *reader, uint64_t most_calls, bool copy)
{
    struct string records[4];
    struct room room;
    uint64_t skipped, sum = 0;
    int64_t count;
    room_init(&room, space, sizeof space);
    for (uint64_t calls = 0;; calls++) {
        if (calls > most_calls)
            abort();
        room_empty(&room);
        plim_status status = copy ? record_file_copy(&count, records, reader, 4, &room, NULL)
                                  : record_file_read(&count, records, reader, 4, &room, NULL);
        if (status != PLIM_OK) {
            if (status != PLIM_BAD_DATA)
                return status;
            TRY(record_file_resync(&skipped, reader, NULL));
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

static plim_status read_all(struct budget *budget, const char *path, uint64_t most_calls)
{
    struct record_file *reader;
    int64_t skipped;
    TRY(record_file_open(&reader, budget, path, 4096, NULL));
    plim_status status = read_on(reader, most_calls, false);
    if (status == PLIM_OK && (status = record_file_rewind(reader, NULL)) == PLIM_OK)
        status = read_on(reader, most_calls, true);
    if (status == PLIM_OK && (status = record_file_rewind(reader, NULL)) == PLIM_OK)
        status = record_file_skip(&skipped, reader, INT64_MAX, NULL);
    record_file_close(reader);
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
