/* held_blocks.c - row blocks (neighbouring rows) in memory, for a shuffle that takes rows from a few of them at a time.

   1. A frame holds one row block: its rows as they lie in the file, or column after column. It is pinned while rows are
      copied from it or it is being read. A block has a turn: blocks of the group that is given now and of those to come
      stay; of the others the one used longest ago makes room for a new block.
   2. A block that was announced gets a frame as soon as there is one, and the disk is asked for it at once. One that
      nobody has begun to read is read by who needs it, with the lock let go; others wait for it. One that fails to be
      read is given up: its rows are read by themselves, so that an error is that of its row.
   3. No call waits while others could wait for it: it reads what it can before it waits for others, and
      a row without a frame is read from the source. */
#include "base/numbers/checked.h"
#include "base/threads/workers.h"
#include "pipeline/core/chunk.h"
#include "pipeline/stages/keep/held_own.h"

#include <string.h>

#define GROUPS_HELD 3 /* at most: the group that is given, the next, and one that keeps the disk busy until then */

/* ---- how much ---- */

/* The stage whose rows come from row blocks of its source, or NULL. */
static const struct dataset *blocks_node(int64_t *rows, int64_t *count, const struct dataset *dataset)
{
    const struct dataset *node = dataset;
    if (flow_head(dataset)) /* a stream reads for itself */
        return NULL;
    while (node->input && node->input->input)
        node = node->input;
    if (!node->input || !node->stage->row_blocks || node->source->type->read == NULL || !node->source->type->expect)
        return NULL;
    node->stage->row_blocks(rows, count, node);
    return node;
}

/* The rows of one column are a part where frames do not hold them as they lie in files. */
static void lay_columns(struct row_layout *layout, const struct spec *spec)
{
    layout->part_count = spec->column_count;
    for (int c = 0; c < spec->column_count; c++) {
        layout->part[c] = (struct layout_part){.row_bytes = spec->column[c].bytes, .swap = 1};
        layout->column[c] = (struct layout_column){.part = c};
    }
}

/* Bytes of a frame, and where the parts are in it: all of them aligned for the queue. */
static uint64_t block_bytes(struct row_layout *layout, uint64_t room_at[MOST_COLUMNS], bool *plain,
                            const struct source *source, int64_t rows)
{
    uint64_t total = 0;
    *plain = held_plain(layout, source);
    if (!*plain)
        lay_columns(layout, &source->spec);
    for (int p = 0; p < layout->part_count; p++) {
        uint64_t area = rows_area(rows, layout->part[p].row_bytes);
        room_at[p] = total;
        total = add_most(total, *plain ? read_queue_room(area) : area);
    }
    return total;
}

static uint64_t frames_end(int64_t count)
{
    return sizeof(struct held_blocks) + (uint64_t)count * sizeof(struct frame);
}

int held_most(const struct dataset *dataset)
{
    int64_t rows, count;
    bool any = blocks_node(&rows, &count, dataset) && count <= MOST_FRAMES / GROUPS_HELD && rows >= 2;
    return any ? 1 + (int)count * (GROUPS_HELD - 1) : 0;
}

static int64_t frames_of(int64_t group, int held)
{
    return group * GROUPS_HELD < group + held - 1 ? group * GROUPS_HELD : group + held - 1;
}

uint64_t held_bytes(const struct dataset *dataset, int held)
{
    int64_t rows, count;
    uint64_t room_at[MOST_COLUMNS], bytes;
    struct row_layout layout;
    bool plain;
    const struct dataset *node = blocks_node(&rows, &count, dataset);
    if (!node || held < 1 || !held_most(dataset))
        return 0;
    count = frames_of(count, held);
    if (!mul_u64(&bytes, block_bytes(&layout, room_at, &plain, node->source, rows), (uint64_t)count))
        return UINT64_MAX;
    return add_most(add_most(bytes, frames_end(count)), READ_QUEUE_ALIGNMENT);
}

/* ---- opening and closing ---- */

