/* cpu_pooling.c - pooling and its gradients, channels last, channels as vectors.

   Max windows of 2x2 that neither overlap nor reach into padding have a path of their own; all others go window cell
   by window cell. Small floats pass through f32 line by line, or cell by cell; not where gradients of windows that
   overlap are added up. Places in windows are bytes here, and packed line by line of y where a line ends with
   a byte. */
#include "backends/cpu/cpu_rows.h"
#include "backends/cpu/elementwise/cpu_activation_bits.h"
#include "ops/ops.h"

/* Where windows' cells begin in one sample, and how far a window's row and plane reach. */
struct cells {
    struct pool_span span[MOST_SPACE];
};

static int64_t x_row_of(const struct pool_sizes *s)
{
    return s->x[0] * s->x[1] * s->x[2] * s->channels;
}

static int64_t y_row_of(const struct pool_sizes *s)
{
    return s->y[0] * s->y[1] * s->y[2] * s->channels;
}

/* The window of output cell `o` of a sample. */
static struct cells cells_of(const struct pool_sizes *s, int64_t o)
{
    struct cells cells;
    for (int axis = MOST_SPACE - 1; axis >= 0; axis--) {
        cells.span[axis] = pool_span(s, axis, o % s->y[axis]);
        o /= s->y[axis];
    }
    return cells;
}

/* Runs `body` for each cell inside the window w: its first element is x[at], its number in the window is place. */
#define FOR_CELLS(s, w, at, place, body)                                                                               \
    for (int64_t d_ = (w).span[0].begin; d_ < (w).span[0].end; d_++)                                                   \
        for (int64_t h_ = (w).span[1].begin; h_ < (w).span[1].end; h_++)                                               \
            for (int64_t u_ = (w).span[2].begin; u_ < (w).span[2].end; u_++) {                                         \
                int64_t at = ((d_ * (s)->x[1] + h_) * (s)->x[2] + u_) * (s)->channels;                                 \
                int64_t place = d_ - (w).span[0].begin + (w).span[0].skipped;                                          \
                place = place * (w).span[1].width + h_ - (w).span[1].begin + (w).span[1].skipped;                      \
                place = place * (w).span[2].width + u_ - (w).span[2].begin + (w).span[2].skipped;                      \
                body;                                                                                                  \
            }

/* ---- max ---------------------------------------------------------------- */

static bool is_two_by_two(const struct pool_sizes *s)
{
    bool plain = !s->adaptive && s->window[0] == 1 && s->stride[0] == 1 && s->y[0] == s->x[0];
    for (int i = 1; i < MOST_SPACE; i++)
        plain = plain && s->window[i] == 2 && s->stride[i] == 2 && !s->before[i] && s->y[i] == s->x[i] / 2;
    return plain;
}

/* Floats that small ones pass through: two lines of x and one of y, or two cells; 0: none can. */
static int64_t room_floats(const struct node *node)
{
    struct pool_sizes s;
    pool_sizes_of(&s, node);
    bool lines = (node->op == &op_max_pool || node->op == &op_max_pool_gradient) && is_two_by_two(&s) && s.x[0] == 1;
    if (lines)
        return (2 * s.x[2] + s.y[2]) * s.channels;
    return node->op == &op_max_pool || node->op == &op_average_pool ? 2 * s.channels : 0;
}

/* Places of a sample as bytes: where they lie (u8), or in a room for a line, or for all lines. */
struct places {
    uint8_t *packed; /* the sample's */
    uint8_t *room;   /* NULL: they lie in `packed` */
    int bits;
    int64_t line, lines; /* elements of a line of y; lines of a sample */
    bool by_line;
};

static struct places places_of(const struct pool_sizes *s)
{
    struct places p = {.bits = pool_index_bits(s), .line = s->y[2] * s->channels, .lines = s->y[0] * s->y[1]};
    p.by_line = p.line * p.bits % 8 == 0;
    return p;
}

static int64_t places_room(const struct places *p)
{
    return p->bits >= 8 ? 0 : p->by_line ? p->line : p->line * p->lines;
}

static int64_t places_row(const struct places *p)
{
    return packed_bytes(p->line * p->lines, p->bits);
}

