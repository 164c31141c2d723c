/* cmd_data.c - plim data: finds what stands behind the word, and opens what it works on. */
#include "command.h"

#include <stdio.h>
#include <string.h>

static const struct data_command *const data_commands[] = {
#define DATA_COMMAND(name) &data_command_##name,
#include "data_commands.def"
#undef DATA_COMMAND
};
#define DATA_COUNT (sizeof data_commands / sizeof data_commands[0])

static const struct data_command *find(const char *word, plim_error *error)
{
    const char *names[DATA_COUNT];
    for (size_t i = 0; i < DATA_COUNT; i++) {
        names[i] = data_commands[i]->name;
        if (word && strcmp(word, names[i]) == 0)
            return data_commands[i];
    }
    const char *near = word ? nearest_word(word, names, (int)DATA_COUNT) : NULL;
    char hint[64];
    snprintf(hint, sizeof hint, "plim data %s", near ? near : "--help");
    bad_usage(error, hint, word ? "unknown command 'data %s'" : "which one? a word is missing%s", word ? word : "");
    return NULL;
}

static plim_status check_options(const struct arguments *arguments, const struct data_command *command,
                                 plim_error *error)
{
    const char *given = arguments->output && !(command->takes & TAKES_OUTPUT)   ? "--output"
                        : arguments->shards && !(command->takes & TAKES_SHARDS) ? "--shards"
                        : arguments->plan && !(command->takes & TAKES_PLAN)     ? "--plan"
                                                                                : NULL;
    return given ? bad_usage(error, "plim data --help", "this command takes no '%s'", given) : PLIM_OK;
}

/* As hints are to repeat it. */
static void name_command(struct arguments *arguments, const struct data_command *command)
{
    char shards[48] = "";
    if (arguments->shards)
        snprintf(shards, sizeof shards, " --shards %lld", arguments->shards);
    snprintf(arguments->command, sizeof arguments->command, "data %s%s%s%s", command->name, shards,
             arguments->output ? " --output " : "", arguments->output ? arguments->output : "");
    arguments->job.command = arguments->command;
}

static plim_status data(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    (void)reports;
    const struct data_command *command = find(arguments->word_count ? arguments->words[0] : NULL, error);
    if (!command)
        return PLIM_USAGE;
    plim_status status = check_options(arguments, command, error);
    if (status != PLIM_OK)
        return status;
    memmove(arguments->words, arguments->words + 1, sizeof arguments->words[0] * (size_t)--arguments->word_count);
    name_command(arguments, command);
    status = command->run(arguments, error);
    fflush(stdout);
    return status;
}

bool is_job_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

plim_status open_data(plim_job **job, struct arguments *arguments, plim_error *error)
{
    if (!arguments->word_count)
        return bad_usage(error, "plim data --help", "which data? a job file or data files are missing%s", "");
    arguments->job.data_only = true;
    if (is_job_file(arguments->words[0]))
        return open_job(job, arguments, error);
    return plim_job_open_files(job, arguments->words, (size_t)arguments->word_count, &arguments->job, error);
}

const struct command command_data = {
    .name = "data",
    .usage = "plim data COMMAND JOB.yaml|FILES [options]",
    .summary = "measures and explains data",
    .help = "  inspect  what is in it: columns, elements, the first of them\n"
            "  explain  its stages: bytes granted, what was tuned and why, time by stage, the bottleneck\n"
            "  bench    reads one epoch without training on it\n"
            "  index    TFRecord files: an index beside each, for exact shuffles\n"
            "  convert  through its pipeline into --output X.tfrecord, X.npy, X.tar or FOLDER\n"
            "  shard    into --shards N TFRecord files, --output PREFIX\n\n"
            "On the training data of a job file (model: and train: may be missing), or on data files.\n\n"
            "  plim data explain examples/mlp.yaml --memory 16MiB\n"
            "  plim data convert x.npy y.npy --output set.tfrecord\n",
    .takes = TAKES_JOB | TAKES_OUTPUT | TAKES_SHARDS | TAKES_PLAN,
    .run = data,
};
