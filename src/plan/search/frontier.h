/* frontier.h - the plans of a training step that trade time for memory, from the fastest to the smallest.

   The points are a function of the program alone, not of the budget: the fastest point that fits is taken, so more
   memory never makes a plan slower, and the last point is the smallest that works. */
#ifndef PLAN_SEARCH_FRONTIER_H
#define PLAN_SEARCH_FRONTIER_H

#include "plan/search/step_model.h"

#define MOST_FOUND  24               /* points of one search */
#define MOST_POINTS (2 * MOST_FOUND) /* without the disk, and with it */

#define MODEL_SLACK 0.12 /* the model knows packing, slice buffers and what chains take in only roughly */

/* Which values may be dropped: a choice of the user's. */
enum recompute {
    RECOMPUTE_AUTO,   /* any; as few as the budget demands */
    RECOMPUTE_NEVER,  /* none */
    RECOMPUTE_ALWAYS, /* any; as many as make the smallest plan, in any budget */
    RECOMPUTE_LAYERS, /* those of some layers, in any budget, and no others */
};
struct recompute_rule {
    enum recompute kind;
    const char *const *layer; /* names of layers; a name stands for all layers inside of it too */
    int layer_count;
};
/* Whether values may lie on the disk between two uses. */
enum spill {
    SPILL_AUTO, /* where that is faster than computing them again */
    SPILL_NEVER,
    SPILL_ALWAYS, /* all that are not dropped, in any budget */
};
/* Whether weights and states of the optimizer may lie on the disk but for their uses. */
enum page {
    PAGE_AUTO, /* as few as the budget demands */
    PAGE_NEVER,
    PAGE_STATED, /* those kinds, in any budget, and no others */
};
struct page_rule {
    enum page kind;
    bool stated[2]; /* PAGE_WEIGHTS, PAGE_STATES */
};
struct technique_rules {
    struct recompute_rule recompute;
    enum spill spill;
    struct page_rule page;
    uint64_t disk_bytes; /* room for what is spilled or paged; 0: nothing is */
};
/* Whether a node of this name belongs to the layer. */
bool recompute_names_layer(const char *layer, const char *node);

struct frontier_point {
    const int *dropped; /* ids of the tensors that are dropped, in the graph before rematerialize() */
    int dropped_count;
    const struct spilled *spilled; /* for struct program_input */
    int spilled_count;
    uint64_t peak;         /* live bytes of the training step, by the model, weights and states included */
    double relative_time;  /* by the model; 1: the time of the first point */
    bool ends_search;      /* the last one that a search found */
    uint64_t cost;         /* of the program made of it, as struct plan has it; 0: none was made yet */
    uint64_t process;      /* bytes of the process itself with that program; kernels of a library are among them */
    uint64_t budget_bytes; /* the smallest budget in which it works; set by plan_decide */
};

struct frontier {
    struct frontier_point point[MOST_POINTS]; /* each is slower than the one before it, and holds less */
    int count;
};

/* Of a program that trains, drops nothing and spills nothing. What `out` refers to is in `tables`. Points end where
   another phase needs as much. Of RECOMPUTE_ALWAYS only the last point is meant for a run; of LAYERS, of SPILL_ALWAYS
   and where nothing is allowed there is one. */
plim_status frontier_find(struct frontier *out, const struct program *program, const struct technique_rules *rules,
                          struct arena *tables, plim_error *error);
/* Times of the points by what an earlier run took; which points there are does not depend on that, but for those that
   turn out to be slower than a smaller one: they go. `program` is that of the first point, which changes nothing; the
   first and the last stay. */
plim_status frontier_retime(struct frontier *frontier, const struct program *program,
                            const struct technique_rules *rules, const struct op_costs *costs, plim_error *error);
/* One search: a point that holds at most `limit` bytes, or that of the rules; a point that changes nothing if none was
   found. */
plim_status frontier_reach(struct frontier_point *out, const struct program *program,
                           const struct technique_rules *rules, uint64_t limit, struct arena *tables,
                           plim_error *error);
/* Whether the program of the point is not the one that was searched. */
static inline bool frontier_point_changes(const struct frontier_point *point)
{
    return point->dropped_count || point->spilled_count;
}
/* Rewrites the training graph, as it was built, for the point. */
plim_status frontier_apply(struct graph *graph, const struct frontier_point *point, plim_error *error);

#endif
