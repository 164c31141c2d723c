/* fuzz_gzip.c - any bytes as a gzip stream. */
#include <stdlib.h>

#include "formats/containers/gzip.h"
#include "fuzz_file.h"

#define OUT_MOST ((uint64_t)256 * 1024)

static plim_status unpack(struct budget *budget, const char *path)
{
    struct file *file;
    struct gzip *gzip;
    char out[1000];
    size_t got = sizeof out;
    uint64_t sum = 0;
    TRY(file_open(&file, budget, path, FILE_READ, NULL));
    plim_status status = gzip_open(&gzip, budget, file, 512, OUT_MOST, NULL);
    if (status == PLIM_OK) {
        while (got == sizeof out && (status = gzip_read(&got, gzip, out, sizeof out, NULL)) == PLIM_OK)
            sum += got;
        if (sum > OUT_MOST)
            abort();
        gzip_close(gzip);
    }
    file_close(file);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_as_file(data, bytes, unpack);
}
