/* job_weights.c - the files of weights that a job names, looked at while it is planned: load_weights has to fit the
   model, save_weights must not fall on a file that the job reads. */
#include "job/job.h"

#include "formats/weights/keras_file.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

static const struct yaml *word_of(const struct plim_job *job, const char *word)
{
    return yaml_get(yaml_get(job->yaml, "train"), word);
}

/* ---- loading ---- */

plim_status job_weights_load(struct plim_job *job, plim_error *error)
{
    char where[256];
    bool exists;
    const char *path = job->options.load_weights;
    job->load_bytes = 0;
    if (!path)
        return PLIM_OK;
    TRY(file_exists(&exists, path, error));
    if (!exists && job->options.resume) /* a checkpoint takes its place; where there is none, the run says so */
        return PLIM_OK;
    const struct yaml *word = word_of(job, "load_weights");
    yaml_place(where, job->path, word ? word : yaml_get(job->yaml, "model"));
    if (!exists)
        return hint(error, fail_at(error, PLIM_BAD_DATA, where, "there is no file '%s'", path),
                    "paths are relative to the job file");
    bool keras = false;
    TRY(keras_file_is(&keras, job->budget, path, error));
    if (keras)
        return keras_weights_check(&job->load_bytes, path, &job->plan, &job->scratch, error);
    return weights_check(&job->load_bytes, path, job->plan.program, job->budget, error);
}

/* ---- saving ---- */

static plim_status refuse(const struct plim_job *job, const char *read, plim_error *error)
{
    plim_status status = yaml_fail(error, PLIM_BAD_JOB, job->path, word_of(job, "save_weights"),
                                   "save_weights: '%s' is a file that this job reads", read);
    return hint(error, status, "save_weights: weights.safetensors");
}

static plim_status check_path(struct plim_job *job, const char *read, plim_error *error)
{
    bool same = false;
    (void)file_same(&same, job->options.save_weights, read, NULL); /* what cannot be looked at cannot be read */
    same = same || fnmatch(read, job->options.save_weights, FNM_PATHNAME) == 0;
    return same ? refuse(job, read, error) : PLIM_OK;
}

/* Every word of a source that could be a file's name or a pattern of names: those that are none name no file. */
static plim_status check_words(struct plim_job *job, const struct yaml *node, plim_error *error)
{
    if (node->kind == YAML_SCALAR && *node->text) {
        const char *path = job_path(job, node->text);
        if (!path)
            return arena_refused(&job->arena, error);
        return check_path(job, path, error);
    }
    for (const struct yaml *child = node->first; child; child = child->next)
        TRY(check_words(job, child, error));
    return PLIM_OK;
}

static plim_status check_split(struct plim_job *job, const struct yaml *split, plim_error *error)
{
    for (const struct yaml *entry = split ? split->first : NULL; entry; entry = entry->next)
        if (!entry->key || strcmp(entry->key, "pipeline") != 0)
            TRY(check_words(job, entry, error));
    return PLIM_OK;
}

/* A name that promises another format would deceive whoever opens the file. */
static plim_status check_suffix(const struct plim_job *job, plim_error *error)
{
    static const char *const others[] = {".h5", ".hdf5", ".keras", ".npz", ".pt", ".pth", ".ckpt"};
    const char *path = job->options.save_weights, *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < COUNT(others); i++) {
        if (strcasecmp(dot, others[i]) != 0)
            continue;
        return hint(error,
                    yaml_fail(error, PLIM_BAD_JOB, job->path, word_of(job, "save_weights"),
                              "save_weights: only safetensors is written, not %s", dot),
                    "save_weights: weights.safetensors");
    }
    return PLIM_OK;
}

plim_status job_weights_save(struct plim_job *job, plim_error *error)
{
    if (!job->options.save_weights)
        return PLIM_OK;
    TRY(check_suffix(job, error));
    TRY(check_path(job, job->path, error));
    TRY(check_split(job, job->train.yaml, error));
    return check_split(job, job->validation.yaml, error);
}
