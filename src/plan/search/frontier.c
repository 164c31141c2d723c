/* frontier.c - a search for each of a row of limits, each lower than what the last search reached. Where a search
   fails, the steps become smaller. */
#include "plan/search/frontier.h"

#include <math.h>
#include <stdlib.h>
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

/* Of RECOMPUTE_LAYERS: all values of the layers are dropped in any case, and no others. */
static plim_status state_layers(struct step_model *model, const struct recompute_rule *rule, struct budget *budget,
                                plim_error *error)
{
    for (int v = 0; v < model->value_count && rule->kind == RECOMPUTE_LAYERS; v++) {
        struct releasable *value = &model->value[v];
        TRY(budget_go_on(budget, error)); /* there may be as many names as values */
        value->may_drop = value->may_drop && is_named(rule, model->graph->tensor[value->tensor]->producer);
        value->stated |= value->may_drop;
    }
    return PLIM_OK;
}

static plim_status points_init(struct points *out, const struct program *program, const struct technique_rules *rules,
                               struct step_freedom freedom, struct arena *tables, struct arena *work, plim_error *error)
{
    *out = (struct points){.tables = tables};
    TRY(step_model_make(&out->model, program, freedom, work, error));
    TRY(state_layers(&out->model, &rules->recompute, tables->budget, error));
    TRY(step_choice_make(&out->choice.values, &out->model, work, error));
    for (int v = 0; v < out->model.value_count; v++) { /* what is stated is in every choice */
        const struct releasable *value = &out->model.value[v];
        out->choice.values.spilled[value->tensor] = value->stated && value->pages;
        out->choice.values.dropped[value->tensor] = value->stated && !value->pages;
    }
    return drop_search_make(&out->search, &out->model, work, error);
}

static plim_status list_dropped(struct frontier_point *out, const struct points *p, plim_error *error)
{
    const struct step_model *model = &p->model;
    int *list = arena_array(p->tables, (size_t)model->value_count, sizeof *list);
    if (!list)
        return arena_refused(p->tables, error);
    for (int v = 0; v < model->value_count; v++)
        if (p->choice.values.dropped[model->value[v].tensor])
            list[out->dropped_count++] = model->value[v].tensor;
    out->dropped = list;
    return PLIM_OK;
}

static plim_status list_spilled(struct frontier_point *out, const struct points *p, plim_error *error)
{
    const struct step_model *model = &p->model;
    const struct step_choice *values = &p->choice.values;
    struct spilled *list = arena_array(p->tables, (size_t)model->value_count, sizeof *list);
    if (!list)
        return arena_refused(p->tables, error);
    for (int v = 0; v < model->value_count; v++) {
        int tensor = model->value[v].tensor;
        if (values->spilled[tensor])
            list[out->spilled_count++] = (struct spilled){tensor, values->waits[tensor]};
    }
    out->spilled = list;
    return PLIM_OK;
}

