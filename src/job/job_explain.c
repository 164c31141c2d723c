/* job_explain.c - the plan as people read it and as programs read it. */
#include "base/numbers/numbers.h"
#include "base/text/json.h"
#include "job/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

static int64_t count_kept(const struct program *program)
{
    const struct phase *phase = &program->phase[PHASE_TRAIN];
    int64_t kept = 0;
    for (int i = 0; i < phase->instance_count; i++)
        kept += phase->instance[i].tag == TAG_ACTIVATIONS;
    return kept;
}

/* Bytes that a forward node made and a backward one reads: places in windows, bits of slopes. */
static int64_t count_encoded(const struct program *program)
{
    const struct graph *graph = program->phase[PHASE_TRAIN].graph;
    int64_t encoded = 0;
    for (int n = 0; graph && n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; i < node->input_count && node->backward; i++) {
            const struct tensor *tensor = node->input[i];
            encoded += tensor && tensor->type == TYPE_U8 && tensor->producer && !tensor->producer->backward;
        }
    }
    return encoded;
}

/* Ops that backward runs a second time instead of keeping what they made (rederive). */
static int64_t count_recomputed(const struct program *program)
{
    const struct graph *graph = program->phase[PHASE_TRAIN].graph;
    int64_t again = 0;
    for (int n = 0; graph && n < graph->node_count; n++)
        again += graph->node[n]->again;
    return again;
}

/* Words that flow over lines of at most LINE_COLUMNS. */
struct flow {
    struct text *out;
    int column;
    const char *separator; /* before the next word */
};
#define LINE_COLUMNS 80

static void flow_begin(struct flow *flow, struct text *out)
{
    *flow = (struct flow){.out = out, .separator = "  "};
}

__attribute__((format(printf, 2, 3))) static void flow_word(struct flow *flow, const char *format, ...)
{
    char word[160];
    va_list list;
    va_start(list, format);
    number_print_list(word, sizeof word, format, list);
    va_end(list);
    if (flow->column && flow->column + text_columns(flow->separator) + text_columns(word) > LINE_COLUMNS - 2) {
        text_add(flow->out, " \xc2\xb7\n");
        *flow = (struct flow){.out = flow->out, .separator = "    "};
    }
    text_add(flow->out, "%s%s", flow->separator, word);
    flow->column += text_columns(flow->separator) + text_columns(word);
    flow->separator = " \xc2\xb7 ";
}

static void tags_text(struct text *out, const struct prediction *prediction)
{
    struct flow flow;
    flow_begin(&flow, out);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        if (prediction->by_tag[tag] >= 52429) /* else it prints as 0.0: not worth a word */
            flow_word(&flow, "%s %.1f", tag_name(tag), (double)prediction->by_tag[tag] / MIB);
    text_add(out, "\n");
}

static void techniques_text(struct text *out, const struct plim_job *job)
{
    struct flow flow;
    flow_begin(&flow, out);
    flow_word(&flow, "keep %lld", (long long)count_kept(job->program));
    flow_word(&flow, "encode %lld", (long long)count_encoded(job->program));
    flow_word(&flow, "recompute %lld", (long long)count_recomputed(job->program));
    flow_word(&flow, "read ahead %d batch%s", job->train_grant.slots - 1, job->train_grant.slots == 2 ? "" : "es");
    text_add(out, "\n");
    int slow = program_kernels(job->program, "reference");
    if (slow)
        text_add(out, "  %d kernel%s run in plain C: right, and very slow (is libdnnl installed?)\n", slow,
                 slow == 1 ? "" : "s");
}

static void plan_text(struct text *out, const struct plim_job *job)
{
    const plim_plan_report *report = &job->report;
    char budget[16], peak[16], least[16];
    text_size(budget, report->budget_bytes);
    text_size(peak, report->predicted_peak_bytes);
    text_size(least, report->smallest_budget_bytes);
    long long batch = (long long)dataset_batch_size(job->train.dataset);
    text_add(out, "%s \xc2\xb7 batch %lld \xc2\xb7 %d thread%s \xc2\xb7 cpu %s\n", job->model->name, batch,
             job->program->threads, job->program->threads == 1 ? "" : "s", job->backend->type->features(job->backend));
    size_t line = out->length;
    text_add(out, "budget %s (%s)   predicted peak %s, at ", budget, report->budget_source, peak);
    text_add_cut(out, job->prediction.peak_at, LINE_COLUMNS - (int)(out->length - line));
    text_add(out, "\n");
    tags_text(out, &job->prediction);
    techniques_text(out, job);
    text_add(out, "smallest workable budget %s%s", job->backend->missing_bytes ? "about " : "", least);
    if (report->largest_batch)
        text_add(out, "   largest batch that fits %lld", (long long)report->largest_batch);
    text_add(out, "\n");
}

