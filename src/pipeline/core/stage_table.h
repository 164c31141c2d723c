/* stage_table.h - a pipeline stage by stage: bytes, elements, time. For refusals that name each stage's part, and for
   `plim data explain`. */
#ifndef PIPELINE_CORE_STAGE_TABLE_H
#define PIPELINE_CORE_STAGE_TABLE_H

#include "pipeline/core/dataset.h"

#define MOST_STAGE_LINES 160

struct stage_line {
    const struct dataset *node;
    int depth;      /* 0: the chain itself; 1: what joins it, and so on */
    uint64_t bytes; /* granted to it */
    uint64_t busy_ns, elements;
    bool alone; /* on one thread at a time; others are shared by all */
};

struct stage_table {
    int count;
    struct stage_line line[MOST_STAGE_LINES]; /* inputs first */
};

/* Every stage, with its part of dataset_cost: the bytes of all lines are its sum. */
void stage_table_fill(struct stage_table *out, const struct dataset *dataset, struct grant grant);
/* Adds what was measured. */
void stage_table_time(struct stage_table *table, struct iterator *iterator);
/* "shuffle", "map cast", "npy". */
void stage_line_name(char out[96], const struct stage_line *line);
/* "npy 64.0 KiB, batch 1.2 MiB": lines that take something, as far as they fit. */
void stage_table_bytes(char *out, size_t capacity, const struct stage_table *table);
/* The line that takes the most time in a run with so many threads (workers and the caller), or NULL. */
const struct stage_line *stage_table_bottleneck(const struct stage_table *table, int threads);

#endif
