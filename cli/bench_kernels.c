/* bench_kernels.c - plim bench kernels: a line an op, as they are measured. */
#include "command.h"

#include <stdio.h>

/* Less work is over before another thread would have begun it, and what a kernel does once weighs as much as what it
   does for every element. */
#define LARGE_GFLOP 0.2

struct lines {
    bool json;
    struct meter meter;
};

static bool is_large(const plim_kernel_figures *f)
{
    return f->roof >= 1 && f->gflops * f->seconds >= LARGE_GFLOP;
}

static void print_machine(const plim_kernel_totals *totals, bool json)
{
    if (json)
        printf("{\"event\":\"machine\",\"features\":\"%s\",\"threads\":1,\"peak_gflops\":%.17g,\"peak_gb_per_s\":%.17g,"
               "\"budget_bytes\":%llu}\n",
               totals->features, totals->peak_gflops, totals->peak_gb_per_s, (unsigned long long)totals->budget_bytes);
    else
        printf("%s, one thread: at best %.1f GFLOP/s (multiply-adds in registers), %.1f GB/s (through memory)\n"
               "FMA: share of the multiply-adds in registers, as measured around the line; roof: the share that memory "
               "allows,\n"
               "if every operand passes through it once. Large enough to be held against the FMA loop: lines with a "
               "roof of\n"
               "100 %% and at least %.1f GFLOP. share: of what bounds the line, the lower of the two.\n"
               "%-34s %-44s %-8s %10s %11s %6s %6s %6s  %s\n",
               totals->features, totals->peak_gflops, totals->peak_gb_per_s, LARGE_GFLOP, "op", "size", "type", "time",
               "speed", "FMA", "roof", "share", "kernel");
}

/* Names and sizes are ours: nothing in them needs escaping. */
static void print_json(const plim_kernel_figures *f)
{
    printf("{\"event\":\"kernel\",\"op\":\"%s\",\"size\":\"%s\",\"type\":\"%s\",", f->op, f->size, f->type);
    if (f->implementation)
        printf(
            "\"implementation\":\"%s\",\"reference\":%s,\"seconds\":%.17g,\"gflops\":%.17g,\"gb_per_s\":%.17g,"
            "\"bound\":\"%s\",\"share\":%.17g,\"peak_gflops\":%.17g,\"fma_share\":%.17g,\"roof\":%.17g,\"large\":%s}\n",
            f->implementation, f->reference ? "true" : "false", f->seconds, f->gflops, f->gb_per_s,
            f->memory_bound ? "memory" : "compute", f->share, f->peak_gflops, f->gflops / f->peak_gflops, f->roof,
            is_large(f) ? "true" : "false");
    else
        printf("\"implementation\":null,\"needed_bytes\":%llu}\n", (unsigned long long)f->needed_bytes);
}

static void print_text(const plim_kernel_figures *f)
{
    printf("%-34s %-44s %-8s ", f->op, f->size, f->type);
    if (f->implementation)
        printf("%7.3f ms %6.1f %s %4.0f %% %4.0f %% %4.0f %%  %s%s\n", f->seconds * 1e3,
               f->memory_bound ? f->gb_per_s : f->gflops, f->memory_bound ? "GB/s" : "GF/s",
               100 * f->gflops / f->peak_gflops, 100 * f->roof, 100 * f->share, f->implementation,
               f->reference ? "  <- SLOW: no kernel takes it" : "");
    else
        printf("left out: needs %.0f MiB\n", (double)f->needed_bytes / 1048576);
}

static bool tell(void *context, const plim_kernel_totals *so_far, const plim_kernel_figures *line)
{
    struct lines *lines = context;
    if (!line)
        print_machine(so_far, lines->json);
    else if (lines->json)
        print_json(line);
    else
        print_text(line);
    fflush(stdout);
    if (line && lines->json)
        meter_tell(&lines->meter, line->done, line->total);
    return true;
}

static void print_totals(const plim_kernel_totals *t, bool json)
{
    if (json)
        printf("{\"event\":\"end\",\"status\":\"done\",\"lines\":%lld,\"references\":%lld,\"skipped\":%lld,"
               "\"peak_gflops\":%.17g,\"peak_gb_per_s\":%.17g,"
               "\"seconds\":%.17g,\"budget_bytes\":%llu,\"peak_rss_bytes\":%llu}\n",
               (long long)t->lines, (long long)t->references, (long long)t->skipped, t->peak_gflops, t->peak_gb_per_s,
               t->seconds, (unsigned long long)t->budget_bytes, (unsigned long long)t->peak_rss_bytes);
    else
        printf("%lld lines in %.1f s; %lld by the slow reference, %lld left out; at best %.1f GFLOP/s, %.1f GB/s; peak "
               "%.1f MiB\n",
               (long long)t->lines, t->seconds, (long long)t->references, (long long)t->skipped, t->peak_gflops,
               t->peak_gb_per_s, (double)t->peak_rss_bytes / 1048576);
}

plim_status bench_kernels(struct arguments *arguments, plim_error *error)
{
    struct lines lines = {.json = arguments->json};
    plim_kernel_totals totals;
    plim_kernel_options options = {.memory = arguments->job.memory,
                                   .patterns = arguments->words + 1,
                                   .pattern_count = (size_t)arguments->word_count - 1,
                                   .line_runs = arguments->steps,
                                   .type = arguments->type};
    if (arguments->job.overrides_count || arguments->job.threads || arguments->job.disk || arguments->job.scratch)
        return bad_usage(error, "plim bench kernels --json --memory 200MiB 'conv2d*'",
                         "'bench kernels' takes --json, --memory, --steps and --type alone%s", "");
    meter_init(&lines.meter, "kernels", "ops");
    plim_status status = plim_bench_kernels(&totals, &options, tell, &lines, error);
    meter_end(&lines.meter);
    if (status == PLIM_OK)
        print_totals(&totals, lines.json);
    fflush(stdout);
    return status;
}
