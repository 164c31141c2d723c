/* flow.c - what any worker may do with rows: read them by index, run maps over them, put them where they go.

   1. The block holds, in this order: struct flow, its map steps, the states of functions, buffers of columns, the
      value buffer of rows that come in, the value buffer of values that maps make.
   2. Values that come in live until the next elements come; values that maps make live until the next element,
      unless they are in the result: then there is one row at a time. */
#include "pipeline/core/flow.h"

#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/threads/clock.h"
#include "formats/tables/rows.h"
#include "pipeline/core/labels.h"
#include "pipeline/stages/keep/held_blocks.h"

/* Where the rows of a column are at one moment: at the target's column, or in the flow's buffer. */
struct site {
    int column; /* of the target; -1: in the buffer */
    uint64_t at;
};

struct map_step {
    const struct dataset *node;
    uint64_t seed;
    void *state;
    bool started;
    uint64_t busy_ns;
    struct site from[MOST_COLUMNS], to[MOST_COLUMNS];
};

struct locate_step {
    const struct dataset *node;
    struct stage_state state;
    uint64_t busy_ns;
};

#define CLOCK_ROWS 256 /* a reading of the clock for so many: one for each would cost more than some elements do */
#define CLOCK_MOST 32  /* calls without one */

/* What is measured, when it is asked for: some calls, whose rows are counted. */
struct flow_clock {
    bool runs, on;                         /* on: this call is timed */
    unsigned turn, map_turn;               /* calls so far; the same of maps that run for one element at a time */
    uint64_t read_ns, rows, timed, mapped; /* rows: all; timed: in calls that were; mapped: the same of maps */
};

/* What is known before there is a block. */
struct shape_of_flow {
    const struct dataset *dataset, *first; /* first: the head, or the source's node */
    bool indexed, makes_values, keeps_values;
    int locate_count, map_count;
    int64_t rows;
    uint64_t states_bytes, in_bytes, made_bytes, column_bytes;
};

struct flow {
    struct shape_of_flow shape;
    struct budget *budget;
    int beside;                             /* flows at work, this one among them; 0: nothing is asked for beforehand */
    struct stream *head;                    /* that gave the elements; NULL: they are read by index */
    struct held_blocks *held;               /* of all flows of an iterator; NULL: rows come from the source itself */
    struct locate_step locate[MOST_STAGES]; /* from the last stage to the first */
    struct map_step *map;                   /* from the first to the last */
    struct site source[MOST_COLUMNS];       /* where rows come in */
    uint8_t *buffer;
    struct value_buffer in, made;
    struct flow_clock clock;
    int64_t position[FLOW_ROWS];
    uint64_t epoch[FLOW_ROWS];
};

/* ---- laying out ---- */

const struct dataset *flow_head(const struct dataset *dataset)
{
    while (!dataset->sequential && dataset->input)
        dataset = dataset->input;
    return dataset->sequential ? dataset : NULL;
}

/* The output column that is this input column, or -1. */
static int becomes(const struct spec *after, int column)
{
    for (int c = 0; c < after->column_count; c++)
        if (after->column[c].origin == column)
            return c;
    return -1;
}

/* Backwards from the target. Returns the buffer's bytes; writes sites where `flow` is there to hold them. */
static uint64_t lay_columns(struct flow *flow, const struct shape_of_flow *shape, int64_t rows)
{
    uint64_t bytes = 0;
    struct site site[MOST_COLUMNS], before[MOST_COLUMNS];
    const struct dataset *node = shape->dataset;
    for (int c = 0; c < node->spec->column_count; c++)
        site[c] = (struct site){.column = c};
    int m = shape->map_count;
    for (; node != shape->first; node = node->input) {
        if (!node->function)
            continue;
        const struct spec *spec = node->input->spec;
        for (int c = 0; c < spec->column_count; c++) {
            int output = becomes(node->spec, c);
            before[c] = output >= 0 ? site[output] : (struct site){.column = -1, .at = bytes};
            if (output < 0)
                bytes = add_most(bytes, rows_area(rows, spec->column[c].bytes));
        }
        m--;
        if (flow) {
            flow->map[m].node = node;
            memcpy(flow->map[m].to, site, sizeof site);
            memcpy(flow->map[m].from, before, sizeof before);
        }
        memcpy(site, before, sizeof site);
    }
    if (flow)
        memcpy(flow->source, site, sizeof site);
    return bytes;
}

