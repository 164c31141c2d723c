/* chain_size.c - how large a chain's slices are, and how many units there
   are for workers to take.

   Slice: the most rows whose local buffers (and the weights that an update walks through
   with them) fit in half of a nominal L2. Units: enough for
   parallel work, few enough that partial sums stay cheap. Both are functions of shape
   alone, for the order of additions hangs on them. */
#include "base/numbers/minmax.h"
#include "transform/chain_work.h"
#include "transform/in_place.h"

/* Partial sums may take this much, or this share of the work, before units are halved. */
#define CHEAP_PARTIAL_BYTES   (256 * 1024.0)
#define WORK_PER_PARTIAL_BYTE 1024.0 /* multiply-adds that pay for a byte, above two units */
#define WORK_PER_BYTE_OF_TWO  32.0   /* and for having two units at all */
#define LEAST_ROWS            64     /* of a unit of columns or rows: narrower ones cost twice the time a column */
#define FEW_ROWS              32 /* of the whole: these are wide (heads, rows of kernels), and each is worth a unit */
#define EVEN_ROWS             8  /* slices of 32 rows and more are multiples of this: kernels have no ragged edge */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
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
    return (int64_t)tensor_row_bytes(tensor);
}

/* A local value with bytes of its own in the slice buffers. */
static bool is_buffer(const struct chain_work *work, const struct tensor *tensor)
{
    return work->chains->local[tensor->id] && !work->homed[tensor->id];
}

/* The input whose bytes output 0 takes over at this place in order; or NULL. */
static const struct tensor *taken_over(const struct chain_work *work, int at)
{
    const struct node *node = work->chains->order[at];
    const struct tensor *from = in_place_input(node, &work->cut[node->id]);
    return from && work->last[from->id] == at ? from : NULL;
}

static void find_last(struct chain_work *work)
{
    for (int at = 0; at < work->chains->node_count; at++) {
        const struct node *node = work->chains->order[at];
        for (int k = 0; k < node->output_count; k++)
            work->last[node->output[k]->id] = at;
        for (int i = 0; i < node->input_count; i++)
            if (node->input[i])
                work->last[node->input[i]->id] = at;
    }
}

/* One home for all that share bytes: when one of them has a place in the tensor arena, all do.
   Forwards from an input with a home, backwards from an output with one. */
static void find_homes(struct chain_work *work)
{
    const bool *local = work->chains->local;
    bool *homed = work->homed;
    for (int at = 0; at < work->chains->node_count; at++) {
        const struct tensor *from = taken_over(work, at), *to = work->chains->order[at]->output[0];
        if (from && (!local[from->id] || homed[from->id]))
            homed[to->id] = true;
    }
    for (int at = work->chains->node_count - 1; at >= 0; at--) {
        const struct tensor *from = taken_over(work, at), *to = work->chains->order[at]->output[0];
        if (from && (!local[to->id] || homed[to->id]))
            homed[from->id] = true;
    }
}

/* Bytes a row of the buffers that are read for the last time at this place. */
static int64_t dying_bytes(const struct chain_work *work, int at)
{
    const struct node *node = work->chains->order[at];
    int64_t bytes = 0;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *tensor = node->input[i];
        bool again = false;
        for (int j = 0; j < i; j++)
            again |= node->input[j] == tensor;
        if (tensor && !again && is_buffer(work, tensor) && work->last[tensor->id] == at)
            bytes += row_bytes(tensor);
    }
    return bytes;
}

/* Most bytes a row that are alive at once in the chain's slice buffers. */
static int64_t slice_row_bytes(const struct chain_work *work, const struct chain *chain)
{
    int64_t live = 0, most = 0;
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        const struct node *node = work->chains->order[at];
        int64_t unread = 0, over = 0;
        for (int k = 0; k < node->output_count; k++) {
            const struct tensor *tensor = node->output[k];
            if (!is_buffer(work, tensor) || work->cut[node->id].output[k] != PART_CUT)
                continue;
            live += row_bytes(tensor);
            unread += work->last[tensor->id] == at ? row_bytes(tensor) : 0;
            over += k == 0 && taken_over(work, at) ? row_bytes(tensor) : 0;
        }
        most = live - over > most ? live - over : most;
        live -= unread + dying_bytes(work, at);
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
                *partial_bytes += (double)tensor_bytes(node->output[k]);
    }
}

static int64_t units_wanted(double sum, double partial_bytes)
{
    double allowed =
        sum / WORK_PER_PARTIAL_BYTE > CHEAP_PARTIAL_BYTES ? sum / WORK_PER_PARTIAL_BYTE : CHEAP_PARTIAL_BYTES;
    double two = sum / WORK_PER_BYTE_OF_TWO > CHEAP_PARTIAL_BYTES ? sum / WORK_PER_BYTE_OF_TWO : CHEAP_PARTIAL_BYTES;
    if (sum < LEAST_WORK_SHARED)
        return 1;
    int64_t units = partial_bytes > 0 ? MOST_UNITS_WITH_SUMS : MOST_UNITS;
    while (units > 2 && (partial_bytes * (double)units > allowed || sum / (double)units < LEAST_WORK_SHARED / 8))
        units /= 2;
    return units == 2 && partial_bytes * 2 > two ? 1 : units;
}

/* Rows whose buffers fit in half of L2; two where they fit in all of it, for a weight
   gradient adds to its sum once a slice. */
static int64_t most_rows(int64_t bytes, int64_t extent)
{
    if (bytes == 0)
        return extent;
    int64_t most = NOMINAL_L2_BYTES / 2 / bytes;
    return most < 2 && 2 * bytes <= NOMINAL_L2_BYTES ? 2 : most;
}

static void chain_size(struct chain *chain, const struct chain_work *work)
{
    double sum, partial_bytes;
    weigh(&sum, &partial_bytes, work, chain);
    int64_t bytes = slice_row_bytes(work, chain);
    bytes += bytes > 0 ? streamed_row_bytes(work, chain) : 0;
    int64_t grain = common_grain(work, chain), extent = chain->extent;
    int64_t most = most_rows(bytes, extent);
    int64_t least = chain->by_sample || extent < FEW_ROWS ? 1 : LEAST_ROWS;
    int64_t unit = divide_up(extent, min_i64(units_wanted(sum, partial_bytes), divide_up(extent, least)));
    int64_t slices = divide_up(unit, most < 1 ? 1 : most);
    int64_t slice = divide_up(unit, slices);
    if (slice >= 4 * EVEN_ROWS && EVEN_ROWS % grain == 0)
        grain = EVEN_ROWS;
    slice = divide_up(slice, grain) * grain;
    chain->slice = min_i64(slice, extent);
    chain->unit = min_i64(divide_up(unit, slice) * slice, divide_up(extent, chain->slice) * chain->slice);
    chain->units = (int)divide_up(extent, chain->unit);
}

void chain_sizes(struct chain_work *work)
{
    find_last(work);
    find_homes(work);
    for (int c = 0; c < work->chains->chain_count; c++)
        chain_size(&work->chains->chain[c], work);
}
