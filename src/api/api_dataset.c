/* api_dataset.c - data sets for C programs: thin wrappers of pipeline/core/dataset.h. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/count.h"

#define MOST_NAMES (1 << 20)

plim_dataset *api_dataset_fail(plim_dataset *dataset, const plim_error *error)
{
    struct budget *budget = inside(dataset)->budget;
    if (!budget) /* it carries its error already */
        return dataset;
    dataset_unref(inside(dataset));
    return outside(dataset_failed(budget, error));
}

plim_dataset *api_dataset_null(plim_dataset *dataset, const char *what)
{
    plim_error error = {0};
    if (inside(dataset)->error)
        return dataset;
    fail(&error, PLIM_USAGE, "%s is NULL", what);
    return api_dataset_fail(dataset, &error);
}

/* ---- budgets ---- */

plim_status plim_budget_make(plim_budget **out, uint64_t bytes, plim_error *error)
{
    struct budget *inner;
    TRY(need_argument(out, "where the budget is to go", error));
    TRY(budget_make(&inner, bytes, error));
    plim_budget *budget = budget_take(inner, TAG_PLANNER, sizeof *budget);
    if (!budget) {
        plim_status status = budget_refused(inner, TAG_PLANNER, sizeof *budget, error);
        budget_free(inner);
        return status;
    }
    budget->inner = inner;
    budget->own_bytes = budget_usage(inner).now;
    *out = budget;
    return PLIM_OK;
}

/* Freed too early it would take the blocks of others with it: it stays. */
plim_status plim_budget_free(plim_budget *budget)
{
    if (!budget)
        return PLIM_OK;
    if (budget_usage(budget->inner).now > budget->own_bytes)
        return PLIM_USAGE;
    struct budget *inner = budget->inner;
    budget_give(inner, TAG_PLANNER, budget, sizeof *budget);
    budget_free(inner);
    return PLIM_OK;
}

void plim_budget_figures(uint64_t *now, uint64_t *peak, const plim_budget *budget)
{
    struct budget_usage usage = {0};
    if (budget)
        usage = budget_usage(budget->inner);
    if (now)
        *now = usage.now;
    if (peak)
        *peak = usage.peak;
}

/* ---- columns ---- */

static const enum type types[] = {
    [PLIM_FLOAT32] = TYPE_F32, [PLIM_FLOAT64] = TYPE_F64, [PLIM_FLOAT16] = TYPE_F16,   [PLIM_BFLOAT16] = TYPE_BF16,
    [PLIM_INT8] = TYPE_I8,     [PLIM_INT16] = TYPE_I16,   [PLIM_INT32] = TYPE_I32,     [PLIM_INT64] = TYPE_I64,
    [PLIM_UINT8] = TYPE_U8,    [PLIM_BOOL] = TYPE_BOOL,   [PLIM_STRING] = TYPE_STRING,
};

plim_type api_type_outside(enum type type)
{
    for (int i = 0; i < COUNT(types); i++)
        if (types[i] == type)
            return (plim_type)i;
    return PLIM_OTHER;
}

bool api_type(enum type *out, plim_type type)
{
    if ((int)type < 0 || (int)type >= COUNT(types))
        return false;
    *out = types[type];
    return true;
}

void api_column(plim_column *out, const struct column *column)
{
    *out =
        (plim_column){.type = api_type_outside(column->type), .rank = column->shape.rank, .row_bytes = column->bytes};
    memcpy(out->name, column->name, sizeof out->name);
    memcpy(out->shape, column->shape.dim, sizeof out->shape);
}

static plim_status read_column(struct column *out, const char *name, plim_type type, const int64_t *shape, int rank,
                               int64_t least, plim_error *error)
{
    *out = (struct column){.origin = -1};
    if (name && strnlen(name, sizeof out->name) == sizeof out->name)
        return fail(error, PLIM_USAGE, "a column's name has at most %zu letters", sizeof out->name - 1);
    snprintf(out->name, sizeof out->name, "%s", name ? name : "");
    if (!api_type(&out->type, type))
        return fail(error, PLIM_USAGE, "column '%s': unknown type %d", out->name, (int)type);
    if (rank < 0 || rank > MOST_AXES)
        return fail(error, PLIM_USAGE, "column '%s': %d axes; there are 0 to %d", out->name, rank, MOST_AXES);
    if (rank && !shape)
        return fail(error, PLIM_USAGE, "column '%s': its shape is NULL", out->name);
    out->shape = shape_of(rank, shape);
    for (int axis = 0; axis < rank; axis++)
        if (shape[axis] < least)
            return fail(error, PLIM_USAGE, "column '%s': an extent of %lld", out->name, (long long)shape[axis]);
    if (!column_bytes(&out->bytes, out))
        return fail(error, PLIM_USAGE, "column '%s': more bytes than an address can say", out->name);
    return PLIM_OK;
}

