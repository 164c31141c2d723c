/* cmd_plan.c - plim plan: what a job would take, before anything is read. */
#include "command.h"

#include <stdio.h>

static plim_status write_views(plim_job *job, const struct arguments *arguments, plim_error *error)
{
    plim_status status = arguments->plot ? plim_job_plan_plot(job, arguments->plot, error) : PLIM_OK;
    return status == PLIM_OK && arguments->html ? plim_job_plan_page(job, arguments->html, error) : status;
}

static plim_status plan(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    plim_job *job;
    plim_plan_report figures = {0};
    plim_status status = open_job(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    status = plim_job_plan(&figures, job, error);
    if (figures.text)
        reports_listen(reports, &(plim_event){.kind = PLIM_EVENT_PLAN, .plan = &figures});
    if (figures.text && !figures.fits)
        fputs(figures.text,
              arguments->json ? stderr : stdout); /* reports leave a plan that does not fit to the error */
    fflush(stdout);
    if (status == PLIM_OK)
        status = write_views(job, arguments, error);
    else if (status == PLIM_OVER_BUDGET && figures.text) /* they show why; the error stays that of the plan */
        (void)write_views(job, arguments, NULL);
    plim_job_close(job);
    return status;
}

const struct command command_plan = {
    .name = "plan",
    .usage = "plim plan JOB.yaml [options]",
    .summary = "tells what a job would take, before anything is read",
    .help = "Prints the predicted peak, what it is made of, the smallest budget that works and the largest\n"
            "batch that fits; the largest values at the peak, what was let go to fit the budget, and what\n"
            "other budgets cost. Exit 4 when the job does not fit.\n\n"
            "  plim plan examples/cnn.yaml --memory 64MiB\n"
            "  plim plan examples/cnn.yaml --html plan.html\n",
    .takes = TAKES_JOB | TAKES_VIEWS,
    .run = plan,
};
