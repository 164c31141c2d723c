/* fuzz_tar.c - any bytes as a tar file, raw or compressed: its samples. */
#include "formats/containers/tar.h"
#include "fuzz_file.h"

#define STAGING_BYTES 65536
#define SAMPLES_MOST  64

static plim_status samples(struct wds *wds)
{
    const struct wds_sample *sample;
    struct string out;
    static uint8_t memory[4096];
    struct value_buffer values;
    bool more = true, fits;
    plim_status status = PLIM_OK;
    for (int i = 0; i < SAMPLES_MOST; i++) {
        status = wds_next(&more, &sample, wds, NULL);
        if (status == PLIM_BAD_DATA)
            continue; /* behind a bad sample there may be others */
        if (status != PLIM_OK || !more)
            break;
        value_buffer_init(&values, memory, sizeof memory);
        TRY(wds_take(&fits, &out, wds, "jpg;cls;txt", &values, NULL));
    }
    return status;
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
