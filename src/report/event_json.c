/* event_json.c - events as the JSON lines of doc/json.md: fields are added
   freely and never renamed. */
#include "base/memory/limits.h"
#include "base/text/json.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

static void send(struct plim_report *report, struct json_writer *json)
{
    json_end_object(json);
    text_add_bytes(&report->line, "\n", 1);
    report_flush(report);
}

static void begin(struct plim_report *report, struct json_writer *json, const char *event)
{
    json_init(json, &report->line);
    json_object(json, NULL);
    json_string(json, "event", event);
}

/* ---- notes ---- */

/* A note is reported once, by an event that may have no line: the next line of an epoch, or of the end, has it. */
static void keep_note(struct plim_report *report, const char *note)
{
    size_t bytes = strlen(note) + 1;
    if (bytes > REPORT_NOTES_BYTES - report->notes_bytes) {
        report->notes_lost++;
        return;
    }
    memcpy(report->notes + report->notes_bytes, note, bytes);
    report->notes_bytes += bytes;
}

static void add_notes(struct json_writer *json, struct plim_report *report)
{
    if (!report->notes_bytes && !report->notes_lost)
        return;
    json_array(json, "notes");
    for (size_t at = 0; at < report->notes_bytes; at += strlen(report->notes + at) + 1)
        json_string(json, NULL, report->notes + at);
    json_end_array(json);
    if (report->notes_lost)
        json_int(json, "notes_lost", report->notes_lost);
    report->notes_bytes = 0;
    report->notes_lost = 0;
}

/* ---- a line an event ---- */

static void step_line(struct plim_report *report, const plim_progress *progress)
{
    struct json_writer json;
    begin(report, &json, "step");
    json_int(&json, "step", progress->total_steps);
    json_int(&json, "epoch", progress->epoch);
    json_double(&json, "loss", progress->step_loss);
    if (progress->note)
        json_string(&json, "note", progress->note);
    send(report, &json);
}

/* A number, or as Keras's history has it a list of them. */
static void metric(struct json_writer *json, const char *name, double value, const double *each, int64_t count)
{
    if (!each) {
        json_double(json, name, value);
        return;
    }
    json_array(json, name);
    for (int64_t i = 0; i < count; i++)
        json_double(json, NULL, each[i]);
    json_end_array(json);
}

static void epoch_line(struct plim_report *report, const plim_progress *progress)
{
    char key[128];
    struct json_writer json;
    begin(report, &json, "epoch");
    json_int(&json, "epoch", progress->epoch);
    json_int(&json, "steps", progress->step);
    json_int(&json, "samples", progress->samples);
    json_double(&json, "seconds", progress->seconds);
    json_double(&json, "loss", progress->loss);
    for (int m = 0; m < progress->metric_count; m++)
        metric(&json, progress->metric[m], progress->metric_value[m], progress->metric_each[m],
               progress->metric_each_count[m]);
    if (progress->validated) {
        json_double(&json, "val_loss", progress->val_loss);
        for (int m = 0; m < progress->metric_count; m++) {
            snprintf(key, sizeof key, "val_%s", progress->metric[m]);
            metric(&json, key, progress->val_metric_value[m], progress->val_metric_each[m],
                   progress->metric_each_count[m]);
        }
    }
    json_int(&json, "skipped_steps", progress->skipped_steps);
    add_notes(&json, report);
    struct process_usage usage;
    if (process_usage_now(&usage))
        json_uint(&json, "rss_bytes", usage.rss);
    send(report, &json);
}

static void end_line(struct plim_report *report, const plim_end *end)
{
    struct json_writer json;
    begin(report, &json, "end");
    json_string(&json, "status", end->status);
    json_int(&json, "steps", end->steps);
    json_int(&json, "samples", end->samples);
    json_double(&json, "seconds", end->seconds);
    json_double(&json, "samples_per_s", end->samples_per_s);
    json_uint(&json, "predicted_peak_bytes", end->predicted_peak_bytes);
    json_uint(&json, "peak_rss_bytes", end->peak_rss_bytes);
    json_double(&json, "allocations_per_step", end->allocations_per_step);
    json_int(&json, "malloc_growth_bytes", end->malloc_growth_bytes);
    json_double(&json, "data_wait_share", end->data_wait_share);
    json_string(&json, "checkpoint", end->checkpoint);
    json_int(&json, "skipped_steps", end->skipped_steps);
    if (end->note)
        json_string(&json, "note", end->note);
    add_notes(&json, report);
    if (end->weights_digest)
        json_string(&json, "weights_digest", end->weights_digest);
    if (end->optimizer_digest)
        json_string(&json, "optimizer_digest", end->optimizer_digest);
    send(report, &json);
}

static void plan_line(struct plim_report *report, const plim_plan_report *plan)
{
    text_add(&report->line, "%s\n", plan->json);
    report_flush(report);
}

void event_json(struct plim_report *report, const plim_event *event, bool steps)
{
    if ((event->kind == PLIM_EVENT_BEGIN || event->kind == PLIM_EVENT_STEP) && event->progress->note)
        keep_note(report, event->progress->note);
    if (event->kind == PLIM_EVENT_PLAN)
        plan_line(report, event->plan);
    else if (event->kind == PLIM_EVENT_STEP && steps)
        step_line(report, event->progress);
    else if (event->kind == PLIM_EVENT_EPOCH)
        epoch_line(report, event->progress);
    else if (event->kind == PLIM_EVENT_END)
        end_line(report, event->end);
}

void event_json_error(struct plim_report *report, const plim_error *error)
{
    struct json_writer json;
    begin(report, &json, "error");
    json_string(&json, "code", plim_status_name(error->code));
    json_int(&json, "exit", plim_status_exit(error->code));
    json_string(&json, "where", error->where);
    json_string(&json, "message", error->message);
    json_string(&json, "try", error->hint);
    send(report, &json);
}
