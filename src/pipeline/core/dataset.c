/* dataset.c - the lazy description: a chain of counted nodes.

   1. A node is immutable once built, but for what stage.h lists; a builder takes over the reference it is given.
   2. A failed node carries its error and nothing else: builders pass it through,
      dataset_check and iterator_open report it.
   3. Where there is no room for a node, one of two constants stands in for it. */
#include "pipeline/core/stage.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"

static const struct spec no_spec;

/* ---- failed ones ---- */

static const plim_error over_budget_error = {.code = PLIM_OVER_BUDGET,
                                             .message = "the budget has no room for the description of the pipeline"};
static const plim_error no_memory_error = {.code = PLIM_NO_MEMORY,
                                           .message = "the system gave no memory for the description of the pipeline"};
static const struct dataset over_budget = {.error = &over_budget_error, .spec = &no_spec};
static const struct dataset no_memory = {.error = &no_memory_error, .spec = &no_spec};

/* The constants have no budget: nothing ever counts their references. */
static struct dataset *without_room(struct budget *budget, size_t bytes)
{
    bool limit = budget && budget_refused(budget, TAG_PIPELINE, bytes, NULL) == PLIM_OVER_BUDGET;
    return (struct dataset *)(limit ? &over_budget : &no_memory);
}

static struct dataset *node_make(struct budget *budget, size_t extra)
{
    size_t bytes = round_up(sizeof(struct dataset), 64) + extra;
    struct dataset *dataset = budget_take(budget, TAG_PIPELINE, bytes);
    if (!dataset)
        return NULL;
    dataset->budget = budget;
    dataset->bytes = bytes;
    dataset->spec = &no_spec;
    atomic_init(&dataset->references, 1);
    return dataset;
}

static void *node_block(struct dataset *dataset)
{
    return (char *)dataset + round_up(sizeof(struct dataset), 64);
}

struct dataset *dataset_failed(struct budget *budget, const plim_error *error)
{
    struct dataset *dataset = budget ? node_make(budget, sizeof(plim_error)) : NULL;
    if (!dataset)
        return without_room(budget, sizeof(struct dataset) + sizeof(plim_error));
    dataset->error = memcpy(node_block(dataset), error, sizeof *error);
    return dataset;
}

/* ---- building ---- */

struct dataset *dataset_from_source(struct source *source)
{
    struct budget *budget = source->budget;
    struct dataset *dataset = node_make(budget, 0);
    if (!dataset) {
        struct dataset *failed = without_room(budget, sizeof(struct dataset));
        source_close(source);
        return failed;
    }
    dataset->source = source;
    dataset->spec = &source->spec;
    dataset->cardinality = source->count;
    dataset->indexed = source->type->reader_open == NULL;
    dataset->sequential = !dataset->indexed;
    dataset->value_bytes = spec_has_values(&source->spec) ? source->value_bytes : 0;
    return dataset;
}

static plim_status allowed(const struct dataset *input, const struct stage *stage, plim_error *error)
{
    if (input->node + 1 >= MOST_STAGES)
        return fail(error, PLIM_UNSUPPORTED, "%s: a pipeline has at most %d stages", stage->name, MOST_STAGES - 1);
    if (!input->indexed && stage->locate && !stage->stream) {
        fail(error, PLIM_UNSUPPORTED, "%s: not possible here: these elements come one after another", stage->name);
        return hint(error, PLIM_UNSUPPORTED, "put %s right behind the source", stage->name);
    }
    return PLIM_OK;
}

struct dataset *dataset_stage(struct dataset **dataset, const struct stage *stage, size_t extra, void **block)
{
    plim_error error = {0};
    struct dataset *node = NULL;
    size_t spec_bytes = stage->changes_spec ? round_up(sizeof(struct spec), 64) : 0;
    if ((*dataset)->batch_size && !stage->after_batch) /* whole batches are its elements */
        *dataset = dataset_close_batch(*dataset);
    struct dataset *input = *dataset;
    if (input->error)
        return NULL;
    if (allowed(input, stage, &error) != PLIM_OK)
        *dataset = dataset_failed(input->budget, &error);
    else if (!(node = node_make(input->budget, spec_bytes + extra)))
        *dataset = without_room(input->budget, sizeof(struct dataset) + spec_bytes + extra);
    if (!node) {
        dataset_unref(input);
        return NULL;
    }
    node->stage = stage;
    node->input = input;
    node->source = input->source;
    node->node = input->node + 1;
    node->spec = stage->changes_spec ? memcpy(node_block(node), input->spec, sizeof(struct spec)) : input->spec;
    node->cardinality = input->cardinality;
    node->sequential = stage->stream && (stage->sequential || (stage->locate && !input->indexed));
    node->indexed = input->indexed && !node->sequential;
    node->value_bytes = input->value_bytes;
    node->value_bytes_stated = input->value_bytes_stated;
    node->batch_size = input->batch_size;
    node->stacked = input->stacked;
    node->drop_remainder = input->drop_remainder;
    node->prefetched = input->prefetched;
    node->depth = input->depth;
    if (block)
        *block = (char *)node_block(node) + spec_bytes;
    return node;
}

struct dataset *dataset_built(struct dataset *dataset)
{
    plim_error error = {0};
    if (dataset->stage->build(dataset, &error) == PLIM_OK)
        return dataset;
    return dataset_refuse(dataset, &error);
}

struct dataset *dataset_refuse(struct dataset *dataset, const plim_error *error)
{
    struct dataset *failed = dataset_failed(dataset->budget, error);
    dataset_unref(dataset);
    return failed;
}

