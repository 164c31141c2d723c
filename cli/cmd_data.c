/* cmd_data.c - plim data: looks at and measures data sets. */
#include "command.h"

#include <stdio.h>
#include <string.h>

static void print(const plim_data_figures *f, bool json)
{
    if (json)
        printf("{\"event\":\"data\",\"elements\":%lld,\"batches\":%lld,\"seconds\":%.17g,\"elements_per_s\":%.17g,\"ns_per_element\":%.17g,"
               "\"bytes_read\":%llu,\"peak_rss_bytes\":%llu}\n",
               (long long)f->elements, (long long)f->batches, f->seconds, f->elements_per_s, f->ns_per_element,
               (unsigned long long)f->bytes_read, (unsigned long long)f->peak_rss_bytes);
    else
        printf("%lld elements in %lld batches, %.3f s: %.0f elements/s, %.0f ns each; peak %.1f MiB\n", (long long)f->elements,
               (long long)f->batches, f->seconds, f->elements_per_s, f->ns_per_element, (double)f->peak_rss_bytes / 1048576);
    fflush(stdout);
}

static plim_status data(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    plim_job *job;
    plim_data_figures figures;
    (void)reports;
    if (arguments->word_count < 1 || strcmp(arguments->words[0], "bench") != 0) {
        *error = (plim_error){.code = PLIM_USAGE, .where = "plim data", .message = "expected 'bench'", .hint = "plim data bench JOB.yaml"};
        return PLIM_USAGE;
    }
    arguments->words[0] = arguments->words[1];
    arguments->word_count--;
    if (arguments->word_count > 1)
        arguments->words[1] = arguments->words[2];
    plim_status status = open_job(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    status = plim_job_bench_data(&figures, job, error);
    if (status == PLIM_OK)
        print(&figures, arguments->json);
    plim_job_close(job);
    return status;
}

const struct command command_data = {
    .name = "data",
    .usage = "plim data bench JOB.yaml [options]",
    .summary = "measures the data pipeline of a job",
    .help = "bench reads one epoch of the training data without training on it.\n\n"
            "  plim data bench examples/mlp.yaml\n",
    .run = data,
};
