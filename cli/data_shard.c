/* data_shard.c - plim data shard: the elements in turn into several TFRecord files. */
#include "command.h"

#include <stdio.h>

static plim_status shard(struct arguments *arguments, plim_error *error)
{
    plim_job *job;
    int64_t elements;
    struct meter meter;
    if (!arguments->output || !arguments->shards)
        return bad_usage(error, "--shards 8 --output data/train", "%s is missing",
                         arguments->output ? "--shards" : "--output");
    plim_status status = open_data(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    signals_watch(job);
    meter_init(&meter, arguments->output, "elements");
    const plim_shards shards = {.prefix = arguments->output, .count = arguments->shards};
    status = plim_job_shard(&elements, job, &shards, meter_tell, &meter, error);
    meter_end(&meter);
    signals_release();
    if (status == PLIM_OK && arguments->json)
        printf("{\"event\":\"shard\",\"elements\":%lld,\"shards\":%lld}\n", (long long)elements, arguments->shards);
    else if (status == PLIM_OK)
        printf("%s: %lld elements in %lld files\n", arguments->output, (long long)elements, arguments->shards);
    plim_job_close(job);
    return status;
}

const struct data_command data_command_shard = {.name = "shard", .takes = TAKES_OUTPUT | TAKES_SHARDS, .run = shard};
