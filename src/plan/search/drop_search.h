/* drop_search.h - which forward values to drop and which to spill, so that a step holds no more than a given number of
   bytes and takes as little longer as possible. */
#ifndef PLAN_SEARCH_DROP_SEARCH_H
#define PLAN_SEARCH_DROP_SEARCH_H

#include "plan/search/step_model.h"

struct drop_choice {
    struct step_choice values;
    struct step_cost cost;
    bool found;   /* cost.peak is within the limit; otherwise it is as low as the search came */
    double steps; /* entries of the model that the search visited */
};

/* Tables for the search, in `work`. */
struct drop_search;
plim_status drop_search_make(struct drop_search **out, struct step_model *model, struct arena *work, plim_error *error);
/* Tables of a choice that keeps everything. */
plim_status step_choice_make(struct step_choice *out, const struct step_model *model, struct arena *work,
                             plim_error *error);
/* How many entries of the model one search visits before it ends: linear in the model's size. The few tries that end it
   come on top. */
double drop_search_bound(const struct step_model *model);
/* Tables of out->values are the caller's, of model->graph->tensor_count entries; they are where the search begins. */
void drop_search_run(struct drop_choice *out, struct drop_search *search, uint64_t limit);
/* `effort` times as long. */
void drop_search_try(struct drop_choice *out, struct drop_search *search, uint64_t limit, double effort);

#endif
