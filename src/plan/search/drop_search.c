/* drop_search.c - a search over the step model.

   1. Patterns: among the first q values in program order all but one of m are dropped, as checkpointing by segments
      does; or all of them are spilled. The best of them is a start that single moves do not find.
   2. Moves: as long as some slot is over the limit, the value is dropped or spilled that takes off the most bytes over
      the limit for the least time; or one is kept after all, because a segment that is too long is over the limit
      itself.
   3. Pruning: what need not leave is kept again.
   4. Annealing from the best choice so far: one or two values change sides (kept, dropped, spilled with or without a
      wait). Bytes over the limit have a price that rises while the heat falls.

   Every choice that is tried counts, so the best of all is the result. Random numbers are functions of the round: the
   same model and limit give the same choice. A search visits a bounded number of the model's entries. */
#include "plan/search/drop_search.h"

#include <math.h>
#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/numbers/count.h"
#include "base/numbers/minmax.h"
#include "base/numbers/random.h"
#include "plan/search/op_time.h"

#define FEW_DROPS   512 /* values; of more, neighbours change sides in groups */
#define LEAST_STEPS 6e6 /* entries that one search may visit; of a large model LEAST_TRIES times all */
#define LEAST_TRIES 200
#define MOST_MOVES  2048

#define MOST_ROUNDS   20000 /* of annealing */
#define NEIGHBOURS    16
#define HOT           0.02 /* parts of the step's time */
#define COLD          0.0001
#define LOW_PRICE     0.3 /* parts of the step's time, for as many bytes over the limit as the limit */
#define HIGH_PRICE    30.0
#define MOVE_STREAM   1
#define ACCEPT_STREAM 2

enum side { KEPT, DROPPED, SPILLED, SPILLED_AT_ONCE, SIDES }; /* the last: the step waits for the disk */
#define MOST_GROUPS 2                                         /* that change sides at once */

struct drop_search {
    struct step_model *model;
    struct budget *budget; /* knows of a stop */
    uint64_t limit;
    struct step_choice values; /* the choice that is being changed */
    double seconds;            /* of the last try */
    double *excess;            /* by slot: sum of the bytes over the limit in all slots before it */
    int group;                 /* values that change sides together */
    enum side *saved;          /* of the groups that were changed last */
    double entries;            /* that one try visits */
    double steps, most_steps;
};

static double entries_of(const struct step_model *model)
{
    return model->repeat_count + model->value_count + model->slots;
}

double drop_search_bound(const struct step_model *model)
{
    double steps = LEAST_TRIES * entries_of(model);
    return steps > LEAST_STEPS ? steps : LEAST_STEPS;
}

plim_status step_choice_make(struct step_choice *out, const struct step_model *model, struct arena *work,
                             plim_error *error)
{
    size_t tensors = (size_t)model->graph->tensor_count;
    out->dropped = arena_array(work, tensors, sizeof *out->dropped);
    out->spilled = arena_array(work, tensors, sizeof *out->spilled);
    out->waits = arena_array(work, tensors, sizeof *out->waits);
    return out->dropped && out->spilled && out->waits ? PLIM_OK : arena_refused(work, error);
}

plim_status drop_search_make(struct drop_search **out, struct step_model *model, struct arena *work, plim_error *error)
{
    struct drop_search *search = arena_take(work, sizeof *search);
    if (!search)
        return arena_refused(work, error);
    *search = (struct drop_search){
        .model = model,
        .budget = work->budget,
        .excess = arena_array(work, (size_t)model->slots + 1, sizeof *search->excess),
        .group = 1 + model->value_count / FEW_DROPS,
        .saved = arena_array(work, MOST_GROUPS * (1 + (size_t)model->value_count / FEW_DROPS), sizeof *search->saved),
        .entries = entries_of(model),
        .most_steps = drop_search_bound(model),
    };
    if (!search->excess || !search->saved)
        return arena_refused(work, error);
    TRY(step_choice_make(&search->values, model, work, error));
    *out = search;
    return PLIM_OK;
}

