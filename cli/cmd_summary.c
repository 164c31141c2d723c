/* cmd_summary.c - plim summary: Keras's table of the model. */
#include "command.h"

#include <stdio.h>

static plim_status summary(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    plim_job *job;
    const char *text, *json;
    (void)reports;
    plim_status status = open_job(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    status = plim_job_summary(&text, &json, job, error);
    if (status == PLIM_OK)
        printf("%s%s", arguments->json ? json : text, arguments->json ? "\n" : "");
    fflush(stdout);
    plim_job_close(job);
    return status;
}

const struct command command_summary = {
    .name = "summary",
    .usage = "plim summary JOB.yaml [options]",
    .summary = "prints the table of the model's layers",
    .help = "Keras's table, with the bytes of each layer's output.\n\n"
            "  plim summary examples/cnn.yaml\n",
    .takes = TAKES_SET | TAKES_JSON,
    .run = summary,
};
