/* joined_source.c - several data sets that are read by index, side by side or one after the other, as one source: what
   stands behind them can still be placed, so an exact shuffle goes over all of them together.

   Children are a source and stages of the index prefix whose positions do not change from epoch to epoch: a source
   does not know the epoch. Maps would need a worker's state: with those in a child, zip and concatenate are streams. */
#include <string.h>

#include "base/numbers/checked.h"
#include "formats/tables/rows.h"
#include "pipeline/stages/join/join.h"

#define JOINED_ROWS 256

struct joined_source {
    struct source base;
    size_t bytes; /* of this block */
    bool beside;
    int count;
    struct child {
        struct dataset *dataset;
        int column;    /* beside: where its columns begin */
        int64_t start; /* else: the number of its first element */
    } child[];
};

/* ---- reading ---- */

/* Positions in the child's epoch into indices of its source. */
static void locate(const struct dataset *child, int64_t *position, int64_t count)
{
    uint64_t epoch[JOINED_ROWS] = {0};
    for (const struct dataset *node = child; node->input; node = node->input) {
        struct stage_state state = {.ready = false};
        node->stage->locate(&state, node, position, epoch, count);
    }
}

/* At most JOINED_ROWS elements of one child; *done < count: the value buffer is full. */
static plim_status read_child(int64_t *done, const struct dataset *child, const int64_t *index, int64_t count,
                              const struct row_target *target, plim_error *error)
{
    int64_t position[JOINED_ROWS];
    struct source *source = child->source;
    memcpy(position, index, (size_t)count * sizeof *position);
    locate(child, position, count);
    *done = count;
    if (source->type->read_values)
        return source->type->read_values(done, source, position, count, target, error);
    return source->type->read(source, position, count, target->to, target->stride, error);
}

/* The same elements of all children. The first may fill the value buffer: then it is asked for fewer. */
static plim_status read_beside(int64_t *done, struct joined_source *joined, const int64_t *index, int64_t count,
                               const struct row_target *target, plim_error *error)
{
    uint64_t mark = target->values ? target->values->used : 0;
    for (int i = 0; i < joined->count; i++) {
        const struct child *child = &joined->child[i];
        const struct row_target part = {target->to + child->column, target->stride + child->column, target->values};
        int64_t some = 0;
        TRY(read_child(&some, child->dataset, index, count, &part, error));
        if (!some && count == 1) {
            *done = 0;
            return PLIM_OK;
        }
        if (!some) { /* all again, with half of them */
            count /= 2;
            target->values->used = mark;
            i = -1;
            continue;
        }
        count = some;
    }
    *done = count;
    return PLIM_OK;
}

static const struct child *child_of(const struct joined_source *joined, int64_t index)
{
    int low = 0, high = joined->count - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (joined->child[middle].start <= index)
            low = middle;
        else
            high = middle - 1;
    }
    return &joined->child[low];
}

/* The first of index[0..count) that lie in one child. */
static plim_status read_run(int64_t *done, struct joined_source *joined, const int64_t *index, int64_t count,
                            const struct row_target *target, plim_error *error)
{
    const struct child *child = child_of(joined, index[0]);
    int64_t position[JOINED_ROWS], run = 0;
    while (run < count && child_of(joined, index[run]) == child) {
        position[run] = index[run] - child->start;
        run++;
    }
    return read_child(done, child->dataset, position, run, target, error);
}

static void advance(void *to[MOST_COLUMNS], const struct joined_source *joined, const struct row_target *target,
                    int64_t rows)
{
    for (int c = 0; c < joined->base.spec.column_count; c++)
        to[c] = (uint8_t *)target->to[c] + (uint64_t)rows * target->stride[c];
}

