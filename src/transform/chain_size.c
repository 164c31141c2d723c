/* chain_size.c - how large a chain's slices are, and how many units there
   are for workers to take.

   Slice: the most rows whose local buffers (and the weights that an update walks through
   with them) fit in half of a nominal L2. Units: enough for
   parallel work, few enough that partial sums stay cheap. Both are functions of shape
   alone, for the order of additions hangs on them. */
#include "transform/chain_work.h"

/* Partial sums may take this much, or this share of the work, before units are halved. */
#define CHEAP_PARTIAL_BYTES (256 * 1024.0)
#define WORK_PER_PARTIAL_BYTE 1024.0 /* multiply-adds that pay for a byte, above two units */
#define WORK_PER_BYTE_OF_TWO 32.0    /* and for having two units at all */
#define EVEN_ROWS 8                  /* slices of 32 rows and more are multiples of this: kernels have no ragged edge */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t row_bytes(const struct tensor *tensor)
{
    return shape_row(&tensor->shape) * (int64_t)type_bytes(tensor->type);
}

static bool is_slice_buffer(const struct chain_work *work, const struct node *node, int k)
{
    return work->chains->local[node->output[k]->id] && work->cut[node->id].output[k] == PART_CUT;
}

/* Bytes a row of the inputs that die at this node (its place in order is `at`). */
static int64_t dying_bytes(const struct chain_work *work, int at, const int *last)
{
    const struct node *node = work->chains->order[at];
    int64_t bytes = 0;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *tensor = node->input[i];
        bool again = false;
        for (int j = 0; j < i; j++)
            again |= node->input[j] == tensor;
        if (tensor && !again && work->chains->local[tensor->id] && last[tensor->id] == at)
            bytes += row_bytes(tensor);
    }
    return bytes;
}

/* An output that takes over its input's bytes adds nothing. */
static bool takes_over(const struct chain_work *work, const struct node *node, int at, const int *last)
{
    const struct tensor *from = node->op->in_place >= 0 && node->op->in_place < node->input_count ? node->input[node->op->in_place] : NULL;
    return from && work->chains->local[from->id] && last[from->id] == at && row_bytes(from) == row_bytes(node->output[0]);
}

/* Most bytes a row that are alive at once in the chain's slice buffers. */
static int64_t slice_row_bytes(const struct chain_work *work, const struct chain *chain, int *last)
{
    int64_t live = 0, most = 0;
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        const struct node *node = work->chains->order[at];
        for (int k = 0; k < node->output_count; k++)
            last[node->output[k]->id] = at;
        for (int i = 0; i < node->input_count; i++)
            if (node->input[i])
                last[node->input[i]->id] = at;
    }
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        const struct node *node = work->chains->order[at];
        int64_t made = 0, unread = 0, over = 0;
        for (int k = 0; k < node->output_count; k++) {
            int64_t bytes = is_slice_buffer(work, node, k) ? row_bytes(node->output[k]) : 0;
            made += bytes;
            unread += last[node->output[k]->id] == at ? bytes : 0;
            over += bytes && k == 0 && takes_over(work, node, at, last) ? bytes : 0;
        }
        live += made;
        most = live - over > most ? live - over : most;
        live -= unread + dying_bytes(work, at, last);
    }
    return most;
}

/* Bytes a row of what an update walks through beside the slice buffers: weights, states. */
static int64_t streamed_row_bytes(const struct chain_work *work, const struct chain *chain)
{
    int64_t bytes = 0;
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        const struct node *node = work->chains->order[at];
        for (int i = 0; i < node->input_count; i++)
            if (node->op->updates >> i & 1 && work->cut[node->id].input[i] == PART_CUT)
                bytes += row_bytes(node->input[i]);
    }
    return bytes;
}

static int64_t common_grain(const struct chain_work *work, const struct chain *chain)
{
    int64_t grain = 1;
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        int64_t g = work->cut[work->chains->order[at]->id].grain;
        grain = grain / greatest_divisor(grain, g) * g;
    }
    return grain;
}

static void weigh(double *sum, double *partial_bytes, const struct chain_work *work, const struct chain *chain)
{
    *sum = *partial_bytes = 0;
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        const struct node *node = work->chains->order[at];
        const struct cut *cut = &work->cut[node->id];
        *sum += cut->work;
        for (int k = 0; k < node->output_count; k++)
            if (cut->output[k] == PART_SUM && !work->chains->local[node->output[k]->id])
                *partial_bytes += (double)shape_count(&node->output[k]->shape) * (double)type_bytes(node->output[k]->type);
    }
}

static int64_t units_wanted(double sum, double partial_bytes)
{
    double allowed = sum / WORK_PER_PARTIAL_BYTE > CHEAP_PARTIAL_BYTES ? sum / WORK_PER_PARTIAL_BYTE : CHEAP_PARTIAL_BYTES;
    double two = sum / WORK_PER_BYTE_OF_TWO > CHEAP_PARTIAL_BYTES ? sum / WORK_PER_BYTE_OF_TWO : CHEAP_PARTIAL_BYTES;
    if (sum < LEAST_WORK_SHARED)
        return 1;
    int64_t units = partial_bytes > 0 ? MOST_UNITS_WITH_SUMS : MOST_UNITS;
    while (units > 2 && (partial_bytes * (double)units > allowed || sum / (double)units < LEAST_WORK_SHARED / 8))
        units /= 2;
    return units == 2 && partial_bytes * 2 > two ? 1 : units;
}

void chain_size(struct chain *chain, const struct chain_work *work)
{
    double sum, partial_bytes;
    weigh(&sum, &partial_bytes, work, chain);
    /* last_reader has served; here it holds places in the chain. */
    int64_t bytes = slice_row_bytes(work, chain, work->last_reader);
    bytes += bytes > 0 ? streamed_row_bytes(work, chain) : 0;
    int64_t grain = common_grain(work, chain), extent = chain->extent;
    int64_t most = bytes > 0 ? NOMINAL_L2_BYTES / 2 / bytes : extent;
    int64_t unit = divide_up(extent, smaller(units_wanted(sum, partial_bytes), extent));
    int64_t slices = divide_up(unit, most < 1 ? 1 : most);
    int64_t slice = divide_up(unit, slices);
    if (slice >= 4 * EVEN_ROWS && EVEN_ROWS % grain == 0)
        grain = EVEN_ROWS;
    slice = divide_up(slice, grain) * grain;
    chain->slice = smaller(slice, extent);
    chain->unit = smaller(divide_up(unit, slice) * slice, divide_up(extent, chain->slice) * chain->slice);
    chain->units = (int)divide_up(extent, chain->unit);
}
