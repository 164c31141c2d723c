/* data_convert.c - plim data convert: through the pipeline into a file of another format. */
#include "command.h"

#include <stdio.h>

static plim_status convert(struct arguments *arguments, plim_error *error)
{
    plim_job *job;
    int64_t elements;
    const char *names = arguments->output;
    struct meter meter;
    if (!arguments->output)
        return bad_usage(error, "--output X.tfrecord", "where to? --output is missing%s", "");
    plim_status status = open_data(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    signals_watch(job);
    meter_init(&meter, arguments->output, "elements");
    status = plim_job_convert(&elements, job, arguments->output, meter_tell, &meter, error);
    meter_end(&meter);
    signals_release();
    if (status == PLIM_OK)
        status = plim_job_converted(&names, job, error);
    if (status == PLIM_OK && arguments->json)
        printf("{\"event\":\"convert\",\"elements\":%lld}\n", (long long)elements);
    else if (status == PLIM_OK)
        printf("%s: %lld elements\n", names, (long long)elements);
    plim_job_close(job);
    return status;
}

const struct data_command data_command_convert = {.name = "convert", .takes = TAKES_OUTPUT, .run = convert};
