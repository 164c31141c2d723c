/* cpu_recurrent_gradient.c - recurrent cells, backward: dz of a step row by row, then what flows into the state before
   it, dz . kernel^T, for all samples of the slice. */
#include "backends/cpu/recurrent/cpu_recurrent.h"

/* Outputs. */
enum { DZ, DH0, LAST };

#define STATES 4 /* arrays of states, in the order of backward_room */

struct backward_room {
    float *dh, *dc, *product, *value; /* [rows, states] */
    float *dz;                        /* [rows, row]: this step's */
};

/* dh += dz of a gate . its kernel^T. */
static void gate_back(const struct recurrent_run *r, const struct backward_room *room, int64_t gate)
{
    int64_t units = r->z.units;
    if (!r->kept) {
        multiply_gate(r, room->dh, r->states, room->dz + gate * units, r->row, gate, true);
        return;
    }
    multiply_gate(r, room->product, r->states, room->dz + gate * units, r->row, gate, false);
    for (int64_t n = 0; n < r->rows; n++) {
        float *dh = room->dh + n * r->states;
        const float *product = room->product + n * r->states, *kept = r->kept + n * r->row + gate * units;
        INDEPENDENT
        for (int64_t u = 0; u < units; u++)
            dh[u] = madd(product[u], kept[u], dh[u]);
    }
}

struct back_row {
    const float *gates, *extra, *other, *before; /* before: the state (or cell) before the step, or NULL: 0 */
    float *dz;                                   /* in scratch; what comes after it is another sample's */
    float *out;                                  /* the same in the output; may be the gates */
    float *dh, *dc, *value;
    int64_t at; /* of the step among all */
};

static struct back_row row_of(const struct recurrent_run *r, const struct backward_room *room, int64_t n, int64_t t)
{
    const struct call *call = r->call;
    int64_t at = n * r->z.steps + t, before = recurrent_before(r->a, t);
    const float *sequence = call->input[r->a->kind == RECURRENT_LSTM ? RECURRENT_DONE_EXTRA : RECURRENT_OTHER];
    const float *initial = call->input[RECURRENT_INITIAL];
    bool inside = before >= 0 && before < r->z.steps;
    struct back_row b = {
        .gates = (const float *)call->input[RECURRENT_DONE_GATES] + at * r->z.columns,
        .dz = room->dz + n * r->row,
        .out = (float *)call->output[DZ] + at * r->z.columns,
        .dh = room->dh + n * r->states,
        .dc = room->dc + n * r->states,
        .value = room->value + n * r->states,
        .at = at,
    };
    if (call->input[RECURRENT_DONE_EXTRA])
        b.extra = (const float *)call->input[RECURRENT_DONE_EXTRA] + at * r->z.units;
    if (call->input[RECURRENT_OTHER])
        b.other = (const float *)call->input[RECURRENT_OTHER] + at * r->z.units;
    if (inside && sequence)
        b.before = sequence + (at + before - t) * r->z.units;
    else if (initial)
        b.before = initial + n * r->z.units;
    return b;
}

static void add_row(float *to, const float *x, int64_t count)
{
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        to[i] += x[i];
}

/* What flows into h from above joins what came from the step after. */
static void add_flow(const struct recurrent_run *r, const struct back_row *b)
{
    const float *dh = r->call->input[RECURRENT_DH];
    if (dh)
        add_row(b->dh, dh + b->at * r->z.units, r->z.units);
    if (r->a->kind == RECURRENT_LSTM && b->other)
        add_row(b->dc, b->other, r->z.units);
}

/* dz of a step that was not there is 0, and dh goes on as it is. */
static void absent_row(const struct recurrent_run *r, const struct back_row *b)
{
    memset(b->dz, 0, (size_t)r->z.columns * sizeof(float));
    memset(b->out, 0, (size_t)r->z.columns * sizeof(float));
    if (r->a->kind == RECURRENT_GRU || r->a->kind == RECURRENT_GRU_BEFORE)
        memset((float *)r->call->output[LAST] + b->at * r->z.units, 0, (size_t)r->z.units * sizeof(float));
}

