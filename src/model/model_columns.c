/* model_columns.c - which column of the batch feeds which input of a model, and which is the label. */
#include <stdio.h>
#include <string.h>

#include "model/layer_options.h"

static int column_named(const struct column_spec *columns, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (columns[i].name && strcmp(columns[i].name, name) == 0)
            return i;
    return -1;
}

static plim_status no_column(const struct model *model, const char *input, const struct column_spec *columns, int count,
                             plim_error *error)
{
    char names[200] = "";
    for (int i = 0; i < count; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%.40s", i ? ", " : "",
                 columns[i].name ? columns[i].name : "?");
    }
    plim_status status = fail_at(error, PLIM_BAD_JOB, model->job, "the data has no column for the input '%s'", input);
    return hint(error, status, "columns are %s; `- rename: {old: %.40s}` in the pipeline names one", names, input);
}

/* The column that no Input takes: the one named label, or the only one left. */
static plim_status label_column(int *label, const int *feed, const struct model *model,
                                const struct column_spec *columns, int count, plim_error *error)
{
    int left = 0;
    for (int c = 0; c < count; c++) {
        bool taken = false;
        for (int i = 0; i < model->feed_count; i++)
            taken = taken || feed[i] == c;
        if (taken)
            continue;
        *label = c;
        left++;
        if (columns[c].name && strcmp(columns[c].name, "label") == 0)
            return PLIM_OK;
    }
    if (left == 1)
        return PLIM_OK;
    return hint(error,
                fail_at(error, PLIM_BAD_JOB, model->job,
                        "%d columns are left besides the model's inputs: one is the label", left),
                "pipeline: [inputs: [...], label: NAME]");
}

plim_status model_columns(int *feed, int *label, const struct model *model, const struct column_spec *columns,
                          int count, plim_error *error)
{
    int named = 0;
    for (int i = 0; i < model->feed_count; i++) {
        feed[i] = model->feed[i].name ? column_named(columns, count, model->feed[i].name) : -1;
        named += feed[i] >= 0;
    }
    for (int i = 0; named && i < model->feed_count; i++)
        if (feed[i] < 0)
            return no_column(model, model->feed[i].name ? model->feed[i].name : "input", columns, count, error);
    if (named)
        return label_column(label, feed, model, columns, count, error);
    if (count <= model->feed_count)
        return fail_at(error, PLIM_BAD_JOB, model->job,
                       "the model has %d input%s and a label; the data has %d column%s", model->feed_count,
                       model->feed_count == 1 ? "" : "s", count, count == 1 ? "" : "s");
    for (int i = 0; i < model->feed_count; i++)
        feed[i] = i;
    *label = model->feed_count;
    return PLIM_OK;
}

plim_status model_input_columns(struct column_spec *columns, int *count, int most, const struct model *model,
                                plim_error *error)
{
    if (model->feed_count > most)
        return fail_at(error, PLIM_BAD_MODEL, model->job, "%d inputs; at most %d", model->feed_count, most);
    *count = model->feed_count;
    for (int i = 0; i < model->feed_count; i++)
        columns[i].shape.rank = -1;
    for (int i = 0; i < model->use_count; i++) {
        const struct use *use = &model->use[i];
        if (use->layer->type == &layer_input && use->input[0] < 0)
            input_spec(&columns[FEED(use->input[0])], use->layer);
    }
    for (int i = 0; i < model->feed_count; i++) {
        if (columns[i].shape.rank < 0)
            return hint(error, fail_at(error, PLIM_BAD_MODEL, model->job, "the model does not say what it is fed with"),
                        "add an Input layer");
        columns[i].name = model->feed[i].name;
        for (int k = 0; k < columns[i].shape.rank; k++)
            if (columns[i].shape.dim[k] < 0)
                return fail_at(error, PLIM_UNSUPPORTED, model->job,
                               "axis %d of input '%s' has any length: data is needed", k + 1, model->feed[i].name);
    }
    return PLIM_OK;
}
