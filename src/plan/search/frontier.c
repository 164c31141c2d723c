/* frontier.c - a search for each of a row of limits, each lower than what the last search reached. Where a search fails,
   the steps become smaller. */
#include "plan/search/frontier.h"

#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/numbers/minmax.h"
#include "plan/search/drop_search.h"
#include "transform/in_place.h"
#include "transform/recompute_own.h"

#define STEPS        16 /* from the first peak to nothing */
#define MOST_HALVING 4  /* of a step */

struct points {
    struct step_model model;
    struct drop_search *search;
    struct drop_choice choice;
    struct arena *tables; /* of what stays */
};

static plim_status points_init(struct points *out, const struct program *program, struct arena *tables,
                               struct arena *work, plim_error *error)
{
    const struct phase *phase = &program->phase[PHASE_TRAIN];
    *out = (struct points){.tables = tables};
    TRY(step_model_make(&out->model, phase, work, error));
    out->choice.dropped = arena_array(work, (size_t)phase->graph->tensor_count, sizeof *out->choice.dropped);
    return out->choice.dropped ? drop_search_make(&out->search, &out->model, work, error) : arena_refused(work, error);
}

/* The choice that the search found. */
static plim_status make_point(struct frontier_point *out, const struct points *p, plim_error *error)
{
    const struct step_model *model = &p->model;
    struct frontier_point point = {.peak = p->choice.cost.peak,
                                   .relative_time = p->choice.cost.seconds / model->seconds};
    int *dropped = arena_array(p->tables, (size_t)model->drop_count, sizeof *dropped);
    if (!dropped)
        return arena_refused(p->tables, error);
    for (int d = 0; d < model->drop_count; d++)
        if (p->choice.dropped[model->drop[d].tensor])
            dropped[point.dropped_count++] = model->drop[d].tensor;
    point.dropped = dropped;
    *out = point;
    return PLIM_OK;
}

/* Points that are slower than the new one, which holds less, go. */
static plim_status add_point(struct frontier *out, const struct points *p, plim_error *error)
{
    struct frontier_point point;
    TRY(make_point(&point, p, error));
    while (out->count > 1 && out->point[out->count - 1].relative_time >= point.relative_time)
        out->count--;
    out->point[out->count++] = point;
    return PLIM_OK;
}

/* What other phases need: nothing is gained by holding less. */
static uint64_t other_phases(const struct program *program)
{
    uint64_t top = 0;
    for (int p = 0; p < PHASE_COUNT; p++)
        if (p != PHASE_TRAIN && program->phase[p].name)
            top = max_u64(top, program->phase[p].top);
    return top;
}

static plim_status find_points(struct frontier *out, struct points *p, uint64_t least, plim_error *error)
{
    uint64_t peak = out->point[0].peak, step = peak / STEPS;
    for (int halved = 0; out->count < MOST_POINTS && halved <= MOST_HALVING && peak > least;) {
        TRY(budget_go_on(p->tables->budget, error));
        drop_search_run(&p->choice, p->search, max_u64(peak > step ? peak - step : 0, least));
        if (p->choice.found) {
            peak = p->choice.cost.peak;
            TRY(add_point(out, p, error));
        } else {
            step /= 2;
            halved++;
        }
    }
    return PLIM_OK;
}

/* ---- values of named layers ---- */

bool recompute_names_layer(const char *layer, const char *node)
{
    size_t length = strlen(layer);
    return strncmp(layer, node, length) == 0 && (!node[length] || node[length] == '/');
}

static bool is_named(const struct recompute_rule *rule, const struct node *maker)
{
    for (int i = 0; i < rule->layer_count; i++)
        if (recompute_names_layer(rule->layer[i], maker->name))
            return true;
    return false;
}

/* Sets the choice. */
static void drop_layers(struct points *p, const struct recompute_rule *rule)
{
    for (int d = 0; d < p->model.drop_count; d++) {
        int tensor = p->model.drop[d].tensor;
        p->choice.dropped[tensor] = is_named(rule, p->model.graph->tensor[tensor]->producer);
    }
    p->choice.cost = step_model_try(&p->model, p->choice.dropped);
    p->choice.found = true;
}

/* ---- finding ---- */

/* Whether any value is large enough to be dropped: most small models are done here, without tables. */
static bool has_large_values(const struct phase *phase)
{
    const struct graph *graph = phase->graph;
    for (int t = 0; graph && t < graph->tensor_count; t++) {
        const struct node *maker = graph->tensor[t]->producer;
        if (maker && !maker->backward && tensor_bytes(graph->tensor[t]) >= LEAST_KEPT_BYTES &&
            phase->place[t].space == SPACE_TENSOR_ARENA)
            return true;
    }
    return false;
}

/* Whether there is nothing to choose from. */
static bool is_settled(const struct program *program, const struct recompute_rule *rule)
{
    return rule->kind == RECOMPUTE_NEVER || !has_large_values(&program->phase[PHASE_TRAIN]);
}

static plim_status find(struct frontier *out, struct points *p, const struct program *program,
                        const struct recompute_rule *rule, plim_error *error)
{
    if (!p->model.drop_count)
        return PLIM_OK;
    if (rule->kind != RECOMPUTE_LAYERS)
        return find_points(out, p, other_phases(program), error);
    drop_layers(p, rule);
    return make_point(&out->point[0], p, error);
}

plim_status frontier_find(struct frontier *out, const struct program *program, const struct recompute_rule *rule,
                          struct arena *tables, plim_error *error)
{
    struct arena work;
    struct points p;
    *out =
        (struct frontier){.count = 1, .point[0] = {.peak = program->phase[PHASE_TRAIN].max_live, .relative_time = 1}};
    if (is_settled(program, rule))
        return PLIM_OK;
    arena_init(&work, tables->budget, TAG_PLANNER);
    plim_status status = points_init(&p, program, tables, &work, error);
    if (status == PLIM_OK)
        status = find(out, &p, program, rule, error);
    arena_release(&work);
    if (status != PLIM_OVER_BUDGET || rule->kind != RECOMPUTE_AUTO)
        return status;
    out->count = 1; /* no memory to search in: there is the plan that there is */
    return PLIM_OK;
}

plim_status frontier_reach(struct frontier_point *out, const struct program *program, const struct recompute_rule *rule,
                           uint64_t limit, struct arena *tables, plim_error *error)
{
    struct arena work;
    struct points p;
    *out = (struct frontier_point){0};
    if (is_settled(program, rule))
        return PLIM_OK;
    arena_init(&work, tables->budget, TAG_PLANNER);
    plim_status status = points_init(&p, program, tables, &work, error);
    if (status == PLIM_OK && p.model.drop_count) {
        if (rule->kind == RECOMPUTE_LAYERS)
            drop_layers(&p, rule);
        else
            drop_search_run(&p.choice, p.search, limit);
        if (p.choice.found)
            status = make_point(out, &p, error);
    }
    arena_release(&work);
    return status;
}

plim_status frontier_apply(struct graph *graph, const struct frontier_point *point, plim_error *error)
{
    struct arena work;
    if (!point->dropped_count)
        return PLIM_OK;
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    bool *dropped = arena_array(&work, (size_t)graph->tensor_count, sizeof *dropped);
    for (int d = 0; dropped && d < point->dropped_count; d++)
        dropped[point->dropped[d]] = true;
    plim_status status = dropped ? rematerialize(graph, dropped, error) : arena_refused(&work, error);
    arena_release(&work);
    return status;
}