static void add_function(struct shape_of_flow *shape, const struct dataset *node)
{
    const struct map_function *function = node->function;
    const struct spec *from = node->input->spec;
    shape->map_count++;
    if (function->state_bytes)
        shape->states_bytes =
            add_most(shape->states_bytes, round_up(function->state_bytes(from, node->spec, node->options), 64));
    uint64_t bytes = function->value_bytes ? function->value_bytes(from, node->spec, node->options) : 0;
    if (!bytes)
        return;
    shape->makes_values = true;
    if (node->value_bytes_stated)
        bytes = node->value_bytes_stated;
    shape->made_bytes = add_most(shape->made_bytes, round_up(bytes, VALUE_ALIGNMENT) + VALUE_ALIGNMENT);
}

static void measure(struct shape_of_flow *shape, const struct dataset *dataset)
{
    *shape = (struct shape_of_flow){.dataset = dataset, .indexed = !flow_head(dataset)};
    const struct dataset *node = dataset;
    uint64_t widest = dataset->spec->element_bytes;
    for (; !node->sequential && node->input; node = node->input) {
        shape->locate_count += node->stage->locate != NULL;
        if (node->function)
            add_function(shape, node);
    }
    shape->first = node;
    shape->keeps_values = spec_has_values(dataset->spec);
    shape->in_bytes = spec_has_values(node->spec) ? round_up(node->value_bytes, VALUE_ALIGNMENT) : 0;
    uint64_t row = lay_columns(NULL, shape, 1);
    widest = row > widest ? row : widest;
    int64_t rows = widest ? (int64_t)(FLOW_BYTES / widest) : FLOW_ROWS;
    rows = rows < 1 ? 1 : rows > FLOW_ROWS ? FLOW_ROWS : rows;
    if (shape->makes_values && shape->keeps_values)
        rows = 1;
    if (dataset->batch_size && rows > dataset->batch_size)
        rows = dataset->batch_size;
    shape->rows = rows;
    shape->column_bytes = lay_columns(NULL, shape, rows);
}

static uint64_t steps_bytes(const struct shape_of_flow *shape)
{
    return round_up((uint64_t)shape->map_count * sizeof(struct map_step), 64);
}

uint64_t flow_bytes(const struct dataset *dataset)
{
    struct shape_of_flow shape;
    measure(&shape, dataset);
    uint64_t bytes = round_up(sizeof(struct flow), 64) + steps_bytes(&shape);
    bytes = add_most(bytes, add_most(shape.states_bytes, shape.column_bytes));
    return add_most(bytes, add_most(shape.in_bytes, shape.made_bytes));
}

uint64_t flow_cost(const struct dataset *dataset)
{
    uint64_t bytes = 0;
    for (const struct dataset *node = dataset; !node->sequential && node->input; node = node->input)
        if (node->function && node->function->state_cost)
            bytes = add_most(bytes, node->function->state_cost(node->input->spec, node->spec, node->options));
    return bytes;
}

/* ---- starting and stopping ---- */

static plim_status start_map(struct map_step *step, struct flow *flow, uint8_t **state, uint64_t seed,
                             plim_error *error)
{
    const struct dataset *node = step->node;
    const struct map_function *function = node->function;
    step->seed = random_key(seed, (uint64_t)node->node, UINT64_MAX);
    if (!function->state_bytes)
        return PLIM_OK;
    step->state = *state;
    *state += round_up(function->state_bytes(node->input->spec, node->spec, node->options), 64);
    if (function->state_start)
        TRY(function->state_start(step->state, flow->budget, node->input->spec, node->spec, node->options, error));
    step->started = true;
    return PLIM_OK;
}

