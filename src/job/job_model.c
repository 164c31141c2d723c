/* job_model.c - the model of a job: layers in the job file, or a file that Keras wrote.

   model: [Dense: 10]                  layers (model/model.h)
   model: my_model.keras               with its weights; the same as {file: my_model.keras}
   model: {file: config.json, weights: my_model.safetensors} */
#include "job/job.h"

#include <string.h>

#include "model/keras/model_file.h"

struct model_keys {
    const char *file, *weights;
};

static const struct setting model_settings[] = {
    {"file", SETTING_WORD, offsetof(struct model_keys, file), 1},
    {"weights", SETTING_WORD, offsetof(struct model_keys, weights), 1},
};

plim_status job_model_file(struct plim_job *job, const char *path, plim_error *error)
{
    bool keras;
    TRY(model_file_read(&job->model, &job->model_yaml, &keras, &job->arena, path, error));
    if (keras)
        job->model_weights = path;
    return PLIM_OK;
}

static plim_status read_file(struct plim_job *job, const struct yaml *node, const struct model_keys *keys,
                             plim_error *error)
{
    bool exists;
    const char *path = job_path(job, keys->file), *weights = keys->weights ? job_path(job, keys->weights) : NULL;
    if (!path || (keys->weights && !weights))
        return arena_refused(&job->arena, error);
    TRY(file_exists(&exists, path, error));
    if (!exists)
        return hint(error, yaml_fail(error, PLIM_BAD_JOB, job->path, node, "model: there is no file '%s'", path),
                    "paths are relative to the job file; or give a list of layers");
    TRY(job_model_file(job, path, error));
    if (weights)
        job->model_weights = weights;
    return PLIM_OK;
}

plim_status job_model_read(struct plim_job *job, const struct yaml *node, plim_error *error)
{
    struct model_keys keys = {0};
    if (node->kind == YAML_SCALAR && !node->is_null)
        keys.file = node->text;
    else if (node->kind == YAML_MAP && yaml_get(node, "file"))
        TRY(settings_read(&keys, model_settings, COUNT(model_settings), job->path, node, error));
    if (keys.file)
        return read_file(job, node, &keys, error);
    return model_read(&job->model, job->budget, job->path, node, error);
}

/* ---- a model without a job, or a job that lacks something: its summary ---- */

bool job_is_model(struct plim_job *job)
{
    const char *dot = strrchr(job->path, '.');
    return dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".keras") == 0);
}

/* What the first columns of the data are, or those with the names of Input layers. */
static plim_status data_columns(struct column_spec *columns, int *count, struct plim_job *job, plim_error *error)
{
    struct spec spec;
    struct column_spec all[MOST_COLUMNS];
    int feed[MOST_COLUMNS] = {0};
    *count = job->model->feed_count;
    if (*count > MOST_COLUMNS)
        return job_bad(job, job->train.yaml, "the model has more inputs than data can have columns", error);
    if (!job->train.dataset)
        TRY(job_data_open(job, &job->train, error));
    TRY(job_samples(&spec, job, error));
    TRY(model_inputs(feed, job->model, all, job_columns(all, &spec), error));
    for (int i = 0; i < *count; i++)
        columns[i] = all[feed[i]];
    return PLIM_OK;
}

plim_status job_model_build(struct graph *graph, struct plim_job *job, plim_error *error)
{
    struct model_tensors tensors;
    struct column_spec columns[MOST_COLUMNS];
    int count = 0;
    graph_init(graph, job->budget, 1);
    plim_status told = model_input_columns(columns, &count, MOST_COLUMNS, job->model, error);
    if (told != PLIM_OK && job->train.yaml) {
        if (error)
            *error = (plim_error){0};
        told = data_columns(columns, &count, job, error);
    }
    if (told == PLIM_BAD_MODEL && !job->model_only) { /* its layers are the job's */
        told = PLIM_BAD_JOB;
        if (error)
            error->code = told;
    }
    TRY(told);
    return model_build(&tensors, graph, job->model, &(struct step_spec){.column = columns, .column_count = count},
                       error);
}
