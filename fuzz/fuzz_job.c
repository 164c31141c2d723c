/* fuzz_job.c - any bytes as a job file. What follows the first NUL, if there is one, is set as an override; no data is
   opened and nothing is planned. */
#include <string.h>

#include "fuzz_file.h"
#include "plimsoll.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_file file;
    char override[512] = "";
    const char *overrides[1] = {override};
    plim_job_options options = {.memory = "1GiB", .threads = "2", .scratch = "/var/tmp", .overrides = overrides};
    plim_job *job;
    plim_error error = {0};
    const uint8_t *end = bytes > 0 ? memchr(data, 0, bytes) : NULL;
    size_t first = end ? (size_t)(end - data) : bytes;
    if (end && bytes - first - 1 < sizeof override) {
        memcpy(override, end + 1, bytes - first - 1);
        options.overrides_count = 1;
    }
    if (!fuzz_file_open(&file, data, first))
        return 0;
    plim_status status = plim_job_open(&job, file.path, &options, &error);
    if (status == PLIM_OK)
        plim_job_close(job);
    else if (status == PLIM_INTERNAL || status != error.code || !error.message[0] || plim_status_exit(status) > 3)
        abort(); /* whatever is wrong with it is the job file's fault, or of the model that it names, and is said */
    fuzz_file_close(&file);
    return 0;
}