plim_status api_spec(struct spec *out, const plim_column *columns, int count, plim_error *error)
{
    out->column_count = 0;
    if (count < 1 || count > MOST_COLUMNS)
        return fail(error, PLIM_USAGE, "%d columns: there are 1 to %d", count, MOST_COLUMNS);
    TRY(need_argument(columns, "the list of columns", error));
    for (int c = 0; c < count; c++)
        TRY(read_column(&out->column[c], columns[c].name, columns[c].type, columns[c].shape, columns[c].rank, -1,
                        error));
    out->column_count = count;
    return PLIM_OK;
}

/* ---- sources ---- */

/* Declarations: a source that is not open yet, and its error. NULL is returned where there is no budget. */
#define OPEN_SOURCE(budget)                                                                                            \
    struct source *source = NULL;                                                                                      \
    plim_error error = {0};                                                                                            \
    HOST_FLOATS;                                                                                                       \
    if (!(budget))                                                                                                     \
    return NULL

/* By address: `status` may be the call that opens it. */
static plim_dataset *from(plim_budget *budget, struct source **source, plim_status status, const plim_error *error)
{
    return outside(status == PLIM_OK ? dataset_from_source(*source) : dataset_failed(budget->inner, error));
}

/* Slices: the first axis counts elements, the same for all. */
static plim_status open_tensors(struct source **out, struct budget *budget, const plim_tensor *tensors, int count,
                                bool slices, plim_error *error)
{
    struct spec spec = {0};
    const void *data[MOST_COLUMNS];
    int64_t elements = 1;
    if (count < 1 || count > MOST_COLUMNS)
        return fail(error, PLIM_USAGE, "%d tensors: there are 1 to %d", count, MOST_COLUMNS);
    TRY(need_argument(tensors, "the list of tensors", error));
    for (int c = 0; c < count; c++) {
        const plim_tensor *tensor = &tensors[c];
        if (slices && tensor->rank < 1)
            return fail(error, PLIM_USAGE, "from_tensor_slices: tensor %d has no axis to slice", c);
        if (!tensor->data)
            return fail(error, PLIM_USAGE, "tensor %d: its data is NULL", c);
        TRY(read_column(&spec.column[c], tensor->name, tensor->type, tensor->shape + slices, tensor->rank - slices, 0,
                        error));
        if (slices && c && tensor->shape[0] != elements)
            return fail(error, PLIM_USAGE, "from_tensor_slices: %lld elements in tensor %d, %lld in the first",
                        (long long)tensor->shape[0], c, (long long)elements);
        elements = slices ? tensor->shape[0] : 1;
        data[c] = tensor->data;
    }
    spec.column_count = count;
    return memory_open(out, budget, &spec, data, elements, error);
}

plim_dataset *plim_dataset_from_tensors(plim_budget *budget, const plim_tensor *tensors, int count)
{
    OPEN_SOURCE(budget);
    return from(budget, &source, open_tensors(&source, budget->inner, tensors, count, false, &error), &error);
}

plim_dataset *plim_dataset_from_tensor_slices(plim_budget *budget, const plim_tensor *tensors, int count)
{
    OPEN_SOURCE(budget);
    return from(budget, &source, open_tensors(&source, budget->inner, tensors, count, true, &error), &error);
}

static plim_status open_generator(struct source **out, struct budget *budget, const plim_column *columns, int count,
                                  const plim_generator *generator, plim_error *error)
{
    struct spec spec;
    TRY(need_argument(generator, "the generator", error));
    TRY(need_argument(generator->next ? generator : NULL, "the generator's next", error));
    if (generator->count < 0)
        return fail(error, PLIM_USAGE, "generator: %lld elements an epoch", (long long)generator->count);
    const struct generator inner = {.next = generator->next,
                                    .rewind = generator->rewind,
                                    .context = generator->context,
                                    .count = generator->count,
                                    .value_bytes = generator->value_bytes};
    TRY(api_spec(&spec, columns, count, error));
    return generator_open(out, budget, &spec, &inner, error);
}

plim_dataset *plim_dataset_from_generator(plim_budget *budget, const plim_column *columns, int count,
                                          const plim_generator *generator)
{
    OPEN_SOURCE(budget);
    return from(budget, &source, open_generator(&source, budget->inner, columns, count, generator, &error), &error);
}

plim_dataset *plim_dataset_range(plim_budget *budget, int64_t n)
{
    OPEN_SOURCE(budget);
    return from(budget, &source, range_open(&source, budget->inner, n, &error), &error);
}

