/* held_blocks.c - blocks of neighbouring rows in memory, for a shuffle that takes rows from a few blocks at a time.

   1. A place holds one block, column after column. It is pinned while rows are copied from it or it is being read; of
      the others the one used longest ago makes room for a new block.
   2. Who misses a block first reads it, with the lock let go; others wait for it. One that fails to be read is given
      up: its rows are read by themselves, so that an error is that of its row.
   3. No call waits while others could wait for it: blocks of its own are read before it waits for those of others, and
      a row without a place is read from the source. */
#include "pipeline/held_blocks.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "pipeline/chunk.h"
#include "pipeline/flow.h"

#define GROUPS_HELD 2 /* threads may be at the end of one and at the beginning of the next */
#define MOST_PLACES 1024
#define BUCKETS     256
#define NOWHERE     (-1)

struct place {
    int64_t block; /* NOWHERE: none */
    int next;      /* of the same bucket */
    int pins;
    bool ready;
    uint64_t used; /* when, in calls */
    uint8_t *rows;
};

struct held_blocks {
    struct budget *budget;
    uint64_t bytes;
    struct source *source;
    int64_t block_rows;
    uint64_t column_at[MOST_COLUMNS];
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    uint64_t calls;
    int bucket[BUCKETS];
    int place_count;
    struct place place[];
};

/* What one call found: the place of each row, each place once among those that it pinned. */
struct found {
    int row[FLOW_ROWS];
    int pinned[FLOW_ROWS], mine[FLOW_ROWS];
    int pinned_count, mine_count;
};

/* ---- how much ---- */

/* The stage whose rows come from blocks of its source, or NULL. */
static const struct dataset *blocks_node(int64_t *rows, int64_t *count, const struct dataset *dataset)
{
    const struct dataset *node = dataset;
    if (flow_head(dataset)) /* a stream reads for itself */
        return NULL;
    while (node->input && node->input->input)
        node = node->input;
    if (!node->input || !node->stage->blocks || node->source->type->read == NULL || !node->source->type->expect)
        return NULL;
    node->stage->blocks(rows, count, node);
    return node;
}

static uint64_t block_bytes(uint64_t column_at[MOST_COLUMNS], const struct spec *spec, int64_t rows)
{
    uint64_t total = 0;
    for (int c = 0; c < spec->column_count; c++) {
        column_at[c] = total;
        total = add_most(total, rows_area(rows, spec->column[c].bytes));
    }
    return total;
}

static uint64_t places_at(int64_t count)
{
    return round_up(sizeof(struct held_blocks) + (uint64_t)count * sizeof(struct place), 64);
}

uint64_t held_bytes(const struct dataset *dataset)
{
    int64_t rows, count;
    uint64_t column_at[MOST_COLUMNS], bytes;
    const struct dataset *node = blocks_node(&rows, &count, dataset);
    if (!node || count > MOST_PLACES / GROUPS_HELD || rows < 2)
        return 0;
    count *= GROUPS_HELD;
    if (!mul_u64(&bytes, block_bytes(column_at, &node->source->spec, rows), (uint64_t)count))
        return UINT64_MAX;
    return add_most(bytes, places_at(count));
}

/* ---- opening and closing ---- */

static plim_status make_lock(struct held_blocks *held, plim_error *error)
{
    if (pthread_mutex_init(&held->lock, NULL) != 0)
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    if (pthread_cond_init(&held->arrived, NULL) == 0)
        return PLIM_OK;
    pthread_mutex_destroy(&held->lock);
    return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
}

