/* iterator_cost.c - what an iterator takes, by tag, and where things lie in its block. */
#include "base/numbers/checked.h"
#include "base/threads/workers.h"
#include "pipeline/core/iterator_own.h"
#include "pipeline/stages/join/join.h"
#include "pipeline/stages/keep/held_blocks.h"

/* Elements that are given one by one still come in slots of many, or every one would cost a lock. */
bool is_single(const struct dataset *dataset)
{
    return !dataset->batch_size && !dataset->stacked;
}

int64_t slot_rows(const struct dataset *dataset)
{
    if (!is_single(dataset))
        return dataset->batch_size ? dataset->batch_size : 1;
    uint64_t bytes = dataset->spec->element_bytes;
    if (spec_has_values(dataset->spec) || bytes > FLOW_BYTES)
        return 1;
    return bytes * FLOW_ROWS > FLOW_BYTES ? (int64_t)(FLOW_BYTES / bytes) : FLOW_ROWS;
}

int64_t slot_steps(int64_t *last, const struct dataset *dataset)
{
    int64_t rows = slot_rows(dataset), count = dataset->cardinality;
    if (!is_single(dataset) || count < 0)
        return dataset_steps(dataset, last);
    *last = count % rows ? count % rows : rows;
    return count / rows + (count % rows != 0);
}

/* Rows of all columns, then the value buffer of what they refer to. */
uint64_t lay_out_slot(uint64_t column_at[MOST_COLUMNS], uint64_t *value_bytes, const struct dataset *dataset)
{
    const struct spec *spec = dataset->spec;
    uint64_t total = 0;
    for (int c = 0; c < spec->column_count; c++) {
        column_at[c] = total;
        total = add_most(total, rows_area(slot_rows(dataset), spec->column[c].bytes));
    }
    *value_bytes = spec_has_values(spec) ? round_up(dataset->value_bytes, VALUE_ALIGNMENT) : 0;
    for (int c = 0; c < spec->column_count; c++) /* rows come in any order: room for every gap */
        if (column_is_variable(&spec->column[c]))
            *value_bytes = add_most(*value_bytes, (uint64_t)slot_rows(dataset) * VALUE_ALIGNMENT);
    return add_most(total, *value_bytes);
}

uint64_t ring_bytes(const struct dataset *dataset, int slots)
{
    uint64_t column_at[MOST_COLUMNS], room, bytes;
    return mul_u64(&bytes, lay_out_slot(column_at, &room, dataset), (uint64_t)slots) ? bytes : UINT64_MAX;
}

uint64_t workers_at(void)
{
    return round_up(sizeof(struct iterator), 64);
}

uint64_t slots_at(int workers)
{
    return workers_at() + round_up((uint64_t)(workers + 1) * sizeof(struct worker), 64);
}

uint64_t flows_at(struct grant grant)
{
    return slots_at(grant.workers) + round_up((uint64_t)grant.slots * sizeof(struct slot), 64);
}

uint64_t iterator_bytes(const struct dataset *dataset, struct grant grant)
{
    uint64_t flows, each = flow_bytes(dataset);
    each = each > UINT64_MAX - 64 ? UINT64_MAX : round_up(each, 64);
    return mul_u64(&flows, each, (uint64_t)grant.workers + 1) ? add_most(flows, flows_at(grant)) : UINT64_MAX;
}

static void add(uint64_t *total, uint64_t bytes)
{
    *total = add_most(*total, bytes);
}

struct dataset *first_node(const struct dataset *dataset)
{
    while (dataset->input)
        dataset = dataset->input;
    return (struct dataset *)(uintptr_t)dataset;
}

#define MOST_SOURCES 256

/* Sources that were counted: one that several branches read is started once. */
struct counted {
    int count;
    const struct source *source[MOST_SOURCES];
};

static bool count_once(struct counted *counted, const struct source *source)
{
    for (int i = 0; i < counted->count; i++)
        if (counted->source[i] == source)
            return false;
    if (counted->count < MOST_SOURCES)
        counted->source[counted->count++] = source;
    return true;
}

/* What the sources take when they are started: that of this chain, and of those that join it; and the disk
   of stages. */
static void add_sources(uint64_t by_tag[TAG_COUNT], uint64_t *scratch_bytes, const struct dataset *dataset,
                        struct counted *counted)
{
    for (const struct dataset *node = dataset; node; node = node->input) {
        for (int i = 0; i < node->other_count; i++)
            add_sources(by_tag, scratch_bytes, node->others[i], counted);
        if (scratch_bytes && node->stage && node->stage->disk)
            add(scratch_bytes, node->stage->disk(node));
    }
    if (first_node(dataset)->started || !count_once(counted, dataset->source))
        return;
    int children = joined_count(dataset->source);
    for (int i = 0; i < children; i++)
        add_sources(by_tag, scratch_bytes, joined_child(dataset->source, i), counted);
    if (children)
        return;
    add(&by_tag[TAG_FORMATS], dataset->source->start_bytes);
    if (scratch_bytes)
        add(scratch_bytes, dataset->source->scratch_bytes);
}

void dataset_cost(uint64_t by_tag[TAG_COUNT], uint64_t *scratch_bytes, const struct dataset *dataset,
                  struct grant grant)
{
    if (dataset->error || grant.slots < 1)
        return;
    add(&by_tag[TAG_BATCHES], budget_charge(ring_bytes(dataset, grant.slots)));
    add(&by_tag[TAG_PIPELINE], budget_charge(iterator_bytes(dataset, grant)));
    for (int w = 0; w <= grant.workers; w++)
        add(&by_tag[TAG_PIPELINE], flow_cost(dataset));
    for (int w = 0; w < grant.workers; w++)
        add(&by_tag[TAG_STACKS], thread_cost());
    if (held_bytes(dataset, grant.held))
        add(&by_tag[TAG_PIPELINE], budget_charge(held_bytes(dataset, grant.held)));
    if (flow_head(dataset))
        stream_cost(by_tag, flow_head(dataset), grant.caches);
    add_sources(by_tag, scratch_bytes, dataset, &(struct counted){0});
}
