/* api_program.h - a program of graphs, as plimsoll.h's calls on it share it. */
#ifndef API_API_PROGRAM_H
#define API_API_PROGRAM_H

#include "api/api_graph.h"
#include "train/trainer.h"

#define MOST_GRAPHS 2

struct plim_program {
    struct busy busy; /* a public call works on it */
    struct budget *budget;
    struct backend *backend;
    int threads;
    struct program *plan;
    struct machine machine;
    size_t own_bytes;            /* with the name of the folder */
    struct scratch_disk scratch; /* where what does not fit lies; limit_bytes 0: nothing may */
    plim_graph *graph[MOST_GRAPHS];
    int count;
    int last;       /* the graph whose results are there; -1: none */
    uint64_t bytes; /* of the budget */
};

/* api_plan.c: opens the backend and makes program->plan: the fastest that fits into the budget, or PLIM_OVER_BUDGET with
   what the smallest takes. On failure the caller releases what there is. */
plim_status api_plan_make(struct plim_program *program, plim_error *error);

#endif