static struct step_cost try_now(struct drop_search *s)
{
    s->steps += s->entries;
    struct step_cost cost = step_model_try(s->model, &s->values);
    s->seconds = cost.seconds;
    return cost;
}

/* The steps are used up, or a stop was asked for. */
static bool is_spent(const struct drop_search *s)
{
    return s->steps > s->most_steps || budget_go_on(s->budget, NULL) != PLIM_OK;
}

static void copy_choice(struct step_choice *to, const struct step_choice *from, const struct step_model *model)
{
    size_t tensors = (size_t)model->graph->tensor_count;
    memcpy(to->dropped, from->dropped, tensors * sizeof *to->dropped);
    memcpy(to->spilled, from->spilled, tensors * sizeof *to->spilled);
    memcpy(to->waits, from->waits, tensors * sizeof *to->waits);
}

/* Keeps the choice if it is better than the best so far. */
static void keep_better(struct drop_choice *out, const struct drop_search *s, struct step_cost cost)
{
    bool found = cost.peak <= s->limit;
    bool better = found ? !out->found || cost.seconds < out->cost.seconds : !out->found && cost.peak < out->cost.peak;
    if (!better)
        return;
    out->cost = cost;
    out->found = found;
    copy_choice(&out->values, &s->values, s->model);
}

static enum side side_of(const struct drop_search *s, int v)
{
    int tensor = s->model->value[v].tensor;
    if (s->values.spilled[tensor])
        return s->values.waits[tensor] ? SPILLED_AT_ONCE : SPILLED;
    return s->values.dropped[tensor] ? DROPPED : KEPT;
}

/* The other way to leave, for a value that does not have this one. */
static void set_side(struct drop_search *s, int v, enum side side)
{
    const struct releasable *value = &s->model->value[v];
    if (value->stated)
        side = !value->pages ? DROPPED : side < SPILLED ? SPILLED : side;
    if (side == DROPPED && !value->may_drop)
        side = SPILLED;
    else if (side >= SPILLED && !value->may_spill)
        side = DROPPED;
    s->values.dropped[value->tensor] = side == DROPPED;
    s->values.spilled[value->tensor] = side >= SPILLED;
    s->values.waits[value->tensor] = side == SPILLED_AT_ONCE;
}

static int group_end(const struct drop_search *s, int first)
{
    return (int)min_i64(first + s->group, s->model->value_count);
}

/* Values first..first + group - 1 of the model. */
static void set_group(struct drop_search *s, int first, enum side side)
{
    for (int v = first; v < group_end(s, first); v++) {
        s->saved[v - first] = side_of(s, v);
        set_side(s, v, side);
    }
}

/* As it was before the last set_group, which was of the same group. */
static void undo_group(struct drop_search *s, int first)
{
    for (int v = first; v < group_end(s, first); v++)
        set_side(s, v, s->saved[v - first]);
}

/* ---- patterns ---------------------------------------------------------- */

/* Among the first `count` values all but one of `segment` leave; segment 0: all do. */
struct pattern {
    enum side side;
    int segment;
};

/* What the disk has no room for stays. */
static void set_pattern(struct drop_search *s, struct pattern pattern, int count)
{
    uint64_t room = step_model_room(s->model);
    for (int v = 0; v < s->model->value_count; v++) {
        const struct releasable *value = &s->model->value[v];
        bool leaves = v < count && (!pattern.segment || v % pattern.segment != 0);
        set_side(s, v, leaves ? pattern.side : KEPT);
        if (side_of(s, v) >= SPILLED && !value->stated && value->disk_bytes > room)
            set_side(s, v, KEPT);
        room -= side_of(s, v) >= SPILLED && !value->stated ? value->disk_bytes : 0;
    }
}

