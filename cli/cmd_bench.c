/* cmd_bench.c - plim bench: times the training step of a job on one batch. */
#include "command.h"

#include <stdio.h>
#include <string.h>

static void print(const plim_step_figures *f, bool json)
{
    if (json)
        printf(
            "{\"event\":\"bench\",\"steps\":%lld,\"median_seconds\":%.17g,\"best_seconds\":%.17g,\"mean_seconds\":%.17g,"
            "\"predicted_peak_bytes\":%llu,\"peak_rss_bytes\":%llu}\n",
            (long long)f->steps, f->median_seconds, f->best_seconds, f->mean_seconds,
            (unsigned long long)f->predicted_peak_bytes, (unsigned long long)f->peak_rss_bytes);
    else
        printf("%lld steps: median %.1f us, best %.1f us, mean %.1f us; peak %.1f MiB (predicted %.1f MiB)\n",
               (long long)f->steps, f->median_seconds * 1e6, f->best_seconds * 1e6, f->mean_seconds * 1e6,
               (double)f->peak_rss_bytes / 1048576, (double)f->predicted_peak_bytes / 1048576);
    fflush(stdout);
}

static plim_status bench(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    plim_job *job;
    plim_step_figures figures;
    (void)reports;
    if (arguments->word_count && strcmp(arguments->words[0], "kernels") == 0)
        return bad_usage(error, "ninja -C build bench-kernels; build/bench-kernels 'conv2d*'",
                         "the speed table of '%s' is a program of its own, made from the sources", arguments->words[0]);
    plim_status status = open_job(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    signals_watch(job);
    status = plim_job_bench_step(&figures, job, arguments->steps, error);
    signals_release();
    if (status == PLIM_OK)
        print(&figures, arguments->json);
    plim_job_close(job);
    return status;
}

const struct command command_bench = {
    .name = "bench",
    .usage = "plim bench JOB.yaml [--steps N] [options]",
    .summary = "times the training step of a job",
    .help = "Takes one batch and runs the training step on it N times, or for ten seconds.\n\n"
            "  plim bench examples/mlp.yaml --steps 2000\n",
    .takes = TAKES_JOB | TAKES_STEPS,
    .run = bench,
};
