/* cmd_plan.c - plim plan: what a job would take, before anything is read. */
#include "command.h"

#include <stdio.h>
#include <string.h>

static plim_status write_views(plim_job *job, const struct arguments *arguments, plim_error *error)
{
    plim_status status = arguments->plot ? plim_job_plan_plot(job, arguments->plot, error) : PLIM_OK;
    return status == PLIM_OK && arguments->html ? plim_job_plan_page(job, arguments->html, error) : status;
}

/* The plan's own error is the one that counts; that of a file is said besides. */
static plim_status either_status(plim_status plan, plim_status views, const plim_error *of_views, plim_error *error)
{
    if (views == PLIM_OK || views == plan)
        return plan;
    if (plan == PLIM_OK)
        *error = *of_views;
    else
        fprintf(stderr, "plim: %s%s%s\n", of_views->where, of_views->where[0] ? ": " : "", of_views->message);
    return plan == PLIM_OK ? views : plan;
}

static plim_status plan(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    plim_job *job;
    plim_plan_report figures = {0};
    plim_error of_views = {0};
    if (arguments->plot && arguments->html && strcmp(arguments->plot, arguments->html) == 0)
        return bad_usage(error, "--plot plan.svg --html plan.html", "both files are '%s'", arguments->plot);
    plim_status status = open_job(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    /* Before the largest batch is searched for, because that frees the program. */
    plim_status views = write_views(job, arguments, &of_views);
    status = plim_job_plan(&figures, job, error);
    if (figures.text)
        reports_listen(reports, &(plim_event){.kind = PLIM_EVENT_PLAN, .plan = &figures});
    if (figures.text && !figures.fits)
        fputs(figures.text,
              arguments->json ? stderr : stdout); /* reports leave a plan that does not fit to the error */
    fflush(stdout);
    plim_job_close(job);
    return either_status(status, views, &of_views, error);
}

const struct command command_plan = {
    .name = "plan",
    .usage = "plim plan JOB.yaml [options]",
    .summary = "tells what a job would take, before anything is read",
    .help = "Prints the predicted peak, what it is made of, the smallest budget that works and the largest\n"
            "batch that fits; the largest values at the peak, what was let go, and what\n"
            "other budgets cost. Exit 4 when the job does not fit.\n\n"
            "  plim plan examples/cnn.yaml --memory 64MiB\n"
            "  plim plan examples/cnn.yaml --html plan.html\n",
    .takes = TAKES_JOB | TAKES_VIEWS,
    .run = plan,
};