plim_status flow_start(struct flow *flow, const struct dataset *dataset, struct budget *budget, uint64_t seed,
                       plim_error *error)
{
    struct shape_of_flow *shape = &flow->shape;
    uint8_t *at = (uint8_t *)flow + round_up(sizeof(struct flow), 64);
    measure(shape, dataset);
    flow->budget = budget;
    flow->map = (struct map_step *)at;
    lay_columns(flow, shape, shape->rows);
    uint8_t *state = at + steps_bytes(shape);
    flow->buffer = state + shape->states_bytes;
    value_buffer_init(&flow->in, flow->buffer + shape->column_bytes, shape->in_bytes);
    value_buffer_init(&flow->made, flow->in.bytes + shape->in_bytes, shape->made_bytes);
    int located = 0;
    for (const struct dataset *node = dataset; node != shape->first; node = node->input)
        if (node->stage->locate)
            flow->locate[located++].node = node;
    for (int m = 0; m < shape->map_count; m++)
        TRY(start_map(&flow->map[m], flow, &state, seed, error));
    return PLIM_OK;
}

void flow_hold(struct flow *flow, struct held_blocks *held)
{
    flow->held = held;
}

void flow_beside(struct flow *flow, int flows)
{
    const struct source *source = flow->shape.first->source;
    bool told = flow->shape.indexed && !flow->held && source->type->waits && source->type->expect;
    for (int s = 0; s < flow->shape.locate_count; s++)
        told = told && !flow->locate[s].node->stage->coming; /* it says more than we know */
    flow->beside = told && flow->shape.locate_count ? flows : 0;
}

void flow_stop(struct flow *flow)
{
    for (int m = 0; flow->map && m < flow->shape.map_count; m++) {
        const struct map_step *step = &flow->map[m];
        if (step->node && step->started && step->node->function->state_stop)
            step->node->function->state_stop(step->state);
    }
}

int64_t flow_rows(const struct flow *flow)
{
    return flow->shape.rows;
}

const int64_t *flow_index(const struct flow *flow)
{
    return flow->position;
}

const uint64_t *flow_epoch(const struct flow *flow)
{
    return flow->epoch;
}

/* ---- measuring ---- */

void flow_time(struct flow *flow)
{
    flow->clock.runs = true;
}

static void choose_timed(struct flow_clock *clock, unsigned *turn, int64_t rows)
{
    unsigned every = rows < CLOCK_ROWS ? (unsigned)(CLOCK_ROWS / rows) : 1;
    clock->on = clock->runs && (*turn)++ % (every < CLOCK_MOST ? every : CLOCK_MOST) == 0;
}

static uint64_t clock_begin(const struct flow_clock *clock)
{
    return clock->on ? clock_ns() : 0;
}

static void clock_end(uint64_t *busy_ns, const struct flow_clock *clock, uint64_t start)
{
    if (clock->on)
        *busy_ns += clock_ns() - start;
}

static uint64_t scale(uint64_t busy_ns, uint64_t timed, uint64_t rows)
{
    return timed ? (uint64_t)((double)busy_ns * (double)rows / (double)timed) : 0;
}

void flow_times_each(flow_visit *visit, void *context, const struct flow *flow)
{
    const struct flow_clock *clock = &flow->clock;
    for (int s = 0; s < flow->shape.locate_count; s++)
        visit(context, flow->locate[s].node, scale(flow->locate[s].busy_ns, clock->timed, clock->rows), clock->rows);
    for (int m = 0; m < flow->shape.map_count; m++)
        visit(context, flow->map[m].node, scale(flow->map[m].busy_ns, clock->mapped, clock->rows), clock->rows);
    if (flow->shape.indexed)
        visit(context, flow->shape.first, scale(clock->read_ns, clock->timed, clock->rows), clock->rows);
}