plim_status held_open(struct held_blocks **out, const struct dataset *dataset, struct budget *budget, plim_error *error)
{
    int64_t count;
    uint64_t bytes = held_bytes(dataset);
    struct held_blocks *held = bytes == UINT64_MAX ? NULL : budget_take(budget, TAG_PIPELINE, bytes);
    if (!held)
        return budget_refused(budget, TAG_PIPELINE, bytes, error);
    const struct dataset *node = blocks_node(&held->block_rows, &count, dataset);
    held->budget = budget;
    held->bytes = bytes;
    held->source = node->source;
    held->place_count = (int)count * GROUPS_HELD;
    uint64_t each = block_bytes(held->column_at, &held->source->spec, held->block_rows);
    for (int b = 0; b < BUCKETS; b++)
        held->bucket[b] = NOWHERE;
    for (int p = 0; p < held->place_count; p++)
        held->place[p] = (struct place){.block = NOWHERE,
                                        .rows = (uint8_t *)held + places_at(held->place_count) + (uint64_t)p * each};
    plim_status status = make_lock(held, error);
    if (status != PLIM_OK) {
        budget_give(budget, TAG_PIPELINE, held, bytes);
        return status;
    }
    *out = held;
    return PLIM_OK;
}

void held_close(struct held_blocks *held)
{
    if (!held)
        return;
    pthread_cond_destroy(&held->arrived);
    pthread_mutex_destroy(&held->lock);
    budget_give(held->budget, TAG_PIPELINE, held, held->bytes);
}

/* ---- places; with the lock held ---- */

static int *bucket_of(struct held_blocks *held, int64_t block)
{
    return &held->bucket[(uint64_t)block % BUCKETS];
}

static int find(struct held_blocks *held, int64_t block)
{
    int p = *bucket_of(held, block);
    while (p != NOWHERE && held->place[p].block != block)
        p = held->place[p].next;
    return p;
}

static void give_up(struct held_blocks *held, int p)
{
    int *link = bucket_of(held, held->place[p].block);
    while (*link != p)
        link = &held->place[*link].next;
    *link = held->place[p].next;
    held->place[p].block = NOWHERE;
    held->place[p].used = 0;
}

/* NOWHERE: all are in use. */
static int make_place(struct held_blocks *held, int64_t block)
{
    int oldest = NOWHERE;
    for (int p = 0; p < held->place_count; p++)
        if (!held->place[p].pins && (oldest == NOWHERE || held->place[p].used < held->place[oldest].used))
            oldest = p;
    if (oldest == NOWHERE)
        return NOWHERE;
    if (held->place[oldest].block != NOWHERE)
        give_up(held, oldest);
    struct place *place = &held->place[oldest];
    place->block = block;
    place->ready = false;
    place->next = *bucket_of(held, block);
    *bucket_of(held, block) = oldest;
    return oldest;
}

/* The block's place, pinned once a call: places of this call carry its number. */
static int pin(struct held_blocks *held, struct found *found, int64_t block)
{
    int p = find(held, block);
    bool missed = p == NOWHERE;
    if (missed && (p = make_place(held, block)) == NOWHERE)
        return NOWHERE;
    if (!missed && held->place[p].used == held->calls)
        return p;
    held->place[p].pins++;
    held->place[p].used = held->calls;
    found->pinned[found->pinned_count++] = p;
    if (missed)
        found->mine[found->mine_count++] = p;
    return p;
}

/* ---- reading ---- */

static plim_status read_block(const struct held_blocks *held, const struct place *place, plim_error *error)
{
    const struct spec *spec = &held->source->spec;
    int64_t first = place->block * held->block_rows, index[FLOW_ROWS], rows;
    int64_t end = first + held->block_rows < held->source->count ? first + held->block_rows : held->source->count;
    for (int64_t at = first; at < end; at += rows) {
        void *to[MOST_COLUMNS];
        uint64_t stride[MOST_COLUMNS];
        rows = end - at < FLOW_ROWS ? end - at : FLOW_ROWS;
        for (int64_t i = 0; i < rows; i++)
            index[i] = at + i;
        for (int c = 0; c < spec->column_count; c++) {
            stride[c] = spec->column[c].bytes;
            to[c] = place->rows + held->column_at[c] + (uint64_t)(at - first) * stride[c];
        }
        TRY(held->source->type->read(held->source, index, rows, to, stride, error));
    }
    return PLIM_OK;
}

