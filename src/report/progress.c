/* progress.c - Keras's progress line with memory in it, or a plain line an
   epoch.

     Epoch 1/5
     12/469 ━━━━━━━━━━━━━━━━━━━━ 3s 8ms/step - accuracy: 0.9123 - loss: 0.3012 - mem 44.1/48.0 MiB

   The line is drawn at most every 50 ms, and at an epoch's end. */
#include "base/files/file.h"
#include "base/memory/limits.h"
#include "base/threads/clock.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

#define REDRAW_NS ((uint64_t)50 * 1000 * 1000)
#define CELLS     20
#define MIB       (1024.0 * 1024.0)

static void add_duration(struct text *line, double seconds)
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        text_add(line, "%d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
    else if (s >= 60)
        text_add(line, "%d:%02d", (int)(s / 60), (int)(s % 60));
    else
        text_add(line, "%ds", (int)s);
}

static void add_rate(struct text *line, double seconds_per_step)
{
    if (seconds_per_step >= 1)
        text_add(line, "%.0fs/step", seconds_per_step);
    else if (seconds_per_step >= 1e-3)
        text_add(line, "%.0fms/step", seconds_per_step * 1e3);
    else
        text_add(line, "%.0fus/step", seconds_per_step * 1e6);
}

/* Four decimals; small values in powers of ten, as Keras prints them. */
static void add_value(struct text *line, const char *prefix, const char *name, double value)
{
    bool small = value != 0 && fabs(value) < 1e-3;
    if (isnan(value)) { /* its sign means nothing */
        text_add(line, " - %s%s: nan", prefix, name);
        return;
    }
    text_add(line, small ? " - %s%s: %.4e" : " - %s%s: %.4f", prefix, name, value);
}

static void add_bar(struct text *line, int64_t step, int64_t steps, int cells)
{
    int full = steps > 0 ? (int)(step * cells / steps) : 0;
    text_add(line, "\x1b[32m");
    for (int i = 0; i < cells; i++)
        text_add(line, "%s%s", i == full ? "\x1b[37m" : "", "\xe2\x94\x81");
    text_add(line, "\x1b[0m ");
}

static void add_memory(struct text *line, const plim_progress *p)
{
    struct process_usage usage;
    if (process_usage_now(&usage))
        text_add(line, " - mem %.1f/%.1f MiB", (double)usage.rss / MIB, (double)p->budget_bytes / MIB);
}

static void add_figures(struct text *line, const plim_progress *p, bool with_validation)
{
    for (int m = 0; m < p->metric_count; m++)
        add_value(line, "", p->metric[m], p->metric_value[m]);
    add_value(line, "", "loss", p->loss);
    if (with_validation) {
        for (int m = 0; m < p->metric_count; m++)
            add_value(line, "val_", p->metric[m], p->val_metric_value[m]);
        add_value(line, "val_", "loss", p->val_loss);
    }
}

/* cells < 0: no bar. */
static void compose(struct text *line, const plim_progress *p, int cells, bool finished, bool memory)
{
    text_add(line, cells >= 0 ? "\r\x1b[1m%lld/%lld\x1b[0m " : "%lld/%lld ", (long long)p->step,
             (long long)(p->steps > 0 ? p->steps : p->step));
    if (cells > 0)
        add_bar(line, p->step, p->steps, cells);
    if (finished)
        add_duration(line, p->seconds);
    else
        add_duration(line, p->steps > 0 ? (double)(p->steps - p->step) * p->seconds_per_step : p->seconds);
    text_add(line, " ");
    add_rate(line, p->seconds_per_step);
    add_figures(line, p, finished && p->validated);
    if (memory)
        add_memory(line, p);
}

/* Takes colours and bold letters out; moving about in the line stays. */
static void strip_colours(struct text *line)
{
    size_t to = 0;
    for (size_t at = 0; at < line->length;) {
        size_t end = at + 2;
        while (line->data[at] == 0x1b && end < line->length && !(line->data[end] >= '@' && line->data[end] <= '~'))
            end++;
        if (line->data[at] == 0x1b && end < line->length && line->data[end] == 'm')
            at = end + 1;
        else
            line->data[to++] = line->data[at++];
    }
    line->length = to;
    line->data[to] = 0;
}

