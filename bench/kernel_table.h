/* kernel_table.h - the speed table: which kernel runs each op, and how fast. */
#ifndef BENCH_KERNEL_TABLE_H
#define BENCH_KERNEL_TABLE_H

#include "plimsoll.h"

/* One line of the speed table: an op in one size, on one thread. */
struct kernel_figures {
    const char *op;             /* "conv2d_weight_gradient" */
    const char *size;           /* "resnet50 3x3/1 64 -> 64, 56", or the shapes of its operands */
    const char *type;           /* "float32" */
    const char *implementation; /* "own avx512", "onednn jit:avx512_core"; NULL: it needs more room than there is */
    bool reference;             /* no kernel takes it: the slow plain-C specification ran */
    bool memory_bound;          /* at the machine's best, moving its bytes would take longer than its arithmetic */
    double seconds, gflops, gb_per_s; /* a multiply-add is two operations */
    double share;                     /* of the peak that binds it: 1 is all that the machine has */
    double peak_gflops;               /* multiply-adds in registers, measured around this line */
    double roof;           /* the share of peak_gflops that moving its bytes once leaves: 1 when not bound by memory */
    uint64_t needed_bytes; /* for its operands */
    uint64_t done, total;  /* ops so far, this one among them, and of how many */
};

/* What the machine does at best, on one thread: a loop of multiply-adds in registers, one through memory (the best of
   those measured so far); and how it went. */
struct kernel_totals {
    char features[32]; /* instruction set: "avx512" */
    double peak_gflops, peak_gb_per_s;
    int64_t lines, references, skipped;
    double seconds;
    uint64_t budget_bytes, peak_rss_bytes;
};

struct kernel_options {
    const char *memory;          /* "200MiB", "80%", "auto"; NULL: auto */
    const char *const *patterns; /* names of ops with * and ?; none: all */
    size_t pattern_count;
    int64_t line_runs; /* of a line, at least; 0: 5. More where others share the machine: the best counts */
    bool once;         /* of every line one run of its first slices: which kernels there are, not how fast */
    const char *type;  /* "float32", "bfloat16", "float16" alone; NULL: all three */
};

/* Called with peaks alone (line NULL), then for each line. */
typedef void kernel_listener(void *context, const struct kernel_totals *so_far, const struct kernel_figures *line);

/* Runs the kernels of every op (or of those that a pattern names) and says which kernel ran and how fast. */
plim_status kernel_table(struct kernel_totals *totals, const struct kernel_options *options, kernel_listener *listener,
                         void *context, plim_error *error);

#endif
