/* frontier.h - the plans of a training step that trade time for memory, from the fastest to the smallest.

   The points are a function of the program alone, not of the budget: the fastest point that fits is taken, so more
   memory never makes a plan slower, and the last point is the smallest that works. */
#ifndef PLAN_SEARCH_FRONTIER_H
#define PLAN_SEARCH_FRONTIER_H

#include "plan/search/step_model.h"

#define MOST_POINTS 24

struct frontier_point {
    const int *dropped; /* ids of the tensors that are dropped, in the graph before rematerialize() */
    int dropped_count;
    uint64_t peak;         /* live bytes of the training step, by the model; of the first point as planned */
    double relative_time;  /* by the model; 1: the time of the first point */
    uint64_t cost;         /* of the program made of it, as struct plan has it; 0: none was made yet */
    uint64_t budget_bytes; /* the smallest budget in which it works; set by plan_decide */
};

struct frontier {
    struct frontier_point point[MOST_POINTS]; /* each is slower than the one before it, and holds less */
    int count;
};

/* Of a program that trains and drops nothing. What `out` refers to is in `tables`. Points end where another phase needs as
   much. */
plim_status frontier_find(struct frontier *out, const struct program *program, struct arena *tables, plim_error *error);
/* One search: a point that holds at most `limit` bytes; out->dropped_count is 0 if none was found. */
plim_status frontier_reach(struct frontier_point *out, const struct program *program, uint64_t limit,
                           struct arena *tables, plim_error *error);
/* Rewrites the training graph, as it was built, for the point. */
plim_status frontier_apply(struct graph *graph, const struct frontier_point *point, plim_error *error);

#endif
