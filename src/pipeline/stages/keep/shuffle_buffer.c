/* shuffle_buffer.c - tf.data's shuffle: a buffer of elements; the next one is any of them, and its place is taken by
   the next of the input.

   1. The n-th choice of an epoch is a function of (key, n) alone, and when elements come in depends on what is held
      alone, never on how many are asked for at a time: passing over elements gives the same as giving them.
   2. An element lies in one packed row (packed.h). The places of coming choices are known ahead and fetched into
      the cache.
   3. What rows refer to lies in a store of small blocks, in chains. A full store holds the filling up: then fewer
      elements than the buffer could take are mixed.
   4. The input is pulled only while nothing has been given yet: an error costs no element. */
#include "pipeline/stages/keep/shuffle.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/stages/keep/packed.h"

#define IN_ROWS      256
#define IN_BYTES     ((uint64_t)16 * 1024)
#define STORE_BYTES  ((uint64_t)16 * 1024 * 1024) /* of values, where no limit is stated */
#define AHEAD        4
#define RANDOMS      64
#define LINE         64
#define MOST_LINES   16
#define CACHED_BYTES ((uint64_t)1024 * 1024)
#define NO_BLOCK     UINT32_MAX
#define NO_PLACE     (-1)

/* What there is room for: a pure function of the dataset. */
struct buffer_plan {
    struct packed packed;
    int64_t elements, in_rows;
    uint64_t place_bytes; /* of one element: the packed row, and where its values begin */
    uint64_t block_bytes, blocks;
};

struct buffer_stream {
    struct stream stream;
    struct buffer_plan plan;
    struct chunk in;
    int64_t in_at; /* the next row of it */
    uint8_t *places;
    int64_t held, hole; /* places 0..held are taken, but for the hole */
    bool over;          /* the input has no more */
    bool cached;        /* so small that it is in the processor's cache anyway */
    uint64_t key, given;
    uint64_t random[RANDOMS];
    uint8_t *store;
    uint32_t *next_block, free_block;
    uint64_t free_blocks;
};

/* What a place holds behind the packed row, where columns have values. */
struct kept_values {
    uint64_t buffer_bytes; /* what they take in a value buffer */
    uint32_t first, blocks;
};

/* ---- laying out ---- */

static uint64_t least_store(const struct dataset *dataset)
{
    return round_up(dataset->value_bytes ? dataset->value_bytes : 1, 4096);
}

/* Blocks of about a quarter of what an element may take: little is left unused in the last one of a chain. */
static void plan_store(struct buffer_plan *plan, const struct dataset *dataset, uint64_t limit)
{
    uint64_t rows, store, each = 64;
    if (!mul_u64(&rows, (uint64_t)plan->elements, plan->place_bytes))
        rows = UINT64_MAX;
    if (limit)
        store = limit > rows ? limit - rows : 0;
    else if (!mul_u64(&store, (uint64_t)plan->elements, dataset->value_bytes) || store > STORE_BYTES)
        store = STORE_BYTES;
    store = store > least_store(dataset) ? store : least_store(dataset);
    while (each < 4096 && each * 8 <= store / (uint64_t)plan->elements)
        each *= 2;
    plan->block_bytes = each;
    plan->blocks = store / (each + sizeof(uint32_t));
    plan->blocks = plan->blocks < NO_BLOCK ? plan->blocks : NO_BLOCK - 1;
}

static void plan_buffer(struct buffer_plan *plan, const struct dataset *dataset)
{
    const struct shuffle_options *options = dataset->options;
    bool values = spec_has_values(dataset->spec);
    *plan = (struct buffer_plan){.elements = options->buffer_size, .in_rows = IN_ROWS};
    packed_lay(&plan->packed, dataset->spec);
    plan->place_bytes = plan->packed.bytes + (values ? sizeof(struct kept_values) : 0);
    if (dataset->cardinality >= 0 && plan->elements > dataset->cardinality)
        plan->elements = dataset->cardinality ? dataset->cardinality : 1;
    uint64_t fit = options->bytes / plan->place_bytes;
    if (options->bytes && (uint64_t)plan->elements > fit)
        plan->elements = fit ? (int64_t)fit : 1;
    if (dataset->spec->element_bytes > IN_BYTES / IN_ROWS)
        plan->in_rows = (int64_t)(IN_BYTES / dataset->spec->element_bytes);
    plan->in_rows = plan->in_rows < plan->elements ? plan->in_rows : plan->elements;
    plan->in_rows = plan->in_rows > 1 ? plan->in_rows : 1;
    if (values)
        plan_store(plan, dataset, options->bytes);
}

static uint64_t places_bytes(const struct buffer_plan *plan)
{
    uint64_t bytes;
    return mul_u64(&bytes, (uint64_t)plan->elements, plan->place_bytes) ? round_up(bytes, 64) : UINT64_MAX;
}

