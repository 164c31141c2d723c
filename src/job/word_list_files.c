/* word_list_files.c - paths that match, as strings: list_files: "data/x_?.wav", shuffled anew each epoch unless told
   otherwise, as tf.data does it. */
#include "job/source_word.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct list_words {
    const struct yaml *files;
    bool shuffle;
};

static const struct setting list_settings[] = {
    {"files", SETTING_NODE, offsetof(struct list_words, files), 0},
    {"shuffle", SETTING_BOOL, offsetof(struct list_words, shuffle), 0},
};

static plim_status open_list(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    struct list_words words = {.files = yaml, .shuffle = true};
    struct file_list *files;
    struct source *source;
    if (yaml->kind == YAML_MAP) {
        words.files = NULL;
        TRY(settings_read(&words, list_settings, COUNT(list_settings), job->path, yaml, error));
    }
    if (!words.files)
        return hint(error, job_bad(job, yaml, "list_files: 'files:' is missing", error), "files: \"data/*.wav\"");
    TRY(job_file_list(&files, job, words.files, error));
    TRY(file_names_open(&source, job->budget, files, error));
    *out = dataset_from_source(source);
    if (words.shuffle)
        *out = dataset_shuffle(*out, job->seed);
    return PLIM_OK;
}

const struct source_word source_word_list_files = {"list_files", open_list, OF_FILES};
