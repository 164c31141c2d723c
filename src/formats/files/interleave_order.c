/* interleave_order.c - whose turn it is when several files are read by turns. */
#include "formats/files/interleave_order.h"

void interleave_begin(struct interleave_order *order, int64_t files, int64_t cycle_length, int64_t block_length,
                      int64_t *open)
{
    *order = (struct interleave_order){
        .files = files, .cycle_length = cycle_length, .block_length = block_length, .open = open};
    for (int64_t i = 0; i < cycle_length; i++)
        open[i] = -1;
}

static void advance(struct interleave_order *order)
{
    order->given = 0;
    order->place = order->place + 1 < order->cycle_length ? order->place + 1 : 0;
}

int64_t interleave_turn(int64_t *opens, struct interleave_order *order)
{
    *opens = -1;
    for (;;) {
        if (order->open[order->place] >= 0)
            return order->place;
        if (order->next < order->files) {
            *opens = order->open[order->place] = order->next++;
            order->open_count++;
            return order->place;
        }
        if (!order->open_count)
            return -1;
        advance(order);
    }
}

void interleave_not_opened(struct interleave_order *order, bool last)
{
    order->open[order->place] = -1;
    order->open_count--;
    order->next--;
    if (last)
        order->files = order->next;
}

int64_t interleave_left(const struct interleave_order *order)
{
    return order->block_length - order->given;
}

void interleave_gave(struct interleave_order *order, int64_t elements)
{
    order->given += elements;
    if (order->given >= order->block_length)
        advance(order);
}

void interleave_ended(struct interleave_order *order)
{
    order->open[order->place] = -1;
    order->open_count--;
    advance(order);
}