static uint64_t buffer_bytes(const struct dataset *dataset)
{
    struct buffer_plan plan;
    plan_buffer(&plan, dataset);
    uint64_t bytes = add_most(round_up(sizeof(struct buffer_stream), 64), places_bytes(&plan));
    bytes = add_most(bytes, chunk_bytes(dataset->spec, plan.in_rows, dataset->value_bytes));
    return add_most(bytes, plan.blocks * (plan.block_bytes + sizeof(uint32_t)));
}

static plim_status buffer_start(struct stream *stream, plim_error *error)
{
    struct buffer_stream *self = (struct buffer_stream *)stream;
    const struct dataset *dataset = stream->dataset;
    (void)error;
    plan_buffer(&self->plan, dataset);
    self->places = (uint8_t *)stream + round_up(sizeof *self, 64);
    self->cached = places_bytes(&self->plan) <= CACHED_BYTES;
    uint8_t *in = self->places + places_bytes(&self->plan);
    chunk_lay(&self->in, in, dataset->spec, self->plan.in_rows, dataset->value_bytes);
    self->store = in + chunk_bytes(dataset->spec, self->plan.in_rows, dataset->value_bytes);
    self->next_block = (uint32_t *)(self->store + self->plan.blocks * self->plan.block_bytes);
    return PLIM_OK;
}

static plim_status buffer_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct buffer_stream *self = (struct buffer_stream *)stream;
    self->held = self->in_at = self->in.count = 0;
    self->hole = NO_PLACE;
    self->over = false;
    self->given = 0;
    self->key = shuffle_key(stream->dataset, epoch);
    self->free_blocks = self->plan.blocks;
    self->free_block = self->plan.blocks ? 0 : NO_BLOCK;
    for (uint64_t b = 0; b < self->plan.blocks; b++)
        self->next_block[b] = b + 1 < self->plan.blocks ? (uint32_t)(b + 1) : NO_BLOCK;
    return stream_rewind_inputs(stream, epoch, error);
}

/* ---- values ---- */

struct store_mover {
    struct mover mover;
    struct buffer_stream *self;
    uint32_t block;
    uint64_t at; /* in the block */
    bool out;
};

static void move_piece(struct mover *mover, void *piece, uint64_t bytes)
{
    struct store_mover *store = (struct store_mover *)mover;
    struct buffer_stream *self = store->self;
    const uint64_t each = self->plan.block_bytes;
    for (uint8_t *at = piece; bytes;) {
        if (store->at == each) {
            store->block = self->next_block[store->block];
            store->at = 0;
        }
        uint64_t some = each - store->at < bytes ? each - store->at : bytes;
        uint8_t *kept = self->store + store->block * each + store->at;
        if (store->out)
            memcpy(at, kept, some);
        else
            memcpy(kept, at, some);
        store->at += some;
        at += some;
        bytes -= some;
    }
}

/* The first blocks of the free list become a chain; false: there are not enough. */
static bool keep_values(struct buffer_stream *self, struct kept_values *kept, int64_t row)
{
    uint64_t bytes = values_bytes(&self->in, row), each = self->plan.block_bytes;
    uint64_t blocks = bytes / each + (bytes % each > 0);
    if (blocks > self->free_blocks)
        return false;
    *kept = (struct kept_values){
        .buffer_bytes = values_buffer_bytes(&self->in, row), .first = self->free_block, .blocks = (uint32_t)blocks};
    struct store_mover store = {.mover = {move_piece}, .self = self, .block = self->free_block};
    values_put(&store.mover, &self->in, row);
    for (uint64_t b = 0; b < blocks; b++)
        self->free_block = self->next_block[self->free_block];
    self->free_blocks -= blocks;
    return true;
}

/* Into the chunk; the chain goes back to the front of the free list. */
static bool give_values(struct buffer_stream *self, struct chunk *to, int64_t row, const struct kept_values *kept)
{
    if (kept->buffer_bytes > value_buffer_left(&to->values)) {
        value_buffer_refuse(&to->values, kept->buffer_bytes);
        return false;
    }
    struct store_mover store = {.mover = {move_piece}, .self = self, .block = kept->first, .out = true};
    values_get(&store.mover, to, row);
    if (!kept->blocks)
        return true;
    uint32_t last = kept->first;
    for (uint32_t b = 1; b < kept->blocks; b++)
        last = self->next_block[last];
    self->next_block[last] = self->free_block;
    self->free_block = kept->first;
    self->free_blocks += kept->blocks;
    return true;
}

/* ---- elements come in and go out ---- */

static uint8_t *place_at(const struct buffer_stream *self, int64_t place)
{
    return self->places + (uint64_t)place * self->plan.place_bytes;
}