/* Places for all rows, those that this call has to fill among them. */
static void claim(struct found *found, struct held_blocks *held, const int64_t *index, int64_t count)
{
    found->pinned_count = found->mine_count = 0;
    pthread_mutex_lock(&held->lock);
    held->calls++;
    for (int64_t i = 0; i < count; i++)
        found->row[i] = pin(held, found, index[i] / held->block_rows);
    pthread_mutex_unlock(&held->lock);
}

static void fill(const struct found *found, struct held_blocks *held)
{
    for (int i = 0; i < found->mine_count; i++) {
        struct place *place = &held->place[found->mine[i]];
        plim_error unused;
        plim_status status = read_block(held, place, &unused);
        pthread_mutex_lock(&held->lock);
        if (status == PLIM_OK)
            place->ready = true;
        else
            give_up(held, found->mine[i]);
        pthread_cond_broadcast(&held->arrived);
        pthread_mutex_unlock(&held->lock);
    }
}

/* Which blocks came. A place that was given up belongs to no block until its last pin is gone. */
static void await(bool there[MOST_PLACES], const struct found *found, struct held_blocks *held)
{
    pthread_mutex_lock(&held->lock);
    for (int i = 0; i < found->pinned_count; i++) {
        const struct place *place = &held->place[found->pinned[i]];
        while (!place->ready && place->block != NOWHERE)
            pthread_cond_wait(&held->arrived, &held->lock);
        there[found->pinned[i]] = place->block != NOWHERE;
    }
    pthread_mutex_unlock(&held->lock);
}

static void copy_row(const struct held_blocks *held, const struct place *place, int64_t index, int64_t row,
                     void *const *to, const uint64_t *stride)
{
    const struct spec *spec = &held->source->spec;
    int64_t inside = index % held->block_rows;
    for (int c = 0; c < spec->column_count; c++) {
        uint64_t bytes = spec->column[c].bytes;
        memcpy((uint8_t *)to[c] + (uint64_t)row * stride[c],
               place->rows + held->column_at[c] + (uint64_t)inside * bytes, bytes);
    }
}

#define LINE  64
#define AHEAD 4 /* rows: their places are known, and lie all over the caches */

static void fetch_row(const struct held_blocks *held, const struct place *place, int64_t index)
{
    const struct spec *spec = &held->source->spec;
    int64_t inside = index % held->block_rows;
    for (int c = 0; c < spec->column_count; c++) {
        uint64_t bytes = spec->column[c].bytes;
        const uint8_t *row = place->rows + held->column_at[c] + (uint64_t)inside * bytes;
        for (uint64_t at = 0; at < bytes && at < 16 * LINE; at += LINE)
            __builtin_prefetch(row + at);
    }
}

static plim_status read_row(const struct held_blocks *held, int64_t index, int64_t row, void *const *to,
                            const uint64_t *stride, plim_error *error)
{
    void *place_to[MOST_COLUMNS];
    for (int c = 0; c < held->source->spec.column_count; c++)
        place_to[c] = (uint8_t *)to[c] + (uint64_t)row * stride[c];
    return held->source->type->read(held->source, &index, 1, place_to, stride, error);
}

static void let_go(const struct found *found, struct held_blocks *held)
{
    pthread_mutex_lock(&held->lock);
    for (int i = 0; i < found->pinned_count; i++)
        held->place[found->pinned[i]].pins--;
    pthread_mutex_unlock(&held->lock);
}

plim_status held_read(struct held_blocks *held, const int64_t *index, int64_t count, void *const *to,
                      const uint64_t *stride, plim_error *error)
{
    struct found found;
    bool there[MOST_PLACES];
    plim_status status = PLIM_OK;
    claim(&found, held, index, count);
    fill(&found, held);
    await(there, &found, held);
    for (int64_t i = 0; i < count && status == PLIM_OK; i++) {
        if (i + AHEAD < count && found.row[i + AHEAD] != NOWHERE)
            fetch_row(held, &held->place[found.row[i + AHEAD]], index[i + AHEAD]);
        if (found.row[i] != NOWHERE && there[found.row[i]])
            copy_row(held, &held->place[found.row[i]], index[i], i, to, stride);
        else
            status = read_row(held, index[i], i, to, stride, error);
    }
    let_go(&found, held);
    return status;
}
