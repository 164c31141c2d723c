/* data_bench.c - plim data bench: reads one epoch and measures it. */
#include "command.h"

#include <stdio.h>
#include <string.h>

static void print(const plim_data_figures *f, bool json)
{
    if (json)
        printf("{\"event\":\"data\",\"elements\":%lld,\"batches\":%lld,\"seconds\":%.17g,\"elements_per_s\":%.17g,"
               "\"ns_per_element\":%.17g,\"readiness\":%.17g,\"bytes_read\":%llu,\"predicted_peak_bytes\":%llu,"
               "\"peak_rss_bytes\":%llu}\n",
               (long long)f->elements, (long long)f->batches, f->seconds, f->elements_per_s, f->ns_per_element,
               f->readiness, (unsigned long long)f->bytes_read, (unsigned long long)f->predicted_peak_bytes,
               (unsigned long long)f->peak_rss_bytes);
    else
        printf("%lld elements in %lld batches, %.3f s: %.0f elements/s, %.0f ns each; readiness %.0f %%; "
               "peak %.1f MiB, predicted %.1f MiB\n",
               (long long)f->elements, (long long)f->batches, f->seconds, f->elements_per_s, f->ns_per_element,
               100 * f->readiness, (double)f->peak_rss_bytes / 1048576, (double)f->predicted_peak_bytes / 1048576);
}

/* Files have no pipeline of their own: batches of 32, read ahead. */
static plim_status add_pipeline(struct arguments *arguments, plim_error *error)
{
    static const char pipeline[] = "data.train.pipeline=[batch: 32, prefetch: auto]";
    size_t count = arguments->job.overrides_count;
    if (count == MOST_OVERRIDES)
        return bad_usage(error, "put them into a job file", "too many of --set%s", "");
    memmove(arguments->overrides + 1, arguments->overrides, count * sizeof arguments->overrides[0]);
    arguments->overrides[0] = pipeline;
    arguments->job.overrides_count++;
    return PLIM_OK;
}

static plim_status bench(struct arguments *arguments, plim_error *error)
{
    plim_job *job;
    plim_data_figures figures;
    plim_status status = PLIM_OK;
    if (arguments->word_count && !is_job_file(arguments->words[0]))
        status = add_pipeline(arguments, error);
    if (status == PLIM_OK)
        status = open_data(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    signals_watch(job);
    status = plim_job_bench_data(&figures, job, error);
    signals_release();
    if (status == PLIM_OK)
        print(&figures, arguments->json);
    plim_job_close(job);
    return status;
}

const struct data_command data_command_bench = {.name = "bench", .run = bench};
