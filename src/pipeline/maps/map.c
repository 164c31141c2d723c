/* map.c - a function over the rows of a chunk, and how a job file names it.

   map: [cast: float32, random_flip: horizontal]     one after the other, on the function's usual column
   map: {x: [rescale: 1/255], y: [one_hot: 10]}      by column
   map: {age: "(age - 40) / 12", old: "age > 60"}    expressions: all of them see the columns as they come in */
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/core/stage.h"
#include "pipeline/maps/map_functions.h"

/* Of elements that are batches: whether the first axis of every column is still that of the samples. */
static bool keeps_samples(const struct dataset *dataset)
{
    const struct map_function *function = dataset->function;
    const struct spec *from = dataset->input->spec, *to = dataset->spec;
    for (int c = 0; c < to->column_count; c++)
        if (!to->column[c].shape.rank || to->column[c].shape.dim[0] != from->column[0].shape.dim[0])
            return false;
    return !function->changes_rows || !function->changes_rows(from, dataset->options);
}

static plim_status infer(struct spec *spec, const struct dataset *dataset, plim_error *error)
{
    const struct map_function *function = dataset->function;
    if (function->infer)
        return function->infer(spec, dataset->options, error);
    int c = map_column(spec, function, dataset->options);
    if (c < 0)
        return map_no_column(spec, function->name, dataset->options, error);
    return function->infer_column(&spec->column[c], function, dataset->options, error);
}

static plim_status map_build(struct dataset *dataset, plim_error *error)
{
    struct spec *spec = (struct spec *)dataset->spec; /* our own copy of the input's, in our block */
    const struct map_function *function = dataset->function;
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].origin = c;
    if (function->options_make)
        TRY(function->options_make((void *)(uintptr_t)dataset->options, dataset->budget, dataset->input->spec, error));
    if (function->options_number)
        dataset->number = function->options_number(dataset->options);
    TRY(infer(spec, dataset, error));
    TRY(spec_measure(spec, dataset->input->spec, error));
    uint64_t bytes;
    if (!mul_u64(&bytes, spec->element_bytes, dataset->batch_size ? (uint64_t)dataset->batch_size : 1) ||
        bytes > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "%s: makes more bytes than an address can say", function->name);
    bytes = function->value_bytes ? function->value_bytes(dataset->input->spec, spec, dataset->options) : 0;
    if (!dataset->value_bytes_stated)
        dataset->value_bytes = add_most(dataset->value_bytes, bytes);
    if (dataset->stacked && !keeps_samples(dataset))
        dataset->stacked = 0;
    return PLIM_OK;
}

long long map_element(const struct map_call *call, int64_t row)
{
    if (call->bad)
        *call->bad = row;
    return (long long)call->index[row];
}

plim_status map_full(const struct map_call *call, plim_error *error)
{
    fail(error, PLIM_OVER_BUDGET, "element %lld needs a room of %llu bytes; there are %llu", map_element(call, 0),
         (unsigned long long)call->values->wanted, (unsigned long long)call->values->capacity);
    return hint(error, PLIM_OVER_BUDGET, "set largest_element: %lluKiB",
                (unsigned long long)(call->values->wanted / 1024 + 1));
}

struct dataset *dataset_map(struct dataset *dataset, const struct map_function *function, const void *options)
{
    void *block;
    struct dataset *node = dataset_stage(&dataset, &stage_map, function->options_bytes, &block);
    if (!node) { /* options that are not made by the function itself are ours already */
        if (function->options_release && !function->options_make)
            function->options_release((void *)(uintptr_t)options);
        return dataset;
    }
    if (function->options_bytes)
        node->options = memcpy(block, options, function->options_bytes);
    node->function = function;
    return dataset_built(node);
}

/* ---- job files ---- */

/* One function of a list: its name, and what stands behind it (NULL: nothing). */
struct map_word {
    const char *word;
    const struct yaml *value, *at;
};

/* `cast: float32`, on `column` ("" for the function's usual one); next->word is NULL behind the last. */
static plim_status read_function(struct dataset **dataset, const char *column, const char *job,
                                 const struct map_word *self, const struct map_word *next, plim_error *error)
{
    char where[256];
    union map_options options;
    yaml_key_place(where, job, self->at);
    const struct map_function *function = map_function_by_name(self->word);
    if (!function)
        return map_function_unknown(self->word, where, error);
    plim_status status = map_function_read(&options, function, job, self->value, error);
    if (status == PLIM_OK && function->precede)
        status = function->precede(&options, job, next->word, next->value, error);
    if (status == PLIM_OK) {
        snprintf(options.column, sizeof options.column, "%s", column);
        *dataset = dataset_map(*dataset, function, &options);
        status = dataset_error(*dataset, error);
    }
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, where);
}

