/* model_file.c - the layers of a .keras file or a config.json. */
#include "model/keras/model_file.h"

#include "formats/weights/keras_file.h"
#include "model/keras/keras_config.h"

/* What is wrong in a model's file is not the job's. */
static plim_status of_the_model(plim_error *error, plim_status status)
{
    if (status != PLIM_BAD_JOB)
        return status;
    if (error)
        error->code = PLIM_BAD_MODEL;
    return PLIM_BAD_MODEL;
}

static plim_status read_config(struct model **out, struct yaml **yaml, struct arena *arena, const char *name,
                               const char *text, size_t bytes, plim_error *error)
{
    struct keras_config config;
    TRY(keras_config_read(&config, arena, name, text, bytes, error));
    *yaml = config.yaml;
    TRY(of_the_model(error, model_read(out, arena->budget, name, config.yaml, error)));
    (*out)->compiled = config.compiled;
    return PLIM_OK;
}

static plim_status read_keras(struct model **out, struct yaml **yaml, struct arena *arena, const char *path,
                              plim_error *error)
{
    struct keras_file *file;
    char *text;
    size_t bytes;
    const char *name = arena_format(arena, "%s/config.json", path);
    if (!name)
        return arena_refused(arena, error);
    TRY(keras_file_open(&file, arena->budget, path, error));
    plim_status status = keras_file_config(&text, &bytes, file, error);
    keras_file_close(file);
    TRY(status);
    status = read_config(out, yaml, arena, name, text, bytes, error);
    budget_give(arena->budget, TAG_PLANNER, text, bytes + 1);
    return status;
}

static plim_status read_json(struct model **out, struct yaml **yaml, struct arena *arena, const char *path,
                             plim_error *error)
{
    struct file_content file;
    TRY(file_load(&file, arena->budget, TAG_PLANNER, path, KERAS_CONFIG_MOST, error));
    plim_status status = read_config(out, yaml, arena, path, file.text, file.bytes, error);
    budget_give(arena->budget, TAG_PLANNER, file.text, file.bytes + 1);
    return status;
}

plim_status model_file_read(struct model **out, struct yaml **yaml, bool *keras, struct arena *arena, const char *path,
                            plim_error *error)
{
    *yaml = NULL;
    *keras = false;
    TRY(keras_file_is(keras, arena->budget, path, error));
    return *keras ? read_keras(out, yaml, arena, path, error) : read_json(out, yaml, arena, path, error);
}