/* To be written: the bytes of a line; then places_done. */
static uint8_t *places_to(const struct places *p, int64_t line)
{
    return p->room ? p->room + (p->by_line ? 0 : line * p->line) : p->packed + line * p->line;
}

static void places_done(const struct places *p, int64_t line)
{
    if (p->room && p->by_line)
        pack_bits(p->packed + line * p->line * p->bits / 8, p->room, p->bits, p->line);
    else if (p->room && line == p->lines - 1)
        pack_bits(p->packed, p->room, p->bits, p->line * p->lines);
}

/* To be read, lines in order. */
static const uint8_t *places_from(const struct places *p, int64_t line)
{
    if (p->room && p->by_line)
        unpack_bits(p->room, p->packed + line * p->line * p->bits / 8, p->bits, p->line);
    else if (p->room && line == 0)
        unpack_bits(p->room, p->packed, p->bits, p->line * p->lines);
    return places_to(p, line);
}

static bool has_places(const struct node *node)
{
    return node->op == &op_max_pool || node->op == &op_max_pool_gradient;
}

/* size[0]: where the room for places begins in the scratch, in bytes. */
MAKER(make_pool)
{
    enum type type = node->input[0]->type;
    int64_t floats = cpu_small_type(type) ? room_floats(node) : 0;
    struct pool_sizes s;
    if (type != TYPE_F32 && floats == 0)
        return false;
    pool_sizes_of(&s, node);
    struct places places = places_of(&s);
    out->size[0] = floats * (int64_t)sizeof(float);
    out->kernel.scratch_bytes = (size_t)(out->size[0] + (has_places(node) ? places_room(&places) : 0));
    return true;
}

/* Those of sample n. */
static struct places sample_places(const struct kernel *kernel, const struct call *call, const struct pool_sizes *s,
                                   void *index, int64_t n)
{
    struct places p = places_of(s);
    p.packed = (uint8_t *)index + n * places_row(&p);
    p.room = p.bits < 8 ? (uint8_t *)call->scratch + cpu_kernel_of(kernel)->size[0] : NULL;
    return p;
}

/* A sample's operand: of any type of floats, from element `first` on. */
struct sample {
    void *data;
    enum type type;
    int64_t first;
    float *room;
};

/* x: the window's upper left cell; below: the row under it. */
static void best_of_four(float *restrict y, uint8_t *restrict index, const float *restrict x,
                         const float *restrict below, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        float a = x[c], b = x[channels + c], d = below[c], e = below[channels + c];
        int at = 0;
        at = b > a ? 1 : at;
        a = b > a ? b : a;
        at = d > a ? 2 : at;
        a = d > a ? d : a;
        at = e > a ? 3 : at;
        a = e > a ? e : a;
        y[c] = a;
        index[c] = (uint8_t)at;
    }
}

/* One plane of rows and columns. */
static void max_two_by_two(const struct sample *y, const struct places *places, const struct sample *x,
                           const struct pool_sizes *s)
{
    int64_t line = s->x[2] * s->channels, made = s->y[2] * s->channels;
    for (int64_t row = 0; row < s->y[1]; row++) {
        const float *at = row_in(x->data, x->type, x->first + 2 * row * line, 2 * line, x->room);
        float *to = row_out(y->data, y->type, y->first + row * made, room_from(x->room, 2 * line));
        uint8_t *index = places_to(places, row);
        for (int64_t column = 0; column < s->y[2]; column++) {
            best_of_four(to + column * s->channels, index, at, at + line, s->channels);
            at += 2 * s->channels;
            index += s->channels;
        }
        places_done(places, row);
        row_done(y->data, y->type, y->first + row * made, made, to);
    }
}

/* A window's cells inside the sample: where their channels begin, and their numbers in the window. */
#define MOST_CELLS 256 /* whose numbers are bytes */
struct window {
    int count;
    int64_t at[MOST_CELLS];
    uint8_t place[MOST_CELLS];
};

typedef uint16_t vector_half __attribute__((vector_size(LANES * 2)));
typedef uint32_t vector_bits __attribute__((vector_size(LANES * 4)));