/* Columns that a terminal needs: no escapes, and one for each UTF-8 character. */
static int columns(const struct text *line)
{
    int count = 0;
    bool escape = false;
    for (size_t i = 0; i < line->length; i++) {
        unsigned char c = (unsigned char)line->data[i];
        if (c == 0x1b)
            escape = true;
        else if (escape)
            escape = !(c >= 'A' && c <= 'z' && c != '[');
        else
            count += c >= ' ' && (c & 0xc0) != 0x80;
    }
    return count;
}

/* A line that wraps cannot be redrawn in place: the bar gives way first, then the memory. */
static void compose_within(struct text *line, const plim_progress *p, int width)
{
    compose(line, p, CELLS, false, true);
    int excess = columns(line) - (width - 1);
    if (excess <= 0)
        return;
    text_clear(line);
    compose(line, p, excess < CELLS ? CELLS - excess : 0, false, excess <= CELLS);
}

static void draw_step(struct plim_report *report, const plim_progress *p)
{
    compose_within(&report->line, p, file_columns(report->descriptor));
    text_add(&report->line, "\x1b[K");
    if (report->plain)
        strip_colours(&report->line);
    report->open = true;
    report_flush(report);
}

static void draw_epoch(struct plim_report *report, const plim_progress *p, bool terminal)
{
    compose(&report->line, p, terminal ? CELLS : -1, true, true);
    text_add(&report->line, "%s\n", terminal ? "\x1b[K" : "");
    if (report->plain)
        strip_colours(&report->line);
    report->open = false;
    report_flush(report);
}

/* What is left to say: the error of a run that did not end well comes after this. */
static void end_line(struct plim_report *report, const plim_end *end)
{
    if (report->open)
        text_add(&report->line, "\n");
    report->open = false;
    if (end->note && end->steps == 0 && !report->begun)
        text_add(&report->line, "note: %s\n", end->note);
    if (end->steps == 0 && strcmp(end->status, "done") == 0)
        text_add(&report->line, "nothing left to do: all epochs are done; raise train.epochs to go on\n");
    if (end->weights_digest)
        text_add(&report->line, "weights_digest %s\n", end->weights_digest);
    if (end->optimizer_digest)
        text_add(&report->line, "optimizer_digest %s\n", end->optimizer_digest);
    report_flush(report);
}

void progress_event(struct plim_report *report, const plim_event *event, bool terminal)
{
    if (event->kind == PLIM_EVENT_PLAN) {
        if (!event->plan->fits)
            return; /* the error that follows is one line */
        text_add(&report->line, "%s", event->plan->text);
        report_flush(report);
    } else if (event->kind == PLIM_EVENT_BEGIN) {
        if (event->progress->note)
            text_add(&report->line, "note: %s\n", event->progress->note);
        text_add(&report->line, "Epoch %lld/%lld\n", (long long)event->progress->epoch,
                 (long long)event->progress->epochs);
        report_flush(report);
        report->drawn_ns = 0;
        report->begun = true;
    } else if (event->kind == PLIM_EVENT_EPOCH) {
        draw_epoch(report, event->progress, terminal);
    } else if (event->kind == PLIM_EVENT_END) {
        end_line(report, event->end);
    } else if (event->kind == PLIM_EVENT_STEP && event->progress->note) {
        text_add(&report->line, "%snote: %s\n", report->open ? "\n" : "", event->progress->note);
        report->open = false;
        report_flush(report);
    } else if (event->kind == PLIM_EVENT_STEP && terminal) {
        uint64_t now = clock_ns();
        if (now - report->drawn_ns < REDRAW_NS)
            return;
        report->drawn_ns = now;
        draw_step(report, event->progress);
    }
}
