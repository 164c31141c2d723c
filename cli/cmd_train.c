/* cmd_train.c - plim train: plans, then trains inside the budget. */
#include "command.h"

static plim_status train(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    plim_job *job;
    plim_status status = open_job(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    signals_watch(job);
    reports_watch(reports, job);
    status = plim_job_train(job, reports_listen, reports, error);
    signals_release();
    reports_watch(reports, NULL);
    plim_job_close(job);
    return status;
}

const struct command command_train = {
    .name = "train",
    .usage = "plim train JOB.yaml [options]",
    .summary = "trains a job inside its memory budget",
    .help = "Plans first; a job that does not fit is refused with the budget that would do, before any\n"
            "record is read. Ctrl-C writes a checkpoint; --resume goes on from it with the same bits.\n\n"
            "  plim train examples/mlp.yaml --memory 16MiB\n",
    .takes = TAKES_JOB | TAKES_TRAIN,
    .run = train,
};
