/* plan_text.c - what `plim plan` tells beside the figures: the largest values at the peak, what was let go and why, and
   the frontier as a sketch. */
#include <string.h>

#include "plan/search/op_time.h"
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
    double again, disk; /* milliseconds to have it back; again below 0: that was no choice */
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

/* In so many columns, filled with spaces; of a long name the end tells most. */
static void add_name(struct text *out, const char *name, int columns)
{
    char end[64];
    text_end(end, (size_t)columns + 1, name);
    text_add(out, "%s%*s", end, columns - text_columns(end), "");
}

/* ---- the peak ---- */

static void offer_persistent(struct largest *out, const struct program *program, const struct phase *phase)
{
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (!program_home(program, i))
            offer(out, &(struct line){.what = tag_name(tensor->kind == KIND_WEIGHT ? TAG_WEIGHTS : TAG_OPTIMIZER),
                                      .name = tensor->name,
                                      .bytes = tensor_bytes(tensor),
                                      .last = phase->instruction_count - 1});
    }
}

static void peak_lines(struct text *out, const struct plan *plan)
{
    const struct phase *phase = &plan->program->phase[PHASE_TRAIN];
    struct largest largest = {0};
    offer_persistent(&largest, plan->program, phase);
    for (int k = 0; k < phase->instance_count; k++) {
        const struct instance *instance = &phase->instance[k];
        if (instance->first <= phase->peak && phase->peak <= instance->last)
            offer(&largest, &(struct line){.what = tag_name(instance->tag),
                                           .name = instance->name,
                                           .bytes = instance->bytes,
                                           .first = instance->first,
                                           .last = instance->last});
    }
    text_add(out, "largest in memory during ");
    text_add_cut(out, phase->instruction[phase->peak].name, COLUMNS - 40);
    text_add(out, " (instruction %d of %d)\n", phase->peak + 1, phase->instruction_count);
    for (int i = 0; i < largest.count; i++) {
        const struct line *line = &largest.line[i];
        text_add(out, "  %8.1f MiB  %-11s  ", (double)line->bytes / MIB, line->what);
        add_name(out, line->name, 36);
        text_add(out, "  %d\xe2\x80\x93%d\n", line->first + 1, line->last + 1);
    }
}

/* ---- what was let go ---- */

/* There and back. */
static double disk_ms(const struct tensor *tensor)
{
    return 1000 * 2 * transfer_seconds(tensor_bytes(tensor));
}

static void offer_dropped(struct largest *out, const struct graph *graph, const struct frontier_point *point)
{
    for (int d = 0; d < point->dropped_count; d++) {
        const struct tensor *tensor = graph->tensor[point->dropped[d]];
        offer(out, &(struct line){.what = "recompute",
                                  .name = tensor->name,
                                  .bytes = tensor_bytes(tensor),
                                  .again = 1000 * node_seconds(tensor->producer),
                                  .disk = disk_ms(tensor),
                                  .way = ""});
    }
}

static void offer_spilled(struct largest *out, const struct graph *graph, const struct frontier_point *point)
{
    for (int s = 0; s < point->spilled_count; s++) {
        const struct tensor *tensor = graph->tensor[point->spilled[s].tensor];
        bool value = tensor->kind == KIND_VALUE;
        offer(out, &(struct line){.what = value ? "spill" : "page",
                                  .name = tensor->name,
                                  .bytes = tensor_bytes(tensor),
                                  .again = value ? 1000 * node_seconds(tensor->producer) : -1,
                                  .disk = disk_ms(tensor),
                                  .way = point->spilled[s].waits ? "  waits" : "  hidden"});
    }
}

static void let_go_lines(struct text *out, const struct plan *plan)
{
    struct largest largest = {0};
    char bytes[16];
    offer_dropped(&largest, &plan->train, &plan->frontier.point[plan->point]);
    offer_spilled(&largest, &plan->train, &plan->frontier.point[plan->point]);
    if (!largest.all)
        return;
    text_size(bytes, largest.bytes);
    text_add(out, "let go between uses: %3lld, %-10s   to have it back, ms:   again     disk\n", (long long)largest.all,
             bytes);
    for (int i = 0; i < largest.count; i++) {
        const struct line *line = &largest.line[i];
        text_add(out, "  %8.1f MiB  %-9s  ", (double)line->bytes / MIB, line->what);
        add_name(out, line->name, 28);
        if (line->again >= 0)
            text_add(out, "  %7.1f", line->again);
        else
            text_add(out, "        -");
        text_add(out, "  %7.1f%s\n", line->disk, line->way);
    }
    if (largest.all > largest.count)
        text_add(out, "  and %lld more\n", (long long)(largest.all - largest.count));
}

/* ---- the frontier ---- */

#define BAR 36 /* columns of the largest budget */

static void frontier_line(struct text *out, const struct plan *plan, int k)
{
    const struct frontier_point *point = &plan->frontier.point[k];
    int eighths = (int)(8.0 * BAR * (double)point->budget_bytes / (double)plan->frontier.point[0].budget_bytes + 0.5);
    int columns = (eighths + 7) / 8;
    char bytes[16];
    text_size(bytes, point->budget_bytes);
    text_add(out, "%s %10s  ", k == plan->point ? "\xe2\x96\xb8" : " ", bytes);
    for (int i = 0; i < eighths / 8; i++)
        text_add(out, "\xe2\x96\x88");
    if (eighths % 8) /* from U+2589, seven eighths of a block, to U+258F, one */
        text_add_bytes(out, (char[]){'\xe2', '\x96', (char)(0x90 - eighths % 8)}, 3);
    text_add(out, "%*s", columns < BAR ? BAR - columns : 0, "");
    text_add(out, "  %+.0f %%%s\n", 100 * (point->relative_time - 1), k == plan->point ? "  this plan" : "");
}

/* The first, the last, the one that was taken, and others between. */
static void frontier_lines(struct text *out, const struct plan *plan)
{
    int count = plan->frontier.count, shown = -1;
    if (count < 2)
        return;
    text_add(out, "budgets, and what a step takes longer than without a limit, by estimate\n");
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
