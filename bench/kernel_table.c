/* kernel_table.c - the speed table: every op of ops.def, in each type that it takes, against what the machine does at
   best. A new op has its line without a word here. */
#include "kernel_table.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/limits.h"
#include "base/numbers/count.h"
#include "base/numbers/floats.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "formats/files/file_list.h"
#include "kernel_speed.h"

#define LINE_NS       3e7
#define PEAK_BYTES    ((size_t)12 << 20) /* as many as the operands of ops that have no sizes of their own */
#define MOST_ROOM     ((uint64_t)96 << 20)
#define LEAST_ROOM    ((uint64_t)16 << 20)
#define PROCESS_BYTES ((uint64_t)48 << 20) /* code, and what oneDNN holds for the primitives of one op */

static const enum type types[] = {TYPE_F32, TYPE_BF16, TYPE_F16};

struct table {
    const struct kernel_options *options;
    kernel_listener *listener;
    void *context;
    struct kernel_totals totals;
    struct speed_bench bench;
    double latest_gflops; /* as it was measured last; totals have the best */
    uint64_t begin, done, total;
    unsigned left_out; /* bits of `types` */
};

/* ---- which ops ---- */

static bool wanted(const struct table *table, const char *name)
{
    const struct kernel_options *options = table->options;
    for (size_t i = 0; i < options->pattern_count; i++)
        if (file_matches(options->patterns[i], strlen(options->patterns[i]), name))
            return true;
    return options->pattern_count == 0;
}

#define MOST_NAMES 1024

static plim_status check_patterns(struct table *table, plim_error *error)
{
    for (size_t p = 0; p < table->options->pattern_count; p++) {
        const char *pattern = table->options->patterns[p], *names[MOST_NAMES];
        size_t count = 0, found = 0;
        for (int i = 0; i < all_ops_count; i++) {
            found += file_matches(pattern, strlen(pattern), all_ops[i]->name);
            if (count < MOST_NAMES)
                names[count++] = all_ops[i]->name;
        }
        if (found)
            continue;
        const char *near = text_nearest(pattern, names, count);
        plim_status status = fail(error, PLIM_USAGE, "no op is named '%.100s'", pattern);
        return near ? hint(error, status, "%s", near) : hint(error, status, "'conv2d*'");
    }
    for (int i = 0; i < all_ops_count; i++)
        table->total += wanted(table, all_ops[i]->name);
    return PLIM_OK;
}

static plim_status check_type(struct table *table, plim_error *error)
{
    const char *wanted = table->options->type;
    for (int t = 0; wanted && t < COUNT(types); t++)
        if (strcmp(type_name(types[t]), wanted) != 0)
            table->left_out |= 1u << t;
    if (table->left_out == (1u << COUNT(types)) - 1)
        return hint(error, fail(error, PLIM_USAGE, "no kernels for '%.100s'", wanted), "float32, bfloat16 or float16");
    return PLIM_OK;
}

/* ---- lines ---- */

static void tell(struct table *table, const struct kernel_figures *line)
{
    table->totals.seconds = (double)(clock_ns() - table->begin) * 1e-9;
    table->listener(table->context, &table->totals, line);
}

/* peak: multiply-adds in registers, as they were around this line. */
static void tell_speed(struct table *table, const struct op *op, enum type type, const struct kernel_speed *speed,
                       double peak)
{
    struct kernel_totals *totals = &table->totals;
    struct kernel_figures line = {.op = op->name,
                                  .size = speed->name,
                                  .type = type_name(type),
                                  .implementation = speed->implementation,
                                  .reference = speed->implementation && speed->reference,
                                  .needed_bytes = speed->needed_bytes,
                                  .done = table->done,
                                  .total = table->total};
    totals->lines++;
    totals->references += line.reference;
    totals->skipped += !speed->implementation;
    if (speed->implementation) {
        double arithmetic = speed->operations / peak, moving = speed->bytes / totals->peak_gb_per_s;
        line.memory_bound = moving > arithmetic;
        line.peak_gflops = peak;
        line.roof = line.memory_bound ? arithmetic / moving : 1;
        line.seconds = speed->ns * 1e-9;
        line.gflops = speed->operations / speed->ns;
        line.gb_per_s = speed->bytes / speed->ns;
        line.share = (line.memory_bound ? moving : arithmetic) / speed->ns;
    }
    tell(table, &line);
}

/* One line of an op. The clock of a shared machine is not the same all the time: multiply-adds are measured before the
   line and behind it, and the better of the two counts, so that no share comes out too high. */