void flow_cost_each(flow_visit *visit, void *context, const struct dataset *dataset)
{
    for (const struct dataset *node = dataset; !node->sequential && node->input; node = node->input) {
        struct shape_of_flow shape = {0};
        if (!node->function)
            continue;
        add_function(&shape, node);
        uint64_t bytes = add_most(shape.states_bytes, shape.made_bytes);
        if (node->function->state_cost)
            bytes = add_most(bytes, node->function->state_cost(node->input->spec, node->spec, node->options));
        visit(context, node, bytes, 0);
    }
}

/* ---- elements come in ---- */

struct pointers {
    void *row[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS];
};

/* Where row `row` of each column is. */
static void point_to_row(struct pointers *out, const struct flow *flow, const struct spec *spec,
                         const struct site *site, const struct flow_target *target, int64_t row)
{
    for (int c = 0; c < spec->column_count; c++) {
        uint8_t *base = site[c].column >= 0 ? target->column[site[c].column] : flow->buffer + site[c].at;
        out->stride[c] = spec->column[c].bytes;
        out->row[c] = base + (uint64_t)row * out->stride[c];
    }
}

void flow_place(struct flow *flow, uint64_t epoch, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        flow->position[i] = first + i;
        flow->epoch[i] = epoch;
    }
}

static void view(struct chunk *chunk, struct flow *flow, const struct flow_target *target)
{
    struct pointers to;
    *chunk = (struct chunk){.spec = flow->shape.first->spec,
                            .capacity = flow->shape.rows,
                            .index = flow->position,
                            .epoch = flow->epoch,
                            .values = flow->in};
    point_to_row(&to, flow, chunk->spec, flow->source, target, 0);
    for (int c = 0; c < chunk->spec->column_count; c++)
        chunk->column[c] = to.row[c];
}

bool flow_has_maps(const struct flow *flow)
{
    return flow->shape.map_count > 0;
}

plim_status flow_take(int64_t *got, bool *kept, struct flow *flow, struct stream *head,
                      const struct flow_target *target, int64_t most, bool keep, plim_error *error)
{
    struct chunk chunk;
    view(&chunk, flow, target);
    chunk.capacity = most < chunk.capacity ? most : chunk.capacity; /* the target has no more rows */
    flow->head = head;
    TRY(stream_pull(head, &chunk, chunk.capacity, error));
    *kept = !keep || chunk_own(&chunk);
    *got = chunk.count;
    return PLIM_OK;
}

plim_status flow_skip(int64_t *passed, struct flow *flow, struct stream *head, const struct flow_target *target,
                      int64_t rows, int64_t count, plim_error *error)
{
    struct chunk chunk;
    view(&chunk, flow, target);
    chunk.capacity = chunk.capacity < rows ? chunk.capacity : rows;
    return stream_skip(passed, head, count, &chunk, error);
}

/* ---- maps ---- */

/* Which file the element in a row is from, where its source can tell; row < 0: it is not known which. */
static plim_status tell_place(const struct flow *flow, int64_t row, const char *column, plim_status status,
                              plim_error *error)
{
    char where[256];
    const struct source *source = flow->shape.first->source;
    if (row < 0 || status != PLIM_BAD_DATA)
        return status;
    int64_t index = flow->position[row];
    bool told = flow->shape.indexed ? index >= 0 && index < source->count && source->type->describe &&
                                          source->type->describe(where, source, index, column)
                                    : flow->head && stream_describe(where, flow->head, flow->epoch[row], index, column);
    return told ? error_at(error, status, where) : status;
}

