/* word_command.c - records that a program writes, in TFRecord's framing: command: "my-reader --shard 3". It runs in the
   job file's folder, once an epoch; $1 is the number of the epoch. */
#include "job/source_word.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct command_words {
    const char *run;
    const struct yaml *features, *context, *lists;
};

static const struct setting command_settings[] = {
    {"run", SETTING_WORD, offsetof(struct command_words, run), 0},
    {"features", SETTING_NODE, offsetof(struct command_words, features), 0},
    {"context_features", SETTING_NODE, offsetof(struct command_words, context), 0},
    {"sequence_features", SETTING_NODE, offsetof(struct command_words, lists), 0},
};

static plim_status open_command(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    struct command_words words = {.run = yaml->kind == YAML_SCALAR ? yaml->text : NULL};
    struct source *source;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&words, command_settings, COUNT(command_settings), job->path, yaml, error));
    if (!words.run || !*words.run)
        return hint(error, job_bad(job, yaml, "command: there is none", error), "command: \"my-reader --shard 3\"");
    TRY(command_open(&source, job->budget, words.run, job->folder && *job->folder ? job->folder : NULL, error));
    *out = dataset_from_source(source);
    return job_features(out, job, words.features, words.context, words.lists, error);
}

const struct source_word source_word_command = {"command", open_command, OF_WORDS};