/* The choice that the search found. */
static plim_status make_point(struct frontier_point *out, const struct points *p, plim_error *error)
{
    struct frontier_point point = {.peak = p->choice.cost.peak,
                                   .relative_time = p->choice.cost.seconds / p->model.seconds};
    TRY(list_dropped(&point, p, error));
    TRY(list_spilled(&point, p, error));
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
static uint64_t other_phases(const struct step_model *model)
{
    uint64_t pageable = step_model_pageable(model);
    return model->other_bytes > pageable ? model->other_bytes - pageable : 0;
}

#define STEEP  1.05 /* a point takes so many times as long as the one before: a longer search may find a better one */
#define EFFORT 4

static void search_limit(struct points *p, uint64_t limit, double time_before)
{
    drop_search_run(&p->choice, p->search, limit);
    if (p->choice.found && p->choice.cost.seconds > STEEP * time_before * p->model.seconds)
        drop_search_try(&p->choice, p->search, limit, EFFORT);
}

static plim_status find_points(struct frontier *out, struct points *p, uint64_t least, plim_error *error)
{
    uint64_t peak = out->point[0].peak, step = peak / STEPS;
    for (int halved = 0; out->count < MOST_FOUND && halved <= MOST_HALVING && peak > least;) {
        TRY(budget_go_on(p->tables->budget, error));
        search_limit(p, max_u64(peak > step ? peak - step : 0, least), out->point[out->count - 1].relative_time);
        if (p->choice.found) {
            peak = p->choice.cost.peak;
            TRY(add_point(out, p, error));
        } else {
            step /= 2;
            halved++;
        }
    }
    out->point[out->count - 1].ends_search = true;
    return PLIM_OK;
}

/* ---- what is stated ---- */

/* What is paged in any case may be more than the disk has room for. */
static plim_status check_room(const struct points *p, plim_error *error)
{
    char room[16];
    if (p->choice.cost.peak < UINT64_MAX)
        return PLIM_OK;
    text_size(room, p->model.freedom.disk_bytes);
    return hint(
        error, fail(error, PLIM_OVER_DISK, "plan: {page: ...}: what is paged passes %s, half of the disk's room", room),
        "--disk allows more; --scratch names another folder");
}

/* All that stays, as far as the disk has room, whatever the time that takes. */
static void spill_rest(struct points *p)
{
    uint64_t room = step_model_room(&p->model);
    for (int v = 0; v < p->model.value_count; v++) {
        const struct releasable *value = &p->model.value[v];
        if (value->pages)
            continue;
        bool spills = value->may_spill && !p->choice.values.dropped[value->tensor] && value->disk_bytes <= room;
        p->choice.values.spilled[value->tensor] = p->choice.values.waits[value->tensor] = spills;
        room -= spills ? value->disk_bytes : 0;
    }
}

/* ---- finding ---- */

static struct step_freedom freedom_of(const struct technique_rules *rules)
{
    const struct page_rule *page = &rules->page;
    return (struct step_freedom){.may_drop = rules->recompute.kind != RECOMPUTE_NEVER,
                                 .may_spill = rules->spill != SPILL_NEVER,
                                 .may_page = {page->kind == PAGE_AUTO || page->stated[PAGE_WEIGHTS],
                                              page->kind == PAGE_AUTO || page->stated[PAGE_STATES]},
                                 .pages = {page->stated[PAGE_WEIGHTS], page->stated[PAGE_STATES]},
                                 .disk_bytes = rules->disk_bytes};
}

/* Whether any tensor is large enough: most small models are done here, without tables. */
static bool has_large(const struct phase *phase, bool pages)
{
    const struct graph *graph = phase->graph;
    for (int t = 0; graph && t < graph->tensor_count; t++) {
        const struct tensor *tensor = graph->tensor[t];
        bool lasts = tensor->kind == KIND_WEIGHT || tensor->kind == KIND_STATE;
        bool forward = tensor->producer && !tensor->producer->backward;
        if (((pages && lasts) || forward) && tensor_bytes(tensor) >= LEAST_KEPT_BYTES &&
            phase->place[t].space == SPACE_TENSOR_ARENA)
            return true;
    }
    return false;
}

/* Whether there is nothing to choose from. */
static bool is_settled(const struct program *program, const struct technique_rules *rules)
{
    struct step_freedom freedom = freedom_of(rules);
    bool pages = freedom.disk_bytes && (freedom.may_page[PAGE_WEIGHTS] || freedom.may_page[PAGE_STATES]);
    return (!freedom.may_drop && !freedom_has_disk(&freedom)) || !has_large(&program->phase[PHASE_TRAIN], pages);
}

/* What is stated for any budget as a whole: what is not dropped is spilled. */
static bool is_stated(const struct technique_rules *rules)
{
    return rules->spill == SPILL_ALWAYS;
}

/* The one point of such rules. What is not named to be dropped is not dropped, but of RECOMPUTE_ALWAYS what `smallest`
   drops. */
static plim_status state_point(struct frontier_point *out, struct points *p, const struct technique_rules *rules,
                               const struct frontier_point *smallest, plim_error *error)
{
    struct step_choice *values = &p->choice.values;
    for (int d = 0; d < smallest->dropped_count; d++)
        values->dropped[smallest->dropped[d]] = true;
    if (rules->spill == SPILL_ALWAYS)
        spill_rest(p);
    p->choice.cost = step_model_try(&p->model, values);
    p->choice.found = true;
    TRY(check_room(p, error));
    return make_point(out, p, error);
}

/* As the program is. */
static struct frontier_point as_it_is(const struct program *program)
{
    return (struct frontier_point){.peak = program->persistent_bytes + program->phase[PHASE_TRAIN].max_live,
                                   .relative_time = 1};
}

static plim_status search_from_here(struct frontier *out, struct points *p, plim_error *error)
{
    p->choice.cost = step_model_try(&p->model, &p->choice.values);
    TRY(check_room(p, error));
    TRY(make_point(&out->point[0], p, error)); /* changes nothing but what is paged in any case */
    return find_points(out, p, other_phases(&p->model), error);
}

/* From the program as it is to the least that this freedom reaches. */
static plim_status search(struct frontier *out, const struct program *program, const struct technique_rules *rules,
                          struct step_freedom freedom, struct arena *tables, plim_error *error)
{
    struct arena work;
    struct points p;
    *out = (struct frontier){.count = 1, .point[0] = as_it_is(program)};
    if (!freedom.may_drop && !freedom_has_disk(&freedom))
        return PLIM_OK;
    arena_init(&work, tables->budget, TAG_PLANNER);
    plim_status status = points_init(&p, program, rules, freedom, tables, &work, error);
    if (status == PLIM_OK && p.model.value_count)
        status = search_from_here(out, &p, error);
    arena_release(&work);
    return status;
}

static int by_peak(const void *left, const void *right)
{
    const struct frontier_point *a = left, *b = right;
    if (a->peak != b->peak)
        return a->peak > b->peak ? -1 : 1;
    return a->relative_time > b->relative_time ? -1 : a->relative_time < b->relative_time;
}

/* Adds the points of `other` and takes away those that are beaten: others hold no more and are as fast. */
static void merge(struct frontier *to, const struct frontier *other)
{
    double fastest = HUGE_VAL;
    int kept = MOST_POINTS;
    memcpy(&to->point[to->count], &other->point[1], (size_t)(other->count - 1) * sizeof *to->point);
    to->count += other->count - 1; /* both begin with the program as it is */
    qsort(to->point, (size_t)to->count, sizeof *to->point, by_peak);
    for (int k = to->count - 1; k >= 0; k--)
        if (to->point[k].relative_time < fastest) {
            fastest = to->point[k].relative_time;
            to->point[--kept] = to->point[k]; /* k is below `kept`: nothing is lost */
        }
    to->count = MOST_POINTS - kept;
    memmove(to->point, &to->point[kept], (size_t)to->count * sizeof *to->point);
}

/* Where the disk may be used, points that do without it are points, too: it never makes a plan slower. Of
   RECOMPUTE_ALWAYS the smallest program is meant that dropping makes. */
static plim_status search_all(struct frontier *out, const struct program *program, const struct technique_rules *rules,
                              struct arena *tables, plim_error *error)
{
    struct step_freedom freedom = freedom_of(rules), dropping = freedom;
    struct frontier spilling;
    dropping.may_spill = false;
    for (int k = PAGE_WEIGHTS; k <= PAGE_STATES; k++)
        dropping.may_page[k] = freedom.pages[k];
    TRY(search(out, program, rules, dropping, tables, error));
    if (!freedom_has_disk(&freedom) || rules->recompute.kind == RECOMPUTE_ALWAYS)
        return PLIM_OK;
    TRY(search(&spilling, program, rules, freedom, tables, error));
    merge(out, &spilling);
    return PLIM_OK;
}

static plim_status find_stated(struct frontier *out, const struct program *program, const struct technique_rules *rules,
                               struct arena *tables, plim_error *error)
{
    struct arena work;
    struct points p;
    struct frontier_point smallest = {0};
    if (rules->recompute.kind == RECOMPUTE_ALWAYS) {
        TRY(search_all(out, program, rules, tables, error));
        smallest = out->point[out->count - 1];
    }
    arena_init(&work, tables->budget, TAG_PLANNER);
    plim_status status = points_init(&p, program, rules, freedom_of(rules), tables, &work, error);
    out->count = 1;
    if (status == PLIM_OK && p.model.value_count)
        status = state_point(&out->point[0], &p, rules, &smallest, error);
    arena_release(&work);
    return status;
}

plim_status frontier_find(struct frontier *out, const struct program *program, const struct technique_rules *rules,
                          struct arena *tables, plim_error *error)
{
    *out = (struct frontier){.count = 1, .point[0] = as_it_is(program)};
    if (is_settled(program, rules))
        return PLIM_OK;
    if (is_stated(rules))
        return find_stated(out, program, rules, tables, error);
    plim_status status = search_all(out, program, rules, tables, error);
    if (status != PLIM_OVER_BUDGET || rules->recompute.kind == RECOMPUTE_ALWAYS)
        return status;
    out->count = 1; /* no memory to search in: there is the plan that there is */
    return PLIM_OK;
}

static void choose_point(struct step_choice *values, const struct step_model *model, const struct frontier_point *point)
{
    size_t tensors = (size_t)model->graph->tensor_count;
    memset(values->dropped, 0, tensors * sizeof *values->dropped);
    memset(values->spilled, 0, tensors * sizeof *values->spilled);
    memset(values->waits, 0, tensors * sizeof *values->waits);
    for (int d = 0; d < point->dropped_count; d++)
        values->dropped[point->dropped[d]] = true;
    for (int s = 0; s < point->spilled_count; s++) {
        values->spilled[point->spilled[s].tensor] = true;
        values->waits[point->spilled[s].tensor] = point->spilled[s].waits;
    }
}

/* Takes away points that are slower than a smaller one. */
static void prune_points(struct frontier *frontier)
{
    int last = frontier->count - 1, kept = last;
    double fastest = frontier->point[last].relative_time;
    for (int k = last - 1; k >= 0; k--)
        if (k == 0 || frontier->point[k].relative_time < fastest) {
            fastest = frontier->point[k].relative_time;
            frontier->point[--kept] = frontier->point[k]; /* k is at most `kept`: nothing is lost */
        }
    frontier->count -= kept;
    memmove(frontier->point, &frontier->point[kept], (size_t)frontier->count * sizeof *frontier->point);
}

/* NEEDSWORK: on a disk that is much slower than the nominal one, points without it are missing: the search has left them
   out as slower. */
plim_status frontier_retime(struct frontier *frontier, const struct program *program,
                            const struct technique_rules *rules, const struct op_costs *costs, plim_error *error)
{
    struct arena work;
    struct points p;
    struct step_freedom freedom = freedom_of(rules);
    freedom.costs = costs;
    arena_init(&work, program->arena.budget, TAG_PLANNER);
    plim_status status = points_init(&p, program, rules, freedom, &work, &work, error);
    for (int k = 1; k < frontier->count && status == PLIM_OK; k++) {
        choose_point(&p.choice.values, &p.model, &frontier->point[k]);
        frontier->point[k].relative_time = step_model_try(&p.model, &p.choice.values).seconds / p.model.seconds;
    }
    arena_release(&work);
    if (status == PLIM_OK)
        prune_points(frontier);
    return status;
}

plim_status frontier_reach(struct frontier_point *out, const struct program *program,
                           const struct technique_rules *rules, uint64_t limit, struct arena *tables, plim_error *error)
{
    struct arena work;
    struct points p;
    *out = (struct frontier_point){0};
    if (is_settled(program, rules))
        return PLIM_OK;
    arena_init(&work, tables->budget, TAG_PLANNER);
    plim_status status = points_init(&p, program, rules, freedom_of(rules), tables, &work, error);
    if (status == PLIM_OK && p.model.value_count && is_stated(rules)) {
        status = state_point(out, &p, rules, &(struct frontier_point){0}, error);
    } else if (status == PLIM_OK && p.model.value_count) {
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