/* The fewest first values whose leaving keeps the limit; all, if none does. */
static int fewest(struct drop_search *s, struct pattern pattern)
{
    int low = 0, high = s->model->value_count;
    set_pattern(s, pattern, high);
    if (try_now(s).peak > s->limit)
        return high;
    while (high - low > 1 && high - low > high / 64 && !is_spent(s)) {
        int middle = low + (high - low) / 2;
        set_pattern(s, pattern, middle);
        if (try_now(s).peak <= s->limit)
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void try_patterns(struct drop_choice *out, struct drop_search *s)
{
    static const struct pattern patterns[] = {{DROPPED, 2},  {DROPPED, 3},  {DROPPED, 4},  {DROPPED, 6},
                                              {DROPPED, 8},  {DROPPED, 12}, {DROPPED, 16}, {DROPPED, 24},
                                              {DROPPED, 32}, {DROPPED, 64}, {SPILLED, 0},  {SPILLED_AT_ONCE, 0}};
    size_t count = freedom_has_disk(&s->model->freedom) ? COUNT(patterns) : COUNT(patterns) - 2;
    for (size_t k = 0; k < count && !is_spent(s); k++) {
        set_pattern(s, patterns[k], fewest(s, patterns[k]));
        keep_better(out, s, try_now(s));
    }
}

/* ---- moves ------------------------------------------------------------- */

/* After a try: bytes over the limit, summed over slots. */
static double sum_excess(struct drop_search *s)
{
    double sum = 0;
    for (int i = 0; i < s->model->slots; i++) {
        int64_t over = s->model->live[i] - (int64_t)s->limit;
        s->excess[i] = sum;
        sum += over > 0 ? (double)over : 0;
    }
    s->excess[s->model->slots] = sum;
    return sum;
}

/* Seconds that dropping the value costs: of its node, and of those before it that would have to run with it. Follows
   one missing input of each node: an estimate, which only ranks moves. */
static double seconds_to_repeat(const struct drop_search *s, const struct releasable *value)
{
    const struct step_model *model = s->model;
    double seconds = 1e-9;
    for (int r = model->repeat_of[model->graph->tensor[value->tensor]->producer->id], depth = 0; r >= 0 && depth < 8;
         depth++) {
        const struct repeatable *repeat = &model->repeat[r];
        seconds += model->need[r] == NEVER ? repeat->seconds : 0;
        r = -1;
        for (int i = 0; i < repeat->count && r < 0; i++)
            if (!retention_has(&model->retention, s->values.dropped, model->graph->tensor[repeat->tensor[i]]))
                r = repeat->input[i];
    }
    return seconds;
}

/* Of a paged tensor: all but those of its visits. */
static double relief_of_page(const struct drop_search *s, const struct releasable *value)
{
    double over = s->excess[s->model->slots], most = (double)value->bytes * s->model->slots;
    for (int k = value->visit; k < value->visit + value->visit_count; k++) {
        const struct page_visit *visit = &s->model->visit[k];
        over -= s->excess[visit->last + 1] - s->excess[visit->first];
        most -= (double)value->bytes * (visit->last + 1 - visit->first);
    }
    return over < most ? over : most;
}

/* Bytes over the limit that go with the value. */
static double relief(const struct drop_search *s, const struct releasable *value)
{
    if (value->pages)
        return relief_of_page(s, value);
    double over = s->excess[value->read] - s->excess[value->begin];
    double most = (double)value->bytes * (value->read - value->begin);
    return over < most ? over : most;
}

/* What moving one more value would add, by the last try: more where the disk is busy all the time. */
static double seconds_to_spill(const struct drop_search *s, const struct releasable *value, double moved)
{
    double seconds = move_seconds(value->moved_bytes), way = transfer_seconds(s->model->costs, value->moved_bytes);
    return transfer_seconds(s->model->costs, (uint64_t)moved) + way > s->seconds || value->in_row ? seconds + way
                                                                                                  : seconds;
}

/* Bytes of the disk, and bytes moved in a step. */
static void sum_spilled(double *bytes, double *moved, const struct drop_search *s)
{
    *bytes = *moved = 0;
    for (int v = 0; v < s->model->value_count; v++)
        if (side_of(s, v) >= SPILLED) {
            *bytes += (double)s->model->value[v].disk_bytes;
            *moved += (double)s->model->value[v].moved_bytes;
        }
}

/* The value that takes off the most bytes a second when it leaves, and how; -1: none takes off any. */
static int best_to_leave(enum side *side, const struct drop_search *s)
{
    double best = 0, spilled, moved;
    int found = -1;
    sum_spilled(&spilled, &moved, s);
    for (int v = 0; v < s->model->value_count; v += s->group) {
        const struct releasable *value = &s->model->value[v];
        if (side_of(s, v) != KEPT)
            continue;
        double bytes = relief(s, value);
        double dropping = value->may_drop ? bytes / seconds_to_repeat(s, value) : 0;
        bool room = spilled + (double)value->disk_bytes <= (double)s->model->freedom.disk_bytes;
        double spilling = value->may_spill && room ? bytes / seconds_to_spill(s, value, moved) : 0;
        if (dropping <= best && spilling <= best)
            continue;
        best = dropping >= spilling ? dropping : spilling;
        *side = dropping >= spilling ? DROPPED : SPILLED;
        found = v;
    }
    return found;
}

/* The value whose keeping takes off the most bytes; -1: none takes off any. */
static int best_to_keep(struct drop_search *s, double excess)
{
    int found = -1;
    for (int v = 0; v < s->model->value_count && !is_spent(s); v += s->group) {
        if (side_of(s, v) == KEPT)
            continue;
        set_group(s, v, KEPT);
        try_now(s);
        double now = sum_excess(s);
        undo_group(s, v);
        if (now < excess) {
            excess = now;
            found = v;
        }
    }
    return found;
}

/* One move that makes the excess smaller. False: there is none. */
static bool move(struct drop_search *s)
{
    double excess = sum_excess(s);
    enum side side;
    int v = best_to_leave(&side, s);
    if (v >= 0) {
        set_group(s, v, side);
        try_now(s);
        if (sum_excess(s) < excess)
            return true;
        undo_group(s, v);
    }
    v = best_to_keep(s, excess);
    if (v >= 0)
        set_group(s, v, KEPT);
    try_now(s);
    return v >= 0;
}

/* Until no slot is over the limit, or no move helps. */
static bool repair(struct drop_search *s)
{
    uint64_t peak = try_now(s).peak;
    for (int moves = 0; peak > s->limit && moves < MOST_MOVES && !is_spent(s); moves++) {
        if (!move(s))
            return false;
        peak = try_now(s).peak;
    }
    return peak <= s->limit;
}

/* Keeps what need not leave: one pass from the last value. */
static void prune_choice(struct drop_search *s)
{
    double seconds = try_now(s).seconds;
    for (int v = (s->model->value_count - 1) / s->group * s->group; v >= 0 && !is_spent(s); v -= s->group) {
        if (side_of(s, v) == KEPT)
            continue;
        set_group(s, v, KEPT);
        struct step_cost kept = try_now(s);
        if (kept.peak <= s->limit && kept.seconds <= seconds)
            seconds = kept.seconds;
        else
            undo_group(s, v);
    }
}

static void improve(struct drop_choice *out, struct drop_search *s)
{
    if (repair(s))
        prune_choice(s);
    keep_better(out, s, try_now(s));
}

/* ---- annealing --------------------------------------------------------- */

/* Groups that change sides, and by how many sides each. */
struct change {
    int first[MOST_GROUPS], by[MOST_GROUPS], count;
};

/* One group, or two that are near each other. */
static struct change pick(const struct drop_search *s, int round)
{
    uint32_t random[4];
    int groups = (s->model->value_count + s->group - 1) / s->group;
    random_block(random, (uint64_t)s->model->value_count, MOVE_STREAM, (uint64_t)round);
    int first = (int)(random[0] % (uint32_t)groups), second = (first + 1 + (int)(random[1] % NEIGHBOURS)) % groups;
    return (struct change){.first = {first * s->group, second * s->group},
                           .by = {1 + (int)(random[3] % (SIDES - 1)), 1 + (int)(random[3] / SIDES % (SIDES - 1))},
                           .count = first != second && random[2] % 2 ? 2 : 1};
}

/* A tensor that is paged is never dropped: it has three sides. */
static enum side other_page_side(enum side side, int by)
{
    if (side == KEPT)
        return by % 2 ? SPILLED : SPILLED_AT_ONCE;
    return side == SPILLED && by == 1 ? SPILLED_AT_ONCE : KEPT;
}

static void change_side(struct drop_search *s, int v, int by)
{
    const struct releasable *value = &s->model->value[v];
    enum side side = side_of(s, v);
    if (!value->may_spill)
        set_side(s, v, side == KEPT ? DROPPED : KEPT);
    else if (value->pages)
        set_side(s, v, other_page_side(side, by));
    else
        set_side(s, v, (enum side)(((int)side + by) % SIDES));
}

static void change_sides(struct drop_search *s, const struct change *change)
{
    for (int k = 0; k < change->count; k++)
        for (int v = change->first[k]; v < group_end(s, change->first[k]); v++) {
            s->saved[k * s->group + v - change->first[k]] = side_of(s, v);
            change_side(s, v, change->by[k]);
        }
}

static void undo_change(struct drop_search *s, const struct change *change)
{
    for (int k = 0; k < change->count; k++)
        for (int v = change->first[k]; v < group_end(s, change->first[k]); v++)
            set_side(s, v, s->saved[k * s->group + v - change->first[k]]);
}

/* Geometric. */
static double between(double from, double to, double part)
{
    return from * pow(to / from, part);
}

/* Parts of the step's time. */
static double energy(const struct drop_search *s, struct step_cost cost, double price)
{
    double over = cost.peak > s->limit ? (double)cost.peak / ((double)s->limit + 1) - 1 : 0;
    return cost.seconds / s->model->seconds + price * over;
}

static bool is_accepted(double more, double heat, const struct drop_search *s, int round)
{
    uint32_t random[4];
    random_block(random, (uint64_t)s->model->value_count, ACCEPT_STREAM, (uint64_t)round);
    return more <= 0 || random_unit(random[0]) < exp(-more / heat);
}

static void anneal(struct drop_choice *out, struct drop_search *s)
{
    int rounds = (int)min_i64((int64_t)((s->most_steps - s->steps) / s->entries), MOST_ROUNDS);
    struct step_cost cost = try_now(s);
    for (int round = 0; round < rounds && !is_spent(s); round++) {
        double part = (double)round / rounds, price = between(LOW_PRICE, HIGH_PRICE, part);
        struct change change = pick(s, round);
        change_sides(s, &change);
        struct step_cost next = try_now(s);
        keep_better(out, s, next);
        if (is_accepted(energy(s, next, price) - energy(s, cost, price), between(HOT, COLD, part), s, round))
            cost = next;
        else
            undo_change(s, &change);
    }
}

/* ---- the search -------------------------------------------------------- */

static void start_from(struct drop_search *s, const struct step_choice *choice)
{
    copy_choice(&s->values, choice, s->model);
}

void drop_search_run(struct drop_choice *out, struct drop_search *s, uint64_t limit)
{
    drop_search_try(out, s, limit, 1);
}

void drop_search_try(struct drop_choice *out, struct drop_search *s, uint64_t limit, double effort)
{
    s->most_steps = effort * drop_search_bound(s->model);
    s->limit = limit;
    s->steps = 0;
    out->found = false;
    out->steps = 0;
    out->cost = (struct step_cost){.peak = UINT64_MAX};
    start_from(s, &out->values);
    keep_better(out, s, try_now(s));
    if (s->model->value_count == 0)
        return;
    try_patterns(out, s);
    start_from(s, &out->values);
    improve(out, s);
    set_pattern(s, (struct pattern){KEPT, 0}, 0);
    improve(out, s);
    start_from(s, &out->values);
    anneal(out, s);
    start_from(s, &out->values);
    improve(out, s);
    out->steps = s->steps;
}