/* Rows `start`.. of this call, all of one epoch. */
static plim_status run_maps(struct flow *flow, const struct flow_target *target, int64_t start, int64_t count,
                            plim_error *error)
{
    for (int m = 0; m < flow->shape.map_count; m++) {
        const struct map_step *step = &flow->map[m];
        const struct spec *from_spec = step->node->input->spec, *to_spec = step->node->spec;
        struct pointers from, to;
        int64_t bad = count == 1 ? 0 : -1;
        const struct map_function *function = step->node->function;
        if (!function->run && !function->run_row)
            continue;
        point_to_row(&from, flow, from_spec, step->from, target, start);
        point_to_row(&to, flow, to_spec, step->to, target, start);
        const struct map_call call = {
            .function = function,
            .from_spec = from_spec,
            .to_spec = to_spec,
            .from = from.row,
            .to = to.row,
            .from_stride = from.stride,
            .to_stride = to.stride,
            .count = count,
            .index = flow->position + start,
            .seed = step->seed,
            .epoch = flow->epoch[start],
            .options = step->node->options,
            .state = step->state,
            .values = &flow->made,
            .bad = &bad,
        };
        uint64_t start_ns = clock_begin(&flow->clock);
        plim_status status = map_run(&call, error);
        if (status != PLIM_OK)
            return tell_place(flow, bad < 0 ? -1 : start + bad, NULL, status, error);
        clock_end(&flow->map[m].busy_ns, &flow->clock, start_ns);
    }
    return PLIM_OK;
}

/* A repeat may have brought several epochs together; functions that make values get one element at a time. */
static plim_status map_rows(struct flow *flow, const struct flow_target *target, int64_t first, int64_t end,
                            plim_error *error)
{
    while (flow->shape.map_count && first < end) {
        int64_t stop = first + 1;
        while (!flow->shape.makes_values && stop < end && flow->epoch[stop] == flow->epoch[first])
            stop++;
        value_buffer_empty(&flow->made);
        /* NEEDSWORK: one element is finished first; an image of 100 megapixels takes more than half a second. */
        TRY(budget_go_on(flow->budget, error));
        if (flow->shape.makes_values)
            choose_timed(&flow->clock, &flow->clock.map_turn, 1);
        flow->clock.mapped += flow->clock.on ? (uint64_t)(stop - first) : 0;
        TRY(run_maps(flow, target, first, stop - first, error));
        first = stop;
    }
    return PLIM_OK;
}

/* What stage s knows of rows that are soon needed: tells the source of runs that the stages before it leave whole. */
static void announce(struct flow *flow, int s)
{
    struct coming coming[MOST_COMING];
    struct source *source = flow->shape.first->source;
    struct locate_step *step = &flow->locate[s];
    int runs = step->node->stage->coming(coming, &step->state, step->node, flow->position[0], flow->epoch[0]);
    bool held = flow->held && s + 1 == flow->shape.locate_count; /* blocks of the source's own rows */
    for (int r = 0; r < runs && held; r++)
        held_expect(flow->held, coming[r].first, (flow->epoch[0] << 32) + (uint64_t)coming[r].group + 1);
    for (int r = 0; r < runs && !flow->held; r++) {
        int64_t ends[2] = {coming[r].first, coming[r].first + coming[r].count - 1};
        uint64_t epochs[2] = {flow->epoch[0], flow->epoch[0]};
        for (int before = s + 1; before < flow->shape.locate_count; before++) {
            struct locate_step *other = &flow->locate[before];
            other->node->stage->locate(&other->state, other->node, ends, epochs, 2);
        }
        if (ends[1] - ends[0] == coming[r].count - 1)
            source->type->expect(source, ends[0], coming[r].count);
    }
}

static void locate(struct flow *flow, int64_t count)
{
    bool told = flow->shape.first->source->type->expect != NULL;
    for (int s = 0; s < flow->shape.locate_count; s++) {
        struct locate_step *step = &flow->locate[s];
        uint64_t start_ns = clock_begin(&flow->clock);
        if (told && step->node->stage->coming)
            announce(flow, s);
        step->node->stage->locate(&step->state, step->node, flow->position, flow->epoch, count);
        clock_end(&step->busy_ns, &flow->clock, start_ns);
    }
}

