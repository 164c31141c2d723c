/* shuffle_blocks.c - a shuffle for disks that dislike jumping about: row blocks (neighbouring rows) are permuted,
   then the rows inside groups of row blocks.

   What is read at one time lies in `group` row blocks, so every one is fetched once, whole (held_blocks.c). Still a
   pure map of positions, and a bijection for any count: the rows that fill no block are a short one, which stands at a
   random place among the others. */
#include "pipeline/stages/keep/shuffle.h"

#define BLOCK_BYTES ((uint64_t)256 * 1024) /* three groups of them are held, where the budget allows it */
#define BLOCK_GROUP 12
#define MOST_KEPT   ((int64_t)(sizeof((struct stage_state *)0)->row_block / sizeof(int64_t)))
#define LOOK_AHEAD  2    /* groups: the next one is read while this one is given, and the disk has work until then */
#define VALUE_BLOCK 1024 /* elements, where their bytes are not known beforehand */

static plim_status blocks_build(struct dataset *dataset, plim_error *error)
{
    struct shuffle_options *options = (struct shuffle_options *)(uintptr_t)dataset->options;
    uint64_t row = dataset->spec->element_bytes;
    if (dataset->cardinality < 0)
        return hint(error, fail(error, PLIM_UNSUPPORTED, "shuffle: blocks of data without end are not possible"),
                    "put shuffle before repeat: each repetition gets an order of its own");
    if (options->block_size < 0 || options->group < 0)
        return fail(error, PLIM_BAD_JOB, "shuffle: block_size and group must be at least 1");
    if (!options->block_size && spec_has_values(dataset->spec))
        options->block_size = VALUE_BLOCK;
    else if (!options->block_size)
        options->block_size = row && row < BLOCK_BYTES ? (int64_t)(BLOCK_BYTES / row) : 1;
    if (options->block_size > dataset->cardinality)
        options->block_size = dataset->cardinality ? dataset->cardinality : 1;
    int64_t most = dataset->cardinality / options->block_size + 1;
    options->group = options->group ? options->group : BLOCK_GROUP;
    options->group = options->group < most ? options->group : most;
    return PLIM_OK;
}

/* The order of row blocks in an epoch. Places: full blocks in permuted order, with the short one put in at `odd`. */
struct order {
    int64_t rows, group; /* of a row block; row blocks of a group */
    int64_t full, places;
    int64_t short_rows, odd; /* odd: its place; there may be none: then it is behind all others */
    int64_t missing;         /* what the short block lacks */
};

static struct order order_of(const struct dataset *dataset, uint64_t key)
{
    const struct shuffle_options *options = dataset->options;
    struct order order = {.rows = options->block_size, .group = options->group};
    uint32_t random[4];
    order.full = dataset->cardinality / order.rows;
    order.short_rows = dataset->cardinality % order.rows;
    order.places = order.full + (order.short_rows > 0);
    order.odd = order.places;
    if (!order.short_rows)
        return order;
    random_block(random, key, 0, 0);
    uint64_t bits = (uint64_t)random[1] << 32 | random[0];
    order.odd = (int64_t)((unsigned __int128)bits * (uint64_t)order.places >> 64);
    order.missing = order.rows - order.short_rows;
    return order;
}

/* Rows of a group, and the group of a position with the position in it. */
static int64_t group_rows(const struct order *order, int64_t group)
{
    int64_t first = group * order->group, places = order->places - first;
    places = places < order->group ? places : order->group;
    bool odd = order->odd >= first && order->odd < first + places;
    return places * order->rows - (odd ? order->missing : 0);
}

static int64_t group_at(int64_t *inside, const struct order *order, int64_t position)
{
    int64_t whole = order->group * order->rows, group = position / whole;
    int64_t odd = order->odd / order->group; /* groups behind it begin earlier than they would */
    if (order->missing && group >= odd && position >= odd * whole + group_rows(order, odd)) {
        position += order->missing;
        group = position / whole;
    }
    *inside = position - group * whole;
    return group;
}

static int64_t block_at(const struct stage_state *state, const struct order *order, int64_t place)
{
    return (int64_t)permutation_at(&state->permutation, (uint64_t)(place - (place > order->odd)));
}

