/* cpu_recurrent.c - recurrent cells, forward: for each step the states of all samples of the slice meet the packed
   kernel, then gates and states are made row by row. */
#include "backends/cpu/recurrent/cpu_recurrent.h"

#define STATES 3 /* arrays of states, in the order of forward_room */

/* A worker's bytes: states before this step, products of this step. */
struct forward_room {
    float *h, *c, *scaled; /* [rows, states] */
    float *sums;           /* [rows, row] */
};

static void begin_state(const struct recurrent_run *r, float *state, const float *initial)
{
    size_t bytes = (size_t)r->z.units * sizeof *state;
    for (int64_t n = 0; n < r->rows; n++)
        if (initial)
            memcpy(state + n * r->states, initial + n * r->z.units, bytes);
        else
            memset(state + n * r->states, 0, bytes);
}

/* Products of one gate, of x or of the state before. */
static void run_gate(const struct recurrent_run *r, const struct forward_room *room, int64_t gate, const float *x)
{
    int64_t units = r->z.units;
    const float *from = x ? x : room->h;
    for (int64_t n = 0; r->kept && !x && n < r->rows; n++)
        multiply_row(room->scaled + n * r->states, room->h + n * r->states, r->kept + n * r->row + gate * units, units);
    multiply_gate(r, room->sums + gate * units, r->row, r->kept && !x ? room->scaled : from, r->states, gate, false);
}

struct step_row {
    float *gates, *h, *extra; /* outputs */
    const float *z;
    float *sums, *state, *cell;
};

static struct step_row row_of(const struct recurrent_run *r, const struct forward_room *room, int64_t n, int64_t t)
{
    const struct call *call = r->call;
    int64_t at = n * r->z.steps + t;
    bool simple = r->a->kind == RECURRENT_SIMPLE;
    return (struct step_row){
        .gates = (float *)call->output[0] + at * r->z.columns,
        .h = (float *)call->output[simple ? 0 : RECURRENT_H] + at * r->z.units,
        .extra = simple ? NULL : (float *)call->output[RECURRENT_EXTRA] + at * r->z.units,
        .z = (const float *)call->input[RECURRENT_Z] + at * r->z.columns,
        .sums = room->sums + n * r->row,
        .state = room->h + n * r->states,
        .cell = room->c + n * r->states,
    };
}

static void absent_row(const struct recurrent_run *r, const struct step_row *s)
{
    size_t bytes = (size_t)r->z.units * sizeof(float);
    memset(s->gates, 0, (size_t)r->z.columns * sizeof(float));
    if (r->a->kind == RECURRENT_LSTM)
        memcpy(s->extra, s->cell, bytes);
    else if (s->extra)
        memset(s->extra, 0, bytes);
    memcpy(s->h, s->state, bytes);
}

/* The rows of all samples, once their products are there. */
INLINE void make_rows(const struct recurrent_run *r, const struct forward_room *room, int64_t t,
                      void (*make)(const struct recurrent_run *r, const struct step_row *s))
{
    for (int64_t n = 0; n < r->rows; n++) {
        struct step_row s = row_of(r, room, n, t);
        (is_there(r, n, t) ? make : absent_row)(r, &s);
    }
}

static void lstm_row(const struct recurrent_run *r, const struct step_row *s)
{
    const int64_t units = r->z.units;
    const int64_t gate = r->a->recurrent_activation;
    float *i_gate = s->gates, *f_gate = i_gate + units, *candidate = f_gate + units, *o_gate = candidate + units;
    float *cell = s->cell, *extra = s->extra, *h = s->h, *state = s->state, *rest = s->sums;
    activate_sum(gate, i_gate, s->z, s->sums, 2 * units);
    activate_sum(r->a->activation, candidate, s->z + 2 * units, s->sums + 2 * units, units);
    activate_sum(gate, o_gate, s->z + 3 * units, s->sums + 3 * units, units);
    INDEPENDENT
    for (int64_t u = 0; u < units; u++) {
        float c = madd(f_gate[u], cell[u], i_gate[u] * candidate[u]);
        cell[u] = extra[u] = c;
        rest[units + u] = 0;
    }
    activate_sum(r->a->activation, rest, cell, rest + units, units);
    INDEPENDENT
    for (int64_t u = 0; u < units; u++)
        state[u] = h[u] = o_gate[u] * rest[u];
}

static void lstm_step(const struct recurrent_run *r, const struct forward_room *room, int64_t t)
{
    for (int64_t gate = 0; gate < r->z.gates; gate++)
        run_gate(r, room, gate, NULL);
    make_rows(r, room, t, lstm_row);
}

