/* job_data_run.c - runs the training data alone: to measure it, or for a while, to explain it. */
#include "base/threads/clock.h"
#include "job/data/data_report.h"
#include "pipeline/core/stage_table.h"

#define ENDLESS_SECONDS 5.0 /* data without end is measured so long */

#define MOST_SECONDS 1e9 /* as nanoseconds they are far from the end of 64 bits */

/* One epoch, or as much of it as the time allows (0: all). */
static plim_status drain(plim_data_figures *figures, struct plim_job *job, struct iterator *iterator, double seconds,
                         plim_error *error)
{
    struct batch *batch;
    uint64_t begin = clock_ns(),
             end = seconds > 0 && seconds < MOST_SECONDS ? begin + (uint64_t)(seconds * 1e9) : UINT64_MAX;
    for (;;) {
        plim_status status = iterator_next(&batch, iterator, error);
        if (status != PLIM_OK && status != PLIM_INTERRUPTED)
            return status;
        if (status == PLIM_OK && !batch)
            return PLIM_OK;
        figures->batches += status == PLIM_OK;
        figures->elements += status == PLIM_OK ? batch->count : 0;
        if (status == PLIM_INTERRUPTED || stop_asked(&job->stop))
            return fail(error, PLIM_INTERRUPTED, "stopped after %lld batches", (long long)figures->batches);
        bool look = figures->batches < 64 || figures->batches % 16 == 0; /* a clock costs as much as a small batch */
        if (end != UINT64_MAX && look && clock_ns() > end)
            return PLIM_OK;
    }
}

static void finish(plim_data_figures *figures, struct plim_job *job, const struct iterator *iterator, uint64_t begin)
{
    struct process_usage usage = {0};
    struct iterator_figures read;
    iterator_figures(&read, iterator);
    process_usage_now(&usage);
    figures->seconds = (double)(clock_ns() - begin) * 1e-9;
    figures->bytes_read = read.bytes_read;
    job->direct_bytes = read.direct_bytes;
    figures->peak_rss_bytes = usage.peak_rss;
    figures->predicted_peak_bytes = job->plan.prediction.peak;
    figures->elements_per_s = (double)figures->elements / figures->seconds;
    figures->ns_per_element = figures->elements ? figures->seconds * 1e9 / (double)figures->elements : 0;
    figures->threads = read.threads;
    figures->readiness = read.batches ? (double)read.ready / (double)read.batches : 0;
}

static plim_status run(plim_data_figures *out, struct plim_job *job, double seconds, struct stage_table *table,
                       plim_error *error)
{
    struct iterator *iterator;
    plim_data_figures figures = {0};
    uint64_t begin = clock_ns();
    struct grant grant = job->train_grant;
    grant.timed = table != NULL;
    TRY(job_iterate(&iterator, job, grant, error));
    plim_status status = drain(&figures, job, iterator, seconds, error);
    finish(&figures, job, iterator, begin);
    if (table)
        stage_table_time(table, iterator);
    iterator_close(iterator);
    if (status == PLIM_OK)
        *out = figures;
    return status;
}

static plim_status bench(plim_data_figures *out, struct plim_job *job, plim_error *error)
{
    TRY(job_data_prepare(job, error));
    bool endless = dataset_steps(job->train.dataset, NULL) == CARDINALITY_INFINITE;
    return run(out, job, endless ? ENDLESS_SECONDS : 0, NULL, error);
}

plim_status plim_job_bench_data(plim_data_figures *out, plim_job *job, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(out, "data bench: where the figures are to go", error));
    TRY(job_begin(&call, job, "data bench", error));
    return job_end(&call, bench(out, job, error));
}

static plim_status explain(struct plim_job *job, double seconds, plim_error *error)
{
    plim_data_figures figures = {0};
    TRY(seconds > 0 ? job_data_prepare(job, error) : job_data_plan(job, error));
    stage_table_fill(job->stages, job->train.dataset, job->train_grant);
    if (seconds > 0)
        TRY(run(&figures, job, seconds, job->stages, error));
    job_text_clear(&job->data_text);
    data_report_text(&job->data_text.text, job, &figures);
    data_report_json(&job->data_text.json, job, &figures);
    return job_text_done(&job->data_text, error);
}

plim_status plim_job_explain_data(const char **text, const char **json, plim_job *job, double seconds,
                                  plim_error *error)
{
    struct job_call call;
    TRY(need_argument(text, "data explain: where the text is to go", error));
    TRY(need_argument(json, "data explain: where the JSON is to go", error));
    TRY(job_begin(&call, job, "data explain", error));
    plim_status status = seconds != seconds ? fail(error, PLIM_USAGE, "data explain: the seconds are not a number")
                                            : explain(job, seconds, error);
    if (status == PLIM_OK) {
        *text = job->data_text.text.data;
        *json = job->data_text.json.data;
    }
    return job_end(&call, status);
}
