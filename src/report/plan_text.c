/* plan_text.c - what `plim plan` tells beside the figures: the largest values at the peak, what was let go and why, and
   the frontier as a sketch. */
#include <string.h>

#include "plan/search/op_time.h"
#include "report/plan_timeline.h"
#include "report/plan_view.h"
#include "transform/in_place.h"

#define MIB        (1024.0 * 1024.0)
#define MOST_LINES 8 /* of one list */
#define COLUMNS    80

/* ---- the largest of many, kept while the others pass ---- */

struct line {
    const char *what; /* a tag, or a technique */
    const char *name;
    uint64_t bytes;
    int first, last;    /* of an instance */
    double again, disk; /* milliseconds to have it back; below 0: there is no such way */
    const char *way;    /* how the disk is used */
};

struct largest {
    struct line line[MOST_LINES]; /* the largest first */
    int count;
    int64_t all; /* lines that passed */
    uint64_t bytes;
};

static void offer(struct largest *out, const struct line *line)
{
    int at = out->count;
    out->all++;
    out->bytes += line->bytes;
    while (at > 0 && out->line[at - 1].bytes < line->bytes)
        at--;
    if (at == MOST_LINES)
        return;
    int moved = (out->count < MOST_LINES ? out->count : MOST_LINES - 1) - at;
    memmove(&out->line[at + 1], &out->line[at], (size_t)moved * sizeof *line);
    out->line[at] = *line;
    out->count += out->count < MOST_LINES;
}

static const char *next_character(const char *text)
{
    for (text++; ((unsigned char)*text & 0xc0) == 0x80;)
        text++;
    return text;
}

/* In so many columns, filled with spaces; of a long name the end tells most. */
static void add_name(struct text *out, const char *name, int columns)
{
    bool cut = text_columns(name) > columns;
    while (text_columns(name) > columns - (cut ? 3 : 0))
        name = next_character(name);
    text_add(out, "%s%s%*s", cut ? "..." : "", name, columns - (cut ? 3 : 0) - text_columns(name), "");
}

/* ---- the peak ---- */

struct at_peak {
    struct largest largest;
    int peak;
};

static void offer_block(void *context, const struct instance *block)
{
    struct at_peak *at = context;
    if (block->first <= at->peak && at->peak <= block->last)
        offer(&at->largest, &(struct line){.what = tag_name(block->tag),
                                           .name = block->name,
                                           .bytes = block->bytes,
                                           .first = block->first,
                                           .last = block->last});
}

static void more_line(struct text *out, const struct largest *largest)
{
    if (largest->all > largest->count)
        text_add(out, "  and %lld more\n", (long long)(largest->all - largest->count));
}

/* Of the training step: of the whole run something else may take more, as saving does. */
static void peak_lines(struct text *out, const struct plan *plan)
{
    const struct phase *phase = &plan->program->phase[PHASE_TRAIN];
    struct at_peak at = {.peak = phase->peak};
    timeline_blocks(plan->program, offer_block, &at);
    text_add(out, "largest in the training step, at instruction %d of %d: ", phase->peak + 1, phase->instruction_count);
    text_add_cut(out, phase->instruction[phase->peak].name, 24);
    text_add(out, "\n");
    for (int i = 0; i < at.largest.count; i++) {
        const struct line *line = &at.largest.line[i];
        text_add(out, "  %8.1f MiB  %-11s  ", (double)line->bytes / MIB, line->what);
        add_name(out, line->name, 36);
        text_add(out, "  %d\xe2\x80\x93%d\n", line->first + 1, line->last + 1);
    }
    more_line(out, &at.largest);
}

/* ---- what was let go ---- */

/* Milliseconds of the op that makes it, without what else may have to be made again for that; -1 of weights and states,
   and where nothing may be. */
static double again_ms(const struct tensor *tensor, const struct workload *workload)
{
    bool may = tensor->kind == KIND_VALUE && workload->rules.recompute.kind != RECOMPUTE_NEVER;
    return may ? 1000 * node_seconds(NULL, tensor->producer) : -1;
}

/* Milliseconds there and back; -1 where there is no disk. */
static double disk_ms(const struct tensor *tensor, const struct workload *workload)
{
    bool may = workload->rules.disk_bytes && workload->rules.spill != SPILL_NEVER;
    return may ? 2000 * transfer_seconds(NULL, tensor_bytes(tensor)) : -1;
}

