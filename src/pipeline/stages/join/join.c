/* join.c - stages with several inputs: their nodes, and elements of several streams in one spec. */
#include "pipeline/stages/join/join.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"

#define WIDEN_ROWS 64

/* ---- nodes ---- */

void join_unref(struct dataset *const *datasets, int count)
{
    for (int i = 0; i < count; i++)
        dataset_unref(datasets[i]);
}

/* Gives up all inputs but the one that carries the error. */
static struct dataset *give_up(struct dataset *const *input, int count, int keep)
{
    for (int i = 0; i < count; i++)
        if (i != keep)
            dataset_unref(input[i]);
    return input[keep];
}

/* The deepest of the inputs counts, so that nothing nests deeper than a pipeline may be long. */
static plim_status number_node(struct dataset *node, plim_error *error)
{
    for (int i = 1; i < join_count(node); i++) {
        const struct dataset *input = join_input(node, i);
        if (node->node <= input->node)
            node->node = input->node + 1;
        node->prefetched = false;
        if (node->value_bytes_stated < input->value_bytes_stated)
            node->value_bytes_stated = input->value_bytes_stated;
    }
    if (node->node >= MOST_STAGES)
        return fail(error, PLIM_UNSUPPORTED, "%s: a pipeline has at most %d stages", node->stage->name,
                    MOST_STAGES - 1);
    return PLIM_OK;
}

struct dataset *join_stage(struct dataset **failed, const struct stage *stage, struct dataset *const *datasets,
                           int count, size_t extra, void **rest)
{
    struct dataset *input[MOST_INPUTS];
    plim_error error = {0};
    if (count < 1 || count > MOST_INPUTS) {
        fail(&error, PLIM_BAD_JOB, "%s: 1 to %d inputs are possible, not %d", stage->name, MOST_INPUTS, count);
        *failed = dataset_failed(count > 0 ? datasets[0]->budget : NULL, &error);
        join_unref(datasets, count);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        input[i] = dataset_close_batch(datasets[i]);
    for (int i = 0; i < count; i++)
        if (input[i]->error) {
            *failed = give_up(input, count, i);
            return NULL;
        }
    void *block;
    size_t others = round_up((size_t)(count - 1) * sizeof *input, 64);
    struct dataset *node = dataset_stage(&input[0], stage, others + extra, &block);
    if (!node) {
        *failed = give_up(input, count, 0);
        return NULL;
    }
    node->others = memcpy(block, input + 1, (size_t)(count - 1) * sizeof *input);
    node->other_count = count - 1;
    if (number_node(node, &error) != PLIM_OK) {
        *failed = dataset_refuse(node, &error);
        return NULL;
    }
    if (rest)
        *rest = (char *)block + others;
    return node;
}

/* ---- specs ---- */

static void name_by_place(char out[64], int place)
{
    if (place < 2)
        snprintf(out, 64, "%c", "xy"[place]);
    else
        snprintf(out, 64, "c%d", place);
}

static void choose_name(struct column *column, const struct spec *spec)
{
    char base[64];
    if (spec_find(spec, column->name) < 0)
        return;
    memcpy(base, column->name, sizeof base);
    name_by_place(column->name, spec->column_count);
    for (int n = 2; spec_find(spec, column->name) >= 0; n++)
        snprintf(column->name, sizeof column->name, "%.50s_%d", base, n);
}

plim_status spec_beside(struct spec *spec, const struct spec *more, plim_error *error)
{
    if (spec->column_count + more->column_count > MOST_COLUMNS)
        return fail(error, PLIM_UNSUPPORTED, "zip: more than %d columns", MOST_COLUMNS);
    for (int c = 0; c < more->column_count; c++) {
        struct column column = more->column[c];
        choose_name(&column, spec);
        column.origin = spec->column_count;
        spec->column[spec->column_count++] = column;
        spec->element_bytes = add_most(spec->element_bytes, column.bytes);
    }
    if (spec->element_bytes > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "zip: an element would have more bytes than an address can say");
    return PLIM_OK;
}

static plim_status widen_column(struct column *column, const struct column *other, const char *name, int which,
                                plim_error *error)
{
    char a[64], b[64];
    if (strcmp(column->name, other->name) != 0) {
        fail(error, PLIM_BAD_JOB, "%s: input %d has a column '%s' where the first has '%s'", name, which + 1,
             other->name, column->name);
        return hint(error, PLIM_BAD_JOB, "choose or rename columns so that all inputs have the same");
    }
    if (column->type != other->type || column->shape.rank != other->shape.rank) {
        shape_text(a, sizeof a, &column->shape, false);
        shape_text(b, sizeof b, &other->shape, false);
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s %s in the first input and %s %s in input %d", name,
                    column->name, type_name(column->type), a, type_name(other->type), b, which + 1);
    }
    for (int i = 0; i < column->shape.rank; i++)
        if (column->shape.dim[i] != other->shape.dim[i])
            column->shape.dim[i] = -1;
    return PLIM_OK;
}

