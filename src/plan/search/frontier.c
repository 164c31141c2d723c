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

static plim_status points_init(struct points *out, const struct program *program, const struct technique_rules *rules,
                               struct arena *tables, struct arena *work, plim_error *error)
{
    const struct step_freedom freedom = {.may_drop = rules->recompute.kind != RECOMPUTE_NEVER,
                                         .spill_bytes = rules->spill == SPILL_NEVER ? 0 : rules->disk_bytes};
    *out = (struct points){.tables = tables};
    TRY(step_model_make(&out->model, &program->phase[PHASE_TRAIN], freedom, work, error));
    TRY(step_choice_make(&out->choice.values, &out->model, work, error));
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

/* All values of the layers, and no others. */
static void drop_layers(struct points *p, const struct recompute_rule *rule)
{
    for (int v = 0; v < p->model.value_count; v++) {
        const struct releasable *value = &p->model.value[v];
        p->choice.values.dropped[value->tensor] =
            value->may_drop && is_named(rule, p->model.graph->tensor[value->tensor]->producer);
    }
}

/* All that stays, as far as the disk has room, whatever the time that takes. */
static void spill_rest(struct points *p)
{
    uint64_t room = p->model.freedom.spill_bytes;
    for (int v = 0; v < p->model.value_count; v++) {
        const struct releasable *value = &p->model.value[v];
        bool spills = value->may_spill && !p->choice.values.dropped[value->tensor] && value->bytes <= room;
        p->choice.values.spilled[value->tensor] = p->choice.values.waits[value->tensor] = spills;
        room -= spills ? value->bytes : 0;
    }
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
static bool is_settled(const struct program *program, const struct technique_rules *rules)
{
    bool spills = rules->spill != SPILL_NEVER && rules->disk_bytes;
    return (rules->recompute.kind == RECOMPUTE_NEVER && !spills) || !has_large_values(&program->phase[PHASE_TRAIN]);
}

/* What is stated for any budget: values of layers are dropped, all others are spilled. */
static bool is_stated(const struct technique_rules *rules)
{
    return rules->recompute.kind == RECOMPUTE_LAYERS || rules->spill == SPILL_ALWAYS;
}

/* The one point of such rules. With SPILL_ALWAYS what is not named to be dropped is not dropped; with RECOMPUTE_ALWAYS, what
   `smallest` drops is. */
static plim_status state_point(struct frontier_point *out, struct points *p, const struct technique_rules *rules,
                               const struct frontier_point *smallest, plim_error *error)
{
    struct step_choice *values = &p->choice.values;
    memset(values->dropped, 0, (size_t)p->model.graph->tensor_count * sizeof *values->dropped);
    memset(values->spilled, 0, (size_t)p->model.graph->tensor_count * sizeof *values->spilled);
    memset(values->waits, 0, (size_t)p->model.graph->tensor_count * sizeof *values->waits);
    if (rules->recompute.kind == RECOMPUTE_LAYERS)
        drop_layers(p, &rules->recompute);
    for (int d = 0; smallest && d < smallest->dropped_count; d++)
        values->dropped[smallest->dropped[d]] = true;
    if (rules->spill == SPILL_ALWAYS)
        spill_rest(p);
    p->choice.cost = step_model_try(&p->model, values);
    p->choice.found = true;
    return make_point(out, p, error);
}

static plim_status find(struct frontier *out, struct points *p, const struct program *program,
                        const struct technique_rules *rules, plim_error *error)
{
    if (!p->model.value_count)
        return PLIM_OK;
    bool always = rules->recompute.kind == RECOMPUTE_ALWAYS;
    if (!is_stated(rules) || always)
        TRY(find_points(out, p, other_phases(program), error));
    if (!is_stated(rules))
        return PLIM_OK;
    struct frontier_point smallest = out->point[out->count - 1];
    out->count = 1;
    return state_point(&out->point[0], p, rules, always ? &smallest : NULL, error);
}

plim_status frontier_find(struct frontier *out, const struct program *program, const struct technique_rules *rules,
                          struct arena *tables, plim_error *error)
{
    struct arena work;
    struct points p;
    *out =
        (struct frontier){.count = 1, .point[0] = {.peak = program->phase[PHASE_TRAIN].max_live, .relative_time = 1}};
    if (is_settled(program, rules))
        return PLIM_OK;
    arena_init(&work, tables->budget, TAG_PLANNER);
    plim_status status = points_init(&p, program, rules, tables, &work, error);
    if (status == PLIM_OK)
        status = find(out, &p, program, rules, error);
    arena_release(&work);
    if (status != PLIM_OVER_BUDGET || is_stated(rules) || rules->recompute.kind == RECOMPUTE_ALWAYS)
        return status;
    out->count = 1; /* no memory to search in: there is the plan that there is */
    return PLIM_OK;
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
    plim_status status = points_init(&p, program, rules, tables, &work, error);
    if (status == PLIM_OK && p.model.value_count && is_stated(rules)) {
        status = state_point(out, &p, rules, NULL, error);
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
