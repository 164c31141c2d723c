/* held_fill.c - how a row block comes into its frame: by the queue, past the page cache, or by who needs it first. */
#include "base/numbers/checked.h"
#include "formats/tables/rows.h"
#include "pipeline/stages/keep/held_own.h"

/* Columns that are a small piece of each row would hold the rest of it too. */
bool held_plain(struct row_layout *layout, const struct source *source)
{
    uint64_t bytes = 0;
    if (!source->type->layout || !source->type->layout(layout, source))
        return false;
    for (int p = 0; p < layout->part_count; p++)
        bytes = add_most(bytes, layout->part[p].row_bytes);
    return bytes - bytes / 5 <= source->spec.element_bytes;
}

static uint64_t part_offset(const struct held_blocks *held, const struct frame *frame, int part)
{
    const struct layout_part *rows = &held->layout.part[part];
    return rows->at + (uint64_t)frame->block * (uint64_t)held->block_rows * rows->row_bytes;
}

uint8_t *held_part(const struct held_blocks *held, const struct frame *frame, int part)
{
    uint64_t head = held->plain ? part_offset(held, frame, part) % READ_QUEUE_ALIGNMENT : 0;
    return frame->rows + held->room_at[part] + head;
}

static int64_t rows_of(const struct held_blocks *held, const struct frame *frame)
{
    int64_t left = held->source->count - frame->block * held->block_rows;
    return left < held->block_rows ? left : held->block_rows;
}

/* ---- by who needs it ---- */

/* A source that knows no layout: column after column. */
static plim_status read_columns(const struct held_blocks *held, const struct frame *frame, plim_error *error)
{
    const struct spec *spec = &held->source->spec;
    int64_t first = frame->block * held->block_rows, count = rows_of(held, frame), index[FLOW_ROWS], rows;
    for (int64_t at = 0; at < count; at += rows) {
        void *to[MOST_COLUMNS];
        uint64_t stride[MOST_COLUMNS];
        rows = count - at < FLOW_ROWS ? count - at : FLOW_ROWS;
        for (int64_t i = 0; i < rows; i++)
            index[i] = first + at + i;
        for (int c = 0; c < spec->column_count; c++) {
            stride[c] = spec->column[c].bytes;
            to[c] = held_part(held, frame, c) + (uint64_t)at * stride[c];
        }
        TRY(held->source->type->read(held->source, index, rows, to, stride, error));
    }
    return PLIM_OK;
}

static plim_status read_part(const struct held_blocks *held, const struct frame *frame, int p, plim_error *error)
{
    const struct layout_part *part = &held->layout.part[p];
    uint64_t bytes = (uint64_t)rows_of(held, frame) * part->row_bytes;
    return file_read(part->file, part_offset(held, frame, p), held_part(held, frame, p), bytes, error);
}

/* All of it is there: elements the right way round. */
static void turn_round(const struct held_blocks *held, const struct frame *frame)
{
    for (int p = 0; held->plain && p < held->layout.part_count; p++) {
        const struct layout_part *part = &held->layout.part[p];
        swap_elements(held_part(held, frame, p), (uint64_t)rows_of(held, frame) * part->row_bytes, part->swap);
    }
    if (held->plain)
        source_count_read(held->source, (uint64_t)rows_of(held, frame) * held->source->spec.element_bytes);
}

static plim_status read_block(const struct held_blocks *held, const struct frame *frame)
{
    plim_error unused;
    if (!held->plain)
        return read_columns(held, frame, &unused);
    for (int p = 0; p < held->layout.part_count; p++)
        TRY(read_part(held, frame, p, &unused));
    turn_round(held, frame);
    return PLIM_OK;
}

/* ---- by the queue ---- */

/* How many parts the queue took; the others were read meanwhile. None where it declined the first: the block is read
   when it is needed, and the disk may begin. */
static int ask(bool *failed, struct held_blocks *held, const struct frame *frame)
{
    int taken = 0;
    enum read_queue_answer answer = READ_DECLINED;
    for (int p = 0; held->plain && p < held->layout.part_count; p++) {
        plim_error unused;
        const struct layout_part *part = &held->layout.part[p];
        answer = read_queue_add(&held->queue, part->file, part_offset(held, frame, p), frame->rows + held->room_at[p],
                                (uint64_t)rows_of(held, frame) * part->row_bytes, (uint64_t)(frame - held->frame));
        if (answer != READ_TAKEN && !taken)
            break;
        if (answer == READ_TAKEN)
            taken++;
        else if (read_part(held, frame, p, &unused) != PLIM_OK)
            *failed = true;
    }
    if (!taken && answer == READ_DECLINED)
        held->source->type->expect(held->source, frame->block * held->block_rows, rows_of(held, frame));
    return taken;
}

