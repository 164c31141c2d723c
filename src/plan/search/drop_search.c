/* drop_search.c - a search over the step model.

   1. Patterns: among the first q values in program order all but one of m are dropped, as checkpointing by segments
      does. The best of them is a start that single moves do not find.
   2. Moves: as long as some slot is over the limit, the value is dropped that takes off the most bytes over the limit
      for the least time; or one is kept after all, because a segment that is too long is over the limit itself.
   3. Pruning: what need not be dropped is kept again.
   4. Annealing from the best choice so far: one or two values change sides. Bytes over the limit have a price that rises
      while the heat falls.

   Every choice that is tried counts, so the best of all is the result. Random numbers are functions of the round: the
   same model and limit give the same choice. A search visits a bounded number of the model's entries. */
#include "plan/search/drop_search.h"

#include <math.h>
#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/numbers/count.h"
#include "base/numbers/minmax.h"
#include "base/numbers/random.h"

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

struct drop_search {
    struct step_model *model;
    struct budget *budget; /* knows of a stop */
    uint64_t limit;
    bool *dropped;  /* by tensor id: the choice that is being changed */
    double *excess; /* by slot: sum of the bytes over the limit in all slots before it */
    int group;      /* values that change sides together */
    bool *saved;    /* of the group that set_group changed last */
    double entries; /* that one try visits */
    double steps, most_steps;
};

static double entries_of(const struct step_model *model)
{
    return model->repeat_count + model->drop_count + model->slots;
}

double drop_search_bound(const struct step_model *model)
{
    double steps = LEAST_TRIES * entries_of(model);
    return steps > LEAST_STEPS ? steps : LEAST_STEPS;
}

plim_status drop_search_make(struct drop_search **out, struct step_model *model, struct arena *work, plim_error *error)
{
    struct drop_search *search = arena_take(work, sizeof *search);
    if (!search)
        return arena_refused(work, error);
    *search = (struct drop_search){
        .model = model,
        .budget = work->budget,
        .dropped = arena_array(work, (size_t)model->graph->tensor_count, sizeof *search->dropped),
        .excess = arena_array(work, (size_t)model->slots + 1, sizeof *search->excess),
        .group = 1 + model->drop_count / FEW_DROPS,
        .saved = arena_array(work, 1 + (size_t)model->drop_count / FEW_DROPS, sizeof *search->saved),
        .entries = entries_of(model),
        .most_steps = drop_search_bound(model),
    };
    if (!search->dropped || !search->excess || !search->saved)
        return arena_refused(work, error);
    *out = search;
    return PLIM_OK;
}

static struct step_cost try_now(struct drop_search *s)
{
    s->steps += s->entries;
    return step_model_try(s->model, s->dropped);
}

/* The steps are used up, or a stop was asked for. */
static bool is_spent(const struct drop_search *s)
{
    return s->steps > s->most_steps || budget_go_on(s->budget, NULL) != PLIM_OK;
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
    memcpy(out->dropped, s->dropped, (size_t)s->model->graph->tensor_count * sizeof *out->dropped);
}

/* Values first..first + group - 1 of the model. */
static void set_group(struct drop_search *s, int first, bool dropped)
{
    int end = (int)min_i64(first + s->group, s->model->drop_count);
    for (int d = first; d < end; d++) {
        s->saved[d - first] = s->dropped[s->model->drop[d].tensor];
        s->dropped[s->model->drop[d].tensor] = dropped;
    }
}

/* As it was before the last set_group, which was of the same group. */
static void undo_group(struct drop_search *s, int first)
{
    int end = (int)min_i64(first + s->group, s->model->drop_count);
    for (int d = first; d < end; d++)
        s->dropped[s->model->drop[d].tensor] = s->saved[d - first];
}

static bool is_dropped(const struct drop_search *s, int d)
{
    return s->dropped[s->model->drop[d].tensor];
}

/* ---- patterns ---------------------------------------------------------- */

static void set_pattern(struct drop_search *s, int segment, int count)
{
    for (int d = 0; d < s->model->drop_count; d++)
        s->dropped[s->model->drop[d].tensor] = d < count && d % segment != 0;
}

