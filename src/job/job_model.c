/* job_model.c - the model of a job: layers in the job file, or a file that Keras wrote.

   model: [Dense: 10]                  layers (model/model.h)
   model: my_model.keras               with its weights; the same as {file: my_model.keras}
   model: {file: config.json, weights: my_model.safetensors} */
#include "job/job.h"

#include <string.h>

#include "formats/keras_file.h"
#include "model/keras_config.h"

struct model_words {
    const char *file, *weights;
};

static const struct setting model_settings[] = {
    {"file", SETTING_WORD, offsetof(struct model_words, file), 0},
    {"weights", SETTING_WORD, offsetof(struct model_words, weights), 0},
};

/* What is wrong in a model's file is not the job's. */
static plim_status of_the_model(plim_error *error, plim_status status)
{
    if (status != PLIM_BAD_JOB)
        return status;
    if (error)
        error->code = PLIM_BAD_MODEL;
    return PLIM_BAD_MODEL;
}

static plim_status read_config(struct plim_job *job, const char *name, const char *text, size_t bytes, plim_error *error)
{
    struct yaml *words = NULL;
    TRY(keras_config_read(&words, &job->arena, name, text, bytes, error));
    return of_the_model(error, model_read(&job->model, job->budget, name, words, error));
}

static plim_status read_keras(struct plim_job *job, const char *path, plim_error *error)
{
    struct keras_file *file;
    char *text;
    size_t bytes;
    const char *name = arena_format(&job->arena, "%s/config.json", path);
    if (!name)
        return arena_refused(&job->arena, error);
    TRY(keras_file_open(&file, job->budget, path, error));
    plim_status status = keras_file_config(&text, &bytes, file, error);
    keras_file_close(file);
    TRY(status);
    status = read_config(job, name, text, bytes, error);
    budget_give(job->budget, TAG_PLANNER, text, bytes + 1);
    return status;
}

static plim_status read_json(struct plim_job *job, const char *path, plim_error *error)
{
    char *text;
    size_t bytes;
    TRY(file_load(&text, &bytes, job->budget, TAG_PLANNER, path, KERAS_CONFIG_MOST, error));
    plim_status status = read_config(job, path, text, bytes, error);
    budget_give(job->budget, TAG_PLANNER, text, bytes + 1);
    return status;
}

plim_status job_model_file(struct plim_job *job, const char *path, plim_error *error)
{
    bool keras = false;
    TRY(keras_file_is(&keras, job->budget, path, error));
    if (keras)
        job->model_weights = path;
    return keras ? read_keras(job, path, error) : read_json(job, path, error);
}

static plim_status read_file(struct plim_job *job, const struct yaml *node, const struct model_words *words,
                             plim_error *error)
{
    char where[256];
    bool exists;
    const char *path = job_path(job, words->file), *weights = words->weights ? job_path(job, words->weights) : NULL;
    if (!path || (words->weights && !weights))
        return arena_refused(&job->arena, error);
    yaml_place(where, job->path, node);
    TRY(file_exists(&exists, path, error));
    if (!exists)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "model: there is no file '%s'", path),
                    "paths are relative to the job file; or give a list of layers");
    TRY(job_model_file(job, path, error));
    if (weights)
        job->model_weights = weights;
    return PLIM_OK;
}

plim_status job_model_read(struct plim_job *job, const struct yaml *node, plim_error *error)
{
    struct model_words words = {0};
    if (node->kind == YAML_SCALAR && !node->is_null)
        words.file = node->text;
    else if (node->kind == YAML_MAP && yaml_get(node, "file"))
        TRY(settings_read(&words, model_settings, (int)(sizeof model_settings / sizeof *model_settings), job->path, node,
                          error));
    if (words.file)
        return read_file(job, node, &words, error);
    return model_read(&job->model, job->budget, job->path, node, error);
}

/* ---- a model without a job: its summary ---- */

bool job_is_model(struct plim_job *job)
{
    const char *dot = strrchr(job->path, '.');
    return dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".keras") == 0);
}

plim_status job_model_build(struct plim_job *job, plim_error *error)
{
    struct graph graph;
    struct model_tensors tensors;
    struct column_spec columns[MOST_COLUMNS];
    int count = 0;
    TRY(model_input_columns(columns, &count, MOST_COLUMNS, job->model, error));
    graph_init(&graph, job->budget, 1);
    plim_status status = model_build(&tensors, &graph, job->model, columns, count, NULL, false, error);
    graph_release(&graph);
    return status;
}