/* With the lock held: one that was waited for is done. */
static void land(struct held_blocks *held, struct frame *frame)
{
    if (--frame->parts_left)
        return;
    if (!frame->failed)
        turn_round(held, frame);
    frame->pins--;
    held_state(held, frame, frame->failed ? FRAME_LATER : FRAME_READY);
    pthread_cond_broadcast(&held->arrived);
}

/* The queue is another process's, which this one was forked from: nothing is on its way here. */
static void abandon_flight(struct held_blocks *held)
{
    for (int p = 0; p < held->frame_count; p++) {
        struct frame *frame = &held->frame[p];
        if (frame->block == NOWHERE || frame->state != FRAME_FLIGHT)
            continue;
        frame->pins--;
        held_state(held, frame, FRAME_LATER);
    }
}

static void reap(struct held_blocks *held)
{
    struct read_done done[READ_QUEUE_DEPTH];
    held->reaping = true;
    pthread_mutex_unlock(&held->lock);
    int count = read_queue_wait(done, &held->queue);
    pthread_mutex_lock(&held->lock);
    held->reaping = false;
    if (count < 0)
        abandon_flight(held);
    for (int i = 0; i < count; i++) {
        struct frame *frame = &held->frame[done[i].tag];
        frame->failed |= !done[i].whole;
        land(held, frame);
    }
    pthread_cond_broadcast(&held->arrived); /* somebody else waits for the queue now */
}

/* ---- what to do next; with the lock held ---- */

static void start(struct held_blocks *held, struct frame *frame)
{
    frame->pins++;
    frame->parts_left = held->layout.part_count + 1;
    frame->tried = true;
    frame->failed = false;
    held_state(held, frame, FRAME_READING);
    pthread_mutex_unlock(&held->lock);
    bool failed = false;
    int taken = ask(&failed, held, frame);
    pthread_mutex_lock(&held->lock);
    if (taken) {
        held_state(held, frame, FRAME_FLIGHT);
        frame->failed |= failed;
        frame->parts_left -= held->layout.part_count - taken;
        land(held, frame);
        pthread_cond_broadcast(&held->arrived); /* who wants it waits for the queue now, not for this thread */
        return;
    }
    frame->pins--;
    held_state(held, frame, FRAME_LATER);
    pthread_cond_broadcast(&held->arrived);
}

static void read_now(struct held_blocks *held, int p)
{
    struct frame *frame = &held->frame[p];
    frame->pins++;
    held_state(held, frame, FRAME_READING);
    pthread_mutex_unlock(&held->lock);
    plim_status status = read_block(held, frame);
    pthread_mutex_lock(&held->lock);
    frame->pins--;
    held_state(held, frame, FRAME_READY);
    if (status != PLIM_OK)
        held_give_up(held, p);
    pthread_cond_broadcast(&held->arrived);
}

/* NOWHERE: none is left to who needs it. */
static int find_later(const struct held_blocks *held)
{
    for (int p = 0; held->later_count && p < held->frame_count; p++)
        if (held->frame[p].block != NOWHERE && held->frame[p].state == FRAME_LATER)
            return p;
    return NOWHERE;
}

static int find_pinned(const struct held_blocks *held, const struct found *found, enum frame_state state)
{
    for (int i = 0; i < found->pinned_count; i++)
        if (held->frame[found->pinned[i]].block != NOWHERE && held->frame[found->pinned[i]].state == state)
            return found->pinned[i];
    return NOWHERE;
}

/* Row blocks that nobody needs yet are read one now and then, not all when their turn comes. */
static int spare_block(struct held_blocks *held)
{
    if (held->rows_given < held->block_rows)
        return NOWHERE;
    held->rows_given = 0;
    return find_later(held);
}

/* The disk is asked for row blocks of a later turn when those of this one have come: it would share its time. Those
   that are needed first come first. */
static int new_block(const struct held_blocks *held)
{
    int first = NOWHERE;
    for (int p = 0; held->new_count && p < held->frame_count; p++) {
        const struct frame *frame = &held->frame[p];
        if (frame->state == FRAME_FLIGHT && frame->turn <= held->next_turn)
            return NOWHERE;
        if (frame->state == FRAME_NEW && (first == NOWHERE || frame->turn < held->frame[first].turn))
            first = p;
    }
    return first;
}

void held_fill(struct held_blocks *held, const struct found *found)
{
    int p;
    for (;;) {
        if ((p = find_pinned(held, found, FRAME_NEW)) != NOWHERE || (p = new_block(held)) != NOWHERE)
            start(held, &held->frame[p]);
        else if ((p = find_pinned(held, found, FRAME_LATER)) != NOWHERE || (p = spare_block(held)) != NOWHERE)
            read_now(held, p);
        else if (!held->reaping && find_pinned(held, found, FRAME_FLIGHT) != NOWHERE)
            reap(held);
        else if (find_pinned(held, found, FRAME_FLIGHT) != NOWHERE ||
                 find_pinned(held, found, FRAME_READING) != NOWHERE)
            pthread_cond_wait(&held->arrived, &held->lock);
        else
            return;
    }
}
