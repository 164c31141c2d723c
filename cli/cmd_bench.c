/* cmd_bench.c - plim bench: times the training step of a job on one batch, or the kernels. */
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
        return bench_kernels(arguments, error);
    if (arguments->type)
        return bad_usage(error, "plim bench kernels --type float32", "a job says its types itself: '%s'",
                         arguments->type);
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
    .usage = "plim bench JOB.yaml [--steps N] [options] | plim bench kernels [PATTERN...]",
    .summary = "times the training step of a job, or the kernels of every op",
    .help =
        "A job: takes one batch and runs the training step on it N times, or for ten seconds.\n"
        "kernels: runs every op in sizes that models have, or stretched examples, on one thread; says which kernel ran\n"
        "and what share it reached of what bounds it: of multiply-adds in registers, or of bytes through memory, both\n"
        "measured in the same run, and the share of multiply-adds that memory allows (roof). An op that fell back to plain\n"
        "C is marked. Of the runs of a line, the best of each slice counts; on a machine that is shared, take more of them:\n"
        "--steps 100. Takes --json, --memory and --type.\n\n"
        "  plim bench examples/mlp.yaml --steps 2000\n"
        "  plim bench kernels 'conv2d*' matmul --memory 200MiB\n",
    .takes = TAKES_JOB | TAKES_STEPS,
    .run = bench,
};
