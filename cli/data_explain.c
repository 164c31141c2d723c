/* data_explain.c - plim data explain: the stages of a pipeline, what was granted to them, and what they take. */
#include "command.h"

#include <stdio.h>

#define SAMPLE_SECONDS 2.0

static plim_status explain(struct arguments *arguments, plim_error *error)
{
    plim_job *job;
    const char *text, *json;
    plim_status status = open_data(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    signals_watch(job);
    status = plim_job_explain_data(&text, &json, job, arguments->plan ? 0 : SAMPLE_SECONDS, error);
    signals_release();
    if (status == PLIM_OK)
        printf("%s%s", arguments->json ? json : text, arguments->json ? "\n" : "");
    plim_job_close(job);
    return status;
}

const struct data_command data_command_explain = {.name = "explain", .takes = TAKES_PLAN, .run = explain};
