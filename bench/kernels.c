/* kernels.c - runs every op in sizes that models have, or stretched examples, on one thread; says which kernel ran and
   what share it reached of what bounds it: of multiply-adds in registers, or of bytes through memory, both measured in
   the same run, and the share of multiply-adds that memory allows (roof). An op that fell back to plain C is marked.

   usage: bench-kernels [PATTERN...] [--json] [--once] [--memory SIZE] [--steps N] [--type TYPE]
   (ninja -C build bench-kernels; build/bench-kernels 'conv2d*' matmul --memory 200MiB). Of the runs of a line, the best
   of each slice counts; on a machine that is shared, take more of them: --steps 100. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "kernel_table.h"

/* Less work is over before another thread would have begun it, and what a kernel does once weighs as much as what it
   does for every element. */
#define LARGE_GFLOP 0.2

static bool is_large(const struct kernel_figures *f)
{
    return f->roof >= 1 && f->gflops * f->seconds >= LARGE_GFLOP;
}

static void print_machine(const struct kernel_totals *totals, bool json)
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
static void print_json(const struct kernel_figures *f)
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

static void print_text(const struct kernel_figures *f)
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

/* context: whether programs read it. */
static void tell(void *context, const struct kernel_totals *so_far, const struct kernel_figures *line)
{
    const bool *json = context;
    if (!line)
        print_machine(so_far, *json);
    else if (*json)
        print_json(line);
    else
        print_text(line);
    fflush(stdout);
}

static void print_totals(const struct kernel_totals *t, bool json)
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

/* ---- the command line ---- */

#define USAGE "bench-kernels --json --memory 200MiB 'conv2d*'"

static plim_status read_steps(int64_t *out, const char *text, plim_error *error)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || number < 1)
        return hint(error, fail(error, PLIM_USAGE, "--steps: '%.100s' is not a number", text),
                    "a whole number, at least 1");
    *out = number;
    return PLIM_OK;
}

/* Words that are not options are moved to the front of `values`, and become the patterns. */
static plim_status read_arguments(struct kernel_options *out, bool *json, int count, char **values, plim_error *error)
{
    for (int i = 0; i < count; i++) {
        const char *word = values[i];
        bool wants = !strcmp(word, "--memory") || !strcmp(word, "--steps") || !strcmp(word, "--type");
        if (wants && i + 1 == count)
            return hint(error, fail(error, PLIM_USAGE, "%s needs a value", word), "%s", USAGE);
        if (strcmp(word, "--json") == 0)
            *json = true;
        else if (strcmp(word, "--once") == 0)
            out->once = true;
        else if (strcmp(word, "--memory") == 0)
            out->memory = values[++i];
        else if (strcmp(word, "--type") == 0)
            out->type = values[++i];
        else if (strcmp(word, "--steps") == 0)
            TRY(read_steps(&out->line_runs, values[++i], error));
        else if (word[0] == '-')
            return hint(error, fail(error, PLIM_USAGE, "unknown option '%.100s'", word), "%s", USAGE);
        else
            values[out->pattern_count++] = values[i];
    }
    out->patterns = (const char *const *)values;
    return PLIM_OK;
}

/* As plim prints it. */
static int print_error(const plim_error *error, bool json)
{
    plim_report *report = NULL;
    fprintf(stderr, "bench-kernels: %s%s%s\n", error->message, error->hint[0] ? "; try: " : "", error->hint);
    if (json && plim_report_make(&report, PLIM_REPORT_JSON, 1, NULL) == PLIM_OK)
        plim_report_error(report, error);
    plim_report_free(report);
    return plim_status_exit(error->code);
}

int main(int count, char **values)
{
    struct kernel_options options = {0};
    struct kernel_totals totals;
    plim_error error = {0};
    bool json = false;
    mallopt(M_ARENA_MAX, 1); /* as plim does: the figures of memory are of such a process */
    mallopt(M_TRIM_THRESHOLD, 64 * 1024);
    plim_status status = read_arguments(&options, &json, count - 1, values + 1, &error);
    if (status == PLIM_OK)
        status = kernel_table(&totals, &options, tell, &json, &error);
    if (status != PLIM_OK)
        return print_error(&error, json);
    print_totals(&totals, json);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : plim_status_exit(PLIM_IO);
}
