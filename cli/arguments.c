/* arguments.c - options, the same for every command. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char arguments_help[] =
    "Options:\n"
    "  --memory SIZE       the budget of the whole process: 48MiB, 80%, auto\n"
    "  --threads N         or compute=2,data=1\n"
    "  --set PATH=VALUE    overrides a value of the job file: train.epochs=1, data.train.pipeline.batch=64\n"
    "  --resume            goes on from the newest checkpoint that is whole\n"
    "  --checkpoint DIR    where checkpoints are kept\n"
    "  --disk SIZE         most bytes of unpacked sources, in --scratch DIR\n"
    "  --digest            SHA-256 of weights and optimizer at the end\n"
    "  --json[=steps]      JSON lines on standard output, =steps: every step too\n"
    "  --help\n";

static plim_status bad_usage(plim_error *error, const char *message, const char *word)
{
    if (error) {
        *error = (plim_error){.code = PLIM_USAGE};
        snprintf(error->message, sizeof error->message, "%s '%s'", message, word);
        snprintf(error->hint, sizeof error->hint, "%s", "plim --help");
    }
    return PLIM_USAGE;
}

/* The value of "--name value" or "--name=value"; *i moves past what was used. */
static const char *value_of(const char *name, int count, char **values, int *i)
{
    size_t length = strlen(name);
    if (strncmp(values[*i], name, length) != 0)
        return NULL;
    if (values[*i][length] == '=')
        return values[*i] + length + 1;
    if (values[*i][length] || *i + 1 >= count)
        return NULL;
    return values[++*i];
}

static bool read_steps(long long *out, const char *text)
{
    char *end;
    errno = 0;
    long long steps = strtoll(text, &end, 10);
    if (end == text || *end || errno || steps < 1)
        return false;
    *out = steps;
    return true;
}

static bool read_valued(struct arguments *out, int count, char **values, int *i)
{
    struct {
        const char *name;
        const char **to;
    } valued[] = {
        {"--memory", &out->job.memory},   {"--threads", &out->job.threads}, {"--scratch", &out->job.scratch},
        {"--disk", &out->job.disk},       {"--checkpoint", &out->job.checkpoint},
    };
    for (size_t k = 0; k < sizeof valued / sizeof valued[0]; k++) {
        const char *value = value_of(valued[k].name, count, values, i);
        if (value) {
            *valued[k].to = value;
            return true;
        }
    }
    const char *value = value_of("--set", count, values, i);
    if (value && out->job.overrides_count < MOST_OVERRIDES) {
        out->overrides[out->job.overrides_count++] = value;
        return true;
    }
    value = value_of("--steps", count, values, i);
    return value && read_steps(&out->steps, value);
}

static bool read_flag(struct arguments *out, const char *word)
{
    if (strcmp(word, "--resume") == 0)
        out->job.resume = true;
    else if (strcmp(word, "--digest") == 0)
        out->job.digest = true;
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        out->help = true;
    else if (strcmp(word, "--json") == 0 || strcmp(word, "--json=steps") == 0) {
        out->json = true;
        out->json_steps = word[6] != 0;
    } else
        return false;
    return true;
}

plim_status arguments_read(struct arguments *out, int count, char **values, plim_error *error)
{
    *out = (struct arguments){.steps = 1000};
    for (int i = 0; i < count; i++) {
        if (values[i][0] != '-') {
            if (out->word_count == MOST_WORDS)
                return bad_usage(error, "one word too many:", values[i]);
            out->words[out->word_count++] = values[i];
        } else if (!read_flag(out, values[i]) && !read_valued(out, count, values, &i))
            return bad_usage(error, "unknown option, or its value is missing or not possible:", values[i]);
    }
    out->job.overrides = out->overrides;
    return PLIM_OK;
}

plim_status open_job(plim_job **job, struct arguments *arguments, plim_error *error)
{
    if (arguments->word_count < 1)
        return bad_usage(error, "which job? a file is missing after", "plim COMMAND");
    if (arguments->word_count > 1)
        return bad_usage(error, "one word too many:", arguments->words[1]);
    return plim_job_open(job, arguments->words[0], &arguments->job, error);
}