plim_status spec_widen(struct spec *spec, const struct spec *other, const char *name, int which, plim_error *error)
{
    if (spec->column_count != other->column_count)
        return fail(error, PLIM_BAD_JOB, "%s: the first input has %d columns, input %d has %d", name,
                    spec->column_count, which + 1, other->column_count);
    for (int c = 0; c < spec->column_count; c++)
        TRY(widen_column(&spec->column[c], &other->column[c], name, which, error));
    return spec_measure(spec, NULL, error);
}

bool spec_rows_alike(const struct spec *a, const struct spec *b)
{
    if (a->column_count != b->column_count)
        return false;
    for (int c = 0; c < a->column_count; c++)
        if (a->column[c].type != b->column[c].type || !shape_equal(&a->column[c].shape, &b->column[c].shape))
            return false;
    return true;
}

/* ---- elements of any one of the inputs ---- */

plim_status join_widen(struct dataset *dataset, int count, plim_error *error)
{
    struct spec *spec = dataset_own_spec(dataset);
    bool alike = true;
    for (int i = 1; i < count; i++) {
        const struct dataset *input = join_input(dataset, i);
        TRY(spec_widen(spec, input->spec, dataset->stage->name, i, error));
        if (dataset->value_bytes < input->value_bytes)
            dataset->value_bytes = input->value_bytes;
        if (dataset->stacked != input->stacked)
            dataset->stacked = 0;
    }
    for (int i = 0; i < count; i++)
        alike = alike && spec_rows_alike(spec, join_input(dataset, i)->spec);
    if (!alike) { /* rows that become cells are values now */
        uint64_t bytes = 0;
        for (int i = 0; i < count; i++)
            bytes = join_input(dataset, i)->spec->element_bytes > bytes ? join_input(dataset, i)->spec->element_bytes
                                                                        : bytes;
        dataset->value_bytes = add_most(dataset->value_bytes, bytes + VALUE_ALIGNMENT * (uint64_t)spec->column_count);
    }
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].origin = c;
    return PLIM_OK;
}

uint64_t widen_bytes(const struct dataset *dataset, int count)
{
    uint64_t most = 0;
    for (int i = 0; i < count; i++) {
        const struct dataset *input = join_input(dataset, i);
        uint64_t bytes = chunk_bytes(input->spec, WIDEN_ROWS, input->value_bytes);
        if (!spec_rows_alike(dataset->spec, input->spec) && bytes > most)
            most = bytes;
    }
    return most;
}

/* A row of fixed shape becomes a cell that refers to it where it is. */
static void widen_row(struct chunk *to, const struct chunk *rows, int c, int64_t row)
{
    const struct column *from = &rows->spec->column[c];
    uint8_t *at = chunk_row(rows, c, row);
    if (!column_is_variable(&to->spec->column[c]) || column_is_variable(from)) {
        memcpy(chunk_row(to, c, row), at, from->bytes);
        return;
    }
    struct cell cell = {.data = at};
    memcpy(cell.dim, from->shape.dim, sizeof cell.dim);
    memcpy(chunk_row(to, c, row), &cell, sizeof cell);
}

plim_status widen_pull(struct stream *stream, int input, void *block, struct chunk *to, int64_t most, plim_error *error)
{
    const struct dataset *from = join_input(stream->dataset, input);
    struct chunk rows;
    if (spec_rows_alike(to->spec, from->spec))
        return stream_pull(stream_input(stream, input), to, most, error);
    chunk_lay(&rows, block, from->spec, WIDEN_ROWS, from->value_bytes);
    TRY(stream_pull(stream_input(stream, input), &rows, most, error));
    for (int c = 0; c < to->spec->column_count; c++)
        for (int64_t i = 0; i < rows.count; i++)
            widen_row(to, &rows, c, i);
    memcpy(to->index, rows.index, (size_t)rows.count * sizeof *to->index);
    memcpy(to->epoch, rows.epoch, (size_t)rows.count * sizeof *to->epoch);
    to->count = rows.count;
    return PLIM_OK;
}

plim_status widen_skip(int64_t *passed, struct stream *stream, int input, void *block, int64_t count, struct chunk *by,
                       plim_error *error)
{
    const struct dataset *from = join_input(stream->dataset, input);
    struct chunk rows;
    if (spec_rows_alike(by->spec, from->spec))
        return stream_skip(passed, stream_input(stream, input), count, by, error);
    chunk_lay(&rows, block, from->spec, WIDEN_ROWS, from->value_bytes);
    return stream_skip(passed, stream_input(stream, input), count, &rows, error);
}
