/* pages.c - into how many instructions chains are cut, so that paged states pass through the arena piece by piece.

   A weight is read as a whole, so it visits as a whole. A state of an optimizer is touched by one chain, row by row:
   that chain becomes several instructions, each over some of its units, and the rows of the state visit for theirs.
   Three pieces are in the arena at once: one that is computed with, the one before on its way out, the one behind on
   its way in.

   Units and slices do not change results (transform.h), so the chain may be cut anew where it has too few units. */
#include "plan/pages.h"
#include "base/files/transfer_file.h"
#include "base/numbers/checked.h"
#include "base/numbers/minmax.h"
#include "plan/plan_builder.h"

#define WHOLE_BYTES  ((uint64_t)8 << 20) /* of all states of a chain: so many are there as a whole, or are a piece */
#define LEAST_BYTES  ((uint64_t)2 << 20) /* of a piece */
#define LEAST_GRAINS 8                   /* of a piece: pieces differ by one */

const struct home *home_of(const struct builder *b, const struct tensor *tensor)
{
    bool lasts = tensor->kind == KIND_WEIGHT || tensor->kind == KIND_STATE;
    return lasts ? program_home(b->program, b->persistent[tensor->id]) : NULL;
}

/* By tensor id: the one chain that walks through a state row by row. */
enum { UNTOUCHED = -1, NOT_BY_ROWS = -2 };

static void note_touch(int *walker, const struct builder *b, const struct node *node, int input)
{
    const struct tensor *tensor = node->input[input];
    const struct cut *cut = &b->cut[node->id];
    int chain = b->chain_of[node->id], *walks = &walker[tensor->id];
    bool rows = tensor->kind == KIND_STATE && cut->input[input] == PART_CUT && !cut->by_sample;
    rows = rows && !home_of(b, tensor)->shared;
    *walks = rows && (*walks == UNTOUCHED || *walks == chain) ? chain : NOT_BY_ROWS;
}

static void find_walkers(int *walker, const struct builder *b)
{
    const struct graph *graph = b->graph;
    for (int t = 0; t < graph->tensor_count; t++)
        walker[t] = UNTOUCHED;
    for (int n = 0; n < graph->node_count; n++)
        for (int i = 0; i < graph->node[n]->input_count; i++)
            if (graph->node[n]->input[i] && home_of(b, graph->node[n]->input[i]))
                note_touch(walker, b, graph->node[n], i);
}

/* Bytes of the states that chains walk through. */
static void sum_bytes(uint64_t *bytes, const struct builder *b, const int *walker)
{
    for (int t = 0; t < b->graph->tensor_count; t++)
        if (walker[t] >= 0)
            bytes[walker[t]] += tensor_bytes(b->graph->tensor[t]);
}

static bool has_sums(const struct builder *b, const struct chain *chain)
{
    for (int at = chain->first; at < chain->first + chain->count; at++) {
        const struct node *node = b->chains.order[at];
        if (sum_order(node, &b->cut[node->id]).leaves)
            return true;
    }
    return false;
}

/* Enough for a disk to be fast, and no more than it needs. */
static uint64_t piece_bytes(uint64_t bytes)
{
    return max_u64(min_u64(bytes / 16, WHOLE_BYTES), LEAST_BYTES);
}

int page_pieces(const struct chain *chain, uint64_t bytes, bool sums)
{
    int64_t grains = chain->extent / chain->grain;
    int pieces = 1;
    if (bytes <= WHOLE_BYTES)
        return 1;
    while (bytes / (uint64_t)pieces > piece_bytes(bytes) && 2 * pieces <= MOST_HOME_PIECES &&
           (sums ? chain->units % (2 * pieces) == 0 : 2 * pieces * LEAST_GRAINS <= grains))
        pieces *= 2;
    return pieces;
}

/* Each piece of a chain without sums gets as many units as the whole had. */
static void cut_chain(struct chain *chain, int pieces)
{
    int64_t grains = chain->extent / chain->grain;
    int64_t each = max_i64(min_i64(chain->units, grains / pieces), 1), units = each * pieces;
    int64_t slices = (chain->slices + units - 1) / units * units;
    chain->units = (int)units;
    chain->slices = slices <= grains ? slices : units;
}

static void cut_homes(struct builder *b, const int *walker)
{
    for (int t = 0; t < b->graph->tensor_count; t++) {
        if (walker[t] < 0 || b->pieces[walker[t]] == 1)
            continue;
        const struct chain *chain = &b->chains.chain[walker[t]];
        struct home *home = &b->program->home[b->persistent[t]];
        home->pieces = b->pieces[walker[t]];
        home->extent = chain->extent;
        home->grain = chain->grain;
        home->row_bytes = tensor_row_bytes(b->graph->tensor[t]);
    }
}

/* Regions of the scratch file, in the order of the tensors. The last piece is the longest. */
static plim_status lay_homes(struct program *program, plim_error *error)
{
    for (int i = 0; i < program->persistent_count; i++) {
        struct home *home = &program->home[i];
        uint64_t bytes = tensor_bytes(program->persistent[i]) + (MOST_HOME_PIECES + 1) * TRANSFER_ALIGNMENT, longest;
        if (!home->pieces)
            continue;
        if (program->homes_bytes > INT64_MAX - bytes)
            return fail(error, PLIM_OVER_DISK, "paged tensors need more bytes than a file can have");
        longest = round_up(home_bytes(home, home->pieces - 1), TRANSFER_ALIGNMENT);
        home->file_offset = program->homes_bytes;
        program->homes_bytes = home_offset(home, home->pieces - 1) + longest;
        program->window_bytes = max_u64(program->window_bytes, longest);
    }
    return PLIM_OK;
}

static plim_status cut(struct builder *b, plim_error *error)
{
    int *walker = arena_array(&b->work, (size_t)b->graph->tensor_count, sizeof *walker);
    uint64_t *bytes = arena_array(&b->work, (size_t)b->chains.chain_count, sizeof *bytes);
    if (!walker || !bytes)
        return program_refused(b->program, error);
    find_walkers(walker, b);
    sum_bytes(bytes, b, walker);
    for (int c = 0; c < b->chains.chain_count; c++) {
        struct chain *chain = &b->chains.chain[c];
        bool sums = has_sums(b, chain);
        b->pieces[c] = page_pieces(chain, bytes[c], sums);
        if (b->pieces[c] > 1 && !sums)
            cut_chain(chain, b->pieces[c]);
    }
    cut_homes(b, walker);
    return lay_homes(b->program, error);
}

plim_status pages_cut(struct builder *b, plim_error *error)
{
    for (int c = 0; c < b->chains.chain_count; c++)
        b->pieces[c] = 1;
    if (b->program->paged_count && b->input->lays_homes)
        TRY(cut(b, error));
    b->first_slot[0] = 0;
    for (int c = 0; c < b->chains.chain_count; c++)
        b->first_slot[c + 1] = b->first_slot[c] + b->pieces[c];
    return PLIM_OK;
}
