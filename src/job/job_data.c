/* job_data.c - a split of the job file (`train:`, `validation:`) into a data set: one source word, then the
   pipeline's stages in their order. */
#include "base/text/text.h"
#include "job/job.h"
#include "job/source_word.h"
#include "pipeline/core/stage.h"

#include <string.h>

/* ---- one split ---- */

struct split_words {
    const struct yaml *source, *pipeline;
    uint64_t largest_element;
};

static plim_status read_size(uint64_t *bytes, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    if (yaml->kind == YAML_SCALAR && !yaml->is_null && text_parse_size(bytes, yaml->text) && *bytes)
        return PLIM_OK;
    return hint(error, job_bad(job, yaml, "largest_element: expected a size", error), "largest_element: 4MiB");
}

/* Checks every key before anything is opened. */
static plim_status read_split(struct split_words *words, struct plim_job *job, const struct yaml *split,
                              plim_error *error)
{
    *words = (struct split_words){0};
    if (split->kind != YAML_MAP)
        return job_bad(job, split,
                       "expected a source and a pipeline, as in {npy: [x.npy, y.npy], pipeline: [batch: 32]}", error);
    for (const struct yaml *entry = split->first; entry; entry = entry->next) {
        if (strcmp(entry->key, "pipeline") == 0)
            words->pipeline = entry;
        else if (strcmp(entry->key, "largest_element") == 0)
            TRY(read_size(&words->largest_element, job, entry, error));
        else if (!source_word_find(entry->key))
            return source_word_unknown(job, entry, error);
        else if (words->source)
            return job_bad(job, entry, "a second source: one split has one", error);
        else
            words->source = entry;
    }
    if (!words->source)
        return hint(error, job_bad(job, split, "no source", error), "npy: [x.npy, y.npy]");
    return PLIM_OK;
}

static plim_status open_source(struct dataset **out, struct plim_job *job, const struct split_words *words,
                               plim_error *error)
{
    char where[256];
    yaml_place(where, job->path, words->source);
    plim_status status = source_word_find(words->source->key)->open(out, job, words->source, error);
    if (status == PLIM_OK)
        status = dataset_error(*out, error);
    if (status != PLIM_OK)
        return place(error, status, where);
    if (words->largest_element)
        dataset_set_room(*out, words->largest_element);
    return PLIM_OK;
}

static plim_status add_stages(struct dataset **out, struct plim_job *job, const struct split_words *words,
                              plim_error *error)
{
    for (const struct yaml *stage = words->pipeline ? words->pipeline->first : NULL; stage; stage = stage->next)
        TRY(stage_read(out, job->path, stage, job->seed, error));
    return PLIM_OK;
}

#define MOST_NESTING 16

static plim_status open_nested(struct dataset **out, struct plim_job *job, const struct yaml *split, plim_error *error)
{
    struct split_words words;
    TRY(read_split(&words, job, split, error));
    if (words.pipeline && words.pipeline->kind != YAML_LIST)
        return job_bad(job, words.pipeline, "'pipeline:' must be a list of stages, as in [take: 100]", error);
    TRY(open_source(out, job, &words, error));
    return add_stages(out, job, &words, error);
}

plim_status job_nested_open(struct dataset **out, struct plim_job *job, const struct yaml *split, plim_error *error)
{
    struct dataset *dataset = NULL;
    if (job->nesting >= MOST_NESTING)
        return job_bad(job, split, "data sets inside data sets: too deep", error);
    job->nesting++;
    plim_status status = open_nested(&dataset, job, split, error);
    job->nesting--;
    if (status == PLIM_OK)
        *out = dataset;
    else
        dataset_unref(dataset);
    return status;
}

plim_status job_data_open(struct plim_job *job, struct job_data *data, plim_error *error)
{
    struct split_words words;
    char where[256];
    TRY(read_split(&words, job, data->yaml, error));
    if (!words.pipeline && !job->data_only)
        return hint(error, job_bad(job, data->yaml, "'pipeline:' is missing", error), "pipeline: [batch: 32]");
    if (words.pipeline && words.pipeline->kind != YAML_LIST)
        return job_bad(job, words.pipeline, "'pipeline:' must be a list of stages, as in [batch: 32]", error);
    TRY(open_source(&data->dataset, job, &words, error));
    yaml_place(where, job->path, words.pipeline ? words.pipeline : data->yaml);
    plim_status status = add_stages(&data->dataset, job, &words, error);
    if (status == PLIM_OK)
        status = job->data_only ? dataset_runs(data->dataset, error) : dataset_check(data->dataset, error);
    return status == PLIM_OK ? PLIM_OK : place(error, status, where);
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

/* What a model can be fed with: numbers of one shape, its inputs and a label. */
plim_status job_data_trains(struct plim_job *job, const struct job_data *data, plim_error *error)
{
    struct spec spec;
    struct column_spec columns[MOST_COLUMNS];
    struct label_columns labels;
    int feed[MOST_COLUMNS] = {0}, feeds = job->model->feed_count;
    dataset_sample_spec(&spec, data->dataset);
    if (spec.column_count < 2)
        return job_bad(job, data->yaml, "the data has one column; training needs an input and a label", error);
    if (feeds > MOST_COLUMNS)
        return job_bad(job, data->yaml, "the model has more inputs than data can have columns", error);
    TRY(model_columns(feed, &labels, job->model, &job->training, columns, job_columns(columns, &spec), error));
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
    char where[256];
    yaml_place(where, job->path, data->yaml);
    return hint(error, fail_at(error, PLIM_BAD_JOB, where, "%s", what), "%s", advice);
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
    struct column_spec columns[MOST_COLUMNS];
    struct label_columns labels;
    int first[MOST_COLUMNS] = {0}, second[MOST_COLUMNS] = {0};
    dataset_sample_spec(&train, job->train.dataset);
    dataset_sample_spec(&validation, job->validation.dataset);
    TRY(model_columns(first, &labels, job->model, &job->training, columns, job_columns(columns, &train), error));
    TRY(model_columns(second, &labels, job->model, &job->training, columns, job_columns(columns, &validation), error));
    for (int i = 0; i < job->model->feed_count; i++)
        if (!shape_equal(&train.column[first[i]].shape, &validation.column[second[i]].shape))
            return bad_data_words(job, &job->validation,
                                  "validation elements have another shape than training elements",
                                  "give both the same shape", error);
    return PLIM_OK;
}

static plim_status check_disk(struct plim_job *job, plim_error *error)
{
    uint64_t by_tag[TAG_COUNT] = {0}, bytes = 0;
    dataset_cost(by_tag, &bytes, job->train.dataset, (struct grant){.slots = 1});
    if (job->validation.dataset)
        dataset_cost(by_tag, &bytes, job->validation.dataset, (struct grant){.slots = 1});
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
    return check_disk(job, error);
}
