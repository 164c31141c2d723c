/* job_explain.c - the plan as people read it and as programs read it. */
#include "base/numbers/numbers.h"
#include "base/text/json.h"
#include "job/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

/* Words that are wrapped into lines of at most LINE_COLUMNS. */
struct line_wrap {
    struct text *out;
    int column;
    const char *separator; /* before the next word */
};
#define LINE_COLUMNS 80

static void line_wrap_begin(struct line_wrap *wrap, struct text *out)
{
    *wrap = (struct line_wrap){.out = out, .separator = "  "};
}

__attribute__((format(printf, 2, 3))) static void line_wrap_word(struct line_wrap *wrap, const char *format, ...)
{
    char word[160];
    va_list list;
    va_start(list, format);
    number_print_list(word, sizeof word, format, list);
    va_end(list);
    if (wrap->column && wrap->column + text_columns(wrap->separator) + text_columns(word) > LINE_COLUMNS - 2) {
        text_add(wrap->out, " \xc2\xb7\n");
        *wrap = (struct line_wrap){.out = wrap->out, .separator = "    "};
    }
    text_add(wrap->out, "%s%s", wrap->separator, word);
    wrap->column += text_columns(wrap->separator) + text_columns(word);
    wrap->separator = " \xc2\xb7 ";
}

static void tags_text(struct text *out, const struct prediction *prediction)
{
    struct line_wrap wrap;
    line_wrap_begin(&wrap, out);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        if (prediction->by_tag[tag] >= 52429) /* else it prints as 0.0: not worth a word */
            line_wrap_word(&wrap, "%s %.1f", tag_name(tag), (double)prediction->by_tag[tag] / MIB);
    text_add(out, "\n");
}

/* What a point of the frontier takes longer than a plan that drops nothing, in percent. */
static double more_time(const struct plan *plan, int point)
{
    return 100 * (plan->frontier.point[point].relative_time - 1);
}

static void techniques_text(struct text *out, const struct plim_job *job)
{
    const struct plan_figures *figures = &job->plan.figures;
    struct line_wrap wrap;
    line_wrap_begin(&wrap, out);
    line_wrap_word(&wrap, "keep %lld", (long long)figures->kept);
    line_wrap_word(&wrap, "encode %lld", (long long)figures->encoded);
    line_wrap_word(&wrap, "recompute %lld", (long long)figures->recomputed);
    if (figures->spilled) {
        char bytes[16];
        text_size(bytes, figures->spilled_bytes);
        line_wrap_word(&wrap, "spill %lld (%s a step)", (long long)figures->spilled, bytes);
    }
    if (figures->paged) {
        char bytes[16];
        text_size(bytes, figures->paged_bytes);
        line_wrap_word(&wrap, "page %lld (%s a step)", (long long)figures->paged, bytes);
    }
    line_wrap_word(&wrap, "read ahead %d batch%s", job->train_grant.slots - 1, job->train_grant.slots == 2 ? "" : "es");
    double more = more_time(&job->plan, job->plan.point);
    if (more > 0)
        line_wrap_word(&wrap, "time +%.0f %%", more);
    text_add(out, "\n");
    if (figures->reference_kernels)
        text_add(out, "  %d kernel%s run in plain C: right, and very slow (is libdnnl installed?)\n",
                 figures->reference_kernels, figures->reference_kernels == 1 ? "" : "s");
}

static void plan_text(struct text *out, const struct plim_job *job)
{
    const plim_plan_report *report = &job->report;
    const struct plan *plan = &job->plan;
    char budget[16], peak[16], least[16];
    text_size(budget, report->budget_bytes);
    text_size(peak, report->predicted_peak_bytes);
    text_size(least, report->smallest_budget_bytes);
    int threads = plan->figures.threads;
    text_add(out, "%s \xc2\xb7 batch %lld \xc2\xb7 %d thread%s \xc2\xb7 cpu %s\n", job->model->name,
             (long long)plan->workload.batch, threads, threads == 1 ? "" : "s",
             plan->backend->type->features(plan->backend));
    size_t line = out->length;
    text_add(out, "budget %s (%s)   predicted peak %s, at ", budget, report->budget_source, peak);
    text_add_cut(out, plan->prediction.peak_at, LINE_COLUMNS - (int)(out->length - line));
    text_add(out, "\n");
    tags_text(out, &plan->prediction);
    techniques_text(out, job);
    text_add(out, "smallest workable budget %s%s", plan->backend->missing_bytes ? "about " : "", least);
    double more = more_time(plan, plan->frontier.count - 1);
    if (more > 0)
        text_add(out, " (time +%.0f %%)", more);
    if (report->largest_batch)
        text_add(out, "   largest batch that fits %lld", (long long)report->largest_batch);
    text_add(out, "\n");
}

