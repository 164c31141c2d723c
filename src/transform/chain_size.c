/* chain_size.c - how large a chain's slices are, and how many units there
   are for workers to take.

   Slice: the most rows whose local buffers (and the weights that an update walks through
   with them) fit in half of a nominal L2. Units: as many as the work is worth. A chain with sums takes the powers of
   two of which its sums have whole parts and leaves, so its slices may be longer than fits: its fewest leaves at least. */
#include "base/numbers/minmax.h"
#include "base/numbers/multiple.h"
#include "transform/chain_work.h"
#include "transform/in_place.h"

#define LEAST_ROWS 64 /* of a unit of columns or rows: narrower ones cost twice the time a column */
#define FEW_ROWS   32 /* of the whole: these are wide (heads, rows of kernels), and each is worth a unit */
#define EVEN_ROWS  8  /* slices of 32 rows and more are multiples of this: kernels have no ragged edge */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
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

/* Rows whose buffers fit in half of L2; two where they fit in all of it, because a weight gradient adds to its sum once
   a leaf. */
static int64_t most_rows(int64_t bytes, int64_t extent)
{
    if (bytes == 0)
        return extent;
    int64_t most = NOMINAL_L2_BYTES / 2 / bytes;
    return max_i64(most < 2 && 2 * bytes <= NOMINAL_L2_BYTES ? 2 : most, 1);
}

/* What the nodes of a chain ask of its pieces. */
struct needs {
    double work;
    int64_t grain, sum_grain; /* least common multiples */
    int64_t least;            /* rows of a slice */
    int64_t leaves;           /* fewest of all sums; 0: there are none */
    int parts;
    int64_t row_bytes; /* of what a slice walks through */
};

static struct needs needs_of(const struct chain_work *work, const struct chain *chain)
{
    struct needs needs = {.grain = 1, .sum_grain = 1, .least = 1};
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        const struct node *node = work->chains->order[at];
        const struct cut *cut = &work->cut[node->id];
        const struct sum_order *sums = &work->sums[node->id];
        needs.work += cut->work;
        needs.grain = common_multiple(needs.grain, cut->grain);
        needs.least = max_i64(needs.least, cut->least);
        if (!sums->leaves)
            continue;
        needs.sum_grain = common_multiple(needs.sum_grain, sum_grain(cut));
        needs.parts = needs.leaves && needs.parts < sums->parts ? needs.parts : sums->parts;
        needs.leaves = needs.leaves && needs.leaves < sums->leaves ? needs.leaves : sums->leaves;
    }
    needs.row_bytes = slice_row_bytes(work, chain);
    needs.row_bytes += needs.row_bytes > 0 ? streamed_row_bytes(work, chain) : 0;
    return needs;
}

static int units_wanted(double work)
{
    int units = work < LEAST_WORK_SHARED ? 1 : MOST_UNITS;
    while (units > 2 && work / units < LEAST_WORK_SHARED / 8)
        units /= 2;
    return units;
}

/* Units and slices are powers of two: whole parts and leaves of every sum. */
static void size_with_sums(struct chain *chain, const struct needs *needs)
{
    int wanted = (int)max_i64(min_i64(units_wanted(needs->work), chain->extent / needs->least), 1);
    int64_t most = most_rows(needs->row_bytes, chain->extent);
    chain->grain = common_multiple(needs->grain, needs->sum_grain);
    chain->units = 1;
    while (2 * chain->units <= wanted && chain->units < needs->parts)
        chain->units *= 2;
    for (chain->slices = chain->units; 2 * chain->slices <= needs->leaves; chain->slices *= 2)
        if (chain_slice(chain) <= most || chain->extent / (2 * chain->slices) < needs->least)
            return;
}

/* As many units as the work is worth, of as few slices as fit. */
static void size_without_sums(struct chain *chain, const struct needs *needs)
{
    int64_t extent = chain->extent, grain = needs->grain;
    int64_t least = chain->by_sample || extent < FEW_ROWS ? needs->least : LEAST_ROWS;
    int64_t units = max_i64(min_i64(units_wanted(needs->work), extent / max_i64(least, grain)), 1);
    int64_t most = max_i64(most_rows(needs->row_bytes, extent), needs->least), unit = divide_up(extent, units);
    int64_t slice = divide_up(unit, divide_up(unit, most));
    if (slice >= 4 * EVEN_ROWS && EVEN_ROWS % grain == 0)
        grain = EVEN_ROWS;
    int64_t each = min_i64(divide_up(unit, most), max_i64(extent / grain / units, 1));
    chain->grain = grain;
    chain->units = (int)min_i64(units, max_i64(extent / grain, 1));
    chain->slices = min_i64(each, MOST_CUT_PIECES / MOST_UNITS) * chain->units;
}

void chain_sizes(struct chain_work *work)
{
    find_last(work);
    find_homes(work);
    for (int c = 0; c < work->chains->chain_count; c++) {
        struct chain *chain = &work->chains->chain[c];
        struct needs needs = needs_of(work, chain);
        if (needs.leaves)
            size_with_sums(chain, &needs);
        else
            size_without_sums(chain, &needs);
    }
}