INLINE vector load_floats(const struct sample *x, int64_t at)
{
    float wide[LANES];
    vector_half half;
    if (x->type == TYPE_F32)
        return vector_load((const float *)x->data + x->first + at);
    if (x->type == TYPE_BF16) {
        memcpy(&half, (const uint16_t *)x->data + x->first + at, sizeof half);
        return (vector)(__builtin_convertvector(half, vector_bits) << 16);
    }
    VARIANT(widen)(wide, (const uint16_t *)x->data + x->first + at, x->type, LANES);
    return vector_load(wide);
}

/* LANES channels from c on: the first largest of the cells stays in registers. */
INLINE void best_of_lanes(float *y, uint8_t *index, const struct sample *x, const struct window *w, int64_t c)
{
    vector best = load_floats(x, w->at[0] + c);
    vector_whole place = (vector_whole){0} + w->place[0];
    for (int k = 1; k < w->count; k++) {
        vector here = load_floats(x, w->at[k] + c);
        vector_whole better = (vector_whole)(here > best);
        best = (vector)(((vector_whole)here & better) | ((vector_whole)best & ~better));
        place = (((vector_whole){0} + w->place[k]) & better) | (place & ~better);
    }
    vector_byte bytes = __builtin_convertvector(place, vector_byte);
    vector_store(y + c, best);
    memcpy(index + c, &bytes, sizeof bytes);
}

INLINE void best_of_cells(float *y, uint8_t *index, const struct sample *x, const struct window *w, int64_t channels)
{
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        best_of_lanes(y, index, x, w, c);
    for (; c < channels; c++)
        for (int k = 0; k < w->count; k++) {
            float here;
            here = *row_in(x->data, x->type, x->first + w->at[k] + c, 1, &here);
            bool better = k == 0 || here > y[c];
            y[c] = better ? here : y[c];
            index[c] = better ? w->place[k] : index[c];
        }
}

static void better_wide(float *restrict y, int32_t *restrict index, const float *restrict x, int64_t channels,
                        int64_t place, bool first)
{
    for (int64_t c = 0; c < channels; c++) {
        bool better = first || x[c] > y[c];
        y[c] = better ? x[c] : y[c];
        index[c] = better ? (int32_t)place : index[c];
    }
}

/* Windows of at most MOST_CELLS. */
static void max_windows(const struct sample *y, const struct places *places, const struct sample *x,
                        const struct pool_sizes *s)
{
    int64_t outputs = s->y[0] * s->y[1] * s->y[2], channels = s->channels;
    struct window window;
    for (int64_t o = 0; o < outputs; o++) {
        int64_t line = o / s->y[2], column = o % s->y[2];
        struct cells w = cells_of(s, o);
        float *to = row_out(y->data, y->type, y->first + o * channels, room_from(x->room, channels));
        window.count = 0;
        FOR_CELLS(s, w, at, place, {
            window.at[window.count] = at;
            window.place[window.count++] = (uint8_t)place;
        })
        if (window.count > 0)
            best_of_cells(to, places_to(places, line) + column * channels, x, &window, channels);
        if (column == s->y[2] - 1)
            places_done(places, line);
        row_done(y->data, y->type, y->first + o * channels, channels, to);
    }
}

/* Larger ones. */
static void max_wide_windows(const struct sample *y, int32_t *index, const struct sample *x, const struct pool_sizes *s)
{
    int64_t outputs = s->y[0] * s->y[1] * s->y[2], channels = s->channels;
    for (int64_t o = 0; o < outputs; o++) {
        struct cells w = cells_of(s, o);
        float *to = row_out(y->data, y->type, y->first + o * channels, room_from(x->room, channels));
        bool first = true;
        FOR_CELLS(s, w, at, place, {
            const float *cell = row_in(x->data, x->type, x->first + at, channels, x->room);
            better_wide(to, index + o * channels, cell, channels, place, first);
            first = false;
        })
        row_done(y->data, y->type, y->first + o * channels, channels, to);
    }
}