plim_dataset *plim_dataset_random(plim_budget *budget, int64_t elements, const int64_t *shape, int rank,
                                  int64_t classes, uint64_t seed)
{
    OPEN_SOURCE(budget);
    struct column column;
    plim_status status = read_column(&column, "x", PLIM_FLOAT32, shape, rank, 1, &error);
    if (status == PLIM_OK) {
        const struct random_options options = {
            .elements = elements, .shape = column.shape, .classes = classes, .seed = seed};
        status = random_open(&source, budget->inner, &options, &error);
    }
    return from(budget, &source, status, &error);
}

/* Names of files: none of them NULL. */
static plim_status check_names(const char *const *names, int count, plim_error *error)
{
    if (count < 0 || count > MOST_NAMES)
        return fail(error, PLIM_USAGE, "%d names of files: at most %d", count, MOST_NAMES);
    TRY(need_argument(names || !count ? &count : NULL, "the list of names", error));
    for (int i = 0; i < count; i++)
        if (!names[i])
            return fail(error, PLIM_USAGE, "name %d is NULL", i);
    return PLIM_OK;
}

plim_dataset *plim_dataset_npy(plim_budget *budget, const char *const *paths, int count)
{
    OPEN_SOURCE(budget);
    plim_status status = check_names(paths, count, &error);
    if (status == PLIM_OK)
        status = npy_open(&source, budget->inner, paths, count, NULL, &error);
    return from(budget, &source, status, &error);
}

plim_dataset *plim_dataset_idx(plim_budget *budget, const char *const *paths, int count)
{
    OPEN_SOURCE(budget);
    plim_status status = check_names(paths, count, &error);
    if (status == PLIM_OK)
        status = idx_open(&source, budget->inner, paths, count, &error);
    return from(budget, &source, status, &error);
}

plim_dataset *plim_dataset_counter(plim_budget *budget, int64_t start, int64_t step, int64_t count)
{
    return budget ? outside(dataset_counter(budget->inner, start, step, count)) : NULL;
}

plim_dataset *plim_dataset_list_files(plim_budget *budget, const char *const *patterns, int count, bool shuffle,
                                      uint64_t seed)
{
    plim_error error = {0};
    if (!budget)
        return NULL;
    if (check_names(patterns, count, &error) != PLIM_OK)
        return outside(dataset_failed(budget->inner, &error));
    return outside(dataset_list_files(budget->inner, patterns, count, shuffle, seed));
}

/* ---- stages ---- */

plim_dataset *plim_dataset_shuffle(plim_dataset *dataset, uint64_t seed)
{
    return dataset ? outside(dataset_shuffle(inside(dataset), seed)) : NULL;
}

plim_dataset *plim_dataset_take(plim_dataset *dataset, int64_t count)
{
    return dataset ? outside(dataset_take(inside(dataset), count)) : NULL;
}

plim_dataset *plim_dataset_skip(plim_dataset *dataset, int64_t count)
{
    return dataset ? outside(dataset_skip(inside(dataset), count)) : NULL;
}

plim_dataset *plim_dataset_repeat(plim_dataset *dataset, int64_t times)
{
    return dataset ? outside(dataset_repeat(inside(dataset), times)) : NULL;
}

plim_dataset *plim_dataset_batch(plim_dataset *dataset, int64_t size, bool drop_remainder)
{
    return dataset ? outside(dataset_batch(inside(dataset), size, drop_remainder)) : NULL;
}

plim_dataset *plim_dataset_prefetch(plim_dataset *dataset, int64_t depth)
{
    return dataset ? outside(dataset_prefetch(inside(dataset), depth == PLIM_AUTO ? PREFETCH_AUTO : depth)) : NULL;
}

/* ---- asking ---- */

plim_dataset *plim_dataset_ref(plim_dataset *dataset)
{
    return outside(dataset_ref(inside(dataset)));
}

void plim_dataset_unref(plim_dataset *dataset)
{
    dataset_unref(inside(dataset));
}

plim_status plim_dataset_check(const plim_dataset *dataset, plim_error *error)
{
    TRY(need_argument(dataset, "the data set", error));
    return dataset_runs((const struct dataset *)dataset, error);
}

int plim_dataset_spec(plim_column columns[PLIM_MOST_COLUMNS], const plim_dataset *dataset)
{
    struct spec spec;
    if (!columns || !dataset)
        return 0;
    dataset_sample_spec(&spec, (const struct dataset *)dataset);
    for (int c = 0; c < spec.column_count; c++)
        api_column(&columns[c], &spec.column[c]);
    return spec.column_count;
}

int64_t plim_dataset_cardinality(const plim_dataset *dataset)
{
    return dataset ? dataset_steps((const struct dataset *)dataset, NULL) : 0;
}