static void plan_json(struct text *out, const struct plim_job *job)
{
    const plim_plan_report *report = &job->report;
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
    json_bool(&json, "smallest_is_estimate", job->backend->missing_bytes > 0);
    if (job->searched)
        json_int(&json, "largest_batch", report->largest_batch);
    else
        json_string(&json, "largest_batch", NULL); /* nobody asked */
    json_string(&json, "peak_at", job->prediction.peak_at);
    json_object(&json, "by_tag");
    for (int tag = 0; tag < TAG_COUNT; tag++)
        json_uint(&json, tag_name(tag), job->prediction.by_tag[tag]);
    json_end_object(&json);
    json_object(&json, "techniques");
    json_int(&json, "keep", count_kept(job->program));
    json_int(&json, "encode", count_encoded(job->program));
    json_int(&json, "recompute", count_recomputed(job->program));
    json_int(&json, "spill", 0); /* nothing is spilled, split or slowed down: there is one plan */
    json_int(&json, "micro_batch", dataset_batch_size(job->train.dataset));
    json_end_object(&json);
    json_bool(&json, "bit_exact", true);
    json_double(&json, "relative_time", 1.0);
    json_array(&json, "frontier");
    json_object(&json, NULL);
    json_uint(&json, "bytes", report->smallest_budget_bytes);
    json_double(&json, "relative_time", 1.0);
    json_end_object(&json);
    json_end_array(&json);
    json_double(&json, "plan_seconds", job->plan_seconds);
    json_uint(&json, "arena_bytes", job->program->arena_bytes);
    json_uint(&json, "arena_max_live_bytes", job->program->phase[PHASE_TRAIN].max_live);
    json_uint(&json, "arena_packed_bytes", job->program->phase[PHASE_TRAIN].top);
    json_int(&json, "plain_kernels", program_kernels(job->program, "reference"));
    json_int(&json, "threads", job->program->threads);
    json_end_object(&json);
}

plim_status job_explain(struct plim_job *job, plim_error *error)
{
    TRY(job_keep_texts(job, error));
    plan_text(&job->plan_text, job);
    plan_json(&job->plan_json, job);
    if (job->plan_text.failed || job->plan_json.failed)
        return budget_refused(job->budget, TAG_PLANNER, 4096, error);
    job->report.text = job->plan_text.data;
    job->report.json = job->plan_json.data;
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
    place(error, PLIM_OVER_BUDGET, job->path);
    bool stated = job->memory_bytes || job->memory_option || job->memory_seen;
    if (!stated || (error && error->hint[0])) /* all that there is was not enough; or it names a budget of its own */
        return PLIM_OVER_BUDGET;
    const char *option = strcmp(job->verb, "summary") == 0 ? "--set memory=auto" : "--memory auto";
    return hint_command(error, PLIM_OVER_BUDGET, option, "plim %s %s %s", job->verb, option, job->command);
}

plim_status job_refuse(const struct plim_job *job, plim_error *error)
{
    char stated[32], least[32], option[48];
    uint64_t kib = (job->report.smallest_budget_bytes + 1023) / 1024;
    text_size(stated, job->report.budget_bytes);
    text_size(least, job->report.smallest_budget_bytes);
    if (strcmp(stated, least) == 0) { /* they differ by less than these digits show */
        snprintf(stated, sizeof stated, "%llu KiB", (unsigned long long)(job->report.budget_bytes / 1024));
        snprintf(least, sizeof least, "%llu KiB", (unsigned long long)kib);
    }
    if (job->obstacle)
        return hint(
            error,
            fail_at(error, PLIM_OVER_BUDGET, job->path, "needs %s; %s leaves less than that", least, job->obstacle),
            "raise that limit, or a smaller batch");
    plim_status status = fail_at(error, PLIM_OVER_BUDGET, job->path, "needs %s%s, the budget is %s (%s)",
                                 job->backend->missing_bytes ? "about " : "", least, stated, job->report.budget_source);
    snprintf(option, sizeof option, "--memory %lluKiB", (unsigned long long)kib);
    return hint_command(error, status, option, "plim %s %s %s", job->verb, option, job->command);
}