static plim_status joined_read_values(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                                      const struct row_target *target, plim_error *error)
{
    struct joined_source *joined = (struct joined_source *)source;
    void *to[MOST_COLUMNS];
    int64_t at = 0, some = 0;
    uint64_t used = target->values ? target->values->used : 0;
    for (; at < count; at += some) {
        int64_t most = count - at < JOINED_ROWS ? count - at : JOINED_ROWS;
        advance(to, joined, target, at);
        const struct row_target part = {to, target->stride, target->values};
        TRY(joined->beside ? read_beside(&some, joined, index + at, most, &part, error)
                           : read_run(&some, joined, index + at, most, &part, error));
        if (!some)
            break;
    }
    *done = at;
    used = target->values ? target->values->used - used : 0;
    source_count_read(source, (uint64_t)at * source->spec.element_bytes + used);
    return PLIM_OK;
}

static plim_status joined_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                               const uint64_t *stride, plim_error *error)
{
    int64_t done;
    const struct row_target target = {.to = to, .stride = stride};
    TRY(source->count >= 0 ? source_check(source, index, count, error) : PLIM_OK);
    return joined_read_values(&done, source, index, count, &target, error);
}

/* Side by side only a column's name tells whose element it is: the first child that has it. */
static bool joined_describe(char out[256], const struct source *source, int64_t index, const char *column)
{
    const struct joined_source *joined = (const struct joined_source *)source;
    const struct child *child = joined->beside ? NULL : child_of(joined, index);
    for (int i = 0; joined->beside && column && i < joined->count && !child; i++)
        if (spec_find(joined->child[i].dataset->spec, column) >= 0)
            child = &joined->child[i];
    if (!child)
        return false;
    int64_t position = joined->beside ? index : index - child->start;
    const struct source *own = child->dataset->source;
    locate(child->dataset, &position, 1);
    return own->type->describe && own->type->describe(out, own, position, column);
}

/* ---- opening and closing ---- */

static plim_status joined_start(struct source *source, struct scratch_disk *scratch, plim_error *error)
{
    struct joined_source *joined = (struct joined_source *)source;
    for (int i = 0; i < joined->count; i++)
        TRY(dataset_start(joined->child[i].dataset, scratch, error));
    return PLIM_OK;
}

static void joined_close(struct source *source)
{
    struct joined_source *joined = (struct joined_source *)source;
    for (int i = 0; i < joined->count; i++)
        dataset_unref(joined->child[i].dataset);
    budget_give(source->budget, TAG_FORMATS, joined, joined->bytes);
}

static const struct source_type zip_type = {
    .name = "zip", .start = joined_start, .read = joined_read, .describe = joined_describe, .close = joined_close};
static const struct source_type zip_values_type = {.name = "zip",
                                                   .start = joined_start,
                                                   .read_values = joined_read_values,
                                                   .describe = joined_describe,
                                                   .close = joined_close};
static const struct source_type concatenate_type = {.name = "concatenate",
                                                    .start = joined_start,
                                                    .read = joined_read,
                                                    .describe = joined_describe,
                                                    .close = joined_close};
static const struct source_type concatenate_values_type = {.name = "concatenate",
                                                           .start = joined_start,
                                                           .read_values = joined_read_values,
                                                           .describe = joined_describe,
                                                           .close = joined_close};

int joined_count(const struct source *source)
{
    return source->type->start == joined_start ? ((const struct joined_source *)source)->count : 0;
}

const struct dataset *joined_child(const struct source *source, int i)
{
    return ((const struct joined_source *)source)->child[i].dataset;
}

static const struct source_type *type_of(const struct spec *spec, bool beside)
{
    if (beside)
        return spec_has_values(spec) ? &zip_values_type : &zip_type;
    return spec_has_values(spec) ? &concatenate_values_type : &concatenate_type;
}

/* A source, and stages of the index prefix that are the same in every epoch. */
static bool is_placed(const struct dataset *dataset)
{
    if (dataset->error || !dataset->indexed || dataset->batch_size)
        return false;
    for (; dataset->input; dataset = dataset->input)
        if (dataset->function || !dataset->stage->locate || dataset->stage->by_epoch)
            return false;
    return true;
}