static void simple_step(const struct recurrent_run *r, const struct forward_room *room, int64_t t)
{
    run_gate(r, room, 0, NULL);
    for (int64_t n = 0; n < r->rows; n++) {
        struct step_row s = row_of(r, room, n, t);
        if (is_there(r, n, t)) {
            activate_sum(r->a->activation, s.h, s.z, s.sums, r->z.units);
            memcpy(s.state, s.h, (size_t)r->z.units * sizeof(float));
        } else {
            memcpy(s.h, s.state, (size_t)r->z.units * sizeof(float));
        }
    }
}

/* Both rows of the bias come with the products; that of the candidate from its input is another's. */
static void add_bias(const struct recurrent_run *r, float *sums)
{
    const float *bias = r->call->input[RECURRENT_BIAS];
    if (!bias)
        return;
    const float *inner = bias + r->z.columns;
    int64_t both = 2 * r->z.units;
    INDEPENDENT
    for (int64_t j = 0; j < r->z.columns; j++)
        sums[j] += j < both ? bias[j] + inner[j] : inner[j];
}

/* Update and reset gates; where reset comes first, what the candidate's product is of. */
static void gru_gates(const struct recurrent_run *r, const struct forward_room *room, int64_t n, int64_t t)
{
    struct step_row s = row_of(r, room, n, t);
    const int64_t units = r->z.units;
    float *scaled = room->scaled + n * r->states;
    add_bias(r, s.sums);
    activate_sum(r->a->recurrent_activation, s.gates, s.z, s.sums, 2 * units);
    if (r->a->kind == RECURRENT_GRU)
        return;
    multiply_row(scaled, s.state, s.gates + units, units);
    if (r->kept)
        multiply_row(scaled, scaled, r->kept + n * r->row + 2 * units, units);
    memcpy(s.extra, scaled, (size_t)units * sizeof(float));
}

static void gru_row(const struct recurrent_run *r, const struct step_row *s)
{
    const int64_t units = r->z.units;
    const float *bias = r->call->input[RECURRENT_BIAS], *update = s->gates, *reset = s->gates + units;
    float *inner = s->sums + 2 * units, *candidate = s->gates + 2 * units, *state = s->state, *h = s->h;
    if (r->a->kind == RECURRENT_GRU) {
        memcpy(s->extra, inner, (size_t)units * sizeof(float));
        multiply_row(inner, inner, reset, units);
    }
    for (int64_t u = 0; bias && u < units; u++)
        inner[u] += bias[2 * units + u];
    activate_sum(r->a->activation, candidate, s->z + 2 * units, inner, units);
    INDEPENDENT
    for (int64_t u = 0; u < units; u++)
        state[u] = h[u] = madd(update[u], state[u] - candidate[u], candidate[u]);
}

static void gru_step(const struct recurrent_run *r, const struct forward_room *room, int64_t t)
{
    bool before = r->a->kind == RECURRENT_GRU_BEFORE;
    for (int64_t gate = 0; gate < (before ? 2 : 3); gate++)
        run_gate(r, room, gate, NULL);
    for (int64_t n = 0; n < r->rows; n++)
        if (is_there(r, n, t))
            gru_gates(r, room, n, t);
        else if (before)
            memset(room->scaled + n * r->states, 0, (size_t)r->z.units * sizeof(float));
    if (before)
        run_gate(r, room, 2, room->scaled);
    make_rows(r, room, t, gru_row);
}

RUNNER(run_recurrent)
{
    static void (*const step[RECURRENT_KINDS])(const struct recurrent_run *, const struct forward_room *,
                                               int64_t) = {simple_step, gru_step, gru_step, lstm_step};
    struct recurrent_run r = recurrent_run_of(kernel, call, RECURRENT_MASK);
    struct forward_room room;
    float **const arrays[] = {&room.h, &room.c, &room.scaled, &room.sums};
    if (r.rows == 0)
        return;
    recurrent_lay_out(&r, arrays, STATES);
    begin_state(&r, room.h, call->input[RECURRENT_H0]);
    begin_state(&r, room.c, call->input[RECURRENT_C0]);
    for (int64_t n = 0; r.kept && n < r.rows; n++)
        draw_recurrent(r.kept + n * r.row, r.a, r.z.columns, call->input[RECURRENT_ITERATION], call->begin + n);
    for (int64_t i = 0; i < r.z.steps; i++)
        step[r.a->kind](&r, &room, recurrent_step(r.a, r.z.steps, i));
}

/* Gate by gate: columns of the kernel as panels. */
PACKER(pack_gates)
{
    recurrent_pack(pack, whole, unit, RECURRENT_KERNEL, recurrent_sizes(whole->node).columns, 1);
}

MAKER(make_recurrent)
{
    return recurrent_make(out, request, STATES, pack_gates);
}
