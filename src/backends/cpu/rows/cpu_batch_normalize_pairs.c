/* cpu_batch_normalize_pairs.c - the runs of cpu_batch_normalize_pairs.h. */
#include "backends/cpu/rows/cpu_batch_normalize_pairs.h"

#define PAIR (2 * LANES)

INLINE vector act_on(vector z, const enum activation act)
{
    if (act != ACTIVATION_NONE)
        z = vector_max(vector_all(0), z);
    if (act == ACTIVATION_RELU6)
        z = vector_min(vector_all(6), z);
    return z;
}

INLINE vector normal(vector x, const float *tables, int64_t run, int64_t k)
{
    return vector_madd(x - vector_load(tables + k), vector_load(tables + TABLE_SCALE * run + k),
                       vector_load(tables + TABLE_SHIFT * run + k));
}

/* dy where the activation let z through; z as forward computed it. */
INLINE vector pairs_behind(vector dy, vector x, const float *tables, int64_t run, int64_t k, const enum activation act)
{
    if (act == ACTIVATION_NONE)
        return dy;
    vector z = normal(x, tables, run, k);
    vector_bits through = (vector_bits)(z > vector_all(0));
    if (act == ACTIVATION_RELU6)
        through &= (vector_bits)(z < vector_all(6));
    return (vector)((vector_bits)dy & through);
}

/* The elements of a last, short pair, with zeros behind them; the tables have no end here. */
INLINE const uint16_t *whole_pair(uint16_t *room, const uint16_t *from, int64_t count)
{
    if (count >= PAIR)
        return from;
    memset(room, 0, PAIR * sizeof *room);
    memcpy(room, from, (size_t)count * sizeof *room);
    return room;
}

/* ---- forward ------------------------------------------------------------- */

INLINE void normalize_pair(uint16_t *y, const uint16_t *x, const float *tables, int64_t run, int64_t k,
                           const enum activation act)
{
    vector even = bf16_even(x), odd = bf16_odd(x);
    even = act_on(normal(even, tables, run, k), act);
    odd = act_on(normal(odd, tables, run, k + LANES), act);
    bf16_put_pair(y, even, odd);
}

INLINE void normalize_run(uint16_t *y, const uint16_t *x, const float *tables, int64_t run, int64_t length,
                          const enum activation act)
{
    uint16_t room[PAIR];
    int64_t k = 0;
    for (; k + PAIR <= length; k += PAIR)
        normalize_pair(y + k, x + k, tables, run, k, act);
    if (k < length) {
        normalize_pair(room, whole_pair(room, x + k, length - k), tables, run, k, act);
        memcpy(y + k, room, (size_t)(length - k) * sizeof *y);
    }
}

void VARIANT(normalize_pairs)(uint16_t *y, const uint16_t *x, const float *tables, int64_t run, int64_t length,
                              enum activation act)
{
    BY_ACTIVATION(act, normalize_run, y, x, tables, run, length);
}

/* ---- backward ------------------------------------------------------------ */

INLINE void add_half(float *sums, vector dy, vector x, const float *tables, int64_t run, int64_t k,
                     const enum activation act)
{
    vector dz = pairs_behind(dy, x, tables, run, k, act);
    vector_store(sums + k, vector_load(sums + k) + dz);
    vector_store(sums + run + k, vector_madd(dz, x - vector_load(tables + k), vector_load(sums + run + k)));
}

INLINE void add_pairs_run(float *sums, const uint16_t *dy, const uint16_t *x, const float *tables, int64_t run,
                          int64_t length, const enum activation act)
{
    uint16_t dy_room[PAIR], x_room[PAIR];
    for (int64_t k = 0; k < length; k += PAIR) {
        const uint16_t *a = whole_pair(dy_room, dy + k, length - k), *b = whole_pair(x_room, x + k, length - k);
        add_half(sums, bf16_even(a), bf16_even(b), tables, run, k, act);
        add_half(sums, bf16_odd(a), bf16_odd(b), tables, run, k + LANES, act);
    }
}

void VARIANT(add_pairs_of_sums)(float *sums, const uint16_t *dy, const uint16_t *x, const float *tables, int64_t run,
                                int64_t length, enum activation act)
{
    BY_ACTIVATION(act, add_pairs_run, sums, dy, x, tables, run, length);
}

INLINE vector gradient_half(vector dy, vector x, const float *tables, int64_t run, int64_t k, const enum activation act)
{
    vector dz = pairs_behind(dy, x, tables, run, k, act);
    vector far = vector_madd(vector_load(tables + TABLE_SLOPE * run + k), x - vector_load(tables + k),
                             vector_load(tables + TABLE_OFFSET * run + k));
    return vector_madd(vector_load(tables + TABLE_SCALE * run + k), dz, far);
}

INLINE void gradient_pair(uint16_t *dx, const uint16_t *dy, const uint16_t *x, const float *tables, int64_t run,
                          int64_t k, const enum activation act)
{
    vector even = gradient_half(bf16_even(dy), bf16_even(x), tables, run, k, act);
    vector odd = gradient_half(bf16_odd(dy), bf16_odd(x), tables, run, k + LANES, act);
    bf16_put_pair(dx, even, odd);
}

INLINE void gradient_pairs_run(uint16_t *dx, const uint16_t *dy, const uint16_t *x, const float *tables, int64_t run,
                               int64_t length, const enum activation act)
{
    uint16_t dy_room[PAIR], x_room[PAIR];
    int64_t k = 0;
    for (; k + PAIR <= length; k += PAIR)
        gradient_pair(dx + k, dy + k, x + k, tables, run, k, act);
    if (k < length) {
        gradient_pair(dy_room, whole_pair(dy_room, dy + k, length - k), whole_pair(x_room, x + k, length - k), tables,
                      run, k, act);
        memcpy(dx + k, dy_room, (size_t)(length - k) * sizeof *dx);
    }
}

void VARIANT(gradient_pairs)(uint16_t *dx, const uint16_t *dy, const uint16_t *x, const float *tables, int64_t run,
                             int64_t length, enum activation act)
{
    BY_ACTIVATION(act, gradient_pairs_run, dx, dy, x, tables, run, length);
}
