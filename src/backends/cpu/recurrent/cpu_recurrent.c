/* cpu_recurrent.c - recurrent cells, forward: for each step the states of all samples of the slice meet the packed
   kernel, then gates and states are made row by row. */
#include "backends/cpu/recurrent/cpu_recurrent.h"

/* A worker's bytes: states before this step, products of this step. */
struct forward_room {
    float *h, *c, *scaled; /* [rows, states] */
    float *sums;           /* [rows, row] */
};

static int64_t room_floats(const struct recurrent_sizes *z, int64_t rows, bool dropout)
{
    return rows * (3 * padded_row(z->units) + padded_row(z->columns) * (dropout ? 2 : 1));
}

static void lay_out(struct forward_room *room, struct recurrent_run *r, int64_t rows)
{
    float *at = r->call->scratch;
    room->h = at;
    room->c = at += rows * r->states;
    room->scaled = at += rows * r->states;
    room->sums = at += rows * r->states;
    r->kept = r->a->dropout > 0 ? at + rows * r->row : NULL;
}

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
    for (int64_t n = 0; n < r->rows; n++) {
        struct step_row s = row_of(r, room, n, t);
        if (is_there(r, n, t))
            lstm_row(r, &s);
        else
            absent_row(r, &s);
    }
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
    for (int64_t n = 0; n < r->rows; n++) {
        struct step_row s = row_of(r, room, n, t);
        if (is_there(r, n, t))
            gru_row(r, &s);
        else
            absent_row(r, &s);
    }
}

RUNNER(run_recurrent)
{
    static void (*const step[RECURRENT_KINDS])(const struct recurrent_run *, const struct forward_room *,
                                               int64_t) = {simple_step, gru_step, gru_step, lstm_step};
    struct recurrent_run r = {.call = call,
                              .a = call->node->attributes,
                              .z = recurrent_sizes(call->node),
                              .rows = cpu_rows(kernel, call),
                              .mask = call->input[RECURRENT_MASK]};
    struct forward_room room;
    r.row = padded_row(r.z.columns);
    r.states = padded_row(r.z.units);
    if (r.rows == 0)
        return;
    lay_out(&room, &r, r.rows);
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
    struct recurrent_sizes z = recurrent_sizes(whole->node);
    const struct gemm g = {.n = z.units,
                           .k = z.units,
                           .b = (const float *)whole->input[RECURRENT_KERNEL] + unit * z.units,
                           .b_step = z.columns,
                           .b_column = 1};
    VARIANT(gemm_pack_b)((float *)pack + unit * gate_floats(z.units), &g, 0, 1);
}

MAKER(make_recurrent)
{
    const struct recurrent_attributes *attributes = node->attributes;
    if (!recurrent_takes(node))
        return false;
    struct recurrent_sizes z = recurrent_sizes(node);
    cpu_set_pack(out, pack_gates, (int)z.gates, (size_t)(z.gates * gate_floats(z.units)) * sizeof(float));
    out->kernel.scratch_bytes = (size_t)room_floats(&z, request->slice, attributes->dropout > 0) * sizeof(float);
    return true;
}