bool joined_possible(struct dataset *const *datasets, int count, bool beside)
{
    if (count < 1 || count > MOST_INPUTS)
        return false;
    for (int i = 0; i < count; i++) {
        const struct spec *spec = datasets[i]->spec, *first = datasets[0]->spec;
        if (!is_placed(datasets[i]) || (!beside && !spec_rows_alike(spec, first)))
            return false;
        for (int c = 0; !beside && c < spec->column_count; c++)
            if (strcmp(spec->column[c].name, first->column[c].name) != 0)
                return false; /* the stage says what is wrong */
    }
    return true;
}

static const struct dataset *first_node(const struct dataset *dataset)
{
    while (dataset->input)
        dataset = dataset->input;
    return dataset;
}

/* What starting the children takes, each source once; dataset_cost goes by the children themselves, which may have been
   started meanwhile. */
static void add_start(struct source *source, const struct joined_source *joined, int i)
{
    const struct dataset *first = first_node(joined->child[i].dataset);
    for (int j = 0; j < i; j++)
        if (first_node(joined->child[j].dataset) == first)
            return;
    if (first->started)
        return;
    source->start_bytes = add_most(source->start_bytes, first->source->start_bytes);
    source->scratch_bytes = add_most(source->scratch_bytes, first->source->scratch_bytes);
}

static plim_status add_beside(struct source *source, struct child *child, plim_error *error)
{
    const struct dataset *dataset = child->dataset;
    child->column = source->spec.column_count;
    TRY(spec_beside(&source->spec, dataset->spec, error));
    source->value_bytes = add_most(source->value_bytes, dataset->value_bytes);
    bool shorter = source->count < 0 || (dataset->cardinality >= 0 && dataset->cardinality < source->count);
    source->count = shorter ? dataset->cardinality : source->count;
    return PLIM_OK;
}

static plim_status add_behind(struct source *source, struct child *child, plim_error *error)
{
    const struct dataset *dataset = child->dataset;
    child->start = source->count < 0 ? INT64_MAX : source->count; /* behind data without end: never */
    if (source->value_bytes < dataset->value_bytes)
        source->value_bytes = dataset->value_bytes;
    if (source->count < 0 || dataset->cardinality < 0)
        source->count = CARDINALITY_INFINITE;
    else if (__builtin_add_overflow(source->count, dataset->cardinality, &source->count))
        return fail(error, PLIM_BAD_JOB, "concatenate: more than 2^63 elements");
    return PLIM_OK;
}

static plim_status fill(struct joined_source *joined, plim_error *error)
{
    struct source *source = &joined->base;
    source->count = joined->beside ? CARDINALITY_INFINITE : 0;
    if (!joined->beside)
        source->spec = *joined->child[0].dataset->spec;
    for (int i = 0; i < joined->count; i++) {
        TRY(joined->beside ? add_beside(source, &joined->child[i], error)
                           : add_behind(source, &joined->child[i], error));
        add_start(source, joined, i);
    }
    for (int c = 0; c < source->spec.column_count; c++)
        source->spec.column[c].origin = c;
    source->type = type_of(&source->spec, joined->beside);
    return PLIM_OK;
}

struct dataset *joined_open(struct dataset *const *datasets, int count, bool beside)
{
    struct budget *budget = datasets[0]->budget;
    size_t bytes = sizeof(struct joined_source) + (size_t)count * sizeof(struct child);
    struct joined_source *joined = budget_take(budget, TAG_FORMATS, bytes);
    plim_error error = {0};
    uint64_t stated = 0;
    if (!joined) {
        budget_refused(budget, TAG_FORMATS, bytes, &error);
        join_unref(datasets, count);
        return dataset_failed(budget, &error);
    }
    joined->base.budget = budget;
    joined->base.type = &zip_type;
    joined->bytes = bytes;
    joined->count = count;
    joined->beside = beside;
    for (int i = 0; i < count; i++) {
        joined->child[i].dataset = datasets[i];
        stated = add_most(stated, datasets[i]->value_bytes_stated);
    }
    if (fill(joined, &error) != PLIM_OK) {
        source_close(&joined->base);
        return dataset_failed(budget, &error);
    }
    uint64_t room = joined->base.value_bytes;
    struct dataset *dataset = dataset_from_source(&joined->base);
    if (stated)
        dataset_set_value_bytes(dataset, room);
    return dataset;
}