static plim_status make_lock(struct held_blocks *held, plim_error *error)
{
    if (!lock_init(&held->lock))
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    if (pthread_cond_init(&held->arrived, NULL) == 0)
        return PLIM_OK;
    pthread_mutex_destroy(&held->lock);
    return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
}

static void lay_frames(struct held_blocks *held, const struct dataset *node, int64_t count)
{
    uint64_t each = block_bytes(&held->layout, held->room_at, &held->plain, node->source, held->block_rows);
    uint8_t *rows = (uint8_t *)round_up((uintptr_t)held + frames_end(count), READ_QUEUE_ALIGNMENT);
    held->source = node->source;
    held->frame_count = (int)count;
    for (int b = 0; b < BUCKETS; b++)
        held->bucket[b] = NOWHERE;
    for (int p = 0; p < held->frame_count; p++)
        held->frame[p] = (struct frame){.block = NOWHERE, .state = FRAME_READY, .rows = rows + (uint64_t)p * each};
}

plim_status held_open(struct held_blocks **out, const struct dataset *dataset, int blocks, int64_t late_rows,
                      struct budget *budget, plim_error *error)
{
    int64_t count;
    uint64_t bytes = held_bytes(dataset, blocks);
    struct held_blocks *held = bytes == UINT64_MAX ? NULL : budget_take(budget, TAG_PIPELINE, bytes);
    if (!held)
        return budget_refused(budget, TAG_PIPELINE, bytes, error);
    const struct dataset *node = blocks_node(&held->block_rows, &count, dataset);
    held->budget = budget;
    held->bytes = bytes;
    held->late_rows = late_rows;
    lay_frames(held, node, frames_of(count, blocks));
    plim_status status = make_lock(held, error);
    if (status != PLIM_OK) {
        budget_give(budget, TAG_PIPELINE, held, bytes);
        return status;
    }
    read_queue_init(&held->queue);
    for (int p = 0; held->plain && p < held->layout.part_count; p++)
        read_queue_admit(&held->queue, held->layout.part[p].file);
    *out = held;
    return PLIM_OK;
}

void held_close(struct held_blocks *held)
{
    if (!held)
        return;
    read_queue_release(&held->queue);
    pthread_cond_destroy(&held->arrived);
    pthread_mutex_destroy(&held->lock);
    budget_give(held->budget, TAG_PIPELINE, held, held->bytes);
}

uint64_t held_direct_bytes(const struct held_blocks *held)
{
    return read_queue_bytes(&held->queue);
}

/* ---- frames; with the lock held ---- */

static int *bucket_of(struct held_blocks *held, int64_t block)
{
    return &held->bucket[(uint64_t)block % BUCKETS];
}

static int find(struct held_blocks *held, int64_t block)
{
    int p = *bucket_of(held, block);
    while (p != NOWHERE && held->frame[p].block != block)
        p = held->frame[p].next;
    return p;
}

void held_state(struct held_blocks *held, struct frame *frame, enum frame_state state)
{
    held->new_count += (state == FRAME_NEW) - (frame->state == FRAME_NEW);
    held->later_count += (state == FRAME_LATER) - (frame->state == FRAME_LATER);
    frame->state = state;
}

void held_give_up(struct held_blocks *held, int p)
{
    int *link = bucket_of(held, held->frame[p].block);
    while (*link != p)
        link = &held->frame[*link].next;
    *link = held->frame[p].next;
    held_state(held, &held->frame[p], FRAME_READY);
    held->frame[p].block = NOWHERE;
    held->frame[p].used = held->frame[p].turn = 0;
}

static bool may_go(const struct held_blocks *held, const struct frame *frame)
{
    return !atomic_load_explicit(&frame->pins, memory_order_acquire) && (frame->turn < held->turn || !frame->turn);
}

