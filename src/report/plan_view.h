/* plan_view.h - a plan as people look at it: what lies in memory during a training step, what was let go and why, and
   what other budgets would cost.

   The text and the page need a plan whose program is there. They read it, and change nothing. */
#ifndef REPORT_PLAN_VIEW_H
#define REPORT_PLAN_VIEW_H

#include "plan/planner.h"

/* For a terminal. */
void plan_view_text(struct text *out, const struct plan *plan);
/* Budgets against time, as an SVG file; `title` is any text. */
plim_status plan_view_plot(const char *path, const struct plan *plan, const char *title, plim_error *error);
/* One HTML file that loads nothing else: the memory of the training step by tag and by value. */
plim_status plan_view_page(const char *path, const struct plan *plan, const char *title, plim_error *error);

#endif