struct dataset *dataset_finish(struct dataset *dataset, plim_status status, const plim_error *error)
{
    return status == PLIM_OK ? dataset_built(dataset) : dataset_refuse(dataset, error);
}

struct dataset *dataset_add(struct dataset *dataset, const struct stage *stage, struct stage_arguments arguments)
{
    void *block;
    struct dataset *node = dataset_stage(&dataset, stage, arguments.options_bytes, &block);
    if (!node)
        return dataset;
    if (arguments.options)
        node->options = memcpy(block, arguments.options, arguments.options_bytes);
    node->number = arguments.number;
    node->seed = arguments.seed;
    return dataset_built(node);
}

struct dataset *dataset_ref(struct dataset *dataset)
{
    if (dataset && dataset->budget)
        atomic_fetch_add(&dataset->references, 1);
    return dataset;
}

/* A loop, not a recursion, along the chain: the last reference to a node gives up its reference to the node before.
   Inputs besides the first are few, and nested no deeper than a job file is. */
void dataset_unref(struct dataset *dataset)
{
    while (dataset && dataset->budget && atomic_fetch_sub(&dataset->references, 1) == 1) {
        struct dataset *input = dataset->input;
        if (!input && dataset->source)
            source_close(dataset->source);
        if (dataset->function && dataset->function->options_release)
            dataset->function->options_release((void *)(uintptr_t)dataset->options);
        if (dataset->stage && dataset->stage->release)
            dataset->stage->release(dataset);
        for (int i = 0; i < dataset->other_count; i++)
            dataset_unref(dataset->others[i]);
        budget_give(dataset->budget, TAG_PIPELINE, dataset, dataset->bytes);
        dataset = input;
    }
}

void dataset_set_value_bytes(struct dataset *dataset, uint64_t bytes)
{
    if (!dataset->error)
        dataset->value_bytes = dataset->value_bytes_stated = bytes;
}

/* ---- asking ---- */

plim_status dataset_error(const struct dataset *dataset, plim_error *error)
{
    if (!dataset->error)
        return PLIM_OK;
    if (error)
        *error = *dataset->error;
    return dataset->error->code;
}

plim_status dataset_check(const struct dataset *dataset, plim_error *error)
{
    TRY(dataset_error(dataset, error));
    if (!dataset->batch_size && !dataset->stacked)
        return hint(error, fail(error, PLIM_BAD_JOB, "the pipeline has no batch stage"),
                    "add `- batch: 32` at its end");
    return dataset_runs(dataset, error);
}

plim_status dataset_runs(const struct dataset *dataset, plim_error *error)
{
    TRY(dataset_error(dataset, error));
    if (dataset->source->count == 0)
        return fail(error, PLIM_BAD_DATA, "%s: the source has no elements", dataset->source->type->name);
    if (dataset_steps(dataset, NULL) == 0) {
        fail(error, PLIM_BAD_JOB, "an epoch has no batch: %lld elements are left, in batches of %lld%s",
             (long long)dataset->cardinality, (long long)dataset->batch_size,
             dataset->drop_remainder ? " with drop_remainder" : "");
        return hint(error, PLIM_BAD_JOB, "take more, skip less, or use a smaller batch");
    }
    return PLIM_OK;
}

const struct spec *dataset_spec(const struct dataset *dataset)
{
    return dataset->spec;
}

void elements_text(char out[48], int64_t cardinality)
{
    if (cardinality >= 0)
        snprintf(out, 48, "%lld element%s", (long long)cardinality, cardinality == 1 ? "" : "s");
    else
        snprintf(out, 48, "%s",
                 cardinality == CARDINALITY_INFINITE ? "elements without end" : "an unknown number of elements");
}

int64_t dataset_cardinality(const struct dataset *dataset)
{
    return dataset->cardinality;
}

int64_t dataset_batch_size(const struct dataset *dataset)
{
    return dataset->stacked ? dataset->stacked : dataset->batch_size;
}

void dataset_sample_spec(struct spec *out, const struct dataset *dataset)
{
    *out = *dataset->spec;
    if (!dataset->stacked)
        return;
    out->element_bytes = 0;
    for (int c = 0; c < out->column_count; c++) {
        struct column *column = &out->column[c];
        column->shape = shape_of(column->shape.rank - 1, column->shape.dim + 1);
        column_bytes(&column->bytes, column);
        out->element_bytes += column->bytes;
    }
}

/* Of elements that are batches already: a whole number of them leaves nothing over. */
static int64_t stacked_last(const struct dataset *dataset)
{
    for (int c = 0; c < dataset->spec->column_count; c++)
        if (column_is_variable(&dataset->spec->column[c]))
            return 0;
    return dataset->stacked;
}

int64_t dataset_steps(const struct dataset *dataset, int64_t *last_batch)
{
    int64_t size = dataset->batch_size ? dataset->batch_size : 1, count = dataset->cardinality;
    int64_t whole = count > 0 ? count / size : 0;
    int64_t rest = count > 0 ? count % size : 0;
    bool partial = rest && !dataset->drop_remainder && dataset->batch_size;
    bool always_whole = whole || count == CARDINALITY_INFINITE || (count < 0 && dataset->drop_remainder);
    if (last_batch && dataset->stacked)
        *last_batch = stacked_last(dataset);
    else if (last_batch)
        *last_batch = partial ? rest : always_whole ? size : 0;
    return count < 0 ? count : whole + partial;
}
