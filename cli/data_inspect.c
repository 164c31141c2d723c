/* data_inspect.c - plim data inspect: what is in files, or in the data of a job. */
#include "command.h"

#include <stdio.h>

static plim_status inspect(struct arguments *arguments, plim_error *error)
{
    plim_job *job;
    const char *text, *json;
    plim_status status = open_data(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    signals_watch(job);
    status = plim_job_inspect_data(&text, &json, job, error);
    signals_release();
    if (status == PLIM_OK)
        printf("%s%s", arguments->json ? json : text, arguments->json ? "\n" : "");
    plim_job_close(job);
    return status;
}

const struct data_command data_command_inspect = {.name = "inspect", .run = inspect};
