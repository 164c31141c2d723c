/* fuzz_tar.c - any bytes as a tar file, raw or compressed: its samples, and one of them again. */
#include "formats/containers/tar.h"
#include "fuzz_file.h"

#define STAGING_BYTES 65536
#define SAMPLES_MOST  64

static plim_status samples(struct wds *wds)
{
    const struct wds_sample *sample;
    struct string out;
    static uint8_t memory[4096];
    struct room room;
    uint64_t begin = 0;
    bool more = true, fits;
    plim_status status = PLIM_OK;
    for (int i = 0; i < SAMPLES_MOST; i++) {
        status = wds_next(&more, &sample, wds, NULL);
        if (status == PLIM_BAD_DATA)
            continue; /* behind a bad sample there may be others */
        if (status != PLIM_OK || !more)
            break;
        begin = sample->begin_at;
        room_init(&room, memory, sizeof memory);
        TRY(wds_take(&fits, &out, wds, "jpg;cls;txt", &room, NULL));
    }
    if (status == PLIM_OK && begin)
        TRY(wds_seek(wds, begin, NULL));
    return status == PLIM_OK && begin ? wds_next(&more, &sample, wds, NULL) : status;
}

static plim_status read_it(struct budget *budget, const char *path)
{
    struct wds *wds;
    TRY(wds_open(&wds, budget, path, COMPRESSION_AUTO, STAGING_BYTES, NULL));
    plim_status status = samples(wds);
    wds_close(wds);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_as_file(data, bytes, read_it);
}