static struct kept_values *values_at(const struct buffer_stream *self, int64_t place)
{
    return self->plan.blocks ? (struct kept_values *)(place_at(self, place) + self->plan.packed.bytes) : NULL;
}

/* The next row that came in; false: its values do not fit. */
static bool take_in(struct buffer_stream *self)
{
    int64_t at = self->hole != NO_PLACE ? self->hole : self->held;
    struct kept_values *kept = values_at(self, at);
    if (kept && !keep_values(self, kept, self->in_at))
        return false;
    packed_put(&self->plan.packed, place_at(self, at), &self->in, self->in_at++);
    self->held += self->hole == NO_PLACE;
    self->hole = NO_PLACE;
    return true;
}

static void close_hole(struct buffer_stream *self)
{
    if (self->hole == NO_PLACE)
        return;
    if (self->hole != --self->held)
        memcpy(place_at(self, self->hole), place_at(self, self->held), self->plan.place_bytes);
    self->hole = NO_PLACE;
}

/* As many as there is room for; false: the input has to be asked first. */
static inline bool fill_up(struct buffer_stream *self)
{
    while (!self->over && self->held - (self->hole != NO_PLACE) < self->plan.elements) {
        if (self->in_at == self->in.count)
            return false;
        if (!take_in(self))
            break;
    }
    close_hole(self);
    return true;
}

static plim_status fill_from_input(struct buffer_stream *self, plim_error *error)
{
    while (!fill_up(self)) {
        self->in_at = 0;
        TRY(stream_pull(self->stream.input, &self->in, self->in.capacity, error));
        self->over = self->in.count == 0;
    }
    if (!self->held && !self->over) /* a value that fits not even into the empty store */
        return stream_too_large(self->stream.dataset, values_bytes(&self->in, self->in_at),
                                self->plan.blocks * self->plan.block_bytes, error);
    return PLIM_OK;
}

static inline int64_t choice(const struct buffer_stream *self, uint64_t number)
{
    return (int64_t)((unsigned __int128)self->random[number % RANDOMS] * (uint64_t)self->held >> 64);
}

static void make_randoms(struct buffer_stream *self)
{
    for (uint64_t i = 0; i < RANDOMS; i += 2) {
        uint32_t block[4];
        random_block(block, self->key, 0, (self->given + i) / 2);
        self->random[i] = (uint64_t)block[1] << 32 | block[0];
        self->random[i + 1] = (uint64_t)block[3] << 32 | block[2];
    }
}

/* The place of a choice to come: most likely the same when its turn comes. Inlined by force: gcc 12 takes a function
   that only fetches for one without effect and leaves its calls out. */
__attribute__((always_inline)) static inline void fetch_ahead(const struct buffer_stream *self)
{
    uint64_t number = self->given + AHEAD;
    if (self->cached || number % RANDOMS < AHEAD)
        return;
    const uint8_t *at = place_at(self, choice(self, number)), *end = at + self->plan.place_bytes;
    at -= (uintptr_t)at % LINE;
    for (int line = 0; line < MOST_LINES && at < end; line++, at += LINE)
        __builtin_prefetch(at, 1);
}

/* One element out of the buffer behind the chunk's last; false: its value buffer is full. */
static bool give_one(struct buffer_stream *self, struct chunk *to)
{
    if (self->given % RANDOMS == 0)
        make_randoms(self);
    fetch_ahead(self);
    int64_t at = choice(self, self->given), row = to->count;
    const struct kept_values *kept = values_at(self, at);
    packed_get(&self->plan.packed, to, row, place_at(self, at));
    if (kept && !give_values(self, to, row, kept))
        return false;
    to->count++;
    self->given++;
    self->hole = at;
    return true;
}

static plim_status buffer_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct buffer_stream *self = (struct buffer_stream *)stream;
    TRY(fill_from_input(self, error));
    while (to->count < most && self->held) {
        if (!give_one(self, to))
            break;
        if (!fill_up(self))
            break;
    }
    if (!to->count && self->held)
        return stream_too_large(stream->dataset, to->values.wanted, to->values.capacity, error);
    return PLIM_OK;
}

static const struct stream_type buffer_stream = {
    .bytes = buffer_bytes, .start = buffer_start, .rewind = buffer_rewind, .pull = buffer_pull};

static plim_status buffer_build(struct dataset *dataset, plim_error *error)
{
    const struct shuffle_options *options = dataset->options;
    if (options->buffer_size < 1)
        return fail(error, PLIM_BAD_JOB, "shuffle: a buffer of at least 1 element; got %lld",
                    (long long)options->buffer_size);
    return PLIM_OK;
}

const struct stage stage_shuffle_buffer = {
    .name = "shuffle",
    .build = buffer_build,
    .stream = &buffer_stream,
    .keeps_elements = true,
    .sequential = true,
};