/* The word at *entry, which moves on. {cast: float32, rescale: 2} is two, in the order written. */
static plim_status next_word(struct map_word *out, const struct yaml **entry, const struct yaml **inside,
                             const char *job, plim_error *error)
{
    *out = (struct map_word){0};
    if (!*entry)
        return PLIM_OK;
    if (*inside)
        *out = (struct map_word){(*inside)->key, *inside, *inside};
    else
        TRY(stage_word(&out->word, &out->value, job, *entry, error));
    out->at = out->value ? out->value : *entry;
    *inside = out->value ? out->value->next : NULL;
    if (!*inside)
        *entry = (*entry)->next;
    return PLIM_OK;
}

static plim_status read_list(struct dataset **dataset, const char *column, const char *job, const struct yaml *list,
                             plim_error *error)
{
    const struct yaml *entry = list->first, *inside = NULL;
    struct map_word self, next;
    TRY(next_word(&self, &entry, &inside, job, error));
    for (; self.word; self = next) {
        TRY(next_word(&next, &entry, &inside, job, error));
        TRY(read_function(dataset, column, job, &self, &next, error));
    }
    return PLIM_OK;
}

/* ---- expressions ---- */

static bool is_expression(const struct dataset *dataset, const struct yaml *entry)
{
    bool named = spec_find(dataset->spec, entry->key) >= 0 || !map_function_by_name(entry->key);
    return entry->kind == YAML_SCALAR && !entry->is_null && named;
}

/* `cats: float32` is no expression, but a slip of a function's name. */
static plim_status explain(const struct dataset *input, const char *job, const struct yaml *map, plim_status status,
                           plim_error *error)
{
    for (const struct yaml *entry = map->first; entry && error; entry = entry->next) {
        char where[256];
        yaml_place(where, job, entry);
        bool here = is_expression(input, entry) && strcmp(where, error->where) == 0;
        if (!here || spec_find(input->spec, entry->key) >= 0 || !map_function_nearest(entry->key))
            continue;
        yaml_key_place(where, job, entry);
        return map_function_unknown(entry->key, where, error);
    }
    return status;
}

/* All of a map's expressions as one function: they do not see each other's results. */
static plim_status read_expressions(struct dataset **dataset, const char *job, const struct yaml *map,
                                    plim_error *error)
{
    struct map_expression list[MOST_COLUMNS];
    char where[MOST_COLUMNS][256];
    int count = 0;
    for (const struct yaml *entry = map->first; entry; entry = entry->next) {
        if (!is_expression(*dataset, entry))
            continue;
        if (count == MOST_COLUMNS)
            return fail(error, PLIM_BAD_JOB, "map: more than %d expressions", MOST_COLUMNS);
        yaml_place(where[count], job, entry);
        list[count] = (struct map_expression){entry->key, entry->text, where[count]};
        count++;
    }
    if (!count)
        return PLIM_OK;
    struct dataset *input = dataset_ref(*dataset);
    *dataset = dataset_map_expressions(*dataset, list, count);
    plim_status status = dataset_error(*dataset, error);
    if (status == PLIM_BAD_JOB)
        status = explain(input, job, map, status, error);
    dataset_unref(input);
    return status;
}

/* An entry that is no expression: of a column's, or a function on its usual one. */
static plim_status read_entry(struct dataset **dataset, const char *job, const struct yaml *entry, plim_error *error)
{
    bool column = spec_find((*dataset)->spec, entry->key) >= 0;
    if (entry->kind == YAML_LIST && (column || !map_function_by_name(entry->key)))
        return read_list(dataset, entry->key, job, entry, error);
    if (!column)
        return read_function(dataset, "", job, &(struct map_word){entry->key, entry, entry}, &(struct map_word){0},
                             error);
    yaml_fail(error, PLIM_BAD_JOB, job, entry, "map: expected an expression or a list of functions for '%s'",
              entry->key);
    return hint(error, PLIM_BAD_JOB, "%s: [cast: float32], or %s: \"%s / 2\"", entry->key, entry->key, entry->key);
}

static plim_status map_read(struct dataset **dataset, const struct stage_entry *self, plim_error *error)
{
    const char *job = self->job;
    const struct yaml *value = self->value;
    if (value->count == 0)
        return stage_bad(self, "expected a list of functions", "[cast: float32]", error);
    if (value->kind == YAML_LIST)
        return read_list(dataset, "", job, value, error);
    struct dataset *input = dataset_ref(*dataset);
    plim_status status = read_expressions(dataset, job, value, error);
    for (const struct yaml *entry = value->first; entry && status == PLIM_OK; entry = entry->next)
        if (!is_expression(input, entry))
            status = read_entry(dataset, job, entry, error);
    dataset_unref(input);
    return status;
}

const struct stage stage_map = {
    .name = "map",
    .after_batch = true,
    .changes_spec = true,
    .build = map_build,
    .read = map_read,
};