/* NOWHERE: all are in use, or their turn is still to come. */
static int make_frame(struct held_blocks *held, int64_t block, uint64_t turn)
{
    int oldest = NOWHERE;
    for (int p = 0; p < held->frame_count; p++)
        if (may_go(held, &held->frame[p]) && (oldest == NOWHERE || held->frame[p].used < held->frame[oldest].used))
            oldest = p;
    if (oldest == NOWHERE)
        return NOWHERE;
    if (held->frame[oldest].block != NOWHERE)
        held_give_up(held, oldest);
    struct frame *frame = &held->frame[oldest];
    frame->block = block;
    frame->turn = turn;
    frame->next = *bucket_of(held, block);
    *bucket_of(held, block) = oldest;
    held_state(held, frame, FRAME_NEW);
    return oldest;
}

/* ---- what is announced; with the lock held ---- */

static int find_pending(const struct held_blocks *held, int64_t block)
{
    for (int i = 0; i < held->pending_count; i++)
        if (held->pending[i].block == block)
            return i;
    return NOWHERE;
}

/* Frames for those that were announced first, as many as there are. */
static void place_pending(struct held_blocks *held)
{
    int done = 0;
    for (; done < held->pending_count; done++) {
        const struct pending *next = &held->pending[done];
        int p = find(held, next->block);
        if (p != NOWHERE && held->frame[p].turn < next->turn)
            held->frame[p].turn = next->turn;
        if (p == NOWHERE && next->turn >= held->turn && make_frame(held, next->block, next->turn) == NOWHERE)
            break;
    }
    held->pending_count -= done;
    memmove(held->pending, held->pending + done, (size_t)held->pending_count * sizeof held->pending[0]);
}

void held_expect(struct held_blocks *held, int64_t first, uint64_t turn)
{
    int64_t block = first / held->block_rows;
    pthread_mutex_lock(&held->lock);
    int p = find(held, block), at = find_pending(held, block);
    bool known = (p != NOWHERE && held->frame[p].turn >= turn) || (at != NOWHERE && held->pending[at].turn >= turn);
    if (!known && turn >= held->turn && held->pending_count < MOST_PENDING)
        held->pending[held->pending_count++] = (struct pending){.block = block, .turn = turn};
    place_pending(held);
    pthread_mutex_unlock(&held->lock);
}

void held_forget(struct held_blocks *held)
{
    pthread_mutex_lock(&held->lock);
    held->turn = held->next_turn = 0;
    held->pending_count = 0;
    for (int p = 0; p < held->frame_count; p++)
        held->frame[p].turn = 0;
    pthread_mutex_unlock(&held->lock);
}

/* ---- finding; with the lock held ---- */

static void begin_turn(struct held_blocks *held, uint64_t turn)
{
    if (turn <= held->turn)
        return;
    held->turn = turn;
    place_pending(held);
}

/* The row block's frame, pinned once a call: frames of this call carry its number. */
static int pin(struct held_blocks *held, struct found *found, int64_t block)
{
    int p = find(held, block);
    if (p == NOWHERE) {
        int at = find_pending(held, block);
        if (at != NOWHERE)
            begin_turn(held, held->pending[at].turn);
        p = find(held, block);
        if (p == NOWHERE && (p = make_frame(held, block, held->turn)) == NOWHERE)
            return NOWHERE;
    }
    if (held->frame[p].used == held->calls)
        return p;
    held->frame[p].pins++;
    held->frame[p].used = held->calls;
    found->pinned[found->pinned_count++] = p;
    return p;
}

/* A turn begins when no row of the one before it can be missing any more: its frames are not made free under others. */
static void count_row(struct held_blocks *held, uint64_t turn)
{
    if (turn > held->next_turn) {
        held->next_turn = turn;
        held->next_rows = 0;
    }
    held->next_rows += turn == held->next_turn;
}

/* Frames for the rows that have none yet, as far as there are any. */
static void claim(struct found *found, struct held_blocks *held, const int64_t *block, const bool *done, int64_t count)
{
    found->pinned_count = 0;
    held->calls++;
    for (int64_t i = 0; i < count; i++) {
        found->row[i] = done[i] ? NOWHERE : pin(held, found, block[i]);
        if (found->row[i] != NOWHERE)
            count_row(held, held->frame[found->row[i]].turn);
    }
    if (held->next_rows > held->late_rows)
        begin_turn(held, held->next_turn);
}