static void plan_json(struct text *out, const struct plim_job *job)
{
    const plim_plan_report *report = &job->report;
    const struct plan *plan = &job->plan;
    const struct plan_figures *figures = &plan->figures;
    struct json_writer json;
    json_init(&json, out);
    json_object(&json, NULL);
    json_string(&json, "event", "plan");
    json_bool(&json, "fits", report->fits);
    json_uint(&json, "budget_bytes", report->budget_bytes);
    json_string(&json, "budget_source", report->budget_source);
    json_string(&json, "budget_place", job->memory_place);
    json_uint(&json, "predicted_peak_bytes", report->predicted_peak_bytes);
    json_uint(&json, "smallest_budget_bytes", report->smallest_budget_bytes);
    json_bool(&json, "smallest_is_estimate", plan->backend->missing_bytes > 0);
    if (job->searched)
        json_int(&json, "largest_batch", report->largest_batch);
    else
        json_string(&json, "largest_batch", NULL); /* nobody asked */
    json_string(&json, "peak_at", plan->prediction.peak_at);
    json_object(&json, "by_tag");
    for (int tag = 0; tag < TAG_COUNT; tag++)
        json_uint(&json, tag_name(tag), plan->prediction.by_tag[tag]);
    json_end_object(&json);
    json_object(&json, "techniques");
    json_int(&json, "keep", figures->kept);
    json_int(&json, "encode", figures->encoded);
    json_int(&json, "recompute", figures->recomputed);
    json_int(&json, "spill", figures->spilled);
    json_int(&json, "page", figures->paged);
    json_int(&json, "micro_batch", plan->workload.batch);
    json_end_object(&json);
    json_uint(&json, "spill_bytes", figures->spilled_bytes);
    json_uint(&json, "page_bytes", figures->paged_bytes);
    json_bool(&json, "bit_exact", true);
    json_double(&json, "relative_time", plan->frontier.point[plan->point].relative_time);
    json_bool(&json, "calibrated", plan->retimed);
    json_array(&json, "frontier");
    for (int k = 0; k < plan->frontier.count; k++) {
        json_object(&json, NULL);
        json_uint(&json, "bytes", plan->frontier.point[k].budget_bytes);
        json_double(&json, "relative_time", plan->frontier.point[k].relative_time);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_double(&json, "plan_seconds", job->plan_seconds);
    json_uint(&json, "arena_bytes", figures->tensor_arena_bytes);
    json_uint(&json, "arena_max_live_bytes", figures->live_bytes);
    json_uint(&json, "arena_packed_bytes", figures->packed_bytes);
    json_int(&json, "plain_kernels", figures->reference_kernels);
    json_int(&json, "threads", figures->threads);
    json_end_object(&json);
}

plim_status job_explain(struct plim_job *job, const struct text *view, plim_error *error)
{
    if (view && view->failed)
        return budget_refused(job->budget, TAG_PLANNER, view->length, error);
    TRY(job_keep_texts(job, error));
    plan_text(&job->plan_text.text, job);
    if (view)
        text_add_bytes(&job->plan_text.text, view->data, view->length);
    plan_json(&job->plan_text.json, job);
    TRY(job_text_done(&job->plan_text, error));
    job->report.text = job->plan_text.text.data;
    job->report.json = job->plan_text.json.data;
    return PLIM_OK;
}

/* A command to paste; `instead` when there is not room for all of it. */
__attribute__((format(printf, 4, 5))) static plim_status hint_command(plim_error *error, plim_status status,
                                                                      const char *instead, const char *format, ...)
{
    char command[sizeof error->hint];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(command, sizeof command, format, list);
    va_end(list);
    return hint(error, status, "%s", length < (int)sizeof command ? command : instead);
}

plim_status job_hint_resume(const struct plim_job *job, plim_error *error)
{
    const char *memory = job->memory_option;
    return hint_command(error, PLIM_INTERRUPTED, "the same command with --resume goes on from here",
                        "plim train %s%s%s --resume", job->command, memory ? " --memory " : "", memory ? memory : "");
}

plim_status job_refuse_unplanned(const struct plim_job *job, plim_error *error)
{
    error_at(error, PLIM_OVER_BUDGET, job->path);
    bool stated = job->plan.limit_bytes || job->memory_option || job->memory_seen;
    if (!stated || (error && error->hint[0])) /* all that there is was not enough; or it names a budget of its own */
        return PLIM_OVER_BUDGET;
    const char *option = strcmp(job->verb, "summary") == 0 ? "--set memory=auto" : "--memory auto";
    return hint_command(error, PLIM_OVER_BUDGET, option, "plim %s %s %s", job->verb, option, job->command);
}

plim_status job_refuse(const struct plim_job *job, plim_error *error)
{
    char stated[32], least[32], option[48], floors[360];
    const struct plan *plan = &job->plan;
    unsigned long long kib = (plan->smallest_bytes + 1023) / 1024;
    text_size(stated, plan->limit_bytes);
    text_size(least, plan->smallest_bytes);
    if (strcmp(stated, least) == 0) { /* they differ by less than these digits show */
        snprintf(stated, sizeof stated, "%llu KiB", (unsigned long long)(plan->limit_bytes / 1024));
        snprintf(least, sizeof least, "%llu KiB", kib);
    }
    if (plan->obstacle)
        return hint(
            error,
            fail_at(error, PLIM_OVER_BUDGET, job->path, "needs %s; %s leaves less than that", least, plan->obstacle),
            "raise that limit, or a smaller batch");
    if (job->data_planned) {
        job_data_floors(floors, sizeof floors, job);
        fail_at(error, PLIM_OVER_BUDGET, job->path, "needs >= %s, given %s (%s): %s", least, stated, job->memory_source,
                floors);
    } else {
        fail_at(error, PLIM_OVER_BUDGET, job->path, "needs %s%s, the budget is %s (%s)",
                plan->backend->missing_bytes ? "about " : "", least, stated, job->memory_source);
    }
    snprintf(option, sizeof option, "--memory %lluKiB", kib);
    return hint_command(error, PLIM_OVER_BUDGET, option, "plim %s %s %s", job->verb, option, job->command);
}
