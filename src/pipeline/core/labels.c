/* labels.c - columns that a loss or an embedding reads, looked at before they reach it: a class or an id that there is
   not, or not a number, would end as weights that are not numbers. */
#include "pipeline/core/labels.h"

#include <math.h>

plim_status dataset_expect(struct dataset *dataset, int column, enum expectation kind, int64_t below, plim_error *error)
{
    TRY(dataset_error(dataset, error));
    if (column < 0 || column >= dataset->spec->column_count)
        return fail(error, PLIM_INTERNAL, "labels: column %d of %d", column, dataset->spec->column_count);
    int at = 0;
    while (at < dataset->label_count && dataset->labels[at].column != column)
        at++;
    if (at == MOST_LABEL_RULES)
        return fail(error, PLIM_INTERNAL, "labels: more than %d columns of them", MOST_LABEL_RULES);
    dataset->labels[at] = (struct label_rule){.column = column, .kind = kind, .below = below};
    dataset->label_count += at == dataset->label_count;
    return PLIM_OK;
}

static bool is_allowed(const struct label_rule *rule, double value)
{
    if (rule->kind == EXPECT_NUMBERS)
        return !isnan(value);
    return value >= 0 && value < (double)rule->below && value == trunc(value);
}

static plim_status refuse(const struct column *column, const struct label_rule *rule, int64_t index, double value,
                          plim_error *error)
{
    bool ids = rule->kind == EXPECT_IDS;
    if (isnan(value))
        return fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is not a number", (long long)index, column->name);
    fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is %.15g, not one of %lld %s from 0", (long long)index,
         column->name, value, (long long)rule->below, ids ? "ids" : "classes");
    if (ids)
        return hint(error, PLIM_BAD_DATA, "an Embedding of input_dim %lld takes whole numbers from 0 to %lld",
                    (long long)rule->below, (long long)rule->below - 1);
    return hint(error, PLIM_BAD_DATA, "labels are whole numbers from 0 to %lld, one for each output of the model",
                (long long)rule->below - 1);
}

/* `count` values, `each` of them of one element; -1: all are allowed, else which is not. */
static int64_t find_bad(const struct column *column, const struct label_rule *rule, const void *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!is_allowed(rule, element_get(values, column->type, i)))
            return i;
    return -1;
}

plim_status labels_check(int64_t *bad, const struct dataset *dataset, const struct label_rule *rule,
                         const struct label_rows *rows, plim_error *error)
{
    const struct column *column = &dataset->spec->column[rule->column];
    bool variable = column_is_variable(column); /* elements that are batches */
    int64_t each = variable ? 0 : shape_count(&column->shape), calls = variable ? rows->count : 1;
    for (int64_t i = 0; i < calls; i++) {
        const struct cell *cell = (const struct cell *)rows->rows + i;
        const void *values = variable ? cell->data : rows->rows;
        int64_t found = find_bad(column, rule, values, variable ? value_count(column, cell) : rows->count * each);
        if (found < 0)
            continue;
        *bad = variable ? i : found / each;
        return refuse(column, rule, rows->index[*bad], element_get(values, column->type, found), error);
    }
    return PLIM_OK;
}