/* Row `inside` of the row blocks of a group, in the input's numbering. */
static int64_t row_of(const struct stage_state *state, const struct order *order, int64_t group, int64_t inside)
{
    int64_t before = (order->odd - group * order->group) * order->rows; /* rows of the group before the short block */
    bool has_odd = before >= 0 && order->missing;
    if (has_odd && inside >= before && inside < before + order->short_rows)
        return order->full * order->rows + inside - before;
    if (has_odd && inside >= before)
        inside += order->missing;
    int64_t place = inside / order->rows;
    int64_t block =
        order->group <= MOST_KEPT ? state->row_block[place] : block_at(state, order, group * order->group + place);
    return block * order->rows + inside % order->rows;
}

/* Its blocks are looked up once, not for every row. */
static void begin_group(struct stage_state *state, const struct order *order, uint64_t key, int64_t group)
{
    permutation_init(&state->inner, (uint64_t)group_rows(order, group), key, 2 + (uint64_t)group);
    state->group = group;
    for (int64_t b = 0; order->group <= MOST_KEPT && b < order->group; b++) {
        int64_t place = group * order->group + b;
        state->row_block[b] = place < order->places && place != order->odd ? block_at(state, order, place) : 0;
    }
}

static void begin_epoch(struct stage_state *state, const struct order *order, uint64_t key, uint64_t epoch)
{
    if (state->ready && state->epoch == epoch)
        return;
    permutation_init(&state->permutation, (uint64_t)order->full, key, 1);
    state->epoch = epoch;
    state->group = state->announced = -1;
    state->ready = true;
}

/* The row blocks of the group that is read and of the next ones, as soon as they are known: the disk works ahead. */
static int blocks_coming(struct coming out[MOST_COMING], struct stage_state *state, const struct dataset *dataset,
                         int64_t position, uint64_t epoch)
{
    uint64_t key = shuffle_key(dataset, epoch);
    struct order order = order_of(dataset, key);
    int count = 0;
    begin_epoch(state, &order, key, epoch);
    int64_t inside, group = group_at(&inside, &order, position);
    int64_t next = state->announced >= group && state->announced <= group + LOOK_AHEAD ? state->announced + 1 : group;
    int64_t place = next * order.group, end = (group + LOOK_AHEAD + 1) * order.group;
    for (; place < end && place < order.places && count < MOST_COMING; place++) {
        bool odd = place == order.odd;
        int64_t first = (odd ? order.full : block_at(state, &order, place)) * order.rows;
        out[count++] = (struct coming){first, odd ? order.short_rows : order.rows, place / order.group};
    }
    state->announced = group + LOOK_AHEAD;
    return count;
}

/* How many of these lie in one group, whose first row is at `begin`. */
static int64_t run_of_group(const int64_t *position, const uint64_t *epoch, int64_t count, int64_t begin, int64_t rows)
{
    int64_t run = 1;
    while (run < count && epoch[run] == epoch[0] && position[run] >= begin && position[run] - begin < rows)
        run++;
    return run;
}

static void blocks_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                          int64_t count)
{
    struct order order = {0};
    uint64_t key = 0;
    for (int64_t i = 0, run; i < count; i += run) {
        if (!i || epoch[i] != epoch[i - 1]) {
            key = shuffle_key(dataset, epoch[i]);
            order = order_of(dataset, key);
        }
        begin_epoch(state, &order, key, epoch[i]);
        int64_t inside, group = group_at(&inside, &order, position[i]), begin = position[i] - inside;
        if (group != state->group)
            begin_group(state, &order, key, group);
        run = run_of_group(position + i, epoch + i, count - i, begin, group_rows(&order, group));
        for (int64_t k = i; k < i + run; k++)
            position[k] -= begin;
        permutation_map(&state->inner, position + i, run);
        for (int64_t k = i; k < i + run; k++)
            position[k] = row_of(state, &order, group, position[k]);
    }
}

static void blocks_row_blocks(int64_t *rows, int64_t *count, const struct dataset *dataset)
{
    const struct shuffle_options *options = dataset->options;
    *rows = options->block_size;
    *count = options->group;
}

const struct stage stage_shuffle_blocks = {
    .name = "shuffle",
    .build = blocks_build,
    .locate = blocks_locate,
    .by_epoch = true,
    .coming = blocks_coming,
    .row_blocks = blocks_row_blocks,
};
