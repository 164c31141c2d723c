/* stage_table.c - a pipeline stage by stage: bytes, elements, time.

   Bytes: a stream's block belongs to its stage; of a flow, states and rooms of functions belong to their map. The
   slot that is always there belongs to batch, the others and the threads that fill them to prefetch. All else (rows on
   their way, tables of the iterator) belongs to batch, or to the last stage where there is none. */
#include "pipeline/core/stage_table.h"

#include <stdio.h>

#include "base/numbers/checked.h"
#include "base/text/text.h"
#include "pipeline/core/flow.h"

static void list(struct stage_table *table, const struct dataset *dataset, int depth)
{
    if (dataset->input)
        list(table, dataset->input, depth);
    for (int i = 0; i < dataset->other_count; i++)
        list(table, dataset->others[i], depth + 1);
    if (table->count < MOST_STAGE_LINES)
        table->line[table->count++] =
            (struct stage_line){.node = dataset, .depth = depth, .alone = dataset->sequential};
}

/* Of more stages than lines the rest is counted with the last one. */
static struct stage_line *line_of(struct stage_table *table, const struct dataset *node)
{
    for (int i = 0; i < table->count; i++)
        if (table->line[i].node == node)
            return &table->line[i];
    return &table->line[table->count - 1];
}

/* The last stage of this kind in the chain itself, or the chain's last. */
static struct stage_line *line_by_stage(struct stage_table *table, const struct stage *stage)
{
    for (int i = table->count; i-- > 0;)
        if (table->line[i].node->stage == stage && table->line[i].depth == 0)
            return &table->line[i];
    return &table->line[table->count - 1];
}

static uint64_t sum(const uint64_t by_tag[TAG_COUNT])
{
    uint64_t bytes = 0;
    for (int tag = 0; tag < TAG_COUNT; tag++)
        bytes = add_most(bytes, by_tag[tag]);
    return bytes;
}

/* ---- bytes ---- */

struct share {
    struct stage_table *table;
    uint64_t given; /* to lines so far */
};

static void give(struct share *share, struct stage_line *line, uint64_t bytes)
{
    line->bytes = add_most(line->bytes, bytes);
    share->given = add_most(share->given, bytes);
}

static void give_map(void *context, const struct dataset *node, uint64_t bytes, uint64_t unused)
{
    struct share *share = context;
    (void)unused;
    give(share, line_of(share->table, node), bytes);
}

static void give_stream(void *context, const struct dataset *dataset, const uint64_t by_tag[TAG_COUNT])
{
    struct share *share = context;
    uint64_t all = sum(by_tag), before = share->given;
    if (!dataset->sequential)
        flow_cost_each(give_map, share, dataset);
    uint64_t maps = share->given - before;
    give(share, line_of(share->table, dataset), all > maps ? all - maps : 0);
    for (const struct dataset *node = dataset; node && !node->sequential; node = node->input)
        line_of(share->table, node)->alone = true; /* between two stages that run alone */
}

static void give_sources(struct share *share)
{
    for (int i = 0; i < share->table->count; i++) {
        const struct dataset *node = share->table->line[i].node;
        if (!node->input && node->source && !node->started)
            give(share, &share->table->line[i], node->source->start_bytes);
    }
}

void stage_table_fill(struct stage_table *out, const struct dataset *dataset, struct grant grant)
{
    uint64_t by_tag[TAG_COUNT] = {0};
    struct share share = {.table = out};
    out->count = 0;
    list(out, dataset, 0);
    dataset_cost(by_tag, NULL, dataset, grant);
    if (flow_head(dataset))
        stream_cost_each(give_stream, &share, flow_head(dataset), grant.caches);
    for (int w = 0; w <= grant.workers; w++)
        flow_cost_each(give_map, &share, dataset);
    give_sources(&share);
    uint64_t slots = grant.slots > 0 ? by_tag[TAG_BATCHES] / (uint64_t)grant.slots * ((uint64_t)grant.slots - 1) : 0;
    give(&share, line_by_stage(out, &stage_prefetch), add_most(slots, by_tag[TAG_STACKS]));
    uint64_t all = sum(by_tag);
    give(&share, line_by_stage(out, &stage_batch), all > share.given ? all - share.given : 0);
}

/* ---- time ---- */

static void add_time(void *context, const struct dataset *node, uint64_t busy_ns, uint64_t elements)
{
    struct stage_line *line = line_of(context, node);
    line->busy_ns += busy_ns;
    line->elements += elements;
}

void stage_table_time(struct stage_table *table, struct iterator *iterator)
{
    iterator_times_each(add_time, table, iterator);
}

/* What runs on one thread holds all others up; what is shared takes its part of each. */
const struct stage_line *stage_table_bottleneck(const struct stage_table *table, int threads)
{
    const struct stage_line *most = NULL;
    uint64_t alone = 0, shared = 0, longest = 0;
    for (int i = 0; i < table->count; i++)
        *(table->line[i].alone ? &alone : &shared) += table->line[i].busy_ns;
    bool is_alone = alone > shared / (uint64_t)(threads > 0 ? threads : 1);
    for (int i = 0; i < table->count; i++) {
        const struct stage_line *line = &table->line[i];
        if ((line->alone == is_alone || threads < 2) && line->busy_ns > longest) {
            longest = line->busy_ns;
            most = line;
        }
    }
    return most;
}

void stage_line_name(char out[96], const struct stage_line *line)
{
    const struct dataset *node = line->node;
    if (node->stage && node->function)
        snprintf(out, 96, "%s %s", node->stage->name, node->function->name);
    else
        snprintf(out, 96, "%s", node->stage ? node->stage->name : node->source ? node->source->type->name : "failed");
}

void stage_table_bytes(char *out, size_t capacity, const struct stage_table *table)
{
    size_t length = 0;
    out[0] = 0;
    for (int i = 0; i < table->count && length < capacity; i++) {
        char name[96], size[16];
        if (!table->line[i].bytes)
            continue;
        stage_line_name(name, &table->line[i]);
        text_size(size, table->line[i].bytes);
        length += (size_t)snprintf(out + length, capacity - length, "%s%s %s", length ? ", " : "", name, size);
    }
}