/* The rows that this flow is given next, most likely: of the rows at hand the disk is asked for the last ones when the
   first are there already, and would have ever less to do. `first`: where the rows at hand begin. */
static void ask_ahead(struct flow *flow, int64_t first, uint64_t epoch, int64_t count)
{
    struct source *source = flow->shape.first->source;
    int64_t position[FLOW_ROWS], all = flow->shape.dataset->cardinality;
    uint64_t epochs[FLOW_ROWS];
    first += count * flow->beside;
    if (all >= 0 && count > all - first)
        count = all - first;
    for (int64_t i = 0; i < count; i++) {
        position[i] = first + i;
        epochs[i] = epoch;
    }
    for (int s = 0; s < flow->shape.locate_count && count > 0; s++)
        flow->locate[s].node->stage->locate(&flow->locate[s].state, flow->locate[s].node, position, epochs, count);
    for (int64_t i = 0, run; i < count; i += run) {
        run = run_length(position + i, count - i);
        source->type->expect(source, position[i], run);
    }
}

/* Elements first..end from the source, as many as fit the value buffer; *end is set to where they end. */
static plim_status read_rows(struct flow *flow, const struct flow_target *target, int64_t first, int64_t *end,
                             plim_error *error)
{
    struct pointers to;
    struct source *source = flow->shape.first->source;
    point_to_row(&to, flow, &source->spec, flow->source, target, first);
    if (flow->held)
        return held_read(flow->held, flow->position + first, *end - first, to.row, to.stride, error);
    if (!source->type->read_values)
        return source->type->read(source, flow->position + first, *end - first, to.row, to.stride, error);
    int64_t done = 0;
    const struct row_target rows = {.to = to.row, .stride = to.stride, .values = &flow->in};
    value_buffer_empty(&flow->in);
    TRY(source->type->read_values(&done, source, flow->position + first, *end - first, &rows, error));
    if (!done)
        return stream_too_large(flow->shape.first, flow->in.wanted, flow->in.capacity, error);
    *end = first + done;
    return PLIM_OK;
}

static plim_status check_labels(const struct flow *flow, const struct flow_target *target, int64_t count,
                                plim_error *error)
{
    const struct dataset *dataset = flow->shape.dataset;
    for (int i = 0; i < dataset->label_count; i++) {
        int column = dataset->labels[i].column;
        int64_t bad = -1;
        const struct label_rows rows = {target->column[column], flow->position, count};
        plim_status status = labels_check(&bad, dataset, &dataset->labels[i], &rows, error);
        if (status != PLIM_OK)
            return tell_place(flow, bad, dataset->spec->column[column].name, status, error);
    }
    return PLIM_OK;
}

plim_status flow_finish(int64_t *done, struct flow *flow, const struct flow_target *target, int64_t count,
                        plim_error *error)
{
    int64_t stop = count;
    TRY(budget_go_on(flow->budget, error));
    choose_timed(&flow->clock, &flow->clock.turn, count);
    flow->clock.timed += flow->clock.on ? (uint64_t)count : 0;
    if (flow->beside && flow->shape.first->source->type->waits(flow->shape.first->source))
        ask_ahead(flow, flow->position[0], flow->epoch[0], count);
    if (flow->shape.indexed)
        locate(flow, count);
    for (int64_t first = 0; first < count; first = stop) {
        stop = count;
        uint64_t start_ns = clock_begin(&flow->clock);
        if (flow->shape.indexed)
            TRY(read_rows(flow, target, first, &stop, error));
        clock_end(&flow->clock.read_ns, &flow->clock, start_ns);
        TRY(map_rows(flow, target, first, stop, error));
        if (flow->shape.keeps_values) /* the value buffer holds what the result refers to: it is not used again yet */
            break;
    }
    flow->clock.rows += (uint64_t)stop;
    *done = stop;
    return check_labels(flow, target, stop, error);
}