/* The fewest first values whose dropping keeps the limit; all, if none does. */
static int fewest(struct drop_search *s, int segment)
{
    int low = 0, high = s->model->drop_count;
    set_pattern(s, segment, high);
    if (try_now(s).peak > s->limit)
        return high;
    while (high - low > 1 && high - low > high / 64 && !is_spent(s)) {
        int middle = low + (high - low) / 2;
        set_pattern(s, segment, middle);
        if (try_now(s).peak <= s->limit)
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void try_patterns(struct drop_choice *out, struct drop_search *s)
{
    static const int segments[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 64};
    for (size_t k = 0; k < COUNT(segments) && !is_spent(s); k++) {
        set_pattern(s, segments[k], fewest(s, segments[k]));
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

/* Seconds that dropping the value costs: of its node, and of those before it that would have to run with it. Follows one
   missing input of each node: an estimate, which only ranks moves. */
static double seconds_to_repeat(const struct drop_search *s, const struct droppable *drop)
{
    const struct step_model *model = s->model;
    double seconds = 1e-9;
    for (int r = model->repeat_of[model->graph->tensor[drop->tensor]->producer->id], depth = 0; r >= 0 && depth < 8;
         depth++) {
        const struct repeatable *repeat = &model->repeat[r];
        seconds += model->need[r] == NEVER ? repeat->seconds : 0;
        r = -1;
        for (int i = 0; i < repeat->count && r < 0; i++)
            if (!retention_has(&model->retention, s->dropped, model->graph->tensor[repeat->tensor[i]]))
                r = repeat->input[i];
    }
    return seconds;
}

/* Bytes over the limit that go with the value. */
static double relief(const struct drop_search *s, const struct droppable *drop)
{
    double over = s->excess[drop->read] - s->excess[drop->begin];
    double most = (double)drop->bytes * (drop->read - drop->begin);
    return over < most ? over : most;
}

/* The value to drop that takes off the most bytes a second; -1: none takes off any. */
static int best_to_drop(const struct drop_search *s)
{
    double best = 0;
    int found = -1;
    for (int d = 0; d < s->model->drop_count; d += s->group) {
        const struct droppable *drop = &s->model->drop[d];
        double gain = is_dropped(s, d) ? 0 : relief(s, drop) / seconds_to_repeat(s, drop);
        if (gain > best) {
            best = gain;
            found = d;
        }
    }
    return found;
}

/* The dropped value whose keeping takes off the most bytes; -1: none takes off any. */
static int best_to_keep(struct drop_search *s, double excess)
{
    int found = -1;
    for (int d = 0; d < s->model->drop_count && !is_spent(s); d += s->group) {
        if (!is_dropped(s, d))
            continue;
        set_group(s, d, false);
        try_now(s);
        double now = sum_excess(s);
        undo_group(s, d);
        if (now < excess) {
            excess = now;
            found = d;
        }
    }
    return found;
}

/* One move that makes the excess smaller. False: there is none. */
static bool move(struct drop_search *s)
{
    double excess = sum_excess(s);
    int d = best_to_drop(s);
    if (d >= 0) {
        set_group(s, d, true);
        try_now(s);
        if (sum_excess(s) < excess)
            return true;
        undo_group(s, d);
    }
    d = best_to_keep(s, excess);
    if (d >= 0)
        set_group(s, d, false);
    try_now(s);
    return d >= 0;
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

/* Keeps what need not be dropped: one pass from the last value. */
static void prune_choice(struct drop_search *s)
{
    double seconds = try_now(s).seconds;
    for (int d = (s->model->drop_count - 1) / s->group * s->group; d >= 0 && !is_spent(s); d -= s->group) {
        if (!is_dropped(s, d))
            continue;
        set_group(s, d, false);
        struct step_cost kept = try_now(s);
        if (kept.peak <= s->limit && kept.seconds <= seconds)
            seconds = kept.seconds;
        else
            undo_group(s, d);
    }
}

static void improve(struct drop_choice *out, struct drop_search *s)
{
    if (repair(s))
        prune_choice(s);
    keep_better(out, s, try_now(s));
}

/* ---- annealing --------------------------------------------------------- */

/* One value, or two that are near each other: where their groups begin. */
static int pick(int *at, const struct drop_search *s, int round)
{
    uint32_t random[4];
    int groups = (s->model->drop_count + s->group - 1) / s->group;
    random_block(random, (uint64_t)s->model->drop_count, MOVE_STREAM, (uint64_t)round);
    int first = (int)(random[0] % (uint32_t)groups), second = (first + 1 + (int)(random[1] % NEIGHBOURS)) % groups;
    at[0] = first * s->group;
    at[1] = second * s->group;
    return first != second && random[2] % 2 ? 2 : 1;
}

/* Twice is as before. */
static void change_sides(struct drop_search *s, const int *at, int count)
{
    for (int k = 0; k < count; k++)
        for (int d = at[k]; d < at[k] + s->group && d < s->model->drop_count; d++)
            s->dropped[s->model->drop[d].tensor] = !is_dropped(s, d);
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
    random_block(random, (uint64_t)s->model->drop_count, ACCEPT_STREAM, (uint64_t)round);
    return more <= 0 || random_unit(random[0]) < exp(-more / heat);
}

static void anneal(struct drop_choice *out, struct drop_search *s)
{
    int rounds = (int)min_i64((int64_t)((s->most_steps - s->steps) / s->entries), MOST_ROUNDS);
    struct step_cost cost = try_now(s);
    for (int round = 0; round < rounds && !is_spent(s); round++) {
        double part = (double)round / rounds, price = between(LOW_PRICE, HIGH_PRICE, part);
        int at[2], count = pick(at, s, round);
        change_sides(s, at, count);
        struct step_cost next = try_now(s);
        keep_better(out, s, next);
        if (is_accepted(energy(s, next, price) - energy(s, cost, price), between(HOT, COLD, part), s, round))
            cost = next;
        else
            change_sides(s, at, count);
    }
}

/* ---- the search -------------------------------------------------------- */

static void start_from(struct drop_search *s, const bool *dropped)
{
    memcpy(s->dropped, dropped, (size_t)s->model->graph->tensor_count * sizeof *dropped);
}

void drop_search_run(struct drop_choice *out, struct drop_search *s, uint64_t limit)
{
    s->limit = limit;
    s->steps = 0;
    out->found = false;
    out->steps = 0;
    out->cost = (struct step_cost){.peak = UINT64_MAX};
    start_from(s, out->dropped);
    keep_better(out, s, try_now(s));
    if (s->model->drop_count == 0)
        return;
    try_patterns(out, s);
    start_from(s, out->dropped);
    improve(out, s);
    set_pattern(s, 1, 0);
    improve(out, s);
    start_from(s, out->dropped);
    anneal(out, s);
    start_from(s, out->dropped);
    improve(out, s);
    out->steps = s->steps;
}
