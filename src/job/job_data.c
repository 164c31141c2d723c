/* job_data.c - the splits of a job (`train:`, `validation:`) as data sets, and what they must be for its model. */
#include "base/text/text.h"
#include "job/job.h"
#include "pipeline/core/stage.h"
#include "pipeline/keys/split.h"

#include <string.h>

/* ---- one split ---- */

struct data_reader job_reader(struct plim_job *job)
{
    return (struct data_reader){
        .budget = job->budget, .arena = &job->arena, .path = job->path, .folder = job->folder, .seed = job->seed};
}

plim_status job_bad(struct plim_job *job, const struct yaml *at, const char *what, plim_error *error)
{
    struct data_reader reader = job_reader(job);
    return reader_bad(&reader, at, what, error);
}

plim_status job_data_open(struct plim_job *job, struct job_data *data, plim_error *error)
{
    struct data_reader reader = job_reader(job);
    struct split split;
    char where[256];
    TRY(split_read(&split, &reader, data->yaml, error));
    if (!split.pipeline && !job->data_only)
        return hint(error, job_bad(job, data->yaml, "'pipeline:' is missing", error), "pipeline: [batch: 32]");
    yaml_place(where, job->path, split.pipeline ? split.pipeline : data->yaml);
    plim_status status = split_open(&data->dataset, &reader, &split, error);
    if (status == PLIM_OK)
        status = job->data_only ? dataset_runs(data->dataset, error) : dataset_check(data->dataset, error);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, where);
}

plim_status job_samples(struct spec *spec, const struct plim_job *job, plim_error *error)
{
    const struct dataset *dataset = job->train.dataset;
    dataset_sample_spec(spec, dataset);
    for (int c = 0; dataset->stacked && c < spec->column_count; c++)
        if (column_is_variable(&spec->column[c])) {
            plim_status status = fail_at(error, PLIM_UNSUPPORTED, job->path,
                                         "column '%s' is padded to another length in each batch", spec->column[c].name);
            return hint(error, status, "put `- unbatch` behind it, or pad to a stated shape");
        }
    return PLIM_OK;
}

int job_columns(struct column_spec *out, const struct spec *spec)
{
    for (int c = 0; c < spec->column_count; c++)
        out[c] = (struct column_spec){
            .name = spec->column[c].name, .type = spec->column[c].type, .shape = spec->column[c].shape};
    return spec->column_count;
}

static plim_status no_numbers(struct plim_job *job, const struct job_data *data, const struct column *column,
                              plim_error *error)
{
    char where[256], shape[64];
    yaml_place(where, job->path, data->yaml);
    shape_text(shape, sizeof shape, &column->shape, false);
    plim_status status = fail_at(error, PLIM_BAD_JOB, where, "column '%s' is %s %s: a model reads numbers of one shape",
                                 column->name, type_name(column->type), shape);
    return hint(error, status, "decode, resize, pad or look it up in `map:`, or choose others with `inputs:`");
}

static plim_status choose_columns(int *feed, struct label_columns *labels, const struct plim_job *job,
                                  const struct spec *spec, plim_error *error)
{
    struct column_spec columns[MOST_COLUMNS];
    const struct step_spec step = {
        .column = columns, .column_count = job_columns(columns, spec), .training = &job->training};
    return model_columns(feed, labels, job->model, &step, error);
}

/* What a model can be fed with: numbers of one shape, its inputs and a label. */
plim_status job_data_trains(struct plim_job *job, const struct job_data *data, plim_error *error)
{
    struct spec spec;
    struct label_columns labels;
    int feed[MOST_COLUMNS] = {0}, feeds = job->model->feed_count;
    dataset_sample_spec(&spec, data->dataset);
    if (spec.column_count < 2)
        return job_bad(job, data->yaml, "the data has one column; training needs an input and a label", error);
    if (feeds > MOST_COLUMNS)
        return job_bad(job, data->yaml, "the model has more inputs than data can have columns", error);
    TRY(choose_columns(feed, &labels, job, &spec, error));
    for (int i = 0; i < feeds; i++)
        if (column_has_values(&spec.column[feed[i]]))
            return no_numbers(job, data, &spec.column[feed[i]], error);
    for (int i = 0; i < job->model->output_count; i++)
        if (labels.label[i] >= 0 && column_has_values(&spec.column[labels.label[i]]))
            return no_numbers(job, data, &spec.column[labels.label[i]], error);
    for (int i = 0; i < job->model->output_count; i++)
        if (labels.weight[i] >= 0 && column_has_values(&spec.column[labels.weight[i]]))
            return no_numbers(job, data, &spec.column[labels.weight[i]], error);
    return PLIM_OK;
}

/* ---- both splits together ---- */

static plim_status bad_data_words(struct plim_job *job, const struct job_data *data, const char *what,
                                  const char *advice, plim_error *error)
{
    return hint(error, yaml_fail(error, PLIM_BAD_JOB, job->path, data->yaml, "%s", what), "%s", advice);
}

static plim_status check_ends(struct plim_job *job, const struct job_data *data, int64_t steps, const char *advice,
                              plim_error *error)
{
    int64_t last;
    if (!data->dataset || steps > 0 || dataset_steps(data->dataset, &last) != CARDINALITY_INFINITE)
        return PLIM_OK;
    return bad_data_words(job, data, "this data never ends", advice, error);
}

/* Both splits feed one model. */
static plim_status check_alike(struct plim_job *job, plim_error *error)
{
    if (!job->validation.dataset)
        return PLIM_OK;
    struct spec train, validation;
    struct label_columns labels;
    int first[MOST_COLUMNS] = {0}, second[MOST_COLUMNS] = {0};
    dataset_sample_spec(&train, job->train.dataset);
    dataset_sample_spec(&validation, job->validation.dataset);
    TRY(choose_columns(first, &labels, job, &train, error));
    TRY(choose_columns(second, &labels, job, &validation, error));
    for (int i = 0; i < job->model->feed_count; i++)
        if (!shape_equal(&train.column[first[i]].shape, &validation.column[second[i]].shape))
            return bad_data_words(job, &job->validation,
                                  "validation elements have another shape than training elements",
                                  "give both the same shape", error);
    return PLIM_OK;
}

uint64_t job_data_disk(const struct plim_job *job)
{
    uint64_t by_tag[TAG_COUNT] = {0}, bytes = 0;
    dataset_cost(by_tag, &bytes, job->train.dataset, (struct grant){.slots = 1});
    if (job->validation.dataset)
        dataset_cost(by_tag, &bytes, job->validation.dataset, (struct grant){.slots = 1});
    return bytes;
}

plim_status job_disk_check(const struct plim_job *job, plim_error *error)
{
    uint64_t bytes = job_data_disk(job);
    if (bytes <= job->scratch.limit_bytes)
        return PLIM_OK;
    char need[16], limit[16];
    text_size(need, bytes);
    text_size(limit, job->scratch.limit_bytes);
    plim_status status = fail_at(error, PLIM_OVER_DISK, job->path,
                                 "unpacked sources and caches take %s of disk, the limit is %s", need, limit);
    return hint(error, status, "--disk %lluKiB", (unsigned long long)(bytes / 1024 + 1));
}

plim_status job_data_check(struct plim_job *job, plim_error *error)
{
    TRY(check_ends(job, &job->train, job->options.steps_per_epoch, "set train.steps_per_epoch", error));
    TRY(check_ends(job, &job->validation, job->options.validation_steps, "set train.validation_steps", error));
    TRY(check_alike(job, error));
    return job_disk_check(job, error);
}
