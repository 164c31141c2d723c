/* model_columns.c - which column of the batch feeds which input of a model, and which is the label of which output. */
#include <stdio.h>
#include <string.h>

#include "base/text/message.h"
#include "model/layers/layer_options.h"

#define MOST_CHOSEN 64 /* columns that data has at most */

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
        message_print(names + length, sizeof names - length, "%s%.40s", i ? ", " : "",
                      columns[i].name ? columns[i].name : "?");
    }
    plim_status status = fail_at(error, PLIM_BAD_JOB, model->job, "the data has no column for the input '%s'", input);
    return hint(error, status, "columns are %s; `- rename: {old: %.40s}` in the pipeline names one", names, input);
}

/* ---- labels ---- */

/* What an output is compared with, if anything. */
static bool needs_label(const struct training *training, int output)
{
    for (int i = 0; i < training->metric_count; i++)
        if (training->metric[i].output == output)
            return true;
    return !training->output_loss[output].none;
}

/* Columns that no Input takes, and that are no weights; the names of outputs. */
struct choice {
    const struct model *model;
    const struct training *training;
    const struct column_spec *columns;
    bool taken[MOST_CHOSEN];
    int count;
    int needed; /* labels */
    plim_error *error;
};

static int next_free(const struct choice *choice, int c)
{
    while (c < choice->count && choice->taken[c])
        c++;
    return c;
}

static int count_free(const struct choice *choice)
{
    int left = 0;
    for (int c = 0; c < choice->count; c++)
        left += !choice->taken[c];
    return left;
}

static int free_named(const struct choice *choice, const char *name)
{
    int c = column_named(choice->columns, choice->count, name);
    return c >= 0 && !choice->taken[c] ? c : -1;
}

/* By the names of outputs, where a column has one: then all of them do. */
static plim_status labels_by_name(bool *named, struct label_columns *out, const struct choice *choice)
{
    const struct model *model = choice->model;
    const char *missing = NULL;
    for (int i = 0; i < model->output_count; i++) {
        if (!needs_label(choice->training, i))
            continue;
        out->label[i] = free_named(choice, output_name(model, i));
        *named = *named || out->label[i] >= 0;
        if (out->label[i] < 0)
            missing = output_name(model, i);
    }
    if (!*named || !missing)
        return PLIM_OK;
    return hint(choice->error,
                fail_at(choice->error, PLIM_BAD_JOB, model->job, "the data has no column for the output '%s'", missing),
                "`- rename: {old: %.60s}` in the pipeline names one", missing);
}

static const char *first_needed(const struct choice *choice)
{
    int i = 0;
    while (i + 1 < choice->model->output_count && !needs_label(choice->training, i))
        i++;
    return output_name(choice->model, i);
}

static plim_status labels_left(const struct choice *choice, int left)
{
    const struct model *model = choice->model;
    if (model->output_count == 1)
        return hint(choice->error,
                    fail_at(choice->error, PLIM_BAD_JOB, model->job,
                            "%d columns are left besides the model's inputs: one is the label", left),
                    "pipeline: [inputs: [...], label: NAME]");
    return hint(choice->error,
                fail_at(choice->error, PLIM_BAD_JOB, model->job,
                        "%d columns are left besides the model's inputs, %d of %d outputs want%s a label", left,
                        choice->needed, model->output_count, choice->needed == 1 ? "s" : ""),
                "pipeline: [inputs: [...], label: {%.60s: NAME, ...}]", first_needed(choice));
}

/* A column that has the name of an output is no other output's label. */
static plim_status check_owner(const struct choice *choice, int column, int output)
{
    const struct model *model = choice->model;
    const char *name = choice->columns[column].name;
    for (int i = 0; i < model->output_count; i++)
        if (name && i != output && strcmp(output_name(model, i), name) == 0)
            return hint(choice->error,
                        fail_at(choice->error, PLIM_BAD_JOB, model->job,
                                "the label of the output '%s' is missing: the column '%s' has the name of another",
                                output_name(model, output), name),
                        "`- rename: {old: %.60s}` in the pipeline names one", output_name(model, output));
    return PLIM_OK;
}

/* In order: a column for each output that needs one, and behind them weights perhaps, for all or for each. Where an
   output needs none, a column more could be its label as well: names have to tell. */
static plim_status labels_in_order(struct label_columns *out, struct choice *choice, bool weighted)
{
    const struct model *model = choice->model;
    int left = count_free(choice), more = left - choice->needed, c = 0;
    bool all = choice->needed == model->output_count, weights = all && !weighted && (more == 1 || more == left / 2);
    if (more && !weights)
        return labels_left(choice, left);
    for (int i = 0; i < model->output_count; i++) {
        if (!needs_label(choice->training, i))
            continue;
        c = next_free(choice, c);
        TRY(check_owner(choice, c, i));
        out->label[i] = c++;
    }
    for (int i = 0; more && i < model->output_count; i++) {
        if (!i || more > 1)
            c = next_free(choice, c);
        out->weight[i] = c;
        c += more > 1;
    }
    return PLIM_OK;
}