static void let_go(const struct found *found, struct held_blocks *held)
{
    for (int i = 0; i < found->pinned_count; i++)
        atomic_fetch_sub_explicit(&held->frame[found->pinned[i]].pins, 1, memory_order_release);
}

/* ---- giving ---- */

static const uint8_t *find_row(const struct held_blocks *held, const struct frame *frame, int64_t index, int column)
{
    const struct layout_column *at = &held->layout.column[column];
    uint64_t inside = (uint64_t)(index - frame->block * held->block_rows);
    return held_part(held, frame, at->part) + inside * held->layout.part[at->part].row_bytes + at->offset;
}

static void copy_row(const struct held_blocks *held, const struct frame *frame, int64_t index, int64_t row,
                     void *const *to, const uint64_t *stride)
{
    const struct spec *spec = &held->source->spec;
    for (int c = 0; c < spec->column_count; c++)
        memcpy((uint8_t *)to[c] + (uint64_t)row * stride[c], find_row(held, frame, index, c), spec->column[c].bytes);
}

#define LINE  64
#define AHEAD 4 /* rows: their frames are known, and lie all over the caches */

static void fetch_row(const struct held_blocks *held, const struct frame *frame, int64_t index)
{
    const struct spec *spec = &held->source->spec;
    for (int c = 0; c < spec->column_count; c++) {
        const uint8_t *row = find_row(held, frame, index, c);
        for (uint64_t at = 0; at < spec->column[c].bytes && at < 16 * LINE; at += LINE)
            __builtin_prefetch(row + at);
    }
}

/* Rows whose row blocks came; those of a block that was given up are left to the source. Returns how many it saw to. */
static int64_t copy_rows(bool *done, bool *alone, const struct held_blocks *held, const struct found *found,
                         const int64_t *index, const int64_t *block, int64_t count, void *const *to,
                         const uint64_t *stride)
{
    int64_t seen = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count && found->row[i + AHEAD] != NOWHERE &&
            held->frame[found->row[i + AHEAD]].block == block[i + AHEAD])
            fetch_row(held, &held->frame[found->row[i + AHEAD]], index[i + AHEAD]);
        if (found->row[i] == NOWHERE)
            continue;
        const struct frame *frame = &held->frame[found->row[i]];
        if (frame->block == block[i])
            copy_row(held, frame, index[i], i, to, stride);
        else
            alone[i] = true;
        done[i] = true;
        seen++;
    }
    return seen;
}

static plim_status read_alone(const struct held_blocks *held, int64_t index, int64_t row, void *const *to,
                              const uint64_t *stride, plim_error *error)
{
    void *place_to[MOST_COLUMNS];
    for (int c = 0; c < held->source->spec.column_count; c++)
        place_to[c] = (uint8_t *)to[c] + (uint64_t)row * stride[c];
    return held->source->type->read(held->source, &index, 1, place_to, stride, error);
}

plim_status held_read(struct held_blocks *held, const int64_t *index, int64_t count, void *const *to,
                      const uint64_t *stride, plim_error *error)
{
    struct found found;
    int64_t block[FLOW_ROWS], left = count;
    bool done[FLOW_ROWS] = {0}, alone[FLOW_ROWS] = {0};
    for (int64_t i = 0; i < count; i++)
        block[i] = index[i] / held->block_rows;
    do { /* where not all row blocks of two groups fit, those of the first are let go before the second's come */
        pthread_mutex_lock(&held->lock);
        claim(&found, held, block, done, count);
        held->rows_given += count;
        held_fill(held, &found);
        pthread_mutex_unlock(&held->lock);
        left -= copy_rows(done, alone, held, &found, index, block, count, to, stride);
        let_go(&found, held);
    } while (left && found.pinned_count);
    for (int64_t i = 0; i < count; i++)
        if (!done[i] || alone[i])
            held->source->type->expect(held->source, index[i], 1);
    for (int64_t i = 0; i < count; i++)
        if (!done[i] || alone[i])
            TRY(read_alone(held, index[i], i, to, stride, error));
    return PLIM_OK;
}
