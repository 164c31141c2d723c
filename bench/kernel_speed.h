/* kernel_speed.h - how fast a backend's kernel runs an op, on one thread: lines of the speed table.

   An op has one line for each of its sizes (speed_add), or one of its stretched example. It is run in the slices
   that its chain would have, each on its own rows of the operands, or (speed.near) all on the same. */
#ifndef BENCH_KERNEL_SPEED_H
#define BENCH_KERNEL_SPEED_H

#include "backends/backend.h"
#include "examples.h"

struct speed_bench {
    struct budget *budget;
    struct backend *backend;
    uint64_t room_bytes; /* for operands, scratch and pack of a line together */
    double line_ns;      /* so long a line is run again; the least counts */
    int64_t least_runs;  /* however long they take; 0: a few */
};

struct kernel_speed {
    char name[160];             /* sizes: "resnet50 3x3/1 64 -> 64, 56", or the shapes of operands */
    const char *implementation; /* the kernel's; NULL: it was not run, for want of room */
    bool reference;             /* the plain-C specification ran: no kernel takes this op in this type and shape */
    int64_t extent, slice;
    double ns;         /* of the whole op */
    double operations; /* a multiply-add is two; elements touched where there are none */
    double bytes;      /* of all operands, those that are updated twice */
    uint64_t needed_bytes;
};

/* Line `number` of an op in a type; *there is false when it has no such line. */
plim_status kernel_speed(struct kernel_speed *out, bool *there, const struct speed_bench *bench, const struct op *op,
                         int number, enum type type, plim_error *error);
/* The same of the last node of a graph of yours. */
plim_status kernel_speed_node(struct kernel_speed *out, const struct speed_bench *bench, struct graph *graph,
                              const struct speed *line, plim_error *error);

/* speed_graph.c: the graph of a line, yours to release when *there. */
plim_status speed_graph(struct graph *graph, struct speed *line, bool *there, const struct speed_bench *bench,
                        const struct op *op, int number, enum type type, plim_error *error);
/* Values as examples.h says for this name. */
void speed_fill(void *data, const struct tensor *tensor, int64_t count);

#endif
