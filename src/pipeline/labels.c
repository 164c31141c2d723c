/* labels.c - the column that a loss reads, looked at before it reaches the loss: a class that there is not, or
   not a number, would end as weights that are not numbers. */
#include "pipeline/labels.h"

#include <math.h>

plim_status dataset_expect_labels(struct dataset *dataset, int column, int64_t classes, plim_error *error)
{
    TRY(dataset_error(dataset, error));
    if (column < 0 || column >= dataset->spec->column_count)
        return fail(error, PLIM_INTERNAL, "labels: column %d of %d", column, dataset->spec->column_count);
    dataset->labels = (struct label_rule){.checked = true, .column = column, .classes = classes};
    return PLIM_OK;
}

static bool is_allowed(double value, int64_t classes)
{
    if (classes == LABELS_ARE_NUMBERS)
        return !isnan(value);
    return value >= 0 && value < (double)classes && value == trunc(value);
}

static plim_status refuse(const struct column *column, int64_t index, double value, int64_t classes, plim_error *error)
{
    if (isnan(value))
        return fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is not a number", (long long)index, column->name);
    fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is %.15g, not one of %lld classes from 0", (long long)index,
         column->name, value, (long long)classes);
    return hint(error, PLIM_BAD_DATA, "labels are whole numbers from 0 to %lld, one for each output of the model",
                (long long)classes - 1);
}

plim_status labels_check(const struct dataset *dataset, const void *rows, const int64_t *index, int64_t count,
                         plim_error *error)
{
    const struct label_rule *rule = &dataset->labels;
    const struct column *column = &dataset->spec->column[rule->column];
    int64_t each = shape_count(&column->shape);
    for (int64_t i = 0; i < count * each; i++) {
        double value = element_get(rows, column->type, i);
        if (!is_allowed(value, rule->classes))
            return refuse(column, index[i / each], value, rule->classes, error);
    }
    return PLIM_OK;
}