static void offer_dropped(struct largest *out, const struct plan *plan, const struct frontier_point *point)
{
    for (int d = 0; d < point->dropped_count; d++) {
        const struct tensor *tensor = plan->train.tensor[point->dropped[d]];
        offer(out, &(struct line){.what = "recompute",
                                  .name = tensor->name,
                                  .bytes = tensor_bytes(tensor),
                                  .again = again_ms(tensor, &plan->workload),
                                  .disk = disk_ms(tensor, &plan->workload),
                                  .way = ""});
    }
}

static void offer_spilled(struct largest *out, const struct plan *plan, const struct frontier_point *point)
{
    for (int s = 0; s < point->spilled_count; s++) {
        const struct tensor *tensor = plan->train.tensor[point->spilled[s].tensor];
        offer(out, &(struct line){.what = tensor->kind == KIND_VALUE ? "spill" : "page",
                                  .name = tensor->name,
                                  .bytes = tensor_bytes(tensor),
                                  .again = again_ms(tensor, &plan->workload),
                                  .disk = 2000 * transfer_seconds(NULL, tensor_bytes(tensor)),
                                  .way = point->spilled[s].waits ? "  waits" : "  hidden"});
    }
}

static void add_ms(struct text *out, double ms)
{
    if (ms < 0)
        text_add(out, "        -");
    else
        text_add(out, "  %7.1f", ms);
}

static void let_go_lines(struct text *out, const struct plan *plan)
{
    struct largest largest = {0};
    char bytes[16];
    offer_dropped(&largest, plan, &plan->frontier.point[plan->point]);
    offer_spilled(&largest, plan, &plan->frontier.point[plan->point]);
    if (!largest.all)
        return;
    text_size(bytes, largest.bytes);
    text_add(out, "let go between uses: %3lld, %-10s to have it back, ms:   again     disk\n", (long long)largest.all,
             bytes);
    for (int i = 0; i < largest.count; i++) {
        const struct line *line = &largest.line[i];
        text_add(out, "  %8.1f MiB  %-9s  ", (double)line->bytes / MIB, line->what);
        add_name(out, line->name, 26);
        add_ms(out, line->again);
        add_ms(out, line->disk);
        text_add(out, "%s\n", line->way);
    }
    more_line(out, &largest);
}

/* ---- the frontier ---- */

#define BAR 36 /* columns of the largest budget */

static void frontier_line(struct text *out, const struct plan *plan, int k)
{
    const struct frontier_point *point = &plan->frontier.point[k];
    int eighths = (int)(8.0 * BAR * (double)point->budget_bytes / (double)plan->frontier.point[0].budget_bytes + 0.5);
    int columns = (eighths + 7) / 8;
    char bytes[17] = "~";
    text_size(bytes + 1, point->budget_bytes);
    text_add(out, "%s %11s  ", k == plan->point ? "\xe2\x96\xb8" : " ", bytes + (point->cost > 0));
    for (int i = 0; i < eighths / 8; i++)
        text_add(out, "\xe2\x96\x88");
    if (eighths % 8) /* from U+2589, seven eighths of a block, to U+258F, one */
        text_add_bytes(out, (char[]){'\xe2', '\x96', (char)(0x90 - eighths % 8)}, 3);
    text_add(out, "%*s", columns < BAR ? BAR - columns : 0, "");
    double more = 100 * (point->relative_time - 1);
    if (more > 0)
        text_add(out, more < 1 ? "  %+.1f %%" : "  %+.0f %%", more);
    else
        text_add(out, "  fastest");
    text_add(out, "%s\n", k == plan->point ? "  this plan" : "");
}

/* The first, the last, the one that was taken, and others between. */
static void frontier_lines(struct text *out, const struct plan *plan)
{
    int count = plan->frontier.count, shown = -1;
    if (count < 2)
        return;
    text_add(out, "budgets (~: estimates), and what a step takes longer, %s\n",
             plan->retimed ? "as an earlier run took" : "by estimate");
    for (int k = 0; k < count; k++) {
        int line = k * (MOST_LINES - 1) / (count - 1);
        if (line == shown && k != plan->point)
            continue;
        shown = line;
        frontier_line(out, plan, k);
    }
}

void plan_view_text(struct text *out, const struct plan *plan)
{
    peak_lines(out, plan);
    let_go_lines(out, plan);
    frontier_lines(out, plan);
}