RUNNER(run_max_pool)
{
    struct pool_sizes s;
    pool_sizes_of(&s, call->node);
    int64_t x_row = x_row_of(&s), y_row = y_row_of(&s), rows = cpu_rows(kernel, call);
    bool wide = call->node->output[1]->type != TYPE_U8, two_by_two = is_two_by_two(&s) && s.x[0] == 1;
    for (int64_t n = 0; n < rows; n++) {
        const struct sample y = {call->output[0], call->node->output[0]->type, n * y_row, NULL};
        const struct sample x = {call->input[0], call->node->input[0]->type, n * x_row, call->scratch};
        const struct places places = sample_places(kernel, call, &s, call->output[1], n);
        if (two_by_two)
            max_two_by_two(&y, &places, &x, &s);
        else if (wide)
            max_wide_windows(&y, (int32_t *)call->output[1] + n * y_row, &x, &s);
        else
            max_windows(&y, &places, &x, &s);
    }
}

/* One window: dy goes where the index says, 0 to the other three. */
static void scatter_to_four(float *dx, float *below, const float *dy, const uint8_t *index, int64_t channels)
{
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES) {
        vector d = vector_load(dy + c);
        vector_whole at = vector_load_bytes(index + c);
        vector_store(dx + c, vector_where(d, at, 0));
        vector_store(dx + channels + c, vector_where(d, at, 1));
        vector_store(below + c, vector_where(d, at, 2));
        vector_store(below + channels + c, vector_where(d, at, 3));
    }
    for (; c < channels; c++) {
        dx[c] = index[c] == 0 ? dy[c] : 0;
        dx[channels + c] = index[c] == 1 ? dy[c] : 0;
        below[c] = index[c] == 2 ? dy[c] : 0;
        below[channels + c] = index[c] == 3 ? dy[c] : 0;
    }
}

/* Every cell of dx is written once: those outside all windows get 0. */
static void scatter_two_by_two(const struct sample *dx, const struct sample *dy, const struct places *places,
                               const struct pool_sizes *s)
{
    int64_t line = s->x[2] * s->channels, rest = (s->x[2] - 2 * s->y[2]) * s->channels, made = s->y[2] * s->channels;
    for (int64_t row = 0; row < s->y[1]; row++) {
        const float *from = row_in(dy->data, dy->type, dy->first + row * made, made, room_from(dx->room, 2 * line));
        float *lines = row_out(dx->data, dx->type, dx->first + 2 * row * line, dx->room), *at = lines;
        const uint8_t *index = places_from(places, row);
        for (int64_t column = 0; column < s->y[2]; column++) {
            scatter_to_four(at, at + line, from, index, s->channels);
            at += 2 * s->channels;
            from += s->channels;
            index += s->channels;
        }
        memset(at, 0, (size_t)rest * sizeof *at);
        memset(at + line, 0, (size_t)rest * sizeof *at);
        row_done(dx->data, dx->type, dx->first + 2 * row * line, 2 * line, lines);
    }
    size_t each = type_bytes(dx->type);
    memset((char *)dx->data + (size_t)(dx->first + 2 * s->y[1] * line) * each, 0,
           (size_t)((s->x[1] - 2 * s->y[1]) * line) * each);
}

static void add_where_byte(float *restrict dx, const float *restrict dy, const uint8_t *restrict index, int32_t place,
                           int64_t channels)
{
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES) {
        vector d = vector_where(vector_load(dy + c), vector_load_bytes(index + c), place);
        vector_store(dx + c, vector_load(dx + c) + d);
    }
    for (; c < channels; c++)
        dx[c] += index[c] == place ? dy[c] : 0;
}

/* Cell by cell of the window, every channel: a few vectors, where the places are scattered. */
static void scatter_bytes(float *dx, const float *dy, const struct places *places, const struct pool_sizes *s)
{
    int64_t channels = s->channels;
    memset(dx, 0, (size_t)x_row_of(s) * sizeof *dx);
    for (int64_t line = 0; line < places->lines; line++) {
        const uint8_t *index = places_from(places, line);
        for (int64_t o = line * s->y[2]; o < (line + 1) * s->y[2]; o++) {
            struct cells w = cells_of(s, o);
            FOR_CELLS(s, w, at, place, add_where_byte(dx + at, dy + o * channels, index, (int32_t)place, channels))
            index += channels;
        }
    }
}