/* dz leaves scratch; dh is made anew by the products. */
static void finish_row(const struct recurrent_run *r, const struct back_row *b, bool fresh)
{
    memcpy(b->out, b->dz, (size_t)r->z.columns * sizeof(float));
    if (fresh)
        memset(b->dh, 0, (size_t)r->z.units * sizeof(float));
}

static void lstm_row(const struct recurrent_run *r, const struct back_row *b)
{
    const int64_t units = r->z.units, gate = r->a->recurrent_activation;
    const float *i_gate = b->gates, *f_gate = i_gate + units, *candidate = f_gate + units, *o_gate = candidate + units;
    const float *before = b->before, *dh = b->dh, *value = b->value;
    float *dz = b->dz, *dc = b->dc;
    memset(dz, 0, (size_t)units * sizeof(float));
    activate_sum(r->a->activation, b->value, b->extra, dz, units);
    multiply_row(dz, dh, o_gate, units);
    multiply_slope(r->a->activation, dz, value, units);
    add_row(dc, dz, units);
    INDEPENDENT
    for (int64_t u = 0; u < units; u++) {
        dz[u] = dc[u] * candidate[u];
        dz[units + u] = before ? dc[u] * before[u] : 0;
        dz[2 * units + u] = dc[u] * i_gate[u];
        dz[3 * units + u] = dh[u] * value[u];
        dc[u] *= f_gate[u];
    }
    multiply_slope(gate, dz, i_gate, 2 * units);
    multiply_slope(r->a->activation, dz + 2 * units, candidate, units);
    multiply_slope(gate, dz + 3 * units, o_gate, units);
    finish_row(r, b, true);
}

static void lstm_back(const struct recurrent_run *r, const struct backward_room *room, int64_t t)
{
    for (int64_t n = 0; n < r->rows; n++) {
        struct back_row b = row_of(r, room, n, t);
        add_flow(r, &b);
        if (is_there(r, n, t))
            lstm_row(r, &b);
        else
            absent_row(r, &b);
    }
    for (int64_t gate = 0; gate < r->z.gates; gate++)
        gate_back(r, room, gate);
}

static void simple_back(const struct recurrent_run *r, const struct backward_room *room, int64_t t)
{
    for (int64_t n = 0; n < r->rows; n++) {
        struct back_row b = row_of(r, room, n, t);
        add_flow(r, &b);
        if (!is_there(r, n, t)) {
            absent_row(r, &b);
            continue;
        }
        memcpy(b.dz, b.dh, (size_t)r->z.units * sizeof(float));
        multiply_slope(r->a->activation, b.dz, b.gates, r->z.units);
        finish_row(r, &b, true);
    }
    gate_back(r, room, 0);
}

/* Update gate and candidate; the gate of the reset is made after them, its value kept until then. */
static void gru_outer(const struct recurrent_run *r, const struct back_row *b)
{
    const int64_t units = r->z.units;
    const float *update = b->gates, *candidate = b->gates + 2 * units, *before = b->before;
    float *dz = b->dz, *dh = b->dh;
    INDEPENDENT
    for (int64_t u = 0; u < units; u++) {
        dz[u] = dh[u] * ((before ? before[u] : 0) - candidate[u]);
        dz[2 * units + u] = dh[u] * (1 - update[u]);
        dh[u] *= update[u];
    }
    multiply_slope(r->a->recurrent_activation, dz, update, units);
    multiply_slope(r->a->activation, dz + 2 * units, candidate, units);
}

/* Reset after the product: all of it by rows. dz in scratch is what flows into the kernel, in the output into z. */
static void gru_after(const struct recurrent_run *r, const struct back_row *b)
{
    const int64_t units = r->z.units;
    const float *reset = b->gates + units, *inner = b->extra;
    float *dz = b->dz, *last = (float *)r->call->output[LAST] + b->at * units, *value = b->value;
    memcpy(value, reset, (size_t)units * sizeof(float));
    multiply_row(dz + units, dz + 2 * units, inner, units);
    multiply_slope(r->a->recurrent_activation, dz + units, value, units);
    finish_row(r, b, false);
    multiply_row(last, dz + 2 * units, value, units);
    memcpy(dz + 2 * units, last, (size_t)units * sizeof(float));
}