static plim_status bench_line(struct table *table, bool *there, const struct op *op, int number, enum type type,
                              plim_error *error)
{
    struct kernel_speed speed;
    double before = table->latest_gflops;
    TRY(kernel_speed(&speed, there, &table->bench, op, number, type, error));
    if (!*there)
        return PLIM_OK;
    double behind = cpu_backend.peak_operations(table->bench.backend);
    table->latest_gflops = behind;
    if (behind > table->totals.peak_gflops)
        table->totals.peak_gflops = behind;
    tell_speed(table, op, type, &speed, before > behind ? before : behind);
    return PLIM_OK;
}

/* A backend for each op: what its kernels hold is gone before the next. */
static plim_status bench_op(struct table *table, const struct op *op, plim_error *error)
{
    plim_status status = PLIM_OK;
    bool there = true;
    TRY(cpu_backend.open(&table->bench.backend, table->bench.budget, error));
    backend_threads(table->bench.backend, 1);
    for (int t = 0; t < COUNT(types); t++)
        for (int number = 0; !(table->left_out & 1u << t) && status == PLIM_OK && (there || number == 0); number++)
            status = bench_line(table, &there, op, number, types[t], error);
    cpu_backend.close(table->bench.backend);
    return status;
}

/* What the machine does at best: measured before every op, the best of all counts. */
static plim_status measure_peaks(struct table *table, plim_error *error)
{
    struct kernel_totals *totals = &table->totals;
    struct budget *budget = table->bench.budget;
    struct backend *backend;
    TRY(cpu_backend.open(&backend, budget, error));
    void *room = budget_take(budget, TAG_SCRATCH, PEAK_BYTES);
    plim_status status = room ? PLIM_OK : budget_refused(budget, TAG_SCRATCH, PEAK_BYTES, error);
    if (status == PLIM_OK) {
        double gflops = cpu_backend.peak_operations(backend), gb = cpu_backend.peak_bytes(backend, room, PEAK_BYTES);
        table->latest_gflops = gflops;
        totals->peak_gflops = gflops > totals->peak_gflops ? gflops : totals->peak_gflops;
        totals->peak_gb_per_s = gb > totals->peak_gb_per_s ? gb : totals->peak_gb_per_s;
        snprintf(totals->features, sizeof totals->features, "%s", cpu_backend.features(backend));
    }
    budget_give(budget, TAG_SCRATCH, room, PEAK_BYTES);
    cpu_backend.close(backend);
    return status;
}

static plim_status bench_all(struct table *table, plim_error *error)
{
    struct process_usage usage = {0};
    TRY(check_patterns(table, error));
    TRY(check_type(table, error));
    TRY(measure_peaks(table, error));
    tell(table, NULL);
    for (int i = 0; i < all_ops_count; i++) {
        if (!wanted(table, all_ops[i]->name))
            continue;
        if (table->done++)
            TRY(measure_peaks(table, error));
        TRY(bench_op(table, all_ops[i], error));
    }
    table->totals.seconds = (double)(clock_ns() - table->begin) * 1e-9;
    if (process_usage_now(&usage))
        table->totals.peak_rss_bytes = usage.peak_rss;
    return PLIM_OK;
}

/* ---- the budget ---- */

static plim_status enter_budget(struct table *table, plim_error *error)
{
    char place[256], size[16];
    const char *source;
    struct budget *budget = table->bench.budget;
    uint64_t bytes, least = PROCESS_BYTES + LEAST_ROOM;
    TRY(limits_parse(&bytes, &source, place, table->options->memory, budget, error));
    if (bytes < least) {
        text_size(size, least);
        return hint(error, fail(error, PLIM_OVER_BUDGET, "the speed table needs %s", size), "--memory %lluMiB",
                    (unsigned long long)(least >> 20));
    }
    table->totals.budget_bytes = bytes;
    table->bench.room_bytes = bytes - PROCESS_BYTES < MOST_ROOM ? bytes - PROCESS_BYTES : MOST_ROOM;
    TRY(budget_limit(budget, bytes, error));
    return budget_reserve(budget, TAG_PROCESS, PROCESS_BYTES - ((uint64_t)4 << 20), error); /* graphs are beside it */
}

plim_status kernel_table(struct kernel_totals *totals, const struct kernel_options *options, kernel_listener *listener,
                         void *context, plim_error *error)
{
    struct table table = {.options = options, .listener = listener, .context = context, .begin = clock_ns()};
    table.bench.line_ns = options->once ? 0 : LINE_NS;
    table.bench.least_runs = options->once ? 1 : options->line_runs;
    TRY(budget_make(&table.bench.budget, BUDGET_UNLIMITED, error));
    plim_status status = enter_budget(&table, error);
    if (status == PLIM_OK) {
        unsigned mode = floats_enter();
        status = bench_all(&table, error);
        floats_restore(mode);
        budget_release(table.bench.budget, TAG_PROCESS, PROCESS_BYTES - ((uint64_t)4 << 20));
    }
    budget_free(table.bench.budget);
    *totals = table.totals;
    return status;
}