/* Of one output: the column with its name, the one named label, the first behind inputs in order, or the only one. */
static plim_status one_label(struct label_columns *out, struct choice *choice, bool inputs_named)
{
    int left = count_free(choice), own = free_named(choice, output_name(choice->model, 0));
    int label = free_named(choice, "label"), first = next_free(choice, 0);
    if (own >= 0 || (inputs_named && label >= 0))
        out->label[0] = own >= 0 ? own : label;
    else if (left == 1 || (left && !inputs_named))
        out->label[0] = first;
    else
        return labels_left(choice, left);
    if (!inputs_named && out->weight[0] < 0 && left == 2 && out->label[0] == first)
        out->weight[0] = next_free(choice, first + 1);
    return PLIM_OK;
}

/* sample_weight is everybody's, NAME_sample_weight of one output. */
static bool named_weights(struct label_columns *out, struct choice *choice)
{
    char name[128];
    int all = free_named(choice, "sample_weight"), own[MOST_MODEL_OUTPUTS];
    bool any = all >= 0;
    for (int i = 0; i < choice->model->output_count; i++) {
        snprintf(name, sizeof name, "%.100s_sample_weight", output_name(choice->model, i));
        own[i] = free_named(choice, name);
        any = any || own[i] >= 0;
        out->weight[i] = own[i] >= 0 ? own[i] : all;
    }
    for (int i = 0; i < choice->model->output_count; i++)
        if (own[i] >= 0)
            choice->taken[own[i]] = true;
    if (all >= 0)
        choice->taken[all] = true;
    return any;
}

static plim_status choose_labels(struct label_columns *out, struct choice *choice, bool inputs_named)
{
    bool named = false;
    for (int i = 0; i < MOST_MODEL_OUTPUTS; i++)
        out->label[i] = out->weight[i] = -1;
    bool weighted = named_weights(out, choice);
    for (int i = 0; i < choice->model->output_count; i++)
        choice->needed += needs_label(choice->training, i);
    if (choice->model->output_count == 1)
        return one_label(out, choice, inputs_named);
    TRY(labels_by_name(&named, out, choice));
    return named ? PLIM_OK : labels_in_order(out, choice, weighted);
}

/* ---- inputs ---- */

static plim_status choose_inputs(int *feed, bool *by_name, const struct choice *choice)
{
    const struct model *model = choice->model;
    for (int i = 0; i < model->feed_count; i++) {
        feed[i] = model->feed[i].name ? column_named(choice->columns, choice->count, model->feed[i].name) : -1;
        *by_name = *by_name || feed[i] >= 0;
    }
    for (int i = 0; *by_name && i < model->feed_count; i++)
        if (feed[i] < 0)
            return no_column(model, model->feed[i].name ? model->feed[i].name : "input", choice->columns, choice->count,
                             choice->error);
    if (*by_name)
        return PLIM_OK;
    if (choice->count <= model->feed_count)
        return fail_at(choice->error, PLIM_BAD_JOB, model->job,
                       "the model has %d input%s and a label; the data has %d column%s", model->feed_count,
                       model->feed_count == 1 ? "" : "s", choice->count, choice->count == 1 ? "" : "s");
    for (int i = 0; i < model->feed_count; i++)
        feed[i] = i;
    return PLIM_OK;
}

plim_status model_inputs(int *feed, const struct model *model, const struct column_spec *columns, int count,
                         plim_error *error)
{
    struct choice choice = {.model = model, .columns = columns, .count = count, .error = error};
    bool by_name = false;
    return choose_inputs(feed, &by_name, &choice);
}

plim_status model_columns(int *feed, struct label_columns *labels, const struct model *model,
                          const struct step_spec *step, plim_error *error)
{
    struct choice choice = {.model = model,
                            .training = step->training,
                            .columns = step->column,
                            .count = step->column_count,
                            .error = error};
    bool by_name = false;
    if (step->column_count > MOST_CHOSEN)
        return fail_at(error, PLIM_UNSUPPORTED, model->job, "%d columns; at most %d", step->column_count, MOST_CHOSEN);
    TRY(choose_inputs(feed, &by_name, &choice));
    for (int i = 0; i < model->feed_count; i++)
        choice.taken[feed[i]] = true;
    return choose_labels(labels, &choice, by_name);
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
        if (use->layer->type == &layer_input && use->input[0].from < 0)
            input_spec(&columns[FEED(use->input[0].from)], use->layer);
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
