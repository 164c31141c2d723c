/* report.c - events of a run as people and programs read them. */
#include "report/report.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/numbers/floats.h"
#include "base/threads/stop.h"

#define REPORT_BUDGET_BYTES ((uint64_t)64 * 1024)

plim_status plim_report_make(plim_report **out, plim_report_form form, int descriptor, plim_error *error)
{
    struct budget *budget;
    TRY(need_argument(out, "where the report is to go", error));
    if ((int)form < PLIM_REPORT_TERMINAL || (int)form > PLIM_REPORT_JSON_STEPS)
        return fail(error, PLIM_USAGE, "there is no form %d of a report", (int)form);
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

static const struct stop stopped = {.asked = 1};

void report_watch(struct plim_report *report, const struct stop *stop)
{
    const struct stop *before = atomic_load(&report->stop);
    if (before && stop_asked(before))
        stop = &stopped;
    atomic_store(&report->stop, stop);
}

/* Two trainings may share a report, each on its own thread: their lines follow one another. A line is short. */
static void take_turn(struct plim_report *report)
{
    while (!busy_enter(&report->busy))
        sched_yield();
}

/* A reader that went away does not stop training. Programs get nothing after
   a line that was lost: half a line, or a gap, would mislead them. */
void report_flush(struct plim_report *report)
{
    bool ended = report->lost && is_json(report);
    if (!ended &&
        !file_send_until(atomic_load(&report->stop), report->descriptor, report->line.data, report->line.length) &&
        !report->lost)
        report->lost = errno;
    text_clear(&report->line);
}

/* The part of an event that its kind is about. */
static bool has_part(const plim_event *event)
{
    switch (event->kind) {
    case PLIM_EVENT_PLAN:
        return event->plan && event->plan->text && event->plan->json;
    case PLIM_EVENT_BEGIN:
    case PLIM_EVENT_STEP:
    case PLIM_EVENT_EPOCH:
        return event->progress != NULL;
    case PLIM_EVENT_END:
        return event->end && event->end->status;
    }
    return false;
}

void plim_report_listen(void *context, const plim_event *event)
{
    struct plim_report *report = context;
    HOST_FLOATS;
    if (!report || !event || !has_part(event))
        return;
    take_turn(report);
    if (is_json(report))
        event_json(report, event, report->form == PLIM_REPORT_JSON_STEPS);
    else
        progress_event(report, event, report->form == PLIM_REPORT_TERMINAL);
    busy_leave(&report->busy);
}

void plim_report_error(plim_report *report, const plim_error *error)
{
    if (!report || !error || !is_json(report))
        return;
    take_turn(report);
    event_json_error(report, error);
    busy_leave(&report->busy);
}

int plim_report_lost(const plim_report *report)
{
    return report ? report->lost : 0;
}
