/* fill.c - one batch into one slot: positions to indices, rows from the source, maps over them.

   1. A column goes straight into the slot as soon as no later map changes its type
      or shape. Before that it lives in the chunk buffer, each state of it in a place of its own.
   2. What lies between the source and the slot runs in one loop over a chunk of rows. */
#include "pipeline/fill.h"

#include <string.h>

#include "base/checked.h"
#include "pipeline/labels.h"

/* ---- laying out ---- */

static uint64_t area(uint64_t rows, uint64_t row_bytes)
{
    uint64_t bytes;
    return mul_u64(&bytes, rows, row_bytes) ? round_up(bytes, 64) : UINT64_MAX;
}

static bool kept(const struct spec *before, const struct spec *after, int c)
{
    return c < after->column_count && before->column[c].type == after->column[c].type &&
           shape_equal(&before->column[c].shape, &after->column[c].shape);
}

static void find_steps(struct filler *filler, uint64_t seed)
{
    for (const struct dataset *node = filler->dataset; node->input; node = node->input) {
        if (node->stage->locate)
            filler->locate[filler->locate_count++].node = node;
        filler->map_count += node->function != NULL;
    }
    int map = filler->map_count;
    for (const struct dataset *node = filler->dataset; node->input; node = node->input)
        if (node->function)
            filler->map[--map] =
                (struct map_step){.node = node, .seed = random_key(seed, (uint64_t)node->node, UINT64_MAX)};
}

static void lay_out_slot(struct filler *filler)
{
    const struct spec *spec = filler->dataset->spec;
    for (int c = 0; c < spec->column_count; c++) {
        filler->column_at[c] = filler->slot_bytes;
        uint64_t bytes = area((uint64_t)filler->dataset->batch_size, spec->column[c].bytes);
        filler->slot_bytes = add_most(filler->slot_bytes, bytes);
    }
}

/* Backwards from the slot: a column that a map leaves its type is where it will be; another gets room in the chunk
   buffer. Returns the buffer's bytes. */
static uint64_t lay_out_chunk(struct filler *filler, int64_t rows)
{
    uint64_t bytes = 0;
    struct site site[MOST_COLUMNS] = {0};
    for (int c = 0; c < MOST_COLUMNS; c++)
        site[c] = (struct site){.at = filler->column_at[c], .in_slot = true};
    for (int m = filler->map_count - 1; m >= 0; m--) {
        struct map_step *step = &filler->map[m];
        const struct spec *before = step->node->input->spec;
        memcpy(step->to, site, sizeof site);
        for (int c = 0; c < before->column_count; c++) {
            if (kept(before, step->node->spec, c))
                continue;
            site[c] = (struct site){.at = bytes};
            bytes = add_most(bytes, area((uint64_t)rows, before->column[c].bytes));
        }
        memcpy(step->from, site, sizeof site);
    }
    memcpy(filler->source, site, sizeof site);
    return bytes;
}

void filler_init(struct filler *filler, const struct dataset *dataset, uint64_t seed)
{
    memset(filler, 0, sizeof *filler);
    filler->dataset = dataset;
    find_steps(filler, seed);
    lay_out_slot(filler);
    int64_t rows = dataset->batch_size < CHUNK_ROWS ? dataset->batch_size : CHUNK_ROWS;
    uint64_t all = lay_out_chunk(filler, rows);
    if (all > CHUNK_BYTES) {
        int64_t fitting = (int64_t)(CHUNK_BYTES / lay_out_chunk(filler, 1));
        rows = fitting < 1 ? 1 : fitting < rows ? fitting : rows;
        all = lay_out_chunk(filler, rows);
    }
    filler->chunk_rows = rows;
    filler->chunk_bytes = all;
}

/* ---- running ---- */

struct pointers {
    void *row[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS];
};

/* Row `row` of the slot is row `in_chunk` of the chunk. */
static void point(struct pointers *out, const struct filler *filler, const struct spec *spec, const struct site *site,
                  uint8_t *slot, int64_t row, int64_t in_chunk)
{
    for (int c = 0; c < spec->column_count; c++) {
        uint64_t bytes = spec->column[c].bytes;
        uint8_t *base = site[c].in_slot ? slot + (uint64_t)row * bytes : filler->chunk + (uint64_t)in_chunk * bytes;
        out->row[c] = base + site[c].at;
        out->stride[c] = bytes;
    }
}

/* Elements `start`.. of the chunk, all of one epoch, through all maps. `row`: where the chunk begins in the slot. */
static plim_status run_maps(struct filler *filler, uint8_t *slot, int64_t row, int64_t start, int64_t count,
                            plim_error *error)
{
    for (int m = 0; m < filler->map_count; m++) {
        const struct map_step *step = &filler->map[m];
        const struct spec *from_spec = step->node->input->spec, *to_spec = step->node->spec;
        struct pointers from, to;
        point(&from, filler, from_spec, step->from, slot, row + start, start);
        point(&to, filler, to_spec, step->to, slot, row + start, start);
        const struct map_call call = {
            .from_spec = from_spec,
            .to_spec = to_spec,
            .from = from.row,
            .to = to.row,
            .from_stride = from.stride,
            .to_stride = to.stride,
            .count = count,
            .index = filler->position + start,
            .seed = step->seed,
            .epoch = filler->epoch[start],
            .options = step->node->options,
        };
        TRY(step->node->function->run(&call, error));
    }
    return PLIM_OK;
}

static plim_status fill_chunk(struct filler *filler, uint8_t *slot, int64_t row, int64_t count, plim_error *error)
{
    struct pointers to;
    struct source *source = filler->dataset->source;
    for (int s = 0; s < filler->locate_count; s++) {
        struct locate_step *step = &filler->locate[s];
        step->node->stage->locate(&step->state, step->node, filler->position, filler->epoch, count);
    }
    point(&to, filler, &source->spec, filler->source, slot, row, 0);
    TRY(source->type->read(source, filler->position, count, to.row, to.stride, error));
    /* A repeat may have brought several epochs into one chunk. */
    for (int64_t start = 0, end; filler->map_count && start < count; start = end) {
        for (end = start + 1; end < count && filler->epoch[end] == filler->epoch[start]; end++)
            ;
        TRY(run_maps(filler, slot, row, start, end - start, error));
    }
    const struct label_rule *rule = &filler->dataset->labels;
    if (!rule->checked)
        return PLIM_OK;
    uint64_t at = filler->column_at[rule->column] + (uint64_t)row * filler->dataset->spec->column[rule->column].bytes;
    return labels_check(filler->dataset, slot + at, filler->position, count, error);
}

plim_status filler_fill(struct filler *filler, uint8_t *slot, uint64_t epoch, int64_t first, int64_t count,
                        const atomic_bool *cancel, plim_error *error)
{
    for (int64_t row = 0; row < count; row += filler->chunk_rows) {
        int64_t rows = count - row < filler->chunk_rows ? count - row : filler->chunk_rows;
        if (atomic_load_explicit(cancel, memory_order_relaxed))
            break;
        for (int64_t i = 0; i < rows; i++) {
            filler->position[i] = first + row + i;
            filler->epoch[i] = epoch;
        }
        TRY(fill_chunk(filler, slot, row, rows, error));
    }
    return PLIM_OK;
}
