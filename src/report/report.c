/* report.c - events of a run as people and programs read them. */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file.h"

#define REPORT_BUDGET_BYTES ((uint64_t)64 * 1024)

plim_status plim_report_make(plim_report **out, plim_report_form form, int descriptor, plim_error *error)
{
    struct budget *budget;
    TRY(budget_make(&budget, REPORT_BUDGET_BYTES, error));
    struct plim_report *report = budget_take(budget, TAG_PROCESS, sizeof *report);
    if (!report) {
        plim_status status = budget_refused(budget, TAG_PROCESS, sizeof *report, error);
        budget_free(budget);
        return status;
    }
    *report = (struct plim_report){.budget = budget, .form = form, .descriptor = descriptor};
    const char *no_colour = getenv("NO_COLOR"); /* no-color.org: set and not empty */
    report->plain = no_colour && *no_colour;
    text_init(&report->line, budget, TAG_PROCESS);
    for (int i = 0; i < REPORT_LINE_BYTES; i++) /* grown now, so that no event grows it */
        text_add_bytes(&report->line, " ", 1);
    text_clear(&report->line);
    *out = report;
    return PLIM_OK;
}

void plim_report_free(plim_report *report)
{
    if (!report)
        return;
    struct budget *budget = report->budget;
    text_release(&report->line);
    budget_give(budget, TAG_PROCESS, report, sizeof *report);
    budget_free(budget);
}

static bool is_json(const struct plim_report *report)
{
    return report->form == PLIM_REPORT_JSON || report->form == PLIM_REPORT_JSON_STEPS;
}

/* A reader that went away does not stop training. Programs get nothing after
   a line that was lost: half a line, or a gap, would mislead them. */
void report_flush(struct plim_report *report)
{
    bool ended = report->lost && is_json(report);
    if (!ended && !file_send(report->descriptor, report->line.data, report->line.length) && !report->lost)
        report->lost = errno;
    text_clear(&report->line);
}

void plim_report_listen(void *context, const plim_event *event)
{
    struct plim_report *report = context;
    if (is_json(report))
        event_json(report, event, report->form == PLIM_REPORT_JSON_STEPS);
    else
        progress_event(report, event, report->form == PLIM_REPORT_TERMINAL);
}

void plim_report_error(plim_report *report, const plim_error *error)
{
    if (is_json(report))
        event_json_error(report, error);
}

int plim_report_lost(const plim_report *report)
{
    return report->lost;
}