/* Reset before it: what flows into inner is a product first. */
static void gru_before(const struct recurrent_run *r, const struct backward_room *room, const struct back_row *b,
                       int64_t n)
{
    const int64_t units = r->z.units;
    const float *reset = b->gates + units, *inner = room->product + n * r->states, *before = b->before;
    const float *kept = r->kept ? r->kept + n * r->row + 2 * units : NULL;
    float *dz = b->dz + units, *dh = b->dh;
    memcpy((float *)r->call->output[LAST] + b->at * units, inner, (size_t)units * sizeof(float));
    INDEPENDENT
    for (int64_t u = 0; u < units; u++) {
        float flow = kept ? inner[u] * kept[u] : inner[u];
        dz[u] = before ? flow * before[u] : 0;
        dh[u] = madd(flow, reset[u], dh[u]);
    }
    multiply_slope(r->a->recurrent_activation, dz, reset, units);
    finish_row(r, b, false);
}

static void gru_back(const struct recurrent_run *r, const struct backward_room *room, int64_t t)
{
    bool after = r->a->kind == RECURRENT_GRU;
    for (int64_t n = 0; n < r->rows; n++) {
        struct back_row b = row_of(r, room, n, t);
        bool there = is_there(r, n, t);
        add_flow(r, &b);
        if (!there) {
            absent_row(r, &b);
            continue;
        }
        gru_outer(r, &b);
        if (after)
            gru_after(r, &b);
    }
    if (!after)
        multiply_gate(r, room->product, r->states, room->dz + 2 * r->z.units, r->row, 2, false);
    for (int64_t n = 0; !after && n < r->rows; n++) {
        struct back_row b = row_of(r, room, n, t);
        if (is_there(r, n, t))
            gru_before(r, room, &b, n);
    }
    for (int64_t gate = 0; gate < (after ? 3 : 2); gate++)
        gate_back(r, room, gate);
}

static void give_state(const struct recurrent_run *r, float *to, const float *state)
{
    for (int64_t n = 0; n < r->rows; n++)
        memcpy(to + n * r->z.units, state + n * r->states, (size_t)r->z.units * sizeof(float));
}

RUNNER(run_recurrent_gradient)
{
    static void (*const step[RECURRENT_KINDS])(const struct recurrent_run *, const struct backward_room *,
                                               int64_t) = {simple_back, gru_back, gru_back, lstm_back};
    struct recurrent_run r = recurrent_run_of(kernel, call, RECURRENT_BACK_MASK);
    struct backward_room room;
    float **const arrays[] = {&room.dh, &room.dc, &room.product, &room.value, &room.dz};
    if (r.rows == 0)
        return;
    recurrent_lay_out(&r, arrays, STATES);
    memset(room.dh, 0, (size_t)(2 * r.rows * r.states) * sizeof(float));
    for (int64_t n = 0; r.kept && n < r.rows; n++)
        draw_recurrent(r.kept + n * r.row, r.a, r.z.columns, call->input[RECURRENT_BACK_ITERATION], call->begin + n);
    for (int64_t i = r.z.steps - 1; i >= 0; i--)
        step[r.a->kind](&r, &room, recurrent_step(r.a, r.z.steps, i));
    give_state(&r, call->output[DH0], room.dh);
    if (r.a->kind == RECURRENT_LSTM)
        give_state(&r, call->output[LAST], room.dc);
}

/* Gate by gate: the kernel turned over. */
PACKER(pack_turned)
{
    recurrent_pack(pack, whole, unit, RECURRENT_BACK_KERNEL, 1, recurrent_sizes(whole->node).columns);
}

MAKER(make_recurrent_gradient)
{
    return recurrent_make(out, request, STATES, pack_turned);
}