/* Large windows: each channel goes to its cell. */
static void scatter_wide(float *dx, const float *dy, const int32_t *index, const struct pool_sizes *s)
{
    int64_t outputs = s->y[0] * s->y[1] * s->y[2], channels = s->channels;
    memset(dx, 0, (size_t)x_row_of(s) * sizeof *dx);
    for (int64_t i = 0; i < outputs * channels; i++) {
        struct cells w = cells_of(s, i / channels);
        int64_t place = index[i], at = 0, in[MOST_SPACE];
        bool inside = true;
        for (int axis = MOST_SPACE - 1; axis >= 0; axis--) {
            const struct pool_span *span = &w.span[axis];
            in[axis] = span->begin + place % span->width - span->skipped;
            inside = inside && in[axis] >= span->begin && in[axis] < span->end;
            place /= span->width;
        }
        for (int axis = 0; axis < MOST_SPACE; axis++)
            at = at * s->x[axis] + in[axis];
        if (inside && place == 0)
            dx[at * channels + i % channels] += dy[i];
    }
}

RUNNER(run_max_pool_gradient)
{
    struct pool_sizes s;
    pool_sizes_of(&s, call->node);
    int64_t x_row = x_row_of(&s), y_row = y_row_of(&s), rows = cpu_rows(kernel, call);
    bool wide = call->node->input[1]->type != TYPE_U8, two_by_two = is_two_by_two(&s) && s.x[0] == 1;
    for (int64_t n = 0; n < rows; n++) {
        float *dx = (float *)call->output[0] + n * x_row;
        const float *dy = (const float *)call->input[0] + n * y_row;
        const struct places places = sample_places(kernel, call, &s, call->input[1], n);
        const struct sample to = {call->output[0], call->node->output[0]->type, n * x_row, call->scratch};
        const struct sample from = {call->input[0], call->node->input[0]->type, n * y_row, NULL};
        if (two_by_two)
            scatter_two_by_two(&to, &from, &places, &s);
        else if (wide)
            scatter_wide(dx, dy, (const int32_t *)call->input[1] + n * y_row, &s);
        else
            scatter_bytes(dx, dy, &places, &s);
    }
}

/* ---- average ------------------------------------------------------------ */

static float share_of(const struct cells *w)
{
    int64_t cells = 1;
    for (int axis = 0; axis < MOST_SPACE; axis++)
        cells *= w->span[axis].end - w->span[axis].begin;
    return 1.0f / (float)cells;
}

static void add_cell(float *restrict y, const float *restrict x, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++)
        y[c] += x[c];
}

static void scale_cell(float *y, float factor, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++)
        y[c] *= factor;
}

RUNNER(run_average_pool)
{
    struct pool_sizes s;
    enum type from = call->node->input[0]->type, to = call->node->output[0]->type;
    pool_sizes_of(&s, call->node);
    int64_t outputs = s.y[0] * s.y[1] * s.y[2], channels = s.channels, rows = cpu_rows(kernel, call);
    for (int64_t i = 0; i < rows * outputs; i++) {
        struct cells w = cells_of(&s, i % outputs);
        int64_t x = i / outputs * x_row_of(&s);
        float *room = call->scratch, *y = row_out(call->output[0], to, i * channels, room_from(room, channels));
        memset(y, 0, (size_t)channels * sizeof *y);
        FOR_CELLS(&s, w, at, place, {
            (void)place;
            add_cell(y, row_in(call->input[0], from, x + at, channels, room), channels);
        })
        scale_cell(y, share_of(&w), channels);
        row_done(call->output[0], to, i * channels, channels, y);
    }
}

static void add_scaled(float *restrict dx, const float *restrict dy, float factor, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++)
        dx[c] = madd(dy[c], factor, dx[c]);
}

RUNNER(run_average_pool_gradient)
{
    struct pool_sizes s;
    pool_sizes_of(&s, call->node);
    int64_t outputs = s.y[0] * s.y[1] * s.y[2], channels = s.channels, rows = cpu_rows(kernel, call);
    memset(call->output[0], 0, (size_t)(rows * x_row_of(&s)) * sizeof(float));
    for (int64_t i = 0; i < rows * outputs; i++) {
        struct cells w = cells_of(&s, i % outputs);
        float *dx = (float *)call->output[0] + i / outputs * x_row_of(&s), factor = share_of(&w);
        const float *dy = (const float *)call->input[0] + i * channels;
        FOR_CELLS(&s, w, at, place, {
            (void)place;
            add_scaled(dx + at, dy, factor, channels);
        })
    }
}
