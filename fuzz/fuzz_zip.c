/* fuzz_zip.c - any bytes as a zip file: its members read whole, its arrays looked at. */
#include "formats/containers/zip.h"
#include "fuzz_file.h"

#define MEMBERS_MOST 64

static plim_status walk(struct zip *zip)
{
    struct zip_position place = {0};
    struct zip_member member;
    struct zip_stream *stream;
    uint8_t data[1000];
    bool more = true;
    for (int i = 0; i < MEMBERS_MOST; i++) {
        size_t got = sizeof data;
        TRY(zip_next(&more, &member, &place, zip, NULL));
        if (!more)
            break;
        TRY(zip_stream_open(&stream, zip, &member, NULL));
        plim_status status = PLIM_OK;
        for (int step = 0; step < 1000 && got == sizeof data && status == PLIM_OK; step++)
            status = zip_stream_read(&got, stream, data, sizeof data, NULL);
        zip_stream_close(stream);
        TRY(status);
    }
    return PLIM_OK;
}

static plim_status arrays(struct zip *zip)
{
    struct zip_position place = {0};
    struct npz_array array;
    bool more = true;
    for (int i = 0; i < MEMBERS_MOST && more; i++)
        TRY(npz_next(&more, &array, &place, zip, NULL));
    return npz_find(&array, zip, "x", NULL);
}

static plim_status read_it(struct budget *budget, const char *path)
{
    struct zip *zip;
    TRY(zip_open(&zip, budget, path, NULL));
    plim_status whole = walk(zip), listed = arrays(zip);
    zip_close(zip);
    return listed == PLIM_OVER_BUDGET || listed == PLIM_INTERNAL ? listed : whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_as_file(data, bytes, read_it);
}
