/* api_dataset.c - data sets for C programs: thin wrappers of pipeline/dataset.h. */
#include "job/api.h"

#include <stdio.h>
#include <string.h>

/* ---- budgets ---- */

plim_status plim_budget_make(plim_budget **out, uint64_t bytes, plim_error *error)
{
    struct budget *inner;
    TRY(budget_make(&inner, bytes, error));
    plim_budget *budget = budget_take(inner, TAG_PLANNER, sizeof *budget);
    if (!budget) {
        plim_status status = budget_refused(inner, TAG_PLANNER, sizeof *budget, error);
        budget_free(inner);
        return status;
    }
    budget->inner = inner;
    budget->own_bytes = budget_figures(inner).now;
    *out = budget;
    return PLIM_OK;
}

/* Freed too early it would take the blocks of others with it: it stays. */
void plim_budget_free(plim_budget *budget)
{
    if (!budget || budget_figures(budget->inner).now > budget->own_bytes)
        return;
    struct budget *inner = budget->inner;
    budget_give(inner, TAG_PLANNER, budget, sizeof *budget);
    budget_free(inner);
}

void plim_budget_figures(uint64_t *now, uint64_t *peak, const plim_budget *budget)
{
    struct budget_figures figures = budget_figures(budget->inner);
    *now = figures.now;
    *peak = figures.peak;
}

/* ---- columns ---- */

static const enum type types[] = {
    [PLIM_FLOAT32] = TYPE_F32, [PLIM_FLOAT64] = TYPE_F64, [PLIM_FLOAT16] = TYPE_F16, [PLIM_BFLOAT16] = TYPE_BF16,
    [PLIM_INT8] = TYPE_I8,     [PLIM_INT16] = TYPE_I16,   [PLIM_INT32] = TYPE_I32,   [PLIM_INT64] = TYPE_I64,
    [PLIM_UINT8] = TYPE_U8,    [PLIM_BOOL] = TYPE_BOOL,   [PLIM_STRING] = TYPE_STRING,
};
#define TYPES ((int)(sizeof types / sizeof types[0]))

plim_type api_type_outside(enum type type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i] == type)
            return (plim_type)i;
    return PLIM_OTHER;
}

bool api_type(enum type *out, plim_type type)
{
    if ((int)type < 0 || (int)type >= TYPES)
        return false;
    *out = types[type];
    return true;
}

void api_column(plim_column *out, const struct column *column)
{
    *out = (plim_column){.type = api_type_outside(column->type), .rank = column->shape.rank, .row_bytes = column->bytes};
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
    for (int c = 0; c < count; c++)
        TRY(read_column(&out->column[c], columns[c].name, columns[c].type, columns[c].shape, columns[c].rank, -1, error));
    out->column_count = count;
    return PLIM_OK;
}

/* ---- sources ---- */

static plim_dataset *from(plim_budget *budget, struct source *source, plim_status status, const plim_error *error)
{
    struct dataset *dataset = status == PLIM_OK ? dataset_from_source(source) : dataset_failed(budget->inner, error);
    return (plim_dataset *)dataset;
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
    for (int c = 0; c < count; c++) {
        const plim_tensor *tensor = &tensors[c];
        if (slices && tensor->rank < 1)
            return fail(error, PLIM_USAGE, "from_tensor_slices: tensor %d has no axis to slice", c);
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
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = open_tensors(&source, budget->inner, tensors, count, false, &error);
    return from(budget, source, status, &error);
}

plim_dataset *plim_dataset_from_tensor_slices(plim_budget *budget, const plim_tensor *tensors, int count)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = open_tensors(&source, budget->inner, tensors, count, true, &error);
    return from(budget, source, status, &error);
}

plim_dataset *plim_dataset_from_generator(plim_budget *budget, const plim_column *columns, int count,
                                          const plim_generator *generator)
{
    struct source *source = NULL;
    plim_error error = {0};
    struct spec spec;
    const struct generator inner = {.next = generator->next,
                                    .rewind = generator->rewind,
                                    .context = generator->context,
                                    .count = generator->count,
                                    .value_bytes = generator->value_bytes};
    plim_status status = api_spec(&spec, columns, count, &error);
    if (status == PLIM_OK)
        status = generator_open(&source, budget->inner, &spec, &inner, &error);
    return from(budget, source, status, &error);
}

plim_dataset *plim_dataset_range(plim_budget *budget, int64_t n)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = range_open(&source, budget->inner, n, &error);
    return from(budget, source, status, &error);
}

plim_dataset *plim_dataset_random(plim_budget *budget, int64_t elements, const int64_t *shape, int rank,
                                  int64_t classes, uint64_t seed)
{
    struct source *source = NULL;
    plim_error error = {0};
    struct column column;
    plim_status status = read_column(&column, "x", PLIM_FLOAT32, shape, rank, 1, &error);
    if (status == PLIM_OK) {
        const struct random_options options = {
            .elements = elements, .shape = column.shape, .classes = classes, .seed = seed};
        status = random_open(&source, budget->inner, &options, &error);
    }
    return from(budget, source, status, &error);
}

plim_dataset *plim_dataset_npy(plim_budget *budget, const char *const *paths, int count)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = npy_open(&source, budget->inner, paths, count, NULL, 0, &error);
    return from(budget, source, status, &error);
}

plim_dataset *plim_dataset_idx(plim_budget *budget, const char *const *paths, int count)
{
    struct source *source = NULL;
    plim_error error = {0};
    plim_status status = idx_open(&source, budget->inner, paths, count, &error);
    return from(budget, source, status, &error);
}

plim_dataset *plim_dataset_counter(plim_budget *budget, int64_t start, int64_t step, int64_t count)
{
    return outside(dataset_counter(budget->inner, start, step, count));
}

plim_dataset *plim_dataset_list_files(plim_budget *budget, const char *const *patterns, int count, bool shuffle,
                                      uint64_t seed)
{
    return outside(dataset_list_files(budget->inner, patterns, count, shuffle, seed));
}

/* ---- stages ---- */

plim_dataset *plim_dataset_shuffle(plim_dataset *dataset, uint64_t seed)
{
    return outside(dataset_shuffle(inside(dataset), seed));
}

plim_dataset *plim_dataset_take(plim_dataset *dataset, int64_t count)
{
    return outside(dataset_take(inside(dataset), count));
}

plim_dataset *plim_dataset_skip(plim_dataset *dataset, int64_t count)
{
    return outside(dataset_skip(inside(dataset), count));
}

plim_dataset *plim_dataset_repeat(plim_dataset *dataset, int64_t times)
{
    return outside(dataset_repeat(inside(dataset), times));
}

plim_dataset *plim_dataset_batch(plim_dataset *dataset, int64_t size, bool drop_remainder)
{
    return outside(dataset_batch(inside(dataset), size, drop_remainder));
}

plim_dataset *plim_dataset_prefetch(plim_dataset *dataset, int64_t depth)
{
    return outside(dataset_prefetch(inside(dataset), depth == PLIM_AUTO ? PREFETCH_AUTO : depth));
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
    return dataset_runs((const struct dataset *)dataset, error);
}

int plim_dataset_spec(plim_column columns[PLIM_MOST_COLUMNS], const plim_dataset *dataset)
{
    struct spec spec;
    dataset_sample_spec(&spec, (const struct dataset *)dataset);
    for (int c = 0; c < spec.column_count; c++)
        api_column(&columns[c], &spec.column[c]);
    return spec.column_count;
}

int64_t plim_dataset_cardinality(const plim_dataset *dataset)
{
    return dataset_steps((const struct dataset *)dataset, NULL);
}
